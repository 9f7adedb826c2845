//! Keeps what stands somewhere before a call changes it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;

use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_base::limits;
use capsule_core::change::{Change, FileState};
use capsule_core::id::RunId;
use capsule_core::journal::UndoCoverage;
use capsule_core::lifecycle::SavedUndo;
use capsule_core::outcome::CodedError;
use capsule_core::undo::NoUndoReason;
use rustix::fs::{AtFlags, Mode, OFlags, fsync, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::error::{BackupError, errno};
use super::quota::{BackupQuota, disk_usage};
use super::undo_record::UndoRecord;
use super::{BackupLog, FILE_FLAGS, UNFINISHED_PREFIX, private_directory};
use crate::node::reflink;
use crate::system::{fstat, statat};

/// From how many bytes on sharing them is tried; fewer are written as fast.
const MIN_REFLINK_SIZE: u64 = 64 << 10;

/// How often a file is tried to be kept while other processes drop what was kept, to make room.
const TRIES: usize = 20;

/// How many files are written out one by one.
const MAX_SINGLE_SYNCS: usize = 8;

/// Keeps what the calls of one run replace and delete.
pub struct BackupStore {
    root: PathBuf,
    /// The run; none where nothing acts.
    run_id: Option<RunId>,
    log: Rc<dyn BackupLog>,
    /// The most bytes of all runs together.
    max_bytes: u64,
    open_directories: RefCell<Option<Rc<BackupDirectories>>>,
    /// What is on the disk for calls that came before.
    synced: RefCell<BTreeSet<String>>,
    /// Whether files may turn out to be shareable.
    may_reflink: Cell<bool>,
}

/// The folders, open.
struct BackupDirectories {
    root: OwnedFd,
    run_directory: OwnedFd,
}

/// What keeps one call's.
pub(crate) struct CallBackup<'k> {
    store: &'k BackupStore,
    directories: Option<Rc<BackupDirectories>>,
    changes: Vec<Change>,
    names: BTreeSet<String>,
    bytes: u64,
    /// The room that is taken at once.
    reserve: u64,
    /// The room that was taken and is not used.
    reserved: u64,
}

impl BackupStore {
    /// What is kept lies at `place`, in a folder of the run. Without a run nothing is kept, since
    /// nothing acts.
    #[must_use]
    pub fn new(place: PathBuf, run: Option<RunId>, log: Rc<dyn BackupLog>) -> Self {
        let most = limits::UNDO_STORE_BYTES;
        let (held, whole) = (RefCell::default(), RefCell::default());
        Self {
            root: place,
            run_id: run,
            log,
            max_bytes: most,
            open_directories: held,
            synced: whole,
            may_reflink: Cell::new(true),
        }
    }

    /// Where everything is kept.
    pub const fn root(&self) -> &PathBuf {
        &self.root
    }

    /// The run's full id.
    pub(crate) fn run(&self) -> String {
        self.run_id.map(|run| run.to_string()).unwrap_or_default()
    }

    /// Begins to keep what a call is about to change: files of these sizes, as far as that is known.
    pub(crate) fn begin(&self, sizes: impl Iterator<Item = u64>) -> CallBackup<'_> {
        let (changes, names) = (Vec::new(), BTreeSet::new());
        let wanted = sizes.map(disk_usage).fold(0, u64::saturating_add);
        CallBackup {
            store: self,
            directories: None,
            changes,
            names,
            bytes: 0,
            reserve: wanted,
            reserved: 0,
        }
    }

    /// Opens the folders. Those that are new survive a power cut from here on.
    fn open(&self) -> Result<Rc<BackupDirectories>, CodedError> {
        if let Some(held) = self.open_directories.borrow().as_ref() {
            return Ok(Rc::clone(held));
        }
        let run = self.run_id.ok_or_else(|| {
            CodedError::new(Code::EngineFault, "something was to be kept where nothing acts")
        })?;
        let opened = || -> Result<BackupDirectories, Errno> {
            let (Some(above), Some(name)) =
                (self.root.parent(), self.root.file_name().and_then(|name| name.to_str()))
            else {
                return Err(Errno::INVAL);
            };
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let above = rustix::fs::open(above, flags, Mode::empty())?;
            let (all, is_new) = private_directory(&above, name)?;
            let (fd, is_own_new) = private_directory(&all, &run.to_string())?;
            if is_own_new {
                fsync(&all)?;
            }
            if is_new {
                fsync(&above)?;
            }
            Ok(BackupDirectories { root: all, run_directory: fd })
        };
        let held = Rc::new(opened().map_err(|errno| self.backup_problem(errno))?);
        *self.open_directories.borrow_mut() = Some(Rc::clone(&held));
        Ok(held)
    }

    /// Why something that could be kept was not.
    fn backup_problem(&self, errno: Errno) -> CodedError {
        let why = io::Error::from(errno);
        let message = format!("what it changes cannot be kept for an undo: {why}");
        CodedError::new(Code::UndoUnkept, message).with_suggestion(Code::UndoUnkept.next_step())
    }
}

