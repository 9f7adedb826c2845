//! P12: the whole answer of a hook, recorded, against a process that only starts (`rg --version`) plus one durable
//! commit: a file that is read, and a command that is rewritten.

use std::time::Duration;

use serde_json::json;

use crate::Answer;
use crate::binary::{Binary, answered, quiet};
use crate::options::Options;
use crate::pairs::{Pairs, seconds};
use crate::peer::{self, RIPGREP};
use crate::row::{Row, Target};

const POLICY: &str = r#"version: 1
name: hooks
budgets: { run: { calls: 1000000 } }
tools:
  fs.read: { decision: allow, paths: ["**"] }
  shell.run:
    form: command
    executables: { ls: allow }
"#;

const PAUSE: Duration = Duration::from_millis(20);

pub(crate) fn measure(options: &Options) -> Answer<Vec<Row>> {
    let workspace = options.fresh("p12-workspace")?;
    let files = options.fresh("p12")?;
    let binary = Binary::new(options, &files, &workspace, POLICY)?;
    let file = workspace.join("notes.md");
    std::fs::write(&file, "A note.\n").map_err(|error| format!("{}: {error}", file.display()))?;
    let sql = peer::commits(&files.join("reference.db"))?;
    let mut theirs = std::process::Command::new(RIPGREP.find()?);
    theirs.arg("--version");
    let mut rows = Vec::new();
    for (what, tool, args, mark) in [
        ("a hook's answer to a read", "Read", json!({ "file_path": file }), "\"allow\""),
        ("a hook's answer to a command", "Bash", json!({ "command": "ls" }), "capsule"),
    ] {
        let input = json!({
            "session_id": "bench",
            "cwd": workspace,
            "hook_event_name": "PreToolUse",
            "tool_name": tool,
            "tool_input": args,
        });
        let pairs = Pairs::take(
            options.pick(101, 11),
            PAUSE,
            || {
                let mut hook = binary.command(&["hook", "claude-code"], &[]);
                seconds(|| answered(&mut hook, &input, mark))
            },
            || {
                seconds(|| {
                    quiet(&mut theirs)?;
                    peer::commit(&sql)
                })
            },
        )?;
        let reference = "rg --version + 1 durable commit";
        rows.push(Row::new("P12", what, reference, pairs, Target::TimeAtMost(3.0)));
    }
    Ok(rows)
}
