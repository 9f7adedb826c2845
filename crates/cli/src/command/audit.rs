//! `capsule audit`: the record is signed, told of elsewhere, and written out.

use std::path::Path;

use capsule_base::code::Code;
use capsule_base::escape;
use capsule_base::units::counted;
use capsule_core::outcome::CodedError;
use capsule_runtime::{EraseError, Erased, Eraser, due_runs, now_micros};
use capsule_store::leaf_hash;
use capsule_store::{Anchor, SignedNote, Signer, Store, StoreError};
use serde_json::{Value, json};

use crate::args::{AuditAnchorArgs, AuditCommand, AuditEraseArgs, AuditExportArgs, ExportFormat};
use crate::command::open_store;
use crate::context::CliContext;
use crate::failure::Failure;
use crate::screen::{SUCCESS, Screen, WARNING};

pub(crate) fn run(of: &AuditCommand, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    match of {
        AuditCommand::Checkpoint => checkpoint(ctx, screen),
        AuditCommand::Anchor(args) => anchor(args, ctx, screen),
        AuditCommand::Erase(args) => erase(args, ctx, screen),
        AuditCommand::Export(args) => export(args, ctx, screen),
    }
}

/// The store, and the key that signs it.
fn open_for_signing(ctx: &CliContext, screen: &Screen) -> Result<(Store, Signer), Failure> {
    // Where there is none yet, the first thing in it can be that it is signed.
    if ctx.store.exists() {
        open_store(ctx, screen)?;
    }
    let signer = Signer::load(&ctx.store)?.ok_or_else(|| {
        let place = ctx.store.display();
        let message = format!("there is no key next to the store at `{place}`");
        Failure::from(
            CodedError::new(Code::AuditNoKey, message)
                .with_suggestion(Code::AuditNoKey.next_step()),
        )
    })?;
    Ok((Store::open(&ctx.store)?, signer))
}

fn checkpoint(ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let (mut store, signer) = open_for_signing(ctx, screen)?;
    let note = store.checkpoint(&signer, now_micros())?;
    match screen.json {
        true => screen.print_json(&checkpoint_json(&note, &signer))?,
        // As it is, so that it can be piped to where it is kept.
        false => screen.print(&note.to_string())?,
    }
    Ok(0)
}

/// What programs are told of a checkpoint.
fn checkpoint_json(note: &SignedNote, signer: &Signer) -> Value {
    let checkpoint = note.checkpoint();
    json!({
        "note": note.to_string(),
        "origin": checkpoint.as_ref().map(|own| &own.origin),
        "size": checkpoint.as_ref().map(|own| own.size),
        "root": checkpoint.as_ref().map(|own| own.root),
        "key": signer.verifier().to_string(),
    })
}

fn anchor(args: &AuditAnchorArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let anchors: Vec<Anchor> =
        args.files.iter().map(|file| Anchor::named_by_person(ctx.cwd.join(file))).collect();
    let (mut store, signer) = open_for_signing(ctx, screen)?;
    // Nothing is signed of an older copy, and all are looked at before any is written to.
    anchors.iter().try_for_each(|anchor| anchor.check_store(&store, signer.verifier().name()))?;
    let note = store.checkpoint(&signer, now_micros())?;
    anchors.iter().try_for_each(|anchor| anchor.add(&note))?;
    if screen.json {
        let mut all = checkpoint_json(&note, &signer);
        if let Some(all) = all.as_object_mut() {
            let files: Vec<_> = anchors.iter().map(|anchor| anchor.path()).collect();
            all.insert("anchors".into(), json!(files));
        }
        screen.print_json(&all)?;
        return Ok(0);
    }
    let line = note.checkpoint().map(|checkpoint| checkpoint.line()).unwrap_or_default();
    for anchor in &anchors {
        let place = anchor.path().display().to_string();
        screen.print_line(&format!("{SUCCESS}✔ told{SUCCESS:#} {}", escape::line(&place)))?;
    }
    screen.print_line(&format!("checkpoint {line}"))?;
    Ok(0)
}

