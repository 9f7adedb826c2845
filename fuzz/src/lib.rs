//! Feeds bytes that no program wrote to everything that reads some. Beside the fuzz targets: a place to bind
//! policies to, and calls to have decided.

use capsule_base::diagnostic::{Diagnostics, Position, Severity};
use capsule_base::limits;
use capsule_core::action::{Action, Facts};
use capsule_core::decision::{Decision, Verdict};
use capsule_core::policy::{
    BindRoots, Judgement, Policy, PolicyInput, Restrictions, Usage, decide,
};
use capsule_core::tool::ToolName;
use capsule_policy::PolicyDraft;
use capsule_runtime::{CATALOGUE, describe};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::sync::Arc;

pub mod targets;

/// The folder that `~` stands for.
pub const HOME: &str = "/home/ada";

/// Where policies are bound to.
#[must_use]
pub fn roots() -> BindRoots {
    BindRoots {
        workspace: "/home/ada/project".into(),
        runtime_files: vec![
            "/home/ada/.capsule/store.db".into(),
            "/home/ada/project/policy.yaml".into(),
        ],
        may_drop_base_rules: true,
        spelling: capsule_base::spelling::Spelling::Exact,
    }
}

/// Reads a policy that is known to be good.
///
/// # Panics
/// When it is not.
#[must_use]
pub fn policy(text: &str) -> Arc<Policy> {
    let (draft, _) = PolicyDraft::parse(text, "policy.yaml", HOME, CATALOGUE).unwrap();
    Arc::new(draft.bind(&roots(), HOME, CATALOGUE).unwrap())
}

/// A call, understood.
#[derive(Debug)]
pub struct Call {
    /// The tool.
    pub tool: ToolName,
    /// What it means.
    pub action: Action,
    /// What was found about it.
    pub facts: Facts,
    /// Whether no policy can allow it.
    pub hopeless: bool,
}

impl Call {
    fn new(tool: &str, args: &Value, facts: Value, hopeless: bool) -> Self {
        let action = describe(tool, args, 0).unwrap();
        let facts = serde_json::from_value(facts).unwrap();
        Self { tool: ToolName::unchecked(tool), action, facts, hopeless }
    }

    /// What a policy decides on it. Whatever that is, it is whole: an error is a denial, and what
    /// is denied has no bounds to run in.
    ///
    /// # Panics
    /// When it is not.
    #[must_use]
    pub fn judge(&self, policy: &Arc<Policy>) -> Judgement {
        let usage = Usage::default();
        let case = PolicyInput {
            tool: &self.tool,
            action: &self.action,
            facts: &self.facts,
            usage: &usage,
            tainted: &[],
            args_digest: None,
        };
        let judgement = decide(policy, &case);
        let Decision { verdict, code, approvable, .. } = judgement.decision;
        match code.slug() {
            "policy.allowed" => assert_eq!(verdict, Verdict::Allow),
            "policy.asked" => assert!(matches!(verdict, Verdict::Ask | Verdict::AskEach)),
            slug => assert_eq!(verdict, Verdict::Deny, "{slug}"),
        }
        assert!(!approvable || verdict != Verdict::Allow);
        assert_eq!(
            verdict == Verdict::Deny,
            matches!(judgement.restrictions, Restrictions::Nothing)
        );
        assert!(!self.hopeless || verdict == Verdict::Deny, "allowed: {self:?}");
        judgement
    }
}

/// Whether a record of an action or of facts reads back as the same, and is written as the same
/// bytes: a fingerprint is taken of them, and a replay is served from them.
///
/// # Panics
/// When it is not.
pub fn assert_kept<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let written = capsule_base::json::canonical(value);
    let read: T = serde_json::from_slice(&written).expect("what was recorded is read back");
    assert_eq!(read, *value);
    assert_eq!(capsule_base::json::canonical(&read), written);
}

/// Whether every problem stands in the text.
///
/// # Panics
/// When one does not.
pub fn assert_named(text: &str, problems: &Diagnostics) {
    assert!(problems.len() <= limits::DIAGNOSTICS);
    for problem in problems {
        let span = &problem.span;
        assert!(text.get(span.clone()).is_some(), "{problem:?}");
        assert!(Position::of(text, span.start) <= Position::of(text, span.end));
    }
}

