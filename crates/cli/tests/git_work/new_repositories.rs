//! Repositories that a run makes.

use super::{Bed, content};

/// A repository that was not there before and gives git no orders is applied as a whole; the host's git takes it.
#[test]
fn new_repositories_are_applied() {
    for (lines, line, repository) in [
        ("", "git init -q n", "n"),
        ("", "git init -q n && cd n && echo x > x && git add x && git commit -qm x", "n"),
        ("", "git init -q n && cd n && git config user.name b && git config user.email b@b", "n"),
        ("", "git init -q n && git -C n remote add origin https://example.org/x.git", "n"),
        ("git config --global core.hooksPath /srv/hooks", "git init -q n", "n"),
        ("git config --global alias.l '!./tools/l'", "git init -q n", "n"),
        ("git clone -q . src", "git clone -q file://$PWD/src n && git -C n branch other", "n"),
        ("git clone -q . src", "git clone -q --no-hardlinks src deep/er/n", "deep/er/n"),
        ("mkdir n; echo x > n/x", "cd n && git init -q && git add x && git commit -qm x", "n"),
        ("rm -rf .git", "git init -q && git add a && git commit -qm a", "."),
    ] {
        let bed = Bed::new(lines);
        // Whether a command may clone is another question.
        bed.capsule.write_file("run.sh", line);
        bed.capsule.write_file("run.pl", "exec 'sh', '-e', 'run.sh'");
        bed.printed("perl run.pl");
        bed.apply();
        let told = bed.host(&format!(
            "git -C {repository} fsck --strict 2>&1; git -C {repository} status -s"
        ));
        assert!(!told.contains("error"), "{line}: {told}");
        if lines.contains("clone") {
            assert_eq!(content(&bed, &format!("{repository}/a")), "1\n");
        }
        let _ = bed.capsule.run(&["undo", "latest"]).exits(0);
        assert!(!bed.capsule.workspace().join(repository).join(".git").exists(), "{line}");
    }
}

/// One that gives orders, or leads elsewhere, is not.
#[test]
fn new_repositories_that_give_orders_are_refused() {
    let made = "git init -q n; cd n;";
    for (line, refused) in [
        ("git config core.fsmonitor ./x", "n/.git/config"),
        ("git config core.hooksPath hooks", "n/.git/config"),
        ("git config core.worktree ..", "n/.git/config"),
        ("git config include.path ../x", "n/.git/config"),
        ("git config remote.o.url 'ext::sh -c x'", "n/.git/config"),
        ("git config remote.o.uploadpack ./x", "n/.git/config"),
        ("git config url.ext::x.insteadOf https:", "n/.git/config"),
        ("git config new.unknown x", "n/.git/config"),
        ("git config remote.o.vcs ext; git config remote.o.url 'sh -c x'", "n/.git/config"),
        ("git config protocol.ext.allow always", "n/.git/config"),
        ("git config branch.trunk.remote 'ext::sh -c x'", "n/.git/config"),
        ("git config branch.trunk.remote ../x", "n/.git/config"),
        (
            "git config remote.o.promisor true; git config extensions.partialClone o",
            "n/.git/config",
        ),
        ("git config http.proxy http://example.org", "n/.git/config"),
        ("git config http.sslVerify false", "n/.git/config"),
        ("git config remote.o.url helper://x", "n/.git/config"),
        ("git config core.autocrlf true", "n/.git/config"),
        ("cd ..; git init -q n/src; git -C n/src config remote.o.vcs ext", "n/src/.git/config"),
        ("git config filter.x.clean ./x", "n/.git/config"),
        ("mv .git/hooks/pre-push.sample .git/hooks/pre-push", "n/.git/hooks/pre-push"),
        ("mkdir -p .git/hooks/d; echo x > .git/hooks/d/x.sample", "n/.git/hooks"),
        ("rm .git/config; ln -s ../../a .git/config", "n/.git/config"),
        ("mv .git g; ln -s g .git", "n/.git"),
        ("echo ../../.git > .git/commondir", "n/.git/commondir"),
        ("mkdir .git/branches; echo x > .git/branches/x", "n/.git/branches/x"),
        ("mkdir .vscode; echo '{}' > .vscode/settings.json", "n/.vscode/settings.json"),
        (
            "mkdir .vscode; echo '{}' > .vscode/settings.json; git add .; git commit -qm x; git rm -q -r .vscode",
            "n/.git",
        ),
    ] {
        let bed = Bed::new("");
        bed.capsule.write_file("run.sh", format!("{made} {line}\n"));
        bed.capsule.write_file("run.pl", "exec 'sh', 'run.sh'");
        let before = bed.host("find . | sort");
        let answer = bed.run("perl run.pl").json();
        let applied = bed.capsule.run(&["apply", "latest"]);
        assert_eq!(applied.status, 3, "{line}: {answer} {}{}", applied.stdout, applied.stderr);
        let told = bed.capsule.run(&["changes", "latest"]).stdout;
        let is_told = |shown: &str| shown.contains(refused) && shown.contains("refused");
        assert!(told.lines().any(is_told), "{line}: {told}");
        assert_eq!(bed.host("find . | sort"), before, "{line}");
    }
}

/// What the user's own configuration has git run by a relative path may not come with a new repository, nor become what it
/// runs where a directory turns into one.
#[test]
fn new_repositories_bring_nothing_that_the_user_has_run() {
    for (lines, line) in [
        (
            "git config --global core.hooksPath githooks",
            "mkdir -p n/githooks; echo x > n/githooks/pre-commit",
        ),
        (
            "git config --global core.hooksPath hooks; mkdir -p n/hooks; echo x > n/hooks/pre-commit",
            ":",
        ),
        ("git config --global alias.lint '!./tools/c'", "mkdir -p n/tools; echo x > n/tools/c"),
        ("git config --global alias.lint '!python3 lint.py'", "mkdir n; echo x > n/lint.py"),
        (
            "git config --global include.path more; printf '[core]\\nhooksPath = h\\n' > ~/more",
            "mkdir -p n/h; echo x > n/h/x",
        ),
    ] {
        let bed = Bed::new(lines);
        bed.capsule.write_file("run.sh", format!("{line}\ngit init -q n\n"));
        bed.capsule.write_file("run.pl", "exec 'sh', '-e', 'run.sh'");
        let _ = bed.run("perl run.pl");
        let applied = bed.capsule.run(&["apply", "latest"]);
        assert_eq!(applied.status, 3, "{lines}: {}{}", applied.stdout, applied.stderr);
        assert!(!bed.capsule.workspace().join("n/.git").exists(), "{lines}");
    }
}

/// Nor is a part of one, and what was inert when it was made must still be when it is applied.
#[test]
fn a_part_of_a_new_repository_is_not_applied() {
    let bed = Bed::new("");
    bed.printed("git init -q n");
    let before = bed.host("find . | sort");
    let part = bed.capsule.run(&["apply", "latest", "--without", "n/.git/config"]);
    assert_eq!(part.status, 3, "{}{}", part.stdout, part.stderr);
    assert_eq!(bed.host("find . | sort"), before);
}
