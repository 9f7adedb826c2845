//! Subcommands that write much, submodules, working trees and pointers to large files.

use super::*;

/// A repository with a submodule and a working tree in it.
const SUBMODULE: &str = "git init -q ../lib; (cd ../lib; echo x > f; git add f; git commit -qm lib); \
    git submodule --quiet add ../../lib sub 2> /dev/null || git submodule --quiet add \"$(cd ../lib; pwd)\" sub; \
    git commit -qm sub; echo tree/ >> .git/info/exclude; git worktree add -q tree -b tree";

/// Work goes on in a submodule and in another working tree, and is applied.
#[test]
fn a_submodule_takes_commits() {
    for (tree, status) in [("sub", " M sub\n"), ("tree", "")] {
        let bed = Bed::new(SUBMODULE);
        let line = format!(
            "cd {tree} && git status -s && echo y > y && git add y && git commit -qm y && git log -1 --format=%s"
        );
        assert_eq!(bed.printed(&line), "y\n", "{tree}");
        bed.apply();
        assert_eq!(
            bed.host(&format!(
                "git -C {tree} log -1 --format=%s; git -C {tree} fsck; git status -s"
            )),
            format!("y\n{status}")
        );
        let undone = bed.capsule.run(&["undo", "latest"]);
        assert_eq!(undone.status, 0, "{tree}: {}", undone.stderr);
        assert_eq!(bed.host(&format!("git -C {tree} status -s; git status -s")), "", "{tree}");
    }
}

/// Git tidies up before a call ends, so that nothing is left running and ended in the middle.
#[test]
fn git_leaves_nothing_running() {
    for line in [
        "echo 3 >> a; git commit -qam three",
        "git merge -q side",
        "git rebase -q side",
        "git cherry-pick side",
        "git gc --auto",
        "git config --get gc.autoDetach && echo 5 > f && git add f && git commit -qm f",
    ] {
        let bed = Bed::new(
            "git checkout -q -b side; echo s > s; git add s; git commit -qm s; git checkout -q trunk",
        );
        let done = bed.run(line);
        assert_eq!(done.json()["result"]["exit_code"], 0, "{line}: {}", done.stdout);
        assert!(
            !format!("{}{}", done.stdout, done.stderr).contains("left_running"),
            "{line}: {}",
            done.stdout
        );
    }
}

/// A file that gives orders there is refused, by whichever way it is written.
#[test]
fn the_orders_of_a_submodule_are_protected() {
    for path in [
        ".git/modules/sub/hooks/post-checkout",
        ".git/modules/sub/config",
        ".git/modules/sub/config.worktree",
        ".git/modules/sub/info/attributes",
        ".git/modules/sub/objects/info/alternates",
        ".git/modules/new/config",
        ".git/modules/new/hooks/post-checkout",
        ".git/worktrees/tree/config.worktree",
        ".git/worktrees/tree/commondir",
        ".git/worktrees/tree/gitdir",
        ".git/worktrees/new/gitdir",
        "sub/.git",
        "tree/.git",
        "new/.git",
    ] {
        let bed = Bed::new(SUBMODULE);
        let program = format!(
            "use File::Path qw(make_path); use File::Basename; make_path(dirname('{path}')); open(F, '>', '{path}') or die $!; print F 'x'; close F"
        );
        bed.host(&format!("cat > w.pl <<'EOF'\n{program}\nEOF\ngit add w.pl; git commit -qm w"));
        let before = bed.host("find . -type f | sort | xargs cksum");
        let answer = bed.run("perl w.pl").json();
        let applied = bed.capsule.run(&["apply", "latest"]);
        assert_eq!(applied.status, 3, "{path}: {answer} {}{}", applied.stdout, applied.stderr);
        assert_eq!(bed.host("find . -type f | sort | xargs cksum"), before, "{path}");
    }
}

/// New submodules are for the user, and so are working trees outside; the denial says so before anything runs.
#[test]
fn what_lies_elsewhere_is_denied() {
    let bed = Bed::new(SUBMODULE);
    for (line, code) in [
        ("git worktree add ../w", "path.outside-workspace"),
        ("git worktree add -b w ../w", "path.outside-workspace"),
        ("git worktree add /srv/w", "path.outside-workspace"),
        ("git worktree move tree ../tree", "path.outside-workspace"),
        ("git submodule add ./sub again", "policy.never"),
        ("git submodule update --init", "policy.base-denied"),
    ] {
        let answer = bed.run(line).json();
        assert_eq!(answer["code"], code, "{line}: {answer}");
        assert!(answer["reason"].as_str().unwrap().len() > 20, "{answer}");
    }
    assert!(bed.printed("git worktree list; git submodule status").contains("[tree]"));
}

