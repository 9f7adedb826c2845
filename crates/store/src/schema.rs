//! The tables and views of a store.
//!
//! The requirements' tables `runs`, `tool_calls` and `tool_results` are views over the events
//! (CAP-9), so there is nothing beside the events that could disagree with them.

use std::collections::BTreeMap;

use rusqlite::Connection;

/// The newest version of the tables (`PRAGMA user_version`).
pub(crate) const VERSION: i64 = 1;

/// How many payloads an event can have: the distance between the first payloads of two leaves.
pub(crate) const PAYLOADS_PER_EVENT: u64 = 16;

/// Version 1.
pub(crate) const TABLES: &str = "
CREATE TABLE events (
    leaf  INTEGER PRIMARY KEY,
    run   TEXT,
    seq   INTEGER NOT NULL,
    kind  TEXT NOT NULL,
    hash  BLOB NOT NULL,
    bytes BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_of_run ON events (run, seq) WHERE run IS NOT NULL;
CREATE INDEX runs_opened ON events (leaf) WHERE kind = 'run.opened';

-- `id` is 16 times the leaf of the event that a payload belongs to, plus its place in that event:
-- payloads are found from their event, and new ones are always written at the end.
CREATE TABLE payloads (
    id         INTEGER PRIMARY KEY,
    commitment TEXT NOT NULL,
    class      TEXT NOT NULL,
    salt       BLOB,
    sha256     TEXT,
    bytes      BLOB
) STRICT;

CREATE TABLE tree (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    size  INTEGER NOT NULL,
    peaks BLOB NOT NULL
) STRICT;
INSERT INTO tree VALUES (1, 0, x'');

-- A cache: the digests of programs by what identifies their bytes. Never a source of trust.
CREATE TABLE programs (
    path     TEXT PRIMARY KEY,
    identity TEXT NOT NULL,
    sha256   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A seat belt against mistakes, not a protection: whoever can write the file can drop them.
CREATE TRIGGER events_stay BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER events_remain BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;
CREATE TRIGGER payloads_remain BEFORE DELETE ON payloads
    BEGIN SELECT RAISE(ABORT, 'payloads are erased, never deleted'); END;
CREATE TRIGGER payloads_stay BEFORE UPDATE ON payloads
    WHEN new.bytes IS NOT NULL OR new.salt IS NOT NULL OR new.sha256 IS NOT NULL
        OR new.commitment <> old.commitment OR new.class <> old.class
    BEGIN SELECT RAISE(ABORT, 'payloads are erased, never changed'); END;
";

/// The views; times are microseconds since 1970.
pub(crate) const VIEWS: &str = "
CREATE VIEW entries AS
    SELECT leaf, run, seq, kind, CAST(bytes AS TEXT) AS json,
           json_extract(CAST(bytes AS TEXT), '$.at') AS at,
           json_extract(CAST(bytes AS TEXT), '$.body.call') AS call
    FROM events;

CREATE VIEW runs AS
    SELECT opened.run AS run_id,
           opened.json ->> '$.body.name' AS name,
           opened.json ->> '$.body.origin' AS kind,
           opened.at AS started_at,
           sealed.at AS ended_at,
           coalesce(sealed.json ->> '$.body.exit', 'unsealed') AS status,
           CASE sealed.json ->> '$.body.exit'
               WHEN 'ok' THEN 0 WHEN 'tool-failed' THEN 1 WHEN 'bad-usage' THEN 2
               WHEN 'denied' THEN 3 WHEN 'approval-needed' THEN 4 WHEN 'replay-diverged' THEN 5
               WHEN 'integrity-failed' THEN 6 WHEN 'budget-used-up' THEN 7
               WHEN 'sandbox-below-floor' THEN 8 WHEN 'runtime-error' THEN 10
               WHEN 'interrupted' THEN 130 END AS exit_code,
           opened.json ->> '$.body.plan.sha256' AS plan_hash,
           opened.json ->> '$.body.policy.sha256' AS policy_hash,
           opened.json ->> '$.body.profile' AS profile,
           opened.json ->> '$.body.workspace.path' AS workspace,
           opened.json ->> '$.body.walls.tier' AS sandbox,
           opened.json ->> '$.body.engine' AS engine
    FROM entries AS opened
    LEFT JOIN entries AS sealed ON sealed.run = opened.run AND sealed.kind = 'run.sealed'
    WHERE opened.kind = 'run.opened';

CREATE VIEW tool_calls AS
    SELECT proposed.run AS run_id,
           proposed.seq AS seq,
           proposed.call AS call_id,
           proposed.json ->> '$.body.step' AS step_id,
           proposed.json ->> '$.body.tool' AS tool,
           proposed.json ->> '$.body.origin' AS origin,
           CAST(args.bytes AS TEXT) AS args,
           args.sha256 AS input_hash,
           proposed.at AS proposed_at
    FROM entries AS proposed
    LEFT JOIN payloads AS args ON args.id = proposed.leaf * 16
    WHERE proposed.kind = 'call.proposed';

CREATE VIEW tool_results AS
    SELECT decided.run AS run_id,
           decided.seq AS seq,
           decided.call AS call_id,
           coalesce(finished.json ->> '$.body.status',
                    CASE WHEN started.seq IS NOT NULL THEN 'unknown'
                         WHEN decided.json ->> '$.body.decision' IN ('ask', 'ask-each')
                             THEN 'approval_needed'
                         WHEN decided.json ->> '$.body.decision' = 'deny' THEN 'denied'
                         ELSE 'unknown' END) AS status,
           decided.json ->> '$.body.decision' AS decision,
           coalesce(finished.json ->> '$.body.code', decided.json ->> '$.body.code') AS code,
           decided.json ->> '$.body.rule' AS rule,
           CAST(words.bytes AS TEXT) ->> '$.reason' AS reason,
           decided.json ->> '$.body.risk' AS risk,
           started.at AS started_at,
           finished.at AS finished_at,
           (finished.at - started.at) / 1000 AS duration_ms,
           CAST(output.bytes AS TEXT) AS output,
           output.sha256 AS output_hash,
           CAST(problem.bytes AS TEXT) ->> '$.message' AS error,
           finished.json -> '$.body.enforcement' AS enforcement
    FROM entries AS decided
    LEFT JOIN entries AS started ON started.run = decided.run
        AND started.kind = 'call.started' AND started.call = decided.call
    LEFT JOIN entries AS finished ON finished.run = decided.run
        AND finished.kind = 'call.finished' AND finished.call = decided.call
    LEFT JOIN payloads AS words ON words.id = decided.leaf * 16
    LEFT JOIN payloads AS output ON output.id = finished.leaf * 16
    LEFT JOIN payloads AS problem ON problem.id = finished.leaf * 16 + 1
    WHERE decided.kind = 'call.decided';
";

/// Everything that a store of this version is made of, as SQLite itself lists it: what a file says
/// of its tables, views and triggers is compared with this.
pub(crate) fn schema_objects(
    sql: &Connection,
) -> rusqlite::Result<BTreeMap<String, Option<String>>> {
    // `ANALYZE` makes these two tables, whose rows change no answer. The name alone shows nothing: a trigger can
    // be put under it as well.
    let mut query = sql.prepare(
        "SELECT type || ' ' || name || ' on ' || tbl_name, sql FROM sqlite_schema
         WHERE type <> 'table' OR tbl_name <> name OR (name, coalesce(sql, '')) NOT IN (VALUES
            ('sqlite_stat1', 'CREATE TABLE sqlite_stat1(tbl,idx,stat)'),
            ('sqlite_stat4', 'CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)'))",
    )?;
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// What a new store is made of.
pub(crate) fn expected_objects() -> rusqlite::Result<BTreeMap<String, Option<String>>> {
    let fresh = Connection::open_in_memory()?;
    fresh.execute_batch(TABLES)?;
    fresh.execute_batch(VIEWS)?;
    schema_objects(&fresh)
}
