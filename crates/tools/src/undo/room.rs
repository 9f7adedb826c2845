//! How much is kept for undoing the calls of all runs together, and what is dropped where that is more
//! than there is room for: what the run that kept last longest ago has kept.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;

use capsule_core::code::Code;
use capsule_core::id::RunId;
use capsule_core::outcome::CodedError;
use capsule_core::units::show_size;
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, flock, openat, statat, unlinkat,
};
use rustix::io::Errno;

use super::keeper::{Failed, errno};
use super::{FILE, FOLDER, names};
use crate::tool::Host;
use crate::workspace::kind;

/// What a file takes at least, as file systems give out space.
const BLOCK: u64 = 4_096;
/// The file that says how much is kept, so that it need not be counted each time. Its lock keeps those
/// apart who keep something at the same time.
const TOTAL: &str = "total";

/// How much space a file of so many bytes takes.
pub(super) fn rounded(bytes: u64) -> u64 {
    bytes.max(1).div_ceil(BLOCK).saturating_mul(BLOCK)
}

/// The room for what is kept.
pub(super) struct Room<'r> {
    /// The folder of all runs.
    pub all: &'r OwnedFd,
    /// The run that keeps something now.
    pub own: &'r str,
    /// The most bytes.
    pub most: u64,
    /// Whoever writes down what is dropped.
    pub host: &'r dyn Host,
}

/// What one run has kept.
struct Run {
    name: String,
    /// When something last came, in seconds since 1970 and nanoseconds.
    last: (i64, u64),
    files: Vec<Kept>,
}

struct Kept {
    name: String,
    bytes: u64,
    last: (i64, u64),
}

impl Run {
    fn bytes(&self) -> u64 {
        self.files.iter().map(|file| rounded(file.bytes)).sum()
    }
}

impl Room<'_> {
    /// Takes so many bytes, and makes room for them where there is none. What is `needed` is not
    /// dropped for it.
    pub(super) fn take(&self, bytes: u64, needed: &BTreeSet<String>) -> Result<(), Failed> {
        let flags = FILE | OFlags::RDWR | OFlags::CREATE;
        let total = openat(self.all, TOTAL, flags, Mode::RUSR | Mode::WUSR)?;
        flock(&total, FlockOperation::LockExclusive)?;
        let mut total = File::from(total);
        let known = told(&mut total).and_then(|own| own.checked_add(bytes));
        let now = match known.filter(|now| *now <= self.most) {
            Some(now) => now,
            None => self.make(bytes, needed)?,
        };
        // Written over, not anew: file systems write out at once what was emptied first.
        total.rewind().map_err(|error| errno(&error))?;
        total.write_all(format!("{now:020}").as_bytes()).map_err(|error| errno(&error))?;
        Ok(())
    }

    /// Counts what is kept, and drops the oldest of it until there is room again, and some to spare.
    /// Gives how much is taken then.
    fn make(&self, bytes: u64, needed: &BTreeSet<String>) -> Result<u64, Failed> {
        let mut runs = self.runs()?;
        let mut now = runs.iter().map(Run::bytes).sum::<u64>().saturating_add(bytes);
        if now <= self.most {
            return Ok(now);
        }
        let enough = self.most - self.most / 8;
        // The run at work comes last, and of its files those that are needed never.
        runs.sort_by_key(|run| (run.name == self.own, run.last));
        for mut run in runs {
            if now <= enough {
                break;
            }
            let is_own = run.name == self.own;
            run.files.retain(|file| !(is_own && needed.contains(&file.name)));
            if is_own {
                // Only as many of its own as it takes.
                run.files.sort_by_key(|file| file.last);
                let mut left = now;
                run.files.retain(|file| {
                    let drop = left > self.most;
                    left = left.saturating_sub(if drop { rounded(file.bytes) } else { 0 });
                    drop
                });
            }
            self.drop(&run, !is_own)?;
            now = now.saturating_sub(run.bytes());
        }
        match now <= self.most {
            true => Ok(now),
            false => Err(Failed::Problem(self.full())),
        }
    }

    fn full(&self) -> CodedError {
        let message = format!("no more than {} are kept for undoing calls", show_size(self.most));
        CodedError::new(Code::UndoUnkept, message).with_suggestion(Code::UndoUnkept.next_step())
    }

    /// Drops files of a run, once that is written down.
    fn drop(&self, run: &Run, whole: bool) -> Result<(), Failed> {
        let files = u64::try_from(run.files.len()).unwrap_or(u64::MAX);
        if files > 0
            && let Some(id) = RunId::parse(&run.name)
        {
            self.host.undo_dropped(id, files).map_err(|why| {
                let message = format!("nothing older can be dropped: {why}");
                CodedError::new(Code::UndoUnkept, message)
            })?;
        }
        let folder = match openat(self.all, run.name.as_str(), FOLDER, Mode::empty()) {
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
            let _ = unlinkat(self.all, run.name.as_str(), AtFlags::REMOVEDIR);
        }
        Ok(())
    }

    /// What every run has kept.
    fn runs(&self) -> Result<Vec<Run>, Errno> {
        let mut runs = Vec::new();
        for name in names(self.all)? {
            let is_run = RunId::parse(&name).is_some();
            let opened = openat(self.all, name.as_str(), FOLDER, Mode::empty());
            let (true, Ok(folder)) = (is_run, opened) else { continue };
            let mut run = Run { name, last: (0, 0), files: Vec::new() };
            let kept = match names(&folder) {
                Err(Errno::NOENT) => continue,
                kept => kept?,
            };
            for name in kept {
                let Ok(stat) = statat(&folder, name.as_str(), AtFlags::SYMLINK_NOFOLLOW) else {
                    continue;
                };
                if kind(&stat) != FileType::RegularFile {
                    continue;
                }
                let last = (stat.st_mtime, stat.st_mtime_nsec);
                run.last = run.last.max(last);
                let bytes = u64::try_from(stat.st_size).unwrap_or(0);
                run.files.push(Kept { name, bytes, last });
            }
            runs.push(run);
        }
        Ok(runs)
    }
}

/// How much the file says that is kept.
fn told(total: &mut File) -> Option<u64> {
    let mut text = String::new();
    total.take(20).read_to_string(&mut text).ok()?;
    text.parse().ok()
}
