//! What a policy says that its author probably did not mean. The policy works as written.

use capsule_base::diagnostic::Diagnostics;
use capsule_base::path::WorkspacePath;
use capsule_base::url::HttpUrl;
use capsule_command::specs::{self, CommandLine, Effect};
use capsule_core::capability::Capability;
use capsule_core::confinement::WorkspaceAccess;
use capsule_core::decision::Verdict;
use capsule_core::policy::{
    CommandRule, Constraint, ExecRule, FetchRule, FileRule, HardDenyRule, PathPattern, PathRule,
    Policy, ProgramRule, SourceLocation, TestRule, ToolRule, UrlRule,
};
use capsule_core::tool::{ToolName, ToolSet, ToolSignature};

mod note;
mod patterns;

use note::lint_note;

/// Programs that run whatever they are given.
pub(crate) const INTERPRETERS: &[&str] = &[
    "awk", "bun", "deno", "gawk", "lua", "mawk", "node", "nodejs", "perl", "php", "python",
    "python2", "python3", "ruby", "sed", "tclsh",
];
/// Programs that do what their first word says.
const MULTICALL_PROGRAMS: &[&str] = &[
    "apt",
    "aws",
    "brew",
    "cargo",
    "docker",
    "gcloud",
    "gh",
    "git",
    "go",
    "helm",
    "kubectl",
    "npm",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "systemctl",
    "terraform",
    "uv",
    "yarn",
];

/// Looks for what is probably not meant. Only the user's own rules are looked at.
#[must_use]
pub fn lint(policy: &Policy, tools: &ToolSet) -> Diagnostics {
    let mut notes = Vec::new();
    for never in policy.hard_denies.iter().filter(|never| !never.source.at.starts_with("builtin:"))
    {
        if never.because.is_none() {
            let message = format!("the rule `{}` does not say why: add `because`", never.id);
            notes.push(lint_note(&never.source, message));
        }
    }
    for (tool, rule) in &policy.tools {
        match &rule.constraint {
            Constraint::Files(files) => {
                lint_file_rules(policy, files, &mut notes);
                let signature = tools.catalogue.find(tool.as_str());
                note_tools_may_change(policy, (tool, signature), rule, files, &mut notes);
            }
            Constraint::Fetch(fetch) => lint_url_rules(fetch, &mut notes),
            Constraint::Git(_) | Constraint::Person => {}
            Constraint::Test(test) => lint_test_rule(policy, rule, test, tools, &mut notes),
            Constraint::Exec(exec) => {
                lint_effects(exec, &mut notes);
                for program in &exec.programs {
                    lint_program_rule(policy, exec, program, tools, &mut notes);
                }
            }
        }
    }
    patterns::lint(policy, &mut notes);
    notes.sort_by_key(|note| note.span.start);
    notes
}

fn note_missing_reason(
    source: &SourceLocation,
    id: &str,
    verdict: Option<Verdict>,
    because: &Option<String>,
    notes: &mut Diagnostics,
) {
    if verdict == Some(Verdict::Deny) && because.is_none() {
        notes.push(lint_note(source, format!("`{id}` denies and does not say why: add `because`")));
    }
}

/// A pattern seen as a path: `docs/gen/**` lies beneath `docs/**`.
fn literal_path(pattern: &PathPattern) -> Option<WorkspacePath> {
    WorkspacePath::parse(&pattern.text).ok()
}

fn is_within(inner: &PathPattern, outer: &PathPattern) -> bool {
    literal_path(inner).is_some_and(|path| outer.covers(&path))
}

fn lint_file_rules(policy: &Policy, files: &FileRule, notes: &mut Diagnostics) {
    let closing = policy
        .hard_denies
        .iter()
        .flat_map(|never| never.paths.iter().map(move |pattern| (never, pattern)));
    let closing: Vec<_> = closing.collect();
    let opened = files.allow.iter().chain(files.rules.iter().flat_map(|rule| &rule.paths));
    for pattern in opened {
        if let Some((never, _)) = closing.iter().find(|(_, closed)| is_within(pattern, closed)) {
            let message =
                format!("`{}` opens nothing: the rule `{}` closes it", pattern.text, never.id);
            notes.push(lint_note(&pattern.source, message));
            continue;
        }
        // What closes names wherever they are (`**/.env`) lies beneath every folder.
        let item = closing.iter().filter(|(_, closed)| literal_prefix(closed).is_some());
        if let Some((never, closed)) =
            item.into_iter().find(|(_, closed)| opens_closed(pattern, closed))
        {
            let message = format!(
                "`{}` reads as if `{}` were open, which the rule `{}` closes",
                pattern.text, closed.text, never.id
            );
            notes.push(lint_note(&pattern.source, message));
        }
    }
    for (index, rule) in files.rules.iter().enumerate() {
        note_missing_reason(&rule.source, &rule.id, rule.decision, &rule.because, notes);
        let reachable = rule.paths.iter().any(|pattern| {
            files.allow.iter().any(|open| is_within(pattern, open) || is_within(open, pattern))
                && !files.deny.iter().any(|closed| is_within(pattern, closed))
        });
        if !reachable {
            let message = format!("`{}` is never reached: none of its paths is open", rule.id);
            notes.push(lint_note(&rule.source, message));
        }
        for other in files.rules.iter().skip(index + 1) {
            note_overlap(rule, other, notes);
        }
    }
}

