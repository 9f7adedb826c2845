//! The golden table of decisions (house rule 19): what every shipped policy says about one call a row.
//! A change of a policy, of what is known of programs, or of the rules of deciding is reviewed as its
//! diff. `INSTA_UPDATE=always cargo test -p capsule-cli --test golden` writes it anew.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panics"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use capsule_base::escape;
use capsule_base::root_names::RootNames;
use capsule_core::action::Facts;
use capsule_core::confinement::{
    EnforcementLevel, LayerStatus, SandboxFailure, SandboxLayer, SandboxStatus, SandboxTier,
};
use capsule_core::decision::{Decision, Verdict};
use capsule_core::policy::{BindRoots, Policy, PolicyInput, Usage};
use capsule_core::tool::ToolName;
use capsule_policy::{PolicyDraft, builtin_text};
use capsule_runtime::{CATALOGUE, describe};
use serde_json::{Value, json};

const POLICIES: [&str; 4] = ["developer", "assistant", "readonly", "base"];

/// A call, and where it comes from.
struct Row {
    from: String,
    tool: String,
    args: Value,
}

/// Calls of tools that are no commands: paths, addresses, repositories, and the edges of each.
const TOOLS: &[(&str, &str)] = &[
    ("fs.read", r#"{"path": "src/main.rs"}"#),
    ("fs.read", r#"{"path": "."}"#),
    ("fs.read", r#"{"path": ".gitignore"}"#),
    ("fs.read", r#"{"path": ".env"}"#),
    ("fs.read", r#"{"path": ".ENV"}"#),
    ("fs.read", r#"{"path": ".env.example"}"#),
    ("fs.read", r#"{"path": "deploy/id_rsa"}"#),
    ("fs.read", r#"{"path": "tls/server.pem"}"#),
    ("fs.read", r#"{"path": ".git/config"}"#),
    ("fs.read", r#"{"path": ".capsule/policy.yaml"}"#),
    ("fs.read", r#"{"path": "../other"}"#),
    ("fs.read", r#"{"path": "/etc/passwd"}"#),
    ("fs.read", r#"{"path": "a/../b"}"#),
    ("fs.read", r#"{"path": ""}"#),
    ("fs.read", r#"{"path": "a", "limit": 999999999}"#),
    ("fs.read", r#"{"path": "a", "lines": 3}"#),
    ("fs.list", r#"{"path": "src"}"#),
    ("fs.list", r#"{"path": ".github"}"#),
    ("fs.list", r#"{"path": ".ssh"}"#),
    ("fs.list", r#"{"path": "/"}"#),
    ("fs.search", r#"{}"#),
    ("fs.search", r#"{"name": "*.rs", "path": "src"}"#),
    ("fs.search", r#"{"path": ".aws"}"#),
    ("fs.grep", r#"{"pattern": "FIXED"}"#),
    ("fs.grep", r#"{"pattern": "FIXED", "path": "src", "glob": "*.rs"}"#),
    ("fs.grep", r#"{"pattern": "key", "path": ".env"}"#),
    ("fs.grep", r#"{"pattern": "key", "path": "/etc"}"#),
    ("fs.grep", r#"{"pattern": "("}"#),
    ("fs.write", r#"{"path": "notes.md", "content": "x"}"#),
    ("fs.write", r#"{"path": ".editorconfig", "content": "x"}"#),
    ("fs.write", r#"{"path": ".git/hooks/pre-commit", "content": "x"}"#),
    ("fs.write", r#"{"path": ".git", "content": "x"}"#),
    ("fs.write", r#"{"path": ".capsule/policy.yaml", "content": "x"}"#),
    ("fs.write", r#"{"path": ".github/workflows/ci.yml", "content": "x"}"#),
    ("fs.write", r#"{"path": ".bashrc", "content": "x"}"#),
    ("fs.write", r#"{"path": "~/x", "content": "x"}"#),
    ("fs.write", r#"{"path": "a", "content": "x", "mode": "delete"}"#),
    ("fs.edit", r#"{"path": "src/main.rs", "search": "a", "replace": "b"}"#),
    ("fs.edit", r#"{"path": ".env", "search": "a", "replace": "b"}"#),
    ("fs.edit", r#"{"path": "a", "search": "", "replace": "b"}"#),
    ("fs.delete", r#"{"path": "old.rs"}"#),
    ("fs.delete", r#"{"path": "src", "recursive": true}"#),
    ("fs.delete", r#"{"path": "."}"#),
    ("fs.delete", r#"{"path": ".git"}"#),
    ("fs.delete", r#"{"path": ".envrc"}"#),
    ("http.get", r#"{"url": "https://example.org/"}"#),
    ("http.get", r#"{"url": "http://127.0.0.1/"}"#),
    ("http.get", r#"{"url": "file:///etc/passwd"}"#),
    ("http.get", r#"{"url": "https://example.org/", "headers": {"Authorization": "x"}}"#),
    ("git.status", r#"{}"#),
    ("git.diff", r#"{"paths": ["src"]}"#),
    ("git.diff", r#"{"paths": [".env"]}"#),
    ("git.diff", r#"{"paths": ["../x"]}"#),
    ("git.log", r#"{"limit": 5}"#),
    ("user.ask", r#"{"question": "which week is meant?"}"#),
    ("test.run", r#"{}"#),
    ("fs.raed", r#"{"path": "a"}"#),
];

fn root() -> PathBuf {
    std::env::var_os("CAPSULE_TEST_ROOT")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), PathBuf::from)
}

fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        all.filter(|own| own.extension().is_some_and(|own| own == ending)).collect();
    files.sort();
    files
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

/// Whether a line is taken into the table. It hangs on the line alone, so that others may come and go
/// (FNV-1a, for which any hash would do).
fn is_drawn(text: &str) -> bool {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step) % ONE_OF == 0
}

/// One line of so many is taken, and the first of every label in every file.
const ONE_OF: u64 = 10;

/// Every command of a corpus, with its label.
fn lines(kind: &str) -> impl Iterator<Item = (String, Row)> {
    let mut lines = Vec::new();
    for file in files(&format!("crates/core/tests/decisions/{kind}"), "txt") {
        for line in fs::read_to_string(&file).unwrap().lines() {
            let Some((label, text)) = line.split_once('\t').filter(|_| !line.starts_with('#'))
            else {
                continue;
            };
            let command: String = match label.ends_with('*') {
                true => serde_json::from_str(text).unwrap(),
                false => text.to_owned(),
            };
            let from = format!("{kind}/{}", stem(&file));
            let args = json!({ "command": command });
            let row = Row { from, tool: "shell.run".into(), args };
            lines.push((label.trim_end_matches('*').to_owned(), row));
        }
    }
    lines.into_iter()
}

/// Commands that people and models type, from every family and every class.
fn commands(kind: &str) -> Vec<Row> {
    let mut labels = BTreeSet::new();
    let drawn = |(label, row): &(String, Row)| {
        let is_first = labels.insert((row.from.clone(), label.clone()));
        is_first || is_drawn(row.args["command"].as_str().unwrap())
    };
    lines(kind).filter(drawn).map(|(_, row)| row).collect()
}

/// The first call of every attack that asks for one, and some of the others.
fn attacks() -> Vec<Row> {
    let mut rows = Vec::new();
    for file in files("attacks", "toml") {
        let text: Value = toml::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        for row in text["row"].as_array().into_iter().flatten() {
            let calls = row["calls"].as_array().into_iter().flatten().enumerate();
            for (index, call) in calls {
                let args = call["args"].clone();
                if index == 0 || is_drawn(&args.to_string()) {
                    let from = format!("attacks/{}", stem(&file));
                    rows.push(Row { from, tool: call["tool"].as_str().unwrap().into(), args });
                }
            }
        }
    }
    rows
}

fn rows() -> Vec<Row> {
    let own = TOOLS.iter().map(|(tool, args)| Row {
        from: "tools".into(),
        tool: (*tool).into(),
        args: serde_json::from_str(args).unwrap(),
    });
    let mut rows: Vec<Row> = own.collect();
    rows.extend(commands("ordinary"));
    rows.extend(commands("dangerous"));
    rows.extend(attacks());
    let mut seen = BTreeSet::new();
    rows.retain(|row| seen.insert((row.tool.clone(), row.args.to_string())));
    rows
}

fn policy(name: &str) -> Arc<Policy> {
    bound(builtin_text(name).unwrap(), &format!("builtin:{name}"), true)
}

/// A policy of this text, bound to the same place on every machine.
fn bound(text: &str, place: &str, may_drop_base_rules: bool) -> Arc<Policy> {
    let (draft, _) = PolicyDraft::parse(text, place, "/home/ada", CATALOGUE).unwrap();
    let workspace = "/home/ada/work".into();
    let roots = BindRoots { workspace, may_drop_base_rules, ..BindRoots::default() };
    Arc::new(draft.bind(&roots, "/home/ada", CATALOGUE).unwrap())
}

/// What a policy says on the text of a call alone, so that the table is the same on every machine.
fn decide(policy: &Arc<Policy>, row: &Row) -> Decision {
    // As where the sandbox is complete.
    let root_names = RootNames::default().with_shared_tmp();
    decide_on(policy, row, &Facts { root_names, ..Facts::default() })
}

/// What it says where this was found.
fn decide_on(policy: &Arc<Policy>, row: &Row, facts: &Facts) -> Decision {
    let id = CATALOGUE.find(&row.tool).map_or(row.tool.as_str(), |own| own.id);
    let tool = ToolName::unchecked(id);
    match describe(id, &row.args, 0) {
        Ok(action) => {
            let (action, usage) = (action.resolve_confinement(facts), Usage::default());
            let (tool, action, usage) = (&tool, &action, &usage);
            let case = PolicyInput { tool, action, facts, usage, tainted: &[], args_digest: None };
            capsule_core::policy::decide(policy, &case).decision
        }
        Err(problem) => Decision::reject_invalid(problem),
    }
}

/// A word, the code where it says more than the word, and the rule.
fn cell(decision: &Decision) -> String {
    let code = match decision.code.slug() {
        "policy.allowed" | "policy.asked" | "policy.denied" => "",
        code => code,
    };
    let rule = decision.rule.as_deref().unwrap_or("");
    let rule = rule.strip_prefix("shell.run/").unwrap_or(rule);
    [decision.verdict.keyword(), code, rule]
        .into_iter()
        .filter(|own| !own.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

fn call(row: &Row) -> String {
    match row.args["command"].as_str() {
        Some(command) if escape::line(command) == command && !command.ends_with(' ') => {
            format!("$ {command}")
        }
        _ => {
            let args: String = row
                .args
                .to_string()
                .chars()
                .flat_map(|c| match c.is_ascii() {
                    true => vec![c],
                    false => c.escape_unicode().collect(),
                })
                .collect();
            // What is long is long for its own sake.
            let short: String = args.chars().take(200).collect();
            format!("{} {short}{}", row.tool, if short.len() < args.len() { "…" } else { "" })
        }
    }
}

/// The table: reviewed as a diff.
#[test]
fn decisions_are_as_reviewed() {
    let policies = POLICIES.map(policy);
    let mut table = String::from(
        "One row a call; a column a policy: the word, the code where it says more than the word, the rule\n\
         (without `shell.run/`). Decided by the text of the call alone, in /home/ada/work.\n",
    );
    let line = |cells: &[String], call: &str| {
        let cells: Vec<String> = cells.iter().map(|own| format!("{own:<WIDTH$}")).collect();
        format!("{} | {call}\n", cells.join(" | "))
    };
    let head: Vec<String> = POLICIES.iter().map(|own| (*own).to_owned()).collect();
    table.push_str(&line(&head, "call"));
    let rows = rows();
    let mut from = "";
    for row in &rows {
        if from != row.from {
            from = &row.from;
            table.push_str(&format!("\n## {from}\n"));
        }
        let cells: Vec<String> = policies.iter().map(|own| cell(&decide(own, row))).collect();
        table.push_str(&line(&cells, &call(row)));
    }
    insta::assert_snapshot!("decisions", table);
}

/// A policy that closes hidden files, links and a folder to every tool of files.
const NARROW: &str = r#"version: 1
tools:
  fs.read: { decision: allow, paths: { allow: ["**"], deny: ["docs/**", "src/**"], hidden: deny } }
  fs.list: { decision: allow, paths: { allow: ["a/**"], hidden: deny } }
  fs.write: { decision: allow, paths: { allow: ["**"], deny: ["notes.md", "src/**"], hidden: deny } }
  fs.edit: { decision: allow, paths: { allow: ["a/**"], hidden: deny } }
  http.get: { decision: allow, urls: ["https://example.com/**"] }
  shell.run: { form: command, denied_tokens: [x], executables: { git: { subcommands: { log: { flags: { deny: [--all] } } } } } }
"#;

/// The suggestion of a denial goes to the model: it never advises to open more, whatever the policy.
#[test]
fn no_denial_suggests_to_open_more() {
    const OPENING: [&str; 16] = [
        "widen",
        "raise",
        "let the policy",
        "`path:`",
        "paths.deny",
        "paths.allow",
        "take it out",
        "change the rule",
        "add the",
        "add a",
        "--profile",
        "decision `allow`",
        "set `hidden",
        ": allow`",
        "in the policy",
        "`lift",
    ];
    let mut policies: Vec<Arc<Policy>> = POLICIES.map(policy).into();
    policies.push(bound(NARROW, "narrow.yaml", false));
    let rows = rows();
    let mut seen = BTreeSet::new();
    for (policy, row) in policies.iter().flat_map(|own| rows.iter().map(move |row| (own, row))) {
        let decision = decide(policy, row);
        let denied = decision.verdict == Verdict::Deny;
        let Some(suggestion) = decision.suggestion.filter(|_| denied) else { continue };
        let advice = OPENING.iter().find(|words| suggestion.contains(*words));
        assert_eq!(advice, None, "{}: {suggestion}", call(row));
        seen.insert((decision.code.slug(), suggestion));
    }
    let codes: BTreeSet<&str> = seen.iter().map(|(code, _)| *code).collect();
    for code in ["path.hidden", "path.not-allowed", "exec.not-allowed", "policy.never"] {
        assert!(codes.contains(code), "no denial by {code} suggests something: {codes:?}");
    }
}

/// A policy that names subcommands of programs that are not known, and one of a program that is.
const NAMED: &str = r#"version: 1
tools:
  shell.run:
    form: command
    effects: { reads: allow, unknown: ask, publishes: ask, destroys: ask }
    executables:
      mytool: { subcommands: { deploy: ask, "db:drop": ask, status: allow, push: deny } }
      other: { subcommands: { "*": allow } }
      whole: allow
      npm: { subcommands: { publish: allow } }
"#;

/// A rule that names a subcommand says more than its verb does, and less than what is known of a program.
#[test]
fn a_named_subcommand_says_more_than_its_verb() {
    let [of_project, of_home] = [false, true].map(|may| bound(NAMED, "named.yaml", may));
    let (publishing, loss) =
        ("deny policy.never no-publishing", "deny policy.never no-irreversible-loss");
    let mut wrong = Vec::new();
    for (of_user, command, expected) in [
        (true, "mytool deploy --prod", "ask mytool.deploy"),
        (true, "nice mytool deploy", "ask mytool.deploy"),
        (true, "mytool db:drop", "ask mytool.db:drop"),
        (true, "mytool status", "allow mytool.status"),
        (true, "mytool push", "deny mytool.push"),
        (true, "mytool upload", publishing),
        (true, "mytool destroy", loss),
        (true, "mytool status deploy", publishing),
        (true, "mytool --region eu deploy", publishing),
        (true, "./mytool deploy", publishing),
        (true, "other deploy", publishing),
        (true, "whole deploy", publishing),
        (true, "frobnicate deploy", publishing),
        (true, "npm publish", publishing),
        (false, "mytool deploy --prod", publishing),
        (false, "mytool status", "allow mytool.status"),
    ] {
        let args = json!({ "command": command });
        let row = Row { from: String::new(), tool: "shell.run".into(), args };
        let found = cell(&decide(if of_user { &of_home } else { &of_project }, &row));
        if found != expected {
            wrong.push(format!("{command}: {found}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A policy that lets some programs run where there is no sandbox.
const BARE: &str = r#"version: 1
sandbox: { require: false }
risk: { block_at: BLOCK }
profile: PROFILE
profiles: { lax: { decide: { "*": allow } }, open: { decide: { "*": allow, proc.unconfined: allow } } }
tools:
  git.status: allow
  test.run: { decision: allow, command: [make, test] }
  shell.run:
    form: command
    effects: { reads: allow }
    executables:
      make: { decision: allow, capabilities: [proc.exec, proc.unconfined] }
      env: { decision: allow, capabilities: [proc.unconfined] }
      ls: allow
      git:
        capabilities: [proc.unconfined]
        subcommands:
          log: allow
          status: { decision: allow, capabilities: [proc.unconfined] }
          "*": deny
"#;

/// Calls on machines that differ in what they can hold.
const ANYWHERE: &[(&str, &str)] = &[
    ("shell.run", r#"{"argv": ["make"]}"#),
    ("shell.run", r#"{"argv": ["make", "/etc/passwd"]}"#),
    ("shell.run", r#"{"argv": ["make", "-f", ".env"]}"#),
    ("shell.run", r#"{"argv": ["ls"]}"#),
    ("shell.run", r#"{"argv": ["cat", "a"]}"#),
    ("shell.run", r#"{"argv": ["git", "status"]}"#),
    ("shell.run", r#"{"argv": ["git", "log"]}"#),
    ("shell.run", r#"{"argv": ["git", "push"]}"#),
    ("shell.run", r#"{"argv": ["env", "git", "status"]}"#),
    ("shell.run", r#"{"argv": ["env", "ls"]}"#),
    ("shell.run", r#"{"argv": ["env", "sh", "-c", "make"]}"#),
    ("shell.run", r#"{"argv": ["sh", "-c", "make"]}"#),
    ("shell.run", r#"{"command": "make"}"#),
    ("shell.run", r#"{"command": "make && git status"}"#),
    ("git.status", "{}"),
    ("test.run", "{}"),
];

/// A machine that holds these layers, and no others.
fn machine(tier: SandboxTier, held: &[SandboxLayer]) -> Facts {
    let hold = |layer: &SandboxLayer| {
        if held.contains(layer) { EnforcementLevel::Held } else { EnforcementLevel::Missing }
    };
    let layer = |layer: &SandboxLayer| LayerStatus {
        layer: *layer,
        level: hold(layer),
        detail: String::new(),
    };
    let walls = SandboxStatus {
        tier,
        layers: SandboxLayer::ALL.iter().map(layer).collect(),
        limits: Vec::new(),
    };
    Facts { sandbox: Some(Ok(walls)), ..Facts::default() }
}

/// What is decided about programs where a machine can hold less, or nothing: reviewed as a diff.
#[test]
fn decisions_without_walls_are_as_reviewed() {
    let bare = |profile: &str, block: &str| {
        let text = BARE.replace("PROFILE", profile).replace("BLOCK", block);
        bound(&text, "policy.yaml", true)
    };
    let columns = [
        ("supervised", bare("supervised", "none")),
        ("supervised, high risk refused", bare("supervised", "high")),
        ("autonomous", bare("autonomous", "none")),
        ("readonly", bare("readonly", "none")),
        ("lax: `*` is allowed", bare("lax", "none")),
        ("open: so is `proc.unconfined`", bare("open", "none")),
        ("builtin:developer", policy("developer")),
    ];
    let silent = Facts {
        sandbox: Some(Err(SandboxFailure::Failed("it did not answer".into()))),
        ..Facts::default()
    };
    let machines = [
        ("no sandbox of any kind", machine(SandboxTier::Basic, &[])),
        ("Landlock alone", machine(SandboxTier::Basic, SandboxTier::Basic.layers())),
        ("a sandbox", machine(SandboxTier::Full, &SandboxLayer::ALL)),
        ("an executor that does not answer", silent),
    ];
    let mut table = String::from("One row a call; a column a policy, as in the other table.\n");
    let line = |cells: Vec<String>, call: &str| {
        let cells: Vec<String> = cells.iter().map(|own| format!("{own:<WIDTH$}")).collect();
        format!("{} | {call}\n", cells.join(" | "))
    };
    table.push_str(&line(columns.iter().map(|(name, _)| (*name).to_owned()).collect(), "call"));
    for (name, facts) in &machines {
        table.push_str(&format!("\n## {name}\n"));
        for (tool, args) in ANYWHERE {
            let args: Value = serde_json::from_str(args).unwrap();
            let row = Row { from: String::new(), tool: (*tool).into(), args };
            let cells = columns.iter().map(|(_, own)| cell(&decide_on(own, &row, facts)));
            table.push_str(&line(cells.collect(), &call(&row)));
        }
    }
    insta::assert_snapshot!("without_walls", table);
}

/// How wide a column is.
const WIDTH: usize = 44;

/// What the table must hold whatever is in it: it can be read, it has every family and class, every
/// tool, and every word.
#[test]
fn the_table_covers_what_there_is() {
    let rows = rows();
    assert!((400..=900).contains(&rows.len()), "{} rows", rows.len());
    let from: BTreeSet<&str> = rows.iter().map(|row| row.from.as_str()).collect();
    for kind in ["ordinary", "dangerous"] {
        for file in files(&format!("crates/core/tests/decisions/{kind}"), "txt") {
            let name = format!("{kind}/{}", stem(&file));
            assert!(from.contains(name.as_str()), "{name}");
        }
    }
    for file in files("attacks", "toml") {
        let has_calls = fs::read_to_string(&file).unwrap().contains("\ncalls = ");
        let name = format!("attacks/{}", stem(&file));
        assert_eq!(from.contains(name.as_str()), has_calls, "{name}");
    }
    let tools: BTreeSet<&str> = rows.iter().map(|row| row.tool.as_str()).collect();
    for signature in CATALOGUE.0 {
        assert!(tools.contains(signature.id), "{}", signature.id);
    }
    let policies = POLICIES.map(policy);
    let decided = |own: &Arc<Policy>| {
        rows.iter().map(|row| decide(own, row).verdict).collect::<BTreeSet<Verdict>>()
    };
    let words = policies.iter().map(decided).reduce(|all, own| &all | &own).unwrap();
    assert!([Verdict::Allow, Verdict::Ask, Verdict::Deny].iter().all(|own| words.contains(own)));
    // The base policy by itself allows nothing.
    assert_eq!(decided(&policies[3]), BTreeSet::from([Verdict::Deny]));
}

/// SAF-2, FR-19: what the frozen labels want to be blocked is allowed by none of the policies, on every
/// line of the corpora and not only on those of the table.
#[test]
fn what_must_be_blocked_is_allowed_by_no_policy() {
    let mut wrong = Vec::new();
    let policies = POLICIES.map(policy);
    for (label, row) in lines("dangerous").filter(|(label, _)| label == "deny") {
        for (name, own) in POLICIES.iter().zip(&policies) {
            let decision = decide(own, &row);
            if decision.verdict == Verdict::Allow {
                wrong.push(format!("{name} allows what is labelled {label}: {}", call(&row)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
