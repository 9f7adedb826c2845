//! Gives a file new bytes, whole or not at all: what was there is kept for an undo first, and only what
//! was judged is replaced.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Instant;

use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_core::change::FileState;
use capsule_core::lifecycle::{Preview, SavedUndo};
use capsule_core::outcome::CodedError;
use capsule_core::undo::NoUndoReason;
use rustix::fs::{AtFlags, OFlags, RenameFlags, renameat, renameat_with, unlinkat};
use rustix::io::Errno;

use crate::backup::BackupStore;
use crate::change::atomic_exchange::{ExchangeResult, exchange};
use crate::change::rename::rename_new;
use crate::encoding::DecodedText;
use crate::node;
use crate::path_problem::{
    changed_problem, not_found_problem, require_file, require_unchanged, system_problem,
};
use crate::resolve::{FoundPath, MissingEntry, PathLookup, Workspace, same_file};
use crate::system::{PATH_ONLY, statat};

/// How much is written before the time is looked at.
const WRITE_CHUNK: usize = 256 * 1024;

/// The lines in which two texts differ. There is no deadline: the same texts always differ in the same
/// lines, and how long they may be is bounded.
fn line_diff(old: &str, new: &str) -> String {
    let diff = similar::TextDiff::from_lines(old, new);
    diff.unified_diff().context_radius(3).to_string()
}

/// What bytes are of which no line can be shown.
fn binary_summary(bytes: &[u8]) -> String {
    format!("{} bytes that are not shown, SHA-256 {}", bytes.len(), Digest::of(bytes))
}

/// What is written to, held as it was judged.
struct WriteTarget {
    /// The file, where there is one.
    existing: Option<FoundPath>,
    /// The place: the deepest folder that is there, what is missing beneath it, the file's name.
    entry: MissingEntry,
}

impl WriteTarget {
    fn resolve(
        workspace: &Workspace,
        path: &WorkspacePath,
        stands: PathLookup,
    ) -> Result<Self, CodedError> {
        let before = match stands {
            PathLookup::Missing(place) => return Ok(Self { existing: None, entry: place }),
            other => require_file(path, other)?,
        };
        let (Some(name), Some(above)) = (before.real_path.name(), before.real_path.parent()) else {
            return Err(system_problem(path, Errno::ISDIR));
        };
        let folder = workspace.resolve(&above).map_err(|why| not_found_problem(path, why))?;
        let place =
            MissingEntry { parent: folder, missing_directories: Vec::new(), name: name.to_owned() };
        let target = Self { entry: place, existing: Some(before) };
        if target.is_judged_file(&target.entry.parent.handle, target.entry.name.as_str()) {
            Ok(target)
        } else {
            Err(changed_problem(path))
        }
    }

    /// Whether a name in a folder is the file that was judged, and the folder stands where that
    /// one stood.
    fn is_judged_file(&self, folder: &OwnedFd, name: impl rustix::path::Arg) -> bool {
        self.existing.as_ref().is_some_and(|before| {
            self.entry.real_path() == before.real_path
                && statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|now| same_file(&now, &before.stat))
        })
    }
}

/// A file that is to be written, held as it was judged.
pub struct AtomicWrite {
    workspace: Rc<Workspace>,
    backups: Rc<BackupStore>,
    /// The path as it was asked for.
    path: WorkspacePath,
    target: WriteTarget,
    /// Why what is there cannot be kept for an undo, if it cannot.
    backup_refusal: Option<NoUndoReason>,
    /// What the file held, once it was read.
    old_content: Vec<u8>,
}

/// The permissions of a new file and of a new folder; the user's mask takes some away.
const NEW_FILE_MODE: u32 = 0o644;
const NEW_DIRECTORY_MODE: u32 = 0o755;

