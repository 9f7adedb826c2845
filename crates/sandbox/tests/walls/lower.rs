//! What the lower tier holds in its own way, where the tests of the upper one ask for a view, a
//! `/proc` or a file system of one's own. Run where that tier serves, and elsewhere to show that it
//! does not serve there.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use capsule_base::root_names::RootNames;
use capsule_core::confinement::{ResourceLimit, SandboxTier};
use capsule_sandbox::{SandboxBackend as _, SandboxError, Termination};
use rustix::process::{Pid, Signal, kill_process};

use crate::Test;
use crate::bed::{Bed, Rows, launch, mask, text};
use crate::life::{processes_with, wait_until};
use crate::world::{self, World};

pub(crate) const TESTS: &[Test] = &[
    ("the_tier_is_named", the_tier_is_named),
    ("lower_nothing_outside_is_read", nothing_outside_is_read),
    ("lower_nothing_outside_is_changed", lower_nothing_outside_is_changed),
    ("lower_hidden_content_is_not_read", hidden_content_is_not_read),
    ("lower_other_processes_are_out_of_reach", other_processes_are_out_of_reach),
    ("lower_no_privilege_is_left", no_privilege_is_left),
    ("lower_only_three_descriptors", only_three_descriptors),
    ("lower_sockets_and_queues_are_not_made", sockets_and_queues_are_not_made),
    ("lower_what_is_written_is_gone", what_is_written_is_gone),
    ("lower_files_are_moved_between_folders", files_are_moved_between_folders),
    ("lower_tmp_is_bounded", tmp_is_bounded),
    ("lower_a_bomb_ends_at_once", a_bomb_ends_at_once),
    ("lower_nothing_outlives_its_executor", nothing_outlives_its_executor),
    ("lower_nothing_outlives_a_first_process_that_is_killed", nothing_outlives_a_killed_first),
    ("lower_leftovers_are_swept", leftovers_are_swept),
    ("lower_files_are_touched_and_unpacked", lower_files_are_touched_and_unpacked),
];

/// Tests whose subject does not exist there.
const OTHERS: &[&str] = &[
    // A private view: there the workspace is where it is.
    "a_workspace_is_seen_at_its_own_path",
    "every_name_of_a_root_leads_to_it",
    "what_is_hidden_is_hidden_at_every_path",
    "changes_are_staged_at_its_own_path",
    "tmp_stays_private_around_a_workspace",
    "no_mount_stands_on_the_sandbox",
    "masks_can_come_later",
    "mounts_in_the_workspace_are_hidden",
    "a_replaced_file_can_be_hidden_again",
    "programs_outside_system_folders_can_be_shown",
    // A private network, account and machine: those of the host are closed there.
    "a_call_has_a_loopback_of_its_own",
    "interfaces_are_asked_for_and_not_changed",
    "a_call_has_an_account",
    "a_call_sees_its_own_limits",
    "a_call_makes_terminals",
    "changes_are_watched_and_nothing_else",
    "the_loopback_of_the_host_is_another",
    // Nothing is staged.
    "changes_are_collected",
    "only_calls_that_may_write_do",
    "one_view_for_both_sides",
    "what_is_hidden_stays_hidden",
    "the_host_is_not_reached_through_it",
    "sockets_of_a_call_work",
    "sockets_of_the_host_lead_nowhere",
    // What is hidden is not in a copy there; the tests of the binary show it.
    "a_copy_is_written_in_its_place",
    // Nothing is changed directly.
    "what_is_open_is_written_and_nothing_else",
    "what_is_held_stays_what_and_where_it_is",
    "what_is_made_directly_is_plain",
    "direct_changes_are_for_one_call",
    "what_cannot_be_opened_is_refused",
    "what_is_held_is_not_redirected",
    // It goes where no namespace can be made.
    "nothing_runs_without_user_namespaces",
];

pub(crate) fn can_try(name: &str, world: World) -> bool {
    match world.is_lower() {
        true => !OTHERS.contains(&name),
        false => !name.starts_with("lower_"),
    }
}

