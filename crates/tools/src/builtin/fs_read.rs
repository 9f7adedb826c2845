//! `fs.read`: some bytes of a file.

use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_core::action::Action;
use capsule_core::capability::Capability;
use capsule_core::lifecycle::{Operation, Permit};
use capsule_core::outcome::{CodedError, Outcome, Output};
use capsule_core::policy::Restrictions;
use capsule_core::tool::{ArgumentKind, ResultField, ToolArgument, ToolShape, ToolSignature};
use capsule_redact::TextPiece;
use capsule_workspace::path_problem::{
    not_found_problem, require_file, require_unchanged, system_problem,
};
use capsule_workspace::system::fstat;
use capsule_workspace::{FoundPath, TextEncoding, Workspace};
use rustix::fs::OFlags;
use rustix::io::{Errno, pread};
use serde_json::{Map, Value};

use crate::fault::{wrong_action_problem, wrong_permit_outcome};
use crate::tool::args::{number_arg, size_arg, text_arg};
use crate::tool::prepare::prepare_path;
use crate::tool::{DescribeContext, PreparedCall, Tool, ToolContext};

/// What `fs.read` is called, takes and gives.
pub static SIGNATURE: ToolSignature = ToolSignature {
    id: "fs.read",
    model_name: "fs_read",
    aliases: &["file_read"],
    about: "Reads a file of the workspace; a binary one comes back as a short base64 preview.",
    shape: ToolShape::Files,
    capabilities: &[Capability::FsRead],
    arguments: &[
        ToolArgument {
            name: "path",
            kind: ArgumentKind::Path,
            required: true,
            about: "the file, relative to the workspace",
        },
        ToolArgument {
            name: "offset",
            kind: ArgumentKind::Number,
            required: false,
            about: "the first byte, 0 if left out",
        },
        ToolArgument {
            name: "limit",
            kind: ArgumentKind::Size,
            required: false,
            about: "how many bytes at most",
        },
    ],
    results: &[
        ResultField { name: "path", about: "the file that was read" },
        ResultField { name: "text", about: "the bytes, where they are text" },
        ResultField { name: "base64", about: "a preview, where they are not" },
        ResultField { name: "binary", about: "whether they are not text" },
        ResultField {
            name: "encoding",
            about: "how the file says its text, where that is not UTF-8",
        },
        ResultField { name: "offset", about: "the first byte that was read" },
        ResultField { name: "bytes_total", about: "the size of the file" },
        ResultField { name: "truncated", about: "whether there is more" },
        ResultField { name: "clamped", about: "whether more was asked for than may be read" },
    ],
};

/// Reads a file.
#[derive(Clone, Copy, Debug)]
pub struct FsRead;

impl Tool for FsRead {
    fn signature(&self) -> &'static ToolSignature {
        &SIGNATURE
    }

    fn describe(
        &self,
        args: &Map<String, Value>,
        context: &DescribeContext<'_>,
    ) -> Result<Action, CodedError> {
        Ok(Action::Read {
            path: context.path(text_arg(args, "path").unwrap_or_default()),
            offset: number_arg(args, "offset").unwrap_or(0),
            limit: size_arg(args, "limit")?,
        })
    }

    fn prepare(&self, action: &Action, _: &Value, context: &ToolContext<'_>) -> PreparedCall {
        prepare_path(action, context, |path, stands| {
            let Action::Read { offset, .. } = action else { return Err(wrong_action_problem()) };
            Ok(Box::new(ReadOperation {
                workspace: Rc::clone(context.workspace),
                path: path.clone(),
                found: require_file(path, stands)?,
                offset: *offset,
            }))
        })
    }
}

struct ReadOperation {
    workspace: Rc<Workspace>,
    path: WorkspacePath,
    found: FoundPath,
    offset: u64,
}

impl Operation for ReadOperation {
    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        let Restrictions::Read { bytes, clamped, timeout_ms } = *permit.restrictions() else {
            return wrong_permit_outcome();
        };
        let deadline = Instant::now() + Duration::from_millis(timeout_ms);
        match self.read(bytes, deadline) {
            Ok(content) => Outcome::done(self.output(content, clamped)),
            Err(problem) => Outcome::failed(problem),
        }
    }
}

/// What was read: the bytes that were asked for, and some on both sides of them, so that a
/// credential that reaches into them is known for one.
struct Content {
    bytes: Vec<u8>,
    /// Those of the bytes that were asked for.
    window: Range<usize>,
    /// The size of the file.
    total: u64,
    /// What wide characters it is in.
    wide_encoding: Option<TextEncoding>,
}

