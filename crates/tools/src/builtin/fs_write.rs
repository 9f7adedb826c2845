//! `fs.write`: makes, replaces or extends a file, whole or not at all.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capsule_core::action::{Action, PathTarget, WriteMode};
use capsule_core::capability::Capability;
use capsule_core::code::Code;
use capsule_core::digest::Digest;
use capsule_core::evidence::{Permit, Prepared as Hands};
use capsule_core::json;
use capsule_core::limits;
use capsule_core::outcome::{Outcome, Output, Problem};
use capsule_core::path::WorkspacePath;
use capsule_core::policy::Bounds;
use capsule_core::tool::{Argument, Field, Kind, Shape, Signature};
use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, fchmod, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use serde_json::{Map, Value};

use crate::builtin::{
    again, another_action, changed, file, invalid, not_there, system, text, wrong_permit,
};
use crate::tool::{Context, Prepared, Tool, prepare_path};
use crate::workspace::{Exchanged, Found, Stands, Vacant, Workspace, exchange, same};

/// How much is written before the time is looked at.
const CHUNK: usize = 256 * 1024;

const MODES: &[&str] = &["create", "overwrite", "append"];

/// What `fs.write` is called, takes and gives.
pub static SIGNATURE: Signature = Signature {
    id: "fs.write",
    model_name: "fs_write",
    aliases: &["file_write", "fs.write_text"],
    about: "Writes a file of the workspace; what was there before can be brought back.",
    shape: Shape::Files,
    capabilities: &[Capability::FsWrite],
    arguments: &[
        Argument {
            name: "path",
            kind: Kind::Path,
            required: true,
            about: "the file, relative to the workspace",
        },
        Argument { name: "content", kind: Kind::Text, required: false, about: "the text" },
        Argument {
            name: "content_base64",
            kind: Kind::Text,
            required: false,
            about: "the bytes, in place of `content`",
        },
        Argument {
            name: "mode",
            kind: Kind::Word(MODES),
            required: false,
            about: "`overwrite` if left out",
        },
    ],
    results: &[
        Field { name: "path", about: "the file" },
        Field { name: "changed", about: "whether it is other than before" },
        Field { name: "created", about: "whether it was not there before" },
        Field { name: "bytes_total", about: "its size now" },
        Field { name: "added", about: "lines that were added" },
        Field { name: "removed", about: "lines that were removed" },
    ],
};

/// Writes a file.
#[derive(Clone, Copy, Debug)]
pub struct FsWrite;

/// The bytes that a call wants to write.
fn content(args: &Map<String, Value>) -> Result<Vec<u8>, Problem> {
    match (text(args, "content"), text(args, "content_base64")) {
        (Some(text), None) => Ok(text.as_bytes().to_vec()),
        (None, Some(encoded)) => {
            STANDARD.decode(encoded).map_err(|_| invalid("`content_base64` is not base64"))
        }
        _ => Err(invalid("`fs.write` needs one of `content` and `content_base64`")),
    }
}

impl Tool for FsWrite {
    fn signature(&self) -> &'static Signature {
        &SIGNATURE
    }

    fn describe(&self, args: &Map<String, Value>, _: u64) -> Result<Action, Problem> {
        let content = content(args)?;
        Ok(Action::Write {
            path: PathTarget::parse(text(args, "path").unwrap_or_default()),
            mode: match text(args, "mode") {
                Some("create") => WriteMode::Create,
                Some("append") => WriteMode::Append,
                _ => WriteMode::Overwrite,
            },
            bytes: u64::try_from(content.len()).unwrap_or(u64::MAX),
            content: Digest::of(&content),
        })
    }

    fn prepare(&self, action: &Action, args: &Value, context: &Context<'_>) -> Prepared {
        let content = args.as_object().and_then(|args| content(args).ok()).unwrap_or_default();
        prepare_path(action, context, |path, stands| match action {
            Action::Write { mode, content: digest, .. } if Digest::of(&content) == *digest => {
                let target = Target::of(context.workspace, path, stands)?;
                Ok(Box::new(Writer {
                    workspace: Rc::clone(context.workspace),
                    path: path.clone(),
                    mode: *mode,
                    content,
                    target,
                    old: Vec::new(),
                }))
            }
            _ => Err(another_action()),
        })
    }
}

