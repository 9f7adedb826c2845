//! `git.diff`: what differs, line by line.
//!
//! Git is asked twice: first which files differ, then for the lines of those among them that may be
//! shown. So what an invariant protects is never read for a diff, neither on disk nor as it was.

use std::collections::BTreeSet;

use capsule_base::limits;
use capsule_core::action::{Action, RepositoryQuery};
use capsule_core::capability::Capability;
use capsule_core::outcome::{CodedError, Output};
use capsule_core::tool::{ArgumentKind, ResultField, ToolArgument, ToolShape, ToolSignature};
use capsule_redact::TextPiece;
use serde_json::{Map, Value};

use crate::git::{GitSession, lossy_text, nul_fields, parse_paths, prepare, question_paths};
use crate::tool::args::flag_arg;
use crate::tool::{DescribeContext, PreparedCall, Tool, ToolContext};

/// What `git.diff` is called, takes and gives.
pub static SIGNATURE: ToolSignature = ToolSignature {
    id: "git.diff",
    model_name: "git_diff",
    aliases: &[],
    about: "Shows how files of the repository differ from what is staged, or that from the last \
            commit.",
    shape: ToolShape::Repository,
    capabilities: &[Capability::FsRead, Capability::ProcExec],
    arguments: &[
        ToolArgument {
            name: "paths",
            kind: ArgumentKind::Paths,
            required: false,
            about: "the files and folders that are meant; all if left out",
        },
        ToolArgument {
            name: "staged",
            kind: ArgumentKind::Flag,
            required: false,
            about: "what is staged, against the last commit",
        },
    ],
    results: &[
        ResultField { name: "text", about: "the differences" },
        ResultField { name: "text_base64", about: "the differences, where they are not text" },
        ResultField {
            name: "files",
            about: "`path`, `added` and `removed` lines, `binary`, `renamed_from`; submodules are \
                    not looked into",
        },
        ResultField { name: "left_out", about: "how many files the policy does not let be shown" },
        ResultField { name: "truncated", about: "whether there is more" },
        ResultField { name: "clamped", about: "whether more was asked for than may be had" },
    ],
};

/// Asks for differences.
#[derive(Clone, Copy, Debug)]
pub struct GitDiff;

impl Tool for GitDiff {
    fn signature(&self) -> &'static ToolSignature {
        &SIGNATURE
    }

    fn describe(
        &self,
        args: &Map<String, Value>,
        context: &DescribeContext<'_>,
    ) -> Result<Action, CodedError> {
        let ask = RepositoryQuery::Diff {
            paths: parse_paths(args, context)?,
            staged: flag_arg(args, "staged"),
        };
        Ok(Action::Git { query: ask })
    }

    fn prepare(&self, action: &Action, _: &Value, context: &ToolContext<'_>) -> PreparedCall {
        prepare(action, context, run_query)
    }
}

/// Which files may differ, without a look into any of them.
const CHANGED_ARGS: &[&str] =
    &["diff-files", "--raw", "-z", "--no-renames", "--ignore-submodules=all"];
/// Which staged files differ. Only trees are compared.
const STAGED_ARGS: &[&str] =
    &["diff", "--cached", "--raw", "-z", "--no-renames", "--ignore-submodules=all", "-O/dev/null"];
/// How they differ.
const PATCH_ARGS: &[&str] = &[
    "diff",
    "--numstat",
    "--patch",
    "-z",
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules=all",
    "--submodule=short",
    "--find-renames",
    "--no-color",
    "--no-color-moved",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "-O/dev/null",
];

fn run_query(asking: &mut GitSession<'_>, ask: &RepositoryQuery) -> Result<Output, CodedError> {
    let staged = matches!(ask, RepositoryQuery::Diff { staged: true, .. });
    let first =
        asking.run_git(if staged { STAGED_ARGS } else { CHANGED_ARGS }, &question_paths(ask))?;
    let hidden = asking.hidden_paths()?;
    let differ: BTreeSet<&[u8]> = changed_paths(nul_fields(&first)).collect();
    let (mut open, mut left_out, mut truncated) = (Vec::new(), 0_u64, first.truncated);
    let mut room = limits::ARGV_BYTES / 2;
    for path in differ {
        if !asking.is_visible(path, &hidden) {
            left_out += 1;
        } else if open.len() == limits::DIFF_FILES || path.len() > room {
            truncated = true;
        } else {
            room -= path.len();
            open.push(lossy_text(path));
        }
    }
    let (mut text, mut files) = (Vec::new(), Vec::new());
    if !open.is_empty() {
        let words: Vec<&str> =
            PATCH_ARGS.iter().copied().chain(staged.then_some("--cached")).collect();
        let answer = asking.run_git(&words, &open)?;
        truncated |= answer.truncated;
        let (counts, patch) = split_numstat(&answer.bytes);
        files = line_counts(counts);
        text = patch.to_vec();
    }
    let window = 0..text.len().min(asking.max_bytes);
    truncated |= window.end < text.len();
    let piece = TextPiece { window, bytes: text, cut_before: false, cut_after: truncated };
    Ok(Output::default()
        .with_bytes("text", "text_base64", piece)
        .with("files", files)
        .with("left_out", left_out)
        .with("truncated", truncated))
}