/// A read-only workspace is that of commands. Who writes it may have meant more.
fn note_tools_may_change(
    policy: &Policy,
    (tool, signature): (&ToolName, Option<&ToolSignature>),
    rule: &ToolRule,
    files: &FileRule,
    notes: &mut Diagnostics,
) {
    let changing =
        |capability: &&Capability| matches!(capability, Capability::FsWrite | Capability::FsDelete);
    let power = signature.and_then(|signature| signature.capabilities.iter().find(changing));
    let Some(power) = power else { return };
    let denied =
        rule.decision == Some(Verdict::Deny) || policy.profile.verdict_for(*power) == Verdict::Deny;
    if policy.sandbox.read_only && !denied && !files.allow.is_empty() {
        let message = format!(
            "`{tool}` changes the workspace: `sandbox.workspace: read-only` binds programs alone"
        );
        let hint = format!("`{tool}: deny` keeps it from changing anything");
        notes.push(lint_note(&rule.source, message).hint(hint));
    }
}

/// Whether two rules say different things. One without a word of its own says nothing.
fn verdicts_differ(verdict: Option<Verdict>, other: Option<Verdict>) -> bool {
    verdict.zip(other).is_some_and(|(verdict, other)| verdict != other)
}

fn note_overlap(rule: &PathRule, other: &PathRule, notes: &mut Diagnostics) {
    if !verdicts_differ(rule.decision, other.decision) {
        return;
    }
    let meets = rule.paths.iter().any(|path| {
        other.paths.iter().any(|theirs| is_within(path, theirs) || is_within(theirs, path))
    });
    if meets {
        let message = format!(
            "`{}` and `{}` overlap and decide differently; the strictest wins",
            rule.id, other.id
        );
        notes.push(lint_note(&other.source, message));
    }
}

/// The command of the tests is the author's own, so that no rule about commands closes it.
fn lint_test_rule(
    policy: &Policy,
    rule: &ToolRule,
    test: &TestRule,
    tools: &ToolSet,
    notes: &mut Diagnostics,
) {
    if let Some(path) = test.command.first() {
        unseen_place(path, &rule.source, tools, notes);
    }
    let line = CommandLine::parse(&test.command, None, false);
    let shell = policy.hard_denies.iter().find(|never| {
        never.id == "no-shells" && never.argv.iter().any(|pattern| pattern.matches(&line))
    });
    if shell.is_some() {
        let message = "the tests run in a shell; only the sandbox holds what it is given";
        notes.push(lint_note(&rule.source, message));
    }
}

/// What can mean anything, or what cannot be brought back, allowed without a question.
fn lint_effects(exec: &ExecRule, notes: &mut Diagnostics) {
    for (effect, verdict, source) in exec.effects.iter().flat_map(|rule| &rule.verdicts) {
        let why = match effect {
            Effect::Code => "any program text that is given may run; only the sandbox holds it",
            Effect::Unknown => "what nobody knows may run; only the sandbox holds it",
            Effect::Network => "programs may contact every host that `sandbox.network` names",
            Effect::Starts => "a program may start any other",
            Effect::Interactive => "a program may wait for a person who is not there",
            Effect::Plumbing => "a repository may come to hold what no file shows",
            Effect::Sends => {
                "what a program reads may be sent to every host that `sandbox.network` names"
            }
            Effect::Publishes
            | Effect::System
            | Effect::Destroys
            | Effect::Secrets
            | Effect::Shell => "only the base policy stands between this and harm",
            Effect::Reads | Effect::Opens | Effect::Writes | Effect::Deletes | Effect::Runs => {
                continue;
            }
        };
        if *verdict == Verdict::Allow {
            notes.push(lint_note(source, format!("`{}: allow`: {why}", effect.name())));
        }
    }
}

