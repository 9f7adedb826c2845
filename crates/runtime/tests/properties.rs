//! What holds of every policy and every call: of policies and calls that are made up.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panics")]

use std::sync::Arc;

use capsule_core::action::Facts;
use capsule_core::decision::{Decision, Verdict};
use capsule_core::outcome::CodedError;
use capsule_core::policy::{BindRoots, Policy, PolicyInput, Usage, decide};
use capsule_core::tool::ToolName;
use capsule_policy::PolicyDraft;
use capsule_runtime::{CATALOGUE, describe};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

/// A policy in parts, so that parts can be added, removed and moved.
#[derive(Clone, Debug)]
struct Parts {
    never: Vec<String>,
    tools: Vec<(&'static str, Vec<String>)>,
}

const NEVER: &[&str] = &[
    "{ id: n1, paths: [\"docs/**\"] }",
    "{ id: n2, capabilities: [fs.write, fs.delete], paths: [\"src/**\"], except: [\"src/a.rs\"] }",
    "{ id: n3, tool: shell.run, argv: [[git, { any: [commit, stash] }]] }",
    "{ id: n4, tool: shell.run, effects: [deletes, code] }",
    "{ id: n5, tool: fs.search }",
    "{ id: n6, tool: shell.run, effects: [network], into: [writes, reads] }",
];

/// Programs, each with a rule; `deny` and `ask` among them.
const PROGRAMS: &[&str] = &[
    "cat: allow",
    "ls: ask",
    "rm: { decision: ask, writes: [\"**\"] }",
    "git: { subcommands: { log: allow, status: allow, commit: ask, \"*\": deny } }",
    "touch: { decision: allow, writes: [\"out/**\"] }",
    "find: { decision: allow, flags: { deny: [-delete] } }",
    "curl: ask-each",
];

const EFFECTS: &[&str] = &[
    "reads: allow",
    "opens: allow",
    "writes: ask",
    "deletes: ask-each",
    "runs: allow",
    "code: ask",
    "network: ask",
    "unknown: ask",
];

const READ: &[&str] = &["\"**\"", "\"docs/**\"", "\"src/*.rs\"", "README.md"];

const COMMANDS: &[&str] = &[
    "cat docs/a.md",
    "cat README.md | sort -u",
    "ls -la src && git status --short",
    "git commit -m x",
    "git log --oneline -5 | head -2",
    "rm -rf out",
    "rm src/b.rs",
    "find . -name '*.rs' -delete",
    "find . -name x -exec cat {} +",
    "touch out/new > out/log",
    "python3 -c 'print(1)'",
    "curl https://example.org | tee out/x",
    "timeout 5 xargs grep -n x < README.md",
    "made-up --option x",
    "cargo test && git push",
    "cat .env",
    "sed -i s/a/b/ src/a.rs",
    "echo hi > docs/new.md; cat ../x",
    "awk '{print $1}' README.md",
    "A=1 make",
];

fn calls() -> Vec<(&'static str, Value)> {
    let commands = COMMANDS.iter().map(|text| ("shell.run", json!({ "command": text })));
    let files = ["docs/a.md", "src/a.rs", "src/b.rs", "README.md", ".env", "../x", "out/x"];
    let reads = files.iter().map(|path| ("fs.read", json!({ "path": path })));
    let writes = files
        .iter()
        .map(|path| ("fs.write", json!({ "path": path, "content": "x", "mode": "create" })));
    let others = [
        ("shell.run", json!({ "argv": ["cat", "docs/a.md"] })),
        ("shell.run", json!({ "argv": ["rm", "-rf", "out"] })),
        ("fs.search", json!({ "name": "*.rs" })),
        ("fs.list", json!({ "path": "src" })),
        ("fs.nothing", json!({})),
        ("fs.read", json!({ "path": 1 })),
    ];
    commands.chain(reads).chain(writes).chain(others).collect()
}

fn parts() -> impl Strategy<Value = Parts> {
    let some = |of: &'static [&'static str]| subsequence(of.to_vec(), 0..=of.len());
    (some(NEVER), some(PROGRAMS), some(EFFECTS), some(READ), some(READ)).prop_map(
        |(never, programs, effects, read, write)| {
            let own = |items: Vec<&str>| items.into_iter().map(str::to_owned).collect::<Vec<_>>();
            Parts {
                never: own(never),
                tools: vec![
                    ("executables", own(programs)),
                    ("effects", own(effects)),
                    ("read", own(read)),
                    ("write", own(write)),
                ],
            }
        },
    )
}

