//! What a command sees, and what it does not.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use capsule_base::root_names::RootNames;
use capsule_sandbox::{DirectWrites, Executor, SandboxBackend as _, Termination};

use crate::Test;
use crate::bed::{Bed, Nobody, Rows, launch, mask, text};

/// Only root can lay a workspace there.
pub(crate) const TESTS_OF_ROOT: &[Test] = &[(
    "a_workspace_among_the_system_is_hidden_there",
    a_workspace_among_the_system_is_hidden_there,
)];

/// In containers, workspaces often lie beneath `/usr`.
fn a_workspace_among_the_system_is_hidden_there() {
    let home = tempfile::Builder::new().prefix("capsule-test-").tempdir_in("/usr/src").unwrap();
    let workspace = home.path().join("workspace");
    fs::create_dir_all(workspace.join("inner")).unwrap();
    for (name, content) in [("secret", "the secret"), ("inner/open", "open")] {
        fs::write(workspace.join(name), content).unwrap();
    }
    fs::write(home.path().join("sibling"), "the sibling").unwrap();
    let mut executor = Executor::start().unwrap();
    let masks = vec![mask(b"secret")];
    let view = capsule_sandbox::SandboxView {
        floor: crate::world::current().floor(),
        workspace: File::open(&workspace).unwrap().into(),
        root_names: RootNames::default(),
        staging: None,
        hidden: masks.clone(),
        programs: Vec::new(),
        toolchains: Vec::new(),
        repository: None,
        git: capsule_sandbox::GitFiles::default(),
    };
    executor.enter(view).unwrap();
    let mut read = |path: &str| {
        let mut launch = launch("/bin/cat", &["cat", path]);
        launch.hidden = masks.clone();
        let exit = executor.run(launch, &mut Nobody).unwrap();
        text(&exit.stdout.bytes)
    };
    let at_home = |name: &str| workspace.join(name).to_str().unwrap().to_owned();
    assert_eq!(read("inner/open"), "open");
    assert_eq!(read("secret"), "");
    assert_eq!(read(&at_home("secret")), "");
    let there = if crate::world::current().is_lower() { "open" } else { "" };
    assert_eq!(read(&at_home("inner/open")), there, "only the lower tier shows it there");
    assert_eq!(read(home.path().join("sibling").to_str().unwrap()), "the sibling");
}

pub(crate) const TESTS: &[Test] = &[
    ("only_the_view_is_seen", only_the_view_is_seen),
    ("the_root_has_nothing_else", the_root_has_nothing_else),
    ("links_lead_nowhere", links_lead_nowhere),
    ("proc_shows_only_the_call", proc_shows_only_the_call),
    ("masks_hide_everything_but_the_name", masks_hide_everything_but_the_name),
    ("masks_take_any_name", masks_take_any_name),
    ("masks_can_come_later", masks_can_come_later),
    ("masks_follow_no_link", masks_follow_no_link),
    ("a_replaced_file_can_be_hidden_again", a_replaced_file_can_be_hidden_again),
    ("nothing_is_left_in_the_workspace", nothing_is_left_in_the_workspace),
    ("mounts_in_the_workspace_are_hidden", mounts_in_the_workspace_are_hidden),
];

fn only_the_view_is_seen() {
    let mut bed = Bed::plain();
    let host = bed.workspace();
    let sibling = host.parent().unwrap().join("sibling");
    let mut rows = Rows::default();
    for (path, expected) in [
        ("/workspace/file", "content"),
        ("/etc/shadow", "ENOENT"),
        ("/etc/resolv.conf", "ENOENT"),
        ("/etc/machine-id", "ENOENT"),
        ("/etc/ssh/sshd_config", "ENOENT"),
        ("/root/.bashrc", "ENOENT"),
        ("/home", "ENOENT"),
        ("/var/lib/dpkg/status", "ENOENT"),
        ("/run/docker.sock", "ENOENT"),
        ("/var/run/docker.sock", "ENOENT"),
        ("/sys/kernel/hostname", "ENOENT"),
        ("/boot", "ENOENT"),
        ("/dev/sda", "ENOENT"),
        ("/dev/kmsg", "ENOENT"),
        ("/dev/mem", "ENOENT"),
        ("/dev/tty", "ENOENT"),
        ("/dev/fuse", "ENOENT"),
        ("/workspace/../etc/shadow", "ENOENT"),
        (host.join("file").to_str().unwrap(), "ENOENT"),
        (sibling.to_str().unwrap(), "ENOENT"),
        ("/workspace/../sibling", "ENOENT"),
    ] {
        let got = bed.ask(&format!("read {path}"));
        rows.check(got == expected, || format!("{path}: {got}, expected {expected}"));
    }
    rows.end();
}

