//! The workspace of a client that says which directories it works in.

use std::fs;
use std::path::Path;

use capsule_testkit::Capsule;
use serde_json::{Value, json};

use super::policy_changes::answer_and_notice;
use super::{Client, ERROR, POLICY, STATUS, call, follow, initialize, request};

/// A server in a directory, started with these arguments, whose client says that it has roots.
fn client_in(directory: &Path, capsule: Capsule, more: &[&str], policy: &str) -> Client {
    let policy = format!("--policy={}", capsule.write_policy(policy));
    let mut command = capsule.command(&[&["mcp", "serve", &policy], more].concat());
    command.current_dir(directory);
    let mut client = Client::of_server(capsule, command);
    client.send(&initialize("2025-11-25", &json!({ "roots": {} })).to_string());
    let _ = client.receive();
    client
}

fn new_capsule() -> Capsule {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    capsule.write_file("project/a.txt", "of the project\n");
    capsule.write_file("a.txt", "of the directory\n");
    capsule
}

/// Lists the tools, and answers that the client works there.
fn name_root(client: &mut Client, roots: &Value) {
    client.send(&request(&json!("l"), "tools/list", &json!({})));
    let asked = client.receive();
    assert_eq!(asked["method"], json!("roots/list"), "{asked}");
    let id = asked["id"].clone();
    client.send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "roots": roots } }).to_string());
}

fn read(client: &mut Client) -> Value {
    client.send(&call(1, "fs_read", &json!({ "path": "a.txt" })));
    client.receive()
}

const TEXT: &str = "/result/structuredContent/result/text";

/// FR-2: where neither the user nor the policy names a workspace, the client's directory is it, and only the first one that it names.
#[test]
fn the_directory_of_the_client_is_the_workspace() {
    let capsule = new_capsule();
    let (home, workspace) = (capsule.home(), capsule.workspace());
    let uri = format!("file://{}/project", workspace.display());
    // The home directory would be refused if the client had no root.
    let mut client = client_in(&home, capsule, &[], POLICY);
    name_root(&mut client, &json!([{ "uri": uri }, { "uri": "file:///" }]));
    // The list was none before.
    let listed = answer_and_notice(&mut client);
    assert_eq!(listed["result"]["tools"][0]["name"], json!("fs_list"), "{listed}");
    assert_eq!(read(&mut client).pointer(TEXT), Some(&json!("of the project\n")));
    let _ = client.end();
}

/// FR-2: what the user or the policy named stays the workspace, and nobody is asked.
#[test]
fn a_named_workspace_is_not_replaced() {
    let named = format!("{POLICY}workspace: {{ root: project }}\n");
    let cases: [(&[&str], &str, &str); 2] = [
        (&["--workspace", "project"], POLICY, "of the project\n"),
        (&[], &named, "of the project\n"),
    ];
    for (more, policy, text) in cases {
        let capsule = new_capsule();
        // The folder of the policy, from which its root is seen.
        let beside = capsule.directory().join("project");
        fs::create_dir(&beside).unwrap();
        fs::write(beside.join("a.txt"), text).unwrap();
        let workspace = capsule.workspace();
        let mut client = client_in(&workspace, capsule, more, policy);
        assert_eq!(read(&mut client).pointer(TEXT), Some(&json!(text)), "{more:?}");
        let _ = client.end();
    }
}

/// FR-2: a directory that is no workspace allows nothing; without an answer it is the directory of the server.
#[test]
fn a_directory_that_is_no_workspace_allows_nothing() {
    for uri in ["file:///", "file:///home/../", "file://$HOME", "file:///not/there"] {
        let capsule = new_capsule();
        let (workspace, home) = (capsule.workspace(), capsule.home());
        let mut client = client_in(&workspace, capsule, &[], POLICY);
        let uri = uri.replace("$HOME", &home.display().to_string());
        name_root(&mut client, &json!([{ "uri": uri }]));
        let listed = answer_and_notice(&mut client);
        assert_eq!(listed.pointer(ERROR), Some(&json!(-32603)), "{uri}: {listed}");
        let refused = read(&mut client);
        assert_eq!(refused["result"]["isError"], json!(true), "{uri}: {refused}");
    }
    for roots in [json!([]), json!([{ "uri": "https://a.example/" }]), json!("x")] {
        let capsule = new_capsule();
        let workspace = capsule.workspace();
        let mut client = client_in(&workspace, capsule, &[], POLICY);
        name_root(&mut client, &roots);
        let listed = client.receive();
        assert_eq!(listed["result"]["tools"][0]["name"], json!("fs_list"), "{roots}: {listed}");
        follow(
            &mut client,
            "read",
            &[(
                call(1, "fs_read", &json!({ "path": "a.txt" })),
                &[(STATUS, "ok"), (TEXT, "of the directory")],
            )],
        );
        let _ = client.end();
    }
}
