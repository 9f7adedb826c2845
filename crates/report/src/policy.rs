//! A policy as it decides: every rule with its word, its bounds and its place, the base policy's
//! rules among them.

use capsule_base::diagnostic::{LineIndex, Position};
use capsule_base::escape;
use capsule_base::net;
use capsule_base::units::{counted, show_size, show_span};
use capsule_base::yaml::{self, POLICY_DIALECT, YamlNode, YamlValue};
use capsule_core::capability::{Capabilities, Capability};
use capsule_core::confinement::{ChangeLimits, MountPoint, WorkspaceAccess};
use capsule_core::decision::Verdict;
use capsule_core::policy::{
    ArgumentPattern, AuditRule, CheckpointRule, Constraint, DroppedRule, FetchRule, FileRule,
    HardDenyRule, LayerKind, PathRule, PayloadRetention, Policy, PolicyLayer, Profile, Quota,
    SourceLocation, ToolRule, Unattended, UrlRule,
};

use crate::columns::{Layout, wrap};
use crate::programs::{exec_rules, limit_texts, with_exec_rule};
use crate::risk::risk_rules;
use crate::rule_line::{RuleLine, RuleProperty, pattern_texts, token_text};

/// Every rule of a policy that is bound to its workspace, in the order in which they are asked.
/// `texts` are the policy as written and what it extends, each behind how its place is shown.
#[must_use]
pub fn policy_rules(policy: &Policy, texts: &[(&str, &str)]) -> Vec<RuleLine> {
    let mut lines: Vec<RuleLine> =
        policy.hard_denies.iter().map(|deny| never_rule("never", deny)).collect();
    lines.extend(policy.base_denials.iter().map(|denial| never_rule("deny", denial)));
    let asks = |item| never_rule("ask", item).with_decision(Some(Verdict::Ask));
    lines.extend(policy.base_questions.iter().map(asks));
    lines.extend(policy.dropped_rules.iter().map(|DroppedRule { id, source, because, .. }| {
        RuleLine::new("lift", id.clone(), source).with("because", [because])
    }));
    for (tool, rule) in &policy.tools {
        lines.push(tool_rule(tool.as_str(), rule));
        lines.extend(nested_rules(tool.as_str(), &rule.constraint));
    }
    let written: Vec<SectionPlaces<'_>> =
        texts.iter().map(|(name, text)| SectionPlaces::parse(text, name)).collect();
    let place = |section: &str| {
        let found = written
            .iter()
            .map(|places| places.place_of(section))
            .find(|location| !location.at.is_empty());
        found.unwrap_or_default()
    };
    lines.push(profile_rule(&policy.profile, place("profile")));
    lines.extend(risk_rules(policy, &place));
    lines.push(sandbox_rule(policy, &place("sandbox")));
    lines.extend(secret_rules(policy, &place("redaction")));
    lines.push(audit_rule(&policy.audit, &place("audit")));
    lines
}

/// What is kept and for how long, when the record is signed, and where that is told.
fn audit_rule(rule: &AuditRule, place: &SourceLocation) -> RuleLine {
    let payloads = match rule.payloads {
        PayloadRetention::Full => "full",
        PayloadRetention::Digest => "digest",
    };
    let signed = &rule.checkpoints;
    let moments = [signed.approval, signed.denial, signed.run_end];
    let moments =
        CheckpointRule::MOMENTS.into_iter().zip(moments).filter(|(_, is_named)| *is_named);
    let every = std::iter::once(format!("every {}", counted(signed.every, "event")));
    RuleLine::new("audit", "audit", place)
        .with("payloads", [payloads])
        .with("erased_after", rule.erase_after.map(|term| show_span(term * 1_000)))
        .with("checkpoint", every.chain(moments.map(|(word, _)| word.to_owned())))
        .with("anchors", rule.anchors.iter().map(|anchor| format!("file:{}", anchor.path)))
}

/// What a layer says by itself, in the same order. `text` is its own, behind how its place is shown.
#[must_use]
pub fn layer_rules(layer: &PolicyLayer, text: (&str, &str)) -> Vec<RuleLine> {
    let rules = policy_rules(&layer.policy, &[text]);
    // The rest is what it is laid over, and counts by itself.
    let is_own = |line: &RuleLine| {
        let place = line.at.as_deref().and_then(|at| at.strip_prefix(text.0));
        place.is_some_and(|place| place.starts_with(':'))
    };
    let item = rules.into_iter().filter(is_own);
    item.map(|rule| RuleLine { layer: layer.kind.keyword(), ..rule }).collect()
}

