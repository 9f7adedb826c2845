//! The calls of ours that a call of a host means.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use capsule_base::code::Code;
use capsule_base::{escape, limits};
use capsule_core::outcome::CodedError;
use rustix::fs::{Mode, OFlags};
use serde_json::{Map, Value, json};

use crate::hook::find_pattern::stays_inside;
use crate::hook::host_tool::{EditArgs, Meaning, Names};
use crate::hook::input::{HookInput, text};
use crate::hook::patch::{PatchedFile, parse_patch, replace_parts};

/// A tool of ours and its arguments.
pub(crate) type ToolArgs = (&'static str, Value);

/// The calls of ours that a call to a file or a host means.
///
/// # Errors
/// When it cannot be told what the call would do.
pub(crate) fn file_calls(
    input: &HookInput,
    meaning: &Meaning,
) -> Result<Vec<ToolArgs>, CodedError> {
    match meaning {
        Meaning::Command { .. } | Meaning::Internal => Ok(Vec::new()),
        Meaning::Tool(tool, names) => plain_call(input, tool, names).map(|call| vec![call]),
        Meaning::FindFiles(pattern, path) => find_call(input, pattern, path).map(|call| vec![call]),
        Meaning::Edit(names) => edit_call(input, &input.args, *names).map(|call| vec![call]),
        Meaning::Edits(list, names) => edits_call(input, list, *names).map(|call| vec![call]),
        Meaning::SearchText(path) => search_call(input, path).map(|call| vec![call]),
        Meaning::Patch(names) => {
            let files = input.text(names).and_then(parse_patch);
            let files = files.ok_or_else(|| unclear("the patch cannot be read"))?;
            let calls = files.iter().map(|file| patch_calls(input, file));
            Ok(calls.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        }
    }
}

/// The calls that read the files of which the content says what a call would do. An answer may say no more of a file
/// than the model may read of it.
///
/// # Errors
/// When it cannot be told which they are.
pub(crate) fn content_calls(
    input: &HookInput,
    meaning: &Meaning,
) -> Result<Vec<ToolArgs>, CodedError> {
    let paths: Vec<&str> = match meaning {
        Meaning::Edit(names) => {
            let is_all = |name: &&str| input.args.get(*name) == Some(&Value::Bool(true));
            let path = input.text(names.path).filter(|_| names.all.iter().any(is_all));
            path.into_iter().collect()
        }
        Meaning::Edits(_, names) => input.text(names.path).into_iter().collect(),
        Meaning::Patch(names) => {
            let files = input.text(names).and_then(parse_patch).unwrap_or_default();
            let updated = files.into_iter().filter_map(|file| match file {
                PatchedFile::Updated(path, ..) => Some(path),
                PatchedFile::Added(..) | PatchedFile::Deleted(_) => None,
            });
            updated.collect()
        }
        Meaning::Command { .. }
        | Meaning::Tool(..)
        | Meaning::FindFiles(..)
        | Meaning::SearchText(_)
        | Meaning::Internal => Vec::new(),
    };
    let call = |path: &str| input.path(path).map(|path| ("fs.read", json!({ "path": path })));
    paths.into_iter().map(call).collect()
}

fn plain_call(
    input: &HookInput,
    tool: &'static str,
    names: &[(&str, Names)],
) -> Result<ToolArgs, CodedError> {
    let mut args = Map::new();
    for (name, host_names) in names {
        let value = host_names.iter().find_map(|name| input.args.get(*name));
        let value = match (value, *name) {
            // A relative path is relative to the directory that the host works in.
            (Some(Value::String(path)), "path") => Some(json!(input.path(path)?)),
            (None, "path") if tool != "fs.read" && tool != "fs.write" => Some(json!(input.cwd)),
            (value, _) => value.cloned(),
        };
        args.extend(value.map(|value| ((*name).to_owned(), value)));
    }
    Ok((tool, Value::Object(args)))
}

/// Files that are found are judged by their directory, so that the pattern may not leave that.
fn find_call(
    input: &HookInput,
    pattern: &'static str,
    path: Names,
) -> Result<ToolArgs, CodedError> {
    check_pattern(input, pattern)?;
    plain_call(input, "fs.search", &[("path", path)])
}

fn check_pattern(input: &HookInput, name: &str) -> Result<(), CodedError> {
    let is_inside = match input.args.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(pattern)) => stays_inside(pattern) && is_exact(pattern),
        Some(_) => false,
    };
    if is_inside {
        return Ok(());
    }
    let message = format!("the `{name}` can find what is outside of the directory that it names");
    let hint = "use a pattern that is relative and has no `..`, and name a directory of the workspace beside it";
    Err(CodedError::new(Code::HookUnjudged, message).with_suggestion(hint))
}

/// Searching one file is reading it. What a search of a directory shows cannot be judged by name.
fn search_call(input: &HookInput, path: Names) -> Result<ToolArgs, CodedError> {
    for name in ["glob", "include", "include_pattern"] {
        check_pattern(input, name)?;
    }
    match input.text(path).map(|path| input.path(path)).transpose()? {
        Some(path) if !Path::new(&path).is_dir() => Ok(("fs.read", json!({ "path": path }))),
        _ => Err(CodedError::new(
            Code::HookUnjudged,
            "a search through the files of a directory would show lines of files that the policy closes",
        )
        .with_suggestion("run `grep -rn PATTERN DIRECTORY` as a command, which runs confined, search one file, or use `fs_grep` of Capsule's MCP server")),
    }
}

