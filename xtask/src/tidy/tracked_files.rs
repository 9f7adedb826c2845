//! What git keeps: the lock files, nothing large, nothing that is made.

use crate::repository::Repository;
use crate::tidy::TidyFinding;

/// The largest file; larger ones make every clone slower for ever.
const MAX_FILE_BYTES: u64 = 1_000_000;
/// What pins the dependencies.
const LOCK_FILES: &[&str] = &["Cargo.lock", "bench/Cargo.lock"];
/// Endings of files that programs make.
const GENERATED_SUFFIXES: &[&str] = &[
    ".snap.new",
    ".pending-snap",
    ".profraw",
    ".profdata",
    ".db",
    ".db-wal",
    ".db-shm",
    ".sqlite",
    ".orig",
    ".rej",
    ".pyc",
    ".whl",
];

pub(super) fn check(house: &Repository) -> Vec<TidyFinding> {
    let tree = &house.tree;
    let mut found = Vec::new();
    for lock in LOCK_FILES {
        if !tree.files.iter().any(|file| file.path == *lock && file.tracked) {
            found.push(TidyFinding::at(
                *lock,
                "is not tracked; builds would differ from day to day",
            ));
        }
    }
    for file in &tree.files {
        if file.bytes > MAX_FILE_BYTES {
            let what = format!("{} bytes; at most {MAX_FILE_BYTES}", file.bytes);
            found.push(TidyFinding::at(&file.path, what));
        }
        if GENERATED_SUFFIXES.iter().any(|end| file.path.ends_with(end)) {
            found.push(TidyFinding::at(&file.path, "is made by a program; do not track it"));
        }
    }
    for path in &tree.tracked_although_ignored {
        found.push(TidyFinding::at(path, "is tracked although .gitignore names it"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_should_not_be_kept_is_found() {
        let large = "x".repeat(1_000_001);
        let mut house = Repository::from_files(&[
            ("Cargo.lock", ""),
            ("bench/Cargo.lock", ""),
            ("a.md", &large),
            ("x.snap.new", ""),
        ]);
        house.tree.tracked_although_ignored.push("target/x".to_owned());
        assert_eq!(check(&house).len(), 3);
    }

    #[test]
    fn a_lock_file_that_is_not_tracked_is_found() {
        let mut house = Repository::from_files(&[("Cargo.lock", ""), ("bench/Cargo.lock", "")]);
        house.tree.files[1].tracked = false;
        assert_eq!(check(&house).len(), 1);
    }
}
