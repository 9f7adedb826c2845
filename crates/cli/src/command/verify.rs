//! `capsule verify`: is the record what was written, and who says so?

use std::path::Path;

use anstyle::Style;
use capsule_base::code::Code;
use capsule_base::escape;
use capsule_base::units::counted;
use capsule_core::outcome::CodedError;
use capsule_report::{width, wrap};
use capsule_store::{
    AnchorReport, AttestationReport, Completeness, Fault, Proof, Signer, Store, StoreError,
    TrustRoots, Verified, WitnessedCheckpoints, read_keys,
};
use serde_json::{Value, json};

use crate::args::VerifyArgs;
use crate::context::CliContext;
use crate::failure::Failure;
use crate::screen::{ERROR, PLAIN, SUCCESS, Screen, WARNING};

/// Where the keys come from that are asked who signed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeySource {
    /// A person brought them.
    ByUser,
    /// The key lies beside the store.
    BesideStore,
    /// There is none.
    NoKeys,
}

pub(crate) fn run(args: &VerifyArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let (path, named) = match args.run.as_deref() {
        // No name of a run has either of these in it, so no file takes its place.
        Some(file) if file.contains(['.', '/']) => (ctx.cwd.join(file), None),
        named => (ctx.store.clone(), named),
    };
    let (trust, source) = load_trust(args, ctx, &path)?;
    let store = match Store::open_read_only(&path) {
        Ok(store) => store,
        Err(error) if error.code() == Code::Integrity => return Err(refused(&error, screen)),
        Err(error) => return Err(error.into()),
    };
    let id = named.map(|run| store.find(run)).transpose()?;
    match verified(&store, id.as_deref(), &trust)? {
        Ok(proof) => {
            let claims = ProofClaims::from_proof(&proof, source);
            if screen.json {
                let mut told = as_json(&proof, id.as_deref(), source, &claims);
                if let Some(told) = told.as_object_mut() {
                    told.insert("store".into(), json!(path));
                }
                screen.print_json(&told)?;
            } else {
                let label = id.as_deref().map(|id| store.label(id));
                if path != ctx.store {
                    print_marked(screen, (SUCCESS, "✔"), "file", &path.display().to_string())?;
                }
                show(&proof, label.as_deref(), source, &claims, screen)?;
            }
            Ok(0)
        }
        Err(Fault { place, what }) => Err(found(&place, &what, None, screen)?),
    }
}

/// What a verification came to. A store in which something cannot be read at all is not what was written.
fn verified(store: &Store, run: Option<&str>, trust: &TrustRoots) -> Result<Verified, Failure> {
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
        screen.print_json(&json!({ "ok": false, "code": code, "place": place, "what": what }))?;
        return Ok(Failure::Quiet(code.exit().status()));
    }
    let said = escape::line(&format!("{place}: {what}")).into_owned();
    screen.print_line(&format!("{ERROR}✖{ERROR:#} {said}"))?;
    let suggestion = suggestion.unwrap_or_else(|| Code::Integrity.next_step().to_owned());
    Ok(CodedError::new(Code::Integrity, said).with_suggestion(suggestion).into())
}

/// What it is verified by. A key beside the store is asked where no other was brought, and is never
/// taken for one.
fn load_trust(
    args: &VerifyArgs,
    ctx: &CliContext,
    store: &Path,
) -> Result<(TrustRoots, KeySource), Failure> {
    let named = |file: &Path| match file == Path::new("-") {
        true => file.to_owned(),
        false => ctx.cwd.join(file),
    };
    let anchors = args.anchor.iter().map(|file| {
        let name = file.to_string_lossy().into_owned();
        Ok(WitnessedCheckpoints::read(&named(file))?.with_name(name))
    });
    let anchors = anchors.collect::<Result<_, Failure>>()?;
    if let Some(file) = &args.key {
        let keys = read_keys(&ctx.cwd.join(file))?;
        return Ok((TrustRoots { keys, is_strict: true, witnesses: anchors }, KeySource::ByUser));
    }
    // A key that cannot be used is told by `doctor`; the record is what it is without.
    let beside = Signer::load(store).ok().flatten();
    let source = if beside.is_some() { KeySource::BesideStore } else { KeySource::NoKeys };
    let keys = beside.iter().map(|signer| signer.verifier().clone()).collect();
    Ok((TrustRoots { keys, is_strict: false, witnesses: anchors }, source))
}

