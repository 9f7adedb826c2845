//! Program texts in the words of a command: what can be told of one without running it.
//!
//! A text that is given to an interpreter can do anything, so it is never taken for reading. Some texts
//! say plainly that they start other programs, reach other computers, or leave the workspace; those are
//! no question for a person. What says it otherwise is held by the sandbox.

use alloc::string::String;
use alloc::vec::Vec;

use crate::specs::Effect;
use crate::specs::embedded::words::{STARTS_PROGRAM, USES_NETWORK};

/// What removes whole trees.
const REMOVES_TREE: &[&str] =
    &["rmtree", "rmsync", "rm_rf", "rm_r(", "remove_tree", "unlinksync", "rmdirsync"];

/// How a statement begins that loads a module, prints, or names a module.
const HARMLESS: &[&str] = &["import ", "from ", "const ", "print", "console.log", "require"];

/// What a program text says that it does besides computing.
pub(super) fn effects(text: &str) -> Vec<(Effect, &'static str)> {
    // What reads addresses reaches none.
    let lower = text.to_lowercase().replace("urllib.parse", "");
    let has = |words: &[&str]| words.iter().any(|w| lower.contains(w)) && !only_prints_names(text);
    let mut found = Vec::new();
    if has(STARTS_PROGRAM) || has_backtick_command(text) {
        found.push((Effect::Starts, "is a text that starts other programs"));
    }
    if has(USES_NETWORK) {
        found.push((Effect::Publishes, "is a text that talks to other computers"));
    }
    if has(REMOVES_TREE) {
        found.push((Effect::Deletes, "is a text that removes files"));
        let root = quoted(text)
            .iter()
            .any(|text| matches!(text.trim_end_matches('/'), "" | "." | ".." | "~" | "*"));
        if root || lower.contains("home") {
            found.push((Effect::Destroys, "is a text that removes more than the workspace"));
        }
    }
    found
}

/// Whether each statement of a text loads a module or prints what has a name, such as its version. None calls anything
/// else, in no language.
fn only_prints_names(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "._/@-,;=*'\"() \n".contains(c);
    let is_harmless = |statement: &str| {
        let (calls, inner) = statement.rsplit_once('(').unwrap_or(("print", statement));
        let begins = HARMLESS.iter().any(|word| statement.starts_with(word));
        let only = calls.split('(').all(|call| HARMLESS.iter().any(|word| call.ends_with(word)));
        statement.is_empty()
            || begins && only && (inner == statement || !inner.replace(", ", ",").contains(' '))
    };
    text.chars().all(plain) && text.split([';', '\n']).map(str::trim).all(is_harmless)
}

/// Backticks with something between them: a command, in Perl, Ruby and PHP. In JavaScript they are a
/// text, which has a `$` or nothing strange in it.
fn has_backtick_command(text: &str) -> bool {
    let mut parts = text.split('`');
    let _ = parts.next();
    let inner = parts.next().filter(|_| parts.next().is_some());
    inner.is_some_and(|inner| {
        let first = inner.split_whitespace().next().unwrap_or_default();
        !inner.contains("${") && crate::specs::find_spec(first).is_some()
    })
}

/// The paths that a program text names in quotes and that lead out of the workspace.
pub(super) fn outside_paths(text: &str) -> Vec<String> {
    let away = |item: &&str| {
        let leads = item.starts_with('/') && item.len() > 1 && !item.starts_with("//")
            || item.starts_with("~/");
        let plain = |c: char| c.is_alphanumeric() || "/._-~".contains(c);
        let system = [
            "/etc", "/usr", "/bin", "/home", "/root", "/var", "/proc", "/sys", "/dev", "/tmp",
            "/opt", "/boot", "/srv", "/mnt", "/lib",
        ];
        let is_place = item.starts_with('~') || system.iter().any(|top| item.starts_with(top));
        leads
            && is_place
            && item.chars().all(plain)
            && !item.starts_with("/dev/std")
            && *item != "/dev/null"
    };
    quoted(text).into_iter().filter(away).map(Into::into).collect()
}

/// What stands in quotes.
fn quoted(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for quote in ['\'', '"'] {
        found.extend(text.split(quote).skip(1).step_by(2));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_only_compute_do_nothing_else() {
        for text in [
            "print(1)",
            "import json; print(json.dumps({}))",
            "console.log(process.version)",
            "puts 1",
            "print '/'.join(['a'])",
            "import sys; print(sys.version)",
            "print scalar reverse 'abc'",
            "console.log(`${1 + 1}`)",
            "open('data.csv').read()",
            "import requests; print(requests.__version__)",
            "import httpx, sys; print(httpx.__file__, sys.version)",
            "from urllib import request\nprint(request)",
            "import urllib.parse; print(urllib.parse.quote('a b'))",
            "import subprocess; print(subprocess.__file__)",
            "console.log(require('axios').VERSION)",
            "const axios = require(\"axios\"); console.log(axios.VERSION);",
            "require('axios/package.json').version",
        ] {
            assert_eq!((effects(text), outside_paths(text)), (Vec::new(), Vec::new()), "{text}");
        }
    }

    #[test]
    fn what_a_text_says_plainly_is_told() {
        for (text, effect) in [
            ("import os; os.system('id')", Effect::Starts),
            ("require('child_process').execSync('id')", Effect::Starts),
            ("print `id`", Effect::Starts),
            ("import pty; pty.spawn('/bin/bash')", Effect::Starts),
            ("import urllib.request as u; exec(u.urlopen('x').read())", Effect::Publishes),
            ("fetch('https://x')", Effect::Publishes),
            // A call is one however the library came in.
            ("import requests; print(requests.get(u).text)", Effect::Publishes),
            ("import requests; print(requests.__version__); requests.post(u)", Effect::Publishes),
            ("import urllib.parse, urllib.request as u; u.urlopen(x)", Effect::Publishes),
            ("import socket as s; s.create_connection((h, 80))", Effect::Publishes),
            ("require('axios').get(u)", Effect::Publishes),
            ("console.log(require('axios').get(u))", Effect::Publishes),
            ("print(TCPSocket.open ARGV.first, 80)", Effect::Publishes),
            ("TCPSocket.open ARGV.first, 80", Effect::Publishes),
            ("import subprocess; subprocess.run(x)", Effect::Starts),
            ("import shutil; shutil.rmtree('build')", Effect::Deletes),
            ("import shutil; shutil.rmtree('/')", Effect::Destroys),
            ("FileUtils.rm_rf(Dir.home)", Effect::Destroys),
            ("require('fs').rmSync('/',{recursive:true})", Effect::Destroys),
        ] {
            let found = effects(text);
            assert!(found.iter().any(|(own, _)| *own == effect), "{text}: {found:?}");
        }
        assert_eq!(outside_paths("open('/etc/passwd').read()"), ["/etc/passwd"]);
        assert_eq!(outside_paths("open(\"~/.ssh/id_rsa\")"), ["~/.ssh/id_rsa"]);
    }
}
