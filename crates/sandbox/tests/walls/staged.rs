//! The staged workspace: commands write, and the workspace stays what it is.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::os::unix::net::{UnixDatagram, UnixListener};

use capsule_sandbox::Termination;
use rustix::fs::{Mode, OFlags, openat};

use crate::Test;
use crate::bed::{Bed, Rows, text};

pub(crate) const TESTS: &[Test] = &[
    ("changes_are_collected", changes_are_collected),
    ("only_calls_that_may_write_do", only_calls_that_may_write_do),
    ("one_view_for_both_sides", one_view_for_both_sides),
    ("what_is_hidden_stays_hidden", what_is_hidden_stays_hidden),
    ("a_copy_is_written_in_its_place", a_copy_is_written_in_its_place),
    ("the_host_is_not_reached_through_it", the_host_is_not_reached_through_it),
    ("sockets_of_a_call_work", sockets_of_a_call_work),
    ("sockets_of_the_host_lead_nowhere", sockets_of_the_host_lead_nowhere),
];

fn lay(workspace: &std::path::Path) {
    fs::create_dir_all(workspace.join("d/e")).unwrap();
    fs::write(workspace.join("file"), "content").unwrap();
    fs::write(workspace.join("d/gone"), "x").unwrap();
    fs::write(workspace.join("d/e/deep"), "x").unwrap();
}

