//! Events of a conversation: what the user said, what a model was sent, and what it answered.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::journal::PayloadRef;
use capsule_base::code::Code;
use capsule_base::digest::Digest;

/// A model is asked for its next turn. The request leaves the machine behind this event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRequested {
    /// The number of the request within the run, from 1 on.
    pub turn: u64,
    /// The URL that is asked, without a key.
    pub endpoint: String,
    /// The model.
    pub model: String,
    /// The digest of the whole request body.
    pub sha256: Digest,
    /// The messages that the request before did not have, as JSON, masked; with the first, the instructions
    /// and the tools.
    pub added: PayloadRef,
}

/// A model answered, or the request failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelAnswered {
    /// The number of the request.
    pub turn: u64,
    /// Why there is no answer.
    pub code: Option<Code>,
    /// The text and the calls of the answer, or what went wrong, as JSON, masked.
    pub answer: PayloadRef,
    /// The tokens of the request, as the server counted them.
    pub input_tokens: Option<u64>,
    /// The tokens of the answer, as the server counted them.
    pub output_tokens: Option<u64>,
}
