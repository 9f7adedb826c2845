//! What a command may change: nothing but its own `/tmp`.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};

use crate::Test;
use crate::bed::{Bed, Rows, text};

pub(crate) const TESTS: &[Test] = &[
    ("the_workspace_is_read_only", the_workspace_is_read_only),
    ("the_system_is_read_only", the_system_is_read_only),
    ("pipes_of_the_host_are_not_written", pipes_of_the_host_are_not_written),
    ("tmp_is_private_to_a_run", tmp_is_private_to_a_run),
];

/// Attempts to change a path or its facts, as calls.
fn attempts(path: &str) -> Vec<String> {
    let folder = path.rsplit_once('/').unwrap().0;
    vec![
        format!("write {path}"),
        format!("append {path}"),
        format!("write {folder}/new"),
        format!("call {} s:{path} 0", libc::SYS_truncate),
        format!("call {} -100 s:{path} 0", libc::SYS_unlinkat),
        format!("call {} -100 s:{folder}/newfolder 511", libc::SYS_mkdirat),
        format!("call {} -100 s:{path} -100 s:{path}2 0", libc::SYS_renameat2),
        format!("call {} -100 s:{path} -100 s:/tmp/moved 0", libc::SYS_renameat2),
        format!("call {} -100 s:{path} -100 s:{path}2 0", libc::SYS_linkat),
        format!("call {} -100 s:{path} -100 s:/tmp/linked 0", libc::SYS_linkat),
        format!("call {} s:/etc -100 s:{path}2", libc::SYS_symlinkat),
        format!("call {} -100 s:{path} 511 0", libc::SYS_fchmodat),
        format!("call {} -100 s:{path} 0 0 0", libc::SYS_fchownat),
        format!("call {} -100 s:{path} 0 0", libc::SYS_utimensat),
        format!("call {} s:{path} s:user.x s:y 1 0", libc::SYS_setxattr),
        format!("call {} -100 s:{path}2 4480 0", libc::SYS_mknodat),
        format!("call {} -100 s:{path}3 49536 0", libc::SYS_mknodat),
    ]
}

fn the_workspace_is_read_only() {
    let mut bed = Bed::plain();
    let workspace = bed.workspace();
    let facts = |path: &std::path::Path| {
        let facts = fs::metadata(path).unwrap();
        (
            facts.mode(),
            facts.size(),
            facts.mtime_nsec(),
            facts.ctime_nsec(),
            facts.uid(),
            facts.nlink(),
        )
    };
    let before = (facts(&workspace), facts(&workspace.join("file")));
    let mut rows = Rows::default();
    for attempt in attempts("/workspace/file") {
        let got = bed.ask(&attempt);
        let stopped = ["EROFS", "EACCES", "EPERM", "EXDEV", "ENOTSUP"].contains(&got.as_str());
        rows.check(stopped || is_pretended(&attempt, &got), || format!("{attempt}: {got}"));
    }
    rows.end();
    assert_eq!((facts(&workspace), facts(&workspace.join("file"))), before);
    assert_eq!(fs::read_dir(&workspace).unwrap().count(), 1, "nothing is left behind");
}

/// Whether the lower tier answers that dates or owners were set, which the facts of the files disprove.
fn is_pretended(attempt: &str, answer: &str) -> bool {
    let calls = [libc::SYS_fchownat, libc::SYS_utimensat];
    let mut calls = calls.map(|number| format!("call {number} ")).into_iter();
    crate::world::current().is_lower()
        && answer == "0"
        && calls.any(|call| attempt.starts_with(&call))
}

fn the_system_is_read_only() {
    let mut bed = Bed::plain();
    let mut rows = Rows::default();
    let facts = || {
        let facts = fs::metadata("/usr/bin/env").unwrap();
        (facts.mode(), facts.uid(), facts.mtime(), facts.ctime(), facts.ctime_nsec())
    };
    let before = facts();
    for path in ["/usr/bin/env", "/etc/ld.so.cache", "/dev/null", "/probe", "/proc/self/comm"] {
        for attempt in attempts(path) {
            let got = bed.ask(&attempt);
            // Writing to the device is what it is for; its facts stay as they are.
            let device = path == "/dev/null"
                && (attempt.ends_with("d /dev/null") || attempt.ends_with("e /dev/null"));
            let stopped =
                ["EROFS", "EACCES", "EPERM", "EXDEV", "ENOENT", "EINVAL", "ENOTSUP", "ETXTBSY"]
                    .contains(&got.as_str());
            let stopped = stopped || is_pretended(&attempt, &got);
            rows.check(stopped || device, || format!("{attempt}: {got}"));
        }
    }
    rows.check(facts() == before, || "the facts of a program changed".into());
    rows.end();
}

/// A pipe in the workspace leads to a process of the host; a read-only mount alone does not keep
/// anybody from writing to it.
fn pipes_of_the_host_are_not_written() {
    let mut bed = Bed::new(
        |workspace| {
            let path = std::ffi::CString::new(workspace.join("pipe").to_str().unwrap()).unwrap();
            assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o666) }, 0);
        },
        &[],
    );
    let nonblocking_write = libc::O_WRONLY | libc::O_NONBLOCK;
    let read_write = libc::O_RDWR | libc::O_NONBLOCK;
    for flags in [nonblocking_write, read_write] {
        let got = bed.ask(&format!("call {} -100 s:/workspace/pipe {flags} 0", libc::SYS_openat));
        assert_eq!(got, "EACCES");
    }
}

fn tmp_is_private_to_a_run() {
    let mut bed =
        Bed::new(|workspace| symlink("/tmp/planted", workspace.join("to-tmp")).unwrap(), &[]);
    let answers = bed.probe(
        "write /tmp/planted\nread /workspace/to-tmp\nread /dev/shm/planted\nread /var/tmp/planted",
    );
    assert_eq!(answers, ["done", "written", "written", "written"]);
    assert_eq!(bed.ask("read /tmp/planted"), "written", "the next call of the run sees it");
    let mut other = Bed::plain();
    assert_eq!(other.ask("read /tmp/planted"), "ENOENT", "another run has a fresh one");
    assert!(!std::path::Path::new("/tmp/planted").exists());
    // Programs take orders from what lies at home, so that is a call's own.
    let planted = bed.run("/bin/sh", &["sh", "-c", "echo x > ~/.planted && cat ~/.planted"]);
    assert_eq!(text(&planted.stdout.bytes), "x\n", "{}", text(&planted.stderr.bytes));
    let again = bed.run("/bin/sh", &["sh", "-c", "ls -A ~"]);
    assert_eq!(text(&again.stdout.bytes), "", "the next call has a fresh one");
    // Whoever closes it closes it for itself alone.
    let _closed = bed.run("/bin/sh", &["sh", "-c", "chmod 0 /tmp"]);
    assert_eq!(bed.ask("read /tmp/planted"), "written");
    // Programs can be made and run there.
    let exit = bed.run("/bin/sh", &["sh", "-c", "cp /bin/true /tmp/t && /tmp/t && echo ran"]);
    assert_eq!(text(&exit.stdout.bytes), "ran\n", "{}", text(&exit.stderr.bytes));
}