fn read(root: &OwnedFd, path: &str) -> Option<String> {
    let file = openat(root, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut found = String::new();
    File::from(file).read_to_string(&mut found).unwrap();
    Some(found)
}

fn changes_are_collected() {
    let (mut bed, _shared) = Bed::staged(lay, &[]);
    let exit = bed.write(
        "set -e; echo more >> file; rm d/gone; mkdir new; echo n > new/n; rm -r d/e; mkdir d/e; \
         ln -s file link; mkfifo pipe; mv new/n new/m; cat file",
    );
    assert_eq!(exit.termination, Termination::Exited(0), "{}", text(&exit.stderr.bytes));
    assert_eq!(text(&exit.stdout.bytes), "contentmore\n");
    let (workspace, changes) = (bed.workspace(), bed.changes());
    assert_eq!(fs::read_to_string(workspace.join("file")).unwrap(), "content");
    assert_eq!(fs::read_to_string(workspace.join("d/e/deep")).unwrap(), "x");
    assert!(workspace.join("d/gone").exists() && !workspace.join("new").exists());
    assert_eq!(fs::read_to_string(changes.join("file")).unwrap(), "contentmore\n");
    assert_eq!(fs::read_to_string(changes.join("new/m")).unwrap(), "n\n");
    let kind = |path: &str| fs::symlink_metadata(changes.join(path)).unwrap().file_type();
    assert!(kind("d/gone").is_char_device(), "a mark in place of what was removed");
    assert!(kind("d/e").is_dir() && kind("link").is_symlink() && kind("pipe").is_fifo());
    // The next command of the run sees what this one left.
    assert_eq!(text(&bed.run("/bin/ls", &["ls", "new"]).stdout.bytes), "m\n");
}

fn only_calls_that_may_write_do() {
    only_some_write(Bed::staged(lay, &[]).0);
    only_some_write(Bed::copied(lay, &[]));
    let mut plain = Bed::plain();
    let mut launch = crate::bed::launch("/bin/true", &["true"]);
    launch.writes = true;
    let refused = plain.try_run(launch).unwrap_err().to_string();
    assert!(refused.contains("mount the changes"), "{refused}");
}

fn only_some_write(mut bed: Bed) {
    let mut rows = Rows::default();
    for round in 0..2 {
        for line in ["write /workspace/new", "append /workspace/file", "write /workspace/d/new"] {
            let got = bed.ask(line);
            rows.check(["EROFS", "EACCES"].contains(&got.as_str()), || format!("{line}: {got}"));
        }
        // A call that may write before one that may not makes no difference.
        let exit = bed.write(&format!("echo {round} > w{round}"));
        rows.check(exit.termination == Termination::Exited(0), || text(&exit.stderr.bytes));
    }
    rows.end();
}

fn a_copy_is_written_in_its_place() {
    let mut bed = Bed::copied(lay, &[b"d/e"]);
    let exit =
        bed.write("set -e; echo more >> file; rm d/gone; mv d moved; ls moved/e; cat moved/e/deep || echo hidden");
    assert_eq!(exit.termination, Termination::Exited(0), "{}", text(&exit.stderr.bytes));
    assert_eq!(text(&exit.stdout.bytes), "hidden\n");
    let (workspace, copy) = (bed.workspace(), bed.changes());
    assert_eq!(fs::read_to_string(workspace.join("file")).unwrap(), "content");
    assert!(workspace.join("d/gone").exists() && !workspace.join("moved").exists());
    assert_eq!(fs::read_to_string(copy.join("file")).unwrap(), "contentmore\n");
    assert!(copy.join("moved/e/deep").exists() && !copy.join("moved/gone").exists());
    // What is hidden does not come back for the next command under the other name.
    let exit = bed.run("/bin/cat", &["cat", "file", "moved/e/deep"]);
    assert_eq!(text(&exit.stdout.bytes), "contentmore\n");
    assert_ne!(
        bed.run("/bin/rm", &["rm", "file"]).termination,
        Termination::Exited(0),
        "it may not write"
    );
}

fn one_view_for_both_sides() {
    let (mut bed, shared) = Bed::staged(lay, &[]);
    assert_eq!(read(&shared, "file").as_deref(), Some("content"));
    let exit = bed.write("echo by-command > file; rm d/gone");
    assert_eq!(exit.termination, Termination::Exited(0), "{}", text(&exit.stderr.bytes));
    assert_eq!(read(&shared, "file").as_deref(), Some("by-command\n"));
    assert_eq!(read(&shared, "d/gone"), None);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
    let file = openat(&shared, "by-tool", flags, Mode::from_raw_mode(0o644)).unwrap();
    File::from(file).write_all(b"by-tool").unwrap();
    assert_eq!(text(&bed.run("/bin/cat", &["cat", "by-tool"]).stdout.bytes), "by-tool");
    assert!(!bed.workspace().join("by-tool").exists() && bed.changes().join("by-tool").exists());
}

fn what_is_hidden_stays_hidden() {
    let lay = |workspace: &std::path::Path| {
        fs::create_dir_all(workspace.join("a/keys")).unwrap();
        fs::write(workspace.join("a/.env"), "secret").unwrap();
        fs::write(workspace.join("a/keys/id"), "secret").unwrap();
    };
    let masks: &[&[u8]] = &[b"a/.env", b"a/keys"];
    let (mut bed, _shared) = Bed::staged(lay, masks);
    let mut rows = Rows::default();
    for line in [
        "cat a/.env",
        "cat a/keys/id",
        "mv a/.env a/plain && cat a/plain",
        "mv a b && cat b/.env",
        "rm -f a/.env; cat a/.env",
        "ln a/.env a/linked && cat a/linked",
        "cp -r a c && cat c/.env",
        "chmod 777 a/.env a/keys; cat a/.env",
        "rm -rf a; cat a/.env",
        "echo new > a/.env",
    ] {
        let mut launch = crate::bed::launch("/bin/sh", &["sh", "-c", line]);
        launch.writes = true;
        launch.hidden = masks.iter().map(|path| crate::bed::mask(path)).collect();
        let exit = bed.try_run(launch).unwrap();
        let told = text(&exit.stdout.bytes);
        rows.check(!told.contains("secret"), || format!("{line}: {told}"));
        rows.check(exit.termination != Termination::Exited(0), || format!("{line}: it went well"));
    }
    rows.end();
    assert_eq!(fs::read_to_string(bed.workspace().join("a/.env")).unwrap(), "secret");
}

/// Pipes and sockets that stand in the workspace lead to processes of the host.
fn the_host_is_not_reached_through_it() {
    let mut listener = None;
    let lay = |workspace: &std::path::Path| {
        let pipe = std::ffi::CString::new(workspace.join("pipe").to_str().unwrap()).unwrap();
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o666) }, 0);
        listener = Some(UnixListener::bind(workspace.join("socket")).unwrap());
        symlink("/etc/passwd", workspace.join("out")).unwrap();
    };
    let (mut bed, _shared) = Bed::staged(lay, &[]);
    let pipe = File::options().read(true).write(true).open(bed.workspace().join("pipe")).unwrap();
    rustix::fs::fcntl_setfl(&pipe, OFlags::NONBLOCK).unwrap();
    let _ = bed.write("timeout 1 sh -c 'echo x 1<> pipe > pipe'");
    let got = rustix::io::read(&pipe, &mut [0_u8; 8]);
    assert_eq!(got, Err(rustix::io::Errno::AGAIN), "nothing came through the pipe");
    let exit = bed.write("echo x > out");
    assert_ne!(exit.termination, Termination::Exited(0));
    let connect = "perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Peer => q(socket)) or exit 9'";
    assert_eq!(bed.write(connect).termination, Termination::Exited(9));
}

