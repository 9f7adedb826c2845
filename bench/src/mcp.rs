//! A client of an MCP server over standard input and output, which sends what it has ready and looks at answers
//! no closer than it must.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::Answer;

/// A server, and the client's ends of its streams. The server ends with them.
#[derive(Debug)]
pub(crate) struct Client {
    server: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Client {
    /// Starts the server and begins.
    pub(crate) fn start(command: &mut Command) -> Answer<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        let (input, output) = (server.stdin.take(), server.stdout.take());
        let output = BufReader::new(output.ok_or("a server has no output")?);
        let mut client = Self { server, input, output };
        let about = json!({ "name": "bench", "version": "1" });
        let begin =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about });
        client.send(&request(0, "initialize", &begin))?;
        client.receive("protocolVersion")?;
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(client)
    }

    /// Has files read by calls of a tool, this many of them unanswered at a time. Each text has to hold the mark.
    pub(crate) fn read(
        &mut self,
        paths: &[String],
        (calls, at_once): (usize, usize),
        mark: &str,
    ) -> Answer<()> {
        let mut waiting = 0;
        for (number, path) in (1..=calls).zip(paths.iter().cycle()) {
            if waiting == at_once {
                self.receive(mark)?;
                waiting -= 1;
            }
            let call = json!({ "name": "fs_read", "arguments": { "path": path } });
            self.send(&request(number, "tools/call", &call))?;
            waiting += 1;
        }
        (0..waiting).try_for_each(|_| self.receive(mark))
    }

    /// What the server and the processes that it started have of the machine's memory, in bytes.
    pub(crate) fn memory(&self) -> Answer<f64> {
        memory(self.server.id())
    }

    fn send(&mut self, message: &Value) -> Answer<()> {
        let input = self.input.as_mut().ok_or("the server's input is closed")?;
        let sent = input.write_all(format!("{message}\n").as_bytes());
        sent.map_err(|error| format!("the server takes no message: {error}"))
    }

    /// Takes the next message, which has to hold this text.
    fn receive(&mut self, mark: &str) -> Answer<()> {
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(|error| error.to_string())?;
        if line.contains(mark) { Ok(()) } else { Err(format!("the server answered: {line}")) }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.server.wait();
    }
}

fn request(id: usize, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// The resident memory of a process and of those below it, in bytes. Pages that they share count for each.
fn memory(process: u32) -> Answer<f64> {
    let read = |name: &str| {
        let path = format!("/proc/{process}/{name}");
        fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))
    };
    let status = read("status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    let mut all = kilobytes.ok_or("a process does not say what memory it has")? * 1024.0;
    // Those of all threads: whichever started a process is its parent.
    for thread in fs::read_dir(format!("/proc/{process}/task")).map_err(|e| e.to_string())? {
        let thread = thread.map_err(|error| error.to_string())?.file_name();
        let children = read(&format!("task/{}/children", thread.to_string_lossy()))?;
        for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
            all += memory(child)?;
        }
    }
    Ok(all)
}
