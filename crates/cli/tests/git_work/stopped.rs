//! Operations of git that stop half way, where changes are applied at the end of each call: a rebase, and several commits
//! that are copied or taken back.

use std::io::Write as _;
use std::process::Stdio;

use super::*;

/// A branch `trunk` with two commits that `other` has not, and that do not go together with its own two.
const APART: &str = "git checkout -qb other; echo x > a; git commit -qam x; echo q > q; git add q; git commit -qm q; \
    git checkout -q trunk; echo y > a; git commit -qam \"it's y!\"; echo z > d; git add d; git commit -qm z";
/// Stops over `a`, and over nothing else.
const STOPPED: [(&str, &str, &str); 3] = [
    ("git rebase other", "git rebase", "rebase-merge"),
    ("git cherry-pick -x trunk..other", "git cherry-pick", "sequencer"),
    ("git revert --no-edit other~1 HEAD", "git revert", "sequencer"),
];
const SOLVED: &str = "echo w > a; git add a; GIT_EDITOR=true";

impl Bed {
    /// A call of an agent, of which the changes are applied at its end.
    fn call(&self, line: &str) -> CommandOutput {
        let head = ["exec", "--agent", "--session=claude-code:1", "--policy", &self.policy];
        self.capsule.run(&[&head[..], &["--command", "--", line]].concat())
    }

    /// Everything of the workspace, by its content.
    fn everything(&self) -> String {
        self.host(
            "find . -type f ! -path './.git/objects/*' | sort | xargs sha256sum; git stash list",
        )
    }

    /// A program of the workspace that an agent runs, and that no commit holds.
    fn program(&self, text: &str) {
        fs::write(self.capsule.workspace().join("work.py"), text).unwrap();
        self.host("echo work.py >> .git/info/exclude");
    }
}

#[test]
fn what_stopped_in_one_call_goes_on_in_the_next() {
    for (line, command, directory) in STOPPED {
        let bed = Bed::new(APART);
        let begun = bed.host("git rev-parse HEAD");
        let stopped = bed.call(line);
        assert_eq!(stopped.status, 1, "{line}: {stopped:?}");
        assert!(!stopped.stderr.contains("not applied"), "{line}: {stopped:?}");
        assert!(bed.host("git status").contains(&command.replace("git ", "")), "{line}");
        bed.host(&format!("test -d .git/{directory}"));
        // The user's own git goes on with it as well.
        bed.host("cp -a . ../copy");
        let copy = bed.host(&format!(
            "cd ../copy; {SOLVED} {command} --continue >&2; git status -s; ls .git"
        ));
        assert!(!copy.contains(directory), "{line}: {copy}");
        let gone_on = bed.call(&format!("{SOLVED} {command} --continue"));
        assert_eq!(gone_on.status, 0, "{line}: {gone_on:?}");
        assert_eq!(
            bed.host("git status -s; git log -1 --format=%D HEAD"),
            "HEAD -> trunk\n",
            "{line}"
        );
        bed.host(&format!("test ! -e .git/{directory}; git fsck --no-dangling"));

        let bed = Bed::new(APART);
        bed.call(line);
        let given_up = bed.call(&format!("{command} --abort"));
        assert_eq!(given_up.status, 0, "{line}: {given_up:?}");
        assert_eq!(bed.host("git rev-parse HEAD").len(), begun.len(), "{line}");
        assert_eq!(
            bed.host("git status -s; git log -1 --format='%s %D'"),
            "z HEAD -> trunk\n",
            "{line}"
        );
        bed.host(&format!("test ! -e .git/{directory}"));
        // An undo goes back to where it had stopped, and the next one to before that.
        assert_eq!(bed.capsule.run(&["undo", "latest"]).status, 0, "{line}");
    }
}

