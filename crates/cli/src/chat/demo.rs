//! `capsule chat --demo`: a scripted model over a sample workspace. Policy, sandbox and record are the real ones.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use capsule_agent::{ModelAnswer, ModelCall, ScriptedModel};
use capsule_base::code::Code;
use capsule_core::outcome::CodedError;
use capsule_runtime::now_micros;
use serde_json::{Value, json};

use crate::failure::{Failure, usage_failure};
use crate::screen::{HINT, Screen};

/// The model's name.
const MODEL: &str = "script";
/// How long a word of its answers takes.
const PACE: Duration = Duration::from_millis(15);
/// A day.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The files of the sample workspace, and how many days ago they were changed.
const FILES: &[(&str, u32, &str)] = &[
    (
        "notes/meeting-monday.md",
        2,
        "# Meeting, Monday\n\n- Ask Ines for the room.\n- Send the budget by Friday.\n",
    ),
    (
        "notes/meeting-kickoff.md",
        19,
        "# Meeting, kick-off\n\n- Order the banners.\n- Find a date for the tour.\n",
    ),
    ("notes/recipes.md", 80, "# Recipes\n\nLentils, lemon, cumin.\n"),
    ("budget.csv", 5, "item,amount\nroom,80.00\nbanners,35.50\ncoffee,13.00\n"),
    ("summary.md", 5, "# Summary\n\nTotal: to be done\n"),
    ("mail.example.ini", 40, "server = mail.example.org\npassword = (ask the office)\n"),
    (".env", 40, "MAIL_PASSWORD=sample-password-of-a-demo\n"),
];

/// A line that is suggested, and what the model answers to it; no answers where it is a command of the chat.
struct DemoLine {
    text: &'static str,
    answers: Vec<ModelAnswer>,
}

/// How far a demo came.
pub(crate) struct Demo {
    lines: Vec<DemoLine>,
    at: usize,
    workspace: PathBuf,
}

impl Demo {
    /// A demo that begins, in its workspace.
    pub(crate) fn new(workspace: PathBuf) -> Self {
        Self { lines: script(), at: 0, workspace }
    }

    /// A model before the first message.
    pub(crate) fn silent_model() -> ScriptedModel {
        ScriptedModel::new(MODEL, [], PACE)
    }

    /// The line that the person might type next.
    pub(crate) fn suggestion(&self) -> Option<&'static str> {
        self.lines.get(self.at).map(|line| line.text)
    }

    /// Takes note of a line: a command that was suggested is done.
    pub(crate) fn note_line(&mut self, text: &str) {
        let is_suggested = |line: &DemoLine| line.answers.is_empty() && line.text == text.trim();
        self.at += usize::from(self.lines.get(self.at).is_some_and(is_suggested));
    }

    /// The model that answers the next message.
    pub(crate) fn next_model(&mut self) -> ScriptedModel {
        let line = self.lines.get_mut(self.at).filter(|line| !line.answers.is_empty());
        let answers = match line {
            Some(line) => {
                self.at += 1;
                std::mem::take(&mut line.answers)
            }
            None => {
                vec![says("This is not in my script. Type what the prompt suggests, or /quit.")]
            }
        };
        ScriptedModel::new(MODEL, answers, PACE)
    }

    /// The messages of the script, for a demo that has no prompt.
    pub(crate) fn messages(&self) -> Vec<&'static str> {
        self.lines.iter().filter(|line| !line.answers.is_empty()).map(|line| line.text).collect()
    }

    /// Says what stays of the demo.
    pub(crate) fn show_end(&self, screen: &Screen) {
        let place = self.workspace.display().to_string();
        let place = capsule_base::escape::line(&place);
        screen
            .eprint(&format!("{HINT}sample workspace{HINT:#}: {place} stays until you remove it"));
    }
}

fn says(text: &str) -> ModelAnswer {
    ModelAnswer { text: text.to_owned(), calls: Vec::new() }
}

