//! Lays out what a person is asked: the whole of a call, without what only history tells.

use capsule_base::limits;
use capsule_command::argv::show_argv;
use capsule_command::shell_syntax::{PipelineStage, Redirection, is_single_command};
use capsule_core::action::{
    Action, CommandStep, FileKind, ParsedUrl, PathTarget, WriteMode, sub_actions,
};
use capsule_core::approval::{
    ApprovalRequest, Card, CardField, GrantLifetime, GrantOffer, GrantPattern, Reversibility,
};
use capsule_core::capability::Capability;
use capsule_core::confinement::{NetworkAccess, WorkspaceAccess};
use capsule_core::decision::Verdict;
use capsule_core::policy::{Constraint, Policy};
use capsule_redact::excerpt;
use serde_json::Value;

/// The card of a question, without what only history tells. Where `settles`, staged changes are applied or dropped when the
/// call ends: nothing of them waits, and an undo record is kept.
pub(super) fn build_card(question: &ApprovalRequest<'_>, policy: &Policy, settles: bool) -> Card {
    let ApprovalRequest { call, step, tool, decision, .. } = *question;
    let mut card = Card {
        call,
        step: step.map(Into::into),
        tool: tool.clone(),
        risk: decision.risk,
        capabilities: decision.capabilities,
        headline: headline(question),
        consequences: consequences(question, policy),
        exact: exact_parts(question).into_iter().chain(sent_secrets(question, policy)).collect(),
        place: location(question, policy),
        new_here: Vec::new(),
        read_before: None,
        seen_before: None,
        why: match (&decision.rule, &decision.at) {
            (Some(rule), Some(at)) => format!("{}: {rule} ({at})", decision.reason),
            _ => decision.reason.clone(),
        },
        undo: match reversibility(question, policy) {
            Reversibility::Staged if settles => Reversibility::Recorded,
            undo => undo,
        },
        undo_hint: None,
        pending_changes: None,
        prevented: prevented_effects(question, policy, settles),
        tainted: question.tainted.to_vec(),
        offers: Vec::new(),
        // Of a command that runs, nothing can be changed any more.
        args: if is_connection(question) { Value::Null } else { question.args.clone() },
        diff: question.diff.map(Into::into),
        attention: None,
        steps: 0,
        previously_allowed: None,
        waits_unanswered: false,
    };
    card.offers = offers(question, policy, &card);
    card
}

/// Whether a running command waits for the answer, to reach a host.
fn is_connection(question: &ApprovalRequest<'_>) -> bool {
    matches!(question.action, Action::Fetch { .. }) && question.confinement.is_some()
}

/// What may be offered besides this one call. Where something cannot be shown as it is, nothing.
fn offers(question: &ApprovalRequest<'_>, policy: &Policy, card: &Card) -> Vec<GrantOffer> {
    if card.is_hostile() || question.decision.verdict != Verdict::Ask {
        return Vec::new();
    }
    let grants = &policy.grants;
    let same = GrantPattern::Same { fingerprint: question.fingerprint };
    let like = GrantPattern::similar_to(question).unwrap_or(same);
    let mut needed = question.decision.capabilities.iter();
    let whole = match (needed.next(), needed.next()) {
        (Some(capability), None) => Some(GrantPattern::AnyWithCapability { capability }),
        _ => None,
    };
    let offer = |scope: GrantLifetime, reach: GrantPattern| GrantOffer {
        scope,
        pattern: reach,
        uses: grants.uses,
        after_ms: grants.expires_after_ms,
        would_have_covered: 0,
        of_them_denied: 0,
        covered: Vec::new(),
    };
    let mut offers = Vec::new();
    for scope in grants.offer.iter().copied().filter(|scope| *scope != GrantLifetime::Once) {
        offers.push(offer(scope, like.clone()));
    }
    if let Some(whole) = whole.filter(|_| grants.offer.contains(&GrantLifetime::Session)) {
        offers.push(offer(GrantLifetime::Session, whole));
    }
    offers
}

/// What the call may do, in the policy's own words.
fn consequences(question: &ApprovalRequest<'_>, policy: &Policy) -> Vec<String> {
    let capabilities = question.decision.capabilities.iter();
    capabilities.map(|capability| capability_label(policy, capability).to_owned()).collect()
}

