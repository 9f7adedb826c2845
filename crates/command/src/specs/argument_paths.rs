//! Which paths a word of a command line names.
//!
//! A word may be a path, a revision, or a revision with a path in it. Where it is not known which,
//! every reading counts: one that is surely a path is judged as one, one that may be a path is
//! judged where something stands there or a rule closes the name.

use alloc::vec::Vec;

use crate::specs::command_spec::ArgKind;
use crate::specs::embedded;
use crate::specs::path_use::{PathAccess, PathOrigin, PathUse};

/// Whether a path is that of a device which holds nothing of anyone, and whose text never ends.
#[must_use]
pub fn is_endless_device(path: &str) -> bool {
    matches!(path, "/dev/zero" | "/dev/urandom" | "/dev/random")
}

/// Whether a word is a device that everyone may use so: one to read from, or, as an operand, a stream of the program itself.
fn is_device(place: ArgPosition, kind: ArgKind, text: &str) -> bool {
    let is_stream = matches!(text, "/dev/stdin" | "/dev/stdout" | "/dev/stderr");
    match kind {
        ArgKind::Path if is_endless_device(text) => true,
        ArgKind::Path | ArgKind::WrittenPath => is_stream && place != ArgPosition::Option,
        _ => false,
    }
}

/// Where a word stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgPosition {
    /// It is the value of an option.
    Option,
    /// Among the operands, where it may be a revision.
    BeforeDashes,
    /// Behind `--`, where it is a path.
    AfterDashes,
}

impl ArgPosition {
    pub(super) const fn of(options_end: bool) -> Self {
        if options_end { Self::AfterDashes } else { Self::BeforeDashes }
    }
}

/// The paths that a word may name; none where that cannot be told.
pub(super) fn argument_paths(
    place: ArgPosition,
    kind: ArgKind,
    text: &str,
) -> Option<Vec<PathUse>> {
    let mut found = paths_by_kind(place, kind, text)?;
    for item in &mut found {
        item.is_option_value = place == ArgPosition::Option;
        item.is_work_directory = kind == ArgKind::Directory;
        item.is_name = kind == ArgKind::Name;
        item.guessed = kind == ArgKind::Code;
    }
    Some(found)
}

fn paths_by_kind(place: ArgPosition, kind: ArgKind, text: &str) -> Option<Vec<PathUse>> {
    // What is never a file of the workspace: nothing, and standard input or output.
    if matches!(text, "-" | "/dev/null") || is_device(place, kind, text) {
        return Some(Vec::new());
    }
    match (kind, place) {
        // SQLite and others take the address of a file for its name.
        (ArgKind::Path | ArgKind::WrittenPath, _) if file_url_path(text).is_some() => {
            let usage =
                if kind == ArgKind::WrittenPath { PathAccess::Write } else { PathAccess::Read };
            let file = file_url_path(text).map(|text| text.split('?').next().unwrap_or_default());
            let used = |path| PathUse { access: usage, ..PathUse::read(path) };
            Some(file.into_iter().chain([text]).map(used).collect())
        }
        (ArgKind::WrittenPath, _) => {
            Some(alloc::vec![PathUse { access: PathAccess::Write, ..PathUse::read(text) }])
        }
        (ArgKind::DeletedPath, _) => {
            Some(alloc::vec![PathUse { access: PathAccess::Delete, ..PathUse::read(text) }])
        }
        (ArgKind::Url, _) => Some(file_url_path(text).map(PathUse::read).into_iter().collect()),
        (ArgKind::Sent | ArgKind::SentNamed | ArgKind::SentForm | ArgKind::Upload, _) => {
            sent_files(kind, text)
        }
        (ArgKind::Setting, _) => {
            let target = (!text.contains('=')).then(|| PathUse::outside(text)).flatten();
            Some(target.into_iter().chain(embedded::setting_paths(text)).collect())
        }
        (ArgKind::Define, _) => Some(embedded::setting_paths(text)),
        (ArgKind::Argument, _) => {
            let value = text.split_once('=').map(|(_, value)| value);
            Some([Some(text), value].into_iter().flatten().filter_map(PathUse::absolute).collect())
        }
        (ArgKind::Code, _) => Some(embedded::code_paths(text)),
        (ArgKind::Awk, _) => Some(embedded::awk_paths(text)),
        (ArgKind::Sql, _) => Some(embedded::sql_paths(text)),
        (ArgKind::Name, _) => {
            Some(alloc::vec![PathUse { is_certain: false, ..PathUse::read(text) }])
        }
        (ArgKind::Sed, _) => Some(embedded::sed_paths(text)),
        (ArgKind::LineRange, _) => Some(line_range_paths(text)),
        // An address of another computer is no path.
        (ArgKind::MaybePath | ArgKind::Script, _) if text.contains("://") => {
            Some(file_url_path(text).map(PathUse::read).into_iter().collect())
        }
        (ArgKind::Path | ArgKind::Directory | ArgKind::Script, _) => {
            Some(alloc::vec![PathUse::read(text)])
        }
        (ArgKind::MaybePath, ArgPosition::AfterDashes) => pathspec(text, true),
        (ArgKind::MaybePath, ArgPosition::Option | ArgPosition::BeforeDashes) => {
            let mut paths = alloc::vec![PathUse::tree(text, is_outside_path(text))];
            paths.extend(in_revision(text));
            paths.extend(pathspec(text, false)?);
            Some(paths)
        }
        _ => Some(Vec::new()),
    }
}

