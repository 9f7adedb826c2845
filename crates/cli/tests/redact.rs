//! `capsule redact`, and what a policy says about secrets.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests fail by panics"
)]

use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capsule_testkit::{Capsule, HttpServer};
use serde_json::{Value, json};

fn capsule() -> Capsule {
    Capsule::new(env!("CARGO_BIN_EXE_capsule"))
}

fn token() -> String {
    ["ghp_", "q3X9", "v7Lw2Tz8Rk5Np1Yb6Jc4Hd0Sf9Ge3UaW"].concat()
}

/// NFR-6: standard input to standard output, whatever bytes come, and nothing else is touched.
#[test]
fn redact_is_a_filter() {
    let capsule = capsule();
    let text = format!("one {} two\r\nDB_PASSWORD=Tr0ub4dor&3\nplain: 1\n\u{1b}[0m", token());
    let ran = capsule.run_with(&["redact"], &text).exits(0);
    let masked = ran.stdout;
    assert!(masked.starts_with("one «token:github:"), "{masked}");
    assert!(masked.ends_with("plain: 1\n\u{1b}[0m") && !masked.contains("Tr0ub"), "{masked}");
    assert_eq!(capsule.run_with(&["redact"], &masked).exits(0).stdout, masked, "masked twice");
    assert_eq!(capsule.run_with(&["redact"], "").exits(0).stdout, "");
    let _ = capsule.run_with(&["redact", "more"], "").exits(2);
    // It needs no policy, no store and no workspace, and makes none.
    assert!(!capsule.store().exists());
}

/// NFR-6: with `--json` one line for each secret, which says where it is and not what it is.
#[test]
fn redact_lists_what_it_finds() {
    let capsule = capsule();
    let text = format!("one {}\ntwo\n  password: \"Tr0ub4dor&3\"\n", token());
    let out = capsule.run_with(&["redact", "--json"], &text).exits(0).stdout;
    let found: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found.len(), 2, "{out}");
    let (first, second) = (&found[0], &found[1]);
    assert_eq!((&first["kind"], &first["rule"]), (&"token".into(), &"github".into()));
    assert_eq!((&first["line"], &first["column"]), (&1.into(), &5.into()));
    assert_eq!((&second["kind"], &second["line"]), (&"password".into(), &3.into()));
    let at = usize::try_from(second["offset"].as_u64().unwrap()).unwrap();
    let length = usize::try_from(second["length"].as_u64().unwrap()).unwrap();
    assert_eq!(text.get(at..at + length).unwrap(), "Tr0ub4dor&3");
    assert!(!out.contains("Tr0ub") && !out.contains(&token()));
}

