//! `capsule undo`: brings back what stood in the workspace before a run, or one of its calls, changed it.
//! It is shown first, nothing that changed since is lost, and the undo is a run that is undone in turn.

use std::rc::Rc;

use capsule_core::change::{Change, FileState};
use capsule_core::escape;
use capsule_core::journal::RunKind;
use capsule_core::json;
use capsule_core::outcome::CodedError;
use capsule_core::policy::UNDO_TOOL;
use capsule_report::{change_count, change_json, change_lines, when};
use capsule_runtime::{Commands, Hush, Looked, Standing, Undoing};
use capsule_store::Store;
use serde_json::{Value, json};

use crate::args::{LayerArg, Undo};
use crate::command::call::{One, one_run_json};
use crate::command::{means, no_such_call, open_store, run_and_step, story};
use crate::failure::Failure;
use crate::screen::{BAD, CARE, GOOD, HINT, Screen};
use crate::signal;
use crate::surroundings::Surroundings;

/// What is said of a file that is too large for an undo of the undo.
const UNKEPT: &str = "  too large to be kept: it cannot be brought back";

pub(crate) fn run(args: &Undo, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let store = open_store(around, screen)?;
    let mut asked = Asked::of(&store, around, &args.run)?;
    let law = asked.undoing.law()?;
    let looked = asked.undoing.look(&law.workspace)?;
    let told = asked.told(&store, &looked)?;
    drop(store);
    let first = told.iter().find_map(Told::problem);
    let ready = looked.iter().filter(|own| is_ready(own)).count();
    if first.is_none() && ready == 0 && !args.dry_run {
        asked.undoing.clear_leftovers(&law.workspace)?;
    }
    if first.is_some() || ready == 0 || args.dry_run {
        return asked.preview(&told, first, args.dry_run, screen);
    }
    let mut call = json!({ "run": asked.undoing.run, "changes": asked.text() });
    if let Value::Object(map) = &mut call {
        map.extend(asked.undoing.call.map(|call| ("call".to_owned(), call.into())));
        let again = asked.undoing.again.join(" ");
        map.extend((!again.is_empty()).then(|| ("again".to_owned(), again.into())));
        map.extend(asked.undoing.made().then(|| ("made".to_owned(), "yes".into())));
    }
    let one = One {
        name: format!("undo {}", asked.shown),
        origin: RunKind::Undo,
        subject: Some(asked.undoing.run),
        tool: UNDO_TOOL,
        args: call,
        law: &law,
        layer: LayerArg { accept_layer: false },
        prompt: Box::new(capsule_runtime::Empty),
        commands: Commands::off(),
        sink: Rc::new(Hush),
        cancel: signal::cancel(),
        out: None,
        with: None,
    };
    let done = one.submit(around, Some(screen))?;
    let problem = done.delivered.problem.clone();
    if screen.json {
        let mut answer = asked.json(&told, false);
        if let (Value::Object(answer), Value::Object(own)) = (&mut answer, one_run_json(&done)) {
            answer.extend(own.into_iter().filter(|(name, _)| name != "staged"));
        }
        screen.say_json(&answer)?;
        return Ok(done.exit.status());
    }
    if let Some(problem) = problem {
        screen.complain(&format!("recorded as {0} · capsule show-run {0}:1", done.label));
        return Err(problem.into());
    }
    asked.show(&told, screen)?;
    let back = back(&looked, &done.label);
    screen.complain(&format!(
        "{GOOD}✔ undone{GOOD:#} {} · recorded as {} · {back}",
        asked.shown, done.label
    ));
    Ok(done.exit.status())
}

/// Whether `capsule undo` would bring something back of a run or a call.
pub(super) fn is_possible(around: &Surroundings, asked: &str) -> bool {
    let looked = || -> Result<bool, Failure> {
        let mut asked = Asked::of(&Store::open_read_only(&around.store)?, around, asked)?;
        let law = asked.undoing.law()?;
        Ok(asked.undoing.look(&law.workspace)?.iter().any(is_ready))
    };
    looked().unwrap_or(false)
}

