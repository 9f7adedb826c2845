//! `policy learn`: what recorded runs were refused or asked about, as a patch of the policy that a person
//! reads. The policy itself is written only where they say so.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use capsule_core::code::Code;
use capsule_core::escape;
use capsule_core::outcome::CodedError;
use capsule_report::Story;
use capsule_runtime::{Authored, Kept, Law, LearnError, Learned, Proposal, Step, real};
use capsule_store::Store;
use serde_json::{Value, json};
use similar::TextDiff;

use crate::args::{PolicyArg, PolicyLearn};
use crate::card::Rules;
use crate::command::policy::past::Calls;
use crate::command::policy::replace::{is_idle, replace, waiting};
use crate::command::{open_store, run_and_step};
use crate::failure::{Failure, usage};
use crate::screen::{CARE, GOOD, HINT, Screen};
use crate::surroundings::Surroundings;

pub(crate) fn run(
    args: &PolicyLearn,
    around: &Surroundings,
    screen: &Screen,
) -> Result<u8, Failure> {
    let lesson = Lesson::of(args, around, &open_store(around, screen)?)?;
    let Lesson { calls, law, named, learned, patch } = &lesson;
    if let (Some(output), Some(patch)) = (&args.output, patch) {
        write_new(&around.cwd.join(output), patch)?;
    }
    if !screen.json {
        show(learned, calls, screen);
        // As it is: whoever reads it is `patch` or `git apply`.
        if let (Some(patch), None) = (patch, &args.output) {
            screen.print(patch)?;
        }
    }
    let waiting = match args.write {
        true => lesson.write(around, screen)?,
        false => Vec::new(),
    };
    if screen.json {
        let is_written = args.write && patch.is_some();
        screen.say_json(&told(learned, law, calls, patch.as_deref(), is_written))?;
        return Ok(0);
    }
    let wrote = |what: &str| {
        screen.complain(&format!("{GOOD}✔ wrote{GOOD:#} {}", escape::line(what)));
    };
    match (patch, &args.output) {
        (None, _) => screen.complain("nothing is proposed"),
        (Some(_), None) if args.write => {
            wrote(&law.text.name);
            for label in waiting {
                let what = "waits under the policy as it was, and cannot be gone on with";
                screen.complain(&format!("{CARE}{label}{CARE:#} {what}"));
            }
        }
        (Some(_), None) => {}
        (Some(_), Some(output)) => {
            let shown = output.display().to_string();
            wrote(&shown);
            let next = format!("read it, then: patch {named} < {shown}");
            screen.complain(&format!("{HINT}next{HINT:#}: {}", escape::line(&next)));
        }
    }
    Ok(0)
}

/// Learns a rule from an earlier call for whoever is asked the same again; nothing is written.
pub(crate) fn rules(law: &Law, around: &Surroundings) -> Box<Rules> {
    let around = around.within(Path::new(&law.roots.workspace));
    let policy = law.file.as_ref().map(|file| file.to_string_lossy().into_owned());
    let profile = Some(law.policy.profile.name.clone());
    Box::new(move |call| {
        let (runs, policy, profile) = (vec![call.to_owned()], policy.clone(), profile.clone());
        let args = PolicyLearn { runs, policy, profile, output: None, write: false };
        let store = Store::open_read_only(&around.store).map_err(Failure::from);
        match store.and_then(|store| Lesson::of(&args, &around, &store)) {
            Ok(Lesson { patch: Some(patch), .. }) => patch,
            Ok(Lesson { learned, .. }) => {
                let why = learned.kept.first().map(|own| own.why.as_str());
                format!("no rule: {}", why.unwrap_or("the policy allows it by now"))
            }
            Err(_) => format!("no rule; `capsule policy learn {call}` says why"),
        }
    })
}

/// What was learned, for one policy file.
struct Lesson {
    calls: Calls,
    law: Law,
    /// The policy, as somebody named it.
    named: String,
    learned: Learned,
    /// The lines that differ; none where nothing is proposed.
    patch: Option<String>,
}

impl Lesson {
    fn of(args: &PolicyLearn, around: &Surroundings, store: &Store) -> Result<Self, Failure> {
        let Gathered { calls, judged_by, profiles } = gather(&args.runs, store)?;
        let named = match &args.policy {
            Some(policy) => policy.clone(),
            None => one_policy(&judged_by)?,
        };
        // As the runs were judged, where they all were so.
        let theirs = match profiles.as_slice() {
            [only] if args.policy.is_none() => Some(only.clone()),
            _ => None,
        };
        let profile = args.profile.clone().or(theirs);
        let named_so = PolicyArg { policy: Some(named.clone()), profile: profile.clone() };
        let law = around.law(&named_so, None)?;
        if law.file.is_none() {
            let hint = format!("write `extends: {named}` into a policy of your own, and name that");
            let message = format!("`{named}` comes with the program and is not patched");
            return Err(CodedError::new(Code::Usage, message).with_suggestion(hint).into());
        }
        let authored = Authored::of(&law, profile.as_deref())
            .map_err(|problems| Failure::Texts(law.text.clone(), problems))?;
        let learned = authored.learn_about(&calls.past, &calls.about);
        let learned = learned.map_err(|error| refused(error, &law))?;
        let name = law.file.as_deref().unwrap_or(Path::new(&named));
        let name = name.strip_prefix(real(&around.cwd)).ok().and_then(Path::to_str);
        let name = name.unwrap_or(&law.text.name);
        let patch = learned.text.as_deref().map(|text| patch(name, &law.text.text, text));
        Ok(Self { calls, law, named, learned, patch })
    }

