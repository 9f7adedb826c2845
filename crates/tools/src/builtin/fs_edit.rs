//! `fs.edit`: puts one text in place of another in a file, where it is sure which place is meant.

use std::time::{Duration, Instant};

use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_core::action::Action;
use capsule_core::capability::Capability;
use capsule_core::lifecycle::{Operation, Permit, Preview, SavedUndo};
use capsule_core::outcome::{CodedError, Outcome, Output};
use capsule_core::policy::Restrictions;
use capsule_core::tool::{ArgumentKind, ResultField, ToolArgument, ToolShape, ToolSignature};
use capsule_redact::{Redactor, TextPiece, excerpt};
use capsule_workspace::{AtomicWrite, PathLookup, changed_line_counts, path_problem::require_file};
use serde_json::{Map, Value};

use crate::edit::{
    EditError, EditRequest, EditResult, MatchCount, NearestMatch, TextEncoding, edit, mask_restore,
};
use crate::fault::{wrong_action_problem, wrong_permit_outcome};
use crate::tool::args::{invalid_args, number_arg, text_arg};
use crate::tool::prepare::prepare_change;
use crate::tool::{DescribeContext, PreparedCall, Tool, ToolContext};

/// What `fs.edit` is called, takes and gives.
pub static SIGNATURE: ToolSignature = ToolSignature {
    id: "fs.edit",
    model_name: "fs_edit",
    aliases: &["file_edit"],
    about: "Replaces text in a file of the workspace. What is searched for has to be there exactly as \
        often as expected; where it is not there byte for byte, whole lines may differ in line ends, \
        blanks at their ends, quotes and dashes, tabs for spaces, indentation by a constant amount, \
        blank lines between them, and blanks inside a line that say nothing in the language of the \
        file: none in strings, nor where they make another thing of it.",
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
fn parse_request(args: &Map<String, Value>) -> EditRequest<'_> {
    EditRequest {
        search: text_arg(args, "search").unwrap_or_default(),
        replace: text_arg(args, "replace").unwrap_or_default(),
        count: number_arg(args, "count"),
        path: text_arg(args, "path").unwrap_or_default(),
    }
}

impl Tool for FsEdit {
    fn signature(&self) -> &'static ToolSignature {
        &SIGNATURE
    }

    fn describe(
        &self,
        args: &Map<String, Value>,
        context: &DescribeContext<'_>,
    ) -> Result<Action, CodedError> {
        let EditRequest { search, replace, count, .. } = parse_request(args);
        if search.is_empty() {
            return Err(CodedError::new(Code::EditEmpty, "`search` is empty")
                .with_suggestion(Code::EditEmpty.next_step()));
        }
        if search == replace {
            return Err(CodedError::new(Code::EditNoChange, "`search` and `replace` are the same")
                .with_suggestion(Code::EditNoChange.next_step()));
        }
        if count.is_some_and(|count| !(1..=limits::EDIT_COUNT).contains(&count)) {
            return Err(invalid_args(format!("`count` lies between 1 and {}", limits::EDIT_COUNT)));
        }
        Ok(Action::Edit {
            path: context.path(text_arg(args, "path").unwrap_or_default()),
            search: Digest::of(search.as_bytes()),
            replace: Digest::of(replace.as_bytes()),
            bytes: u64::try_from(replace.len()).unwrap_or(u64::MAX),
            count,
        })
    }

    fn prepare(&self, action: &Action, args: &Value, context: &ToolContext<'_>) -> PreparedCall {
        let none = Map::new();
        let request = parse_request(args.as_object().unwrap_or(&none));
        let masks =
            mask_restore::count_masks([request.search.as_bytes(), request.replace.as_bytes()]);
        let operation = |path: &WorkspacePath, stands| match action {
            Action::Edit { search, replace, count, .. }
                if Digest::of(request.search.as_bytes()) == *search
                    && Digest::of(request.replace.as_bytes()) == *replace
                    && request.count == *count =>
            {
                let found = require_file(path, stands)?;
                let size = u64::try_from(found.stat.st_size).unwrap_or(u64::MAX);
                if size > limits::WRITE_BYTES_MAX {
                    return Err(too_large_problem(path, size, limits::WRITE_BYTES_MAX));
                }
                let stands = PathLookup::Found(found);
                let target = AtomicWrite::new(context.workspace, context.backups, path, stands)?;
                let unkept = target.backup_refusal();
                let (search, replace) = (request.search.to_owned(), request.replace.to_owned());
                let (redactor, masks, count) = (context.redactor.clone(), masks > 0, request.count);
                let edited = None;
                let editor = EditOperation {
                    target,
                    search,
                    replace,
                    count,
                    redactor,
                    has_masks: masks,
                    result: edited,
                };
                Ok((Box::new(editor) as Box<dyn Operation>, unkept))
            }
            _ => Err(wrong_action_problem()),
        };
        prepare_change(action, context, (operation, masks))
    }
}

fn too_large_problem(path: &WorkspacePath, size: u64, most: u64) -> CodedError {
    let message = format!("`{path}` has or would have {size} bytes; an edit takes up to {most}");
    CodedError::new(Code::EditTooLarge, message).with_suggestion(Code::EditTooLarge.next_step())
}

