//! Checks that a store is what was written.
//!
//! Everything is computed again from the bytes: the hash of every event, the tree, the order within
//! each run, the seals, and every payload against its commitment and the digest beside it; and the
//! tables, views and triggers are those of this format. The memory that it takes grows with the
//! number of runs that are open at one time, not with the number of events.

use std::collections::BTreeMap;

use capsule_core::digest::Digest;
use capsule_core::id::RunId;
use capsule_core::journal::{Entry, Event, Frontier, PayloadRef, leaf_hash};
use capsule_core::policy::Payloads;

use crate::checkpoint::{Attested, Attesting, Trust};
use crate::error::StoreError;
use crate::open::Store;
use crate::read::{Payload, PayloadRow};
use crate::schema;
use crate::write::frontier;

/// What a store that was verified holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Leaves of the tree.
    pub leaves: u64,
    /// The root of the tree.
    pub root: Digest,
    /// Runs that were sealed.
    pub sealed: u64,
    /// Runs that were not.
    pub unsealed: u64,
    /// Events of the run that was asked for.
    pub events: u64,
    /// Whether that run is sealed.
    pub run_sealed: bool,
    /// Payloads that match their commitment.
    pub payloads: u64,
    /// Payloads of runs that were erased, as an event says.
    pub erased: u64,
    /// The newest event that says so.
    pub erased_at: Option<u64>,
    /// Payloads whose bytes were withheld or never kept.
    pub absent: u64,
    /// What is signed, and what was seen elsewhere.
    pub attested: Attested,
}

impl Proof {
    /// Of a store that holds nothing.
    fn empty() -> Self {
        Self {
            leaves: 0,
            root: Frontier::default().root(),
            sealed: 0,
            unsealed: 0,
            events: 0,
            run_sealed: false,
            payloads: 0,
            erased: 0,
            erased_at: None,
            absent: 0,
            attested: Attested::default(),
        }
    }
}

/// The first thing that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where: `event 7 (r-7Q3K…, number 3)`, `payload 1f3a… of event 7`, `tree`.
    pub place: String,
    /// What is wrong.
    pub what: String,
}

/// What a verification came to.
pub type Verified = Result<Proof, Fault>;

/// Where a run stands while its events are walked.
struct Walk {
    seq: u64,
    prev: Digest,
    payloads: Payloads,
}

struct Checker<'s> {
    store: &'s Store,
    wanted: Option<&'s str>,
    tree: Frontier,
    open: BTreeMap<RunId, Walk>,
    proof: Proof,
    referenced: u64,
    attesting: Attesting<'s>,
    /// The runs of which the record says that they were erased, with how many payloads are still to be
    /// found gone. That it says so is verified as it is walked.
    erased: BTreeMap<RunId, (u64, u64)>,
}

impl Store {
    /// Verifies the store. With `run`, the proof counts that run's events.
    ///
    /// # Errors
    /// When the store cannot be read at all. A fault that was found is not an error but a result.
    pub fn verify(&self, run: Option<&str>) -> Result<Verified, StoreError> {
        self.verify_by(run, &Trust::default())
    }

    /// Verifies the store by what was told from elsewhere.
    ///
    /// # Errors
    /// As [`Store::verify`].
    pub fn verify_by(&self, run: Option<&str>, trust: &Trust) -> Result<Verified, StoreError> {
        let mut checker = Checker {
            store: self,
            wanted: run,
            tree: Frontier::default(),
            open: BTreeMap::new(),
            proof: Proof::empty(),
            referenced: 0,
            attesting: Attesting::new(trust),
            erased: BTreeMap::new(),
        };
        // One snapshot for everything, while other processes go on writing.
        self.sql.execute_batch("BEGIN").map_err(StoreError::read)?;
        let verified = self.erased().and_then(|erased| {
            checker.erased = erased;
            checker.walk()
        });
        let ended = self.sql.execute_batch("ROLLBACK").map_err(StoreError::read);
        let verified = verified?;
        ended?;
        let Checker { attesting, mut proof, .. } = checker;
        Ok(verified.and_then(|()| {
            proof.attested = attesting.end(proof.leaves)?;
            Ok(proof)
        }))
    }
}

impl Store {
    /// The first table, view, index or trigger that is not that of this format: its name, and what
    /// is wrong with it. Views are what other programs read, so another view is another record.
    pub(crate) fn foreign_schema(&self) -> Result<Option<(String, String)>, StoreError> {
        let found = schema::objects(&self.sql).map_err(StoreError::read)?;
        let expected = schema::expected().map_err(StoreError::read)?;
        let other = expected.iter().find_map(|(name, text)| match found.get(name) {
            None => Some((name, "it is not there")),
            Some(own) if own != text => Some((name, "it is not what this format says")),
            Some(_) => None,
        });
        let extra = || found.keys().find(|name| !expected.contains_key(*name));
        let other = other.or_else(|| Some((extra()?, "this format has none of that name")));
        Ok(other.map(|(name, what)| (name.clone(), what.to_owned())))
    }
}

