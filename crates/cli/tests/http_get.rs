//! `http.get` against a real server on loopback that the policy names.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::io::Write;
use std::time::{Duration, Instant};

use capsule_testkit::{Capsule, HttpServer};
use serde_json::{Value, json};

fn capsule() -> Capsule {
    Capsule::new(env!("CARGO_BIN_EXE_capsule"))
}

/// A policy that names the server, with more of the tool's keys.
fn policy(capsule: &Capsule, server: &HttpServer, more: &str) -> String {
    capsule.write_policy(&format!(
        "version: 1
tools:
  http.get:
    decision: allow
    urls:
      allow: [\"http://127.0.0.1:{}/**\"]
    private_ips: {{ allow: [127.0.0.1] }}
    {more}
",
        server.port()
    ))
}

fn get(capsule: &Capsule, policy: &str, url: &str) -> (i32, Value) {
    let args = json!({ "url": url }).to_string();
    let ran = capsule.run(&["call", "http.get", "--policy", policy, "--args", &args]);
    (ran.status, ran.json())
}

/// CAP-6: a page is fetched, and its text, status and telling headers come back.
#[test]
fn a_named_address_is_fetched() {
    let server = HttpServer::fixed(
        "200 OK",
        "Content-Type: application/json\r\nSet-Cookie: secret=1\r\n",
        r#"[{"n":1}]"#,
    );
    let capsule = capsule();
    let policy = policy(&capsule, &server, "");
    let (status, answer) = get(&capsule, &policy, &server.url("/a?b=c"));
    assert_eq!(status, 0);
    let result = &answer["result"];
    assert_eq!(result["http_status"], 200);
    assert_eq!(result["text"], r#"[{"n":1}]"#);
    assert_eq!(result["json"][0]["n"], 1);
    assert_eq!(result["headers"]["content-type"], "application/json");
    assert_eq!(result["headers"].get("set-cookie"), None);
    assert_eq!(result["truncated"], false);
    let seen = server.requests();
    assert_eq!(seen[0].target, "/a?b=c");
    assert!(!seen[0].headers.iter().any(|line| line.starts_with("cookie")));
}

/// CAP-6: an address is private unless the policy names it, whatever way it is written.
#[test]
fn private_addresses_are_refused() {
    let server = HttpServer::fixed("200 OK", "", "secret");
    let capsule = capsule();
    let port = server.port();
    let policy = capsule.write_policy(&format!(
        "version: 1
tools:
  http.get:
    decision: allow
    urls:
      - \"http://127.0.0.1:{port}/**\"
      - \"http://localhost:{port}/**\"
      - \"http://[::ffff:127.0.0.1]:{port}/**\"
"
    ));
    for host in ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "127.1", "[::ffff:127.0.0.1]"] {
        let (status, answer) = get(&capsule, &policy, &format!("http://{host}:{port}/"));
        assert_eq!((status, &answer["code"]), (3, &json!("net.private-address")), "{host}");
    }
    assert_eq!(server.requests(), [], "nothing was asked");
}

/// CAP-6: a name that the policy does not name is not looked up; the answer is the policy's.
#[test]
fn a_name_that_is_not_named_is_not_resolved() {
    let server = HttpServer::fixed("200 OK", "", "x");
    let capsule = capsule();
    let policy = policy(&capsule, &server, "");
    let began = Instant::now();
    let (status, answer) = get(&capsule, &policy, "http://name.that.does.not.exist.invalid/");
    assert_eq!((status, &answer["code"]), (3, &json!("net.not-allowed")));
    assert!(began.elapsed() < Duration::from_secs(5));
    let (_, answer) = get(&capsule, &policy, &format!("http://localhost:{}/", server.port()));
    assert_eq!(answer["code"], "net.not-allowed", "another name for the same address");
}

/// CAP-6: a redirect is judged like a call of its own.
#[test]
fn redirects_are_judged_at_every_hop() {
    let server = HttpServer::start(|request, stream| {
        let location = match request.target.as_str() {
            "/good" => "/end".to_owned(),
            "/loop" => "/loop".to_owned(),
            "/private" => "http://10.0.0.1/".to_owned(),
            "/metadata" => "http://169.254.169.254/latest/".to_owned(),
            "/file" => "file:///etc/passwd".to_owned(),
            "/elsewhere" => "http://elsewhere.invalid/".to_owned(),
            "/back" => "/../end".to_owned(),
            _ => {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nend");
                return;
            }
        };
        let answer =
            format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
        let _ = stream.write_all(answer.as_bytes());
    });
    let capsule = capsule();
    let policy = policy(&capsule, &server, "redirects: { max: 3, cross_origin: allow }");
    let code = |target: &str| get(&capsule, &policy, &server.url(target)).1["code"].clone();
    let (status, answer) = get(&capsule, &policy, &server.url("/good"));
    assert_eq!((status, &answer["result"]["text"]), (0, &json!("end")));
    assert_eq!(answer["result"]["redirects"], 1);
    assert_eq!(get(&capsule, &policy, &server.url("/back")).0, 0);
    assert_eq!(code("/loop"), "net.too-many-redirects");
    for target in ["/private", "/metadata"] {
        assert_eq!(code(target), "net.private-address", "{target}");
    }
    assert_eq!(code("/elsewhere"), "net.redirect-denied");
    assert_eq!(code("/file"), "net.scheme");
    let reason = get(&capsule, &policy, &server.url("/metadata")).1["reason"].clone();
    let told = reason.as_str().unwrap();
    assert!(told.contains("is refused: the address 169.254.169.254 is link-local"), "{told}");
    // Decision 24: a plan can expect it.
    let plan = capsule.write_plan(&format!(
        "version: 1\nsteps:\n- tool: http.get\n  args: {{ url: \"{}\" }}\n  \
         expect: {{ denied: net.private-address }}\n",
        server.url("/private")
    ));
    let _ = capsule.run(&["run", &plan, "--policy", &policy]).exits(0);
}

/// CAP-6, decision 26: a redirect that a person would have to approve is not followed, and says so.
#[test]
fn a_redirect_that_must_be_asked_for_is_asked_for() {
    let other = HttpServer::fixed("200 OK", "", "other");
    let to = other.url("/");
    let server = HttpServer::start(move |_, stream| {
        let head = format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
        let _ = stream.write_all(head.as_bytes());
    });
    let capsule = capsule();
    for (word, status, code) in [
        ("ask", 4, "approval.needed"),
        ("ask-each", 4, "approval.needed"),
        ("deny", 3, "net.redirect-denied"),
    ] {
        let policy = policy(&capsule, &server, &format!("redirects: {{ cross_origin: {word} }}"));
        let (ended, answer) = get(&capsule, &policy, &server.url("/"));
        assert_eq!((ended, &answer["code"]), (status, &json!(code)), "{word}: {answer}");
    }
    let named = format!(
        "version: 1
tools:
  http.get:
    decision: allow
    urls:
      allow: [\"http://127.0.0.1:{}/**\", {{ url: \"http://127.0.0.1:{}/**\", decision: ask }}]
    private_ips: {{ allow: [127.0.0.1] }}
    redirects: {{ cross_origin: allow }}
",
        server.port(),
        other.port()
    );
    let (ended, answer) = get(&capsule, &capsule.write_policy(&named), &server.url("/"));
    assert_eq!((ended, &answer["code"]), (4, &json!("approval.needed")), "{answer}");
    assert_eq!(other.requests(), [], "nothing was asked of the other one");
}

/// CAP-6: a body in a coding that was not asked for is refused, not delivered as text.
#[test]
fn a_coding_that_was_not_asked_for_is_refused() {
    let capsule = capsule();
    for (header, good) in [
        ("br", false),
        ("deflate", false),
        ("gzip, br", false),
        ("identity", true),
        ("Identity", true),
    ] {
        let server =
            HttpServer::fixed("200 OK", &format!("Content-Encoding: {header}\r\n"), "coded");
        let policy = policy(&capsule, &server, "");
        let (status, answer) = get(&capsule, &policy, &server.url("/"));
        match good {
            true => assert_eq!(answer["result"]["text"], "coded", "{header}"),
            false => {
                assert_eq!((status, &answer["code"]), (1, &json!("net.protocol")), "{header}");
                assert!(!answer.to_string().contains("coded\""), "{answer}");
            }
        }
    }
}

/// NFR-6, G10: a credential that our own limit cuts in two is masked all the same.
#[test]
fn a_cut_body_does_not_show_a_part_of_a_credential() {
    let token = format!("ghp_{}", "Z9".repeat(18));
    let server = HttpServer::fixed("200 OK", "", &format!("{} {token} end", "x".repeat(979)));
    let capsule = capsule();
    let policy = policy(&capsule, &server, "limits: { bytes_max: 1KB }");
    let (_, answer) = get(&capsule, &policy, &server.url("/"));
    let text = answer["result"]["text"].as_str().unwrap();
    assert_eq!(
        (&answer["result"]["truncated"], &answer["result"]["bytes_total"]),
        (&json!(true), &json!(1_000))
    );
    assert!(!text.contains("Z9") && text.contains("«token:github:20:"), "{text:.100}");
}

/// CAP-6, NFR-11: bytes are capped on the wire and after decompression, time is capped always.
#[test]
fn bodies_are_bounded() {
    let bomb = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&vec![b'a'; 20_000_000]).unwrap();
        encoder.finish().unwrap()
    };
    let server = HttpServer::start(move |request, stream| {
        let _ = match request.target.as_str() {
            "/long" => {
                let head = "HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n";
                stream
                    .write_all(head.as_bytes())
                    .and_then(|()| stream.write_all(&vec![b'x'; 3_000_000]))
            }
            "/bomb" => {
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
                    bomb.len()
                );
                stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&bomb))
            }
            "/endless" => {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
                loop {
                    if stream.write_all(&[b'y'; 4096]).is_err() {
                        return;
                    }
                }
            }
            // Says that it will answer, and then does not.
            _ => {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nslow");
                std::thread::sleep(Duration::from_secs(30));
                Ok(())
            }
        };
    });
    let capsule = capsule();
    let policy = policy(&capsule, &server, "limits: { timeout: 2s, bytes_max: 1MB }");
    for (target, length) in [("/long", 1_000_000), ("/bomb", 4_000_000), ("/endless", 1_000_000)] {
        let (status, answer) = get(&capsule, &policy, &server.url(target));
        assert_eq!(status, 0, "{target}: {}", answer["code"]);
        assert_eq!(answer["result"]["truncated"], true, "{target}");
        assert_eq!(answer["result"]["bytes_total"], length, "{target}");
    }
    let began = Instant::now();
    let (status, answer) = get(&capsule, &policy, &server.url("/slow"));
    assert_eq!((status, &answer["code"]), (1, &json!("net.timeout")));
    assert!(began.elapsed() < Duration::from_secs(10));
}

