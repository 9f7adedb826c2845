//! What a call has around it so that ordinary programs work: a private loopback network, an account, terminals,
//! files that tell of the machine, and notices of changes. Each leads to nothing of the host's.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

use capsule_sandbox::Termination;

use crate::Test;
use crate::bed::{Bed, Rows, launch, text};

pub(crate) const TESTS: &[Test] = &[
    ("a_call_has_a_loopback_of_its_own", a_call_has_a_loopback_of_its_own),
    ("the_loopback_of_the_host_is_another", the_loopback_of_the_host_is_another),
    ("interfaces_are_asked_for_and_not_changed", interfaces_are_asked_for_and_not_changed),
    ("a_call_has_an_account", a_call_has_an_account),
    ("a_call_sees_its_own_limits", a_call_sees_its_own_limits),
    ("a_call_makes_terminals", a_call_makes_terminals),
    ("changes_are_watched_and_nothing_else", changes_are_watched_and_nothing_else),
    ("a_process_lowers_its_own_limits", a_process_lowers_its_own_limits),
];

fn perl(bed: &mut Bed, script: &str) -> String {
    let script = format!("use strict; use IO::Socket::INET; $| = 1; {script}");
    let result = bed.run("/usr/bin/perl", &["perl", "-e", &script]);
    text(&result.stdout.bytes) + &text(&result.stderr.bytes)
}

