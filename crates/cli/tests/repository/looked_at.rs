//! A repository that somebody only looks at: git notes in the index how files look, and that is no change.

use std::time::Duration;

use super::*;

/// What a person, a prompt or an editor does all the time; here so that the index is written anew.
const LOOK: &str = "cp .git/index /tmp/index.$$; touch src/2 src/3; git status --short >/dev/null; \
                    ! cmp -s .git/index /tmp/index.$$; rm /tmp/index.$$";

/// W6: a run is applied, undone and undone again although git was asked for the state in between, and
/// everything is then as it was.
#[test]
fn what_was_only_looked_at_is_applied_and_undone() {
    let bed = Bed::new("");
    let tree = || bed.host("git rev-parse HEAD; git status --short; git ls-files -s");
    let before = tree();
    let ran = bed.inside("echo a >> src/1; git commit -qam e; echo b > src/b; git add src/b");
    assert_eq!(ran.status, 0, "{}", told(&ran));
    bed.host(LOOK);
    let applied = bed.apply();
    assert_eq!(applied.status, 0, "{}", told(&applied));
    let after = tree();
    assert!(after != before && after.contains("src/b"), "{after}");
    for expected in [&before, &after, &before] {
        bed.host(LOOK);
        let undone = bed.capsule.run(&["undo", "latest"]);
        assert_eq!(undone.status, 0, "{}", told(&undone));
        assert_eq!(&tree(), expected);
    }
    bed.host("git fsck --strict");
}

/// W6: git is asked for the state while a run goes on, before it changes the index.
#[test]
fn what_is_looked_at_meanwhile_is_applied() {
    for (meanwhile, status) in [(LOOK, 0), ("echo x > src/x; git add src/x", 3)] {
        let bed = Bed::new("");
        std::thread::scope(|scope| {
            let run = scope.spawn(|| bed.inside("sleep 3; echo a >> src/1; git commit -qam e"));
            std::thread::sleep(Duration::from_millis(1_500));
            bed.host(meanwhile);
            let ran = run.join().unwrap();
            assert_eq!(ran.status, status, "{meanwhile}: {}", told(&ran));
        });
        let applied = bed.apply();
        assert_eq!(applied.status, status, "{meanwhile}: {}", told(&applied));
    }
}

/// What somebody really changed in the index is theirs.
#[test]
fn what_was_added_meanwhile_is_a_conflict() {
    for change in [
        "echo x > src/x; git add src/x",
        "git rm -q --cached src/2",
        "git update-index --chmod=+x src/3",
    ] {
        let bed = Bed::new("");
        let ran = bed.inside("echo a >> src/1; git commit -qam e");
        assert_eq!(ran.status, 0, "{}", told(&ran));
        bed.host(change);
        let applied = bed.apply();
        assert!(applied.stderr.contains("change.conflict"), "{change}: {}", told(&applied));
        bed.host("git reset -q -- .; rm -f src/x; git checkout -q -- .");
        bed.host(LOOK);
        let applied = bed.apply();
        assert_eq!(applied.status, 0, "{change}: {}", told(&applied));
        bed.host(change);
        let undone = bed.capsule.run(&["undo", "latest"]);
        assert!(undone.stderr.contains("undo.conflict"), "{change}: {}", told(&undone));
    }
}
