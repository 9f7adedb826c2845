//! How soon a model adapts to refusals: the same tasks with refusals that teach, and with bare ones.
//!
//! The task measures any model, and claims nothing.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use capsule_testkit::{HttpRequest, HttpServer};
use serde_json::{Map, Value, json};

use crate::TaskResult;
use crate::models::TaskEnvironment;

/// Tasks whose most obvious command is refused, while another call does the same.
const TASKS: &[&str] = &[
    "Replace `pears` by `quinces` in notes.md.",
    "Delete the directory build with everything in it.",
    "Show the last line of every file in letters, with a single command.",
    "Write a file total.md that holds the sum of the numbers in notes.md.",
    "Count the words of all files in letters and write the number into words.md.",
    "Rename notes.md to stock.md.",
    "Add the line `cherries: 5` to the end of notes.md.",
    "Find out which letter mentions a price, and copy it to paid.txt.",
];

/// The longest answer of a server that is passed on, in bytes.
const MAX_ANSWER_BYTES: u64 = 64_000_000;

/// Lets a model do the tasks, with both forms of refusals.
///
/// # Errors
/// When an option is unknown, the binary does not build, or no task could be done.
pub(crate) fn run(root: &Path, options: &[&str]) -> TaskResult<bool> {
    let (endpoint, model, times) = match options {
        ["--endpoint", endpoint, "--model", model] => (*endpoint, *model, 1),
        ["--endpoint", endpoint, "--model", model, "--times", times] => {
            (*endpoint, *model, times.parse::<u32>().map_err(|error| format!("{times}: {error}"))?)
        }
        _ => return Err("adapt --endpoint URL --model MODEL [--times NUMBER]".to_owned()),
    };
    let mut rows: Map<String, Value> = Map::new();
    for (form, is_bare) in [("teaching", false), ("bare", true)] {
        for (code, measured) in measure(root, (endpoint, model), is_bare, times)? {
            if let Some(row) = rows.entry(code).or_insert_with(|| json!({})).as_object_mut() {
                row.insert(form.to_owned(), measured);
            }
        }
    }
    println!(
        "proposals until a valid one, by the refusal that came first (overcome of met, median)"
    );
    println!("{:<28}{:>20}{:>20}", "", "teaching", "bare");
    for (code, row) in &rows {
        let [teaching, bare] = ["teaching", "bare"].map(|form| cell(row.get(form)));
        println!("{code:<28}{teaching:>20}{bare:>20}");
    }
    Ok(true)
}

/// One form of refusals of one kind.
fn cell(measured: Option<&Value>) -> String {
    let Some(measured) = measured else { return "-".to_owned() };
    let number = |pointer: &str| measured.pointer(pointer).and_then(Value::as_u64);
    let median = number("/proposals_until_accepted/median");
    let median = median.map_or_else(|| "never".to_owned(), |median| median.to_string());
    let [overcome, rows] = ["/overcome", "/rows"].map(|name| number(name).unwrap_or(0));
    format!("{overcome} of {rows}, {median}")
}

/// Lets the model do all tasks with one form of refusals; gives what they cost, by code.
fn measure(
    root: &Path,
    (endpoint, model): (&str, &str),
    is_bare: bool,
    times: u32,
) -> TaskResult<Map<String, Value>> {
    let environment = TaskEnvironment::make(root, if is_bare { "bare" } else { "teaching" })?;
    let key = std::env::var("OPENAI_API_KEY").unwrap_or_default();
    let relay = start_relay(endpoint, is_bare);
    let base = relay.url("");
    let variables = [("OPENAI_BASE_URL", &*base), ("OPENAI_API_KEY", &*key)];
    for task in (0..times).flat_map(|_| TASKS) {
        environment.fill_workspace()?;
        let args = ["chat", "--policy", "builtin:developer", "--unattended", "--model", model];
        let limits = ["--max-requests", "12", "--max-time", "10m", "--task", task];
        let done = environment.run(&[&args[..], &limits].concat(), &variables)?;
        println!("{} · {task}", done.status);
        if done.status.code() == Some(2) {
            return Err(String::from_utf8_lossy(&done.stderr).into_owned());
        }
    }
    let stats = environment.run(&["stats", "friction", "--json"], &[])?;
    let stats: Value =
        serde_json::from_slice(&stats.stdout).map_err(|error| format!("stats: {error}"))?;
    let by_code = stats.pointer("/friction/by_code").and_then(Value::as_object);
    by_code.cloned().ok_or_else(|| format!("stats without codes: {stats}"))
}

/// Passes requests on to the model's server; with `is_bare`, what refusals explain is taken out.
fn start_relay(endpoint: &str, is_bare: bool) -> HttpServer {
    let endpoint = endpoint.trim_end_matches('/').to_owned();
    HttpServer::start(move |request: &HttpRequest, stream: &mut TcpStream| {
        let answer = pass_on(&endpoint, request, is_bare).unwrap_or_else(|problem| {
            let status = "HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\n\r\n";
            [status.as_bytes(), problem.as_bytes()].concat()
        });
        // The client may have left.
        drop(stream.write_all(&answer));
    })
}

/// Sends a request to the server, and gives its answer as bytes of HTTP.
fn pass_on(endpoint: &str, request: &HttpRequest, is_bare: bool) -> Result<Vec<u8>, String> {
    let body = if is_bare { without_explanations(&request.body) } else { request.body.clone() };
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(600)))
        .build()
        .into();
    let mut post = agent.post(format!("{endpoint}{}", request.target));
    for (name, value) in request.headers.iter().filter_map(|line| line.split_once(':')) {
        if matches!(name, "authorization" | "content-type" | "accept") {
            post = post.header(name, value.trim());
        }
    }
    let mut answer = post.send(&body[..]).map_err(|error| error.to_string())?;
    let kind = answer.headers().get("content-type").and_then(|kind| kind.to_str().ok());
    let mut bytes = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nConnection: close\r\n\r\n",
        answer.status(),
        kind.unwrap_or("application/json"),
    )
    .into_bytes();
    let read = answer.body_mut().as_reader().take(MAX_ANSWER_BYTES).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// A request in which refusals say that they are refusals, and nothing else.
fn without_explanations(body: &[u8]) -> Vec<u8> {
    let Ok(mut request) = serde_json::from_slice::<Value>(body) else { return body.to_vec() };
    let messages = request.get_mut("messages").and_then(Value::as_array_mut);
    for message in messages.into_iter().flatten() {
        let Some(Value::String(text)) = message.get_mut("content") else { continue };
        let result = serde_json::from_str::<Value>(text);
        if result.is_ok_and(|result| result.get("status") == Some(&json!("denied"))) {
            *text = json!({ "status": "denied" }).to_string();
        }
    }
    request.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_refusal_explains_nothing() {
        let denied =
            json!({ "status": "denied", "code": "policy.never", "suggestion": "try this" });
        let body = json!({ "messages": [
            { "role": "user", "content": "do it" },
            { "role": "tool", "content": denied.to_string() },
            { "role": "tool", "content": json!({ "status": "ok" }).to_string() },
        ] });
        let bare = without_explanations(body.to_string().as_bytes());
        let bare: Value = serde_json::from_slice(&bare).expect("JSON");
        assert_eq!(bare.pointer("/messages/1/content"), Some(&json!(r#"{"status":"denied"}"#)));
        assert_eq!(bare.pointer("/messages/2/content"), Some(&json!(r#"{"status":"ok"}"#)));
        assert_eq!(bare.pointer("/messages/0/content"), Some(&json!("do it")));
    }
}
