//! `fs.grep`: lines of files by what is in them.
//!
//! The files are found by the walk of `fs.search`, and each is judged like a file that `fs.read` names before it is
//! opened. A file is masked before it is searched: a pattern can neither show nor guess what a mask hides.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use capsule_base::glob::Glob;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_core::action::{Action, FileKind, SearchFilter};
use capsule_core::capability::Capability;
use capsule_core::decision::Decision;
use capsule_core::lifecycle::{Operation, Permit};
use capsule_core::outcome::{CodedError, Outcome, Output};
use capsule_core::policy::{ListingScope, Restrictions};
use capsule_core::tool::{ArgumentKind, ResultField, ToolArgument, ToolShape, ToolSignature};
use capsule_redact::Redactor;
use capsule_workspace::path_problem::{changed_problem, require_found, require_unchanged};
use capsule_workspace::system::statat;
use capsule_workspace::{
    Cancel, FoundPath, HiddenPaths, PathLookup, TextEncoding, WalkedEntry, Workspace, look_up,
};
use regex::{Regex, RegexBuilder};
use rustix::fs::{AtFlags, OFlags};
use serde_json::{Map, Value, json};

use crate::builtin::file_walk::{FileQuery, NamePattern, walk_files};
use crate::builtin::fs_search::cancelled_problem;
use crate::fault::{wrong_action_problem, wrong_permit_outcome};
use crate::tool::args::{flag_arg, invalid_args, number_arg, text_arg};
use crate::tool::prepare::prepare_path;
use crate::tool::{DescribeContext, PreparedCall, Tool, ToolContext};

/// What `fs.grep` is called, takes and gives.
pub static SIGNATURE: ToolSignature = ToolSignature {
    id: "fs.grep",
    model_name: "fs_grep",
    aliases: &["file_grep"],
    about: "Looks for lines of text files by a pattern, only in files that `fs.read` opens; leaves out links, hidden files unless they are opened, and directories of dependencies and build results.",
    shape: ToolShape::Files,
    capabilities: &[Capability::FsRead],
    arguments: &[
        ToolArgument {
            name: "pattern",
            kind: ArgumentKind::Text,
            required: true,
            about: "a regular expression, compared with each line by itself",
        },
        ToolArgument {
            name: "fixed",
            kind: ArgumentKind::Flag,
            required: false,
            about: "whether the pattern is the text itself",
        },
        ToolArgument {
            name: "ignore_case",
            kind: ArgumentKind::Flag,
            required: false,
            about: "whether capital and small letters are the same",
        },
        ToolArgument {
            name: "path",
            kind: ArgumentKind::Path,
            required: false,
            about: "the file or directory to look in; the workspace if left out",
        },
        ToolArgument {
            name: "glob",
            kind: ArgumentKind::Name,
            required: false,
            about: "only files whose name matches, such as `*.md`; with a slash it is about the path",
        },
        ToolArgument {
            name: "context",
            kind: ArgumentKind::Number,
            required: false,
            about: "how many lines before and after each to show, 10 at most",
        },
        ToolArgument {
            name: "limit",
            kind: ArgumentKind::Number,
            required: false,
            about: "how many lines at most",
        },
    ],
    results: &[
        ResultField {
            name: "matches",
            about: "the lines: path, line from 1, text (`cut` where it is too long to show), and with `context` the lines before and after",
        },
        ResultField {
            name: "matches_total",
            about: "how many lines match; at least so many where `partial` is set",
        },
        ResultField { name: "files_searched", about: "how many files were searched" },
        ResultField { name: "binary_files", about: "how many were not, since they are not text" },
        ResultField { name: "large_files", about: "how many were not, since they are over 4 MB" },
        ResultField {
            name: "left_out",
            about: "directories of dependencies and build results; name one as `path` to search it",
        },
        ResultField {
            name: "partial",
            about: "whether the search ended before it had seen everything",
        },
        ResultField { name: "truncated", about: "whether more lines match than are shown" },
        ResultField { name: "clamped", about: "whether more was asked for than may be shown" },
    ],
};

/// Looks for lines.
#[derive(Clone, Copy, Debug)]
pub struct FsGrep;

