//! What a verification is told from elsewhere, and what it makes of that: the keys that may have signed,
//! and what anchors saw.

use std::collections::{BTreeMap, BTreeSet};

use crate::merkle::Frontier;
use capsule_base::digest::Digest;
use capsule_core::id::RunId;

use crate::checkpoint::signing::{origin_of_run, run_of_origin};
use crate::checkpoint::{SignatureCheck, SignedNote, Verifier, WitnessedCheckpoints};
use crate::verify::fault::{Fault, fault};

/// What a verification is told from elsewhere.
#[derive(Clone, Debug, Default)]
pub struct TrustRoots {
    /// The keys that may have signed.
    pub keys: Vec<Verifier>,
    /// Whether nobody else may have, and somebody must: keys that a person brought. A key that was found
    /// beside the store says nothing about one that is missing there.
    pub is_strict: bool,
    /// What others saw of the log.
    pub witnesses: Vec<WitnessedCheckpoints>,
}

/// What is signed, and what was seen elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttestationReport {
    /// Checkpoints in the tree.
    pub checkpoints: u64,
    /// How many of them a known key signed.
    pub valid: u64,
    /// The keys that did: their names and numbers.
    pub signers: BTreeSet<(String, String)>,
    /// The names of others that are said to have signed.
    pub other_signers: BTreeSet<String>,
    /// How many events the largest of the good ones signs.
    pub signed_events: u64,
    /// What each anchor saw last of this log.
    pub anchors: Vec<AnchorReport>,
}

/// What an anchor saw last of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnchorReport {
    /// The anchor.
    pub name: String,
    /// The log, as the anchor calls it.
    pub origin: String,
    /// Some other logs that it knows.
    pub other_logs: Vec<String>,
    /// The events that the log had then.
    pub size: u64,
    /// Its root then.
    pub root: Digest,
    /// Whether the checkpoint of that size and root is the next event, as it is where it was signed.
    pub is_next: bool,
}

/// How many other logs of an anchor are named.
const OTHER_LOGS: usize = 5;

/// A root that an anchor saw of a log.
struct WitnessedRoot {
    anchor: usize,
    origin: String,
    root: Digest,
    is_next: bool,
}

/// Compares what a walk over a tree finds with what was told.
pub(crate) struct AttestationCheck<'t> {
    trust: &'t TrustRoots,
    /// The names under which it is signed.
    origins: BTreeSet<String>,
    /// The run that was written out, where it is the tree of one: another log than that of its key.
    of_run: Option<RunId>,
    /// What was seen at sizes that the walk has not come to.
    upcoming: BTreeMap<u64, Vec<WitnessedRoot>>,
    /// What was seen otherwise: the size, what was seen, and what is there.
    mismatches: Vec<(u64, WitnessedRoot, Digest)>,
    confirmed: Vec<(u64, WitnessedRoot)>,
    runs: RunsInTree,
    report: AttestationReport,
}

/// Which runs a tree holds so far.
enum RunsInTree {
    None,
    Single(RunId),
    /// Several, or events that belong to none.
    Several,
}

impl<'t> AttestationCheck<'t> {
    pub(crate) fn new(trust: &'t TrustRoots) -> Self {
        let mut ahead: BTreeMap<u64, Vec<WitnessedRoot>> = BTreeMap::new();
        for (anchor, sightings) in trust.witnesses.iter().enumerate() {
            for origin in sightings.origins() {
                for (size, roots) in sightings.roots_of(origin) {
                    let seen = |root: &Digest| WitnessedRoot {
                        anchor,
                        origin: origin.into(),
                        root: *root,
                        is_next: false,
                    };
                    ahead.entry(size).or_default().extend(roots.iter().map(seen));
                }
            }
        }
        Self {
            trust,
            origins: BTreeSet::new(),
            of_run: None,
            upcoming: ahead,
            mismatches: Vec::new(),
            confirmed: Vec::new(),
            runs: RunsInTree::None,
            report: AttestationReport::default(),
        }
    }

    /// The tree as it is before its next leaf, or at its end.
    pub(crate) fn compare_tree(&mut self, tree: &Frontier) {
        let Some(seen) = self.upcoming.remove(&tree.size()) else { return };
        let root = tree.root();
        for seen in seen {
            match seen.root == root {
                true => self.confirmed.push((tree.size(), seen)),
                false => self.mismatches.push((tree.size(), seen, root)),
            }
        }
    }

    /// Whether it is the tree of one run that was written out.
    pub(crate) const fn is_of_run(&self) -> bool {
        self.of_run.is_some()
    }

    /// Whether it holds the events of one run and nothing else but checkpoints.
    pub(crate) const fn holds_one_run(&self) -> bool {
        matches!(self.runs, RunsInTree::Single(_))
    }

    /// An event that is no checkpoint.
    pub(crate) fn record_event(&mut self, place: &str, run: Option<RunId>) -> Result<(), Fault> {
        if self.of_run.is_some() && self.of_run != run {
            return Err(fault(
                place,
                "it does not belong to the one run that was written out here",
            ));
        }
        self.runs = match (&self.runs, run) {
            (RunsInTree::None, Some(run)) => RunsInTree::Single(run),
            (RunsInTree::Single(one), Some(run)) if *one == run => return Ok(()),
            _ => RunsInTree::Several,
        };
        Ok(())
    }

