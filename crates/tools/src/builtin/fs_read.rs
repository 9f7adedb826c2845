//! `fs.read`: some bytes of a file.

use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use capsule_core::action::{Action, FileKind, PathTarget};
use capsule_core::capability::Capability;
use capsule_core::code::Code;
use capsule_core::evidence::{Permit, Prepared as Hands};
use capsule_core::limits;
use capsule_core::outcome::{Outcome, Output, Problem};
use capsule_core::path::WorkspacePath;
use capsule_core::policy::Bounds;
use capsule_core::tool::{Argument, Field, Kind, Shape, Signature};
use rustix::fs::{FileType, Mode, OFlags, fstat};
use rustix::io::{Errno, pread};
use serde_json::{Map, Value};

use crate::builtin::{Unable, again, changed, not_there, number, system, text, wrong_permit};
use crate::tool::{Context, Prepared, Tool, path_facts};
use crate::workspace::{Found, Workspace};

/// What `fs.read` is called, takes and gives.
pub static SIGNATURE: Signature = Signature {
    id: "fs.read",
    model_name: "fs_read",
    aliases: &["file_read"],
    about: "Reads a file of the workspace; a binary one comes back as a short base64 preview.",
    shape: Shape::Files,
    capabilities: &[Capability::FsRead],
    arguments: &[
        Argument {
            name: "path",
            kind: Kind::Path,
            required: true,
            about: "the file, relative to the workspace",
        },
        Argument {
            name: "offset",
            kind: Kind::Number,
            required: false,
            about: "the first byte, 0 if left out",
        },
        Argument {
            name: "limit",
            kind: Kind::Size,
            required: false,
            about: "how many bytes at most",
        },
    ],
    results: &[
        Field { name: "path", about: "the file that was read" },
        Field { name: "text", about: "the bytes, where they are text" },
        Field { name: "base64", about: "a preview, where they are not" },
        Field { name: "binary", about: "whether they are not text" },
        Field { name: "offset", about: "the first byte that was read" },
        Field { name: "bytes_total", about: "the size of the file" },
        Field { name: "truncated", about: "whether there is more" },
        Field { name: "clamped", about: "whether more was asked for than may be read" },
    ],
};

/// Reads a file.
#[derive(Clone, Copy, Debug)]
pub struct FsRead;

impl Tool for FsRead {
    fn signature(&self) -> &'static Signature {
        &SIGNATURE
    }

    fn describe(&self, args: &Map<String, Value>, _: u64) -> Result<Action, Problem> {
        Ok(Action::Read {
            path: PathTarget::parse(text(args, "path").unwrap_or_default()),
            offset: number(args, "offset").unwrap_or(0),
            limit: super::size(args, "limit")?,
        })
    }

    fn prepare(&self, action: &Action, _: &Value, context: &Context<'_>) -> Prepared {
        let facts = path_facts(action, context);
        let hands: Box<dyn Hands> = match (action, action.path().and_then(PathTarget::inside)) {
            (Action::Read { offset, .. }, Some(path)) => match context.workspace.find(path) {
                Ok(found) if found.kind() == FileKind::File => Box::new(Reader {
                    workspace: Rc::clone(context.workspace),
                    path: path.clone(),
                    found,
                    offset: *offset,
                }),
                Ok(_) => {
                    let message = format!("`{path}` is not a regular file");
                    Box::new(Unable(Problem::new(Code::FileNotRegular, message)))
                }
                Err(why) => Box::new(Unable(not_there(path, why))),
            },
            _ => Box::new(Unable(Problem::new(Code::PathOutside, "the path is not inside"))),
        };
        Prepared { facts, hands }
    }
}

struct Reader {
    workspace: Rc<Workspace>,
    path: WorkspacePath,
    found: Found,
    offset: u64,
}

impl Hands for Reader {
    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        let Bounds::Read { bytes, clamped, timeout_ms } = *permit.bounds() else {
            return wrong_permit();
        };
        let deadline = Instant::now() + Duration::from_millis(timeout_ms);
        match self.read(bytes, deadline) {
            Ok(Content { bytes, total }) => Outcome::done(self.output(bytes, total, clamped)),
            Err(problem) => Outcome::failed(problem),
        }
    }
}

