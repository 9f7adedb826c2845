//! P5: the journal: calls a second, each proposed, decided, started and finished with its payloads,
//! against a bare loop over SQLite with one commit a call.
//!
//! The calls go through the evidence of `core`, which is the only way to the journal; the tool does
//! nothing. So the judging is in our number as well.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use capsule_base::digest::Digest;
use capsule_core::action::{Action, Facts, PathTarget, WriteMode};
use capsule_core::approval::NoApprover;
use capsule_core::call::ToolCall;
use capsule_core::lifecycle::{self, Judged, Operation, Permit, PreflightReport, RunningCall};
use capsule_core::outcome::{Outcome, Output};
use capsule_core::policy::{PayloadRetention, Policy, Usage};
use capsule_redact::Redactor;
use capsule_store::{RunWriter, Store};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::Answer;
use crate::law;
use crate::options::Options;
use crate::pairs::{Pairs, seconds};
use crate::peer;
use crate::row::{Row, Target};

const POLICY: &str = "version: 1
name: journal
tools:
  fs.write: { decision: allow, paths: [\"**\"] }
  fs.read: { decision: allow, paths: [\"**\"] }
";

const PATH: &str = "docs/notes.md";
/// What a call carries in and out: a short note.
const TEXT: &str = "A note of some length, as a call in a plan would write it into a file. ";

/// How long the disk is given to come to rest.
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) fn measure(options: &Options) -> Answer<Vec<Row>> {
    let files = options.fresh("p5")?;
    let calls = options.pick(500, 100);
    let mut rows = Vec::new();
    for effects in [true, false] {
        let word = if effects { "effects" } else { "looks" };
        let mut ours = Ours::new(&files.join(format!("{word}.db")), effects)?;
        let theirs = Theirs::new(&files.join(format!("{word}-reference.db")), effects)?;
        let pairs = Pairs::take(
            options.pick(31, 7),
            PAUSE,
            || seconds(|| (0..calls).try_for_each(|_| ours.call())),
            || seconds(|| (0..calls).try_for_each(|_| theirs.call())),
        )?;
        let (kind, reference) = match effects {
            true => ("with an effect", "SQLite, 1 durable commit a call"),
            false => ("without effects", "SQLite, 1 commit (NORMAL) a call"),
        };
        let what = format!("journal, {calls} calls {kind}");
        // The target is about calls with effects; the other row shows what the record itself costs.
        let target = if effects { Target::SpeedAtLeast(0.9) } else { Target::None };
        rows.push(Row::new("P5", what, reference, pairs, target));
    }
    Ok(rows)
}

/// The journal, and what a call needs besides it.
struct Ours {
    journal: RunWriter,
    policy: Arc<Policy>,
    redactor: Redactor,
    usage: Usage,
    effects: bool,
    calls: u64,
}

impl Ours {
    fn new(place: &Path, effects: bool) -> Answer<Self> {
        let store = Store::open(place).map_err(|error| error.to_string())?;
        let clock = || {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
        };
        let journal = store
            .begin(Box::new(clock), PayloadRetention::Full)
            .map_err(|error| error.to_string())?;
        let (policy, redactor) = (Arc::new(law::policy(POLICY)?), Redactor::builtin());
        Ok(Self { journal, policy, redactor, usage: Usage::default(), effects, calls: 0 })
    }

    fn call(&mut self) -> Answer<()> {
        self.calls += 1;
        let failed = |error: capsule_store::StoreError| error.to_string();
        let understanding = understanding(self.effects)?;
        let Self { journal, policy, redactor, usage, .. } = self;
        let (tool, args) = asked(self.effects);
        let call = ToolCall::by_person(tool, args);
        let proposed =
            lifecycle::propose(call.clone(), self.calls, redactor, journal).map_err(failed)?;
        let judged = proposed.into_preflight(understanding).judge(policy, usage, redactor, journal);
        let cleared = match judged.map_err(failed)? {
            Judged::Allowed(allowed) => allowed.clear(),
            Judged::NeedsApproval(_) => return Err("the call is asked".to_owned()),
            Judged::Denied(denied) => return Err(denied.decision().reason.clone()),
        };
        let running =
            RunningCall { call: &call, policy: policy.digest(), approver: &mut NoApprover };
        lifecycle::run(cleared, running, redactor, journal, |permit, hands| hands.run(permit))
            .map(|_| ())
            .map_err(failed)
    }
}

fn content() -> String {
    TEXT.repeat(3)
}

fn asked(effects: bool) -> (&'static str, Value) {
    match effects {
        true => ("fs.write", json!({ "path": PATH, "content": content() })),
        false => ("fs.read", json!({ "path": PATH })),
    }
}

fn understanding(effects: bool) -> Answer<PreflightReport> {
    let target = PathTarget::parse(PATH);
    let content = content();
    let action = match effects {
        true => Action::Write {
            path: target,
            mode: WriteMode::Overwrite,
            bytes: u64::try_from(content.len()).unwrap_or(u64::MAX),
            content: Digest::of(content.as_bytes()),
        },
        false => Action::Read { path: target, offset: 0, limit: None },
    };
    let facts = Facts { paths: vec![law::plain_file(PATH)?], ..Facts::default() };
    Ok(PreflightReport { action, facts, operation: Box::new(Idle) })
}

/// Hands that do nothing.
struct Idle;

impl Operation for Idle {
    fn run(self: Box<Self>, _: Permit<'_>) -> Outcome {
        Outcome::done(Output::default().with("path", PATH).with("text", content()))
    }
}

/// The bare loop.
struct Theirs {
    sql: Connection,
    args: String,
    output: String,
}

impl Theirs {
    fn new(place: &Path, durable: bool) -> Answer<Self> {
        let level = if durable { "FULL" } else { "NORMAL" };
        let sql = peer::database(place, level, "args TEXT, output TEXT")?;
        let (_, args) = asked(durable);
        let output = json!({ "path": PATH, "text": content() });
        Ok(Self { sql, args: args.to_string(), output: output.to_string() })
    }

    fn call(&self) -> Answer<()> {
        let insert = "INSERT INTO calls (args, output) VALUES (?1, ?2)";
        let written = self
            .sql
            .prepare_cached(insert)
            .and_then(|mut own| own.execute([&self.args, &self.output]));
        written.map(|_| ()).map_err(|error| format!("the reference cannot commit: {error}"))
    }
}