#[test]
fn each_stop_is_applied_on_its_own() {
    let bed = Bed::new("");
    bed.host(
        "git checkout -qb other; echo x > a; echo x > b; git commit -qam x; git checkout -q trunk; \
        echo y > a; git commit -qam y; echo z > b; git commit -qam z",
    );
    assert_eq!(bed.call("git rebase other").status, 1);
    let second = bed.call(&format!("{SOLVED} git rebase --continue"));
    assert_eq!(second.status, 1, "{second:?}");
    assert!(!second.stderr.contains("not applied"), "{second:?}");
    let last = bed.call("git rebase --skip");
    assert_eq!(last.status, 0, "{last:?}");
    assert_eq!(bed.host("git status -s; git log --format=%s"), "y\nx\none\n");
}

/// What would give git orders on the host is not applied, and nothing of the repository is with it.
#[test]
fn orders_for_what_stopped_are_not_applied() {
    let todo = "todo = '.git/rebase-merge/git-rebase-todo'\nimport os, subprocess\n";
    let git = "def git(line, text=''):\n  return subprocess.run(['git'] + line.split(), input=text, text=True, \
               stdout=subprocess.PIPE, check=True).stdout.strip()\n";
    let evil = "blob = git('hash-object -w --stdin', 'x')\n\
                inner = git('mktree', f'100644 blob {blob}\\ttasks.json\\n')\n\
                tree = git('mktree', f'040000 tree {inner}\\t.vscode\\n')\n\
                evil = git('commit-tree -m evil ' + tree)\n";
    for attack in [
        "open(todo, 'a').write('exec touch owned\\n')",
        "open(todo, 'a').write('x\\ttouch owned\\n')",
        "open(todo, 'a').write('  x touch owned\\n')",
        "open(todo, 'a').write('# a\\\\\\nx touch owned\\n')",
        "open(todo, 'ab').write(b'noop\\r\\nx touch owned\\n')",
        "open(todo, 'ab').write(b'noop\\0\\nx touch owned\\n')",
        "open('.git/rebase-merge/done', 'a').write('exec touch owned\\n')",
        "open('.git/rebase-merge/strategy', 'w').write('owned')",
        "open('.git/rebase-merge/strategy_opts', 'w').write(' --subtree=x')",
        "open('.git/rebase-merge/gpg_sign_opt', 'w').write('-Sx')",
        "open('.git/rebase-merge/author-script', 'a').write('touch owned\\n')",
        "open('.git/rebase-merge/head-name', 'w').write('refs/../config')",
        "os.remove(todo); os.symlink('../../work.py', todo)",
        "import shutil; shutil.copytree('.git/rebase-merge', 'm'); shutil.rmtree('.git/rebase-merge'); \
         os.symlink('../m', '.git/rebase-merge')",
        "os.mkdir('.git/rebase-merge/more')",
        "os.mkdir('.git/rebase-apply'); open('.git/rebase-apply/apply-opt', 'w').write('x')",
        "os.mkdir('.git/sequencer'); open('.git/sequencer/opts', 'w').write('[options]\\n\\tgpg-sign = x\\n')",
        "open('.git/hooks/pre-rebase', 'w').write('touch owned'); open('.git/rebase-merge/x', 'w')",
        "open(todo, 'a').write(f'pick {evil} x\\n')",
        "open(todo, 'a').write(f'merge -C {evil} other\\n')",
        "open(todo, 'a').write(f'merge {evil}\\n')",
        "open(todo, 'a').write(f'reset {evil[:9]}\\n')",
        "open('.git/rebase-merge/orig-head', 'w').write(evil)",
        "open('.git/rebase-merge/autostash', 'w').write(evil)",
        "open(todo, 'a').write('pick ' + '0123456789' * 4 + ' x\\n')",
    ] {
        let bed = Bed::new(APART);
        bed.program(&[todo, git, evil, attack, "\nopen('a', 'a').write('more')\n"].concat());
        assert_eq!(bed.call("git rebase other").status, 1, "{attack}");
        let before = bed.everything();
        let done = bed.call("python3 work.py; echo x > b; git add b");
        assert_eq!(done.status, 3, "{attack}: {done:?}");
        assert_eq!(bed.everything(), before, "{attack}: {done:?}");
        let told = done.stderr.lines().filter(|line| line.starts_with("not applied: `.git`: "));
        assert_eq!(told.count(), 1, "{attack}: {done:?}");
        assert!(!done.stderr.contains("capsule discard"), "{attack}: {done:?}");
    }
}

