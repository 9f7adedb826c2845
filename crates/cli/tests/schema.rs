//! The schema of the policy language says what the parser reads: each is asked about the same texts.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panics"
)]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use capsule_authoring::policy_schema;
use capsule_base::code::Code;
use capsule_base::diagnostic::{Diagnostics, Severity};
use capsule_base::yaml;
use capsule_base::yaml::POLICY_DIALECT;
use capsule_policy::PolicyDraft;
use capsule_runtime::CATALOGUE;
use capsule_testkit::{Capsule, run_in_parallel};
use regex::Regex;
use serde_json::{Map, Value, json};

/// The repository.
fn root() -> PathBuf {
    std::env::var_os("CAPSULE_TEST_ROOT")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), PathBuf::from)
}

/// Every policy of the repository that stands in a file.
fn policies() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut waiting = vec![root().join("policies"), root().join("examples")];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|own| own == "yaml") {
                let text = fs::read_to_string(&path).unwrap();
                if text.contains("\ntools:") {
                    found.push((path, text));
                }
            }
        }
    }
    assert!(found.len() >= 6, "{found:?}");
    found
}

/// A policy with every section of the language in it.
const FULL: &str = r#"
version: 1
name: full
description: Everything once.
extends: builtin:base@1
workspace: { root: . }
default: deny
never:
  - id: one
    capabilities: [fs.read]
    paths: ["a/**"]
    except: ["a/b"]
    because: x
    suggest: y
  - id: two
    tool: shell.run
    argv: [[git, push, --force], [{ any: [npm, cargo] }, "...", { regex: "p.*" }]]
  - { id: three, effects: [network], into: [code] }
lift:
  - { id: no-network-programs, because: x }
