//! What a run has used so far, for its quotas.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::tool::ToolName;
use capsule_base::digest::Digest;
use capsule_base::limits;

/// Stands for files that a command was told of by what it read, and for those that are too many to remember.
pub(crate) const UNNAMED: &str = "a file that no word names";

/// What one run has used, by tool, and how its calls went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    tools: BTreeMap<ToolName, ToolUsage>,
    /// How often each call was made, by the digest of its arguments.
    #[serde(with = "call_list")]
    same: BTreeMap<(ToolName, Digest), u64>,
    /// How many calls were denied.
    pub denied_total: u64,
    /// How many calls were denied, with none that ran between them and now.
    pub denied_in_a_row: u64,
    /// The files that commands wrote by their words, which may tell a build what to run.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    instructions: BTreeSet<String>,
    /// The first call by which a model read what is the user's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_private: Option<u64>,
    /// The first call by which a model saw content from elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saw_untrusted: Option<u64>,
}

/// What one run has used of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUsage {
    /// Calls that ran.
    pub calls: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Time that they took, in microseconds.
    pub micros: u64,
    /// Calls by host; for commands, connections by host and port.
    pub hosts: BTreeMap<String, u64>,
    /// Bytes that its commands received over the network.
    #[serde(default)]
    pub received: u64,
}

/// What a command used of the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkUsage {
    /// Bytes that it received.
    pub received: u64,
    /// Connections that were dialled, by host and port.
    pub hosts: BTreeMap<String, u64>,
}

/// Calls by their tools and arguments as a list: JSON has no keys of two parts.
mod call_list {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use capsule_base::digest::Digest;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::tool::ToolName;

    type Calls = BTreeMap<(ToolName, Digest), u64>;

    pub(super) fn serialize<S: Serializer>(calls: &Calls, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(calls.iter().map(|((tool, call), times)| (tool, call, times)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Calls, D::Error> {
        let listed = Vec::<(ToolName, Digest, u64)>::deserialize(from)?;
        Ok(listed.into_iter().map(|(tool, call, times)| ((tool, call), times)).collect())
    }
}

impl Usage {
    /// What was used of a tool.
    #[must_use]
    pub fn of_tool(&self, tool: &ToolName) -> Option<&ToolUsage> {
        self.tools.get(tool)
    }

    /// What was used of all tools together; hosts are not added up.
    #[must_use]
    pub fn total(&self) -> ToolUsage {
        let mut total = ToolUsage::default();
        for used in self.tools.values() {
            total.calls = total.calls.saturating_add(used.calls);
            total.bytes = total.bytes.saturating_add(used.bytes);
            total.micros = total.micros.saturating_add(used.micros);
            total.received = total.received.saturating_add(used.received);
        }
        total
    }

    /// How often a call was made before.
    #[must_use]
    pub fn same_calls(&self, tool: &ToolName, call: Option<Digest>) -> u64 {
        let key = call.map(|call| (tool.clone(), call));
        key.and_then(|key| self.same.get(&key)).copied().unwrap_or(0)
    }

    /// The files that commands wrote by their words.
    pub fn written(&self) -> impl Iterator<Item = &str> {
        self.instructions.iter().map(String::as_str)
    }

    /// Notes files that a command wrote.
    pub fn wrote(&mut self, paths: impl IntoIterator<Item = String>) {
        for path in paths {
            let is_full = self.instructions.len() >= limits::WRITTEN_FILES;
            self.instructions.insert(if is_full { UNNAMED.into() } else { path });
        }
    }

    /// Notes that a file was written as a file, and not by the words of a command.
    pub fn replaced(&mut self, path: &str) {
        self.instructions.remove(path);
    }

    /// Counts a call that was made, whatever comes of it.
    pub fn count_call(&mut self, tool: &ToolName, call: Digest) {
        let times = self.same.entry((tool.clone(), call)).or_default();
        *times = times.saturating_add(1);
    }

    /// Takes a call back that waits: it is made again when somebody has answered.
    pub fn uncount_call(&mut self, tool: &ToolName, call: Digest) {
        if let Some(times) = self.same.get_mut(&(tool.clone(), call)) {
            *times = times.saturating_sub(1);
        }
    }

    /// Counts a call that was denied.
    pub const fn count_denial(&mut self) {
        self.denied_total = self.denied_total.saturating_add(1);
        self.denied_in_a_row = self.denied_in_a_row.saturating_add(1);
    }

    /// Counts what a command used of the network.
    pub fn count_network(&mut self, tool: &ToolName, network: NetworkUsage) {
        let used = self.tools.entry(tool.clone()).or_default();
        used.received = used.received.saturating_add(network.received);
        for (host, connections) in network.hosts {
            let known = used.hosts.entry(host).or_default();
            *known = known.saturating_add(connections);
        }
    }

    /// Counts a call that ran.
    pub fn count_run(&mut self, tool: &ToolName, bytes: u64, micros: u64, host: Option<String>) {
        self.denied_in_a_row = 0;
        let used = self.tools.entry(tool.clone()).or_default();
        used.calls = used.calls.saturating_add(1);
        used.bytes = used.bytes.saturating_add(bytes);
        used.micros = used.micros.saturating_add(micros);
        if let Some(host) = host {
            let calls = used.hosts.entry(host).or_default();
            *calls = calls.saturating_add(1);
        }
    }
}
