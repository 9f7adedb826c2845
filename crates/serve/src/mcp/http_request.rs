//! The head of a request over HTTP, with one reading.

use std::io::{self, Read as _};
use std::net::TcpStream;
use std::time::Instant;

use capsule_base::limits;

/// What a request says before its body.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Head {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) host: Option<String>,
    pub(super) origin: Option<String>,
    pub(super) authorization: Option<String>,
    pub(super) session: Option<String>,
    pub(super) is_json: bool,
    pub(super) length: Option<usize>,
}

/// Reads a head, and what came with it of the body.
///
/// # Errors
/// The status that refuses it.
pub(super) fn read_head(stream: &mut TcpStream) -> Result<(Head, Vec<u8>), &'static str> {
    let began = Instant::now();
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        if let Some((head, used)) = parse_head(&bytes)? {
            return Ok((head, bytes.split_off(used)));
        }
        if bytes.len() >= limits::MCP_HEAD_BYTES {
            return Err("431 Request Header Fields Too Large");
        }
        match stream.read(&mut piece) {
            Ok(count) if count > 0 && began.elapsed() < limits::MCP_PEER_TIME => {
                bytes.extend_from_slice(piece.get(..count).unwrap_or_default());
            }
            _ => return Err("408 Request Timeout"),
        }
    }
}

/// How many bytes the head of a request has that begins with these; none where more has to come.
///
/// # Errors
/// The status that refuses it.
pub fn head_bytes(bytes: &[u8]) -> Result<Option<usize>, &'static str> {
    parse_head(bytes).map(|read| read.map(|(_, used)| used))
}

/// The head that these bytes begin with, and its length; none where more has to come.
///
/// # Errors
/// The status that refuses it: it is none, or has two readings.
fn parse_head(bytes: &[u8]) -> Result<Option<(Head, usize)>, &'static str> {
    const BAD: &str = "400 Bad Request";
    let mut headers = [httparse::EMPTY_HEADER; limits::MCP_HEADERS];
    let mut read = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(used) = read.parse(bytes).map_err(|_| BAD)? else {
        return Ok(None);
    };
    let mut head = Head {
        method: read.method.unwrap_or_default().to_owned(),
        path: read.path.unwrap_or_default().to_owned(),
        ..Head::default()
    };
    for header in read.headers.iter() {
        let value = std::str::from_utf8(header.value).map_err(|_| BAD)?.to_owned();
        let place = match header.name.to_ascii_lowercase().as_str() {
            "host" => &mut head.host,
            "origin" => &mut head.origin,
            "authorization" => &mut head.authorization,
            "mcp-session-id" => &mut head.session,
            "content-type" => {
                let kind = value.split(';').next().unwrap_or_default().trim();
                head.is_json = kind.eq_ignore_ascii_case("application/json");
                continue;
            }
            "content-length" => {
                let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
                let length = value.parse().ok().filter(|_| is_number).ok_or(BAD)?;
                match head.length.replace(length) {
                    None => continue,
                    Some(_) => return Err(BAD),
                }
            }
            // A body has one length.
            "transfer-encoding" => return Err("501 Not Implemented"),
            _ => continue,
        };
        if place.replace(value).is_some() {
            return Err(BAD);
        }
    }
    Ok(Some((head, used)))
}

/// A text of the system's randomness, of 256 bits.
///
/// # Errors
/// When the system gives none.
pub(super) fn random_text() -> io::Result<String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_has_one_reading() {
        let cases: [(&str, Result<bool, &str>); 8] = [
            ("POST /mcp HTTP/1.1\r\nHost: a\r\n\r\n", Ok(true)),
            ("POST /mcp HTTP/1.1\r\nHost: a\r\n", Ok(false)),
            ("POST /mcp HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n", Err("400 Bad Request")),
            ("POST /mcp HTTP/1.1\r\nContent-Length: +1\r\n\r\n", Err("400 Bad Request")),
            (
                "POST /mcp HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                Err("400 Bad Request"),
            ),
            (
                "POST /mcp HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
                Err("501 Not Implemented"),
            ),
            ("POST /mcp HTTP/1.1\r\nA B: c\r\n\r\n", Err("400 Bad Request")),
            ("\0\r\n\r\n", Err("400 Bad Request")),
        ];
        for (text, expected) in cases {
            let read = parse_head(text.as_bytes()).map(|read| read.is_some());
            assert_eq!(read, expected, "{text:?}");
        }
    }
}
