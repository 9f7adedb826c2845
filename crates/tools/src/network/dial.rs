//! From the host that a command names to a connection with an address that was judged.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::PoisonError;
use std::time::Duration;

use capsule_base::code::Code;
use capsule_base::url::{HostName, HttpUrl};
use capsule_core::outcome::CodedError;

use super::Shared;

/// How long one address may take to answer.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);
/// The most addresses of a name that are dialled, one after the other.
const DIALLED_ADDRESSES: usize = 4;

/// Judges a host before its name is looked up; gives the rules that allow it.
pub(super) fn check_host(shared: &Shared, target: &HttpUrl) -> Result<String, CodedError> {
    shared.scope.lock().unwrap_or_else(PoisonError::into_inner).check_host(target)
}

/// The addresses of a host, each of which was judged. One that may not be dialled closes the host: which of them
/// would be dialled is up to the network.
pub(super) fn resolve(shared: &Shared, target: &HttpUrl) -> Result<Vec<SocketAddr>, CodedError> {
    let addresses: Vec<SocketAddr> = match target.host() {
        HostName::Ip(address) => vec![SocketAddr::new(address, target.port())],
        HostName::Name(name) => {
            capsule_sandbox::use_builtin_name_lookup();
            let found = (name.as_str(), target.port()).to_socket_addrs().map_err(|_| {
                CodedError::new(Code::NetResolve, format!("`{name}` could not be resolved"))
            })?;
            found.collect()
        }
    };
    let scope = shared.scope.lock().unwrap_or_else(PoisonError::into_inner);
    addresses.iter().try_for_each(|address| scope.check_address(address.ip()))?;
    Ok(addresses)
}

/// Dials addresses until one answers.
pub(super) fn dial(addresses: &[SocketAddr], host: &str) -> Result<TcpStream, CodedError> {
    let mut why = String::from("it has no address");
    for address in addresses.iter().take(DIALLED_ADDRESSES) {
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