fn the_root_has_nothing_else() {
    let mut bed = Bed::plain();
    let root = bed.ask("list /");
    for name in root.split(' ') {
        let known = [
            "bin",
            "sbin",
            "lib",
            "lib32",
            "lib64",
            "libx32",
            "usr",
            "etc",
            "dev",
            "proc",
            "run",
            "sys",
            "tmp",
            "var",
            "workspace",
            "probe",
        ];
        assert!(known.contains(&name), "{root}");
    }
    let devices = "fd full null ptmx pts random shm stderr stdin stdout urandom zero";
    assert_eq!(bed.ask("list /dev"), devices);
    assert_eq!(bed.ask("list /run"), "home");
    assert_eq!(bed.ask("list /run/home"), "");
    assert_eq!(bed.ask("list /tmp"), "");
    assert_eq!(bed.ask("list /dev/shm"), "");
}

fn links_lead_nowhere() {
    let mut bed = Bed::new(
        |workspace| {
            symlink("/etc/shadow", workspace.join("absolute")).unwrap();
            symlink("../sibling", workspace.join("relative")).unwrap();
            symlink("/proc/1/root/etc/shadow", workspace.join("magic")).unwrap();
            symlink(workspace.join("missing"), workspace.join("dangling")).unwrap();
        },
        &[],
    );
    let mut rows = Rows::default();
    for (name, expected) in [
        ("absolute", "ENOENT"),
        ("relative", "ENOENT"),
        ("magic", "EACCES"),
        ("dangling", "ENOENT"),
    ] {
        let got = bed.ask(&format!("read /workspace/{name}"));
        rows.check(got == expected, || format!("{name}: {got}"));
    }
    rows.end();
}

fn proc_shows_only_the_call() {
    let mut bed = Bed::plain();
    let listed = bed.ask("list /proc");
    let processes = listed.split(' ').filter(|name| name.parse::<u32>().is_ok()).count();
    assert_eq!(processes, 2, "{listed}");
    let mut rows = Rows::default();
    for (question, expected) in [
        ("read /proc/cmdline", "ENOENT"),
        ("read /proc/kallsyms", "ENOENT"),
        ("read /proc/keys", "ENOENT"),
        ("read /proc/kcore", "ENOENT"),
        ("read /proc/timer_list", "ENOENT"),
        ("read /proc/config.gz", "ENOENT"),
        ("read /proc/sys/kernel/random/boot_id", "ENOENT"),
        ("write /proc/sysrq-trigger", "ENOENT"),
        ("write /proc/sys/kernel/core_pattern", "ENOENT"),
        ("write /proc/self/oom_score_adj", "EROFS"),
        ("write /proc/self/mem", "EROFS"),
        ("read /proc/1/environ", "EACCES"),
        ("read /proc/1/maps", "EACCES"),
        ("append /proc/1/mem", "EROFS"),
        ("read /proc/self/cgroup", ""),
    ] {
        let got = bed.ask(question);
        let passed = match question {
            // Whatever the groups are, they are all at the root of what can be seen.
            "read /proc/self/cgroup" => {
                got.split("\\n").all(|line| line.is_empty() || line.ends_with(":/"))
            }
            _ => {
                got == expected
                    || (expected == "EACCES" && got == "EROFS")
                    || (expected == "EROFS" && got == "EACCES")
            }
        };
        rows.check(passed, || format!("{question}: {got}, expected {expected}"));
    }
    rows.end();
    assert!(!bed.ask("read /proc/self/status").contains("NoNewPrivs:\\t0"));
    // The name of the machine is ours.
    let exit = bed.run("/bin/uname", &["uname", "-n"]);
    assert_eq!(text(&exit.stdout.bytes), "capsule\n");
}

