//! A policy that is changed while a client is connected.

use std::fs;
use std::io::{BufRead as _, BufReader};

use serde_json::{Value, json};

use super::{
    CODE, Client, Door, ERROR, POLICY, STATUS, Step, answer, call, cancel, follow, request,
    stateless_call,
};

/// The answer of the server, and that it told of other tools, which come in any order.
#[track_caller]
pub(super) fn answer_and_notice(client: &mut Client) -> Value {
    let messages = [client.receive(), client.receive()];
    let is_notice =
        |message: &Value| message["method"] == json!("notifications/tools/list_changed");
    assert_eq!(messages.iter().filter(|message| is_notice(message)).count(), 1, "{messages:?}");
    messages.into_iter().find(|message| !is_notice(message)).unwrap()
}

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
    client.send(&read(3));
    let refused = answer_and_notice(&mut client);
    assert_eq!(refused["result"]["isError"], json!(true), "{refused}");
    let steps: &[Step] = &[(list(), &[(ERROR, "-32603"), ("/error/message", "policy")])];
    follow(&mut client, "broken", steps);
    change_policy(&client, POLICY);
    client.send(&read(4));
    let done = answer_and_notice(&mut client);
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

/// APR-6: a yes that comes after the policy was changed allows nothing: it was about what another policy says.
#[test]
fn a_yes_after_a_change_of_the_policy_allows_nothing() {
    let mut client = Client::begun(&json!({ "elicitation": {} }));
    let write = json!({ "path": "new.txt", "content": "x", "mode": "create" });
    client.send(&call(1, "fs_write", &write));
    let asked = client.receive();
    assert_eq!(asked["method"], json!("elicitation/create"), "{asked}");
    change_policy(&client, &without("fs.search:"));
    client.send(&answer("accept", true));
    let answered = client.receive();
    assert_eq!(answered["result"]["isError"], json!(true), "{answered}");
    assert!(!client.capsule.workspace().join("new.txt").exists());
}

/// FR-2: a layer that the workspace gets while a policy is read, or that an editor writes in steps, holds for the next call.
#[test]
fn a_layer_that_appears_holds_for_the_next_call() {
    let mut client = Client::begun(&json!({}));
    let read = |id| call(id, "fs_read", &json!({ "path": "a.txt" }));
    follow(&mut client, "before", &[(read(1), &[(STATUS, "ok")])]);
    let layer = client.capsule.workspace().join(".capsule/policy.yaml");
    fs::create_dir(layer.parent().unwrap()).unwrap();
    let text = "version: 1\nlayer: workspace\ntools:\n  fs.read: deny\n";
    fs::write(&layer, "version: 1\n").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    fs::write(&layer, text).unwrap();
    client.send(&read(2));
    let mut answered = client.receive();
    if answered.get("method").is_some() {
        answered = client.receive();
    }
    assert_eq!(answered.pointer(STATUS), Some(&json!("denied")), "{answered}");
}
