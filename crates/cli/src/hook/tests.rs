//! Inputs that no host wrote, in every dialect.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use capsule_testkit::{Numbers, is_nightly};
use serde_json::{Value, json};

use super::answer::HookAnswer;
use super::calls::{content_calls, file_calls};
use super::dialect::{Dialect, DialectName};
use super::host_tool::Meaning;
use super::input::HookInput;

/// How many inputs each dialect gets; more of them in the nightly part.
fn inputs() -> usize {
    if is_nightly() { 100_000 } else { 2_500 }
}

/// Values that an argument may have: of every type, and of every manner to leave a directory.
fn values() -> Vec<Value> {
    let texts = [
        "a.txt",
        "/etc/passwd",
        "../x",
        "~/x",
        " a",
        "a\u{202e}b",
        "",
        "**/*.rs",
        "{a,/etc}/*",
        "ls; cat a",
        "$(id)",
        "'\"\\",
        "a\0b",
        "https://a.example/x?y",
        "file:///etc/passwd",
        "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch\n",
        "*** Begin Patch\n*** Add File: ../a\n+y\n*** Delete File: /b\n*** End Patch",
    ];
    let others = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!([]),
        json!({}),
        json!([{ "old_string": "a", "new_string": "b" }, 7]),
    ];
    texts.iter().map(|text| json!(text)).chain(others).collect()
}

/// The names of arguments that hosts use, and one that none does.
const ARGUMENTS: [&str; 20] = [
    "command",
    "file_path",
    "path",
    "absolute_path",
    "filePath",
    "dir_path",
    "content",
    "old_string",
    "new_string",
    "oldString",
    "newString",
    "replace_all",
    "edits",
    "pattern",
    "url",
    "patchText",
    "input",
    "workdir",
    "run_in_background",
    "other",
];

fn random_input(dialect: &Dialect, values: &[Value], numbers: &mut Numbers) -> Vec<u8> {
    let tool = &dialect.tools[numbers.below(dialect.tools.len())];
    let count = numbers.below(5);
    let args = (0..count).map(|_| {
        let name = ARGUMENTS[numbers.below(ARGUMENTS.len())].to_owned();
        (name, values[numbers.below(values.len())].clone())
    });
    let args: serde_json::Map<String, Value> = args.collect();
    let mut input = json!({
        "session_id": "s", "cwd": "/nowhere", "hook_event_name": dialect.event,
        "tool_name": tool.names[numbers.below(tool.names.len())], "tool_input": args,
    });
    if numbers.below(8) == 0 {
        let names = ["session_id", "cwd", "hook_event_name", "tool_name", "tool_input"];
        input[names[numbers.below(names.len())]] = values[numbers.below(values.len())].clone();
    }
    let mut bytes = input.to_string().into_bytes();
    if numbers.below(4) == 0 {
        let at = numbers.below(bytes.len());
        let end = (at + numbers.below(8)).min(bytes.len());
        let byte = u8::try_from(numbers.below(256)).unwrap();
        bytes.splice(at..end, [byte]);
    }
    bytes
}

/// The calls of ours that an input means. None of them is of a tool that hooks do not judge, nor of a path that the host would
/// take from elsewhere.
fn check(dialect: &Dialect, bytes: &[u8]) {
    let denial = match HookInput::read(bytes, dialect) {
        Err(problem) => problem,
        Ok(input) => {
            let tool = dialect.tools.iter().find(|tool| tool.names.contains(&input.tool.as_str()));
            let Some(meaning) = tool.map(|tool| &tool.meaning) else { return };
            let calls = content_calls(&input, meaning)
                .and_then(|first| Ok([first, file_calls(&input, meaning)?].concat()));
            match calls {
                Err(problem) => problem,
                Ok(calls) => {
                    let needs_none = matches!(meaning, Meaning::Command { .. } | Meaning::Internal);
                    assert!(needs_none || !calls.is_empty(), "a tool that is judged by nothing");
                    for (tool, args) in calls {
                        assert!(tool.starts_with("fs.") || tool == "http.get", "{tool}");
                        let path = args.get("path").and_then(Value::as_str);
                        assert!(path.is_none_or(|path| Path::new(path).is_absolute()), "{args}");
                    }
                    return;
                }
            }
        }
    };
    let answer = HookAnswer::denial(&denial).render(dialect).unwrap();
    assert!(answer.contains("deny") && serde_json::from_str::<Value>(&answer).is_ok(), "{answer}");
}

/// EI-6: whatever a host passes means calls that are judged, or is denied in the host's form.
#[test]
fn whatever_a_host_passes_is_judged_or_denied() {
    let values = values();
    for name in DialectName::ALL {
        let (dialect, mut numbers) = (name.dialect(), Numbers(7));
        for _ in 0..inputs() {
            let input = random_input(dialect, &values, &mut numbers);
            let checked = catch_unwind(AssertUnwindSafe(|| check(dialect, &input)));
            assert!(checked.is_ok(), "{}: {}", dialect.name, String::from_utf8_lossy(&input));
        }
    }
}
