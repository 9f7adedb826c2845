//! Scripts of the workspace are read in the command language: `sh FILE` becomes `sh -c TEXT`.
//!
//! Each command of the text is then judged and run as a call of its own, and no shell starts. So what is judged is what runs,
//! whatever becomes of the file in between, and the record of the call has the text. A script that the list itself
//! writes by a here-document has the text that stands there. One that holds anything outside of the language, that something before
//! it in the list could change, or that the policy does not let read, stays what it is: code.

use std::sync::Arc;

use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_command::argv::quote_words;
use capsule_command::shell_syntax::{
    ElementKind, ListOperator, PipelineStage, Redirection, SHELLS, Script, ScriptElement,
    ShellWord, StdStream, parse, quote_argv,
};
use capsule_command::specs::{CommandLine, Effect, Effects};
use capsule_command::steps::{DEV_NULL, target_from};
use capsule_core::action::{CommandStep, Facts, PathFact, PathLocation, PathTarget, StepContext};
use capsule_core::call::ToolCall;
use capsule_core::decision::Verdict;
use capsule_core::policy::{
    ArgumentPattern, ArgvPattern, BASE_NAME, CommandForm, ExecRule, HardDenyRule, Policy,
    PolicyInput, Usage, decide,
};
use capsule_core::tool::ToolName;
use capsule_workspace::{PathLookup, Workspace, look_up};
use serde_json::{Value, json};

use crate::backend::CallBackend;

/// The call with the texts of the scripts that it runs, where they can be read.
pub(crate) fn with_script_texts<H: CallBackend>(
    (policy, usage): (&Arc<Policy>, &Usage),
    backend: &mut H,
    mut call: ToolCall,
) -> ToolCall {
    let is_part = call.args.get("part").is_some();
    if is_part || call.tool.as_str() != "shell.run" {
        return call;
    }
    let (Some(mut text), Some((workspace, hidden_paths))) =
        (command_text(&call.args), backend.script_workspace())
    else {
        return call;
    };
    // Most commands start none.
    let has_shells =
        |script: &Script| shells(script) > 0 && leaves_shells(policy, &call.tool, script);
    if !parse(&text).is_ok_and(|script| has_shells(&script)) {
        return call;
    }
    let cwd = call.args.get("cwd").and_then(Value::as_str).unwrap_or(".").to_owned();
    let cwd = PathTarget::parse_named(&cwd, workspace.root_names());
    while let Some(found) =
        parse(&text).ok().and_then(|script| find(&text, &script, &cwd, &workspace))
    {
        // What is judged is what is read, and both under its real name.
        let (fact, lookup) = look_up(&workspace, &found.path, &hidden_paths.borrow());
        if fact.real != PathLocation::Inside(found.path.clone())
            || !may_read((policy, usage), backend, &fact)
        {
            return call;
        }
        let script = match (&found.text, &lookup) {
            (Some(text), _) => Some(text.clone()),
            (None, PathLookup::Found(file)) => workspace.text_of(file, limits::SCRIPT_BYTES),
            (None, _) => None,
        };
        let Some(replaced) = script.and_then(|script| found.replace(&text, &script)) else {
            return call;
        };
        text = replaced;
        if found.shells == 1
            && let Value::Object(args) = &mut call.args
        {
            args.remove("argv");
            args.insert("command".into(), text.into());
            return call;
        }
    }
    call
}

/// Whether no rule of the user, or of a layer, is about the shells and the words of a list as they are typed: such a rule would
/// not see them any more.
fn leaves_shells(policy: &Policy, tool: &ToolName, script: &Script) -> bool {
    let words = script.stages().flat_map(|stage| &stage.words);
    let words: Vec<String> = words.map(ShellWord::unexpanded).collect();
    let is_open = |rule: &ExecRule| {
        let mut forbidden = rule.denied_tokens.iter().map(|item| &item.token);
        rule.form == CommandForm::Command
            && !rule.programs.iter().any(|program| is_shell(&program.name))
            && !forbidden.any(|token| words.iter().any(|word| token.matches(word)))
    };
    // A shell goes by the name of the program that it is a link to, too.
    let names = || SHELLS.iter().chain(&["dash"]);
    let names_shell = |pattern: &ArgvPattern| match pattern.arguments.first() {
        Some(ArgumentPattern::Any(tokens)) => {
            tokens.iter().any(|token| names().any(|name| token.matches(name)))
        }
        Some(ArgumentPattern::Gap) => true,
        None => false,
    };
    let is_theirs = |rule: &&HardDenyRule| !rule.source.at.starts_with(BASE_NAME);
    let never = policy.self_and_layers().flat_map(|policy| &policy.hard_denies);
    policy.exec_rule(tool).is_some()
        && policy.self_and_layers().filter_map(|policy| policy.exec_rule(tool)).all(is_open)
        && !never.filter(is_theirs).flat_map(|rule| &rule.argv).any(names_shell)
}

