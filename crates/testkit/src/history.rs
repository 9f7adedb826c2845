//! A store with a long history, written in one transaction: what would take hours to record.

use std::path::Path;

use capsule_base::digest::Digest;
use capsule_core::id::RunId;
use capsule_core::journal::{self, Entry, Event, PayloadClass, PayloadRef, commitment};
use capsule_store::Store;
use capsule_store::{Frontier, leaf_hash};
use rusqlite::{Connection, params};
use serde_json::{Value, json};

/// The salt of every payload. Nobody is to guess these.
const SALT: [u8; 32] = [7; 32];

/// What is to be written.
#[derive(Clone, Debug)]
pub struct History {
    /// How many runs.
    pub runs: u64,
    /// How many calls each of them has: of `fs.read`, allowed, and every tenth denied.
    pub calls: u64,
    /// What each run is called.
    pub name: String,
    /// How many bytes each call gives.
    pub output: usize,
}

impl Default for History {
    fn default() -> Self {
        Self { runs: 1, calls: 1, name: "many".into(), output: 100 }
    }
}

/// The payloads of one event, in the order in which it names them.
#[derive(Default)]
struct Parts(Vec<(PayloadClass, Vec<u8>)>);

impl Parts {
    fn keep(&mut self, class: PayloadClass, bytes: impl Into<Vec<u8>>) -> PayloadRef {
        let bytes = bytes.into();
        let kept = PayloadRef { commit: commitment(&SALT, &bytes), bytes: bytes.len() as u64 };
        self.0.push((class, bytes));
        kept
    }
}

/// Writes events, each at the end of the tree.
struct Writer<'s> {
    sql: &'s Connection,
    tree: Frontier,
    run: RunId,
    seq: u64,
    prev: Option<Digest>,
    at: u64,
}

