//! What holds of every layer over every policy: it tightens, or it changes nothing.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panics"
)]

use std::net::IpAddr;
use std::sync::Arc;

use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_base::path::WorkspacePath;
use capsule_base::url::HttpUrl;
use capsule_core::action::Facts;
use capsule_core::change::{Change, FileState};
use capsule_core::confinement::{
    Confinement, EnforcementLevel, LayerStatus, ProcessLimits, SandboxLayer, SandboxStatus,
    SandboxTier,
};
use capsule_core::decision::Verdict;
use capsule_core::policy::{
    BindRoots, EnvironmentRule, Judgement, LayerKind, PathScope, Policy, PolicyInput, PolicyLayer,
    Restrictions, Usage, decide,
};
use capsule_core::tool::ToolName;
use capsule_policy::PolicyDraft;
use capsule_runtime::{CATALOGUE, describe};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

/// The sections of a text, so that each stands once in it.
#[derive(Clone, Debug, Default)]
struct Text {
    never: Vec<&'static str>,
    tools: Vec<(&'static str, Vec<&'static str>)>,
    sections: Vec<&'static str>,
}

const NEVER: &[&str] = &[
    "{ id: n1, paths: [\"docs/**\"] }",
    "{ id: n2, capabilities: [fs.write, fs.delete], paths: [\"src/**\"], except: [\"src/a.rs\"] }",
    "{ id: n3, tool: shell.run, argv: [[git, { any: [commit, stash] }]] }",
    "{ id: n4, tool: shell.run, effects: [deletes, code], because: No. }",
    "{ id: n5, tool: fs.search }",
];

/// Of each group one thing is said at most: a word, a list, a bound, some of them loose and some of
/// them strict.
const READ: &[&[&str]] = &[
    &["decision: allow", "decision: ask", "decision: deny"],
    &["paths: [\"**\"]", "paths: { allow: [\"docs/**\"] }", "paths: { deny: [\"src/**\"] }"],
    &["hidden: allow", "hidden: deny"],
    &["limits: { bytes_max: 1KB }", "limits: { bytes_max: 200KB, bytes: 100KB }"],
    &["quota: { calls: 3 }"],
    &["rules: [{ id: a, paths: [\"docs/**\"], decision: allow }, { id: b, paths: [\"*.md\"] }]"],
];

const FETCH: &[&[&str]] = &[
    &["decision: allow", "decision: ask-each"],
    &[
        "urls: { allow: [{ url: \"https://example.org/**\", decision: allow }] }",
        "urls: [\"https://example.org/a/**\", \"https://docs.rs/**\"]",
        "urls: { deny: [\"https://example.org/b/**\"] }",
        "urls: { redirects: { max: 0 } }",
        "urls: { private_ips: { allow: [10.0.0.0/8] } }",
    ],
    &["domains: [example.org, docs.rs]", "domains: [docs.rs]"],
    &["redirects: { max: 5, cross_origin: allow }", "redirects: { cross_origin: deny }"],
    &["private_ips: { allow: [10.0.0.0/8] }", "private_ips: deny"],
    &["limits: { bytes_max: 1KB }", "limits: { bytes_max: 2MB }"],
];

