//! Direct changes: a command writes to the workspace itself, where it may.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;

use capsule_sandbox::{CommandResult, DirectWrites, SandboxError, Termination};

use crate::Test;
use crate::bed::{Bed, Rows, launch, mask, text};

pub(crate) const TESTS: &[Test] = &[
    ("what_is_open_is_written_and_nothing_else", what_is_open_is_written_and_nothing_else),
    ("what_is_held_stays_what_and_where_it_is", what_is_held_stays_what_and_where_it_is),
    ("what_is_made_directly_is_plain", what_is_made_directly_is_plain),
    ("direct_changes_are_for_one_call", direct_changes_are_for_one_call),
    ("what_cannot_be_opened_is_refused", what_cannot_be_opened_is_refused),
];

const MASKS: &[&[u8]] = &[b"a/b/.env", b"a/keys"];

fn lay(workspace: &Path) {
    for folder in ["out/deep", "src", "a/b", "a/keys", ".git/hooks", ".git/refs", "plain"] {
        fs::create_dir_all(workspace.join(folder)).unwrap();
    }
    for file in
        ["one", "src/file", "out/held", "a/b/.env", "a/keys/id", ".git/config", ".git/hooks/pre"]
    {
        fs::write(workspace.join(file), "secret").unwrap();
    }
    symlink("one", workspace.join(".envrc")).unwrap();
    symlink("plain", workspace.join(".vscode")).unwrap();
}

fn direct(open: &[&str], held: &[&str], pinned: &[&str]) -> Option<DirectWrites> {
    let all = |paths: &[&str]| paths.iter().map(Into::into).collect();
    Some(DirectWrites { writable: all(open), read_only: all(held), pinned: all(pinned) })
}

/// Everything is open but what is held.
fn all_open() -> Option<DirectWrites> {
    let held = &[".git/hooks", ".git/config", ".envrc", ".vscode", "out/held", "a/b/.env"];
    direct(&[""], held, &[".git"])
}

fn try_shell(
    bed: &mut Bed,
    line: &str,
    direct: Option<DirectWrites>,
) -> Result<CommandResult, SandboxError> {
    let mut launch = launch("/bin/sh", &["sh", "-c", line]);
    launch.direct = direct;
    launch.hidden = MASKS.iter().map(|path| mask(path)).collect();
    bed.try_run(launch)
}

fn shell(bed: &mut Bed, line: &str, direct: Option<DirectWrites>) -> CommandResult {
    try_shell(bed, line, direct).unwrap()
}

/// Kind and permissions, inode, and content.
type Facts = (u32, u64, Vec<u8>);

/// What must stay of each path.
fn facts(bed: &Bed, paths: &[&str]) -> Vec<(String, Option<Facts>)> {
    let facts = |path: &&str| {
        let at = bed.workspace().join(path);
        let facts = at.symlink_metadata().ok().map(|facts| {
            let content = if facts.is_file() { fs::read(&at).unwrap() } else { Vec::new() };
            (facts.mode(), facts.ino(), content)
        });
        ((*path).to_owned(), facts)
    };
    paths.iter().map(facts).collect()
}

/// What is held or hidden, and the folders above it.
const KEPT: &[&str] = &[
    ".git",
    ".git/hooks",
    ".git/hooks/pre",
    ".git/hooks/new",
    ".git/config",
    ".envrc",
    ".vscode",
    "out",
    "out/held",
    "a",
    "a/b",
    "a/b/.env",
    "a/keys",
    "a/keys/id",
];
/// What is not open.
const CLOSED: &[&str] = &[
    "new",
    "two",
    "other",
    "src",
    "src/file",
    "src/new",
    "src/moved",
    "src/linked",
    "src/link",
    "one",
    "plain",
];

