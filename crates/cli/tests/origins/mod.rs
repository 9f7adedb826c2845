//! Registries and other servers on loopback that speak TLS with an authority of their own, and what is tried with each
//! client of them.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use capsule_testkit::{Capsule, CommandOutput};
use serde_json::{Value, json};

/// Makes the files of the registries and an authority, and serves them.
const SERVER: &str = include_str!("serve.py");

struct Registries {
    server: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Registries {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("serve.py");
        fs::write(&script, SERVER).unwrap();
        let mut server = Command::new("python3");
        server
            .arg(&script)
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let server = server.spawn().unwrap();
        let file = folder.path().join("port");
        let end = Instant::now() + Duration::from_secs(30);
        while !file.exists() {
            assert!(Instant::now() < end, "the server does not begin");
            std::thread::sleep(Duration::from_millis(20));
        }
        let port = fs::read_to_string(file).unwrap().trim().parse().unwrap();
        Self { server, port, folder }
    }

    /// A workspace whose commands trust the authority, and reach the registries or nothing.
    fn workspace(&self, host: &str) -> (Capsule, String) {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        let authority = fs::read_to_string(self.folder.path().join("ca.crt")).unwrap();
        capsule.write_file("ca.crt", &authority);
        let (port, trusted) = (self.port, capsule.workspace().join("ca.crt"));
        let trusted = trusted.display();
        let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap();
        let sysroot = String::from_utf8(sysroot.stdout).unwrap();
        let sysroot = sysroot.trim();
        let policy = capsule.write_policy(&format!(
            "version: 1
extends: builtin:developer
sandbox:
  network:
    shell.run: proxy
    hosts: {{ allow: [\"{host}:{port}\"], others: deny }}
    private_ips: {{ allow: [127.0.0.1] }}
toolchains: [cargo, \"{sysroot}\"]
tools:
  shell.run:
    effects: {{ network: allow, code: allow, unknown: allow }}
    env:
      set:
        NO_PROXY: \"\"
        no_proxy: \"\"
        npm_config_cafile: {trusted}
        npm_config_registry: https://localhost:{port}/npm/
        npm_config_update_notifier: \"false\"
        PIP_CERT: {trusted}
        PIP_RETRIES: \"0\"
        PIP_INDEX_URL: https://localhost:{port}/simple/
        CARGO_HTTP_CAINFO: {trusted}
        CARGO_NET_RETRY: \"0\"
        CARGO_REGISTRIES_OURS_INDEX: sparse+https://localhost:{port}/cargo/
        CURL_CA_BUNDLE: {trusted}
        NODE_EXTRA_CA_CERTS: {trusted}
        SSL_CERT_FILE: {trusted}
        GOPROXY: https://{OTHER_NAME}:{port}/go
        GONOSUMDB: \"*\"
"
        ));
        (capsule, policy)
    }
}

impl Drop for Registries {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// A client: the files of a project, the words of the command, in which `PORT` is that of the server, and a file that
/// is there when it worked; none where what it loads is kept for the call alone.
pub(crate) struct Client {
    pub(crate) files: &'static [(&'static str, &'static str)],
    pub(crate) argv: &'static [&'static str],
    pub(crate) made: &'static str,
}

/// The name of the server for those that never ask a proxy for `localhost`.
const OTHER_NAME: &str = "origin.example";

/// Runs what follows where that name is one of this machine.
const NAMED_HERE: &str = "printf '127.0.0.1 localhost origin.example\\n' >\"$0\" && mount --bind \"$0\" /etc/hosts && exec \"$@\"";

/// Each reaches its server where the host is named, and nothing where another is; what it downloaded is staged.
pub(crate) fn try_clients(clients: &[Client]) {
    let registries = Registries::start();
    for client in clients {
        for (host, works) in [(client.host(), true), ("other.example", false)] {
            let (capsule, policy) = registries.workspace(host);
            let (ran, report) = registries.run(client, &capsule, &policy);
            let output = format!("{:?} to {host}: {}{}", client.argv, ran.stdout, ran.stderr);
            assert_eq!(ran.status == 0, works, "{output}");
            let connections = report["calls"][0]["connections"].as_array().unwrap();
            assert!(!connections.is_empty(), "{output}");
            let is_refused = |one: &Value| one["refused"] == "net.not-allowed";
            assert!(connections.iter().all(|one| is_refused(one) != works), "{connections:?}");
            let changes = report["calls"][0]["changes"].to_string();
            let is_made = client.made.is_empty() || is_named(&changes, client.made);
            assert!(!works || is_made, "{output}\n{changes}");
        }
    }
}

/// A client that does not look for the proxy reaches nothing where the host is named either.
pub(crate) fn try_clients_without_proxy(clients: &[Client]) {
    let registries = Registries::start();
    for client in clients {
        let (capsule, policy) = registries.workspace("localhost");
        let (ran, report) = registries.run(client, &capsule, &policy);
        let call = &report["calls"][0];
        let found = (&call["problem"]["code"], &call["connections"]);
        assert_eq!(found, (&json!("exec.exit-nonzero"), &json!([])), "{}", ran.stdout);
    }
}

impl Registries {
    /// Runs a client; with the report of it.
    fn run(&self, client: &Client, capsule: &Capsule, policy: &str) -> (CommandOutput, Value) {
        let with_port = |text: &str| text.replace("PORT", &self.port.to_string());
        for (path, content) in client.files {
            capsule.write_file(path, with_port(content));
        }
        let words: Vec<String> = client.argv.iter().map(|word| with_port(word)).collect();
        let args = ["exec", "--unattended", "--policy", policy, "--"].into_iter();
        let args: Vec<&str> = args.chain(words.iter().map(String::as_str)).collect();
        let ran = match client.host() {
            OTHER_NAME => {
                let hosts = self.folder.path().join("hosts");
                let behind = ["unshare", "--map-root-user", "--mount", "sh", "-c", NAMED_HERE];
                let behind = [&behind[..], &[hosts.to_str().unwrap()]].concat();
                capsule.command_behind(&behind, &args).output().unwrap().into()
            }
            _ => capsule.run(&args),
        };
        (ran, capsule.run(&["report", "latest", "--json"]).json())
    }
}

impl Client {
    /// The name by which it reaches the server. Go asks no proxy for `localhost`, whatever the variables say.
    fn host(&self) -> &'static str {
        if self.argv.first() == Some(&"go") { OTHER_NAME } else { "localhost" }
    }
}

/// Whether the changes name a file, or the directory that it came with.
fn is_named(changes: &str, made: &str) -> bool {
    Path::new(made).ancestors().any(|path| {
        !path.as_os_str().is_empty() && changes.contains(&format!("\"{}\"", path.display()))
    })
}
