//! The files of the workspace whose text a command runs, for the person who is asked about it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::rc::Rc;

use capsule_base::digest::Digest;
use capsule_base::escape;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_command::specs::{CommandLine, Effects};
use capsule_core::action::{Action, Facts, FileKind, PathFact, sub_actions};
use capsule_core::lifecycle::Preview;
use capsule_workspace::{HiddenPaths, Workspace};
use rustix::fs::OFlags;

use crate::tool::ToolContext;

/// Files of a directory that programs run when they are given the directory, or are started in it.
const RUN_BY_DIRECTORY: [&str; 6] =
    ["GNUmakefile", "Makefile", "__main__.py", "index.js", "makefile", "package.json"];

/// The files that the words of a command name, and that programs find by themselves in the directories of it, where it may
/// run what they say. A yes is given to their text: an answer that comes after one of them was changed is no answer to
/// what would run now.
///
/// They are looked for when a person is asked: most commands ask for nothing.
pub(crate) struct CodeFiles {
    workspace: Rc<Workspace>,
    hidden_paths: Rc<RefCell<HiddenPaths>>,
    action: Action,
    facts: Facts,
    /// Whether the command is a list, of which a part may write what a later one runs.
    is_list: bool,
}

impl CodeFiles {
    /// Those of a command of which this was found.
    pub(crate) fn of(
        action: &Action,
        (facts, is_list): (&Facts, bool),
        context: &ToolContext<'_>,
    ) -> Self {
        Self {
            workspace: Rc::clone(context.workspace),
            hidden_paths: Rc::clone(context.hidden_paths),
            action: action.clone(),
            facts: facts.clone(),
            is_list,
        }
    }

    /// The files, each with whether the command itself writes it before; none where no program of the command runs code.
    fn find(&self) -> BTreeMap<WorkspacePath, bool> {
        let parts: Vec<Action> = match &self.action {
            Action::Command { steps, .. } => {
                let parts = steps.iter().flat_map(|step| sub_actions(step, None, &self.facts));
                parts.map(|part| part.action).collect()
            }
            action => vec![action.clone()],
        };
        let mut paths = BTreeMap::new();
        if !parts.iter().any(|part| runs_code(part, &self.facts)) {
            return paths;
        }
        for PathFact { path, kind, .. } in &self.facts.paths {
            match kind {
                FileKind::Directory => {
                    let files = RUN_BY_DIRECTORY.iter().map(|name| path.join(name));
                    let files = files.filter(|path| is_file(&self.workspace, path));
                    paths.extend(files.map(|path| (path, false)));
                }
                FileKind::File => drop(paths.insert(path.clone(), false)),
                _ => {}
            }
        }
        let hidden_paths = self.hidden_paths.borrow();
        paths.retain(|path, _| !hidden_paths.is_hidden(path, false));
        for part in parts.iter().filter(|_| self.is_list) {
            if let Action::Write { path, .. } = part
                && let Some(is_written) = path.inside().and_then(|path| paths.get_mut(path))
            {
                *is_written = true;
            }
        }
        paths
    }

    /// Each file with its size and digest, and with its lines where all of them fit on a card.
    pub(crate) fn preview(&self) -> Preview {
        let paths = self.find();
        if paths.is_empty() {
            return Preview::Unavailable;
        }
        let mut lines = String::new();
        for (path, is_written) in &paths {
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

/// Whether a part of a command is a program that does what files say.
fn runs_code(part: &Action, facts: &Facts) -> bool {
    let Action::Run { argv, .. } = part else { return false };
    let name = argv.first().map(String::as_str).unwrap_or_default();
    let program = facts.program_named(name).or(facts.program.as_ref());
    CommandLine::parse(argv, program, false).effects().intersects(Effects::BY_FILES)
}