impl Content {
    /// The same in UTF-8, for a file in wide characters: a credential in them is one like in any other
    /// text. A character belongs to the part in which it begins. And whether all of it is text.
    fn to_utf8(&self, from: u64) -> Option<(Vec<u8>, Range<usize>, TextEncoding, bool)> {
        let encoding = self.wide_encoding?;
        // Units stand at even places of the file, behind the mark.
        let odd = usize::from(!from.is_multiple_of(2));
        let mark = if from == 0 { 2 } else { odd };
        let border = |at: usize| {
            let at = (at + (at + odd) % 2).max(mark);
            let here = self.bytes.get(at..).unwrap_or_default();
            // Nothing goes on behind the mark.
            let goes_on = (at > mark || from > 0) && encoding.continues_character(here);
            let at = if goes_on { at + 2 } else { at };
            at.min(self.bytes.len())
        };
        let (start, end) = (border(self.window.start), border(self.window.end));
        let part =
            |range: Range<usize>| encoding.decode_part(self.bytes.get(range).unwrap_or_default());
        let (mut text, _) = part(mark..start);
        let (asked, broken) = part(start..end);
        let begin = text.len();
        text.push_str(&asked);
        let window = begin..text.len();
        text.push_str(&part(end..self.bytes.len()).0);
        let is_text = !broken && !asked.contains('\0') && self.total.is_multiple_of(2);
        Some((text.into_bytes(), window, encoding, is_text))
    }
}

impl ReadOperation {
    fn read(&self, most: u64, deadline: Instant) -> Result<Content, CodedError> {
        require_unchanged(&self.workspace, &self.path, &self.found)?;
        let opened = self.found.open(&self.workspace, OFlags::RDONLY);
        let file = opened.map_err(|why| not_found_problem(&self.path, why))?;
        let from = self.offset.saturating_sub(limits::REDACTION_MARGIN);
        let before = self.offset.saturating_sub(from);
        let wanted = before.saturating_add(most);
        let bytes = self.read_bytes(
            &file,
            from,
            wanted.saturating_add(limits::REDACTION_MARGIN),
            deadline,
        )?;
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
        let window = place(before)..place(wanted);
        let total = fstat(&file).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
        let mark = self.read_bytes(&file, 0, 2, deadline)?;
        Ok(Content { bytes, window, total, wide_encoding: TextEncoding::from_wide_bom(&mark) })
    }

    fn read_bytes(
        &self,
        file: &OwnedFd,
        from: u64,
        most: u64,
        deadline: Instant,
    ) -> Result<Vec<u8>, CodedError> {
        let mut bytes = Vec::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let have = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            let want = usize::try_from(most.saturating_sub(have)).unwrap_or(usize::MAX);
            let want = want.min(buffer.len());
            if want == 0 {
                return Ok(bytes);
            }
            let slot = buffer.get_mut(..want).unwrap_or_default();
            if Instant::now() > deadline {
                let message = format!("`{}` could not be read in time", self.path);
                return Err(CodedError::new(Code::FileSystem, message));
            }
            match pread(file.as_fd(), &mut *slot, from.saturating_add(have)) {
                Ok(0) => return Ok(bytes),
                Ok(read) => bytes.extend_from_slice(slot.get(..read).unwrap_or_default()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(system_problem(&self.path, errno)),
            }
        }
    }

    fn output(&self, content: Content, clamped: bool) -> Output {
        let read = u64::try_from(content.window.len()).unwrap_or(u64::MAX);
        let truncated = self.offset.saturating_add(read) < content.total;
        let from = self.offset.saturating_sub(limits::REDACTION_MARGIN);
        let wide = content.to_utf8(from);
        let Content { bytes, mut window, total, .. } = content;
        if let Some((bytes, window, encoding, is_text)) = wide {
            let output = Output::default().with("path", self.path.to_string());
            // Raw, nobody would see what stands in it; so there is no preview where it is no text.
            let piece =
                TextPiece { bytes, window, cut_before: self.offset > 0, cut_after: truncated };
            let output = match is_text {
                true => output.with_bytes("text", "base64", piece),
                false => output,
            };
            let output = output.with("encoding", encoding.as_str());
            return self.add_flags(output, !is_text, truncated, (total, clamped));
        }
        let asked = bytes.get(window.clone()).unwrap_or_default();
        let output = Output::default().with("path", self.path.to_string());
        let text = text_part(asked, self.offset > 0, truncated);
        let binary = text.is_none();
        window = match text {
            Some(whole) => window.start + whole.start..window.start + whole.end,
            None => {
                let preview = usize::try_from(limits::BINARY_PREVIEW_BYTES).unwrap_or(usize::MAX);
                window.start..window.end.min(window.start.saturating_add(preview))
            }
        };
        let piece = TextPiece { bytes, window, cut_before: self.offset > 0, cut_after: truncated };
        let output = match binary {
            true => output.with_binary("base64", piece),
            false => output.with_bytes("text", "base64", piece),
        };
        let cut_preview = binary && read > limits::BINARY_PREVIEW_BYTES;
        self.add_flags(output, binary, truncated || cut_preview, (total, clamped))
    }