/// W16: programs that set dates, owners and permissions of what they wrote do not fail; none is set.
fn lower_files_are_touched_and_unpacked() {
    let lay = |workspace: &Path| {
        fs::create_dir(workspace.join("d")).unwrap();
        fs::write(workspace.join("d/f"), "content").unwrap();
        fs::set_permissions(workspace.join("d/f"), fs::Permissions::from_mode(0o755)).unwrap();
    };
    let mut bed = Bed::copied(lay, &[]);
    let mut rows = Rows::default();
    for line in [
        "touch z && test -e z",
        "touch -d 2001-01-01 d/f",
        "cp -r d e && cat e/f && test -x e/f",
        "cp -p d/f h && test -x h && cp -a d i && test -x i/f",
        "sed -i s/content/changed/ h && grep changed h",
        "gzip -k z && test -e z.gz",
        "git init -q g && test -d g/.git",
        "mv d/f d/g && cat d/g && mv d/g d/f",
        "tar cf t.tar d && mkdir out && tar xf t.tar -C out && cat out/d/f && test -x out/d/f",
    ] {
        let result = bed.write(line);
        rows.check(result.termination == Termination::Exited(0), || {
            format!("{line}: {}", text(&result.stderr.bytes))
        });
    }
    // A program that asks for nothing but permissions needs them, and is told.
    let refused = bed.write("chmod 600 d/f");
    rows.check(refused.termination != Termination::Exited(0), || "chmod".into());
    let copy = bed.changes().join("d/f");
    let mode = fs::metadata(&copy).unwrap().permissions().mode();
    rows.check(mode & 0o777 == 0o755, || format!("{mode:o}"));
    rows.end();
}

/// Among those that may be changed, and nowhere else.
fn files_are_moved_between_folders() {
    const MOVES: &str = "mkdir a b && echo x > a/f && ln a/f b/g && \
        perl -e 'rename q(a/f), q(b/f) or die qq(rename: $!)' && cat b/f b/g";
    let lay = |workspace: &Path| {
        fs::create_dir(workspace.join("kept")).unwrap();
        fs::write(workspace.join("kept/file"), "content").unwrap();
        std::os::unix::fs::symlink("nowhere", workspace.join("link")).unwrap();
    };
    // A link whose target is not there is as good as hidden.
    let mut bed = Bed::copied(lay, &[b"link"]);
    let exit = bed.write(MOVES);
    assert_eq!(
        (exit.termination, text(&exit.stdout.bytes).as_str()),
        (Termination::Exited(0), "x\nx\n")
    );
    let mut bed = Bed::new(lay, &[]);
    let script = format!("cd \"$TMPDIR\" && {MOVES}");
    let exit = bed.run("/bin/sh", &["sh", "-c", &script]);
    let errors = text(&exit.stderr.bytes);
    assert_eq!(
        (exit.termination, text(&exit.stdout.bytes).as_str()),
        (Termination::Exited(0), "x\nx\n"),
        "{errors}"
    );
    let out = "mkdir \"$TMPDIR/a\"; ln kept/file \"$TMPDIR/a/f\"; \
        perl -e 'rename q(kept/file), q(kept/other) or exit 7; exit 0'";
    let exit = bed.run("/bin/sh", &["sh", "-c", out]);
    assert_eq!(exit.termination, Termination::Exited(7), "{}", text(&exit.stdout.bytes));
    assert!(fs::symlink_metadata(bed.workspace().join("kept/file")).unwrap().len() == 7);
}

/// The floor that the deciding process names is the floor.
fn the_tier_is_named() {
    let mut bed = Bed::plain();
    let walls = bed.run("/bin/true", &["true"]).sandbox_status;
    assert_eq!(walls.tier, world::current().floor());
    assert!(walls.meets(SandboxTier::Basic));
    assert_eq!(walls.meets(SandboxTier::Full), !world::current().is_lower());
    let mut executor = capsule_sandbox::Executor::start().unwrap();
    let workspace = fs::File::open(bed.workspace()).unwrap().into();
    let entered = executor.enter(capsule_sandbox::SandboxView {
        git: capsule_sandbox::GitFiles::default(),
        floor: SandboxTier::Full,
        workspace,
        root_names: RootNames::default(),
        staging: None,
        hidden: Vec::new(),
        programs: Vec::new(),
        toolchains: Vec::new(),
        repository: None,
    });
    assert_eq!(entered.is_ok(), !world::current().is_lower(), "{entered:?}");
    if let Err(error) = entered {
        assert!(matches!(error, SandboxError::Unavailable { .. }), "{error:?}");
    }
}

