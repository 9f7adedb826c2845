//! The name by which a client of TLS asks for a server, read from its first message (RFC 8446, section 4.1.2, and RFC
//! 6066, section 3). A server that has many names can be reached by one and asked for another; here the two are compared.

/// The longest first message that is read.
const HELLO_BYTES: usize = 16 * 1024;
/// The record of a handshake, the first message of one, and the extension that names the server.
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;

/// The first bytes of a client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Hello {
    /// More of them are needed.
    Partial,
    /// They are none of TLS, or name no server.
    Unnamed,
    /// They ask for this server.
    Named(String),
    /// They begin a handshake of TLS that cannot be read.
    Unclear,
}

/// Reads the first bytes of a client.
pub(super) fn read_hello(bytes: &[u8]) -> Hello {
    // The message may be spread over records.
    let (mut message, mut rest) = (Vec::new(), bytes);
    loop {
        match rest {
            [] => return Hello::Partial,
            [HANDSHAKE, 3, _, high, low, body @ ..] => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                let Some((body, behind)) = body.split_at_checked(length) else { break };
                message.extend_from_slice(body);
                rest = behind;
            }
            [HANDSHAKE] | [HANDSHAKE, 3] | [HANDSHAKE, 3, _] | [HANDSHAKE, 3, _, _] => break,
            // Servers skip some records that come before a handshake, such as a warning.
            [20..=24, ..] => return Hello::Unclear,
            _ if message.is_empty() => return Hello::Unnamed,
            _ => return Hello::Unclear,
        }
        match *message {
            [CLIENT_HELLO, a, b, c, ref body @ ..] => {
                let length =
                    usize::try_from(u32::from_be_bytes([0, a, b, c])).unwrap_or(usize::MAX);
                if let Some(body) = body.get(..length) {
                    return client_hello(body).unwrap_or(Hello::Unclear);
                }
            }
            [CLIENT_HELLO, ..] | [] => {}
            _ => return Hello::Unclear,
        }
    }
    if bytes.len() < HELLO_BYTES { Hello::Partial } else { Hello::Unclear }
}

/// The name in the whole message; none where it is malformed.
fn client_hello(body: &[u8]) -> Option<Hello> {
    // Version and random bytes; then the session, the ciphers and the compressions, each with its length before it.
    let mut rest = Fields(body.get(2 + 32..)?);
    let _ = (rest.field(1)?, rest.field(2)?, rest.field(1)?);
    if rest.0.is_empty() {
        return Some(Hello::Unnamed);
    }
    let (mut extensions, mut found) = (Fields(rest.field(2)?), Hello::Unnamed);
    while !extensions.0.is_empty() {
        let (kind, content) = (extensions.number(2)?, extensions.field(2)?);
        if kind == usize::from(SERVER_NAME) {
            let mut names = Fields(Fields(content).field(2)?);
            let (kind, name) = (names.number(1)?, names.field(2)?);
            let is_only = kind == usize::from(HOST_NAME) && names.0.is_empty();
            if !is_only || found != Hello::Unnamed || !rest.0.is_empty() {
                return None;
            }
            found = Hello::Named(std::str::from_utf8(name).ok()?.to_owned());
        }
    }
    Some(found)
}

/// Bytes of which fields are taken off the front.
struct Fields<'b>(&'b [u8]);

impl<'b> Fields<'b> {
    fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (field, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(field)
    }

    /// A number of so many bytes.
    fn number(&mut self, bytes: usize) -> Option<usize> {
        Some(self.take(bytes)?.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    /// A field behind its length, which has so many bytes.
    fn field(&mut self, bytes: usize) -> Option<&'b [u8]> {
        let length = self.number(bytes)?;
        self.take(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A first message with these extensions, in records of so many bytes.
    fn hello(extensions: &[u8], record: usize) -> Vec<u8> {
        let length = |bytes: usize| u16::try_from(bytes).unwrap_or_default().to_be_bytes();
        let mut body = vec![3; 2 + 32];
        body.extend_from_slice(&[0, 0, 2, 0x13, 1, 1, 0]);
        body.extend_from_slice(&length(extensions.len()));
        body.extend_from_slice(extensions);
        let message = [&[CLIENT_HELLO, 0][..], &length(body.len()), &body].concat();
        let records = message.chunks(record);
        records
            .flat_map(|part| [&[HANDSHAKE, 3, 1][..], &length(part.len()), part].concat())
            .collect()
    }

    fn name(name: &str) -> Vec<u8> {
        let bytes = |more: usize| u8::try_from(name.len() + more).unwrap_or_default();
        [&[0, 0, 0, bytes(5), 0, bytes(3), 0, 0, bytes(0)][..], name.as_bytes()].concat()
    }

    /// E14: a name is found in whatever records it comes, and what cannot be read is not taken for none.
    #[test]
    fn the_name_of_a_server_is_read() {
        let other = [0, 43, 0, 3, 2, 3, 4];
        let named = [&other[..], &name("a.example")].concat();
        let twice = [name("a.example"), name("b.example")].concat();
        let two_names = [0, 0, 0, 10, 0, 8, 0, 0, 1, b'a', 0, 0, 1, b'b'];
        for record in [1, 7, 4096] {
            let found = Hello::Named("a.example".into());
            assert_eq!(read_hello(&hello(&named, record)), found, "{record}");
            assert_eq!(read_hello(&hello(&other, record)), Hello::Unnamed);
            assert_eq!(read_hello(&hello(&twice, record)), Hello::Unclear);
            assert_eq!(read_hello(&hello(&two_names, record)), Hello::Unclear);
        }
        let warned = [&[21, 3, 1, 0, 2, 1, 90][..], &hello(&named, 4096)].concat();
        assert_eq!(read_hello(&warned), Hello::Unclear, "a record that servers skip");
        let whole = hello(&named, 4096);
        for end in 0..whole.len() {
            assert_eq!(read_hello(&whole[..end]), Hello::Partial, "{end}");
        }
        for (bytes, expected) in [
            (&b"SSH-2.0-OpenSSH"[..], Hello::Unnamed),
            (b"GET / HTTP/1.1", Hello::Unnamed),
            (&[HANDSHAKE, 3, 1, 0, 4, 2, 0, 0, 0], Hello::Unclear),
            (&[HANDSHAKE, 3, 1, 0, 4, CLIENT_HELLO, 0, 0, 0], Hello::Unclear),
            (&[HANDSHAKE, 3, 1, 0, 1, CLIENT_HELLO, 21], Hello::Unclear),
        ] {
            assert_eq!(read_hello(bytes), expected, "{bytes:?}");
        }
        let endless =
            [&[HANDSHAKE, 3, 1, 0xff, 0xff, CLIENT_HELLO, 0xff][..], &[0; HELLO_BYTES]].concat();
        assert_eq!(read_hello(&endless), Hello::Unclear);
    }

    proptest::proptest! {
        /// Whatever comes is read or refused.
        #[test]
        fn nothing_breaks_the_reader(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
            let _ = read_hello(&bytes);
            let _ = read_hello(&hello(&bytes, 50));
        }
    }
}
