//! Reads constraints on programs.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use regex::bytes::{Regex, RegexBuilder};

use crate::language::{COMMAND, ENVIRONMENT, FLAGS, PROCESS_LIMITS, PROGRAM, REGEX};
use crate::parse::context::Context;
use crate::parse::rule_value::{bounded_time, read_bound, read_decision, text, verdict};
use capsule_base::code::Code;
use capsule_base::diagnostic::Diagnostic;
use capsule_base::digest::Digest;
use capsule_base::escape;
use capsule_base::limits;
use capsule_base::units::millis;
use capsule_base::yaml::{Section, YamlNode, YamlReader, YamlValue, key};
use capsule_command::specs::Effect;
use capsule_command::variables::{VariableKind, variable_kind, variable_kind_with_value};
use capsule_core::confinement::ProcessLimits;
use capsule_core::decision::Verdict;
use capsule_core::policy::SourceLocation;
use capsule_core::policy::TokenMatcher;
use capsule_core::policy::{
    CommandForm, CommandRule, DeniedToken, EffectRule, EnvironmentRule, ExecRule, FlagRule,
    ProgramRule, WorkDirectories,
};

pub(super) fn rule(context: &mut Context<'_>, section: &Section<'_>) -> ExecRule {
    let mut bounds = ProcessLimits::default();
    let mut timeout_max = millis(limits::TIMEOUT_MAX);
    if let Some(node) = section.get("limits") {
        process_limits(context, node, &mut bounds, &mut timeout_max);
    }
    let form =
        section.get("form").and_then(|node| context.reader.keyword(node, &["argv", "command"]));
    let form = if form == Some("command") { CommandForm::Command } else { CommandForm::Argv };
    let most = layer_limits(context, section.get("limits"));
    let programs = section
        .get("executables")
        .map(|node| programs(context, node, (bounds, timeout_max), most))
        .unwrap_or_default();
    let denied_tokens =
        section.get("denied_tokens").map(|node| tokens(context, node)).unwrap_or_default();
    let env = section.get("env").map(|node| environment(context, node)).unwrap_or_default();
    let effects = section.get("effects").and_then(|node| effects(context, node));
    let cwd = section.get("cwd").map(|node| folders(context, node));
    let timeout_max_ms = timeout_max;
    ExecRule { programs, form, effects, denied_tokens, cwd, env, limits: bounds, timeout_max_ms }
}

/// The folders that commands may run in: `.`, and patterns for those beneath.
fn folders(context: &mut Context<'_>, node: &YamlNode) -> WorkDirectories {
    let mut folders =
        WorkDirectories { source: context.source(node), root: false, beneath: Vec::new() };
    let mut beneath = Vec::new();
    for item in context.reader.list(node, "a list of folders").unwrap_or_default() {
        match item.text() {
            Some(".") => folders.root = true,
            _ => beneath.push(item.clone()),
        }
    }
    let rest = YamlNode { span: node.span.clone(), value: YamlValue::List(beneath) };
    folders.beneath = context.paths(&rest);
    folders
}

/// A word for each of the things that commands can do.
fn effects(context: &mut Context<'_>, node: &YamlNode) -> Option<EffectRule> {
    let keys = Effect::ALL.map(|effect| key(effect.name()));
    let map = context.reader.section(node, "`effects`", &keys)?;
    let mut rule = EffectRule { source: context.source(node), verdicts: Vec::new() };
    for (name, at, node) in map.entries() {
        let source = context.source(at);
        if let (Some(effect), Some(word)) = (Effect::from_word(name), verdict(context, node)) {
            rule.verdicts.push((effect, word, source));
        }
    }
    Some(rule)
}

/// A list of programs of which no more is said.
fn named_programs(context: &mut Context<'_>, items: &[YamlNode]) -> Vec<ProgramRule> {
    if let Some(item) = items.iter().find(|item| item.text().is_none()) {
        let message = format!("{} stands here; a list of programs has names alone", item.kind());
        let hint =
            "say more of a program in a map: `executables: { sed: { writes: [\"docs/**\"] } }`";
        let problem = Diagnostic::error(Code::PolicyType, item.span.clone(), message);
        context.reader.problem(problem.hint(hint));
        return Vec::new();
    }
    let named = |item: &YamlNode| {
        let name = program_name(context, item)?;
        Some(program_rule(name, context.source(item), None))
    };
    items.iter().filter_map(named).collect()
}

