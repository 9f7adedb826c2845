//! What a run is told by is out of its reach, also where it is named through links: whoever replaces one of
//! them puts another file in the place of the one that was meant.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::fs;
use std::os::unix::fs::symlink;

use capsule_testkit::Capsule;
use serde_json::json;

const POLICY: &str = r#"version: 1
name: linked
sandbox: { workspace: MODE }
tools:
  fs.read: { decision: allow, hidden: allow, paths: ["**"] }
  fs.write: { decision: allow, paths: ["**"] }
  fs.delete: { decision: allow, paths: ["**"] }
  shell.run:
    limits: { timeout: 30s }
    executables:
      perl: { decision: allow, writes: ["**"] }
"#;

/// A workspace with its policy and its store in it, and links that lead there: to the file, to another link,
/// and to its folder.
fn bed(mode: &str) -> Capsule {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let root = capsule.workspace();
    let _ = capsule.write_file("config/rules.yaml", POLICY.replace("MODE", mode));
    fs::create_dir_all(root.join("state")).unwrap();
    for (target, link) in [
        ("config/rules.yaml", "rules"),
        ("rules", "again"),
        ("config", "folder"),
        ("state", "kept"),
        ("config/rules.yaml", "other"),
    ] {
        symlink(target, root.join(link)).unwrap();
    }
    capsule
}

/// A name for the policy, and a link on the way to it.
const NAMED: [(&str, &str); 4] =
    [("rules", "rules"), ("again", "again"), ("again", "rules"), ("folder/rules.yaml", "folder")];

#[test]
fn a_command_replaces_no_link_to_the_policy() {
    for mode in ["staged", "direct"] {
        for (named, link) in NAMED {
            let capsule = bed(mode);
            let script = format!(
                "unlink '{link}' or die; open(my $f, '>', '{link}') or die; print $f 'version: 1'; close $f"
            );
            let line = ["exec", "--policy", named, "--json", "--", "perl", "-e", &script];
            let ran = capsule.run(&line);
            let answer = ran.json();
            if mode == "staged" {
                assert_eq!(answer["code"], "change.refused", "{named}: {answer}");
                assert!(answer["reason"].as_str().unwrap().contains("own rules"), "{answer}");
                let _ = capsule.run(&["apply", "latest"]).exits(3);
            } else {
                assert_eq!(answer["code"], "exec.exit-nonzero", "{named} {link}: {answer}");
            }
            let still = capsule.workspace().join(link);
            assert!(still.symlink_metadata().unwrap().is_symlink(), "{mode}: {link} of {named}");
            // What leads there and was not taken is a link like any other.
            let other =
                ["exec", "--policy", named, "--json", "--", "perl", "-e", "unlink 'other' or die"];
            let _ = capsule.run(&other).exits(0);
        }
    }
}

#[test]
fn no_tool_replaces_a_link_to_what_the_run_is_told_by() {
    for (named, link) in NAMED {
        let capsule = bed("direct");
        for (tool, args) in [
            ("fs.delete", json!({ "path": link })),
            ("fs.write", json!({ "path": link, "content": "version: 1" })),
        ] {
            let args = args.to_string();
            let line = ["call", tool, "--policy", named, "--args", &args];
            let ran = capsule.run(&line).exits(3);
            if tool == "fs.delete" {
                assert_eq!(ran.json()["rule"], "no-own-files", "{tool} {link}: {}", ran.json());
            }
        }
    }
    // The record, too, by a folder that is a link.
    let capsule = bed("direct");
    let args = json!({ "path": "kept" }).to_string();
    let line =
        ["call", "fs.delete", "--policy", "rules", "--store", "kept/own.db", "--args", &args];
    let ran = capsule.run(&line).exits(3);
    assert_eq!(ran.json()["rule"], "no-own-files", "{}", ran.json());
}