struct EditOperation {
    target: AtomicWrite,
    search: String,
    replace: String,
    count: Option<u64>,
    /// What shows the file.
    redactor: Redactor,
    /// Whether masks stand in what is asked for.
    has_masks: bool,
    /// What the edit comes to, once the file was read.
    result: Option<Result<EditResult, EditError>>,
}

impl Operation for EditOperation {
    fn save_undo(&mut self) -> Result<Option<SavedUndo>, CodedError> {
        self.target.read_old()?;
        let edited = self.compute_edit(self.target.old_content())?;
        let kept =
            edited.as_ref().ok().map(|edited| self.target.back_up(&edited.bytes)).transpose();
        self.result = Some(edited);
        kept
    }

    fn preview(&mut self) -> Preview {
        let edited = self
            .target
            .read_old()
            .ok()
            .and_then(|()| self.compute_edit(self.target.old_content()).ok()?.ok());
        edited.map_or(Preview::Unavailable, |edited| self.target.preview(&edited.bytes))
    }

    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        let Restrictions::Edit { bytes, quotes, timeout_ms } = *permit.restrictions() else {
            return wrong_permit_outcome();
        };
        let deadline = Instant::now() + Duration::from_millis(timeout_ms);
        let path = self.target.path();
        let fits = |file: &[u8]| match u64::try_from(file.len()).unwrap_or(u64::MAX) {
            size if size > bytes => Err(too_large_problem(path, size, bytes)),
            _ => Ok(()),
        };
        let old = self.target.old_content();
        if let Err(problem) = self.target.require_unchanged().and_then(|()| fits(old)) {
            return Outcome::failed(problem);
        }
        let edited = match self.result {
            Some(Ok(edited)) => edited,
            Some(Err(refusal)) if quotes => return edit_failure(path, refusal, self.count),
            Some(Err(refusal)) => return refused_unquoted(path, &refusal),
            None => return wrong_permit_outcome(),
        };
        let saved = fits(&edited.bytes).and_then(|()| self.target.commit(&edited.bytes, deadline));
        match saved {
            Ok(()) if quotes => Outcome::done(output(path, &edited)),
            Ok(()) => Outcome::done(made_unquoted(path)),
            Err(problem) => Outcome::failed(problem),
        }
    }
}

impl EditOperation {
    /// What the edit comes to, in the file as it is shown: what is hidden there can neither be found,
    /// and so be guessed, nor be shown by what stands around it. With masks in what is asked for, what
    /// they stand for is put back.
    fn compute_edit(&self, old: &[u8]) -> Result<Result<EditResult, EditError>, CodedError> {
        let path = self.target.path();
        let request = EditRequest {
            search: &self.search,
            replace: &self.replace,
            count: self.count,
            path: path.as_str(),
        };
        let (redactor, mut hidden) = (&self.redactor, 0);
        let shown = redactor.bytes(old, &mut hidden);
        if hidden == 0 && !self.has_masks {
            return Ok(edit(old, &request));
        }
        let edited = match edit(&shown, &request) {
            Ok(edited) => edited,
            refusal => return Ok(refusal),
        };
        if !self.has_masks {
            let seen = |bytes: &[u8]| redactor.bytes(bytes, &mut 0).into_owned();
            return match edit(old, &request) {
                Ok(made) if seen(&made.bytes) == seen(&edited.bytes) => Ok(Ok(made)),
                _ => Err(mask_restore::revealing_problem(path)),
            };
        }
        if edited.encoding != TextEncoding::Utf8 {
            return Err(mask_restore::unresolvable_problem(path));
        }
        let bytes = mask_restore::restore_masks(redactor, &edited.bytes, old, path)?;
        Ok(Ok(EditResult { bytes, ..edited }))
    }
}

fn as_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn output(path: &WorkspacePath, edited: &EditResult) -> Output {
    let (before, after) = &edited.text;
    let (added, removed) = changed_line_counts(before.as_bytes(), after.as_bytes());
    let output = Output::default()
        .with("path", path.to_string())
        .with("changed", true)
        .with("added", added)
        .with("removed", removed)
        .with("bytes_total", as_u64(edited.bytes.len()))
        .with("matched", edited.tolerance.as_str())
        .with("line", as_u64(edited.line));
    match edited.encoding {
        TextEncoding::Utf8 => output,
        other => output.with("encoding", other.as_str()),
    }
}

/// What is told of an edit that was made in a file that the policy does not open to `fs.read`: that it was. How
/// it matched and where, how large the file is and how it says its text would tell of what stands in it.
fn made_unquoted(path: &WorkspacePath) -> Output {
    Output::default().with("path", path.to_string()).with("changed", true)
}

