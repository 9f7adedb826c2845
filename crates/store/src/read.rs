//! Reading runs, events and payloads.

use crate::merkle::{Frontier, leaf_hash};
use capsule_base::digest::Digest;
use capsule_core::journal::{Entry, Event, PayloadClass, PayloadRef, commitment};
use rusqlite::{OptionalExtension, Row, params};

use crate::checkpoint::SignedNote;
use crate::error::StoreError;
use crate::open::Store;
use crate::run_label::canonical_label;
use crate::write::{load_frontier, payload_id};

/// An event where it stands.
#[derive(Clone, Debug)]
pub struct StoredEvent {
    /// Its place in the tree.
    pub leaf: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What the bytes say.
    pub entry: Entry,
}

/// A payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPayload {
    /// What it holds.
    pub class: PayloadClass,
    /// Its salt; none if it was erased or withheld.
    pub salt: Option<Vec<u8>>,
    /// Its bytes; none if they were erased, withheld or never kept.
    pub bytes: Option<Vec<u8>>,
}

impl Store {
    /// Finds a run by `latest`, its id, or the beginning of one.
    ///
    /// # Errors
    /// When there is none, or more than one.
    pub fn find(&self, asked: &str) -> Result<String, StoreError> {
        let unknown = || StoreError::RunUnknown(asked.into());
        if asked == "latest" {
            return self
                .sql
                .query_row(
                    "SELECT run FROM events WHERE kind = 'run.opened' ORDER BY leaf DESC LIMIT 1",
                    [],
                    |row| row.get(0),
                )
                .optional()
                .map_err(StoreError::read)?
                .ok_or_else(unknown);
        }
        let prefix = canonical_label(asked);
        let matches = self.runs_with_prefix(&prefix)?;
        match matches.as_slice() {
            [] => Err(unknown()),
            [run] => Ok(run.clone()),
            [first, ..] if *first == prefix => Ok(first.clone()),
            several => Err(StoreError::RunAmbiguous {
                asked: asked.into(),
                labels: several.iter().take(5).map(|run| self.label(run)).collect(),
            }),
        }
    }

