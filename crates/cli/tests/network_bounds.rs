//! The bounds of the connections of commands: bytes, connections to a host, the name of the server inside of TLS, and
//! servers that do not keep to anything. Real programs against real servers on loopback.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use capsule_testkit::{Capsule, HttpServer, ServerProcess};
use serde_json::{Value, json};

/// A policy under which commands reach these ports of this machine by its name, with more words.
fn policy(capsule: &Capsule, ports: &[u16], quota: &str, more: &str) -> String {
    let hosts: Vec<String> = ports.iter().map(|port| format!("\"localhost:{port}\"")).collect();
    capsule.write_policy(&format!(
        "version: 1
extends: builtin:developer
sandbox:
  network: {{ shell.run: proxy, hosts: [{}], private_ips: {{ allow: [127.0.0.1] }} }}
{more}
tools:
  shell.run:
    effects: {{ network: allow, code: allow, unknown: allow }}
    env: {{ set: {{ NO_PROXY: \"\", no_proxy: \"\" }} }}
    executables: {{ curl: allow, python3: allow }}
    quota: {{ {quota} }}
",
        hosts.join(", ")
    ))
}

/// The calls of the last run, as the report tells them.
fn calls(capsule: &Capsule) -> Vec<Value> {
    let report = capsule.run(&["report", "latest", "--json"]).json();
    report["calls"].as_array().unwrap().clone()
}

/// The record holds, and a replay, which counts anew what was used, serves it.
fn replays(capsule: &Capsule) {
    let replayed = capsule.run(&["replay", "latest"]);
    assert!(replayed.stderr.contains("nothing was executed"), "{}", replayed.stderr);
    assert_eq!(capsule.run(&["verify"]).status, 0);
}

const FETCH: &str = "import sys, urllib.error, urllib.request
for _ in range(int(sys.argv[2])):
    try:
        print(len(urllib.request.urlopen(sys.argv[1]).read()))
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode())
    except Exception as error:
        print('cut', error)
";

/// What commands receive counts against the budget of the run, across its calls: the connection that goes over it is
/// cut off, the next is refused, and the model is told why.
#[test]
fn what_commands_receive_is_bounded() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let server = HttpServer::fixed("200 OK", "", &"x".repeat(60_000));
    let policy = policy(&capsule, &[server.port()], "", "budgets: { run: { fetched: 150KB } }");
    capsule.write_file("fetch.py", FETCH);
    let url = format!("http://localhost:{}/", server.port());
    let step = |id: &str| {
        let argv = json!(["python3", "fetch.py", url, "2"]);
        format!("  - {{ id: {id}, tool: shell.run, args: {{ argv: {argv} }} }}\n")
    };
    let plan = format!("version: 1\nname: fetch\nsteps:\n{}{}", step("one"), step("two"));
    let plan = capsule.write_plan(&plan);
    let ran = capsule.run(&["run", "--unattended", "--policy", &policy, &plan]);
    let all = calls(&capsule);
    let ended = |call: usize, connection: usize| {
        let connection = &all[call]["connections"][connection];
        (connection["refused"].clone(), connection["cut"].clone())
    };
    let code = json!("budget.fetched");
    assert_eq!(ended(0, 0), (Value::Null, Value::Null), "{}{all:?}", ran.stderr);
    assert_eq!(ended(0, 1), (Value::Null, Value::Null));
    assert_eq!(ended(1, 0), (Value::Null, code.clone()));
    assert_eq!(ended(1, 1), (code.clone(), Value::Null));
    let told = &all[1]["result"]["refused_hosts"][0];
    assert_eq!(told["code"], code, "{told}");
    assert!(told["reason"].as_str().unwrap().contains("as many bytes as it may"), "{told}");
    let received: u64 = all
        .iter()
        .flat_map(|call| call["connections"].as_array().unwrap())
        .filter_map(|connection| connection["received"].as_u64())
        .sum();
    assert_eq!(received, 150_000);
    let report = capsule.run(&["report", "latest"]).stdout;
    assert!(report.contains("cut off: budget.fetched"), "{report}");
    replays(&capsule);
}

/// A policy may bound the connections to one host, over all calls of a run.
#[test]
fn connections_to_one_host_are_bounded() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let servers = [(); 2].map(|()| HttpServer::fixed("200 OK", "", "a page"));
    let ports = [servers[0].port(), servers[1].port()];
    let policy = policy(&capsule, &ports, "per_host: 3", "");
    capsule.write_file("fetch.py", FETCH);
    let step = |id: &str, port: u16| {
        let argv = json!(["python3", "fetch.py", format!("http://localhost:{port}/"), "2"]);
        format!("  - {{ id: {id}, tool: shell.run, args: {{ argv: {argv} }} }}\n")
    };
    let steps = [step("one", ports[0]), step("two", ports[0]), step("three", ports[1])];
    let plan = capsule.write_plan(&format!("version: 1\nname: fetch\nsteps:\n{}", steps.concat()));
    let ran = capsule.run(&["run", "--unattended", "--policy", &policy, &plan]);
    let refused = |call: &Value| -> Vec<Value> {
        let all = call["connections"].as_array().unwrap();
        all.iter().map(|connection| connection["refused"].clone()).collect()
    };
    let found: Vec<Vec<Value>> = calls(&capsule).iter().map(refused).collect();
    let (open, closed) = (Value::Null, json!("quota.per-host"));
    let expected =
        [vec![open.clone(), open.clone()], vec![open.clone(), closed], vec![open.clone(), open]];
    assert_eq!(found, expected, "{}", ran.stderr);
    assert_eq!(servers[0].requests().len(), 3);
    replays(&capsule);
}

/// Connections to a named port of the host's loopback are connections to a host.
#[test]
fn connections_to_a_port_of_the_host_are_bounded() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let server = HttpServer::fixed("200 OK", "", "a page");
    let port = server.port().to_string();
    let policy = capsule.write_policy(&format!(
        "version: 1
extends: builtin:developer
sandbox: {{ network: {{ shell.run: proxy, loopback: {{ connect: [{port}] }} }} }}
tools:
  shell.run:
    effects: {{ network: allow, code: allow, unknown: allow }}
    quota: {{ per_host: 2 }}
"
    ));
    capsule.write_file("fetch.py", FETCH);
    let url = format!("http://localhost:{port}/");
    let words = ["exec", "--unattended", "--policy", &policy, "--", "python3", "fetch.py"];
    let ran = capsule.run(&[&words[..], &[&url, "3"]].concat());
    assert_eq!(ran.stdout.lines().take(2).collect::<Vec<_>>(), ["6", "6"], "{}", ran.stderr);
    assert!(ran.stdout.contains("cut"), "{}", ran.stdout);
    assert_eq!(server.requests().len(), 2);
    let told = calls(&capsule)[0]["result"]["refused_hosts"].clone();
    assert_eq!(told[0]["code"], "quota.per-host", "{told}");
    assert_eq!(told[0]["host"], format!("localhost:{port}"));
    replays(&capsule);
}

