//! What a run has used so far, for its quotas.

use alloc::collections::BTreeMap;
use alloc::string::String;

use crate::tool::ToolName;

/// What one run has used, by tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    tools: BTreeMap<ToolName, Used>,
}

/// What one run has used of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Calls that ran.
    pub calls: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Time that they took, in microseconds.
    pub micros: u64,
    /// Calls by host.
    pub hosts: BTreeMap<String, u64>,
}

impl Usage {
    /// What was used of a tool.
    #[must_use]
    pub fn of(&self, tool: &ToolName) -> Option<&Used> {
        self.tools.get(tool)
    }

    /// Counts a call that ran.
    pub fn count(&mut self, tool: &ToolName, bytes: u64, micros: u64, host: Option<String>) {
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