/// Where something is that must be left alone: the host's, the sibling of the workspace, the test's.
fn outside(bed: &Bed) -> Vec<String> {
    let sibling = bed.workspace().parent().unwrap().join("sibling");
    ["/etc/passwd", "/etc/group", "/etc/hosts", "/proc/self/environ", "/proc/1/cmdline"]
        .into_iter()
        .map(str::to_owned)
        .chain([
            sibling.to_str().unwrap().to_owned(),
            format!("{}/../sibling", bed.workspace().display()),
            format!("/proc/{}/cmdline", std::process::id()),
            format!("/proc/{}/environ", bed.executor.id()),
        ])
        .collect()
}

fn nothing_outside_is_read() {
    let mut bed = Bed::plain();
    let mut rows = Rows::default();
    for path in outside(&bed) {
        let read = bed.ask(&format!("read {path}"));
        rows.check(read == "EACCES", || format!("read {path}: {read}"));
        let run = bed.ask(&format!("exec {path}"));
        rows.check(run == "EACCES", || format!("exec {path}: {run}"));
    }
    let parent = bed.workspace().parent().unwrap().to_str().unwrap().to_owned();
    for path in ["/", "/etc", "/home", "/root", "/var", "/run", "/proc", "/sys", "/dev", &parent] {
        let listed = bed.ask(&format!("list {path}"));
        // Some of these names are there to be read: only names, and only of the configuration.
        rows.check(listed == "EACCES", || format!("list {path}: {listed}"));
    }
    // Links of the workspace lead to the same places.
    std::os::unix::fs::symlink("/etc/passwd", bed.workspace().join("absolute")).unwrap();
    std::os::unix::fs::symlink("../sibling", bed.workspace().join("relative")).unwrap();
    for link in ["absolute", "relative"] {
        let got = bed.ask(&format!("read /workspace/{link}"));
        rows.check(got == "EACCES", || format!("{link}: {got}"));
    }
    rows.check(bed.ask("read /workspace/file") == "content", || "the workspace".into());
    rows.end();
}

/// What is known of files from outside: kind and permissions, owner, dates and content.
fn facts(paths: &[PathBuf]) -> BTreeMap<PathBuf, String> {
    paths
        .iter()
        .map(|path| {
            let facts = fs::symlink_metadata(path).unwrap();
            let told = format!(
                "{:o} {}:{} {}.{} {:?}",
                facts.mode(),
                facts.uid(),
                facts.gid(),
                facts.mtime(),
                facts.mtime_nsec(),
                fs::read(path).ok()
            );
            (path.clone(), told)
        })
        .collect()
}

