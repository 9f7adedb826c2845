//! Server-sent events, as far as models use them: the data of each event, bounded.

use std::io::{self, BufRead, Read as _};

use capsule_base::limits;

/// Reads the data of the next event; none at the end of the stream. Comments, names of events and empty
/// events are passed over.
///
/// # Errors
/// When the stream breaks, or an event is longer than any that a server sends.
pub(crate) fn next_event(stream: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut data: Vec<u8> = Vec::new();
    let mut has_data = false;
    loop {
        let Some(line) = next_line(stream)? else {
            // An event ends with an empty line; one that the stream ends in was cut.
            return Ok(None);
        };
        if line.is_empty() {
            if has_data {
                return Ok(Some(data));
            }
            continue;
        }
        let Some(value) = line.strip_prefix(b"data:") else { continue };
        if has_data {
            data.push(b'\n');
        }
        has_data = true;
        data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
        if data.len() > limits::MODEL_EVENT_BYTES {
            return Err(too_long());
        }
    }
}

/// A line without its end; none at the end of the stream.
fn next_line(stream: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let most = u64::try_from(limits::MODEL_EVENT_BYTES).unwrap_or(u64::MAX);
    let mut line = Vec::new();
    stream.take(most).read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        return if line.len() >= limits::MODEL_EVENT_BYTES { Err(too_long()) } else { Ok(None) };
    }
    line.pop();
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(Some(line))
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "an event of the stream is too long")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panics")]

    use super::*;

    fn events(text: &[u8]) -> Vec<String> {
        let mut stream = text;
        let next = || next_event(&mut stream).unwrap();
        let events = std::iter::from_fn(next);
        events.map(|event| String::from_utf8(event).unwrap()).collect()
    }

    #[test]
    fn events_are_read_as_the_standard_says() {
        for (text, expected) in [
            ("data: one\n\ndata: two\n\n", vec!["one", "two"]),
            ("data:one\r\n\r\n", vec!["one"]),
            ("event: x\ndata: one\nid: 7\n\n", vec!["one"]),
            ("data: a\ndata: b\n\n", vec!["a\nb"]),
            (": comment\n\n\ndata:  padded\n\n", vec![" padded"]),
            ("data: whole\n\ndata: cut", vec!["whole"]),
            ("data: cut before its empty line\n", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(events(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn an_endless_event_is_refused() {
        let line = vec![b'x'; limits::MODEL_EVENT_BYTES + 1];
        assert!(next_event(&mut line.as_slice()).is_err());
        let part =
            [b"data: ".as_slice(), &vec![b'x'; limits::MODEL_EVENT_BYTES / 2], b"\n"].concat();
        assert!(next_event(&mut part.repeat(3).as_slice()).is_err());
    }
}