struct Content {
    bytes: Vec<u8>,
    total: u64,
}

impl Reader {
    /// Opens the file that was judged, and no other.
    fn open(&self) -> Result<OwnedFd, Problem> {
        again(&self.workspace, &self.path, &self.found)?;
        // Without waiting: should a pipe have taken the file's place, opening it must not hang.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let name = std::ffi::OsStr::new(self.path.as_str());
        let file = self
            .workspace
            .open_beneath(name, flags, Mode::empty())
            .map_err(|why| not_there(&self.path, why))?;
        let stat = fstat(&file).map_err(|errno| system(&self.path, errno))?;
        let same = (stat.st_dev, stat.st_ino) == (self.found.stat.st_dev, self.found.stat.st_ino)
            && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if same { Ok(file) } else { Err(changed(&self.path)) }
    }

    fn read(&self, most: u64, deadline: Instant) -> Result<Content, Problem> {
        let file = self.open()?;
        let mut bytes = Vec::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let have = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            let want = usize::try_from(most.saturating_sub(have)).unwrap_or(usize::MAX);
            let want = want.min(buffer.len());
            if want == 0 {
                break;
            }
            let slot = buffer.get_mut(..want).unwrap_or_default();
            if Instant::now() > deadline {
                let message = format!("`{}` could not be read in time", self.path);
                return Err(Problem::new(Code::FileSystem, message));
            }
            match pread(file.as_fd(), &mut *slot, self.offset.saturating_add(have)) {
                Ok(0) => break,
                Ok(read) => bytes.extend_from_slice(slot.get(..read).unwrap_or_default()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(system(&self.path, errno)),
            }
        }
        let total = fstat(&file).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
        Ok(Content { bytes, total })
    }

    fn output(&self, mut bytes: Vec<u8>, total: u64, clamped: bool) -> Output {
        let read = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let truncated = self.offset.saturating_add(read) < total;
        let output = Output::default().with("path", self.path.to_string());
        let binary = is_binary(&bytes, self.offset > 0, truncated);
        let output = if binary {
            bytes.truncate(usize::try_from(limits::BINARY_PREVIEW_BYTES).unwrap_or(usize::MAX));
            output.with_binary("base64", bytes)
        } else {
            trim_to_characters(&mut bytes, self.offset > 0, truncated);
            output.with_bytes("text", "base64", bytes)
        };
        let cut_preview = binary && read > limits::BINARY_PREVIEW_BYTES;
        output
            .with("binary", binary)
            .with("offset", self.offset)
            .with("bytes_total", total)
            .with("truncated", truncated || cut_preview)
            .with("clamped", clamped)
    }
}

/// Whether bytes are not text: a NUL byte, or no UTF-8. A character that is cut by either end of
/// the piece does not make it binary.
fn is_binary(bytes: &[u8], cut_before: bool, cut_after: bool) -> bool {
    if bytes.contains(&0) {
        return true;
    }
    let mut piece = bytes.to_vec();
    trim_to_characters(&mut piece, cut_before, cut_after);
    std::str::from_utf8(&piece).is_err()
}

/// Drops the parts of characters at the ends where the piece was cut.
fn trim_to_characters(bytes: &mut Vec<u8>, cut_before: bool, cut_after: bool) {
    if cut_before {
        let tail = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
        bytes.drain(..tail);
    }
    if cut_after && let Err(error) = std::str::from_utf8(bytes) {
        // An incomplete character at the very end, not a wrong one in the middle.
        if error.error_len().is_none() {
            bytes.truncate(error.valid_up_to());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_character_is_still_text() {
        let text = "añb".as_bytes();
        assert!(!is_binary(&text[..2], false, true));
        assert!(is_binary(&text[..2], false, false));
        assert!(!is_binary(&text[2..], true, false));
        assert!(is_binary(b"a\0b", false, false));
        assert!(is_binary(b"\xff\xfeab", false, true));
        assert!(!is_binary(b"", false, false));
    }
}