/// What is written to, held as it was judged.
struct Target {
    /// The file, where there is one.
    before: Option<Found>,
    /// The place: the deepest folder that is there, what is missing beneath it, the file's name.
    place: Vacant,
}

impl Target {
    fn of(workspace: &Workspace, path: &WorkspacePath, stands: Stands) -> Result<Self, Problem> {
        let before = match stands {
            Stands::Vacant(place) => return Ok(Self { before: None, place }),
            other => file(path, other)?,
        };
        let (Some(name), Some(above)) = (before.real.name(), before.real.parent()) else {
            return Err(system(path, Errno::ISDIR));
        };
        let folder = workspace.find(&above).map_err(|why| not_there(path, why))?;
        let place = Vacant { folder, missing: Vec::new(), name: name.to_owned() };
        let target = Self { place, before: Some(before) };
        if target.holds(&target.place.folder.handle, target.place.name.as_str()) {
            Ok(target)
        } else {
            Err(changed(path))
        }
    }

    /// Whether a name in a folder is the file that was judged, and the folder stands where that
    /// one stood.
    fn holds(&self, folder: &OwnedFd, name: impl rustix::path::Arg) -> bool {
        self.before.as_ref().is_some_and(|before| {
            self.place.real() == before.real
                && statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|now| same(&now, &before.stat))
        })
    }
}

struct Writer {
    workspace: Rc<Workspace>,
    /// The path as it was asked for.
    path: WorkspacePath,
    mode: WriteMode,
    content: Vec<u8>,
    target: Target,
    /// What the file held, once it was read for the undo record.
    old: Vec<u8>,
}

impl Hands for Writer {
    /// The record: a line of JSON that says what was there, then its bytes. There is no permit yet
    /// and so no deadline; the bound on the bytes is the bound on the time.
    fn preserve(&mut self) -> Result<Option<Vec<u8>>, Problem> {
        let Some(before) = &self.target.before else {
            return Ok(Some(undo_record(&self.path, None, &[])));
        };
        let size = u64::try_from(before.stat.st_size).unwrap_or(u64::MAX);
        if size > limits::UNDO_BYTES {
            let message = format!(
                "`{}` has {size} bytes; at most {} are kept for an undo",
                self.path,
                limits::UNDO_BYTES
            );
            return Err(Problem::new(Code::FileUndoTooLarge, message));
        }
        let opened = before.open(&self.workspace, OFlags::RDONLY);
        let mut file = File::from(opened.map_err(|why| not_there(&self.path, why))?);
        let mut old = Vec::new();
        let read = io::Read::by_ref(&mut file).take(limits::UNDO_BYTES + 1).read_to_end(&mut old);
        read.map_err(|error| self.system(&error))?;
        self.old = old;
        Ok(Some(undo_record(&self.path, Some(before.stat.st_mode & 0o7777), &self.old)))
    }

    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        let Bounds::Write { timeout_ms } = *permit.bounds() else { return wrong_permit() };
        let deadline = Instant::now() + Duration::from_millis(timeout_ms);
        match self.write(deadline) {
            Ok(output) => Outcome::done(output),
            Err(problem) => Outcome::failed(problem),
        }
    }
}

fn undo_record(path: &WorkspacePath, mode: Option<u32>, old: &[u8]) -> Vec<u8> {
    let head = serde_json::json!({
        "v": 1,
        "path": path,
        "existed": mode.is_some(),
        "mode": mode,
        "bytes": old.len(),
        "sha256": Digest::of(old),
    });
    let mut record = json::canonical(&head);
    record.push(b'\n');
    record.extend_from_slice(old);
    record
}

