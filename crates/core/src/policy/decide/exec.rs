//! Constraints on programs.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::action::{PathLocation, PathTarget};
use crate::confinement::{Confinement, ProcessLimits, SandboxTier, WorkspaceAccess};
use crate::decision::Verdict;
use crate::policy::commands::{CommandRule, EffectRule, ExecRule, ProgramRule};
use crate::policy::decide::check::{Finding, PolicyInput, reason_or, verdict_text};
use crate::policy::decide::command_line::{LocatedCommand, LocatedPath, PathArgument};
use crate::policy::decide::effects::{self, check_effects};
use crate::policy::decide::files::{self, check_path_argument, outside_finding};
use crate::policy::decide::flags::{check_flag_effect, check_flags};
use crate::policy::decide::variables::{is_refused, variable_finding};
use crate::policy::decide::workspace_wipe::{check_whole_walk, whole_workspace};
use crate::policy::decide::{hosts, instructions, sandbox, temporary};
use crate::policy::model::{Policy, ToolRule};
use crate::tool::ToolName;
use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_command::specs::{self, CommandLevel, CommandLine, ParsedArgv, PathAccess, PathUse};

/// Checks a command. Nothing found means that the tool's own word decides.
pub(super) fn check(
    policy: &Policy,
    exec: &ExecRule,
    rule: &ToolRule,
    input: &PolicyInput<'_>,
    (argv, cwd): (&[String], &PathTarget),
    command: &LocatedCommand<'_>,
) -> Vec<Finding> {
    let tool = input.tool.as_str();
    if let Some(finding) = check_argv(argv) {
        return alloc::vec![finding.under_rule(tool, &rule.source)];
    }
    let mut found: Vec<Finding> = files::check_inside(cwd, input).err().into_iter().collect();
    let all = command.with_nested();
    let works_in = all.iter().flat_map(|command| command.work_directories());
    let start =
        cwd.inside().map(|path| (cwd.asked.as_str(), path, files::resolved_path(input, path)));
    let refusal =
        start.into_iter().chain(works_in).find_map(|folder| check_work_directory(exec, folder));
    found.extend(refusal.map(|finding| finding.under_rule(tool, &rule.source)));
    found.extend(check_tokens(exec, argv, tool));
    found.extend(temporary::check_line(command.line, &input.facts.root_names));
    for command in command.with_nested() {
        found.extend(check_program(policy, exec, rule, input, command));
    }
    found.extend(sandbox::check_command(policy, exec, input, command));
    found
}

/// A folder that commands may not run in, nor go to by an option of their own, by where it really is.
fn check_work_directory(
    exec: &ExecRule,
    (word, asked, folder): (&str, &WorkspacePath, &WorkspacePath),
) -> Option<Finding> {
    let folders = exec.cwd.as_ref()?;
    if folders.contain(asked) && folders.contain(folder) {
        return None;
    }
    let reason = match folder.is_root() {
        true => "commands do not run in the workspace itself".to_string(),
        false => format!("commands do not run in `{word}`"),
    };
    let named = folders.texts();
    let hint = match named.as_slice() {
        [] => "the policy names no folder to run commands in".to_string(),
        named => format!("run it in `{}`", named.join("`, `")),
    };
    Some(Finding::deny(Code::PathNotAllowed, reason).with_suggestion(Some(hint)))
}