/// Erases runs, one after the other. Each that could not be is said, and the others are erased.
fn erase(args: &AuditEraseArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let seen = open_store(ctx, screen)?;
    let runs: Vec<String> = match args.due {
        true => due_runs(&seen)?,
        false => args.runs.iter().map(|run| seen.find(run)).collect::<Result<_, _>>()?,
    };
    let labels: Vec<String> = runs.iter().map(|run| seen.label(run)).collect();
    if args.dry_run {
        let counts: Vec<u64> =
            runs.iter().map(|run| seen.erasable_payloads(run)).collect::<Result<_, _>>()?;
        return show_erasable(labels.iter().zip(counts), screen);
    }
    drop(seen);
    let mut store = Store::open(&ctx.store)?;
    let mut eraser = Eraser::new(&mut store)?;
    let (mut erased, mut failed) = (Vec::new(), None);
    for (run, label) in runs.iter().zip(&labels) {
        match eraser.erase(run) {
            Ok(run) => erased.push((label, run)),
            // Those that are due and still needed come later.
            Err(EraseError::StillNeeded(_)) if args.due => {}
            Err(error) => failed = failed.or(Some(Failure::from(error))),
        }
    }
    // Also where nothing was there: it may not have been possible the last time.
    let ended = eraser.finish();
    show_erased(&erased, ended.is_ok(), screen)?;
    if let Err(error) = ended {
        let why = "copies stand in unused parts of the store's file; erase again later";
        screen.eprint(&format!("{WARNING}note{WARNING:#}: {error}: {why}"));
    }
    failed.map_or(Ok(0), Err)
}

fn show_erasable<'l>(
    all: impl Iterator<Item = (&'l String, u64)>,
    screen: &Screen,
) -> Result<u8, Failure> {
    let all: Vec<_> = all.collect();
    if screen.json {
        let list: Vec<Value> =
            all.iter().map(|(run, number)| json!({ "run": run, "payloads": number })).collect();
        screen.print_json(&json!({ "would_erase": list }))?;
    } else {
        for (run, number) in &all {
            screen.print_line(&format!("{run} holds {}", counted(*number, "payload")))?;
        }
    }
    Ok(0)
}

fn show_erased(
    erased: &[(&String, Erased)],
    is_thorough: bool,
    screen: &Screen,
) -> Result<(), Failure> {
    if screen.json {
        let list: Vec<Value> = erased
            .iter()
            .map(|(run, erased)| json!({ "run": run, "payloads": erased.payloads, "later": erased.dependent_runs }))
            .collect();
        return screen.print_json(&json!({ "erased": list, "thorough": is_thorough }));
    }
    for (label, Erased { payloads, dependent_runs: later }) in erased {
        screen.print_line(&match payloads {
            0 => format!("· {label} holds nothing that could be erased"),
            some => {
                format!("{SUCCESS}✔ erased{SUCCESS:#} {} of {label}", counted(*some, "payload"))
            }
        })?;
        if !later.is_empty() {
            let later = later.join(" · ");
            screen.print_line(&format!("  {later} came of it, and may hold parts of it"))?;
        }
    }
    Ok(())
}

/// Prints every event with its payloads, those excepted that never leave the store; or writes the store as it is
/// into one file.
fn export(args: &AuditExportArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let store = open_store(ctx, screen)?;
    if let Some(out) = &args.out {
        return copy(&store, &ctx.cwd.join(out), screen);
    }
    let ExportFormat::Jsonl = args.format;
    let mut failed = None;
    let visited = store.visit_all::<StoreError>(|stored| {
        if failed.is_some() {
            return Ok(());
        }
        let payloads = store.payloads(stored.leaf, &stored.entry.event)?;
        let payloads = payloads.into_iter().filter(|(_, payload)| !payload.class.is_private());
        let payloads: Vec<Value> = payloads
            .map(|(reference, payload)| {
                let (text, raw) = match payload.bytes.map(String::from_utf8) {
                    Some(Ok(text)) => (Some(text), None),
                    Some(Err(error)) => (None, Some(hex(error.as_bytes()))),
                    None => (None, None),
                };
                json!({
                    "commit": reference.commit,
                    "class": payload.class,
                    "salt": payload.salt.as_deref().map(hex),
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
        failed = screen.print_json_line(&line).err();
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
        true => screen.print_json(&json!({ "wrote": to, "events": events }))?,
        false => {
            let place = escape::line(&place);
            screen
                .print_line(&format!("{SUCCESS}✔ wrote{SUCCESS:#} {events} events to {place}"))?;
        }
    }
    Ok(0)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
