//! Reads what commands are confined to.

use crate::confinement::{ChangeLimits, MountPoint, NetworkAccess, SandboxTier, WorkspaceAccess};
use crate::policy::model::SandboxRule;
use crate::policy::parse::context::Context;
use crate::policy::parse::rule_value::in_range;
use capsule_base::code::Code;
use capsule_base::limits::{STAGED_BYTES_MAX, STAGED_PATHS_MAX};
use capsule_base::yaml::{KeySpec, YamlNode, key};

const SANDBOX: &[KeySpec] = &[
    key("changes"),
    key("require"),
    key("floor"),
    key("level"),
    key("mount"),
    key("network"),
    key("tmp"),
    key("workspace"),
];

/// What commands are confined to. `writes` says whether the rule of any program lets it write.
pub(super) fn rule(
    context: &mut Context<'_>,
    node: Option<&YamlNode>,
    writes: bool,
) -> SandboxRule {
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
    let keys = |node| context.reader.section(node, "`sandbox`", SANDBOX);
    let Some(section) = node.and_then(keys) else { return rule };
    if let Some(node) = section.get("require") {
        rule.optional = context.reader.keyword(node, &["true", "false"]) == Some("false");
    }
    if let Some(node) = section.get("level") {
        let level = context.reader.keyword(node, &["strict", "workspace-write"]);
        rule.writes_by_default = level == Some("workspace-write");
        rule.workspace = staged(writes || rule.writes_by_default);
    }
    if let Some(node) = section.get("floor")
        && context.reader.keyword(node, &["namespaces", "landlock"]) == Some("landlock")
    {
        rule.floor = SandboxTier::Basic;
    }
    rule.mount = section.get("mount").map_or(rule.mount, |node| mount_point(context, node));
    if let Some(node) = section.get("changes") {
        change_limits(context, node, &mut rule.changes);
    }
    if let Some(node) = section.get("tmp") {
        context.reader.only_supported(node, "private", &["none"]);
    }
    if let Some(node) = section.get("workspace") {
        match context.reader.keyword(node, &["staged", "read-only", "direct"]) {
            Some("staged") => rule.workspace = WorkspaceAccess::Staged,
            // Where no command may write, there is nothing to do directly.
            Some("direct") if writes || rule.writes_by_default => {
                rule.workspace = WorkspaceAccess::Direct
            }
            Some("direct") => rule.workspace = WorkspaceAccess::ReadOnly,
            // Over a policy that lets programs write, a layer may say that they may not.
            _ if (writes || rule.writes_by_default) && context.layer.is_none() => {
                let message =
                    "commands may write by this policy, which a read-only workspace denies";
                context.error(Code::PolicyValue, node, message);
            }
            word => (rule.workspace, rule.read_only) = (WorkspaceAccess::ReadOnly, word.is_some()),
        }
    }
    check_network(context, section.get("network"));
    rule
}

/// Where commands see the workspace.
fn mount_point(context: &mut Context<'_>, node: &YamlNode) -> MountPoint {
    let known = [MountPoint::Same.keyword(), MountPoint::Workspace.keyword()];
    match context.reader.keyword(node, &known) {
        Some(word) if word == MountPoint::Workspace.keyword() => MountPoint::Workspace,
        _ => MountPoint::Same,
    }
}

/// How much a run may change.
fn change_limits(context: &mut Context<'_>, node: &YamlNode, limits: &mut ChangeLimits) {
    let keys = [key("paths"), key("bytes")];
    let Some(section) = context.reader.section(node, "`changes`", &keys) else { return };
    if let Some(node) = section.get("paths") {
        let number = context.reader.number(node);
        let number = in_range(context, node, number, 1..=STAGED_PATHS_MAX);
        limits.paths = number.unwrap_or(limits.paths);
    }
    if let Some(node) = section.get("bytes") {
        let size = context.reader.size(node);
        let size = in_range(context, node, size, 1..=STAGED_BYTES_MAX);
        limits.bytes = size.unwrap_or(limits.bytes);
    }
}

/// Refuses every network but none: `none` alone, or for `shell.run`.
fn check_network(context: &mut Context<'_>, node: Option<&YamlNode>) {
    match node {
        Some(node) if node.text().is_some() => {
            context.reader.only_supported(node, "none", &["proxy"]);
        }
        Some(node) => {
            let inner = context.reader.section(node, "`network`", &[key("shell.run")]);
            if let Some(node) = inner.and_then(|section| section.get("shell.run")) {
                context.reader.only_supported(node, "none", &["proxy"]);
            }
        }
        None => {}
    }
}
