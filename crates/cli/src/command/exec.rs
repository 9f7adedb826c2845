//! `capsule exec`: one command; its output passes through, and its status is ours.

use std::io::{self, Read as _};
use std::path::Path;
use std::rc::Rc;

use capsule_base::code::Code;
use capsule_base::escape;
use capsule_base::exit::Exit;
use capsule_base::limits;
use capsule_base::units::parse_duration;
use capsule_command::argv::quote_words;
use capsule_command::shell_syntax::SHELLS;
use capsule_core::call::Origin;
use capsule_core::journal::RunKind;
use capsule_core::outcome::CodedError;
use capsule_report::{left_running_text, refused_host_texts};
use capsule_runtime::{CallResult, CommandRunner, NullSink, Sink};
use serde_json::{Value, json};

use crate::args::ExecArgs;
use crate::card;
use crate::command::changes;
use crate::command::rule_hints::rule_patch_lookup;
use crate::command::run_end::show_copied;
use crate::command::session_choice::choose_session;
use crate::command::single_call::{SingleCall, SingleCallResult, call_json};
use crate::context::CliContext;
use crate::failure::{Failure, usage_failure};
use crate::output_relay::OutputRelay;
use crate::screen::{ERROR, HINT, Screen, hint, problem_text};
use crate::signal;

pub(crate) fn run(
    args: &ExecArgs,
    ctx: &CliContext,
    screen: &Screen,
    commands: Option<CommandRunner>,
) -> Result<u8, Failure> {
    // The sandbox is made while the policy is read.
    let commands = commands.unwrap_or_else(CommandRunner::for_one_command);
    commands.start();
    let bound = ctx.load_policy(&args.policy, None)?;
    let call = call_args(args)?;
    let cancel = signal::cancel_on_signal();
    let relay = OutputRelay::new(cancel.clone());
    let sink: Rc<dyn Sink> = if screen.json { Rc::new(NullSink) } else { Rc::clone(&relay) as _ };
    let session = choose_session(&args.session, args.ask, &bound, ctx, screen)?;
    let one = SingleCall {
        name: "shell.run".to_owned(),
        kind: RunKind::Exec,
        subject: None,
        tool: "shell.run",
        args: call,
        policy: &bound,
        command_runner: commands,
        sink,
        prompt: card::make_prompt(
            (args.ask.unattended || args.agent, session.is_none()),
            screen,
            &cancel,
            rule_patch_lookup(&bound, ctx),
        ),
        cancel,
        out: None,
        layer: args.layer,
        resumption: None,
        session,
        origin: if args.agent { Origin::Model } else { Origin::Person },
    };
    let mut done = one.submit(ctx, (!args.agent).then_some(screen))?;
    let settled = settle_agent_changes(args, &mut done, ctx, screen)?;
    show_repository_above(&done.delivered, bound.roots.workspace.as_ref(), screen);
    show_result(&done, &relay, ctx, screen)?;
    // Who asked for the output and cannot have all of it must not take it for complete.
    Ok(match done.delivered.command_status(done.exit) {
        0 if settled != Exit::Ok => settled.status(),
        0 if relay.is_lost() => Exit::RuntimeError.status(),
        0 if !screen.json && relay.is_cut() => Exit::ToolFailed.status(),
        status => status,
    })
}

/// The arguments of the call.
fn call_args(args: &ExecArgs) -> Result<Value, Failure> {
    let mut call = match args.words.as_slice() {
        [text] if args.command || is_command_line(text) => json!({ "command": text }),
        _ if args.command => return Err(usage_failure("`--command` takes one word behind `--`")),
        // The text that a shell is given is read in the command language, as where all of it is one word.
        words if is_shell_with_text(words) => json!({ "command": quote_words(words) }),
        words => json!({ "argv": words }),
    };
    if let Value::Object(map) = &mut call {
        map.extend(args.cwd.as_ref().map(|cwd| ("cwd".to_owned(), json!(cwd))));
        if let Some(timeout) = &args.timeout {
            parse_duration(timeout).ok_or_else(|| {
                usage_failure(format!("`{timeout}` is not a duration such as `10s`"))
            })?;
            map.insert("timeout".to_owned(), json!(timeout));
        }
        if args.stdin {
            map.insert("stdin".into(), json!(read_stdin(limits::STDIN_BYTES)?));
        }
    }
    Ok(call)
}

/// Whether words are a shell with a text: `bash -lc TEXT`.
fn is_shell_with_text(words: &[String]) -> bool {
    let is_option = |word: &String| word.starts_with('-') && word.ends_with('c');
    words.first().is_some_and(|word| SHELLS.contains(&word.as_str()))
        && words.get(1).is_some_and(is_option)
}