impl AtomicWrite {
    /// Holds what stands at a path, or the place where the file will be.
    ///
    /// # Errors
    /// What is there is no file that can be replaced, or not what was judged.
    pub fn new(
        workspace: &Rc<Workspace>,
        backups: &Rc<BackupStore>,
        path: &WorkspacePath,
        stands: PathLookup,
    ) -> Result<Self, CodedError> {
        let target = WriteTarget::resolve(workspace, path, stands)?;
        let unkept = target.existing.as_ref().and_then(|before| match found_size(before) {
            bytes if bytes > limits::UNDO_BYTES => Some(NoUndoReason::TooLarge { bytes }),
            _ => {
                before.open(workspace, OFlags::RDONLY).is_err().then_some(NoUndoReason::Unreadable)
            }
        });
        let (workspace, backups) = (Rc::clone(workspace), Rc::clone(backups));
        Ok(Self {
            workspace,
            backups,
            path: path.clone(),
            target,
            backup_refusal: unkept,
            old_content: Vec::new(),
        })
    }

    /// The path as it was asked for.
    pub const fn path(&self) -> &WorkspacePath {
        &self.path
    }

    /// Whether there is a file already.
    pub const fn file_exists(&self) -> bool {
        self.target.existing.is_some()
    }

    /// Why what is there cannot be kept for an undo, if it cannot.
    pub const fn backup_refusal(&self) -> Option<NoUndoReason> {
        self.backup_refusal
    }

    /// What the file held when it was read.
    pub fn old_content(&self) -> &[u8] {
        &self.old_content
    }

    /// Reads what the file holds. There is no permit yet and so no deadline; the bound on the bytes is
    /// the bound on the time.
    ///
    /// # Errors
    /// [`Code::FileUndoTooLarge`], or that the file cannot be read.
    pub fn read_old(&mut self) -> Result<(), CodedError> {
        let Some(before) = &self.target.existing else { return Ok(()) };
        let too_large = |bytes| {
            let message = format!("`{}`: {}", self.path, NoUndoReason::TooLarge { bytes }.reason());
            CodedError::new(Code::FileUndoTooLarge, message)
        };
        if found_size(before) > limits::UNDO_BYTES {
            return Err(too_large(found_size(before)));
        }
        let mut old = Vec::new();
        let read = self.open_existing(before)?.take(limits::UNDO_BYTES + 1).read_to_end(&mut old);
        read.map_err(|error| self.system_problem(&error))?;
        match u64::try_from(old.len()).unwrap_or(u64::MAX) {
            bytes if bytes > limits::UNDO_BYTES => return Err(too_large(bytes)),
            _ => self.old_content = old,
        }
        Ok(())
    }

    fn open_existing(&self, before: &FoundPath) -> Result<File, CodedError> {
        let opened = before.open(&self.workspace, OFlags::RDONLY);
        opened.map(File::from).map_err(|why| not_found_problem(&self.path, why))
    }

    /// Keeps what was read for an undo, together with what will stand there.
    ///
    /// # Errors
    /// It is another by now, or cannot be kept.
    pub fn back_up(&self, new: &[u8]) -> Result<SavedUndo, CodedError> {
        let WriteTarget { existing: before, entry: place } = &self.target;
        let mut backup = self.backups.begin(before.iter().map(found_size));
        let mut folder = place.parent.real_path.clone();
        for name in &place.missing_directories {
            folder = folder.join(name);
            backup.add_change(
                folder.to_string(),
                None,
                Some(FileState::Directory { mode: NEW_DIRECTORY_MODE }),
            );
        }
        let mode = before.as_ref().map(|before| before.stat.st_mode & 0o7777);
        let kept = match before.as_ref().zip(mode) {
            Some((before, mode)) => Some(backup.add_file(&self.open_existing(before)?, mode)?.0),
            None => None,
        };
        if let Some(FileState::File { sha256, .. }) = &kept
            && *sha256 != Digest::of(&self.old_content)
        {
            return Err(changed_problem(&self.path));
        }
        let after = FileState::File {
            sha256: Digest::of(new),
            bytes: u64::try_from(new.len()).unwrap_or(u64::MAX),
            mode: mode.map_or(NEW_FILE_MODE, |mode| mode & 0o777),
        };
        backup.add_change(place.real_path().to_string(), kept, Some(after));
        backup.finish()
    }

