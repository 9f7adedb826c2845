//! Claude Code with our server in place of its built-in tools.

use super::*;

const SERVERS: &str = "{\n  \"numStartups\": 3,\n  \"mcpServers\": {\n    \"mail\": { \"command\": \"mail\", \"args\": [] }\n  }\n}\n";
const SETTINGS: &str = "{\n  \"permissions\": {\n    \"deny\": [\n      \"WebSearch\"\n    ],\n    \"allow\": []\n  },\n  \"hooks\": { \"PreToolUse\": [] }\n}\n";

/// The two files of a home.
struct Files<'a> {
    agent: &'a Agent<'a>,
}

impl Files<'_> {
    const NAMES: [&'static str; 2] = [".claude.json", ".claude/settings.json"];

    fn write(&self, texts: [&str; 2]) {
        fs::create_dir_all(self.agent.capsule.home().join(".claude")).unwrap();
        for (name, text) in Self::NAMES.iter().zip(texts) {
            fs::write(self.agent.capsule.home().join(name), text).unwrap();
        }
    }

    fn texts(&self) -> [String; 2] {
        Self::NAMES.map(|name| fs::read_to_string(self.agent.capsule.home().join(name)).unwrap())
    }

    fn values(&self) -> [Value; 2] {
        self.texts().map(|text| serde_json::from_str(&text).unwrap())
    }

    fn connect(&self, more: &[&str]) -> CommandOutput {
        self.agent.capsule.run(&[&["connect", "claude-code"], more].concat())
    }
}

/// The server goes in beside others, the tools are denied beside what was denied, once, and all of it goes out again.
#[test]
fn tools_are_replaced_and_given_back() {
    let agent = Agent::new(&HOSTS[0]);
    let files = Files { agent: &agent };
    files.write([SERVERS, SETTINGS]);
    let replace = ["--level", "replace"];
    let shown = files.connect(&[&replace[..], &["--print"]].concat()).exits(0);
    for part in ["mcpServers", "\"Bash\"", "mcp__capsule", "hook claude-code"] {
        assert!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
    assert_eq!(files.texts(), [SERVERS, SETTINGS], "nothing is written by --print");
    let done = files.connect(&replace).exits(0);
    assert!(done.stderr.contains("level 3") && done.stderr.contains("not covered"), "{done:?}");
    let [servers, settings] = files.values();
    assert_eq!(servers["mcpServers"]["mail"], json!({ "command": "mail", "args": [] }));
    let server = &servers["mcpServers"]["capsule"];
    assert_eq!(server["command"], json!(env!("CARGO_BIN_EXE_capsule")));
    assert_eq!(server["args"].as_array().unwrap()[..2], [json!("mcp"), json!("serve")]);
    let denied = settings["permissions"]["deny"].as_array().unwrap();
    for tool in ["Bash", "Read", "Edit", "Write", "WebFetch"] {
        assert_eq!(denied.iter().filter(|rule| **rule == tool).count(), 1, "{tool}: {denied:?}");
    }
    // Our tools, each by its whole name: a server `capsule__evil` has tools that begin like ours.
    let allowed = settings["permissions"]["allow"].as_array().unwrap();
    let tools: Vec<_> =
        allowed.iter().filter_map(|rule| rule.as_str()?.strip_prefix("mcp__capsule__")).collect();
    assert!(tools.contains(&"fs_read") && tools.contains(&"shell_run"), "{allowed:?}");
    assert_eq!(tools.len(), allowed.len(), "{allowed:?}");
    let matcher = settings["hooks"]["PreToolUse"][0]["matcher"].as_str().unwrap();
    assert_eq!(matcher, format!("^(?!mcp__capsule__({})$).*", tools.join("|")));
    for (name, before) in Files::NAMES.iter().zip([SERVERS, SETTINGS]) {
        let backup = agent.capsule.home().join(format!("{name}.before-capsule"));
        assert_eq!(fs::read_to_string(backup).unwrap(), before);
    }
    let again = files.connect(&replace).exits(0);
    assert!(again.stderr.contains("already"), "{again:?}");
    assert!(agent.doctor().contains("level 3"), "{}", agent.doctor());
    // A tool that was given back by hand is told, and denied anew.
    let [_, text] = files.texts();
    let open = text.replacen("\"Bash\",", "", 1);
    fs::write(agent.capsule.home().join(Files::NAMES[1]), open).unwrap();
    assert!(agent.doctor().contains("not denied: Bash"), "{}", agent.doctor());
    let _ = files.connect(&replace).exits(0);
    assert!(agent.doctor().contains("level 3"), "{}", agent.doctor());
    // What another version wrote, which had a tool that is no more and lacked one, is told, and written anew.
    let [_, text] = files.texts();
    let other = text.replace("fs_read|", "fs_peek|").replace("__fs_read\"", "__fs_peek\"");
    fs::write(agent.capsule.home().join(Files::NAMES[1]), other).unwrap();
    assert!(agent.doctor().contains("tools of another version"), "{}", agent.doctor());
    let _ = files.connect(&replace).exits(0);
    assert!(!files.texts()[1].contains("fs_peek") && agent.doctor().contains("level 3"));
    let _ = files.connect(&["--undo"]).exits(0);
    assert_eq!(
        files.values(),
        [SERVERS, SETTINGS].map(|text| serde_json::from_str::<Value>(text).unwrap())
    );
    assert_eq!(files.texts(), [SERVERS, SETTINGS]);
    assert_eq!(agent.doctor(), "");
}

/// One level takes the place of the other.
#[test]
fn a_level_takes_the_place_of_the_other() {
    let agent = Agent::new(&HOSTS[0]);
    let files = Files { agent: &agent };
    files.write(["", SETTINGS]);
    let _ = files.connect(&[]).exits(0);
    let [_, by_hook] = files.texts();
    let _ = files.connect(&["--level", "replace"]).exits(0);
    assert_eq!(files.texts()[1].matches("hook claude-code").count(), 1);
    assert_eq!(files.values()[1]["hooks"]["PreToolUse"].as_array().unwrap().len(), 1);
    let _ = files.connect(&["--level", "hook"]).exits(0);
    assert_eq!(files.texts()[1], by_hook);
    assert_eq!(files.values()[0], json!({ "mcpServers": {} }));
}

/// What cannot be done is refused, with a way on, and changes nothing.
#[test]
fn what_cannot_be_replaced_is_refused() {
    let agent = Agent::new(&HOSTS[0]);
    let files = Files { agent: &agent };
    let other = "{ \"mcpServers\": { \"capsule\": { \"command\": \"other\", \"args\": [] } } }\n";
    let twice = "{ \"permissions\": {}, \"permissions\": { \"deny\": [] } }\n";
    for texts in [[other, SETTINGS], [SERVERS, twice], ["[]", SETTINGS], [SERVERS, "{"]] {
        files.write(texts);
        let refused = files.connect(&["--level", "replace"]).exits(2);
        assert!(refused.stderr.contains("cannot be changed"), "{texts:?}: {refused:?}");
        assert_eq!(files.texts(), texts);
    }
    for name in ["codex", "gemini", "opencode"] {
        let refused = agent.capsule.run(&["connect", name, "--level", "replace"]).exits(2);
        assert!(
            refused.stderr.contains("cannot be replaced") && refused.stderr.contains("sandbox"),
            "{name}: {refused:?}"
        );
    }
}
