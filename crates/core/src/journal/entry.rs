//! An event with its place in a run, and its bytes.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::id::RunId;
use crate::journal::Event;
use capsule_base::digest::Digest;
use capsule_base::json;

/// The version of the event format that this build writes. Every older one is read for ever.
pub const VERSION: u16 = 1;

/// An event as it is written: canonical JSON (RFC 8785) of exactly these fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The version of the format.
    pub v: u16,
    /// The run; none for events that belong to the store.
    pub run: Option<RunId>,
    /// The number within the run, from 1 on; 0 outside of runs.
    pub seq: u64,
    /// The digest of the run's previous entry; none for the first.
    pub prev: Option<Digest>,
    /// Microseconds since 1970-01-01T00:00:00Z.
    pub at: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// The part of an entry that says where it belongs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct EntryHeader {
    /// The version of the format.
    pub v: u16,
    /// The run.
    pub run: Option<RunId>,
    /// The number within the run.
    pub seq: u64,
    /// The digest of the run's previous entry.
    pub prev: Option<Digest>,
    /// Microseconds since 1970.
    pub at: u64,
    /// What happened.
    pub kind: String,
}

/// Why bytes are not an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryError {
    /// They are not JSON with the fields of an entry.
    Malformed,
    /// They were written by a newer version.
    UnsupportedVersion(u16),
}

impl fmt::Display for EntryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("the bytes are not an event"),
            Self::UnsupportedVersion(version) => {
                write!(f, "the event has format version {version}; this build reads {VERSION}")
            }
        }
    }
}

impl Entry {
    /// The bytes that are stored and hashed.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        json::canonical(self)
    }

    /// Reads stored bytes.
    ///
    /// # Errors
    /// When they are not an entry that this build knows, or not written as this build writes it:
    /// another order, another spelling or a field that nobody knows could be read otherwise elsewhere.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, EntryError> {
        let entry: Self = serde_json::from_slice(bytes).map_err(|_| newer_or_malformed(bytes))?;
        if entry.v > VERSION {
            Err(EntryError::UnsupportedVersion(entry.v))
        } else if entry.v > 0 && entry.to_bytes() == bytes {
            Ok(entry)
        } else {
            Err(EntryError::Malformed)
        }
    }
}

fn newer_or_malformed(bytes: &[u8]) -> EntryError {
    match EntryHeader::from_bytes(bytes) {
        Ok(header) if header.v > VERSION => EntryError::UnsupportedVersion(header.v),
        _ => EntryError::Malformed,
    }
}

impl EntryHeader {
    /// Reads where an entry belongs, without understanding what happened.
    ///
    /// # Errors
    /// When the bytes have no such fields.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, EntryError> {
        serde_json::from_slice(bytes).map_err(|_| EntryError::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::RunSealed;
    use capsule_base::exit::Exit;

    #[test]
    fn entries_are_canonical_and_read_back() {
        let entry = Entry {
            v: VERSION,
            run: Some(RunId::from_bits([7; 10])),
            seq: 3,
            prev: Some(Digest::of(b"x")),
            at: 1_700_000_000_000_000,
            event: Event::RunSealed(RunSealed {
                suspended: None,
                exit: Exit::Ok,
                events: 3,
                calls: 0,
                outputs: None,
            }),
        };
        let bytes = entry.to_bytes();
        let text = core::str::from_utf8(&bytes).unwrap();
        assert!(
            text.starts_with(r#"{"at":1700000000000000,"body":{"calls":0,"events":3,"exit":"ok""#),
            "{text}"
        );
        assert_eq!(Entry::from_bytes(&bytes), Ok(entry));
        assert_eq!(EntryHeader::from_bytes(&bytes).unwrap().kind, "run.sealed");
        let newer = text.replace(r#""v":1"#, r#""v":2"#).replace("run.sealed", "run.melted");
        assert_eq!(Entry::from_bytes(newer.as_bytes()), Err(EntryError::UnsupportedVersion(2)));
        assert_eq!(Entry::from_bytes(b"{}"), Err(EntryError::Malformed));
        for other in [
            text.replace(r#""calls":0"#, r#""calls":0,"nota":1"#),
            text.replace(r#""calls":0"#, r#""calls": 0"#),
            text.replace(r#""v":1"#, r#""v":1,"w":1"#),
            text.replace(r#""v":1"#, r#""v":0"#),
        ] {
            assert_eq!(Entry::from_bytes(other.as_bytes()), Err(EntryError::Malformed), "{other}");
        }
    }
}