/// The paths of a list of changed files: each behind what changed about it.
fn changed_paths<'a>(mut fields: impl Iterator<Item = &'a [u8]>) -> impl Iterator<Item = &'a [u8]> {
    std::iter::from_fn(move || {
        fields.find(|field| field.starts_with(b":"))?;
        fields.next()
    })
}

/// The counts of lines, and the lines behind them: a field without anything stands between.
fn split_numstat(answer: &[u8]) -> (&[u8], &[u8]) {
    let mut at = 0;
    while let Some(rest) = answer.get(at..) {
        let Some(end) = rest.iter().position(|byte| *byte == 0) else { break };
        match rest.get(..end) {
            Some([]) => {
                let patch = answer.get(at + 1..).unwrap_or_default();
                return (answer.get(..at).unwrap_or_default(), patch);
            }
            // Two names follow that have fields of their own.
            Some(field) if field.ends_with(b"\t") => {
                let names = rest.get(end + 1..).unwrap_or_default();
                let mut ends = names.iter().enumerate().filter(|(_, byte)| **byte == 0);
                let Some((second, _)) = ends.nth(1) else { break };
                at += end + 1 + second + 1;
            }
            _ => at += end + 1,
        }
    }
    (answer, &[])
}

/// The counts of lines, file by file.
fn line_counts(counts: &[u8]) -> Vec<Value> {
    let mut fields = counts.split(|byte| *byte == 0);
    let mut files = Vec::new();
    while let Some(field) = fields.next() {
        let mut words = field.splitn(3, |byte| *byte == b'\t');
        let (Some(added), Some(removed), Some(name)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let (from, path) = match name {
            [] => (fields.next(), fields.next().unwrap_or_default()),
            name => (None, name),
        };
        let number = |word: &[u8]| lossy_text(word).parse::<u64>().ok();
        let mut file = Map::new();
        file.insert("path".into(), lossy_text(path).into());
        match (number(added), number(removed)) {
            (Some(added), Some(removed)) => {
                file.insert("added".into(), added.into());
                file.insert("removed".into(), removed.into());
            }
            _ => drop(file.insert("binary".into(), true.into())),
        }
        if let Some(from) = from {
            file.insert("renamed_from".into(), lossy_text(from).into());
        }
        files.push(file.into());
    }
    files
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_counts_end_where_the_lines_begin() {
        let answer = b"1\t2\ta b\x003\t0\t\0old\0new\0-\t-\tpicture\0\0diff --git a/x b/x\n\0rest";
        let (counts, patch) = split_numstat(answer);
        assert_eq!(patch, b"diff --git a/x b/x\n\0rest");
        assert_eq!(
            line_counts(counts),
            [
                json!({ "path": "a b", "added": 1, "removed": 2 }),
                json!({ "path": "new", "added": 3, "removed": 0, "renamed_from": "old" }),
                json!({ "path": "picture", "binary": true }),
            ]
        );
        assert_eq!(split_numstat(b"1\t2\tcut"), (b"1\t2\tcut".as_slice(), [].as_slice()));
        assert_eq!(split_numstat(b""), ([].as_slice(), [].as_slice()));
    }

    #[test]
    fn each_changed_file_is_named_behind_its_change() {
        let fields: [&[u8]; 6] =
            [b":100644 100644 a b M", b"one", b":000000 100644 a b A", b":odd", b":a b U", b"x"];
        let found: Vec<&[u8]> = changed_paths(fields.into_iter()).collect();
        assert_eq!(found, [b"one".as_slice(), b":odd", b"x"]);
    }
}