impl Writer<'_> {
    fn write(&mut self, kind: &str, body: Value, parts: Parts) {
        let event: Event = serde_json::from_value(json!({ "kind": kind, "body": body })).unwrap();
        self.seq += 1;
        self.at += 1_000;
        let (seq, prev, at) = (self.seq, self.prev, self.at);
        let entry = Entry { v: journal::VERSION, run: Some(self.run), seq, prev, at, event };
        let bytes = entry.to_bytes();
        self.prev = Some(Digest::of(&bytes));
        let (leaf, hash) = (self.tree.size() as i64, leaf_hash(&bytes));
        self.tree.push(hash);
        let insert = "INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let row = params![leaf, self.run.to_string(), seq as i64, kind, hash.0, bytes];
        self.sql.prepare_cached(insert).unwrap().execute(row).unwrap();
        let insert = "INSERT INTO payloads VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        for (part, (class, bytes)) in parts.0.iter().enumerate() {
            let commit = commitment(&SALT, bytes).to_string();
            let sha256 = (!class.is_private()).then(|| Digest::of(bytes).to_string());
            let row = params![leaf * 16 + part as i64, commit, class.name(), SALT, sha256, bytes];
            self.sql.prepare_cached(insert).unwrap().execute(row).unwrap();
        }
    }

    fn open(&mut self, name: &str) {
        let mut parts = Parts::default();
        let policy = parts.keep(PayloadClass::Document, "version: 1\n");
        let inputs = parts.keep(PayloadClass::Document, "{}");
        let key = parts.keep(PayloadClass::Key, [9; 32]);
        let digest = Digest::of(b"version: 1\n");
        let body = json!({
            "label": self.run.to_string(), "origin": "call", "name": name, "engine": "capsule",
            "plan": null, "policy": { "path": "/p", "sha256": digest, "text": policy },
            "policy_name": "p", "policy_since": null, "profile": "supervised", "payloads": "full",
            "inputs": inputs, "key": key, "home": "/home",
            "workspace": { "path": "/w", "device": "1", "inode": "1" },
            "own": [], "tools": digest, "walls": null, "steps": 0,
        });
        self.write("run.opened", body, parts);
    }

    fn call(&mut self, call: u64, output: usize) {
        let path = format!("src/{:04}.rs", call % 1_000);
        let mut parts = Parts::default();
        let args = parts.keep(PayloadClass::Arguments, json!({ "path": path }).to_string());
        let proposed = json!({ "call": call, "step": null, "attempt": 1, "tool": "fs.read",
            "origin": "plan", "args": args, "args_mac": Digest::of(b""), "tainted": [] });
        self.write("call.proposed", proposed, parts);
        let is_denied = call.is_multiple_of(10);
        let mut parts = Parts::default();
        let text =
            parts.keep(PayloadClass::Text, r#"{"reason":"as the policy says","suggestion":null}"#);
        let action = json!({
            "action": { "do": "read", "limit": null, "offset": 0,
                "path": { "asked": path, "inside": path } },
            "facts": { "paths": [{ "kind": "file", "path": path, "real": { "inside": path } }] },
        });
        let action = parts.keep(PayloadClass::Action, action.to_string());
        let (decision, code) = match is_denied {
            true => ("deny", "path.not-allowed"),
            false => ("allow", "policy.allowed"),
        };
        let decided = json!({ "call": call, "decision": decision, "code": code, "rule": null,
            "at": null, "risk": "low", "capabilities": ["fs.read"], "liftable": false, "text": text,
            "action": action, "fingerprint": null });
        self.write("call.decided", decided, parts);
        if is_denied {
            return;
        }
        let started = json!({ "call": call, "effects": false, "confinement": null, "undo": null });
        self.write("call.started", started, Parts::default());
        let mut parts = Parts::default();
        let result = json!({ "binary": false, "bytes_total": output, "clamped": false, "offset": 0,
            "path": path, "text": "x".repeat(output), "truncated": false });
        let output = parts.keep(PayloadClass::Output, result.to_string());
        let finished = json!({ "call": call, "ending": "done", "status": "ok", "code": null,
            "output": output, "problem": null, "enforcement": { "by": "in-process" }, "masked": 0 });
        self.write("call.finished", finished, parts);
    }

    fn seal(&mut self, calls: u64) {
        let events = self.seq + 1;
        let sealed = json!({ "exit": "ok", "events": events, "calls": calls, "outputs": null });
        self.write("run.sealed", sealed, Parts::default());
    }
}

impl History {
    /// Writes it into a new store.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write(&self, store: &Path) {
        drop(Store::open(store).unwrap());
        let mut sql = Connection::open(store).unwrap();
        sql.pragma_update(None, "synchronous", "OFF").unwrap();
        let transaction = sql.transaction().unwrap();
        let (mut tree, mut at) = (Frontier::default(), 1_760_000_000_000_000);
        for number in 0..self.runs {
            // Spread out, so that no id begins as the one before it does.
            let bits = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
            let mut id = [0; 10];
            id.iter_mut().zip(bits).for_each(|(to, from)| *to = from);
            let run = RunId::from_bits(id);
            let mut writer = Writer { sql: &transaction, tree, run, seq: 0, prev: None, at };
            writer.open(&self.name);
            (1..=self.calls).for_each(|call| writer.call(call, self.output));
            writer.seal(self.calls);
            (tree, at) = (writer.tree, writer.at);
        }
        let update = "UPDATE tree SET size = ?1, peaks = ?2";
        transaction.execute(update, params![tree.size() as i64, tree.to_bytes()]).unwrap();
        transaction.commit().unwrap();
        sql.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        drop(sql);
        // Notes how many events there are.
        drop(Store::open(store).unwrap());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_verifies() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        History { runs: 20, calls: 30, ..History::default() }.write(&path);
        let proof = Store::open_read_only(&path).unwrap().verify(None).unwrap().unwrap();
        assert_eq!((proof.sealed, proof.leaves), (20, 20 * (2 + 27 * 4 + 3 * 2)));
        assert!(proof.completeness.noted.is_some());
    }
}
