//! What a command may see and change of the workspace.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::action::{FileKind, PathFact};
use crate::capability::{Capabilities, Capability};
use crate::confinement::WorkspaceAccess;
use crate::policy::bounds::Scope;
use crate::policy::commands::{CommandRule, ExecRule, ProgramRule};
use crate::policy::decide::command::{Command, Named, Word};
use crate::policy::decide::exec::{anew, program_rule, subcommand};
use crate::policy::decide::files::denied_there;
use crate::policy::model::{Constraint, Policy, ToolRule};
use crate::policy::patterns::PathPattern;
use crate::programs::{CommandLine, Effect, Effects, PathUse, Reading, Use};
use crate::tool::ToolName;

/// What a command may see and change, and what it needs.
#[derive(Default)]
pub(super) struct Scopes {
    pub(super) reads: Option<Scope>,
    pub(super) writes: Option<Scope>,
    /// What it needs besides what its words show: what the rules of its programs say, each of its
    /// innermost subcommand or of the nearest one above, in every way in which it can be read.
    pub(super) needs: Capabilities,
}

/// What a command may see and change. Its walls are those of all command lines that stand in it, so
/// each of them bounds what it sees, and it may change only what all of them may.
pub(super) fn reach(policy: &Arc<Policy>, rule: &ToolRule, own: &Command<'_>) -> Scopes {
    let Constraint::Exec(exec) = &rule.constraint else { return Scopes::default() };
    let mut reads = Vec::new();
    let mut needs = Capabilities::NONE;
    let mut writes = Some(Vec::new());
    let (root, (closed, finds)) = (own.line, closed(policy, own));
    for own in own.all() {
        let program = program_rule(exec, own.line.argv);
        let anew = program.and_then(|program| anew(program, own.line));
        let line = anew.as_ref().unwrap_or(own.line);
        let seen = |program| {
            line.readings()
                .filter_map(move |own| innermost(program, own, |rule| rule.reads.as_ref()))
        };
        reads.extend(program.into_iter().flat_map(seen).cloned());
        let named = |program| {
            line.readings()
                .filter_map(move |own| innermost(program, own, |rule| rule.needs.as_ref()))
        };
        needs = program.into_iter().flat_map(named).copied().fold(needs, Capabilities::union);
        let changed = match program {
            Some(program) => changed_by_rule(policy, program, line),
            None => changed_by_effects(policy, exec, root),
        };
        writes = writes.zip(changed).map(|(all, own): (Vec<_>, _)| [all, own].concat());
    }
    let bounded = !reads.is_empty() || !closed.is_empty();
    let reads = bounded.then(|| Scope::new(Arc::clone(policy), reads).closing(closed, finds));
    let writes = writes.filter(|_| policy.sandbox.workspace != WorkspaceAccess::ReadOnly);
    let writes = writes.map(|writes| Scope::new(Arc::clone(policy), writes));
    // Whether nothing confines it is the machine's word.
    let needs = needs.iter().filter(|own| *own != Capability::ProcUnconfined).collect();
    Scopes { reads, writes, needs }
}

/// What is hidden from a command because its words may not name it either: what `fs.read` denies; and
/// whether the command may come upon it, because it is given a folder, or nothing, or a list. So it is for
/// one that does nothing but what its words say: what a policy closes to `fs.read` a build may need
/// (`target/**`), and whoever runs the code of others reads what the walls show. What is only deleted is not
/// read; but who does no more than that does not open it to the others of a pipeline either.
fn closed(policy: &Policy, own: &Command<'_>) -> (Vec<PathPattern>, bool) {
    let files = policy.files(&ToolName::asked("fs.read"));
    let said = [Effect::Opens, Effect::Writes, Effect::Deletes, Effect::Network];
    let said = said.into_iter().fold(Effects::of(Effect::Reads), Effects::with);
    let does = own.line.effects();
    let Some(files) = files.filter(|own| !own.deny.is_empty() && does.within(said)) else {
        return (Vec::new(), false);
    };
    if does.within(Effects::of(Effect::Deletes)) {
        return (files.deny.clone(), false);
    }
    let all = own.all();
    let words = all.iter().flat_map(|own| own.words());
    let named: Vec<_> = words.filter(|word| !word.used.is_folder && !word.used.is_name).collect();
    let finds_by = |word: &&Word<'_>| {
        // What is moved is read under its new name, and was judged as what is changed alone.
        let unread = !matches!(word.used.usage, Use::Read | Use::ReadTree);
        let is_denied = |(path, fact): &Named<'_>| denied_there(files, path, *fact).is_some();
        let mut places = word.places.iter().flatten();
        places.any(|place| is_walked(place) || unread && is_denied(place))
    };
    let all_named = all.iter().all(|own| names_its_files(own));
    let finds = does.has(Effect::Opens) || !all_named || named.iter().any(finds_by);
    (files.deny.clone(), finds)
}