tools:
  fs.search: { decision: allow, limits: { results: 5, results_max: 10, timeout: 5s } }
  fs.list: allow
  fs.read:
    paths: { allow: ["**"], deny: ["x"], hidden: deny, symlinks: inside }
    hidden: allow
    symlinks: deny
    limits: { bytes: 5KB, bytes_max: 10KB, binary: preview, timeout: 5s }
    quota: { calls: 5, bytes: 1MiB, wall: 5m }
    rules:
      - id: inner
        paths: ["docs/**"]
        decision: deny
        because: x
        suggest: y
        examples: { deny: [{ path: docs/a, offset: 5, limit: 5KB }] }
  fs.write:
    paths: [docs/**]
    undo: always
    limits: { bytes_max: 5KB }
    examples: { ask: [{ path: docs/a, content: x, mode: append }] }
  fs.edit: { decision: ask, limits: { bytes_max: 5KB, timeout: 5s } }
  fs.delete: { paths: ["docs/**"], limits: { timeout: 5s }, quota: { calls: 5 } }
  git.status: { decision: allow, limits: { timeout: 5s, results: 5 } }
  git.diff: { limits: { bytes: 5KB, timeout: 5s }, examples: { ask: [{ paths: [a], staged: true }] } }
  git.log: { limits: { results: 5, results_max: 6 }, quota: { calls: 5 } }
  test.run:
    command: [cargo, test]
    cwd: .
    filter: { args: [--] }
    env: { pass: [LANG], set: { CI: "1" }, accept: [DEBUG] }
    limits: { timeout: 5s, memory: 1GiB }
  http.get:
    domains: [example.org]
    urls:
      allow: [{ id: a, url: "https://a.example.org/**", decision: ask-each }, "https://b.example.org"]
      deny: [{ url: "https://c.example.org", because: x, suggest: y, output: untrusted }]
      private_ips: { allow: [10.0.0.0/8] }
      redirects: { max: 3, cross_origin: ask }
    limits: { bytes_max: 5KB, inflated_max: 5KB, timeout: 5s }
    output: untrusted
    quota: { per_host: 5 }
    examples: { deny: [{ url: "https://c.example.org", headers: { accept: text } }] }
  shell.run:
    form: command
    decision: ask
    because: x
    suggest: y
    effects: { reads: allow, network: deny }
    executables:
      git:
        path: /usr/bin/git
        sha256: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
        global_flags: { allow: [-C], deny: [-c] }
        limits: { timeout: 5s, cpu: 5s }
        subcommands:
          log: { decision: allow, flags: { deny: [--output] }, reads: ["**"], because: x, suggest: y }
          stash: { subcommands: { pop: deny }, writes: ["docs/**"] }
          status: allow
        examples: { allow: ["git log", [git, status], { argv: [git, log], timeout: 5s }], no_match: ["ls"] }
      ls: { decision: allow, flags: { allow: [-l] }, reads: ["**"], writes: ["docs/**"], because: x, suggest: y }
      cat: allow
    denied_tokens: [sudo, { regex: "x+" }]
    env: { pass: [LANG], set: { CI: "1", N: 5 }, accept: [DEBUG] }
    limits:
      timeout: 5s
      timeout_max: 10s
      stdout_max: 5KB
      stderr_max: 5KB
      processes_max: 64
      cpu: 5s
      memory: 1GiB
      tmp: 64MiB
      file: 64MiB
sandbox:
  require: true
  floor: landlock
  level: strict
  network: { shell.run: none }
  tmp: private
  workspace: staged
audit:
  payloads: full
  checkpoint: { every: 64, on: [approval, denial, run-end] }
  anchors: ["file:~/.local/state/capsule/anchors", "file:/var/lib/anchors"]
  erase_payloads_after: 30d
profile: mine
profiles:
  mine:
    decide: { fs.read: allow, proc.exec: ask, "*": deny }
    unattended: fail
    requires: { sandbox: enforced, workspace: disposable, isolated: yes }
capabilities:
  fs.write: { risk: medium, label: change files }
  proc.exec: { risk: high }
risk:
  escalate: [{ when: irreversible, to: high }, { when: executable-changed, to: medium }]
  block_at: none
budgets:
  run: { calls: 5, wall: 5m, written: 5KB, fetched: 5KB, llm_tokens: 5, llm_cost_usd: 0.5 }
  loops: { same_call: 3, denied_in_a_row: 3, denied_total: 9, then: stop }
tests:
  - name: one
    profiles: [supervised, mine]
    call: { tool: http.get, args: { url: "https://c.example.org" }, resolves: [127.0.0.1] }
    expect: { decision: deny, rule: a, code: net.private-address, risk: low, capabilities: [net.egress] }
  - { name: two, call: { tool: shell.run, args: { argv: [ls] } }, expect: { decision: ask } }
"#;

thread_local! {
    /// The patterns of the schema, compiled once.
    static PATTERNS: RefCell<BTreeMap<String, Regex>> = const { RefCell::new(BTreeMap::new()) };
}

/// Whether a value is what a schema says, by the keywords that ours uses. Any other keyword fails.
fn fits(root: &Value, schema: &Value, value: &Value) -> bool {
    let schema = schema.as_object().unwrap();
    schema.iter().all(|(keyword, with)| match keyword.as_str() {
        "$schema" | "title" | "description" | "$defs" => true,
        "$ref" => fits(root, at(root, with.as_str().unwrap()), value),
        "type" => match with {
            Value::Array(kinds) => kinds.iter().any(|kind| is_of(kind.as_str().unwrap(), value)),
            kind => is_of(kind.as_str().unwrap(), value),
        },
        "enum" => with.as_array().unwrap().contains(value),
        "pattern" => {
            let pattern = with.as_str().unwrap();
            value.as_str().is_none_or(|text| {
                PATTERNS.with_borrow_mut(|known| {
                    let compiled = || Regex::new(pattern).unwrap();
                    known.entry(pattern.to_owned()).or_insert_with(compiled).is_match(text)
                })
            })
        }
        "minimum" => value.as_i64().is_none_or(|number| number >= with.as_i64().unwrap()),
        "maximum" => value.as_i64().is_none_or(|number| number <= with.as_i64().unwrap()),
        "minItems" => {
            let least = usize::try_from(with.as_u64().unwrap()).unwrap();
            value.as_array().is_none_or(|items| items.len() >= least)
        }
        "maxItems" => {
            let most = usize::try_from(with.as_u64().unwrap()).unwrap();
            value.as_array().is_none_or(|items| items.len() <= most)
        }
        "items" => {
            value.as_array().is_none_or(|items| items.iter().all(|item| fits(root, with, item)))
        }
        "not" => !fits(root, with, value),
        "minProperties" => value.as_object().is_none_or(|map| !map.is_empty()),
        "anyOf" => with.as_array().unwrap().iter().any(|one| fits(root, one, value)),
        "required" => value.as_object().is_none_or(|map| {
            with.as_array().unwrap().iter().all(|key| map.contains_key(key.as_str().unwrap()))
        }),
        "properties" => value.as_object().is_none_or(|map| {
            let known = with.as_object().unwrap();
            map.iter().all(|(key, own)| known.get(key).is_none_or(|with| fits(root, with, own)))
        }),
        "propertyNames" => {
            value.as_object().is_none_or(|map| map.keys().all(|key| fits(root, with, &json!(key))))
        }
        "additionalProperties" => value.as_object().is_none_or(|map| {
            let none = Map::new();
            let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
            let others = map.iter().filter(|(key, _)| !known.contains_key(*key));
            others.into_iter().all(|(_, own)| *with != json!(false) && fits(root, with, own))
        }),
        other => panic!("the schema uses `{other}`, which this test does not know"),
    })
}

fn at<'s>(root: &'s Value, reference: &str) -> &'s Value {
    let pointer = reference.strip_prefix('#').unwrap();
    root.pointer(pointer).unwrap_or_else(|| panic!("{reference} leads nowhere"))
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("{other}"),
    }
}

fn as_json(text: &str) -> Value {
    yaml::parse(text, &POLICY_DIALECT).unwrap().unwrap().to_json()
}

/// What the parser says of a policy. JSON is YAML.
fn parsed(policy: &Value) -> Diagnostics {
    match PolicyDraft::parse(&policy.to_string(), "p", "/home/ada", CATALOGUE) {
        Ok(_) => Vec::new(),
        Err(problems) => {
            problems.into_iter().filter(|own| own.severity == Severity::Error).collect()
        }
    }
}

/// Every policy that is shipped fits, and so does the one with everything in it.
#[test]
fn every_policy_of_ours_fits_the_schema() {
    let schema = policy_schema(CATALOGUE);
    for (path, text) in policies() {
        let mut policy = as_json(&text);
        if path.ends_with("policies/base.yaml") {
            // Only the base policy has this section.
            policy.as_object_mut().unwrap().remove("deny");
        }
        assert!(fits(&schema, &schema, &policy), "{}", path.display());
    }
    let full = as_json(FULL);
    assert_eq!(parsed(&full), Vec::new());
    assert!(fits(&schema, &schema, &full));
}

/// Every limit of a command is in that policy: a key that nothing reads would be taken for a limit that holds, and is found
/// where the parser is given a wrong value for it.
#[test]
fn every_limit_of_a_command_stands_in_the_full_policy() {
    let schema = policy_schema(CATALOGUE);
    let limits = schema.pointer("/$defs/processLimits/properties").and_then(Value::as_object);
    let used = as_json(FULL).pointer("/tools/shell.run/limits").cloned().unwrap();
    assert_eq!(
        used.as_object().unwrap().keys().collect::<Vec<_>>(),
        limits.unwrap().keys().collect::<Vec<_>>()
    );
}

/// What a text means beyond its form, which no schema says.
const BEYOND_FORM: &[&str] = &[
    "a time limit lies",
    // The word for the network may be in the policy that is extended.
    "hosts are named, and commands have no network",
    "the least that can be allowed",
    "the most that can be allowed",
    "commands may write by this policy",
    "these stand before a subcommand",
    "staged changes are applied",
    "an absolute path without",
    "an address or range is needed",
    "a command line begins with its program",
    "the rule names no `paths`",
    "there is no profile",
    "is pinned, and a changed program",
    "an address such as",
    "the first word is a program",
    "commands may write",
    "`http.get`",
    "`fs.",
    "`shell.run`",
];
const FORM: &[Code] = &[
    Code::PolicyUnknownKey,
    Code::PolicyNotYetSupported,
    Code::PolicyMissingKey,
    Code::PolicyType,
    Code::PolicyValue,
    Code::PolicyUnit,
    Code::PolicyVersion,
];

/// Each value in turn is replaced, dropped or renamed; schema and parser agree about the form of what
/// comes out.
#[test]
fn schema_and_parser_agree_about_what_is_wrong() {
    let schema = policy_schema(CATALOGUE);
    let mut compared = 0;
    let mut wrong = Vec::new();
    for text in [FULL.to_owned()].into_iter().chain(policies().into_iter().map(|(_, text)| text)) {
        let mut policy = as_json(&text);
        policy.as_object_mut().unwrap().remove("deny");
        let mut changed = Vec::new();
        changes(&policy, &mut Vec::new(), &mut changed);
        compared += changed.len();
        let found = run_in_parallel(changed, |(place, policy)| {
            let fits = fits(&schema, &schema, &policy);
            let problems = parsed(&policy);
            let of_form = problems.iter().find(|own| {
                FORM.contains(&own.code)
                    && !BEYOND_FORM.iter().any(|words| own.message.contains(words))
            });
            match (fits, of_form, problems.is_empty()) {
                (true, Some(problem), _) => {
                    Some(format!("{place}: it fits, and the parser says {problem:?}"))
                }
                (false, _, true) => {
                    Some(format!("{place}: it does not fit, and the parser reads it"))
                }
                _ => None,
            }
        });
        wrong.extend(found.into_iter().flatten());
    }
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 2_000, "{compared}");
}

/// Every policy that differs from this one in one place, with the place.
fn changes(policy: &Value, place: &mut Vec<String>, found: &mut Vec<(String, Value)>) {
    let pointer: String = place.iter().map(|part| format!("/{part}")).collect();
    let own = policy.pointer(&pointer).unwrap().clone();
    let mut put = |what: &str, new: Value| {
        let mut changed = policy.clone();
        *changed.pointer_mut(&pointer).unwrap() = new;
        found.push((format!("{pointer} {what}"), changed));
    };
    if !place.is_empty() {
        let others =
            [Value::Null, json!(7), json!(true), json!("zzz"), json!([]), json!({}), json!([null])];
        for new in others.into_iter().filter(|new| *new != own) {
            put(&new.to_string(), new);
        }
    }
    match &own {
        Value::Object(map) => {
            for key in map.keys() {
                let mut without = map.clone();
                let value = without.remove(key).unwrap();
                put(&format!("without {key}"), Value::Object(without.clone()));
                without.insert(format!("{key}zz"), value);
                put(&format!("with {key} renamed"), Value::Object(without));
            }
            for key in map.keys() {
                place.push(key.replace('~', "~0").replace('/', "~1"));
                changes(policy, place, found);
                place.pop();
            }
        }
        Value::Array(items) => {
            // The others are of the same kind.
            for index in 0..items.len().min(2) {
                place.push(index.to_string());
                changes(policy, place, found);
                place.pop();
            }
        }
        _ => {}
    }
}

/// Every section has the keys that the parser says it has, and no other.
#[test]
fn every_section_has_the_keys_that_the_parser_knows() {
    let schema = policy_schema(CATALOGUE);
    let full = as_json(FULL);
    let mut sections = Vec::new();
    closed(&schema, &schema, &full, &mut Vec::new(), &mut sections);
    let mut compared = 0;
    for (pointer, keys) in sections {
        let mut policy = full.clone();
        let own = policy.pointer_mut(&pointer).unwrap().as_object_mut().unwrap();
        own.insert("qqqqqqqqqqqqqqqqqqqq".into(), json!({}));
        let problems = parsed(&policy);
        let unknown = problems.iter().find(|own| own.code == Code::PolicyUnknownKey);
        let Some(hint) = unknown.and_then(|own| own.hint.as_deref()) else { continue };
        let Some(known) = hint.strip_prefix("it knows `").and_then(|own| own.strip_suffix('`'))
        else {
            continue;
        };
        let known: BTreeSet<&str> = known.split("`, `").collect();
        compared += 1;
        assert_eq!(keys.iter().map(String::as_str).collect::<BTreeSet<_>>(), known, "{pointer}");
    }
    assert!(compared >= 30, "{compared}");
}

/// The closed objects that a value holds, each with the keys that its schema names.
fn closed(
    root: &Value,
    schema: &Value,
    value: &Value,
    place: &mut Vec<String>,
    found: &mut Vec<(String, BTreeSet<String>)>,
) {
    if let Some(reference) = schema.get("$ref") {
        return closed(root, at(root, reference.as_str().unwrap()), value, place, found);
    }
    if let Some(ways) = schema.get("anyOf").and_then(Value::as_array) {
        if let Some(way) = ways.iter().find(|way| fits(root, way, value)) {
            closed(root, way, value, place, found);
        }
        return;
    }
    match value {
        Value::Object(map) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let more = schema.get("additionalProperties");
            if more == Some(&json!(false)) {
                let keys = properties.unwrap().keys().cloned().collect();
                found.push((place.iter().map(|part| format!("/{part}")).collect(), keys));
            }
            for (key, own) in map {
                let schema = properties.and_then(|known| known.get(key)).or(more);
                let Some(schema) = schema.filter(|own| own.is_object()) else { continue };
                place.push(key.replace('~', "~0").replace('/', "~1"));
                closed(root, schema, own, place, found);
                place.pop();
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let Some(schema) = schema.get("items") else { continue };
                place.push(index.to_string());
                closed(root, schema, item, place, found);
                place.pop();
            }
        }
        _ => {}
    }
}

/// Every preset is a policy that checks, that decides what its name says, and that can be named by a variable.
#[test]
fn presets_are_policies() {
    for (preset, command, decision) in [
        ("developer", "cargo test", "allow"),
        ("python", "python3 -m pytest", "allow"),
        ("node", "npm test", "allow"),
        ("rust", "cargo build", "allow"),
        ("readonly", "touch x", "deny"),
    ] {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        let _ = capsule.run(&["init", "--preset", preset]).exits(0);
        let policy = ".capsule/policy.yaml";
        let _ = capsule.run(&["policy", "check", "--policy", policy]).exits(0);
        let args = json!({ "command": command }).to_string();
        let line = ["policy", "explain", "--json", "--tool", "shell.run", "--args", &args];
        let output = capsule.command(&line).env("CAPSULE_POLICY", policy).output().unwrap();
        let named: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(named["decision"], decision, "{preset}: {named}");
        let tests = ["python", "node", "rust"].contains(&preset);
        let line = [
            "policy", "explain", "--json", "--tool", "test.run", "--args", "{}", "--policy", policy,
        ];
        let tested = capsule.run(&line).exits(0).json();
        assert_eq!(tested["decision"] == "allow", tests, "{preset}: {tested}");
    }
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let _ = capsule.run(&["init", "--preset", "haskell"]).exits(2);
}

/// A preset is not used over another policy, and says so before it writes anything; over its own text it changes nothing.
#[test]
fn a_preset_leaves_a_policy_alone() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let _ = capsule.run(&["init"]).exits(0);
    let policy = capsule.workspace().join(".capsule/policy.yaml");
    let starter = fs::read(&policy).unwrap();
    let refused = capsule.run(&["init", "--preset", "python"]).exits(2);
    assert!(refused.stderr.contains("`--preset` is not used"), "{}", refused.stderr);
    assert_eq!(fs::read(&policy).unwrap(), starter);
    let _ = capsule.run(&["init"]).exits(0);
    fs::remove_file(&policy).unwrap();
    for _ in 0..2 {
        let _ = capsule.run(&["init", "--preset", "node"]).exits(0);
    }
    let _ = capsule.run(&["init", "--preset", "rust"]).exits(2);
}

/// The tests of a Python project run in its virtual environment, if it has one.
#[test]
fn the_preset_of_python_takes_its_virtual_environment() {
    for (program, expected) in [(".venv/bin/python", "env"), ("none", "python3")] {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        let _ = capsule.write_program(program, "#!/bin/sh\necho \"ran $0 $*\"\n");
        let _ = capsule.run(&["init", "--preset", "python"]).exits(0);
        let policy = ".capsule/policy.yaml";
        let _ = capsule.run(&["policy", "check", "--policy", policy]).exits(0);
        let called = capsule.run(&["call", "test.run", "--policy", policy, "--json"]);
        let result = called.json()["result"].clone();
        assert_eq!(result["command"][0], expected, "{}", called.stdout);
        let is_of_environment =
            result["stdout"].as_str().unwrap().starts_with("ran .venv/bin/python -m pytest");
        assert_eq!(is_of_environment, expected == "env", "{result}");
    }
}

/// `init` writes the schema where the starter looks for it.
#[test]
fn init_writes_the_schema_that_the_starter_names() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let said = capsule.run(&["init", "--json"]).exits(0).json();
    assert_eq!(said["wrote"].as_array().unwrap().len(), 3, "{said}");
    let folder = capsule.workspace().join(".capsule");
    let starter = fs::read_to_string(folder.join("policy.yaml")).unwrap();
    let named = starter.lines().next().unwrap();
    let named = named.strip_prefix("# yaml-language-server: $schema=").unwrap();
    let written = fs::read_to_string(folder.join(named)).unwrap();
    let printed = capsule.run(&["policy", "schema"]).exits(0).json();
    assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), printed);
    assert!(fits(&printed, &printed, &as_json(&starter)));
    let again = capsule.run(&["init", "--json"]).exits(0).json();
    assert_eq!(again["kept"].as_array().unwrap().len(), 1, "{again}");
}