const RUN: &[&[&str]] = &[
    &["decision: allow", "decision: ask", "decision: deny"],
    &["form: command", "form: argv"],
    &[
        "effects: { reads: allow, writes: allow, deletes: ask, runs: allow, unknown: ask }",
        "effects: { reads: ask, deletes: deny }",
        "effects: { reads: allow, writes: allow, deletes: allow, code: allow, unknown: allow }",
    ],
    &[
        "executables: { cat: allow, git: allow, touch: { writes: [\"out/**\"] }, ls: ask }",
        "executables: { git: { subcommands: { commit: deny } }, cat: deny }",
        "executables: { git: { decision: ask, subcommands: { log: allow, \"*\": deny } }, rm: allow }",
        "executables: { git: { writes: [\"docs/**\"], global_flags: { deny: [-c] }, subcommands: { commit: { decision: allow, writes: [\"**\"], flags: { allow: [-m] } } } } }",
        "executables: { touch: { decision: allow, writes: [\"**\"], reads: [\"out/**\"], limits: { timeout: 1s } }, find: { flags: { deny: [-delete] } } }",
        "executables: { touch: { reads: [\"**\"], writes: [] }, cat: { reads: [\"docs/**\"] } }",
        "executables: [git, rm, touch]",
        "executables: { cat: { decision: allow, capabilities: [proc.unconfined] }, git: { capabilities: [proc.unconfined], subcommands: { log: { capabilities: [proc.unconfined] }, \"*\": ask } } }",
        "executables: { cat: { capabilities: [proc.exec] }, git: { subcommands: { log: { decision: ask, capabilities: [proc.unconfined] } } } }",
    ],
    &["denied_tokens: [docs/a.md]"],
    &[
        "env: { pass: [PATH, LANG], accept: [A, B] }",
        "env: { pass: [USER], accept: [] }",
        "env: { accept: [A=1, B=x*, PAGER=cat] }",
        "env: { accept: [A, B=xy, \"B=*\"] }",
    ],
    &[
        "limits: { timeout: 2s, timeout_max: 5s, memory: 64MiB }",
        "limits: { timeout_max: 10m, processes_max: 100 }",
    ],
    &["quota: { calls: 2 }"],
];

const WRITE: &[&[&str]] = &[
    &["decision: allow", "decision: ask", "decision: deny"],
    &["paths: [\"**\"]", "paths: [\"docs/**\"]", "paths: { deny: [\"docs/**\"] }"],
    &["limits: { bytes_max: 10B }"],
    &[
        "modes: { create: allow, overwrite: ask }",
        "modes: { create: deny }",
        "modes: { append: allow }",
    ],
];

const SECTIONS: &[&[&str]] = &[
    &[
        "sandbox: { level: workspace-write }",
        "sandbox: { level: strict }",
        "sandbox: { workspace: staged, level: workspace-write }",
        "sandbox: { floor: landlock }",
        "sandbox: { workspace: direct }",
        "sandbox: { require: false }",
        "sandbox: { require: false, workspace: direct }",
        "sandbox: { require: true }",
    ],
    &["profile: readonly", "profile: autonomous", "profile: supervised"],
    &["risk: { block_at: none }", "risk: { block_at: medium }", "risk: { escalate: [] }"],
    &["capabilities: { proc.exec: { risk: high } }", "capabilities: { fs.read: { risk: low } }"],
    &[
        "budgets: { run: { calls: 5, fetched: 1KB }, loops: { denied_total: 2 } }",
        "budgets: { run: { calls: 500 } }",
    ],
];

