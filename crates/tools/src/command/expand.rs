//! Patterns among the words of a command, against what is in the workspace.

use std::ffi::OsStr;
use std::mem::MaybeUninit;

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_command::shell_syntax::WordPiece;
use capsule_core::action::{CommandStep, Expansion, PathTarget, glob_arguments};
use capsule_core::outcome::CodedError;
use capsule_workspace::{Workspace, new_buffer, open_directory, read_entries};
use rustix::fs::FileType;

/// Expands every pattern of some steps, each once for each folder that it is seen from.
///
/// # Errors
/// One stands for more names than a command line may have words.
pub(crate) fn expand(
    steps: &[CommandStep],
    workspace: &Workspace,
) -> Result<Vec<Expansion>, CodedError> {
    let mut found: Vec<Expansion> = Vec::new();
    let mut folders = DirectoryReader::new(workspace, limits::PATTERN_DIRECTORIES);
    for step in steps {
        let cwd = step.cwd.inside().map_or("", WorkspacePath::as_str);
        for (pieces, pattern) in step.stages.iter().flat_map(glob_arguments) {
            if found.iter().any(|expansion| expansion.pattern == pattern && expansion.cwd == cwd) {
                continue;
            }
            let names = folders.matching_names(pieces, &step.cwd);
            if folders.remaining == 0 {
                let most = limits::PATTERN_DIRECTORIES;
                let message = format!("with `{pattern}`, more than {most} folders are looked into");
                let problem = CodedError::new(Code::ExecArgv, message);
                return Err(
                    problem.with_suggestion("begin the pattern with the folder that is meant")
                );
            }
            if names.len() > limits::ARGV_WORDS {
                let message =
                    format!("`{pattern}` stands for more than {} names", limits::ARGV_WORDS);
                let problem = CodedError::new(Code::ExecArgv, message);
                return Err(
                    problem.with_suggestion("name the folder, or use a pattern that means less")
                );
            }
            found.push(Expansion { cwd: cwd.into(), pattern, names });
        }
    }
    Ok(found)
}

/// The folders of a workspace that patterns look into.
struct DirectoryReader<'w> {
    workspace: &'w Workspace,
    /// How many more it may be.
    remaining: usize,
    /// What they are read into, once there is one to read.
    buffer: Vec<MaybeUninit<u8>>,
}

impl<'w> DirectoryReader<'w> {
    fn new(workspace: &'w Workspace, left: usize) -> Self {
        Self { workspace, remaining: left, buffer: Vec::new() }
    }

    /// The names that match, in the order of their bytes; none where the pattern leads outside.
    fn matching_names(&mut self, pieces: &[WordPiece], cwd: &PathTarget) -> Vec<String> {
        let Some(base) = cwd.inside() else { return Vec::new() };
        let components = split_components(pieces);
        let mut reached = vec![String::new()];
        for (index, component) in components.iter().enumerate() {
            let last = index + 1 == components.len();
            let mut next = Vec::new();
            for before in &reached {
                match component.as_slice() {
                    [] => next.push(format!("{before}/")),
                    [WordPiece::Text(name)] => next.push(join_path(before, name)),
                    [WordPiece::Directories] => self.add_subdirectories(before, base, &mut next),
                    pieces => {
                        let leads_on =
                            |kind| matches!(kind, FileType::Directory | FileType::Symlink);
                        let all = self.list_names(before, base, |kind| last || leads_on(kind));
                        let matching = all.into_iter().filter(|name| matches(pieces, name));
                        next.extend(matching.map(|name| join_path(before, &name)));
                    }
                }
                if next.len() > limits::ARGV_WORDS {
                    return next;
                }
            }
            // Two `**/` find the same folders in more than one way.
            next.sort_unstable();
            next.dedup();
            reached = next;
        }
        let is_there = |name: &String| {
            base.resolve_named(name, self.workspace.root_names())
                .is_ok_and(|path| self.workspace.resolve(&path).is_ok())
        };
        // What follows the last wildcard may not be there.
        if components
            .last()
            .is_some_and(|component| matches!(component.as_slice(), [] | [WordPiece::Text(_)]))
        {
            reached.retain(is_there);
        }
        reached
    }

