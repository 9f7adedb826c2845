//! Which paths a word of a command line names.
//!
//! A word may be a path, a revision, or a revision with a path in it. Where it is not known which,
//! every reading counts: one that is surely a path is judged as one, one that may be a path is
//! judged where something stands there or a rule closes the name.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::programs::{Word, embedded};

/// A path that a word names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathUse {
    /// The path.
    pub path: String,
    /// What would be done with it.
    pub usage: Use,
    /// Where it is seen from.
    pub start: Start,
    /// Whether it surely is a path. One that may be something else counts where it is there.
    pub sure: bool,
    /// Whether it is the value of an option.
    pub of_option: bool,
    /// Whether it is a folder that the command works in.
    pub is_folder: bool,
    /// Whether it is a name or a pattern for names, wherever they are.
    pub is_name: bool,
    /// Whether it only stands in a program text.
    pub guessed: bool,
}

/// What would be done with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It is read.
    Read,
    /// It is read, with all that is beneath it.
    ReadTree,
    /// It is written.
    Write,
    /// What is beneath it may be changed or removed.
    Change,
    /// It is removed, with all that is beneath it.
    Delete,
}

/// Where a path is seen from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The folder that the command runs in.
    Folder,
    /// That folder or any above it: the top of a repository, wherever that is.
    Above,
}

/// Where a word stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is the value of an option.
    Option,
    /// Among the operands, where it may be a revision.
    Before,
    /// Behind `--`, where it is a path.
    Behind,
}

impl Place {
    pub(super) const fn of(options_end: bool) -> Self {
        if options_end { Self::Behind } else { Self::Before }
    }
}

impl PathUse {
    pub(crate) fn read(path: &str) -> Self {
        Self {
            path: path.to_string(),
            usage: Use::Read,
            start: Start::Folder,
            sure: true,
            of_option: false,
            is_folder: false,
            is_name: false,
            guessed: false,
        }
    }

    /// A place that a command changes without naming it.
    pub(super) fn touched(place: &str) -> Self {
        Self { usage: Use::Write, start: Start::Above, ..Self::read(place) }
    }

    /// A word of which nothing is known, if it surely leads somewhere else than beneath this folder.
    pub(crate) fn stray(text: &str) -> Option<Self> {
        let away = text.starts_with(['/', '~']) || text.split('/').any(|part| part == "..");
        (away && text != "/dev/null" && !text.starts_with("//")).then(|| Self::read(text))
    }

    /// The same for a word that leads somewhere on the machine, where it may as well be an address of
    /// a program's own, such as `/api/users`.
    pub(super) fn of_machine(text: &str) -> Option<Self> {
        Self::stray(text).filter(|_| is_of_machine(text))
    }

    fn tree(path: &str, sure: bool) -> Self {
        Self { usage: Use::ReadTree, sure, ..Self::read(path) }
    }

    /// The same, seen from a folder that an option named.
    pub(super) fn within(self, folder: Option<&str>) -> Self {
        Self { path: joined(folder, &self.path), ..self }
    }
}

/// A path seen from a folder that an option named.
pub(super) fn joined(folder: Option<&str>, path: &str) -> String {
    match folder {
        Some(folder) if !path.starts_with(['/', '~', '$']) => format!("{folder}/{path}"),
        _ => path.to_string(),
    }
}

/// The paths that a word may name; none where that cannot be told.
pub(super) fn paths(place: Place, kind: Word, text: &str) -> Option<Vec<PathUse>> {
    let mut found = named_by(place, kind, text)?;
    for own in &mut found {
        own.of_option = place == Place::Option;
        own.is_folder = kind == Word::Folder;
        own.is_name = kind == Word::Name;
        own.guessed = kind == Word::Code;
    }
    Some(found)
}

