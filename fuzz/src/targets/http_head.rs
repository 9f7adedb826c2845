//! The head of a request over HTTP. What is read of one does not depend on what follows it, nor on how much of it came at once.

use capsule_serve::head_bytes;

pub(super) fn run(bytes: &[u8]) {
    let Ok(Some(used)) = head_bytes(bytes) else { return };
    let head = bytes.get(..used).expect("a head is no longer than what came");
    assert_eq!(head_bytes(head), Ok(Some(used)));
    assert_eq!(head_bytes(&[head, b"more"].concat()), Ok(Some(used)));
    for part in [used / 2, used - 1] {
        assert_eq!(head_bytes(&head[..part]), Ok(None), "a part of a head is none");
    }
    let lengths = head
        .split(|byte| *byte == b'\n')
        .filter(|line| line.len() > 15 && line[..15].eq_ignore_ascii_case(b"content-length:"));
    assert!(lengths.count() < 2, "a body has one length");
}