fn calls(text: &str, calls: &[(&str, Value)]) -> ModelAnswer {
    let calls = calls.iter().map(|(tool, args)| ModelCall {
        id: String::new(),
        tool: (*tool).to_owned(),
        args: args.to_string(),
    });
    ModelAnswer { text: text.to_owned(), calls: calls.collect() }
}

fn script() -> Vec<DemoLine> {
    let command = |text| DemoLine { text, answers: Vec::new() };
    let read = |path: &str| ("fs_read", json!({ "path": path }));
    let which = json!({
        "question": "Do you mean the meeting of this week, or all meetings of this month?",
        "choices": ["this week", "this month"],
    });
    let edit = json!({
        "path": "summary.md", "search": "Total: to be done", "replace": "Total: 128.50",
    });
    vec![
        DemoLine {
            text: "What do I have to do after the last meeting?",
            answers: vec![
                calls("There may be notes of several meetings. ", &[("user_ask", which)]),
                calls("", &[("fs_search", json!({ "path": "notes", "name": "meeting*" }))]),
                calls("", &[read("notes/meeting-monday.md"), read("notes/meeting-kickoff.md")]),
                says(
                    "This week: ask Ines for the room, and send the budget by Friday.\n\
                     Earlier this month: order the banners, and find a date for the tour.",
                ),
            ],
        },
        DemoLine {
            text: "Put the total of budget.csv into summary.md.",
            answers: vec![
                calls("", &[read("budget.csv"), read("summary.md")]),
                calls("80.00 + 35.50 + 13.00 is 128.50. ", &[("fs_edit", edit)]),
                says(
                    "The total is 128.50. If you allowed the edit, it is staged: the file itself \
                     changes with /apply.",
                ),
            ],
        },
        DemoLine {
            text: "Which mail server is in .env?",
            answers: vec![
                calls("", &[read(".env")]),
                calls(
                    "That file holds credentials, which I may never read. The example may do. ",
                    &[read("mail.example.ini")],
                ),
                says(
                    "The example names mail.example.org. I cannot compare it with .env; a look \
                     into that file is yours.",
                ),
            ],
        },
        command("/apply"),
        command("/undo"),
        command("/report"),
        command("/quit"),
    ]
}

/// Makes the sample workspace: in the directory that was named, which has to be empty, else in a new one for
/// temporary files.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn make_workspace(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let place = match named {
        Some(named) => named.to_owned(),
        None => std::env::temp_dir().join(format!("capsule-demo-{}", now_micros())),
    };
    let problem = |error: std::io::Error| {
        let message = format!("the sample workspace `{}` cannot be made: {error}", place.display());
        Failure::from(CodedError::new(Code::Usage, message))
    };
    if named.is_some() && place.exists() {
        if fs::read_dir(&place).map_err(problem)?.next().is_some() {
            let message = format!("`{}` is not empty", place.display());
            return Err(usage_failure(format!("{message}; a demo makes its own files there")));
        }
    } else {
        DirBuilder::new().mode(0o700).create(&place).map_err(problem)?;
    }
    let place = place.canonicalize().map_err(problem)?;
    let now = SystemTime::now();
    DirBuilder::new().create(place.join("notes")).map_err(problem)?;
    for (name, days, text) in FILES {
        let path = place.join(name);
        fs::write(&path, text).map_err(problem)?;
        let changed = now.checked_sub(DAY * *days).unwrap_or(now);
        File::options()
            .write(true)
            .open(&path)
            .and_then(|file| file.set_modified(changed))
            .map_err(problem)?;
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demo_goes_on_with_what_was_suggested() {
        let mut demo = Demo::new(PathBuf::new());
        let first = demo.suggestion();
        demo.note_line("/help");
        assert_eq!(demo.suggestion(), first);
        for _ in demo.messages() {
            assert!(demo.next_model().remaining() > 2);
        }
        assert_eq!(demo.suggestion(), Some("/apply"));
        assert_eq!(demo.next_model().remaining(), 1);
        demo.note_line("/report");
        assert_eq!(demo.suggestion(), Some("/apply"));
        demo.note_line("/apply ");
        assert_eq!(demo.suggestion(), Some("/undo"));
    }
}