fn masks_hide_everything_but_the_name() {
    let mut bed = Bed::new(
        |workspace| {
            fs::write(workspace.join("secret"), "the secret").unwrap();
            fs::create_dir_all(workspace.join("folder/inner")).unwrap();
            fs::write(workspace.join("folder/inner/key"), "the key").unwrap();
            fs::hard_link(workspace.join("secret"), workspace.join("link")).unwrap();
            fs::write(workspace.join("open"), "open").unwrap();
            let everyone = fs::Permissions::from_mode(0o777);
            fs::set_permissions(workspace.join("secret"), everyone).unwrap();
        },
        &[b"secret", b"folder", b"link", b"missing", b"open/not-a-folder"],
    );
    let mut rows = Rows::default();
    for (question, expected) in [
        ("read /workspace/open", "open"),
        ("read /workspace/secret", "EACCES"),
        ("read /workspace/link", "EACCES"),
        ("read /workspace/folder/inner/key", "EACCES"),
        ("list /workspace/folder", ""),
        ("stat /workspace/folder/inner", "EACCES"),
        ("list /workspace", "folder link open secret"),
    ] {
        let got = bed.ask(question);
        rows.check(got == expected, || format!("{question}: {got}, expected {expected}"));
    }
    for path in ["secret", "link", "folder"] {
        let got = bed.ask(&format!("stat /workspace/{path}"));
        let kind = if path == "folder" { "mode 40444 size" } else { "mode 100000 size 1" };
        rows.check(got.starts_with(kind), || format!("{path}: {got}"));
    }
    for attempt in [
        format!("call {} -100 s:/workspace/secret 511 0", libc::SYS_fchmodat),
        format!("call {} s:/workspace/secret 2", libc::SYS_umount2),
        format!("call {} -100 s:/workspace/secret -100 s:/workspace/moved 0", libc::SYS_renameat2),
        format!("call {} -100 s:/workspace/folder -100 s:/workspace/moved 0", libc::SYS_renameat2),
        format!("call {} -100 s:/workspace/secret -100 s:/tmp/linked 1024", libc::SYS_linkat),
    ] {
        let got = bed.ask(&attempt);
        rows.check(got.starts_with('E') || got == "errno 16", || format!("{attempt}: {got}"));
    }
    rows.end();
}

fn masks_take_any_name() {
    let names: [&[u8]; 6] =
        [b"new\nline", b"in\xffvalid", b"sp ace", b"deep/er/file", b"-rf", b"\xe2\x80\xae"];
    let mut bed = Bed::new(
        |workspace| {
            fs::create_dir_all(workspace.join("deep/er")).unwrap();
            for name in names {
                fs::write(workspace.join(std::ffi::OsStr::from_bytes(name)), "hidden").unwrap();
            }
        },
        &names,
    );
    let mut rows = Rows::default();
    for name in names {
        let escaped: String = name.iter().map(|byte| format!("%{byte:02x}")).collect();
        let got = bed.ask(&format!("read /workspace/{escaped}"));
        rows.check(got == "EACCES", || format!("{escaped}: {got}"));
    }
    rows.end();
}

fn masks_can_come_later() {
    let mut bed = Bed::plain();
    assert_eq!(bed.ask("read /workspace/file"), "content");
    fs::write(bed.workspace().join("late"), "late").unwrap();
    assert_eq!(bed.ask("read /workspace/late"), "late");
    let hide = |bed: &mut Bed| {
        let exit =
            bed.probe_with("read /workspace/late", |launch| launch.hidden = vec![mask(b"late")]);
        text(&exit.stdout.bytes)
    };
    assert_eq!(hide(&mut bed), "EACCES\n");
    assert_eq!(bed.ask("read /workspace/late"), "EACCES", "it stays hidden");
    assert_eq!(hide(&mut bed), "EACCES\n", "twice is fine");
}

fn masks_follow_no_link() {
    let mut bed = Bed::new(
        |workspace| {
            fs::write(workspace.join("target"), "target").unwrap();
            symlink("target", workspace.join("link")).unwrap();
            symlink("/usr", workspace.join("system")).unwrap();
        },
        &[b"link", b"system"],
    );
    assert_eq!(bed.ask("read /workspace/target"), "target");
    assert_ne!(bed.ask("list /usr/bin"), "EACCES");
    let mut launch = launch("/bin/true", &["true"]);
    launch.hidden = vec![mask(b"system/bin")];
    assert!(bed.try_run(launch).is_ok(), "with a link on the way there is no such path");
    assert_ne!(bed.ask("list /usr/bin"), "EACCES");
}

fn a_replaced_file_can_be_hidden_again() {
    let mut bed = Bed::new(|workspace| fs::write(workspace.join("key"), "old").unwrap(), &[b"key"]);
    assert_eq!(bed.ask("read /workspace/key"), "EACCES");
    let workspace = bed.workspace();
    fs::write(workspace.join("new"), "new").unwrap();
    fs::rename(workspace.join("new"), workspace.join("key")).unwrap();
    let again = |bed: &mut Bed, masks: &[&[u8]]| {
        let ask = |launch: &mut capsule_sandbox::Launch| {
            launch.hidden = masks.iter().map(|path| mask(path)).collect()
        };
        let exit = bed.probe_with("read /workspace/key", ask);
        text(&exit.stdout.bytes)
    };
    assert_eq!(again(&mut bed, &[b"key"]), "EACCES\n");
    // A name of any length can be hidden, and one that no file has hinders nobody.
    let (deep, long) = ("d/".repeat(2_500), "x".repeat(300));
    assert_eq!(again(&mut bed, &[deep.as_bytes(), long.as_bytes(), b"key"]), "EACCES\n");
}