/// What a verification shows, and what it does not.
struct ProofClaims {
    proves: Vec<String>,
    not_proven: Vec<String>,
}

impl ProofClaims {
    fn from_proof(proof: &Proof, source: KeySource) -> Self {
        let AttestationReport { signed_events: signed, valid: good, .. } = &proof.attested;
        let mut claims = Self {
            proves: vec![
                "nothing that this store holds was changed by accident or by an edit".into(),
            ],
            not_proven: Vec::new(),
        };
        let is_signed = source == KeySource::ByUser && *good > 0;
        if is_signed {
            claims.proves.push(format!(
                "whoever has the key signed the first {signed} events, and none of them was changed or \
                 removed since"
            ));
            claims.not_proven.extend(
                events_after(signed + 1, proof.leaves).map(|events| {
                    format!("{events}: nothing behind the last checkpoint is signed")
                }),
            );
        }
        if let Some(at) = proof.erased_at.filter(|at| is_signed && *at >= *signed) {
            claims.not_proven.push(format!(
                "that the owner of the key erased what event {at} says: no signature is behind it"
            ));
        }
        let anchors = &proof.attested.anchors;
        for AnchorReport { name, origin, size, .. } in anchors {
            claims.proves.push(format!(
                "the first {size} events of `{origin}` existed when `{name}` was written, and none of them \
                 was changed or removed since"
            ));
        }
        claims.count(&proof.completeness);
        claims.add_unproven(proof, is_signed);
        claims.not_proven.push("that nothing ran outside of the runtime".into());
        claims.not_proven.push("that the host was honest while it ran".into());
        claims
    }

