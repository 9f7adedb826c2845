//! P3, the second half: one command line as agents type it, from its text to the decision under
//! `builtin:developer`, against a bare spawn of `/bin/true`. The lines are those of the corpus of
//! ordinary commands; what would be looked up on disk is left out on both sides.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use capsule_core::action::{Action, Facts};
use capsule_core::decision::Verdict;
use capsule_core::policy::{Policy, PolicyInput, Usage, decide};
use capsule_core::tool::ToolName;
use capsule_policy::builtin_text;
use capsule_tools::{CATALOGUE, describe};
use serde_json::{Value, json};

use crate::Answer;
use crate::law;
use crate::options::Options;
use crate::pairs::{Pairs, seconds};
use crate::row::{Row, Target};

const CORPUS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/core/tests/decisions/ordinary");
const SPAWNS: u32 = 20;

pub(crate) fn measure(options: &Options) -> Answer<Row> {
    let lines = Lines::new()?;
    let count = lines.args.len();
    let rounds = options.pick(101, 21);
    let pairs = Pairs::take(rounds, Duration::ZERO, || lines.each(), spawn)?;
    let what = format!("parse and decide one of {count} command lines");
    Ok(Row::new("P3", what, "bare spawn", pairs, Target::TimeAtMost(0.05)))
}

/// The lines as arguments of calls, and the policy.
struct Lines {
    policy: Arc<Policy>,
    tool: ToolName,
    args: Vec<Value>,
}

impl Lines {
    fn new() -> Answer<Self> {
        let text = builtin_text("developer").ok_or("there is no builtin:developer")?;
        let policy = Arc::new(law::bind(text, "builtin:developer", CATALOGUE)?);
        let failed = |error: std::io::Error| format!("{CORPUS}: {error}");
        let mut args = Vec::new();
        for entry in Path::new(CORPUS).read_dir().map_err(failed)? {
            let text = std::fs::read_to_string(entry.map_err(failed)?.path()).map_err(failed)?;
            let commands = text.lines().filter_map(|line| line.split_once('\t'));
            // What is not plain text stands as JSON behind a label with a star.
            let plain = commands.filter(|(label, _)| !label.ends_with('*'));
            args.extend(plain.map(|(_, command)| json!({ "command": command })));
        }
        Ok(Self { policy, tool: ToolName::unchecked("shell.run"), args })
    }

    /// The time of one, all of them taken in turn.
    fn each(&self) -> Answer<f64> {
        let (facts, usage) = (Facts::default(), Usage::default());
        let all = seconds(|| {
            for args in &self.args {
                // Some are refused for what they say; that is an answer, too.
                let Ok(action) = describe("shell.run", args, 0) else { continue };
                std::hint::black_box(self.decide(&action, &facts, &usage));
            }
            Ok(())
        })?;
        Ok(all / u32::try_from(self.args.len()).map_or(f64::NAN, f64::from))
    }

    fn decide(&self, action: &Action, facts: &Facts, usage: &Usage) -> bool {
        let Self { policy, tool, .. } = self;
        let case = PolicyInput { tool, action, facts, usage, tainted: &[], args_digest: None };
        decide(policy, &case).decision.verdict == Verdict::Allow
    }
}

fn spawn() -> Answer<f64> {
    let all = seconds(|| {
        for _ in 0..SPAWNS {
            // The standard library spawns by `posix_spawn` where nothing asks for more.
            Command::new("/bin/true").status().map_err(|error| error.to_string())?;
        }
        Ok(())
    })?;
    Ok(all / f64::from(SPAWNS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_lines_are_allowed() {
        let lines = Lines::new().unwrap();
        let (facts, usage) = (Facts::default(), Usage::default());
        let actions = lines.args.iter().filter_map(|args| describe("shell.run", args, 0).ok());
        let allowed = actions.filter(|action| lines.decide(action, &facts, &usage)).count();
        assert!(allowed * 2 > lines.args.len(), "{allowed} of {}", lines.args.len());
    }
}
