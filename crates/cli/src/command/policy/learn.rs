//! `policy learn`: what recorded runs were refused or asked about, as a patch of the policy that a person
//! reads. The policy itself is written only where they say so.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use capsule_authoring::{
    EditablePolicy, LearnError, LearnReport, ProposalStep, RefusedCall, RuleProposal,
};
use capsule_base::code::Code;
use capsule_base::escape;
use capsule_core::outcome::CodedError;
use capsule_report::RunView;
use capsule_runtime::{BoundPolicy, TOOL_SET, real_path};
use capsule_store::Store;
use serde_json::{Value, json};
use similar::TextDiff;

use crate::args::{PolicyArg, PolicyLearnArgs};
use crate::card::RulePatchLookup;
use crate::command::policy::recorded_calls::RecordedCalls;
use crate::command::policy::replace::{replace_policy, require_unused, waiting_runs};
use crate::command::{open_store, run_and_step};
use crate::context::CliContext;
use crate::failure::{Failure, usage_failure};
use crate::screen::{HINT, SUCCESS, Screen, WARNING};

pub(crate) fn run(
    args: &PolicyLearnArgs,
    ctx: &CliContext,
    screen: &Screen,
) -> Result<u8, Failure> {
    let lesson = LearnedPolicy::learn(args, ctx, &open_store(ctx, screen)?)?;
    let LearnedPolicy { calls, policy: bound, policy_name: named, learned, patch } = &lesson;
    if let (Some(output), Some(patch)) = (&args.output, patch) {
        write_new(&ctx.cwd.join(output), patch)?;
    }
    if !screen.json {
        show(learned, calls, screen);
        // As it is: whoever reads it is `patch` or `git apply`.
        if let (Some(patch), None) = (patch, &args.output) {
            screen.print(patch)?;
        }
    }
    let waiting = match args.write {
        true => lesson.write(ctx, screen)?,
        false => Vec::new(),
    };
    if screen.json {
        let is_written = args.write && patch.is_some();
        screen.print_json(&learn_json(learned, bound, calls, patch.as_deref(), is_written))?;
        return Ok(0);
    }
    let wrote = |what: &str| {
        screen.eprint(&format!("{SUCCESS}✔ wrote{SUCCESS:#} {}", escape::line(what)));
    };
    match (patch, &args.output) {
        (None, _) => screen.eprint("nothing is proposed"),
        (Some(_), None) if args.write => {
            wrote(&bound.text.name);
            for label in waiting {
                let what = "waits under the policy as it was, and cannot be gone on with";
                screen.eprint(&format!("{WARNING}{label}{WARNING:#} {what}"));
            }
        }
        (Some(_), None) => {}
        (Some(_), Some(output)) => {
            let shown = output.display().to_string();
            wrote(&shown);
            let next = format!("read it, then: patch {named} < {shown}");
            screen.eprint(&format!("{HINT}next{HINT:#}: {}", escape::line(&next)));
        }
    }
    Ok(0)
}

/// Learns a rule from an earlier call for whoever is asked the same again; nothing is written.
pub(crate) fn rule_patch_lookup(bound: &BoundPolicy, ctx: &CliContext) -> Box<RulePatchLookup> {
    let ctx = ctx.with_workspace(Path::new(&bound.roots.workspace));
    let policy = bound.file.as_ref().map(|file| file.to_string_lossy().into_owned());
    let profile = Some(bound.policy.profile.name.clone());
    Box::new(move |call| {
        let (runs, policy, profile) = (vec![call.to_owned()], policy.clone(), profile.clone());
        let args = PolicyLearnArgs { runs, policy, profile, output: None, write: false };
        let store = Store::open_read_only(&ctx.store).map_err(Failure::from);
        match store.and_then(|store| LearnedPolicy::learn(&args, &ctx, &store)) {
            Ok(LearnedPolicy { patch: Some(patch), .. }) => patch,
            Ok(LearnedPolicy { learned, .. }) => {
                let why = learned.still_refused.first().map(|call| call.reason.as_str());
                format!("no rule: {}", why.unwrap_or("the policy allows it by now"))
            }
            Err(_) => format!("no rule; `capsule policy learn {call}` says why"),
        }
    })
}

/// Whether a patch would be proposed of some calls, each named as `r-7Q3K:2`.
pub(crate) fn proposes(calls: Vec<String>, ctx: &CliContext) -> bool {
    let args =
        PolicyLearnArgs { runs: calls, policy: None, profile: None, output: None, write: false };
    let store = Store::open_read_only(&ctx.store).map_err(Failure::from);
    let learned = store.and_then(|store| LearnedPolicy::learn(&args, ctx, &store));
    learned.is_ok_and(|learned| learned.patch.is_some())
}

