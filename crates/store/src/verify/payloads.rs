//! The payloads: each is what its event committed to, or rightly gone.

use std::collections::BTreeMap;

use capsule_base::digest::Digest;
use capsule_core::id::RunId;
use capsule_core::journal::{Entry, Event, PayloadClass, PayloadRef};
use capsule_core::policy::PayloadRetention;

use super::checker::{Checker, Erasure};
use super::fault::{Fault, fault};
use super::{Stop, unreadable};
use crate::error::StoreError;
use crate::open::Store;
use crate::read::PayloadRow;
use crate::schema::PAYLOADS_PER_EVENT;
use crate::write::{SALT_BYTES, to_i64};

/// What a payload that is as it should be counts as.
enum Found {
    /// It is here.
    Kept,
    /// Its run was erased.
    Erased,
    /// It was never kept.
    Absent,
    /// It is private, and not here.
    Withheld,
}

/// What is known of the run of a payload.
#[derive(Clone, Copy)]
struct OfRun {
    keeps: PayloadRetention,
    is_erased: bool,
}

impl OfRun {
    /// What a payload counts as, as its row has it.
    fn judge(
        self,
        row: &PayloadRow,
        item: &PayloadRef,
        class: PayloadClass,
    ) -> Result<Found, &'static str> {
        row.fits(item, class)?;
        let PayloadRow { salt, bytes, sha256, .. } = row;
        if self.is_erased {
            let is_gone = salt.is_none() && bytes.is_none() && sha256.is_none();
            return if is_gone {
                Ok(Found::Erased)
            } else {
                Err("it is there, and its run was erased")
            };
        }
        if salt.as_ref().is_some_and(|salt| salt.len() != SALT_BYTES) {
            return Err("its salt is not 32 bytes long");
        }
        if class.is_private() && sha256.is_some() {
            return Err("it is private, and a digest of it is beside it");
        }
        match (salt, bytes) {
            (_, Some(bytes)) => match sha256 {
                None if !class.is_private() => Err("its bytes are here, and their digest is not"),
                Some(sha256) if *sha256 != Digest::of(bytes).to_string() => {
                    Err("its digest is not that of its bytes")
                }
                _ => Ok(Found::Kept),
            },
            (None, None) if class.is_private() => Ok(Found::Withheld),
            _ if class.is_private() || self.keeps == PayloadRetention::Full => {
                Err("its bytes are gone, and its run keeps them")
            }
            (None, None) => Err("its salt is gone, and its run was not erased"),
            (Some(_), None) => match sha256 {
                Some(sha256) if !is_digest(sha256) => Err("its digest is none"),
                _ => Ok(Found::Absent),
            },
        }
    }
}

/// Whether a text is a digest as it is written.
fn is_digest(text: &str) -> bool {
    Digest::from_hex(text).is_some_and(|digest| digest.to_string() == text)
}