/// The call in one line: a command as it is typed, else the tool and what it is about. Of a text with more lines it is
/// the first one; the parts below it are all of it.
fn headline(question: &ApprovalRequest<'_>) -> String {
    let text = match question.action {
        Action::Run { argv, .. } => show_argv(argv),
        Action::Command { text, .. } => text.trim().to_owned(),
        Action::Fetch { url, .. } if is_connection(question) => {
            let command = running_command(question.args).unwrap_or_default();
            return match command.is_empty() {
                true => format!("contact {}", url.asked),
                false => format!("contact {}, for `{}`", url.asked, one_line(&command)),
            };
        }
        Action::Fetch { url, .. } => format!("{} {}", question.tool, url.asked),
        other => {
            let path = other.path().map_or("", |path| path.asked.as_str());
            format!("{} {path}", question.tool)
        }
    };
    one_line(&text)
}

/// The first line of a text, with a sign that there are more.
fn one_line(text: &str) -> String {
    let line = text.trim_end().lines().next().unwrap_or_default();
    let shown = excerpt(line, limits::CARD_HEADLINE_CHARS);
    let is_cut = shown == line && line.len() < text.trim_end().len();
    if is_cut { format!("{shown} …") } else { shown.into_owned() }
}

/// The command line in the arguments of a call, as it is typed.
fn running_command(args: &Value) -> Option<String> {
    if let Some(text) = args.get("command").and_then(Value::as_str) {
        return Some(text.trim().to_owned());
    }
    let words = args.get("argv")?.as_array()?.iter();
    let words: Vec<String> = words.filter_map(|word| Some(word.as_str()?.to_owned())).collect();
    Some(show_argv(&words))
}

/// The pipelines of a list, each once with the same words: in the first of the directories that it may run in.
fn once(steps: &[CommandStep]) -> impl Iterator<Item = &CommandStep> {
    let is_same = |one: &CommandStep, other: &CommandStep| {
        (one.number, &one.stages) == (other.number, &other.stages)
    };
    let is_first = move |(index, step): &(usize, &CommandStep)| {
        !steps.iter().take(*index).any(|other| is_same(other, step))
    };
    steps.iter().enumerate().filter(is_first).map(|(_, step)| step)
}

/// What the policy calls a power; what it is called where the policy says nothing.
fn capability_label(policy: &Policy, capability: Capability) -> &str {
    policy.risk_policy.label(capability).unwrap_or(match capability {
        Capability::FsMeta => "see file names, sizes and dates",
        Capability::FsRead => "read files",
        Capability::FsWrite => "create or change files",
        Capability::FsDelete => "delete files",
        Capability::NetEgress => "contact another computer",
        Capability::ProcExec => "run a program",
        Capability::ProcUnconfined => "with nothing around it",
        Capability::DataUser => "use data that you attached",
        Capability::SecretsAccess => "use a stored secret",
    })
}

/// The exact call, part by part.
fn exact_parts(question: &ApprovalRequest<'_>) -> Vec<CardField> {
    let word = |text: &String| CardField { name: None, text: text.clone(), note: None };
    match question.action {
        Action::Run { argv, .. } => program_parts(argv.iter().map(word).collect(), question),
        Action::Command { steps, timeout_ms, text, .. } => {
            let mut all = Vec::new();
            // Where there is more than one program with its words, the text says what, unless the headline has all of it.
            if !is_single_command(text) && headline(question) != text.trim() {
                let text = text.clone();
                all.push(CardField { name: Some("command".into()), text, note: None });
            }
            for step in once(steps) {
                for part in sub_actions(step, *timeout_ms, question.facts) {
                    match &part.action {
                        Action::Run { argv, .. } => {
                            all.extend(program_parts(argv.iter().map(word).collect(), question));
                            all.extend(given_texts(part.stage));
                        }
                        Action::Write { path, mode, .. } => {
                            let sign = if *mode == WriteMode::Append { ">>" } else { ">" };
                            all.push(stream_part(sign, path));
                        }
                        other => all.extend(other.path().map(|path| stream_part("<", path))),
                    }
                }
            }
            all
        }
        _ => argument_parts(question.tool.as_str(), question.args),
    }
}