/// Processes of a call reach each other by the names of sockets, wherever they may write.
fn sockets_of_a_call_work() {
    let (mut bed, _shared) = Bed::staged(lay, &[]);
    for kind in ["SOCK_STREAM", "SOCK_DGRAM", "SOCK_SEQPACKET"] {
        for place in ["/tmp/s", "/workspace/s", "/workspace/d/e/s", "/dev/shm/t", "/var/tmp/u"] {
            let talk = format!(
                "use Socket; my $at = pack_sockaddr_un(q({place})); unlink q({place}); \
                 socket(my $s, AF_UNIX, {kind}, 0) or die qq(socket $!); bind($s, $at) or die qq(bind $!); \
                 {kind} == SOCK_DGRAM or listen($s, 1) or die qq(listen $!); \
                 if (!fork) {{ socket(my $c, AF_UNIX, {kind}, 0); connect($c, $at) or die qq(connect $!); \
                 send($c, q(hello), 0); exit 0 }} my $r = $s; \
                 {kind} == SOCK_DGRAM or accept($r = undef, $s) or die qq(accept $!); \
                 recv($r, my $got, 9, 0); wait; $got eq q(hello) && !$? or die qq(got $got)"
            );
            let exit = bed.write(&format!("exec perl -e '{talk}'"));
            let said = text(&exit.stderr.bytes);
            assert_eq!(exit.termination, Termination::Exited(0), "{kind} {place}: {said}");
        }
    }
}

/// Sockets of the host lead nowhere, wherever they are seen and whenever they were made.
fn sockets_of_the_host_lead_nowhere() {
    let mut listeners = Vec::new();
    let mut listen = |path: std::path::PathBuf| {
        let datagram = UnixDatagram::bind(path.with_extension("datagram")).unwrap();
        datagram.set_nonblocking(true).unwrap();
        let listener = UnixListener::bind(path).unwrap();
        listener.set_nonblocking(true).unwrap();
        listeners.push((listener, datagram));
    };
    let lay = |workspace: &std::path::Path| listen(workspace.join("early"));
    let (mut bed, _shared) = Bed::staged(lay, &[]);
    let tool = bed.tool_directory();
    listen(bed.workspace().join("late"));
    listen(tool.join("late"));
    for (round, change) in
        ["true", "chmod 777 early*", "ln early linked", "mv early moved"].iter().enumerate()
    {
        for path in [
            "early",
            "late",
            "linked",
            "moved",
            "early.datagram",
            "/tool/late",
            "/tool/late.datagram",
        ] {
            let attempt = format!(
                "use Socket; for my $kind (SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET) {{ \
                 socket(my $s, AF_UNIX, $kind, 0) or next; my $at = pack_sockaddr_un(q({path})); \
                 exit 9 if connect($s, $at) || defined send($s, q(x), 0, $at); \
                 socketpair(my $a, my $b, AF_UNIX, $kind, 0) or next; \
                 $kind == SOCK_DGRAM && defined send($a, q(x), 0, $at) && exit 8 }}"
            );
            let exit = bed.write(&format!("{change} 2> /dev/null; exec perl -e '{attempt}'"));
            assert_eq!(
                exit.termination,
                Termination::Exited(0),
                "{round} {path}: {}",
                text(&exit.stderr.bytes)
            );
        }
    }
    for (listener, datagram) in listeners {
        assert!(listener.accept().is_err() && datagram.recv(&mut [0; 8]).is_err());
    }
}