/// Neither content nor permissions, owners, dates, attributes or names; not of the workspace, and not
/// of anything else of this user.
fn lower_nothing_outside_is_changed() {
    let mut bed = Bed::plain();
    fs::create_dir(bed.workspace().join("folder")).unwrap();
    let parent = bed.workspace().parent().unwrap().to_owned();
    let all = [
        parent.clone(),
        parent.join("sibling"),
        bed.workspace(),
        bed.workspace().join("file"),
        bed.workspace().join("folder"),
    ];
    let before = facts(&all);
    let mut rows = Rows::default();
    for path in &all {
        let path = path.to_str().unwrap();
        let (at, own) = (libc::AT_FDCWD, "s:user.x s:y 1 0");
        for (what, question) in [
            ("write", format!("write {path}")),
            ("append", format!("append {path}")),
            ("make", format!("write {path}-new")),
            ("make in", format!("write {path}/new")),
            ("truncate", format!("call {} s:{path} 0", libc::SYS_truncate)),
            ("mkdir", format!("call {} {at} s:{path}-new 511", libc::SYS_mkdirat)),
            ("mkdir in", format!("call {} {at} s:{path}/new 511", libc::SYS_mkdirat)),
            ("fifo in", format!("call {} {at} s:{path}/new 4516 0", libc::SYS_mknodat)),
            ("link in", format!("call {} s:x {at} s:{path}/new", libc::SYS_symlinkat)),
            ("unlink", format!("call {} {at} s:{path} 0", libc::SYS_unlinkat)),
            ("rmdir", format!("call {} {at} s:{path} 512", libc::SYS_unlinkat)),
            ("rename", format!("call {} {at} s:{path} {at} s:{path}2 0", libc::SYS_renameat2)),
            ("take", format!("call {} {at} s:{path} {at} s:/tmp/x 0", libc::SYS_renameat2)),
            ("hard link", format!("call {} {at} s:{path} {at} s:/tmp/x 0", libc::SYS_linkat)),
            ("chmod", format!("call {} {at} s:{path} 511", libc::SYS_fchmodat)),
            #[cfg(target_arch = "x86_64")]
            ("old chmod", format!("call {} s:{path} 511", libc::SYS_chmod)),
            ("fchmodat2", format!("call 452 {at} s:{path} 511 0")),
            ("chown", format!("call {} {at} s:{path} 1 1 0", libc::SYS_fchownat)),
            ("touch", format!("call {} {at} s:{path} 0 0", libc::SYS_utimensat)),
            ("setxattr", format!("call {} s:{path} {own}", libc::SYS_setxattr)),
            ("lsetxattr", format!("call {} s:{path} {own}", libc::SYS_lsetxattr)),
            ("removexattr", format!("call {} s:{path} s:user.x", libc::SYS_removexattr)),
            ("watch", format!("call {} 0", libc::SYS_inotify_init1)),
        ] {
            let got = bed.ask(&question);
            let stopped = ["EACCES", "EPERM", "ENOSYS", "EXDEV", "ENOTDIR", "ENOENT", "ENOTSUP"];
            let also = ["errno 21", "errno 17", "errno 39", "errno 16", "EINVAL"];
            let stopped = stopped.contains(&got.as_str()) || also.contains(&got.as_str());
            // Answered as done; the facts below say that it was not.
            let is_pretended = ["chown", "touch", "old chmod"].contains(&what) && got == "0";
            rows.check(stopped || is_pretended, || format!("{what} {path}: {got}"));
        }
    }
    // By descriptor, too: the file is open to be read.
    let held = bed.run(
        "/usr/bin/perl",
        &["perl", "-e", "open F, '<', 'file'; print chmod(0777, F) + utime(1, 1, F)"],
    );
    rows.check(text(&held.stdout.bytes) == "2", || text(&held.stdout.bytes));
    let after = facts(&all);
    rows.check(after == before, || format!("{before:#?}\nis now\n{after:#?}"));
    rows.end();
}

fn hidden_content_is_not_read() {
    let lay = |workspace: &Path| {
        fs::create_dir_all(workspace.join("a/deep")).unwrap();
        fs::create_dir_all(workspace.join("secrets")).unwrap();
        for name in ["a/.env", "a/open", "a/deep/open", "secrets/key", "top"] {
            fs::write(workspace.join(name), "content").unwrap();
        }
        std::os::unix::fs::symlink("a/.env", workspace.join("link")).unwrap();
    };
    let mut bed = Bed::new(lay, &[b"a/.env", b"secrets"]);
    let mut rows = Rows::default();
    for (path, readable) in [
        ("a/.env", false),
        ("a/../a/.env", false),
        ("link", false),
        ("secrets/key", false),
        ("a/open", true),
        ("a/deep/open", true),
        ("top", true),
    ] {
        let got = bed.ask(&format!("read /workspace/{path}"));
        rows.check(got == if readable { "content" } else { "EACCES" }, || format!("{path}: {got}"));
    }
    // Nor what is written beside the content.
    let attribute = format!("call {} s:/workspace/a/.env s:user.x b:64 64", libc::SYS_getxattr);
    let list = format!("call {} s:/workspace/a/.env b:64 64", libc::SYS_listxattr);
    for question in [attribute, list] {
        let got = bed.ask(&question);
        rows.check(got == "ENOTSUP", || format!("{question}: {got}"));
    }
    // Hidden for one call only, as the rule of a program can say.
    let hidden = bed.probe_with("read /workspace/top\nread /workspace/a/open", |launch| {
        launch.hidden = vec![mask(b"top")];
    });
    assert_eq!(text(&hidden.stdout.bytes), "EACCES\ncontent\n");
    assert_eq!(bed.ask("read /workspace/top"), "content");
    rows.end();
}

