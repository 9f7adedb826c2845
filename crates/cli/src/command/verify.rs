//! `capsule verify`: is the record what was written, and who says so?

use std::path::Path;

use anstyle::Style;
use capsule_core::code::Code;
use capsule_core::escape;
use capsule_core::outcome::CodedError;
use capsule_core::units::counted;
use capsule_report::{width, wrap};
use capsule_store::{
    Anchored, Attested, Completeness, Fault, Proof, Sightings, Signer, Store, StoreError, Trust,
    Verified, read_keys,
};
use serde_json::{Value, json};

use crate::args::Verify;
use crate::failure::Failure;
use crate::screen::{BAD, CARE, GOOD, PLAIN, Screen};
use crate::surroundings::Surroundings;

/// Where the keys come from that are asked who signed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// A person brought them.
    Given,
    /// The key lies beside the store.
    Beside,
    /// There is none.
    Nowhere,
}

pub(crate) fn run(args: &Verify, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let (path, named) = match args.run.as_deref() {
        // No name of a run has either of these in it, so no file takes its place.
        Some(file) if file.contains(['.', '/']) => (around.cwd.join(file), None),
        named => (around.store.clone(), named),
    };
    let (trust, source) = trust(args, around, &path)?;
    let store = match Store::open_read_only(&path) {
        Ok(store) => store,
        Err(error) if error.code() == Code::Integrity => return Err(refused(&error, screen)),
        Err(error) => return Err(error.into()),
    };
    let id = named.map(|run| store.find(run)).transpose()?;
    match verified(&store, id.as_deref(), &trust)? {
        Ok(proof) => {
            let claims = Claims::of(&proof, source);
            if screen.json {
                let mut told = as_json(&proof, id.as_deref(), source, &claims);
                if let Some(told) = told.as_object_mut() {
                    told.insert("store".into(), json!(path));
                }
                screen.say_json(&told)?;
            } else {
                let label = id.as_deref().map(|id| store.label(id));
                if path != around.store {
                    say(screen, (GOOD, "✔"), "file", &path.display().to_string())?;
                }
                show(&proof, label.as_deref(), source, &claims, screen)?;
            }
            Ok(0)
        }
        Err(Fault { place, what }) => Err(found(&place, &what, None, screen)?),
    }
}

/// What a verification came to. A store in which something cannot be read at all is not what was written.
fn verified(store: &Store, run: Option<&str>, trust: &Trust) -> Result<Verified, Failure> {
    match store.verify_by(run, trust) {
        Err(StoreError::Integrity { place, what }) => Ok(Err(Fault { place, what })),
        verified => Ok(verified?),
    }
}

/// A store that cannot even be opened as one, since a part of it is missing.
fn refused(error: &StoreError, screen: &Screen) -> Failure {
    let told = found("record", &error.to_string(), Some(error.suggestion()), screen);
    told.unwrap_or_else(|unsaid| unsaid)
}

/// Tells what is not what was written.
fn found(
    place: &str,
    what: &str,
    suggestion: Option<String>,
    screen: &Screen,
) -> Result<Failure, Failure> {
    if screen.json {
        let code = Code::Integrity;
        screen.say_json(&json!({ "ok": false, "code": code, "place": place, "what": what }))?;
        return Ok(Failure::Quiet(code.exit().status()));
    }
    let said = escape::line(&format!("{place}: {what}")).into_owned();
    screen.say(&format!("{BAD}✖{BAD:#} {said}"))?;
    let suggestion = suggestion.unwrap_or_else(|| Code::Integrity.next_step().to_owned());
    Ok(CodedError::new(Code::Integrity, said).with_suggestion(suggestion).into())
}