    /// A checkpoint, and the tree before it.
    pub(crate) fn record_checkpoint(
        &mut self,
        place: &str,
        note: &str,
        tree: &Frontier,
    ) -> Result<(), Fault> {
        let note = SignedNote::parse(note).ok_or_else(|| fault(place, "it is no signed note"))?;
        let checkpoint =
            note.checkpoint().ok_or_else(|| fault(place, "its note is no checkpoint"))?;
        if (checkpoint.size, checkpoint.root) != (tree.size(), tree.root()) {
            let what = format!(
                "it signs {} events with root {}; before it stand {} with root {}",
                checkpoint.size,
                checkpoint.root.short(),
                tree.size(),
                tree.root().short()
            );
            return Err(fault(place, what));
        }
        self.report.checkpoints += 1;
        let is_good = self.check_signatures(place, &note, &checkpoint.origin)?;
        if let Some(run) = run_of_origin(&checkpoint.origin) {
            // Whoever signed it, it is about a tree that holds this run and nothing else.
            if !matches!(&self.runs, RunsInTree::Single(one) if *one == run) {
                return Err(fault(place, format!("it is of another log, `{}`", checkpoint.origin)));
            }
            self.of_run = Some(run);
        }
        if is_good {
            self.report.valid += 1;
            self.report.signed_events = checkpoint.size;
        } else if self.trust.is_strict {
            return Err(fault(place, "none of the keys that were given signed it"));
        } else {
            self.report.other_signers.extend(note.signer_names().map(str::to_owned));
        }
        for (_, seen) in
            self.confirmed.iter_mut().rev().take_while(|(size, _)| *size == checkpoint.size)
        {
            seen.is_next |= seen.origin == checkpoint.origin;
        }
        self.origins.insert(checkpoint.origin);
        Ok(())
    }

    /// Checks the signatures of a checkpoint with the known keys; says whether one of the keys signed it.
    fn check_signatures(
        &mut self,
        place: &str,
        note: &SignedNote,
        origin: &str,
    ) -> Result<bool, Fault> {
        let mut is_good = false;
        for key in &self.trust.keys {
            match note.verify(key) {
                SignatureCheck::Valid if self.is_ours(key.name(), origin) => is_good = true,
                SignatureCheck::Valid => {
                    return Err(fault(place, format!("it is of another log, `{origin}`")));
                }
                SignatureCheck::Invalid => {
                    let what = format!("its signature is not that of `{}`", key.name());
                    return Err(fault(place, what));
                }
                SignatureCheck::Absent => continue,
            }
            self.report.signers.insert((key.name().to_owned(), key.key_number()));
        }
        Ok(is_good)
    }

    /// Whether a key signs trees of that name: its log, or the one run of it that this tree is.
    fn is_ours(&self, name: &str, origin: &str) -> bool {
        origin == name
            || matches!(&self.runs, RunsInTree::Single(run) if origin == origin_of_run(name, *run))
    }

    /// What it came to, once the whole tree was walked.
    pub(crate) fn finish(self, leaves: u64) -> Result<AttestationReport, Fault> {
        let Self {
            trust,
            mut origins,
            of_run,
            upcoming: ahead,
            mismatches: wrong,
            confirmed: right,
            report: mut found,
            ..
        } = self;
        if of_run.is_none() {
            origins.extend(trust.keys.iter().map(|key| key.name().to_owned()));
        }
        let named = |seen: &WitnessedRoot| {
            let anchor = trust.witnesses.get(seen.anchor);
            format!("anchor {}", anchor.map_or("", |own| own.name.as_str()))
        };
        let ours = |seen: &WitnessedRoot| origins.contains(&seen.origin);
        if let Some((size, seen, root)) = wrong.iter().find(|(_, seen, _)| ours(seen)) {
            let what = format!(
                "it saw the first {size} events with root {}; those here have root {}",
                seen.root.short(),
                root.short()
            );
            return Err(fault(named(seen), what));
        }
        let mut beyond =
            ahead.iter().flat_map(|(size, all)| all.iter().map(move |root| (size, root)));
        if let Some((size, seen)) = beyond.find(|(_, seen)| ours(seen)) {
            return Err(fault(named(seen), format!("it saw {size} events; here are {leaves}")));
        }
        for (index, anchor) in trust.witnesses.iter().enumerate() {
            let item = right.iter().filter(|(_, seen)| seen.anchor == index && ours(seen));
            let Some((size, seen)) = item.max_by_key(|(size, _)| *size) else {
                let names: Vec<&str> = origins.iter().map(String::as_str).collect();
                let names = match names.as_slice() {
                    [] => "which is not signed".to_owned(),
                    names => format!("`{}`", names.join("`, `")),
                };
                let what = format!("there is no checkpoint of this log in it, {names}");
                return Err(fault(format!("anchor {}", anchor.name), what));
            };
            let others =
                anchor.origins().filter(|origin| !origins.contains(*origin)).take(OTHER_LOGS);
            found.anchors.push(AnchorReport {
                name: anchor.name.clone(),
                origin: seen.origin.clone(),
                other_logs: others.map(str::to_owned).collect(),
                size: *size,
                root: seen.root,
                is_next: seen.is_next,
            });
        }
        match trust.is_strict && found.valid == 0 {
            true => Err(fault("signature", "nothing in it is signed by the keys that were given")),
            false => Ok(found),
        }
    }
}