/// The connection that is one too many at once is refused with a reason that the program and the model see, and when
/// another has ended there is room again.
#[test]
fn one_connection_too_many_is_refused_with_a_reason() {
    const MOST: usize = capsule_base::limits::PROXY_CONNECTIONS;
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let server = HttpServer::fixed("200 OK", "", "a page");
    let policy = policy(&capsule, &[server.port()], "", "");
    capsule.write_file(
        "many.py",
        "import os, socket, sys, time
port, most = int(sys.argv[1]), int(sys.argv[2])
proxy = int(os.environ['http_proxy'].rsplit(':', 1)[1])
def tunnel():
    s = socket.create_connection(('127.0.0.1', proxy))
    s.sendall(b'CONNECT localhost:%d HTTP/1.1\\r\\n\\r\\n' % port)
    return s, s.recv(1000).decode()
def tunnels(many):
    all = [tunnel() for _ in range(many)]
    assert all and {answer.split()[1] for _, answer in all} == {'200'}
    return all
# One process may not open as many files.
ready, hold = os.pipe(), os.pipe()
if os.fork() == 0:
    held = tunnels(most // 2)
    os.write(ready[1], b'x')
    os.close(hold[1])
    os.read(hold[0], 1)
    os._exit(0)
open = tunnels(most - most // 2)
os.read(ready[0], 1)
for _ in range(2):
    print(tunnel()[1])
open.pop()[0].close()
for _ in range(100):
    answer = tunnel()[1]
    if ' 200 ' in answer:
        break
    time.sleep(0.05)
print(answer.split('\\r\\n')[0])
",
    );
    let (port, most) = (server.port().to_string(), MOST.to_string());
    let words = ["exec", "--unattended", "--policy", &policy, "--", "python3", "many.py"];
    let ran = capsule.run(&[&words[..], &[&port, &most]].concat());
    let reason = "as many connections at once";
    assert_eq!(
        ran.stdout.matches("HTTP/1.1 403 Forbidden").count(),
        2,
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    assert!(ran.stdout.contains(reason) && ran.stdout.contains("net.too-many-connections"));
    assert!(ran.stdout.ends_with("HTTP/1.1 200 Connection established\n"), "{}", ran.stdout);
    let told = calls(&capsule)[0]["result"]["refused_hosts"].clone();
    assert_eq!(told[0]["code"], "net.too-many-connections", "{told}");
    assert!(told[0]["reason"].as_str().unwrap().contains(reason), "{told}");
    replays(&capsule);
}

/// A client that closes its half when it has asked gets its page.
#[test]
fn a_client_that_has_asked_may_close_its_half() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let server = HttpServer::start(|request, stream| {
        thread::sleep(Duration::from_millis(300));
        let body = format!("got {}", request.body.len());
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        let _ = stream.write_all(format!("{head}{body}").as_bytes());
    });
    let policy = policy(&capsule, &[server.port()], "", "");
    capsule.write_file(
        "half.py",
        "import os, socket, sys
port = int(sys.argv[1])
proxy = int(os.environ['http_proxy'].rsplit(':', 1)[1])
s = socket.create_connection(('127.0.0.1', proxy))
s.sendall(b'GET http://localhost:%d/ HTTP/1.1\\r\\nHost: localhost:%d\\r\\n\\r\\n' % (port, port))
s.shutdown(socket.SHUT_WR)
print(s.makefile('rb').read().decode().splitlines()[-1])
",
    );
    let port = server.port().to_string();
    let words = ["exec", "--unattended", "--policy", &policy, "--", "python3", "half.py", &port];
    let ran = capsule.run(&words);
    assert_eq!(ran.stdout, "got 0\n", "{}", ran.stderr);
    replays(&capsule);
}

/// A server that resets a connection ends that one, as it is on record, and no other.
#[test]
fn a_reset_ends_one_connection() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let good = HttpServer::fixed("200 OK", "", "a page");
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("reset.py");
    // Closed with no time to linger, a socket sends a reset.
    let text = "import socket, struct, sys
listening = socket.create_server(('127.0.0.1', int(sys.argv[1])), backlog=64)
while True:
    s, _ = listening.accept()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    if s.recv(1000):
        s.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 9000\\r\\n\\r\\nhalf')
    s.close()
";
    std::fs::write(&script, text).unwrap();
    let bad = ServerProcess::start(|port| {
        let mut command = Command::new("python3");
        command.arg(&script).arg(port.to_string());
        command
    });
    let policy = policy(&capsule, &[good.port(), bad.port()], "", "");
    capsule.write_file(
        "fetch.py",
        "import sys, urllib.request
held = urllib.request.urlopen(sys.argv[1])
for _ in range(20):
    try:
        print(urllib.request.urlopen(sys.argv[2]).read())
    except Exception as error:
        print('ended')
print(held.read().decode(), urllib.request.urlopen(sys.argv[1]).read().decode())
",
    );
    let urls = [good.port(), bad.port()].map(|port| format!("http://localhost:{port}/"));
    let words = ["exec", "--unattended", "--policy", &policy, "--", "python3", "fetch.py"];
    let ran = capsule.run(&[&words[..], &[&urls[0], &urls[1]]].concat());
    assert_eq!(ran.stdout, format!("{}a page a page\n", "ended\n".repeat(20)), "{}", ran.stderr);
    let call = calls(&capsule).remove(0);
    let connections = call["connections"].as_array().unwrap();
    assert_eq!(connections.len(), 22);
    assert!(connections.iter().all(|one| one["sent"].as_u64() > Some(0)), "{connections:?}");
    replays(&capsule);
}

/// E10: a name is looked up once for a connection, and the address that was checked is the one that is dialled; the
/// next connection is checked anew, so a name whose address changes in between leads nowhere else.
#[test]
fn a_name_that_changes_its_address_leads_nowhere_else() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let policy = capsule.write_policy(
        "version: 1
extends: builtin:developer
sandbox:
  network:
    shell.run: proxy
    hosts: [\"changing.example:8080\"]
    private_ips: { allow: [127.0.0.2] }
tools: { shell.run: { effects: { network: allow, code: allow, unknown: allow } } }
",
    );
    capsule.write_file("fetch.py", FETCH);
    let directory = tempfile::tempdir().unwrap();
    let [script, resolv, counts] =
        ["rebinding.py", "resolv", "counts"].map(|name| directory.path().join(name));
    std::fs::write(&script, include_str!("network_bounds/rebinding.py")).unwrap();
    std::fs::write(&resolv, "").unwrap();
    let words = ["exec", "--unattended", "--policy", &policy, "--", "python3", "fetch.py"];
    let [script, resolv, seen] = [&script, &resolv, &counts].map(|path| path.to_str().unwrap());
    let behind =
        ["unshare", "--map-root-user", "--mount", "--net", "python3", script, resolv, seen];
    let words = [&words[..], &["http://changing.example:8080/", "4"]].concat();
    let mut command = capsule.command_behind(&behind, &words);
    let ran = command.output().unwrap();
    let (out, errors) = (String::from_utf8(ran.stdout), String::from_utf8(ran.stderr).unwrap());
    let out = out.unwrap();
    let lines: Vec<&str> = out.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), 4, "{lines:?}{errors}");
    for (line, is_open) in lines.iter().zip([true, false, true, false]) {
        assert_eq!(*line == "4", is_open, "{lines:?}");
        assert!(is_open || line.contains("net.private-address"), "{lines:?}");
    }
    let told: Value = serde_json::from_str(&std::fs::read_to_string(&counts).unwrap()).unwrap();
    let (one, other) = ("127.0.0.2", "127.0.0.3");
    assert_eq!(told, json!({ "asked": [one, other, one, other], "served": [one, one] }));
    let call = calls(&capsule).remove(0);
    let dialled = call["connections"].as_array().unwrap().iter();
    let dialled: Vec<Value> = dialled.map(|each| each["target"]["addresses"].clone()).collect();
    let open = json!(["127.0.0.2:8080"]);
    assert_eq!(dialled, [open.clone(), json!([]), open, json!([])]);
    replays(&capsule);
}