/// What it is verified by. A key beside the store is asked where no other was brought, and is never
/// taken for one.
fn trust(args: &Verify, around: &Surroundings, store: &Path) -> Result<(Trust, Source), Failure> {
    let named = |file: &Path| match file == Path::new("-") {
        true => file.to_owned(),
        false => around.cwd.join(file),
    };
    let anchors = args.anchor.iter().map(|file| {
        let name = file.to_string_lossy().into_owned();
        Ok(Sightings::read(&named(file))?.named(name))
    });
    let anchors = anchors.collect::<Result<_, Failure>>()?;
    if let Some(file) = &args.key {
        let keys = read_keys(&around.cwd.join(file))?;
        return Ok((Trust { keys, is_strict: true, anchors }, Source::Given));
    }
    // A key that cannot be used is told by `doctor`; the record is what it is without.
    let beside = Signer::beside(store).ok().flatten();
    let source = if beside.is_some() { Source::Beside } else { Source::Nowhere };
    let keys = beside.iter().map(|own| own.verifier().clone()).collect();
    Ok((Trust { keys, is_strict: false, anchors }, source))
}

/// What a verification shows, and what it does not.
struct Claims {
    proves: Vec<String>,
    not_proven: Vec<String>,
}

impl Claims {
    fn of(proof: &Proof, source: Source) -> Self {
        let Attested { signed, good, .. } = &proof.attested;
        let mut own = Self {
            proves: vec![
                "nothing that this store holds was changed by accident or by an edit".into(),
            ],
            not_proven: Vec::new(),
        };
        let is_signed = source == Source::Given && *good > 0;
        if is_signed {
            own.proves.push(format!(
                "whoever has the key signed the first {signed} events, and none of them was changed or \
                 removed since"
            ));
            own.not_proven.extend(
                behind(signed + 1, proof.leaves).map(|events| {
                    format!("{events}: nothing behind the last checkpoint is signed")
                }),
            );
        }
        if let Some(at) = proof.erased_at.filter(|at| is_signed && *at >= *signed) {
            own.not_proven.push(format!(
                "that the owner of the key erased what event {at} says: no signature is behind it"
            ));
        }
        let anchors = &proof.attested.anchors;
        for Anchored { name, origin, size, .. } in anchors {
            own.proves.push(format!(
                "the first {size} events of `{origin}` existed when `{name}` was written, and none of them \
                 was changed or removed since"
            ));
        }
        own.count(&proof.completeness);
        own.leave_open(proof, is_signed);
        own.not_proven.push("that nothing ran outside of the runtime".into());
        own.not_proven.push("that the host was honest while it ran".into());
        own
    }

    /// What the note of how many events there are shows.
    fn count(&mut self, completeness: &Completeness) {
        match completeness {
            Completeness { noted: Some(_), lost: 0, .. } => self.proves.push(
                "no event is missing that was noted beside the store when it was last written to"
                    .into(),
            ),
            Completeness { noted: Some(_), lost, .. } => self.not_proven.push(format!(
                "the newest {lost} events that were noted: the machine stopped before the disk had them"
            )),
            Completeness { is_alone: true, .. } => {}
            Completeness { .. } => self.not_proven.push(
                "that no newer events were there: no note beside it (`.head`) says how many there were"
                    .into(),
            ),
        }
    }

    /// What neither a signature nor an anchor shows.
    fn leave_open(&mut self, proof: &Proof, is_signed: bool) {
        let anchors = &proof.attested.anchors;
        match anchors.iter().max_by_key(|own| own.size) {
            Some(newest) => {
                let seen = newest.size;
                // The checkpoint itself is no event of anybody's.
                let covered = seen + u64::from(newest.is_next);
                self.not_proven.extend(
                    behind(covered, proof.leaves)
                        .map(|events| format!("{events}: no anchor has seen them")),
                );
                self.not_proven.push(format!(
                    "that nothing was cut off behind the first {seen} events, which is all that an anchor saw"
                ));
            }
            None if is_signed => self.not_proven.push(
                "that nothing behind the last checkpoint was cut off, and that this is not an older copy: \
                 an anchor shows that (`--anchor`)"
                    .into(),
            ),
            None => self.not_proven.push(
                "that nobody who can write the file wrote all of it again: a public line from elsewhere \
                 (`--key`) or an anchor (`--anchor`) shows that"
                    .into(),
            ),
        }
        for Anchored { name, origin, others, .. } in anchors.iter().filter(|_| !is_signed) {
            if !others.is_empty() {
                let others = others.join("`, `");
                self.not_proven.push(format!(
                    "that this is the log which `{name}` is about: it knows `{others}` as well as `{origin}`, \
                     and no key was brought (`--key`)"
                ));
            }
        }
    }
}

