//! How far the tools of a host reach beside the files that they name: by patterns, by answers that differ, and by paths that
//! hosts read differently.

use super::*;

/// An agent with a file outside of its workspace, which the model may not read.
fn with_secret(host: &Host) -> Agent<'_> {
    let agent = Agent::new(host);
    fs::write(agent.capsule.directory().join("secret"), "alpha\n").unwrap();
    agent
}

#[track_caller]
fn is_unjudged(agent: &Agent<'_>, call: (&str, Value)) {
    let shown = format!("{} {call:?}", agent.host.name);
    let reason = agent.reason(&agent.ask(call));
    assert!(reason.contains("[hook.unjudged]"), "{shown}: {reason}");
}

/// A pattern finds files within the directory beside it, or none.
#[test]
fn a_pattern_that_leaves_its_directory_is_refused() {
    let hosts = [(&HOSTS[0], "Glob"), (&HOSTS[2], "glob"), (&HOSTS[3], "glob")];
    run_in_parallel(hosts, |(host, tool)| {
        let agent = Agent::new(host);
        let outside =
            ["/etc/*", "~/.ssh/*", "../home/*", "a/../../home/*", "{../home,a}/*", "{/etc,a}/*"];
        for pattern in outside {
            is_unjudged(&agent, (tool, json!({ "pattern": pattern })));
            is_unjudged(&agent, (tool, json!({ "pattern": pattern, "path": agent.path(".") })));
        }
        is_unjudged(&agent, (tool, json!({ "pattern": ["/etc/*"] })));
        for pattern in ["**/*.txt", "*.{txt,md}"] {
            let output = agent.ask((tool, json!({ "pattern": pattern }))).exits(0);
            assert!(output.stdout.contains(host.allow), "{pattern}: {output:?}");
        }
    });
}

/// An edit of a file that may not be read is answered alike, whatever is in the file.
#[test]
fn an_edit_says_nothing_of_a_file_that_may_not_be_read() {
    let claude = with_secret(&HOSTS[0]);
    let path = claude.capsule.directory().join("secret").display().to_string();
    let edits = |old: &str| {
        let edit = json!({ "old_string": old, "new_string": "x", "replace_all": true });
        let one =
            json!({ "file_path": path, "old_string": old, "new_string": "x", "replace_all": true });
        let all = [("Edit", one), ("MultiEdit", json!({ "file_path": path, "edits": [edit] }))];
        all.map(|call| claude.reason(&claude.ask(call)))
    };
    assert_eq!(edits("alpha"), edits("absent"));
    for reason in edits("alpha") {
        assert!(reason.contains("[path.outside-workspace]"), "{reason}");
    }
    let codex = with_secret(&HOSTS[1]);
    let patch = |old: &str| {
        let path = codex.capsule.directory().join("secret").display().to_string();
        let text =
            format!("*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+x\n*** End Patch\n");
        codex.reason(&codex.ask(("apply_patch", json!({ "command": text }))))
    };
    assert_eq!(patch("alpha"), patch("absent"));
    assert!(patch("alpha").contains("[path.outside-workspace]"), "{}", patch("alpha"));
}

/// A pipe is not waited for, a file that is made by edits can be made, and none grows without an end.
#[test]
fn edits_come_to_an_end() {
    let agent = Agent::new(&HOSTS[0]);
    let edit = |name: &str, edits: Value| {
        agent.ask(("MultiEdit", json!({ "file_path": agent.path(name), "edits": edits })))
    };
    let made = Command::new("mkfifo").arg(agent.path("pipe")).status().unwrap();
    assert!(made.success());
    let first = json!({ "old_string": "", "new_string": "a".repeat(1_000) });
    let reason = agent.reason(&edit("pipe", json!([first])));
    assert!(!reason.contains("[hook.deadline]"), "{reason}");
    let output = edit("new.txt", json!([first])).exits(0);
    assert!(output.stdout.contains(agent.host.allow), "{output:?}");
    let more = json!({ "old_string": "a", "new_string": "a".repeat(1_000), "replace_all": true });
    let reason = agent.reason(&edit("new.txt", json!([first, more, more, more])));
    assert!(reason.contains("[hook.unjudged]") && reason.contains("too large"), "{reason}");
}

/// A path is taken as it is by every host, or refused.
#[test]
fn a_path_that_hosts_read_differently_is_refused() {
    run_in_parallel(&HOSTS, |host| {
        let agent = Agent::new(host);
        let paths = [
            "~/x",
            "~",
            " a.txt",
            "a.txt ",
            "\ta.txt",
            "\u{feff}a.txt",
            "a\u{200b}.txt",
            "a.txt\n",
        ];
        for path in paths {
            is_unjudged(&agent, (host.read)(path));
        }
        let output = agent.ask((host.read)("a.txt")).exits(0);
        assert!(output.stdout.contains(host.allow), "{output:?}");
    });
    let codex = Agent::new(&HOSTS[1]);
    for path in ["~/x", " x", "x ", "\u{feff}/tmp/x"] {
        let text = format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n");
        is_unjudged(&codex, ("apply_patch", json!({ "command": text })));
    }
}

/// As for `capsule sandbox`, the root and the home directory are no workspaces.
#[test]
fn a_hook_refuses_a_workspace_that_holds_everything() {
    run_in_parallel(&HOSTS, |host| {
        let agent = Agent::new(host);
        for directory in ["/".to_owned(), agent.capsule.home().display().to_string()] {
            let mut input = agent.input((host.read)("a.txt"));
            input["cwd"] = json!(directory);
            let reason = agent.reason(&answered(agent.hook(), input.to_string().as_bytes()));
            assert!(
                reason.contains("[workspace.refused]: ") && reason.contains("is no workspace"),
                "{reason}"
            );
        }
    });
}

/// A denial that nothing can read is one by its status.
#[test]
fn a_hook_whose_output_is_closed_denies_by_its_status() {
    let agent = Agent::new(&HOSTS[0]);
    for to in [">&-", "> /dev/full", "> /dev/null"] {
        let mut shell = Command::new("sh");
        let policy = format!("--policy={}", agent.policy);
        let line = format!("\"$0\" hook claude-code \"$1\" {to}");
        shell.args(["-c", &line, env!("CARGO_BIN_EXE_capsule"), &policy]);
        shell.env("HOME", agent.capsule.home()).current_dir(agent.capsule.workspace());
        assert_eq!(answered(shell, b"{}").status, 2, "{to}");
    }
}

/// A hook that the agent would not ask is not connected, and a copy of settings is no more open than they are.
#[test]
fn settings_in_which_no_hook_is_asked_are_refused() {
    let agent = Agent::new(&HOSTS[0]);
    let path = agent.capsule.home().join(".claude/settings.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let refused = [
        "{\"disableAllHooks\": true}",
        "{\"hooks\": {}, \"hooks\": {}}",
        "{\"hooks\": {\"PreToolUse\": [], \"PreToolUse\": []}}",
    ];
    for text in refused {
        fs::write(&path, text).unwrap();
        let _ = agent.capsule.run(&["connect", "claude-code"]).exits(2);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    let theirs = "{\"env\": {\"KEY\": \"x\"}}\n";
    fs::write(&path, theirs).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let _ = agent.capsule.run(&["connect", "claude-code"]).exits(0);
    let policy = format!("--policy={}", agent.policy);
    let _ = agent.capsule.run(&["connect", "claude-code", &policy]).exits(0);
    let copy = path.with_extension("json.before-capsule");
    assert_eq!(fs::read_to_string(&copy).unwrap(), theirs);
    for file in [&path, &copy] {
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
