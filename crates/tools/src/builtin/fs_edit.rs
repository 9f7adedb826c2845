//! `fs.edit`: puts one text in place of another in a file, where it is sure which place is meant.

use std::time::{Duration, Instant};

use capsule_core::action::{Action, PathTarget};
use capsule_core::capability::Capability;
use capsule_core::code::Code;
use capsule_core::digest::Digest;
use capsule_core::lifecycle::{Operation, Permit, Preview, SavedUndo};
use capsule_core::limits;
use capsule_core::outcome::{CodedError, Outcome, Output};
use capsule_core::path::WorkspacePath;
use capsule_core::policy::Restrictions;
use capsule_core::tool::{ArgumentKind, ResultField, ToolArgument, ToolShape, ToolSignature};
use capsule_redact::{Piece, Redactor};
use serde_json::{Map, Value};

use crate::builtin::{another_action, file, invalid, number, text, wrong_permit};
use crate::edit::{Edited, Encoding, Refusal, Request, Seen, edit};
use crate::returned;
use crate::saving::{Saving, count_lines};
use crate::tool::{Context, Prepared, Tool, prepare_change};
use crate::workspace::Stands;

/// What `fs.edit` is called, takes and gives.
pub static SIGNATURE: ToolSignature = ToolSignature {
    id: "fs.edit",
    model_name: "fs_edit",
    aliases: &["file_edit"],
    about: "Replaces text in a file of the workspace. What is searched for has to be there exactly as \
        often as expected; where it is not there byte for byte, whole lines may differ in line ends, \
        blanks at their ends, quotes and dashes, tabs for spaces, indentation by a constant amount, \
        and blank lines between them.",
    shape: ToolShape::Files,
    capabilities: &[Capability::FsRead, Capability::FsWrite],
    arguments: &[
        ToolArgument {
            name: "path",
            kind: ArgumentKind::Path,
            required: true,
            about: "the file, relative to the workspace",
        },
        ToolArgument {
            name: "search",
            kind: ArgumentKind::Text,
            required: true,
            about: "the text that is there, with enough lines around it to be the only such place",
        },
        ToolArgument {
            name: "replace",
            kind: ArgumentKind::Text,
            required: true,
            about: "the text that is to be there instead, taken as it is",
        },
        ToolArgument {
            name: "count",
            kind: ArgumentKind::Number,
            required: false,
            about: "how many places are expected, and changed; 1 if left out",
        },
    ],
    results: &[
        ResultField { name: "path", about: "the file" },
        ResultField { name: "changed", about: "whether it is other than before" },
        ResultField { name: "added", about: "lines that were added" },
        ResultField { name: "removed", about: "lines that were removed" },
        ResultField { name: "bytes_total", about: "its size now" },
        ResultField { name: "matched", about: "`exact`, or `tolerant(..)` with what differed" },
        ResultField { name: "line", about: "the line of the first place" },
        ResultField {
            name: "encoding",
            about: "how the file says its text, where that is not UTF-8",
        },
        ResultField {
            name: "nearest_line",
            about: "where nothing matched: the line of what comes closest",
        },
        ResultField { name: "nearest", about: "the lines that come closest" },
    ],
};

/// Edits a file.
#[derive(Clone, Copy, Debug)]
pub struct FsEdit;

/// What a call asks for.
fn request(args: &Map<String, Value>) -> Request<'_> {
    Request {
        search: text(args, "search").unwrap_or_default(),
        replace: text(args, "replace").unwrap_or_default(),
        count: number(args, "count"),
        breaks: is_markdown(text(args, "path").unwrap_or_default()),
    }
}

/// Whether a file is one in which two blanks at the end of a line are a line break.
fn is_markdown(path: &str) -> bool {
    const ENDINGS: [&str; 6] = ["md", "markdown", "mdown", "mdx", "qmd", "rmd"];
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    ENDINGS.iter().any(|own| ending.eq_ignore_ascii_case(own))
}