/// What a program is given besides its words: variables, and a text to read.
fn given_texts(stage: &PipelineStage) -> Vec<CardField> {
    let field = |name: &str, text: String| CardField { name: Some(name.into()), text, note: None };
    let variables = stage.variables.iter();
    let variables = variables.map(|(name, value)| field("with", format!("{name}={value}")));
    let inputs = stage.redirects.iter().filter_map(|redirect| match redirect {
        Redirection::Here { text } => Some(field("stdin", text.clone())),
        _ => None,
    });
    variables.chain(inputs).collect()
}

fn stream_part(sign: &str, path: &PathTarget) -> CardField {
    CardField { name: Some(sign.into()), text: path.asked.clone(), note: None }
}

/// A command line, its program with the place where it lies.
fn program_parts(mut words: Vec<CardField>, question: &ApprovalRequest<'_>) -> Vec<CardField> {
    if let Some(first) = words.first_mut() {
        let fact = question.facts.program_named(&first.text).or(question.facts.program.as_ref());
        first.note = Some(fact.map_or_else(|| "not found".into(), |fact| fact.real.clone()));
    }
    words
}

/// The arguments of a call in the order of the tool's signature, by their names; what is no text, as JSON.
fn argument_parts(tool: &str, args: &Value) -> Vec<CardField> {
    let Value::Object(map) = args else { return Vec::new() };
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let known = capsule_tools::signature_of(tool).map_or(&[][..], |signature| signature.arguments);
    let place =
        |name: &str| known.iter().position(|known| known.name == name).unwrap_or(known.len());
    let mut arguments: Vec<(&String, &Value)> = map.iter().collect();
    arguments.sort_by_key(|(name, _)| place(name));
    let item = arguments.into_iter().map(|(name, value)| CardField {
        name: Some(name.clone()),
        text: text(value),
        note: None,
    });
    // Names come before contents, which may be long.
    let (texts, mut all): (Vec<CardField>, Vec<CardField>) = item.partition(CardField::is_text);
    all.extend(texts);
    // As an edit is read: the text that goes, then the one that comes.
    all.sort_by_key(|field| field.name.as_deref() == Some("replace"));
    all
}

/// The secrets that are sent with a fetch.
fn sent_secrets<'q>(
    question: &'q ApprovalRequest<'q>,
    policy: &'q Policy,
) -> impl Iterator<Item = CardField> + 'q {
    let address = match question.action {
        Action::Fetch { url, .. } => match &url.parsed {
            ParsedUrl::Url(address) => Some(address),
            ParsedUrl::Refused(_) => None,
        },
        _ => None,
    };
    let rules = address.into_iter().flat_map(|url| policy.secrets_sent_to(question.tool, url));
    rules.map(|rule| CardField {
        name: Some("secret".into()),
        text: rule.name.clone(),
        note: Some(format!("sent as `{}`", rule.header)),
    })
}

fn location(question: &ApprovalRequest<'_>, policy: &Policy) -> Option<String> {
    let folder = match question.action {
        Action::Run { cwd, .. } => cwd.asked.clone(),
        Action::Command { steps, cwd, .. } => folders(steps, cwd),
        _ if is_connection(question) => {
            return Some(
                "the command runs already, and waits; it can send there whatever it can read"
                    .into(),
            );
        }
        _ => return None,
    };
    let names = match policy.tool(question.tool).map(|rule| &rule.constraint) {
        Some(Constraint::Exec(exec)) => {
            let set = exec.env.set.iter().map(|(name, value)| format!("{name}={value}"));
            exec.env.pass.iter().cloned().chain(set).collect()
        }
        _ => Vec::new(),
    };
    let input = match question.action {
        Action::Run { stdin: Some((_, bytes)), .. }
        | Action::Command { stdin: Some((_, bytes)), .. } => format!("{bytes} bytes of input"),
        Action::Command { steps, .. } if steps.iter().any(reads_text) => "a text as input".into(),
        _ => "no input".into(),
    };
    let names = if names.is_empty() { "no variables".into() } else { names.join(" ") };
    let folder = if folder == "." { "the workspace" } else { &folder };
    Some(format!("in {folder} · {names} · {input}"))
}

