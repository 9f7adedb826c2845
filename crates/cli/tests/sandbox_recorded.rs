//! A whole agent as the call of a run: it reaches the hosts of a policy, works in a copy of the workspace, or both.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

mod terminal;

use std::fs;

use capsule_testkit::{Capsule, CommandOutput, HttpServer};
use serde_json::{Value, json};
use terminal::Terminal;

/// A workspace with a file, a server, and a policy with these words about hosts.
struct Stage {
    capsule: Capsule,
    server: HttpServer,
    policy: String,
}

impl Stage {
    fn new(hosts: &str) -> Self {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        capsule.write_file("a.txt", "one\n");
        capsule.write_file(".env", "KEY=secret\n");
        let server = HttpServer::fixed("200 OK", "", "a page");
        let (hosts, port) = (hosts.replace("PORT", &server.port().to_string()), server.port());
        let policy = capsule.write_policy(&format!(
            "version: 1
sandbox:
  network:
    shell.run: proxy
    hosts: {{ {hosts} }}
    private_ips: {{ allow: [127.0.0.1] }}
    loopback: {{ connect: [{port}] }}
"
        ));
        Self { capsule, server, policy }
    }

    /// A line that fetches from the server through the proxy.
    fn fetch(&self) -> String {
        let port = self.server.port();
        format!("curl -sS --fail --noproxy '' -m 5 http://localhost:{port}/x")
    }

    fn run(&self, options: &[&str], line: &str) -> CommandOutput {
        self.capsule.run(&[&["sandbox"], options, &["--", "sh", "-c", line]].concat())
    }

    fn call(&self) -> Value {
        let report = self.capsule.run(&["report", "latest", "--json"]).json();
        report["calls"][0].clone()
    }

    fn connections(&self) -> Vec<(Value, Value)> {
        let call = self.call();
        let all = call["connections"].as_array().unwrap().iter();
        all.map(|one| (one["refused"].clone(), one["target"]["allowed_by"].clone())).collect()
    }

    /// The record holds, and a replay ends as the agent did, with no server.
    fn replays(self, status: i32) {
        drop(self.server);
        let replayed = self.capsule.run(&["replay", "latest"]).exits(status);
        assert!(replayed.stderr.contains("nothing was executed"), "{replayed:?}");
        let _ = self.capsule.run(&["verify"]).exits(0);
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.capsule.workspace().join(path)).unwrap_or_default()
    }
}

/// SBX-7: through the proxy alone, and on record, whichever way the agent tries.
#[test]
fn an_agent_reaches_the_hosts_of_its_policy() {
    let stage = Stage::new("allow: [\"localhost:PORT\"]");
    let proxied = ["--network", "proxy", "--policy", &stage.policy];
    let line = format!(
        "{}; curl -sS --noproxy '' -m 5 http://other.test/; \
         curl -sS --noproxy '*' -m 5 http://1.1.1.1/; curl -sS http://host.docker.internal:{}/; \
         echo changed > a.txt; exit 7",
        stage.fetch(),
        stage.server.port()
    );
    let ran = stage.run(&proxied, &line).exits(7);
    assert!(ran.stdout.starts_with("a page"), "{ran:?}");
    assert!(ran.stderr.contains("refused: other.test:80: the policy names no host"), "{ran:?}");
    assert_eq!(stage.text("a.txt"), "changed\n", "written directly");
    let refused = stage.connections().into_iter().map(|(refused, _)| refused);
    let refused: Vec<Value> = refused.collect();
    assert_eq!(refused, [Value::Null, json!("net.not-allowed"), Value::Null]);
    assert_eq!(stage.server.requests().len(), 2, "by the proxy, and by the port of the loopback");
    stage.replays(7);
}