/// The events behind the first so many, by their numbers in the tree, which begin with 0; none if there are none.
fn behind(size: u64, leaves: u64) -> Option<String> {
    let last = leaves.checked_sub(1)?;
    match leaves.checked_sub(size)? {
        0 => None,
        1 => Some(format!("event {last}")),
        _ => Some(format!("events {size}–{last}")),
    }
}

fn as_json(proof: &Proof, id: Option<&str>, source: Source, claims: &Claims) -> Value {
    let Attested { checkpoints, good, by, others, signed, anchors } = &proof.attested;
    let Completeness { noted, log, lost, .. } = &proof.completeness;
    let by: Vec<Value> =
        by.iter().map(|(name, number)| json!({ "name": name, "number": number })).collect();
    let anchors: Vec<Value> = anchors
        .iter()
        .map(|own| {
            json!({
                "file": own.name,
                "origin": own.origin,
                "size": own.size,
                "root": own.root,
                "other_logs": own.others,
            })
        })
        .collect();
    json!({
        "ok": true,
        "leaves": proof.leaves,
        "root": proof.root,
        "runs": { "sealed": proof.sealed, "unsealed": proof.unsealed },
        "payloads": { "match": proof.payloads, "erased": proof.erased, "absent": proof.absent },
        "run": id,
        "events": proof.events,
        "signatures": {
            "checkpoints": checkpoints,
            "verified": good,
            "size": signed,
            "by": by,
            "not_verified_by": others,
            "key": match source {
                Source::Given => Some("given"),
                Source::Beside => Some("beside-store"),
                Source::Nowhere => None,
            },
        },
        "anchors": anchors,
        "noted": noted.as_ref().map(|own| json!({ "size": own.size, "root": own.root })),
        "log": log.map(|own| json!({ "frames": own.frames, "unread": own.unread })),
        "lost": lost,
        "proves": claims.proves,
        "not_proven": claims.not_proven,
    })
}

/// The columns before what is said.
const HEAD: usize = 17;

/// A line with its mark and what it is about; what does not fit goes on below.
fn say(
    screen: &Screen,
    (style, mark): (Style, &str),
    about: &str,
    text: &str,
) -> Result<(), Failure> {
    let room = screen.layout().width.saturating_sub(HEAD);
    let lines = wrap(&escape::line(text), room);
    let (first, rest) = lines.split_first().map_or(("", [].as_slice()), |(own, rest)| (own, rest));
    let head = match mark {
        "" => format!("{style}{about:<HEAD$}{style:#}"),
        mark => format!("{style}{mark}{style:#} {about:<gap$}", gap = HEAD - width(mark) - 1),
    };
    screen.say(&format!("{head}{first}"))?;
    rest.iter().try_for_each(|line| screen.say(&format!("{:HEAD$}{line}", "")))
}