/// Where the sections of a policy stand that become values without a place of their own.
struct SectionPlaces<'w> {
    root: Option<YamlNode>,
    lines: LineIndex<'w>,
    name: &'w str,
}

impl<'w> SectionPlaces<'w> {
    fn parse(text: &'w str, name: &'w str) -> Self {
        let root = yaml::parse(text, &POLICY_DIALECT).ok().flatten();
        Self { root, lines: LineIndex::of(text), name }
    }

    fn place_of(&self, section: &str) -> SourceLocation {
        let Some(YamlValue::Map(entries)) = self.root.as_ref().map(|root| &root.value) else {
            return SourceLocation::default();
        };
        let key = entries.iter().find(|(key, _)| key.text() == Some(section));
        key.map_or_else(SourceLocation::default, |(key, _)| {
            let Position { line, column } = self.lines.position(key.span.start);
            SourceLocation { at: format!("{}:{line}:{column}", self.name), span: key.span.clone() }
        })
    }
}

fn never_rule(section: &'static str, rule: &HardDenyRule) -> RuleLine {
    let HardDenyRule { id, source, capabilities, paths, except, tool, argv, effects, into, .. } =
        rule;
    let every: Capabilities = Capability::ALL.into_iter().collect();
    let named = (*capabilities != every).then_some(*capabilities);
    let words = argv.iter().map(|pattern| {
        let words = pattern.arguments.iter().map(word_pattern_text);
        words.chain(pattern.flags.iter().cloned()).collect::<Vec<_>>().join(" ")
    });
    RuleLine::new(section, id.clone(), source)
        .with_decision(Some(Verdict::Deny))
        .with("capabilities", named.iter().flat_map(|capabilities| capabilities.iter()))
        .with("tool", tool.iter())
        .with("paths", pattern_texts(paths))
        .with("except", pattern_texts(except))
        .with("argv", words)
        .with("effects", effects.iter().map(|effect| effect.name()))
        .with("into", into.iter().map(|effect| effect.name()))
        .with_reason(&rule.because, &rule.suggest)
}

fn word_pattern_text(pattern: &ArgumentPattern) -> String {
    match pattern {
        ArgumentPattern::Gap => "...".into(),
        ArgumentPattern::Any(tokens) => {
            tokens.iter().map(token_text).collect::<Vec<_>>().join(" | ")
        }
    }
}

/// What a tool's rule says about all of its calls.
fn tool_rule(tool: &str, rule: &ToolRule) -> RuleLine {
    let ToolRule { source, decision, because, suggest, quota, timeout_ms, constraint, .. } = rule;
    let line = RuleLine::new("tools", tool, source).with_decision(*decision);
    let time = show_span(*timeout_ms);
    let line = match constraint {
        Constraint::Files(files) => with_file_rule(line, tool, files).with("timeout", [time]),
        Constraint::Fetch(fetch) => with_fetch_rule(line, fetch).with("timeout", [time]),
        Constraint::Exec(exec) => with_exec_rule(line, exec),
        Constraint::Git(git) => line
            .with("bytes", [show_size(git.bytes)])
            .with("results", [format!("{}, at most {}", git.results, git.results_max)])
            .with("timeout", [time]),
        Constraint::Test(test) => line
            .with("command", test.command.iter())
            .with("cwd", [&test.cwd])
            .with("filter", test.filter.iter().flatten())
            .with("limits", limit_texts(&test.limits)),
        Constraint::Person => line.with("timeout", [time]),
    };
    with_quota(line, quota).with_reason(because, suggest)
}

fn with_quota(line: RuleLine, quota: &Quota) -> RuleLine {
    let Quota { calls, bytes, wall_ms, per_host } = quota;
    let wall = wall_ms.map(show_span);
    let values = [
        calls.map(|calls| counted(calls, "call")),
        bytes.map(show_size),
        wall,
        per_host.map(|calls| format!("{} per host", counted(calls, "call"))),
    ];
    line.with("quota", values.into_iter().flatten())
}