/// Checks one of the command lines that stand in one another.
fn check_program(
    policy: &Policy,
    exec: &ExecRule,
    rule: &ToolRule,
    input: &PolicyInput<'_>,
    command: &LocatedCommand<'_>,
) -> Vec<Finding> {
    let tool = input.tool.as_str();
    let mut found: Vec<Finding> = check_nesting(command.line).into_iter().collect();
    found.extend(check_whole_walk(command));
    found.extend(check_variables(exec, command.line));
    found.extend(
        command
            .line
            .parsed_argvs()
            .flat_map(|argv| &argv.modules)
            .filter_map(|name| module(exec, name, tool)),
    );
    let hosts = command.line.parsed_argvs().filter_map(|argv| hosts::check(policy, argv));
    found.extend(hosts.filter(|finding| finding.verdict == Verdict::Deny));
    let program = exec.program(command.line.argv);
    let Some(program) = program else {
        match &exec.effects {
            Some(words) => {
                let shown = command.line.display_name();
                let readings = command.line.parsed_argvs();
                found.extend(check_effects(policy, words, readings, (&shown, tool)));
                found.extend(instructions::check(words, command.line, input.usage));
            }
            None => {
                found.push(not_allowed(policy, exec, command.line).under_rule(tool, &rule.source))
            }
        }
        for (number, reading) in command.line.parsed_argvs().enumerate() {
            found.extend(check_unclear_argument(reading));
            found.extend(check_paths(policy, command.path_arguments_of(number).iter()));
        }
        return found;
    };
    let id = format!("{tool}/{}", program.name);
    let reread = program.reread(command.line);
    for (number, reading) in reread.as_ref().unwrap_or(command.line).parsed_argvs().enumerate() {
        found.extend(check_command_rule((policy, program), &id, reading, exec.effects.as_ref()));
        found.extend(
            check_unclear_argument(reading)
                .map(|finding| finding.under_rule(id.clone(), &program.source)),
        );
        // The rule says itself where its program is.
        let words = command.path_arguments_of(number);
        let place = program.path.as_deref();
        let named = words
            .iter()
            .filter(|word| !word.path_use.guessed && Some(word.path_use.path.as_str()) != place);
        found.extend(check_paths(policy, named));
    }
    found
}

/// A program that another one runs by its name, where the policy denies it.
fn module(exec: &ExecRule, name: &str, tool: &str) -> Option<Finding> {
    let rule = exec.programs.iter().find(|rule| rule.name == name)?;
    let denied = rule.command.decision == Some(Verdict::Deny);
    let reason =
        reason_or(&rule.command.because, || verdict_text(Verdict::Deny, &format!("`{name}`")));
    let finding = Finding::with_verdict(Verdict::Deny, reason)
        .under_rule(format!("{tool}/{name}"), &rule.source);
    denied.then(|| finding.with_suggestion(rule.command.suggest.clone()))
}

fn check_nesting(line: &CommandLine<'_>) -> Option<Finding> {
    let reason = "command lines stand in one another too deep to be judged";
    let finding = Finding::deny(Code::ExecAmbiguous, reason);
    line.too_deep.then(|| finding.with_suggestion(Some("run the innermost program itself")))
}

/// Variables that a word of the command line sets for a program behind it.
fn check_variables(exec: &ExecRule, line: &CommandLine<'_>) -> Vec<Finding> {
    let set = line.parsed_argvs().flat_map(|reading| &reading.variables);
    let refused = set.filter(|(name, value)| is_refused(Some(exec), line.effects(), (name, value)));
    refused.map(|(name, value)| variable_finding(Some(exec), name, value)).collect()
}

/// A command line that cannot be run at all.
fn check_argv(argv: &[String]) -> Option<Finding> {
    let bytes: usize = argv.iter().map(|word| word.len() + 1).sum();
    let name_it = "put the program's plain name first, and each argument behind it";
    let (why, hint) = match argv.first() {
        None => ("the command line is empty", name_it),
        Some(program) if program.is_empty() => ("the program's name is empty", name_it),
        _ if argv.iter().any(|word| word.contains('\0')) => {
            ("a word holds a NUL byte", "give bytes by `stdin`, not as a word")
        }
        _ if argv.len() > limits::ARGV_WORDS => {
            ("the command line has too many words", "split it into several calls")
        }
        _ if bytes > limits::ARGV_BYTES => {
            ("the command line is too long", "give long text by `stdin`")
        }
        _ => return None,
    };
    Some(Finding::deny(Code::ExecArgv, why).with_suggestion(Some(hint)))
}

fn check_tokens(exec: &ExecRule, argv: &[String], tool: &str) -> Option<Finding> {
    argv.iter().find_map(|word| {
        let pattern = exec.denied_tokens.iter().find(|pattern| pattern.token.matches(word))?;
        let reason = format!("the word `{word}` is denied");
        let finding = Finding::deny(Code::ExecToken, reason).under_rule(tool, &pattern.source);
        Some(finding.with_suggestion(Some(format!("say it without the word `{word}`"))))
    })
}

