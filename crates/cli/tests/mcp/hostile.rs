//! A client that sends what no client sends.

use capsule_testkit::{Numbers, is_nightly};

use super::*;

/// Messages that are changed at random, each of which would act if it were let.
fn messages() -> Vec<String> {
    let write = json!({ "path": "../outside.txt", "content": "x", "mode": "create" });
    let calls = [
        ("fs_read", json!({ "path": "../policy.yaml" })),
        ("fs_write", write),
        ("fs_edit", json!({ "path": "closed/b.txt", "search": "three", "replace": "3" })),
        ("shell_run", json!({ "command": "rm -r ." })),
        ("no_tool", json!({})),
    ];
    let none = json!({});
    let mut all: Vec<String> = calls.iter().map(|(tool, args)| call(7, tool, args)).collect();
    all.extend(
        ["tools/list", "prompts/get", "resources/read", "x"]
            .map(|method| request(&json!("a"), method, &none)),
    );
    all.extend([cancel(7), answer("accept", true), initialize("2025-11-25", &none).to_string()]);
    all.push(stateless_call(8, "fs_write", &calls[1].1, &json!({ "requestState": "s" })));
    all
}

/// A message with a few pieces taken out, doubled, or replaced by a random byte; never an end of a line.
fn change(message: &str, numbers: &mut Numbers) -> Vec<u8> {
    let mut below = |bound| numbers.below(bound);
    let mut bytes = message.as_bytes().to_vec();
    for _ in 0..=below(3) {
        let start = below(bytes.len() + 1);
        let end = (start + below(12)).min(bytes.len());
        let piece = match below(3) {
            0 => Vec::new(),
            1 => bytes[start..end].repeat(2),
            _ => vec![u8::try_from(below(256)).unwrap()],
        };
        bytes.splice(start..end, piece);
    }
    bytes.retain(|byte| *byte != b'\n');
    bytes.push(b'\n');
    bytes
}

/// The memory of a process, in KiB.
fn memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// F14: whatever a client sends, the server goes on, grows no more than by what waits, and nothing happens that the policy
/// does not allow.
#[test]
fn hostile_messages_change_nothing() {
    let rounds = if is_nightly() { 100 } else { 10 };
    let mut client = Client::begun(&json!({}));
    let (messages, mut numbers) = (messages(), Numbers(11));
    let read = call(1, "fs_read", &json!({ "path": "a.txt" }));
    follow(&mut client, "before", &[(read, &[(STATUS, "ok")])]);
    let mut sizes = Vec::new();
    for round in 0..rounds {
        let mark = format!("mark-{round}");
        let mut lines: Vec<u8> = (0..1_000)
            .flat_map(|index| change(&messages[index % messages.len()], &mut numbers))
            .collect();
        lines.extend(format!("{}\n", request(&json!(mark), "ping", &json!({}))).into_bytes());
        // The server writes while it reads.
        let mut input = client.input.take().unwrap();
        let writer = thread::spawn(move || {
            input.write_all(&lines).unwrap();
            input
        });
        while client.receive()["id"] != json!(mark) {}
        client.input = Some(writer.join().unwrap());
        sizes.push(memory(client.server.id()));
    }
    // Calls that were let in are still made.
    let id = json!("last");
    client.send(&request(
        &id,
        "tools/call",
        &json!({ "name": "fs_read", "arguments": { "path": "a.txt" } }),
    ));
    let mut last = client.receive();
    while last["id"] != id {
        last = client.receive();
    }
    let status = last.pointer(STATUS).or(last.pointer(ERROR)).cloned();
    assert!(status == Some(json!("ok")) || status == Some(json!(-32000)), "{last}");
    assert!(sizes.last().unwrap() < &(sizes[0] + 16_384), "{sizes:?}");
    let workspace = client.capsule.workspace();
    assert_eq!(fs::read_to_string(workspace.join("closed/b.txt")).unwrap(), "three\n");
    assert!(workspace.join("a.txt").exists() && !workspace.join("../outside.txt").exists());
    let record = client.end();
    let calls = record["calls"].as_array().unwrap();
    let acted = calls.iter().filter(|call| call["status"] == "ok");
    let tools: Vec<&str> = acted.map(|call| call["tool"].as_str().unwrap()).collect();
    assert!(tools.iter().all(|tool| tool.starts_with("fs.") && *tool != "fs.write"), "{tools:?}");
}
