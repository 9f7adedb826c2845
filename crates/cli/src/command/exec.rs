//! `capsule exec`: one command; its output passes through, and its status is ours.

use std::io::{self, Read as _};
use std::rc::Rc;

use capsule_core::code::Code;
use capsule_core::escape;
use capsule_core::exit::Exit;
use capsule_core::journal::RunKind;
use capsule_core::limits;
use capsule_core::outcome::CodedError;
use capsule_report::left_running;
use capsule_runtime::{Commands, Delivered, Hush, Sink};
use serde_json::{Value, json};

use crate::args::Exec;
use crate::card;
use crate::command::call::{Ended, One, one_run_json};
use crate::command::changes::tell_copied;
use crate::command::rules::rules;
use crate::failure::Failure;
use crate::screen::{BAD, HINT, Screen, hint};
use crate::signal;
use crate::surroundings::Surroundings;
use crate::through::Through;

pub(crate) fn run(
    args: &Exec,
    around: &Surroundings,
    screen: &Screen,
    commands: Option<Commands>,
) -> Result<u8, Failure> {
    // The sandbox is made while the policy is read.
    let commands = commands.unwrap_or_else(Commands::of_one);
    commands.start();
    let law = around.law(&args.policy, None)?;
    let mut call = json!({ "argv": args.words });
    if let Value::Object(map) = &mut call {
        map.extend(args.cwd.as_ref().map(|cwd| ("cwd".to_owned(), json!(cwd))));
        map.extend(args.timeout.as_ref().map(|timeout| ("timeout".to_owned(), json!(timeout))));
        if args.stdin {
            map.insert("stdin".into(), json!(standard_input(limits::STDIN_BYTES)?));
        }
    }
    let cancel = signal::cancel();
    let through = Through::new(cancel.clone());
    let sink: Rc<dyn Sink> = if screen.json { Rc::new(Hush) } else { Rc::clone(&through) as _ };
    let one = One {
        name: "shell.run".to_owned(),
        origin: RunKind::Exec,
        subject: None,
        tool: "shell.run",
        args: call,
        law: &law,
        commands,
        sink,
        prompt: card::prompt((args.ask.unattended, true), screen, &cancel, rules(&law, around)),
        cancel,
        out: None,
        layer: args.layer,
        with: None,
    };
    let done = one.submit(around, Some(screen))?;
    told(&done, &through, screen)?;
    let status = done.delivered.command_status(done.exit);
    // Who asked for the output and cannot have all of it must not take it for complete.
    Ok(match status {
        0 if through.is_lost() => Exit::RuntimeError.status(),
        0 if !screen.json && through.is_cut() => Exit::ToolFailed.status(),
        status => status,
    })
}

/// All of standard input. It becomes a part of the call, which is text and is on record.
fn standard_input(most: usize) -> Result<String, Failure> {
    let wrong = |why: String| CodedError::new(Code::Usage, format!("standard input {why}"));
    let mut text = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    let read = io::stdin().lock().take(limit).read_to_end(&mut text);
    read.map_err(|error| wrong(format!("cannot be read: {error}")))?;
    if text.len() > most {
        let why = wrong(format!("has more than {most} bytes"));
        return Err(why
            .with_suggestion("put it into a file of the workspace, and name that")
            .into());
    }
    String::from_utf8(text).map_err(|_| wrong("is not UTF-8".into()).into())
}

/// Says what came of a command, of which the output passed through.
pub(super) fn told(done: &Ended, through: &Through, screen: &Screen) -> Result<(), Failure> {
    let delivered = &done.delivered;
    let total = |name| delivered.value.as_ref().and_then(|value| value.get(name)?.as_u64());
    let totals = [total("stdout_bytes_total"), total("stderr_bytes_total")];
    through.finish(totals.map(Option::unwrap_or_default));
    if !screen.json {
        let mut notes = through.shortcomings();
        let left = delivered.value.as_ref().and_then(left_running);
        notes.extend(left.map(|left| format!("left running, and ended with the command: {left}")));
        for line in notes {
            screen.complain(&format!("{HINT}note{HINT:#}: {line}"));
        }
    }
    tell_copied(done.copied.as_deref(), screen);
    if screen.json {
        let mut answer = one_run_json(done);
        if let Value::Object(map) = &mut answer {
            map.insert("ran".into(), delivered.value.is_some().into());
        }
        return screen.say_json(&answer);
    }
    complain(delivered, &done.label, screen);
    done.tell_next(screen);
    Ok(())
}

/// Why the command did not run, or did not run to its end. What the command says for itself is on
/// the screen already.
fn complain(delivered: &Delivered, label: &str, screen: &Screen) {
    let Some(problem) = &delivered.problem else { return };
    if problem.code == Code::ExecFailed {
        return;
    }
    let word = match delivered.was_denied() {
        _ if problem.code == Code::ApprovalWaiting => "waits",
        true => "denied",
        false => "error",
    };
    let message = escape::line(&problem.message).into_owned();
    screen.complain(&format!("{BAD}{word}{BAD:#}: {message} [{}]", problem.code));
    if let Some(rule) = delivered.decision.rule.as_ref().filter(|_| delivered.was_denied()) {
        let at = delivered.decision.at.as_deref().unwrap_or("");
        screen.complain(&format!("  rule {} · {at}", escape::line(rule)));
    }
    if let Some(hint) = hint(problem) {
        screen.complain(&format!("{HINT}hint{HINT:#}: {hint}"));
    }
    screen.complain(&format!("  capsule show-run {label}:1"));
}
