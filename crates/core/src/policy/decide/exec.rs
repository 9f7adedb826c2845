//! Constraints on programs.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::action::{PathTarget, Place};
use crate::code::Code;
use crate::confinement::{Confinement, ProcessLimits, Tier, WorkspaceAccess};
use crate::decision::Verdict;
use crate::limits;
use crate::path::WorkspacePath;
use crate::policy::commands::{CommandRule, EffectRule, ExecRule, FlagRule, ProgramRule};
use crate::policy::decide::command::{Command, Named, Word};
use crate::policy::decide::effects::{self, by_effects};
use crate::policy::decide::everything::{everything, whole_walk};
use crate::policy::decide::files::{self, closed_argument, outside};
use crate::policy::decide::{Case, Finding, because, instructions, script, walls, words};
use crate::policy::model::{Policy, ToolRule};
use crate::programs::{
    self, CommandLine, Effect, Effects, Flag, Level, PathUse, Reading, Use, sum,
};
use crate::tool::ToolName;

/// Checks a command. Nothing found means that the tool's own word decides.
pub(super) fn check(
    policy: &Policy,
    exec: &ExecRule,
    rule: &ToolRule,
    case: &Case<'_>,
    (argv, cwd): (&[String], &PathTarget),
    own: &Command<'_>,
) -> Vec<Finding> {
    let tool = case.tool.as_str();
    if let Some(finding) = unusable(argv) {
        return alloc::vec![finding.by(tool, &rule.source)];
    }
    let mut found: Vec<Finding> = files::inside(cwd, case).err().into_iter().collect();
    let all = own.all();
    let works_in = all.iter().flat_map(|own| own.folders());
    let here = cwd.inside().map(|path| (cwd.asked.as_str(), path, files::seen(case, path)));
    let away = here.into_iter().chain(works_in).find_map(|folder| elsewhere(exec, folder));
    found.extend(away.map(|finding| finding.by(tool, &rule.source)));
    found.extend(denied_token(exec, argv, tool));
    for own in own.all() {
        found.extend(one(policy, exec, rule, case, own));
    }
    found.extend(walls::of_command(policy, exec, case, own));
    found
}

/// A folder that commands may not run in, nor go to by an option of their own, by where it really is.
fn elsewhere(
    exec: &ExecRule,
    (word, asked, folder): (&str, &WorkspacePath, &WorkspacePath),
) -> Option<Finding> {
    let folders = exec.cwd.as_ref()?;
    if folders.have(asked) && folders.have(folder) {
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
    Some(Finding::deny(Code::PathNotAllowed, reason).suggest(Some(hint)))
}

/// Checks one of the command lines that stand in one another.
fn one(
    policy: &Policy,
    exec: &ExecRule,
    rule: &ToolRule,
    case: &Case<'_>,
    own: &Command<'_>,
) -> Vec<Finding> {
    let tool = case.tool.as_str();
    let mut found: Vec<Finding> = too_deep(own.line).into_iter().collect();
    found.extend(whole_walk(own));
    found.extend(variables(exec, own.line));
    found.extend(
        own.line
            .readings()
            .flat_map(|own| &own.modules)
            .filter_map(|name| module(exec, name, tool)),
    );
    let program = program_rule(exec, own.line.argv);
    let Some(program) = program else {
        match &exec.effects {
            Some(words) => {
                let reasons = own.line.readings().flat_map(Reading::reasons);
                found.extend(by_effects(policy, words, reasons, (&own.line.shown(), tool)));
                found.extend(instructions::check(words, own.line, case.usage));
            }
            None => found.push(not_allowed(policy, exec, own.line).by(tool, &rule.source)),
        }
        for (number, reading) in own.line.readings().enumerate() {
            found.extend(untold(reading));
            found.extend(paths(policy, own.words_of(number).iter()));
        }
        return found;
    };
    let id = format!("{tool}/{}", program.name);
    let anew = anew(program, own.line);
    for (number, reading) in anew.as_ref().unwrap_or(own.line).readings().enumerate() {
        found.extend(command((policy, program), &id, reading, exec.effects.as_ref()));
        found.extend(untold(reading).map(|finding| finding.by(id.clone(), &program.source)));
        // The rule says itself where its program is.
        let words = own.words_of(number);
        let place = program.path.as_deref();
        let named = words
            .iter()
            .filter(|word| !word.used.guessed && Some(word.used.path.as_str()) != place);
        found.extend(paths(policy, named));
    }
    found
}

/// A program that another one runs by its name, where the policy denies it.
fn module(exec: &ExecRule, name: &str, tool: &str) -> Option<Finding> {
    let rule = exec.programs.iter().find(|rule| rule.name == name)?;
    let denied = rule.command.decision == Some(Verdict::Deny);
    let reason = because(&rule.command.because, || words(Verdict::Deny, &format!("`{name}`")));
    let finding = Finding::word(Verdict::Deny, reason).by(format!("{tool}/{name}"), &rule.source);
    denied.then(|| finding.suggest(rule.command.suggest.clone()))
}

fn too_deep(line: &CommandLine<'_>) -> Option<Finding> {
    let reason = "command lines stand in one another too deep to be judged";
    let finding = Finding::deny(Code::ExecAmbiguous, reason);
    line.too_deep.then(|| finding.suggest(Some("run the innermost program itself")))
}

/// Variables that a word of the command line sets for a program behind it.
fn variables(exec: &ExecRule, line: &CommandLine<'_>) -> Vec<Finding> {
    let set = line.readings().flat_map(|reading| &reading.variables);
    let refused = set.filter(|(name, value)| script::is_refused(Some(exec), name, value));
    refused.map(|(name, value)| script::variable(Some(exec), name, value)).collect()
}

/// A command line that cannot be run at all.
fn unusable(argv: &[String]) -> Option<Finding> {
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
    Some(Finding::deny(Code::ExecArgv, why).suggest(Some(hint)))
}

fn denied_token(exec: &ExecRule, argv: &[String], tool: &str) -> Option<Finding> {
    argv.iter().find_map(|word| {
        let pattern = exec.denied_tokens.iter().find(|pattern| pattern.token.is(word))?;
        let reason = format!("the word `{word}` is denied");
        let finding = Finding::deny(Code::ExecToken, reason).by(tool, &pattern.source);
        Some(finding.suggest(Some(format!("say it without the word `{word}`"))))
    })
}

/// The rule for a program: by its plain name, or by the very path that the rule names.
pub(super) fn program_rule<'p>(exec: &'p ExecRule, argv: &[String]) -> Option<&'p ProgramRule> {
    let asked = argv.first()?;
    exec.programs.iter().find(|program| match asked.contains('/') {
        true => program.path.as_ref() == Some(asked),
        false => program.name == *asked,
    })
}

