//! `git.status`: what differs from the last commit, by name.

use capsule_core::action::{Action, RepositoryQuery};
use capsule_core::capability::Capability;
use capsule_core::outcome::{CodedError, Output};
use capsule_core::tool::{ResultField, ToolShape, ToolSignature};
use serde_json::{Map, Value, json};

use crate::git::{GitSession, lossy_text, nul_fields, prepare};
use crate::tool::{DescribeContext, PreparedCall, Tool, ToolContext};

/// What `git.status` is called, takes and gives.
pub static SIGNATURE: ToolSignature = ToolSignature {
    id: "git.status",
    model_name: "git_status",
    aliases: &[],
    about: "Names the files of the repository that differ from the last commit.",
    shape: ToolShape::Repository,
    capabilities: &[Capability::FsRead, Capability::ProcExec],
    arguments: &[],
    results: &[
        ResultField { name: "branch", about: "the branch; none where no branch is checked out" },
        ResultField { name: "commit", about: "the last commit; none where there is none yet" },
        ResultField { name: "upstream", about: "the branch that it follows, if any" },
        ResultField { name: "ahead", about: "how many commits the upstream has not" },
        ResultField { name: "behind", about: "how many commits only the upstream has" },
        ResultField {
            name: "entries",
            about: "`path`, `index` (what is staged), `worktree` (what is not), `renamed_from`; \
                    submodules are not looked into",
        },
        ResultField {
            name: "left_out",
            about: "how many entries the policy does not let be shown",
        },
        ResultField { name: "truncated", about: "whether there are more" },
        ResultField { name: "clamped", about: "whether more was asked for than may be had" },
    ],
};

/// Asks for the state of the repository.
#[derive(Clone, Copy, Debug)]
pub struct GitStatus;

impl Tool for GitStatus {
    fn signature(&self) -> &'static ToolSignature {
        &SIGNATURE
    }

    fn describe(
        &self,
        _: &Map<String, Value>,
        _: &DescribeContext<'_>,
    ) -> Result<Action, CodedError> {
        Ok(Action::Git { query: RepositoryQuery::Status })
    }

    fn prepare(&self, action: &Action, _: &Value, context: &ToolContext<'_>) -> PreparedCall {
        prepare(action, context, run_query)
    }
}

const STATUS_ARGS: &[&str] = &[
    "status",
    "--porcelain=v2",
    "--branch",
    "--ahead-behind",
    "-z",
    "--untracked-files=normal",
    "--ignore-submodules=all",
    "--find-renames",
    "--no-column",
    "--no-show-stash",
];

fn run_query(asking: &mut GitSession<'_>, _: &RepositoryQuery) -> Result<Output, CodedError> {
    let answer = asking.run_git(STATUS_ARGS, &[])?;
    let hidden = asking.hidden_paths()?;
    let mut output = Output::default();
    let (mut entries, mut left_out, mut truncated) = (Vec::new(), 0_u64, answer.truncated);
    let mut lines = nul_fields(&answer);
    while let Some(line) = lines.next() {
        if let Some(header) = line.strip_prefix(b"# branch.") {
            output = add_branch(output, header);
            continue;
        }
        let Some(entry) = Entry::parse(line, &mut lines) else { continue };
        let named = [Some(entry.path), entry.renamed_from];
        if !named.into_iter().flatten().all(|path| asking.is_visible(path, &hidden)) {
            left_out += 1;
        } else if entries.len() < asking.max_results {
            entries.push(entry.to_json());
        } else {
            truncated = true;
        }
    }
    let output = output.with("entries", entries).with("left_out", left_out);
    Ok(output.with("truncated", truncated))
}

/// What a line about the branch says.
fn add_branch(output: Output, header: &[u8]) -> Output {
    let text = lossy_text(header);
    let (name, value) = text.split_once(' ').unwrap_or((&text, ""));
    match (name, value) {
        ("oid", "(initial)") | ("head", "(detached)") => output,
        ("oid", commit) => output.with("commit", commit),
        ("head", branch) => output.with("branch", branch),
        ("upstream", upstream) => output.with("upstream", upstream),
        ("ab", counts) => {
            let (ahead, behind) = counts.split_once(' ').unwrap_or_default();
            let number = |text: &str| text.get(1..).and_then(|text| text.parse::<u64>().ok());
            output.with("ahead", number(ahead)).with("behind", number(behind))
        }
        _ => output,
    }
}

/// One path that differs.
#[derive(Debug, PartialEq)]
struct Entry<'l> {
    path: &'l [u8],
    index: &'static str,
    worktree: &'static str,
    renamed_from: Option<&'l [u8]>,
}

impl<'l> Entry<'l> {
    /// Reads one; the former name of a renamed file is a field of its own.
    fn parse(line: &'l [u8], more: &mut impl Iterator<Item = &'l [u8]>) -> Option<Self> {
        let mut words = line.split(|byte| *byte == b' ');
        let kind = words.next()?;
        // How many words stand before the path, with the kind.
        let before = match kind {
            b"?" => 1,
            b"1" => 8,
            b"2" => 9,
            b"u" => 10,
            _ => return None,
        };
        let both = if kind == b"?" { b"??" } else { words.next()? };
        let path = line.splitn(before + 1, |byte| *byte == b' ').nth(before)?;
        let (index, worktree) = match kind {
            b"u" => ("unmerged", "unmerged"),
            _ => (status_name(*both.first()?), status_name(*both.get(1)?)),
        };
        let renamed_from = if kind == b"2" { more.next() } else { None };
        Some(Self { path, index, worktree, renamed_from })
    }

    fn to_json(&self) -> Value {
        let path = lossy_text(self.path);
        match self.renamed_from {
            Some(from) => json!({ "path": path, "index": self.index, "worktree": self.worktree,
                                  "renamed_from": lossy_text(from) }),
            None => json!({ "path": path, "index": self.index, "worktree": self.worktree }),
        }
    }
}

/// What a letter of git's means.
const fn status_name(letter: u8) -> &'static str {
    match letter {
        b'.' => "same",
        b'M' => "modified",
        b'T' => "type-changed",
        b'A' => "added",
        b'D' => "deleted",
        b'R' => "renamed",
        b'C' => "copied",
        b'?' => "untracked",
        _ => "unmerged",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_whatever_the_names_are() {
        let lines: [&[u8]; 6] = [
            b"1 .M N... 100644 100644 100644 aa bb docs/a b.md",
            b"2 R. N... 100644 100644 100644 aa bb R100 new  name",
            b"old name",
            b"u UU N... 100644 100644 100644 100644 aa bb cc both",
            b"? .hidden/",
            b"1 AD N... 000000 100644 000000 aa bb \xff",
        ];
        let mut lines = lines.into_iter();
        let mut found = Vec::new();
        while let Some(line) = lines.next() {
            let entry = Entry::parse(line, &mut lines).unwrap();
            found.push((entry.path, entry.index, entry.worktree, entry.renamed_from));
        }
        let expected: [(&[u8], _, _, Option<&[u8]>); 5] = [
            (b"docs/a b.md", "same", "modified", None),
            (b"new  name", "renamed", "same", Some(b"old name")),
            (b"both", "unmerged", "unmerged", None),
            (b".hidden/", "untracked", "untracked", None),
            (b"\xff", "added", "deleted", None),
        ];
        assert_eq!(found, expected);
        assert_eq!(Entry::parse(b"1 .M", &mut std::iter::empty()), None);
        assert_eq!(Entry::parse(b"", &mut std::iter::empty()), None);
    }
}