/// CAP-12: what cannot be fetched says why, with a class and an exit of its own.
#[test]
fn failures_have_codes() {
    let server = HttpServer::start(|_, stream| drop(stream.write_all(b"not http at all\r\n\r\n")));
    let capsule = capsule();
    let policy_path = policy(&capsule, &server, "");
    let (status, answer) = get(&capsule, &policy_path, &server.url("/"));
    assert_eq!((status, &answer["code"]), (1, &json!("net.protocol")));
    assert_eq!(answer["status"], "tool_error");
    let closed = {
        let gone = HttpServer::fixed("200 OK", "", "");
        gone.port()
    };
    let policy = capsule.write_policy(&format!(
        "version: 1\ntools:\n  http.get:\n    decision: allow\n    urls: [\"http://127.0.0.1:{closed}\"]\n    \
         private_ips: {{ allow: [127.0.0.1] }}\n"
    ));
    let (_, answer) = get(&capsule, &policy, &format!("http://127.0.0.1:{closed}/"));
    assert_eq!(answer["code"], "net.connect");
}

/// Headers that say who asks or whom are not the call's to set.
#[test]
fn headers_are_an_allowlist() {
    let server = HttpServer::fixed("200 OK", "", "x");
    let capsule = capsule();
    let policy = policy(&capsule, &server, "");
    for (name, value, good) in [
        ("Accept", "text/html", true),
        ("Host", "evil.invalid", false),
        ("Authorization", "Bearer x", false),
        ("Cookie", "a=b", false),
        ("Accept", "a\r\nX-Injected: 1", false),
    ] {
        let args = json!({ "url": server.url("/"), "headers": { name: value } }).to_string();
        let ran = capsule.run(&["call", "http.get", "--policy", &policy, "--args", &args]);
        let code = &ran.json()["code"];
        assert_eq!(ran.status == 0, good, "{name}: {code}");
        assert!(good || code == "net.header", "{name}: {code}");
    }
}

/// CAP-3: quotas bound a run.
#[test]
fn quotas_are_counted() {
    let server = HttpServer::fixed("200 OK", "", "0123456789");
    let capsule = capsule();
    let policy = policy(&capsule, &server, "quota: { calls: 2, per_host: 2 }");
    let url = server.url("/");
    let step = format!("- {{ tool: http.get, args: {{ url: \"{url}\" }} }}\n");
    let plan = capsule.write_plan(&step.repeat(3));
    let ran = capsule.run(&["run", &plan, "--policy", &policy]).exits(7);
    assert!(ran.stdout.contains("quota.calls"), "{}", ran.stdout);
    assert_eq!(server.requests().len(), 2);
}