impl CallBackup<'_> {
    /// Keeps what an open file holds. Gives the node that stands for it, and what was kept, to be read.
    ///
    /// # Errors
    /// [`Code::FileUndoTooLarge`] where it is more than is kept, [`Code::UndoUnkept`] where it cannot be
    /// kept.
    pub(crate) fn add_file(
        &mut self,
        from: &File,
        mode: u32,
    ) -> Result<(FileState, File), CodedError> {
        let size = fstat(from).map_err(|errno| self.store.backup_problem(errno))?.st_size;
        self.check_size(u64::try_from(size).unwrap_or(u64::MAX))?;
        let mut put = self.store_file(from);
        for _ in 1..TRIES {
            // Another process dropped the folder to make room for its run.
            if !matches!(put, Err(BackupError::System(Errno::NOENT))) {
                break;
            }
            self.directories = None;
            *self.store.open_directories.borrow_mut() = None;
            put = self.store_file(from);
        }
        put.map(|(sha256, bytes, kept)| (FileState::File { sha256, bytes, mode }, kept)).map_err(
            |failed| match failed {
                BackupError::Problem(problem) => problem,
                BackupError::System(errno) => self.store.backup_problem(errno),
            },
        )
    }

    /// Keeps what an open file holds that a call leaves, which is no part of what it can bring back.
    ///
    /// # Errors
    /// [`Code::UndoUnkept`] where it cannot be kept.
    pub(crate) fn beside(&mut self, from: &File) -> Result<(), CodedError> {
        let bytes = std::mem::take(&mut self.bytes);
        let size = fstat(from).map_err(|errno| self.store.backup_problem(errno))?.st_size;
        // One that is too large is known byte for byte alone.
        let kept = match self.check_size(u64::try_from(size).unwrap_or(u64::MAX)) {
            Ok(()) => self.add_file(from, 0).map(drop),
            Err(_) => Ok(()),
        };
        self.bytes = bytes;
        kept
    }

    fn check_size(&self, more: u64) -> Result<(), CodedError> {
        let bytes = self.bytes.saturating_add(more);
        if bytes <= limits::UNDO_BYTES {
            return Ok(());
        }
        let message = NoUndoReason::TooLarge { bytes }.reason();
        Err(CodedError::new(Code::FileUndoTooLarge, message))
    }

    fn store_file(&mut self, from: &File) -> Result<(Digest, u64, File), BackupError> {
        let held = match &self.directories {
            Some(held) => Rc::clone(held),
            None => self.store.open()?,
        };
        self.directories = Some(Rc::clone(&held));
        let size = u64::try_from(fstat(from)?.st_size).unwrap_or(u64::MAX);
        self.reserve_space(&held, size)?;
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|_| Errno::IO)?;
        let unfinished = format!("{UNFINISHED_PREFIX}{:016x}", u64::from_ne_bytes(random));
        let flags = FILE_FLAGS | OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let file =
            openat(&held.run_directory, unfinished.as_str(), flags, Mode::RUSR | Mode::WUSR)?;
        let put = self.fill_file(from, size, File::from(file)).and_then(|(sha256, bytes, file)| {
            let name = sha256.to_string();
            let known = self.names.contains(&name) || self.store.synced.borrow().contains(&name);
            match known && exists(&held, &name) {
                // An earlier call may rely on that one, which is on the disk already.
                true => unlinkat(&held.run_directory, unfinished.as_str(), AtFlags::empty())?,
                false => {
                    renameat(&held.run_directory, unfinished.as_str(), &held.run_directory, name)?
                }
            }
            Ok((sha256, bytes, file))
        });
        match &put {
            Ok((sha256, bytes, _)) => {
                self.bytes += bytes;
                self.names.insert(sha256.to_string());
            }
            Err(_) => {
                // What is not whole is of no use to anybody; the error says what happened.
                let _ = unlinkat(&held.run_directory, unfinished.as_str(), AtFlags::empty());
            }
        }
        put
    }

    /// Makes room for so many bytes: once for all that the call needs, and again where that is more.
    fn reserve_space(&mut self, held: &BackupDirectories, size: u64) -> Result<(), BackupError> {
        let (backups, size) = (self.store, disk_usage(size));
        if self.reserved < size {
            let run = backups.run();
            let (all, log) = (&held.root, backups.log.as_ref());
            let room =
                BackupQuota { root: all, current_run: &run, max_bytes: backups.max_bytes, log };
            let more = size.max(std::mem::take(&mut self.reserve));
            room.reserve(more, &self.names)?;
            self.reserved += more;
        }
        self.reserved -= size;
        Ok(())
    }

    /// Fills a new file with what another one holds.
    fn fill_file(
        &self,
        from: &File,
        size: u64,
        to: File,
    ) -> Result<(Digest, u64, File), BackupError> {
        let backups = self.store;
        let is_shared = size >= MIN_REFLINK_SIZE && backups.may_reflink.get() && reflink(&to, from);
        if size >= MIN_REFLINK_SIZE {
            backups.may_reflink.set(is_shared);
        }
        let (sha256, mut to) = match is_shared {
            true => digest_file(to)?,
            false => copy_file(from, to)?,
        };
        let bytes = to.metadata().map_err(|error| errno(&error))?.len();
        // It may have grown since it was asked for its size.
        self.check_size(bytes)?;
        to.rewind().map_err(|error| errno(&error))?;
        Ok((sha256, bytes, to))
    }

    /// Notes a path that the call is about to change; one is named after the folders above it.
    pub(crate) fn add_change(
        &mut self,
        path: String,
        before: Option<FileState>,
        after: Option<FileState>,
    ) {
        self.add(Change { path, before, after, ..Change::default() });
    }

    /// The same of one that was judged before.
    pub(crate) fn add(&mut self, change: Change) {
        self.changes.push(Change { refused: None, asked: None, ..change });
    }

    /// Has everything on the disk: file by file, or where they are many, whatever the file system still
    /// has to write.
    fn sync(&self, held: &BackupDirectories) -> Result<(), Errno> {
        let whole = self.store.synced.borrow();
        let new: Vec<&String> = self.names.iter().filter(|name| !whole.contains(*name)).collect();
        if new.len() > MAX_SINGLE_SYNCS && sync_file_system(held) {
            return Ok(());
        }
        for name in new {
            fsync(openat(
                &held.run_directory,
                name.as_str(),
                FILE_FLAGS | OFlags::RDONLY,
                Mode::empty(),
            )?)?;
        }
        fsync(&held.run_directory)
    }

    /// The record. What was kept survives a power cut from here on.
    ///
    /// # Errors
    /// [`Code::UndoUnkept`] where that cannot be made sure.
    pub(crate) fn finish(self) -> Result<SavedUndo, CodedError> {
        if let Some(held) = &self.directories {
            self.sync(held).map_err(|errno| self.store.backup_problem(errno))?;
            // Another run made room for itself with it, which only happens where there is hardly any.
            if !self.names.iter().all(|name| exists(held, name)) {
                return Err(self.store.backup_problem(Errno::NOSPC));
            }
            self.store.synced.borrow_mut().extend(self.names);
        }
        let paths = u64::try_from(self.changes.len()).unwrap_or(u64::MAX);
        let covers = Some(UndoCoverage { paths, bytes: self.bytes });
        Ok(SavedUndo { record: UndoRecord::of(self.changes).to_bytes(), coverage: covers })
    }
}