/// A call as a text of the command language.
fn command_text(args: &Value) -> Option<String> {
    if let Some(text) = args.get("command").and_then(Value::as_str) {
        return Some(text.to_owned());
    }
    let argv: Option<Vec<String>> =
        args.get("argv")?.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect();
    quote_argv(&argv?).ok()
}

/// A script that a stage of a list runs.
struct ScriptCall {
    /// Where the words of the stage stand in the text.
    range: std::ops::Range<usize>,
    /// The shell with its options.
    shell: Vec<String>,
    path: WorkspacePath,
    /// Its text, where the list itself writes it before.
    text: Option<String>,
    /// How many stages of the list start a shell.
    shells: usize,
}

/// What may come before a script: it leaves the file as it is.
const READING: Effects = Effects::of(Effect::Reads).with(Effect::Opens);

/// The first script of a list, if nothing before it could change the file, and it is always run in one directory.
fn find(
    text: &str,
    script: &Script,
    cwd: &PathTarget,
    workspace: &Workspace,
) -> Option<ScriptCall> {
    let shells = shells(script);
    let jumps = |element: &ScriptElement| matches!(element.kind, ElementKind::Jump(_));
    let is_again = |(at, element): (usize, &ScriptElement)| match element.kind {
        ElementKind::Each { .. } | ElementKind::EachLine { .. } => true,
        ElementKind::Jump(to) => to <= at,
        _ => false,
    };
    if script.elements.iter().enumerate().any(is_again) {
        return None;
    }
    let is_straight = !script.elements.iter().any(jumps);
    let context =
        StepContext { names: workspace.root_names(), is_file: &|_: &WorkspacePath| false };
    let steps = CommandStep::of(script, cwd, &context).ok()?;
    // The path that a word names in the one directory in which an element runs.
    let place = |index: usize, word: &str| {
        let mut here = steps.iter().filter(|step| step.number == index + 1);
        let first = here.next()?;
        let is_one = here.all(|step| step.cwd.location == first.cwd.location);
        target_from(&first.cwd, word, workspace.root_names()).inside().filter(|_| is_one).cloned()
    };
    let mut written: Vec<(WorkspacePath, String)> = Vec::new();
    for (index, element) in script.elements.iter().enumerate() {
        for stage in &element.pipeline.stages {
            if let Some((range, shell, file)) = script_words(text, stage) {
                let path = place(index, &file)?;
                let text = written.iter().rev().find(|(known, _)| *known == path);
                let text = text.map(|(_, text)| text.clone());
                return Some(ScriptCall { range, shell, path, text, shells });
            }
            match written_text(element, stage).filter(|_| is_straight) {
                Some((file, text)) => {
                    // By another name it would be the text of a script, too.
                    let path = place(index, file).filter(|path| workspace.is_only_name(path))?;
                    written.push((path, text.to_owned()));
                }
                None if leaves_files(stage) => {}
                None => return None,
            }
        }
    }
    None
}

/// The file and the text where an element does nothing but write what the list holds: `cat > FILE <<'WORD'`.
fn written_text<'e>(
    element: &'e ScriptElement,
    stage: &'e PipelineStage,
) -> Option<(&'e str, &'e str)> {
    let is_cat = matches!(stage.words.as_slice(), [word] if word.literal() == Some("cat"));
    let is_plain = stage.variables.is_empty() && stage.templates.is_empty();
    let always_runs = matches!(element.join, ListOperator::First | ListOperator::Then);
    let is_only = element.pipeline.stages.len() == 1 && is_cat && is_plain && always_runs;
    let (file, text) = match stage.redirects.as_slice() {
        [Redirection::File { stream, path, append }, Redirection::Here { text }]
        | [Redirection::Here { text }, Redirection::File { stream, path, append }]
            if *stream == StdStream::Out && !append =>
        {
            (path, text)
        }
        _ => return None,
    };
    is_only.then_some((file, text))
}