fn with_file_rule(line: RuleLine, tool: &str, files: &FileRule) -> RuleLine {
    let FileRule {
        allow,
        deny,
        hidden,
        links,
        bytes,
        bytes_max,
        results,
        results_max,
        rules: _,
        modes,
        spelling: _,
    } = files;
    let line = line
        .with("paths", pattern_texts(allow))
        .with("not", pattern_texts(deny))
        .with("hidden", [if *hidden { "allow" } else { "deny" }])
        .with("symlinks", [if *links { "inside" } else { "deny" }])
        .with(
            "modes",
            modes.iter().map(|(mode, verdict, _)| format!("{} {verdict}", mode.keyword())),
        );
    // What only looks moves no bytes, and the rest gives no list.
    match tool {
        "fs.delete" => line,
        "fs.list" | "fs.search" | "fs.grep" => {
            line.with("results", [format!("{results}, at most {results_max}")])
        }
        _ => line
            .with("bytes", [format!("{}, at most {}", show_size(*bytes), show_size(*bytes_max))]),
    }
}

fn with_fetch_rule(line: RuleLine, fetch: &FetchRule) -> RuleLine {
    let FetchRule { allow: _, deny: _, private, redirects, cross_origin, bytes_max, inflated_max } =
        fetch;
    let private: Vec<String> = private.iter().map(net::IpRange::to_string).collect();
    let private = if private.is_empty() { vec!["deny".into()] } else { private };
    line.with("private_ips", private)
        .with("redirects", [format!("{redirects}, to another origin: {cross_origin}")])
        .with(
            "bytes",
            [format!("{}, {} inflated", show_size(*bytes_max), show_size(*inflated_max))],
        )
}

/// The rules inside of a tool's rule.
fn nested_rules(tool: &str, constraint: &Constraint) -> Vec<RuleLine> {
    match constraint {
        Constraint::Files(files) => {
            files.rules.iter().map(|rule| path_rule_line(tool, rule)).collect()
        }
        Constraint::Fetch(fetch) => {
            let open = fetch.allow.iter().map(|rule| url_rule_line(tool, rule, rule.decision));
            let closed =
                fetch.deny.iter().map(|rule| url_rule_line(tool, rule, Some(Verdict::Deny)));
            open.chain(closed).collect()
        }
        Constraint::Exec(exec) => exec_rules(tool, exec),
        Constraint::Git(_) | Constraint::Test(_) | Constraint::Person => Vec::new(),
    }
}

fn path_rule_line(tool: &str, rule: &PathRule) -> RuleLine {
    let PathRule { id, source, paths, decision, because, suggest } = rule;
    RuleLine::new("tools", format!("{tool}/{id}"), source)
        .with_decision(*decision)
        .with("paths", pattern_texts(paths))
        .with_reason(because, suggest)
}

fn url_rule_line(tool: &str, rule: &UrlRule, decision: Option<Verdict>) -> RuleLine {
    let UrlRule { id, source, pattern, decision: _, because, suggest } = rule;
    RuleLine::new("tools", format!("{tool}/{id}"), source)
        .with_decision(decision)
        .with("url", [pattern.as_str()])
        .with_reason(because, suggest)
}

fn profile_rule(profile: &Profile, chosen: SourceLocation) -> RuleLine {
    let Profile { name, source, verdicts: _, default: _, unattended, requires } = profile;
    let words = Capability::ALL.map(|capability| {
        format!("{capability} {}", profile.strictest_verdict(Capabilities::of(capability)))
    });
    let unattended = match unattended {
        Unattended::Deny => "deny",
        Unattended::Fail => "fail",
        Unattended::Wait => "wait",
    };
    let requires = [
        requires.sandbox.then_some("sandbox enforced"),
        requires.disposable.then_some("workspace disposable"),
        requires.isolated.then_some("isolated yes"),
    ];
    RuleLine::new("profile", name.clone(), source.as_ref().unwrap_or(&chosen))
        .with("decide", words)
        .with("unattended", [unattended])
        .with("requires", requires.into_iter().flatten())
}

fn sandbox_rule(policy: &Policy, place: &SourceLocation) -> RuleLine {
    let rule = &policy.sandbox;
    let workspace = match rule.workspace {
        WorkspaceAccess::ReadOnly => "read-only",
        WorkspaceAccess::Staged => "staged",
        WorkspaceAccess::Direct => "direct",
    };
    let ChangeLimits { paths, bytes } = rule.changes;
    let changes = [counted(paths, "path"), show_size(bytes)];
    let is_limited = rule.changes != ChangeLimits::default();
    RuleLine::new("sandbox", "sandbox", place)
        .with("require", rule.optional.then_some("false"))
        .with("floor", [rule.floor.name()])
        .with("level", [if rule.writes_by_default { "workspace-write" } else { "strict" }])
        .with("network", [rule.network.keyword()])
        .with("hosts", policy.hosts.rules.iter().map(host_rule_text))
        .with("other hosts", policy.hosts.others.iter().map(|(verdict, _)| verdict.keyword()))
        .with("private_ips", policy.hosts.private.iter().map(ToString::to_string))
        .with("loopback", policy.hosts.loopback.iter().map(ToString::to_string))
        .with("workspace", [workspace])
        .with("mount", (rule.mount != MountPoint::Same).then_some(rule.mount.keyword()))
        .with("changes", is_limited.then_some(changes).into_iter().flatten())
}

