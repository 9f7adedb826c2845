//! Processes, privileges, descriptors, terminals, and what a command is started with.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;

use capsule_sandbox::Termination;

use crate::Test;
use crate::bed::{Bed, PROBE, Rows, launch, text};
use crate::probe;

pub(crate) const TESTS: &[Test] = &[
    ("other_processes_are_out_of_reach", other_processes_are_out_of_reach),
    ("the_first_process_keeps_what_it_has", the_first_process_keeps_what_it_has),
    ("walls_cannot_be_taken_down", walls_cannot_be_taken_down),
    ("no_privilege_is_left", no_privilege_is_left),
    ("setuid_programs_gain_nothing", setuid_programs_gain_nothing),
    ("a_command_has_three_descriptors", a_command_has_three_descriptors),
    ("there_is_no_terminal", there_is_no_terminal),
    ("the_environment_is_exact", the_environment_is_exact),
    ("signals_are_as_in_a_fresh_process", signals_are_as_in_a_fresh_process),
    ("exit_codes_and_signals_are_exact", exit_codes_and_signals_are_exact),
    ("standard_input_arrives", standard_input_arrives),
    ("the_working_folder_is_where_it_should_be", the_working_folder_is_where_it_should_be),
    ("executor_has_one_thread", executor_has_one_thread),
];

fn other_processes_are_out_of_reach() {
    let mut bed = Bed::plain();
    let mut rows = Rows::default();
    let own = std::process::id();
    let executor = bed.executor.id();
    for victim in [own, executor] {
        for (what, question) in [
            ("kill", format!("call {} {victim} 9", libc::SYS_kill)),
            ("signal 0", format!("call {} {victim} 0", libc::SYS_kill)),
            ("pidfd_open", format!("call {} {victim} 0", libc::SYS_pidfd_open)),
            ("mem", format!("append /proc/{victim}/mem")),
        ] {
            let got = bed.ask(&question);
            // Small numbers may exist inside, too, but then they are the command's own.
            let expected = ["ESRCH", "ENOENT", "EROFS", "EACCES"];
            rows.check(expected.contains(&got.as_str()), || format!("{what} {victim}: {got}"));
        }
    }
    for (what, question, expected) in [
        ("ptrace the first process", format!("call {} 16 1 0 0", libc::SYS_ptrace), "EPERM"),
        ("ptrace oneself", format!("call {} 0 0 0 0", libc::SYS_ptrace), "EPERM"),
        (
            "process_vm_readv",
            format!("call {} 1 b:16 1 b:16 1 0", libc::SYS_process_vm_readv),
            "EPERM",
        ),
        (
            "process_vm_writev",
            format!("call {} 1 b:16 1 b:16 1 0", libc::SYS_process_vm_writev),
            "EPERM",
        ),
        ("pidfd_getfd", format!("call {} 3 0 0", libc::SYS_pidfd_getfd), "EPERM"),
        (
            "cwd of the first process",
            format!("call {} -100 s:/proc/1/cwd b:64 64", libc::SYS_readlinkat),
            "EACCES",
        ),
        ("kcmp", format!("call {} 1 1 0 0 0", libc::SYS_kcmp), "EPERM"),
    ] {
        let got = bed.ask(&question);
        rows.check(got == expected, || format!("{what}: {got}"));
    }
    rows.end();
    // The first process cannot be ended from inside, and everybody else is one's own.
    for signal in [9, 15, 2, 1, 11, 14] {
        let got = bed.probe(&format!("call {} 1 {signal}\nread /proc/1/maps", libc::SYS_kill));
        assert_eq!(got, ["0", "EACCES"], "signal {signal}");
    }
    let exit = bed.probe_with(&format!("call {} -1 9", libc::SYS_kill), |_| {});
    assert!(matches!(exit.termination, Termination::Exited(0)), "{:?}", exit.termination);
    assert_eq!(bed.ask("read /workspace/file"), "content", "the executor is alive");
}