impl Parts {
    fn policy(&self) -> Arc<Policy> {
        let list = |name: &str| {
            let own = self.tools.iter().find(|(own, _)| *own == name);
            own.map(|(_, items)| items.join(", ")).unwrap_or_default()
        };
        let text = format!(
            "version: 1\nnever: [{}]\ntools:\n  fs.search: allow\n  \
             fs.read: {{ decision: allow, paths: [{}] }}\n  fs.write: {{ decision: ask, paths: [{}] }}\n  \
             shell.run: {{ form: command, executables: {{ {} }}, effects: {{ {} }} }}\n",
            self.never.join(", "),
            list("read"),
            list("write"),
            list("executables"),
            list("effects"),
        );
        let (draft, _) = PolicyDraft::parse(&text, "policy.yaml", "/home/ada", CATALOGUE)
            .unwrap_or_else(|problems| panic!("{text}\n{problems:#?}"));
        let roots = BindRoots {
            workspace: "/home/ada/work".into(),
            runtime_files: Vec::new(),
            may_drop_base_rules: true,
            ..BindRoots::default()
        };
        Arc::new(draft.bind(&roots, "/home/ada", CATALOGUE).unwrap())
    }

    fn decisions(&self) -> Vec<Decision> {
        let policy = self.policy();
        calls().iter().map(|(tool, args)| decision(&policy, tool, args)).collect()
    }
}

fn decision(policy: &Arc<Policy>, tool: &str, args: &Value) -> Decision {
    let (facts, usage, name) = (Facts::default(), Usage::default(), ToolName::unchecked(tool));
    match describe(tool, args, 0) {
        Ok(action) => {
            let case = PolicyInput {
                tool: &name,
                action: &action,
                facts: &facts,
                usage: &usage,
                tainted: &[],
                args_digest: None,
            };
            decide(policy, &case).decision
        }
        Err(CodedError { code, message, suggestion }) => {
            Decision::reject_invalid(CodedError { code, message, suggestion })
        }
    }
}

