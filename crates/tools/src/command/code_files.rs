//! The files of the workspace whose text a command runs, for the person who is asked about it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::rc::Rc;

use capsule_base::digest::Digest;
use capsule_base::escape;
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

/// Files of a directory that programs run when they are given the directory, or are started in it.
const RUN_BY_DIRECTORY: [&str; 6] =
    ["GNUmakefile", "Makefile", "__main__.py", "index.js", "makefile", "package.json"];

/// The files that the words of a command name, and that programs find by themselves in the directories of it, where it may
/// run what they say. A yes is given to their text: an answer that comes after one of them was changed is no answer to
/// what would run now.
pub(crate) struct CodeFiles {
    workspace: Rc<Workspace>,
    /// Each with whether the command itself writes it before.
    paths: BTreeMap<WorkspacePath, bool>,
}

impl CodeFiles {
    /// The files of a command that runs these programs, and writes to `written` before it may run them; none where no
    /// program of it runs code.
    pub(crate) fn of(
        mut programs: impl Iterator<Item = Vec<String>>,
        written: &[WorkspacePath],
        facts: &Facts,
        context: &ToolContext<'_>,
    ) -> Self {
        let workspace = Rc::clone(context.workspace);
        if !programs.any(|argv| runs_code(&argv, facts)) {
            return Self { workspace, paths: BTreeMap::new() };
        }
        let hidden_paths = context.hidden_paths.borrow();
        let mut paths = BTreeMap::new();
        for PathFact { path, kind, .. } in &facts.paths {
            match kind {
                FileKind::Directory => {
                    let files = RUN_BY_DIRECTORY.iter().map(|name| path.join(name));
                    paths.extend(
                        files.filter(|path| is_file(&workspace, path)).map(|path| (path, false)),
                    );
                }
                FileKind::File => drop(paths.insert(path.clone(), false)),
                _ => {}
            }
        }
        paths.retain(|path, _| !hidden_paths.is_hidden(path, false));
        for path in written {
            paths.entry(path.clone()).and_modify(|is_written| *is_written = true);
        }
        Self { workspace, paths }
    }

    /// Each file with its size and digest, and with its lines where all of them fit on a card.
    pub(crate) fn preview(&self) -> Preview {
        if self.paths.is_empty() {
            return Preview::Unavailable;
        }
        let mut lines = String::new();
        for (path, is_written) in &self.paths {
            let shown = escape::line(path.as_str());
            let found = if *is_written { None } else { self.read(path) };
            let _ = match found {
                None if *is_written => writeln!(lines, "@@ {shown}, written by this command @@"),
                None => writeln!(lines, "@@ {shown}, cannot be read @@"),
                Some((size, digest, _)) => {
                    writeln!(lines, "@@ {shown}, {size} bytes, sha256 {digest} @@")
                }
            };
            let text = found.and_then(|(_, _, text)| text);
            let text = text.filter(|text| lines.len() + text.len() <= limits::CARD_CODE_TEXT_BYTES);
            text.unwrap_or_default().lines().for_each(|line| {
                let _ = writeln!(lines, " {line}");
            });
        }
        Preview::Lines(lines)
    }

    /// The size of a file, its digest, and its text where that is short.
    fn read(&self, path: &WorkspacePath) -> Option<(u64, Digest, Option<String>)> {
        let found = self.workspace.resolve(path).ok()?;
        let mut opened = File::from(found.open(&self.workspace, OFlags::RDONLY).ok()?);
        let (mut size, mut start) = (0, Vec::new());
        let digest = Digest::of_reader(|buffer| {
            let read = opened.read(buffer)?;
            size += u64::try_from(read).unwrap_or(u64::MAX);
            if start.len() <= limits::CARD_CODE_TEXT_BYTES {
                start.extend(buffer.iter().take(read));
            }
            Ok::<_, std::io::Error>(read)
        });
        let is_whole = u64::try_from(start.len()).is_ok_and(|length| length == size);
        Some((size, digest.ok()?, String::from_utf8(start).ok().filter(|_| is_whole)))
    }
}

fn is_file(workspace: &Workspace, path: &WorkspacePath) -> bool {
    workspace.resolve(path).is_ok_and(|found| found.kind() == FileKind::File)
}

/// Whether a program does what files say.
fn runs_code(argv: &[String], facts: &Facts) -> bool {
    let name = argv.first().map(String::as_str).unwrap_or_default();
    let program = facts.program_named(name).or(facts.program.as_ref());
    let effects = CommandLine::parse(argv, program, false).effects();
    BY_FILES.iter().any(|effect| effects.contains(*effect))
}