/// NFR-6, G10: 100 MB through a pipe, in bounded memory; what is sure comes out before more goes in.
#[test]
fn redact_streams_in_bounded_memory() {
    let capsule = capsule();
    let mut child =
        capsule.command(&["redact"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut into, mut from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    into.write_all(b"first line\nsecond ").unwrap();
    let mut first = [0; 11];
    from.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"first line\n");
    let reader = std::thread::spawn(move || {
        let (mut seen, mut tail, mut buffer) = (0, Vec::new(), vec![0; 1 << 16]);
        loop {
            let read = from.read(&mut buffer).unwrap();
            if read == 0 {
                return (seen, tail);
            }
            seen += read;
            tail.extend_from_slice(&buffer[..read]);
            let keep = tail.len().saturating_sub(1 << 10);
            tail.drain(..keep);
        }
    });
    let line = "2026-03-01T00:00:00Z INFO request of user 17 took 3 ms, cache miss for /a/b\n";
    let block = line.repeat((1 << 20) / line.len());
    let begun = Instant::now();
    let mut written = 0;
    let mut peak = 0;
    while written < 100 << 20 {
        into.write_all(block.as_bytes()).unwrap();
        written += block.len();
        peak = peak.max(resident(child.id()));
    }
    // A line that never ends is held back only in part.
    into.write_all("x".repeat(8 << 20).as_bytes()).unwrap();
    peak = peak.max(resident(child.id()));
    into.write_all(format!(" {}", token()).as_bytes()).unwrap();
    drop(into);
    let (seen, tail) = reader.join().unwrap();
    assert!(child.wait().unwrap().success());
    assert!(begun.elapsed() < Duration::from_secs(300));
    assert!(seen > written && tail.ends_with("»".as_bytes()));
    println!("{peak} KiB at most, {:?}", begun.elapsed());
    assert!(peak > 0 && peak < 64 << 10, "{peak} KiB");
}

/// How much memory a process has, in KiB.
fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

const POLICY: &str = r#"version: 1
name: masks
tools:
  fs.read: { decision: allow, paths: { allow: ["**"] } }
  fs.write: { decision: allow, paths: { allow: ["**"] } }
  fs.edit: { decision: allow, paths: { allow: ["**"] } }
redaction:
  at: boundary
  detectors: [builtin]
  patterns: [{ id: acme-token, regex: "acme_[A-Za-z0-9]{12}" }]
  previews: { never_mask: [executable, flag, path, host] }
"#;

const SETTINGS: &str = "# settings\nDB_PASSWORD=Tr0ub4dor&3\nacme=acme_a1B2c3D4e5F6\nport=80\n";

fn call(capsule: &Capsule, policy: &str, tool: &str, args: &Value) -> (i32, Value) {
    let args = args.to_string();
    let ran = capsule.run(&["call", tool, "--policy", policy, "--json", "--args", &args]);
    (ran.status, ran.json())
}

fn replays(capsule: &Capsule, status: i32) {
    let replayed = capsule.run(&["replay", "latest"]);
    assert_eq!(replayed.status, status, "{}", replayed.stderr);
    assert!(replayed.stderr.contains("nothing was executed"), "{}", replayed.stderr);
}

/// NFR-6, G10: a pattern of the policy is masked wherever it is delivered, and a mask that comes back
/// is never written in place of what it hides.
#[test]
fn a_mask_that_comes_back_is_refused() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let file = capsule.write_file("app.env", SETTINGS);
    let (status, read) = call(&capsule, &policy, "fs.read", &json!({ "path": "app.env" }));
    assert_eq!(status, 0);
    let seen = read["result"]["text"].as_str().unwrap();
    assert!(seen.contains("acme=«pattern:acme-token:17»"), "{seen}");
    assert!(seen.contains("DB_PASSWORD=«password:setting:11»"), "{seen}");
    replays(&capsule, 0);
    let edited = seen.replace("port=80", "port=443");
    let encoded = encode(&edited);
    let line = "DB_PASSWORD=«password:setting:11»";
    for (tool, args) in [
        ("fs.write", json!({ "path": "app.env", "content": edited })),
        ("fs.write", json!({ "path": "app.env", "content_base64": encoded })),
        ("fs.write", json!({ "path": "new.env", "content": edited, "mode": "create" })),
        ("fs.write", json!({ "path": "app.env", "content": edited, "mode": "append" })),
        ("fs.edit", json!({ "path": "app.env", "search": "port=80", "replace": line })),
        ("fs.edit", json!({ "path": "app.env", "search": line, "replace": "x=1" })),
    ] {
        let (status, answer) = call(&capsule, &policy, tool, &args);
        assert_eq!((status, &answer["code"]), (3, &json!("redaction.mask-in-content")), "{args}");
        assert!(answer["suggestion"].as_str().unwrap().contains("returned_masks"), "{answer}");
        replays(&capsule, 3);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), SETTINGS);
    // Around it everything can be edited.
    let args = json!({ "path": "app.env", "search": "port=80", "replace": "port=443" });
    assert_eq!(call(&capsule, &policy, "fs.edit", &args).0, 0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), SETTINGS.replace("port=80", "port=443"));
}