/// Writes everything that waits in the file system of what is kept, if that can be had.
#[cfg(target_os = "linux")]
fn sync_file_system(held: &BackupDirectories) -> bool {
    rustix::fs::syncfs(&held.run_directory).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn sync_file_system(_: &BackupDirectories) -> bool {
    false
}

fn exists(held: &BackupDirectories, name: &str) -> bool {
    statat(&held.run_directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

/// Reads a file that shares its bytes with another.
fn digest_file(mut file: File) -> Result<(Digest, File), BackupError> {
    let sha256 = Digest::of_reader(|buffer| file.read(buffer)).map_err(|error| errno(&error))?;
    Ok((sha256, file))
}

/// Copies a file, up to a byte more than is kept.
fn copy_file(from: &File, mut to: File) -> Result<(Digest, File), BackupError> {
    let mut from = from.take(limits::UNDO_BYTES + 1);
    let sha256 = Digest::of_reader(|buffer| {
        let read = from.read(buffer)?;
        to.write_all(buffer.get(..read).unwrap_or_default())?;
        Ok::<_, io::Error>(read)
    });
    Ok((sha256.map_err(|error| errno(&error))?, to))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::backup::bed::CountingLog;
    use crate::backup::{BackupReader, MissingBackup};

    struct Bed {
        folder: tempfile::TempDir,
        log: Rc<CountingLog>,
    }

    impl Bed {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().unwrap(), log: Rc::default() }
        }

        fn place(&self) -> PathBuf {
            self.folder.path().join("store.db.undo")
        }

        fn keeper(&self, run: u8, most: u64) -> BackupStore {
            let run = Some(RunId::from_bits([run; 10]));
            let log = Rc::clone(&self.log);
            BackupStore { max_bytes: most, ..BackupStore::new(self.place(), run, log) }
        }

        fn file(&self, content: &[u8]) -> File {
            let path = self.folder.path().join("file");
            fs::write(&path, content).unwrap();
            File::open(path).unwrap()
        }

        /// Keeps these files as one call does.
        fn keep(&self, backups: &BackupStore, files: &[&[u8]]) -> Result<SavedUndo, CodedError> {
            let mut backup = backups.begin(std::iter::empty());
            for (number, content) in files.iter().enumerate() {
                let (node, _) = backup.add_file(&self.file(content), 0o640)?;
                backup.add_change(number.to_string(), Some(node), None);
            }
            backup.finish()
        }

        fn finds(&self, content: &[u8]) -> Result<Vec<u8>, MissingBackup> {
            let mut found = Vec::new();
            let run = RunId::from_bits([1; 10]).to_string();
            let mut file = BackupReader::new(self.place()).open(&run, Digest::of(content))?;
            file.read_to_end(&mut found).unwrap();
            Ok(found)
        }
    }

    /// What is kept is found by its digest, whoever kept it; nobody else can read it, and what has
    /// other bytes by now is not taken for it.
    #[test]
    fn what_is_kept_is_found_and_believed_by_its_digest() {
        let bed = Bed::new();
        let large = vec![7; 300_000];
        let record = bed.keep(&bed.keeper(2, 1 << 30), &[b"one", b"", &large, b"one"]).unwrap();
        assert_eq!(record.coverage, Some(UndoCoverage { paths: 4, bytes: 300_006 }));
        let changes = UndoRecord::from_bytes(&record.record).unwrap().changes;
        let sha256 = Digest::of(b"one");
        assert_eq!(changes[0].before, Some(FileState::File { sha256, bytes: 3, mode: 0o640 }));
        for content in [&b"one"[..], b"", &large] {
            assert_eq!(bed.finds(content).unwrap(), content);
        }
        assert_eq!(bed.finds(b"two"), Err(MissingBackup::Removed));
        let item = bed.place().join(RunId::from_bits([2; 10]).to_string());
        let mode = |path: &PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
        let one = item.join(sha256.to_string());
        assert_eq!([mode(&bed.place()), mode(&item), mode(&one)], [0o700, 0o700, 0o600]);
        assert_eq!(fs::read_dir(&item).unwrap().count(), 3, "nothing unfinished is left");
        fs::write(&one, "two").unwrap();
        assert_eq!(bed.finds(b"one"), Err(MissingBackup::Damaged));
        fs::remove_file(&one).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &one, Mode::RUSR).unwrap();
        assert_eq!(bed.finds(b"one"), Err(MissingBackup::Damaged));
        fs::remove_file(&one).unwrap();
        symlink(bed.folder.path().join("file"), &one).unwrap();
        assert_eq!(bed.finds(b"one"), Err(MissingBackup::Removed), "no link is followed");
        // Another run that kept the same has it still.
        let _ = bed.keep(&bed.keeper(3, 1 << 30), &[b"one"]).unwrap();
        assert_eq!(bed.finds(b"one").unwrap(), b"one");
    }

    /// What is too large, and what has nowhere to be kept, is not kept in part.
    #[test]
    fn what_cannot_be_kept_is_said() {
        let bed = Bed::new();
        let file = bed.file(b"");
        File::create(bed.folder.path().join("file")).unwrap().set_len(64_000_001).unwrap();
        let backups = bed.keeper(1, 1 << 30);
        let refused = backups.begin(std::iter::empty()).add_file(&file, 0o644);
        assert_eq!(refused.map(drop).unwrap_err().code, Code::FileUndoTooLarge);
        symlink("/tmp", bed.place()).unwrap();
        let refused = bed.keep(&backups, &[b"x"]).unwrap_err();
        assert_eq!(refused.code, Code::UndoUnkept, "{refused:?}");
        fs::remove_file(bed.place()).unwrap();
        let _ = bed.keep(&backups, &[b"x"]).unwrap();
    }

    /// What is kept is bounded: the oldest run's goes first, it is written down, and never what the call
    /// at hand needs.
    #[test]
    fn the_oldest_is_dropped_first() {
        let bed = Bed::new();
        let content = |nth: u8| vec![nth; 4_000];
        let most = 8 * 4_096;
        let first = [content(1), content(2), content(3)];
        let first: Vec<&[u8]> = first.iter().map(Vec::as_slice).collect();
        let _ = bed.keep(&bed.keeper(1, most), &first).unwrap();
        let second = [content(4), content(5), content(6)];
        let second: Vec<&[u8]> = second.iter().map(Vec::as_slice).collect();
        let _ = bed.keep(&bed.keeper(2, most), &second).unwrap();
        assert_eq!(bed.log.dropped.get(), 0);
        let backups = bed.keeper(3, most);
        let _ = bed.keep(&backups, &[&content(7), &content(8), &content(9)]).unwrap();
        assert_eq!(bed.log.dropped.get(), 3, "all of the first run, and none of the second");
        assert_eq!(bed.finds(&content(1)), Err(MissingBackup::Removed));
        assert!(bed.finds(&content(4)).is_ok() && bed.finds(&content(9)).is_ok());
        // One call that needs nearly all of it: even its own run's earlier files go.
        let many: Vec<Vec<u8>> = (10..18).map(content).collect();
        let many: Vec<&[u8]> = many.iter().map(Vec::as_slice).collect();
        let _ = bed.keep(&backups, &many).unwrap();
        assert!(many.iter().all(|own| bed.finds(own).is_ok()));
        assert!(bed.finds(&content(5)).is_err() && bed.finds(&content(7)).is_err());
        assert_eq!(bed.log.dropped.get(), 9);
        // And one that needs more than there is for all is not kept.
        let more: Vec<Vec<u8>> = (20..29).map(content).collect();
        let more: Vec<&[u8]> = more.iter().map(Vec::as_slice).collect();
        assert_eq!(bed.keep(&backups, &more).unwrap_err().code, Code::UndoUnkept);
        // A count that somebody changed is taken for none once it says that there is no room.
        fs::write(bed.place().join("total"), u64::MAX.to_string()).unwrap();
        let _ = bed.keep(&bed.keeper(4, most), &[&content(30)]).unwrap();
        assert!(bed.finds(&content(30)).is_ok());
    }
}