    /// A folder and all below it, none of them hidden or a link; not many more than there may be
    /// names.
    fn add_subdirectories(
        &mut self,
        before: &str,
        base: &WorkspacePath,
        reached: &mut Vec<String>,
    ) {
        let mut at = reached.len();
        reached.push(before.to_owned());
        while let Some(folder) = reached.get(at).cloned() {
            at += 1;
            let below = self.list_names(&folder, base, |kind| kind == FileType::Directory);
            let seen = below.iter().filter(|name| !name.starts_with('.'));
            reached.extend(seen.map(|name| join_path(&folder, name)));
            if reached.len() > limits::ARGV_WORDS {
                return;
            }
        }
    }

    /// The names in a folder, of those kinds that are wanted.
    fn list_names(
        &mut self,
        before: &str,
        base: &WorkspacePath,
        wanted: impl Fn(FileType) -> bool,
    ) -> Vec<String> {
        self.remaining = self.remaining.saturating_sub(1);
        if self.remaining == 0 {
            return Vec::new();
        }
        let path = match before {
            "" => Ok(base.clone()),
            before => base.resolve_named(before, self.workspace.root_names()),
        };
        let Ok(path) = path else { return Vec::new() };
        // By its real name: a pattern goes through links as a program would.
        let Ok(real) = self.workspace.resolve(&path).map(|found| found.real_path) else {
            return Vec::new();
        };
        let opened = open_directory(self.workspace, OsStr::new(real.as_str()));
        let Ok(handle) = opened else { return Vec::new() };
        if self.buffer.is_empty() {
            self.buffer = new_buffer();
        }
        let mut names = Vec::new();
        let mut see = |name: &[u8], kind: FileType, _: u64| {
            if let Ok(name) = core::str::from_utf8(name)
                && wanted(kind)
            {
                names.push(name.to_owned());
            }
            names.len() <= limits::PATTERN_ENTRIES
        };
        // A folder that cannot be read has no names that match.
        let _ = read_entries(&handle, &mut self.buffer, &mut see);
        names
    }
}

fn join_path(before: &str, name: &str) -> String {
    match before {
        "" => name.to_owned(),
        _ if before.ends_with('/') => format!("{before}{name}"),
        _ => format!("{before}/{name}"),
    }
}

/// The pieces of a pattern, component by component; one at the end is empty behind a last slash.
fn split_components(pieces: &[WordPiece]) -> Vec<Vec<WordPiece>> {
    let mut components = vec![Vec::new()];
    let put = |components: &mut Vec<Vec<WordPiece>>, piece: WordPiece| {
        if let Some(last) = components.last_mut() {
            last.push(piece);
        }
    };
    for piece in pieces {
        let WordPiece::Text(text) = piece else {
            put(&mut components, piece.clone());
            if *piece == WordPiece::Directories {
                components.push(Vec::new());
            }
            continue;
        };
        for (index, part) in text.split('/').enumerate() {
            if index > 0 {
                components.push(Vec::new());
            }
            if !part.is_empty() {
                put(&mut components, WordPiece::Text(part.to_owned()));
            }
        }
    }
    components
}

/// Whether a name is one of those that a component stands for.
fn matches(pieces: &[WordPiece], name: &str) -> bool {
    let begins_with_dot =
        matches!(pieces.first(), Some(WordPiece::Text(text)) if text.starts_with('.'));
    (begins_with_dot || !name.starts_with('.')) && matches_greedily(pieces, name)
}

/// Without going back further than the last `*`: what matched before it stays matched.
fn matches_greedily(pieces: &[WordPiece], name: &str) -> bool {
    let (mut at, mut rest) = (0, name);
    let mut star: Option<(usize, &str)> = None;
    loop {
        match pieces.get(at) {
            None if rest.is_empty() => return true,
            Some(WordPiece::Any) => {
                at += 1;
                star = Some((at, rest));
                continue;
            }
            Some(piece) => {
                if let Some(behind) = strip_piece(piece, rest) {
                    (at, rest) = (at + 1, behind);
                    continue;
                }
            }
            None => {}
        }
        let Some((again, from)) = star else { return false };
        let mut letters = from.chars();
        if letters.next().is_none() {
            return false;
        }
        (at, rest) = (again, letters.as_str());
        star = Some((again, rest));
    }
}