/// Whether a command, however its line is read, is given a file to work on, and opens nothing else whatever
/// stands in that (a source may include another file). Otherwise it begins in the folder in which it starts.
/// What may be no path says nothing (`git grep WORD`, though a file has that name), nor does what an option
/// reads besides (`grep -r -f LIST`). Who reads nothing and only starts another program is left to that one.
fn names_its_files(own: &Command<'_>) -> bool {
    let is_one = |word: &Word<'_>| {
        let PathUse { sure, of_option, is_folder, is_name, guessed, usage, .. } = *word.used;
        let is_operand = sure && !(of_option || is_folder || is_name || guessed);
        // What is made is not read either; what is missing otherwise may be a pattern for names.
        let made = |kind| kind == FileKind::Missing && usage == Use::Write;
        let is_file = |fact: &PathFact| fact.kind == FileKind::File || made(fact.kind);
        is_operand && word.places.iter().flatten().any(|(_, fact)| fact.is_some_and(is_file))
    };
    let reads = |reading: &Reading| reading.effects().has(Effect::Reads);
    !own.inner.is_empty() && !own.line.readings().any(reads)
        || own.line.readings().all(|reading| reading.is_plain)
            && own.readings().all(|words| words.iter().any(is_one))
}

/// Whether a place may hold others.
fn is_walked((_, fact): &Named<'_>) -> bool {
    fact.is_none_or(|fact| !matches!(fact.kind, FileKind::File | FileKind::Missing))
}

/// What a program may change by its rule: for each reading of its line, what the rule of its innermost
/// subcommand says, or the nearest one above; none if one of the readings may change nothing.
fn changed_by_rule(
    policy: &Policy,
    program: &ProgramRule,
    line: &CommandLine<'_>,
) -> Option<Vec<Vec<PathPattern>>> {
    let mut writes = Vec::new();
    for reading in line.readings() {
        match innermost(program, reading, |rule| rule.writes.as_ref()) {
            Some(patterns) if patterns.is_empty() => return None,
            Some(patterns) => writes.push(patterns.clone()),
            None if policy.sandbox.writes => {}
            None => return None,
        }
    }
    Some(writes)
}

/// What a program that no rule names may change: all that no invariant protects, where the policy's
/// level lets programs write, and nothing if all that the whole command does is looking.
fn changed_by_effects(
    policy: &Policy,
    exec: &ExecRule,
    whole: &CommandLine<'_>,
) -> Option<Vec<Vec<PathPattern>>> {
    let looks = Effects::of(Effect::Reads).with(Effect::Opens).with(Effect::Network);
    let may = exec.effects.is_some() && policy.sandbox.writes && !whole.effects().within(looks);
    may.then(Vec::new)
}

fn innermost<'r, T>(
    program: &'r ProgramRule,
    reading: &Reading,
    pick: impl Fn(&'r CommandRule) -> Option<&'r T>,
) -> Option<&'r T> {
    let (mut rule, mut found) = (&program.command, pick(&program.command));
    for level in reading.levels.iter().skip(1) {
        let Some(inner) = subcommand(rule, &level.name) else { break };
        rule = inner;
        found = pick(rule).or(found);
    }
    found
}