    /// The runs whose ids begin so, in the order of their ids.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn runs_with_prefix(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        // `~` sorts behind every character that an id can have.
        let mut query = self
            .sql
            .prepare_cached(
                "SELECT run FROM events WHERE run >= ?1 AND run < ?1 || '~' AND seq = 1
                 ORDER BY run LIMIT 1000",
            )
            .map_err(StoreError::read)?;
        let rows = query.query_map([prefix], |row| row.get(0)).map_err(StoreError::read)?;
        rows.collect::<rusqlite::Result<_>>().map_err(StoreError::read)
    }

    /// The label that a run had when it began.
    #[must_use]
    pub fn label(&self, run: &str) -> String {
        let label = self.sql.query_row(
            "SELECT CAST(bytes AS TEXT) ->> '$.body.label' FROM events WHERE run = ?1 AND seq = 1",
            [run],
            |row| row.get::<_, Option<String>>(0),
        );
        label.ok().flatten().unwrap_or_else(|| run.to_owned())
    }

    /// Visits the events of a run in their order; memory does not grow with the run. Each must be
    /// what its hash says, and follow the one before.
    ///
    /// # Errors
    /// When the store cannot be read, an event is not what was written, or the visitor fails.
    pub fn visit<E: From<StoreError>>(
        &self,
        run: &str,
        mut visit: impl FnMut(StoredEvent) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut query = self
            .sql
            .prepare_cached("SELECT leaf, bytes, hash FROM events WHERE run = ?1 ORDER BY seq")
            .map_err(StoreError::read)?;
        let mut rows = query.query([run]).map_err(StoreError::read)?;
        let (mut seq, mut prev) = (0, None);
        while let Some(row) = rows.next().map_err(StoreError::read)? {
            let stored = stored_event(row)?;
            seq += 1;
            if (stored.entry.seq, stored.entry.prev) != (seq, prev) {
                let place = format!("event {}", stored.leaf);
                let what = "it does not follow the run's event before it".into();
                return Err(StoreError::Integrity { place, what }.into());
            }
            prev = Some(Digest::of(&stored.bytes));
            visit(stored)?;
        }
        Ok(())
    }

    /// One event of a run.
    ///
    /// # Errors
    /// When the store cannot be read or the event cannot be understood.
    pub fn event(&self, run: &str, seq: u64) -> Result<Option<StoredEvent>, StoreError> {
        let mut query = self
            .sql
            .prepare_cached("SELECT leaf, bytes, hash FROM events WHERE run = ?1 AND seq = ?2")
            .map_err(StoreError::read)?;
        let mut rows =
            query.query(params![run, crate::write::to_i64(seq)]).map_err(StoreError::read)?;
        match rows.next().map_err(StoreError::read)? {
            Some(row) => stored_event(row).map(Some),
            None => Ok(None),
        }
    }

    /// The last event of a run.
    ///
    /// # Errors
    /// When the store cannot be read or the event cannot be understood.
    pub fn last_event(&self, run: &str) -> Result<Option<StoredEvent>, StoreError> {
        let mut query = self
            .sql
            .prepare_cached(
                "SELECT leaf, bytes, hash FROM events WHERE run = ?1 ORDER BY seq DESC LIMIT 1",
            )
            .map_err(StoreError::read)?;
        let mut rows = query.query([run]).map_err(StoreError::read)?;
        rows.next().map_err(StoreError::read)?.map(stored_event).transpose()
    }

    /// The event at a leaf.
    ///
    /// # Errors
    /// When the store cannot be read or the event cannot be understood.
    pub(crate) fn event_at(&self, leaf: u64) -> Result<Option<StoredEvent>, StoreError> {
        let mut query = self
            .sql
            .prepare_cached("SELECT leaf, bytes, hash FROM events WHERE leaf = ?1")
            .map_err(StoreError::read)?;
        let mut rows = query.query([crate::write::to_i64(leaf)]).map_err(StoreError::read)?;
        rows.next().map_err(StoreError::read)?.map(stored_event).transpose()
    }

    /// The payloads of an event, in the order in which it names them, each compared with what the
    /// event committed to.
    ///
    /// # Errors
    /// When the store cannot be read, or a payload is not what was written.
    pub fn payloads(
        &self,
        leaf: u64,
        event: &Event,
    ) -> Result<Vec<(PayloadRef, StoredPayload)>, StoreError> {
        let item = event.payloads().into_iter().enumerate();
        item.map(|(part, (reference, class))| {
            let row = self.payload_row(leaf, part).map_err(StoreError::read)?;
            let payload = row.ok_or("it is missing").and_then(|row| row.checked(&reference, class));
            payload.map(|payload| (reference, payload)).map_err(|what| {
                let commit = reference.commit.to_string();
                let commit = commit.get(..8).unwrap_or("");
                let place = format!("payload {commit}… of event {leaf}");
                StoreError::Integrity { place, what: what.into() }
            })
        })
        .collect()
    }

    pub(crate) fn payload_row(
        &self,
        leaf: u64,
        part: usize,
    ) -> rusqlite::Result<Option<PayloadRow>> {
        self.sql
            .prepare_cached(
                "SELECT class, salt, bytes, commitment, sha256 FROM payloads WHERE id = ?1",
            )?
            .query_row([payload_id(leaf, part)], |row| {
                Ok(PayloadRow {
                    class: row.get(0)?,
                    salt: row.get(1)?,
                    bytes: row.get(2)?,
                    commitment: row.get(3)?,
                    sha256: row.get(4)?,
                })
            })
            .optional()
    }

    /// Whether the store holds one run and nothing else, as one that was written out does.
    pub(crate) fn is_single_run(&self) -> Result<bool, StoreError> {
        self.sql
            .query_row(
                "SELECT count(DISTINCT run) = 1
                    AND count(run) = count(*) FILTER (WHERE kind <> 'checkpoint') FROM events",
                [],
                |row| row.get(0),
            )
            .map_err(StoreError::read)
    }

    /// Whether it is that, told by what is never written out.
    pub(crate) fn is_written_out(&self) -> rusqlite::Result<bool> {
        self.sql.query_row(
            "SELECT EXISTS (SELECT 1 FROM payloads WHERE class IN ('key', 'undo') AND bytes IS NULL)
                AND NOT EXISTS (SELECT 1 FROM events WHERE kind = 'payload.erased')",
            [],
            |row| row.get(0),
        )
    }

    /// The place in the tree where a run was sealed.
    ///
    /// # Errors
    /// When the store cannot be read, or the run is not sealed.
    pub fn seal_leaf(&self, run: &str) -> Result<u64, StoreError> {
        let leaf: i64 = self
            .sql
            .query_row(
                "SELECT leaf FROM events WHERE run = ?1 AND kind = 'run.sealed'",
                [run],
                |row| row.get(0),
            )
            .map_err(StoreError::read)?;
        Ok(u64::try_from(leaf).unwrap_or(0))
    }

    /// The tree as it was when a run was sealed, and the checkpoint that was signed right behind that.
    ///
    /// # Errors
    /// When the store cannot be read, or the run is not sealed.
    pub fn tree_at_seal(&self, run: &str) -> Result<(Frontier, Option<SignedNote>), StoreError> {
        let size = self.seal_leaf(run)? + 1;
        Ok((self.tree_at(size)?, self.checkpoint_at(size)?))
    }

    /// The size and root of the tree when it had this many leaves.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn tree_at(&self, size: u64) -> Result<Frontier, StoreError> {
        let now = load_frontier(&self.sql).map_err(StoreError::read)?;
        if now.size() == size {
            return Ok(now);
        }
        // What the two trees have in common need not be made again.
        let mut tree = now.subtrees_of(size);
        let mut query = self
            .sql
            .prepare_cached("SELECT hash FROM events WHERE leaf >= ?1 AND leaf < ?2 ORDER BY leaf")
            .map_err(StoreError::read)?;
        let range = [tree.size(), size].map(crate::write::to_i64);
        let mut rows = query.query(range).map_err(StoreError::read)?;
        while let Some(row) = rows.next().map_err(StoreError::read)? {
            let hash: [u8; 32] = row.get(0).map_err(StoreError::read)?;
            tree.push(Digest(hash));
        }
        Ok(tree)
    }
}