/// Applies or drops what the command of an agent changed; gives the exit that it means.
fn settle_agent_changes(
    args: &ExecArgs,
    done: &mut SingleCallResult,
    ctx: &CliContext,
    screen: &Screen,
) -> Result<Exit, Failure> {
    match args.agent && done.staged.take().is_some() {
        true => {
            // Nothing waits at its end.
            if let Some(problem) = &mut done.delivered.problem
                && problem.code == Code::ChangeRefused
            {
                problem.suggestion = Some(changes::REFUSED_CHANGE.into());
            }
            changes::settle((&done.run.to_string(), &done.label), ctx, screen)
        }
        false => Ok(Exit::Ok),
    }
}

/// Says where the repository is that git did not find.
fn show_repository_above(delivered: &CallResult, workspace: &Path, screen: &Screen) {
    if let Some(note) = repository_above(delivered, workspace).filter(|_| !screen.json) {
        screen.eprint(&format!("{HINT}note{HINT:#}: {note}"));
    }
}

/// Where git finds no repository: that of a directory above the workspace, if there is one.
fn repository_above(delivered: &CallResult, workspace: &Path) -> Option<String> {
    let output = delivered.value.as_ref()?.get("stderr")?.as_str()?;
    if !output.contains("not a git repository") || workspace.join(".git").exists() {
        return None;
    }
    let above = workspace.ancestors().skip(1).find(|above| above.join(".git").exists())?;
    let rest = workspace.strip_prefix(above).ok()?;
    let up = vec![".."; rest.components().count()].join("/");
    let rest = escape::line(rest.to_str()?);
    Some(format!(
        "the workspace is `{rest}` of a repository, and git sees nothing above it: `--workspace {up} --cwd {rest}` takes all of it"
    ))
}

/// Whether a single word is the text of a command line, as `ssh` and `sh -c` take one: programs of such names are not
/// run.
fn is_command_line(word: &str) -> bool {
    word.contains(|sign: char| sign.is_ascii_whitespace() || "|&;<>".contains(sign))
}

/// All of standard input. It becomes a part of the call, which is text and is on record.
fn read_stdin(most: usize) -> Result<String, Failure> {
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
pub(super) fn show_result(
    done: &SingleCallResult,
    relay: &OutputRelay,
    ctx: &CliContext,
    screen: &Screen,
) -> Result<(), Failure> {
    let delivered = &done.delivered;
    let total = |name| delivered.value.as_ref().and_then(|value| value.get(name)?.as_u64());
    let totals = [total("stdout_bytes_total"), total("stderr_bytes_total")];
    relay.finish(totals.map(Option::unwrap_or_default));
    if !screen.json {
        let mut notes = relay.lost_output();
        let left = delivered.value.as_ref().and_then(left_running_text);
        notes.extend(left.map(|left| format!("left running, and ended with the command: {left}")));
        for line in notes {
            screen.eprint(&format!("{HINT}note{HINT:#}: {line}"));
        }
        for refused in delivered.value.as_ref().map(refused_host_texts).unwrap_or_default() {
            screen.eprint(&format!("{HINT}refused{HINT:#}: {refused}"));
        }
    }
    show_copied(done.copy_reason.as_deref(), screen);
    if screen.json {
        let mut answer = call_json(done);
        if let Value::Object(map) = &mut answer {
            map.insert("ran".into(), delivered.value.is_some().into());
        }
        return screen.print_json(&answer);
    }
    show_problem(delivered, &done.label, screen);
    done.show_next(ctx, screen);
    Ok(())
}

/// Why the command did not run, or did not run to its end. What the command says for itself is on
/// the screen already.
fn show_problem(delivered: &CallResult, label: &str, screen: &Screen) {
    let Some(problem) = &delivered.problem else { return };
    if problem.code == Code::ExecFailed {
        return;
    }
    let word = match delivered.was_denied() {
        _ if problem.code == Code::ApprovalWaiting => "waits",
        true => "denied",
        false => "error",
    };
    screen.eprint(&format!("{ERROR}{word}{ERROR:#}: {}", problem_text(problem)));
    if problem.code == Code::ApprovalNeeded {
        screen.eprint("  no person is there who could be asked");
    }
    if let Some(rule) = delivered.decision.rule.as_ref().filter(|_| delivered.was_denied()) {
        let at = delivered.decision.at.as_deref().unwrap_or("");
        screen.eprint(&format!("  rule {} · {at}", escape::line(rule)));
    }
    if let Some(hint) = hint(problem) {
        screen.eprint(&format!("{HINT}hint{HINT:#}: {hint}"));
    }
    screen.eprint(&format!("  capsule show-run {label}:{}", delivered.call));
}