/// It is of the same user as the command, and has to outlast it: its limits, its turn and its processors
/// are not the command's to change, by its number or as one of a group or of all.
fn the_first_process_keeps_what_it_has() {
    let mut bed = Bed::plain();
    let mut rows = Rows::default();
    let calls: &[(&str, i64, &str, &str)] = &[
        ("a limit", libc::SYS_prlimit64, "1 0 b:16 0", "EINVAL"),
        ("a limit, with high bits", libc::SYS_prlimit64, "4294967297 0 b:16 0", "EINVAL"),
        ("nice", libc::SYS_setpriority, "0 1 19", "EPERM"),
        ("nice, with high bits", libc::SYS_setpriority, "0 4294967297 19", "EPERM"),
        ("nice of a group", libc::SYS_setpriority, "1 0 19", "EPERM"),
        ("nice of all", libc::SYS_setpriority, "2 0 19", "EPERM"),
        ("nice of oneself", libc::SYS_setpriority, "0 0 19", "0"),
        ("processors", libc::SYS_sched_setaffinity, "1 8 x:0100000000000000", "EPERM"),
        ("processors of oneself", libc::SYS_sched_setaffinity, "0 8 x:0100000000000000", "0"),
        ("policy", libc::SYS_sched_setscheduler, "1 5 b:4", "EPERM"),
        ("policy of oneself", libc::SYS_sched_setscheduler, "0 5 b:4", "0"),
        ("priority", libc::SYS_sched_setparam, "1 b:4", "EPERM"),
        ("attributes", libc::SYS_sched_setattr, "1 b:48 0", "EPERM"),
        ("disk", libc::SYS_ioprio_set, "1 1 24576", "EPERM"),
        ("disk of a group", libc::SYS_ioprio_set, "2 0 24576", "EPERM"),
        ("disk of all", libc::SYS_ioprio_set, "3 0 24576", "EPERM"),
        ("disk of oneself", libc::SYS_ioprio_set, "1 0 24576", "0"),
    ];
    for (what, number, arguments, expected) in calls {
        let got = bed.ask(&format!("call {number} {arguments}"));
        rows.check(got == *expected, || format!("{what}: {got}"));
    }
    if !crate::world::current().is_lower() {
        // Libraries name threads of their own by number.
        let number = libc::SYS_sched_setaffinity;
        let got = bed.ask(&format!("call {number} 2 8 x:0100000000000000"));
        rows.check(got == "0", || format!("processors of a program, by its number: {got}"));
    }
    rows.end();
}