    /// What will differ in the file that was read: its lines, where both are text of a size that can be
    /// shown, and else what each of the two is.
    pub fn preview(&self, new: &[u8]) -> Preview {
        let old = self.old_content.as_slice();
        let texts = DecodedText::decode(old).zip(DecodedText::decode(new));
        let fits = old.len() + new.len() <= limits::CARD_DIFF_BYTES;
        let both = || format!("-{}\n+{}\n", binary_summary(old), binary_summary(new));
        Preview::Lines(match texts.filter(|_| fits) {
            // Lines that read alike may be said in other bytes.
            Some((before, after)) if before.encoding != after.encoding && !old.is_empty() => {
                line_diff(&before.text, &after.text) + &both()
            }
            Some((before, after)) => line_diff(&before.text, &after.text),
            None => both(),
        })
    }

    fn system_problem(&self, error: &io::Error) -> CodedError {
        let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
        system_problem(&self.path, errno)
    }

    /// Looks again, only to compare: the path must lead to what was judged, and that must be what
    /// was read.
    ///
    /// # Errors
    /// [`Code::ApprovalChangedAfter`].
    pub fn require_unchanged(&self) -> Result<(), CodedError> {
        let WriteTarget { existing: before, entry: place } = &self.target;
        match before {
            Some(before) => {
                require_unchanged(&self.workspace, &self.path, before)?;
                require_unchanged(&self.workspace, &place.parent.real_path, &place.parent)?;
                if before.is_unmodified() { Ok(()) } else { Err(changed_problem(&self.path)) }
            }
            None => match self.workspace.find_path(&self.path) {
                PathLookup::Missing(now) if now.is_unchanged(place) => Ok(()),
                _ => Err(changed_problem(&self.path)),
            },
        }
    }