fn nothing_is_left_in_the_workspace() {
    let listing = |path: &std::path::Path| {
        let mut all: Vec<String> = fs::read_dir(path)
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let facts = entry.metadata().unwrap();
                format!("{:?} {} {:?}", entry.file_name(), facts.len(), facts.modified().unwrap())
            })
            .collect();
        all.sort();
        all
    };
    let mut bed = Bed::new(
        |workspace| {
            fs::write(workspace.join("a"), "a").unwrap();
            fs::create_dir(workspace.join("b")).unwrap();
        },
        &[b"a", b"b", b"missing"],
    );
    let before = listing(&bed.workspace());
    bed.ask("write /workspace/new");
    bed.ask("write /workspace/missing");
    assert_eq!(listing(&bed.workspace()), before);
    let workspace = bed.workspace();
    assert_eq!(fs::read_to_string(workspace.join("a")).unwrap(), "a");
}

fn mounts_in_the_workspace_are_hidden() {
    const INSIDE: &str = "CAPSULE_TEST_MOUNTS";
    if std::env::var_os(INSIDE).is_none() {
        // An ordinary user can only mount something in namespaces of its own.
        let status = std::process::Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "--"])
            .arg(fs::read_link("/proc/self/exe").unwrap())
            .arg("mounts_in_the_workspace_are_hidden")
            .env(INSIDE, "1")
            .env("CAPSULE_TEST_WORLD", "user")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("workspace");
    fs::create_dir_all(workspace.join("d/disk")).unwrap();
    fs::write(workspace.join("d/disk/beneath"), "beneath").unwrap();
    fs::write(workspace.join("open"), "open").unwrap();
    mount("none", workspace.join("d/disk").as_path(), "tmpfs", MountFlags::empty(), None).unwrap();
    fs::write(workspace.join("d/disk/above"), "above").unwrap();
    let mut executor = Executor::start().unwrap();
    let view = capsule_sandbox::SandboxView {
        floor: crate::world::current().floor(),
        workspace: File::open(&workspace).unwrap().into(),
        root_names: RootNames::default(),
        staging: None,
        hidden: Vec::new(),
        programs: crate::bed::own(),
        toolchains: Vec::new(),
        repository: None,
        git: capsule_sandbox::GitFiles::default(),
    };
    let entered = executor.enter(view);
    unmount(workspace.join("d/disk").as_path(), UnmountFlags::DETACH).unwrap();
    entered.unwrap();
    let mut read = |path: &str| {
        let exit = executor.run(launch("/bin/cat", &["cat", path]), &mut Nobody).unwrap();
        text(&exit.stdout.bytes) + &text(&exit.stderr.bytes)
    };
    assert_eq!(read("/workspace/open"), "open");
    assert!(read("/workspace/d/disk/above").contains("Permission denied"));
    assert!(read("/workspace/d/disk/beneath").contains("Permission denied"));
    // Nor are they reached, moved or uncovered by a command that writes around them.
    for (line, open, goes_well) in [
        ("echo x > d/new", "", true),
        ("echo x > d/newer", "d", true),
        ("cat d/disk/above d/disk/beneath", "", false),
        ("cat d/disk/above d/disk/beneath", "d", false),
        ("echo x > d/disk/new", "d", false),
        ("rm -rf d/disk", "d", false),
        ("mv d/disk d/moved", "d", false),
        ("mv d moved", "", false),
    ] {
        let mut shell = launch("/bin/sh", &["sh", "-c", line]);
        shell.direct =
            Some(DirectWrites { writable: vec![open.into()], ..DirectWrites::default() });
        let exit = executor.run(shell, &mut Nobody).unwrap();
        let told = text(&exit.stdout.bytes) + &text(&exit.stderr.bytes);
        assert_eq!(
            exit.termination == Termination::Exited(0),
            goes_well,
            "{line} in `{open}`: {told}"
        );
        assert!(!told.contains("above\n") && !told.ends_with("beneath"), "{line}: {told}");
    }
    assert_eq!(fs::read_to_string(workspace.join("d/disk/beneath")).unwrap(), "beneath");
}
