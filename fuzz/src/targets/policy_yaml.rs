//! Any text is a policy or is not: reading one never panics, and what is wrong is named within the
//! text. A policy that was read decides every call: an error is a denial, what is against an
//! invariant is denied, and one more denial never loosens a decision. The same text as a layer over
//! another policy never loosens that one.

use std::sync::{Arc, LazyLock};

use crate::{Call, HOME, assert_named, assert_refused, calls, policy, roots};
use capsule_authoring::{assertion_diagnostics, lint};
use capsule_core::decision::Verdict;
use capsule_core::policy::{
    CommandRule, Constraint, DeniedToken, HardDenyRule, LayerKind, Policy, PolicyRules,
    SourceLocation, TokenMatcher,
};
use capsule_policy::PolicyDraft;
use capsule_runtime::{CATALOGUE, TOOL_SET};

static CALLS: LazyLock<Vec<Call>> = LazyLock::new(calls);

pub(super) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    as_layer(text);
    let draft = match PolicyDraft::parse(text, "policy.yaml", HOME, CATALOGUE) {
        Ok((draft, warnings)) => {
            assert_named(text, &warnings);
            draft
        }
        Err(problems) => return assert_refused(text, &problems),
    };
    let policy = match draft.clone().bind(&roots(), HOME, CATALOGUE) {
        Ok(policy) => policy,
        Err(problems) => return assert_refused(text, &problems),
    };
    let policy = Arc::new(policy);
    assert_named(text, &lint(&policy, &TOOL_SET));
    assert_named(text, &assertion_diagnostics(&policy, &TOOL_SET));
    let words = judge(&policy);
    for (what, deny) in DENIALS {
        let mut stricter = draft.clone();
        deny(stricter.rules_mut());
        let stricter = stricter.bind(&roots(), HOME, CATALOGUE).unwrap();
        for ((before, after), call) in words.iter().zip(judge(&Arc::new(stricter))).zip(&*CALLS) {
            assert!(after >= *before, "{what} loosened {before} to {after}: {call:?}");
        }
    }
}

/// What a layer is laid over: some of everything.
const BELOW: &str = r#"version: 1
tools:
  fs.read: { decision: allow, paths: { allow: ["**"], deny: ["docs/private/**"] } }
  fs.list: allow
  fs.write: { rules: [{ id: docs, paths: ["docs/**"], decision: allow }] }
  http.get: { domains: [example.org], urls: { allow: ["https://a.example.org/**"] } }
  shell.run:
    form: command
    effects: { reads: allow, writes: ask }
    executables: { git: { subcommands: { log: allow, commit: ask } }, cat: allow, touch: { writes: ["**"] } }
    limits: { timeout: 5s }
"#;

static BELOW_DRAFT: LazyLock<PolicyDraft> =
    LazyLock::new(|| PolicyDraft::parse(BELOW, "policy.yaml", HOME, CATALOGUE).unwrap().0);
static BASE_DENIALS: LazyLock<Vec<HardDenyRule>> =
    LazyLock::new(|| policy("version: 1").base_denials.clone());
static BELOW_WORDS: LazyLock<Vec<Verdict>> = LazyLock::new(|| judge(&policy(BELOW)));

fn as_layer(text: &str) {
    let text = format!("layer: workspace\n{text}");
    let place = (text.as_str(), "layer.yaml");
    let layer = match BELOW_DRAFT.layer(place, LayerKind::Workspace, HOME, CATALOGUE) {
        Ok((layer, warnings)) => {
            assert_named(&text, &warnings);
            layer
        }
        Err(problems) => return assert_refused(&text, &problems),
    };
    let layer = match layer.bind(&roots()) {
        Ok(layer) => layer,
        Err(problems) => return assert_refused(&text, &problems),
    };
    let below = Policy::clone(&policy(BELOW));
    let words = judge(&Arc::new(below.with_layers(vec![layer])));
    for ((before, after), call) in BELOW_WORDS.iter().zip(words).zip(&*CALLS) {
        assert!(after >= *before, "the layer loosened {before} to {after}: {call:?}");
    }
}

fn judge(policy: &Arc<Policy>) -> Vec<Verdict> {
    CALLS.iter().map(|call| call.judge(policy).decision.verdict).collect()
}

type Deny = fn(&mut PolicyRules);

/// Ways to deny more.
const DENIALS: &[(&str, Deny)] = &[
    ("a `never` about a tool", |policy| policy.hard_denies.push(never("fs.read"))),
    ("a `never` about commands", |policy| policy.hard_denies.push(never("shell.run"))),
    ("the base policy once more", |policy| {
        policy.hard_denies.extend(BASE_DENIALS.clone());
    }),
    ("`paths.deny`", |policy| {
        each(policy, |rule| {
            if let Constraint::Files(files) = rule {
                files.deny.extend(files.allow.clone());
            }
        });
    }),
    ("a rule for paths", |policy| {
        each(policy, |rule| {
            if let Constraint::Files(files) = rule {
                for own in &mut files.rules {
                    own.decision = own.decision.max(Some(Verdict::Deny));
                }
            }
        });
    }),
    ("`urls.deny`", |policy| {
        each(policy, |rule| {
            if let Constraint::Fetch(fetch) = rule {
                fetch.deny.extend(fetch.allow.clone());
            }
        });
    }),
    ("`denied_tokens`", |policy| {
        each(policy, |rule| {
            if let Constraint::Exec(exec) = rule {
                let token = TokenMatcher::Exact("README.md".into());
                exec.denied_tokens.push(DeniedToken { source: SourceLocation::default(), token });
            }
        });
    }),
    ("`flags.deny`", |policy| {
        each(policy, |rule| {
            if let Constraint::Exec(exec) = rule {
                for program in &mut exec.programs {
                    program.global_flags.deny.push(("-C".into(), SourceLocation::default()));
                    program.command.flags.deny.push(("--flag".into(), SourceLocation::default()));
                }
            }
        });
    }),
    ("a subcommand", |policy| {
        each(policy, |rule| {
            if let Constraint::Exec(exec) = rule {
                for program in &mut exec.programs {
                    let decision = Some(Verdict::Deny);
                    let denied = CommandRule { decision, ..CommandRule::default() };
                    program.command.subcommands.insert(0, ("log".into(), denied));
                }
            }
        });
    }),
    ("a quota", |policy| policy.tools.values_mut().for_each(|rule| rule.quota.calls = Some(0))),
    ("the word of a tool", |policy| {
        policy.tools.values_mut().for_each(|rule| rule.decision = Some(Verdict::Deny));
    }),
    ("a tool less", |policy| policy.tools.clear()),
];

fn never(tool: &str) -> HardDenyRule {
    let text = format!("version: 1\nnever: [{{ id: more, tool: {tool} }}]\n");
    policy(&text).hard_denies.iter().find(|rule| rule.id == "more").cloned().unwrap()
}

fn each(policy: &mut PolicyRules, change: fn(&mut Constraint)) {
    policy.tools.values_mut().for_each(|rule| change(&mut rule.constraint));
}
