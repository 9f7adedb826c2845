//! What a verification is told from elsewhere, and what it makes of that: the keys that may have signed,
//! and what anchors saw.

use std::collections::{BTreeMap, BTreeSet};

use capsule_core::digest::Digest;
use capsule_core::id::RunId;
use capsule_core::journal::Frontier;

use crate::checkpoint::sign::{origin_of_run, run_of_origin};
use crate::checkpoint::{Note, Seal, Sightings, Verifier};
use crate::verify::{Fault, fault};

/// What a verification is told from elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// The keys that may have signed.
    pub keys: Vec<Verifier>,
    /// Whether nobody else may have, and somebody must: keys that a person brought. A key that was found
    /// beside the store says nothing about one that is missing there.
    pub is_strict: bool,
    /// What others saw of the log.
    pub anchors: Vec<Sightings>,
}

/// What is signed, and what was seen elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attested {
    /// Checkpoints in the tree.
    pub checkpoints: u64,
    /// How many of them a known key signed.
    pub good: u64,
    /// The keys that did: their names and numbers.
    pub by: BTreeSet<(String, String)>,
    /// The names of others that are said to have signed.
    pub others: BTreeSet<String>,
    /// How many events the largest of the good ones signs.
    pub signed: u64,
    /// What each anchor saw last of this log.
    pub anchors: Vec<Anchored>,
}

/// What an anchor saw last of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchored {
    /// The anchor.
    pub name: String,
    /// The log, as the anchor calls it.
    pub origin: String,
    /// Some other logs that it knows.
    pub others: Vec<String>,
    /// The events that the log had then.
    pub size: u64,
    /// Its root then.
    pub root: Digest,
    /// Whether the checkpoint of that size and root is the next event, as it is where it was signed.
    pub is_next: bool,
}

/// How many other logs of an anchor are named.
const OTHERS: usize = 5;

/// A root that an anchor saw of a log.
struct Seen {
    anchor: usize,
    origin: String,
    root: Digest,
    is_next: bool,
}

/// Compares what a walk over a tree finds with what was told.
pub(crate) struct Attesting<'t> {
    trust: &'t Trust,
    /// The names under which it is signed.
    origins: BTreeSet<String>,
    /// The run that was written out, where it is the tree of one: another log than that of its key.
    of_run: Option<RunId>,
    /// What was seen at sizes that the walk has not come to.
    ahead: BTreeMap<u64, Vec<Seen>>,
    /// What was seen otherwise: the size, what was seen, and what is there.
    wrong: Vec<(u64, Seen, Digest)>,
    right: Vec<(u64, Seen)>,
    runs: Runs,
    found: Attested,
}

/// Which runs a tree holds so far.
enum Runs {
    None,
    One(RunId),
    /// Several, or events that belong to none.
    More,
}

