//! The level that each kind of machine gives, and the way to the higher one: the restrictions of the machine are made
//! here, by filters on system calls, settings and covered files. The table of the book has the same rows.

#![allow(clippy::unwrap_used, reason = "tests fail by panics")]

use std::fs;

use capsule_testkit::{Capsule, CommandOutput};

/// Starts a program behind a filter that answers system calls with errors: words `NUMBER=ERRNO`, or
/// `NUMBER&MASK=ERRNO` where bits of the first argument are looked at.
const FILTER: &str = r#"
    my ($words, @command) = @ARGV;
    my @rows = map { /^(\d+)(?:&(\d+))?=(\d+)$/ or die "a row: $_"; [$1, $2, $3] } split / /, $words;
    my $filter = "";
    for my $row (@rows) {
        my ($number, $mask, $errno) = @$row;
        $filter .= pack("SCCL", 0x20, 0, 0, 0);
        $filter .= pack("SCCL", 0x15, 0, defined $mask ? 3 : 1, $number);
        $filter .= pack("SCCL", 0x20, 0, 0, 16) . pack("SCCL", 0x45, 0, 1, $mask) if defined $mask;
        $filter .= pack("SCCL", 0x06, 0, 0, 0x50000 | $errno);
    }
    $filter .= pack("SCCL", 0x06, 0, 0, 0x7fff0000);
    my $program = pack("S x![P] P", length($filter) / 8, $filter);
    syscall(157, 38, 1, 0, 0, 0) == 0 or die "no new privileges: $!";
    syscall(157, 22, 2, $program, 0, 0) == 0 or die "filter: $!";
    exec { $command[0] } @command or die "exec: $!";
"#;

/// What Docker's own filter refuses without `CAP_SYS_ADMIN` (numbers of x86-64): `clone` with the bits of
/// namespaces, `unshare`, `setns`, `mount`, `umount2`, `pivot_root`, `fsopen`, `fsmount`, `move_mount`, `open_tree`
/// and `mount_setattr` are not permitted, and `clone3` is not there.
const DOCKER: &str =
    "56&2114060288=1 272=1 308=1 165=1 166=1 155=1 430=1 432=1 429=1 428=1 442=1 435=38";
/// As rules of AppArmor on user namespaces: they can be made, and nothing can be mounted in them.
const NO_MOUNTS: &str = "165=13 166=13 155=13 430=13 432=13 429=13 428=13 442=13";

const FLOOR: &str = "\
version: 1
name: lower
sandbox: { floor: landlock }
tools: { shell.run: { executables: { cat: allow } } }
";

/// One kind of machine.
struct Row {
    name: &'static str,
    /// The words in front of the program.
    wrapper: &'static [&'static str],
    /// Whether the whole sandbox is had, so that every policy is served.
    is_full: bool,
    /// What `doctor` says beside the tier.
    says: &'static str,
}

const ROWS: &[Row] = &[
    Row { name: "desktop, server, WSL2", wrapper: &["env"], is_full: true, says: "namespaces" },
    Row {
        name: "user namespaces closed by their number",
        wrapper: &[
            "unshare",
            "--user",
            "--map-root-user",
            "sh",
            "-c",
            "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"",
            "sh",
        ],
        is_full: false,
        says: "`sysctl user.max_user_namespaces=10000`",
    },
    Row {
        name: "user namespaces without capabilities, as by AppArmor",
        wrapper: &["perl", "-e", FILTER, "--", NO_MOUNTS],
        is_full: false,
        says: "AppArmor",
    },
    Row {
        name: "a container of Docker",
        wrapper: &["perl", "-e", FILTER, "--", DOCKER],
        is_full: false,
        says: "--security-opt seccomp=FILE",
    },
    Row {
        name: "a container of Podman or LXC: its /proc is covered in part",
        wrapper: &[
            "unshare",
            "--user",
            "--map-root-user",
            "--mount",
            "--pid",
            "--fork",
            "--mount-proc",
            "sh",
            "-c",
            "mount --bind /dev/null /proc/keys && exec \"$@\"",
            "sh",
        ],
        is_full: false,
        says: "systempaths=unconfined",
    },
];

fn run(capsule: &Capsule, row: &Row, args: &[&str]) -> CommandOutput {
    capsule.command_behind(row.wrapper, args).output().unwrap().into()
}

fn faults(capsule: &Capsule, floor: &str, row: &Row) -> Vec<String> {
    let mut faults = Vec::new();
    let mut expect = |holds: bool, what: &str, ran: &CommandOutput| {
        if !holds {
            faults.push(format!("{}: {what}: {ran:?}", row.name));
        }
    };
    let doctor = run(capsule, row, &["doctor"]);
    expect(doctor.stdout.contains(row.says), "what doctor says", &doctor);
    let status = if row.is_full { 0 } else { 8 };
    for (what, args, status) in [
        (
            "a policy that wants the whole sandbox",
            &["exec", "--policy", "builtin:developer", "--", "cat", "a"][..],
            status,
        ),
        ("a policy that takes less", &["exec", "--policy", floor, "--", "cat", "a"], 0),
        ("a whole agent", &["sandbox", "--", "cat", "a"], status),
    ] {
        let ran = run(capsule, row, args);
        expect(ran.status == status, what, &ran);
        expect((status == 0) == (ran.stdout == "text\n"), what, &ran);
        expect(status == 0 || ran.stderr.contains("`capsule doctor`"), "no way forward", &ran);
    }
    faults
}

#[test]
fn each_kind_of_machine_gives_what_the_book_says() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    capsule.write_file("a", "text\n");
    let floor = capsule.write_policy(FLOOR);
    let faults: Vec<_> = ROWS.iter().flat_map(|row| faults(&capsule, &floor, row)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let page = fs::read_to_string("../../docs/book/guide/machines.md").unwrap();
    for row in ROWS {
        let level = if row.is_full { "namespaces" } else { "Landlock" };
        let line = format!("| {} | {level} |", row.name);
        assert!(page.contains(&line), "the page has no row `{line}`");
    }
}