fn named_by(place: Place, kind: Word, text: &str) -> Option<Vec<PathUse>> {
    // What is never a file of the workspace: nothing, and standard input or output.
    if matches!(text, "-" | "/dev/null") {
        return Some(Vec::new());
    }
    match (kind, place) {
        // SQLite and others take the address of a file for its name.
        (Word::Path | Word::Written, _) if file_of(text).is_some() => {
            let usage = if kind == Word::Written { Use::Write } else { Use::Read };
            let file = file_of(text).map(|own| own.split('?').next().unwrap_or_default());
            let used = |path| PathUse { usage, ..PathUse::read(path) };
            Some(file.into_iter().chain([text]).map(used).collect())
        }
        (Word::Written, _) => {
            Some(alloc::vec![PathUse { usage: Use::Write, ..PathUse::read(text) }])
        }
        (Word::Deleted, _) => {
            Some(alloc::vec![PathUse { usage: Use::Delete, ..PathUse::read(text) }])
        }
        (Word::Url, _) => Some(file_of(text).map(PathUse::read).into_iter().collect()),
        (Word::Setting, _) if !text.contains('=') => {
            Some(PathUse::stray(text).into_iter().collect())
        }
        (Word::Argument, _) => {
            let value = text.split_once('=').map(|(_, value)| value);
            Some(
                [Some(text), value].into_iter().flatten().filter_map(PathUse::of_machine).collect(),
            )
        }
        (Word::Code, _) => Some(embedded::code_paths(text)),
        (Word::Awk, _) => Some(embedded::awk_paths(text)),
        (Word::Sql, _) => Some(embedded::sql_paths(text)),
        (Word::Name, _) => Some(alloc::vec![PathUse { sure: false, ..PathUse::read(text) }]),
        (Word::Sed, _) => Some(embedded::sed_paths(text)),
        (Word::Range, _) => Some(range(text)),
        // An address of another computer is no path.
        (Word::MaybePath | Word::Script, _) if text.contains("://") => {
            Some(file_of(text).map(PathUse::read).into_iter().collect())
        }
        (Word::Path | Word::Folder | Word::Script, _) => Some(alloc::vec![PathUse::read(text)]),
        (Word::MaybePath, Place::Behind) => pathspec(text, true),
        (Word::MaybePath, Place::Option | Place::Before) => {
            let mut paths = alloc::vec![PathUse::tree(text, leads_away(text))];
            paths.extend(in_revision(text));
            paths.extend(pathspec(text, false)?);
            Some(paths)
        }
        _ => Some(Vec::new()),
    }
}

/// Whether a word can only mean a place of the machine. `/api` may be a route, `/static/` an address.
fn is_of_machine(text: &str) -> bool {
    const ROOTS: [&str; 20] = [
        "Users", "bin", "boot", "dev", "etc", "home", "lib", "lib64", "media", "mnt", "opt",
        "proc", "root", "run", "sbin", "srv", "sys", "tmp", "usr", "var",
    ];
    match text.strip_prefix('/') {
        Some(rest) => ROOTS.contains(&rest.split('/').next().unwrap_or_default()),
        None => true,
    }
}

/// The file that an address is about, if it is one of this machine.
fn file_of(address: &str) -> Option<&str> {
    let (scheme, rest) = address.split_once(':')?;
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    scheme.eq_ignore_ascii_case("file").then(|| rest.strip_prefix("localhost").unwrap_or(rest))
}

/// Whether a word can only be a path. A revision range such as `v1..v2` is none.
fn leads_away(text: &str) -> bool {
    text.starts_with(['/', '~', '.']) && !text.starts_with("..")
        || text.split('/').any(|component| component == "..")
}

/// The paths in `HEAD:docs/a.md`, in `:0:docs/a.md`, and in either end of a range of such.
fn in_revision(text: &str) -> Vec<PathUse> {
    let ends = text.contains("..").then(|| text.split(".."));
    let words = core::iter::once(text).chain(ends.into_iter().flatten());
    words.filter_map(in_object).collect()
}

/// The path in the name of an object. A colon in braces belongs to the revision; one that comes
/// first may also begin a search, `:/text`, or name a stage, `:0:`.
fn in_object(text: &str) -> Option<PathUse> {
    let mut depth = 0_usize;
    let colon = text.char_indices().find(|(_, letter)| {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        *letter == ':' && depth == 0
    });
    let (at, _) = colon?;
    let path = text.get(at + 1..)?;
    let staged = ["0:", "1:", "2:", "3:"].iter().find_map(|stage| path.strip_prefix(stage));
    match staged.filter(|_| at == 0) {
        Some(path) => in_tree(path, true),
        None => in_tree(path, at > 0),
    }
}

/// A path in a tree: from the top of the repository, or from here if it begins with a dot folder.
fn in_tree(path: &str, sure: bool) -> Option<PathUse> {
    if path.is_empty() {
        return None;
    }
    let here = path.starts_with("./") || path.starts_with("../");
    let start = if here { Start::Folder } else { Start::Above };
    Some(PathUse { start, ..PathUse::tree(path, sure) })
}

