//! `fs.write`: makes, replaces or extends a file, whole or not at all.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capsule_core::action::{Action, FileKind, PathTarget, WriteMode};
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
    AtFlags, FileType, Mode, OFlags, RenameFlags, fchmod, fstat, renameat, renameat_with, unlinkat,
};
use rustix::io::Errno;
use serde_json::{Map, Value};

use crate::builtin::{Unable, again, changed, invalid, not_there, system, text, wrong_permit};
use crate::tool::{Context, Prepared, Tool, path_facts};
use crate::workspace::{Found, NotFound, Workspace};

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
        let facts = path_facts(action, context);
        let content = args.as_object().and_then(|args| content(args).ok()).unwrap_or_default();
        let hands: Box<dyn Hands> = match (action, action.path().and_then(PathTarget::inside)) {
            (Action::Write { mode, content: digest, .. }, Some(path))
                if Digest::of(&content) == *digest =>
            {
                match Writer::prepare(context.workspace, path, *mode, content) {
                    Ok(writer) => Box::new(writer),
                    Err(problem) => Box::new(Unable(problem)),
                }
            }
            _ => Box::new(Unable(Problem::new(Code::PathOutside, "the path is not inside"))),
        };
        Prepared { facts, hands }
    }
}

struct Writer {
    workspace: Rc<Workspace>,
    /// The path as it was asked for.
    path: WorkspacePath,
    mode: WriteMode,
    content: Vec<u8>,
    /// The file that was there when the call was judged.
    before: Option<Found>,
    /// The deepest folder on the way that was there, held.
    folder: OwnedFd,
    /// The folders that have to be made beneath it, and the file's own name.
    missing: Vec<String>,
    name: String,
    /// What the file held, once it was read for the undo record.
    old: Vec<u8>,
}

impl Writer {
    fn prepare(
        workspace: &Rc<Workspace>,
        path: &WorkspacePath,
        mode: WriteMode,
        content: Vec<u8>,
    ) -> Result<Self, Problem> {
        let before = match workspace.find(path) {
            Ok(found) if found.kind() == FileKind::File => Some(found),
            Ok(_) => {
                let message = format!("`{path}` is not a regular file");
                return Err(Problem::new(Code::FileNotRegular, message));
            }
            Err(NotFound::Missing) => None,
            Err(why) => return Err(not_there(path, why)),
        };
        let real = match &before {
            Some(found) => found.real.clone(),
            None => workspace
                .future(path)
                .map_err(|problem| not_there(path, NotFound::Outside(problem)))?,
        };
        let name = real.name().ok_or_else(|| not_there(path, NotFound::Refused(Errno::ISDIR)))?;
        let (folder, missing) = deepest_folder(workspace, &real)?;
        Ok(Self {
            workspace: Rc::clone(workspace),
            path: path.clone(),
            mode,
            content,
            before,
            folder,
            missing,
            name: name.to_owned(),
            old: Vec::new(),
        })
    }
}

/// The deepest folder above a path that is there, and the names of those that are not.
fn deepest_folder(
    workspace: &Workspace,
    real: &WorkspacePath,
) -> Result<(OwnedFd, Vec<String>), Problem> {
    let mut missing = Vec::new();
    let mut folder = real.parent().unwrap_or_default();
    loop {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match workspace.open_beneath(OsStr::new(folder.as_str()), flags, Mode::empty()) {
            Ok(handle) => {
                missing.reverse();
                return Ok((handle, missing));
            }
            Err(NotFound::Missing) => match (folder.name(), folder.parent()) {
                (Some(name), Some(parent)) => {
                    missing.push(name.to_owned());
                    folder = parent;
                }
                _ => return Err(not_there(&folder, NotFound::Missing)),
            },
            Err(why) => return Err(not_there(&folder, why)),
        }
    }
}

impl Hands for Writer {
    /// The record: a line of JSON that says what was there, then its bytes.
    fn preserve(&mut self) -> Result<Option<Vec<u8>>, Problem> {
        let Some(before) = &self.before else {
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
        let mut file = File::from(self.open(OFlags::RDONLY)?);
        let most = limits::UNDO_BYTES + 1;
        let mut old = Vec::new();
        let read = io::Read::by_ref(&mut file).take(most).read_to_end(&mut old);
        read.map_err(|error| self.system(&error))?;
        self.old = old;
        Ok(Some(undo_record(&self.path, Some(before.stat.st_mode & 0o7777), &self.old)))
    }

    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        let Bounds::Write { .. } = permit.bounds() else { return wrong_permit() };
        match self.write() {
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
        let errno = error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error);
        system(&self.path, errno)
    }