/// Whether an event is about a run and stands in none.
const fn belongs_to_no_run(event: &Event) -> bool {
    match event {
        Event::RunExported(_)
        | Event::ChangesDiscarded { .. }
        | Event::GrantRevoked { .. }
        | Event::UndoDropped { .. }
        | Event::PayloadErased { .. }
        | Event::Checkpoint { .. } => true,
        Event::RunOpened(_)
        | Event::CallProposed(_)
        | Event::CallDecided(_)
        | Event::ApprovalShown(_)
        | Event::PlanShown(_)
        | Event::PlanAnswered(_)
        | Event::ApprovalWaiting(_)
        | Event::AnswerGiven(_)
        | Event::RunResumed(_)
        | Event::ApprovalAnswered(_)
        | Event::GrantUsed(_)
        | Event::ApprovalCovered { .. }
        | Event::CallStarted(_)
        | Event::CallFinished(_)
        | Event::StepEnded(_)
        | Event::FeedbackGiven(_)
        | Event::RunSealed(_) => false,
    }
}

pub(crate) fn fault(place: impl Into<String>, what: impl Into<String>) -> Fault {
    Fault { place: place.into(), what: what.into() }
}

/// Passes a fault on as a result, and reading errors as errors.
macro_rules! hold {
    ($check:expr) => {
        match $check {
            Ok(value) => value,
            Err(fault) => return Ok(Err(fault)),
        }
    };
}

