//! One connection of a command, from its first byte to its last.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::mpsc::{Sender, sync_channel};
use std::time::Duration;

use capsule_base::code::Code;
use capsule_core::journal::ConnectionTarget;
use capsule_core::outcome::CodedError;

use super::dial::{check_host, dial, resolve};
use super::relay::relay;
use super::request::{ProxyRequest, RequestError, read_request};
use super::{Message, Shared};

/// How long a command may take to say where it wants to.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Serves a connection: to the host that it names, or to a port of the host's loopback.
pub(super) fn serve(
    mut stream: TcpStream,
    port: Option<u16>,
    (shared, number): (&Shared, u64),
    messages: &Sender<Message>,
) {
    if let Some(port) = port {
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let rule = Some("sandbox.network.loopback".to_owned());
        let target = ConnectionTarget {
            host: format!("localhost:{port}"),
            address: Some(address.to_string()),
            rule,
            problem: None,
        };
        if let Ok((connection, upstream)) =
            connect((shared, number), messages, (target, &[address]))
        {
            let bytes = relay((&stream, &upstream), &shared.ended, true);
            close(connection, bytes, (shared, messages));
        }
        return;
    }
    let _ = stream.set_read_timeout(Some(REQUEST_TIMEOUT));
    let request = match read_request(&mut stream) {
        Ok(request) => request,
        Err(RequestError::Refused(reply)) => {
            let _ = stream.write_all(&reply);
            return;
        }
        Err(RequestError::Ended) => return,
    };
    let _ = stream.set_read_timeout(None);
    match open(&request, (shared, number), messages) {
        Ok((connection, mut upstream)) => {
            let first = request.first_bytes();
            let begun =
                stream.write_all(request.accepted()).and_then(|()| upstream.write_all(first));
            let (sent, received) = match begun {
                Ok(()) => relay((&stream, &upstream), &shared.ended, request.sends_more()),
                Err(_) => (0, 0),
            };
            let sent = sent + u64::try_from(first.len()).unwrap_or_default();
            close(connection, (sent, received), (shared, messages));
        }
        Err(problem) => {
            let _ = stream.write_all(&request.refused(&problem));
        }
    }
}

/// Judges where a request leads, has it written down, and dials.
fn open(
    request: &ProxyRequest,
    (shared, number): (&Shared, u64),
    messages: &Sender<Message>,
) -> Result<(u64, TcpStream), CodedError> {
    let host = request.host_and_port();
    let judged = request
        .check_method()
        .and_then(|()| check_host(shared, request.target()))
        .and_then(|rule| Ok((rule, resolve(shared, request.target())?)));
    match judged {
        Ok((rule, addresses)) => {
            let address = addresses.first().map(ToString::to_string);
            let target = ConnectionTarget { host, address, rule: Some(rule), problem: None };
            connect((shared, number), messages, (target, &addresses))
        }
        Err(problem) => {
            let message = Some(problem.message.clone());
            let target = ConnectionTarget { host, address: None, rule: None, problem: message };
            request_record(shared, messages, target, Some(problem.code));
            Err(problem)
        }
    }
}

/// Has a request written down that may be dialled, and dials it.
fn connect(
    (shared, number): (&Shared, u64),
    messages: &Sender<Message>,
    (target, addresses): (ConnectionTarget, &[SocketAddr]),
) -> Result<(u64, TcpStream), CodedError> {
    let host = target.host.clone();
    let Some(connection) = request_record(shared, messages, target, None) else {
        let message = format!("the connection to `{host}` could not be written down");
        return Err(CodedError::new(Code::NetConnect, message));
    };
    let dialled = dial(addresses, &host).and_then(|upstream| {
        let mut open = shared.open();
        let ours = upstream.try_clone().ok().filter(|_| !open.is_closed);
        let sockets = open.sockets.get_mut(&number);
        match ours.zip(sockets) {
            Some((ours, sockets)) => sockets.push(ours),
            None => return Err(CodedError::new(Code::NetConnect, "the command has ended")),
        }
        Ok(upstream)
    });
    dialled.map(|upstream| (connection, upstream)).inspect_err(|_| {
        close(connection, (0, 0), (shared, messages));
    })
}

/// Has a request written down; gives the number of the connection, if that went well.
fn request_record(
    shared: &Shared,
    messages: &Sender<Message>,
    target: ConnectionTarget,
    refused: Option<Code>,
) -> Option<u64> {
    let (reply, answer) = sync_channel(1);
    shared.send(messages, Message::Requested { target, refused, reply });
    answer.recv().ok().flatten()
}

fn close(
    connection: u64,
    (sent, received): (u64, u64),
    (shared, messages): (&Shared, &Sender<Message>),
) {
    shared.send(messages, Message::Closed { connection, sent, received });
}