impl Checker<'_> {
    /// What an event commits to is there, or rightly gone.
    pub(super) fn check_payloads(
        &mut self,
        leaf: u64,
        (place, entry): (&str, &Entry),
        keeps: PayloadRetention,
    ) -> Result<(), Stop> {
        let item = entry.event.payloads();
        let erasure = entry.run.and_then(|run| self.erased.get_mut(&run));
        if erasure.as_ref().is_some_and(|erasure| erasure.leaf < leaf) {
            return Err(fault(place, "its run was erased before").into());
        }
        let of_run = OfRun { keeps, is_erased: erasure.is_some() };
        if let Some(erasure) = erasure {
            erasure.found += u64::try_from(item.len()).unwrap_or(u64::MAX);
        }
        for (part, (reference, class)) in item.into_iter().enumerate() {
            self.referenced += 1;
            let commit = reference.commit.to_string();
            let place = format!("payload {}… of {place}", commit.get(..8).unwrap_or(""));
            let row = self.store.payload_row(leaf, part).map_err(unreadable(&place))?;
            let found = row.as_ref().ok_or("it is missing");
            match found.and_then(|row| of_run.judge(row, &reference, class)) {
                Ok(Found::Kept) => self.proof.payloads += 1,
                Ok(Found::Erased) => self.proof.erased += 1,
                Ok(Found::Absent) => self.proof.absent += 1,
                Ok(Found::Withheld) => {
                    self.proof.absent += 1;
                    let what = "it is gone, and nothing of its run was erased";
                    self.withheld.get_or_insert_with(|| fault(place, what));
                }
                Err(what) => return Err(fault(place, what).into()),
            }
        }
        match entry.event {
            Event::PayloadErased { subject, payloads } => {
                Ok(self.check_erasure(place, leaf, (subject, payloads))?)
            }
            _ => Ok(()),
        }
    }

    /// An event that says that a run was erased counts its payloads, and is the only one.
    fn check_erasure(
        &mut self,
        place: &str,
        leaf: u64,
        (subject, payloads): (RunId, u64),
    ) -> Result<(), Fault> {
        let found = self
            .erased
            .get(&subject)
            .filter(|erasure| erasure.leaf == leaf)
            .map(|erasure| erasure.found);
        let what = match found {
            Some(found) if found == payloads && found > 0 => return Ok(()),
            Some(found) => format!("it counts {payloads} payloads of {subject}; there are {found}"),
            None => format!("{subject} was erased before"),
        };
        Err(fault(place, what))
    }

    /// Private payloads are withheld where one run is written out, and nowhere else.
    pub(super) fn check_withheld(&mut self) -> Result<(), Fault> {
        let is_written_out = self.is_alone && self.attesting.holds_one_run();
        self.withheld.take().filter(|_| !is_written_out).map_or(Ok(()), Err)
    }

    /// Each row belongs to an event.
    pub(super) fn check_payload_rows(&self) -> Result<(), Stop> {
        let count = "SELECT count(*) FROM payloads";
        let sql = &self.store.sql;
        let rows: i64 =
            sql.query_row(count, [], |row| row.get(0)).map_err(unreadable("payloads"))?;
        if rows == to_i64(self.referenced) {
            return Ok(());
        }
        let mut query =
            sql.prepare("SELECT id FROM payloads ORDER BY id").map_err(unreadable("payloads"))?;
        let mut rows = query.query([]).map_err(unreadable("payloads"))?;
        while let Some(row) = rows.next().map_err(unreadable("payloads"))? {
            let id: i64 = row.get(0).map_err(unreadable("payloads"))?;
            let (leaf, part) = (
                id.div_euclid(to_i64(PAYLOADS_PER_EVENT)),
                id.rem_euclid(to_i64(PAYLOADS_PER_EVENT)),
            );
            let known = self.known_payloads(leaf)?;
            if part >= known {
                let what = format!("no event knows this row: event {leaf} has {known} payloads");
                return Err(fault(format!("payload row {id}"), what).into());
            }
        }
        // Each event found its own rows before, so there are more of them.
        Err(fault("payloads", "there are more rows than events know").into())
    }

    /// How many payloads the event at a leaf has; none where there is no such event.
    fn known_payloads(&self, leaf: i64) -> Result<i64, Stop> {
        let Ok(leaf) = u64::try_from(leaf) else { return Ok(0) };
        let stored = self.store.event_at(leaf)?;
        let count = stored.map_or(0, |event| event.entry.event.payloads().len());
        Ok(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

impl Store {
    /// The runs whose payloads were erased, and where the record says so first.
    pub(super) fn erasures(&self) -> Result<BTreeMap<RunId, Erasure>, StoreError> {
        let mut runs = BTreeMap::new();
        for (leaf, subject) in self.erased_runs()? {
            runs.entry(subject).or_insert(Erasure { leaf, found: 0 });
        }
        Ok(runs)
    }
}
