//! What a command may see and change of the workspace.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::action::{FileKind, PathFact};
use crate::capability::{Capabilities, Capability};
use crate::confinement::WorkspaceAccess;
use crate::policy::commands::{CommandRule, ExecRule, ProgramRule};
use crate::policy::decide::command_line::{LocatedCommand, LocatedPath, PathArgument};
use crate::policy::decide::files::denied_pattern;
use crate::policy::decide::hosts;
use crate::policy::model::{Constraint, Policy, ToolRule};
use crate::policy::path_pattern::PathPattern;
use crate::policy::restrictions::{NamedHosts, PathScope};
use crate::tool::ToolName;
use capsule_command::specs::{CommandLine, Effect, Effects, ParsedArgv, PathAccess};

/// What a command may see and change, and what it needs.
#[derive(Default)]
pub(super) struct CommandScopes {
    pub(super) reads: Option<PathScope>,
    pub(super) writes: Option<PathScope>,
    /// What it needs besides what its words show: what the rules of its programs say, each of its
    /// innermost subcommand or of the nearest one above, in every way in which it can be read.
    pub(super) needs: Capabilities,
    /// What its words say of the network.
    pub(super) hosts: NamedHosts,
}

/// What a command may see and change. Its walls are those of all command lines that stand in it, so
/// each of them bounds what it sees, and it may change only what all of them may.
pub(super) fn command_scopes(
    policy: &Arc<Policy>,
    rule: &ToolRule,
    command: &LocatedCommand<'_>,
) -> CommandScopes {
    let Constraint::Exec(exec) = &rule.constraint else { return CommandScopes::default() };
    let mut reads = Vec::new();
    let mut needs = Capabilities::NONE;
    let mut hosts = NamedHosts::default();
    let mut writes = Some(Vec::new());
    let (root, (closed, finds)) = (command.line, hidden_patterns(policy, command));
    for command in command.with_nested() {
        let program = exec.program(command.line.argv);
        let reread = program.and_then(|program| program.reread(command.line));
        let line = reread.as_ref().unwrap_or(command.line);
        hosts.add(hosts::of_line(line));
        for (program, argv) in line.parsed_argvs().filter_map(|argv| Some((program?, argv))) {
            reads.extend(innermost(program, argv, |rule| rule.reads.as_ref()).cloned());
            let needed = innermost(program, argv, |rule| rule.needs.as_ref()).copied();
            needs = needs.union(needed.unwrap_or_default());
        }
        let changed = match program {
            Some(program) => writes_by_rule(policy, program, line),
            None => writes_by_effects(policy, exec, root),
        };
        writes = writes.zip(changed).map(|(all, item): (Vec<_>, _)| [all, item].concat());
    }
    let bounded = !reads.is_empty() || !closed.is_empty();
    let reads =
        bounded.then(|| PathScope::new(Arc::clone(policy), reads).with_denied(closed, finds));
    let writes = writes.filter(|_| policy.sandbox.workspace != WorkspaceAccess::ReadOnly);
    let writes = writes.map(|writes| PathScope::new(Arc::clone(policy), writes));
    // Whether nothing confines it is the machine's word.
    let needs = needs.iter().filter(|need| *need != Capability::ProcUnconfined).collect();
    CommandScopes { reads, writes, needs, hosts }
}

/// What is hidden from a command because its words may not name it either: what `fs.read` denies; and
/// whether the command may come upon it, because it is given a folder, or nothing, or a list. So it is for
/// one that does nothing but what its words say: what a policy closes to `fs.read` a build may need
/// (`target/**`), and whoever runs the code of others reads what the walls show. What is only deleted is not
/// read; but who does no more than that does not open it to the others of a pipeline either.
fn hidden_patterns(policy: &Policy, command: &LocatedCommand<'_>) -> (Vec<PathPattern>, bool) {
    let files = policy.file_rule(&ToolName::unchecked("fs.read"));
    let readable = [Effect::Opens, Effect::Writes, Effect::Deletes, Effect::Network, Effect::Sends];
    let said = readable.into_iter().fold(Effects::of(Effect::Reads), Effects::with);
    let effects = command.line.effects();
    let Some(files) = files.filter(|file| !file.deny.is_empty() && effects.is_subset_of(said))
    else {
        return (Vec::new(), false);
    };
    if effects.is_subset_of(Effects::of(Effect::Deletes)) {
        return (files.deny.clone(), false);
    }
    let all = command.with_nested();
    let words = all.iter().flat_map(|command| command.path_arguments());
    let named: Vec<_> =
        words.filter(|word| !word.path_use.is_work_directory && !word.path_use.is_name).collect();
    let finds_by = |word: &&PathArgument<'_>| {
        // What is moved is read under its new name, and was judged as what is changed alone.
        let unread = !matches!(word.path_use.access, PathAccess::Read | PathAccess::ReadTree);
        let is_denied =
            |(path, fact): &LocatedPath<'_>| denied_pattern(files, path, *fact).is_some();
        let mut places = word.locations.iter().flatten();
        places.any(|place| may_contain_files(place) || unread && is_denied(place))
    };
    let all_named = all.iter().all(|command| is_given_files(command));
    let finds = effects.contains(Effect::Opens) || !all_named || named.iter().any(finds_by);
    (files.deny.clone(), finds)
}