/// G10: an edit is made in the file as it is shown. What is masked can neither be guessed by what is
/// found, nor be shown by a change of what stands before it.
#[test]
fn an_edit_neither_guesses_nor_shows_a_secret() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let file = capsule.write_file("app.env", SETTINGS);
    let secret = SETTINGS.lines().find_map(|own| own.strip_prefix("DB_PASSWORD=")).unwrap();
    let first: String = secret.chars().take(4).collect();
    for guess in [format!("DB_PASSWORD={first}"), secret.to_owned(), first.clone()] {
        for count in [1, 2] {
            let args =
                json!({ "path": "app.env", "search": guess, "replace": "y", "count": count });
            let (status, answer) = call(&capsule, &policy, "fs.edit", &args);
            assert_eq!((status, &answer["code"]), (1, &json!("edit.not-found")), "{args} {answer}");
            assert!(!answer.to_string().contains(&first), "{answer}");
        }
    }
    for (search, replace) in [("DB_PASSWORD=", "x"), ("PASSWORD", "COLOUR")] {
        let args = json!({ "path": "app.env", "search": search, "replace": replace });
        let (status, answer) = call(&capsule, &policy, "fs.edit", &args);
        assert_eq!((status, &answer["code"]), (3, &json!("redaction.mask-in-content")), "{answer}");
        replays(&capsule, 3);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), SETTINGS);
    // What is around it, and what is new, can be written.
    let args = json!({ "path": "app.env", "search": "port=80", "replace": "port=80\nAPI_PASSWORD=Zq7w-Rt5y-Pl2k" });
    assert_eq!(call(&capsule, &policy, "fs.edit", &args).0, 0);
    assert!(std::fs::read_to_string(&file).unwrap().contains("Zq7w-Rt5y-Pl2k"));
}