fn not_allowed(policy: &Policy, exec: &ExecRule, line: &CommandLine<'_>) -> Finding {
    let asked = line.argv.first().map_or("", String::as_str);
    let named: Vec<&str> = exec.programs.iter().map(|program| program.name.as_str()).collect();
    let reason = format!("the policy does not name the program `{asked}`");
    let base = programs::base_name(asked);
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
    Finding::deny(Code::ExecNotAllowed, reason).suggest(Some(suggestion))
}

/// Arguments of a program that name more than can be judged.
fn untold(reading: &Reading) -> Option<Finding> {
    if let Some(word) = &reading.unclear {
        let reason = format!("which files `{word}` names cannot be told from its text");
        let hint = "name the files or their folder plainly";
        return Some(Finding::deny(Code::ExecAmbiguous, reason).suggest(Some(hint)));
    }
    None
}

/// Paths among the arguments of a program whose arguments are known.
fn paths<'w, 'c: 'w>(policy: &Policy, words: impl Iterator<Item = &'w Word<'c>>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut named = 0_usize;
    for Word { used, places } in words {
        match places {
            Ok(places) => {
                named = named.saturating_add(places.len());
                found.extend(places.iter().filter_map(|place| argument(policy, used, place)));
            }
            Err(problem) => {
                let finding = outside(&used.path, *problem);
                found.push(match (used.usage, finding.code) {
                    (Use::Delete, Code::PathOutside) => finding.suggest(Some(NAME_IT)),
                    _ => finding,
                });
            }
        }
    }
    if named > limits::COMMAND_PATHS {
        let most = limits::COMMAND_PATHS;
        let reason = format!("the command line names more than {most} paths");
        let finding = Finding::deny(Code::ExecArgv, reason);
        found.push(finding.suggest(Some("split it into several calls")));
    }
    found
}

/// What to do instead of deleting outside of the workspace.
const NAME_IT: &str = "name what shall go by a path relative to the workspace, such as `./build`";

/// What the `paths`, `hidden` and `symlinks` of our own tool close they close to the argument of a
/// program as well. A folder is walked by the program; what no run may see there is masked in its
/// view, and so is what `fs.read` denies (`reach`).
fn argument(policy: &Policy, used: &PathUse, (path, fact): &Named<'_>) -> Option<Finding> {
    if used.usage == Use::Delete && path.is_root() {
        return Some(everything(&used.path));
    }
    let tool = ToolName::asked(match used.usage {
        Use::Write | Use::Change => "fs.write",
        Use::Delete => "fs.delete",
        Use::Read | Use::ReadTree => "fs.read",
    });
    if !matches!(used.usage, Use::Read | Use::ReadTree)
        && let Some(finding) = fact.and_then(|fact| files::split(policy, fact))
    {
        return Some(finding);
    }
    let finding = match policy.files(&tool) {
        Some(files) => closed_argument(files, path, *fact, used),
        None => match fact.map(|fact| &fact.real) {
            Some(Place::Outside(problem)) => Some(outside(&used.path, *problem)),
            _ => None,
        },
    }?;
    match policy.tool(&tool) {
        Some(rule) if finding.code != Code::PathOutside => {
            Some(finding.by(tool.as_str(), &rule.source))
        }
        _ => Some(finding),
    }
}

