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

/// Programs, and the files that they look for by themselves and run: in the directory in which they are started, and in
/// those that they are given.
const FOUND_BY_START: [(&[&str], &[&str]); 2] = [
    (&["make", "gmake"], &["GNUmakefile", "Makefile", "makefile"]),
    (&["npm", "npx", "pnpm", "yarn", "bun"], &["package.json"]),
];

/// The files of a directory that a program runs when it is given the directory, and not when it is started in it.
const FOUND_BY_NAME: [&str; 3] = ["__main__.py", "index.js", "package.json"];

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
        let programs: Vec<&[String]> =
            parts.iter().filter_map(|part| code_words(part, &self.facts)).collect();
        if programs.is_empty() {
            return paths;
        }
        for PathFact { path, kind, .. } in &self.facts.paths {
            match kind {
                FileKind::Directory => {
                    let names = programs.iter().flat_map(|words| found_files(words, path));
                    let files = names.map(|name| path.join(name));
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

/// The words of a part of a command that is a program which does what files say.
fn code_words<'p>(part: &'p Action, facts: &Facts) -> Option<&'p [String]> {
    let Action::Run { argv, .. } = part else { return None };
    let name = argv.first().map(String::as_str).unwrap_or_default();
    let program = facts.program_named(name).or(facts.program.as_ref());
    let effects = CommandLine::parse(argv, program, false).effects();
    effects.intersects(Effects::BY_FILES).then_some(argv.as_slice())
}

/// The names of the files that a program may find by itself in a directory. It may stand behind one that starts it, such
/// as `env` or `timeout`.
fn found_files(words: &[String], directory: &WorkspacePath) -> Vec<&'static str> {
    let file_name = |word: &str| word.rsplit('/').next().map(str::to_owned).unwrap_or_default();
    let starts =
        |names: &&[&str]| words.iter().any(|word| names.contains(&file_name(word).as_str()));
    let by_start = FOUND_BY_START.iter().filter(|(names, _)| starts(names));
    let mut all: Vec<&str> = by_start.flat_map(|(_, files)| files.iter().copied()).collect();
    if words.iter().skip(1).any(|word| may_name(word, directory)) {
        all.extend(FOUND_BY_NAME);
    }
    all
}

/// Whether a word may name a directory: it ends as the path of that does, or leads to it by dots.
fn may_name(word: &str, directory: &WorkspacePath) -> bool {
    let word = word.trim_end_matches('/').trim_start_matches("./");
    let path = directory.as_str();
    matches!(word, "" | ".")
        || word.split('/').any(|part| part == "..")
        || path == word
        || path.ends_with(&format!("/{word}"))
        || word.ends_with(&format!("/{path}")) && !path.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str, directory: &str) -> Vec<&'static str> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        found_files(&words, &WorkspacePath::parse(directory).unwrap())
    }

    #[test]
    fn programs_find_their_own_files_alone() {
        let make = ["GNUmakefile", "Makefile", "makefile"];
        assert_eq!(found("make clean", "."), make);
        assert_eq!(found("/usr/bin/timeout 5 /usr/bin/make -C lib", "lib")[..3], make);
        assert_eq!(found("npm run build", "."), ["package.json"]);
        for line in
            ["git commit --amend --no-edit", "git pull", "pip install requests", "python3 -c 1"]
        {
            assert!(found(line, ".").is_empty(), "{line}");
        }
    }

    #[test]
    fn a_directory_is_run_where_it_is_named() {
        let named = ["__main__.py", "index.js", "package.json"];
        for (line, directory) in [
            ("python3 tool", "tool"),
            ("python3 ./tool/", "tool"),
            ("python3 tool", "src/tool"),
            ("node .", "."),
            ("python3 ../tool", "tool"),
            ("python3 /home/me/project/tool", "tool"),
        ] {
            assert_eq!(found(line, directory), named, "{line}");
        }
        assert!(found("python3 -m tool", "src").is_empty());
    }
}