fn not_allowed(policy: &Policy, exec: &ExecRule, line: &CommandLine<'_>) -> Finding {
    let asked = line.argv.first().map_or("", String::as_str);
    let named: Vec<&str> = exec.programs.iter().map(|program| program.name.as_str()).collect();
    let reason = format!("the policy does not name the program `{asked}`");
    let base = specs::base_name(asked);
    let suggestion = match named.as_slice() {
        [] => "the policy names no program at all".to_string(),
        named if asked != base && named.contains(&base) => {
            format!("programs go by their plain name: `{base}`")
        }
        named => format!("it names `{}`", named.join("`, `")),
    };
    let suggestion = match effects::tools(policy, line.effects()) {
        Some(tools) => format!("use {tools}; of programs, {suggestion}"),
        None => suggestion,
    };
    Finding::deny(Code::ExecNotAllowed, reason).with_suggestion(Some(suggestion))
}

/// Arguments of a program that name more than can be judged.
fn check_unclear_argument(reading: &ParsedArgv) -> Option<Finding> {
    let word = reading.unclear_argument.as_ref()?;
    let reason = format!("which files `{word}` names cannot be told from its text");
    let hint = "name the files or their folder plainly";
    Some(Finding::deny(Code::ExecAmbiguous, reason).with_suggestion(Some(hint)))
}

/// Paths among the arguments of a program whose arguments are known.
fn check_paths<'w, 'c: 'w>(
    policy: &Policy,
    words: impl Iterator<Item = &'w PathArgument<'c>>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut named = 0_usize;
    for PathArgument { path_use: used, locations: places } in words {
        match places {
            Ok(places) => {
                named = named.saturating_add(places.len());
                found.extend(places.iter().filter_map(|place| check_argument(policy, used, place)));
            }
            Err(problem) => {
                let finding = outside_finding(&used.path, *problem);
                found.push(match (used.access, finding.code) {
                    (PathAccess::Delete, Code::PathOutside) => {
                        finding.with_suggestion(Some(NAME_IT))
                    }
                    _ => finding,
                });
            }
        }
    }
    if named > limits::COMMAND_PATHS {
        let most = limits::COMMAND_PATHS;
        let reason = format!("the command line names more than {most} paths");
        let finding = Finding::deny(Code::ExecArgv, reason);
        found.push(finding.with_suggestion(Some("split it into several calls")));
    }
    found
}

/// What to do instead of deleting outside of the workspace.
const NAME_IT: &str =
    "name what is to be deleted by a path relative to the workspace, such as `./build`";

/// What the `paths`, `hidden` and `symlinks` of our own tool close they close to the argument of a
/// program as well. A folder is walked by the program; what no run may see there is masked in its
/// view, and so is what `fs.read` denies (`reach`).
fn check_argument(
    policy: &Policy,
    used: &PathUse,
    (path, fact): &LocatedPath<'_>,
) -> Option<Finding> {
    if let Some(temporary) = path.as_temporary() {
        return temporary::check_path(&temporary, used);
    }
    if used.access == PathAccess::Delete && path.is_root() {
        return Some(whole_workspace(&used.path));
    }
    let tool = ToolName::unchecked(match used.access {
        PathAccess::Write | PathAccess::Change => "fs.write",
        PathAccess::Delete => "fs.delete",
        PathAccess::Read | PathAccess::ReadTree => "fs.read",
    });
    if !matches!(used.access, PathAccess::Read | PathAccess::ReadTree)
        && let Some(finding) = fact.and_then(|fact| files::check_alias_split(policy, fact))
    {
        return Some(finding);
    }
    let finding = match policy.file_rule(&tool) {
        Some(files) => check_path_argument(files, path, *fact, used),
        None => match fact.map(|fact| &fact.real) {
            Some(PathLocation::Outside(problem)) => Some(outside_finding(&used.path, *problem)),
            _ => None,
        },
    }?;
    match policy.tool(&tool) {
        Some(rule) if finding.code != Code::PathOutside => {
            Some(finding.under_rule(tool.as_str(), &rule.source))
        }
        _ => Some(finding),
    }
}