fn a_call_has_a_loopback_of_its_own() {
    let mut bed = Bed::plain();
    let mut rows = Rows::default();
    for (host, local) in
        [("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("127.0.0.1", "0.0.0.0")]
    {
        let seen = perl(
            &mut bed,
            &format!(
                "my $s = IO::Socket::INET->new(LocalAddr => '{local}', LocalPort => 0, Listen => 1) or die $!; \
                 if (!fork) {{ my $c = IO::Socket::INET->new(PeerAddr => '{host}', PeerPort => $s->sockport) or \
                 die $!; print $c 'hello'; exit }} my $c = $s->accept; print <$c>; wait;"
            ),
        );
        rows.check(seen == "hello", || format!("{host}: {seen}"));
    }
    let seen = perl(
        &mut bed,
        "use Socket qw(:DEFAULT IPPROTO_TCP); use Socket qw(inet_pton pack_sockaddr_in6 unpack_sockaddr_in6); \
         socket(my $s, PF_INET6, SOCK_STREAM, 0) or die $!; bind($s, pack_sockaddr_in6(0, inet_pton(AF_INET6, '::1'))) or \
         die $!; listen($s, 1); my ($port) = unpack_sockaddr_in6(getsockname $s); socket(my $c, PF_INET6, SOCK_STREAM, \
         0); connect($c, pack_sockaddr_in6($port, inet_pton(AF_INET6, '::1'))) or die $!; print 'joined';",
    );
    rows.check(seen == "joined", || format!("IPv6: {seen}"));
    let seen = perl(
        &mut bed,
        "my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Proto => 'udp') or die $!; my $c = \
         IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $s->sockport, Proto => 'udp') or die $!; \
         $c->send('data'); $s->recv(my $got, 9); print $got;",
    );
    rows.check(seen == "data", || format!("UDP: {seen}"));
    let seen =
        perl(&mut bed, "use Sys::Hostname; print join '.', unpack 'C4', gethostbyname hostname");
    rows.check(seen == "127.0.0.1", || format!("the host name: {seen}"));
    rows.end();
}

fn the_loopback_of_the_host_is_another() {
    let servers = ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0"].map(|at| TcpListener::bind(at).unwrap());
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut bed = Bed::plain();
    let mut rows = Rows::default();
    for server in &servers {
        server.set_nonblocking(true).unwrap();
        let port = server.local_addr().unwrap().port();
        for host in ["127.0.0.1", "127.0.0.2", "[::1]", "0.0.0.0"] {
            let seen = bed.ask(&format!("tcp {host}:{port}"));
            rows.check(seen != "done", || format!("{host}:{port}: {seen}"));
        }
        rows.check(server.accept().is_err(), || format!("a call came to {server:?}"));
    }
    // It can be sent, and arrives nowhere.
    let _ = bed.ask(&format!("udp {}", udp.local_addr().unwrap()));
    rows.check(udp.recv(&mut [0; 8]).is_err(), || "a datagram came to the host".into());
    for target in ["169.254.169.254:80", "10.0.0.1:80", "192.168.0.1:80", "1.1.1.1:443"] {
        let seen = bed.ask(&format!("tcp {target}"));
        rows.check(seen == "ENETUNREACH" || seen == "errno 101", || format!("{target}: {seen}"));
    }
    // Nothing of the host's comes to it either, and another run's is another one.
    let mut other = Bed::plain();
    let listen = "my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 34_567, Listen => 1) or die $!; \
        print 'bound'";
    rows.check(perl(&mut bed, listen) == "bound", || "the port cannot be bound".into());
    rows.check(perl(&mut other, listen) == "bound", || "another run's is in its way".into());
    rows.end();
}

fn interfaces_are_asked_for_and_not_changed() {
    let mut bed = Bed::plain();
    // RTM_NEWLINK for a dummy interface, RTM_NEWADDR on the first one: header, then zeroes.
    let script = "socket(my $s, 16, 3, 0) or die qq(socket $!); for my $kind (16, 20) { my $m = pack('LSSLL', 40, $kind, \
        0x605, 1, 0) . pack('CCCCLLLL', 2, 8, 0, 0, 1, 0, 0, 0) . pack('L', 0); send($s, $m, 0, pack('SSLL', 16, 0, 0, 0)) or \
        die qq(send $!); recv($s, my $got, 4096, 0); my (undef, $type) = unpack 'LS', $got; print qq($type ), \
        -unpack('l', substr $got, 16, 4), qq(\\n); } my $dump = pack('LSSLL', 20, 18, 0x301, 2, 0) . pack('L', 0); send($s, \
        $dump, 0, pack('SSLL', 16, 0, 0, 0)); recv($s, my $got, 65536, 0); print $got =~ /lo\\0/ ? 'lo' : 'none';";
    let seen = perl(&mut bed, script);
    // Type 2 is an error; 1 says that the call is not permitted.
    assert_eq!(seen, "2 1\n2 1\nlo");
}

fn a_call_has_an_account() {
    let mut bed = Bed::plain();
    let user = rustix::process::getuid().as_raw();
    let name = if user == 0 { "root" } else { "user" };
    let result = bed.run("/bin/sh", &["sh", "-c", "whoami; id -u; id -gn; hostname; echo ~"]);
    let group = if rustix::process::getgid().as_raw() == 0 { "root" } else { "user" };
    let seen = text(&result.stdout.bytes) + &text(&result.stderr.bytes);
    assert_eq!(seen, format!("{name}\n{user}\n{group}\ncapsule\n/run/home\n"));
    // No name of the host's is among them.
    let all = bed.probe("read /etc/passwd\nread /etc/group\nread /etc/hosts\nread /etc/hostname");
    assert_eq!(all[0].matches("\\n").count() + all[1].matches("\\n").count(), 2, "{all:?}");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert!(all.iter().all(|file| !file.contains(host.trim())), "{all:?}");
    let changed = bed.run("/bin/sh", &["sh", "-c", "echo x >> /etc/passwd"]);
    assert_ne!(changed.termination, Termination::Exited(0));
}

fn a_call_sees_its_own_limits() {
    let mut bed = Bed::plain();
    let mut launch = launch(
        "/bin/sh",
        &[
            "sh",
            "-c",
            "nproc; grep -c ^processor /proc/cpuinfo; grep -c '^cpu[0-9]' /proc/stat; grep MemTotal /proc/meminfo; cat \
             /sys/fs/cgroup/memory.max; free -k | awk '/Mem/ {print $2}'; ps aux | grep -c '[p]s aux$'; lscpu > /dev/null && echo \
             lscpu; cat /sys/devices/system/cpu/online",
        ],
    );
    launch.limits.memory_bytes = 300 << 20;
    let result = bed.try_run(launch).unwrap();
    let seen = text(&result.stdout.bytes) + &text(&result.stderr.bytes);
    let count = std::thread::available_parallelism().unwrap().get();
    let range = if count == 1 { "0".to_owned() } else { format!("0-{}", count - 1) };
    let expected = format!(
        "{count}\n{count}\n{count}\nMemTotal:         307200 kB\n314572800\n307200\n1\nlscpu\n{range}\n"
    );
    assert_eq!(seen, expected);
    // Nothing else of the machine is told, nor can these files be changed or uncovered.
    let mut rows = Rows::default();
    for path in ["interrupts", "diskstats", "net/arp", "sys/kernel/osrelease", "cmdline", "modules"]
    {
        let seen = bed.ask(&format!("read /proc/{path}"));
        let is_link = path == "net/arp" && seen == "ENOENT";
        rows.check(is_link || seen == "ENOENT", || format!("{path}: {seen}"));
    }
    for path in [
        "/proc/meminfo",
        "/proc/stat",
        "/proc/cgroups",
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/cgroup.procs",
        "/sys/new",
    ] {
        let seen = bed.ask(&format!("write {path}"));
        let held = ["EROFS", "EACCES", "EPERM", "ENOENT"].contains(&seen.as_str());
        rows.check(held, || format!("{path}: {seen}"));
    }
    // A runtime finds the files by the list of mounts, and of the group itself nothing more can be read.
    let mounts = bed.ask("read /proc/self/mountinfo");
    let is_old = bed.ask("read /proc/self/cgroup").contains(":memory:");
    let mounted = if is_old { "/sys/fs/cgroup/memory ro" } else { "/sys/fs/cgroup ro" };
    rows.check(mounts.contains(mounted) && mounts.contains("- cgroup"), || mounts.clone());
    for name in ["cgroup.procs", "cgroup.events", "memory.stat", "cpu.pressure", "memory/tasks"] {
        let seen = bed.ask(&format!("read /sys/fs/cgroup/{name}"));
        rows.check(["ENOENT", "EACCES"].contains(&seen.as_str()), || format!("{name}: {seen}"));
    }
    let seen = bed.ask("read /proc/cgroups");
    rows.check(seen.contains("memory") && !seen.contains("pids"), || seen.clone());
    let inner = if is_old { " memory " } else { " memory.max " };
    let seen = format!(" {} ", bed.ask("list /sys/fs/cgroup"));
    rows.check(seen.contains(inner) && !seen.contains("capsule"), || seen.clone());
    rows.end();
}

fn a_call_makes_terminals() {
    let mut bed = Bed::plain();
    let script = "open(my $m, '+<', '/dev/ptmx') or die qq(ptmx $!); my $n = pack('I', 0); ioctl($m, 0x80045430, $n) or die \
        qq(number $!); my $u = pack('i', 0); ioctl($m, 0x40045431, $u) or die qq(unlock $!); $n = unpack('I', $n); \
        open(my $s, '+<', qq(/dev/pts/$n)) or die qq(open $!); syswrite($s, qq(hello\\n)); sysread($m, my $got, 9); print \
        $got; my $in = qq(x); print ioctl($s, 0x5412, $in) ? 'TYPED' : 'held';";
    assert_eq!(perl(&mut bed, script), "hello\r\nheld");
    // The next call begins with none, and none of the host's is among them.
    assert_eq!(bed.ask("list /dev/pts"), "ptmx");
    let many = "my @all; for (1..200) { open(my $m, '+<', '/dev/ptmx') or last; push @all, $m } print scalar @all;";
    assert_eq!(perl(&mut bed, many), "64");
}

/// `inotify`, by the numbers of the kernel's calls: 294 (`init1`) and 254 (`add_watch`) on x86-64, 26 and 27 elsewhere.
const WATCH: &str = "my ($init, $add) = `uname -m` =~ /x86_64/ ? (294, 254) : (26, 27); my $fd = syscall($init, 0); \
    sub watch { my ($path, $mask) = @_; syscall($add, $fd, $path, $mask) > 0 ? 'watched' : 'held' }";

fn changes_are_watched_and_nothing_else() {
    let mut bed = Bed::plain();
    let script = format!(
        "{WATCH} print watch('/tmp', 0x3c6), ' '; open(my $f, '>', '/tmp/new'); close $f; open(my $in, '<&=', $fd); \
         sysread($in, my $got, 4096); print $got =~ /new/ ? 'told' : 'silent';"
    );
    assert_eq!(perl(&mut bed, &script), "watched told");
    let mut rows = Rows::default();
    // IN_ACCESS, IN_CLOSE_NOWRITE, IN_OPEN: what the host starts and reads.
    for mask in [0x1, 0x10, 0x20, 0xfff, 0x3c6 | 0x20] {
        for path in ["/usr/bin", "/usr/bin/perl", "/tmp"] {
            let seen = perl(&mut bed, &format!("{WATCH} print watch('{path}', {mask})"));
            rows.check(seen == "held", || format!("{path} {mask:x}: {seen}"));
        }
    }
    rows.end();
}

fn a_process_lowers_its_own_limits() {
    let mut bed = Bed::plain();
    let line = "ulimit -n 64 && ulimit -n && ulimit -f 100 && ulimit -v 900000 && ulimit -t 5 && echo lowered";
    let result = bed.run("/bin/sh", &["sh", "-c", line]);
    assert_eq!(text(&result.stdout.bytes), "64\nlowered\n", "{}", text(&result.stderr.bytes));
    let result = bed.run("/bin/sh", &["sh", "-c", "ulimit -n 64; ulimit -n 65 && echo RAISED"]);
    assert!(!text(&result.stdout.bytes).contains("RAISED"));
}
