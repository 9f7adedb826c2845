//! The package managers and clients that people use, as a command of an agent, against servers on loopback that speak TLS
//! with an authority of their own. A program that ignored the proxy would reach nothing.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

mod origins;

use origins::{Client, try_clients, try_clients_without_proxy};

const PACKAGE_MANAGERS: &[Client] = &[
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

/// Python's `urllib`, and Node with a tunnel that it asks for itself: the older ones do not look for a proxy.
const FETCH_PY: &str = "import sys, urllib.request
open('page', 'wb').write(urllib.request.urlopen(sys.argv[1]).read())
";
const FETCH_JS: &str = "const fs = require('fs'), http = require('http'), https = require('https');
const proxy = new URL(process.env.https_proxy), url = new URL(process.argv[2]);
http.request({ host: proxy.hostname, port: proxy.port, method: 'CONNECT', path: url.host })
  .on('connect', (answer, socket) => {
    if (answer.statusCode !== 200) throw new Error(answer.headers['x-capsule-reason']);
    https.get(url, { socket, agent: false }, page => page.pipe(fs.createWriteStream('page')));
  })
  .end();
";
const PLAIN_JS: &str = "require('https').get(process.argv[2], { agent: new (require('https').Agent)() }, page => page.pipe(process.stdout));\n";

/// Starts programs that would be denied by their words alone, before they begin.
const RUN_PY: (&str, &str) = (
    "run.py",
    "import os, subprocess
os.makedirs('state/lists/partial')
for line in open('words').read().replace('HERE', os.getcwd()).splitlines():
    subprocess.run(line.split(), check=True)
",
);

const CLIENTS: &[Client] = &[
    Client {
        files: &[RUN_PY, ("words", "curl -fsS -o page https://localhost:PORT/page")],
        argv: &["python3", "run.py"],
        made: "page",
    },
    Client {
        files: &[
            RUN_PY,
            ("words", "wget -q -t 1 --ca-certificate=ca.crt -O page https://localhost:PORT/page"),
        ],
        argv: &["python3", "run.py"],
        made: "page",
    },
    Client {
        files: &[
            RUN_PY,
            ("sources.list", "deb [trusted=yes] https://localhost:PORT/apt ./\n"),
            (
                "words",
                "apt-get update -qq --error-on=any -o Dir::State=HERE/state -o Dir::Cache=HERE/cache -o Dir::Etc::SourceList=HERE/sources.list \
                 -o Dir::Etc::SourceParts=- -o APT::Sandbox::User=root -o Acquire::https::CAInfo=HERE/ca.crt",
            ),
        ],
        argv: &["python3", "run.py"],
        made: "state",
    },
    Client {
        files: &[("fetch.py", FETCH_PY)],
        argv: &["python3", "fetch.py", "https://localhost:PORT/page"],
        made: "page",
    },
    Client {
        files: &[("fetch.js", FETCH_JS)],
        argv: &["node", "fetch.js", "https://localhost:PORT/page"],
        made: "page",
    },
    // A repository that a command makes in the workspace is not applied, so it is made elsewhere.
    Client {
        files: &[
            RUN_PY,
            (
                "words",
                "git -c http.sslCAInfo=HERE/ca.crt clone -q https://localhost:PORT/git/ours.git /tmp/one
git -C /tmp/one -c http.sslCAInfo=HERE/ca.crt fetch -q origin HEAD
git -C /tmp/one log --oneline FETCH_HEAD
cp /tmp/one/a page",
            ),
        ],
        argv: &["python3", "run.py"],
        made: "page",
    },
];

/// Package managers.
#[test]
fn packages_come_from_their_registries() {
    try_clients(PACKAGE_MANAGERS);
}

/// Programs that fetch.
#[test]
fn clients_reach_the_host_that_is_named() {
    try_clients(CLIENTS);
}

/// E23: a program that does not look for the proxy.
#[test]
fn a_client_that_ignores_the_proxy_reaches_nothing() {
    try_clients_without_proxy(&[
        Client {
            files: &[("plain.js", PLAIN_JS)],
            argv: &["node", "plain.js", "https://localhost:PORT/page"],
            made: "",
        },
        Client {
            files: &[],
            argv: &["curl", "--noproxy", "*", "-fsS", "https://localhost:PORT/page"],
            made: "",
        },
    ]);
}