fn walls_cannot_be_taken_down() {
    let mut bed = Bed::plain();
    let mut rows = Rows::default();
    let calls: &[(&str, i64, &str, &str)] = &[
        ("unshare user", libc::SYS_unshare, "268435456", "EPERM"),
        ("unshare mounts", libc::SYS_unshare, "131072", "EPERM"),
        ("setns", libc::SYS_setns, "3 0", "EPERM"),
        ("clone user", libc::SYS_clone, "268435473 0 0 0 0", "EPERM"),
        ("clone with high bits", libc::SYS_clone, "4563402769 0 0 0 0", "EPERM"),
        ("clone3", libc::SYS_clone3, "b:88 88", "ENOSYS"),
        ("mount", libc::SYS_mount, "s:none s:/tmp s:tmpfs 0 0", "EPERM"),
        ("bind", libc::SYS_mount, "s:/usr s:/tmp 0 4096 0", "EPERM"),
        ("umount", libc::SYS_umount2, "s:/proc 2", "EPERM"),
        ("open_tree", libc::SYS_open_tree, "-100 s:/proc 1", "EPERM"),
        ("move_mount", libc::SYS_move_mount, "3 s: -100 s:/tmp 4", "EPERM"),
        ("fsopen", libc::SYS_fsopen, "s:tmpfs 0", "EPERM"),
        ("mount_setattr", libc::SYS_mount_setattr, "-100 s:/workspace 0 b:32 32", "EPERM"),
        ("chroot", libc::SYS_chroot, "s:/tmp", "EPERM"),
        ("pivot_root", libc::SYS_pivot_root, "s:/tmp s:/tmp", "EPERM"),
        ("keyctl", libc::SYS_keyctl, "0 -3 0", "EPERM"),
        ("add_key", libc::SYS_add_key, "s:user s:x s:y 1 -3", "EPERM"),
        ("request_key", libc::SYS_request_key, "s:user s:x 0 0", "EPERM"),
        ("bpf", libc::SYS_bpf, "0 b:64 64", "EPERM"),
        ("perf_event_open", libc::SYS_perf_event_open, "b:128 0 -1 -1 0", "EPERM"),
        ("userfaultfd", libc::SYS_userfaultfd, "1", "EPERM"),
        ("io_uring_setup", libc::SYS_io_uring_setup, "8 b:128", "EPERM"),
        ("io_setup", libc::SYS_io_setup, "8 b:8", "EPERM"),
        ("name_to_handle_at", libc::SYS_name_to_handle_at, "-100 s:/ b:128 b:8 0", "EPERM"),
        ("open_by_handle_at", libc::SYS_open_by_handle_at, "3 b:128 0", "EPERM"),
        ("fanotify_init", libc::SYS_fanotify_init, "0 0", "EPERM"),
        ("kexec_load", libc::SYS_kexec_load, "0 0 0 0", "EPERM"),
        ("init_module", libc::SYS_init_module, "b:8 8 s:", "EPERM"),
        ("reboot", libc::SYS_reboot, "-18751827 672274793 0 0", "EPERM"),
        ("sethostname", libc::SYS_sethostname, "s:x 1", "EPERM"),
        ("syslog", libc::SYS_syslog, "3 b:64 64", "EPERM"),
        ("swapon", libc::SYS_swapon, "s:/tmp/x 0", "EPERM"),
        ("quotactl", libc::SYS_quotactl, "0 s:/ 0 b:64", "EPERM"),
        ("acct", libc::SYS_acct, "s:/tmp/x", "EPERM"),
        ("personality", libc::SYS_personality, "262144", "EPERM"),
        ("personality, asked", libc::SYS_personality, "4294967295", "0"),
        ("lease", libc::SYS_fcntl, "0 1024 0", "EINVAL"),
        ("core files, by prlimit", libc::SYS_prlimit64, "0 4 b:16 0", "EINVAL"),
        ("core files, asked", libc::SYS_prlimit64, "0 4 0 b:16", "0"),
        ("files, by prlimit", libc::SYS_prlimit64, "0 7 x:40000000000000004000000000000000 0", "0"),
        ("core files, by setrlimit", libc::SYS_setrlimit, "4 b:16", "EINVAL"),
        ("move_pages", libc::SYS_move_pages, "0 0 0 0 0 0", "EPERM"),
        ("prctl PR_SET_MM", libc::SYS_prctl, "35 1 0 0 0", "EPERM"),
        ("prctl seccomp off", libc::SYS_prctl, "22 0 0 0 0", "EINVAL"),
        ("unknown", 511, "0", "ENOSYS"),
        ("unknown and large", 100_000, "0", "ENOSYS"),
        ("minus one", -1, "0", "ENOSYS"),
    ];
    for (name, number, arguments, expected) in calls {
        let got = bed.ask(&format!("call {number} {arguments}"));
        rows.check(got == *expected, || format!("{name}: {got}, expected {expected}"));
    }
    for device in ["call -100 8624", "call -100 24992"] {
        let mode = device.rsplit(' ').next().unwrap();
        let got = bed.ask(&format!("call {} -100 s:/tmp/device {mode} 259", libc::SYS_mknodat));
        rows.check(got == "EPERM", || format!("mknod {mode}: {got}"));
    }
    rows.end();
    #[cfg(target_arch = "x86_64")]
    {
        let exit = bed.probe_with(&format!("call {} 0", 0x4000_0000 | libc::SYS_getpid), |_| {});
        assert_eq!(exit.termination, Termination::Signalled(libc::SIGSYS), "x32");
    }
}

fn no_privilege_is_left() {
    let mut bed = Bed::plain();
    let status = bed.ask("read /proc/self/status");
    let mut rows = Rows::default();
    for (field, expected) in [
        ("CapInh", "0000000000000000"),
        ("CapPrm", "0000000000000000"),
        ("CapEff", "0000000000000000"),
        ("CapBnd", "0000000000000000"),
        ("CapAmb", "0000000000000000"),
        ("NoNewPrivs", "1"),
        ("Seccomp", "2"),
        ("Seccomp_filters", "2"),
    ] {
        let line = status.split("\\n").find(|line| line.starts_with(&format!("{field}:")));
        let got = line.and_then(|line| line.split('\t').nth(1)).unwrap_or("missing");
        rows.check(got == expected, || format!("{field}: {got}"));
    }
    rows.end();
    let limits = bed.ask("read /proc/self/limits");
    let core = limits.split("\\n").find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().nth(4), Some("1"), "{core}");
    let groups = status.split("\\n").find(|line| line.starts_with("Groups:")).unwrap();
    if rustix::process::geteuid().is_root() {
        assert_eq!(groups.trim_start_matches("Groups:").trim(), "", "{groups}");
    }
}

