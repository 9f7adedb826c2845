//! One connection of a command, from its first byte to its last.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use capsule_core::journal::ConnectionTarget;
use capsule_core::lifecycle::AllowedBy;
use capsule_core::outcome::CodedError;
use capsule_core::policy::HostJudgement;

use super::dial::{Route, dial, resolve};
use super::relay::Relay;
use super::request::{ProxyRequest, RequestError, read_request};
use super::shared::{Ended, Message, OpenConnection, Shared};

/// How long a command may take to send the next part of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Serves a connection: to the host that it names, or to a port of the host's loopback.
pub(super) fn serve(
    stream: &TcpStream,
    port: Option<u16>,
    connection: &OpenConnection,
    messages: &Sender<Message>,
) {
    if let Some(port) = port {
        return serve_port(stream, port, connection, messages);
    }
    let _ = stream.set_read_timeout(Some(REQUEST_TIMEOUT));
    match read_request(&mut &*stream) {
        Ok(request) => {
            let _ = stream.set_read_timeout(None);
            serve_request(stream, &request, connection, messages);
        }
        Err(RequestError::Refused(reply)) => drop((&*stream).write_all(&reply)),
        Err(RequestError::Ended) => {}
    }
}

/// Serves a connection to a port of the host's loopback.
fn serve_port(
    stream: &TcpStream,
    port: u16,
    connection: &OpenConnection,
    messages: &Sender<Message>,
) {
    let (shared, host) = (connection.shared(), format!("localhost:{port}"));
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let target = ConnectionTarget {
        host: host.clone(),
        rule: Some("sandbox.network.loopback".to_owned()),
        ..ConnectionTarget::default()
    };
    if let Err(problem) = connection.check().and_then(|()| shared.count(&host)) {
        // Its own language is not known, so nothing is answered.
        let target = ConnectionTarget { problem: Some(problem.message), ..target };
        let _ = shared.record_request(messages, target, Some(problem.code));
        return;
    }
    let target = ConnectionTarget { addresses: vec![address.to_string()], ..target };
    if let Ok((number, upstream)) =
        connect(connection, messages, target, &Route::Direct(vec![address]))
    {
        let ended = Relay { shared, first: &[], left: u64::MAX, name: None }.run(stream, &upstream);
        shared.record_close(messages, (number, host), ended);
    }
}

/// Serves what a command asks the proxy for.
fn serve_request(
    mut stream: &TcpStream,
    request: &ProxyRequest,
    connection: &OpenConnection,
    messages: &Sender<Message>,
) {
    let shared = connection.shared();
    match open(request, connection, messages) {
        Ok((number, upstream)) => {
            let (first, left) = (request.first_bytes(), request.left_to_send());
            let relay = Relay { shared, first, left, name: request.server_name() };
            let ended = match stream.write_all(request.accepted()) {
                Ok(()) => relay.run(stream, &upstream),
                Err(_) => Ended::default(),
            };
            shared.record_close(messages, (number, request.host_and_port()), ended);
        }
        Err(problem) => drop(stream.write_all(&request.refused(&problem))),
    }
}

/// Judges where a request leads, has it written down, and dials.
fn open(
    request: &ProxyRequest,
    connection: &OpenConnection,
    messages: &Sender<Message>,
) -> Result<(u64, Arc<TcpStream>), CodedError> {
    let shared = connection.shared();
    let host = request.host_and_port();
    match connection.check().and_then(|()| judge(request, shared, messages)) {
        Ok((target, route)) => connect(connection, messages, target, &route),
        Err(problem) => {
            let message = Some(problem.message.clone());
            let target = ConnectionTarget { host, problem: message, ..ConnectionTarget::default() };
            shared.record_request(messages, target, Some(problem.code))?;
            Err(problem)
        }
    }
}

/// Judges the host of a request, has a person asked where the policy asks, and looks up and judges its addresses. The
/// user's proxy looks up the names that it serves.
fn judge(
    request: &ProxyRequest,
    shared: &Shared,
    messages: &Sender<Message>,
) -> Result<(ConnectionTarget, Route), CodedError> {
    let person = || Some("a person".to_owned());
    let (rule, allowed_by) = match shared.scope.judge_host(request.target(), request.sends())? {
        HostJudgement::Allowed(rule) => (rule, None),
        HostJudgement::Approved(rule) => (rule, person()),
        // Nothing is looked up before the answer.
        HostJudgement::NeedsApproval(rule, question) => {
            let allowed_by = match shared.ask(messages, question)? {
                AllowedBy::Person => person(),
                AllowedBy::Grant(id) => Some(format!("grant {id}")),
            };
            (rule, allowed_by)
        }
    };
    let (host, rule) = (request.host_and_port(), Some(rule));
    shared.count(&host)?;
    let target = ConnectionTarget { host, rule, allowed_by, ..ConnectionTarget::default() };
    let upstream = shared.upstream.clone()?.filter(|proxy| proxy.serves(request.target()));
    if let Some(proxy) = upstream {
        return Ok((ConnectionTarget { via: Some(proxy.name()), ..target }, Route::Proxy(proxy)));
    }
    let found = resolve(shared, request.target())?;
    let addresses = found.iter().map(ToString::to_string).collect();
    Ok((ConnectionTarget { addresses, ..target }, Route::Direct(found)))
}

/// Has a request written down that may be dialled, and dials it.
fn connect(
    connection: &OpenConnection,
    messages: &Sender<Message>,
    target: ConnectionTarget,
    route: &Route,
) -> Result<(u64, Arc<TcpStream>), CodedError> {
    let shared = connection.shared();
    let host = target.host.clone();
    let number = shared.record_request(messages, target, None)?;
    let dialled = dial(shared, route, &host).map(Arc::new);
    let dialled = dialled.and_then(|upstream| connection.add(&upstream).map(|()| upstream));
    dialled.map(|upstream| (number, upstream)).inspect_err(|_| {
        shared.record_close(messages, (number, host.clone()), Ended::default());
    })
}
