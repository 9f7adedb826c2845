//! How much is kept for undoing the calls of all runs together, and what is dropped where that is more
//! than there is room for: what the run that kept last longest ago has kept.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;

use capsule_base::code::Code;
use capsule_base::units::show_size;
use capsule_core::id::RunId;
use capsule_core::outcome::CodedError;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, flock, openat, unlinkat};
use rustix::io::Errno;

use super::error::{BackupError, errno};
use super::{BackupLog, DIRECTORY_FLAGS, FILE_FLAGS, text_names};
use crate::resolve::file_type;
use crate::system::statat;

/// What a file takes at least, as file systems give out space.
const BLOCK_BYTES: u64 = 4_096;
/// The file that says how much is kept, so that it need not be counted each time. Its lock keeps those
/// apart who keep something at the same time.
const TOTAL_FILE: &str = "total";

/// How much space a file of so many bytes takes.
pub(super) fn disk_usage(bytes: u64) -> u64 {
    bytes.max(1).div_ceil(BLOCK_BYTES).saturating_mul(BLOCK_BYTES)
}

/// The room for what is kept.
pub(super) struct BackupQuota<'r> {
    /// The folder of all runs.
    pub root: &'r OwnedFd,
    /// The run that keeps something now.
    pub current_run: &'r str,
    /// The most bytes.
    pub max_bytes: u64,
    /// Whoever writes down what is dropped.
    pub log: &'r dyn BackupLog,
}

/// What one run has kept.
struct RunBackups {
    name: String,
    /// When something last came, in seconds since 1970 and nanoseconds.
    last_change: (i64, u64),
    files: Vec<BackupFile>,
}

struct BackupFile {
    name: String,
    bytes: u64,
    last_change: (i64, u64),
}

impl RunBackups {
    fn bytes(&self) -> u64 {
        self.files.iter().map(|file| disk_usage(file.bytes)).sum()
    }
}

impl BackupQuota<'_> {
    /// Takes so many bytes, and makes room for them where there is none. What is `needed` is not
    /// dropped for it.
    pub(super) fn reserve(&self, bytes: u64, needed: &BTreeSet<String>) -> Result<(), BackupError> {
        let flags = FILE_FLAGS | OFlags::RDWR | OFlags::CREATE;
        let total = openat(self.root, TOTAL_FILE, flags, Mode::RUSR | Mode::WUSR)?;
        flock(&total, FlockOperation::LockExclusive)?;
        let mut total = File::from(total);
        let known = read_total(&mut total).and_then(|number| number.checked_add(bytes));
        let now = match known.filter(|now| *now <= self.max_bytes) {
            Some(now) => now,
            None => self.free_space(bytes, needed)?,
        };
        // Written over, not anew: file systems write out at once what was emptied first.
        total.rewind().map_err(|error| errno(&error))?;
        total.write_all(format!("{now:020}").as_bytes()).map_err(|error| errno(&error))?;
        Ok(())
    }

    /// Counts what is kept, and drops the oldest of it until there is room again, and some to spare.
    /// Gives how much is taken then.
    fn free_space(&self, bytes: u64, needed: &BTreeSet<String>) -> Result<u64, BackupError> {
        let mut runs = self.list_runs()?;
        let mut now = runs.iter().map(RunBackups::bytes).sum::<u64>().saturating_add(bytes);
        if now <= self.max_bytes {
            return Ok(now);
        }
        let enough = self.max_bytes - self.max_bytes / 8;
        // The run at work comes last, and of its files those that are needed never.
        runs.sort_by_key(|run| (run.name == self.current_run, run.last_change));
        for mut run in runs {
            if now <= enough {
                break;
            }
            let is_own = run.name == self.current_run;
            run.files.retain(|file| !(is_own && needed.contains(&file.name)));
            if is_own {
                // Only as many of its own as it takes.
                run.files.sort_by_key(|file| file.last_change);
                let mut left = now;
                run.files.retain(|file| {
                    let drop = left > self.max_bytes;
                    left = left.saturating_sub(if drop { disk_usage(file.bytes) } else { 0 });
                    drop
                });
            }
            self.drop_backups(&run, !is_own)?;
            now = now.saturating_sub(run.bytes());
        }
        match now <= self.max_bytes {
            true => Ok(now),
            false => Err(BackupError::Problem(self.full_problem())),
        }
    }

    fn full_problem(&self) -> CodedError {
        let message =
            format!("no more than {} are kept for undoing calls", show_size(self.max_bytes));
        CodedError::new(Code::UndoUnkept, message).with_suggestion(Code::UndoUnkept.next_step())
    }

    /// Drops files of a run, once that is written down.
    fn drop_backups(&self, run: &RunBackups, whole: bool) -> Result<(), BackupError> {
        let files = u64::try_from(run.files.len()).unwrap_or(u64::MAX);
        if files > 0
            && let Some(id) = RunId::parse(&run.name)
        {
            self.log.record_dropped_backups(id, files).map_err(|why| {
                let message = format!("nothing older can be dropped: {why}");
                CodedError::new(Code::UndoUnkept, message)
            })?;
        }
        let folder = match openat(self.root, run.name.as_str(), DIRECTORY_FLAGS, Mode::empty()) {
            // Another process has erased that run.
            Err(Errno::NOENT) => return Ok(()),
            folder => folder?,
        };
        for file in &run.files {
            match unlinkat(&folder, file.name.as_str(), AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        if whole {
            // One that something came into meanwhile stays.
            let _ = unlinkat(self.root, run.name.as_str(), AtFlags::REMOVEDIR);
        }
        Ok(())
    }

    /// What every run has kept.
    fn list_runs(&self) -> Result<Vec<RunBackups>, Errno> {
        let mut runs = Vec::new();
        for name in text_names(self.root)? {
            let is_run = RunId::parse(&name).is_some();
            let opened = openat(self.root, name.as_str(), DIRECTORY_FLAGS, Mode::empty());
            let (true, Ok(folder)) = (is_run, opened) else { continue };
            let mut run = RunBackups { name, last_change: (0, 0), files: Vec::new() };
            let kept = match text_names(&folder) {
                Err(Errno::NOENT) => continue,
                kept => kept?,
            };
            for name in kept {
                let Ok(stat) = statat(&folder, name.as_str(), AtFlags::SYMLINK_NOFOLLOW) else {
                    continue;
                };
                if file_type(&stat) != FileType::RegularFile {
                    continue;
                }
                let last = (stat.st_mtime, stat.st_mtime_nsec);
                run.last_change = run.last_change.max(last);
                let bytes = u64::try_from(stat.st_size).unwrap_or(0);
                run.files.push(BackupFile { name, bytes, last_change: last });
            }
            runs.push(run);
        }
        Ok(runs)
    }
}

/// How much the file says that is kept.
fn read_total(total: &mut File) -> Option<u64> {
    let mut text = String::new();
    total.take(20).read_to_string(&mut text).ok()?;
    text.parse().ok()
}