/// A path as git takes it: with a prefix that says how it is meant, and with wildcards. Such a
/// prefix that makes it match more than it spells cannot be judged; one that excludes opens nothing.
fn pathspec(text: &str, sure: bool) -> Option<Vec<PathUse>> {
    let Some(magic) = text.strip_prefix(':') else {
        return Some(named(text, Start::Folder, sure, true));
    };
    let (mut start, mut excludes, mut wild) = (Start::Folder, false, true);
    let path = if let Some(long) = magic.strip_prefix('(') {
        let Some((words, path)) = long.split_once(')') else {
            return if sure { None } else { Some(Vec::new()) };
        };
        for word in words.split(',') {
            match word {
                "top" => start = Start::Above,
                "exclude" => excludes = true,
                "literal" => wild = false,
                "glob" | "" => {}
                _ => return None,
            }
        }
        path
    } else {
        let signs = magic.find(|sign| !matches!(sign, '/' | '!' | '^')).unwrap_or(magic.len());
        let (signs, path) = magic.split_at_checked(signs)?;
        excludes = signs.contains(['!', '^']);
        if signs.contains('/') {
            start = Start::Above;
        }
        path.strip_prefix(':').unwrap_or(path)
    };
    Some(if excludes { Vec::new() } else { named(path, start, sure, wild) })
}

/// A path with wildcards names what is beneath the folder before the first of them.
fn named(path: &str, start: Start, sure: bool, wild: bool) -> Vec<PathUse> {
    let used = |path: &str, sure| PathUse { start, ..PathUse::tree(path, sure) };
    let path = if path.is_empty() { "." } else { path };
    let Some(at) = path.find(['*', '?', '[', '\\']).filter(|_| wild) else {
        return alloc::vec![used(path, sure)];
    };
    let before = path.get(..at).unwrap_or_default();
    let folder = match before.rsplit_once('/') {
        Some(("", _)) => "/",
        Some((folder, _)) => folder,
        None => ".",
    };
    // A file may also be called so.
    alloc::vec![used(path, false), used(folder, sure)]
}

/// The file behind a range of lines. The range may hold colons of its own, so every reading counts;
/// the last one is what most words mean.
fn range(text: &str) -> Vec<PathUse> {
    let last = text.rfind(':');
    text.match_indices(':')
        .filter_map(|(at, _)| Some((Some(at) == last, text.get(at + 1..)?)))
        .filter(|(_, path)| !path.is_empty())
        .map(|(sure, path)| PathUse { sure, ..PathUse::read(path) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(place: Place, text: &str, expected: &[(&str, bool, Start)]) {
        let found = paths(place, Word::MaybePath, text).unwrap();
        for (path, sure, start) in expected {
            assert!(
                found
                    .iter()
                    .any(|used| (used.path.as_str(), used.sure, used.start)
                        == (*path, *sure, *start)),
                "{text}: no {path} among {found:?}"
            );
        }
    }

    #[test]
    fn every_reading_of_a_word_counts() {
        use Start::{Above, Folder};
        for (text, expected) in [
            ("secret/key", &[("secret/key", false, Folder)][..]),
            ("./key", &[("./key", true, Folder)]),
            (".env", &[(".env", true, Folder)]),
            ("../key", &[("../key", true, Folder)]),
            ("/etc/passwd", &[("/etc/passwd", true, Folder)]),
            ("v1..v2", &[("v1..v2", false, Folder)]),
            ("..main", &[("..main", false, Folder)]),
            ("HEAD:secret/key", &[("secret/key", true, Above)]),
            ("HEAD:./key", &[("./key", true, Folder)]),
            (":secret/key", &[("secret/key", false, Above)]),
            (":0:secret/key", &[("secret/key", true, Above)]),
            ("HEAD@{2026-01-01 10:00}:key", &[("key", true, Above)]),
            ("HEAD^{/a:b}:key", &[("key", true, Above)]),
            ("a:x..b:y", &[("x", true, Above), ("y", true, Above)]),
            (":(top)secret/key", &[("secret/key", false, Above)]),
        ] {
            check(Place::Before, text, expected);
        }
        for (text, expected) in [
            (":(top)secret/key", &[("secret/key", true, Above)][..]),
            (":(top,literal)s*", &[("s*", true, Above)]),
            (":/secret/key", &[("secret/key", true, Above)]),
            ("secret/*", &[("secret", true, Folder), ("secret/*", false, Folder)]),
            ("*.rs", &[(".", true, Folder)]),
            ("/etc/*", &[("/etc", true, Folder)]),
        ] {
            check(Place::Behind, text, expected);
        }
    }

    #[test]
    fn what_excludes_names_nothing_and_what_is_not_clear_says_so() {
        for text in [":!secret", ":^secret", ":/!secret", ":(exclude)secret", ":(top,exclude)x"] {
            assert_eq!(paths(Place::Behind, Word::MaybePath, text), Some(Vec::new()), "{text}");
        }
        for text in [":(icase)SECRET", ":(attr:x)y", ":(top,icase)x", ":(top"] {
            assert_eq!(paths(Place::Behind, Word::MaybePath, text), None, "{text}");
        }
    }
}
