//! `capsule verify`: is the record what was written, and who says so?

use std::path::Path;

use anstyle::Style;
use capsule_core::code::Code;
use capsule_core::escape;
use capsule_core::outcome::Problem;
use capsule_report::{width, wrap};
use capsule_store::{Anchored, Attested, Proof, Sightings, Signer, Store, Trust, read_keys};
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
        // A run has no such name.
        Some(file) if around.cwd.join(file).is_file() => (around.cwd.join(file), None),
        named => (around.store.clone(), named),
    };
    let store = Store::open_read_only(&path)?;
    let id = named.map(|run| store.find(run)).transpose()?;
    let (trust, source) = trust(args, around, &path)?;
    match store.verify_by(id.as_deref(), &trust)? {
        Ok(proof) => {
            let claims = Claims::of(&proof, source);
            if screen.json {
                screen.say_json(&as_json(&proof, id.as_deref(), source, &claims))?;
            } else {
                let label = id.as_deref().map(|id| store.label(id));
                show(&proof, label.as_deref(), source, &claims, screen)?;
            }
            Ok(0)
        }
        Err(fault) => {
            if screen.json {
                screen.say_json(&json!({
                    "ok": false,
                    "code": Code::Integrity,
                    "place": fault.place,
                    "what": fault.what,
                }))?;
                return Ok(Code::Integrity.exit().status());
            }
            let said = escape::line(&format!("{}: {}", fault.place, fault.what)).into_owned();
            screen.say(&format!("{BAD}✖{BAD:#} {said}"))?;
            Err(Problem::new(Code::Integrity, said).suggest(Code::Integrity.next_step()).into())
        }
    }
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
                open_end(*signed, proof.leaves).map(|events| {
                    format!("{events}: nothing behind the last checkpoint is signed")
                }),
            );
        }
        for Anchored { name, size, .. } in &proof.attested.anchors {
            own.proves.push(format!(
                "the first {size} events existed when `{}` was written, and none of them was changed or \
                 removed since",
                escape::line(name)
            ));
        }
        let seen = proof.attested.anchors.iter().map(|own| own.size).max();
        match seen {
            Some(seen) => own.not_proven.extend(
                open_end(seen, proof.leaves)
                    .map(|events| format!("{events}: no anchor has seen them yet")),
            ),
            None if is_signed => own.not_proven.push(
                "that nothing behind the last checkpoint was cut off, and that this is not an older copy: \
                 an anchor shows that (`--anchor`)"
                    .into(),
            ),
            None => own.not_proven.push(
                "that nobody who can write the file wrote all of it again: a public line from elsewhere \
                 (`--key`) or an anchor (`--anchor`) shows that"
                    .into(),
            ),
        }
        own.not_proven.push("that nothing ran outside of the runtime".into());
        own.not_proven.push("that the host was honest while it ran".into());
        own
    }
}

/// The events behind a checkpoint of so many, but for itself, if there are any.
fn open_end(size: u64, leaves: u64) -> Option<String> {
    match leaves.checked_sub(size)? {
        0 | 1 => None,
        2 => Some(format!("event {leaves}")),
        _ => Some(format!("events {}–{leaves}", size + 2)),
    }
}

fn as_json(proof: &Proof, id: Option<&str>, source: Source, claims: &Claims) -> Value {
    let Attested { checkpoints, good, by, others, signed, anchors } = &proof.attested;
    let by: Vec<Value> =
        by.iter().map(|(name, number)| json!({ "name": name, "number": number })).collect();
    let anchors: Vec<Value> = anchors
        .iter()
        .map(|own| json!({ "file": own.name, "size": own.size, "root": own.root }))
        .collect();
    json!({
        "ok": true,
        "leaves": proof.leaves,
        "root": proof.root,
        "runs": { "sealed": proof.sealed, "unsealed": proof.unsealed },
        "payloads": { "match": proof.payloads, "absent": proof.absent },
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
    good("tree", format!("{} events, root {}", proof.leaves, proof.root.short()))?;
    for Anchored { name, size, root } in &proof.attested.anchors {
        let (root, leaves) = (root.short(), proof.leaves);
        good("anchor", format!("{name} saw {size} events, root {root}; consistent with {leaves}"))?;
    }
    if let Some(label) = label {
        let sealed = if proof.run_sealed { "sealed" } else { "not sealed" };
        good("run", format!("{label}: {} events, contiguous, {sealed}", proof.events))?;
    }
    let open = match proof.unsealed {
        0 => String::new(),
        open => format!(", {open} not sealed (running or crashed)"),
    };
    good("runs", format!("{} sealed{open}", proof.sealed))?;
    let absent = match proof.absent {
        0 => String::new(),
        absent => format!(", {absent} erased, withheld or never kept"),
    };
    good("payloads", format!("{} match{absent}", proof.payloads))?;
    for (style, head, claims) in
        [(PLAIN, "proves", &claims.proves), (CARE, "not proven", &claims.not_proven)]
    {
        for (at, claim) in claims.iter().enumerate() {
            say(screen, (style, ""), if at == 0 { head } else { "" }, claim)?;
        }
    }
    Ok(())
}

/// What is signed, and by whom.
fn signatures(attested: &Attested, source: Source, screen: &Screen) -> Result<(), Failure> {
    let Attested { checkpoints, good, by, others, .. } = attested;
    let by: Vec<&str> = by.iter().map(|(name, _)| name.as_str()).collect();
    let told = format!("{good} checkpoints by {}", by.join(", "));
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
            format!("{checkpoints} checkpoints, not checked: no key was brought (--key)"),
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
