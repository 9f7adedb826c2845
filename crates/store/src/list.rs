//! Lists of runs, and whether a run is at its end.

use std::collections::BTreeMap;

use capsule_base::code::Code;
use capsule_base::exit::Exit;
use capsule_core::journal::RunKind;
use rusqlite::{OptionalExtension, Row, params};

use crate::error::StoreError;
use crate::lock::RunLock;
use crate::open::Store;

/// Whether a run is at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It ended and was sealed.
    Sealed(Exit),
    /// It goes on in some process.
    Running,
    /// It is a session that no process works in now.
    Idle,
    /// Its process ended before it did.
    Crashed,
}

/// A run in a list.
#[derive(Clone, Debug)]
pub struct RunSummary {
    /// Its full id.
    pub run: String,
    /// Its label.
    pub label: String,
    /// What the plan or call is called.
    pub name: String,
    /// What started it.
    pub kind: String,
    /// The full id of the run that it is about.
    pub subject: Option<String>,
    /// When it began, in microseconds since 1970.
    pub started: u64,
    /// When it ended.
    pub ended: Option<u64>,
    /// Whether it is at its end.
    pub state: RunState,
    /// How many calls were proposed.
    pub calls: u64,
    /// How many of them were denied.
    pub denied: u64,
    /// How many of them needed an approval that nobody was there to give.
    pub asked: u64,
    /// How many of them were started and have no end.
    pub unknown: u64,
    /// Whether it was suspended for an answer.
    pub suspended: bool,
    /// The arguments of its first call, as JSON, where it is named by that and they are kept and not long.
    pub arguments: Option<String>,
}

/// Which runs to list.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    /// Begun at or after this time, in microseconds since 1970.
    pub since: Option<u64>,
    /// With a denied call.
    pub denied: bool,
    /// With a call to this tool.
    pub tool: Option<String>,
    /// With a call whose arguments name this path, or a command that changed it.
    pub touched: Option<String>,
}

/// How many runs are read at once. Each page shows one moment, and no more of a list is in memory.
const PAGE: i64 = 200;

/// The runs that began before a leaf, the newest first.
const OPENED_SQL: &str = "
SELECT run, json ->> '$.body.label', json ->> '$.body.name', json ->> '$.body.origin',
       json ->> '$.at', json ->> '$.body.subject', leaf
FROM (SELECT run, leaf, CAST(bytes AS TEXT) AS json FROM events
      WHERE kind = 'run.opened' AND leaf < ?1 ORDER BY leaf DESC LIMIT ?2)
ORDER BY leaf DESC";

/// What counts of each event of a run. The views join the events of a call, which takes them all for
/// each; here each is looked at once, and who reads them in their order knows which belong together.
const EVENTS_SQL: &str = "
SELECT kind, json ->> '$.body.call',
       json ->> '$.body.code',
       CASE kind WHEN 'call.proposed' THEN json ->> '$.body.tool'
                 WHEN 'call.decided' THEN json ->> '$.body.decision'
                 WHEN 'call.finished' THEN json ->> '$.body.status'
                 WHEN 'run.sealed' THEN json ->> '$.body.exit' END,
       json ->> '$.at', json ->> '$.body.suspended' IS NOT NULL
FROM (SELECT kind, seq, CAST(bytes AS TEXT) AS json FROM events WHERE run = ?1 AND kind IN
        ('call.proposed', 'call.decided', 'call.started', 'call.finished', 'run.sealed'))
ORDER BY seq";

const TOUCHED_SQL: &str = "
SELECT EXISTS (SELECT 1 FROM tool_calls AS call
        WHERE call.run_id = ?1 AND json_extract(call.args, '$.path') = ?2)
    OR EXISTS (SELECT 1 FROM events AS ended
        JOIN payloads AS made ON made.id BETWEEN ended.leaf * 16 AND ended.leaf * 16 + 15
            AND made.class = 'changes'
        JOIN json_each(CAST(made.bytes AS TEXT)) AS change
        WHERE ended.run = ?1 AND ended.kind = 'call.finished'
          AND change.value ->> '$.path' = ?2)";

/// The arguments of a run's first call, which are the first payload of its proposal; not those that are long.
const FIRST_ARGS: &str = "
SELECT CAST(bytes AS TEXT) FROM payloads
WHERE length(bytes) < 100000 AND id = 16 * (SELECT min(leaf) FROM events WHERE run = ?1 AND kind = 'call.proposed')";

