//! Every denial says what to do instead.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;

use capsule_base::code::{Code, FailureClass};
use capsule_core::outcome::CodedError;
use capsule_testkit::Capsule;
use serde_json::{Value, json};

const POLICY: &str = r#"version: 1
name: denials
tools:
  fs.read:
    decision: allow
    paths: { allow: ["docs/**"], deny: ["docs/private/**"], symlinks: deny }
    rules: [{ id: frozen, paths: ["docs/frozen/**"], decision: deny }]
  fs.write: { decision: allow, paths: ["docs/**"] }
  http.get:
    decision: allow
    urls: { allow: ["https://api.example.org/**", "http://10.0.0.1/**"], deny: ["https://api.example.org/x/**"] }
  shell.run:
    decision: allow
    executables:
      cat: allow
      env: allow
      rm: allow
      tool: { subcommands: { build: { decision: allow, flags: { deny: [-x] } }, gone: deny } }
      git: { decision: allow, subcommands: { log: allow } }
    denied_tokens: [forbidden]
  test.run: { decision: allow, command: [cat] }
"#;

/// Codes of denials that only a running call or a used-up run meets; their texts come from the code.
const MET_ELSEWHERE: &[Code] = &[
    Code::ApprovalChangedAfter,
    Code::ApprovalDenied,
    Code::ApprovalExpired,
    Code::ApprovalNeeded,
    Code::ApprovalStopped,
    Code::ApprovalWaiting,
    Code::ApprovalWithdrawn,
    Code::Asked,
    Code::BudgetCalls,
    Code::BudgetDeniedInARow,
    Code::BudgetDeniedTotal,
    Code::BudgetFetched,
    Code::BudgetLlmCost,
    Code::BudgetLlmTokens,
    Code::BudgetSameCall,
    Code::BudgetWall,
    Code::BudgetWritten,
    Code::ChangeAsked,
    Code::ChangeProtected,
    Code::ChangeRefused,
    Code::ExecNoNetwork,
    Code::HookDeadline,
    Code::HookInput,
    Code::HookUnjudged,
    Code::NetRedirect,
    Code::NetServerName,
    Code::NetTooManyConnections,
    Code::ProfileDenied,
    Code::QuotaBytes,
    Code::QuotaCalls,
    Code::QuotaPerHost,
    Code::QuotaWall,
    Code::RiskBlocked,
    Code::TaskLimit,
];