impl Writer {
    fn system(&self, error: &io::Error) -> Problem {
        let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
        system(&self.path, errno)
    }

    /// Looks again, only to compare: the path must lead to what was judged, and that must be what
    /// the undo record holds.
    fn unchanged(&self) -> Result<(), Problem> {
        let Target { before, place } = &self.target;
        match before {
            Some(before) => {
                again(&self.workspace, &self.path, before)?;
                again(&self.workspace, &place.folder.real, &place.folder)?;
                if before.is_unwritten() { Ok(()) } else { Err(changed(&self.path)) }
            }
            None => match self.workspace.stands(&self.path) {
                Stands::Vacant(now) if now.still(place) => Ok(()),
                _ => Err(changed(&self.path)),
            },
        }
    }

    fn write(mut self, deadline: Instant) -> Result<Output, Problem> {
        let created = self.target.before.is_none();
        if !created && self.mode == WriteMode::Create {
            let message = format!("`{}` is there already", self.path);
            return Err(Problem::new(Code::FileExists, message)
                .suggest("use `mode: overwrite` or `append`"));
        }
        self.unchanged()?;
        let old = std::mem::take(&mut self.old);
        let new = match self.mode {
            WriteMode::Append => [old.as_slice(), self.content.as_slice()].concat(),
            _ => std::mem::take(&mut self.content),
        };
        let unchanged = !created && old == new;
        if !unchanged {
            self.put(&new, deadline)?;
        }
        let (added, removed) = count_lines(&old, &new);
        Ok(Output::default()
            .with("path", self.path.to_string())
            .with("changed", !unchanged)
            .with("created", created)
            .with("bytes_total", u64::try_from(new.len()).unwrap_or(u64::MAX))
            .with("added", added)
            .with("removed", removed))
    }