/// The directories in which the parts of a command run, each once.
fn folders(steps: &[CommandStep], cwd: &PathTarget) -> String {
    let mut all: Vec<&str> = Vec::new();
    for step in once(steps) {
        if !all.contains(&step.cwd.asked.as_str()) {
            all.push(&step.cwd.asked);
        }
    }
    if all.is_empty() { cwd.asked.clone() } else { all.join(", ") }
}

fn reads_text(step: &CommandStep) -> bool {
    let mut redirects = step.stages.iter().flat_map(|stage| &stage.redirects);
    redirects.any(|redirect| matches!(redirect, Redirection::Here { .. }))
}

fn reversibility(question: &ApprovalRequest<'_>, policy: &Policy) -> Reversibility {
    let needs = question.decision.capabilities;
    let changes = needs.contains(Capability::FsWrite) || needs.contains(Capability::FsDelete);
    let lost = [
        Capability::NetEgress,
        Capability::ProcUnconfined,
        Capability::DataUser,
        Capability::SecretsAccess,
    ];
    match (question.action, command_access(question, policy)) {
        _ if lost.iter().any(|capability| needs.contains(*capability)) => {
            Reversibility::Irreversible
        }
        _ if question.facts.no_undo.is_some() => Reversibility::Irreversible,
        (Action::Write { .. } | Action::Edit { .. } | Action::Delete { .. }, _) => {
            match policy.sandbox_in_force().workspace {
                WorkspaceAccess::Staged => Reversibility::Staged,
                WorkspaceAccess::Direct | WorkspaceAccess::ReadOnly => Reversibility::Recorded,
            }
        }
        (_, Some((workspace, _))) => match workspace {
            WorkspaceAccess::Staged => Reversibility::Staged,
            WorkspaceAccess::Direct => Reversibility::Irreversible,
            WorkspaceAccess::ReadOnly => Reversibility::NoChange,
        },
        _ if changes => Reversibility::Irreversible,
        _ => Reversibility::NoChange,
    }
}

/// What a command reaches of the workspace and of the network. A list is confined part by part, each when it is reached:
/// of it, this is what the part reaches that changes most.
fn command_access(
    question: &ApprovalRequest<'_>,
    policy: &Policy,
) -> Option<(WorkspaceAccess, NetworkAccess)> {
    let needs = question.decision.capabilities;
    match (question.confinement, question.action) {
        (Some(held), _) => Some((held.workspace, held.network)),
        (None, Action::Command { .. }) if !needs.contains(Capability::ProcUnconfined) => {
            let sandbox = policy.sandbox_in_force();
            let changes =
                needs.contains(Capability::FsWrite) || needs.contains(Capability::FsDelete);
            let workspace = if changes { sandbox.workspace } else { WorkspaceAccess::ReadOnly };
            Some((workspace, sandbox.network))
        }
        (None, _) => None,
    }
}

/// The command that brings back what a call changes, and its effect.
pub(super) fn undo_hint(question: &ApprovalRequest<'_>, run_label: &str) -> String {
    let is_new = match question.action {
        Action::Write { path, .. } => path
            .inside()
            .and_then(|path| question.facts.path_fact(path))
            .is_some_and(|fact| fact.kind == FileKind::Missing),
        _ => false,
    };
    let effect = if is_new { "removes it again" } else { "brings back what is there now" };
    format!("`capsule undo {run_label}:{}` {effect}", question.call)
}

/// What will be prevented, of what the command is confined to.
fn prevented_effects(
    question: &ApprovalRequest<'_>,
    policy: &Policy,
    settles: bool,
) -> Vec<String> {
    let Some((workspace, network)) = command_access(question, policy) else { return Vec::new() };
    let mut all = vec![match network {
        NetworkAccess::None => "reach the network".to_string(),
        NetworkAccess::Proxy => "reach a host that neither the policy nor a person allows".into(),
    }];
    all.push("read what the policy never shows".into());
    all.extend(match workspace {
        WorkspaceAccess::ReadOnly => Some("write anywhere but in /tmp".into()),
        WorkspaceAccess::Staged if settles => None,
        WorkspaceAccess::Staged => Some("change the workspace before you apply it".into()),
        WorkspaceAccess::Direct => Some("write outside of the workspace".into()),
    });
    all
}
