//! The configuration of git, read by us and by git itself.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use capsule_workspace::git_config::{judge, settings};

/// Every git of the machine; there is one at least.
fn gits() -> Vec<PathBuf> {
    let path = std::env::var("PATH").unwrap();
    let all = path.split(':').map(|folder| Path::new(folder).join("git"));
    let real: BTreeSet<PathBuf> = all.filter_map(|git| git.canonicalize().ok()).collect();
    assert!(!real.is_empty(), "these tests need git");
    real.into_iter().collect()
}

fn run(git: &Path, words: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(git);
    command.args(words).current_dir(folder).env_clear().env("HOME", folder);
    command.env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap()
}

/// B11: each key that a git of this machine documents is judged, with a reason. A new one is to be given a
/// line in the table.
#[test]
fn every_documented_key_is_judged() {
    let folder = tempfile::tempdir().unwrap();
    let mut unjudged = BTreeSet::new();
    for git in gits() {
        let listed = run(&git, &["help", "--config"], folder.path());
        let listed = String::from_utf8(listed.stdout).unwrap();
        let keys: Vec<&str> =
            listed.lines().filter(|line| !line.contains(' ') || line.contains('<')).collect();
        assert!(keys.len() > 500, "{}: {} keys", git.display(), keys.len());
        for key in keys {
            let key = key.to_lowercase();
            // What stands in brackets is a name of one's own; a star, every key of the section.
            let parts: Vec<String> = key
                .split('<')
                .map(|part| {
                    part.split_once('>')
                        .map_or_else(|| part.to_owned(), |(_, rest)| format!("x{rest}"))
                })
                .collect();
            let key = parts.concat();
            if !key.ends_with(".*") && key.contains('.') && judge(&key).is_none() {
                unjudged.insert(key);
            }
        }
    }
    // Those that other pages than git-config(1) document, and programs beside git.
    for key in [
        "alias.x",
        "init.templatedir",
        "trailer.x.command",
        "trailer.x.cmd",
        "tar.x.command",
        "hook.x.command",
        "filter.x.process",
        "submodule.x.update",
        "merge.x.driver",
        "svn.authorsprog",
        "sendemail.x.sendmailcmd",
    ] {
        assert!(judge(key).is_some(), "{key}");
    }
    assert!(unjudged.is_empty(), "no line in `keys.txt`: {unjudged:?}");
}

/// Numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// Pieces of configurations, and of what is none.
const PIECES: &[&str] = &[
    "[core]",
    "[Core]\n",
    "[a.b]",
    "[a.B \"C\"]",
    "[a \"b\\\"c\\\\d\"]\n",
    "[a \"]\"] ",
    "[a\t\"x y\"]",
    "[a \"b\\q\"]",
    "[ a]",
    "[a ]",
    "[a]b",
    "[]",
    "[-]",
    "[a\r\"b\"]",
    "[a \"b\"",
    "[a \"b\nc\"]",
    "[.]",
    "[a.]",
    "[.a]",
    "\n",
    "\r\n",
    "\r",
    "\t",
    " ",
    "key = value\n",
    "Key=VALUE",
    "k-1 = 1",
    "1k = 1",
    "k_x = 1",
    "key",
    "key\n",
    "key =",
    " = ",
    "=",
    "\"",
    "\\",
    "\\n",
    "\\t",
    "\\b",
    "\\\"",
    "\\\\",
    "\\q",
    "\\\n",
    "\\\r\n",
    ";",
    "#",
    "; a \" \n",
    "# [x]\n",
    "a b",
    "\u{c}",
    "\u{feff}",
    "é",
    "\"a ; b\"",
    " \"\" ",
    "a  \t b",
    "\u{b}",
    "x",
    ".",
    "[core]\nhookspath = ",
];

/// M7: what we read is what git reads, and what git does not read is refused.
#[test]
fn a_configuration_is_read_as_git_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    let gits = gits();
    let (mut numbers, mut wrong, mut read) = (Numbers(7), Vec::new(), 0);
    let mut texts: Vec<String> = PIECES.iter().map(|piece| format!("[s]\n{piece}")).collect();
    texts.extend(PIECES.iter().map(|piece| format!("[s]\nk = {piece}")));
    texts.extend((0..600).map(|_| {
        let head = if numbers.below(3) == 0 { "" } else { "[s \"t\"]\nk = " };
        let pieces: String =
            (0..1 + numbers.below(7)).map(|_| PIECES[numbers.below(PIECES.len())]).collect();
        format!("{head}{pieces}")
    }));
    for text in texts {
        fs::write(&file, &text).unwrap();
        let ours = settings(text.as_bytes()).ok().map(|all| {
            let shown = all.iter().map(|own| {
                let section = own.section.as_bytes();
                let mut line = match (section, &own.subsection) {
                    // What stands before the first section.
                    (b"", None) => Vec::new(),
                    (section, None) => [section, b"."].concat(),
                    (section, Some(about)) => [section, b".", about, b"."].concat(),
                };
                line.extend_from_slice(own.key.as_bytes());
                if let Some(value) = &own.value {
                    line.push(b'\n');
                    line.extend_from_slice(value);
                }
                line.push(0);
                line
            });
            plain(&shown.collect::<Vec<_>>().concat())
        });
        for git in &gits {
            let told = run(git, &["config", "--file", "config", "--list", "-z"], folder.path());
            let theirs = told.status.success().then(|| plain(&told.stdout));
            read += usize::from(theirs.is_some());
            if ours != theirs {
                let shown =
                    |own: &Option<Vec<u8>>| own.as_ref().map(|own| own.escape_ascii().to_string());
                wrong.push(format!(
                    "{text:?}: {:?}, and {} {:?}",
                    shown(&ours),
                    git.display(),
                    shown(&theirs)
                ));
            }
        }
    }
    assert!(read > 200, "only {read} were read by git");
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Earlier versions make every space within a value a plain one.
fn plain(text: &[u8]) -> Vec<u8> {
    text.iter().map(|byte| if matches!(byte, b'\t' | b'\r') { b' ' } else { *byte }).collect()
}

/// What ends for git at a zero byte has two readings, and is refused.
#[test]
fn zero_bytes_are_refused() {
    for text in [&b"[a]\nb = x\0y"[..], b"[a \"b\0c\"]\nd = e", b"[a]\nb\0c = d", b"\0[a]"] {
        assert!(settings(text).is_err(), "{}", text.escape_ascii());
    }
    assert!(settings(b"[a]\n# b\0\nc = d").is_ok(), "a comment is nobody's");
}