/// G10: where the policy says so, a mask becomes what the same line of the same file held, and nothing
/// else.
#[test]
fn a_mask_that_comes_back_is_resolved_where_the_policy_says_so() {
    let capsule = capsule();
    let policy = capsule.write_policy(&format!("{POLICY}  returned_masks: resolve\n"));
    let file = capsule.write_file("app.env", SETTINGS);
    let (_, read) = call(&capsule, &policy, "fs.read", &json!({ "path": "app.env" }));
    let seen = read["result"]["text"].as_str().unwrap().to_owned();
    let edited = seen.replace("port=80", "port=443");
    let (status, answer) =
        call(&capsule, &policy, "fs.write", &json!({ "path": "app.env", "content": edited }));
    assert_eq!(status, 0, "{answer}");
    let now = SETTINGS.replace("port=80", "port=443");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), now);
    replays(&capsule, 0);
    assert_eq!(capsule.run(&["undo", "latest"]).status, 0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), SETTINGS);
    let search = "DB_PASSWORD=«password:setting:11»\nacme";
    let replace = "DB_PASSWORD=«password:setting:11»\n# ours\nacme";
    let args = json!({ "path": "app.env", "search": search, "replace": replace });
    assert_eq!(call(&capsule, &policy, "fs.edit", &args).0, 0);
    let now = SETTINGS.replace("acme=", "# ours\nacme=");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), now);
    replays(&capsule, 0);
    for (tool, args) in [
        ("fs.write", json!({ "path": "app.env", "content": "curl -d «password:setting:11» x\n" })),
        (
            "fs.write",
            json!({ "path": "app.env", "content": "DB_PASSWORD=«password:setting:12»\n" }),
        ),
        ("fs.write", json!({ "path": "run.sh", "content": "DB_PASSWORD=«password:setting:11»\n" })),
        ("fs.write", json!({ "path": "new.env", "content": seen, "mode": "create" })),
        ("fs.write", json!({ "path": "app.env", "content": seen, "mode": "append" })),
        (
            "fs.edit",
            json!({ "path": "app.env", "search": "port=80", "replace": "p=«password:setting:11»" }),
        ),
    ] {
        let (status, answer) = call(&capsule, &policy, tool, &args);
        assert_eq!((status, &answer["code"]), (3, &json!("redaction.mask-in-content")), "{args}");
        replays(&capsule, 3);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), now);
    assert!(!capsule.workspace().join("run.sh").exists());
    // Whether a mask stands for something tells of the file, which has to be open to reading.
    let text = POLICY.replacen("[\"**\"]", "[\"docs/**\"]", 1);
    assert_ne!(text, POLICY);
    let policy = capsule.write_policy(&format!("{text}  returned_masks: resolve\n"));
    let args = json!({ "path": "app.env", "content": "DB_PASSWORD=«password:setting:11»\n" });
    let (status, answer) = call(&capsule, &policy, "fs.write", &args);
    assert_eq!((status, &answer["code"]), (3, &json!("path.not-allowed")), "{answer}");
    for (policy, code) in [
        ("tools: { fs.write: { decision: allow, paths: { allow: [\"**\"] } } }", "policy.no-rule"),
        (
            "profile: own
profiles: { own: { decide: { fs.read: deny, fs.write: allow } } }
tools: { fs.read: { paths: [\"**\"] }, fs.write: { paths: [\"**\"] } }",
            "profile.denied",
        ),
        (
            "never: [{ id: no-env, capabilities: [fs.read], paths: [\"app.env\"] }]
tools: { fs.read: allow, fs.write: { decision: allow, paths: [\"**\"] } }",
            "policy.never",
        ),
    ] {
        let policy = capsule.write_policy(&format!(
            "version: 1\n{policy}\nredaction: {{ returned_masks: resolve }}\n"
        ));
        let (status, answer) = call(&capsule, &policy, "fs.write", &args);
        assert_eq!((status, &answer["code"]), (3, &json!(code)), "{answer}");
    }
    let args = json!({ "path": "app.env", "content": "port=1\n" });
    assert_eq!(call(&capsule, &policy, "fs.write", &args).0, 0);
}

/// G10: text in wide characters is text, and masked as such.
#[test]
fn wide_characters_are_masked() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let wide = |unit: fn(u16) -> [u8; 2]| -> Vec<u8> {
        format!("\u{feff}{SETTINGS}token {}\r\n", token()).encode_utf16().flat_map(unit).collect()
    };
    for (name, bytes, word) in [
        ("le.txt", wide(u16::to_le_bytes), "utf-16le"),
        ("be.txt", wide(u16::to_be_bytes), "utf-16be"),
    ] {
        std::fs::write(capsule.workspace().join(name), bytes).unwrap();
        let (status, answer) = call(&capsule, &policy, "fs.read", &json!({ "path": name }));
        assert_eq!((status, &answer["result"]["encoding"]), (0, &json!(word)), "{answer}");
        let text = answer["result"]["text"].as_str().unwrap();
        assert!(text.contains("DB_PASSWORD=«password:setting:11»"), "{text}");
        assert!(text.contains("token «token:github:"), "{text}");
        replays(&capsule, 0);
        let (_, answer) =
            call(&capsule, &policy, "fs.read", &json!({ "path": name, "offset": 7, "limit": 60 }));
        assert_eq!(answer["result"]["binary"], false, "{answer}");
    }
    // What is not quite text is not shown raw, and words stay apart.
    let le = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let odd = [le(&format!("\u{feff}x {} y\n", token())), vec![b'\n']].concat();
    let null = le(&format!("\u{feff}x\0 {} y\n", token()));
    let lone = [le("\u{feff}a"), vec![0, 0xdc], le(&format!("{} y\n", token()))].concat();
    let joined = le(&format!("\u{feff}a\u{feff}{} y\n", token()));
    for (bytes, offset) in [(odd, 0), (null, 0), (lone.clone(), 0), (lone, 4), (joined, 0)] {
        std::fs::write(capsule.workspace().join("odd.txt"), bytes).unwrap();
        let args = json!({ "path": "odd.txt", "offset": offset });
        let (status, answer) = call(&capsule, &policy, "fs.read", &args);
        assert_eq!(status, 0, "{answer}");
        let result = &answer["result"];
        assert!(result["base64"].is_null() && !answer.to_string().contains(&token()), "{answer}");
    }
}

/// M5: one boundary decodes for all: the output of a command as it passes and as it is kept, the body of an answer,
/// and a file; in UTF-16 and UTF-32, with and without a mark, colours between a key and its value, and binary before.
#[test]
fn every_way_out_masks_in_every_encoding() {
    let capsule = capsule();
    let token = token();
    let text = format!("name: x\npassword: Tr0ub4dor&3\nkey {token} end\n");
    let wide = |mark: bool, unit: fn(u32) -> Vec<u8>| -> Vec<u8> {
        let text = if mark { format!("\u{feff}{text}") } else { text.clone() };
        text.chars().flat_map(|own| unit(u32::from(own))).collect()
    };
    let le16 = |own: u32| u16::try_from(own).unwrap().to_le_bytes().to_vec();
    let be16 = |own: u32| u16::try_from(own).unwrap().to_be_bytes().to_vec();
    let bodies: Vec<(&str, Vec<u8>)> = vec![
        ("utf-16le", wide(false, le16)),
        ("utf-16be", wide(false, be16)),
        ("utf-16le-mark", wide(true, le16)),
        ("utf-16be-mark", wide(true, be16)),
        ("utf-32le", wide(false, |own| own.to_le_bytes().to_vec())),
        ("utf-32be", wide(false, |own| own.to_be_bytes().to_vec())),
        ("utf-32le-mark", wide(true, |own| own.to_le_bytes().to_vec())),
        ("behind-binary", [&b"\x7fELF\x02\x01\0\0\0x"[..], &wide(false, le16)].concat()),
        (
            "coloured",
            text.replace(": T", "\u{1b}[0m:\u{1b}[1m T").replace("ghp_", "gh\u{ad}p_").into_bytes(),
        ),
    ];
    // What stands there without what nobody sees, and what base64 stands for.
    let plain = |bytes: &[u8]| -> String {
        let bytes: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
        String::from_utf8_lossy(&bytes).replace('\u{ad}', "")
    };
    let shown = |value: &Value| -> String {
        let fields = value.as_object().unwrap().values().filter_map(Value::as_str);
        let decoded =
            |own: &str| plain(&STANDARD.decode(own).unwrap_or_else(|_| own.as_bytes().to_vec()));
        fields.map(decoded).collect::<Vec<String>>().join("\n")
    };
    let leaks = |text: &str| text.contains("Tr0ub") || text.contains("v7Lw2Tz8");
    let served = bodies.clone();
    let server = HttpServer::start(move |request, stream| {
        let body = served.iter().find(|(name, _)| request.target == format!("/{name}")).unwrap();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.1.len());
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body.1)).unwrap();
    });
    let policy = capsule.write_policy(&format!(
        "version: 1
tools:
  fs.read: {{ decision: allow }}
  shell.run: {{ decision: allow, executables: [cat] }}
  http.get:
    decision: allow
    urls: {{ allow: ['{}'], private_ips: {{ allow: [127.0.0.1] }} }}
",
        server.url("/**")
    ));
    for (name, bytes) in &bodies {
        assert!(leaks(&plain(bytes)), "{name}: the test itself");
        let _ = capsule.write_file(name, bytes);
        let line = ["exec", "--policy", &policy, "--", "cat", name];
        let passed = capsule.command(&line).output().unwrap();
        assert!(passed.status.success(), "{name}: {}", String::from_utf8_lossy(&passed.stderr));
        assert!(!leaks(&plain(&passed.stdout)), "{name}: {:?}", plain(&passed.stdout));
        assert!(plain(&passed.stdout).contains("name: x\n"), "{name}: {:?}", plain(&passed.stdout));
        for (tool, args) in [
            ("shell.run", json!({ "argv": ["cat", name] })),
            ("http.get", json!({ "url": server.url(&format!("/{name}")) })),
            ("fs.read", json!({ "path": name })),
        ] {
            let (_, answer) = call(&capsule, &policy, tool, &args);
            assert_eq!(answer["status"], "ok", "{tool} {name}: {answer}");
            assert!(!leaks(&shown(&answer["result"])), "{tool} {name}: {answer}");
        }
        let mut redact = capsule.command(&["redact"]);
        let mut child = redact.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        let out = child.wait_with_output().unwrap().stdout;
        assert_eq!(out, passed.stdout, "{name}");
    }
}

fn encode(text: &str) -> String {
    use std::fmt::Write as _;
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut made = String::new();
    for group in text.as_bytes().chunks(3) {
        let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - group.len()));
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            let letter = if place > group.len() { '=' } else { char::from(letter) };
            write!(made, "{letter}").unwrap();
        }
    }
    made
}