impl Tool for FsEdit {
    fn signature(&self) -> &'static ToolSignature {
        &SIGNATURE
    }

    fn describe(&self, args: &Map<String, Value>, _: u64) -> Result<Action, CodedError> {
        let Request { search, replace, count, .. } = request(args);
        if search.is_empty() {
            return Err(CodedError::new(Code::EditEmpty, "`search` is empty")
                .with_suggestion(Code::EditEmpty.next_step()));
        }
        if search == replace {
            return Err(CodedError::new(Code::EditNoChange, "`search` and `replace` are the same")
                .with_suggestion(Code::EditNoChange.next_step()));
        }
        if count.is_some_and(|count| !(1..=limits::EDIT_COUNT).contains(&count)) {
            return Err(invalid(format!("`count` lies between 1 and {}", limits::EDIT_COUNT)));
        }
        Ok(Action::Edit {
            path: PathTarget::parse(text(args, "path").unwrap_or_default()),
            search: Digest::of(search.as_bytes()),
            replace: Digest::of(replace.as_bytes()),
            bytes: u64::try_from(replace.len()).unwrap_or(u64::MAX),
            count,
        })
    }

    fn prepare(&self, action: &Action, args: &Value, context: &Context<'_>) -> Prepared {
        let none = Map::new();
        let own = request(args.as_object().unwrap_or(&none));
        let masks = returned::count([own.search.as_bytes(), own.replace.as_bytes()]);
        let hands = |path: &WorkspacePath, stands| match action {
            Action::Edit { search, replace, count, .. }
                if Digest::of(own.search.as_bytes()) == *search
                    && Digest::of(own.replace.as_bytes()) == *replace
                    && own.count == *count =>
            {
                let found = file(path, stands)?;
                let size = u64::try_from(found.stat.st_size).unwrap_or(u64::MAX);
                if size > limits::WRITE_BYTES_MAX {
                    return Err(too_large(path, size, limits::WRITE_BYTES_MAX));
                }
                let stands = Stands::There(found);
                let saving = Saving::of(context.workspace, context.keeper, path, stands)?;
                let unkept = saving.unkept();
                let (search, replace) = (own.search.to_owned(), own.replace.to_owned());
                let (redactor, masks, count) = (context.redactor.clone(), masks > 0, own.count);
                let edited = None;
                let editor = Editor { saving, search, replace, count, redactor, masks, edited };
                Ok((Box::new(editor) as Box<dyn Operation>, unkept))
            }
            _ => Err(another_action()),
        };
        prepare_change(action, context, (hands, masks))
    }
}

fn too_large(path: &WorkspacePath, size: u64, most: u64) -> CodedError {
    let message = format!("`{path}` has or would have {size} bytes; an edit takes up to {most}");
    CodedError::new(Code::EditTooLarge, message).with_suggestion(Code::EditTooLarge.next_step())
}

struct Editor {
    saving: Saving,
    search: String,
    replace: String,
    count: Option<u64>,
    /// What shows the file.
    redactor: Redactor,
    /// Whether masks stand in what is asked for.
    masks: bool,
    /// What the edit comes to, once the file was read.
    edited: Option<Result<Edited, Refusal>>,
}

impl Operation for Editor {
    fn save_undo(&mut self) -> Result<Option<SavedUndo>, CodedError> {
        self.saving.read()?;
        let edited = self.edited(self.saving.old())?;
        let kept = edited.as_ref().ok().map(|edited| self.saving.keep(&edited.bytes)).transpose();
        self.edited = Some(edited);
        kept
    }