impl Tool for FsGrep {
    fn signature(&self) -> &'static ToolSignature {
        &SIGNATURE
    }

    fn describe(
        &self,
        args: &Map<String, Value>,
        context: &DescribeContext<'_>,
    ) -> Result<Action, CodedError> {
        let glob = text_arg(args, "glob");
        if let Some(glob) = glob {
            Glob::parse(glob).map_err(|error| invalid_args(format!("`glob`: {error}")))?;
        }
        let content = line_pattern(args)?;
        compile(&content)?;
        Ok(Action::Search {
            path: context.path(text_arg(args, "path").unwrap_or(".")),
            filter: SearchFilter {
                name: glob.map(Into::into),
                content: Some(content),
                ..SearchFilter::default()
            },
            limit: number_arg(args, "limit"),
        })
    }

    fn prepare(&self, action: &Action, args: &Value, context: &ToolContext<'_>) -> PreparedCall {
        prepare_path(action, context, |path, lookup| {
            let Action::Search {
                filter: SearchFilter { name, content: Some(content), .. }, ..
            } = action
            else {
                return Err(wrong_action_problem());
            };
            Ok(Box::new(GrepOperation {
                workspace: Rc::clone(context.workspace),
                hidden_paths: Rc::clone(context.hidden_paths),
                redactor: context.redactor.clone(),
                cancel: context.cancel.clone(),
                path: path.clone(),
                found: require_found(path, lookup)?,
                glob: name.clone(),
                pattern: compile(content)?,
                context: args.get("context").and_then(Value::as_u64).unwrap_or(0),
            }))
        })
    }
}

/// The pattern of a call as one regular expression.
fn line_pattern(args: &Map<String, Value>) -> Result<String, CodedError> {
    let pattern = text_arg(args, "pattern").unwrap_or_default();
    let wrong = match pattern {
        "" => Some("is empty"),
        _ if pattern.len() > limits::GREP_PATTERN_BYTES => Some("is over 1,000 bytes long"),
        _ if pattern.contains('\n') => {
            Some("holds a line break, and each line is compared by itself")
        }
        _ => None,
    };
    if let Some(wrong) = wrong {
        return Err(invalid_args(format!("`pattern` {wrong}")));
    }
    let pattern = match flag_arg(args, "fixed") {
        true => regex::escape(pattern),
        false => pattern.to_owned(),
    };
    Ok(if flag_arg(args, "ignore_case") { format!("(?i){pattern}") } else { pattern })
}

fn compile(pattern: &str) -> Result<Regex, CodedError> {
    let built = RegexBuilder::new(pattern)
        .size_limit(limits::GREP_PROGRAM_BYTES)
        .dfa_size_limit(limits::GREP_PROGRAM_BYTES)
        .build();
    built.map_err(|error| {
        let text = error.to_string();
        let why = match error {
            regex::Error::CompiledTooBig(_) => "it repeats too much",
            _ => text.rsplit("error: ").next().unwrap_or(&text).trim(),
        };
        invalid_args(format!("`pattern` is no regular expression: {why}"))
            .with_suggestion("to look for the text itself, add `fixed: true`")
    })
}

struct GrepOperation {
    workspace: Rc<Workspace>,
    hidden_paths: Rc<RefCell<HiddenPaths>>,
    redactor: Redactor,
    cancel: Cancel,
    path: WorkspacePath,
    found: FoundPath,
    glob: Option<String>,
    pattern: Regex,
    context: u64,
}

/// A search while it goes on.
struct Search<'s> {
    scope: &'s ListingScope,
    deadline: Instant,
    limit: usize,
    context: usize,
    matches: Vec<Value>,
    shown_bytes: usize,
    masked: u64,
    total: u64,
    searched: u64,
    binary: u64,
    large: u64,
    read_bytes: u64,
    partial: bool,
}

