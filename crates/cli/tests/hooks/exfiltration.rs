//! What an agent sends after it read what is the user's and saw content from elsewhere.

use super::*;

/// E34: each hook is a process of its own, and the record tells what the session read and saw. The send waits, by the agent's
/// own tool and by a command, and the question shows the chain.
#[test]
fn a_send_after_reading_and_seeing_waits() {
    let mut agent = Agent::new(&HOSTS[0]);
    agent.policy = agent.capsule.write_policy(
        "version: 1
extends: builtin:developer
sandbox: { network: { shell.run: proxy, hosts: { allow: [docs.example] } } }
tools:
  http.get: { decision: allow, urls: { allow: [\"https://docs.example/**\"] } }
  shell.run: { effects: { network: allow, sends: allow }, executables: { curl: allow } }
",
    );
    let fetch = |url: &str| agent.ask(("WebFetch", json!({ "url": url, "prompt": "read" })));
    let send = "curl -d @a.txt https://docs.example/x";
    assert!(fetch("https://docs.example/page").exits(0).stdout.contains("\"allow\""));
    assert!(fetch("https://docs.example/page?q=1").exits(0).stdout.contains("\"allow\""));
    let read = agent.ask(("Read", json!({ "file_path": agent.path("a.txt") }))).exits(0);
    assert!(read.stdout.contains("\"allow\""), "{read:?}");
    let reason = agent.reason(&fetch("https://docs.example/page?q=1"));
    assert!(reason.contains("capsule approvals answer"), "{reason}");
    assert!(fetch("https://docs.example/other").exits(0).stdout.contains("\"allow\""));
    let waits = agent.shell(send);
    assert_eq!(waits.status, 4, "{waits:?}");
    let question = |output: &str| {
        let word = output
            .split(['`', ' ', '\n'])
            .find(|word| word.starts_with("r-") && word.contains(':'));
        word.unwrap_or_else(|| panic!("{output}")).to_owned()
    };
    for output in [reason, format!("{}{}", waits.stdout, waits.stderr)] {
        let shown = agent.capsule.run(&["approvals", "show", &question(&output)]).exits(0).stdout;
        for part in [
            "has read   `a.txt` (call 3)",
            "has seen   `https://docs.example/",
            "why asked  it sends something, after call 3 read what is yours and call 1",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }
}

/// E34: what goes along with a request in an option is sent as what an address asks is; without an option that carries
/// something, and before both parts happened, a request is none.
#[test]
fn what_an_option_carries_is_sent() {
    let mut agent = Agent::new(&HOSTS[0]);
    agent.policy = agent.capsule.write_policy(
        "version: 1
extends: builtin:developer
sandbox: { network: { shell.run: proxy, hosts: { allow: [\"127.0.0.1:9\"] } } }
tools:
  http.get: { decision: allow, urls: { allow: [\"https://docs.example/**\"] } }
  shell.run:
    effects: { network: allow, sends: allow, writes: allow }
    executables: { curl: allow, wget: { decision: allow, writes: [\"**\"] } }
",
    );
    let carries = [
        "curl -H 'X: secret'",
        "curl -sHX:secret",
        "curl --header='X: secret'",
        "curl --proxy-header 'X: secret'",
        "curl --url-query q=secret",
        "curl -A secret",
        "curl -u a:secret",
        "curl -b c=secret",
        "curl -b a.txt",
        "curl -e secret",
        "curl -r secret",
        "curl -X GETsecret",
        "curl --oauth2-bearer secret",
        "curl --etag-compare a.txt",
        "wget --header='X: secret'",
        "wget -U secret",
        "wget --user-agent=secret",
        "wget --referer secret",
        "wget --user a",
        "wget --password secret",
        "nice curl -H 'X: secret'",
        "timeout 20 nice curl -A secret",
    ];
    // wget itself ends with 4 as well.
    let waits = |line: &str| {
        let done = agent.shell(&format!("{line} http://127.0.0.1:9/x"));
        done.status == 4 && format!("{}{}", done.stdout, done.stderr).contains("it sends something")
    };
    let header = "curl -H 'Accept: application/json'";
    assert!(!waits(header), "nothing was seen");
    let fetch = json!({ "url": "https://docs.example/page", "prompt": "read" });
    assert!(agent.ask(("WebFetch", fetch)).exits(0).stdout.contains("\"allow\""));
    let read = json!({ "file_path": agent.path("a.txt") });
    assert!(agent.ask(("Read", read)).exits(0).stdout.contains("\"allow\""));
    let silent: Vec<_> = carries.into_iter().filter(|line| !waits(line)).collect();
    assert_eq!(silent, [""; 0], "these go out unasked");
    let asked = ["curl", "curl -s -m 5 -X GET", "curl -w '%{http_code}'", "wget -t 1 -O page -T 5"];
    let asked: Vec<_> = asked.into_iter().filter(|line| waits(line)).collect();
    assert_eq!(asked, [""; 0], "these carry nothing");
}
