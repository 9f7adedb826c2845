//! What a person is asked about before it is changed: files from which programs of the host may take orders,
//! though no invariant protects them.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::action::Action;
use crate::capability::Capabilities;
use crate::change::Change;
use crate::confinement::WorkspaceAccess;
use crate::decision::Verdict;
use crate::policy::decide::check::{Finding, PolicyInput, reason_or, verdict_text};
use crate::policy::decide::files::{self, child_placeholder};
use crate::policy::model::{HardDenyRule, Policy};
use crate::policy::restrictions::{Invariants, PathScope};
use crate::tool::ToolName;
use capsule_base::path::WorkspacePath;

/// The tools whose rules may name a path that is asked about.
const WRITERS: [&str; 2] = ["fs.write", "fs.edit"];

/// What decides whether a rule asks about a path.
struct Ground<'g> {
    /// Whether only rules count that are about what is new, or only the others.
    only: Option<bool>,
    /// Whether a path is not there yet.
    is_new: &'g dyn Fn(&WorkspacePath) -> bool,
    /// Whether the rule of the call spells a path, which is an answer.
    is_spelled: &'g dyn Fn(&WorkspacePath) -> bool,
}

impl Policy {
    /// The rule that asks about a change of a path, and the topmost path that it is about.
    fn asked(
        &self,
        (path, names): (&WorkspacePath, &[WorkspacePath]),
        power: Capabilities,
        ground: &Ground<'_>,
    ) -> Option<(&HardDenyRule, WorkspacePath)> {
        let counts = |rule: &&HardDenyRule| {
            rule.capabilities.intersects(power) && ground.only.is_none_or(|new| rule.new == new)
        };
        // What is new is so by its own name: another one that leads there stands already.
        let named =
            |rule: &HardDenyRule| core::iter::once(path).chain(if rule.new { &[] } else { names });
        let rules = self.base_questions.iter().filter(counts);
        rules.flat_map(|rule| named(rule).map(move |name| (rule, name))).find_map(|(rule, name)| {
            let top = rule.topmost(name)?;
            let below = name.components().count() - top.components().count();
            let place = path.ancestors().nth(below).unwrap_or_default();
            let is_known = rule.new && !(ground.is_new)(&place);
            let is_spelled = !place.is_root() && (ground.is_spelled)(&place);
            (!is_known && !is_spelled).then_some((rule, place))
        })
    }

    /// Whether the rule of a tool that writes files spells a path.
    fn is_spelled_for_tools(&self, path: &WorkspacePath) -> bool {
        let rules = WRITERS.iter().filter_map(|tool| self.file_rule(&ToolName::unchecked(tool)));
        rules.flat_map(|rule| &rule.allow).any(|pattern| pattern.spells(path))
    }
}

/// What a person is asked before a tool changes a file of the workspace itself. What is staged is asked about
/// when it is applied.
pub(super) fn check(policy: &Policy, case: &PolicyInput<'_>) -> Option<Finding> {
    let (Action::Write { path, .. } | Action::Edit { path, .. } | Action::Delete { path, .. }) =
        case.action
    else {
        return None;
    };
    if policy.sandbox_in_force().workspace == WorkspaceAccess::Staged && !case.facts.by_host {
        return None;
    }
    let (path, power) = (path.inside()?, case.action.capabilities());
    let fact = case.facts.path_fact(path);
    // What was not looked at may be new.
    let is_new = |place: &WorkspacePath| {
        let absent = fact.map(|fact| fact.absent.as_ref());
        absent
            .is_none_or(|absent| absent.is_some_and(|path| place.ancestors().any(|up| up == *path)))
    };
    let is_spelled = |place: &WorkspacePath| policy.is_spelled_for_tools(place);
    let ground = Ground { only: None, is_new: &is_new, is_spelled: &is_spelled };
    let names = fact.map_or(&[][..], |fact| &fact.protected_names);
    let (rule, place) = policy.asked((files::resolved_path(case, path), names), power, &ground)?;
    let asked = Finding::with_verdict(Verdict::Ask, format!("`{place}`: {}", why(rule)));
    Some(asked.under_rule(rule.id.clone(), &rule.source).with_suggestion(rule.suggest.clone()))
}

fn why(rule: &HardDenyRule) -> String {
    reason_or(&rule.because, || verdict_text(Verdict::Ask, &format!("the rule `{}`", rule.id)))
}

impl Invariants {
    /// What a person is asked before a staged change is applied, if anything. `names` are the other names of
    /// its path, `scope` is what the rule of a command opens, and `is_new` says whether a path was not there
    /// before the run.
    #[must_use]
    pub fn question(
        &self,
        change: &Change,
        names: &[WorkspacePath],
        scope: Option<&PathScope>,
        is_new: &dyn Fn(&WorkspacePath) -> bool,
    ) -> Option<String> {
        let path = WorkspacePath::from_fs_name(&change.path)?;
        let power = Capabilities::of(change.kind().capability());
        let policy = self.policy();
        let is_spelled = |place: &WorkspacePath| match scope {
            Some(scope) => scope.spells(place),
            None => policy.is_spelled_for_tools(place),
        };
        let ground = Ground { only: None, is_new, is_spelled: &is_spelled };
        let (rule, place) = policy.asked((&path, names), power, &ground)?;
        Some(format!("`{place}`: {}", why(rule)))
    }
}

impl PathScope {
    /// Whether a person would have to be asked before a path is changed, or before it is made, if it is `new`:
    /// a command that changes the workspace itself cannot wait for an answer.
    #[must_use]
    pub fn asks(&self, path: &WorkspacePath, names: &[WorkspacePath], new: bool) -> bool {
        let is_new = |place: &WorkspacePath| place == path;
        let is_spelled = |place: &WorkspacePath| self.spells(place);
        let ground = Ground { only: Some(new), is_new: &is_new, is_spelled: &is_spelled };
        self.policy().asked((path, names), Capabilities::CHANGES, &ground).is_some()
    }

    /// Whether a person would have to be asked before anything in a folder is changed.
    #[must_use]
    pub fn asks_beneath(&self, folder: &WorkspacePath, names: &[WorkspacePath]) -> bool {
        let names: Vec<WorkspacePath> = names.iter().map(child_placeholder).collect();
        self.asks(&child_placeholder(folder), &names, false)
    }
}
