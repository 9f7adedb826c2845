//! What people said to questions, as `policy learn` takes it.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panics"
)]

use std::fs;

use capsule_authoring::{EditablePolicy, LearnReport, PastCall, RecordedAnswer};
use capsule_base::digest::Digest;
use capsule_core::action::Facts;
use capsule_core::decision::Verdict;
use capsule_core::policy::Usage;
use capsule_core::tool::ToolName;
use capsule_policy::LoadedPolicy;
use capsule_runtime::{BoundPolicy, PolicyLoadOptions, PolicySource, TOOL_SET, describe};
use serde_json::json;
use tempfile::TempDir;

fn loaded_policy(folder: &TempDir) -> LoadedPolicy {
    let file = folder.path().join("policy.yaml");
    let text = "version: 1\nname: p\ntools: { fs.write: { paths: [\"docs/**\"] } }\n";
    fs::write(&file, text).unwrap();
    let workspace = folder.path().join("ws");
    fs::create_dir(&workspace).unwrap();
    let lookup = PolicyLoadOptions {
        source: &PolicySource::File(file),
        workspace: Some(&workspace),
        shell_cwd: None,
        cwd: &workspace,
        home: folder.path(),
        own_files: &[],
        user_layer: &folder.path().join("none.yaml"),
        profile: None,
    };
    BoundPolicy::load(&lookup).unwrap().loaded()
}

fn past(number: usize, path: &str, answer: RecordedAnswer) -> PastCall {
    let action = describe("fs.write", &json!({ "path": path, "content": "x" }), 0).unwrap();
    PastCall {
        label: format!("r-TEST:{number}"),
        tool: ToolName::unchecked("fs.write"),
        action,
        facts: Facts::default(),
        usage: Usage::default(),
        tainted: Vec::new(),
        args_digest: Digest::of(path.as_bytes()),
        verdict: Verdict::Ask,
        answer,
        expected: false,
    }
}

fn learned(calls: &[(&str, RecordedAnswer)]) -> LearnReport {
    let folder = tempfile::tempdir().unwrap();
    let policy = loaded_policy(&folder);
    let past: Vec<PastCall> = calls
        .iter()
        .enumerate()
        .map(|(index, (path, answer))| past(index + 1, path, *answer))
        .collect();
    EditablePolicy::parse(&policy, &TOOL_SET, None).unwrap().learn(&past).unwrap()
}

/// A yes is told with the proposal that comes of it; a no is kept, and no proposal changes a call that
/// a person said no to, not even one that others wished for.
#[test]
fn a_no_stays_a_no() {
    let both = learned(&[
        ("docs/a", RecordedAnswer::Yes),
        ("docs/b", RecordedAnswer::None),
        ("docs/c", RecordedAnswer::No),
    ]);
    let [proposal] = both.proposals.as_slice() else { panic!("{both:#?}") };
    assert_eq!((proposal.approvals, proposal.calls.len()), (1, 2), "{both:#?}");
    assert_eq!(proposal.steps[0].allows, ["docs/a", "docs/b"]);
    // What is wider would change the call that was declined, so it is none.
    assert_eq!(proposal.steps.len(), 1, "{both:#?}");
    let [kept] = both.still_refused.as_slice() else { panic!("{both:#?}") };
    assert_eq!((kept.call.as_str(), kept.reason.as_str()), ("r-TEST:3", "a person said no to it"));

    let same = learned(&[("docs/a", RecordedAnswer::Yes), ("docs/a", RecordedAnswer::No)]);
    assert!(same.proposals.is_empty() && same.text.is_none(), "{same:#?}");
    let why: Vec<&str> = same.still_refused.iter().map(|own| own.reason.as_str()).collect();
    assert_eq!(
        why,
        ["a person said no to it", "a person said no to r-TEST:2, which it would change"]
    );
}