/// One of each of some groups.
fn some(groups: &'static [&'static [&'static str]]) -> impl Strategy<Value = Vec<&'static str>> {
    let which = subsequence((0..groups.len()).collect::<Vec<_>>(), 0..=groups.len());
    which.prop_flat_map(move |which| {
        which.into_iter().map(|at| select(groups[at].to_vec())).collect::<Vec<_>>()
    })
}

fn text() -> impl Strategy<Value = Text> {
    let tools = (some(READ), some(WRITE), some(FETCH), some(RUN), some(READ));
    (subsequence(NEVER.to_vec(), 0..=NEVER.len()), tools, some(SECTIONS), 0_u8..32).prop_map(
        |(never, (read, write, fetch, run, list), sections, which)| {
            let tools = [
                ("fs.read", read),
                ("fs.write", write),
                ("http.get", fetch),
                ("shell.run", run),
                ("fs.list", list.into_iter().filter(|own| !own.starts_with("limits")).collect()),
            ];
            let tools = tools.into_iter().enumerate();
            let tools = tools.filter(|(at, _)| which & (1 << at) != 0).map(|(_, own)| own);
            Text { never, tools: tools.collect(), sections }
        },
    )
}

/// A layer, which may also say what no policy may whose programs write.
fn layer_text() -> impl Strategy<Value = Text> {
    (text(), any::<bool>()).prop_map(|(mut text, is_read_only)| {
        if is_read_only && !text.sections.iter().any(|own| own.starts_with("sandbox")) {
            text.sections.push("sandbox: { workspace: read-only }");
        }
        text
    })
}

impl Text {
    fn write(&self, head: &str) -> String {
        let mut text = format!("version: 1\n{head}");
        if !self.never.is_empty() {
            text += &format!("never: [{}]\n", self.never.join(", "));
        }
        if !self.tools.is_empty() {
            text += "tools:\n";
        }
        for (tool, says) in &self.tools {
            text += &format!("  {tool}: {{ {} }}\n", says.join(", "));
        }
        for section in &self.sections {
            text += &format!("{section}\n");
        }
        text
    }
}

fn roots() -> BindRoots {
    BindRoots {
        workspace: "/home/ada/work".into(),
        runtime_files: Vec::new(),
        may_drop_base_rules: true,
        ..BindRoots::default()
    }
}

fn draft(text: &str) -> PolicyDraft {
    let read = PolicyDraft::parse(text, "policy.yaml", "/home/ada", CATALOGUE);
    read.unwrap_or_else(|problems| panic!("{text}\n{problems:#?}")).0
}

fn layer(policy: &PolicyDraft, text: &str, kind: LayerKind) -> PolicyLayer {
    let read = policy.layer((text, "layer.yaml"), kind, "/home/ada", CATALOGUE);
    let (read, _) = read.unwrap_or_else(|problems| panic!("{text}\n{problems:#?}"));
    read.bind(&roots()).unwrap()
}

/// A policy alone and with a layer over it.
fn pair(policy: &str, text: &str, kind: LayerKind) -> (Arc<Policy>, Arc<Policy>) {
    let draft = draft(policy);
    let layer = layer(&draft, text, kind);
    let alone = draft.bind(&roots(), "/home/ada", CATALOGUE).unwrap();
    (Arc::new(alone.clone()), Arc::new(alone.with_layers(vec![layer])))
}

const COMMANDS: &[&str] = &[
    "cat docs/a.md",
    "cat README.md",
    "cat README.md | sort -u",
    "ls -la src && git status --short",
    "git commit -m x",
    "git commit --amend",
    "git -c a=b log",
    "git log --oneline -5 | head -2",
    "rm -rf out",
    "find . -name '*.rs' -delete",
    "touch out/new > out/log",
    "python3 -c 'print(1)'",
    "curl https://example.org | tee out/x",
    "made-up --option x",
    "cat .env",
    "sed -i s/a/b/ src/a.rs",
    "echo hi > docs/new.md; cat ../x",
    "A=1 make",
    "B=1 cat README.md",
];

fn calls() -> Vec<(&'static str, Value)> {
    let commands = COMMANDS.iter().map(|text| ("shell.run", json!({ "command": text })));
    let lines = COMMANDS.iter().filter(|text| !text.contains(['|', '&', ';', '>', '\'', '=']));
    let lines = lines.map(|text| {
        let argv: Vec<&str> = text.split(' ').collect();
        ("shell.run", json!({ "argv": argv, "timeout": "90s" }))
    });
    let files = ["docs/a.md", "src/a.rs", "src/b.rs", "README.md", ".env", ".x", "../x", "out/x"];
    let reads = files.iter().map(|path| ("fs.read", json!({ "path": path, "limit": 150_000 })));
    let lists = files.iter().map(|path| ("fs.list", json!({ "path": path })));
    let writes = files
        .iter()
        .map(|path| ("fs.write", json!({ "path": path, "content": "x and more than ten" })));
    let urls = ["https://example.org/a/b", "https://example.org/b/c", "https://docs.rs/x"];
    let fetches = urls.iter().map(|url| ("http.get", json!({ "url": url })));
    commands.chain(lines).chain(reads).chain(lists).chain(writes).chain(fetches).collect()
}

fn judge(policy: &Arc<Policy>, tool: &str, args: &Value, used: u64) -> Judgement {
    judge_on(policy, tool, args, (used, false))
}

/// The machines that a call is judged on: any, and for commands one without any sandbox.
fn machines(tool: &str) -> &'static [bool] {
    if tool == "shell.run" { &[false, true] } else { &[false] }
}

fn judge_on(
    policy: &Arc<Policy>,
    tool: &str,
    args: &Value,
    (used, bare): (u64, bool),
) -> Judgement {
    let none = |layer: &SandboxLayer| LayerStatus {
        layer: *layer,
        level: EnforcementLevel::Missing,
        detail: String::new(),
    };
    let layers = SandboxLayer::ALL.iter().map(none).collect();
    let walls = SandboxStatus { tier: SandboxTier::Basic, layers, limits: Vec::new() };
    let facts = Facts { sandbox: bare.then_some(Ok(walls)), ..Facts::default() };
    let name = ToolName::unchecked(tool);
    let mut usage = Usage::default();
    (0..used).for_each(|_| usage.count_run(&name, 10, 10, None));
    let action = describe(tool, args, 0).unwrap().resolve_confinement(&facts);
    let (tool, action, facts, usage) = (&name, &action, &facts, &usage);
    decide(policy, &PolicyInput { tool, action, facts, usage, tainted: &[], args_digest: None })
}

/// A system without a backend has a denial of its own, whatever the policy lets run unconfined; what an older
/// record says of a sandbox that did not start is read as it was.
#[test]
fn a_system_without_a_sandbox_is_refused_by_its_own_code() {
    let policy = "version: 1\nsandbox: { require: false, workspace: direct }\ntools:\n  shell.run:\n    executables: \
                  { ls: { decision: allow, capabilities: [proc.unconfined] } }\n";
    let policy = Arc::new(draft(policy).bind(&roots(), "/home/ada", CATALOGUE).unwrap());
    for (recorded, code) in [
        (json!({ "Err": { "unsupported": "none for x" } }), Code::SandboxUnsupportedPlatform),
        (json!({ "Err": "none for x" }), Code::SandboxBelowFloor),
    ] {
        let facts: Facts = serde_json::from_value(json!({ "walls": recorded })).unwrap();
        assert_eq!(json!(facts)["walls"], recorded);
        let (name, usage) = (ToolName::unchecked("shell.run"), Usage::default());
        let args = json!({ "argv": ["ls"] });
        let action = describe("shell.run", &args, 0).unwrap().resolve_confinement(&facts);
        let (tool, action, facts, usage) = (&name, &action, &facts, &usage);
        let input = PolicyInput { tool, action, facts, usage, tainted: &[], args_digest: None };
        let decision = decide(&policy, &input).decision;
        assert_eq!((decision.verdict, decision.code), (Verdict::Deny, code), "{decision:?}");
        assert!(decision.reason.contains("none for x"), "{decision:?}");
    }
}

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text).unwrap()
}

