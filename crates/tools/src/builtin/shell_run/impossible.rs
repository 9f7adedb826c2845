//! Commands that can only fail: no person is asked about one. What is told here is told by a cheap look at the workspace;
//! whatever is in doubt is asked about.

use std::ffi::OsString;
use std::path::Path;

use capsule_base::code::Code;
use capsule_command::specs::{CommandLine, Effect, ParsedArgv};
use capsule_core::action::{Facts, FileKind, PathTarget};
use capsule_core::outcome::CodedError;
use capsule_sandbox::{RedirectTarget, StandardDevice, StandardStream};
use capsule_workspace::{Workspace, git_config};

use super::git_repository::{is_of_root, subcommand};
use crate::command::operation::ReadyStage;
use crate::tool::ToolContext;

/// Why a program wants a terminal, as the table of programs words it.
const WANTS_TERMINAL: [&str; 5] = [
    "wants a person at a terminal",
    "starts the editor",
    "starts an editor",
    "opens an editor",
    "asks at the terminal",
];
/// Words by which an editor does its work without one.
const WITHOUT_SCREEN: [&str; 6] = ["-es", "-Es", "-s", "--headless", "--batch", "-batch"];
/// Programs that remove what their words name, and nothing else.
const REMOVERS: [&str; 4] = ["rm", "rmdir", "unlink", "shred"];
/// Subcommands of git that contact a remote.
const CONTACTING: [&str; 4] = ["fetch", "ls-remote", "pull", "push"];
/// Words of `git stash` that take a stash.
const TAKING_STASH: [&str; 4] = ["apply", "branch", "drop", "pop"];
/// Sections of a configuration by which git may know a remote.
const NAMING_REMOTES: [&str; 6] = ["branch", "extensions", "include", "includeif", "remote", "url"];
/// The most bytes that are read of a file of a repository.
const GIT_FILE_BYTES: usize = 1 << 20;

/// Why a command of these programs can only fail, if it can.
pub(super) fn reason(
    stages: &[ReadyStage],
    (cwd, stdin): (&PathTarget, &str),
    facts: &Facts,
    context: &ToolContext<'_>,
) -> Option<CodedError> {
    stages.iter().enumerate().find_map(|(index, stage)| {
        let argv: Option<Vec<String>> =
            stage.argv.iter().map(|word| word.to_str().map(str::to_owned)).collect();
        let argv = argv?;
        let line = CommandLine::parse(&argv, Some(&stage.program.fact), false);
        let has_input = index > 0 || !stdin.is_empty() || reads_file(stage);
        let wants_terminal = if has_input { None } else { without_terminal(&line, stage) };
        wants_terminal
            .or_else(|| without_target(&line, (cwd, facts)))
            .or_else(|| without_reference(stage, cwd, context.workspace))
    })
}

/// Whether a program is given something to read, which may be the answers to what it asks.
fn reads_file(stage: &ReadyStage) -> bool {
    stage.redirects.iter().any(|redirect| {
        redirect.descriptor == StandardStream::Input
            && !matches!(redirect.target, RedirectTarget::Device(StandardDevice::Null))
    })
}

/// A program that wants a terminal, where it has no input either: commands are given none.
fn without_terminal(line: &CommandLine<'_>, stage: &ReadyStage) -> Option<CodedError> {
    let names_editor = |(name, _): &(OsString, _)| {
        name.to_str().is_some_and(|name| name.ends_with("EDITOR") || name == "VISUAL")
    };
    if stage.variables.iter().any(names_editor) {
        return None;
    }
    let wanting = |argv: &ParsedArgv| {
        let mut all = argv.matched_effects();
        let is_reason = |why: &str| WANTS_TERMINAL.contains(&why);
        all.find(|item| item.effects.contains(Effect::Interactive) && is_reason(&item.why))
            .map(|item| item.why.clone())
    };
    let does_without = line.argv.iter().any(|word| WITHOUT_SCREEN.contains(&word.as_str()));
    let whys: Option<Vec<String>> = line.parsed_argvs().map(wanting).collect();
    let why = whys.filter(|_| !does_without).and_then(|whys| whys.into_iter().next());
    let Some(why) = why else {
        return line.nested.iter().find_map(|line| without_terminal(line, stage));
    };
    let message = format!("commands have no terminal, and `{}` {why}", line.display_name());
    let hint = "say it in words (`-m TEXT`, `--no-edit`, `--yes`), give it input by `<`, or edit the file by a tool; \
                what needs a person, the user does in a terminal";
    Some(CodedError::new(Code::RuleDenied, message).with_suggestion(hint))
}