fn other_processes_are_out_of_reach() {
    let mut bed = Bed::plain();
    let mut rows = Rows::default();
    let mut victim = Command::new("/bin/sleep").arg("60").spawn().unwrap();
    for other in [std::process::id(), bed.executor.id(), victim.id()] {
        for (what, question) in [
            ("kill", format!("call {} {other} 9", libc::SYS_kill)),
            ("signal 0", format!("call {} {other} 0", libc::SYS_kill)),
            ("tkill", format!("call {} {other} 9", libc::SYS_tkill)),
            ("tgkill", format!("call {} {other} {other} 9", libc::SYS_tgkill)),
            ("queue", format!("call {} {other} 9 b:128", libc::SYS_rt_sigqueueinfo)),
            ("mem", format!("append /proc/{other}/mem")),
            ("nice", format!("call {} 0 {other} 5", libc::SYS_setpriority)),
            ("nice to all", format!("call {} 2 0 5", libc::SYS_setpriority)),
            ("ionice", format!("call {} 1 {other} 24576", libc::SYS_ioprio_set)),
            ("affinity", format!("call {} {other} 8 x:01", libc::SYS_sched_setaffinity)),
            ("limits", format!("call {} {other} 7 x:00 0", libc::SYS_prlimit64)),
            ("limits, asked", format!("call {} {other} 7 0 b:16", libc::SYS_prlimit64)),
            ("ptrace", format!("call {} 16 {other} 0 0", libc::SYS_ptrace)),
        ] {
            let got = bed.ask(&question);
            let expected = ["EPERM", "EACCES", "EINVAL"];
            rows.check(expected.contains(&got.as_str()), || format!("{what} {other}: {got}"));
        }
    }
    rows.check(victim.try_wait().unwrap().is_none(), || "the bystander was ended".into());
    // Whoever ends everybody ends its own call, and not the process that stands at its head.
    let parent = bed.run("/bin/sh", &["sh", "-c", "kill -9 $PPID; echo $?; kill -STOP $PPID"]);
    rows.check(text(&parent.stdout.bytes).starts_with('1'), || text(&parent.stdout.bytes));
    let everybody = bed.run("/usr/bin/perl", &["perl", "-e", "kill 9, -1; print 'still'"]);
    rows.check(everybody.termination == Termination::Exited(0), || {
        format!("{:?}", everybody.termination)
    });
    rows.check(victim.try_wait().unwrap().is_none(), || "the bystander was ended".into());
    victim.kill().unwrap();
    victim.wait().unwrap();
    rows.check(bed.ask("read /workspace/file") == "content", || "the executor is alive".into());
    rows.end();
}

/// Looked at from outside, since there is no `/proc` inside.
fn no_privilege_is_left() {
    let mut bed = Bed::plain();
    let marker = format!("55{}", std::process::id());
    let seen = std::thread::scope(|scope| {
        let looker = scope.spawn(|| {
            let mut found = None;
            wait_until("the command runs", || process_with(&marker).is_some());
            if let Some(id) = process_with(&marker) {
                found = fs::read_to_string(format!("/proc/{id}/status")).ok();
            }
            found
        });
        let mut sleep = launch("/bin/sleep", &["sleep", &marker]);
        sleep.limits.timeout_ms = 2_000;
        assert_eq!(bed.try_run(sleep).unwrap().termination, Termination::TimedOut);
        looker.join().unwrap()
    });
    let status = seen.expect("the command could be looked at");
    let mut rows = Rows::default();
    for (field, expected) in [
        ("CapInh", "0000000000000000"),
        ("CapPrm", "0000000000000000"),
        ("CapEff", "0000000000000000"),
        ("CapAmb", "0000000000000000"),
        ("NoNewPrivs", "1"),
        ("Seccomp", "2"),
        ("SigBlk", "0000000000000000"),
        ("SigIgn", "0000000000000000"),
        ("SigCgt", "0000000000000000"),
    ] {
        let line = status.lines().find(|line| line.starts_with(&format!("{field}:"))).unwrap();
        rows.check(line.ends_with(&format!("\t{expected}")), || line.to_owned());
    }
    rows.end();
}

/// The number of a process with a word in its command line.
fn process_with(marker: &str) -> Option<u32> {
    fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        (words.first() == Some(&&b"sleep"[..]) && words.contains(&marker.as_bytes())).then_some(id)
    })
}

fn only_three_descriptors() {
    let mut leaked = [0; 2];
    assert_eq!(unsafe { libc::pipe(leaked.as_mut_ptr()) }, 0);
    let mut bed = Bed::plain();
    // The number that is free next.
    let next = format!("call {} 0", libc::SYS_dup);
    assert_eq!(bed.ask(&next), "3");
    for number in 3..64 {
        assert_eq!(bed.ask(&format!("call {} {number} 1", libc::SYS_fcntl)), "EBADF", "{number}");
    }
    for end in leaked {
        unsafe { libc::close(end) };
    }
}

