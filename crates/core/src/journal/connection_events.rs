//! Events of the connections of a running command.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::journal::PayloadRef;
use capsule_base::code::Code;

/// A command wants to reach a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionRequested {
    /// The call.
    pub call: u64,
    /// Its number among the connections of the call, from 1 on.
    pub connection: u64,
    /// Why it is refused; none where it is dialled next.
    pub refused: Option<Code>,
    /// A [`ConnectionTarget`], as JSON, masked.
    pub target: PayloadRef,
}

/// Where a connection leads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionTarget {
    /// The host and the port that the command named.
    pub host: String,
    /// The addresses that are dialled, one after the other until one answers; none where it is refused.
    pub addresses: Vec<String>,
    /// The user's own proxy, through which it is reached; the proxy looks the name up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The rules of the policy that allow it.
    pub rule: Option<String>,
    /// Who allowed it where the policy asks: a person, or a grant that a person gave before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_by: Option<String>,
    /// Why it is refused.
    pub problem: Option<String>,
}

/// A connection of a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionClosed {
    /// The call.
    pub call: u64,
    /// Its number among the connections of the call.
    pub connection: u64,
    /// How many bytes the command sent.
    pub sent: u64,
    /// How many bytes it received.
    pub received: u64,
    /// Why it was cut off; none where one of its ends closed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Code>,
}