/// A program that removes files, where none of those that it names is there.
fn without_target(
    line: &CommandLine<'_>,
    (cwd, facts): (&PathTarget, &Facts),
) -> Option<CodedError> {
    let (program, words) = line.argv.split_first()?;
    let name = Path::new(program).file_name()?.to_str()?;
    let is_option = |word: &&String| word.starts_with('-');
    let is_forced =
        |word: &String| word == "--force" || !word.starts_with("--") && word.contains('f');
    if !REMOVERS.contains(&name) || words.iter().filter(is_option).any(is_forced) {
        return None;
    }
    let directory = cwd.inside()?;
    let mut operands = words.iter().filter(|word| !is_option(word));
    let first = operands.clone().next()?;
    let is_missing = |word: &String| {
        let path = directory.resolve_named(word, &facts.root_names).ok();
        let fact = path.and_then(|path| facts.path_fact(&path));
        fact.is_some_and(|fact| fact.kind == FileKind::Missing)
    };
    operands.all(is_missing).then(|| {
        let message = format!("`{first}` is not there, so that `{name}` has nothing to remove");
        CodedError::new(Code::FileNotFound, message)
            .with_suggestion("look at the directory; what is not there needs no removal")
    })
}

/// A command of git about a remote, a stash or a branch that the repository of the workspace does not have.
fn without_reference(
    stage: &ReadyStage,
    cwd: &PathTarget,
    workspace: &Workspace,
) -> Option<CodedError> {
    let (name, _) = subcommand(&stage.argv)?;
    let words = stage.argv.iter().filter_map(|word| word.to_str()).skip_while(|word| *word != name);
    let words: Vec<&str> = words.skip(1).collect();
    let concerns_git = CONTACTING.contains(&name.as_str()) || name == "stash" || name == "branch";
    if !concerns_git || !is_of_root(workspace, cwd.inside()?) {
        return None;
    }
    let missing = match name.as_str() {
        "stash" => {
            let takes = words.first().is_some_and(|word| TAKING_STASH.contains(word));
            (takes && lacks_reference(workspace, "refs/stash")?).then(|| "stash".to_owned())
        }
        "branch" => missing_branch(&words, workspace),
        _ => lacks_remotes(&words, workspace)?.then(|| "remote".to_owned()),
    }?;
    let message = format!("the repository has no {missing}, so that `git {name}` can only fail");
    Some(CodedError::new(Code::GitFailed, message).with_suggestion(
        "look with `git remote -v`, `git stash list` or `git branch`; the user names a remote",
    ))
}

/// The first of the branches that are to be deleted, where none of them is there.
fn missing_branch(words: &[&str], workspace: &Workspace) -> Option<String> {
    let (options, names): (Vec<&str>, Vec<&str>) =
        words.iter().partition(|word| word.starts_with('-'));
    if options.is_empty() || !options.iter().all(|word| ["-d", "-D", "--delete"].contains(word)) {
        return None;
    }
    let lacks =
        |name: &&str| lacks_reference(workspace, &format!("refs/heads/{name}")) == Some(true);
    let first = names.first()?;
    names.iter().all(lacks).then(|| format!("branch `{first}`"))
}

/// Whether a repository has no such reference; none where that is not known.
fn lacks_reference(workspace: &Workspace, reference: &str) -> Option<bool> {
    let read = |path: &str| workspace.read_plain(path, GIT_FILE_BYTES).ok();
    // Where references stand in tables, this file names none that there could be.
    let head = read(".git/HEAD")??;
    if head.starts_with(b"ref: refs/heads/.invalid") {
        return None;
    }
    let packed = read(".git/packed-refs")?.unwrap_or_default();
    let is_packed = packed.len() > GIT_FILE_BYTES
        || packed.split(|byte| *byte == b'\n').any(|line| line.ends_with(reference.as_bytes()));
    let is_there = read(&format!(".git/{reference}"))?.is_some();
    Some(!is_packed && !is_there)
}

/// Whether a repository knows no remote, and the words name no place either; none where that is not known.
fn lacks_remotes(words: &[&str], workspace: &Workspace) -> Option<bool> {
    let config = workspace.read_plain(".git/config", GIT_FILE_BYTES).ok()??;
    let settings = git_config::settings(&config).ok()?;
    let names_place = words.iter().any(|word| word.contains(['/', ':', '.']));
    let names_remote =
        settings.iter().any(|setting| NAMING_REMOTES.contains(&setting.section.as_str()));
    // Remotes in the manner of long ago stand in files of their own.
    let is_old = |name: &str| {
        let files = ["remotes", "branches"].map(|directory| format!(".git/{directory}/{name}"));
        files.iter().any(|path| workspace.read_plain(path, 0) != Ok(None))
    };
    let mut names = words.iter().filter(|word| !word.starts_with('-')).copied().chain(["origin"]);
    Some(!names_place && !names_remote && !names.any(is_old))
}
