//! The connections of a whole agent.

use std::os::fd::{BorrowedFd, OwnedFd};

use capsule_core::lifecycle::Permit;
use capsule_core::outcome::CodedError;
use capsule_core::policy::HostScope;
use capsule_sandbox::{CommandListeners, Termination};

use crate::host::ToolHost;

use super::{CommandNetwork, NetworkReport, proxy_variables};

/// Runs a whole agent, at the terminal of the user.
pub trait AgentHost {
    /// Runs it to its end. `copy` is the directory that it works in where its changes are staged.
    ///
    /// # Errors
    /// It could not be run as it must be.
    fn run(
        &self,
        copy: Option<OwnedFd>,
        connections: &mut AgentConnections<'_, '_>,
    ) -> Result<Termination, CodedError>;
}

/// The connections of an agent: judged by its policy and written down like those of a command.
pub struct AgentConnections<'a, 'p> {
    scope: Option<&'a HostScope>,
    permit: &'a Permit<'p>,
    /// What knows the user's variables, which may name a proxy.
    host: &'a dyn ToolHost,
    network: Option<CommandNetwork>,
}

impl<'a, 'p> AgentConnections<'a, 'p> {
    pub(crate) const fn new(
        scope: Option<&'a HostScope>,
        permit: &'a Permit<'p>,
        host: &'a dyn ToolHost,
    ) -> Self {
        Self { scope, permit, host, network: None }
    }

    /// The ports that the agent's own loopback serves, the proxy's first; none where the policy opens no host.
    #[must_use]
    pub fn ports(&self) -> Option<Vec<u16>> {
        let loopback = self.scope?.loopback_ports();
        // Nothing else listens there, so any port that the policy does not name is free.
        let proxy = (FIRST_PORT..u16::MAX).find(|port| !loopback.contains(port));
        Some(proxy.into_iter().chain(loopback).collect())
    }

    /// The variables by which programs find the proxy at this port, and the host's loopback under its other name.
    #[must_use]
    pub fn variables(port: u16) -> Vec<(String, String)> {
        let mut all = proxy_variables(port);
        for (_, value) in all.iter_mut().filter(|(name, _)| name.eq_ignore_ascii_case("no_proxy")) {
            value.push_str(",host.docker.internal");
        }
        all
    }

    /// Begins to serve the sockets of an agent that has not begun.
    ///
    /// # Errors
    /// The kernel has no descriptor or thread left.
    pub fn start(&mut self, listeners: &CommandListeners) -> Result<(), CodedError> {
        if let Some(scope) = self.scope {
            let variable = |name: &str| self.host.variable(name);
            self.network = Some(CommandNetwork::start(listeners, scope, &variable)?);
        }
        Ok(())
    }

    /// Can be read when [`AgentConnections::attend`] has something to do.
    #[must_use]
    pub fn attention(&self) -> Option<BorrowedFd<'_>> {
        self.network.as_ref().map(CommandNetwork::attention)
    }

    /// Writes down what happened to a connection, or asks about a host; `pause` is called before a person is asked.
    pub fn attend(&mut self, pause: &mut dyn FnMut()) {
        if let Some(network) = &mut self.network {
            network.attend(self.permit, pause);
        }
    }

    /// Whether the agent has to be ended: something cannot be written down, or a person said that nothing may follow.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.network.as_ref().is_some_and(CommandNetwork::has_failed)
    }

    pub(crate) fn finish(self) -> NetworkReport {
        self.network.map(|network| network.finish(self.permit)).unwrap_or_default()
    }
}

/// The first port that is tried for the proxy: one that programs know as such.
const FIRST_PORT: u16 = 3_128;