/// `registry.example.org` where it is allowed, else with its word.
fn host_rule_text(rule: &UrlRule) -> String {
    match rule.decision {
        None | Some(Verdict::Allow) => rule.id.clone(),
        Some(verdict) => format!("{} ({verdict})", rule.id),
    }
}

/// What is masked, what becomes of masks, and the handles.
fn secret_rules<'p>(
    policy: &'p Policy,
    place: &'p SourceLocation,
) -> impl Iterator<Item = RuleLine> + 'p {
    let item = &policy.redaction;
    let redaction = RuleLine::new("redaction", "redaction", place)
        .with("detectors", ["builtin"])
        .with("returned_masks", [item.returned.keyword()]);
    let patterns = item.patterns.iter().map(|rule| {
        RuleLine::new("redaction", rule.pattern.id(), &rule.source).with("regex", [&rule.text])
    });
    let handles = policy.secrets.iter().map(|secret| {
        let rules = secret.only_for.iter().map(|(tool, id)| format!("{tool}/{id}"));
        RuleLine::new("secrets", secret.name.clone(), &secret.source)
            .with("from", ["env"])
            .with("only_for", rules)
            .with("as", [format!("{}: {}", secret.header, secret.header_value("{}"))])
    });
    std::iter::once(redaction).chain(patterns).chain(handles)
}

/// The rules as lines for people: each with its place, what it says below it.
#[must_use]
pub fn policy_lines(rules: &[RuleLine], layout: Layout) -> Vec<String> {
    let mut lines = Vec::new();
    let mut section = "";
    for rule in rules {
        if section != rule.section {
            section = rule.section;
            lines.push(format!("{section}{}", section_default(section, is_of_layer(rule))));
        }
        let word = rule.decision.map_or_else(|| default_decision(rule), Verdict::keyword);
        let at = rule.at.as_deref().unwrap_or("not written, so this holds");
        let shown = format!("  {} {word}", escape::line(&rule.rule));
        lines.push(format!("{}  {}", shown.trim_end(), escape::line(at)));
        for RuleProperty { name, values } in &rule.says {
            let text = values.join(if values.iter().any(|value| value.contains(' ')) {
                " · "
            } else {
                " "
            });
            let text = escape::line(&text).into_owned();
            let room = layout.width.saturating_sub(PROPERTY_COLUMNS + 4);
            let mut name = *name;
            for line in wrap(&text, room) {
                lines.push(format!("    {name:<PROPERTY_COLUMNS$}{line}").trim_end().to_owned());
                name = "";
            }
        }
    }
    lines
}

/// How wide the names of what a rule says are.
const PROPERTY_COLUMNS: usize = 14;

/// Whether a rule is one of a layer, which only adds to what stands elsewhere.
fn is_of_layer(rule: &RuleLine) -> bool {
    LayerKind::ALL.iter().any(|kind| kind.keyword() == rule.layer)
}

fn section_default(section: &str, is_of_layer: bool) -> &'static str {
    match section {
        "tools" if is_of_layer => ": what is tightened; the rest is as the policy says",
        "profile" if is_of_layer => ": counts beside the policy's own",
        "never" => ": nothing overrides these",
        "deny" => ": the base policy denies these; the user's own policy may drop one",
        "ask" => ": a person is asked before these are changed; the user's own policy may drop one",
        "lift" => ": rules of the base policy that are dropped",
        "tools" => ": what may be called at all; anything else is denied",
        "profile" => ": decides where a rule has no word of its own, and is a ceiling",
        "budgets" => ": how much one run may do in all",
        "grants" => ": what a prompt may offer beyond the call that it is about",
        _ => "",
    }
}

fn default_decision(rule: &RuleLine) -> &'static str {
    match rule.section {
        "tools" if is_of_layer(rule) => "(no word)",
        "tools" => "(by the profile)",
        _ => "",
    }
}