/// The program's rule, its subcommand's, and their flags. Nothing found means that neither has a
/// word of its own.
fn check_command_rule(
    (policy, program): (&Policy, &ProgramRule),
    id: &str,
    reading: &ParsedArgv,
    effects: Option<&EffectRule>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut rule = &program.command;
    let mut id = id.to_string();
    let mut word = rule.decision.map(|verdict| (verdict, id.clone(), rule));
    let mut levels = reading.levels.iter();
    let mut level = levels.next();
    found.extend(level.and_then(|level| check_flags(&program.global_flags, level, &id)));
    if !rule.subcommands.is_empty() && reading.ambiguous {
        let reason = format!(
            "an option that is not known stands before the subcommand of `{}`",
            program.name
        );
        let hint = "put the option behind the subcommand, or leave it out";
        let finding = Finding::deny(Code::ExecAmbiguous, reason).with_suggestion(Some(hint));
        found.push(finding.under_rule(id, &program.source));
        return found;
    }
    let mut separator = '.';
    while !rule.subcommands.is_empty() {
        level = levels.next();
        let item = level.and_then(|level| Some((&level.name, rule.subcommand(&level.name)?)));
        let Some((name, inner)) = item else {
            found.push(no_subcommand(rule, level, &program.name).under_rule(id, &program.source));
            return found;
        };
        id = format!("{id}{separator}{name}");
        (rule, separator) = (inner, ' ');
        if let Some(verdict) = rule.decision {
            word = Some((verdict, id.clone(), rule));
        }
    }
    for level in level.into_iter().chain(levels) {
        found.extend(check_flags(&rule.flags, level, &id));
    }
    found.extend(check_flag_effect(program, rule, reading, &id, effects));
    found.extend(unknown_subcommand(program, reading, &id));
    if let (None, Some(words)) = (&word, effects) {
        let readings = core::iter::once(reading);
        found.extend(check_effects(policy, words, readings, (&program.name, &id)));
    }
    if let Some((verdict, id, rule)) = word {
        let shown = id.rsplit('/').next().unwrap_or(&id).to_string();
        let reason = reason_or(&rule.because, || verdict_text(verdict, &format!("`{shown}`")));
        let finding = Finding::with_verdict(verdict, reason).under_rule(id, &rule.source);
        let suggestion = rule.suggest.clone();
        found.push(match verdict {
            Verdict::Deny if rule.suggest.is_none() => {
                finding.with_suggestion(allowed_subcommands(&program.command))
            }
            _ => finding.with_suggestion(suggestion),
        });
    }
    found
}

fn allowed_subcommands(rule: &CommandRule) -> Option<String> {
    let named: Vec<&str> = rule
        .subcommands
        .iter()
        .filter(|(name, inner)| name != "*" && inner.decision != Some(Verdict::Deny))
        .map(|(name, _)| name.as_str())
        .collect();
    (!named.is_empty()).then(|| format!("allowed are `{}`", named.join("`, `")))
}

fn no_subcommand(rule: &CommandRule, level: Option<&CommandLevel>, program: &str) -> Finding {
    let reason = match level {
        Some(level) => format!("the policy does not name `{program} {}`", level.name),
        None => format!("`{program}` needs one of the subcommands that the policy names"),
    };
    Finding::deny(Code::ExecSubcommand, reason).with_suggestion(allowed_subcommands(rule))
}

/// A subcommand that a known program is not known to have: an alias of the repository, or a program
/// of its own. Only a rule that names it lets it through.
fn unknown_subcommand(program: &ProgramRule, reading: &ParsedArgv, id: &str) -> Option<Finding> {
    let unknown = reading.levels.get(1).filter(|level| reading.known() && !level.known)?;
    let name = &unknown.name;
    if program.command.subcommands.iter().any(|(text, _)| text == name) {
        return None;
    }
    let reason = format!("`{} {name}` is not known, so what it does is not known", program.name);
    let hint = "use a subcommand that is known";
    let finding = Finding::deny(Code::ExecSubcommand, reason);
    Some(finding.under_rule(id, &program.source).with_suggestion(Some(hint)))
}

/// What a command is confined to.
pub(super) fn confinement(
    policy: &Policy,
    exec: &ExecRule,
    argv: &[String],
    asked_ms: Option<u64>,
) -> Confinement {
    let program = exec.program(argv);
    let bounds: ProcessLimits = program.and_then(|program| program.limits).unwrap_or(exec.limits);
    let most = program.and_then(|program| program.timeout_max_ms).unwrap_or(exec.timeout_max_ms);
    let timeout_ms = asked_ms.unwrap_or(bounds.timeout_ms).clamp(1, most);
    Confinement {
        floor: policy.sandbox.floor.max(SandboxTier::Basic),
        network: policy.sandbox.network,
        workspace: WorkspaceAccess::ReadOnly,
        limits: ProcessLimits { timeout_ms, ..bounds },
    }
}
