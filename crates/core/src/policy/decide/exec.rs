//! Constraints on programs.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::action::{FileKind, PathFact, PathTarget, Place};
use crate::code::Code;
use crate::confinement::{Confinement, ProcessLimits, Tier, WorkspaceAccess};
use crate::decision::Verdict;
use crate::limits;
use crate::policy::bounds::Scope;
use crate::policy::decide::command::{Command, Named, Word};
use crate::policy::decide::files::{closed_argument, outside};
use crate::policy::decide::{Case, Finding, because, words};
use crate::policy::model::{
    CommandRule, Constraint, ExecRule, FlagRule, Policy, ProgramRule, ToolRule,
};
use crate::policy::patterns::PathPattern;
use crate::programs::{self, CommandLine, Effect, Flag, Level, PathUse, Reading, Use};
use crate::risk::Risk;
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
    let mut found: Vec<Finding> = working_folder(case, cwd).into_iter().collect();
    found.extend(denied_token(exec, argv, tool));
    let Some(program) = program_rule(exec, argv) else {
        found.push(not_allowed(exec, argv).by(tool, &rule.source));
        return found;
    };
    let id = format!("{tool}/{}", program.name);
    let anew = anew(program, case, own.line);
    for (number, reading) in anew.as_ref().unwrap_or(own.line).readings().enumerate() {
        found.extend(command(program, &id, reading));
        found.extend(untold(reading).map(|finding| finding.by(id.clone(), &program.source)));
        found.extend(paths(policy, own.words_of(number)));
    }
    found.extend(walls(policy, case));
    found
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

fn working_folder(case: &Case<'_>, cwd: &PathTarget) -> Option<Finding> {
    match &cwd.place {
        Place::Outside(problem) => Some(outside(&cwd.asked, *problem)),
        Place::Inside(path) => match case.facts.at(path) {
            Some(PathFact { real: Place::Outside(problem), .. }) => {
                Some(outside(&cwd.asked, *problem))
            }
            Some(PathFact { kind: FileKind::File | FileKind::Special, .. }) => {
                let reason = format!("`{path}` is not a folder");
                let hint = "run in the folder that the file lies in, or leave `cwd` out";
                Some(Finding::deny(Code::PathInvalid, reason).suggest(Some(hint)))
            }
            _ => None,
        },
    }
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
fn program_rule<'p>(exec: &'p ExecRule, argv: &[String]) -> Option<&'p ProgramRule> {
    let asked = argv.first()?;
    exec.programs.iter().find(|program| match asked.contains('/') {
        true => program.path.as_ref() == Some(asked),
        false => program.name == *asked,
    })
}