/// The kinds of runs that are named by their first call; most of them have no other.
const NAMED_BY_CALL: [RunKind; 3] = [RunKind::Call, RunKind::Exec, RunKind::Session];

/// A part of a list.
#[derive(Default)]
struct Page {
    /// The runs that are wanted, each with the leaf that it begins with.
    runs: Vec<(RunSummary, i64)>,
    /// Which of them were not sealed.
    unsealed: Vec<usize>,
    /// The leaf that the oldest run begins with which was looked at; none if there was none.
    oldest: Option<i64>,
}

/// How far a call has come that has no end yet.
enum OpenCall {
    Decided { denied: bool, asked: bool },
    Started,
}

/// What the events of a run add up to.
#[derive(Default)]
struct RunTotals {
    calls: u64,
    denied: u64,
    asked: u64,
    unknown: u64,
    /// Whether one of the calls was to the tool that is looked for.
    called_tool: bool,
    sealed: Option<(Exit, u64)>,
    suspended: bool,
    /// The calls without an end: all that is held of a run.
    open: BTreeMap<i64, OpenCall>,
}

impl RunTotals {
    fn add_event(&mut self, row: &Row<'_>, tool: Option<&str>) -> rusqlite::Result<()> {
        let (kind, call, word): (String, Option<i64>, Option<String>) =
            (row.get(0)?, row.get(1)?, row.get(3)?);
        let word = word.as_deref();
        match (kind.as_str(), call) {
            ("call.proposed", _) => {
                self.calls += 1;
                self.called_tool |= word.is_some() && word == tool;
            }
            ("call.decided", Some(call)) => {
                let code: Option<String> = row.get(2)?;
                let code = code.as_deref().and_then(Code::from_slug);
                // What could not be understood is refused and not denied.
                let is_denial = code.is_none_or(|code| code.exit() != Exit::ToolFailed);
                let denied = word == Some("deny") && is_denial;
                let asked = matches!(word, Some("ask" | "ask-each"));
                self.open.insert(call, OpenCall::Decided { denied, asked });
            }
            ("call.started", Some(call)) => drop(self.open.insert(call, OpenCall::Started)),
            ("call.finished", Some(call)) if self.open.remove(&call).is_some() => {
                self.denied += u64::from(word == Some("denied"));
                self.asked += u64::from(word == Some("approval_needed"));
            }
            ("run.sealed", _) => {
                let exit = word.and_then(|word| serde_json::from_value(word.into()).ok());
                self.sealed = exit.zip(Some(column_u64(row, 4)?));
                self.suspended = row.get(5)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// A call without an end is what was decided, or unknown where it was started.
    fn settle_open_calls(&mut self) {
        for (_, standing) in std::mem::take(&mut self.open) {
            match standing {
                OpenCall::Started => self.unknown += 1,
                OpenCall::Decided { denied, asked } => {
                    self.denied += u64::from(denied);
                    self.asked += u64::from(asked);
                }
            }
        }
    }
}

impl Store {
    /// Lists runs, the newest first.
    ///
    /// # Errors
    /// When the store cannot be read, or its views or events are not what was written.
    pub fn list(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
        let mut runs = Vec::new();
        self.visit_runs::<StoreError>(filter, |run| {
            runs.push(run);
            Ok(true)
        })?;
        Ok(runs)
    }

    /// Visits runs, the newest first, until the visitor says that it is enough; gives whether there are older
    /// ones that were not looked at. Memory does not grow with the list.
    ///
    /// # Errors
    /// As [`Store::list`], or when the visitor fails.
    pub fn visit_runs<E: From<StoreError>>(
        &self,
        filter: &RunFilter,
        mut visit: impl FnMut(RunSummary) -> Result<bool, E>,
    ) -> Result<bool, E> {
        // The list is made by the views, which whoever can write the file can replace.
        if let Some((name, what)) = self.foreign_schema()? {
            return Err(StoreError::Integrity { place: format!("schema {name}"), what }.into());
        }
        let mut before = i64::MAX;
        loop {
            let page = self.snapshot(filter, before).map_err(StoreError::read)?;
            let Some(oldest) = page.oldest else { return Ok(false) };
            for (run, leaf) in self.resolve_unsealed(page, filter).map_err(StoreError::read)? {
                if !visit(run)? {
                    return Ok(self.has_run_before(leaf).map_err(StoreError::read)?);
                }
            }
            before = oldest;
        }
    }

    fn has_run_before(&self, leaf: i64) -> rusqlite::Result<bool> {
        let query = "SELECT EXISTS (SELECT 1 FROM events WHERE kind = 'run.opened' AND leaf < ?1)";
        self.sql.prepare_cached(query)?.query_row([leaf], |row| row.get(0))
    }

    /// The runs of a page with what became of those that were not sealed. What was read of them is as old as the
    /// first row, and a lock goes after the seal is written: whoever is not seen to hold it any more has
    /// sealed by now, or never will.
    fn resolve_unsealed(
        &self,
        page: Page,
        filter: &RunFilter,
    ) -> rusqlite::Result<Vec<(RunSummary, i64)>> {
        let Page { mut runs, unsealed, .. } = page;
        for place in unsealed {
            let Some((summary, _)) = runs.get_mut(place) else { continue };
            if RunLock::is_held(&self.path, &summary.run) {
                summary.state = RunState::Running;
            } else {
                let sum = self.totals(&summary.run, None)?;
                summary.apply_totals(&sum);
            }
        }
        runs.retain(|(summary, _)| !filter.denied || summary.denied > 0);
        Ok(runs)
    }

    /// A page of runs as one moment shows them.
    fn snapshot(&self, filter: &RunFilter, before: i64) -> rusqlite::Result<Page> {
        let mut query = self.sql.prepare_cached(OPENED_SQL)?;
        let mut rows = query.query([before, PAGE])?;
        let mut page = Page::default();
        while let Some(row) = rows.next()? {
            let leaf = row.get(6)?;
            page.oldest = Some(leaf);
            if filter.since.is_some_and(|since| column_u64(row, 4).is_ok_and(|began| began < since))
            {
                continue;
            }
            let run: String = row.get(0)?;
            let sum = self.totals(&run, filter.tool.as_deref())?;
            if filter.tool.is_some() && !sum.called_tool || !self.touches_path(&run, filter)? {
                continue;
            }
            let mut summary = summary_of(row, run)?;
            if NAMED_BY_CALL.iter().any(|kind| kind.name() == summary.kind) {
                summary.arguments = self.first_args(&summary.run)?;
            }
            summary.apply_totals(&sum);
            if sum.sealed.is_none() {
                page.unsealed.push(page.runs.len());
            } else if filter.denied && sum.denied == 0 {
                continue;
            }
            page.runs.push((summary, leaf));
        }
        Ok(page)
    }

    fn totals(&self, run: &str, tool: Option<&str>) -> rusqlite::Result<RunTotals> {
        let mut query = self.sql.prepare_cached(EVENTS_SQL)?;
        let mut rows = query.query([run])?;
        let mut sum = RunTotals::default();
        while let Some(row) = rows.next()? {
            sum.add_event(row, tool)?;
        }
        sum.settle_open_calls();
        Ok(sum)
    }

    fn first_args(&self, run: &str) -> rusqlite::Result<Option<String>> {
        let mut query = self.sql.prepare_cached(FIRST_ARGS)?;
        Ok(query.query_row([run], |row| row.get(0)).optional()?.flatten())
    }

    fn touches_path(&self, run: &str, filter: &RunFilter) -> rusqlite::Result<bool> {
        let Some(path) = &filter.touched else { return Ok(true) };
        self.sql.prepare_cached(TOUCHED_SQL)?.query_row(params![run, path], |row| row.get(0))
    }

    /// Whether a run is at its end.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn state(&self, run: &str) -> Result<RunState, StoreError> {
        if let Some(exit) = self.seal_of(run).map_err(StoreError::read)? {
            return Ok(RunState::Sealed(exit));
        }
        if RunLock::is_held(&self.path, run) {
            return Ok(RunState::Running);
        }
        // It may have been sealed between the two looks; the lock goes after the seal is written.
        let exit = self.seal_of(run).map_err(StoreError::read)?;
        let unsealed = match self.is_session(run).map_err(StoreError::read)? {
            true => RunState::Idle,
            false => RunState::Crashed,
        };
        Ok(exit.map_or(unsealed, RunState::Sealed))
    }

    fn is_session(&self, run: &str) -> rusqlite::Result<bool> {
        let mut query = self.sql.prepare_cached(
            "SELECT CAST(bytes AS TEXT) ->> '$.body.origin' FROM events WHERE run = ?1 AND seq = 1",
        )?;
        let kind: Option<Option<String>> = query.query_row([run], |row| row.get(0)).optional()?;
        Ok(kind.flatten().as_deref() == Some(RunKind::Session.name()))
    }

    fn seal_of(&self, run: &str) -> rusqlite::Result<Option<Exit>> {
        let mut query = self.sql.prepare_cached(
            "SELECT CAST(bytes AS TEXT) ->> '$.body.exit' FROM events
             WHERE run = ?1 AND kind = 'run.sealed'",
        )?;
        let exit: Option<Option<String>> = query.query_row([run], |row| row.get(0)).optional()?;
        Ok(exit.flatten().and_then(|exit| serde_json::from_value(exit.into()).ok()))
    }
}

impl RunSummary {
    /// Takes over what its events add up to. Without a seal it counts as crashed until somebody is seen
    /// who holds its lock.
    fn apply_totals(&mut self, sum: &RunTotals) {
        let unsealed = match self.kind == RunKind::Session.name() {
            true => RunState::Idle,
            false => RunState::Crashed,
        };
        self.state = sum.sealed.map_or(unsealed, |(exit, _)| RunState::Sealed(exit));
        self.ended = sum.sealed.map(|(_, at)| at);
        (self.calls, self.denied) = (sum.calls, sum.denied);
        (self.asked, self.unknown) = (sum.asked, sum.unknown);
        self.suspended = sum.suspended;
    }
}

fn summary_of(row: &Row<'_>, run: String) -> rusqlite::Result<RunSummary> {
    Ok(RunSummary {
        run,
        label: row.get(1)?,
        name: row.get(2)?,
        kind: row.get(3)?,
        started: column_u64(row, 4)?,
        subject: row.get(5)?,
        ended: None,
        state: RunState::Crashed,
        calls: 0,
        denied: 0,
        asked: 0,
        unknown: 0,
        suspended: false,
        arguments: None,
    })
}

fn column_u64(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(index).map(|n| u64::try_from(n).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::time::{Duration, Instant};

    use capsule_core::journal::{Durability, Event, Journal as _, PayloadClass};
    use capsule_core::policy::PayloadRetention;
    use serde_json::{Value, json};

    use super::*;
    use crate::write::RunWriter;

    fn store() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        (folder, path)
    }

    /// A run that has begun. What no list shows is left empty.
    fn begun(path: &Path) -> RunWriter {
        let store = Store::open(path).unwrap();
        let mut writer = store.begin(Box::new(|| 7), PayloadRetention::Full).unwrap();
        let text = json!(writer.put_payload(PayloadClass::Document, b"{}").unwrap());
        let digest = "0".repeat(64);
        write(
            &mut writer,
            "run.opened",
            json!({
                "label": "r-0000", "origin": "plan", "name": "many", "engine": "capsule", "plan": null,
                "policy": { "path": "p", "sha256": digest, "text": text }, "policy_name": "p",
                "policy_since": null, "profile": "supervised", "payloads": "full", "inputs": text,
                "key": text, "workspace": { "path": "/w", "device": "1", "inode": "1" }, "home": "/",
                "own": [], "tools": digest, "walls": null, "steps": 0,
            }),
        );
        writer
    }

    fn write(writer: &mut RunWriter, kind: &str, body: Value) {
        let event: Event = serde_json::from_value(json!({ "kind": kind, "body": body })).unwrap();
        writer.append(event, Durability::Deferred).unwrap();
    }

    fn call(writer: &mut RunWriter, call: u64, decision: &str, status: Option<&str>) {
        let text = json!(writer.put_payload(PayloadClass::Text, b"{}").unwrap());
        let tool = json!({ "call": call, "step": null, "attempt": 1, "tool": "fs.read",
            "origin": "plan", "args": text, "args_mac": "0".repeat(64), "tainted": [] });
        write(writer, "call.proposed", tool);
        let decided = json!({ "call": call, "decision": decision, "code": "policy.allowed",
            "rule": null, "at": null, "risk": "low", "capabilities": [], "liftable": false,
            "text": text, "action": null, "fingerprint": null });
        write(writer, "call.decided", decided);
        if decision != "allow" {
            return;
        }
        let started = json!({ "call": call, "effects": false, "confinement": null, "undo": null });
        write(writer, "call.started", started);
        if let Some(status) = status {
            let finished = json!({ "call": call, "ending": "done", "status": status, "code": null,
                "output": text, "problem": null, "enforcement": { "by": "in-process" }, "masked": 0 });
            write(writer, "call.finished", finished);
        }
    }

    fn seal(writer: &mut RunWriter) {
        let sealed = json!({ "exit": "ok", "events": 1, "calls": 1, "outputs": null });
        let event =
            serde_json::from_value(json!({ "kind": "run.sealed", "body": sealed })).unwrap();
        writer.append(event, Durability::CrashSafe).unwrap();
    }

    /// What was decided, started and ended adds up; a call without an end is as it was left.
    #[test]
    fn calls_are_counted_by_how_they_stand() {
        let (_folder, path) = store();
        let mut writer = begun(&path);
        for (number, (decision, status)) in [
            ("allow", Some("ok")),
            ("allow", Some("denied")),
            ("allow", None),
            ("deny", None),
            ("ask", None),
            ("ask-each", None),
        ]
        .into_iter()
        .enumerate()
        {
            call(&mut writer, number as u64 + 1, decision, status);
        }
        writer.flush_deferred().unwrap();
        let store = Store::open_read_only(&path).unwrap();
        let listed = |filter: &RunFilter| {
            let runs = store.list(filter).unwrap();
            let row = |summary: &RunSummary| {
                (summary.calls, summary.denied, summary.asked, summary.unknown, summary.state)
            };
            runs.iter().map(row).collect::<Vec<_>>()
        };
        let running = (6, 2, 2, 1, RunState::Running);
        assert_eq!(listed(&RunFilter::default()), [running]);
        drop(writer);
        let crashed = (6, 2, 2, 1, RunState::Crashed);
        assert_eq!(listed(&RunFilter { denied: true, ..RunFilter::default() }), [crashed]);
        assert_eq!(
            listed(&RunFilter { tool: Some("fs.read".into()), ..RunFilter::default() }),
            [crashed]
        );
        assert_eq!(
            listed(&RunFilter { tool: Some("fs.write".into()), ..RunFilter::default() }),
            []
        );
        assert_eq!(listed(&RunFilter { since: Some(8), ..RunFilter::default() }), []);
    }

    /// A run that ends while a list is made is not one that crashed.
    #[test]
    fn who_ends_meanwhile_has_not_crashed() {
        let (_folder, path) = store();
        let mut writer = begun(&path);
        call(&mut writer, 1, "allow", None);
        writer.flush_deferred().unwrap();
        let store = Store::open_read_only(&path).unwrap();
        let filter = RunFilter::default();
        let page = store.snapshot(&filter, i64::MAX).unwrap();
        call(&mut writer, 2, "deny", None);
        seal(&mut writer);
        let runs = store.resolve_unsealed(page, &filter).unwrap();
        let (summary, _) = runs.first().unwrap();
        assert_eq!(
            (summary.state, summary.calls, summary.denied),
            (RunState::Sealed(Exit::Ok), 2, 1)
        );
        assert_eq!(summary.ended, Some(7));
    }

    /// P8: a list is made page by page, and whoever has seen enough of it looks at no more.
    #[test]
    fn a_list_is_made_page_by_page() {
        let (_folder, path) = store();
        let runs = usize::try_from(PAGE).unwrap() + 5;
        for _ in 0..runs {
            let mut writer = begun(&path);
            seal(&mut writer);
        }
        let store = Store::open_read_only(&path).unwrap();
        let all: Vec<String> = store
            .list(&RunFilter::default())
            .unwrap()
            .into_iter()
            .map(|summary| summary.run)
            .collect();
        assert_eq!(all.len(), runs);
        assert_eq!(all.first().cloned(), store.find("latest").ok());
        for (most, are_more) in [(1, true), (runs - 1, true), (runs, false)] {
            let mut seen = Vec::new();
            let left = store.visit_runs::<StoreError>(&RunFilter::default(), |run| {
                seen.push(run.run);
                Ok(seen.len() < most)
            });
            assert_eq!((seen.len(), left.unwrap()), (most, are_more));
            assert_eq!(seen, all.get(..most).unwrap());
        }
    }

    /// A long run takes as long as its events are many, and no longer.
    #[test]
    fn a_list_looks_at_each_event_once() {
        const CALLS: u64 = 3_000;
        let (_folder, path) = store();
        let mut writer = begun(&path);
        for number in 1..=CALLS {
            call(&mut writer, number, "allow", Some("ok"));
        }
        seal(&mut writer);
        let store = Store::open_read_only(&path).unwrap();
        let began = Instant::now();
        let path = RunFilter { touched: Some("a".into()), ..RunFilter::default() };
        assert_eq!(store.list(&path).unwrap().len(), 0);
        assert_eq!(store.list(&RunFilter::default()).unwrap()[0].calls, CALLS);
        // Each call beside each other one took minutes.
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
}