fn edit_call(
    input: &HookInput,
    args: &Map<String, Value>,
    names: EditArgs,
) -> Result<ToolArgs, CodedError> {
    let argument = |names| text(args, names).ok_or_else(|| unclear("the edit lacks a text"));
    let path = input.path(argument(names.path)?)?;
    let (old, new) = (argument(names.old)?, argument(names.new)?);
    if old.is_empty() {
        return Ok(("fs.write", json!({ "path": path, "content": new, "mode": "create" })));
    }
    let count = match names.all.iter().find_map(|name| args.get(*name)) {
        Some(Value::Bool(true)) => read(&path)?.matches(old).count().max(1),
        Some(Value::Number(count)) => {
            count.as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(1)
        }
        _ => 1,
    };
    Ok(("fs.edit", json!({ "path": path, "search": old, "replace": new, "count": count })))
}

/// Several edits of one file are judged as the file that they come to.
fn edits_call(input: &HookInput, list: &str, names: EditArgs) -> Result<ToolArgs, CodedError> {
    let path = input.text(names.path).ok_or_else(|| unclear("the edits name no file"))?;
    let path = input.path(path)?;
    let edits = input.args.get(list).and_then(Value::as_array);
    let is_there = Path::new(&path).symlink_metadata().is_ok();
    let mut content = if is_there { read(&path)? } else { String::new() };
    for edit in edits.ok_or_else(|| unclear("there is no list of edits"))? {
        let edit = edit.as_object().ok_or_else(|| unclear("an edit is no object"))?;
        let argument = |names| text(edit, names).ok_or_else(|| unclear("an edit lacks a text"));
        let (old, new) = (argument(names.old)?, argument(names.new)?);
        let is_all = names.all.iter().any(|name| edit.get(*name) == Some(&Value::Bool(true)));
        if !content.contains(old) {
            return Err(unclear("the text of an edit is not in the file"));
        }
        let count = if is_all { content.matches(old).count() } else { 1 };
        let growth = count.saturating_mul(new.len().saturating_sub(old.len()));
        if content.len().saturating_add(growth) > limits::ARGUMENT_BYTES {
            return Err(unclear("the file would become too large"));
        }
        content = match is_all {
            true => content.replace(old, new),
            false => content.replacen(old, new, 1),
        };
    }
    Ok(("fs.write", json!({ "path": path, "content": content })))
}

fn patch_calls(input: &HookInput, file: &PatchedFile<'_>) -> Result<Vec<ToolArgs>, CodedError> {
    let write =
        |path: String, content: String| ("fs.write", json!({ "path": path, "content": content }));
    Ok(match file {
        PatchedFile::Added(path, content) => vec![write(input.path(path)?, content.clone())],
        PatchedFile::Deleted(path) => {
            vec![("fs.delete", json!({ "path": input.path(path)? }))]
        }
        PatchedFile::Updated(path, renamed, parts) => {
            let path = input.path(path)?;
            let content = replace_parts(&read(&path)?, parts);
            let content =
                content.ok_or_else(|| unclear("the lines of the patch are not in the file"))?;
            match renamed {
                None => vec![write(path, content)],
                Some(renamed) => vec![
                    write(input.path(renamed)?, content),
                    ("fs.delete", json!({ "path": path })),
                ],
            }
        }
    })
}

/// A file as it is now, which the model may read; from it follows what an edit would make of it.
fn read(path: &str) -> Result<String, CodedError> {
    let unreadable = || unclear("the file cannot be read as text");
    // A pipe is not waited for, and a terminal not taken.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty()).map_err(|_| unreadable())?;
    let file = File::from(opened);
    if !file.metadata().is_ok_and(|found| found.is_file()) {
        return Err(unreadable());
    }
    let most = limits::ARGUMENT_BYTES;
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    let mut content = String::new();
    file.take(limit).read_to_string(&mut content).map_err(|_| unreadable())?;
    if content.len() > most {
        return Err(unclear("the file is too large"));
    }
    Ok(content)
}

fn unclear(why: &str) -> CodedError {
    CodedError::new(Code::HookUnjudged, format!("it cannot be told what the call would do: {why}"))
}

/// Whether every host takes a text for just what is there: some cut white space away, and characters that cannot be
/// seen.
fn is_exact(text: &str) -> bool {
    text.trim().len() == text.len() && !text.contains(escape::is_hostile)
}

impl HookInput {
    /// A path as the host would take it.
    ///
    /// # Errors
    /// When hosts take it differently.
    pub(crate) fn path(&self, path: &str) -> Result<String, CodedError> {
        if path.starts_with('~') || !is_exact(path) {
            let message = "a path begins with `~` or white space, ends with white space, or holds a character that \
                           cannot be seen: it cannot be told which file the agent would take";
            return Err(CodedError::new(Code::HookUnjudged, message)
                .with_suggestion("write the path in full, from `/`, or from the workspace"));
        }
        Ok(self.cwd.join(path).to_string_lossy().into_owned())
    }
}