/// House rule 9: what a policy says wrongly about secrets is refused at its place.
#[test]
fn policies_about_secrets_are_checked() {
    let capsule = capsule();
    let fetch = "  http.get: { urls: { allow: [{ id: own, url: \"https://api.example.org/**\" }, \
                 { id: plain, url: \"http://api.example.org/**\" }] } }\n  shell.run: { env: { pass: \
                 [GIVEN] }, executables: { ls: allow } }\n";
    let good = "{ from: env, only_for: [http.get/own], as: { header: Authorization, format: \"Bearer {}\" } }";
    for (text, code) in [
        ("redaction: { at: log }", "policy.unknown-value"),
        ("redaction: { detectors: [other] }", "policy.unknown-value"),
        ("redaction: { detectors: [] }", "policy.unknown-value"),
        ("redaction: { previews: { never_mask: [path] } }", "policy.unknown-value"),
        ("redaction: { returned_masks: keep }", "policy.unknown-value"),
        ("redaction: { patterns: [{ id: a, regex: \"x+\" }] }", "policy.regex"),
        ("redaction: { patterns: [{ id: a, regex: \"(x\" }] }", "policy.regex"),
        ("redaction: { patterns: [{ id: a }] }", "policy.missing-key"),
        (
            "redaction: { patterns: [{ id: a, regex: abcd }, { id: a, regex: abcde }] }",
            "policy.duplicate-key",
        ),
        ("redaction: { mask: all }", "policy.unknown-key"),
        ("secrets: { token: GOOD }", "policy.wrong-type"),
        (
            "secrets: { TOKEN: { from: file, only_for: [http.get/own], as: { header: X } } }",
            "policy.unknown-value",
        ),
        (
            "secrets: { TOKEN: { from: env, only_for: [], as: { header: X } } }",
            "policy.unknown-value",
        ),
        (
            "secrets: { TOKEN: { from: env, only_for: [http.get/none], as: { header: X } } }",
            "policy.unknown-value",
        ),
        (
            "secrets: { TOKEN: { from: env, only_for: [http.get/plain], as: { header: X } } }",
            "policy.unknown-value",
        ),
        (
            "secrets: { TOKEN: { from: env, only_for: [fs.read/own], as: { header: X } } }",
            "policy.unknown-value",
        ),
        (
            "secrets: { TOKEN: { from: env, only_for: [http.get/own], as: { header: Host } } }",
            "policy.unknown-value",
        ),
        (
            "secrets: { TOKEN: { from: env, only_for: [http.get/own], as: { header: X, format: none } } }",
            "policy.unknown-value",
        ),
        ("secrets: { TOKEN: { from: env, as: { header: X } } }", "policy.missing-key"),
        ("secrets: { GIVEN: GOOD }", "policy.unknown-value"),
        ("secrets: { ONE: GOOD, OTHER: GOOD }", "policy.unknown-value"),
    ] {
        let text = text.replace("GOOD", good);
        let policy = capsule.write_policy(&format!("version: 1\ntools:\n{fetch}{text}\n"));
        let ran = capsule.run(&["policy", "check", "--policy", &policy, "--json"]);
        assert_eq!(ran.status, 2, "{text}\n{}", ran.stdout);
        assert!(ran.stdout.contains(code), "{text}\n{}", ran.stdout);
    }
    let policy =
        capsule.write_policy(&format!("version: 1\ntools:\n{fetch}secrets: {{ TOKEN: {good} }}\n"));
    let _ = capsule.run(&["policy", "check", "--policy", &policy]).exits(0);
    let shown = capsule.run(&["policy", "show", "--resolved", "--policy", &policy]).exits(0).stdout;
    assert!(
        shown.contains("Authorization: Bearer {}") && shown.contains("http.get/own"),
        "{shown}"
    );
}