/// What was learned, for one policy file.
struct LearnedPolicy {
    calls: RecordedCalls,
    policy: BoundPolicy,
    /// The policy, as somebody named it.
    policy_name: String,
    learned: LearnReport,
    /// The lines that differ; none where nothing is proposed.
    patch: Option<String>,
}

impl LearnedPolicy {
    fn learn(args: &PolicyLearnArgs, ctx: &CliContext, store: &Store) -> Result<Self, Failure> {
        let GatheredCalls { calls, judged_by, profiles } = gather(&args.runs, store)?;
        let named = match &args.policy {
            Some(policy) => policy.clone(),
            None => require_one_policy(&judged_by)?,
        };
        // As the runs were judged, where they all were so.
        let theirs = match profiles.as_slice() {
            [only] if args.policy.is_none() => Some(only.clone()),
            _ => None,
        };
        let profile = args.profile.clone().or(theirs);
        let named_so = PolicyArg { policy: Some(named.clone()), profile: profile.clone() };
        let bound = ctx.load_policy(&named_so, None)?;
        if bound.file.is_none() {
            let hint = format!("write `extends: {named}` into a policy of your own, and name that");
            let message = format!("`{named}` comes with the program and is not patched");
            return Err(CodedError::new(Code::Usage, message).with_suggestion(hint).into());
        }
        let loaded = bound.loaded();
        let authored = EditablePolicy::parse(&loaded, &TOOL_SET, profile.as_deref())
            .map_err(|problems| Failure::InvalidText(bound.text.clone(), problems))?;
        let learned = authored.learn_about(&calls.calls, &calls.selected);
        let learned = learned.map_err(|error| learn_failure(error, &bound))?;
        let name = bound.file.as_deref().unwrap_or(Path::new(&named));
        let name = name.strip_prefix(real_path(&ctx.cwd)).ok().and_then(Path::to_str);
        let name = name.unwrap_or(&bound.text.name);
        let patch = learned.text.as_deref().map(|text| patch_text(name, &bound.text.text, text));
        Ok(Self { calls, policy: bound, policy_name: named, learned, patch })
    }

    /// Makes the change in the policy file; gives the labels of runs that wait under the text as it was.
    fn write(&self, ctx: &CliContext, screen: &Screen) -> Result<Vec<String>, Failure> {
        let (Some(text), Some(file)) = (&self.learned.text, &self.policy.file) else {
            return Ok(Vec::new());
        };
        let store = open_store(ctx, screen)?;
        require_unused(&store, file)?;
        replace_policy(file, &self.policy.text.text, text)?;
        waiting_runs(&store, file)
    }
}

/// The calls that are named, with the others of their runs, and what judged them.
#[derive(Default)]
struct GatheredCalls {
    calls: RecordedCalls,
    /// The policies.
    judged_by: Vec<String>,
    /// The profiles.
    profiles: Vec<String>,
}

fn gather(named: &[String], store: &Store) -> Result<GatheredCalls, Failure> {
    let GatheredCalls { mut calls, mut judged_by, mut profiles } = GatheredCalls::default();
    let mut seen: BTreeMap<String, RunView> = BTreeMap::new();
    for text in named {
        let (run, call) = run_and_step(text);
        let id = store.find(run)?;
        let label = store.label(&id);
        let view = match seen.entry(id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let view = calls.add(store, new.key())?;
                new.insert(view)
            }
        };
        calls.select(view, &label, call)?;
        let Some(opened) = view.header.as_ref().map(|header| &header.opened) else { continue };
        let add = |to: &mut Vec<String>, text: &String| {
            if !to.contains(text) {
                to.push(text.clone());
            }
        };
        add(&mut judged_by, &opened.policy.path);
        add(&mut profiles, &opened.profile);
    }
    Ok(GatheredCalls { calls, judged_by, profiles })
}

fn require_one_policy(judged_by: &[String]) -> Result<String, Failure> {
    match judged_by {
        [policy] => Ok(policy.clone()),
        [] => Err(usage_failure("name a policy with `--policy`")),
        several => {
            let several = several.join("`, `");
            let message = format!("the runs were judged by several policies: `{several}`");
            Err(CodedError::new(Code::Usage, message)
                .with_suggestion("name one with `--policy`")
                .into())
        }
    }
}