/// What is told of an edit that is not made. What the file holds stands in the output alone, where
/// credentials are masked with all that is around them.
fn edit_failure(path: &WorkspacePath, refusal: EditError, count: Option<u64>) -> Outcome {
    let output = Output::default().with("path", path.to_string()).with("changed", false);
    let expected = count.unwrap_or(1);
    let (code, message, output) = match refusal {
        EditError::Empty => (Code::EditEmpty, "`search` is empty".to_owned(), output),
        EditError::NoChange => {
            (Code::EditNoChange, format!("`{path}` would stay as it is"), output)
        }
        EditError::Omission(line) => {
            let line = excerpt(&line, limits::QUOTED_CHARS);
            (Code::EditOmission, format!("`replace` leaves text out: `{line}`"), output)
        }
        EditError::Binary => (Code::EditBinary, format!("`{path}` is not text"), output),
        EditError::Encoding(encoding) => {
            let message = format!("`{path}` is {}, which cannot say `replace`", encoding.as_str());
            (Code::EditEncoding, message, output)
        }
        EditError::NotFound { nearest: None, .. } => (
            Code::EditNotFound,
            format!("`search` is not in `{path}`, nor anything like it"),
            output,
        ),
        EditError::NotFound { text, nearest: Some(nearest) } => {
            let message = format!("`search` is not in `{path}`; {}", nearest_text(&nearest));
            let piece = TextPiece {
                bytes: text.into_bytes(),
                window: nearest.range,
                cut_before: false,
                cut_after: false,
            };
            let output = output.with("nearest_line", as_u64(nearest.line));
            (Code::EditNotFound, message, output.with_bytes("nearest", "nearest_base64", piece))
        }
        EditError::UnknownIndentation { line } => {
            let message = format!(
                "`search` is indented otherwise than line {line} of `{path}`, and `replace` cannot \
                 be indented likewise"
            );
            (Code::EditNotFound, message, output.with("nearest_line", as_u64(line)))
        }
        EditError::Ambiguous(seen) | EditError::WrongCount(seen) if seen.overlaps => {
            return overlap_failure(path, &seen, count, output);
        }
        EditError::Ambiguous(seen) => {
            (Code::EditAmbiguous, format!("`search` is in `{path}` {}", count_text(&seen)), output)
        }
        EditError::WrongCount(seen) => {
            let message = format!("`search` is in `{path}` {}, not {expected}", count_text(&seen));
            (Code::EditCount, message, output)
        }
        EditError::TooCostly => {
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
fn refused_unquoted(path: &WorkspacePath, refusal: &EditError) -> Outcome {
    let output = Output::default().with("path", path.to_string()).with("changed", false);
    let (code, why) = match refusal {
        EditError::Empty => (Code::EditEmpty, "`search` is empty"),
        EditError::NoChange => (Code::EditNoChange, "the file would stay as it is"),
        EditError::Omission(_) => (Code::EditOmission, "`replace` leaves text out"),
        EditError::Binary => (Code::EditBinary, "the file is not text"),
        EditError::Encoding(_) => (Code::EditEncoding, "its encoding cannot say `replace`"),
        EditError::NotFound { .. } | EditError::UnknownIndentation { .. } => {
            (Code::EditNotFound, "`search` is not in the file")
        }
        EditError::Ambiguous(_) => (Code::EditAmbiguous, "`search` is in the file more than once"),
        EditError::WrongCount(_) => {
            (Code::EditCount, "`search` is not in the file as often as expected")
        }
        EditError::TooCostly => (Code::EditTooLarge, "`search` takes too long to be found"),
    };
    let message = format!("`{path}` is not edited: {why}");
    let hint = "nothing of the file is quoted, since the policy does not open it to `fs.read`; \
        ask the user for the lines";
    Outcome { output, ..Outcome::failed(CodedError::new(code, message).with_suggestion(hint)) }
}

/// Which lines come closest.
fn nearest_text(nearest: &NearestMatch) -> String {
    let (first, last) = (nearest.line, nearest.line + nearest.lines.saturating_sub(1));
    match first == last {
        true => format!("line {last} comes closest"),
        false => format!("lines {first} to {last} come closest"),
    }
}

/// What is told where the places overlap: which are meant cannot be said by a number.
fn overlap_failure(
    path: &WorkspacePath,
    seen: &MatchCount,
    count: Option<u64>,
    output: Output,
) -> Outcome {
    let code = if count.is_some() { Code::EditCount } else { Code::EditAmbiguous };
    let message = format!(
        "`search` is in `{path}` in {} places that overlap ({}), so it is not known which are meant",
        seen.count,
        lines_text(seen)
    );
    let hint = "Search for the whole of the text around the places, and write all of it anew in `replace`.";
    Outcome { output, ..Outcome::failed(CodedError::new(code, message).with_suggestion(hint)) }
}

/// How often, and on which lines.
fn count_text(seen: &MatchCount) -> String {
    let word = if seen.count == 1 { "time" } else { "times" };
    format!("{} {word} ({})", seen.count, lines_text(seen))
}

fn lines_text(seen: &MatchCount) -> String {
    let lines: Vec<String> = seen.lines.iter().map(ToString::to_string).collect();
    let more = if seen.has_more { " and more" } else { "" };
    let word = if lines.len() == 1 { "line" } else { "lines" };
    format!("{word} {}{more}", lines.join(", "))
}
