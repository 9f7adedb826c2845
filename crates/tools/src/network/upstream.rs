//! The proxy that the user's own connections go through, as in many offices: connections of commands take the same way.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capsule_base::code::Code;
use capsule_base::url::{HostName, HttpUrl};
use capsule_core::outcome::CodedError;
use httparse::{Response, Status};

/// How long the proxy may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest head of its answer.
const HEAD_BYTES: usize = 16 * 1024;
/// The most fields of that head.
const HEAD_FIELDS: usize = 64;

/// A proxy that opens tunnels by `CONNECT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UpstreamProxy {
    host: String,
    port: u16,
    /// User and password, as HTTP's basic scheme has them.
    authorization: Option<String>,
    /// The hosts that are reached without it: names, each with all names below it; `*` for all.
    direct: Vec<String>,
}

impl UpstreamProxy {
    /// The proxy that the user's variables name; none where they name none.
    ///
    /// # Errors
    /// The value is no address of a proxy over plain HTTP.
    pub(super) fn from_variables(
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Option<Self>, CodedError> {
        let first = |names: &[&str]| {
            let values = names.iter().filter_map(|name| variable(name)?.into_string().ok());
            values.map(|value| value.trim().to_owned()).find(|value| !value.is_empty())
        };
        let names = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
        let Some(value) = first(&names) else { return Ok(None) };
        let direct = first(&["no_proxy", "NO_PROXY"]).unwrap_or_default();
        let direct = direct.split([',', ' ']).map(|name| name.trim_start_matches('.').to_owned());
        let direct = direct.filter(|name| !name.is_empty()).collect();
        let bad = || {
            CodedError::new(Code::NetConnect, "`HTTPS_PROXY` names no proxy over plain HTTP")
                .with_suggestion("it has the form `http://proxy.example.org:3128`")
        };
        let rest = match value.split_once("://") {
            Some(("http", rest)) => rest,
            Some(_) => return Err(bad()),
            None => value.as_str(),
        };
        let (user, authority) = match rest.rsplit_once('@') {
            Some((user, authority)) => (Some(user), authority),
            None => (None, rest),
        };
        let url = HttpUrl::parse(&format!("http://{authority}")).map_err(|_| bad())?;
        let authorization = user.map(|user| STANDARD.encode(decode_percent(user)));
        let (host, port) = (url.host().to_string(), url.port());
        Ok(Some(Self { host, port, authorization, direct }))
    }

    /// Whether a host is reached through it. An address is reached directly: it was judged as one.
    pub(super) fn serves(&self, target: &HttpUrl) -> bool {
        let HostName::Name(host) = target.host() else { return false };
        let is_local = host == "localhost";
        let below = |name: &str| host.strip_suffix(name).is_some_and(|head| head.ends_with('.'));
        let is_direct = |name: &String| name == "*" || host == *name || below(name);
        !is_local && !self.direct.iter().any(is_direct)
    }

    /// `proxy.example.org:3128`.
    pub(super) fn name(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Opens a tunnel to a host, whose name the proxy looks up.
    ///
    /// # Errors
    /// The proxy is not reached, or opens none.
    pub(super) fn open_tunnel(
        &self,
        host: &str,
        timeout: Duration,
    ) -> Result<TcpStream, CodedError> {
        let failed = |why: String| {
            let message =
                format!("`{host}` cannot be reached by the proxy `{}`: {why}", self.name());
            CodedError::new(Code::NetConnect, message)
        };
        let error = |error: std::io::Error| failed(error.to_string());
        crate::host::use_builtin_name_lookup();
        let bare = self.host.trim_matches(['[', ']']);
        let address = (bare, self.port).to_socket_addrs().map_err(error)?.next();
        let address = address.ok_or_else(|| failed("it has no address".into()))?;
        let mut stream = TcpStream::connect_timeout(&address, timeout).map_err(error)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT)).map_err(error)?;
        let authorization = self
            .authorization
            .as_ref()
            .map_or_else(String::new, |user| format!("Proxy-Authorization: Basic {user}\r\n"));
        let request = format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n{authorization}\r\n");
        stream.write_all(request.as_bytes()).map_err(error)?;
        // Byte by byte: what is behind the head is the host's.
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_BYTES {
            stream.read_exact(&mut byte).map_err(error)?;
            head.extend_from_slice(&byte);
        }
        let mut fields = [httparse::EMPTY_HEADER; HEAD_FIELDS];
        let mut response = Response::new(&mut fields);
        match (response.parse(&head), response.code) {
            (Ok(Status::Complete(_)), Some(200..=299)) => {}
            (Ok(Status::Complete(_)), Some(code)) => return Err(failed(format!("it says {code}"))),
            _ => return Err(failed("its answer is not HTTP".into())),
        }
        stream.set_read_timeout(None).map_err(error)?;
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }
}

/// Puts the characters of a user or password back that a URL writes as `%2F`.
fn decode_percent(text: &str) -> Vec<u8> {
    let mut decoded = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, others @ ..] = rest {
        let code = others.get(..2).filter(|_| *first == b'%').and_then(|code| {
            let code = std::str::from_utf8(code).ok()?;
            u8::from_str_radix(code, 16).ok()
        });
        decoded.push(code.unwrap_or(*first));
        rest = others.get(if code.is_some() { 2 } else { 0 }..).unwrap_or_default();
    }
    decoded
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panics")]

    use super::*;

    fn proxy(value: &str, direct: &str) -> Result<Option<UpstreamProxy>, CodedError> {
        UpstreamProxy::from_variables(&|name| match name {
            "HTTPS_PROXY" => Some(value.into()),
            "no_proxy" => Some(direct.into()),
            _ => None,
        })
    }

    #[test]
    fn variables_name_a_proxy() {
        let named = proxy("http://ada:a%40b@proxy.example:3128/", "").unwrap().unwrap();
        assert_eq!(named.name(), "proxy.example:3128");
        assert_eq!(named.authorization.unwrap(), STANDARD.encode("ada:a@b"));
        assert_eq!(proxy("proxy.example:3128", "").unwrap().unwrap().name(), "proxy.example:3128");
        assert_eq!(
            proxy("http://[2001:db8::1]:80", "").unwrap().unwrap().name(),
            "[2001:db8::1]:80"
        );
        assert_eq!(proxy(" ", ""), Ok(None));
        for wrong in ["https://proxy.example:3128", "socks5://proxy.example", "http://"] {
            assert!(proxy(wrong, "").is_err(), "{wrong}");
        }
    }

    #[test]
    fn some_hosts_are_reached_without_it() {
        let named =
            proxy("http://proxy.example:3128", "inner.example, .corp.example").unwrap().unwrap();
        for (host, serves) in [
            ("packages.example.org", true),
            ("inner.example", false),
            ("a.inner.example", false),
            ("notinner.example", true),
            ("corp.example", false),
            ("localhost", false),
            ("192.0.2.1", false),
        ] {
            let target = HttpUrl::parse(&format!("https://{host}/")).unwrap();
            assert_eq!(named.serves(&target), serves, "{host}");
        }
    }
}