/// SAF-6: a refusal without a way forward is a dead end; the code's own next step is the least.
#[test]
fn every_denial_says_what_to_do() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    capsule.write_file("docs/a.md", "a");
    symlink("a.md", capsule.workspace().join("docs/link")).unwrap();
    let policy = capsule.write_policy(POLICY);
    let read = |path: &str| ("fs.read", json!({ "path": path }));
    let run = |line: &str| ("shell.run", json!({ "argv": line.split(' ').collect::<Vec<_>>() }));
    let get = |url: &str| ("http.get", json!({ "url": url }));
    let nul = ("shell.run", json!({ "argv": ["cat", "a\u{0}"] }));
    let header = json!({ "url": "https://api.example.org/a", "headers": { "Host": "x" } });
    let masked = json!({ "path": "docs/a", "content": "x=«password:setting:9»" });
    let rows = [
        (read(".env"), "policy.never"),
        (read("docs/private/a"), "path.not-allowed"),
        (read("src/a"), "path.not-allowed"),
        (read("docs/.a"), "path.hidden"),
        (read("docs/link"), "path.symlink"),
        (read("docs/frozen/a"), "policy.denied"),
        (read("../a"), "path.outside-workspace"),
        (read("a\u{1}"), "path.invalid"),
        (read(&"x".repeat(300)), "path.too-long"),
        (("fs.list", json!({ "path": "." })), "policy.no-rule"),
        (("fs.nothing", json!({})), "tool.unknown"),
        (get("https://api.example.org/x/a"), "policy.denied"),
        (get("https://example.org"), "net.not-allowed"),
        (get("http://10.0.0.1/"), "net.private-address"),
        (get("file:///etc/passwd"), "net.scheme"),
        (get("https://u:p@api.example.org/"), "net.userinfo"),
        (get("https://"), "net.url-invalid"),
        (("fs.write", masked), "redaction.mask-in-content"),
        (("http.get", header), "net.header"),
        (run("curl x"), "policy.base-denied"),
        (run("ls"), "exec.not-allowed"),
        (run("tool gone"), "policy.denied"),
        (run("tool other"), "exec.subcommand-denied"),
        (run("tool build -x"), "exec.flag-denied"),
        (run("tool -x build"), "exec.ambiguous"),
        (run("git log --made-up"), "exec.flag-effect"),
        (run("git log -- :(icase)x"), "exec.ambiguous"),
        (run("cat docs/a/../b"), "path.invalid"),
        (run("env A=b cat docs/a.md"), "exec.variable-denied"),
        (run("rm -rf ."), "path.whole-workspace"),
        (("shell.run", json!({ "command": "cat docs/a.md" })), "exec.form-denied"),
        (("shell.run", json!({ "command": "cat $x" })), "exec.not-in-language"),
        (run("cat forbidden"), "exec.token-denied"),
        (("test.run", json!({ "filter": "x" })), "test.filter-denied"),
        (nul, "exec.argv-invalid"),
        (("shell.run", json!({ "argv": ["cat"], "cwd": "docs/a.md" })), "path.invalid"),
    ];
    let mut met: BTreeSet<&str> = MET_ELSEWHERE.iter().map(|code| code.slug()).collect();
    let mut wrong = Vec::new();
    for ((tool, args), code) in rows {
        met.insert(code);
        let args = args.to_string();
        let line = ["policy", "explain", "--policy", &policy, "--json", "--tool", tool];
        let line: Vec<&str> = line.into_iter().chain(["--args", &args]).collect();
        let got = capsule.run(&line).exits(0).json();
        let says = got["suggestion"].as_str().is_some_and(|text| !text.is_empty());
        if got["code"] != code || !says || got["liftable"] != Value::Bool(false) {
            wrong.push(format!("{tool} {args} wants {code}: {got}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for code in Code::ALL.iter().filter(|code| code.class() == FailureClass::Denied) {
        assert!(met.contains(code.slug()), "no call here is denied with {}", code.slug());
        let suggestion = CodedError::new(*code, "x").suggestion;
        assert!(suggestion.is_some_and(|text| !text.is_empty()), "{}", code.slug());
    }
}

/// G7: what is ours says so too.
#[test]
fn a_denial_of_our_own_files_says_what_to_do() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let policy = capsule.write_file("rules.yaml", "version: 1\ntools: { fs.read: allow }\n");
    let policy = policy.to_str().unwrap();
    let line = ["policy", "explain", "--policy", policy, "--json", "--tool", "fs.read", "--args"];
    let line: Vec<&str> = line.into_iter().chain([r#"{"path":"rules.yaml"}"#]).collect();
    let got = capsule.run(&line).exits(0).json();
    assert_eq!(got["rule"], "no-own-files", "{got}");
    assert!(got["suggestion"].is_string(), "{got}");
}

/// SAF-6: what is refused most says what to do instead, by name.
#[test]
fn what_is_refused_most_names_the_way() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    for (policy, command, way) in [
        ("builtin:readonly", "sed -i s/a/b/ x", "`fs.edit`"),
        ("builtin:developer", "sh <<'X'\nls\nls src\nX", "`fs.write`"),
        ("builtin:developer", "cat x | bash", "`fs.write`"),
        ("builtin:developer", "rm -rf $X/", "write the value itself"),
        ("builtin:developer", "rm -rf /", "relative to the workspace"),
        ("builtin:developer", "git push", "Tell the user what is ready"),
        ("builtin:developer", "while true; do ls; done", "`break`"),
        ("builtin:developer", "rm -r $(ls)", "run the inner command first"),
        ("builtin:developer", "eval ls", "write the command itself"),
        ("builtin:developer", "ls src/**", "`find`"),
    ] {
        let args = json!({ "command": command }).to_string();
        let ran = capsule.run(&["call", "shell.run", "--policy", policy, "--args", &args]).exits(3);
        let suggestion = ran.json()["suggestion"].as_str().unwrap_or_default().to_owned();
        assert!(suggestion.contains(way), "{command}: {suggestion}");
    }
}