fn what_is_open_is_written_and_nothing_else() {
    let mut bed = Bed::new(lay, MASKS);
    let workspace = bed.workspace();
    let places = || direct(&["out", "one"], &["out/held"], &[]);
    let line = "set -e; echo n > out/new; mkdir out/deep/er; mv out/new out/deep/er/m; echo 1 > one; \
                ln -s m out/deep/er/l; rm out/deep/er/l; chmod 700 out/deep; cat out/deep/er/m one";
    let exit = shell(&mut bed, line, places());
    assert_eq!(text(&exit.stdout.bytes), "n\n1\n", "{}", text(&exit.stderr.bytes));
    assert_eq!(fs::read_to_string(workspace.join("out/deep/er/m")).unwrap(), "n\n");
    assert_eq!(fs::read_to_string(workspace.join("one")).unwrap(), "1\n");
    let all = [KEPT, CLOSED].concat();
    let before = facts(&bed, &all);
    let mut rows = Rows::default();
    for line in [
        "echo x > new",
        "echo x > src/file",
        "rm -f src/file",
        "mkdir src/new",
        "mv src/file out/moved",
        "mv out/deep/er/m src/moved",
        "ln src/file out/linked",
        "ln out/deep/er/m src/linked",
        "ln -s /etc/passwd src/link",
        "chmod 777 src/file",
        "touch src/file",
        "mv out other",
        "mv src out/src",
        "rm -f one",
        "mv one two",
        "mv -f out/deep/er/m one",
        "rm -f out/held",
        "echo x > out/held",
        "mv -f out/deep/er/m out/held",
        "rm -rf out/held && echo x > out/held",
        "cat a/b/.env",
        "echo x > a/b/.env",
    ] {
        let exit = shell(&mut bed, line, places());
        rows.check(exit.termination != Termination::Exited(0), || format!("{line}: it went well"));
        let told = text(&exit.stdout.bytes);
        rows.check(!told.contains("secret"), || format!("{line}: {told}"));
        rows.check(facts(&bed, &all) == before, || format!("{line}: it changed something"));
    }
    rows.end();
}

fn what_is_held_stays_what_and_where_it_is() {
    let mut bed = Bed::new(lay, MASKS);
    let workspace = bed.workspace();
    let exit = shell(&mut bed, "set -e; echo i > .git/index; mkdir -p x/y; echo z > z", all_open());
    assert_eq!(exit.termination, Termination::Exited(0), "{}", text(&exit.stderr.bytes));
    assert_eq!(fs::read_to_string(workspace.join(".git/index")).unwrap(), "i\n");
    let before = facts(&bed, KEPT);
    let mut rows = Rows::default();
    for line in [
        "mv .git g",
        "mv .git x/g",
        "rm -rf .git/hooks",
        "mv .git/hooks .git/h",
        "mv .git/hooks/pre x/pre",
        "rm -f .git/hooks/pre",
        "echo x > .git/hooks/pre",
        "echo x > .git/hooks/new",
        "mkdir .git/hooks/new",
        "rm -f .git/config",
        "mv z .git/config",
        "ln -f z .git/config",
        "echo x >> .git/config",
        "chmod 777 .git/config",
        "ln .git/config alias && echo x > alias",
        "ln .git/hooks/pre alias",
        "mv .git/config alias",
        "rm -f .envrc",
        "mv z .envrc",
        "mv .envrc alias",
        "ln -sfn x .vscode",
        "rm .vscode",
        "rm -f out/held",
        "mv out o",
        "mv a o",
        "mv a/b o",
        "mv a/keys o",
        "rm -rf a/b/.env",
        "echo x > a/b/.env",
        "cat a/b/.env",
        "cat a/keys/id",
        "mv a/b/.env o && cat o",
        "ln a/b/.env o && cat o",
        "rmdir a/keys",
        "chmod 777 a/keys && ls a/keys && cat a/keys/id",
    ] {
        let exit = shell(&mut bed, line, all_open());
        rows.check(exit.termination != Termination::Exited(0), || format!("{line}: it went well"));
        let told = text(&exit.stdout.bytes);
        rows.check(!told.contains("secret"), || format!("{line}: {told}"));
        rows.check(facts(&bed, KEPT) == before, || format!("{line}: it changed something"));
    }
    // Two names that change places, which is no removal.
    for (one, other) in
        [(".git", "x"), (".git/config", "z"), ("a", "x"), ("a/b", "x"), ("out", "x")]
    {
        let line = format!(
            "call {} -100 s:/workspace/{one} -100 s:/workspace/{other} {}",
            libc::SYS_renameat2,
            libc::RENAME_EXCHANGE
        );
        let exit = bed.probe_with(&line, |launch| launch.direct = all_open());
        let got = text(&exit.stdout.bytes);
        let busy = format!("errno {}", libc::EBUSY);
        let stopped = [busy.as_str(), "EXDEV", "EROFS"].contains(&got.trim());
        rows.check(stopped, || format!("{one} and {other}: {got}"));
        rows.check(facts(&bed, KEPT) == before, || format!("{one} and {other}: changed"));
    }
    // All that is open goes, and nothing that is held or hidden.
    let _ = shell(&mut bed, "rm -rf .git a out .envrc .vscode", all_open());
    let after = facts(&bed, KEPT);
    rows.check(after == before, || format!("{after:?}"));
    let open = ["out/deep", ".git/index", ".git/refs"].map(|path| workspace.join(path).exists());
    rows.check(open == [false; 3], || format!("what is open was not removed: {open:?}"));
    rows.end();
}