    fn preview(&mut self) -> Preview {
        let edited =
            self.saving.read().ok().and_then(|()| self.edited(self.saving.old()).ok()?.ok());
        edited.map_or(Preview::Unavailable, |edited| self.saving.preview(&edited.bytes))
    }

    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        let Restrictions::Edit { bytes, quotes, timeout_ms } = *permit.restrictions() else {
            return wrong_permit();
        };
        let deadline = Instant::now() + Duration::from_millis(timeout_ms);
        let path = self.saving.path();
        let fits = |file: &[u8]| match u64::try_from(file.len()).unwrap_or(u64::MAX) {
            size if size > bytes => Err(too_large(path, size, bytes)),
            _ => Ok(()),
        };
        let old = self.saving.old();
        if let Err(problem) = self.saving.unchanged().and_then(|()| fits(old)) {
            return Outcome::failed(problem);
        }
        let edited = match self.edited {
            Some(Ok(edited)) => edited,
            Some(Err(refusal)) if quotes => return refused(path, refusal, self.count),
            Some(Err(refusal)) => return refused_unquoted(path, &refusal),
            None => return wrong_permit(),
        };
        let saved = fits(&edited.bytes).and_then(|()| self.saving.put(&edited.bytes, deadline));
        match saved {
            Ok(()) if quotes => Outcome::done(output(path, &edited)),
            Ok(()) => Outcome::done(made_unquoted(path)),
            Err(problem) => Outcome::failed(problem),
        }
    }
}

impl Editor {
    /// What the edit comes to, in the file as it is shown: what is hidden there can neither be found,
    /// and so be guessed, nor be shown by what stands around it. With masks in what is asked for, what
    /// they stand for is put back.
    fn edited(&self, old: &[u8]) -> Result<Result<Edited, Refusal>, CodedError> {
        let path = self.saving.path();
        let request = Request {
            search: &self.search,
            replace: &self.replace,
            count: self.count,
            breaks: is_markdown(path.as_str()),
        };
        let (redactor, mut hidden) = (&self.redactor, 0);
        let shown = redactor.bytes(old, &mut hidden);
        if hidden == 0 && !self.masks {
            return Ok(edit(old, &request));
        }
        let edited = match edit(&shown, &request) {
            Ok(edited) => edited,
            refusal => return Ok(refusal),
        };
        if !self.masks {
            let seen = |bytes: &[u8]| redactor.bytes(bytes, &mut 0).into_owned();
            return match edit(old, &request) {
                Ok(made) if seen(&made.bytes) == seen(&edited.bytes) => Ok(Ok(made)),
                _ => Err(returned::revealing(path)),
            };
        }
        if edited.encoding != Encoding::Utf8 {
            return Err(returned::unresolvable(path));
        }
        let bytes = returned::resolved(redactor, &edited.bytes, old, path)?;
        Ok(Ok(Edited { bytes, ..edited }))
    }
}

