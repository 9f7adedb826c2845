//! Checks that a store is what was written.
//!
//! Everything is computed again from the bytes: the hash of every event, the tree, the order within
//! each run, the seals, and every payload against its commitment and the digest beside it; the tables, views
//! and triggers are those of this format, and the events are as many as were noted. The memory that it takes
//! grows with the number of runs that are open at one time, not with the number of events.

mod checker;
mod database;
pub(crate) mod fault;
mod order;
mod payloads;
mod proof;

use std::collections::BTreeMap;

use crate::merkle::{Frontier, leaf_hash};
use capsule_base::digest::Digest;
use capsule_core::journal::{Entry, Event};

use crate::cause::Cause;
use crate::checkpoint::{AttestationCheck, TrustRoots};
use crate::error::StoreError;
use crate::head::{self, Noted};
use crate::open::Store;
use crate::verify::checker::{Checker, Columns};
use crate::verify::fault::fault;
use crate::write::load_frontier;

pub use fault::Fault;
pub use proof::Proof;

/// What a verification came to.
pub type Verified = Result<Proof, Fault>;

impl Store {
    /// Verifies the store. With `run`, the proof counts that run's events.
    ///
    /// # Errors
    /// When the store cannot be read at all. A fault that was found is not an error but a result.
    pub fn verify(&self, run: Option<&str>) -> Result<Verified, StoreError> {
        self.verify_by(run, &TrustRoots::default())
    }

    /// Verifies the store by what was told from elsewhere.
    ///
    /// # Errors
    /// As [`Store::verify`].
    pub fn verify_by(&self, run: Option<&str>, trust: &TrustRoots) -> Result<Verified, StoreError> {
        let mut checker = Checker {
            store: self,
            wanted: run,
            tree: Frontier::default(),
            open: BTreeMap::new(),
            proof: Proof::empty(),
            referenced: 0,
            attesting: AttestationCheck::new(trust),
            erased: BTreeMap::new(),
            withheld: None,
            // Before the snapshot: what is noted was committed before.
            noted: head::read(&self.path),
            is_alone: self.is_alone(),
        };
        // One snapshot for everything, while other processes go on writing.
        self.sql.execute_batch("BEGIN").map_err(StoreError::read)?;
        let verified = checker.verify();
        let ended = self.sql.execute_batch("ROLLBACK").map_err(StoreError::read);
        let verified = match verified {
            Err(Stop::Fault(fault)) => Err(fault),
            Err(Stop::Error(error)) => return Err(error),
            Ok(()) => Ok(()),
        };
        ended?;
        let Checker { attesting, mut proof, noted, .. } = checker;
        Ok(verified.and_then(|()| {
            // Fewer events than were noted are named as such, and not as what an anchor misses of them.
            proof.completeness = self.completeness(noted, proof.leaves)?;
            proof.attested = attesting.finish(proof.leaves)?;
            Ok(proof)
        }))
    }
}

/// What ends a verification early.
enum Stop {
    Fault(Fault),
    Error(StoreError),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Integrity { place, what } => Self::Fault(fault(place, what)),
            error => Self::Error(error),
        }
    }
}

/// What could not be read at a place: a fault there if the file is damaged, an error if it cannot be asked.
fn unreadable(place: &str) -> impl FnOnce(rusqlite::Error) -> Stop + '_ {
    move |error| {
        let cause = Cause::from(error);
        match cause.is_damage() {
            true => Stop::Fault(fault(place, cause.to_string())),
            false => Stop::Error(StoreError::Read(cause)),
        }
    }
}