/// Whether a command, however its line is read, is given a file to work on, and opens nothing else whatever
/// stands in that (a source may include another file). Otherwise it begins in the folder in which it starts.
/// What may be no path says nothing (`git grep WORD`, though a file has that name), nor does what an option
/// reads besides (`grep -r -f LIST`). Who reads nothing and only starts another program is left to that one.
fn is_given_files(command: &LocatedCommand<'_>) -> bool {
    let is_one = |word: &PathArgument<'_>| {
        let used = word.path_use;
        let is_other =
            used.is_option_value || used.is_work_directory || used.is_name || used.guessed;
        let is_operand = used.is_certain && !is_other;
        // What is made is not read either; what is missing otherwise may be a pattern for names.
        let is_new = |kind| kind == FileKind::Missing && used.access == PathAccess::Write;
        let is_file = |fact: &PathFact| fact.kind == FileKind::File || is_new(fact.kind);
        is_operand && word.locations.iter().flatten().any(|(_, fact)| fact.is_some_and(is_file))
    };
    let reads = |reading: &ParsedArgv| reading.effects().contains(Effect::Reads);
    !command.nested.is_empty() && !command.line.parsed_argvs().any(reads)
        || command.line.parsed_argvs().all(|reading| reading.opens_named_only)
            && command.path_arguments_by_reading().all(|words| words.iter().any(is_one))
}

/// Whether a place may hold others.
fn may_contain_files((_, fact): &LocatedPath<'_>) -> bool {
    fact.is_none_or(|fact| !matches!(fact.kind, FileKind::File | FileKind::Missing))
}

/// What a program may change by its rule: for each reading of its line, what the rule of its innermost
/// subcommand says, or the nearest one above; none if one of the readings may change nothing.
fn writes_by_rule(
    policy: &Policy,
    program: &ProgramRule,
    line: &CommandLine<'_>,
) -> Option<Vec<Vec<PathPattern>>> {
    let mut writes = Vec::new();
    for reading in line.parsed_argvs() {
        match innermost(program, reading, |rule| rule.writes.as_ref()) {
            Some(patterns) if patterns.is_empty() => return None,
            Some(patterns) => writes.push(patterns.clone()),
            None if policy.sandbox.writes_by_default => {}
            None => return None,
        }
    }
    Some(writes)
}

/// What a program that no rule names may change: all that no invariant protects, where the policy's
/// level lets programs write, and nothing if all that the whole command does is looking.
fn writes_by_effects(
    policy: &Policy,
    exec: &ExecRule,
    whole: &CommandLine<'_>,
) -> Option<Vec<Vec<PathPattern>>> {
    let looks =
        Effects::of(Effect::Reads).with(Effect::Opens).with(Effect::Network).with(Effect::Sends);
    let may = exec.effects.is_some()
        && policy.sandbox.writes_by_default
        && !whole.effects().is_subset_of(looks);
    may.then(Vec::new)
}

fn innermost<'r, T>(
    program: &'r ProgramRule,
    reading: &ParsedArgv,
    pick: impl Fn(&'r CommandRule) -> Option<&'r T>,
) -> Option<&'r T> {
    let (mut rule, mut found) = (&program.command, pick(&program.command));
    for level in reading.levels.iter().skip(1) {
        let Some(inner) = rule.subcommand(&level.name) else { break };
        rule = inner;
        found = pick(rule).or(found);
    }
    found
}