/// What brings back what an undo took away, if something does.
fn back(looked: &[Looked], label: &str) -> String {
    let is_unkept = |own: &Looked| matches!(own.standing, Standing::Ready { kept: false, .. });
    match looked.iter().any(is_unkept) {
        true => "which cannot be taken back".to_owned(),
        false => format!("capsule undo {label} takes it back"),
    }
}

/// What is to be undone, and how it is called.
struct Asked {
    undoing: Undoing,
    /// `RUN` or `RUN:STEP`, by the run's label.
    shown: String,
}

/// A path, and what is told of it.
struct Told<'l> {
    looked: &'l Looked,
    /// The later call that left what stands there now.
    by: Option<(String, u64)>,
}

impl Told<'_> {
    /// Why nothing is undone because of this path; and who changed it, where that is known.
    fn problem(&self) -> Option<CodedError> {
        let problem = self.looked.problem()?;
        let Some((run, call)) = &self.by else { return Some(problem) };
        let path = &self.looked.change.path;
        let message = format!("`{path}` was changed since by {run}:{call}");
        let first = format!("undo that first: `capsule undo {run}:{call}`");
        Some(CodedError { message, ..problem }.with_suggestion(first))
    }
}

fn is_ready(looked: &Looked) -> bool {
    matches!(looked.standing, Standing::Ready { .. })
}

impl Asked {
    fn of(store: &Store, around: &Surroundings, text: &str) -> Result<Self, Failure> {
        let (run, step) = run_and_step(text);
        let id = store.find(run)?;
        let mut shown = store.label(&id);
        let call = match step {
            None => None,
            Some(step) => {
                shown = format!("{shown}:{}", escape::line(step));
                let story = story(store, &id)?;
                let call = story.named(step).ok_or_else(|| no_such_call(run, step))?;
                Some(call.call)
            }
        };
        let undoing = Undoing::read(store, &around.store, &id, call)?;
        means(around, (run, &shown), undoing.workspace())?;
        Ok(Self { undoing, shown })
    }

    /// The changes as they go into the record.
    fn text(&self) -> String {
        String::from_utf8_lossy(&json::canonical(&self.undoing.changes)).into_owned()
    }