    /// Makes the change in the policy file; gives the labels of runs that wait under the text as it was.
    fn write(&self, around: &Surroundings, screen: &Screen) -> Result<Vec<String>, Failure> {
        let (Some(text), Some(file)) = (&self.learned.text, &self.law.file) else {
            return Ok(Vec::new());
        };
        let store = open_store(around, screen)?;
        is_idle(&store, file)?;
        replace(file, &self.law.text.text, text)?;
        waiting(&store, file)
    }
}

/// The calls that are named, with the others of their runs, and what judged them.
#[derive(Default)]
struct Gathered {
    calls: Calls,
    /// The policies.
    judged_by: Vec<String>,
    /// The profiles.
    profiles: Vec<String>,
}

fn gather(named: &[String], store: &Store) -> Result<Gathered, Failure> {
    let Gathered { mut calls, mut judged_by, mut profiles } = Gathered::default();
    let mut seen: BTreeMap<String, Story> = BTreeMap::new();
    for own in named {
        let (run, call) = run_and_step(own);
        let id = store.find(run)?;
        let label = store.label(&id);
        let story = match seen.entry(id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let story = calls.add(store, new.key())?;
                new.insert(story)
            }
        };
        calls.ask_for(story, &label, call)?;
        let Some(opened) = story.header.as_ref().map(|header| &header.opened) else { continue };
        let add = |to: &mut Vec<String>, own: &String| {
            if !to.contains(own) {
                to.push(own.clone());
            }
        };
        add(&mut judged_by, &opened.policy.path);
        add(&mut profiles, &opened.profile);
    }
    Ok(Gathered { calls, judged_by, profiles })
}

fn one_policy(judged_by: &[String]) -> Result<String, Failure> {
    match judged_by {
        [policy] => Ok(policy.clone()),
        [] => Err(usage("name a policy with `--policy`")),
        several => {
            let several = several.join("`, `");
            let message = format!("the runs were judged by several policies: `{several}`");
            Err(CodedError::new(Code::Usage, message)
                .with_suggestion("name one with `--policy`")
                .into())
        }
    }
}

fn refused(error: LearnError, law: &Law) -> Failure {
    match error {
        LearnError::Wrong(problems) => Failure::Texts(law.text.clone(), problems),
        LearnError::Refused(why) => CodedError::new(Code::PolicyTest, why)
            .with_suggestion("add the rule yourself; `capsule policy explain` says what decides")
            .into(),
    }
}

/// The lines that differ, as `patch` and `git apply` read them.
fn patch(name: &str, before: &str, after: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    let (old, new) = (format!("a/{name}"), format!("b/{name}"));
    diff.unified_diff().context_radius(CONTEXT).header(&old, &new).to_string()
}

/// How many lines around a difference are shown.
const CONTEXT: usize = 3;

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
fn show(learned: &Learned, calls: &Calls, screen: &Screen) {
    let Learned { proposals, kept, allowed, changed, .. } = learned;
    let refused = changed.len() + kept.len() + allowed.len();
    let left_out = match calls.left_out {
        0 => String::new(),
        number => format!(" · {number} left out, since they hold masks or were not understood"),
    };
    screen.complain(&format!("calls      {} · {refused} refused{left_out}", calls.past.len()));
    if !allowed.is_empty() {
        let allowed = allowed.join(", ");
        screen.complain(&format!("already    allowed by the policy as it is now: {allowed}"));
    }
    for Proposal { rule, decision, calls, approved, steps } in proposals {
        let approved = match approved {
            0 => String::new(),
            number => format!(" · {number} of them approved by a person"),
        };
        let line = format!("{rule} {decision}  wished for by {}{approved}", listed(calls));
        screen.complain(&format!("{GOOD}+{GOOD:#} {}", escape::line(&line)));
        for (index, Step { opens, calls }) in steps.iter().enumerate() {
            let name = if index == 0 { "proposed" } else { "wider" };
            let line = format!("{}  changes {}", opens.join(" "), listed(calls));
            screen.complain(&format!("    {name:<9}{}", escape::line(&line)));
        }
    }
    for Kept { call, decision, why } in kept {
        let line = format!("{call} stays as it is ({}): {why}", decision.code);
        screen.complain(&format!("{CARE}-{CARE:#} {}", escape::line(&line)));
    }
}

/// A few calls by name, and the number of the others.
fn listed(calls: &[String]) -> String {
    let shown = calls.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match calls.len().saturating_sub(SHOWN) {
        0 if calls.is_empty() => "none".into(),
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// How many calls are named.
const SHOWN: usize = 5;

fn told(
    learned: &Learned,
    law: &Law,
    calls: &Calls,
    patch: Option<&str>,
    is_written: bool,
) -> Value {
    let Learned { proposals, kept, allowed, changed, text: _ } = learned;
    let step = |(index, own): (usize, &Step)| json!({ "opens": own.opens, "calls": own.calls, "proposed": index == 0 });
    let proposal = |own: &Proposal| {
        let steps: Vec<Value> = own.steps.iter().enumerate().map(step).collect();
        let Proposal { rule, decision, calls, approved, steps: _ } = own;
        json!({ "rule": rule, "decision": decision, "calls": calls, "approved": approved, "steps": steps })
    };
    let kept = kept
        .iter()
        .map(|own| json!({ "call": own.call, "why": own.why, "decision": own.decision }));
    let changed = changed
        .iter()
        .map(|own| json!({ "call": own.call, "before": own.before, "after": own.after }));
    json!({
        "schema": 1,
        "policy": law.policy.name,
        "file": law.text.name,
        "calls": calls.past.len(),
        "left_out": calls.left_out,
        "proposals": proposals.iter().map(proposal).collect::<Vec<_>>(),
        "kept": kept.collect::<Vec<_>>(),
        "allowed": allowed,
        "changed": changed.collect::<Vec<_>>(),
        "patch": patch,
        "written": is_written,
    })
}