    /// What is said of every file.
    fn add_flags(
        &self,
        output: Output,
        binary: bool,
        truncated: bool,
        (total, clamped): (u64, bool),
    ) -> Output {
        output
            .with("binary", binary)
            .with("offset", self.offset)
            .with("bytes_total", total)
            .with("truncated", truncated)
            .with("clamped", clamped)
    }
}

/// The part of a piece that is text: all of it, without the characters that either end cuts. None
/// if the bytes are not text, because of a NUL byte or because they are no UTF-8.
fn text_part(bytes: &[u8], cut_before: bool, cut_after: bool) -> Option<Range<usize>> {
    if bytes.contains(&0) {
        return None;
    }
    let tail = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
    let start = if cut_before { tail } else { 0 };
    match std::str::from_utf8(bytes.get(start..)?) {
        Ok(_) => Some(start..bytes.len()),
        // An incomplete character at the very end, not a wrong one in the middle.
        Err(error) if cut_after && error.error_len().is_none() => {
            Some(start..start + error.valid_up_to())
        }
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read part by part is all of it, and each part is seen in what stands around it.
    #[test]
    fn wide_characters_are_text() {
        let text = "a😀b=é\u{feff}\n".repeat(2);
        let file: Vec<u8> = [0xff, 0xfe]
            .into_iter()
            .chain(text.encode_utf16().flat_map(u16::to_le_bytes))
            .collect();
        let read = |from: usize, start: usize, end: usize| {
            let content = Content {
                bytes: file.get(from..).unwrap().to_vec(),
                window: start - from..end - from,
                total: u64::try_from(file.len()).unwrap(),
                wide_encoding: Some(TextEncoding::Utf16Le),
            };
            let from = u64::try_from(from).unwrap();
            let (made, window, _, is_text) = content.to_utf8(from).unwrap();
            let made = String::from_utf8(made).unwrap();
            assert!(is_text, "{from} {start}..{end}");
            made.get(window).unwrap().to_owned()
        };
        for start in 0..=file.len() {
            for end in start..=file.len() {
                for near in start.saturating_sub(7)..=start {
                    assert_eq!(
                        read(0, start, end),
                        read(near, start, end),
                        "{near} {start}..{end}"
                    );
                }
                let parts = [read(0, 0, start), read(0, start, end), read(0, end, file.len())];
                assert_eq!(parts.concat(), text, "{start}..{end}");
            }
        }
        for wrong in [&[0xff, 0xfe, 0, 0, 1, 0][..], &[0xff, 0xfe, 1], &[0xff, 0xfe, 0, 0xdc, 1, 0]]
        {
            let binary = Content {
                bytes: wrong.to_vec(),
                window: 0..wrong.len(),
                total: u64::try_from(wrong.len()).unwrap(),
                wide_encoding: Some(TextEncoding::Utf16Le),
            };
            assert!(!binary.to_utf8(0).unwrap().3, "{wrong:?}");
        }
    }

    #[test]
    fn a_cut_character_is_still_text() {
        let text = "añb".as_bytes();
        assert_eq!(text_part(text, true, true), Some(0..4));
        assert_eq!(text_part(&text[..2], false, true), Some(0..1));
        assert_eq!(text_part(&text[..2], false, false), None);
        assert_eq!(text_part(&text[2..], true, false), Some(1..2));
        assert_eq!(text_part(&text[2..], false, false), None);
        assert_eq!(text_part(b"a\0b", false, false), None);
        assert_eq!(text_part(b"\xff\xfeab", false, true), None);
        assert_eq!(text_part(b"a\xffb\xc3", false, true), None);
        assert_eq!(text_part(b"", false, false), Some(0..0));
    }
}