const PATHS: &[&str] =
    &["docs", "docs/a.md", "src/a.rs", "README.md", "out/x", ".x", "src", ".env"];

/// Whether everything that the bounds let through the others let through as well.
fn within(
    (inner, by): (&Restrictions, &Policy),
    (outer, or_by): (&Restrictions, &Policy),
) -> Result<(), String> {
    let check = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_owned()) };
    match (inner, outer) {
        (Restrictions::Nothing, _) => Ok(()),
        (
            Restrictions::Listing { results, timeout_ms, scope: sight, .. },
            Restrictions::Listing { results: most, timeout_ms: time, scope: seen, .. },
        ) => {
            check(results <= most && timeout_ms <= time, "looks")?;
            let hidden = PATHS.iter().all(|own| !sight.shows(&path(own)) || seen.shows(&path(own)));
            check(hidden, "sight")
        }
        (
            Restrictions::Read { bytes, timeout_ms, .. },
            Restrictions::Read { bytes: most, timeout_ms: time, .. },
        ) => check(bytes <= most && timeout_ms <= time, "reads"),
        (Restrictions::Write { timeout_ms }, Restrictions::Write { timeout_ms: time }) => {
            check(timeout_ms <= time, "writes")
        }
        (
            Restrictions::Fetch { egress: reach, bytes_max, inflated_max, redirects, timeout_ms },
            Restrictions::Fetch {
                egress: far,
                bytes_max: bytes,
                inflated_max: inflated,
                redirects: hops,
                timeout_ms: time,
            },
        ) => {
            check(
                bytes_max <= bytes
                    && inflated_max <= inflated
                    && redirects <= hops
                    && timeout_ms <= time,
                "fetches",
            )?;
            for ip in ["10.1.2.3", "93.184.216.34", "127.0.0.1"] {
                let ip: IpAddr = ip.parse().unwrap();
                check(reach.check_address(ip).is_err() || far.check_address(ip).is_ok(), "dials")?;
            }
            let urls = ["https://example.org/a/x", "https://docs.rs/y", "https://10.1.2.3/"];
            let urls = urls.map(|own| HttpUrl::parse(own).unwrap());
            for (from, to) in urls.iter().flat_map(|from| urls.iter().map(move |to| (from, to))) {
                let follows =
                    reach.check_redirect(from, to).is_err() || far.check_redirect(from, to).is_ok();
                check(follows, "follows")?;
            }
            Ok(())
        }
        (
            Restrictions::Run { confinement, environment, reads, writes, .. },
            Restrictions::Run {
                confinement: walls,
                environment: other,
                reads: seen,
                writes: changed,
                ..
            },
        ) => {
            check(confined(confinement, walls), "confinement")?;
            check(surrounded(environment, other), "environment")?;
            for own in PATHS.iter().map(|own| path(own)) {
                // A command without a scope sees what no invariant conceals.
                let sees = |scope: &Option<PathScope>, policy: &Policy| match scope {
                    Some(scope) => walked(&own, |path, folder| scope.conceals(path, folder)),
                    None => walked(&own, |path, _| policy.conceals(path)),
                };
                check(!sees(reads, by) || sees(seen, or_by), "sees")?;
                let after = FileState::File { bytes: 1, sha256: Digest::of(b"x"), mode: 0o644 };
                let change =
                    Change { path: own.as_str().into(), after: Some(after), ..Change::default() };
                let may = |own: &Option<PathScope>| {
                    own.as_ref().is_some_and(|own| own.judge_change(&change).is_ok())
                };
                check(!may(writes) || may(changed), "changes")?;
            }
            Ok(())
        }
        (
            Restrictions::Unconfined { limits, environment, .. },
            Restrictions::Unconfined { limits: most, environment: other, .. },
        ) => {
            check(limits.combine(*most, u64::min) == *limits, "limits")?;
            check(surrounded(environment, other), "environment")
        }
        _ => Err("another kind".into()),
    }
}