fn setuid_programs_gain_nothing() {
    let candidates = ["/usr/bin/su", "/usr/bin/passwd", "/usr/bin/mount", "/usr/bin/sudo"];
    let program = candidates
        .iter()
        .find(|path| std::fs::metadata(path).is_ok_and(|facts| facts.mode() & 0o4000 != 0))
        .expect("a machine without any setuid program cannot show it");
    let mut bed = Bed::plain();
    let exit = bed.run("/bin/sh", &["sh", "-c", &format!("{program} --version >/dev/null; id -u")]);
    let own = rustix::process::geteuid().as_raw();
    assert_eq!(text(&exit.stdout.bytes).trim(), own.to_string());
    let facts = std::fs::metadata(program).unwrap();
    assert_ne!(facts.mode() & 0o4000, 0);
    // The view has no such bits at all.
    let exit = bed.run("/usr/bin/findmnt", &["findmnt", "-n", "-o", "OPTIONS", "/usr"]);
    assert!(text(&exit.stdout.bytes).contains("nosuid"), "{}", text(&exit.stdout.bytes));
}

fn a_command_has_three_descriptors() {
    // One that is not closed on exec, as careless libraries leave them.
    let mut leaked = [0; 2];
    assert_eq!(unsafe { libc::pipe(leaked.as_mut_ptr()) }, 0);
    let mut bed = Bed::plain();
    // The folder that is being listed is the fourth.
    assert_eq!(bed.ask("list /proc/self/fd"), "0 1 2 3");
    let exit = bed.run("/bin/ls", &["ls", "/proc/self/fd"]);
    assert_eq!(text(&exit.stdout.bytes), "0\n1\n2\n3\n");
    for end in leaked {
        unsafe { libc::close(end) };
    }
}

fn there_is_no_terminal() {
    let mut bed = Bed::plain();
    let mut rows = Rows::default();
    for (question, expected) in [
        ("read /dev/tty".to_owned(), "ENOENT"),
        (format!("call {} 0 {} s:x", libc::SYS_ioctl, libc::TIOCSTI), "ENOTTY"),
        (format!("call {} 0 {} b:8", libc::SYS_ioctl, libc::TIOCLINUX), "ENOTTY"),
        (
            format!("call {} 0 {} b:64", libc::SYS_ioctl, (1_i64 << 32) | libc::TIOCSTI as i64),
            "ENOTTY",
        ),
        (format!("call {} 0 {} b:64", libc::SYS_ioctl, libc::TCGETS), "ENOTTY"),
    ] {
        let got = bed.ask(&question);
        rows.check(got == expected, || format!("{question}: {got}"));
    }
    rows.end();
    // tty_nr, the seventh field, is 0 without a controlling terminal.
    let stat = bed.ask("read /proc/self/stat");
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    assert_eq!(fields[4], "0", "{stat}");
    let own = stat.split(' ').next().unwrap();
    assert_eq!(fields[2], own, "it leads its own group: {stat}");
    assert_eq!(fields[3], "1", "the session is the call's, and not the executor's: {stat}");
}

fn the_environment_is_exact() {
    let mut bed = Bed::plain();
    let exit = bed.probe_with("environment", |launch| {
        launch.private_directory_variables.clear();
        launch.stages[0].environment =
            vec![("A".into(), "1=2".into()), ("EMPTY".into(), "".into())];
    });
    assert_eq!(text(&exit.stdout.bytes), "\"A\"=\"1=2\" \"EMPTY\"=\"\"\n");
    let exit = bed.probe_with("environment", |launch| {
        (launch.stages[0].environment, launch.private_directory_variables) =
            (Vec::new(), vec!["TMPDIR".into()]);
    });
    let tmp = bed.as_seen("/tmp");
    assert_eq!(text(&exit.stdout.bytes), format!("\"TMPDIR\"=\"{tmp}\"\n"));
    if crate::world::current().is_lower() {
        return; // there is no `/proc`
    }
    let exit = bed.probe_with("read /proc/self/environ", |launch| {
        (launch.stages[0].environment, launch.private_directory_variables) =
            (Vec::new(), Vec::new());
    });
    assert_eq!(text(&exit.stdout.bytes), "\n");
}

fn signals_are_as_in_a_fresh_process() {
    let mut bed = Bed::plain();
    let exit = bed.run("/bin/cat", &["cat", "/proc/self/status"]);
    let status = text(&exit.stdout.bytes);
    for field in ["SigBlk", "SigIgn", "SigCgt", "SigPnd", "ShdPnd"] {
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        assert!(line.ends_with("0000000000000000"), "{line}");
    }
    // `yes` ends by SIGPIPE when `head` has enough.
    let exit = bed.run("/bin/sh", &["sh", "-c", "yes | head -n 1"]);
    assert_eq!(
        (exit.termination, text(&exit.stdout.bytes).as_str()),
        (Termination::Exited(0), "y\n")
    );
}