fn sockets_and_queues_are_not_made() {
    let mut bed = Bed::plain();
    let mut rows = Rows::default();
    for family in 0..46 {
        for kind in [libc::SOCK_STREAM, libc::SOCK_DGRAM, libc::SOCK_RAW] {
            let got = bed.ask(&format!("call {} {family} {kind} 0", libc::SYS_socket));
            rows.check(got == "EPERM", || format!("family {family} {kind}: {got}"));
        }
    }
    for (what, question) in [
        ("shared memory", format!("call {} 0 4096 950", libc::SYS_shmget)),
        ("semaphores", format!("call {} 0 1 950", libc::SYS_semget)),
        ("a queue", format!("call {} 0 950", libc::SYS_msgget)),
        ("a queue by name", format!("call {} s:capsule 66 384 0", libc::SYS_mq_open)),
        ("a name", format!("call {} 0 x:0100004142 5", libc::SYS_bind)),
        ("a connection", format!("call {} 0 x:0100004142 5", libc::SYS_connect)),
    ] {
        let got = bed.ask(&question);
        rows.check(got == "EPERM", || format!("{what}: {got}"));
    }
    let interfaces = bed.ask(&format!("call {} 0 {} b:64", libc::SYS_ioctl, libc::SIOCGIFCONF));
    rows.check(interfaces == "ENOTTY", || interfaces.clone());
    rows.end();
}

fn what_is_written_is_gone() {
    let mut bed = Bed::plain();
    let tmp = bed.as_seen("/tmp");
    let script = "mkdir -p /tmp/a/b && echo x > /tmp/a/b/c && mkdir -m 0 /tmp/closed && ls -A /tmp";
    let exit = bed.run("/bin/sh", &["sh", "-c", script]);
    assert_eq!(text(&exit.stdout.bytes), "a\nclosed\n");
    assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0, "after the call nothing is left");
    assert_eq!(fs::metadata(&tmp).unwrap().mode() & 0o7777, 0o700, "it is nobody else's");
    assert_eq!(bed.ask("list /tmp"), "");
    // With names that whoever removes it might have used.
    let script = "mkdir -p /tmp/.moved-1/a /tmp/b/c && echo x > /tmp/.moved-1/a/data";
    assert_eq!(bed.run("/bin/sh", &["sh", "-c", script]).termination, Termination::Exited(0));
    assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0);
    // However deep.
    let deep = "perl -e 'for (1..3000) { mkdir q(d); chdir q(d) }'";
    let mut digs = launch("/bin/sh", &["sh", "-c", &format!("cd /tmp && {deep}")]);
    digs.limits.timeout_ms = 60_000;
    let exit = bed.try_run(digs).unwrap();
    assert_eq!(exit.reached_limits, vec![ResourceLimit::Tmp], "too deep to be counted");
    assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0);
    drop(bed);
    assert!(!Path::new(&tmp).exists(), "it goes with the executor");
}

fn tmp_is_bounded() {
    let mut bed = Bed::plain();
    let script = "cat /dev/zero > /tmp/x";
    let mut fill = launch("/bin/sh", &["sh", "-c", script]);
    fill.limits.tmp_bytes = 10_000_000;
    let exit = bed.try_run(fill).unwrap();
    // One file is held by the kernel, whose signal ends `cat`.
    assert_eq!(
        (exit.termination, exit.reached_limits),
        (Termination::Exited(153), vec![ResourceLimit::Tmp])
    );
    assert_eq!(bed.ask("list /tmp"), "");
    // Many small files, and folders in folders.
    let script =
        "while :; do i=$((i+1)); mkdir -p /tmp/$i/$i; head -c 9000 /dev/zero > /tmp/$i/f; done";
    let mut many = launch("/bin/sh", &["sh", "-c", script]);
    many.limits.tmp_bytes = 3_000_000;
    let exit = bed.try_run(many).unwrap();
    assert_eq!(
        (exit.termination, exit.reached_limits),
        (Termination::Signalled(9), vec![ResourceLimit::Tmp])
    );
    // Where nobody can list it, and where no path leads.
    let closed = "mkdir q(d), 0300; for (1..3) { open F, qq(>d/$_); print F q(x) x 1_500_000; close F } sleep 9";
    let deep = "for (1..60) { mkdir q(n) x 100; chdir q(n) x 100 } sleep 9";
    for script in [closed, deep] {
        let line = format!("cd /tmp && perl -e '{script}'");
        let mut hidden = launch("/bin/sh", &["sh", "-c", &line]);
        hidden.limits.tmp_bytes = 3_000_000;
        let exit = bed.try_run(hidden).unwrap();
        assert_eq!(exit.reached_limits, vec![ResourceLimit::Tmp], "{script}");
    }
    // Any one file is held by the kernel.
    let mut large = launch("/bin/sh", &["sh", "-c", "exec cat /dev/zero > /tmp/x"]);
    large.limits.file_bytes = 100_000;
    let exit = bed.try_run(large).unwrap();
    assert_eq!(exit.termination, Termination::Signalled(libc::SIGXFSZ));
}