/// The file that an address is about, if it is one of this machine.
fn file_url_path(address: &str) -> Option<&str> {
    let (scheme, rest) = address.split_once(':')?;
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    scheme.eq_ignore_ascii_case("file").then(|| rest.strip_prefix("localhost").unwrap_or(rest))
}

/// The files that a word of something to send names; none where they cannot be told.
fn sent_files(kind: ArgKind, text: &str) -> Option<Vec<PathUse>> {
    let named = || text.split_once('@').filter(|(name, _)| !name.contains('='));
    match kind {
        ArgKind::SentNamed => Some(read_all(named().map(|(_, file)| file))),
        ArgKind::SentForm => form_files(text).map(read_all),
        // Braces and brackets are ranges of names.
        ArgKind::Upload => (!text.contains(['{', '['])).then(|| read_all([text])),
        _ => Some(read_all(text.strip_prefix('@'))),
    }
}

/// Files that are read, but for standard input.
fn read_all<'t>(files: impl IntoIterator<Item = &'t str>) -> Vec<PathUse> {
    files.into_iter().filter(|file| !matches!(*file, "-" | "")).map(PathUse::read).collect()
}

/// The files that a field of a form names: `photo=@a.png,b.png;type=image/png;headers=@h`, or `text=<a`. None where
/// they cannot be told, because something is quoted.
fn form_files(text: &str) -> Option<Vec<&str>> {
    let (_, content) = text.split_once('=').unwrap_or(("", text));
    let names = content.strip_prefix(['@', '<']);
    let mut parts = content.split(';');
    let of_field = parts.next().and_then(|part| part.strip_prefix(['@', '<'])).unwrap_or("");
    let headers = parts.filter_map(|part| part.split_once("headers=")?.1.strip_prefix(['@', '<']));
    let files: Vec<_> = of_field.split(',').chain(headers).collect();
    let is_quoted = (names.is_some() || files.len() > 1) && content.contains(['"', '\\']);
    (!is_quoted).then_some(files)
}

/// Whether a word can only be a path. A revision range such as `v1..v2` is none.
fn is_outside_path(text: &str) -> bool {
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
    let start = if here { PathOrigin::WorkDirectory } else { PathOrigin::AnyAncestor };
    Some(PathUse { origin: start, ..PathUse::tree(path, sure) })
}