/// `executables: [git, rg]` is short for a map with empty bodies, and `git: allow` in a map for
/// `git: { decision: allow }`.
fn programs(
    context: &mut Context<'_>,
    node: &YamlNode,
    (bounds, timeout_max): (ProcessLimits, u64),
    most: Option<(ProcessLimits, u64)>,
) -> Vec<ProgramRule> {
    if let YamlValue::List(items) = &node.value {
        return named_programs(context, items);
    }
    let mut programs: Vec<ProgramRule> = Vec::new();
    let Some(map) = context.reader.map(node, "`executables`") else { return programs };
    for (_, at, body) in map.entries() {
        let Some(name) = program_name(context, at) else { continue };
        if body.text().is_some() {
            let decision = verdict(context, body);
            programs.push(program_rule(name, context.source(at), decision));
            continue;
        }
        let known = format!("`{name}`");
        let Some(section) = context.section(body, &known, &PROGRAM) else { continue };
        let (mut limits, mut own_max) = (bounds, timeout_max);
        if let Some(node) = section.get("limits") {
            process_limits(context, node, &mut limits, &mut own_max);
        }
        if let Some((most, most_time)) = most {
            (limits, own_max) = (limits.combine(most, u64::min), own_max.min(most_time));
        }
        if let (Some(node), None, None) =
            (section.get("global_flags"), section.get("subcommands"), context.layer)
        {
            let message = "these stand before a subcommand, and this program has none";
            let hint = "put them under `flags`";
            let problem = Diagnostic::error(Code::PolicyValue, node.span.clone(), message);
            context.reader.problem(problem.hint(hint));
        }
        programs.push(ProgramRule {
            name,
            source: context.source(at),
            path: section.get("path").and_then(|node| program_path(context, node)),
            sha256: section.get("sha256").and_then(|node| digest(context, node)),
            command: command(context, at, &section),
            global_flags: section
                .get("global_flags")
                .map(|node| flags(context, node))
                .unwrap_or_default(),
            limits: (limits != bounds).then_some(limits),
            timeout_max_ms: (own_max != timeout_max).then_some(own_max),
        });
    }
    programs
}

/// The bounds that a layer has for all programs: they hold over what the policy has for one of them.
fn layer_limits(
    context: &mut Context<'_>,
    node: Option<&YamlNode>,
) -> Option<(ProcessLimits, u64)> {
    let mut node = node.filter(|_| context.layer.is_some())?.clone();
    if let YamlValue::Map(entries) = &mut node.value {
        entries.retain(|(key, _)| !context.is_underlying(&key.span));
    }
    // Bounds that nothing is narrower by, to be narrowed.
    let unlimited = ProcessLimits::default().combine(ProcessLimits::default(), |_, _| u64::MAX);
    let (mut bounds, mut timeout_max) = (unlimited, u64::MAX);
    // What is wrong with them was said before.
    let before = context.reader.problems.len();
    process_limits(context, &node, &mut bounds, &mut timeout_max);
    context.reader.problems.truncate(before);
    Some((bounds, timeout_max))
}

fn program_rule(name: String, source: SourceLocation, decision: Option<Verdict>) -> ProgramRule {
    ProgramRule {
        name,
        source: source.clone(),
        path: None,
        sha256: None,
        command: CommandRule { source, decision, ..CommandRule::default() },
        global_flags: FlagRule::default(),
        limits: None,
        timeout_max_ms: None,
    }
}

fn program_name(context: &mut Context<'_>, node: &YamlNode) -> Option<String> {
    let name = context.reader.line(node)?;
    if name.is_empty() || name.contains(['/', '*', ' ']) || name.starts_with('-') {
        context.error(
            Code::PolicyType,
            node,
            "a program goes by its plain name; `path:` says where it is",
        );
        return None;
    }
    Some(name)
}

fn program_path(context: &mut Context<'_>, node: &YamlNode) -> Option<String> {
    let path = context.reader.line(node)?;
    let plain = is_place(&path);
    if !plain {
        context.reader.problem(not_a_place(&path, node));
    }
    plain.then_some(path)
}

/// Whether a path says where a program is.
pub(super) fn is_place(path: &str) -> bool {
    path.starts_with('/') && !path.split('/').any(|part| part == "..")
}

/// A path by which a policy names no program.
pub(super) fn not_a_place(path: &str, node: &YamlNode) -> Diagnostic {
    let path = escape::line(path);
    let message = format!(
        "`{path}` does not say where a program is: an absolute path without `..` is needed"
    );
    let hint = "a program of the workspace cannot be named yet; name one of the system, which runs files \
                of the workspace: `/usr/bin/python3`, or just `python3`";
    Diagnostic::error(Code::PolicyType, node.span.clone(), message).hint(hint)
}

