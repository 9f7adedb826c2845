//! `capsule audit`: the record is signed, told of elsewhere, and written out.

use std::path::Path;

use capsule_core::code::Code;
use capsule_core::escape;
use capsule_core::journal::leaf_hash;
use capsule_core::outcome::CodedError;
use capsule_core::units::counted;
use capsule_runtime::{EraseError, Erased, Eraser, due, this_moment};
use capsule_store::{Anchor, Note, Signer, Store, StoreError};
use serde_json::{Value, json};

use crate::args::{Audit, AuditAnchor, AuditErase, AuditExport, ExportFormat};
use crate::command::open_store;
use crate::failure::Failure;
use crate::screen::{CARE, GOOD, Screen};
use crate::surroundings::Surroundings;

pub(crate) fn run(of: &Audit, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    match of {
        Audit::Checkpoint => checkpoint(around, screen),
        Audit::Anchor(args) => anchor(args, around, screen),
        Audit::Erase(args) => erase(args, around, screen),
        Audit::Export(args) => export(args, around, screen),
    }
}

/// The store, and the key that signs it.
fn signing(around: &Surroundings, screen: &Screen) -> Result<(Store, Signer), Failure> {
    // Where there is none yet, the first thing in it can be that it is signed.
    if around.store.exists() {
        open_store(around, screen)?;
    }
    let signer = Signer::beside(&around.store)?.ok_or_else(|| {
        let place = around.store.display();
        let message = format!("there is no key beside the store at `{place}`");
        Failure::from(
            CodedError::new(Code::AuditNoKey, message)
                .with_suggestion(Code::AuditNoKey.next_step()),
        )
    })?;
    Ok((Store::open(&around.store)?, signer))
}

fn checkpoint(around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let (mut store, signer) = signing(around, screen)?;
    let note = store.checkpoint(&signer, this_moment())?;
    match screen.json {
        true => screen.say_json(&told(&note, &signer))?,
        // As it is, so that it can be piped to where it is kept.
        false => screen.print(&note.to_string())?,
    }
    Ok(0)
}

/// What programs are told of a checkpoint.
fn told(note: &Note, signer: &Signer) -> Value {
    let own = note.checkpoint();
    json!({
        "note": note.to_string(),
        "origin": own.as_ref().map(|own| &own.origin),
        "size": own.as_ref().map(|own| own.size),
        "root": own.as_ref().map(|own| own.root),
        "key": signer.verifier().to_string(),
    })
}

fn anchor(args: &AuditAnchor, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let anchors: Vec<Anchor> =
        args.files.iter().map(|file| Anchor::named_by_person(around.cwd.join(file))).collect();
    let (mut store, signer) = signing(around, screen)?;
    // Nothing is signed of an older copy, and all are looked at before any is written to.
    anchors.iter().try_for_each(|own| own.holds(&store, signer.verifier().name()))?;
    let note = store.checkpoint(&signer, this_moment())?;
    anchors.iter().try_for_each(|own| own.add(&note))?;
    if screen.json {
        let mut all = told(&note, &signer);
        if let Some(all) = all.as_object_mut() {
            let files: Vec<_> = anchors.iter().map(|own| own.path()).collect();
            all.insert("anchors".into(), json!(files));
        }
        screen.say_json(&all)?;
        return Ok(0);
    }
    let line = note.checkpoint().map(|own| own.line()).unwrap_or_default();
    for own in &anchors {
        let place = own.path().display().to_string();
        screen.say(&format!("{GOOD}✔ told{GOOD:#} {}", escape::line(&place)))?;
    }
    screen.say(&format!("checkpoint {line}"))?;
    Ok(0)
}

