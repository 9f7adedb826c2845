//! `git.log`: the last commits. Only who, when and why: never what they changed.

use capsule_core::action::{Action, RepositoryQuery};
use capsule_core::capability::Capability;
use capsule_core::outcome::{CodedError, Output};
use capsule_core::tool::{ArgumentKind, ResultField, ToolArgument, ToolShape, ToolSignature};
use serde_json::{Map, Value};

use crate::git::{GitSession, lossy_text, nul_fields, parse_paths, prepare, question_paths};
use crate::tool::args::number_arg;
use crate::tool::{DescribeContext, PreparedCall, Tool, ToolContext};

/// What `git.log` is called, takes and gives.
pub static SIGNATURE: ToolSignature = ToolSignature {
    id: "git.log",
    model_name: "git_log",
    aliases: &[],
    about: "Lists the last commits with their messages.",
    shape: ToolShape::Repository,
    capabilities: &[Capability::FsRead, Capability::ProcExec],
    arguments: &[
        ToolArgument {
            name: "limit",
            kind: ArgumentKind::Number,
            required: false,
            about: "how many commits at most",
        },
        ToolArgument {
            name: "paths",
            kind: ArgumentKind::Paths,
            required: false,
            about: "only commits that changed these files and folders",
        },
    ],
    results: &[
        ResultField {
            name: "entries",
            about: "`commit`, `author`, `email`, `date`, `subject`, `body`, the newest first",
        },
        ResultField { name: "truncated", about: "whether there are more" },
        ResultField { name: "clamped", about: "whether more was asked for than may be had" },
    ],
};

/// Asks for commits.
#[derive(Clone, Copy, Debug)]
pub struct GitLog;

impl Tool for GitLog {
    fn signature(&self) -> &'static ToolSignature {
        &SIGNATURE
    }

    fn describe(
        &self,
        args: &Map<String, Value>,
        context: &DescribeContext<'_>,
    ) -> Result<Action, CodedError> {
        let ask = RepositoryQuery::Log {
            paths: parse_paths(args, context)?,
            limit: number_arg(args, "limit"),
        };
        Ok(Action::Git { query: ask })
    }

    fn prepare(&self, action: &Action, _: &Value, context: &ToolContext<'_>) -> PreparedCall {
        prepare(action, context, run_query)
    }
}

/// The fields of a commit: its name, who, their address, when, what it is about, and the rest.
const FORMAT: &str = "--format=tformat:%H%x00%an%x00%ae%x00%aI%x00%s%x00%b";
const FIELD_COUNT: usize = 6;

fn run_query(asking: &mut GitSession<'_>, ask: &RepositoryQuery) -> Result<Output, CodedError> {
    // One more than is shown says that there are more.
    let most = format!("--max-count={}", asking.max_results.saturating_add(1));
    let words = [
        "log",
        &most,
        FORMAT,
        "-z",
        "--no-patch",
        "--no-show-signature",
        "--no-notes",
        "--no-mailmap",
        "--no-decorate",
        "--no-color",
        "--no-follow",
        "--encoding=UTF-8",
        // Where there is no commit yet, there are none to be listed.
        "--ignore-missing",
        "HEAD",
    ];
    let answer = asking.run_git(&words, &question_paths(ask))?;
    let all: Vec<&[u8]> = nul_fields(&answer).collect();
    let (mut entries, mut truncated) = (Vec::new(), answer.truncated);
    let mut room = asking.max_bytes;
    for commit in all.chunks_exact(FIELD_COUNT) {
        let bytes: usize = commit.iter().map(|field| field.len()).sum();
        if entries.len() >= asking.max_results || bytes > room {
            truncated = true;
            break;
        }
        room -= bytes;
        entries.extend(commit_json(commit));
    }
    Ok(Output::default().with("entries", entries).with("truncated", truncated))
}

fn commit_json(commit: &[&[u8]]) -> Option<Value> {
    let [name, author, email, date, subject, body] = commit else { return None };
    let body = body.trim_ascii_end();
    let all = [
        ("commit", name),
        ("author", author),
        ("email", email),
        ("date", date),
        ("subject", subject),
        ("body", &body),
    ];
    let told = all.into_iter().filter(|(name, text)| *name != "body" || !text.is_empty());
    Some(told.map(|(name, text)| (name.to_owned(), Value::from(lossy_text(text)))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_has_a_body_only_where_it_has_one() {
        let plain: [&[u8]; FIELD_COUNT] =
            [b"c0", b"A", b"a@b", b"2026-01-01T00:00:00Z", b"s", b"\n"];
        let entry = commit_json(&plain).unwrap();
        assert_eq!(entry["subject"], "s");
        assert_eq!(entry.get("body"), None);
        assert_eq!(commit_json(&plain[..5]), None);
    }
}