    fn told<'l>(&self, store: &Store, looked: &'l [Looked]) -> Result<Vec<Told<'l>>, Failure> {
        let told =
            looked.iter().map(|looked| Ok(Told { looked, by: self.undoing.by(store, looked)? }));
        told.collect()
    }

    /// Shows what would be undone, or why nothing is.
    fn preview(
        &self,
        told: &[Told<'_>],
        problem: Option<CodedError>,
        dry_run: bool,
        screen: &Screen,
    ) -> Result<u8, Failure> {
        if screen.json {
            let mut answer = self.json(told, dry_run);
            if let (Value::Object(map), Some(problem)) = (&mut answer, &problem) {
                map.insert("code".into(), json!(problem.code));
                map.insert("reason".into(), json!(problem.message));
                map.insert("suggestion".into(), json!(problem.suggestion));
            }
            screen.say_json(&answer)?;
            return Ok(problem.map_or(0, |problem| problem.code.exit().status()));
        }
        self.show(told, screen)?;
        if let Some(problem) = problem {
            screen.complain(&format!("nothing of {} was undone", self.shown));
            return Err(problem.into());
        }
        let ready = told.iter().map(|own| own.looked).filter(|own| is_ready(own));
        match change_count(ready.map(|own| &own.change)).as_str() {
            "0 changes" => screen.say("nothing is left to undo")?,
            count => screen.complain(&format!(
                "{HINT}dry run{HINT:#}: {count}, and nothing was changed · capsule undo {}",
                self.shown
            )),
        }
        Ok(0)
    }

    fn show(&self, told: &[Told<'_>], screen: &Screen) -> Result<(), Failure> {
        let workspace = escape::line(self.undoing.workspace()).into_owned();
        screen.say(&format!("undo {} in {workspace}", self.shown))?;
        for own in told {
            screen.say_all(&lines(own))?;
        }
        for (call, why) in &self.undoing.uncovered {
            let why = escape::line(why);
            screen.say(&format!("{CARE}not covered{CARE:#}: call {call}: {why}"))?;
        }
        Ok(())
    }

    fn json(&self, told: &[Told<'_>], dry_run: bool) -> Value {
        let uncovered: Vec<Value> = self
            .undoing
            .uncovered
            .iter()
            .map(|(call, why)| json!({ "call": call, "why": why }))
            .collect();
        json!({
            "schema": 1,
            "subject": self.undoing.run,
            "call": self.undoing.call,
            "workspace": self.undoing.workspace(),
            "dry_run": dry_run,
            "run": null,
            "changes": told.iter().map(path_json).collect::<Vec<_>>(),
            "uncovered": uncovered,
        })
    }
}

const fn word(standing: &Standing) -> &'static str {
    match standing {
        Standing::Ready { .. } => "ready",
        Standing::Before => "as-before",
        Standing::Stays => "stays",
        Standing::Changed { .. } => "changed-since",
        Standing::Gone => "gone",
        Standing::Damaged => "damaged",
    }
}

fn path_json(told: &Told<'_>) -> Value {
    let Told { looked: Looked { change, standing }, by } = told;
    let mut own = change_json(change, None);
    let (lines, at) = match standing {
        Standing::Ready { lines, .. } => (*lines, None),
        Standing::Changed { at, .. } => (None, *at),
        _ => (None, None),
    };
    if let Value::Object(map) = &mut own {
        map.insert("standing".into(), word(standing).into());
        let kept = !matches!(standing, Standing::Ready { kept: false, .. });
        map.insert("kept".into(), kept.into());
        map.insert("added".into(), json!(lines.map(|own| own.0)));
        map.insert("removed".into(), json!(lines.map(|own| own.1)));
        map.insert("changed_at".into(), json!(at));
        map.insert(
            "by".into(),
            json!(by.as_ref().map(|(run, call)| json!({ "run": run, "call": call }))),
        );
    }
    own
}

fn lines(told: &Told<'_>) -> Vec<String> {
    let Told { looked: Looked { change, standing }, by } = told;
    let path = escape::line(&change.path).into_owned();
    let slash = match change.before.as_ref().or(change.after.as_ref()) {
        Some(FileState::Directory { .. }) => "/",
        _ => "",
    };
    let bad = |why: &str| vec![format!("{BAD}✖ {path}{slash}{BAD:#}  {why}")];
    match standing {
        Standing::Ready { lines, kept } => {
            let counted = lines.map(|(added, removed)| format!("  +{added} −{removed}"));
            let kept = if *kept { "" } else { UNKEPT };
            let counted = counted.unwrap_or_default() + kept;
            change_lines([change]).map(|line| format!("{line}{counted}")).collect()
        }
        Standing::Before => vec![format!("· {path}{slash}  is as it was")],
        Standing::Stays => vec![format!("· {path}{slash}  stays: something else is in it")],
        Standing::Changed { at, .. } => match (by, at) {
            (Some((run, call)), _) => bad(&format!("was changed since by {run}:{call}")),
            (None, Some(at)) => {
                let micros = u64::try_from(*at).unwrap_or(0).saturating_mul(1_000_000);
                bad(&format!(
                    "was changed since, last at {}, by nobody in this store",
                    when(micros)
                ))
            }
            (None, None) => bad(&format!("is {} by now", gone(change))),
        },
        Standing::Gone => bad("what stood there is not kept"),
        Standing::Damaged => bad("what was kept of it is something else by now"),
    }
}

/// What became of a path where nothing is to be found of what the call left.
const fn gone(change: &Change) -> &'static str {
    match change.before {
        Some(_) => "gone",
        None => "without its folder",
    }
}