fn learn_failure(error: LearnError, bound: &BoundPolicy) -> Failure {
    match error {
        LearnError::InvalidPolicy(problems) => Failure::InvalidText(bound.text.clone(), problems),
        LearnError::Refused(why) => CodedError::new(Code::PolicyTest, why)
            .with_suggestion("add the rule yourself; `capsule policy explain` says what decides")
            .into(),
    }
}

/// The lines that differ, as `patch` and `git apply` read them.
fn patch_text(name: &str, before: &str, after: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    let (old, new) = (format!("a/{name}"), format!("b/{name}"));
    diff.unified_diff().context_radius(CONTEXT_LINES).header(&old, &new).to_string()
}

/// How many lines around a difference are shown.
const CONTEXT_LINES: usize = 3;

/// Writes a file that is not there yet: neither the policy nor anything else is ever replaced.
fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
        file.write_all(text.as_bytes())
    };
    write().map_err(|error: std::io::Error| {
        let message = format!("`{}` cannot be written: {error}", path.display());
        CodedError::new(Code::Usage, message).into()
    })
}

/// What is proposed, beside the patch itself.
fn show(learned: &LearnReport, calls: &RecordedCalls, screen: &Screen) {
    let LearnReport { proposals, still_refused: kept, allowed, changed, .. } = learned;
    let refused = changed.len() + kept.len() + allowed.len();
    let left_out = match calls.left_out {
        0 => String::new(),
        number => format!(" · {number} left out, since they hold masks or were not understood"),
    };
    screen.eprint(&format!(
        "calls      {} · {refused} refused or asked about{left_out}",
        calls.calls.len()
    ));
    if !allowed.is_empty() {
        let allowed = allowed.join(", ");
        screen.eprint(&format!("already    allowed by the policy as it is now: {allowed}"));
    }
    for RuleProposal { rule, decision, calls, approvals: approved, steps } in proposals {
        let approved = match approved {
            0 => String::new(),
            number => format!(" · {number} of them approved by a person"),
        };
        let line = format!("{rule} {decision}  wished for by {}{approved}", list_calls(calls));
        screen.eprint(&format!("{SUCCESS}+{SUCCESS:#} {}", escape::line(&line)));
        for (index, ProposalStep { allows: opens, calls }) in steps.iter().enumerate() {
            let name = if index == 0 { "proposed" } else { "wider" };
            let line = format!("{}  changes {}", opens.join(" "), list_calls(calls));
            screen.eprint(&format!("    {name:<9}{}", escape::line(&line)));
        }
    }
    for RefusedCall { call, decision, reason: why } in kept {
        let line = format!("{call} stays as it is ({}): {why}", decision.code);
        screen.eprint(&format!("{WARNING}-{WARNING:#} {}", escape::line(&line)));
    }
}

/// A few calls by name, and the number of the others.
fn list_calls(calls: &[String]) -> String {
    let shown = calls.iter().take(MAX_SHOWN_CALLS).cloned().collect::<Vec<_>>().join(", ");
    match calls.len().saturating_sub(MAX_SHOWN_CALLS) {
        0 if calls.is_empty() => "none".into(),
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// How many calls are named.
const MAX_SHOWN_CALLS: usize = 5;

fn learn_json(
    learned: &LearnReport,
    bound: &BoundPolicy,
    calls: &RecordedCalls,
    patch: Option<&str>,
    is_written: bool,
) -> Value {
    let LearnReport { proposals, still_refused: kept, allowed, changed, text: _ } = learned;
    let step = |(index, step): (usize, &ProposalStep)| json!({ "opens": step.allows, "calls": step.calls, "proposed": index == 0 });
    let proposal = |item: &RuleProposal| {
        let steps: Vec<Value> = item.steps.iter().enumerate().map(step).collect();
        let RuleProposal { rule, decision, calls, approvals: approved, steps: _ } = item;
        json!({ "rule": rule, "decision": decision, "calls": calls, "approved": approved, "steps": steps })
    };
    let kept = kept
        .iter()
        .map(|call| json!({ "call": call.call, "why": call.reason, "decision": call.decision }));
    let changed = changed
        .iter()
        .map(|decision| json!({ "call": decision.call, "before": decision.before, "after": decision.after }));
    json!({
        "schema": 1,
        "policy": bound.policy.name,
        "file": bound.text.name,
        "calls": calls.calls.len(),
        "left_out": calls.left_out,
        "proposals": proposals.iter().map(proposal).collect::<Vec<_>>(),
        "kept": kept.collect::<Vec<_>>(),
        "allowed": allowed,
        "changed": changed.collect::<Vec<_>>(),
        "patch": patch,
        "written": is_written,
    })
}
