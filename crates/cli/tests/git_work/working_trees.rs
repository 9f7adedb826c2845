//! Working trees that commands add, move and remove, and what is refused because it only looks like one.

use super::*;

/// Files that are protected wherever they are, in the repository.
const CONTROL: &str = "mkdir -p .vscode; echo '{}' > .vscode/settings.json; echo 'echo x' > .envrc; echo S > .env; \
    git add -f .; git commit -qm control";

/// W7: a working tree that is added inside of the workspace is worked in, applied and undone.
#[test]
fn a_new_working_tree_is_applied() {
    for (lines, line) in [
        ("", "git worktree add -q w"),
        (CONTROL, "git worktree add -q -b topic nested/w"),
        (CONTROL, "git worktree add -q --detach .trees/w"),
        ("mkdir w; echo w >> .git/info/exclude", "git worktree add -q --lock -b x w HEAD"),
    ] {
        let bed = Bed::new(lines);
        bed.host("echo nested >> .git/info/exclude; echo .trees >> .git/info/exclude; echo w >> .git/info/exclude");
        let tree = line.split(' ').rfind(|word| word.ends_with('w')).unwrap();
        let before = bed.host("find . -path ./.git/index -prune -o -print | sort");
        let work = format!(
            "{line} && cd {tree} && echo n > n && git add n && git commit -qm n && git log -1 --format=%s"
        );
        assert_eq!(bed.printed(&work), "n\n", "{line}");
        let applied = bed.capsule.run(&["apply", "latest", "--with", "."]);
        assert_eq!(applied.status, 0, "{line}: {}{}", applied.stdout, applied.stderr);
        let told = bed.host(&format!(
            "git -C {tree} status -s; git -C {tree} log -1 --format=%s; git status -s; git fsck --strict; \
             git worktree list | wc -l; git worktree prune -n"
        ));
        assert_eq!(told, "n\n2\n", "{line}");
        let undone = bed.capsule.run(&["undo", "latest"]);
        assert_eq!(undone.status, 0, "{line}: {}", undone.stderr);
        assert_eq!(bed.host("git worktree list | wc -l; git status -s"), "1\n", "{line}");
        assert_eq!(bed.host("find . -path ./.git/index -prune -o -print | sort"), before, "{line}");
    }
}

/// What was added by the user is moved, locked and removed; what lies outside of the workspace is kept.
#[test]
fn a_working_tree_is_moved_and_removed() {
    for (line, expected) in [
        ("git worktree lock tree --reason x; git worktree unlock tree", "tree\n"),
        ("git worktree lock tree", "tree\n"),
        ("git worktree remove tree", ""),
        ("git worktree add -q other; git worktree remove other", "tree\n"),
        (
            "git worktree add -q other; git worktree move other again; git worktree remove tree",
            "again\n",
        ),
    ] {
        let bed = Bed::new(
            "printf 'tree\nmoved\nagain\n' >> .git/info/exclude; git worktree add -q tree -b tree; \
             git worktree add -q ../out -b out",
        );
        bed.printed(line);
        let applied = bed.capsule.run(&["apply", "latest"]);
        let is_over = applied.status == 0 || applied.stderr.contains("change.none");
        assert!(is_over, "{line}: {}{}", applied.stdout, applied.stderr);
        // The next run works in what is left as in any other.
        if let Some(tree) = expected.strip_suffix('\n').and_then(|trees| trees.lines().next()) {
            assert_eq!(
                bed.printed(&format!("git -C {tree} log -1 --format=%s")),
                "one\n",
                "{line}"
            );
        }
        let told = bed.host(
            "for d in tree moved again; do if [ -e $d ]; then git -C $d status -s; echo $d; fi; done; \
             git -C ../out status -s; git worktree prune -n; git status -s",
        );
        assert_eq!(told, expected, "{line}");
    }
    // A repository forgets no working tree that the sandbox does not show.
    let bed = Bed::new("git worktree add -q ../out -b out");
    let answer = bed.run("git worktree prune --expire now").json();
    let applied = bed.capsule.run(&["apply", "latest"]);
    assert_eq!(applied.status, 3, "{answer} {}", applied.stdout);
    assert_eq!(bed.host("git -C ../out log -1 --format=%s; git worktree prune -n"), "one\n");
}