    /// What the note of how many events there are shows.
    fn count(&mut self, completeness: &Completeness) {
        match completeness {
            Completeness { noted: Some(_), lost: 0, .. } => self.proves.push(
                "no event is missing: the store has as many as its note (`.head`) counted at the last write"
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
    fn add_unproven(&mut self, proof: &Proof, is_signed: bool) {
        let anchors = &proof.attested.anchors;
        match anchors.iter().max_by_key(|anchor| anchor.size) {
            Some(newest) => {
                let seen = newest.size;
                // The checkpoint itself is no event of anybody's.
                let covered = seen + u64::from(newest.is_next);
                self.not_proven.extend(
                    events_after(covered, proof.leaves)
                        .map(|events| format!("{events}: no anchor has seen them")),
                );
                self.not_proven.push(format!(
                    "that no event after the first {seen} was removed, since an anchor saw only those"
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
        for AnchorReport { name, origin, other_logs: others, .. } in
            anchors.iter().filter(|_| !is_signed)
        {
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
fn events_after(size: u64, leaves: u64) -> Option<String> {
    let last = leaves.checked_sub(1)?;
    match leaves.checked_sub(size)? {
        0 => None,
        1 => Some(format!("event {last}")),
        _ => Some(format!("events {size}–{last}")),
    }
}

fn as_json(proof: &Proof, id: Option<&str>, source: KeySource, claims: &ProofClaims) -> Value {
    let AttestationReport {
        checkpoints,
        valid: good,
        signers: by,
        other_signers: others,
        signed_events: signed,
        anchors,
    } = &proof.attested;
    let Completeness { noted, log, lost, .. } = &proof.completeness;
    let by: Vec<Value> =
        by.iter().map(|(name, number)| json!({ "name": name, "number": number })).collect();
    let anchors: Vec<Value> = anchors
        .iter()
        .map(|anchor| {
            json!({
                "file": anchor.name,
                "origin": anchor.origin,
                "size": anchor.size,
                "root": anchor.root,
                "other_logs": anchor.other_logs,
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
                KeySource::ByUser => Some("given"),
                KeySource::BesideStore => Some("beside-store"),
                KeySource::NoKeys => None,
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
const LABEL_COLUMNS: usize = 17;

/// A line with its mark and what it is about; what does not fit goes on below.
fn print_marked(
    screen: &Screen,
    (style, mark): (Style, &str),
    about: &str,
    text: &str,
) -> Result<(), Failure> {
    let room = screen.layout().width.saturating_sub(LABEL_COLUMNS);
    let lines = wrap(&escape::line(text), room);
    let (first, rest) =
        lines.split_first().map_or(("", [].as_slice()), |(text, rest)| (text, rest));
    let head = match mark {
        "" => format!("{style}{about:<LABEL_COLUMNS$}{style:#}"),
        mark => {
            format!("{style}{mark}{style:#} {about:<gap$}", gap = LABEL_COLUMNS - width(mark) - 1)
        }
    };
    screen.print_line(&format!("{head}{first}"))?;
    rest.iter().try_for_each(|line| screen.print_line(&format!("{:LABEL_COLUMNS$}{line}", "")))
}

fn show(
    proof: &Proof,
    label: Option<&str>,
    source: KeySource,
    claims: &ProofClaims,
    screen: &Screen,
) -> Result<(), Failure> {
    let good = |about: &str, text: String| print_marked(screen, (SUCCESS, "✔"), about, &text);
    show_signatures(&proof.attested, source, screen)?;
    good("tree", format!("{}, root {}", counted(proof.leaves, "event"), proof.root.short()))?;
    complete(&proof.completeness, screen)?;
    for AnchorReport { name, origin, size, root, .. } in &proof.attested.anchors {
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
        open => format!(", {open} not sealed (open, running or crashed)"),
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
        [(PLAIN, "proves", &claims.proves), (WARNING, "not proven", &claims.not_proven)]
    {
        for (at, claim) in claims.iter().enumerate() {
            print_marked(screen, (style, ""), if at == 0 { head } else { "" }, claim)?;
        }
    }
    Ok(())
}

/// Whether all events are here that were written.
fn complete(completeness: &Completeness, screen: &Screen) -> Result<(), Failure> {
    let Completeness { noted, is_alone, log, lost } = completeness;
    let frames = log.map(|frames| match frames.unread {
        0 => format!("; {} frames of its log read", frames.frames),
        unread => format!("; {} frames of its log read, {unread} of no use", frames.frames),
    });
    let frames = frames.unwrap_or_default();
    let good = (SUCCESS, "✔");
    match noted {
        Some(head) if *lost == 0 => print_marked(
            screen,
            good,
            "complete",
            &format!("{} events were noted{frames}", head.size),
        ),
        Some(_) => {
            let what = format!("{lost} events were noted that the disk did not have yet{frames}");
            print_marked(screen, (WARNING, "⚠"), "complete", &what)
        }
        None if *is_alone => {
            print_marked(screen, good, "complete", "one file, with no log beside it")
        }
        None => {
            let what = format!("nothing beside it says how many events there were{frames}");
            print_marked(screen, (WARNING, "⚠"), "complete", &what)
        }
    }
}

/// What is signed, and by whom.
fn show_signatures(
    attested: &AttestationReport,
    source: KeySource,
    screen: &Screen,
) -> Result<(), Failure> {
    let AttestationReport { checkpoints, valid: good, signers: by, other_signers: others, .. } =
        attested;
    let by: Vec<&str> = by.iter().map(|(name, _)| name.as_str()).collect();
    let told = format!("{} by {}", counted(*good, "checkpoint"), by.join(", "));
    let (mark, said) = match source {
        _ if *checkpoints == 0 => {
            ((WARNING, "⚠"), "nothing in it is signed (`capsule init` makes a key)".to_owned())
        }
        KeySource::ByUser => ((SUCCESS, "✔"), format!("{told} (key supplied by you)")),
        KeySource::BesideStore if *good > 0 => (
            (WARNING, "⚠"),
            format!(
                "{told}, by the key that lies beside the store; that proves little: bring its public \
                 line with --key"
            ),
        ),
        KeySource::BesideStore | KeySource::NoKeys => (
            (WARNING, "⚠"),
            format!(
                "{}, not checked: no key was brought (--key)",
                counted(*checkpoints, "checkpoint")
            ),
        ),
    };
    print_marked(screen, mark, "signature", &said)?;
    if *good > 0 && good < checkpoints {
        let others: Vec<&str> = others.iter().map(String::as_str).collect();
        let said = format!(
            "{} more are not checked, said to be by {}",
            checkpoints - good,
            others.join(", ")
        );
        print_marked(screen, (WARNING, "⚠"), "", &said)?;
    }
    Ok(())
}