    /// Writes beside the file and puts the result in its place, so that a reader sees the old file
    /// or the new one.
    fn put(&self, new: &[u8], deadline: Instant) -> Result<(), Problem> {
        let folder = self.make_folders()?;
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| Problem::new(Code::FileSystem, error.to_string()))?;
        let beside = OsString::from(format!(".capsule-{:016x}.tmp", u64::from_ne_bytes(random)));
        let done = self
            .write_beside(&folder, &beside, new, deadline)
            .and_then(|()| self.take_place(&folder, &beside));
        match done {
            Ok(()) => Ok(()),
            Err(Left::Ours(problem)) => {
                // Nothing of a failed write stays; the error says what happened.
                let _ = unlinkat(&folder, &beside, AtFlags::empty());
                Err(problem)
            }
            Err(Left::Theirs(problem)) => Err(problem),
        }
    }

    fn write_beside(
        &self,
        folder: &OwnedFd,
        beside: &OsStr,
        new: &[u8],
        deadline: Instant,
    ) -> Result<(), Left> {
        let failed = |errno| Left::Ours(system(&self.path, errno));
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = rustix::fs::openat(folder, beside, flags, Mode::from_raw_mode(0o644));
        let mut file = File::from(made.map_err(failed)?);
        if let Some(before) = &self.target.before {
            let mode = Mode::from_raw_mode(before.stat.st_mode & 0o777);
            fchmod(&file, mode).map_err(failed)?;
        }
        for part in new.chunks(CHUNK) {
            self.in_time(deadline).map_err(Left::Ours)?;
            file.write_all(part).map_err(|error| Left::Ours(self.system(&error)))?;
        }
        file.sync_all().map_err(|error| Left::Ours(self.system(&error)))?;
        self.in_time(deadline).map_err(Left::Ours)
    }

    fn in_time(&self, deadline: Instant) -> Result<(), Problem> {
        if Instant::now() <= deadline {
            return Ok(());
        }
        let message = format!("`{}` could not be written in time", self.path);
        Err(Problem::new(Code::FileSystem, message))
    }

    /// Gives the file that was written beside the name that it is for. The folder must still stand
    /// where it was judged, and only the file that was judged is replaced.
    fn take_place(&self, folder: &OwnedFd, beside: &OsStr) -> Result<(), Left> {
        let failed = |errno| Left::Ours(system(&self.path, errno));
        let another = || Left::Ours(changed(&self.path));
        let Target { before, place } = &self.target;
        let (real, name) = (place.real(), place.name.as_str());
        if self.workspace.name_of(folder.as_fd()).is_some_and(|now| Some(now) != real.parent()) {
            return Err(another());
        }
        let Some(before) = before else {
            let flags = RenameFlags::NOREPLACE;
            return renameat_with(folder, beside, folder, name, flags).map_err(
                |errno| match errno {
                    // A file appeared meanwhile: it is not the one that was judged.
                    Errno::EXIST => another(),
                    errno => failed(errno),
                },
            );
        };
        if !before.is_unwritten() || !self.target.holds(folder, name) {
            return Err(another());
        }
        let swap = || renameat_with(folder, beside, folder, name, RenameFlags::EXCHANGE);
        let replace = || renameat(folder, beside, folder, name);
        match exchange(swap, replace, || self.target.holds(folder, beside)) {
            // The old file; its bytes are in the record.
            Ok(Exchanged::Beside) => unlinkat(folder, beside, AtFlags::empty()).map_err(failed),
            Ok(Exchanged::Overwritten) => Ok(()),
            // What came out is not what was judged: it went back, and what we wrote goes away.
            Ok(Exchanged::Back) | Err(Errno::NOENT) => Err(another()),
            Ok(Exchanged::Stuck(_)) => Err(Left::Theirs(changed(&self.path))),
            Err(errno) => Err(failed(errno)),
        }
    }

    fn make_folders(&self) -> Result<OwnedFd, Problem> {
        let failed = |errno| system(&self.path, errno);
        let place = &self.target.place;
        let mut folder =
            rustix::io::fcntl_dupfd_cloexec(&place.folder.handle, 0).map_err(failed)?;
        for name in &place.missing {
            rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o755)).map_err(|errno| {
                // It was missing when the call was judged; what is there now was not.
                if errno == Errno::EXIST { changed(&self.path) } else { failed(errno) }
            })?;
            let flags = OFlags::PATH | OFlags::DIRECTORY;
            let made = self.workspace.open_plain(folder.as_fd(), OsStr::new(name), flags);
            folder = made.map_err(|why| not_there(&self.path, why))?;
        }
        Ok(folder)
    }
}

/// Why the file could not take its place, and whose file is left beside it.
enum Left {
    /// What we wrote.
    Ours(Problem),
    /// Somebody else's, that took the place in between: it stays.
    Theirs(Problem),
}

