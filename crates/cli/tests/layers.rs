//! Layers: of the workspace, which nobody vouches for, and of the user. They tighten, they are
//! recorded, and what becomes of them is told.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use capsule_testkit::{Capsule, CommandOutput};
use serde_json::{Value, json};

fn capsule() -> Capsule {
    Capsule::new(env!("CARGO_BIN_EXE_capsule"))
}

/// A policy of the user's own: some of everything.
const POLICY: &str = r#"version: 1
name: mine
tools:
  fs.search: allow
  fs.list: allow
  fs.read: { decision: allow, hidden: allow }
  fs.write:
    paths: { allow: ["**"], deny: ["keep/**"] }
    rules: [{ id: docs, paths: ["docs/**"], decision: allow }, { id: src, paths: ["src/**"], decision: ask }]
  http.get:
    domains: [docs.rs]
    urls: { allow: [{ id: api, url: "https://api.example.org/**", decision: allow }] }
    redirects: { max: 5, cross_origin: allow }
  shell.run:
    form: command
    effects: { reads: allow, opens: allow, writes: ask, deletes: ask }
    executables:
      git: { subcommands: { log: allow, status: allow, commit: ask, "*": deny } }
      make: { decision: ask, limits: { timeout_max: 5m } }
      touch: { decision: allow, writes: ["**"] }
      tool: allow
      perl: { decision: allow, flags: { allow: [-e] }, writes: ["**"] }
    env: { pass: [LANG], accept: [CI, LEVEL] }
sandbox: { workspace: staged }
"#;

const MARK: &str = "version: 1\nlayer: workspace\n";

impl Bed {
    fn new() -> Self {
        let capsule = capsule();
        let policy = capsule.write_policy(POLICY);
        for (path, text) in [("docs/a.md", "a"), ("src/a.rs", "a"), ("README.md", "readme")] {
            capsule.write_file(path, text);
        }
        Self { capsule, policy }
    }

    /// The same with a layer in the workspace.
    fn with(text: &str) -> Self {
        let bed = Self::new();
        bed.layer(text);
        bed
    }

    fn layer(&self, text: &str) {
        self.capsule.write_file(PLACE, format!("{MARK}{text}"));
    }

    fn place(&self) -> PathBuf {
        self.capsule.workspace().join(PLACE)
    }

    fn run(&self, line: &[&str]) -> CommandOutput {
        let (command, rest) = line.split_first().unwrap();
        let line: Vec<&str> =
            [*command, "--policy", &self.policy].into_iter().chain(rest.iter().copied()).collect();
        self.capsule.run(&line)
    }

    #[track_caller]
    fn explain(&self, tool: &str, args: &Value) -> Value {
        let args = args.to_string();
        let line = ["policy", "explain", "--policy", &self.policy, "--json", "--tool", tool];
        let line: Vec<&str> = line.into_iter().chain(["--args", &args]).collect();
        self.capsule.run(&line).exits(0).json()
    }
}

/// A workspace, and a policy outside of it.
struct Bed {
    capsule: Capsule,
    policy: String,
}

/// A program that writes what no word of its command line names.
const WRITES: &str = "open my $f, '>', 'do' . 'cs/y'; print $f 'x'";

const PLACE: &str = ".capsule/policy.yaml";