impl Checker<'_> {
    fn verify(&mut self) -> Result<(), Stop> {
        self.store.check_database()?;
        self.erased = self.store.erasures()?;
        self.walk()?;
        self.check_tree()?;
        self.proof.erased_at = self.erased.values().map(|value| value.leaf).max();
        self.check_payload_rows()?;
        self.check_withheld()?;
        self.attesting.compare_tree(&self.tree);
        self.proof.leaves = self.tree.size();
        self.proof.root = self.tree.root();
        self.proof.unsealed = u64::try_from(self.open.len()).unwrap_or(u64::MAX);
        Ok(())
    }

    fn walk(&mut self) -> Result<(), Stop> {
        let query = "SELECT leaf, run, seq, kind, hash, bytes FROM events ORDER BY leaf";
        let mut query = self.store.sql.prepare(query).map_err(unreadable("events"))?;
        let mut rows = query.query([]).map_err(unreadable("events"))?;
        loop {
            let leaf = self.tree.size();
            let place = format!("event {leaf}");
            let Some(row) = rows.next().map_err(unreadable(&place))? else { return Ok(()) };
            let columns = (|| -> rusqlite::Result<_> {
                Ok(Columns {
                    leaf: row.get(0)?,
                    run: row.get(1)?,
                    seq: row.get(2)?,
                    kind: row.get(3)?,
                    hash: row.get(4)?,
                    bytes: row.get(5)?,
                })
            })();
            self.check_event(leaf, &columns.map_err(unreadable(&place))?)?;
        }
    }

    fn check_event(&mut self, leaf: u64, row: &Columns) -> Result<(), Stop> {
        let place = match &row.run {
            Some(run) => format!("event {} ({run}, number {})", row.leaf, row.seq),
            None => format!("event {}", row.leaf),
        };
        if row.leaf != crate::write::to_i64(leaf) {
            let what = format!("an event is missing before it: its place should be {leaf}");
            return Err(fault(place, what).into());
        }
        let hash = leaf_hash(&row.bytes);
        if row.hash != hash.0 {
            return Err(fault(place, "its bytes do not match their hash").into());
        }
        let entry =
            Entry::from_bytes(&row.bytes).map_err(|error| fault(&place, error.to_string()))?;
        if order::has_inexact_number(&row.bytes) {
            return Err(fault(place, "a number in it is larger than 2^53").into());
        }
        self.attesting.compare_tree(&self.tree);
        match &entry.event {
            Event::Checkpoint { note } => {
                self.attesting.record_checkpoint(&place, note, &self.tree)?
            }
            Event::PayloadErased { .. } if self.attesting.is_of_run() => {
                let what = "nothing is erased in the file of one run, which is a copy";
                return Err(fault(place, what).into());
            }
            _ => self.attesting.record_event(&place, entry.run)?,
        }
        if let Noted::Some(head) = &self.noted
            && head.size == leaf
        {
            self.check_noted_root(head.root)?;
        }
        self.tree.push(hash);
        let keeps = self.check_order(&place, row, &entry)?;
        self.check_payloads(leaf, (&place, &entry), keeps)
    }

    /// The tree is what it was when its head was noted.
    fn check_noted_root(&self, root: Digest) -> Result<(), Fault> {
        let digest = self.tree.root();
        match digest == root {
            true => Ok(()),
            false => Err(fault(
                "note",
                format!(
                    "the first {} events had root {} when the store was last written to, and have {} now",
                    self.tree.size(),
                    root.short(),
                    digest.short()
                ),
            )),
        }
    }

    /// The cache of the tree's right edge is that of the events.
    fn check_tree(&self) -> Result<(), Stop> {
        if let Noted::Some(head) = &self.noted
            && head.size == self.tree.size()
        {
            self.check_noted_root(head.root)?;
        }
        let rows = "SELECT count(*) FROM tree";
        let rows: i64 =
            self.store.sql.query_row(rows, [], |row| row.get(0)).map_err(unreadable("tree"))?;
        if rows > 1 {
            return Err(fault("tree", format!("it has {rows} rows; there is one")).into());
        }
        let cached = load_frontier(&self.store.sql).map_err(unreadable("tree"))?;
        if cached != self.tree {
            let what = format!(
                "it was written with {} events and root {}; the events here are {} with root {}",
                cached.size(),
                cached.root().short(),
                self.tree.size(),
                self.tree.root().short()
            );
            return Err(fault("tree", what).into());
        }
        Ok(())
    }
}