    /// Opens the file that was judged, and no other.
    fn open(&self, access: OFlags) -> Result<OwnedFd, Problem> {
        let Some(before) = &self.before else { return Err(changed(&self.path)) };
        let flags = access | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let name = OsStr::new(self.path.as_str());
        let file = self
            .workspace
            .open_beneath(name, flags, Mode::empty())
            .map_err(|why| not_there(&self.path, why))?;
        let stat = fstat(&file).map_err(|errno| system(&self.path, errno))?;
        let same = (stat.st_dev, stat.st_ino) == (before.stat.st_dev, before.stat.st_ino)
            && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if same { Ok(file) } else { Err(changed(&self.path)) }
    }

    fn write(mut self) -> Result<Output, Problem> {
        match (&self.before, self.mode) {
            (Some(_), WriteMode::Create) => {
                let message = format!("`{}` is there already", self.path);
                return Err(Problem::new(Code::FileExists, message)
                    .suggest("use `mode: overwrite` or `append`"));
            }
            (Some(before), _) => again(&self.workspace, &self.path, before)?,
            (None, _) => {
                if !matches!(self.workspace.find(&self.path), Err(NotFound::Missing)) {
                    return Err(changed(&self.path));
                }
            }
        }
        let old = std::mem::take(&mut self.old);
        let new = match self.mode {
            WriteMode::Append => [old.as_slice(), self.content.as_slice()].concat(),
            _ => std::mem::take(&mut self.content),
        };
        let unchanged = self.before.is_some() && old == new;
        if !unchanged {
            self.put(&new)?;
        }
        let (added, removed) = count_lines(&old, &new);
        Ok(Output::default()
            .with("path", self.path.to_string())
            .with("changed", !unchanged)
            .with("created", self.before.is_none())
            .with("bytes_total", u64::try_from(new.len()).unwrap_or(u64::MAX))
            .with("added", added)
            .with("removed", removed))
    }

    /// Writes beside the file and puts the result in its place, so that a reader sees the old file
    /// or the new one.
    fn put(&self, new: &[u8]) -> Result<(), Problem> {
        let folder = self.make_folders()?;
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| Problem::new(Code::FileSystem, error.to_string()))?;
        let beside = OsString::from(format!(".capsule-{:016x}.tmp", u64::from_ne_bytes(random)));
        let done = self.put_beside(&folder, &beside, new);
        if done.is_err() {
            // Nothing of a failed write stays; the error says what happened.
            let _ = unlinkat(&folder, &beside, AtFlags::empty());
        }
        done
    }

    fn put_beside(&self, folder: &OwnedFd, beside: &OsStr, new: &[u8]) -> Result<(), Problem> {
        let failed = |errno| system(&self.path, errno);
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = rustix::fs::openat(folder, beside, flags, Mode::from_raw_mode(0o644));
        let mut file = File::from(made.map_err(failed)?);
        if let Some(before) = &self.before {
            let mode = Mode::from_raw_mode(before.stat.st_mode & 0o777);
            fchmod(&file, mode).map_err(failed)?;
        }
        file.write_all(new).and_then(|()| file.sync_all()).map_err(|error| self.system(&error))?;
        match self.before {
            Some(_) => renameat(folder, beside, folder, &self.name).map_err(failed),
            None => {
                let flags = RenameFlags::NOREPLACE;
                match renameat_with(folder, beside, folder, &self.name, flags) {
                    // A file appeared meanwhile: it is not the one that was judged.
                    Err(Errno::EXIST) => Err(changed(&self.path)),
                    other => other.map_err(failed),
                }
            }
        }
    }

    fn make_folders(&self) -> Result<OwnedFd, Problem> {
        let failed = |errno| system(&self.path, errno);
        let mut folder = rustix::io::fcntl_dupfd_cloexec(&self.folder, 0).map_err(failed)?;
        for name in &self.missing {
            match rustix::fs::mkdirat(folder.as_fd(), name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed(errno)),
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            folder =
                rustix::fs::openat(folder.as_fd(), name, flags, Mode::empty()).map_err(failed)?;
        }
        Ok(folder)
    }
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
        .timeout(std::time::Duration::from_millis(200))
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

    #[test]
    fn lines_are_counted() {
        assert_eq!(count_lines(b"", b"a\nb\n"), (2, 0));
        assert_eq!(count_lines(b"a\nb\n", b"a\nc\n"), (1, 1));
        assert_eq!(count_lines(b"a\n", b""), (0, 1));
        assert_eq!(count_lines(b"", b""), (0, 0));
    }
}