fn exit_codes_and_signals_are_exact() {
    let mut bed = Bed::plain();
    let mut rows = Rows::default();
    let mut ends = |words: &[&str], expected: Termination| {
        let exit = bed.probe_with("", |launch| {
            launch.stages[0].argv =
                ["probe", probe::ARGUMENT].iter().chain(words).map(Into::into).collect();
        });
        rows.check(exit.termination == expected, || format!("{words:?}: {:?}", exit.termination));
    };
    for code in ["0", "1", "2", "7", "126", "127", "128", "137", "255"] {
        ends(&["exit", code], Termination::Exited(code.parse().unwrap()));
    }
    for signal in [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGILL,
        libc::SIGABRT,
        libc::SIGKILL,
        libc::SIGUSR1,
        libc::SIGSEGV,
        libc::SIGPIPE,
        libc::SIGALRM,
        libc::SIGTERM,
    ] {
        ends(&["die", &signal.to_string()], Termination::Signalled(signal));
    }
    rows.end();
}

fn standard_input_arrives() {
    let mut bed = Bed::plain();
    let long: Vec<u8> = (0..1_000_000_u32).map(|i| (i % 251) as u8).collect();
    let mut input = launch("/usr/bin/sha256sum", &["sha256sum"]);
    input.stdin = long.clone();
    let inside = text(&bed.try_run(input).unwrap().stdout.bytes);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x"), &long).unwrap();
    let outside = std::process::Command::new("/usr/bin/sha256sum")
        .stdin(std::fs::File::open(folder.path().join("x")).unwrap())
        .output()
        .unwrap();
    assert_eq!(inside, text(&outside.stdout));
    let exit = bed.run("/bin/cat", &["cat"]);
    assert_eq!(
        (exit.termination, exit.stdout.total),
        (Termination::Exited(0), 0),
        "nothing is an end at once"
    );
    // What was given cannot be changed, and not by the command either.
    let seals = bed.probe_with(
        &format!("call {} 0 s:x 1\ncall {} 0 0", libc::SYS_write, libc::SYS_ftruncate),
        |_| {},
    );
    assert_eq!(text(&seals.stdout.bytes), "EPERM\nEPERM\n");
    let mut too_long = launch("/bin/cat", &["cat"]);
    too_long.stdin = vec![0; 1_000_001];
    assert!(bed.try_run(too_long).is_err());
}

fn the_working_folder_is_where_it_should_be() {
    let mut bed = Bed::new(
        |workspace| {
            std::fs::create_dir_all(workspace.join("a/b")).unwrap();
            std::os::unix::fs::symlink("/etc", workspace.join("out")).unwrap();
        },
        &[b"a/b"],
    );
    let mut at = |folder: &str| {
        let mut launch = launch("/bin/pwd", &["pwd"]);
        launch.cwd = folder.into();
        bed.try_run(launch).map(|exit| text(&exit.stdout.bytes)).map_err(|error| error.to_string())
    };
    let (whole, inner) = (at("").unwrap(), at("a").unwrap());
    for wrong in ["missing", "..", "../etc", "/etc", "out"] {
        assert!(at(wrong).is_err(), "{wrong}");
    }
    assert_eq!(whole, bed.as_seen("/workspace\n"));
    assert_eq!(inner, bed.as_seen("/workspace/a\n"));
    if crate::world::current().is_lower() {
        return; // the way up is the host's
    }
    // From there, the way up ends at the root of the call.
    let exit = bed.run("/bin/sh", &["sh", "-c", "cd ../../../.. && ls proc | grep -c cpuinfo"]);
    assert_eq!(text(&exit.stdout.bytes), "0\n");
}

fn executor_has_one_thread() {
    let mut bed = Bed::plain();
    bed.run("/bin/true", &["true"]);
    let mut status = String::new();
    std::fs::File::open(format!("/proc/{}/status", bed.executor.id()))
        .unwrap()
        .read_to_string(&mut status)
        .unwrap();
    assert!(status.contains("Threads:\t1\n"), "{status}");
    assert!(status.contains("NoNewPrivs:\t1\n"), "{status}");
    assert_eq!(bed.ask(&format!("stat {PROBE}")).split(' ').nth(1), Some("100755"));
}