/// The program's rule, its subcommand's, and their flags. Nothing found means that neither has a
/// word of its own.
fn command(
    (policy, program): (&Policy, &ProgramRule),
    id: &str,
    reading: &Reading,
    effects: Option<&EffectRule>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut rule = &program.command;
    let mut id = id.to_string();
    let mut word = rule.decision.map(|verdict| (verdict, id.clone(), rule));
    let mut levels = reading.levels.iter();
    let mut level = levels.next();
    found.extend(level.and_then(|level| flags(&program.global_flags, level, &id)));
    if !rule.subcommands.is_empty() && reading.ambiguous {
        let reason = format!(
            "an option that is not known stands before the subcommand of `{}`",
            program.name
        );
        let hint = "put the option behind the subcommand, or leave it out";
        let finding = Finding::deny(Code::ExecAmbiguous, reason).suggest(Some(hint));
        found.push(finding.by(id, &program.source));
        return found;
    }
    let mut separator = '.';
    while !rule.subcommands.is_empty() {
        level = levels.next();
        let own = level.and_then(|level| Some((&level.name, subcommand(rule, &level.name)?)));
        let Some((name, inner)) = own else {
            found.push(no_subcommand(rule, level, &program.name).by(id, &program.source));
            return found;
        };
        id = format!("{id}{separator}{name}");
        (rule, separator) = (inner, ' ');
        if let Some(verdict) = rule.decision {
            word = Some((verdict, id.clone(), rule));
        }
    }
    for level in level.into_iter().chain(levels) {
        found.extend(flags(&rule.flags, level, &id));
    }
    found.extend(unasked_effect(program, rule, reading, &id, effects));
    found.extend(unknown_subcommand(program, reading, &id));
    if let (None, Some(words)) = (&word, effects) {
        found.extend(by_effects(policy, words, reading.reasons(), (&program.name, &id)));
    }
    if let Some((verdict, id, rule)) = word {
        let shown = id.rsplit('/').next().unwrap_or(&id).to_string();
        let reason = because(&rule.because, || words(verdict, &format!("`{shown}`")));
        let finding = Finding::word(verdict, reason).by(id, &rule.source);
        let suggestion = rule.suggest.clone();
        found.push(match verdict {
            Verdict::Deny if rule.suggest.is_none() => finding.suggest(allowed(&program.command)),
            _ => finding.suggest(suggestion),
        });
    }
    found
}

pub(super) fn subcommand<'r>(rule: &'r CommandRule, name: &str) -> Option<&'r CommandRule> {
    let exact = rule.subcommands.iter().find(|(own, _)| own == name);
    let any = || rule.subcommands.iter().find(|(own, _)| own == "*");
    exact.or_else(any).map(|(_, inner)| inner)
}

fn allowed(rule: &CommandRule) -> Option<String> {
    let named: Vec<&str> = rule
        .subcommands
        .iter()
        .filter(|(name, inner)| name != "*" && inner.decision != Some(Verdict::Deny))
        .map(|(name, _)| name.as_str())
        .collect();
    (!named.is_empty()).then(|| format!("allowed are `{}`", named.join("`, `")))
}

fn no_subcommand(rule: &CommandRule, level: Option<&Level>, program: &str) -> Finding {
    let reason = match level {
        Some(level) => format!("the policy does not name `{program} {}`", level.name),
        None => format!("`{program}` needs one of the subcommands that the policy names"),
    };
    Finding::deny(Code::ExecSubcommand, reason).suggest(allowed(rule))
}

/// A subcommand that a known program is not known to have: an alias of the repository, or a program
/// of its own. Only a rule that names it lets it through.
fn unknown_subcommand(program: &ProgramRule, reading: &Reading, id: &str) -> Option<Finding> {
    let unknown = reading.levels.get(1).filter(|level| reading.known() && !level.known)?;
    let name = &unknown.name;
    if program.command.subcommands.iter().any(|(own, _)| own == name) {
        return None;
    }
    let reason = format!("`{} {name}` is not known, so what it does is not known", program.name);
    let hint = "use a subcommand that is known";
    let finding = Finding::deny(Code::ExecSubcommand, reason);
    Some(finding.by(id, &program.source).suggest(Some(hint)))
}