/// A payload as its row has it; nothing in it is believed before it was compared.
pub(crate) struct PayloadRow {
    pub(crate) class: String,
    pub(crate) salt: Option<Vec<u8>>,
    pub(crate) bytes: Option<Vec<u8>>,
    pub(crate) commitment: String,
    pub(crate) sha256: Option<String>,
}

impl PayloadRow {
    /// Whether the row holds what the event committed to, as the field of the event says.
    pub(crate) fn fits(&self, item: &PayloadRef, class: PayloadClass) -> Result<(), &'static str> {
        if self.commitment != item.commit.to_string() || self.class != class.name() {
            return Err("its columns say something else than its event");
        }
        if let Some(bytes) = &self.bytes {
            let salt = self.salt.as_deref().ok_or("its salt is gone and its bytes are not")?;
            let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            if commitment(salt, bytes) != item.commit || size != item.bytes {
                return Err("it does not match what the event committed to");
            }
        }
        Ok(())
    }

    /// The payload, if the row holds that.
    fn checked(
        self,
        item: &PayloadRef,
        class: PayloadClass,
    ) -> Result<StoredPayload, &'static str> {
        self.fits(item, class)?;
        Ok(StoredPayload { class, salt: self.salt, bytes: self.bytes })
    }
}

pub(crate) fn stored_event(row: &Row<'_>) -> Result<StoredEvent, StoreError> {
    let leaf: i64 = row.get(0).map_err(StoreError::read)?;
    let leaf = u64::try_from(leaf).unwrap_or(0);
    let bytes: Vec<u8> = row.get(1).map_err(StoreError::read)?;
    let hash: Vec<u8> = row.get(2).map_err(StoreError::read)?;
    if hash != leaf_hash(&bytes).0 {
        let what = "its bytes do not match their hash".into();
        return Err(StoreError::Integrity { place: format!("event {leaf}"), what });
    }
    let entry = Entry::from_bytes(&bytes).map_err(|why| StoreError::InvalidEntry { leaf, why })?;
    Ok(StoredEvent { leaf, bytes, entry })
}
