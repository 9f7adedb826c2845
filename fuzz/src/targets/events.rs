//! Bytes as a store holds them. What is read as an entry is of a version that this build knows and
//! is canonical, so that it has one reading: it is written as the same bytes, and its header says
//! the same. A note is written as it was read, and what it says is not believed without its key; no
//! text holds a checkpoint of another size or root than stands in it. The action and the facts that a replay serves from read back. A tree is the same
//! however it was kept on the way.

use capsule_core::action::{Action, Facts};
use capsule_core::id::RunId;
use capsule_core::journal::{Entry, EntryHeader, VERSION};
use capsule_store::{
    Checkpoint, SignatureCheck, SignedNote, Verifier, WitnessedCheckpoints, canonical_label,
};
use capsule_store::{Frontier, leaf_hash};

pub(super) fn run(bytes: &[u8]) {
    entry(bytes);
    if let Ok(action) = serde_json::from_slice::<Action>(bytes) {
        crate::assert_kept(&action);
        let _ = action.named_paths();
    }
    if let Ok(facts) = serde_json::from_slice::<Facts>(bytes) {
        crate::assert_kept(&facts);
    }
    tree(bytes);
    signed(&String::from_utf8_lossy(bytes));
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Some(run) = RunId::parse(text)
    {
        assert_eq!(run.to_string(), text);
        assert_eq!(canonical_label(text), text);
    }
}

fn entry(bytes: &[u8]) {
    let Ok(entry) = Entry::from_bytes(bytes) else { return };
    assert!(entry.v <= VERSION, "version {}", entry.v);
    assert_eq!(String::from_utf8_lossy(&entry.to_bytes()), String::from_utf8_lossy(bytes));
    let header = EntryHeader::from_bytes(bytes).expect("an entry has a header");
    assert_eq!((header.v, header.run, header.seq), (entry.v, entry.run, entry.seq));
    assert_eq!((header.prev, header.at), (entry.prev, entry.at));
    assert_eq!(header.kind, entry.event.kind());
    let _ = entry.event.payloads();
}

fn signed(text: &str) {
    let key = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
    let key = Verifier::parse(key).expect("a public line");
    if let Some(note) = SignedNote::parse(text) {
        assert_eq!(note.to_string(), text);
        assert_ne!(note.verify(&key), SignatureCheck::Valid, "nobody has the key");
        if let Some(own) = note.checkpoint() {
            assert!(text.starts_with(&own.text()));
            assert_eq!(Checkpoint::parse(&own.text()).as_ref(), Some(&own));
            // Words end at spaces, so an origin with one is not found again.
            let seen = WitnessedCheckpoints::parse("x", &format!("{text} {}", own.line()));
            assert!(
                own.origin.contains(char::is_whitespace)
                    || seen.has_seen(&own)
                    || !is_word(&own.origin)
            );
        }
    }
    if let Some(read) = Verifier::parse(text.trim()) {
        assert_eq!(read.to_string(), text.trim());
    }
    let _ = WitnessedCheckpoints::parse("x", text);
}

fn is_word(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_alphanumeric())
}

fn tree(bytes: &[u8]) {
    let mut tree = Frontier::default();
    for leaf in bytes.chunks(5) {
        tree.push(leaf_hash(leaf));
        let kept = Frontier::from_bytes(tree.size(), &tree.to_bytes());
        assert_eq!(kept.as_ref().map(Frontier::root), Some(tree.root()));
        tree = kept.expect("a tree that was kept");
    }
    if let Some((size, peaks)) = bytes.split_first_chunk::<8>()
        && let Some(mut tree) = Frontier::from_bytes(u64::from_be_bytes(*size), peaks)
        && tree.size() < u64::MAX
    {
        assert_eq!(tree.to_bytes(), peaks);
        tree.push(leaf_hash(b"x"));
        assert_eq!(Frontier::from_bytes(tree.size(), &tree.to_bytes()), Some(tree));
    }
}
