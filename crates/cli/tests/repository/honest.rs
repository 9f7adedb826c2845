//! What people and agents do with a repository every day.

use super::*;

/// A name, what the host has beside the rest, what is done in the sandbox, and what holds on the host once
/// it is applied.
type Row = (&'static str, &'static str, &'static str, &'static str);

const ROWS: &[Row] = &[
    (
        "a commit",
        "",
        "echo x > src/x; git add src/x; git commit -qm x",
        "git cat-file -e HEAD:src/x",
    ),
    (
        "a commit of all",
        "echo x >> src/2",
        "echo y >> src/3; git commit -qam y",
        "git diff --quiet HEAD",
    ),
    (
        "a commit of what the user changed where it is protected",
        "echo mine > .github/workflows/ci.yml; mkdir .vscode; echo {} > .vscode/settings.json; chmod +x .husky/pre-commit",
        "git add -A; git commit -qm mine",
        "git show HEAD:.github/workflows/ci.yml | grep -q mine; git cat-file -e HEAD:.vscode/settings.json",
    ),
    (
        "a removal of what the user removed where it is protected",
        "rm .husky/pre-commit",
        "git commit -qam gone",
        "! git cat-file -e HEAD:.husky/pre-commit 2>/dev/null",
    ),
    (
        "another message",
        "",
        "git commit -q --amend -m other",
        "git log -1 --format=%s | grep -q other",
    ),
    (
        "a new branch",
        "",
        "git checkout -q -b topic; echo x > src/x; git add .; git commit -qm x",
        "test \"$(git symbolic-ref HEAD)\" = refs/heads/topic",
    ),
    (
        "a branch of theirs by its own name",
        "",
        "git branch review origin/theirs",
        "git rev-parse review",
    ),
    (
        "a stash",
        "",
        "echo x >> src/1; echo y > src/y; git stash push -qu; git stash list",
        "git stash pop -q; grep -q x src/1; test -f src/y",
    ),
    (
        "two stashes, one of them taken out",
        "echo s >> src/2; git stash -q",
        "echo x >> src/1; git stash -q; git stash pop -q stash@{1}",
        "git stash list | wc -l | grep -q 1; grep -q s src/2",
    ),
    (
        "a merge",
        "git checkout -q -b topic HEAD~1; echo t > src/t; git add .; git commit -qm t; git checkout -q main",
        "git merge -q --no-edit topic",
        "test -f src/t; git rev-parse HEAD^2",
    ),
    (
        "a merge without a commit of its own",
        "git checkout -q -b topic; echo t > src/t; git add .; git commit -qm t; git checkout -q main",
        "git merge -q --ff-only topic",
        "test -f src/t",
    ),
    (
        "a merge that waits for a person",
        "git checkout -q -b topic; echo t > src/1; git commit -qam t; git checkout -q main; echo m > src/1; git commit -qam m",
        "git merge -q topic || true",
        "test -f .git/MERGE_HEAD; git ls-files -u | grep -q src/1; git merge --abort",
    ),
    (
        "a conflict that was resolved",
        "git checkout -q -b topic; echo t > src/1; git commit -qam t; git checkout -q main; echo m > src/1; git commit -qam m",
        "git merge -q topic || true; echo tm > src/1; git add src/1; git commit -qm tm",
        "git rev-parse HEAD^2; git diff --quiet",
    ),
    (
        "commits on another base",
        "git checkout -q -b topic; echo t > src/t; git add .; git commit -qm t; echo u > src/u; git add .; git commit -qm u",
        "git checkout -q main; git checkout -q -b copy; git cherry-pick topic~1 topic >/dev/null",
        "test -f src/t; test -f src/u; git diff --quiet",
    ),
    (
        "the user's own commits where it is protected, on another base",
        "git checkout -q -b topic; echo own > .github/workflows/ci.yml; git commit -qam ci; echo own2 > .github/workflows/ci.yml; git commit -qam ci2; git checkout -q main; echo m > src/m; git add .; git commit -qm m; git checkout -q topic",
        "git rebase -q main",
        "git merge-base --is-ancestor main topic; git show topic:.github/workflows/ci.yml | grep -q own2",
    ),
    (
        "a commit taken back",
        "echo x > src/x; git add .; git commit -qm x",
        "git revert --no-edit HEAD >/dev/null",
        "test ! -e src/x",
    ),
    (
        "the last commit taken apart, which changed what is protected",
        "",
        "git reset -q HEAD~1",
        "git log --format=%s | grep -qx first; ! git diff --quiet",
    ),
    (
        "back to the commit before",
        "git commit -qm empty --allow-empty; echo x > src/x; git add .; git commit -qm x",
        "git reset -q --hard HEAD~1",
        "test ! -e src/x",
    ),
    (
        "another branch of the user's",
        "git branch old HEAD~0; echo x > src/x; git add .; git commit -qm x",
        "git switch -q old",
        "test ! -e src/x; git symbolic-ref HEAD | grep -q old",
    ),
    (
        "a search for a commit",
        "for n in 1 2 3 4 5 6; do echo $n > src/n; git add .; git commit -qm $n; done",
        "git bisect start -q HEAD HEAD~5 >/dev/null; git bisect good >/dev/null",
        "git bisect reset >/dev/null; git symbolic-ref HEAD | grep -q main",
    ),
    ("a tag", "", "git tag -a -m v1 v1; git tag light", "git describe --exact-match"),
    ("a note", "", "git notes add -m note HEAD", "git notes show HEAD | grep -q note"),
    (
        "a file that is moved and one that goes",
        "",
        "git mv src/1 src/one; git rm -q src/2; git commit -qm moved",
        "test -f src/one; test ! -e src/2",
    ),
    (
        "a file that is to be added",
        "",
        "echo x > src/x; git add -N src/x",
        "git ls-files | grep -q src/x",
    ),
    (
        "all packed anew",
        "",
        "git gc -q; git fsck --strict",
        "ls .git/objects/pack/*.pack; test -f .git/objects/info/commit-graph; git commit-graph verify",
    ),
    (
        "a commit to what is packed, in differences",
        "for n in 1 2 3 4 5 6 7 8 9; do seq $n 2000 > src/1; git commit -qam $n; done; git gc -q",
        "echo x >> src/1; git commit -qam x",
        "git show HEAD:src/1 | tail -1 | grep -q x",
    ),
    (
        "references in a list",
        "git branch a; git branch b; git tag t; git pack-refs --all",
        "git pack-refs --all; git branch -D a; echo x > src/x; git add .; git commit -qm x; git pack-refs --all",
        "git rev-parse b t; ! git rev-parse -q --verify a",
    ),
    (
        "an index of another version",
        "git update-index --index-version 4",
        "echo x > src/x; git add .; git commit -qm x",
        "git ls-files --debug | grep -q src/x",
    ),
    (
        "a part of the working tree",
        "git sparse-checkout set --cone --sparse-index src",
        "echo x > src/x; git add .; git commit -qm x",
        "git ls-files | grep -q .husky/pre-commit; git cat-file -e HEAD:.husky/pre-commit",
    ),
    (
        "names by the longer digest",
        "rm -rf .git; git init -q -b main --object-format=sha256 .; git config user.name a; git config user.email a@b; git add .; git commit -qm one",
        "echo x > src/x; git add .; git commit -qm x; git gc -q",
        "git cat-file -e HEAD:src/x",
    ),
    (
        "objects of another repository",
        "git init -q lender; git -C lender fetch -q .. main; echo ../../lender/.git/objects > .git/objects/info/alternates; git repack -qadl; rm -rf lender/.git/hooks; printf lender > .git/info/exclude",
        "echo x > src/x; git add src; git commit -qm x",
        "git cat-file -e HEAD:src/x",
    ),
    (
        "a repository within",
        "git init -q -b main vendor/lib; cd vendor/lib; git config user.name a; git config user.email a@b; echo x > x; git add .; git commit -qm x; cd ../..; printf vendor > .git/info/exclude",
        "cd vendor/lib; echo y > y; git add .; git commit -qm y",
        "git -C vendor/lib cat-file -e HEAD:y",
    ),
    (
        "what a submodule is to be",
        "git init -q -b main ../other; git -C ../other -c user.name=a -c user.email=a@b commit -q --allow-empty -m o; git -C ../other -c user.name=a -c user.email=a@b commit -q --allow-empty -m p; git -c protocol.file.allow=always submodule -q add ../other lib; git commit -qm lib",
        "git update-index --cacheinfo 160000,$(git -C lib rev-parse HEAD~1),lib; git commit -qm other",
        "git ls-tree HEAD lib | grep -q $(git -C lib rev-parse HEAD~1)",
    ),
    (
        "files that git does not keep itself",
        "",
        "printf x > x; d=$(sha256sum x | cut -c-64); p=.git/lfs/objects/$(echo $d | cut -c1-2)/$(echo $d | cut -c3-4); mkdir -p $p; mv x $p/$d",
        "ls .git/lfs/objects/*/*/*",
    ),
    (
        "a shallow repository",
        "git clone -q --depth 1 file://$PWD ../shallow; rm -rf .git; mv ../shallow/.git .git; git config user.name a; git config user.email a@b",
        "echo x > src/x; git add src; git commit -qm x",
        "git cat-file -e HEAD:src/x",
    ),
    (
        "a branch with nothing before it",
        "",
        "git checkout -q --orphan fresh; git commit -qm fresh",
        "test $(git rev-list --count HEAD) = 1",
    ),
];

/// C23: a repository takes what git does with it, and the host's git finds it sound.
#[test]
fn ordinary_work_is_applied() {
    let wrong = run_in_parallel(ROWS.to_vec(), |(what, host, inside, then)| {
        let bed = Bed::new(host);
        let ran = bed.inside(inside);
        if ran.status != 0 {
            return Some(format!("{what}: {}", told(&ran)));
        }
        let applied = bed.apply();
        if applied.status != 0 {
            return Some(format!("{what}: {}", told(&applied)));
        }
        let sound = bed.on_host("git fsck --strict --no-dangling");
        let holds = bed.on_host(then);
        let wrong = [sound, holds].into_iter().find(|ran| !ran.status.success());
        wrong.map(|ran| format!("{what}: {}", String::from_utf8_lossy(&ran.stderr)))
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