fn not_allowed(exec: &ExecRule, argv: &[String]) -> Finding {
    let asked = argv.first().map_or("", String::as_str);
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
fn paths(policy: &Policy, words: &[Word<'_>]) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut named = 0_usize;
    for Word { used, places } in words {
        match places {
            Ok(places) => {
                named = named.saturating_add(places.len());
                found.extend(places.iter().filter_map(|place| argument(policy, used, place)));
            }
            Err(problem) => found.push(outside(&used.path, *problem)),
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

/// What the `paths`, `hidden` and `symlinks` of our own tool close they close to the argument of a
/// program as well. A folder is walked by the program; what no run may see there is masked in its
/// view.
fn argument(policy: &Policy, used: &PathUse, (path, fact): &Named<'_>) -> Option<Finding> {
    let tool = ToolName::asked(if used.usage == Use::Write { "fs.write" } else { "fs.read" });
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
fn command(program: &ProgramRule, id: &str, reading: &Reading) -> Vec<Finding> {
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
    found.extend(unasked_effect(program, rule, reading, &id));
    found.extend(unknown_subcommand(program, reading, &id));
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

fn subcommand<'r>(rule: &'r CommandRule, name: &str) -> Option<&'r CommandRule> {
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
    let hint = format!("name `{name}` under `subcommands` if it is meant");
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
) -> Option<Finding> {
    let listed = |flag: &Flag| {
        [&program.global_flags, &rule.flags]
            .into_iter()
            .filter_map(|flags| flags.allow.as_ref())
            .flatten()
            .any(|own| flag.surely_is(own))
    };
    let flags = reading.levels.iter().flat_map(|level| &level.flags);
    flags.into_iter().find_map(|flag| {
        let why = match &flag.effect {
            Some((Effect::Reads, _)) => return None,
            Some((_, why)) => why.as_str(),
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
        let hint = format!("drop `{}`, or name it under `flags.allow`", flag.spelled);
        let finding = Finding::deny(Code::ExecFlagEffect, reason);
        Some(finding.by(id, &rule.source).suggest(Some(hint)))
    })
}

/// The walls that the machine can give, against those that the policy wants.
fn walls(policy: &Policy, case: &Case<'_>) -> Option<Finding> {
    let floor = policy.sandbox.floor;
    let mut hint = "`capsule doctor` names the missing layer and how to get it";
    let reason = match case.facts.walls.as_ref()? {
        Ok(walls) if walls.reach(floor) => return None,
        Ok(walls) => {
            let gaps: Vec<&str> = walls.gaps().map(|gap| gap.layer.name()).collect();
            let (tier, gaps) = (walls.tier, gaps.join(", "));
            if walls.reach(Tier::Landlock) {
                hint = "`capsule doctor` names the missing layer and how to get it; with \
                        `sandbox.floor: landlock` the policy would do with less";
            }
            format!("the policy wants `{floor}` and this machine gives `{tier}` (missing: {gaps})")
        }
        Err(why) => format!("the policy wants `{floor}` and there is no sandbox: {why}"),
    };
    Some(Finding::deny(Code::SandboxBelowFloor, reason).suggest(Some(hint)))
}

/// What is known of the program says how much it could cost; an unknown one could do anything that
/// the walls let it.
pub(super) fn risk(line: &CommandLine<'_>) -> Risk {
    match line.readings().map(|reading| reading.effect).max().flatten() {
        Some(Effect::Reads) => Risk::Low,
        _ => Risk::Medium,
    }
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
fn anew<'c>(
    program: &ProgramRule,
    case: &Case<'c>,
    line: &CommandLine<'c>,
) -> Option<CommandLine<'c>> {
    let expects = !program.command.subcommands.is_empty() && !line.readings().any(Reading::known);
    expects.then(|| CommandLine::of(line.argv, case.facts.program.as_ref(), true))
}

/// What a command may see and change: for each, what the rule of its innermost subcommand says about
/// it, or the nearest one above. It may change nothing unless all readings of the line may.
pub(super) fn reach(
    policy: &Arc<Policy>,
    rule: &ToolRule,
    case: &Case<'_>,
    own: &Command<'_>,
) -> (Option<Scope>, Option<Scope>) {
    let Constraint::Exec(exec) = &rule.constraint else { return (None, None) };
    let Some(program) = program_rule(exec, own.line.argv) else { return (None, None) };
    let anew = anew(program, case, own.line);
    let readings = || anew.as_ref().unwrap_or(own.line).readings();
    let seen = readings().filter_map(|own| innermost(program, own, |rule| rule.reads.as_ref()));
    let reads: Vec<_> = seen.cloned().collect();
    let reads = (!reads.is_empty()).then(|| Scope::new(Arc::clone(policy), reads));
    if policy.sandbox.workspace == WorkspaceAccess::ReadOnly {
        return (reads, None);
    }
    let mut writes = Vec::new();
    for reading in readings() {
        match innermost(program, reading, |rule| rule.writes.as_ref()) {
            Some(patterns) if patterns.is_empty() => return (reads, None),
            Some(patterns) => writes.push(patterns.clone()),
            None if policy.sandbox.writes => {}
            None => return (reads, None),
        }
    }
    (reads, Some(Scope::new(Arc::clone(policy), writes)))
}

fn innermost<'r>(
    program: &'r ProgramRule,
    reading: &Reading,
    pick: impl Fn(&'r CommandRule) -> Option<&'r Vec<PathPattern>>,
) -> Option<&'r Vec<PathPattern>> {
    let (mut rule, mut found) = (&program.command, pick(&program.command));
    for level in reading.levels.iter().skip(1) {
        let Some(inner) = subcommand(rule, &level.name) else { break };
        rule = inner;
        found = pick(rule).or(found);
    }
    found
}
