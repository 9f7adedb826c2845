//! What a policy says that its author probably did not mean. The policy works as written.

use capsule_core::code::Code;
use capsule_core::decision::Verdict;
use capsule_core::diagnostic::{Diagnostic, Diagnostics};
use capsule_core::path::WorkspacePath;
use capsule_core::policy::{
    CommandRule, Constraint, FileRule, PathPattern, PathRule, Policy, ProgramRule, Source,
};
use capsule_core::programs::{self, CommandLine};

/// Programs that run whatever they are given.
const INTERPRETERS: &[&str] = &[
    "awk", "bun", "deno", "gawk", "lua", "mawk", "node", "nodejs", "perl", "php", "python",
    "python2", "python3", "ruby", "sed", "tclsh",
];
/// Programs that do what their first word says.
const MANY_IN_ONE: &[&str] = &[
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
pub fn lint(policy: &Policy) -> Diagnostics {
    let mut notes = Vec::new();
    for never in policy.never.iter().filter(|never| !never.source.at.starts_with("builtin:")) {
        if never.because.is_none() {
            let message = format!("the rule `{}` does not say why: add `because`", never.id);
            notes.push(note(&never.source, message));
        }
    }
    for rule in policy.tools.values() {
        match &rule.constraint {
            Constraint::Files(files) => files_rules(policy, files, &mut notes),
            Constraint::Fetch(fetch) => {
                for rule in &fetch.deny {
                    say_why(&rule.source, &rule.id, Some(Verdict::Deny), &rule.because, &mut notes);
                }
            }
            Constraint::Apply => {}
            Constraint::Exec(exec) => {
                for program in &exec.programs {
                    program_rule(policy, program, &mut notes);
                }
            }
        }
    }
    notes.sort_by_key(|note| note.span.start);
    notes
}

fn note(source: &Source, message: impl Into<String>) -> Diagnostic {
    Diagnostic::warning(Code::PolicyLint, source.span.clone(), message)
}

fn say_why(
    source: &Source,
    id: &str,
    verdict: Option<Verdict>,
    because: &Option<String>,
    notes: &mut Diagnostics,
) {
    if verdict == Some(Verdict::Deny) && because.is_none() {
        notes.push(note(source, format!("`{id}` denies and does not say why: add `because`")));
    }
}

/// A pattern seen as a path: `docs/gen/**` lies beneath `docs/**`.
fn as_path(pattern: &PathPattern) -> Option<WorkspacePath> {
    WorkspacePath::parse(&pattern.text).ok()
}

fn within(inner: &PathPattern, outer: &PathPattern) -> bool {
    as_path(inner).is_some_and(|path| outer.covers(&path))
}

fn files_rules(policy: &Policy, files: &FileRule, notes: &mut Diagnostics) {
    let closing = policy
        .never
        .iter()
        .flat_map(|never| never.paths.iter().map(move |pattern| (never, pattern)));
    let closing: Vec<_> = closing.collect();
    let opened = files.allow.iter().chain(files.rules.iter().flat_map(|rule| &rule.paths));
    for pattern in opened {
        if let Some((never, _)) = closing.iter().find(|(_, closed)| within(pattern, closed)) {
            let message =
                format!("`{}` opens nothing: the rule `{}` closes it", pattern.text, never.id);
            notes.push(note(&pattern.source, message));
        }
    }
    for (index, rule) in files.rules.iter().enumerate() {
        say_why(&rule.source, &rule.id, rule.decision, &rule.because, notes);
        let reachable = rule.paths.iter().any(|pattern| {
            files.allow.iter().any(|open| within(pattern, open) || within(open, pattern))
                && !files.deny.iter().any(|closed| within(pattern, closed))
        });
        if !reachable {
            let message = format!("`{}` is never reached: none of its paths is open", rule.id);
            notes.push(note(&rule.source, message));
        }
        for other in files.rules.iter().skip(index + 1) {
            overlap(rule, other, notes);
        }
    }
}

fn overlap(rule: &PathRule, other: &PathRule, notes: &mut Diagnostics) {
    if rule.decision == other.decision {
        return;
    }
    let meets = rule
        .paths
        .iter()
        .any(|own| other.paths.iter().any(|theirs| within(own, theirs) || within(theirs, own)));
    if meets {
        let message = format!(
            "`{}` and `{}` overlap and decide differently; the strictest wins",
            rule.id, other.id
        );
        notes.push(note(&other.source, message));
    }
}

fn program_rule(policy: &Policy, program: &ProgramRule, notes: &mut Diagnostics) {
    let name = program.name.as_str();
    let argv = vec![String::from(name)];
    let mut line = CommandLine::of(&argv, None, false);
    line.names.extend(program.path.as_deref().map(|path| programs::base_name(path).into()));
    let forbidden = policy
        .never
        .iter()
        .chain(&policy.base_denials)
        .find(|never| never.argv.iter().any(|pattern| pattern.matches(&line)));
    if let Some(never) = forbidden {
        let message = format!("`{name}` is never reached: the rule `{}` denies it", never.id);
        notes.push(note(&program.source, message));
        return;
    }
    let denied = program.command.decision == Some(Verdict::Deny);
    let whole = program.command.subcommands.is_empty();
    let has_many = programs::known(name).is_some_and(|known| !known.subcommands.is_empty())
        || MANY_IN_ONE.contains(&name);
    if whole && !denied && has_many {
        let message = format!("`{name}` is many programs in one; name its `subcommands`");
        notes.push(note(&program.source, message));
    }
    if whole && !denied && INTERPRETERS.contains(&name) {
        let message = format!("`{name}` runs any code that it is given; only the sandbox holds it");
        notes.push(note(&program.source, message));
    }
    commands(name, &program.command, notes);
}

fn commands(name: &str, command: &CommandRule, notes: &mut Diagnostics) {
    for (own, inner) in command.subcommands.iter().filter(|(own, _)| own != "*") {
        let id = format!("{name} {own}");
        say_why(&inner.source, &id, inner.decision, &inner.because, notes);
        commands(&id, inner, notes);
    }
}