impl<'t> Attesting<'t> {
    pub(crate) fn new(trust: &'t Trust) -> Self {
        let mut ahead: BTreeMap<u64, Vec<Seen>> = BTreeMap::new();
        for (anchor, sightings) in trust.anchors.iter().enumerate() {
            for origin in sightings.origins() {
                for (size, roots) in sightings.of_log(origin) {
                    let seen = |root: &Digest| Seen {
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
            ahead,
            wrong: Vec::new(),
            right: Vec::new(),
            runs: Runs::None,
            found: Attested::default(),
        }
    }

    /// The tree as it is before its next leaf, or at its end.
    pub(crate) fn reach(&mut self, tree: &Frontier) {
        let Some(seen) = self.ahead.remove(&tree.size()) else { return };
        let root = tree.root();
        for seen in seen {
            match seen.root == root {
                true => self.right.push((tree.size(), seen)),
                false => self.wrong.push((tree.size(), seen, root)),
            }
        }
    }

    /// Whether it is the tree of one run that was written out.
    pub(crate) const fn is_of_run(&self) -> bool {
        self.of_run.is_some()
    }

    /// Whether it holds the events of one run and nothing else but checkpoints.
    pub(crate) const fn holds_one_run(&self) -> bool {
        matches!(self.runs, Runs::One(_))
    }

    /// An event that is no checkpoint.
    pub(crate) fn pass(&mut self, place: &str, run: Option<RunId>) -> Result<(), Fault> {
        if self.of_run.is_some() && self.of_run != run {
            return Err(fault(
                place,
                "it does not belong to the one run that was written out here",
            ));
        }
        self.runs = match (&self.runs, run) {
            (Runs::None, Some(run)) => Runs::One(run),
            (Runs::One(one), Some(run)) if *one == run => return Ok(()),
            _ => Runs::More,
        };
        Ok(())
    }

    /// A checkpoint, and the tree before it.
    pub(crate) fn note(&mut self, place: &str, note: &str, tree: &Frontier) -> Result<(), Fault> {
        let note = Note::parse(note).ok_or_else(|| fault(place, "it is no signed note"))?;
        let own = note.checkpoint().ok_or_else(|| fault(place, "its note is no checkpoint"))?;
        if (own.size, own.root) != (tree.size(), tree.root()) {
            let what = format!(
                "it signs {} events with root {}; before it stand {} with root {}",
                own.size,
                own.root.short(),
                tree.size(),
                tree.root().short()
            );
            return Err(fault(place, what));
        }
        self.found.checkpoints += 1;
        let mut is_good = false;
        for key in &self.trust.keys {
            match note.seal(key) {
                Seal::Good if self.is_ours(key.name(), &own.origin) => is_good = true,
                Seal::Good => {
                    return Err(fault(place, format!("it is of another log, `{}`", own.origin)));
                }
                Seal::Bad => {
                    let what = format!("its signature is not that of `{}`", key.name());
                    return Err(fault(place, what));
                }
                Seal::Absent => continue,
            }
            self.found.by.insert((key.name().to_owned(), key.number()));
        }
        if let Some(run) = run_of_origin(&own.origin) {
            // Whoever signed it, it is about a tree that holds this run and nothing else.
            if !matches!(&self.runs, Runs::One(one) if *one == run) {
                return Err(fault(place, format!("it is of another log, `{}`", own.origin)));
            }
            self.of_run = Some(run);
        }
        if is_good {
            self.found.good += 1;
            self.found.signed = own.size;
        } else if self.trust.is_strict {
            return Err(fault(place, "none of the keys that were given signed it"));
        } else {
            self.found.others.extend(note.names().map(str::to_owned));
        }
        for (_, seen) in self.right.iter_mut().rev().take_while(|(size, _)| *size == own.size) {
            seen.is_next |= seen.origin == own.origin;
        }
        self.origins.insert(own.origin);
        Ok(())
    }

    /// Whether a key signs trees of that name: its log, or the one run of it that this tree is.
    fn is_ours(&self, name: &str, origin: &str) -> bool {
        origin == name
            || matches!(&self.runs, Runs::One(run) if origin == origin_of_run(name, *run))
    }

    /// What it came to, once the whole tree was walked.
    pub(crate) fn end(self, leaves: u64) -> Result<Attested, Fault> {
        let Self { trust, mut origins, of_run, ahead, wrong, right, mut found, .. } = self;
        if of_run.is_none() {
            origins.extend(trust.keys.iter().map(|key| key.name().to_owned()));
        }
        let named = |seen: &Seen| {
            let anchor = trust.anchors.get(seen.anchor);
            format!("anchor {}", anchor.map_or("", |own| own.name.as_str()))
        };
        let ours = |seen: &Seen| origins.contains(&seen.origin);
        if let Some((size, seen, root)) = wrong.iter().find(|(_, seen, _)| ours(seen)) {
            let what = format!(
                "it saw the first {size} events with root {}; those here have root {}",
                seen.root.short(),
                root.short()
            );
            return Err(fault(named(seen), what));
        }
        let mut beyond =
            ahead.iter().flat_map(|(size, all)| all.iter().map(move |own| (size, own)));
        if let Some((size, seen)) = beyond.find(|(_, seen)| ours(seen)) {
            return Err(fault(named(seen), format!("it saw {size} events; here are {leaves}")));
        }
        for (index, anchor) in trust.anchors.iter().enumerate() {
            let own = right.iter().filter(|(_, seen)| seen.anchor == index && ours(seen));
            let Some((size, seen)) = own.max_by_key(|(size, _)| *size) else {
                let names: Vec<&str> = origins.iter().map(String::as_str).collect();
                let names = match names.as_slice() {
                    [] => "which is not signed".to_owned(),
                    names => format!("`{}`", names.join("`, `")),
                };
                let what = format!("there is no checkpoint of this log in it, {names}");
                return Err(fault(format!("anchor {}", anchor.name), what));
            };
            let others = anchor.origins().filter(|own| !origins.contains(*own)).take(OTHERS);
            found.anchors.push(Anchored {
                name: anchor.name.clone(),
                origin: seen.origin.clone(),
                others: others.map(str::to_owned).collect(),
                size: *size,
                root: seen.root,
                is_next: seen.is_next,
            });
        }
        match trust.is_strict && found.good == 0 {
            true => Err(fault("signature", "nothing in it is signed by the keys that were given")),
            false => Ok(found),
        }
    }
}
