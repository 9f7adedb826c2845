//! The connections of a command, for people and for programs.

use std::collections::BTreeMap;

use capsule_base::code::Code;
use capsule_base::escape;
use capsule_base::units::show_size;
use capsule_core::journal::{ConnectionClosed, ConnectionRequested, ConnectionTarget};
use capsule_core::policy::NetworkUsage;
use serde_json::{Value, json};

/// A connection that a command asked for.
#[derive(Clone, Debug)]
pub struct ConnectionView {
    /// When, in microseconds since 1970.
    pub at: u64,
    /// The event.
    pub requested: ConnectionRequested,
    /// Where it leads; none if that was erased.
    pub target: Option<ConnectionTarget>,
    /// How it ended; none if its end was not seen, or it was refused.
    pub closed: Option<ConnectionClosed>,
}

impl ConnectionView {
    /// The host and port that the command named.
    #[must_use]
    pub fn host(&self) -> &str {
        self.target.as_ref().map_or("(not kept)", |target| target.host.as_str())
    }

    /// As JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "connection": self.requested.connection,
            "at": self.at,
            "target": self.target,
            "refused": self.requested.refused,
            "sent": self.closed.map(|closed| closed.sent),
            "received": self.closed.map(|closed| closed.received),
            "cut": self.closed.and_then(|closed| closed.cut),
        })
    }
}

/// What the connections of a call used of the network.
#[must_use]
pub fn network_usage(connections: &[ConnectionView]) -> NetworkUsage {
    let mut usage = NetworkUsage::default();
    for connection in connections.iter().filter(|each| each.requested.refused.is_none()) {
        *usage.hosts.entry(connection.host().to_owned()).or_default() += 1;
        usage.received += connection.closed.map_or(0, |closed| closed.received);
    }
    usage
}

/// All connections to one host.
#[derive(Default)]
struct HostTotal<'c> {
    reached: u64,
    refused: u64,
    sent: u64,
    received: u64,
    addresses: &'c [String],
    via: Option<&'c str>,
    rule: Option<&'c str>,
    allowed_by: Option<&'c str>,
    problem: Option<&'c str>,
    cut: Option<Code>,
}

/// A line for each host: how often it was reached and refused, how many bytes went there and came from there, by which
/// rule, and why not.
#[must_use]
pub fn connection_lines(connections: &[ConnectionView]) -> Vec<String> {
    let mut hosts: BTreeMap<&str, HostTotal<'_>> = BTreeMap::new();
    for connection in connections {
        let total = hosts.entry(connection.host()).or_default();
        let is_refused = connection.requested.refused.is_some();
        total.refused += u64::from(is_refused);
        total.reached += u64::from(!is_refused);
        if let Some(closed) = connection.closed {
            total.sent += closed.sent;
            total.received += closed.received;
            total.cut = closed.cut.or(total.cut);
        }
        if let Some(target) = &connection.target {
            if !target.addresses.is_empty() {
                total.addresses = &target.addresses;
            }
            total.rule = target.rule.as_deref().or(total.rule);
            total.via = target.via.as_deref().or(total.via);
            total.allowed_by = target.allowed_by.as_deref().or(total.allowed_by);
            total.problem = target.problem.as_deref().or(total.problem);
        }
    }
    hosts.into_iter().map(|(host, total)| total.line(host)).collect()
}

impl HostTotal<'_> {
    fn line(&self, host: &str) -> String {
        let mut parts = vec![host.to_owned()];
        if self.reached > 0 {
            let noun = if self.reached == 1 { "connection" } else { "connections" };
            parts.push(format!("{} {noun}", self.reached));
            parts.push(format!("↑ {} ↓ {}", show_size(self.sent), show_size(self.received)));
            match self.via {
                Some(proxy) => parts.push(format!("by the proxy {proxy}")),
                None => parts.push(self.addresses.join(", ")),
            }
            parts.extend(self.rule.map(|rule| format!("by `{rule}`")));
            parts.extend(self.allowed_by.map(|who| format!("allowed by {who}")));
        }
        parts.extend(self.cut.map(|code| format!("✗ cut off: {code}")));
        if self.refused > 0 {
            let why = self.problem.unwrap_or("(not kept)");
            parts.push(format!("✗ refused {}×: {why}", self.refused));
        }
        escape::line(&parts.join(" · ")).into_owned()
    }
}