/// Whether a walk from the root down comes to a path.
fn walked(path: &WorkspacePath, conceals: impl Fn(&WorkspacePath, bool) -> bool) -> bool {
    let mut folder = WorkspacePath::root();
    path.components().all(|name| {
        folder = folder.join(name);
        !conceals(&folder, folder != *path)
    })
}

fn confined(inner: &Confinement, outer: &Confinement) -> bool {
    let limits = |own: &ProcessLimits| {
        let ProcessLimits {
            timeout_ms,
            cpu_ms,
            memory_bytes,
            processes,
            open_files,
            file_bytes,
            tmp_bytes,
            stdout_bytes,
            stderr_bytes,
        } = *own;
        [
            timeout_ms,
            cpu_ms,
            memory_bytes,
            processes,
            open_files,
            file_bytes,
            tmp_bytes,
            stdout_bytes,
            stderr_bytes,
        ]
    };
    let smaller = limits(&inner.limits).iter().zip(limits(&outer.limits)).all(|(a, b)| *a <= b);
    smaller
        && inner.floor >= outer.floor
        && inner.network <= outer.network
        && inner.workspace <= outer.workspace
}

fn surrounded(inner: &EnvironmentRule, outer: &EnvironmentRule) -> bool {
    let values = ["", "1", "x", "xy", "xyz", "cat", "a b"];
    let narrower = ["A", "B", "PAGER", "C"].into_iter().all(|name| {
        values.iter().all(|value| !inner.accepts(name, value) || outer.accepts(name, value))
    });
    inner.pass.iter().all(|own| outer.pass.contains(own)) && narrower && inner.set == outer.set
}

