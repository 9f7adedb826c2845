//! `capsule exec`: one command; its output passes through, and its status is ours.

use std::rc::Rc;

use capsule_core::code::Code;
use capsule_core::escape;
use capsule_core::journal::RunKind;
use capsule_runtime::{Commands, Delivered, Hush, Sink};
use serde_json::{Value, json};

use crate::args::Exec;
use crate::command::call::{One, one_run_json};
use crate::command::changes::{tell_copied, tell_staged};
use crate::failure::Failure;
use crate::screen::{BAD, HINT, Screen};
use crate::signal;
use crate::surroundings::Surroundings;
use crate::through::Through;

pub(crate) fn run(args: &Exec, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    // The sandbox is made while the policy is read.
    let commands = Commands::default();
    commands.start();
    let law = around.law(&args.policy.policy, None)?;
    let mut call = json!({ "argv": args.words });
    if let Value::Object(map) = &mut call {
        map.extend(args.cwd.as_ref().map(|cwd| ("cwd".to_owned(), json!(cwd))));
        map.extend(args.timeout.as_ref().map(|timeout| ("timeout".to_owned(), json!(timeout))));
    }
    let cancel = signal::cancel();
    let through = Through::new(cancel.clone());
    let sink: Rc<dyn Sink> = if screen.json { Rc::new(Hush) } else { Rc::clone(&through) as _ };
    let one = One {
        origin: RunKind::Exec,
        subject: None,
        tool: "shell.run",
        args: call,
        law: &law,
        commands,
        sink,
        cancel,
        out: None,
    };
    let done = one.submit(around)?;
    let delivered = &done.delivered;
    let field = |name| delivered.value.as_ref().and_then(|value| value.get(name)?.as_bool());
    through.finish(field("truncated").unwrap_or(false));
    tell_copied(done.copied.as_deref(), screen);
    if screen.json {
        let mut answer = one_run_json(&done);
        if let Value::Object(map) = &mut answer {
            map.insert("ran".into(), delivered.value.is_some().into());
        }
        screen.say_json(&answer)?;
    } else {
        complain(delivered, &done.label, screen);
        tell_staged(done.staged, &done.label, screen);
    }
    Ok(delivered.command_status(done.exit))
}

/// Why the command did not run, or did not run to its end. What the command says for itself is on
/// the screen already.
fn complain(delivered: &Delivered, label: &str, screen: &Screen) {
    let Some(problem) = &delivered.problem else { return };
    if problem.code == Code::ExecFailed {
        return;
    }
    let word = match delivered.was_denied() {
        true => "denied",
        false => "error",
    };
    let message = escape::line(&problem.message).into_owned();
    screen.complain(&format!("{BAD}{word}{BAD:#}: {message} [{}]", problem.code));
    if let Some(rule) = delivered.decision.rule.as_ref().filter(|_| delivered.was_denied()) {
        let at = delivered.decision.at.as_deref().unwrap_or("");
        screen.complain(&format!("  rule {} · {at}", escape::line(rule)));
    }
    if let Some(suggestion) = &problem.suggestion {
        screen.complain(&format!("{HINT}hint{HINT:#}: {}", escape::line(suggestion)));
    }
    screen.complain(&format!("  capsule show-run {label}:1"));
}