fn show(
    proof: &Proof,
    label: Option<&str>,
    source: Source,
    claims: &Claims,
    screen: &Screen,
) -> Result<(), Failure> {
    let good = |about: &str, text: String| say(screen, (GOOD, "✔"), about, &text);
    signatures(&proof.attested, source, screen)?;
    good("tree", format!("{}, root {}", counted(proof.leaves, "event"), proof.root.short()))?;
    complete(&proof.completeness, screen)?;
    for Anchored { name, origin, size, root, .. } in &proof.attested.anchors {
        let (root, leaves) = (root.short(), proof.leaves);
        let saw = format!("saw {} of {origin}, root {root}", counted(*size, "event"));
        good("anchor", format!("{name} {saw}; consistent with {leaves}"))?;
    }
    if let Some(label) = label {
        let sealed = if proof.run_sealed { "sealed" } else { "not sealed" };
        let events = counted(proof.events, "event");
        good("run", format!("{label}: {events}, contiguous, {sealed}"))?;
    }
    let open = match proof.unsealed {
        0 => String::new(),
        open => format!(", {open} not sealed (running or crashed)"),
    };
    good("runs", format!("{} sealed{open}", proof.sealed))?;
    let told = |count: u64, what: &str| match count {
        0 => String::new(),
        count => format!(", {count} {what}"),
    };
    let erased = told(proof.erased, "erased, as the record says");
    let absent = told(proof.absent, "withheld or never kept");
    good("payloads", format!("{} match{erased}{absent}", proof.payloads))?;
    for (style, head, claims) in
        [(PLAIN, "proves", &claims.proves), (CARE, "not proven", &claims.not_proven)]
    {
        for (at, claim) in claims.iter().enumerate() {
            say(screen, (style, ""), if at == 0 { head } else { "" }, claim)?;
        }
    }
    Ok(())
}

/// Whether all events are here that were written.
fn complete(completeness: &Completeness, screen: &Screen) -> Result<(), Failure> {
    let Completeness { noted, is_alone, log, lost } = completeness;
    let frames = log.map(|own| match own.unread {
        0 => format!("; {} frames of its log read", own.frames),
        unread => format!("; {} frames of its log read, {unread} of no use", own.frames),
    });
    let frames = frames.unwrap_or_default();
    let good = (GOOD, "✔");
    match noted {
        Some(head) if *lost == 0 => {
            say(screen, good, "complete", &format!("{} events were noted{frames}", head.size))
        }
        Some(_) => {
            let what = format!("{lost} events were noted that the disk did not have yet{frames}");
            say(screen, (CARE, "⚠"), "complete", &what)
        }
        None if *is_alone => say(screen, good, "complete", "one file, with no log beside it"),
        None => {
            let what = format!("nothing beside it says how many events there were{frames}");
            say(screen, (CARE, "⚠"), "complete", &what)
        }
    }
}

/// What is signed, and by whom.
fn signatures(attested: &Attested, source: Source, screen: &Screen) -> Result<(), Failure> {
    let Attested { checkpoints, good, by, others, .. } = attested;
    let by: Vec<&str> = by.iter().map(|(name, _)| name.as_str()).collect();
    let told = format!("{} by {}", counted(*good, "checkpoint"), by.join(", "));
    let (mark, said) = match source {
        _ if *checkpoints == 0 => {
            ((CARE, "⚠"), "nothing in it is signed (`capsule init` makes a key)".to_owned())
        }
        Source::Given => ((GOOD, "✔"), format!("{told} (key supplied by you)")),
        Source::Beside if *good > 0 => (
            (CARE, "⚠"),
            format!(
                "{told}, by the key that lies beside the store; that proves little: bring its public \
                 line with --key"
            ),
        ),
        Source::Beside | Source::Nowhere => (
            (CARE, "⚠"),
            format!(
                "{}, not checked: no key was brought (--key)",
                counted(*checkpoints, "checkpoint")
            ),
        ),
    };
    say(screen, mark, "signature", &said)?;
    if *good > 0 && good < checkpoints {
        let others: Vec<&str> = others.iter().map(String::as_str).collect();
        let said = format!(
            "{} more are not checked, said to be by {}",
            checkpoints - good,
            others.join(", ")
        );
        say(screen, (CARE, "⚠"), "", &said)?;
    }
    Ok(())
}