/// The first flag that the rule denies, or does not list.
fn flags(rule: &FlagRule, level: &Level, id: &str) -> Option<Finding> {
    let name = &level.name;
    level.flags.iter().find_map(|flag| {
        if let Some((denied, source)) = rule.deny.iter().find(|(own, _)| flag.could_be(own)) {
            let reason = if *denied == flag.spelled {
                format!("the flag `{denied}` is denied for `{name}`")
            } else {
                format!(
                    "the flag `{}` could be `{denied}`, which is denied for `{name}`",
                    flag.spelled
                )
            };
            let hint = format!("drop `{}`", flag.spelled);
            return Some(Finding::deny(Code::ExecFlag, reason).by(id, source).suggest(Some(hint)));
        }
        let listed = rule.allow.as_ref()?;
        if listed.iter().any(|own| flag.surely_is(own)) {
            return None;
        }
        let reason = format!("the flag `{}` is not among those allowed for `{name}`", flag.spelled);
        let hint = format!("allowed are `{}`", listed.join("`, `"));
        Some(Finding::deny(Code::ExecFlag, reason).by(id, &rule.source).suggest(Some(hint)))
    })
}

/// A flag that makes a program do more than its rule lets on, and that the rule does not name.
fn unasked_effect(
    program: &ProgramRule,
    rule: &CommandRule,
    reading: &Reading,
    id: &str,
    effects: Option<&EffectRule>,
) -> Option<Finding> {
    let listed = |flag: &Flag| {
        [&program.global_flags, &rule.flags]
            .into_iter()
            .filter_map(|flags| flags.allow.as_ref())
            .flatten()
            .any(|own| flag.surely_is(own))
    };
    // A program that runs others by its nature does no more with an option that says which.
    let nature = sum(&reading.nature);
    let runs = nature.meets(Effects::of(Effect::Runs).with(Effect::Code).with(Effect::Unknown));
    let harmless = match runs {
        true => {
            nature.with(Effect::Code).with(Effect::Runs).with(Effect::Reads).with(Effect::Opens)
        }
        false => Effects::of(Effect::Reads),
    };
    let flags = reading.levels.iter().flat_map(|level| &level.flags);
    flags.into_iter().find_map(|flag| {
        let why = match &flag.added {
            Some(added) if added.effects.within(harmless) => return None,
            Some(added) => added.why.as_str(),
            None if runs => return None,
            // What a known program is not known to have could do anything that the program can.
            None if flag.names.is_empty() && reading.known() => {
                "is not known, so what it does is not known either"
            }
            None => return None,
        };
        if listed(flag) {
            return None;
        }
        let reason = format!("the flag `{}` {why}", flag.spelled);
        let hint = format!("drop `{}`", flag.spelled);
        let word = |words: &EffectRule| {
            let added = flag.added.as_ref().map(|added| added.effects.iter());
            let each = added.into_iter().flatten().map(|effect| words.word(effect).0);
            each.max().unwrap_or_else(|| words.word(Effect::Unknown).0)
        };
        let finding = match effects.map(word) {
            Some(Verdict::Allow) => return None,
            Some(verdict @ (Verdict::Ask | Verdict::AskEach)) => Finding::word(verdict, reason),
            Some(Verdict::Deny) | None => Finding::deny(Code::ExecFlagEffect, reason),
        };
        Some(finding.by(id, &rule.source).suggest(Some(hint)))
    })
}

/// What a command is confined to.
pub(super) fn confinement(
    policy: &Policy,
    exec: &ExecRule,
    argv: &[String],
    asked_ms: Option<u64>,
) -> Confinement {
    let program = program_rule(exec, argv);
    let bounds: ProcessLimits = program.and_then(|program| program.limits).unwrap_or(exec.limits);
    let most = program.and_then(|program| program.timeout_max_ms).unwrap_or(exec.timeout_max_ms);
    let timeout_ms = asked_ms.unwrap_or(bounds.timeout_ms).clamp(1, most);
    Confinement {
        floor: policy.sandbox.floor.max(Tier::Landlock),
        network: policy.sandbox.network,
        workspace: WorkspaceAccess::ReadOnly,
        limits: ProcessLimits { timeout_ms, ..bounds },
    }
}

/// The line read anew, where nothing is known of the program and its rule names subcommands.
pub(super) fn anew<'c>(program: &ProgramRule, line: &CommandLine<'c>) -> Option<CommandLine<'c>> {
    let expects = !program.command.subcommands.is_empty() && !line.readings().any(Reading::known);
    expects.then(|| CommandLine::of(line.argv, line.program, true))
}
