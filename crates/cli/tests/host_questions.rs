//! A host is asked about when a command first needs it, while the connection waits: a real program, a real server on
//! loopback, and a person in a real pseudo-terminal.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::thread;
use std::time::Duration;

use capsule_testkit::{Capsule, HttpServer};
use serde_json::{Value, json};

mod terminal;

use terminal::Terminal;

/// A policy with these words about hosts, under which a command has two seconds.
fn policy(capsule: &Capsule, hosts: &str) -> String {
    capsule.write_policy(&format!(
        "version: 1
extends: builtin:developer
sandbox:
  network:
    shell.run: proxy
    hosts: {{ {hosts} }}
    private_ips: {{ allow: [127.0.0.1] }}
budgets: {{ attention: {{ prompts: 3, per: 1h }} }}
tools:
  shell.run:
    effects: {{ network: allow, code: allow, unknown: allow }}
    env: {{ set: {{ NO_PROXY: \"\", no_proxy: \"\" }} }}
    limits: {{ timeout: 2s }}
    executables: {{ curl: allow, python3: allow }}
"
    ))
}

/// A server, a policy, and a program that fetches from it so many times.
struct Stage {
    capsule: Capsule,
    server: HttpServer,
    policy: String,
}

impl Stage {
    fn new(hosts: &str) -> Self {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        let server = HttpServer::fixed("200 OK", "", "a page");
        let policy = policy(&capsule, &hosts.replace("PORT", &server.port().to_string()));
        capsule.write_file(
            "fetch.py",
            "import sys, urllib.error, urllib.request
for _ in range(int(sys.argv[2])):
    try:
        print(urllib.request.urlopen(sys.argv[1]).read().decode())
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode())
",
        );
        Self { capsule, server, policy }
    }

    /// The same policy, where a program that uses the network is asked about, and what sends each time.
    fn policy_that_asks(&self) -> String {
        let policy = std::fs::read_to_string(&self.policy).unwrap();
        let policy = policy.replace("network: allow, ", "network: ask, sends: ask-each, ");
        self.capsule.write_policy(&policy.replace("curl: allow, ", ""))
    }

    fn url(&self) -> String {
        format!("http://localhost:{}/x", self.server.port())
    }

    fn host(&self) -> String {
        format!("localhost:{}", self.server.port())
    }

    fn args(&self, times: &str) -> Vec<String> {
        let url = self.url();
        ["exec", "--policy", &self.policy, "--", "python3", "fetch.py", &url, times]
            .map(str::to_owned)
            .to_vec()
    }

    /// Fetches in a terminal.
    fn fetch(&self, times: &str) -> Terminal {
        let args = self.args(times);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        Terminal::start(&self.capsule, &args)
    }

    fn report(&self) -> Value {
        self.capsule.run(&["report", "latest", "--json"]).json()
    }

    /// The connections of the last run's calls: whether each was refused, and who allowed it.
    fn connections(&self) -> Vec<(Value, Value)> {
        let report = self.report();
        let calls = report["calls"].as_array().unwrap();
        let all = calls.iter().filter_map(|call| call["connections"].as_array()).flatten();
        all.map(|one| (one["refused"].clone(), one["target"]["allowed_by"].clone())).collect()
    }

    /// The record holds, and a replay serves it with the server gone and no person there.
    fn replays(self, status: i32) {
        let Self { capsule, server, .. } = self;
        drop(server);
        let replayed = capsule.run(&["replay", "latest"]);
        assert_eq!(replayed.status, status, "{}{}", replayed.stdout, replayed.stderr);
        assert!(replayed.stderr.contains("nothing was executed"), "{}", replayed.stderr);
        assert_eq!(capsule.run(&["verify"]).status, 0);
    }
}

/// One yes is for all connections of the command to the host. The person's time is none of the command's.
#[test]
fn a_person_allows_a_host_for_a_command() {
    let stage = Stage::new("others: ask");
    let mut screen = stage.fetch("3");
    screen.until("Approve?");
    screen.until(&stage.host());
    screen.until("for `python3 fetch.py");
    screen.until("the command runs already, and waits");
    screen.until("digits answer");
    thread::sleep(Duration::from_millis(2_500));
    assert!(stage.server.requests().is_empty(), "nothing is sent before the answer");
    screen.press("1");
    let (status, shown) = screen.end();
    assert_eq!((status, shown.matches("a page").count()), (0, 3), "{shown}");
    let allowed = (Value::Null, json!("a person"));
    assert_eq!(stage.connections(), vec![allowed; 3]);
    let report = stage.capsule.run(&["report", "latest"]).stdout;
    assert!(report.contains("allowed by a person") && report.contains("prompts 1"), "{report}");
    stage.replays(0);
}

/// A yes to a command is one to the hosts that its words name, for what is sent as for what is fetched; where a
/// redirect leads is asked about.
#[test]
fn a_yes_to_a_command_is_one_to_the_hosts_that_it_names() {
    let stage = Stage::new("others: ask");
    let policy = stage.policy_that_asks();
    let url = stage.url();
    for (more, requests) in [(&[][..], 1), (&["-d", "word"][..], 2)] {
        let words = ["exec", "--policy", &policy, "--", "curl", "-sS", &url];
        let mut screen = Terminal::start(&stage.capsule, &[&words[..], more].concat());
        screen.card();
        screen.press("1");
        let (status, shown) = screen.end();
        assert_eq!((status, shown.matches("Approve?").count()), (0, 1), "{shown}");
        assert_eq!(stage.server.requests().len(), requests);
        assert_eq!(stage.connections(), [(Value::Null, json!("a person"))]);
    }
    stage.replays(0);
}

/// A yes to a command is one to what its words show: what another program of its pipeline sends to the same host is
/// asked about, and what its one program that may use the network sends is not.
#[test]
fn a_yes_covers_no_other_program_of_a_pipeline() {
    let stage = Stage::new("others: ask");
    let policy = stage.policy_that_asks();
    stage.capsule.write_file(
        "send.py",
        "import sys, urllib.request
sys.stdin.read()
urllib.request.urlopen(sys.argv[1], data=b'word').read()
",
    );
    let url = stage.url();
    for (line, questions) in [
        // One question too many would wait for an answer.
        (format!("cat send.py | curl -sS -d @- {url}"), 1),
        (format!("curl -sS {url} | python3 send.py {url}"), 2),
        (format!("curl -sS -d word {url} | python3 send.py {url}"), 3),
    ] {
        let mut screen =
            Terminal::start(&stage.capsule, &["exec", "--policy", &policy, "--", &line]);
        for _ in 0..questions {
            screen.card();
            screen.press("1");
        }
        let (status, shown) = screen.end();
        assert_eq!(status, 0, "{line}{shown}");
    }
    stage.replays(0);
}

/// Over plain HTTP it is seen what a program sends, and asked about each time.
#[test]
fn each_request_that_sends_is_asked_about() {
    let stage = Stage::new("allow: [\"localhost:PORT\"]");
    stage.capsule.write_file(
        "send.py",
        "import sys, urllib.request
for _ in range(2):
    print(urllib.request.urlopen(sys.argv[1], data=b'word').read().decode())
",
    );
    let url = stage.url();
    let words = ["exec", "--policy", &stage.policy, "--", "python3", "send.py", &url];
    let mut screen = Terminal::start(&stage.capsule, &words);
    for _ in 0..2 {
        screen.until("would send something");
        screen.card();
        screen.press("1");
    }
    let (status, shown) = screen.end();
    assert_eq!((status, shown.matches("a page").count()), (0, 2), "{shown}");
    let requests = stage.server.requests();
    assert!(requests.iter().all(|request| request.body == b"word"), "{requests:?}");
    stage.replays(0);
}

/// A no is told to the program, to the model and to the record, with the person's reason; nothing is dialled.
#[test]
fn a_person_denies_a_host_with_a_reason() {
    let stage = Stage::new("others: ask");
    let mut screen = stage.fetch("2");
    screen.card();
    screen.press("4");
    screen.until("Why not?");
    screen.type_slowly("use the copy in vendor\r");
    let (status, shown) = screen.end();
    assert_eq!(
        (status, shown.matches("use the copy in vendor").count() >= 2),
        (0, true),
        "{shown}"
    );
    assert!(stage.server.requests().is_empty());
    assert_eq!(stage.connections(), vec![(json!("approval.denied"), Value::Null); 2]);
    let refused = stage.report()["calls"][0]["result"]["refused_hosts"].clone();
    let expected = json!({
        "host": stage.host(), "code": "approval.denied", "reason": "use the copy in vendor",
    });
    assert_eq!(refused, json!([expected]));
    stage.replays(0);
}

/// A yes for the session is a grant, which the next step of a plan uses without a question.
#[test]
fn a_grant_answers_for_a_host() {
    let stage = Stage::new("others: ask");
    let step = |id: &str| {
        let url = stage.url();
        format!("  - {{ id: {id}, tool: shell.run, args: {{ argv: [curl, -sS, \"{url}\"] }} }}\n")
    };
    let plan = format!("version: 1\nname: fetch\nsteps:\n{}{}", step("one"), step("two"));
    stage.capsule.write_file("plan.yaml", &plan);
    let args = ["run", "--policy", &stage.policy, "plan.yaml"];
    let mut screen = Terminal::start(&stage.capsule, &args);
    screen.card();
    screen.press("2");
    let (status, shown) = screen.end();
    assert_eq!(status, 0, "{shown}");
    assert_eq!(stage.server.requests().len(), 2);
    let connections = stage.connections();
    assert_eq!(connections[0].1, "a person");
    assert!(connections[1].1.as_str().unwrap().starts_with("grant r-"), "{connections:?}");
    stage.replays(0);
}

/// The files that calls read before are on the card of a host and of a command that sends: it may be what is sent.
#[test]
fn what_was_read_before_is_on_the_card() {
    let stage = Stage::new("others: ask");
    let policy = std::fs::read_to_string(&stage.policy).unwrap();
    let policy = stage
        .capsule
        .write_policy(&policy.replace("network: allow, ", "network: allow, sends: ask-each, "));
    for number in 0..9 {
        stage.capsule.write_file(&format!("notes-{number}.md"), "a note");
    }
    let read = |number: usize| {
        format!("  - {{ id: read-{number}, tool: fs.read, args: {{ path: notes-{number}.md }} }}\n")
    };
    let run = |id: &str, argv: Value| {
        format!("  - {{ id: {id}, tool: shell.run, args: {{ argv: {argv} }} }}\n")
    };
    let url = stage.url();
    let steps = [
        (0..8).map(read).collect::<String>(),
        run("look", json!(["cat", "notes-8.md"])),
        run("fetch", json!(["python3", "fetch.py", url, "1"])),
        run("send", json!(["curl", "-sS", "-d", "@notes-8.md", url])),
    ];
    let plan = format!("version: 1\nname: fetch\nsteps:\n{}", steps.concat());
    stage.capsule.write_file("plan.yaml", &plan);
    let mut screen = Terminal::start(&stage.capsule, &["run", "--policy", &policy, "plan.yaml"]);
    let cards = [("`notes-8.md` (call 9)", "3 more"), ("`fetch.py` (call 10)", "4 more")];
    for (newest, more) in cards {
        screen.until("has read");
        screen.until(newest);
        screen.until(more);
        screen.card();
        screen.press("1");
    }
    let (status, shown) = screen.end();
    assert_eq!(status, 0, "{shown}");
    stage.replays(0);
}

/// Where each connection is asked about, an answer is for one; and no more is asked than the policy lets a person be.
#[test]
fn each_connection_is_asked_about() {
    let stage = Stage::new("ask-each: [\"localhost:PORT\"]");
    let mut screen = stage.fetch("5");
    for _ in 0..3 {
        screen.card();
        screen.press("1");
    }
    let (status, shown) = screen.end();
    assert_eq!((status, shown.matches("a page").count()), (0, 3), "{shown}");
    let connections = stage.connections();
    assert_eq!(connections.iter().filter(|(refused, _)| *refused == "approval.needed").count(), 2);
    stage.replays(0);
}

/// Where a person says that nothing may follow, the command is ended.
#[test]
fn a_person_stops_the_command() {
    let stage = Stage::new("others: ask");
    let mut screen = stage.fetch("1");
    screen.card();
    screen.press("5");
    let (status, shown) = screen.end();
    assert_eq!(status, 3, "{shown}");
    assert_eq!(stage.report()["calls"][0]["problem"]["code"], "approval.stopped");
    assert!(stage.server.requests().is_empty());
    stage.replays(3);
}

/// With no person there, a host is refused at once. What the policy names is reached without a question, and what it
/// denies is never asked about.
#[test]
fn no_question_where_no_person_is() {
    for (hosts, refused) in [
        ("others: ask", json!("approval.needed")),
        ("allow: [\"localhost:PORT\"], others: ask", Value::Null),
        ("deny: [localhost], others: ask", json!("policy.denied")),
        ("others: deny", json!("net.not-allowed")),
    ] {
        let stage = Stage::new(hosts);
        let args = stage.args("1");
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let ran = stage.capsule.run(&args);
        assert_eq!(
            stage.connections(),
            [(refused.clone(), Value::Null)],
            "{hosts}: {}",
            ran.stderr
        );
        assert_eq!(stage.server.requests().len(), usize::from(refused.is_null()), "{hosts}");
        stage.replays(0);
    }
}
