//! `capsule verify`: is the record what was written?

use capsule_core::code::Code;
use capsule_core::outcome::Problem;
use capsule_store::{Proof, Store};
use serde_json::json;

use crate::args::Verify;
use crate::failure::Failure;
use crate::screen::{BAD, CARE, GOOD, Screen};
use crate::surroundings::Surroundings;

pub(crate) fn run(args: &Verify, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let store = Store::open_read_only(&around.store)?;
    let id = args.run.as_deref().map(|run| store.find(run)).transpose()?;
    match store.verify(id.as_deref())? {
        Ok(proof) => {
            if screen.json {
                screen.say_json(&json!({
                    "ok": true,
                    "leaves": proof.leaves,
                    "root": proof.root,
                    "runs": { "sealed": proof.sealed, "unsealed": proof.unsealed },
                    "payloads": { "match": proof.payloads, "absent": proof.absent },
                    "run": id,
                    "events": proof.events,
                }))?;
            } else {
                show(&proof, id.as_deref().map(|id| store.label(id)).as_deref(), screen)?;
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
            screen.say(&format!("{BAD}✖ {}{BAD:#}: {}", fault.place, fault.what))?;
            Err(Problem::new(Code::Integrity, format!("{}: {}", fault.place, fault.what))
                .suggest(Code::Integrity.next_step())
                .into())
        }
    }
}

fn show(proof: &Proof, label: Option<&str>, screen: &Screen) -> Result<(), Failure> {
    let root = proof.root.short();
    let good = format!("{GOOD}✔{GOOD:#}");
    screen.say(&format!("{good} tree           {} events, root {root}", proof.leaves))?;
    if let Some(label) = label {
        let sealed = if proof.run_sealed { "sealed" } else { "not sealed" };
        screen.say(&format!(
            "{good} run            {label}: {} events, contiguous, {sealed}",
            proof.events
        ))?;
    }
    let open = match proof.unsealed {
        0 => String::new(),
        open => format!(", {open} not sealed (running or crashed)"),
    };
    screen.say(&format!("{good} runs           {} sealed{open}", proof.sealed))?;
    let absent = match proof.absent {
        0 => String::new(),
        absent => format!(", {absent} erased, withheld or never kept"),
    };
    screen.say(&format!("{good} payloads       {} match{absent}", proof.payloads))?;
    screen.say(
        "proves         nothing that this store holds was changed by accident or by an edit",
    )?;
    screen.say(&format!(
        "{CARE}not proven{CARE:#}     that nobody who can write the file rewrote all of it: this build \
         does not"
    ))?;
    screen.say(
        "               sign yet; that nothing ran outside of the runtime; that the host was",
    )?;
    screen.say("               honest while it ran")
}