/// A `.git` file that names a repository outside shows nothing of it, whoever wrote it.
#[test]
fn a_git_file_shows_nothing_outside() {
    let bed = Bed::new(
        "git init -q ../other; (cd ../other; echo OUTSIDE > f; git add f; git commit -qm OUTSIDE); \
        mkdir in; echo \"gitdir: $(cd ../other; pwd)/.git\" > in/.git",
    );
    for line in ["cd in && git log", "cd in && git show HEAD:f", "git --git-dir=in/.git log"] {
        let done = bed.run(line);
        assert!(
            !format!("{}{}", done.stdout, done.stderr).contains("OUTSIDE"),
            "{line}: {}",
            done.stdout
        );
    }
}

/// The daily work of agents, each in a run of its own that is applied.
#[test]
fn ordinary_work_goes_on() {
    let bed = Bed::new(
        "printf '*.bin filter=lfs diff=lfs merge=lfs -text\\n' > .gitattributes; \
        printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%064d\\nsize 12\\n' 7 > large.bin; echo S > .env; \
        git add -f .; git commit -qm base",
    );
    for (line, expected) in [
        ("git status -s", ""),
        (
            "head -1 large.bin; git show HEAD:large.bin | head -1",
            "version https://git-lfs.github.com/spec/v1\nversion https://git-lfs.github.com/spec/v1\n",
        ),
        (
            "echo 2 >> b; echo more >> large.bin; git stash -q; git status -s; git stash pop -q; git status -s",
            " M b\n M large.bin\n",
        ),
        ("git commit -qam large; git status -s", ""),
        (
            "git checkout -q -b topic; echo 5 > c; git add c; git commit -qm topic; git checkout -q trunk; echo t >> a; git commit -qam trunk; git rebase -q trunk topic; git log --format=%s -2",
            "topic\ntrunk\n",
        ),
        (
            "echo r >> a; git commit -qam r; git revert --no-edit HEAD > /dev/null; git log --format=%s -1",
            "Revert \"r\"\n",
        ),
        (
            "git checkout -q -b x; echo x > a; git commit -qam x; git checkout -q topic; echo y > a; git commit -qam y; git merge -q x > /dev/null || git status -s; git merge --abort; git status -s",
            "UU a\n",
        ),
        ("git cherry-pick x > /dev/null || git cherry-pick --abort; git status -s", ""),
        ("git tag -a v1 -m v1; git describe", "v1\n"),
        ("git gc -q; git fsck --no-dangling; git status -s", ""),
    ] {
        assert_eq!(bed.printed(line), expected, "{line}");
        let applied = bed.capsule.run(&["apply", "latest"]);
        let is_over = applied.status == 0 || applied.stderr.contains("change.none");
        assert!(is_over, "{line}: {}{}", applied.stdout, applied.stderr);
        assert_eq!(bed.host("git status -s").replace(" M b\n M large.bin\n", ""), "", "{line}");
    }
    bed.host("git fsck --strict; git log v1");
}

/// A search with a program that says which commits are bad.
#[test]
fn a_search_finds_the_commit() {
    let bed = Bed::new(
        "printf 'exit system(qw(grep -q BAD a)) == 0;' > test.pl; git add .; git commit -qm base; \
        for n in 1 2 3 4 5; do echo $n >> a; git commit -qam c$n; done; echo BAD >> a; git commit -qam culprit; \
        for n in 6 7; do echo $n >> a; git commit -qam c$n; done",
    );
    let said = bed.printed("git bisect start HEAD HEAD~8; git bisect run perl test.pl; git bisect log | tail -1; git bisect reset");
    assert!(said.contains("culprit"), "{said}");
    bed.apply();
    assert_eq!(bed.host("git status -s; git log -1 --format=%s"), "c7\n");
}

/// Git sees nothing above the workspace: where a repository lies there, a note has the words that take all of it.
#[test]
fn a_repository_above_the_workspace_is_named() {
    let bed = Bed::new("mkdir -p web/src");
    let exec = |more: &[&str]| {
        let words = ["exec", "--unattended", "--policy", &bed.policy];
        bed.capsule.run(&[&words[..], more, &["--", "git", "status", "-s"]].concat())
    };
    let inside = bed.capsule.workspace().join("web/src");
    let failed = exec(&["--workspace", inside.to_str().unwrap()]);
    assert_eq!(failed.status, 128, "{failed:?}");
    assert!(
        failed.stderr.contains("`--workspace ../.. --cwd web/src` takes all of it"),
        "{failed:?}"
    );
    assert_eq!(exec(&["--cwd", "web/src"]).status, 0);
    bed.host("rm -rf .git");
    let none = exec(&[]);
    assert!(none.status == 128 && !none.stderr.contains("--cwd"), "{none:?}");
}