impl Operation for GrepOperation {
    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        let Restrictions::Listing { results, clamped, timeout_ms, scope } = permit.restrictions()
        else {
            return wrong_permit_outcome();
        };
        if let Err(problem) = require_unchanged(&self.workspace, &self.path, &self.found) {
            return Outcome::failed(problem);
        }
        let context = self.context.min(limits::GREP_CONTEXT);
        let mut search = Search {
            scope,
            deadline: Instant::now() + Duration::from_millis(*timeout_ms),
            limit: usize::try_from(*results).unwrap_or(usize::MAX),
            context: usize::try_from(context).unwrap_or(0),
            matches: Vec::new(),
            shown_bytes: 0,
            masked: 0,
            total: 0,
            searched: 0,
            binary: 0,
            large: 0,
            read_bytes: 0,
            partial: false,
        };
        let (files, left_out) = match self.files(&mut search) {
            Ok(found) => found,
            Err(problem) => return Outcome::failed(problem),
        };
        self.search_files(&files, &mut search);
        if self.cancel.is_set() {
            return Outcome::failed(cancelled_problem());
        }
        let shown = u64::try_from(search.matches.len()).unwrap_or(u64::MAX);
        let result = json!({
            "matches": search.matches,
            "matches_total": search.total,
            "files_searched": search.searched,
            "binary_files": search.binary,
            "large_files": search.large,
            "left_out": left_out,
            "partial": search.partial,
            "truncated": search.total > shown,
            "clamped": *clamped || context < self.context,
        });
        // The lines were masked in their files; names are masked here.
        let result = self.redactor.value(result, &mut search.masked);
        Outcome::done(Output::recorded(result, search.masked))
    }
}

impl GrepOperation {
    /// The files to open, by their names, and the directories that are left out.
    fn files(
        &self,
        search: &mut Search<'_>,
    ) -> Result<(Vec<WorkspacePath>, Vec<String>), CodedError> {
        if self.found.kind() == FileKind::File {
            return Ok((vec![self.path.clone()], Vec::new()));
        }
        let left_out = Mutex::new(Vec::new());
        let enters = |entry: &WalkedEntry<'_>, path: &WorkspacePath| {
            let is_left_out = is_produced(entry);
            if is_left_out {
                left_out.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_string());
            }
            !is_left_out
        };
        let query = FileQuery {
            root: &self.found,
            scope: search.scope,
            pattern: self.glob.as_deref().and_then(NamePattern::parse),
            enters: &enters,
            limit: limits::GREP_FILES,
            deadline: search.deadline,
            cancel: &self.cancel,
        };
        let files = Mutex::new(Vec::new());
        let end = walk_files(&self.workspace, &query, &|_, path| {
            files.lock().unwrap_or_else(PoisonError::into_inner).push(path);
            true
        });
        if end.changed {
            return Err(changed_problem(&self.path));
        }
        let mut files = files.into_inner().unwrap_or_else(PoisonError::into_inner);
        search.partial |= end.partial || files.len() > limits::GREP_FILES;
        files.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        let mut left_out = left_out.into_inner().unwrap_or_else(PoisonError::into_inner);
        left_out.sort_unstable();
        left_out.truncate(limits::GREP_LEFT_OUT);
        Ok((files, left_out))
    }

    fn search_files(&self, files: &[WorkspacePath], search: &mut Search<'_>) {
        let fact = look_up(&self.workspace, &self.path, &self.hidden_paths.borrow()).0;
        let judged: Vec<Decision> = search.scope.judge_search(&fact).collect();
        for path in files {
            if self.is_over(search) {
                return;
            }
            if let Err(error) = self.search_file((&judged, path), search) {
                // What is deleted meanwhile is not there to be searched.
                search.partial |= error.kind() != io::ErrorKind::NotFound;
            }
        }
    }

    /// Whether to stop, which makes the result a part of the whole.
    fn is_over(&self, search: &mut Search<'_>) -> bool {
        let is_over = self.cancel.is_set()
            || Instant::now() > search.deadline
            || search.read_bytes > limits::GREP_BYTES;
        search.partial |= is_over;
        is_over
    }

    fn search_file(
        &self,
        (judged, path): (&[Decision], &WorkspacePath),
        search: &mut Search<'_>,
    ) -> io::Result<()> {
        let (fact, lookup) = look_up(&self.workspace, path, &self.hidden_paths.borrow());
        let PathLookup::Found(found) = lookup else { return Ok(()) };
        if found.kind() != FileKind::File || !search.scope.searches(judged, &fact) {
            return Ok(());
        }
        if u64::try_from(found.stat.st_size).unwrap_or(0) > limits::GREP_FILE_BYTES {
            search.large += 1;
            return Ok(());
        }
        let opened = found.open(&self.workspace, OFlags::RDONLY);
        let file = File::from(opened.map_err(|_| io::ErrorKind::PermissionDenied)?);
        let mut bytes = Vec::new();
        file.take(limits::GREP_FILE_BYTES).read_to_end(&mut bytes)?;
        search.read_bytes += u64::try_from(bytes.len()).unwrap_or(0);
        let Some(text) = file_text(bytes) else {
            search.binary += 1;
            return Ok(());
        };
        search.searched += 1;
        let mut masked = 0;
        let clean = self.redactor.keeping_lines(text.as_bytes(), &mut masked);
        self.search_text((path, &String::from_utf8_lossy(&clean), masked > 0), search);
        Ok(())
    }

    fn search_text(
        &self,
        (path, text, is_masked): (&WorkspacePath, &str, bool),
        search: &mut Search<'_>,
    ) {
        let lines: Vec<&str> = text.lines().collect();
        let mut unchecked = 0;
        for (index, line) in lines.iter().enumerate() {
            unchecked += line.len();
            if unchecked > limits::GREP_LINE_BYTES {
                unchecked = 0;
                if self.is_over(search) {
                    return;
                }
            }
            let end = line.floor_char_boundary(limits::GREP_LINE_BYTES);
            search.partial |= end < line.len();
            let Some(found) = self.pattern.find(line.get(..end).unwrap_or_default()) else {
                continue;
            };
            search.total += 1;
            if search.matches.len() < search.limit && search.shown_bytes < limits::GREP_SHOWN_BYTES
            {
                search.add(path, (&lines, index, found.start()), is_masked);
            }
        }
    }
}