type Call = (&'static str, Value);

/// What is said of a workspace, and what makes it so.
type Make<'m> = (&'static str, &'m dyn Fn(&Bed));

/// A call, what is decided on it, and by which rule.
type Decided<'d> = (Call, &'d str, &'d str);

fn write(path: &str) -> Call {
    ("fs.write", json!({ "path": path, "content": "x" }))
}

fn read(path: &str) -> Call {
    ("fs.read", json!({ "path": path }))
}

fn get(url: &str) -> Call {
    ("http.get", json!({ "url": url }))
}

fn run(line: &str) -> Call {
    ("shell.run", json!({ "argv": line.split(' ').collect::<Vec<_>>() }))
}

fn command(text: &str) -> Call {
    ("shell.run", json!({ "command": text }))
}

/// CAP-3: one table of layers, calls and what is decided on them. What a layer does not say stays as
/// the policy says.
#[test]
fn a_layer_tightens_what_it_names() {
    let rows: &[(&str, &[Decided<'_>])] = &[
        (
            "never: [{ id: no-docs, capabilities: [fs.write], paths: [\"docs/**\"] }]\n",
            &[
                (write("docs/x"), "deny", "no-docs"),
                (write("src/x"), "ask", "fs.write/src"),
                (read("docs/a.md"), "allow", "fs.read"),
            ],
        ),
        // A word for a tool is its word for all of it, whatever nested rules of the policy say.
        (
            "tools: { fs.write: ask, http.get: deny }\n",
            &[
                (write("docs/x"), "ask", "fs.write"),
                (write("keep/x"), "deny", "fs.write"),
                (get("https://api.example.org/x"), "deny", "http.get"),
                (read("docs/a.md"), "allow", "fs.read"),
            ],
        ),
        (
            "tools: { shell.run: ask }\n",
            &[
                (run("git log"), "ask", "shell.run/git.log"),
                (run("git push"), "deny", "no-publishing"),
                (run("ls"), "ask", "shell.run/effects.reads"),
                (run("tool x"), "ask", "shell.run/tool"),
                (command("ls && git log"), "ask", "shell.run/effects.reads"),
            ],
        ),
        // Another name of a tool is the tool.
        ("tools: { file_write: deny }\n", &[(write("docs/x"), "deny", "fs.write")]),
        // What is narrower is closed for the rest; words that stand there stay.
        (
            "tools: { fs.write: { paths: [\"docs/gen/**\", \"keep/**\"] }, fs.read: { paths: { deny: [\"src/**\"], hidden: deny } } }\n",
            &[
                (write("docs/gen/x"), "allow", "fs.write/docs"),
                (write("docs/x"), "deny", "fs.write"),
                (write("keep/x"), "deny", "fs.write"),
                (read("src/a.rs"), "deny", "fs.read"),
                (read(".hidden"), "deny", "fs.read"),
                (read("README.md"), "allow", "fs.read"),
            ],
        ),
        (
            "tools: { http.get: { urls: [\"https://api.example.org/a/**\"] } }\n",
            &[
                (get("https://api.example.org/a/x"), "allow", "http.get/api"),
                (get("https://api.example.org/b"), "deny", "http.get"),
                (get("https://docs.rs/x"), "deny", "http.get"),
            ],
        ),
        (
            "tools: { http.get: { urls: { deny: [{ id: b, url: \"https://api.example.org/b/**\" }] } } }\n",
            &[
                (get("https://api.example.org/b/x"), "deny", "http.get/b"),
                (get("https://api.example.org/a"), "allow", "http.get/api"),
            ],
        ),
        // A part of a program, and the others stay.
        (
            "tools: { shell.run: { executables: { git: { subcommands: { log: { flags: { deny: [--all] } }, commit: deny } }, tool: { subcommands: { launch: deny } } } } }\n",
            &[
                (run("git log --all"), "deny", "shell.run/git.log"),
                (run("git log"), "allow", "shell.run/git.log"),
                (run("git status"), "allow", "shell.run/git.status"),
                (run("git commit -m x"), "deny", "shell.run/git.commit"),
                (run("tool launch"), "deny", "shell.run/tool.launch"),
                (run("tool build"), "allow", "shell.run/tool"),
                (run("ls"), "allow", "shell.run/effects.reads"),
            ],
        ),
        (
            "tools: { shell.run: { executables: { git: ask }, effects: { reads: ask-each }, denied_tokens: [x] } }\n",
            &[
                (run("git log"), "ask", "shell.run/git"),
                (run("ls"), "ask-each", "shell.run/effects.reads"),
                (run("tool x"), "deny", "shell.run"),
                (run("tool y"), "allow", "shell.run/tool"),
            ],
        ),
        (
            "tools: { shell.run: { form: argv, env: { accept: [CI] } } }\n",
            &[
                (command("ls"), "deny", "shell.run"),
                (run("ls"), "allow", "shell.run/effects.reads"),
            ],
        ),
        (
            "profile: readonly\n",
            &[
                (write("docs/x"), "deny", "profile/readonly"),
                (read("docs/a.md"), "allow", "fs.read"),
                (run("ls"), "deny", "profile/readonly"),
            ],
        ),
        (
            "profile: own\nprofiles: { own: { decide: { fs.write: ask-each } } }\n",
            &[
                (write("docs/x"), "allow", "fs.write/docs"),
                (write("src/x"), "ask", "fs.write/src"),
                (write("other"), "ask-each", "profile/own"),
                (run("ls"), "allow", "shell.run/effects.reads"),
            ],
        ),
        (
            "capabilities: { fs.write: { risk: high } }\n",
            &[(write("docs/x"), "deny", "risk"), (read("docs/a.md"), "allow", "fs.read")],
        ),
        ("risk: { block_at: medium }\n", &[(write("docs/x"), "deny", "risk")]),
        (
            "tools: { fs.write: { limits: { bytes_max: 5KB } }, fs.read: { quota: { calls: 0 } } }\n",
            &[
                (
                    ("fs.write", json!({ "path": "docs/x", "content": "x".repeat(5_001) })),
                    "deny",
                    "fs.write",
                ),
                (write("docs/x"), "allow", "fs.write/docs"),
                (read("docs/a.md"), "deny", "fs.read"),
            ],
        ),
    ];
    let mut wrong = Vec::new();
    for (layer, calls) in rows {
        let bed = Bed::with(layer);
        let before = Bed::new();
        for ((tool, args), decision, rule) in *calls {
            let decided = bed.explain(tool, args);
            if (&decided["decision"], &decided["rule"]) != (&json!(decision), &json!(rule)) {
                wrong
                    .push(format!("{layer}{tool} {args}: wanted {decision} {rule}, got {decided}"));
            }
            // What the layer decides it says where.
            let alone = before.explain(tool, args);
            let at = decided["at"].as_str().unwrap_or_default();
            let is_layers = at.starts_with(&format!("{PLACE}:"));
            if is_layers != (decided["decision"] != alone["decision"]) {
                wrong.push(format!("{layer}{tool} {args}: stands at `{at}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// F19: a layer that would loosen changes nothing.
#[test]
fn a_layer_loosens_nothing() {
    let calls = [
        write("keep/x"),
        write("src/x"),
        write("other"),
        read("../x"),
        read(".env"),
        get("https://evil.example/x"),
        get("http://10.0.0.1/"),
        get("https://docs.rs/x"),
        run("git push"),
        run("git commit -m x"),
        run("git stash"),
        run("rm -rf docs"),
        run("bash -c id"),
        run("curl https://x"),
        run("python3 -c 1"),
        run("made-up"),
        command("LEVEL=1 OTHER=2 tool x"),
        command("echo x > src/new"),
        ("fs.delete", json!({ "path": "docs/a.md" })),
        ("test.run", json!({})),
    ];
    let loose = [
        "tools: { fs.write: { decision: allow, paths: [\"**\"], rules: [{ id: src, paths: [\"**\"], decision: allow }] }, fs.read: { hidden: allow }, fs.delete: allow }\n",
        "tools: { http.get: { decision: allow, domains: [evil.example, docs.rs], private_ips: { allow: [10.0.0.0/8] } } }\n",
        "tools: { shell.run: { decision: allow, effects: { reads: allow, writes: allow, deletes: allow, runs: allow, code: allow, network: allow, unknown: allow }, executables: { git: { decision: allow, subcommands: { push: allow, commit: allow, \"*\": allow } }, curl: allow, bash: allow, made-up: allow }, env: { accept: [OTHER, LEVEL] } } }\n",
        "tools: { test.run: allow, shell.run: { limits: { timeout_max: 24h, memory: 4GiB }, quota: { calls: 1000 } } }\n",
        "sandbox: { floor: landlock, level: workspace-write, workspace: direct }\n",
        "profile: open\nprofiles: { open: { decide: { \"*\": allow } } }\nrisk: { block_at: none, escalate: [] }\nbudgets: { run: { calls: 100000 } }\n",
        "never: [{ id: no-credentials, capabilities: [fs.meta], paths: [none], because: Nothing. }, { id: no-own-files, paths: [none] }]\n",
    ];
    let alone = Bed::new();
    let before: Vec<Value> = calls.iter().map(|(tool, args)| alone.explain(tool, args)).collect();
    for layer in loose {
        let bed = Bed::with(layer);
        for ((tool, args), before) in calls.iter().zip(&before) {
            assert_eq!(&bed.explain(tool, args), before, "{layer}{tool} {args}");
        }
    }
}

/// What tightens nothing no layer says, and a layer is no policy.
#[test]
fn what_no_layer_may_say_is_refused() {
    let bed = Bed::new();
    for (layer, says) in [
        ("lift: [{ id: no-shells, because: x }]\n", "it has no `lift`"),
        ("extends: builtin:developer\n", "it has no `extends`"),
        ("workspace: { root: / }\n", "it has no `workspace`"),
        ("audit: { payloads: digest }\n", "it has no `audit`"),
        ("deny: [{ id: x, tool: fs.read }]\n", "it has no `deny`"),
        ("grants: { offer: [session] }\n", "it has no `grants`"),
        ("budgets: { attention: { prompts: 1000, per: 1s } }\n", "it has no `attention`"),
        ("capabilities: { fs.delete: { label: look at a file } }\n", "it has no `label`"),
        ("tools: { test.run: { command: [rm] } }\n", "it has no `command`"),
        ("tools: { shell.run: { env: { set: { CI: x } } } }\n", "it has no `set`"),
        (
            "tools: { shell.run: { executables: { git: { path: /tmp/git } } } }\n",
            "it has no `path`",
        ),
        ("tools: { fs.raed: deny }\n", "did you mean"),
        ("never: [{ id: a }]\n", "forbids nothing"),
        ("profile: none-such\n", "there is no profile"),
        ("layer: user\n", "stands twice"),
        ("x: [\n", "policy.syntax"),
    ] {
        bed.layer(layer);
        let ran = bed.run(&["exec", "--", "ls"]).exits(2);
        assert!(ran.stderr.contains(says), "{layer}: {}", ran.stderr);
        assert!(ran.stderr.contains(PLACE), "{layer}: {}", ran.stderr);
    }
    bed.capsule.write_file(PLACE, "version: 1\nlayer: user\n");
    let ran = bed.run(&["exec", "--", "ls"]).exits(2);
    assert!(ran.stderr.contains("a layer of the workspace, not `user`"), "{}", ran.stderr);
    bed.layer("");
    let ran = bed.capsule.run(&["exec", "--policy", PLACE, "--", "ls"]).exits(2);
    assert!(ran.stderr.contains("a layer tightens a policy, and is none"), "{}", ran.stderr);
    assert!(!bed.capsule.store().exists(), "nothing began");
}

/// C26, F20: what stands at the layer's place and cannot be read could be one.
#[test]
fn what_cannot_be_read_could_be_a_layer() {
    let place = |bed: &Bed| {
        fs::create_dir_all(bed.place().parent().unwrap()).unwrap();
        bed.place()
    };
    let outside = |bed: &Bed| {
        let path = bed.capsule.directory().join("elsewhere/policy.yaml");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, MARK).unwrap();
        path
    };
    let makes: [Make<'_>; 9] = [
        ("it is a link", &|bed| symlink(outside(bed), place(bed)).unwrap()),
        ("it is a link", &|bed| symlink("/dev/zero", place(bed)).unwrap()),
        ("goes through one", &|bed| {
            let folder = outside(bed).parent().unwrap().to_owned();
            symlink(folder, bed.capsule.workspace().join(".capsule")).unwrap();
        }),
        ("not a regular file", &|bed| {
            let made = rustix::fs::mknodat(
                rustix::fs::CWD,
                place(bed),
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::from_raw_mode(0o644),
                0,
            );
            made.unwrap();
        }),
        ("not a regular file", &|bed| fs::create_dir(place(bed)).unwrap()),
        ("policy.unreadable", &|bed| drop(UnixListener::bind(place(bed)).unwrap())),
        ("has more than", &|bed| fs::write(place(bed), "#".repeat(3 << 20)).unwrap()),
        ("is not UTF-8", &|bed| fs::write(place(bed), [0xff, 0xfe, b'\n']).unwrap()),
        ("it could be a layer", &|bed| fs::write(place(bed), "layer: [\n").unwrap()),
    ];
    for (at, (says, make)) in makes.iter().enumerate() {
        let bed = Bed::new();
        make(&bed);
        let began = Instant::now();
        for line in [&["exec", "--", "ls"][..], &["call", "fs.read", "--", "path=README.md"]] {
            let ran = bed.run(line).exits(2);
            assert!(ran.stderr.contains(says), "{at} {says}: {}", ran.stderr);
        }
        let line = ["policy", "explain", "--policy", &bed.policy, "--", "ls"];
        let _ = bed.capsule.run(&line).exits(2);
        assert!(began.elapsed() < Duration::from_secs(10), "{at} waits");
        assert!(!bed.capsule.store().exists(), "{at} began");
    }
    // A file that this user may not read; who may read everything reads it.
    let bed = Bed::with("tools: { shell.run: deny }\n");
    fs::set_permissions(bed.place(), fs::Permissions::from_mode(0o000)).unwrap();
    let status = if fs::File::open(bed.place()).is_ok() { 3 } else { 2 };
    let _ = bed.run(&["exec", "--", "ls"]).exits(status);
}

/// A file at that place that is no layer is a policy when it is named, and nothing when it is not.
#[test]
fn a_policy_of_the_workspace_is_one_when_it_is_named() {
    let bed = Bed::new();
    bed.capsule.write_file(
        PLACE,
        "version: 1\nname: here\nworkspace: { root: .. }\ntools: { fs.list: allow }\n",
    );
    let (tool, args) = read("README.md");
    assert_eq!(bed.explain(tool, &args)["decision"], "allow");
    let ran = bed.capsule.run(&["call", "fs.read", "--policy", PLACE, "--", "path=README.md"]);
    assert!(ran.exits(3).stdout.contains("policy.no-rule"));
    let _ = bed.capsule.run(&["call", "fs.list", "--policy", PLACE, "--", "path=."]).exits(0);
    // `init` writes a policy, and no layer.
    let other = capsule();
    let _ = other.run(&["init"]).exits(0);
    other.write_file("a", "a");
    let policy = other.write_policy(
        "version: 1\nname: p\ntools: { fs.read: { hidden: allow, decision: allow } }\n",
    );
    let _ = other.run(&["call", "fs.read", "--policy", &policy, "--", "path=a"]).exits(0);
    assert!(!other.run(&["report", "latest"]).exits(0).stdout.contains("layer"));
}

/// CAP-10: the layers stand in the record, and decide again in a replay and an explanation, whatever
/// has become of the files.
#[test]
fn layers_are_recorded_and_decide_again() {
    let layer = "never: [{ id: no-docs, capabilities: [fs.write], paths: [\"docs/**\"], because: Made elsewhere. }]\n";
    let bed = Bed::with(layer);
    let ran = bed.run(&["call", "fs.write", "--", "path=docs/x", "content=x"]).exits(3);
    assert!(ran.stdout.contains("the workspace says: Made elsewhere"), "{}", ran.stdout);
    assert!(ran.stderr.contains("no run met it before"), "{}", ran.stderr);
    let _ = bed.run(&["exec", "--", "perl", "-e", WRITES]).exits(3);
    let changed = bed.capsule.run(&["changes", "latest"]).exits(0);
    assert!(
        changed.stdout.contains("refused: the workspace says: Made elsewhere"),
        "{}",
        changed.stdout
    );

    let ids = bed.capsule.run(&["list-runs", "--json"]).exits(0).json();
    let labels: Vec<&str> =
        ids.as_array().unwrap().iter().map(|own| own["label"].as_str().unwrap()).collect();
    let first = labels.last().unwrap();
    let logged = bed.capsule.run(&["policy", "explain", &format!("{first}:1"), "--json"]).exits(0);
    // Nothing of the files is asked again.
    fs::remove_dir_all(bed.capsule.workspace().join(".capsule")).unwrap();
    fs::remove_file(&bed.policy).unwrap();
    let again = bed.capsule.run(&["policy", "explain", &format!("{first}:1"), "--json"]).exits(0);
    assert_eq!(again.stdout, logged.stdout);
    let decided = again.json();
    assert_eq!(decided["rule"], "no-docs");
    assert!(decided["at"].as_str().unwrap().starts_with(&format!("{PLACE}:3:")), "{decided}");
    let _ = bed.capsule.run(&["replay", first]).exits(3);
    let _ = bed.capsule.run(&["replay", "latest"]).exits(3);
    let said = ["feedback", &format!("{first}:1"), "--wrong-denial"];
    let _ = bed.capsule.run(&said).exits(0);
    let _ = bed.capsule.run(&["replay", "latest"]).exits(0);
    let _ = bed.capsule.run(&["verify"]).exits(0);

    let report = bed.capsule.run(&["report", first, "--format", "json"]).exits(0).json();
    let opened = &report["opened"]["entry"]["layers"][0];
    assert_eq!(opened["layer"], "workspace");
    assert!(opened["document"]["path"].as_str().unwrap().ends_with(PLACE), "{opened}");
    assert!(opened.get("since").is_none(), "{opened}");
    let report = bed.capsule.run(&["report", labels[0]]).exits(0).stdout;
    assert!(report.contains(&format!("unchanged since {first}")), "{report}");
}

/// What is staged is applied under the layer that judged it, even when it is gone.
#[test]
fn what_is_applied_is_judged_by_the_recorded_layer() {
    let bed = Bed::new();
    bed.layer("never: [{ id: no-docs, capabilities: [fs.write], paths: [\"docs/**\"] }]\n");
    let _ = bed.run(&["exec", "--", "perl", "-e", WRITES]).exits(3);
    fs::remove_file(bed.place()).unwrap();
    let ran = bed.capsule.run(&["apply", "latest"]).exits(3);
    assert!(ran.stderr.contains("change.refused"), "{}", ran.stderr);
    assert!(!bed.capsule.workspace().join("docs/y").exists());
    // And what nothing stands against is applied, recorded and replayed with it.
    bed.layer("never: [{ id: no-docs, capabilities: [fs.write], paths: [\"docs/**\"] }]\n");
    let _ = bed.run(&["exec", "--", "touch", "out"]).exits(0);
    let _ = bed.capsule.run(&["apply", "latest"]).exits(0);
    assert!(bed.capsule.workspace().join("out").exists());
    let _ = bed.capsule.run(&["replay", "latest"]).exits(0);
}

/// A change is shown before the next run; once.
#[test]
fn a_changed_layer_is_shown_once() {
    let bed = Bed::with("tools: { fs.write: ask }\n");
    let run = || bed.run(&["call", "fs.list", "--", "path=."]).exits(0).stderr;
    assert!(run().contains("no run met it before"));
    assert!(!run().contains("layer"), "it is as it was");
    bed.layer("# \u{1b}[2J\u{202e}\ntools: { fs.write: deny }\nbudgets: { run: { calls: 9 } }\n");
    let shown = run();
    for line in [
        "has changed since r-",
        "- tools: { fs.write: ask }",
        "+ budgets: { run: { calls: 9 } }",
        "⟨U+001B⟩[2J⟨U+202E⟩",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    assert!(!run().contains("layer"));
    let report = bed.capsule.run(&["report", "latest"]).exits(0).stdout;
    assert!(
        report.contains("layer      workspace") && report.contains("unchanged since r-"),
        "{report}"
    );
    // Another workspace is another history.
    let other = bed.capsule.directory().join("other");
    fs::create_dir(&other).unwrap();
    let line = ["call", "fs.list", "--policy", &bed.policy, "--workspace", other.to_str().unwrap()];
    let line: Vec<&str> = line.into_iter().chain(["--", "path=."]).collect();
    assert!(!bed.capsule.run(&line).exits(0).stderr.contains("layer"));
}

/// A layer that is gone, or says less, stops the run until a person has said that it may.
#[test]
fn a_weaker_layer_waits_for_a_person() {
    let layer = "never:\n  - { id: one, paths: [a] }\n  - { id: two, paths: [b] }\ntools: { fs.write: ask }\n";
    let weaker: [Make<'_>; 6] = [
        ("is gone, which r-", &|bed| fs::remove_file(bed.place()).unwrap()),
        ("is gone, which r-", &|bed| {
            bed.capsule.write_file(PLACE, "version: 1\nname: no-layer\ntools: {}\n");
        }),
        ("never, tools", &|bed| bed.layer("")),
        ("met it: never two", &|bed| {
            bed.layer(&layer.replace("  - { id: two, paths: [b] }\n", ""))
        }),
        ("met it: tools.fs.write", &|bed| bed.layer(&layer.replace("ask", "allow"))),
        ("which has an exception now", &|bed| {
            let rule = "{ rules: [{ id: x, paths: [x], decision: allow }], decision: ask }";
            bed.layer(&layer.replace("ask", "{ decision: ask }"));
            let _ = bed.run(&["call", "fs.list", "--accept-layer", "--", "path=."]).exits(0);
            bed.layer(&layer.replace("ask", rule));
        }),
    ];
    for (at, (says, make)) in weaker.iter().enumerate() {
        let bed = Bed::with(layer);
        let list = ["call", "fs.list", "--", "path=."];
        let _ = bed.run(&list).exits(0);
        make(&bed);
        let runs = || bed.capsule.run(&["list-runs"]).exits(0).stdout.lines().count();
        let before = runs();
        let plan =
            bed.capsule.write_plan("version: 1\nsteps: [{ tool: fs.list, args: { path: . } }]\n");
        for line in [&list[..], &["exec", "--", "ls"], &["run", &plan]] {
            let ran = bed.run(line).exits(2);
            assert!(ran.stderr.contains("policy.layer-weaker"), "{at}: {}", ran.stderr);
            assert!(ran.stderr.contains(says), "{at} {says}: {}", ran.stderr);
        }
        assert_eq!(runs(), before, "{at}: nothing began");
        let accepted = ["call", "fs.list", "--accept-layer", "--", "path=."];
        let _ = bed.run(&accepted).exits(0);
        // Said once, it holds; and it stands in the record.
        let _ = bed.run(&list).exits(0);
        let _ = bed.capsule.run(&["replay", "latest"]).exits(0);
        let report = bed.capsule.run(&["report", "latest", "--format", "json"]).exits(0).json();
        assert!(report["opened"]["entry"].get("layer_gone").is_none(), "{at}");
    }
    let bed = Bed::with(layer);
    let _ = bed.run(&["exec", "--", "ls"]).exits(0);
    fs::remove_file(bed.place()).unwrap();
    let _ = bed.run(&["exec", "--accept-layer", "--", "ls"]).exits(0);
    let report = bed.capsule.run(&["report", "latest"]).exits(0).stdout;
    assert!(report.contains("is gone, as accepted"), "{report}");
    let _ = bed.capsule.run(&["replay", "latest"]).exits(0);
    // What a run about another run says does not hide it: the layer that comes back is new.
    let _ = bed.capsule.run(&["feedback", "latest:1", "--wrong-allow"]).exits(0);
    bed.layer(layer);
    assert!(bed.run(&["exec", "--", "ls"]).exits(0).stderr.contains("no run met it before"));
    let _ = bed.capsule.run(&["feedback", "latest:1", "--wrong-allow"]).exits(0);
    fs::remove_file(bed.place()).unwrap();
    let _ = bed.run(&["exec", "--", "ls"]).exits(2);
}

/// Where no payload is kept, nobody can say what a layer said, so every change is for a person.
#[test]
fn a_layer_that_was_not_kept_is_not_compared() {
    let bed = Bed::with("tools: { fs.write: ask }\n");
    let text =
        "version: 1\nname: digests\naudit: { payloads: digest }\ntools: { fs.list: allow }\n";
    let policy = bed.capsule.write_policy(text);
    let list = ["call", "fs.list", "--policy", &policy, "--", "path=."];
    let _ = bed.capsule.run(&list).exits(0);
    let _ = bed.capsule.run(&list).exits(0);
    bed.layer("tools: { fs.write: ask, fs.read: ask }\n");
    let ran = bed.capsule.run(&list).exits(2);
    assert!(ran.stderr.contains("what it said was not kept"), "{}", ran.stderr);
}

/// F22: what was read at the beginning of a run decides until its end.
#[test]
fn a_layer_that_changes_while_a_run_goes_on_waits() {
    let bed = Bed::with("tools: { fs.write: ask }\n");
    let plan = bed.capsule.write_plan(
        "version: 1
steps:
  - { id: wait, tool: shell.run, args: { argv: [sleep, \"2\"] } }
  - { id: read, tool: fs.read, args: { path: README.md } }
",
    );
    let policy = bed.capsule.write_policy(
        "version: 1\nname: p\ntools: { fs.read: allow, shell.run: { executables: { sleep: allow } } }\n",
    );
    let mut command = bed.capsule.command(&["run", &plan, "--policy", &policy]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    // The first call has begun: the layer was read before.
    while !bed.capsule.run(&["show-run", "latest:1"]).stdout.contains("sleep") {
        assert!(began.elapsed() < Duration::from_secs(20), "the run does not begin");
    }
    bed.layer("tools: { fs.write: ask, fs.read: deny }\n");
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
    let next = bed.capsule.run(&["run", &plan, "--policy", &policy]).exits(3);
    assert!(next.stderr.contains("+ tools: { fs.write: ask, fs.read: deny }"), "{}", next.stderr);
}

/// C25: no tool reaches a layer, whatever the policy drops.
#[test]
fn a_layer_is_out_of_reach() {
    let mut bed = Bed::with("tools: { fs.write: ask }\n");
    bed.policy = bed.capsule.write_policy(
        &POLICY.replace("tools:", "lift: [{ id: no-self-modification, because: A test. }]\ntools:"),
    );
    for (tool, args) in [read(PLACE), write(PLACE), run("cat .capsule/policy.yaml")] {
        let decided = bed.explain(tool, &args);
        assert_eq!(decided["rule"], "no-own-files", "{tool} {args}: {decided}");
    }
    // No program finds anything in it either, nor changes it.
    let look = "open my $f, '<', '.capsule/po' . 'licy.yaml' or exit 7; print <$f>";
    let ran = bed.run(&["exec", "--", "perl", "-e", look]);
    assert!(ran.status == 7 || ran.stdout.is_empty(), "{}", ran.stdout);
    let write = "unlink '.capsule/po' . 'licy.yaml'; open my $f, '>', '.capsule/po' . 'licy.yaml' or exit 7; print $f 'x'";
    let _ = bed.run(&["exec", "--", "perl", "-e", write]);
    let staged = bed.capsule.run(&["changes", "latest"]).exits(0).stdout;
    assert!(
        staged.is_empty() || staged.contains("refused") || staged.contains("changed nothing"),
        "{staged}"
    );
    let _ = bed.capsule.run(&["apply", "latest"]);
    let text = fs::read_to_string(bed.place()).unwrap();
    assert_eq!(text, format!("{MARK}tools: {{ fs.write: ask }}\n"));
}

/// What a command may see and change is what both say.
#[test]
fn commands_are_confined_by_both() {
    let policy = r#"version: 1
name: confined
never: [{ id: mine, paths: ["private/**"] }]
tools:
  shell.run:
    executables: { ls: allow, cat: { decision: allow, reads: ["docs/**", "private/**", "README.md"] }, touch: { decision: allow, writes: ["docs/**", "out/**"] }, env: allow, sleep: allow }
    env: { pass: [LANG, SHOWN, HIDDEN] }
sandbox: { workspace: staged }
"#;
    let layer = r#"never: [{ id: theirs, paths: ["vendor/**"] }]
tools:
  shell.run:
    executables:
      cat: { reads: ["docs/**", "private/**", "src/**", "vendor/**"] }
      ls: { reads: ["**"] }
      touch: { writes: ["out/**", "src/**"] }
    env: { pass: [SHOWN, OTHER] }
    limits: { timeout: 1s, timeout_max: 1s }
"#;
    let mut bed = Bed::with(layer);
    bed.policy = bed.capsule.write_policy(policy);
    for path in ["private/a", "vendor/a", "out/a"] {
        bed.capsule.write_file(path, "a");
    }
    for name in ["SHOWN", "HIDDEN", "OTHER"] {
        bed.capsule.set(name, "value");
    }
    let listed = bed.run(&["exec", "--", "ls", "-R", "."]).stdout;
    for (name, is_seen) in [("docs", true), ("src", true), ("private", false), ("vendor", false)] {
        // What is hidden is an empty folder, or none that can be entered.
        let inside = listed.split_once(&format!("./{name}:\n")).map_or("", |(_, inside)| inside);
        let is_there = inside.lines().next().is_some_and(|first| !first.is_empty());
        assert_eq!(is_there, is_seen, "{name}: {listed}");
    }
    for (path, is_read) in [("docs/a.md", true), ("README.md", false), ("src/a.rs", false)] {
        let ran = bed.run(&["exec", "--", "cat", path]);
        assert_eq!(ran.status == 0, is_read, "{path}: {} {}", ran.stdout, ran.stderr);
    }
    for (path, is_changed) in [("out/x", true), ("docs/x", false), ("src/x", false)] {
        let _ = bed.run(&["exec", "--", "touch", path]);
        let changes = bed.capsule.run(&["changes", "latest", "--json"]).exits(0).json();
        let refused = changes["changes"][0]["refused"].is_string();
        assert_eq!(!refused, is_changed, "{path}: {changes}");
    }
    let env = bed.run(&["exec", "--", "env"]).exits(0).stdout;
    assert!(env.contains("SHOWN=value"), "{env}");
    assert!(!env.contains("HIDDEN") && !env.contains("OTHER"), "{env}");
    let began = Instant::now();
    let _ = bed.run(&["exec", "--", "sleep", "9"]).exits(1);
    assert!(began.elapsed() < Duration::from_secs(8));
    // A layer takes writing away altogether.
    bed.layer("sandbox: { workspace: read-only }\n");
    let ran = bed.run(&["exec", "--accept-layer", "--", "touch", "out/y"]);
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("Read-only file system"), "{}", ran.stderr);
}

/// A command that changes the workspace itself is held by what both name.
#[test]
fn direct_changes_are_bounded_by_both() {
    let mut bed = Bed::with(
        "never: [{ id: n, paths: [\"out/kept/**\"] }]\ntools: { shell.run: { executables: { touch: { writes: [\"out/**\", \"src/**\"] } } } }\n",
    );
    bed.policy = bed.capsule.write_policy(
        "version: 1\nname: d\ntools: { shell.run: { executables: { touch: { decision: allow, writes: [\"out/**\", \"docs/**\"] } } } }\nsandbox: { workspace: direct }\n",
    );
    bed.capsule.write_file("out/kept/a", "a");
    for (path, is_made) in
        [("out/x", true), ("docs/x", false), ("src/x", false), ("out/kept/x", false)]
    {
        let ran = bed.run(&["exec", "--", "touch", path]);
        let made = bed.capsule.workspace().join(path).exists();
        assert_eq!(made, is_made, "{path}: {} {}", ran.status, ran.stderr);
    }
    // A layer has it staged instead.
    bed.layer("never: [{ id: n, paths: [\"out/kept/**\"] }]\nsandbox: { workspace: staged }\n");
    let _ = bed.run(&["exec", "--accept-layer", "--", "touch", "out/z"]).exits(0);
    assert!(!bed.capsule.workspace().join("out/z").exists());
    assert!(bed.capsule.run(&["changes", "latest"]).exits(0).stdout.contains("A out/z"));
}

/// The user's own layer tightens every policy, also one that came with the workspace.
#[test]
fn the_users_layer_tightens_every_policy() {
    let bed = Bed::with("tools: { fs.list: ask }\n");
    let config = bed.capsule.home().join(".config/capsule/policy.yaml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(
        &config,
        "version: 1\nlayer: user\nnever: [{ id: mine, paths: [\"docs/**\"], because: Mine. }]\n",
    )
    .unwrap();
    bed.capsule.write_file(
        "here.yaml",
        "version: 1\nname: here\ntools: { fs.read: allow, fs.list: allow }\n",
    );
    let here = bed.capsule.workspace().join("here.yaml").to_string_lossy().into_owned();
    for policy in [bed.policy.as_str(), here.as_str(), "builtin:developer"] {
        let line = [
            "policy",
            "explain",
            "--policy",
            policy,
            "--json",
            "--tool",
            "fs.read",
            "--",
            "path=docs/a.md",
        ];
        let decided = bed.capsule.run(&line).exits(0).json();
        assert_eq!(decided["rule"], "mine", "{policy}: {decided}");
        assert_eq!(decided["reason"], "`docs/a.md`: Mine", "{decided}");
        assert_eq!(decided["at"], "~/.config/capsule/policy.yaml:3:15");
        let line = [
            "policy", "explain", "--policy", policy, "--json", "--tool", "fs.list", "--", "path=.",
        ];
        assert_eq!(bed.capsule.run(&line).exits(0).json()["decision"], "ask", "{policy}");
    }
    let _ = bed.run(&["call", "fs.read", "--", "path=docs/a.md"]).exits(3);
    let report = bed.capsule.run(&["report", "latest"]).exits(0).stdout;
    assert!(
        report.contains("layer      user") && report.contains("layer      workspace"),
        "{report}"
    );
    let _ = bed.capsule.run(&["replay", "latest"]).exits(3);
    // It is the user's to change, and by itself no policy.
    fs::write(&config, "version: 1\nlayer: user\n").unwrap();
    let ran = bed.run(&["call", "fs.read", "--", "path=docs/a.md"]).exits(0);
    assert!(ran.stderr.contains("`~/.config/capsule/policy.yaml` has changed"), "{}", ran.stderr);
    let ran = bed.capsule.run(&["call", "fs.read", "--", "path=docs/a.md"]).exits(2);
    assert!(ran.stderr.contains("policy.layer"), "{}", ran.stderr);
    fs::write(&config, "version: 1\nlayer: workspace\n").unwrap();
    let ran = bed.run(&["exec", "--", "ls"]).exits(2);
    assert!(ran.stderr.contains("a layer of the user, not `workspace`"), "{}", ran.stderr);
}

/// Without `--policy` the user's own holds, and where there is none, nothing runs.
#[test]
fn the_users_policy_is_taken_where_none_is_named() {
    let capsule = capsule();
    capsule.write_file("a", "a");
    for line in
        [&["call", "fs.read", "--", "path=a"][..], &["exec", "--", "ls"], &["policy", "check"]]
    {
        let ran = capsule.run(line).exits(2);
        assert!(ran.stderr.contains("no policy is named"), "{}", ran.stderr);
        assert!(ran.stderr.contains(".config/capsule/policy.yaml"), "{}", ran.stderr);
    }
    let config = capsule.home().join(".config/capsule/policy.yaml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, "version: 1\nname: own\nlift: [{ id: no-network-programs, because: A test. }]\ntools: { fs.read: allow }\n").unwrap();
    let _ = capsule.run(&["call", "fs.read", "--", "path=a"]).exits(0);
    assert!(capsule.run(&["report", "latest"]).exits(0).stdout.contains("policy     own"));
    assert!(capsule.run(&["policy", "check"]).exits(0).stdout.contains("own"));
    let decided =
        capsule.run(&["policy", "explain", "--json", "--tool", "fs.list", "--", "path=."]);
    assert_eq!(decided.exits(0).json()["code"], "policy.no-rule");
    // One that is named takes its place; a layer in the workspace tightens either.
    let policy = capsule
        .write_policy("version: 1\nname: named\ntools: { fs.list: allow, fs.read: allow }\n");
    let _ = capsule.run(&["call", "fs.list", "--policy", &policy, "--", "path=."]).exits(0);
    capsule.write_file(PLACE, format!("{MARK}tools: {{ fs.read: deny }}\n"));
    let _ = capsule.run(&["call", "fs.read", "--", "path=a"]).exits(3);
    let _ = capsule.run(&["call", "fs.read", "--policy", &policy, "--", "path=a"]).exits(3);
    fs::write(&config, "not a policy: [").unwrap();
    let _ = capsule.run(&["call", "fs.list", "--policy", &policy, "--", "path=."]).exits(2);
}

/// What came with the workspace does not speak in the user's name, nor at any length.
#[test]
fn a_layer_says_who_says_so() {
    let long = "Do this instead: ".repeat(200);
    let bed = Bed::with(&format!(
        "never: [{{ id: n, paths: [\"docs/**\"], because: \"Run \u{1b}[2J\", suggest: \"{long}\" }}]\n"
    ));
    let (tool, args) = read("docs/a.md");
    let decided = bed.explain(tool, &args);
    assert!(decided["reason"].as_str().unwrap().contains("the workspace says: Run"), "{decided}");
    let suggestion = decided["suggestion"].as_str().unwrap();
    assert!(suggestion.starts_with("the workspace suggests: Do this instead"), "{suggestion}");
    assert!(suggestion.chars().count() < 300, "{suggestion}");
}

/// `policy show`, `check` and `test` know the layers.
#[test]
fn authors_see_layers() {
    let bed = Bed::with(
        "never: [{ id: n, paths: [\"docs/**\"] }]
tools: { fs.write: { decision: ask } }
tests:
  - { name: docs are closed, call: { tool: fs.read, args: { path: docs/a } }, expect: { decision: deny, rule: n } }
  - { name: not so, call: { tool: fs.read, args: { path: a } }, expect: { decision: deny } }
",
    );
    let show = |more: &[&str]| {
        let line = ["policy", "show", "--resolved", "--policy", &bed.policy];
        bed.capsule.run(&line.iter().chain(more).copied().collect::<Vec<_>>()).exits(0)
    };
    let shown = show(&["--json"]).json();
    assert_eq!(shown["layers"][0]["file"], PLACE);
    let origin = |rule: &str| -> Vec<&str> {
        let rules = shown["rules"].as_array().unwrap().iter();
        rules.filter(|own| own["rule"] == rule).map(|own| own["layer"].as_str().unwrap()).collect()
    };
    assert_eq!(origin("n"), ["workspace"]);
    assert_eq!(origin("fs.write"), ["policy", "workspace"]);
    assert_eq!(origin("fs.read"), ["policy"]);
    assert_eq!(origin("no-credentials"), ["builtin"]);
    let shown = show(&[]).stdout;
    assert!(shown.contains(&format!("layer workspace · {PLACE} · ")), "{shown}");
    assert!(shown.contains(&format!("  fs.write ask  {PLACE}:4:")), "{shown}");

    let checked = bed.capsule.run(&["policy", "check", "--policy", &bed.policy]).exits(2);
    assert!(checked.stderr.contains("the rule `n` does not say why"), "{}", checked.stderr);
    assert!(checked.stderr.contains(&format!("{PLACE}:7:")), "{}", checked.stderr);
    let json = bed.capsule.run(&["policy", "check", "--policy", &bed.policy, "--json"]).exits(2);
    let files = json.json()["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|own| own["file"].clone())
        .collect::<Vec<_>>();
    assert!(files.contains(&json!(PLACE)), "{files:?}");
    let tested = bed.capsule.run(&["policy", "test", "--policy", &bed.policy]).exits(2);
    assert!(
        tested.stdout.contains("failed not so") && tested.stdout.contains("1 passed · 1 failed"),
        "{}",
        tested.stdout
    );
    // The policy's own tests are asked of the policy alone.
    let policy = bed.capsule.write_policy(
        "version: 1\nname: p\ntools: { fs.read: { decision: allow, examples: { allow: [{ path: docs/a }] } } }\n",
    );
    bed.layer("never: [{ id: n, paths: [\"docs/**\"], because: No. }]\n");
    let _ = bed.capsule.run(&["policy", "check", "--policy", &policy]).exits(0);
    // A plan is decided under the layers without running, too.
    let plan = bed
        .capsule
        .write_plan("version: 1\nsteps: [{ tool: fs.read, args: { path: docs/a.md } }]\n");
    let dry = bed.run(&["run", &plan, "--dry-run"]).exits(3);
    assert!(dry.stdout.contains("deny"), "{}", dry.stdout);
}

/// Three texts lie over one another: each decision names the one that it stands in, and a problem of
/// a text beneath is shown where the layer begins.
#[test]
fn a_layer_lies_over_what_a_policy_extends() {
    let mut bed = Bed::with(
        "tools: { shell.run: { executables: { git: { subcommands: { fetch: deny } } } }, fs.search: ask }\n",
    );
    bed.policy = bed.capsule.write_policy(
        "version: 1\nname: over\nextends: builtin:developer\ntools: { fs.list: ask }\n",
    );
    let search = ("fs.search", json!({ "name": "a" }));
    let list = ("fs.list", json!({ "path": "." }));
    for ((tool, args), decision, at) in [
        (run("git fetch origin"), "deny", ".capsule/policy.yaml:3:"),
        (search, "ask", ".capsule/policy.yaml:3:"),
        (list, "ask", "policy.yaml:4:"),
        (run("git log"), "allow", "builtin:developer:"),
        (run("bash -c id"), "deny", "builtin:base:"),
    ] {
        let decided = bed.explain(tool, &args);
        assert_eq!(decided["decision"], decision, "{tool} {args}: {decided}");
        assert!(decided["at"].as_str().unwrap().starts_with(at), "{tool} {args}: {decided}");
    }
    let _ = bed.run(&["exec", "--", "git", "fetch"]).exits(3);
    let _ = bed.capsule.run(&["replay", "latest"]).exits(3);
    // What the layer makes impossible is said of the layer.
    bed.policy = bed.capsule.write_policy(
        "version: 1\nname: d\naudit: { payloads: digest }\ntools: { shell.run: { executables: { touch: { writes: [\"out\"] } } } }\nsandbox: { workspace: direct }\n",
    );
    bed.layer("sandbox: { workspace: staged }\n");
    let ran = bed.run(&["exec", "--accept-layer", "--", "ls"]).exits(2);
    let says = "what `policy.yaml` hands on: staged changes are applied from the record";
    assert!(ran.stderr.contains(says), "{}", ran.stderr);
    assert!(ran.stderr.contains(".capsule/policy.yaml:2:8"), "{}", ran.stderr);
    // By itself, the base policy can be tightened, too: it allows nothing.
    bed.layer("never: [{ id: n, paths: [\"docs/**\"] }]\n");
    let line = ["policy", "explain", "--policy", "builtin:base", "--json", "--", "ls"];
    assert_eq!(bed.capsule.run(&line).exits(0).json()["decision"], "deny");
}