/// What it changes waits like what commands change: looked at, applied in part, undone.
#[test]
fn changes_of_an_agent_are_staged() {
    let stage = Stage::new("allow: [\"localhost:PORT\"]");
    let options = ["--staged", "--network", "proxy", "--policy", &stage.policy];
    let line = format!(
        "{} > page.txt; echo two >> a.txt; mkdir -p d .claude; echo x > d/y; echo '{{}}' > .claude/settings.json; cat .env",
        stage.fetch()
    );
    let ran = stage.run(&options, &line);
    assert!(!ran.stdout.contains("secret"), "the copy has no credentials: {ran:?}");
    assert!(ran.stderr.contains("capsule changes"), "{ran:?}");
    assert_eq!(stage.text("a.txt"), "one\n");
    let shown = stage.capsule.run(&["changes", "latest"]).stdout;
    for change in ["M a.txt", "A d/y", "A page.txt", "A .claude/settings.json"] {
        assert!(shown.contains(change), "{shown}");
    }
    let _ = stage.capsule.run(&["apply", "latest"]).exits(3);
    assert_eq!(stage.text("a.txt"), "one\n", "nothing of it, as long as a part is refused");
    let _ = stage.capsule.run(&["apply", "latest", "--without", ".claude"]).exits(0);
    assert_eq!(
        (stage.text("a.txt"), stage.text("page.txt")),
        ("one\ntwo\n".into(), "a page".into())
    );
    assert!(!stage.capsule.workspace().join(".claude").exists());
    let _ = stage.capsule.run(&["undo", "latest"]).exits(0);
    assert_eq!((stage.text("a.txt"), stage.text("page.txt")), ("one\n".into(), String::new()));
    let leftovers = fs::read_dir(stage.capsule.store().with_extension("db.staged"));
    assert_eq!(leftovers.map_or(0, Iterator::count), 0, "nothing of the copy stays");
}

/// A host is asked about at the agent's own terminal, which the agent has again afterwards.
#[test]
fn a_person_is_asked_about_a_host_of_an_agent() {
    let stage = Stage::new("others: ask");
    let line = format!("printf 'begun\\n'; {}; read word; echo \"got $word\"", stage.fetch());
    let words =
        ["sandbox", "--network", "proxy", "--policy", &stage.policy, "--", "sh", "-c", &line];
    let mut screen = Terminal::start(&stage.capsule, &words);
    screen.card();
    assert!(stage.server.requests().is_empty(), "nothing is sent before the answer");
    screen.press("1");
    screen.until("a page");
    screen.press("again\r");
    screen.until("got again");
    assert_eq!(screen.end().0, 0);
    assert_eq!(stage.connections(), [(Value::Null, json!("a person"))]);
    // With nobody there it is refused at once, and the agent is told.
    let ran = stage.run(&words[1..5], &stage.fetch()).exits(22);
    assert!(ran.stderr.contains("403"), "{ran:?}");
    assert_eq!(stage.connections()[0].0, json!("approval.needed"));
    stage.replays(22);
}

/// What cannot be had is refused before anything begins; a profile that denies a power denies the agent.
#[test]
fn refusals_come_before_the_agent() {
    let stage = Stage::new("others: ask");
    let policy = stage.capsule.write_file(
        "closed.yaml",
        "version: 1
profile: closed
profiles: { closed: { decide: { proc.exec: deny, \"*\": allow } } }
",
    );
    let policy = policy.to_str().unwrap();
    for (options, status, text) in [
        (&["--network", "proxy", "--policy", "builtin:readonly"][..], 2, "opens no host"),
        (&["--policy", &stage.policy], 2, "a policy judges no agent"),
        (&["--staged", "--backend", "docker"], 2, "in a container"),
        (&["--staged", "--policy", policy], 3, "closed"),
        (&["--staged", "--policy", "no.yaml"], 2, "cannot be read"),
    ] {
        let ran = stage.run(options, "echo ran > a.txt; echo ran").exits(status);
        assert!(ran.stderr.contains(text) && ran.stdout.is_empty(), "{options:?}: {ran:?}");
    }
    let ran = stage.run(&["--staged", "--policy", &stage.policy], "exit 0").exits(0);
    assert!(ran.stderr.contains("recorded as"), "{ran:?}");
    let ran = stage.capsule.run(&["call", "agent.run", "--policy", &stage.policy, "--", "sh"]);
    assert!(ran.status != 0 && !ran.stdout.contains("exit_code"), "no agent by a call: {ran:?}");
}
