//! From the host that a command names to a connection with an address that was judged.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use capsule_base::code::Code;
use capsule_base::url::{HostName, HttpUrl};
use capsule_core::outcome::CodedError;

use super::shared::Shared;
use super::upstream::UpstreamProxy;

/// How long one address may take to answer.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);
/// The most addresses of a name that are dialled, one after the other.
const DIALLED_ADDRESSES: usize = 4;

/// The way to a host.
pub(super) enum Route {
    /// To one of these addresses.
    Direct(Vec<SocketAddr>),
    /// Through the user's own proxy.
    Proxy(UpstreamProxy),
}

/// The addresses of a host that may be dialled. One that may not closes the host: which of them would be dialled is
/// up to the network.
///
/// # Errors
/// The name has no address, or one that may not be dialled, or the command has ended.
pub(super) fn resolve(shared: &Shared, target: &HttpUrl) -> Result<Vec<SocketAddr>, CodedError> {
    check_open(shared)?;
    let mut addresses: Vec<SocketAddr> = match target.host() {
        HostName::Ip(address) => vec![SocketAddr::new(address, target.port())],
        HostName::Name(name) => {
            crate::host::use_builtin_name_lookup();
            let found = (name.as_str(), target.port()).to_socket_addrs().map_err(|_| {
                CodedError::new(Code::NetResolve, format!("`{name}` could not be resolved"))
            })?;
            found.collect()
        }
    };
    addresses.iter().try_for_each(|address| shared.scope.check_address(address.ip()))?;
    addresses.truncate(DIALLED_ADDRESSES);
    Ok(addresses)
}

/// Dials addresses until one answers, or has the user's proxy open a tunnel.
///
/// # Errors
/// No address answers, the proxy opens no tunnel, or the command has ended.
pub(super) fn dial(shared: &Shared, route: &Route, host: &str) -> Result<TcpStream, CodedError> {
    check_open(shared)?;
    let addresses = match route {
        Route::Direct(addresses) => addresses,
        Route::Proxy(proxy) => return proxy.open_tunnel(host, DIAL_TIMEOUT),
    };
    let mut why = String::from("it has no address");
    for address in addresses {
        check_open(shared)?;
        match TcpStream::connect_timeout(address, DIAL_TIMEOUT) {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => why = error.to_string(),
        }
    }
    Err(CodedError::new(Code::NetConnect, format!("`{host}` cannot be reached: {why}")))
}

fn check_open(shared: &Shared) -> Result<(), CodedError> {
    let message = "the command has ended";
    (!shared.is_closed()).then_some(()).ok_or_else(|| CodedError::new(Code::NetConnect, message))
}
