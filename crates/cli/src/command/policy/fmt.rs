//! `policy fmt`: one layout for policies. Nothing but white space changes.

use std::io::Read as _;
use std::path::Path;

use capsule_authoring::{FormatError, format_policy};
use capsule_base::code::Code;
use capsule_base::escape;
use capsule_base::exit::Exit;
use capsule_base::limits;
use capsule_core::outcome::CodedError;
use capsule_policy::{PolicyDraft, SourceText};
use capsule_runtime::{CATALOGUE, read_text, shown_name};
use serde_json::json;

use crate::args::PolicyFmtArgs;
use crate::command::policy::replace::replace_policy;
use crate::context::CliContext;
use crate::failure::{Failure, usage_failure};
use crate::screen::{SUCCESS, Screen, WARNING};

pub(crate) fn run(args: &PolicyFmtArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let is_stdin = args.file == Path::new("-");
    let text = match is_stdin {
        true => SourceText { name: "-".into(), text: read_stdin()? },
        false => {
            let text = read_text(&args.file, limits::POLICY_BYTES, Code::PolicyUnreadable)?;
            SourceText { name: shown_name(&args.file.to_string_lossy()), text }
        }
    };
    let laid = format_text(&text, ctx)?;
    let is_same = laid == text.text;
    if is_stdin && !args.check {
        // What is piped through comes out, changed or not.
        screen.print(&laid)?;
        return Ok(0);
    }
    if !is_same && !args.check {
        replace_policy(&args.file, &text.text, &laid)?;
    }
    let name = escape::line(&text.name);
    if screen.json {
        screen.print_json(&json!({ "schema": 1, "file": text.name, "laid_out": is_same }))?;
    } else if is_same {
        screen.print_line(&format!("{SUCCESS}✔ laid out{SUCCESS:#} {name}"))?;
    } else if args.check {
        screen.print_line(&format!("{WARNING}not laid out{WARNING:#} {name}"))?;
    } else {
        screen.print_line(&format!("{SUCCESS}✔ wrote{SUCCESS:#} {name}"))?;
    }
    Ok(if args.check && !is_same { Exit::ToolFailed.status() } else { 0 })
}

/// The text in its layout; only what is a policy is laid out.
fn format_text(text: &SourceText, ctx: &CliContext) -> Result<String, Failure> {
    let home = ctx.home.to_string_lossy();
    PolicyDraft::parse(&text.text, &text.name, &home, CATALOGUE)
        .map_err(|problems| Failure::InvalidText(text.clone(), problems))?;
    format_policy(&text.text).map_err(|error| match error {
        FormatError::Unreadable(problem) => Failure::InvalidText(text.clone(), vec![*problem]),
        FormatError::Ambiguous => {
            let message = format!("`{}` would say something else in another layout", text.name);
            CodedError::new(Code::PolicySyntax, message)
                .with_suggestion("lay it out by hand; it stays as it is")
                .into()
        }
    })
}

fn read_stdin() -> Result<String, Failure> {
    let most = u64::try_from(limits::POLICY_BYTES).unwrap_or(u64::MAX);
    let mut text = Vec::new();
    let read = std::io::stdin().take(most.saturating_add(1)).read_to_end(&mut text);
    read.map_err(|error| usage_failure(format!("standard input cannot be read: {error}")))?;
    String::from_utf8(text).map_err(|_| usage_failure("the policy on standard input is not UTF-8"))
}