impl Checker<'_> {
    fn walk(&mut self) -> Result<Result<(), Fault>, StoreError> {
        let sql = &self.store.sql;
        // A damaged page can hide rows from one index and not from another.
        let sound: String = sql
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .unwrap_or_else(|error| error.to_string());
        if sound != "ok" {
            return Ok(Err(fault("file", format!("the database is damaged: {sound}"))));
        }
        if let Some((name, what)) = self.store.foreign_schema()? {
            return Ok(Err(fault(format!("schema {name}"), what)));
        }
        let mut query = sql
            .prepare("SELECT leaf, run, seq, kind, hash, bytes FROM events ORDER BY leaf")
            .map_err(StoreError::read)?;
        let mut rows = query.query([]).map_err(StoreError::read)?;
        while let Some(row) =
            hold!(rows.next().map_err(|error| {
                fault(format!("event {}", self.tree.size()), error.to_string())
            }))
        {
            let leaf = self.tree.size();
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
            let columns =
                hold!(columns.map_err(|error| fault(format!("event {leaf}"), error.to_string())));
            hold!(self.event(leaf, &columns)?);
        }
        self.whole()
    }

    fn event(&mut self, leaf: u64, row: &Columns) -> Result<Result<(), Fault>, StoreError> {
        let place = match &row.run {
            Some(run) => format!("event {} ({run}, number {})", row.leaf, row.seq),
            None => format!("event {}", row.leaf),
        };
        if row.leaf != crate::write::number(leaf) {
            let what = format!("an event is missing before it: its place should be {leaf}");
            return Ok(Err(fault(place, what)));
        }
        let hash = leaf_hash(&row.bytes);
        if row.hash != hash.0 {
            return Ok(Err(fault(place, "its bytes do not match their hash")));
        }
        let entry =
            hold!(Entry::from_bytes(&row.bytes).map_err(|error| fault(&place, error.to_string())));
        self.attesting.reach(&self.tree);
        match &entry.event {
            Event::Checkpoint { note } => hold!(self.attesting.note(&place, note, &self.tree)),
            _ => self.attesting.pass(entry.run),
        }
        self.tree.push(hash);
        let keeps = hold!(self.order(&place, row, &entry));
        let checked = PayloadRow::checked_with_digest;
        let payloads = match self.store.payloads_in(leaf, &entry.event, checked) {
            Ok(payloads) => payloads,
            Err(StoreError::Integrity { place, what }) => return Ok(Err(fault(place, what))),
            Err(error) => return Ok(Err(fault(place, error.to_string()))),
        };
        hold!(self.kept(leaf, (&place, entry.run), keeps, &payloads));
        Ok(Ok(()))
    }

    /// What an event commits to is there, or rightly gone.
    fn kept(
        &mut self,
        leaf: u64,
        (place, run): (&str, Option<RunId>),
        keeps: Payloads,
        payloads: &[(PayloadRef, Payload)],
    ) -> Result<(), Fault> {
        let erased = run.and_then(|run| self.erased.get_mut(&run));
        if erased.as_ref().is_some_and(|(at, _)| *at < leaf) {
            return Err(fault(place, "its run was erased before"));
        }
        let is_erased = erased.is_some();
        if let Some((_, left)) = erased {
            *left = left.saturating_sub(u64::try_from(payloads.len()).unwrap_or(u64::MAX));
        }
        for (reference, payload) in payloads {
            self.referenced += 1;
            let wrong = |what: &str| {
                let commit = reference.commit.to_string();
                let named = commit.get(..8).unwrap_or("");
                Err(fault(format!("payload {named}… of {place}"), what))
            };
            match payload {
                Payload { salt: Some(_), .. } if is_erased => {
                    return wrong("it is there, and its run was erased");
                }
                _ if is_erased => self.proof.erased += 1,
                Payload { bytes: Some(_), .. } => self.proof.payloads += 1,
                Payload { class, .. } if keeps == Payloads::Full && !class.is_private() => {
                    return wrong("its bytes are gone, and its run keeps them");
                }
                _ => self.proof.absent += 1,
            }
        }
        Ok(())
    }

    /// The event stands where its own bytes say, behind the one that they name; gives whether its
    /// run keeps payloads.
    fn order(&mut self, place: &str, row: &Columns, entry: &Entry) -> Result<Payloads, Fault> {
        let own = entry.run.map(|run| run.to_string());
        let kept = (own.as_deref(), crate::write::number(entry.seq), entry.event.kind());
        if kept != (row.run.as_deref(), row.seq, row.kind.as_str()) {
            return Err(fault(place, "its columns say something else than its bytes"));
        }
        let Some(run) = entry.run else {
            let ours = belongs_to_no_run(&entry.event) && entry.seq == 0;
            return if ours {
                Ok(Payloads::Full)
            } else {
                Err(fault(place, "it belongs to no run"))
            };
        };
        let opened = match &entry.event {
            Event::RunOpened(opened) => Some(opened.payloads),
            _ => None,
        };
        let (seq, prev, keeps) = match self.open.get(&run) {
            Some(walk) => (walk.seq + 1, Some(walk.prev), walk.payloads),
            None => (1, None, opened.unwrap_or_default()),
        };
        if entry.seq != seq || entry.prev != prev || opened.is_some() != (seq == 1) {
            let what = match prev {
                Some(_) => "it does not follow the run's event before it",
                None => "the run does not begin with it, or was sealed before",
            };
            return Err(fault(place, what));
        }
        let wanted = self.wanted == Some(run.to_string().as_str());
        self.proof.events += u64::from(wanted);
        if let Event::RunSealed(sealed) = &entry.event {
            if sealed.events != entry.seq {
                return Err(fault(place, "the seal counts other events than there are"));
            }
            self.open.remove(&run);
            self.proof.sealed += 1;
            self.proof.run_sealed |= wanted;
        } else {
            let prev = Digest::of(&row.bytes);
            self.open.insert(run, Walk { seq, prev, payloads: keeps });
        }
        Ok(keeps)
    }

    /// What only the whole can tell: the tree's cache, and rows that no event knows.
    fn whole(&mut self) -> Result<Result<(), Fault>, StoreError> {
        let cached =
            hold!(frontier(&self.store.sql).map_err(|error| fault("tree", error.to_string())));
        if cached != self.tree {
            let what = format!(
                "it was written with {} events and root {}; the events here are {} with root {}",
                cached.size(),
                cached.root().short(),
                self.tree.size(),
                self.tree.root().short()
            );
            return Ok(Err(fault("tree", what)));
        }
        let sql = &self.store.sql;
        let rows: i64 = sql
            .query_row("SELECT count(*) FROM payloads", [], |row| row.get(0))
            .map_err(StoreError::read)?;
        if rows != crate::write::number(self.referenced) {
            let what = format!("{rows} are stored and {} are known to events", self.referenced);
            return Ok(Err(fault("payloads", what)));
        }
        self.proof.erased_at = self.erased.values().map(|(at, _)| *at).max();
        if let Some(at) = self.proof.erased_at.filter(|_| self.attesting.is_of_run()) {
            let what = "nothing is erased in the file of one run, which is a copy";
            return Ok(Err(fault(format!("event {at}"), what)));
        }
        if let Some((run, (at, _))) = self.erased.iter().find(|(_, (_, left))| *left > 0) {
            let what = format!("it says that more was erased of {run} than there was");
            return Ok(Err(fault(format!("event {at}"), what)));
        }
        self.attesting.reach(&self.tree);
        self.proof.leaves = self.tree.size();
        self.proof.root = self.tree.root();
        self.proof.unsealed = u64::try_from(self.open.len()).unwrap_or(u64::MAX);
        Ok(Ok(()))
    }
}

struct Columns {
    leaf: i64,
    run: Option<String>,
    seq: i64,
    kind: String,
    hash: [u8; 32],
    bytes: Vec<u8>,
}
