//! Reads what commands are confined to.

use alloc::format;

use crate::language::{CHANGES, HOSTS, LOOPBACK, NETWORK, SANDBOX};
use crate::parse::context::Context;
use crate::parse::fetch;
use crate::parse::rule_value::{in_range, read_bound};
use capsule_base::code::Code;
use capsule_base::limits::{LOOPBACK_PORTS, STAGED_BYTES_MAX, STAGED_PATHS_MAX};
use capsule_base::yaml::{YamlNode, YamlReader, YamlValue};
use capsule_core::confinement::{
    ChangeLimits, MountPoint, NetworkAccess, SandboxTier, WorkspaceAccess,
};
use capsule_core::decision::Verdict;
use capsule_core::policy::{HostRules, SandboxRule};

/// What commands are confined to. `writes` says whether the rule of any program lets it write.
pub(super) fn rule(
    context: &mut Context<'_>,
    node: Option<&YamlNode>,
    writes: bool,
) -> (SandboxRule, HostRules) {
    // Where commands may write, their changes are staged unless the policy says otherwise.
    let staged = |writes| if writes { WorkspaceAccess::Staged } else { WorkspaceAccess::ReadOnly };
    let mut rule = SandboxRule {
        floor: SandboxTier::Full,
        network: NetworkAccess::None,
        workspace: staged(writes),
        mount: MountPoint::Same,
        changes: ChangeLimits::default(),
        writes_by_default: false,
        read_only: false,
        optional: false,
    };
    let keys = |node| context.section(node, "`sandbox`", &SANDBOX);
    let mut hosts = HostRules::default();
    let Some(section) = node.and_then(keys) else { return (rule, hosts) };
    if let Some(node) = section.get("require") {
        rule.optional = context.reader.keyword(node, &["true", "false"]) == Some("false");
    }
    if let Some(node) = section.get("level") {
        let level = context.reader.keyword(node, &["strict", "workspace-write"]);
        rule.writes_by_default = level == Some("workspace-write");
        rule.workspace = staged(writes || rule.writes_by_default);
    }
    let floor =
        section.get("floor").and_then(|node| context.reader.keyword(node, &SandboxTier::WORDS));
    rule.floor = floor.and_then(SandboxTier::from_word).unwrap_or_default();
    let mount =
        section.get("mount").and_then(|node| context.reader.keyword(node, &MountPoint::WORDS));
    rule.mount = mount.and_then(MountPoint::from_word).unwrap_or_default();
    if let Some(node) = section.get("changes") {
        change_limits(context, node, &mut rule.changes);
    }
    if let Some(node) = section.get("tmp") {
        context.reader.only_supported(node, "private", &["none"]);
    }
    if let Some(node) = section.get("workspace") {
        workspace_access(context, node, writes, &mut rule);
    }
    if let Some(node) = section.get("network") {
        (rule.network, hosts) = network(context, node);
    }
    (rule, hosts)
}

/// Reads the access of commands to the workspace.
fn workspace_access(
    context: &mut Context<'_>,
    node: &YamlNode,
    writes: bool,
    rule: &mut SandboxRule,
) {
    match context.reader.keyword(node, &["staged", "read-only", "direct"]) {
        Some("staged") => rule.workspace = WorkspaceAccess::Staged,
        // Where no command may write, there is nothing to do directly.
        Some("direct") if writes || rule.writes_by_default => {
            rule.workspace = WorkspaceAccess::Direct
        }
        Some("direct") => rule.workspace = WorkspaceAccess::ReadOnly,
        // Over a policy that lets programs write, a layer may say that they may not.
        _ if (writes || rule.writes_by_default) && context.layer.is_none() => {
            let message = "commands may write by this policy, which a read-only workspace denies";
            context.error(Code::PolicyValue, node, message);
        }
        word => (rule.workspace, rule.read_only) = (WorkspaceAccess::ReadOnly, word.is_some()),
    }
}

/// How much a run may change.
fn change_limits(context: &mut Context<'_>, node: &YamlNode, limits: &mut ChangeLimits) {
    let Some(section) = context.section(node, "`changes`", &CHANGES) else { return };
    let (paths, bytes) = (1..=STAGED_PATHS_MAX, 1..=STAGED_BYTES_MAX);
    read_bound(context, (&section, "paths"), YamlReader::number, paths, &mut limits.paths);
    read_bound(context, (&section, "bytes"), YamlReader::size, bytes, &mut limits.bytes);
}

/// Reads the network of commands: `none`, or `proxy` with rules for hosts.
fn network(context: &mut Context<'_>, node: &YamlNode) -> (NetworkAccess, HostRules) {
    let mut hosts = HostRules::default();
    if node.text().is_some() {
        return (network_access(context, node), hosts);
    }
    let Some(section) = context.section(node, "`network`", &NETWORK) else {
        return (NetworkAccess::None, hosts);
    };
    let access = section.get("shell.run").map(|node| network_access(context, node));
    if let Some(node) = section.get("hosts") {
        host_rules(context, node, &mut hosts);
    }
    if let Some(node) = section.get("private_ips") {
        fetch::private(context, node, &mut hosts.private);
    }
    if let Some(node) = section.get("loopback")
        && let Some(section) = context.section(node, "`loopback`", &LOOPBACK)
        && let Some(node) = section.get("connect")
    {
        for item in context.reader.list(node, "a list of ports").unwrap_or_default() {
            let number = context.reader.number(item);
            let port = in_range(context, item, number, 1..=u64::from(u16::MAX));
            hosts.loopback.extend(port.and_then(|port| u16::try_from(port).ok()));
        }
        hosts.loopback.sort_unstable();
        hosts.loopback.dedup();
        if hosts.loopback.len() > LOOPBACK_PORTS {
            let message = format!("no more than {LOOPBACK_PORTS} ports are reached");
            context.error(Code::PolicyValue, node, message);
        }
    }
    let names_none = hosts.rules.is_empty() && hosts.others.is_none() && hosts.loopback.is_empty();
    if access.is_none() && !names_none {
        let message = "hosts are named, and commands have no network: say `shell.run: proxy`";
        context.error(Code::PolicyMissingKey, node, message);
    }
    (access.unwrap_or_default(), hosts)
}

fn network_access(context: &mut Context<'_>, node: &YamlNode) -> NetworkAccess {
    let word = context.reader.keyword(node, &NetworkAccess::WORDS);
    word.and_then(NetworkAccess::from_word).unwrap_or_default()
}

/// `hosts: [..]` is short for `hosts: { allow: [..] }`. `others` is the word for hosts that no list names.
fn host_rules(context: &mut Context<'_>, node: &YamlNode, hosts: &mut HostRules) {
    if matches!(node.value, YamlValue::List(_)) {
        return fetch::hosts(context, node, Some(Verdict::Allow), &mut hosts.rules);
    }
    let Some(section) = context.section(node, "`hosts`", &HOSTS) else { return };
    for verdict in [Verdict::Allow, Verdict::Ask, Verdict::AskEach, Verdict::Deny] {
        if let Some(node) = section.get(verdict.keyword()) {
            fetch::hosts(context, node, Some(verdict), &mut hosts.rules);
        }
    }
    if let Some(node) = section.get("others") {
        let word = context.reader.keyword(node, &["ask", "ask-each", "deny"]);
        let verdict = word.and_then(Verdict::from_word);
        hosts.others = verdict.map(|verdict| (verdict, context.source(node)));
    }
}