/// What cannot be applied as a whole leaves the repository as it was: here the options name what signs.
#[test]
fn a_repository_is_changed_as_a_whole_or_not_at_all() {
    for (line, ending) in [
        ("git am -3 < p", " || git am --abort"),
        ("git rebase --apply other", " || git rebase --abort"),
        ("git rebase other; python3 work.py", "; git rebase --abort"),
    ] {
        let bed = Bed::new(APART);
        bed.program("open('.git/rebase-merge/unknown', 'w')");
        bed.host("git format-patch -1 --stdout other~1 > p; echo p >> .git/info/exclude");
        let before = bed.everything();
        let done = bed.call(line);
        assert_eq!(done.status, 3, "{line}: {done:?}");
        assert_eq!(bed.everything(), before, "{line}: {done:?}");
        let told = "of it and of its files are dropped together";
        assert!(done.stderr.contains(told), "{line}: {done:?}");
        assert!(done.stderr.contains("git rebase --abort"), "{line}: {done:?}");
        // In one call, it may stop and be given up.
        let again = bed.call(&format!("{line}{ending}"));
        let now = bed.host("git status -s; git log -1 --format=%s");
        assert_eq!((again.status, &*now), (0, "z\n"), "{line}: {again:?}");
    }
    // Settings stand apart: what is made beside them is applied.
    let bed = Bed::new("");
    bed.program("import os; os.system('git config core.hooksPath hooks')");
    let done = bed.call("python3 work.py; echo 2 > c; git add c; git commit -qm c");
    assert_eq!(done.status, 3, "{done:?}");
    assert_eq!(bed.host("git log -1 --format=%s; git config core.hooksPath || true"), "c\n");
    assert!(done.stderr.contains("in the workspace · capsule undo "), "{done:?}");
    // Nor does a person leave out a part of a repository.
    let bed = Bed::new(APART);
    let staged = bed.run("git rebase --apply other");
    assert_ne!(staged.status, 0, "{staged:?}");
    let applied = bed.capsule.run(&["apply", "latest"]);
    assert_eq!(applied.status, 3, "{applied:?}");
    assert!(!applied.stderr.contains("--without"), "{applied:?}");
    let part = bed.capsule.run(&["apply", "latest", "--without", ".git/rebase-apply"]);
    assert_eq!(part.status, 3, "{part:?}");
    assert!(part.stderr.contains("neither go on there nor go back"), "{part:?}");
    assert_eq!(bed.host("git status -s; git log -1 --format=%D"), "HEAD -> trunk\n");
}

#[test]
fn what_stopped_goes_on_over_the_protocol() {
    let bed = Bed::new(APART);
    let words = ["mcp", "serve", "--policy", &bed.policy];
    let mut server = bed.capsule.command(&words);
    let mut server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    let start = serde_json::json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } } });
    writeln!(input, "{start}").unwrap();
    let ready = serde_json::json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    writeln!(input, "{ready}").unwrap();
    let lines = ["git rebase other".to_owned(), format!("{SOLVED} git rebase --continue")];
    for (id, line) in lines.iter().enumerate() {
        let call = serde_json::json!({ "jsonrpc": "2.0", "id": id + 1, "method": "tools/call",
            "params": { "name": "shell_run", "arguments": { "command": line } } });
        writeln!(input, "{call}").unwrap();
    }
    drop(input);
    let output = server.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(!said.contains("not_applied"), "{said}");
    assert_eq!(bed.host("git status -s; git log --format=%s"), "z\nit's y!\nq\nx\none\n", "{said}");
}
