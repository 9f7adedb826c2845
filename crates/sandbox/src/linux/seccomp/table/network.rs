//! Sockets. A command has a network of its own with nobody else in it; what remains to be guarded
//! is the sockets that lie in the file system, which no namespace keeps apart.

use crate::linux::seccomp::rule::Rule::{Allow, When};
use crate::linux::seccomp::rule::{Call, Clause, call, masked, one_of};

const INTERNET: &[u32] = &[libc::AF_INET as u32, libc::AF_INET6 as u32];
const LOCAL: &[u32] = &[libc::AF_UNIX as u32];

/// The plain protocols. Others (SCTP, MPTCP, DCCP, SMC) are large surfaces, and Landlock's rules
/// on TCP do not see them.
const PROTOCOLS: &[u32] = &[
    0,
    libc::IPPROTO_TCP as u32,
    libc::IPPROTO_UDP as u32,
    libc::IPPROTO_ICMP as u32,
    libc::IPPROTO_ICMPV6 as u32,
];

/// The low bits of a socket's type; the others are flags.
const TYPE: u32 = 0xf;

/// Questions about the interfaces of the network namespace; changing them takes privileges.
const QUESTIONS: Clause =
    &[one_of(0, &[libc::AF_NETLINK as u32]), one_of(2, &[libc::NETLINK_ROUTE as u32])];

/// Internet sockets that lead nowhere. No packet, vsock, crypto or other exotic family, and no other
/// protocol of netlink.
const FAMILIES: &[Clause] = &[&[one_of(0, INTERNET), one_of(2, PROTOCOLS)], QUESTIONS];

/// The same with local sockets: for the executor, and for commands where Landlock judges whom
/// they may connect to.
const FAMILIES_AND_LOCAL: &[Clause] =
    &[&[one_of(0, INTERNET), one_of(2, PROTOCOLS)], QUESTIONS, &[one_of(0, LOCAL)]];

/// Pairs that stay connected to each other. A pair of datagram sockets could be sent on to any
/// path, which would make it a way to a socket of the host.
pub(super) const PAIRS: &[Clause] = &[&[
    one_of(0, LOCAL),
    masked(1, TYPE, &[libc::SOCK_STREAM as u32, libc::SOCK_SEQPACKET as u32]),
]];

/// Any pair.
const PAIRS_AND_DATAGRAMS: &[Clause] = &[&[one_of(0, LOCAL)]];

pub(super) const CALLS: &[Call] = &[
    call!(
        SYS_socket,
        When(FAMILIES, libc::EPERM),
        executor When(FAMILIES_AND_LOCAL, libc::EPERM),
        "sockets that lead nowhere; local ones only where Landlock guards them"
    ),
    call!(
        SYS_socketpair,
        When(PAIRS, libc::EPERM),
        executor When(PAIRS_AND_DATAGRAMS, libc::EPERM),
        "two ends of one's own; programs talk to their children so"
    ),
    call!(SYS_connect, Allow, "there is nobody to connect to"),
    call!(SYS_bind, Allow, "nobody else can see it"),
    call!(SYS_listen, Allow, "nobody else can reach it"),
    call!(SYS_accept, Allow, "nobody else can reach it"),
    call!(SYS_accept4, Allow, "nobody else can reach it"),
    call!(SYS_getsockname, Allow, "facts of a socket"),
    call!(SYS_getpeername, Allow, "facts of a socket"),
    call!(SYS_setsockopt, Allow, "settings of a socket"),
    call!(SYS_getsockopt, Allow, "settings of a socket"),
    call!(SYS_sendto, Allow, "send"),
    call!(SYS_recvfrom, Allow, "receive"),
    call!(SYS_sendmsg, Allow, "send with descriptors"),
    call!(SYS_recvmsg, Allow, "receive with descriptors"),
    call!(SYS_sendmmsg, Allow, "send many"),
    call!(SYS_recvmmsg, Allow, "receive many"),
    call!(SYS_shutdown, Allow, "end one direction"),
];

/// The calls whose rule for commands is there only because nothing else keeps local sockets apart.
pub(crate) const LOCAL_SOCKETS: [i64; 2] = [libc::SYS_socket, libc::SYS_socketpair];
