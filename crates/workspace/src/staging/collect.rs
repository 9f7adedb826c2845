//! Collects what a run changed, and bounds what a command may write.

use std::time::{Duration, Instant};

use capsule_base::path::WorkspacePath;
use capsule_core::change::Change;
use capsule_core::outcome::CodedError;

use super::refusals::too_many_problem;
use super::scan::{ChangeScan, exceeds_limits};
use super::state::Staging;
use crate::change_set::ChangeSet;
use crate::hidden_paths::HiddenPaths;
use crate::resolve::Workspace;

/// How often the size of the changes is looked at while a command runs.
const SIZE_CHECK_INTERVAL: Duration = Duration::from_millis(200);

impl Staging {
    /// What changed since somebody last asked at one path, beneath it and in the folders above it. What else the
    /// run changed is not looked at, so that the cost does not grow with it.
    ///
    /// # Errors
    /// The changes cannot be read.
    pub fn collect_at(
        &self,
        path: &WorkspacePath,
        seen: (&HiddenPaths, &Workspace),
    ) -> Result<Vec<Change>, CodedError> {
        let Some(now) = ChangeScan::new(self, seen).run_at(path.as_str())? else {
            return self.collect(seen);
        };
        let mut known = self.last_scan.borrow_mut();
        let above = path.ancestors().filter(|ancestor| !ancestor.is_root()).map(String::from);
        let beneath = format!("{path}/");
        let inner = known.0.range(beneath.clone()..);
        let inner = inner.map(|(path, _)| path).take_while(|text| text.starts_with(&beneath));
        let paths: Vec<String> = above.chain(inner.cloned()).collect();
        let before = paths.into_iter().filter_map(|path| known.0.remove_entry(&path));
        let between = ChangeSet(before.collect()).changes_until(&now);
        known.0.extend(now.0);
        Ok(between)
    }

    /// What changed since somebody last asked.
    ///
    /// # Errors
    /// The changes cannot be read.
    pub fn collect(&self, seen: (&HiddenPaths, &Workspace)) -> Result<Vec<Change>, CodedError> {
        self.show_in_indexes(seen.1);
        let now = ChangeScan::new(self, seen).run()?;
        let mut known = self.last_scan.borrow_mut();
        let between = known.changes_until(&now);
        *known = now;
        Ok(between)
    }

    /// Why a command that has written more than may be staged is ended. Looked at now and then, and
    /// never for more than a tenth of the time.
    pub fn space_problem(&self) -> Option<CodedError> {
        if let Some((last, took)) = self.last_size_check.get()
            && last.elapsed() < SIZE_CHECK_INTERVAL.max(took * 10)
        {
            return None;
        }
        let began = Instant::now();
        let full = exceeds_limits(self)
            .then(|| too_many_problem(self.layers.limits.get()))
            .or_else(|| self.unreadable_problem());
        self.last_size_check.set(Some((Instant::now(), began.elapsed())));
        full
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use std::rc::Rc;

    use super::super::directory::CHANGES_DIRECTORY;
    use super::super::state::DiskSpace;
    use super::*;

    /// What no scan can read is bounded by the space that it takes, for all commands together since
    /// something was closed.
    #[test]
    fn closed_directories_are_bounded_by_their_space() {
        let folder = tempfile::tempdir().unwrap();
        for name in [CHANGES_DIRECTORY, "ws"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let workspace = Rc::new(Workspace::open(&folder.path().join("ws")).unwrap());
        let staging = Staging::open(folder.path(), &workspace).unwrap();
        staging
            .space_before
            .set(staging.disk_space().map(|now| DiskSpace { free: now.free + (1 << 40), ..now }));
        assert!(staging.space_problem().is_some());
        // The next command does not begin anew while something is closed.
        for closed in [true, false] {
            staging.has_unreadable.set(closed);
            staging.begin_command();
            assert_eq!(staging.unreadable_problem().is_some(), closed);
        }
    }
}
