//! Repositories that an earlier call of a session made, and sessions of which a process was killed.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use super::*;

/// Files that a user has committed and that are hidden, and where new working trees do not show.
const TRACKED: &str = "mkdir sub; for f in .env .npmrc sub/key.pem; do echo SECRET > $f; done; git add -f .; \
    git commit -qm secrets; printf 'w\nnested\n' >> .git/info/exclude";

impl Bed {
    fn in_session(&self, line: &str) -> Command {
        let args = serde_json::json!({ "command": line }).to_string();
        let head = ["call", "shell.run", "--policy", &self.policy, "--session", "job:1"];
        let mut command = self.capsule.command(&[&head[..], &["--args", &args]].concat());
        command.stdin(Stdio::null());
        command
    }

    /// The output of a line in the session, which ends well.
    #[track_caller]
    fn told(&self, line: &str) -> String {
        let done: CommandOutput = self.in_session(line).output().unwrap().into();
        let answer = done.json();
        assert_eq!(answer["status"], "ok", "{line}: {answer}");
        assert_eq!(answer["result"]["exit_code"], 0, "{line}: {answer}");
        answer["result"]["stdout"].as_str().unwrap_or_default().to_owned()
    }

    fn session(&self) -> String {
        let listed = self.capsule.run(&["session", "list", "--json"]).exits(0).json();
        listed["sessions"][0]["session"].as_str().unwrap().to_owned()
    }

    /// The paths of the changes that are refused.
    fn refused(&self) -> Vec<String> {
        let told = self.capsule.run(&["changes", &self.session(), "--json"]).json();
        let changes = told["changes"].as_array().cloned().unwrap_or_default();
        let refused = changes.iter().filter(|change| !change["refused"].is_null());
        refused.map(|change| change["path"].as_str().unwrap().to_owned()).collect()
    }
}

/// W5 and W7: what is hidden is unchanged to git in a working tree that an earlier call made, as in the first one.
#[test]
fn a_hidden_file_is_unchanged_in_a_new_working_tree() {
    for (line, tree) in [
        ("git worktree add -q w", "w"),
        ("git worktree add -q -b topic nested/w", "nested/w"),
        ("git worktree add -q --detach w; git -C w status -s", "w"),
    ] {
        let bed = Bed::new(TRACKED);
        let made = bed.told(line);
        assert_eq!(made, "", "{line}");
        for (work, expected) in [
            ("git status -s; git status -s", ""),
            ("git diff; git diff-files --name-only; git diff-index --name-only HEAD", ""),
            ("git add -A; git status -s", ""),
            ("git update-index -q --refresh; git status -s", ""),
            (
                "echo 3 > c; git add -A; git commit -qam c; git show --stat --format=",
                " c | 1 +\n 1 file changed, 1 insertion(+)\n",
            ),
            ("echo 4 >> c; git stash -q; git stash pop -q; git status -s", " M c\n"),
            (
                "git reset -q --hard; git status -s; git ls-files",
                ".env\n.npmrc\na\nb\nc\nsub/key.pem\n",
            ),
        ] {
            assert_eq!(bed.told(&format!("cd {tree}; {work}")), expected, "{line}; {work}");
        }
        assert_eq!(bed.refused(), [""; 0], "{line}");
        let applied = bed.capsule.run(&["apply", &bed.session()]);
        assert_eq!(applied.status, 0, "{line}: {}", applied.stderr);
        let there = bed.host(&format!("git -C {tree} status -s; cat {tree}/.env; git status -s"));
        assert_eq!(there, "SECRET\n", "{line}");
    }
}

/// A process of the session that is killed in the middle of a line.
fn killed(bed: &Bed, line: &str) {
    let text = format!("{line}; echo waits; sleep 100");
    let words = ["exec", "--policy", &bed.policy, "--session", "job:1", "--", &text];
    let mut command = bed.capsule.command(&words);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut seen = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut seen).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(seen, "waits\n", "{line}");
}

/// Where the changes of the session are staged.
fn staged(bed: &Bed) -> PathBuf {
    let staged = bed.capsule.store().with_file_name("store.db.staged");
    fs::read_dir(staged).unwrap().next().unwrap().unwrap().path()
}

/// A process that is killed while a command runs leaves no index as it was prepared for that command, and no lock
/// of one: nothing is refused for it, and the changes before are applied.
#[test]
fn a_killed_process_leaves_no_prepared_index() {
    for (before, directory) in [
        ("true", ".git"),
        ("echo 3 > c; git add c", ".git"),
        ("echo 3 > c; git add c; git commit -qm c", ".git"),
        ("git worktree add -q w", ".git/worktrees/w"),
        ("git worktree add -q w; echo 3 > w/c; git -C w add c", ".git/worktrees/w"),
    ] {
        let bed = Bed::new(TRACKED);
        let _made = bed.told(before);
        let look =
            if directory == ".git" { "git status -s" } else { "git -C w status -s; git status -s" };
        let expected = bed.told(look);
        killed(&bed, "git status -s > /dev/null");
        // A kill in the right instant leaves more: before the index is replaced, and what was to be put back.
        let changes = staged(&bed).join("changes");
        fs::create_dir_all(changes.join(directory)).unwrap();
        fs::write(changes.join(directory).join("index.lock"), "DIRC").unwrap();
        assert_eq!(bed.told(look), expected, "{before}");
        assert_eq!(bed.refused(), [""; 0], "{before}");
        assert!(!changes.join(directory).join("index.lock").exists(), "{before}");
        let left = fs::read_dir(staged(&bed)).unwrap().map(|entry| entry.unwrap().file_name());
        let left: Vec<_> =
            left.filter(|name| name.to_string_lossy().starts_with("recorded-")).collect();
        assert!(left.is_empty(), "{before}: {left:?}");
        killed(&bed, "git diff");
        let applied = bed.capsule.run(&["apply", &bed.session()]);
        let is_applied = applied.status == 0 || applied.stderr.contains("change.none");
        assert!(is_applied, "{before}: {}{}", applied.stdout, applied.stderr);
        assert_eq!(bed.told("git status -s"), bed.host("git status -s"), "{before}");
        bed.host("git fsck --strict; git commit -qam after || true; test -z \"$(git status -s)\"");
    }
}

/// The same at any instant.
#[test]
fn a_process_is_killed_around_a_prepared_index() {
    let bed = Bed::new(TRACKED);
    let _made =
        bed.told("git worktree add -q w; echo 3 > w/c; git -C w add c; echo 4 > d; git add d");
    let line = "git -C w status -s; git status -s";
    for time in 0..24 {
        let mut child = bed.in_session(line).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(time * 11 % 150));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(bed.told(line), "A  c\nA  d\n", "{time}");
        assert_eq!(bed.refused(), [""; 0], "{time}");
    }
    let applied = bed.capsule.run(&["apply", &bed.session()]);
    assert_eq!(applied.status, 0, "{}", applied.stderr);
    assert_eq!(bed.host(line), "A  c\nA  d\n");
}
