//! The files of the workspace whose text a command runs, for the person who is asked about it.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::rc::Rc;

use capsule_base::digest::Digest;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_command::specs::{CommandLine, Effect};
use capsule_core::action::{Facts, FileKind, PathFact};
use capsule_core::lifecycle::Preview;
use capsule_workspace::Workspace;
use rustix::fs::OFlags;

use crate::tool::ToolContext;

/// What tells that a program does what a file says.
const BY_FILES: [Effect; 4] = [Effect::Runs, Effect::Starts, Effect::Code, Effect::Unknown];

/// The files that the words of a command name, where it may run what they say. A yes is given to their text:
/// an answer that comes after one of them was changed is no answer to what would run now.
pub(crate) struct CodeFiles {
    workspace: Rc<Workspace>,
    paths: Vec<WorkspacePath>,
}

impl CodeFiles {
    /// The files of a command that runs these programs; none where none of them runs code.
    pub(crate) fn of(
        mut programs: impl Iterator<Item = Vec<String>>,
        facts: &Facts,
        context: &ToolContext<'_>,
    ) -> Self {
        let hidden_paths = context.hidden_paths.borrow();
        let is_shown = |fact: &&PathFact| {
            fact.kind == FileKind::File && !hidden_paths.is_hidden(&fact.path, false)
        };
        let paths = facts.paths.iter().filter(is_shown).take(limits::CARD_CODE_FILES);
        let mut paths: Vec<WorkspacePath> = paths.map(|fact| fact.path.clone()).collect();
        if !paths.is_empty() && !programs.any(|argv| runs_code(&argv, facts)) {
            paths.clear();
        }
        Self { workspace: Rc::clone(context.workspace), paths }
    }

    /// Each file with its size and digest, and with its lines where all of them fit on a card.
    pub(crate) fn preview(&self) -> Preview {
        if self.paths.is_empty() {
            return Preview::Unavailable;
        }
        let mut lines = String::new();
        for path in &self.paths {
            let Some((size, content)) = self.read(path) else {
                let _ = writeln!(lines, "@@ {path} cannot be read @@");
                continue;
            };
            let Some(content) = content else {
                let _ = writeln!(lines, "@@ {path}, {size} bytes, is too large to be looked at @@");
                continue;
            };
            let _ = writeln!(lines, "@@ {path}, {size} bytes, sha256 {} @@", Digest::of(&content));
            let text = str::from_utf8(&content).ok();
            let text = text.filter(|text| lines.len() + text.len() <= limits::CARD_CODE_TEXT_BYTES);
            text.unwrap_or_default().lines().for_each(|line| {
                let _ = writeln!(lines, " {line}");
            });
        }
        Preview::Lines(lines)
    }

    /// The size of a file, and what it holds.
    fn read(&self, path: &WorkspacePath) -> Option<(u64, Option<Vec<u8>>)> {
        let found = self.workspace.resolve(path).ok()?;
        let mut opened = File::from(found.open(&self.workspace, OFlags::RDONLY).ok()?);
        let size = opened.metadata().ok()?.len();
        if size > limits::CARD_CODE_BYTES {
            return Some((size, None));
        }
        let mut content = Vec::new();
        opened.by_ref().take(limits::CARD_CODE_BYTES).read_to_end(&mut content).ok()?;
        Some((size, Some(content)))
    }
}

/// Whether a program does what files say.
fn runs_code(argv: &[String], facts: &Facts) -> bool {
    let name = argv.first().map(String::as_str).unwrap_or_default();
    let program = facts.program_named(name).or(facts.program.as_ref());
    let effects = CommandLine::parse(argv, program, false).effects();
    BY_FILES.iter().any(|effect| effects.contains(*effect))
}