impl Search<'_> {
    /// Adds a line that matches, with those before and after it.
    fn add(
        &mut self,
        path: &WorkspacePath,
        (lines, index, start): (&[&str], usize, usize),
        is_masked: bool,
    ) {
        let mut show = |line: &str, start: usize| {
            let shown = shown_part(line, start);
            self.shown_bytes += shown.len();
            if is_masked {
                let masks = capsule_redact::masks(shown.as_bytes()).count();
                self.masked += u64::try_from(masks).unwrap_or(0);
            }
            shown
        };
        let line = lines.get(index).copied().unwrap_or_default();
        let text = show(line, start);
        let mut found = json!({ "path": path.as_str(), "line": index + 1 });
        let Value::Object(map) = &mut found else { return };
        if text.len() != line.len() {
            map.insert("cut".into(), true.into());
        }
        map.insert("text".into(), text.into());
        if self.context > 0 {
            let end = lines.len().min(index + 1 + self.context);
            let ranges =
                [("before", index.saturating_sub(self.context)..index), ("after", index + 1..end)];
            for (name, range) in ranges {
                let near = lines.get(range).unwrap_or_default();
                let near: Vec<String> = near.iter().map(|line| show(line, 0)).collect();
                map.insert(name.into(), near.into());
            }
        }
        self.matches.push(found);
    }
}

/// The part of a line that is shown: all of it, or what is near a place in it.
fn shown_part(line: &str, start: usize) -> String {
    let most = limits::GREP_LINE_CHARS;
    if line.chars().count() <= most {
        return line.to_owned();
    }
    let before = line.get(..start).unwrap_or_default().chars().count();
    let skipped = before.saturating_sub(most / 4);
    let shown: String = line.chars().skip(skipped).take(most).collect();
    let (begin, end) = (if skipped > 0 { "…" } else { "" }, "…");
    let end = if line.ends_with(&shown) { "" } else { end };
    format!("{begin}{shown}{end}")
}

/// The text of a file; none where it is not text, which is told as `fs.read` tells it.
fn file_text(bytes: Vec<u8>) -> Option<String> {
    let text = match (TextEncoding::from_wide_bom(&bytes), bytes.get(2..)) {
        (Some(encoding), Some(rest)) if rest.len().is_multiple_of(2) => {
            let (text, is_broken) = encoding.decode_part(rest);
            (!is_broken).then_some(text)
        }
        (Some(_), _) => None,
        (None, _) => String::from_utf8(bytes).ok(),
    };
    text.filter(|text| !text.contains('\0'))
}

/// Whether a program made what is in a directory: installed dependencies, git's database, or what it marked as a cache.
fn is_produced(directory: &WalkedEntry<'_>) -> bool {
    let tag = [directory.name.as_bytes(), b"/CACHEDIR.TAG"].concat();
    let is_named = |name: &str| directory.name == OsStr::new(name);
    is_named("node_modules")
        || is_named(".git")
        || statat(directory.directory, &tag, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}