/// A path as git takes it: with a prefix that says how it is meant, and with wildcards. Such a
/// prefix that makes it match more than it spells cannot be judged; one that excludes opens nothing.
fn pathspec(text: &str, sure: bool) -> Option<Vec<PathUse>> {
    let Some(magic) = text.strip_prefix(':') else {
        return Some(pattern_paths(text, PathOrigin::WorkDirectory, sure, true));
    };
    let (mut start, mut excludes, mut wild) = (PathOrigin::WorkDirectory, false, true);
    let path = if let Some(long) = magic.strip_prefix('(') {
        let Some((words, path)) = long.split_once(')') else {
            return if sure { None } else { Some(Vec::new()) };
        };
        for word in words.split(',') {
            match word {
                "top" => start = PathOrigin::AnyAncestor,
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
            start = PathOrigin::AnyAncestor;
        }
        path.strip_prefix(':').unwrap_or(path)
    };
    Some(if excludes { Vec::new() } else { pattern_paths(path, start, sure, wild) })
}

/// A path with wildcards names what is beneath the folder before the first of them.
fn pattern_paths(path: &str, start: PathOrigin, sure: bool, wild: bool) -> Vec<PathUse> {
    let used = |path: &str, sure| PathUse { origin: start, ..PathUse::tree(path, sure) };
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
fn line_range_paths(text: &str) -> Vec<PathUse> {
    let last = text.rfind(':');
    text.match_indices(':')
        .filter_map(|(at, _)| Some((Some(at) == last, text.get(at + 1..)?)))
        .filter(|(_, path)| !path.is_empty())
        .map(|(sure, path)| PathUse { is_certain: sure, ..PathUse::read(path) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(place: ArgPosition, text: &str, expected: &[(&str, bool, PathOrigin)]) {
        let found = argument_paths(place, ArgKind::MaybePath, text).unwrap();
        for (path, sure, start) in expected {
            assert!(
                found.iter().any(|used| (used.path.as_str(), used.is_certain, used.origin)
                    == (*path, *sure, *start)),
                "{text}: no {path} among {found:?}"
            );
        }
    }

    #[test]
    fn every_reading_of_a_word_counts() {
        use PathOrigin::{AnyAncestor, WorkDirectory};
        for (text, expected) in [
            ("secret/key", &[("secret/key", false, WorkDirectory)][..]),
            ("./key", &[("./key", true, WorkDirectory)]),
            (".env", &[(".env", true, WorkDirectory)]),
            ("../key", &[("../key", true, WorkDirectory)]),
            ("/etc/passwd", &[("/etc/passwd", true, WorkDirectory)]),
            ("v1..v2", &[("v1..v2", false, WorkDirectory)]),
            ("..main", &[("..main", false, WorkDirectory)]),
            ("HEAD:secret/key", &[("secret/key", true, AnyAncestor)]),
            ("HEAD:./key", &[("./key", true, WorkDirectory)]),
            (":secret/key", &[("secret/key", false, AnyAncestor)]),
            (":0:secret/key", &[("secret/key", true, AnyAncestor)]),
            ("HEAD@{2026-01-01 10:00}:key", &[("key", true, AnyAncestor)]),
            ("HEAD^{/a:b}:key", &[("key", true, AnyAncestor)]),
            ("a:x..b:y", &[("x", true, AnyAncestor), ("y", true, AnyAncestor)]),
            (":(top)secret/key", &[("secret/key", false, AnyAncestor)]),
        ] {
            check(ArgPosition::BeforeDashes, text, expected);
        }
        for (text, expected) in [
            (":(top)secret/key", &[("secret/key", true, AnyAncestor)][..]),
            (":(top,literal)s*", &[("s*", true, AnyAncestor)]),
            (":/secret/key", &[("secret/key", true, AnyAncestor)]),
            ("secret/*", &[("secret", true, WorkDirectory), ("secret/*", false, WorkDirectory)]),
            ("*.rs", &[(".", true, WorkDirectory)]),
            ("/etc/*", &[("/etc", true, WorkDirectory)]),
        ] {
            check(ArgPosition::AfterDashes, text, expected);
        }
    }

    #[test]
    fn what_excludes_names_nothing_and_what_is_not_clear_says_so() {
        for text in [":!secret", ":^secret", ":/!secret", ":(exclude)secret", ":(top,exclude)x"] {
            assert_eq!(
                argument_paths(ArgPosition::AfterDashes, ArgKind::MaybePath, text),
                Some(Vec::new()),
                "{text}"
            );
        }
        for text in [":(icase)SECRET", ":(attr:x)y", ":(top,icase)x", ":(top"] {
            assert_eq!(
                argument_paths(ArgPosition::AfterDashes, ArgKind::MaybePath, text),
                None,
                "{text}"
            );
        }
    }

    /// Files are found as curl finds them, and what it takes for text is none.
    #[test]
    fn files_that_are_sent_are_found() {
        for (kind, text, expected) in [
            (ArgKind::Sent, "@x,y/../k", Some(&["x,y/../k"][..])),
            (ArgKind::Sent, "p=@~/x", Some(&[])),
            (ArgKind::Sent, "@-", Some(&[])),
            (ArgKind::SentNamed, "p@k", Some(&["k"])),
            (ArgKind::SentNamed, "p=@k", Some(&[])),
            (ArgKind::SentForm, "x=@a,k;type=text/plain", Some(&["a", "k"])),
            (ArgKind::SentForm, "x=text;headers=@k", Some(&["k"])),
            (ArgKind::SentForm, "x=<k", Some(&["k"])),
            (ArgKind::SentForm, "x={\"a\":\"b@c\"}", Some(&[])),
            (ArgKind::SentForm, "x=@\"k\"", None),
            (ArgKind::Upload, "{a,k}", None),
            (ArgKind::Upload, "k", Some(&["k"])),
        ] {
            let found = argument_paths(ArgPosition::Option, kind, text);
            let found: Option<Vec<_>> =
                found.map(|all| all.into_iter().map(|path| path.path).collect());
            let expected = expected.map(|all| all.iter().map(|path| (*path).into()).collect());
            assert_eq!(found, expected, "{text}");
        }
    }
}