/// E14: who reaches one host and asks for another inside of TLS is cut off before the server sees it; no name, the
/// host's own in other letters, and what is no TLS pass, by either kind of tunnel.
#[test]
fn the_server_inside_of_tls_is_the_host_that_was_judged() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let directory = tempfile::tempdir().unwrap();
    let server = ServerProcess::start_tls(&directory.path().join("crt"));
    let port = server.port();
    // One that speaks first, and no TLS.
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let plain_port = plain.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in plain.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.write_all(b"hello\n");
            let _ = stream.read(&mut [0; 64]);
            let _ = stream.write_all(b"bye\n");
        }
    });
    let policy = policy(&capsule, &[port, plain_port], "", "");
    capsule.write_file(
        "names.py",
        "import os, socket, ssl, struct, sys
proxy = int(os.environ['http_proxy'].rsplit(':', 1)[1])
port, plain = int(sys.argv[1]), int(sys.argv[2])
def connect(port):
    s = socket.create_connection(('127.0.0.1', proxy))
    s.sendall(b'CONNECT localhost:%d HTTP/1.1\\r\\n\\r\\n' % port)
    # What the server says first may come with the answer of the proxy.
    head = b''
    while not head.endswith(b'\\r\\n\\r\\n'):
        head += s.recv(1)
    assert b' 200 ' in head
    return s
def socks(port):
    s = socket.create_connection(('127.0.0.1', proxy))
    s.sendall(b'\\x05\\x01\\x00')
    assert s.recv(2) == b'\\x05\\x00'
    s.sendall(b'\\x05\\x01\\x00\\x03\\x09localhost' + struct.pack('>H', port))
    assert s.recv(10)[1] == 0
    return s
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
for tunnel in (connect, socks):
    for name in (None, 'localhost', 'LocalHost', 'other.example', 'localhost.other.example'):
        try:
            s = context.wrap_socket(tunnel(port), server_hostname=name)
            s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
            print(name, s.recv(15).decode())
            s.close()
        except OSError as error:
            print(name, 'cut')
    s = tunnel(plain)
    print(s.recv(6).decode().strip(), end=' ')
    s.sendall(b'word')
    print(s.recv(6).decode().strip())
",
    );
    let (port, plain_port) = (port.to_string(), plain_port.to_string());
    let words = [
        "exec",
        "--unattended",
        "--policy",
        &policy,
        "--",
        "python3",
        "names.py",
        &port,
        &plain_port,
    ];
    let ran = capsule.run(&words);
    let once = "None HTTP/1.0 200 ok\nlocalhost HTTP/1.0 200 ok\nLocalHost HTTP/1.0 200 ok\n\
                other.example cut\nlocalhost.other.example cut\nhello bye\n";
    assert_eq!(ran.stdout, once.repeat(2), "{}", ran.stderr);
    let call = calls(&capsule).remove(0);
    let connections = call["connections"].as_array().unwrap();
    let cut = connections.iter().filter(|connection| connection["cut"] == "net.server-name");
    assert_eq!(cut.clone().count(), 4, "{connections:?}");
    assert!(cut.clone().all(|connection| connection["sent"] == 0), "nothing reached the server");
    let told = &call["result"]["refused_hosts"][0];
    assert_eq!(told["code"], "net.server-name", "{told}");
    assert!(told["reason"].as_str().unwrap().contains("asked for `other.example`"), "{told}");
    replays(&capsule);
}