/// The digest that a program is pinned by.
fn digest(context: &mut Context<'_>, node: &YamlNode) -> Option<Digest> {
    let text = context.reader.text(node)?;
    let digest = Digest::from_hex(text);
    if digest.is_none() {
        let message =
            "a SHA-256 digest in 64 hexadecimal digits is needed, as `sha256sum` prints it";
        context.error(Code::PolicyType, node, message);
    }
    digest
}

fn command(context: &mut Context<'_>, at: &YamlNode, section: &Section<'_>) -> CommandRule {
    let subcommands =
        section.get("subcommands").map(|node| subcommands(context, node)).unwrap_or_default();
    CommandRule {
        source: context.source(at),
        decision: read_decision(context, section),
        flags: section.get("flags").map(|node| flags(context, node)).unwrap_or_default(),
        subcommands,
        reads: section.get("reads").map(|node| context.paths(node)),
        writes: section.get("writes").map(|node| context.paths(node)),
        needs: section.get("capabilities").map(|node| context.capabilities(node)),
        because: text(context, section, "because"),
        suggest: text(context, section, "suggest"),
    }
}

fn subcommands(context: &mut Context<'_>, node: &YamlNode) -> Vec<(String, CommandRule)> {
    let Some(map) = context.reader.map(node, "`subcommands`") else { return Vec::new() };
    let mut rules = Vec::new();
    for (name, at, body) in map.entries() {
        if body.text().is_some() {
            // `status: allow` is short for `status: { decision: allow }`.
            let decision = verdict(context, body);
            let source = context.source(at);
            rules.push((name.into(), CommandRule { source, decision, ..CommandRule::default() }));
            continue;
        }
        let Some(section) = context.section(body, "a subcommand", &COMMAND) else { continue };
        let rule = command(context, at, &section);
        if name == "*" && rule.is_unconfined() {
            let message = "`*` stands for what nobody named, which never runs unconfined";
            context.error(Code::PolicyValue, at, message);
        }
        rules.push((name.to_string(), rule));
    }
    rules
}

fn flags(context: &mut Context<'_>, node: &YamlNode) -> FlagRule {
    let mut rule = FlagRule { source: context.source(node), ..FlagRule::default() };
    let Some(section) = context.section(node, "`flags`", &FLAGS) else { return rule };
    let list = |context: &mut Context<'_>, node: &YamlNode| {
        let items = context.reader.list(node, "a list of flags").unwrap_or_default();
        let mut flags = Vec::new();
        for item in items {
            let Some(flag) = context.reader.line(item) else { continue };
            if !flag.starts_with('-') || flag.contains(['=', ' ']) {
                context.error(Code::PolicyType, item, "a flag begins with `-` and has no value");
                continue;
            }
            flags.push((flag, context.source(item)));
        }
        flags
    };
    if let Some(node) = section.get("allow") {
        rule.allow = Some(list(context, node).into_iter().map(|(flag, _)| flag).collect());
    }
    if let Some(node) = section.get("deny") {
        rule.deny = list(context, node);
    }
    rule
}

fn tokens(context: &mut Context<'_>, node: &YamlNode) -> Vec<DeniedToken> {
    let items = context.reader.list(node, "a list of words").unwrap_or_default();
    let mut tokens = Vec::new();
    for item in items {
        let source = context.source(item);
        if let Some(word) = item.text() {
            tokens.push(DeniedToken { source, token: TokenMatcher::Exact(word.to_string()) });
            continue;
        }
        let section = context.section(item, "a denied word", &REGEX);
        let pattern =
            section.and_then(|section| context.reader.required(&section, "regex", "a denied word"));
        if let Some(regex) = pattern.and_then(|node| regex(context, node)) {
            tokens.push(DeniedToken { source, token: TokenMatcher::Regex(regex) });
        }
    }
    tokens
}

/// A regular expression that must match a word as a whole.
pub(super) fn regex(context: &mut Context<'_>, node: &YamlNode) -> Option<Regex> {
    let text = context.reader.text(node)?;
    let build =
        |text: &str| RegexBuilder::new(text).size_limit(limits::REGEX_BYTES).unicode(false).build();
    // Alone first: a text that closes our group would not be bound to the whole word.
    match build(text).and_then(|_| build(&format!("^(?:{text})$"))) {
        Ok(regex) => Some(regex),
        Err(_) => {
            let message = "the expression cannot be compiled, or becomes too large";
            context.error(Code::PolicyRegex, node, message);
            None
        }
    }
}