/// Erases runs, one after the other. Each that could not be is said, and the others are erased.
fn erase(args: &AuditErase, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let seen = open_store(around, screen)?;
    let runs: Vec<String> = match args.due {
        true => due(&seen)?,
        false => args.runs.iter().map(|run| seen.find(run)).collect::<Result<_, _>>()?,
    };
    let labels: Vec<String> = runs.iter().map(|run| seen.label(run)).collect();
    if args.dry_run {
        let counts: Vec<u64> =
            runs.iter().map(|run| seen.erasable(run)).collect::<Result<_, _>>()?;
        return tell_erasable(labels.iter().zip(counts), screen);
    }
    drop(seen);
    let mut store = Store::open(&around.store)?;
    let mut eraser = Eraser::of(&mut store)?;
    let (mut erased, mut failed) = (Vec::new(), None);
    for (run, label) in runs.iter().zip(&labels) {
        match eraser.erase(run) {
            Ok(own) => erased.push((label, own)),
            // Those that are due and still needed come later.
            Err(EraseError::Needed(_)) if args.due => {}
            Err(error) => failed = failed.or(Some(Failure::from(error))),
        }
    }
    // Also where nothing was there: it may not have been possible the last time.
    let ended = eraser.end();
    tell_erased(&erased, ended.is_ok(), screen)?;
    if let Err(error) = ended {
        let why = "copies stand in unused parts of the store's file; erase again later";
        screen.complain(&format!("{CARE}note{CARE:#}: {error}: {why}"));
    }
    failed.map_or(Ok(0), Err)
}

fn tell_erasable<'l>(
    all: impl Iterator<Item = (&'l String, u64)>,
    screen: &Screen,
) -> Result<u8, Failure> {
    let all: Vec<_> = all.collect();
    if screen.json {
        let list: Vec<Value> =
            all.iter().map(|(run, own)| json!({ "run": run, "payloads": own })).collect();
        screen.say_json(&json!({ "would_erase": list }))?;
    } else {
        for (run, own) in &all {
            screen.say(&format!("{run} holds {}", counted(*own, "payload")))?;
        }
    }
    Ok(0)
}

fn tell_erased(
    erased: &[(&String, Erased)],
    is_thorough: bool,
    screen: &Screen,
) -> Result<(), Failure> {
    if screen.json {
        let list: Vec<Value> = erased
            .iter()
            .map(|(run, own)| json!({ "run": run, "payloads": own.payloads, "later": own.later }))
            .collect();
        return screen.say_json(&json!({ "erased": list, "thorough": is_thorough }));
    }
    for (label, Erased { payloads, later }) in erased {
        screen.say(&match payloads {
            0 => format!("· {label} holds nothing that could be erased"),
            some => format!("{GOOD}✔ erased{GOOD:#} {} of {label}", counted(*some, "payload")),
        })?;
        if !later.is_empty() {
            let later = later.join(" · ");
            screen.say(&format!("  {later} came of it, and may hold parts of it"))?;
        }
    }
    Ok(())
}

/// Prints every event with its payloads, those excepted that never leave the store; or writes the store as it is
/// into one file.
fn export(args: &AuditExport, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let store = open_store(around, screen)?;
    if let Some(out) = &args.out {
        return copy(&store, &around.cwd.join(out), screen);
    }
    let ExportFormat::Jsonl = args.format;
    let mut failed = None;
    let visited = store.visit_all::<StoreError>(|stored| {
        if failed.is_some() {
            return Ok(());
        }
        let payloads = store.payloads(stored.leaf, &stored.entry.event)?;
        let payloads = payloads.into_iter().filter(|(_, own)| !own.class.is_private());
        let payloads: Vec<Value> = payloads
            .map(|(reference, own)| {
                let (text, raw) = match own.bytes.map(String::from_utf8) {
                    Some(Ok(text)) => (Some(text), None),
                    Some(Err(error)) => (None, Some(hex(error.as_bytes()))),
                    None => (None, None),
                };
                json!({
                    "commit": reference.commit,
                    "class": own.class,
                    "salt": own.salt.as_deref().map(hex),
                    "text": text,
                    "hex": raw,
                })
            })
            .collect();
        let line = json!({
            "leaf": stored.leaf,
            "hash": leaf_hash(&stored.bytes),
            "entry": stored.entry,
            "payloads": payloads,
        });
        failed = screen.say_json_line(&line).err();
        Ok(())
    });
    failed.map_or(Ok(()), Err)?;
    visited?;
    Ok(0)
}

/// Writes the whole store into one file, which needs nothing beside it.
fn copy(store: &Store, to: &Path, screen: &Screen) -> Result<u8, Failure> {
    store.copy_to(to)?;
    let events = Store::open_read_only(to)?.size()?;
    let place = to.display().to_string();
    match screen.json {
        true => screen.say_json(&json!({ "wrote": to, "events": events }))?,
        false => {
            let place = escape::line(&place);
            screen.say(&format!("{GOOD}✔ wrote{GOOD:#} {events} events to {place}"))?;
        }
    }
    Ok(0)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
