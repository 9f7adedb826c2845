//! The calls of ours that a call of a host means.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::outcome::CodedError;
use serde_json::{Map, Value, json};

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
        Meaning::Tool(tool, names) => Ok(vec![plain_call(input, tool, names)]),
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

fn plain_call(input: &HookInput, tool: &'static str, names: &[(&str, Names)]) -> ToolArgs {
    let mut args = Map::new();
    for (name, host_names) in names {
        let value = host_names.iter().find_map(|name| input.args.get(*name));
        let value = match (value, *name) {
            // A relative path is relative to the directory that the host works in.
            (Some(Value::String(path)), "path") => Some(json!(input.path(path))),
            (None, "path") if tool != "fs.read" && tool != "fs.write" => Some(json!(input.cwd)),
            (value, _) => value.cloned(),
        };
        args.extend(value.map(|value| ((*name).to_owned(), value)));
    }
    (tool, Value::Object(args))
}

/// Searching one file is reading it. What a search of a directory shows cannot be judged by name.
fn search_call(input: &HookInput, path: Names) -> Result<ToolArgs, CodedError> {
    match input.text(path).map(|path| input.path(path)) {
        Some(path) if !Path::new(&path).is_dir() => Ok(("fs.read", json!({ "path": path }))),
        _ => Err(CodedError::new(
            Code::HookUnjudged,
            "a search through the files of a directory would show lines of files that the policy closes",
        )
        .with_suggestion("run `grep -rn PATTERN DIRECTORY` as a command, which runs confined, or search one file")),
    }
}

fn edit_call(
    input: &HookInput,
    args: &Map<String, Value>,
    names: EditArgs,
) -> Result<ToolArgs, CodedError> {
    let argument = |names| text(args, names).ok_or_else(|| unclear("the edit lacks a text"));
    let path = input.path(argument(names.path)?);
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
    let path = input.text(names.path).map(|path| input.path(path));
    let path = path.ok_or_else(|| unclear("the edits name no file"))?;
    let edits = input.args.get(list).and_then(Value::as_array);
    let mut content = read(&path).unwrap_or_default();
    for edit in edits.ok_or_else(|| unclear("there is no list of edits"))? {
        let edit = edit.as_object().ok_or_else(|| unclear("an edit is no object"))?;
        let argument = |names| text(edit, names).ok_or_else(|| unclear("an edit lacks a text"));
        let (old, new) = (argument(names.old)?, argument(names.new)?);
        let is_all = names.all.iter().any(|name| edit.get(*name) == Some(&Value::Bool(true)));
        if !content.contains(old) {
            return Err(unclear("the text of an edit is not in the file"));
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
        PatchedFile::Added(path, content) => vec![write(input.path(path), content.clone())],
        PatchedFile::Deleted(path) => vec![("fs.delete", json!({ "path": input.path(path) }))],
        PatchedFile::Updated(path, renamed, parts) => {
            let path = input.path(path);
            let content = replace_parts(&read(&path)?, parts);
            let content =
                content.ok_or_else(|| unclear("the lines of the patch are not in the file"))?;
            match renamed {
                None => vec![write(path, content)],
                Some(renamed) => vec![
                    write(input.path(renamed), content),
                    ("fs.delete", json!({ "path": path })),
                ],
            }
        }
    })
}

/// A file as it is now, from which it is told what an edit would make of it. Nothing of it is shown.
fn read(path: &str) -> Result<String, CodedError> {
    let most = u64::try_from(limits::ARGUMENT_BYTES).unwrap_or(u64::MAX);
    let mut content = String::new();
    let is_file = Path::new(path).metadata().is_ok_and(|found| found.is_file());
    let read = File::open(path).and_then(|file| file.take(most).read_to_string(&mut content));
    match is_file && read.is_ok() {
        true => Ok(content),
        false => Err(unclear("the file cannot be read as text")),
    }
}

fn unclear(why: &str) -> CodedError {
    CodedError::new(Code::HookUnjudged, format!("it cannot be told what the call would do: {why}"))
}

impl HookInput {
    /// A path as the host would take it.
    pub(crate) fn path(&self, path: &str) -> String {
        self.cwd.join(path).to_string_lossy().into_owned()
    }
}
