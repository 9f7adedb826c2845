//! The commits that names reach, latest first, as far as somebody asks.

use std::cell::RefCell;
use std::collections::{BTreeSet, BinaryHeap};

use capsule_base::limits;

use super::database::Database;
use super::flaw::Flaw;
use super::id::{Format, ObjectId};
use super::object::{Content, Kind};

/// How far the dates of commits may be in disorder before it costs a comparison, in seconds.
const DISORDER: i64 = 86_400;
/// Commits that some names reach.
pub(super) struct History<'h> {
    database: &'h Database<'h>,
    walk: RefCell<Walk>,
}

#[derive(Default)]
struct Walk {
    /// What waits to be read, latest first.
    waiting: BinaryHeap<(i64, ObjectId)>,
    known: BTreeSet<ObjectId>,
    /// The trees of those that were read.
    reached: Vec<ObjectId>,
}

impl<'h> History<'h> {
    pub(super) fn new(database: &'h Database<'h>) -> Self {
        Self { database, walk: RefCell::default() }
    }

    /// Adds what a name stands for. What is not there, and what is no commit, reaches nothing.
    pub(super) fn begin(&self, id: &ObjectId) -> Result<(), Flaw> {
        if let Some((id, Kind::Commit)) = self.database.peeled(id)? {
            self.add(id)?;
        }
        Ok(())
    }

    fn add(&self, id: ObjectId) -> Result<(), Flaw> {
        let mut walk = self.walk.borrow_mut();
        if walk.known.contains(&id) || !self.database.has(&id)? {
            return Ok(());
        }
        let date = self.database.commit(&id)?.date;
        walk.known.insert(id);
        walk.waiting.push((date, id));
        Ok(())
    }

    /// Reads the latest commit that waits. Says whether there was one.
    fn advance(&self) -> Result<bool, Flaw> {
        let Some((_, id)) = self.walk.borrow_mut().waiting.pop() else { return Ok(false) };
        let commit = self.database.commit(&id)?;
        for parent in commit.parents {
            self.add(parent)?;
        }
        let mut walk = self.walk.borrow_mut();
        walk.reached.push(commit.tree);
        if walk.reached.len() > limits::GIT_HISTORY {
            let most = limits::GIT_HISTORY;
            return Err(Flaw::new(format!("it is not among the last {most} commits")));
        }
        Ok(true)
    }

    /// Whether a commit is reached. One that says that it is much later than all that are left is not.
    pub(super) fn reaches(&self, id: &ObjectId, date: i64) -> Result<bool, Flaw> {
        loop {
            let walk = self.walk.borrow();
            if walk.known.contains(id) {
                return Ok(true);
            }
            let latest = walk.waiting.peek().map(|(date, _)| *date);
            drop(walk);
            if latest.is_none_or(|latest| latest < date.saturating_sub(DISORDER)) {
                return Ok(false);
            }
            self.advance()?;
        }
    }

    /// A commit that is reached, and of which the name begins so.
    pub(super) fn commit_beginning(
        &self,
        format: Format,
        begin: &str,
    ) -> Result<Option<ObjectId>, Flaw> {
        let whole = format!("{begin:0<width$}", width = format.bytes() * 2);
        let Some(first) = ObjectId::from_hex(format, whole.as_bytes()) else { return Ok(None) };
        loop {
            let found = self.walk.borrow().known.range(first..).next().copied();
            match found.filter(|id| id.to_string().starts_with(begin)) {
                Some(id) => return Ok(Some(id)),
                None if self.advance()? => {}
                None => return Ok(None),
            }
        }
    }

    /// Whether a path has this content in any commit that is reached.
    pub(super) fn holds(&self, path: &[u8], content: Content) -> Result<bool, Flaw> {
        let (mut next, mut asked) = (0, BTreeSet::new());
        loop {
            let tree = self.walk.borrow().reached.get(next).copied();
            match tree {
                Some(tree) => {
                    next += 1;
                    if asked.insert(tree) && self.database.at(&tree, path)? == Some(content) {
                        return Ok(true);
                    }
                }
                None if self.advance()? => {}
                None => return Ok(false),
            }
        }
    }
}
