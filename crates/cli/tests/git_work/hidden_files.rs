//! Files that are hidden from commands and in the repository: to git they are unchanged, whatever they hold.

use super::*;

/// Files that a user has committed, and changed since.
const TRACKED: &str = "mkdir sub; for f in .env .npmrc key.pem sub/.env; do echo SECRET > $f; done; \
    git add -f .; git commit -qm secrets; echo CHANGED > .env; echo more >> sub/.env";

/// Lines of a shell that leave every kind of index: entries as old as the index, and those that are older.
const AGES: [&str; 2] =
    ["", "sleep 1.1; git update-index --refresh -q || true; git status > /dev/null"];

/// W5: what is hidden is never shown as changed, and no subcommand stores or deletes it.
#[test]
fn a_hidden_file_is_unchanged_to_git() {
    for age in AGES {
        let bed = Bed::new(TRACKED);
        bed.host(age);
        for (line, expected) in [
            ("git status --porcelain", ""),
            ("git diff --stat; git diff HEAD", ""),
            ("git diff-index --name-only HEAD; git diff-files --name-only", ""),
            ("git add -A; git add .; git status --porcelain", ""),
            (
                "echo 3 > c; git add -A; git commit -qam three; git show --stat --format=",
                " c | 1 +\n 1 file changed, 1 insertion(+)\n",
            ),
            ("echo 3 >> a; git stash -q; git stash pop -q; git status --porcelain", " M a\n"),
            ("git checkout -q -b topic; git checkout -q trunk; git status --porcelain", ""),
            ("git reset -q --hard; git status --porcelain", ""),
            (
                "git checkout -q -b old HEAD; echo 9 > b; git commit -qam nine; git rebase -q trunk; git log -1 --format=%s",
                "nine\n",
            ),
            (
                "git rm -q b; git commit -qm gone; git ls-files",
                ".env\n.npmrc\na\nkey.pem\nsub/.env\n",
            ),
        ] {
            let said = bed.printed(line);
            assert_eq!(said, expected, "{age} {line}");
        }
    }
}

/// Applied changes hold the files as they are committed, and the user's own changes are there as before.
#[test]
fn what_is_applied_leaves_hidden_files_alone() {
    for age in AGES {
        let bed = Bed::new(TRACKED);
        bed.host(age);
        let before = bed.host("git ls-tree -r HEAD | grep -v -e '\ta$'; git status --porcelain");
        bed.printed("echo 2 >> a; git add -A; git commit -qam two");
        bed.apply();
        assert_eq!(
            bed.host("git ls-tree -r HEAD | grep -v -e '\ta$'; git status --porcelain"),
            before
        );
        assert_eq!(
            bed.host("git log -1 --format=%s; git show --stat --format=").matches("two\n").count(),
            1
        );
        assert_eq!(content(&bed, ".env"), "CHANGED\n");
        bed.host("git fsck --strict");
        let undone = bed.capsule.run(&["undo", "latest"]);
        assert_eq!(undone.status, 0, "{}", undone.stderr);
        assert_eq!(
            bed.host("git log -1 --format=%s; git status --porcelain"),
            "secrets\n M .env\n M sub/.env\n"
        );
    }
}

/// A command that only looks changes nothing, although the index is prepared for it.
#[test]
fn looking_is_no_change() {
    let bed = Bed::new(TRACKED);
    let answer = bed.run("git status --short").json();
    assert_eq!(answer["result"].get("changes"), None, "{answer}");
    let index = fs::read(bed.capsule.workspace().join(".git/index")).unwrap();
    let _ = bed.printed("git status");
    assert_eq!(fs::read(bed.capsule.workspace().join(".git/index")).unwrap(), index);
}

/// The same in a copy of the workspace, where no namespaces can be had.
#[test]
fn a_hidden_file_is_unchanged_in_a_copy() {
    let bed = Bed::new(TRACKED);
    let line = "git status --porcelain; git add -A; git commit -qam none; git diff HEAD --stat";
    let answer = bed.command_in_lower_tier(line);
    let stdout = answer["result"]["stdout"].as_str().unwrap();
    assert!(stdout.starts_with("On branch trunk\nnothing to commit"), "{answer}");
    assert!(!answer.to_string().contains("CHANGED"), "{answer}");
}

/// Git does not give what a file of the working tree holds: what is committed can be read, and nothing else.
#[test]
fn git_does_not_tell_what_a_hidden_file_holds() {
    let bed = Bed::new(TRACKED);
    for line in [
        "git diff",
        "git diff --no-index /dev/null .env",
        "git hash-object -w .env",
        "git stash; git stash show -p",
        "git update-index --really-refresh; git diff",
        "git add -f .env; git diff --cached",
        "git commit -qm x .env; git show",
        "git grep CHANGED",
        "git -c core.checkStat=default diff",
        "git blame .env",
        "git stash -a; git stash show -p",
        "git archive --add-file=.env HEAD",
        "git update-index --no-assume-unchanged .env; git diff",
        "rm .git/index; git add -A; git diff --cached HEAD",
        "git read-tree HEAD; git diff",
        "git checkout-index -f .env; git diff",
    ] {
        let done = bed.run(line);
        assert!(
            !format!("{}{}", done.stdout, done.stderr).contains("CHANGED\\n"),
            "{line}: {}",
            done.stdout
        );
        let objects =
            bed.host("git cat-file --batch-all-objects --batch | grep -c CHANGED || true");
        assert_eq!(objects, "0\n", "{line}");
    }
    assert_eq!(content(&bed, ".env"), "CHANGED\n");
}

/// A hidden file that is in no index is left out, as if it were ignored: git would find nothing in it that it may read, and
/// add nothing at all. The user's own list stays as it is.
#[test]
fn a_hidden_file_that_is_new_is_left_out() {
    let files =
        "mkdir sub; for f in .env sub/key.pem 'sub/[a] b.pem'; do echo SECRET > \"$f\"; done";
    let bed = Bed::new(files);
    let list = bed.host("cat .git/info/exclude; ls .git/info");
    let line = "git status -s; echo 3 > c; git add -A; git commit -qm c; echo 4 > c; git add .; \
        git commit -qm d; git ls-files; git stash -u -q; git stash pop -q; git status -s";
    for _ in 0..2 {
        assert_eq!(bed.printed("git status -s; git add -A"), "");
    }
    assert_eq!(bed.printed(line), "a\nb\nc\n");
    bed.apply();
    assert_eq!(bed.host("cat .git/info/exclude; ls .git/info"), list);
    assert_eq!(bed.host("git log --format=%s; cat .env"), "d\nc\none\nSECRET\n");
    assert_eq!(bed.host("git status -s"), "?? .env\n?? sub/\n");
    // What a command writes there stays.
    bed.printed("git status -s");
    let added = bed.run("echo more >> .git/info/exclude");
    assert_eq!(added.json()["status"], "ok", "{added:?}");
    bed.apply();
    let now = bed.host("tail -n 1 .git/info/exclude; grep -c Capsule .git/info/exclude || true");
    assert_eq!(now, "more\n0\n");
}
