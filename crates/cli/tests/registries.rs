//! The package managers that people use, as a command of an agent, against registries on loopback that speak TLS with an
//! authority of their own. A program that ignored the proxy would reach nothing.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use capsule_testkit::Capsule;
use serde_json::Value;

/// Makes the files of three registries and an authority, and serves them.
const SERVER: &str = include_str!("registries/serve.py");

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
        server.arg(&script).arg(folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
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

/// A package manager: the files of a project, the command, and a file that is there when it worked.
struct Client {
    files: &'static [(&'static str, &'static str)],
    argv: &'static [&'static str],
    made: &'static str,
}

const CLIENTS: [Client; 3] = [
    Client {
        files: &[("package.json", "{\"name\": \"app\", \"dependencies\": {\"ours\": \"1.0.0\"}}")],
        argv: &["npm", "install", "--no-audit", "--no-fund", "--fetch-retries=0"],
        made: "node_modules/ours/index.js",
    },
    Client {
        files: &[],
        argv: &["python3", "-m", "pip", "install", "--target", "lib", "ours"],
        made: "lib/ours.py",
    },
    Client {
        files: &[
            (
                "Cargo.toml",
                "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\n\
                 ours = { version = \"1.0.0\", registry = \"ours\" }\n",
            ),
            ("src/lib.rs", "pub use ours::number;\n"),
        ],
        argv: &["cargo", "vendor", "vendor"],
        made: "vendor/ours/src/lib.rs",
    },
];

/// Each reaches its registry where the host is named, and nothing where another is; what it downloaded is staged.
#[test]
fn packages_come_from_their_registries() {
    let registries = Registries::start();
    for client in CLIENTS {
        for (host, works) in [("localhost", true), ("other.example", false)] {
            let (capsule, policy) = registries.workspace(host);
            for (path, content) in client.files {
                capsule.write_file(path, content);
            }
            let args = ["exec", "--policy", &policy, "--"];
            let ran = capsule.run(&[&args, client.argv].concat());
            let output = format!("{:?} to {host}: {}{}", client.argv, ran.stdout, ran.stderr);
            assert_eq!(ran.status == 0, works, "{output}");
            let report = capsule.run(&["report", "latest", "--json"]).json();
            let connections = report["calls"][0]["connections"].as_array().unwrap();
            assert!(!connections.is_empty(), "{output}");
            let is_refused = |one: &Value| one["refused"] == "net.not-allowed";
            assert!(connections.iter().all(|one| is_refused(one) != works), "{connections:?}");
            let changes = report["calls"][0]["changes"].to_string();
            assert!(!works || is_named(&changes, client.made), "{output}\n{changes}");
        }
    }
}

/// Whether the changes name a file, or the directory that it came with.
fn is_named(changes: &str, made: &str) -> bool {
    Path::new(made).ancestors().any(|path| {
        !path.as_os_str().is_empty() && changes.contains(&format!("\"{}\"", path.display()))
    })
}