/// What no call may leave in the workspace: what others would run as its owner, or wait at.
fn what_is_made_directly_is_plain() {
    let mut bed = Bed::new(lay, MASKS);
    let kept = ["out/new", "one"];
    let before = facts(&bed, &kept);
    let create = libc::O_CREAT | libc::O_WRONLY;
    let new = "/workspace/out/new";
    let mut rows = Rows::default();
    for (line, expected) in [
        (format!("call {} -100 s:{new} {create} 2541", libc::SYS_openat), "EPERM"),
        (format!("call {} -100 s:{new} 0 24", libc::SYS_openat2), "ENOSYS"),
        (format!("call {} -100 s:{new} 36333 0", libc::SYS_mknodat), "EPERM"),
        (format!("call {} -100 s:{new} 4480 0", libc::SYS_mknodat), "EACCES"),
        (format!("call {} -100 s:{new} 49536 0", libc::SYS_mknodat), "EACCES"),
        (format!("call {} -100 s:{new} 8576 259", libc::SYS_mknodat), "EPERM"),
        (format!("call {} -100 s:/workspace/one 2541 0", libc::SYS_fchmodat), "EPERM"),
        (format!("call {} -100 s:/workspace/one 1517 0", libc::SYS_fchmodat), "EPERM"),
        ("call 452 -100 s:/workspace/one 2541 0".to_owned(), "EPERM"),
        // It would leave a device in the place of what it moves.
        (format!("call {} -100 s:/workspace/one -100 s:{new} 4", libc::SYS_renameat2), "EINVAL"),
    ] {
        let exit = bed.probe_with(&line, |launch| launch.direct = all_open());
        let got = text(&exit.stdout.bytes);
        rows.check(got.trim() == expected, || format!("{line}: {got}"));
    }
    rows.end();
    assert_eq!(facts(&bed, &kept), before, "nothing is left behind");
}

fn direct_changes_are_for_one_call() {
    let mut bed = Bed::new(lay, MASKS);
    let mounts = || fs::read_to_string("/proc/self/mountinfo").unwrap();
    let before = mounts();
    let mut rows = Rows::default();
    for round in 0..3 {
        let exit = shell(&mut bed, &format!("echo {round} > w{round}"), all_open());
        rows.check(exit.termination == Termination::Exited(0), || text(&exit.stderr.bytes));
        for line in ["write /workspace/new", "append /workspace/one", "write /workspace/out/new"] {
            let got = bed.ask(line);
            rows.check(["EROFS", "EACCES"].contains(&got.as_str()), || format!("{line}: {got}"));
        }
        // Another call has other places.
        let exit = shell(&mut bed, "echo x > new", direct(&["out"], &[], &[]));
        rows.check(exit.termination != Termination::Exited(0), || {
            "the places of the call before".into()
        });
    }
    rows.end();
    assert_eq!(mounts(), before);
    let names: Vec<String> = fs::read_dir(bed.workspace())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(names.len(), 11, "nothing is left behind: {names:?}");
}

fn what_cannot_be_opened_is_refused() {
    let mut bed = Bed::new(lay, MASKS);
    for open in
        ["absent", "absent/deeper", ".vscode/x", "src/file/x", "../sibling", "/etc", "a/keys/id"]
    {
        let refused = try_shell(&mut bed, "true", direct(&[open], &[], &[])).unwrap_err();
        assert!(refused.to_string().contains("open places"), "{open}: {refused}");
    }
    // What was to be held and is gone holds nobody up.
    let exit = shell(&mut bed, "echo x > new", direct(&[""], &["gone", "gone/too"], &["gone"]));
    assert_eq!(exit.termination, Termination::Exited(0), "{}", text(&exit.stderr.bytes));
    let many: Vec<String> = (0..5_000).map(|number| format!("f{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let refused = try_shell(&mut bed, "true", direct(&[""], &many, &[])).unwrap_err();
    assert!(refused.to_string().contains("too many"), "{refused}");
    let (mut staged, _shared) = Bed::staged(lay, &[]);
    let refused = try_shell(&mut staged, "true", all_open()).unwrap_err();
    assert!(matches!(refused, SandboxError::Setup { .. }), "{refused}");
}