/// Whether what a stage does leaves every file's text as it is.
fn leaves_files(stage: &PipelineStage) -> bool {
    let argv: Vec<String> = stage.words.iter().map(ShellWord::unexpanded).collect();
    let writes = |redirect: &Redirection| matches!(redirect, Redirection::File { path, .. } if path != DEV_NULL);
    let name = argv.first().map_or("", String::as_str);
    let is_harmless = matches!(name, "cd" | "chmod" | "mkdir")
        || CommandLine::parse(&argv, None, false).effects().is_subset_of(READING);
    is_harmless && !stage.redirects.iter().any(writes)
}

fn is_shell(word: &str) -> bool {
    SHELLS.contains(&word)
}

/// How many stages start a shell.
fn shells(script: &Script) -> usize {
    let name = |stage: &PipelineStage| {
        stage.words.first().and_then(ShellWord::literal).is_some_and(is_shell)
    };
    script.stages().filter(|stage| name(stage)).count()
}

/// Where the words of `sh FILE ARGUMENT ..` stand, the shell with its options, and the file. The arguments are for
/// parameters such as `$1`, which the language does not have: a text that needs them is refused.
fn script_words(
    text: &str,
    stage: &PipelineStage,
) -> Option<(std::ops::Range<usize>, Vec<String>, String)> {
    let words: Vec<&str> = stage.words.iter().map(ShellWord::literal).collect::<Option<_>>()?;
    let (shell, rest) = words.split_first().filter(|(shell, _)| is_shell(shell))?;
    let is_option = |word: &&&str| matches!(**word, "-e" | "-u" | "-l" | "-eu" | "-ue");
    let options = rest.iter().take_while(is_option).count();
    let (options, rest) = rest.split_at_checked(options)?;
    let file = rest.first().filter(|file| !file.starts_with('-') && !file.is_empty())?;
    let range = stage.words.first()?.span.start..stage.words.last()?.span.end;
    // Words of a text in a text have the place of the outer one, and redirections may stand between words.
    let typed = text.get(range.clone())?;
    let are_apart = stage.words.is_sorted_by(|one, next| one.span.end < next.span.end);
    let is_whole = typed.starts_with(shell) && are_apart && !typed.contains(['<', '>']);
    let shell = std::iter::once(shell).chain(options).map(|word| (*word).to_owned()).collect();
    is_whole.then(|| (range, shell, (*file).to_owned()))
}

/// Whether the policy lets the file be read without a question, of which this was found.
fn may_read<H: CallBackend>(
    (policy, usage): (&Arc<Policy>, &Usage),
    backend: &mut H,
    fact: &PathFact,
) -> bool {
    let call = ToolCall::by_person("fs.read", json!({ "path": fact.path.as_str() }));
    let Ok(report) = backend.preflight(&call) else { return false };
    let facts = Facts { paths: vec![fact.clone()], ..report.facts };
    let input = PolicyInput {
        tool: &call.tool,
        action: &report.action,
        facts: &facts,
        usage,
        tainted: &[],
        args_digest: None,
    };
    decide(policy, &input).decision.verdict == Verdict::Allow
}

impl ScriptCall {
    /// The text of the list with that of the script in it; none where a shell would be left.
    fn replace(&self, text: &str, script: &str) -> Option<String> {
        let script = format!("# {}\n{script}", self.path);
        let words = self.shell.iter().cloned().chain(["-c".into(), script]).collect::<Vec<_>>();
        let plain = quote_words(&words);
        // What a list prints goes to a file or a pipe as a group.
        let (before, behind) = (text.get(..self.range.start)?, text.get(self.range.end..)?);
        let texts = [format!("{before}{plain}{behind}"), format!("{before}( {plain} ){behind}")];
        texts.into_iter().find(|text| parse(text).is_ok_and(|script| shells(&script) < self.shells))
    }
}