/// What is left of a name behind a piece that it begins with.
fn strip_piece<'n>(piece: &WordPiece, name: &'n str) -> Option<&'n str> {
    let mut letters = name.chars();
    match piece {
        WordPiece::Text(text) => name.strip_prefix(text.as_str()),
        WordPiece::One => letters.next().map(|_| letters.as_str()),
        WordPiece::Class { negated, ranges } => {
            let letter = letters.next()?;
            let named = ranges.iter().any(|(low, high)| (*low..=*high).contains(&letter));
            (named != *negated).then_some(letters.as_str())
        }
        WordPiece::Any | WordPiece::Directories | WordPiece::Variable { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use capsule_command::shell_syntax::parse;

    fn pieces(word: &str) -> Vec<WordPiece> {
        let script = parse(&format!("x {word}")).unwrap();
        let words = &script.elements[0].pipeline.stages[0].words;
        words[1].as_glob().unwrap().to_vec()
    }

    #[test]
    fn names_match_as_in_a_shell() {
        for (word, name, expected) in [
            ("*.rs", "main.rs", true),
            ("*.rs", ".rs", false),
            (".[!.]*", ".env", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("?", "é", true),
            ("[a-c]*", "bee", true),
            ("[!a-c]*", "bee", false),
            ("*", "x", true),
            ("*x*", "ax", true),
        ] {
            assert_eq!(matches(&pieces(word), name), expected, "{word} {name}");
        }
    }

    #[test]
    fn patterns_stand_for_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for file in ["src/a.rs", "src/b.rs", "src/.c.rs", "docs/x/a.md", "docs/y/b.md", "-rf"] {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), "").unwrap();
        }
        let workspace = Workspace::open(&root).unwrap();
        for (cwd, word, expected) in [
            (".", "src/*.rs", &["src/a.rs", "src/b.rs"][..]),
            ("src", "*", &["a.rs", "b.rs"]),
            ("src", "../docs/*/a.md", &["../docs/x/a.md"]),
            (".", "docs/*/", &["docs/x/", "docs/y/"]),
            (".", "*/*.md", &[]),
            (".", "s*/a.rs", &["src/a.rs"]),
            (".", "*/nothing", &[]),
            (".", "../*", &[]),
            (".", "*", &["-rf", "docs", "src"]),
            (".", "**/*.md", &["docs/x/a.md", "docs/y/b.md"]),
            (".", "docs/**/a.md", &["docs/x/a.md"]),
            (".", "**/x/*", &["docs/x/a.md"]),
            ("docs", "**/*", &["x", "x/a.md", "y", "y/b.md"]),
            (".", "**/src/**/*.rs", &["src/a.rs", "src/b.rs"]),
            (".", "**/.c.rs", &["src/.c.rs"]),
            (".", "**/nothing", &[]),
            (".", "**/docs/**/*.md", &["docs/x/a.md", "docs/y/b.md"]),
            (".", "**/x/**/a.md", &["docs/x/a.md"]),
            (".", "../**/*", &[]),
        ] {
            let mut folders = DirectoryReader::new(&workspace, 100);
            let names = folders.matching_names(&pieces(word), &PathTarget::parse(cwd));
            assert_eq!(names, expected, "{word} in {cwd}");
        }
    }
    #[test]
    fn patterns_look_into_so_many_folders() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["a/b/c", "d/e/f"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        let workspace = Workspace::open(&root).unwrap();
        let mut folders = DirectoryReader::new(&workspace, 20);
        // Seven folders are looked into for their folders, and again for what matches.
        assert_eq!(folders.matching_names(&pieces("**/c"), &PathTarget::parse(".")), ["a/b/c"]);
        assert_eq!(folders.remaining, 13);
        folders.matching_names(&pieces("**/*"), &PathTarget::parse("."));
        assert_eq!(folders.remaining, 0);
    }
}