/// What commands and runs are confined to as a whole.
fn whole(inner: &Policy, outer: &Policy) -> Result<(), TestCaseError> {
    let (held, was) = (inner.sandbox_in_force(), outer.sandbox_in_force());
    prop_assert!(held.floor >= was.floor && held.network <= was.network);
    prop_assert!(
        held.workspace <= was.workspace && (was.writes_by_default || !held.writes_by_default)
    );
    prop_assert!(was.optional || !held.optional);
    prop_assert!(inner.fails_unattended() || !outer.fails_unattended());
    for own in PATHS.iter().map(|own| path(own)) {
        let seen = |policy: &Policy| walked(&own, |path, _| policy.conceals(path));
        prop_assert!(!seen(inner) || seen(outer));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// CAP-3, F19: whatever a layer says, no call is decided more mildly, and what is allowed is
    /// bounded at least as narrowly.
    #[test]
    fn a_layer_never_loosens(policy in text(), layer in layer_text(), used in 0_u64..4) {
        for kind in LayerKind::ALL {
            let head = format!("layer: {}\n", kind.keyword());
            let (alone, with) = pair(&policy.write(""), &layer.write(&head), kind);
            let calls = calls().into_iter();
            let calls = calls.flat_map(|own| machines(own.0).iter().map(move |bare| (own.clone(), (used, *bare))));
            for ((tool, args), on) in calls {
                let (before, after) = (judge_on(&alone, tool, &args, on), judge_on(&with, tool, &args, on));
                let (was, is) = (before.decision.verdict, after.decision.verdict);
                prop_assert!(is >= was, "{tool} {args} was {was} and is {is}: {}", after.decision.reason);
                prop_assert!(after.decision.risk >= before.decision.risk, "{tool} {args}");
                let held = within((&after.restrictions, &with), (&before.restrictions, &alone));
                prop_assert!(held.is_ok(), "{tool} {args}: {}", held.unwrap_err());
                // And whatever the layer says holds.
                let tightened = &with.layers()[0].policy;
                let layer = judge_on(tightened, tool, &args, on);
                prop_assert!(is >= layer.decision.verdict, "{tool} {args}");
                let held = within((&after.restrictions, &with), (&layer.restrictions, tightened));
                prop_assert!(held.is_ok(), "{tool} {args} by the layer: {}", held.unwrap_err());
            }
            whole(&with, &alone)?;
        }
    }

    /// A layer that says nothing changes nothing: what it does not say it has no opinion on.
    #[test]
    fn a_silent_layer_changes_nothing(policy in text(), used in 0_u64..4) {
        let text = policy.write("");
        for kind in LayerKind::ALL {
            let layer = format!("version: 1\nlayer: {}\n", kind.keyword());
            let (alone, with) = pair(&text, &layer, kind);
            let calls = calls().into_iter();
            let calls = calls.flat_map(|own| machines(own.0).iter().map(move |bare| (own.clone(), (used, *bare))));
            for ((tool, args), on) in calls {
                let (before, after) = (judge_on(&alone, tool, &args, on), judge_on(&with, tool, &args, on));
                prop_assert_eq!(&before.decision, &after.decision, "{} {}", tool, args);
                let held = within((&before.restrictions, &alone), (&after.restrictions, &with));
                prop_assert!(held.is_ok(), "{tool} {args}: {}", held.unwrap_err());
            }
            whole(&alone, &with)?;
        }
    }

    /// Two layers are as strict as each of them.
    #[test]
    fn layers_add_up(policy in text(), one in layer_text(), other in layer_text()) {
        let policy = draft(&policy.write(""));
        let layer = |own: &Text, kind: LayerKind| {
            layer(&policy, &own.write(&format!("layer: {}\n", kind.keyword())), kind)
        };
        let one = layer(&one, LayerKind::User);
        let other = layer(&other, LayerKind::Workspace);
        let bound = policy.clone().bind(&roots(), "/home/ada", CATALOGUE).unwrap();
        let with = |layers| Arc::new(bound.clone().with_layers(layers));
        let (first, second) = (with(vec![one.clone()]), with(vec![other.clone()]));
        let both = with(vec![one, other]);
        for (tool, args) in calls() {
            let all = judge(&both, tool, &args, 0);
            for own in [&first, &second] {
                let one = judge(own, tool, &args, 0);
                prop_assert!(all.decision.verdict >= one.decision.verdict, "{} {}", tool, args);
                let held = within((&all.restrictions, &both), (&one.restrictions, own));
                prop_assert!(held.is_ok(), "{tool} {args}: {}", held.unwrap_err());
            }
        }
    }

    /// The word that a layer has for a tool holds for all that the tool does.
    #[test]
    fn a_word_for_a_tool_holds_for_all_of_it(
        policy in text(),
        word in select(vec![Verdict::Ask, Verdict::AskEach, Verdict::Deny]),
    ) {
        for tool in ["fs.read", "fs.write", "fs.list", "http.get", "shell.run"] {
            for says in [format!("{{ decision: {word} }}"), word.to_string()] {
                let layer = format!("version: 1\nlayer: workspace\ntools: {{ {tool}: {says} }}\n");
                let (_, with) = pair(&policy.write(""), &layer, LayerKind::Workspace);
                for (own, args) in calls().into_iter().filter(|(own, _)| *own == tool) {
                    let judged = judge(&with, own, &args, 0).decision;
                    // A step that only looks at where it goes has no word of its own.
                    prop_assert!(judged.verdict >= word, "{own} {args}: {}", judged.reason);
                }
            }
        }
    }
}

/// What a layer lets a program see is seen under the policy's invariants as well.
#[test]
fn what_a_layer_opens_stays_closed() {
    let policy = "version: 1\nnever: [{ id: n, paths: [\"docs/**\"] }]\ntools: { shell.run: { executables: { cat: allow } } }\n";
    let layer = "version: 1\nlayer: workspace\ntools: { shell.run: { executables: { cat: { reads: [\"docs/**\", \"*.md\"], writes: [\"**\"] } } } }\n";
    let (_, with) = pair(policy, layer, LayerKind::Workspace);
    let judged = judge(&with, "shell.run", &json!({ "argv": ["cat", "README.md"] }), 0);
    let Restrictions::Run { reads: Some(reads), writes: None, .. } = judged.restrictions else {
        panic!("{judged:?}")
    };
    for (own, is_seen) in [("docs/a.md", false), ("README.md", true), ("src/a.rs", false)] {
        let seen = walked(&path(own), |path, folder| reads.conceals(path, folder));
        assert_eq!(seen, is_seen, "{own}");
    }
}

/// A bound that was once let through is refused in a new text, and read where it was recorded: by the policy, and by
/// what lies over it.
#[test]
fn what_is_refused_in_a_new_text_is_read_where_it_was_recorded() {
    for limits in ["memory: 1B", "processes_max: 0"] {
        let text = format!(
            "version: 1\ntools: {{ shell.run: {{ limits: {{ {limits} }}, executables: [ls] }} }}\n"
        );
        let refused = PolicyDraft::parse(&text, "policy.yaml", "/home/ada", CATALOGUE).unwrap_err();
        assert!(refused.iter().any(|own| own.message.starts_with("the least that")), "{refused:?}");
        let read = PolicyDraft::parse_recorded(&text, "policy.yaml", "/home/ada", CATALOGUE, None);
        assert!(read.is_ok(), "{limits}: {read:?}");
        // More than the most was never let through.
        let more = text.replace("1B", "1TB").replace(": 0", ": 99999");
        assert!(
            PolicyDraft::parse_recorded(&more, "policy.yaml", "/home/ada", CATALOGUE, None)
                .is_err()
        );
    }
}