/// Halves of a link that lead elsewhere, or are without the other half, are refused as before.
#[test]
fn what_only_looks_like_a_working_tree_is_refused() {
    let add = "git worktree add -q w";
    for (lines, line, refused) in [
        (
            "",
            "mkdir w; echo \"gitdir: $PWD/evil\" > w/.git; git init -q --bare evil; echo x > evil/hooks/post-checkout",
            "w/.git",
        ),
        (
            "",
            "git worktree add -q w; echo ../../../evil > .git/worktrees/w/commondir",
            ".git/worktrees/w/commondir",
        ),
        (
            "",
            "git worktree add -q w; printf '../..' > .git/worktrees/w/commondir",
            ".git/worktrees/w/commondir",
        ),
        (
            "",
            "git worktree add -q w; echo /srv/x/.git > .git/worktrees/w/gitdir",
            ".git/worktrees/w/gitdir",
        ),
        ("", "git worktree add -q w; echo 'gitdir: ../.git' > w/.git", "w/.git"),
        (
            "",
            "git worktree add -q w; echo '[core]' > .git/worktrees/w/config.worktree",
            ".git/worktrees/w/config.worktree",
        ),
        (
            "",
            "git worktree add -q w; mkdir .git/worktrees/w/hooks; echo x > .git/worktrees/w/hooks/pre-commit",
            ".git/worktrees/w/hooks/pre-commit",
        ),
        (
            "",
            "git worktree add -q w; mkdir w/.vscode; echo '{}' > w/.vscode/settings.json",
            "w/.vscode/settings.json",
        ),
        (
            CONTROL,
            "git worktree add -q w; echo ' ' >> w/.vscode/settings.json",
            "w/.vscode/settings.json",
        ),
        (CONTROL, "git worktree add -q w; echo 'echo y' > w/.envrc", "w/.envrc"),
        ("git worktree add -q w", "rm w/.git", "w/.git"),
        ("git worktree add -q w", "rm -r .git/worktrees/w", ".git/worktrees/w/commondir"),
        ("git worktree add -q w", "echo 'gitdir: ../evil' > w/.git", "w/.git"),
        (
            "mkdir src; echo x > src/x; git add src; git commit -qm src",
            "git worktree add -q w; mkdir -p src; printf 'gitdir: %s\\n' $PWD/.git/worktrees/w > src/.git; echo $PWD/src/.git > .git/worktrees/w/gitdir; rm w/.git",
            "src/.git",
        ),
    ] {
        let bed = Bed::new(lines);
        bed.capsule.write_file("run.sh", format!("set -e; {line}\n"));
        bed.capsule.write_file("run.pl", "exec 'sh', 'run.sh'");
        let before = bed.host("find . -type f | sort | xargs cksum");
        let answer = bed.run("perl run.pl").json();
        let applied = bed.capsule.run(&["apply", "latest"]);
        assert_eq!(applied.status, 3, "{line}: {answer} {}{}", applied.stdout, applied.stderr);
        let told = bed.capsule.run(&["changes", "latest"]).stdout;
        let is_told = |shown: &str| shown.contains(refused) && shown.contains("refused");
        assert!(told.lines().any(is_told), "{line}: {told}");
        assert_eq!(bed.host("find . -type f | sort | xargs cksum"), before, "{line}");
        // Nor is a part of it.
        if line.starts_with(add) && lines.is_empty() {
            let part = bed.capsule.run(&["apply", "latest", "--without", refused]);
            let kept = bed.host(&format!("cat {refused} 2> /dev/null || true"));
            assert!(part.status != 0 || kept.is_empty(), "{line}: {kept}");
        }
    }
}

/// A link is applied with both halves or not at all.
#[test]
fn half_a_working_tree_is_not_applied() {
    for half in ["w/.git", ".git/worktrees/w/gitdir", ".git/worktrees/w/commondir"] {
        let bed = Bed::new("");
        bed.printed("git worktree add -q w");
        let before = bed.host("find . -type f | sort | xargs cksum");
        let applied = bed.capsule.run(&["apply", "latest", "--without", half]);
        assert_ne!(applied.status, 0, "{half}: {}", applied.stdout);
        assert_eq!(bed.host("find . -type f | sort | xargs cksum"), before, "{half}");
    }
}