fn lint_url_rules(fetch: &FetchRule, notes: &mut Diagnostics) {
    for rule in &fetch.deny {
        note_missing_reason(&rule.source, &rule.id, Some(Verdict::Deny), &rule.because, notes);
    }
    for (index, rule) in fetch.allow.iter().enumerate() {
        note_missing_reason(&rule.source, &rule.id, rule.decision, &rule.because, notes);
        let Some(sample) = sample_address(rule) else { continue };
        if let Some(closed) = fetch.deny.iter().find(|closed| closed.pattern.matches(&sample)) {
            let message = format!("`{}` is never reached: `{}` denies it", rule.id, closed.id);
            notes.push(lint_note(&rule.source, message));
            continue;
        }
        let others = fetch.allow.iter().enumerate().filter(|(other, _)| *other != index);
        for (_, other) in others.filter(|(_, other)| verdicts_differ(other.decision, rule.decision))
        {
            if other.pattern.matches(&sample) {
                let message = format!(
                    "`{}` and `{}` overlap and decide differently; the strictest wins",
                    other.id, rule.id
                );
                notes.push(lint_note(&rule.source, message));
            }
        }
    }
}

/// An address that a rule means, with words in place of its wildcards that no other rule can name.
/// Whatever matches it means all that the rule means.
fn sample_address(rule: &UrlRule) -> Option<HttpUrl> {
    const WORD: &str = "any-name-at-all";
    let text = rule.pattern.as_str();
    let text = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    let (scheme, rest) = text.split_once("://")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, "**"));
    let host = host.strip_prefix("*.").map_or_else(|| host.into(), |text| format!("{WORD}.{text}"));
    let host = host.strip_suffix(":*").unwrap_or(&host);
    let path = path.replace("**", &format!("{WORD}/{WORD}")).replace(['*', '?'], WORD);
    HttpUrl::parse(&format!("{scheme}://{host}/{path}")).ok()
}

/// The place that a pattern names from the workspace down, up to its first wildcard.
fn literal_prefix(pattern: &PathPattern) -> Option<WorkspacePath> {
    let names = pattern.text.split('/').take_while(|name| !name.contains(['*', '?', '[', '{']));
    WorkspacePath::parse(&names.collect::<Vec<_>>().join("/")).ok().filter(|path| !path.is_root())
}

/// Whether a pattern that names a folder opens something that another one closes.
fn opens_closed(open: &PathPattern, closed: &PathPattern) -> bool {
    literal_prefix(open).is_some()
        && literal_prefix(closed).is_some_and(|place| open.matches(&place))
}

fn lint_program_rule(
    policy: &Policy,
    exec: &ExecRule,
    program: &ProgramRule,
    tools: &ToolSet,
    notes: &mut Diagnostics,
) {
    let name = program.name.as_str();
    let argv = vec![String::from(name)];
    let mut line = CommandLine::parse(&argv, None, false);
    line.names.extend(program.path.as_deref().map(|path| specs::base_name(path).into()));
    let forbidden = policy
        .hard_denies
        .iter()
        .chain(&policy.base_denials)
        .find(|never| never.argv.iter().any(|pattern| pattern.matches(&line)));
    if let Some(never) = forbidden {
        let message = format!("`{name}` is never reached: the rule `{}` denies it", never.id);
        notes.push(lint_note(&program.source, message));
        return;
    }
    if exec.denied_tokens.iter().any(|pattern| pattern.token.matches(name)) {
        let message = format!("`{name}` is never reached: `denied_tokens` holds it");
        notes.push(lint_note(&program.source, message));
        return;
    }
    let denied = program.command.decision == Some(Verdict::Deny);
    let whole = program.command.subcommands.is_empty();
    let has_many = specs::find_spec(name).is_some_and(|known| !known.subcommands.is_empty())
        || MULTICALL_PROGRAMS.contains(&name);
    if whole && !denied && has_many {
        let message = format!("`{name}` is many programs in one; name its `subcommands`");
        notes.push(lint_note(&program.source, message));
    }
    if whole && !denied && INTERPRETERS.contains(&name) {
        let message = format!("`{name}` runs any code that it is given; only the sandbox holds it");
        notes.push(lint_note(&program.source, message));
    }
    if let Some(path) = program.path.as_deref() {
        unseen_place(path, &program.source, tools, notes);
    }
    lint_unconfined(policy, program, notes);
    lint_commands(policy, name, &program.command, InheritedScopes::default(), notes);
}