fn whole(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn output(path: &WorkspacePath, edited: &Edited) -> Output {
    let (before, after) = &edited.text;
    let (added, removed) = count_lines(before.as_bytes(), after.as_bytes());
    let output = Output::default()
        .with("path", path.to_string())
        .with("changed", true)
        .with("added", added)
        .with("removed", removed)
        .with("bytes_total", whole(edited.bytes.len()))
        .with("matched", edited.how.word())
        .with("line", whole(edited.line));
    match edited.encoding {
        Encoding::Utf8 => output,
        other => output.with("encoding", other.word()),
    }
}

/// What is told of an edit that was made in a file that the policy does not open to `fs.read`: that it was. How
/// it matched and where, how large the file is and how it says its text would tell of what stands in it.
fn made_unquoted(path: &WorkspacePath) -> Output {
    Output::default().with("path", path.to_string()).with("changed", true)
}

/// What is told of an edit that is not made. What the file holds stands in the output alone, where
/// credentials are masked with all that is around them.
fn refused(path: &WorkspacePath, refusal: Refusal, count: Option<u64>) -> Outcome {
    let output = Output::default().with("path", path.to_string()).with("changed", false);
    let expected = count.unwrap_or(1);
    let (code, message, output) = match refusal {
        Refusal::Empty => (Code::EditEmpty, "`search` is empty".to_owned(), output),
        Refusal::NoChange => (Code::EditNoChange, format!("`{path}` would stay as it is"), output),
        Refusal::Binary => (Code::EditBinary, format!("`{path}` is not text"), output),
        Refusal::Encoding(encoding) => {
            let message = format!("`{path}` is {}, which cannot say `replace`", encoding.word());
            (Code::EditEncoding, message, output)
        }
        Refusal::NotFound { nearest: None, .. } => (
            Code::EditNotFound,
            format!("`search` is not in `{path}`, nor anything like it"),
            output,
        ),
        Refusal::NotFound { text, nearest: Some(nearest) } => {
            let last = nearest.line + nearest.lines.saturating_sub(1);
            let message = match nearest.line == last {
                true => format!("`search` is not in `{path}`; line {last} comes closest"),
                false => {
                    let first = nearest.line;
                    format!("`search` is not in `{path}`; lines {first} to {last} come closest")
                }
            };
            let piece = Piece {
                bytes: text.into_bytes(),
                window: nearest.range,
                cut_before: false,
                cut_after: false,
            };
            let output = output.with("nearest_line", whole(nearest.line));
            (Code::EditNotFound, message, output.with_bytes("nearest", "nearest_base64", piece))
        }
        Refusal::Unindentable { line } => {
            let message = format!(
                "`search` is indented otherwise than line {line} of `{path}`, and `replace` cannot \
                 be indented likewise"
            );
            (Code::EditNotFound, message, output.with("nearest_line", whole(line)))
        }
        Refusal::Ambiguous(seen) => {
            (Code::EditAmbiguous, format!("`search` is in `{path}` {}", times(&seen)), output)
        }
        Refusal::Count(seen) => {
            let message = format!("`search` is in `{path}` {}, not {expected}", times(&seen));
            (Code::EditCount, message, output)
        }
        Refusal::Costly => {
            let message = format!("`search` takes too long to be found in `{path}`");
            (Code::EditTooLarge, message, output)
        }
    };
    Outcome {
        output,
        ..Outcome::failed(CodedError::new(code, message).with_suggestion(code.next_step()))
    }
}

/// What is told of an edit that is not made in a file that the policy does not open to `fs.read`: why, and
/// nothing of what the file holds or where.
fn refused_unquoted(path: &WorkspacePath, refusal: &Refusal) -> Outcome {
    let output = Output::default().with("path", path.to_string()).with("changed", false);
    let (code, why) = match refusal {
        Refusal::Empty => (Code::EditEmpty, "`search` is empty"),
        Refusal::NoChange => (Code::EditNoChange, "the file would stay as it is"),
        Refusal::Binary => (Code::EditBinary, "the file is not text"),
        Refusal::Encoding(_) => (Code::EditEncoding, "its encoding cannot say `replace`"),
        Refusal::NotFound { .. } | Refusal::Unindentable { .. } => {
            (Code::EditNotFound, "`search` is not in the file")
        }
        Refusal::Ambiguous(_) => (Code::EditAmbiguous, "`search` is in the file more than once"),
        Refusal::Count(_) => (Code::EditCount, "`search` is not in the file as often as expected"),
        Refusal::Costly => (Code::EditTooLarge, "`search` takes too long to be found"),
    };
    let message = format!("`{path}` is not edited: {why}");
    let hint = "nothing of the file is quoted, since the policy does not open it to `fs.read`; \
        ask the user for the lines";
    Outcome { output, ..Outcome::failed(CodedError::new(code, message).with_suggestion(hint)) }
}

/// How often, and on which lines.
fn times(seen: &Seen) -> String {
    let lines: Vec<String> = seen.lines.iter().map(ToString::to_string).collect();
    let more = if seen.times > lines.len() { " and more" } else { "" };
    let word = if seen.times == 1 { "time" } else { "times" };
    let line = if seen.times == 1 { "line" } else { "lines" };
    format!("{} {word} ({line} {}{more})", seen.times, lines.join(", "))
}
