//! Texts that must not be in the repository: unfinished work, hosts of registries, paths of one
//! machine, and tests that pass without having tested (house rule 21).

use crate::house::House;
use crate::rust::{Source, Word};
use crate::tidy::Finding;
use crate::tree::File;

/// How a text is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum As {
    /// As a word of its own, in these letters.
    Word,
    /// As words of their own, in small or capital letters.
    Phrase,
    /// As it stands, wherever a path could begin.
    Place,
}

/// The texts, each with why. They are put together here so that this file does not hold them.
const BANNED: &[(&str, As, &str)] = &[
    (concat!("TO", "DO"), As::Word, "unfinished work belongs into an issue"),
    (concat!("FIX", "ME"), As::Word, "unfinished work belongs into an issue"),
    (concat!("X", "XX"), As::Word, "unfinished work belongs into an issue"),
    (concat!("HA", "CK"), As::Word, "say what it does and why it must"),
    (concat!("to", "do!("), As::Place, "unfinished work belongs into an issue"),
    (concat!("unimple", "mented!("), As::Place, "unfinished work belongs into an issue"),
    (concat!("for ", "now"), As::Phrase, "say what holds, or what would have to change"),
    (concat!("simplified ", "for"), As::Phrase, "say what holds, or what would have to change"),
    (concat!("crates", ".io"), As::Place, "registries are reached as the machine is set up"),
    (concat!("index.", "crates"), As::Place, "registries are reached as the machine is set up"),
    (
        concat!("static.rust", "-lang.org"),
        As::Place,
        "registries are reached as the machine is set up",
    ),
    (concat!("py", "pi.org"), As::Place, "registries are reached as the machine is set up"),
    (
        concat!("files.python", "hosted.org"),
        As::Place,
        "registries are reached as the machine is set up",
    ),
    (
        concat!("registry.", "npmjs.org"),
        As::Place,
        "registries are reached as the machine is set up",
    ),
    (concat!("deb.", "debian.org"), As::Place, "registries are reached as the machine is set up"),
    (concat!("/wo", "rk/"), As::Place, "a path of one machine"),
    (concat!("/tmp/", "target"), As::Place, "a path of one machine"),
];

/// Files that name registries because a tool writes them so.
const WRITTEN_BY_TOOLS: &[&str] = &["Cargo.lock"];

pub(super) fn check(house: &House) -> Vec<Finding> {
    let mut found: Vec<Finding> = house.tree.files.iter().flat_map(texts).collect();
    found.extend(house.sources.iter().flat_map(silent_tests));
    found
}

fn texts(file: &File) -> Vec<Finding> {
    let name = file.path.rsplit('/').next().unwrap_or(&file.path);
    let Some(text) = file.text.as_deref().filter(|_| !WRITTEN_BY_TOOLS.contains(&name)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for (banned, how, why) in BANNED {
            if holds(line, banned, *how) {
                found.push(Finding::on(&file.path, index + 1, format!("`{banned}`: {why}")));
            }
        }
    }
    found
}

fn holds(line: &str, banned: &str, how: As) -> bool {
    let lower = line.to_lowercase();
    let line = if how == As::Phrase { lower.as_str() } else { line };
    line.match_indices(banned).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let after = line.get(at + banned.len()..).and_then(|text| text.chars().next());
        let joins = |letter: Option<char>| letter.is_some_and(|c| c.is_alphanumeric() || c == '_');
        match how {
            As::Word | As::Phrase => !joins(before) && !joins(after),
            As::Place => !joins(before) && before != Some('-'),
        }
    })
}

/// A test that ends early, is ignored, or says that it skips something has not failed, and so looks
/// as if it had passed.
fn silent_tests(source: &Source) -> Vec<Finding> {
    let mut found = Vec::new();
    for line in &source.items.early_returns {
        let what = "a test returns before its end and passes; assert what it needs instead";
        found.push(Finding::on(&source.path, *line, what));
    }
    for (index, line) in source.lines.iter().enumerate() {
        let line = line.trim_start();
        let ignored = line.starts_with(concat!("#[", "ignore"));
        let sometimes = line.starts_with("#[cfg_attr(") && line.contains("ignore");
        if ignored || sometimes {
            let what = "a test that is skipped is a test that failed; make it run";
            found.push(Finding::on(&source.path, index + 1, what));
        }
    }
    found.extend(said(source));
    found
}

/// A test that prints that it skips.
fn said(source: &Source) -> Vec<Finding> {
    let windows = source.words.0.windows(4);
    let printed = windows.filter_map(|window| match window {
        [name, _, _, text] => match (&name.word, &text.word) {
            (Word::Name(name), Word::Literal(literal))
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
    in_tests.map(|line| Finding::on(&source.path, line, what)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&House::with(&[(path, text)])).len()
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