/// Whether what was refused has an error that stands in the text.
///
/// # Panics
/// When it has none.
pub fn assert_refused(text: &str, problems: &Diagnostics) {
    assert!(problems.iter().any(|problem| problem.severity == Severity::Error));
    assert_named(text, problems);
}

/// Calls of every tool; some can be allowed, some are errors, and some are against invariants.
#[must_use]
pub fn calls() -> Vec<Call> {
    let fact = |path: &str, real: Value| json!({ "paths": [{ "path": path, "real": real, "kind": "file" }] });
    let none = || json!({});
    let run = |words: &[&str]| json!({ "argv": words });
    let write = |path: &str| json!({ "path": path, "content": "x" });
    let maybe = [
        ("fs.read", json!({ "path": "docs/a.md" }), none()),
        ("fs.read", json!({ "path": "README.md", "limit": 9000 }), none()),
        ("fs.list", json!({ "path": "." }), none()),
        ("fs.search", json!({ "path": "docs", "name": "*.md" }), none()),
        ("fs.write", write("docs/a.md"), none()),
        ("fs.write", write("docs/b/link"), fact("docs/b/link", json!({ "inside": "docs/a.md" }))),
        ("http.get", json!({ "url": "https://example.org/a?b" }), none()),
        ("http.get", json!({ "url": "http://127.0.0.1:8080/" }), none()),
        ("http.get", json!({ "url": "https://example.org/" }), json!({ "resolves": ["10.0.0.1"] })),
        ("shell.run", run(&["git", "log", "--oneline", "-3"]), none()),
        ("shell.run", run(&["git", "-C", "docs", "push"]), none()),
        ("shell.run", run(&["cat", "README.md"]), none()),
        ("shell.run", run(&["tool", "--flag=v", "-x", "README.md"]), none()),
    ];
    let hopeless = [
        ("fs.read", json!({ "path": "../x" }), none()),
        ("fs.read", json!({ "path": "docs/.env" }), none()),
        ("fs.read", json!({ "path": "policy.yaml" }), none()),
        (
            "fs.read",
            json!({ "path": "docs/link" }),
            fact("docs/link", json!({ "inside": ".ssh/id_rsa" })),
        ),
        (
            "fs.read",
            json!({ "path": "docs/link" }),
            fact("docs/link", json!({ "outside": "escapes" })),
        ),
        ("fs.write", write(".git/hooks/pre-commit"), none()),
        ("fs.write", write("/etc/passwd"), none()),
        ("http.get", json!({ "url": "file:///etc/passwd" }), none()),
        ("http.get", json!({ "url": "https://ada:pw@example.org/" }), none()),
        ("http.get", json!({ "url": "https://example.org/", "headers": { "Host": "x" } }), none()),
        ("shell.run", run(&[]), none()),
        ("shell.run", run(&["sh", "-c", "id"]), none()),
        ("shell.run", run(&["env", "-i", "bash"]), none()),
        ("shell.run", run(&["cat", "../x"]), none()),
        ("shell.run", json!({ "argv": ["cat", "a"], "cwd": "/etc" }), none()),
        ("shell.run", run(&["cat", "README.md"]), json!({ "walls": { "Err": "none" } })),
    ];
    let maybe = maybe.into_iter().map(|call| (call, false));
    let hopeless = hopeless.into_iter().map(|call| (call, true));
    let calls = maybe.chain(hopeless).chain(changes());
    calls.map(|((tool, args, facts), hopeless)| Call::new(tool, &args, facts, hopeless)).collect()
}

/// Edits and deletions: each with what was found, and whether no policy can allow it.
fn changes() -> Vec<((&'static str, Value, Value), bool)> {
    let fact = |path: &str| {
        let real = json!({ "inside": path });
        json!({ "paths": [{ "path": path, "real": real, "kind": "file" }] })
    };
    let edit = |path: &str| json!({ "path": path, "search": "x", "replace": "y" });
    let delete = |path: &str| json!({ "path": path, "recursive": true });
    let none = || json!({});
    vec![
        (("fs.edit", edit("docs/a.md"), none()), false),
        (("fs.delete", delete("docs/a.md"), none()), false),
        (("fs.delete", delete("docs"), fact("docs/a.md")), false),
        (("fs.edit", edit("docs/.env"), none()), true),
        (("fs.edit", edit("../x"), none()), true),
        (("fs.delete", delete("."), none()), true),
        (("fs.delete", delete("docs"), fact("docs/.env")), true),
    ]
}
