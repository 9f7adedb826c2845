//! The hosts that a command names by the addresses that it is given, against the rules of hosts.

use alloc::format;
use alloc::vec::Vec;

use crate::confinement::NetworkAccess;
use crate::policy::decide::check::Finding;
use crate::policy::decide::fetch::judge_host;
use crate::policy::model::Policy;
use capsule_base::url::HttpUrl;
use capsule_command::specs::{Effect, ParsedArgv};

/// The strictest word of the rules of hosts for what a command contacts. None where commands have no proxy, or where
/// the addresses are not all that it contacts. Each connection is judged again when it is made, so a redirect or an
/// option that leads elsewhere opens nothing.
pub(super) fn check(policy: &Policy, argv: &ParsedArgv) -> Option<Finding> {
    let has_proxy = policy.sandbox.network == NetworkAccess::Proxy;
    let hosts = named(argv).filter(|_| has_proxy)?;
    let found = hosts.iter().map(|host| judge_host(&policy.hosts, host));
    found.max_by_key(|finding| finding.verdict)
}

/// The hosts with their ports, each as an address over https. A program with subcommands has places of its own to
/// contact, such as a registry.
pub(super) fn named(argv: &ParsedArgv) -> Option<Vec<HttpUrl>> {
    let contacts = argv.argument_effects.iter().filter(|all| all.effects.contains(Effect::Network));
    let hosts: Option<Vec<HttpUrl>> = contacts.map(|all| host(&all.argument)).collect();
    hosts.filter(|hosts| !hosts.is_empty() && argv.levels.len() == 1)
}

/// The host of an address over http or https, as programs read it: the scheme may be missing.
fn host(address: &str) -> Option<HttpUrl> {
    let scheme = if address.contains("://") { "" } else { "http://" };
    let url = HttpUrl::parse(&format!("{scheme}{address}")).ok()?;
    HttpUrl::parse(&format!("https://{}/", url.host_and_port())).ok()
}