    /// Writes beside the file and puts the result in its place, so that a reader sees the old file
    /// or the new one.
    ///
    /// # Errors
    /// Nothing was changed.
    pub fn commit(&self, new: &[u8], deadline: Instant) -> Result<(), CodedError> {
        let folder = self.make_directories()?;
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| CodedError::new(Code::FileSystem, error.to_string()))?;
        let beside = OsString::from(format!(".capsule-{:016x}.tmp", u64::from_ne_bytes(random)));
        let done = self
            .write_temporary(&folder, &beside, new, deadline)
            .and_then(|()| self.replace_target(&folder, &beside));
        match done {
            Ok(()) => Ok(()),
            Err(Leftover::Ours(problem)) => {
                // Nothing of a failed write stays; the error says what happened.
                let _ = unlinkat(&folder, &beside, AtFlags::empty());
                Err(problem)
            }
            Err(Leftover::Theirs(problem)) => Err(problem),
        }
    }

    fn write_temporary(
        &self,
        folder: &OwnedFd,
        beside: &OsStr,
        new: &[u8],
        deadline: Instant,
    ) -> Result<(), Leftover> {
        let failed = |errno| Leftover::Ours(system_problem(&self.path, errno));
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = rustix::fs::openat(folder, beside, flags, crate::system::mode(NEW_FILE_MODE));
        let mut file = File::from(made.map_err(failed)?);
        if let Some(before) = &self.target.existing {
            // Before its permissions, some of which the kernel takes away from what changes hands.
            node::copy_owner(&file, &before.stat).map_err(|errno| match errno {
                Errno::PERM | Errno::INVAL | Errno::OVERFLOW => {
                    Leftover::Ours(node::not_ours_problem(self.path.as_str(), &before.stat))
                }
                errno => failed(errno),
            })?;
            let mode = crate::system::mode(before.stat.st_mode & 0o777);
            node::set_mode(&file, mode).map_err(failed)?;
        }
        for part in new.chunks(WRITE_CHUNK) {
            self.check_deadline(deadline).map_err(Leftover::Ours)?;
            file.write_all(part).map_err(|error| Leftover::Ours(self.system_problem(&error)))?;
        }
        file.sync_all().map_err(|error| Leftover::Ours(self.system_problem(&error)))?;
        self.check_deadline(deadline).map_err(Leftover::Ours)
    }

    fn check_deadline(&self, deadline: Instant) -> Result<(), CodedError> {
        if Instant::now() <= deadline {
            return Ok(());
        }
        let message = format!("`{}` could not be written in time", self.path);
        Err(CodedError::new(Code::FileSystem, message))
    }

    /// Gives the file that was written beside the name that it is for. The folder must still stand
    /// where it was judged, and only the file that was judged is replaced.
    fn replace_target(&self, folder: &OwnedFd, beside: &OsStr) -> Result<(), Leftover> {
        let failed = |errno| Leftover::Ours(system_problem(&self.path, errno));
        let another = || Leftover::Ours(changed_problem(&self.path));
        let WriteTarget { existing: before, entry: place } = &self.target;
        let (real, name) = (place.real_path(), place.name.as_str());
        if self
            .workspace
            .workspace_path_of(folder.as_fd())
            .is_some_and(|now| Some(now) != real.parent())
        {
            return Err(another());
        }
        let Some(before) = before else {
            let named = rename_new(folder, beside.as_encoded_bytes(), name.as_bytes());
            return named.map_err(|errno| match errno {
                // A file appeared meanwhile: it is not the one that was judged.
                Errno::EXIST => another(),
                errno => failed(errno),
            });
        };
        if !before.is_unmodified() || !self.target.is_judged_file(folder, name) {
            return Err(another());
        }
        let swap = || renameat_with(folder, beside, folder, name, RenameFlags::EXCHANGE);
        let replace = || renameat(folder, beside, folder, name);
        let exchanged = if self.workspace.lower().is_some() && before.stat.st_nlink > 1 {
            // An exchange copies the file into the changes that are laid over it: it has another inode there, and
            // cannot be compared any more. The old file stays beneath, and `apply` compares that.
            replace().map(|()| ExchangeResult::Overwritten)
        } else {
            exchange(swap, replace, || self.target.is_judged_file(folder, beside))
        };
        match exchanged {
            // The old file; its bytes are kept.
            Ok(ExchangeResult::Swapped) => {
                unlinkat(folder, beside, AtFlags::empty()).map_err(failed)
            }
            Ok(ExchangeResult::Overwritten) => Ok(()),
            // What came out is not what was judged: it went back, and what we wrote goes away.
            Ok(ExchangeResult::Restored) | Err(Errno::NOENT) => Err(another()),
            Ok(ExchangeResult::Stuck(_)) => Err(Leftover::Theirs(changed_problem(&self.path))),
            Err(errno) => Err(failed(errno)),
        }
    }

    fn make_directories(&self) -> Result<OwnedFd, CodedError> {
        let failed = |errno| system_problem(&self.path, errno);
        let place = &self.target.entry;
        let mut folder =
            rustix::io::fcntl_dupfd_cloexec(&place.parent.handle, 0).map_err(failed)?;
        for name in &place.missing_directories {
            rustix::fs::mkdirat(&folder, name, crate::system::mode(NEW_DIRECTORY_MODE)).map_err(
                |errno| {
                    // It was missing when the call was judged; what is there now was not.
                    if errno == Errno::EXIST { changed_problem(&self.path) } else { failed(errno) }
                },
            )?;
            let flags = PATH_ONLY | OFlags::DIRECTORY;
            let made = self.workspace.open_plain(folder.as_fd(), OsStr::new(name), flags);
            folder = made.map_err(|why| not_found_problem(&self.path, why))?;
        }
        Ok(folder)
    }
}

/// How large a file was when it was found.
fn found_size(found: &FoundPath) -> u64 {
    u64::try_from(found.stat.st_size).unwrap_or(u64::MAX)
}

/// Why the file could not take its place, and whose file is left beside it.
enum Leftover {
    /// What we wrote.
    Ours(CodedError),
    /// Somebody else's, that took the place in between: it stays.
    Theirs(CodedError),
}
