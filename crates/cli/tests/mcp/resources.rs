//! Results that are too long for an answer.

use serde_json::{Value, json};

use super::{Client, ERROR, call, follow, initialize, request};

/// FR-2: a long result is cut, and a link in the answer leads to the whole, for a client whose revision has links.
#[test]
fn a_long_result_is_a_resource() {
    let long: String = (0..30_000).map(|line| format!("{line:06}\n")).collect();
    for (version, has_link) in [("2025-11-25", true), ("2025-06-18", true), ("2025-03-26", false)] {
        let mut client = Client::new();
        client.capsule.write_file("long.txt", &long);
        client.send(&initialize(version, &json!({})).to_string());
        let begun = client.receive();
        assert_eq!(begun["result"]["capabilities"]["resources"], json!({}), "{begun}");
        client.send(&call(1, "shell_run", &json!({ "command": "cat long.txt" })));
        let answer = client.receive();
        let result = &answer["result"];
        assert_eq!(result["structuredContent"]["truncated"], json!(true), "{version}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.len() < 230_000 && text.contains("left out"), "{}", text.len());
        let link = &result["content"][1];
        if !has_link {
            assert_eq!(*link, Value::Null);
            continue;
        }
        assert_eq!(link["type"], json!("resource_link"), "{link}");
        client.send(&request(&json!(2), "resources/list", &json!({})));
        let listed = client.receive();
        assert_eq!(listed["result"]["resources"][0]["uri"], link["uri"], "{listed}");
        client.send(&request(&json!(3), "resources/read", &json!({ "uri": link["uri"] })));
        let read = client.receive();
        let content = &read["result"]["contents"][0];
        let whole: Value = serde_json::from_str(content["text"].as_str().unwrap()).unwrap();
        assert_eq!(whole["result"]["stdout"], json!(long));
        assert_eq!(link["size"], json!(content["text"].as_str().unwrap().len()));
        for uri in ["capsule://result/r-0:1", "file:///etc/passwd", "file:///long.txt"] {
            let read = request(&json!(4), "resources/read", &json!({ "uri": uri }));
            follow(&mut client, uri, &[(read, &[(ERROR, "-32002")])]);
        }
        let _ = client.end();
    }
}
