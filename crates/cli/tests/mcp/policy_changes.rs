//! A policy that is changed while a client is connected.

use std::fs;
use std::io::{BufRead as _, BufReader};

use serde_json::{Value, json};

use super::{
    CODE, Client, Door, ERROR, POLICY, STATUS, Step, call, cancel, follow, request, stateless_call,
};

const CHANGED: &[(&str, &str)] = &[("/method", "notifications/tools/list_changed")];

/// Writes the policy of a server anew, as an editor does: another file takes its place.
fn change_policy(client: &Client, text: &str) {
    let place = client.capsule.directory().join("policy.yaml");
    let new = place.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, place).unwrap();
}

/// The policy without one of its lines.
fn without(line: &str) -> String {
    let kept = POLICY.lines().filter(|found| !found.trim_start().starts_with(line));
    kept.map(|line| format!("{line}\n")).collect()
}

/// FR-2: the next call is judged by the policy as it is by then, in a session of its own; the client is told where the tools are
/// others. A policy that cannot be read allows nothing.
#[test]
fn a_changed_policy_holds_for_the_next_call() {
    let none = json!({});
    let mut client = Client::begun(&none);
    let list = || request(&json!("l"), "tools/list", &none);
    let read = |id| call(id, "fs_read", &json!({ "path": "a.txt" }));
    follow(&mut client, "before", &[(read(1), &[(STATUS, "ok")])]);
    change_policy(&client, &without("fs.read:"));
    let told = client.receive();
    assert_eq!(told["method"], json!("notifications/tools/list_changed"), "{told}");
    let steps: &[Step] = &[
        (list(), &[("/result/tools/0/name", "fs_list"), ("/result/tools/1/name", "fs_write")]),
        (read(2), &[(STATUS, "denied"), (CODE, "policy.no-rule")]),
    ];
    follow(&mut client, "less", steps);
    change_policy(&client, "version: 1\ntools: [\n");
    follow(&mut client, "broken", &[(read(3), CHANGED)]);
    let refused = client.receive();
    assert_eq!(refused["result"]["isError"], json!(true), "{refused}");
    let steps: &[Step] = &[(list(), &[(ERROR, "-32603"), ("/error/message", "policy")])];
    follow(&mut client, "broken", steps);
    change_policy(&client, POLICY);
    follow(&mut client, "mended", &[(read(4), CHANGED)]);
    let done = client.receive();
    assert_eq!(done.pointer(STATUS), Some(&json!("ok")), "{done}");
    // A change of the rules that changes no tool is not told, and holds all the same.
    change_policy(&client, &POLICY.replace("closed/**", "*.txt"));
    let edit = json!({ "path": "a.txt", "search": "two", "replace": "2" });
    let expected: &[(&str, &str)] = &[(STATUS, "denied"), (CODE, "path.not-allowed")];
    follow(&mut client, "stricter", &[(call(5, "fs_edit", &edit), expected)]);
    drop(client.input.take());
    assert!(client.server.wait().unwrap().success());
    let runs = client.capsule.run(&["list-runs", "--json"]).exits(0).json();
    assert_eq!(runs.as_array().unwrap().len(), 4, "{runs}");
    let _ = client.capsule.run(&["verify"]).exits(0);
}

/// FR-2: in the newest revision a client is told of changes that it subscribed to, until it cancels that.
#[test]
fn a_client_subscribes_to_changes() {
    let mut client = Client::new();
    let listen = |wanted: &Value| {
        let subscribed = stateless_call(7, "x", &json!({}), &json!({ "notifications": wanted }));
        subscribed.replace("tools/call", "subscriptions/listen")
    };
    const ID: &str = "/params/_meta/io.modelcontextprotocol~1subscriptionId";
    let steps: &[Step] = &[(
        listen(&json!({ "toolsListChanged": true, "promptsListChanged": true })),
        &[
            ("/method", "notifications/subscriptions/acknowledged"),
            (ID, "7"),
            ("/params/notifications", "{\"toolsListChanged\":true}"),
        ],
    )];
    follow(&mut client, "subscribed", steps);
    let read = |id| stateless_call(id, "fs_read", &json!({ "path": "a.txt" }), &json!({}));
    follow(&mut client, "its id is in use", &[(read(7), &[(ERROR, "-32600")])]);
    change_policy(&client, &without("fs.list:"));
    let told = client.receive();
    assert_eq!(told["method"], json!("notifications/tools/list_changed"), "{told}");
    assert_eq!(told.pointer(ID), Some(&json!(7)), "{told}");
    follow(&mut client, "cancelled", &[(cancel(7), &[])]);
    change_policy(&client, POLICY);
    follow(&mut client, "not told", &[(read(8), &[(STATUS, "ok")])]);
    follow(
        &mut client,
        "nothing wanted",
        &[(listen(&json!({})), &[("/params/notifications", "{}")])],
    );
    change_policy(&client, &without("fs.list:"));
    follow(&mut client, "not told either", &[(read(9), &[(STATUS, "ok")])]);
}

/// FR-2: over HTTP the client that began is told of changes in the stream that it opened for that.
#[test]
fn changes_are_told_over_http() {
    let door = Door::open();
    let session = door.begin(&json!({}));
    let headers = [door.headers(), vec![("Mcp-Session-Id", session.clone())]].concat();
    let stream = door.send("GET /mcp", &headers, "");
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert_eq!(lines.next().as_deref(), Some("HTTP/1.1 200 OK"));
    // The head is there before the stream listens.
    let read = call(1, "fs_read", &json!({ "path": "a.txt" }));
    assert!(door.post(&session, &read).contains("one\\ntwo"));
    fs::write(door.capsule.directory().join("policy.yaml"), without("fs.read:")).unwrap();
    let told = lines.find(|line| line.starts_with("data: ")).unwrap();
    assert!(told.contains("notifications/tools/list_changed"), "{told}");
    assert!(door.post(&session, &read).contains("policy.no-rule"));
}
