//! `capsule audit`: the record is signed, told of elsewhere, and written out.

use capsule_core::code::Code;
use capsule_core::escape;
use capsule_core::journal::leaf_hash;
use capsule_core::outcome::Problem;
use capsule_runtime::this_moment;
use capsule_store::{Anchor, Note, Signer, Store, StoreError};
use serde_json::{Value, json};

use crate::args::{Audit, AuditAnchor, AuditExport, ExportFormat};
use crate::command::open_store;
use crate::failure::Failure;
use crate::screen::{GOOD, Screen};
use crate::surroundings::Surroundings;

pub(crate) fn run(of: &Audit, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    match of {
        Audit::Checkpoint => checkpoint(around, screen),
        Audit::Anchor(args) => anchor(args, around, screen),
        Audit::Export(args) => export(args, around, screen),
    }
}

/// Signs the record as it is.
fn sign(around: &Surroundings) -> Result<(Note, Signer, Store), Failure> {
    open_store(around)?;
    let signer = Signer::beside(&around.store)?.ok_or_else(|| {
        let place = around.store.display();
        let message = format!("there is no key beside the store at `{place}`");
        Failure::from(Problem::new(Code::AuditNoKey, message).suggest(Code::AuditNoKey.next_step()))
    })?;
    let mut store = Store::open(&around.store)?;
    let note = store.checkpoint(&signer, this_moment())?;
    Ok((note, signer, store))
}

fn checkpoint(around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let (note, signer, _) = sign(around)?;
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
        args.files.iter().map(|file| Anchor::at(around.cwd.join(file))).collect();
    let (note, signer, store) = sign(around)?;
    // All of them are looked at before any is written to.
    let origin = signer.verifier().name();
    anchors.iter().try_for_each(|own| own.holds(&store, origin))?;
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

/// Prints every event with its payloads. Those that never leave the store do not.
fn export(args: &AuditExport, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let ExportFormat::Jsonl = args.format;
    let store = open_store(around)?;
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