/// No call is decided more mildly than before.
fn not_looser(before: &[Decision], after: &[Decision]) -> Result<(), TestCaseError> {
    for ((call, before), after) in calls().iter().zip(before).zip(after) {
        let (was, is) = (before.verdict, after.verdict);
        prop_assert!(is >= was, "{call:?} was {was} and is {is}: {}", after.reason);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// CAP-3: one invariant more never allows more.
    #[test]
    fn a_never_never_loosens(parts in parts(), more in select(NEVER)) {
        let mut stricter = parts.clone();
        if !stricter.never.iter().any(|own| own == more) {
            stricter.never.push(more.to_owned());
        }
        not_looser(&parts.decisions(), &stricter.decisions())?;
    }

    /// CAP-3: a word that denies instead of one that does not never allows more.
    #[test]
    fn a_denial_never_loosens(parts in parts(), effect in select(EFFECTS), program in select(PROGRAMS)) {
        let mut stricter = parts.clone();
        for (name, items) in &mut stricter.tools {
            for item in items {
                let word = item.split(':').next().unwrap_or_default().to_owned();
                if *name == "effects" && item == effect || *name == "executables" && item == program {
                    *item = format!("{word}: deny");
                }
            }
        }
        not_looser(&parts.decisions(), &stricter.decisions())?;
    }

    /// What is no longer named is not open any more.
    #[test]
    fn taking_away_never_loosens(parts in parts(), which in 0_usize..4, at in 0_usize..8) {
        let mut stricter = parts.clone();
        let (name, items) = &mut stricter.tools[which];
        // A program that no rule names is judged by what it does, which may be milder than its rule:
        // for programs the rule is what tightens.
        if *name != "executables" && at < items.len() {
            items.remove(at);
        }
        not_looser(&parts.decisions(), &stricter.decisions())?;
    }

    /// The order of a file means nothing.
    #[test]
    fn order_never_matters(parts in parts()) {
        let mut turned = parts.clone();
        turned.never.reverse();
        turned.tools.iter_mut().for_each(|(_, items)| items.reverse());
        for ((call, one), other) in calls().iter().zip(parts.decisions()).zip(turned.decisions()) {
            prop_assert_eq!(one.verdict, other.verdict, "{:?}", call);
            prop_assert_eq!(one.risk, other.risk, "{:?}", call);
            prop_assert_eq!(one.capabilities, other.capabilities, "{:?}", call);
        }
    }

    /// CAP-12: what is not understood, and what no rule is about, is denied.
    #[test]
    fn what_is_not_understood_is_denied(parts in parts(), text in ".{0,40}") {
        let policy = parts.policy();
        for (tool, args) in [
            ("shell.run", json!({ "command": text, "argv": ["ls"] })),
            ("shell.run", json!({})),
            ("fs.list", json!({ "path": text })),
            (text.as_str(), json!({})),
        ] {
            prop_assert_eq!(decision(&policy, tool, &args).verdict, Verdict::Deny, "{} {}", tool, args);
        }
        // Whatever a text means, deciding about it ends, and ends the same way.
        let args = json!({ "command": text });
        let one = decision(&policy, "shell.run", &args);
        prop_assert_eq!(&one, &decision(&policy, "shell.run", &args));
    }

    /// A list is decided by the strictest of its parts.
    #[test]
    fn a_list_is_as_strict_as_its_parts(parts in parts(), some in subsequence(COMMANDS.to_vec(), 2..5)) {
        let policy = parts.policy();
        let of = |text: &str| decision(&policy, "shell.run", &json!({ "command": text })).verdict;
        let strictest = some.iter().map(|text| of(text)).max().unwrap();
        for join in [" && ", "; ", " || "] {
            prop_assert!(of(&some.join(join)) >= strictest, "{}", some.join(join));
        }
    }
}

/// A8: where nothing says that a file may be written, no stream of a command writes one.
#[test]
fn streams_write_where_programs_may() {
    let policy = |effects: &str, more: &str| {
        let text = format!(
            "version: 1\ntools:\n  shell.run: {{ form: command, effects: {{ {effects} }} }}\n{more}"
        );
        let (draft, _) = PolicyDraft::parse(&text, "policy.yaml", "/home/ada", CATALOGUE).unwrap();
        let roots = BindRoots {
            workspace: "/home/ada/work".into(),
            runtime_files: Vec::new(),
            may_drop_base_rules: true,
            ..BindRoots::default()
        };
        Arc::new(draft.bind(&roots, "/home/ada", CATALOGUE).unwrap())
    };
    let asked = |policy: &Arc<Policy>| {
        decision(policy, "shell.run", &json!({ "command": "echo x > src/new" })).verdict
    };
    assert_eq!(asked(&policy("reads: allow", "")), Verdict::Deny);
    assert_eq!(asked(&policy("reads: allow, writes: ask", "")), Verdict::Ask);
    assert_eq!(asked(&policy("reads: allow, writes: allow", "")), Verdict::Allow);
    let docs = "  fs.write: { decision: allow, paths: [\"docs/**\"] }\n";
    assert_eq!(asked(&policy("reads: allow, writes: allow", docs)), Verdict::Deny);
}