/// A program in a folder of which every command has its own.
fn unseen_place(path: &str, source: &SourceLocation, tools: &ToolSet, notes: &mut Diagnostics) {
    if let Some(folder) = (tools.hiding_directory)(path) {
        let message = format!("`{path}` cannot be run: a command has a `{folder}` of its own");
        notes.push(lint_note(source, message).hint("name a program that lies elsewhere"));
    }
}

/// What naming `proc.unconfined` comes to.
fn lint_unconfined(policy: &Policy, program: &ProgramRule, notes: &mut Diagnostics) {
    if !program.command.names_unconfined() {
        return;
    }
    let name = &program.name;
    let message = if !policy.sandbox.optional {
        format!("`proc.unconfined` gives `{name}` nothing: `sandbox.require` is true")
    } else if policy.risk_policy.block_at.is_some() {
        format!(
            "`proc.unconfined` gives `{name}` nothing: where there is no sandbox it is of high risk, and \
             refused"
        )
    } else if policy.sandbox.workspace == WorkspaceAccess::Staged {
        format!("where there is no sandbox `{name}` is refused: nothing can be staged there")
    } else {
        format!("where there is no sandbox nothing confines `{name}`: it is asked each time")
    };
    notes.push(lint_note(&program.source, message));
}

/// What a rule names that its commands cannot have.
fn note_impossible(policy: &Policy, name: &str, rule: &CommandRule, notes: &mut Diagnostics) {
    let names = |capability| rule.needs.is_some_and(|need| need.contains(capability));
    if names(Capability::NetEgress) && policy.sandbox.network.is_none() {
        let message = format!("`net.egress` gives `{name}` nothing: commands have no network");
        notes.push(lint_note(&rule.source, message));
    }
    let changes = [Capability::FsWrite, Capability::FsDelete].into_iter().any(names);
    let may =
        rule.writes.as_ref().map_or(policy.sandbox.writes_by_default, |write| !write.is_empty());
    if changes && !may {
        let message = format!("`{name}` may change nothing: no `writes` of its rule names a path");
        notes.push(lint_note(&rule.source, message));
    }
}

/// What a command may see and change, by its own rule or the nearest one above.
#[derive(Clone, Copy, Default)]
struct InheritedScopes<'p> {
    reads: Option<&'p [PathPattern]>,
    writes: Option<&'p [PathPattern]>,
}

/// What a command may change and does not see.
fn note_unreadable_writes(
    name: &str,
    rule: &CommandRule,
    InheritedScopes { reads, writes }: InheritedScopes<'_>,
    notes: &mut Diagnostics,
) {
    let (Some(reads), Some(writes)) = (reads, writes) else { return };
    if rule.reads.is_none() && rule.writes.is_none() {
        return; // said above
    }
    for pattern in writes.iter().filter(|pattern| !pattern.is_within(reads)) {
        let message = format!(
            "`{name}` cannot change all of `{}`: what its `reads` does not name is hidden from it",
            pattern.text
        );
        let hint = "leave out of `writes` what `reads` does not name";
        notes.push(lint_note(&pattern.source, message).hint(hint));
    }
}

fn lint_commands<'p>(
    policy: &Policy,
    name: &str,
    command: &'p CommandRule,
    above: InheritedScopes<'p>,
    notes: &mut Diagnostics,
) {
    note_impossible(policy, name, command, notes);
    let scopes = InheritedScopes {
        reads: command.reads.as_deref().or(above.reads),
        writes: command.writes.as_deref().or(above.writes),
    };
    note_unreadable_writes(name, command, scopes, notes);
    for (text, inner) in command.subcommands.iter().filter(|(text, _)| text != "*") {
        let id = format!("{name} {text}");
        note_missing_reason(&inner.source, &id, inner.decision, &inner.because, notes);
        let argv: Vec<String> = id.split(' ').map(String::from).collect();
        let line = CommandLine::parse(&argv, None, false);
        let opens = inner.decision.is_some_and(|verdict| verdict != Verdict::Deny);
        if let Some(never) = denying_rule(policy, &line).filter(|_| opens) {
            let message = format!("`{id}` is never reached: the rule `{}` denies it", never.id);
            notes.push(lint_note(&inner.source, message));
        }
        lint_commands(policy, &id, inner, scopes, notes);
    }
}

/// The rule that denies a command whatever options it has.
fn denying_rule<'p>(policy: &'p Policy, line: &CommandLine<'_>) -> Option<&'p HardDenyRule> {
    let mut rules = policy.hard_denies.iter().chain(&policy.base_denials);
    let does = line.effects();
    rules.find(|never| {
        never.argv.iter().any(|pattern| pattern.flags.is_empty() && pattern.matches(line))
            || never.into.is_empty() && does.intersects(never.effects)
    })
}