/// NFR-6, G10: a handle becomes its value in the one request that the policy names, and nowhere else:
/// no result, record, replay, error or command has it.
#[test]
fn a_secret_is_sent_where_the_policy_says_and_nowhere_else() {
    let server = HttpServer::start(|request, stream| {
        let own = request.headers.iter().find(|line| line.starts_with("authorization:"));
        let own = own.map_or("none", |line| line.trim());
        let body = format!("you said {own}");
        let (status, more) = match request.target.as_str() {
            "/api/away" => ("302 Found", "Location: /open/there\r\n"),
            _ => ("200 OK", ""),
        };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\n{more}Content-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        let _ = stream.write_all((head + &body).as_bytes());
    });
    let mut capsule = capsule();
    let port = server.port();
    let policy = capsule.write_policy(&format!(
        "version: 1
tools:
  http.get:
    decision: allow
    urls:
      - {{ id: api, url: \"http://127.0.0.1:{port}/api/**\" }}
      - {{ id: open, url: \"http://127.0.0.1:{port}/open/**\" }}
    private_ips: {{ allow: [127.0.0.1] }}
  shell.run: {{ decision: allow, executables: {{ env: allow, printf: allow }} }}
secrets:
  SERVICE_TOKEN: {{ from: env, only_for: [http.get/api], as: {{ header: Authorization, format: \"Bearer {{}}\" }} }}
"
    ));
    let get = |capsule: &Capsule, path: &str| {
        call(capsule, &policy, "http.get", &json!({ "url": server.url(path) }))
    };
    let sent = || {
        let seen = server.requests();
        let last = seen.last().unwrap();
        last.headers.iter().any(|line| line.starts_with("authorization:"))
    };
    // Without a value the call fails, and nothing is asked.
    let (status, answer) = get(&capsule, "/api/x");
    assert_eq!((status, &answer["code"]), (10, &json!("secrets.unavailable")), "{answer}");
    assert_eq!(server.requests(), []);
    replays(&capsule, 10);
    let value = "correct-horse-battery";
    capsule.set("SERVICE_TOKEN", value);
    let (status, answer) = get(&capsule, "/api/x");
    assert_eq!(status, 0, "{answer}");
    assert!(sent() && !answer.to_string().contains(value), "{answer}");
    let text = answer["result"]["text"].as_str().unwrap();
    assert!(text.contains("Bearer «secret:SERVICE_TOKEN:21»"), "{text}");
    let shown = capsule.run(&["show-run", "latest:1", "--json"]).exits(0).stdout;
    assert!(shown.contains("secrets.access") && !shown.contains(value), "{shown}");
    capsule.set("SERVICE_TOKEN", "");
    replays(&capsule, 0);
    capsule.set("SERVICE_TOKEN", value);
    // Not under another rule, and not where a redirect leads.
    assert_eq!(get(&capsule, "/open/x").0, 0);
    assert!(!sent());
    assert_eq!(get(&capsule, "/api/away").0, 0);
    assert!(!sent(), "{:?}", server.requests());
    // No command has it in its environment, and none prints it.
    let ran = capsule.run(&["exec", "--policy", &policy, "--", "env"]).exits(0);
    assert!(!ran.stdout.contains("SERVICE_TOKEN"), "{}", ran.stdout);
    let ran = capsule.run(&["exec", "--policy", &policy, "--", "printf", value]).exits(0);
    assert_eq!(ran.stdout, "«secret:SERVICE_TOKEN:21»");
    for name in ["store.db", "store.db-wal"] {
        let bytes = std::fs::read(capsule.store().with_file_name(name)).unwrap_or_default();
        let held = bytes.windows(value.len()).any(|window| window == value.as_bytes());
        assert!(!held, "{name} holds the value");
    }
}

/// House rule 9: a layer adds patterns, and never a secret that is sent or a milder word on masks.
#[test]
fn a_layer_masks_more_and_sends_nothing() {
    let capsule = capsule();
    let policy = capsule.write_policy(&format!("{POLICY}  returned_masks: resolve\n"));
    let layer = "version: 1\nlayer: workspace\nredaction: { patterns: [{ id: more, regex: \
                 \"inner-[0-9]{6}\" }] }\n";
    capsule.write_file(".capsule/policy.yaml", layer);
    capsule.write_file("a.txt", "x inner-123456 and acme_a1B2c3D4e5F6\n");
    let (status, read) = call(&capsule, &policy, "fs.read", &json!({ "path": "a.txt" }));
    assert_eq!(status, 0, "{read}");
    let seen = read["result"]["text"].as_str().unwrap();
    assert_eq!(seen, "x «pattern:more:12» and «pattern:acme-token:17»\n");
    replays(&capsule, 0);
    // It does not say that masks are refused, so the policy's word holds; and then it does.
    let write = json!({ "path": "a.txt", "content": seen });
    assert_eq!(call(&capsule, &policy, "fs.write", &write).0, 0);
    let refuse = layer.replace("{ patterns", "{ returned_masks: refuse, patterns");
    capsule.write_file(".capsule/policy.yaml", refuse);
    let (_, answer) = call(&capsule, &policy, "fs.write", &write);
    assert_eq!(answer["code"], "redaction.mask-in-content", "{answer}");
    let sends = "version: 1\nlayer: workspace\nsecrets: { A: { from: env, only_for: [http.get/x], \
                 as: { header: X } } }\n";
    capsule.write_file(".capsule/policy.yaml", sends);
    let ran = capsule.run(&["policy", "check", "--policy", &policy]);
    assert_eq!(ran.status, 2, "{}", ran.stdout);
    assert!((ran.stdout + &ran.stderr).contains("policy.layer"));
}
