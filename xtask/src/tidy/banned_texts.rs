//! Texts that must not be in the repository: unfinished work, hosts of registries, paths of one
//! machine, and tests that pass without having tested (house rule 21).

use crate::repository::Repository;
use crate::rust::{Source, Token};
use crate::tidy::TidyFinding;
use crate::tree::TreeFile;

/// How a text is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MatchKind {
    /// As a word of its own, in these letters.
    Word,
    /// As words of their own, in small or capital letters.
    Phrase,
    /// As it stands, wherever a path could begin.
    PathStart,
}

/// The texts, each with why. They are put together here so that this file does not hold them.
const BANNED: &[(&str, MatchKind, &str)] = &[
    (concat!("TO", "DO"), MatchKind::Word, "unfinished work belongs into an issue"),
    (concat!("FIX", "ME"), MatchKind::Word, "unfinished work belongs into an issue"),
    (concat!("X", "XX"), MatchKind::Word, "unfinished work belongs into an issue"),
    (concat!("HA", "CK"), MatchKind::Word, "say what it does and why it must"),
    (concat!("to", "do!("), MatchKind::PathStart, "unfinished work belongs into an issue"),
    (concat!("unimple", "mented!("), MatchKind::PathStart, "unfinished work belongs into an issue"),
    (concat!("for ", "now"), MatchKind::Phrase, "say what holds, or what would have to change"),
    (
        concat!("simplified ", "for"),
        MatchKind::Phrase,
        "say what holds, or what would have to change",
    ),
    (
        concat!("crates", ".io"),
        MatchKind::PathStart,
        "registries are reached as the machine is set up",
    ),
    (
        concat!("index.", "crates"),
        MatchKind::PathStart,
        "registries are reached as the machine is set up",
    ),
    (
        concat!("static.rust", "-lang.org"),
        MatchKind::PathStart,
        "registries are reached as the machine is set up",
    ),
    (
        concat!("py", "pi.org"),
        MatchKind::PathStart,
        "registries are reached as the machine is set up",
    ),
    (
        concat!("files.python", "hosted.org"),
        MatchKind::PathStart,
        "registries are reached as the machine is set up",
    ),
    (
        concat!("registry.", "npmjs.org"),
        MatchKind::PathStart,
        "registries are reached as the machine is set up",
    ),
    (
        concat!("deb.", "debian.org"),
        MatchKind::PathStart,
        "registries are reached as the machine is set up",
    ),
    (concat!("/wo", "rk/"), MatchKind::PathStart, "a path of one machine"),
    (concat!("/tmp/", "target"), MatchKind::PathStart, "a path of one machine"),
];

/// Files that name registries because a tool writes them so.
const WRITTEN_BY_TOOLS: &[&str] = &["Cargo.lock"];

pub(super) fn check(house: &Repository) -> Vec<TidyFinding> {
    let mut found: Vec<TidyFinding> = house.tree.files.iter().flat_map(check_texts).collect();
    found.extend(house.sources.iter().flat_map(silent_tests));
    found
}

fn check_texts(file: &TreeFile) -> Vec<TidyFinding> {
    let name = file.path.rsplit('/').next().unwrap_or(&file.path);
    let Some(text) = file.text.as_deref().filter(|_| !WRITTEN_BY_TOOLS.contains(&name)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for (banned, how, why) in BANNED {
            if matches(line, banned, *how) {
                found.push(TidyFinding::at_line(
                    &file.path,
                    index + 1,
                    format!("`{banned}`: {why}"),
                ));
            }
        }
    }
    found
}

fn matches(line: &str, banned: &str, how: MatchKind) -> bool {
    let lower = line.to_lowercase();
    let line = if how == MatchKind::Phrase { lower.as_str() } else { line };
    line.match_indices(banned).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let after = line.get(at + banned.len()..).and_then(|text| text.chars().next());
        let joins = |letter: Option<char>| letter.is_some_and(|c| c.is_alphanumeric() || c == '_');
        match how {
            MatchKind::Word | MatchKind::Phrase => !joins(before) && !joins(after),
            MatchKind::PathStart => !joins(before) && before != Some('-'),
        }
    })
}

/// A test that ends early, is ignored, or says that it skips something has not failed, and so looks
/// as if it had passed.
fn silent_tests(source: &Source) -> Vec<TidyFinding> {
    let mut found = Vec::new();
    for line in &source.items.early_returns {
        let what = "a test returns before its end and passes; assert what it needs instead";
        found.push(TidyFinding::at_line(&source.path, *line, what));
    }
    for (index, line) in source.lines.iter().enumerate() {
        let line = line.trim_start();
        let ignored = line.starts_with(concat!("#[", "ignore"));
        let sometimes = line.starts_with("#[cfg_attr(") && line.contains("ignore");
        if ignored || sometimes {
            let what = "a test that is skipped is a test that failed; make it run";
            found.push(TidyFinding::at_line(&source.path, index + 1, what));
        }
    }
    found.extend(check_printed_skips(source));
    found
}

/// A test that prints that it skips.
fn check_printed_skips(source: &Source) -> Vec<TidyFinding> {
    let windows = source.tokens.0.windows(4);
    let printed = windows.filter_map(|window| match window {
        [name, _, _, text] => match (&name.token, &text.token) {
            (Token::Name(name), Token::Literal(literal))
                if name.ends_with("println") && literal.to_lowercase().contains("skip") =>
            {
                Some(text.line)
            }
            _ => None,
        },
        _ => None,
    });
    let in_tests = printed.filter(|line| source.is_test(*line));
    let what = "a test says that it skips something; a missing feature is a failure with a name";
    in_tests.map(|line| TidyFinding::at_line(&source.path, line, what)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Repository::from_files(&[(path, text)])).len()
    }

    #[test]
    fn every_banned_text_is_found() {
        for (banned, ..) in BANNED {
            assert_eq!(found("a.md", &format!("see {banned} x")), 1, "{banned}");
        }
        assert_eq!(found("a.md", concat!("For ", "now it is so")), 1);
        assert_eq!(
            found("Cargo.lock", concat!("registry+https://github.com/x/crates", ".io-index")),
            0
        );
    }

    #[test]
    fn words_that_only_look_alike_are_not_found() {
        let fine = concat!("for ", "nowhere ", "XX", "XX /home/ada/wo", "rk/x to", "do = \"deny\"");
        assert_eq!(found("a.md", fine), 0);
    }

    #[test]
    fn a_test_that_gives_up_is_found() {
        let early = "#[test]\nfn t() { if missing() { return; } go(); }";
        let closure = "#[test]\nfn t() { go(|| { return 1; }); }";
        assert_eq!(found("crates/x/tests/a.rs", early), 1);
        assert_eq!(found("crates/x/tests/a.rs", closure), 0);
        assert_eq!(found("crates/x/src/a.rs", "fn f() { return; }"), 0);
    }

    #[test]
    fn a_test_that_is_skipped_is_found() {
        let ignored = concat!("#[test]\n#[", "ignore]\nfn t() {}");
        assert_eq!(found("crates/x/tests/a.rs", ignored), 1);
        let told = "#[test]\nfn t() { eprintln!(\"skipping: no bwrap\"); }";
        assert_eq!(found("crates/x/tests/a.rs", told), 1);
    }
}