/// Lines added and removed.
fn count_lines(old: &[u8], new: &[u8]) -> (u64, u64) {
    /// Beyond this a difference is not worth its time.
    const MOST: usize = 2_000_000;
    let lines = |text: &[u8]| u64::try_from(text.split_inclusive(|b| *b == b'\n').count());
    if old.is_empty() || new.is_empty() || old.len() + new.len() > MOST {
        return (lines(new).unwrap_or(0), lines(old).unwrap_or(0));
    }
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let diff = similar::TextDiff::configure()
        .timeout(Duration::from_millis(200))
        .diff_lines(old.as_ref(), new.as_ref());
    diff.iter_all_changes().fold((0, 0), |(added, removed), change| match change.tag() {
        similar::ChangeTag::Insert => (added + 1, removed),
        similar::ChangeTag::Delete => (added, removed + 1),
        similar::ChangeTag::Equal => (added, removed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer at the moment when its intent would be written.
    fn writer(workspace: &Rc<Workspace>, path: &str) -> Writer {
        let path = WorkspacePath::parse(path).unwrap();
        let target = Target::of(workspace, &path, workspace.stands(&path)).unwrap();
        let mut writer = Writer {
            workspace: Rc::clone(workspace),
            path,
            mode: WriteMode::Overwrite,
            content: b"new".to_vec(),
            target,
            old: Vec::new(),
        };
        assert!(writer.preserve().unwrap().is_some());
        writer
    }

    /// C4, CAP-5: whatever is done to the place between the decision and the write, only what was
    /// judged is replaced, and nothing stays beside it.
    #[test]
    fn only_what_was_judged_is_replaced() {
        use std::fs;
        use std::path::Path;
        type Change = fn(&Path);
        let changes: &[(&str, Change)] = &[
            ("d/f", |root| fs::write(root.join("d/f"), "edited").unwrap()),
            ("d/f", |root| fs::remove_file(root.join("d/f")).unwrap()),
            ("d/f", |root| {
                fs::write(root.join("d/other"), "old").unwrap();
                fs::rename(root.join("d/other"), root.join("d/f")).unwrap();
            }),
            ("d/f", |root| fs::rename(root.join("d"), root.join("moved")).unwrap()),
            ("d/n", |root| fs::write(root.join("d/n"), "appeared").unwrap()),
            ("d/n", |root| fs::rename(root.join("d"), root.join("moved")).unwrap()),
            ("d/in/n", |root| fs::create_dir(root.join("d/in")).unwrap()),
            ("d/n", |root| {
                fs::rename(root.join("d"), root.join("moved")).unwrap();
                std::os::unix::fs::symlink("moved", root.join("d")).unwrap();
            }),
        ];
        for (row, (path, change)) in changes.iter().enumerate() {
            // Once before everything is compared, and once in the middle, past the comparison.
            for late in [false, true] {
                let folder = tempfile::tempdir().unwrap();
                fs::create_dir(folder.path().join("d")).unwrap();
                fs::write(folder.path().join("d/f"), "old").unwrap();
                let workspace = Rc::new(Workspace::open(folder.path()).unwrap());
                let writer = writer(&workspace, path);
                let deadline = Instant::now() + Duration::from_secs(5);
                let done = if late {
                    writer.unchanged().unwrap();
                    change(folder.path());
                    writer.put(b"new", deadline)
                } else {
                    change(folder.path());
                    writer.write(deadline).map(drop)
                };
                let code = done.map_err(|problem| problem.code);
                assert_eq!(code, Err(Code::ApprovalChangedAfter), "row {row}, late: {late}");
                let held = fs::read_dir(folder.path()).unwrap().flatten();
                let held = held.map(|entry| entry.path()).filter(|path| !path.is_symlink());
                let files = held.flat_map(|path| fs::read_dir(path).unwrap().flatten());
                for file in files.filter(|file| file.path().is_file()) {
                    assert_ne!(fs::read(file.path()).unwrap(), b"new", "row {row}: {file:?}");
                }
            }
        }
    }

    /// NFR-11: a write has an end in time, and leaves nothing when it meets it.
    #[test]
    fn a_late_write_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("f"), "old").unwrap();
        let workspace = Rc::new(Workspace::open(folder.path()).unwrap());
        let late = writer(&workspace, "f").write(Instant::now());
        assert_eq!(late.map(drop).map_err(|problem| problem.code), Err(Code::FileSystem));
        assert_eq!(std::fs::read(folder.path().join("f")).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn lines_are_counted() {
        assert_eq!(count_lines(b"", b"a\nb\n"), (2, 0));
        assert_eq!(count_lines(b"a\nb\n", b"a\nc\n"), (1, 1));
        assert_eq!(count_lines(b"a\n", b""), (0, 1));
        assert_eq!(count_lines(b"", b""), (0, 0));
    }
}