/// One that makes processes faster than anybody could name them one by one.
fn a_bomb_ends_at_once() {
    let mut bed = Bed::plain();
    for round in 0..3 {
        let marker = format!("88{}{round}", std::process::id());
        let bomb = format!("fork while 1; {marker}");
        let mut exploding = launch("/usr/bin/perl", &["perl", "-e", &bomb]);
        exploding.limits.processes = 200;
        exploding.limits.timeout_ms = 1_500;
        let exit = bed.try_run(exploding).unwrap();
        let ended = matches!(exit.termination, Termination::TimedOut | Termination::Signalled(9));
        assert!(ended, "{:?} {:?}", exit.termination, exit.reached_limits);
        assert_eq!(processes_with(&bomb), 0);
    }
    assert_eq!(bed.ask("read /workspace/file"), "content");
}

fn nothing_outlives_its_executor() {
    let mut bed = Bed::plain();
    let marker = format!("99{}", std::process::id());
    let script = format!("for i in 1 2 3; do setsid sleep {marker} & done; sleep {marker}");
    let executor = i32::try_from(bed.executor.id()).ok().and_then(Pid::from_raw).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_until("they run", || processes_with(&marker) >= 4);
            kill_process(executor, Signal::KILL).unwrap();
        });
        let ran = bed.try_run(launch("/bin/sh", &["sh", "-c", &script]));
        assert!(matches!(ran, Err(SandboxError::ExecutorDied { .. })), "{ran:?}");
    });
    wait_until("nothing is left", || processes_with(&marker) == 0);
}

/// From inside nobody can; somebody outside may.
fn nothing_outlives_a_killed_first() {
    let mut bed = Bed::plain();
    let marker = format!("44{}", std::process::id());
    let script = format!("for i in 1 2 3; do setsid sleep {marker} & done; sleep {marker}");
    let executor = bed.executor.id();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_until("they run", || processes_with(&marker) >= 4);
            let path = format!("/proc/{executor}/task/{executor}/children");
            let first = fs::read_to_string(path).unwrap();
            let first: i32 = first.split_whitespace().next().unwrap().parse().unwrap();
            kill_process(Pid::from_raw(first).unwrap(), Signal::KILL).unwrap();
        });
        let ran = bed.try_run(launch("/bin/sh", &["sh", "-c", &script])).unwrap();
        assert_eq!(ran.termination, Termination::Signalled(9));
    });
    assert_eq!(processes_with(&marker), 0, "before the end is told");
    assert_eq!(bed.ask("read /workspace/file"), "content");
}

fn leftovers_are_swept() {
    let folder = |name: &str| {
        let path = PathBuf::from(format!("/tmp/capsule-tmp-{}-{name}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
        path
    };
    // One that nobody holds, one that somebody does, and one that is another's.
    let (left, held) = (folder("left"), folder("held"));
    fs::create_dir_all(left.join(".moved-1/a")).unwrap();
    fs::write(left.join(".moved-1/a/file"), "x").unwrap();
    let lock = fs::File::open(&held).unwrap();
    lock.lock().unwrap();
    let link = PathBuf::from(format!("/tmp/capsule-tmp-{}-link", std::process::id()));
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("file"), "x").unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), &link).unwrap();
    let bed = Bed::plain();
    assert!(!left.exists());
    assert!(held.exists());
    assert!(elsewhere.path().join("file").exists());
    fs::remove_dir(&held).unwrap();
    fs::remove_file(&link).unwrap();
    drop(bed);
}
