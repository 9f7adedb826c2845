//! There is nobody to talk to.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

use crate::Test;
use crate::bed::{Bed, Rows};

pub(crate) const TESTS: &[Test] = &[
    ("the_host_is_not_reached_over_ip", the_host_is_not_reached_over_ip),
    ("sockets_in_the_workspace_are_not_reached", sockets_in_the_workspace_are_not_reached),
    ("abstract_sockets_are_not_reached", abstract_sockets_are_not_reached),
    ("other_families_cannot_be_made", other_families_cannot_be_made),
    ("pairs_of_sockets_work", pairs_of_sockets_work),
];

fn the_host_is_not_reached_over_ip() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut bed = Bed::plain();
    let mut rows = Rows::default();
    for question in [
        format!("tcp {}", tcp.local_addr().unwrap()),
        format!("udp {}", udp.local_addr().unwrap()),
        "tcp 1.1.1.1:80".to_owned(),
        "tcp [::1]:80".to_owned(),
        "udp 8.8.8.8:53".to_owned(),
        "tcp 169.254.169.254:80".to_owned(),
    ] {
        let got = bed.ask(&question);
        // No server listens on its loopback, and a datagram to it is lost.
        let stopped = ["ENETUNREACH", "EACCES", "EPERM", "errno 99", "errno 101", "errno 111"];
        let is_lost = got == "done" && question.starts_with("udp 127.");
        rows.check(is_lost || stopped.contains(&got.as_str()), || format!("{question}: {got}"));
    }
    udp.set_nonblocking(true).unwrap();
    rows.check(udp.recv(&mut [0; 8]).is_err(), || "a datagram came".into());
    tcp.set_nonblocking(true).unwrap();
    rows.check(tcp.accept().is_err(), || "a connection came".into());
    // Ping: where the kernel lets the socket be made, it leads nowhere.
    let inet = libc::AF_INET;
    let icmp = format!("call {} {inet} {} 1", libc::SYS_socket, libc::SOCK_DGRAM);
    let raw = format!("call {} {inet} {} 255", libc::SYS_socket, libc::SOCK_RAW);
    let got = bed.probe(&format!("{icmp}\n{raw}\nlist /sys/class/net"));
    rows.check(got[0] == "EACCES" || got[0] == "EPERM" || got[0].parse::<i32>().is_ok(), || {
        got[0].clone()
    });
    rows.check(got[1] == "EPERM", || format!("raw socket: {}", got[1]));
    rows.end();
}

fn sockets_in_the_workspace_are_not_reached() {
    let mut listeners = Vec::new();
    let mut bed = Bed::new(
        |workspace| {
            listeners.push(UnixListener::bind(workspace.join("stream")).unwrap());
        },
        &[],
    );
    let datagram = UnixDatagram::bind(bed.workspace().join("datagram")).unwrap();
    datagram.set_nonblocking(true).unwrap();
    listeners[0].set_nonblocking(true).unwrap();
    let mut rows = Rows::default();
    for question in ["connect /workspace/stream", "send /workspace/datagram"] {
        let got = bed.ask(question);
        rows.check(["EPERM", "EACCES"].contains(&got.as_str()), || format!("{question}: {got}"));
    }
    // A pair of datagram sockets could be sent on to a path.
    let pair =
        format!("call {} {} {} 0 b:8", libc::SYS_socketpair, libc::AF_UNIX, libc::SOCK_DGRAM);
    let flagged = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let flagged = format!("call {} {} {flagged} 0 b:8", libc::SYS_socketpair, libc::AF_UNIX);
    for question in [pair, flagged] {
        let got = bed.ask(&question);
        rows.check(got == "EPERM", || format!("{question}: {got}"));
    }
    rows.check(listeners[0].accept().is_err(), || "somebody connected".to_owned());
    rows.check(datagram.recv(&mut [0; 8]).is_err(), || "somebody sent".to_owned());
    rows.end();
}

fn abstract_sockets_are_not_reached() {
    let name = format!("capsule-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    listener.set_nonblocking(true).unwrap();
    let mut bed = Bed::plain();
    // struct sockaddr_un: the family, a NUL, the name.
    let mut bytes = vec![1_u8, 0, 0];
    bytes.extend_from_slice(name.as_bytes());
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let socket = format!("call {} {} {} 0", libc::SYS_socket, libc::AF_UNIX, libc::SOCK_STREAM);
    let connect = format!("call {} 3 x:{hex} {}", libc::SYS_connect, bytes.len());
    let got = bed.probe(&format!("{socket}\n{connect}"));
    assert!(got[1].starts_with('E') || got[1].starts_with("errno"), "{got:?}");
    assert!(listener.accept().is_err(), "somebody connected");
}

fn other_families_cannot_be_made() {
    let mut bed = Bed::plain();
    let mut rows = Rows::default();
    for (name, family) in [
        ("packet", libc::AF_PACKET),
        ("alg", libc::AF_ALG),
        ("vsock", libc::AF_VSOCK),
        ("bluetooth", libc::AF_BLUETOOTH),
        ("can", libc::AF_CAN),
        ("tipc", libc::AF_TIPC),
        ("rds", libc::AF_RDS),
        ("xdp", libc::AF_XDP),
        ("smc", 43),
        ("unknown", 45),
    ] {
        for kind in [libc::SOCK_STREAM, libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_SEQPACKET] {
            let got = bed.ask(&format!("call {} {family} {kind} 0", libc::SYS_socket));
            rows.check(got == "EPERM", || format!("{name} {kind}: {got}"));
        }
    }
    for (name, protocol) in [("sctp", 132), ("mptcp", 262), ("dccp", 33), ("udplite", 136)] {
        let inet = libc::AF_INET;
        let got =
            bed.ask(&format!("call {} {inet} {} {protocol}", libc::SYS_socket, libc::SOCK_STREAM));
        rows.check(got == "EPERM", || format!("{name}: {got}"));
    }
    // Every protocol of netlink but the questions about interfaces.
    for protocol in 1..32 {
        let netlink = libc::AF_NETLINK;
        let got =
            bed.ask(&format!("call {} {netlink} {} {protocol}", libc::SYS_socket, libc::SOCK_RAW));
        rows.check(got == "EPERM", || format!("netlink {protocol}: {got}"));
    }
    // Bits that the kernel ignores must not get past the comparison.
    let high = (1_i64 << 32) | i64::from(libc::AF_PACKET);
    let got = bed.ask(&format!("call {} {high} {} 0", libc::SYS_socket, libc::SOCK_RAW));
    rows.check(got == "EPERM", || format!("high bits: {got}"));
    rows.end();
}

fn pairs_of_sockets_work() {
    let mut bed = Bed::plain();
    let pair =
        format!("call {} {} {} 0 b:8", libc::SYS_socketpair, libc::AF_UNIX, libc::SOCK_STREAM);
    assert_eq!(bed.ask(&pair), "0");
}