/// A server that is slow, hangs, resets or lies about lengths costs the connections to others nothing.
#[test]
fn a_bad_server_costs_the_others_nothing() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let good = HttpServer::fixed("200 OK", "", "a page");
    let bad = HttpServer::start(|request, stream| {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n";
        match request.target.as_str() {
            "/hang" => thread::sleep(Duration::from_secs(30)),
            "/slow" => {
                let _ = stream.write_all(head);
                while stream.write_all(b"x").is_ok() {
                    thread::sleep(Duration::from_millis(200));
                }
            }
            "/end" => {
                let _ = stream.write_all(head);
                let _ = stream.shutdown(std::net::Shutdown::Both);
            }
            "/lie" => {
                drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\nshort"))
            }
            _ => drop(stream.write_all(b"\x00\xff no http at all")),
        }
    });
    let policy = policy(&capsule, &[good.port(), bad.port()], "", "");
    capsule.write_file(
        "all.py",
        "import sys, threading, urllib.request
good, bad = sys.argv[1], sys.argv[2]
def fetch(path):
    try:
        urllib.request.urlopen(bad + path, timeout=60).read()
    except Exception:
        pass
for path in ('hang', 'slow', 'end', 'lie', 'noise') * 8:
    threading.Thread(target=fetch, args=(path,), daemon=True).start()
print(sum(urllib.request.urlopen(good).read() == b'a page' for _ in range(100)))
",
    );
    let urls = [good.port(), bad.port()].map(|port| format!("http://localhost:{port}/"));
    let began = Instant::now();
    let words = [
        "exec",
        "--unattended",
        "--policy",
        &policy,
        "--",
        "python3",
        "all.py",
        &urls[0],
        &urls[1],
    ];
    let ran = capsule.run(&words);
    assert_eq!((ran.status, ran.stdout.trim()), (0, "100"), "{}", ran.stderr);
    assert!(began.elapsed() < Duration::from_secs(20), "none of the others was waited for");
    replays(&capsule);
}