pub(super) fn environment(context: &mut Context<'_>, node: &YamlNode) -> EnvironmentRule {
    let mut env = EnvironmentRule::default();
    let Some(section) = context.section(node, "`env`", &ENVIRONMENT) else { return env };
    if let Some(node) = section.get("pass") {
        for (name, span) in context.reader.lines(node, "a list of variables") {
            check_variable(context, &name, YamlNode { span, value: YamlValue::List(Vec::new()) });
            env.pass.push(name);
        }
    }
    if let Some(node) = section.get("accept") {
        for (entry, span) in context.reader.lines(node, "a list of variables") {
            check_accepted(context, &entry, YamlNode { span, value: YamlValue::List(Vec::new()) });
            env.accept.push(entry);
        }
    }
    if let Some(map) = section.get("set").and_then(|node| context.reader.map(node, "`set`")) {
        for (name, at, node) in map.entries() {
            check_variable(context, name, at.clone());
            if let Some(value) = context.reader.line(node) {
                env.set.push((name.to_string(), value));
            }
        }
    }
    env
}

fn check_variable(context: &mut Context<'_>, name: &str, at: YamlNode) {
    check_variable_kind(context, name, variable_kind(name), &at);
}

/// `NAME`, or `NAME=VALUE`, which may name what is never passed on if this value starts nothing.
fn check_accepted(context: &mut Context<'_>, entry: &str, at: YamlNode) {
    let Some((name, value)) = entry.split_once('=') else {
        return check_variable(context, entry, at);
    };
    let (inner, last) = value.strip_suffix('*').map_or((value, ""), |begun| (begun, "0"));
    if inner.contains('*') {
        let message = "a `*` stands at the end of a value, for letters, digits, `.`, `_` and `-`";
        return context.error(Code::PolicyType, &at, message);
    }
    check_variable_kind(
        context,
        name,
        variable_kind_with_value(name, &format!("{inner}{last}")),
        &at,
    );
}

fn check_variable_kind(context: &mut Context<'_>, name: &str, kind: VariableKind, at: &YamlNode) {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(plain) {
        context.error(Code::PolicyType, at, "a variable has letters, digits and `_`");
    } else if matches!(
        kind,
        VariableKind::Code | VariableKind::StartsProgram | VariableKind::AlwaysDenied
    ) {
        let message =
            format!("`{name}` changes which code a program runs, so it is never passed on");
        context.error(Code::PolicyEnv, at, message);
    }
}

pub(super) fn process_limits(
    context: &mut Context<'_>,
    node: &YamlNode,
    bounds: &mut ProcessLimits,
    timeout_max: &mut u64,
) {
    let Some(section) = context.section(node, "`limits`", &PROCESS_LIMITS) else { return };
    let timeout = section.get("timeout").and_then(|node| bounded_time(context, node)).map(millis);
    let most = section.get("timeout_max").and_then(|node| bounded_time(context, node)).map(millis);
    bounds.timeout_ms = timeout.unwrap_or(bounds.timeout_ms);
    // A policy that names a longer time than the ceiling has raised the ceiling with it.
    *timeout_max = most.unwrap_or((*timeout_max).max(bounds.timeout_ms));
    bounds.timeout_ms = bounds.timeout_ms.min(*timeout_max);
    if let Some(node) = section.get("cpu") {
        let cpu = bounded_time(context, node).map(millis);
        bounds.cpu_ms = cpu.unwrap_or(bounds.cpu_ms);
    }
    let mut size = |name: &str, range, slot: &mut u64| {
        read_bound(context, (&section, name), YamlReader::size, range, slot);
    };
    size("stdout_max", 0..=limits::OUTPUT_BYTES_MAX, &mut bounds.stdout_bytes);
    size("stderr_max", 0..=limits::OUTPUT_BYTES_MAX, &mut bounds.stderr_bytes);
    let memory = limits::MEMORY_BYTES_MIN..=limits::MEMORY_BYTES_MAX;
    size("memory", memory, &mut bounds.memory_bytes);
    size("tmp", 1..=limits::TMP_BYTES_MAX, &mut bounds.tmp_bytes);
    size("file", 1..=limits::TMP_BYTES_MAX, &mut bounds.file_bytes);
    let (range, processes) = (1..=limits::PROCESSES_MAX, &mut bounds.processes);
    read_bound(context, (&section, "processes_max"), YamlReader::number, range, processes);
}
