//! The lower tier of the sandbox: machines that allow no namespaces, and policies that say so.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use capsule_testkit::{Capsule, HttpServer};
use serde_json::{Value, json};

const POLICY: &str = r#"version: 1
sandbox: { floor: landlock }
never: [{ id: mine, capabilities: [fs.read, fs.meta], paths: ["**/*.secret"], because: Secret. }]
tools:
  fs.read: { decision: allow, paths: ["**"] }
  fs.write: { decision: allow, paths: ["**"] }
  shell.run:
    executables:
      perl: allow
      cat: allow
      head: { decision: allow, reads: ["open/**"] }
"#;

fn capsule() -> (Capsule, String) {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    for path in ["open/a.txt", "other/b.txt", "x.secret", "deep/er/y.secret"] {
        capsule.write_file(path, format!("content of {path}"));
    }
    let policy = capsule.write_policy(POLICY);
    (capsule, policy)
}

/// D23, APR-10: what serves is named in the header, in each call and by the doctor.
#[test]
fn the_lower_tier_is_named_wherever_it_serves() {
    let (capsule, policy) = capsule();
    let line = ["exec", "--policy", &policy, "--", "cat", "open/a.txt"];
    let ran = capsule.run_without_namespaces(&line).exits(0);
    assert_eq!(ran.stdout, "content of open/a.txt");
    let report = capsule.run(&["report", "latest"]).exits(0).stdout;
    assert!(report.contains("weaker landlock seccomp · no namespaces"), "{report}");
    let told = capsule.run(&["show-run", "latest:1"]).exits(0).stdout;
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    for word in ["landlock · no user namespace", "no network namespace", "landlock: abi"] {
        assert!(told.contains(word), "{word}: {told}");
    }
    let doctor = capsule.run_without_namespaces(&["doctor"]).exits(8).stdout;
    assert!(doctor.contains("· not tried") && doctor.contains("takes namespaces"), "{doctor}");
    let doctor = capsule.run_without_namespaces(&["doctor", "--json"]).exits(8).json();
    let of = |name: &str| {
        let checks = doctor["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == name).unwrap().clone()
    };
    assert_eq!(of("tier")["hold"], json!("weaker"));
    let detail = of("tier")["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("sysctl user.max_user_namespaces"), "the remedy: {detail}");
    assert_eq!(of("user namespace")["hold"], json!("missing"));
    assert_eq!(of("landlock")["hold"], json!("held"));
    assert_eq!(of("try: a hidden file is not read")["hold"], json!("held"));
    // It serves nobody where there is something better.
    let ran = capsule.run(&line).exits(0);
    assert_eq!(ran.stdout, "content of open/a.txt");
    let told = capsule.run(&["show-run", "latest:1"]).exits(0).stdout;
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("namespaces · user namespace"), "{told}");
    let doctor = capsule.run(&["doctor", "--json"]).exits(0).json();
    assert_eq!(
        doctor["checks"][1],
        json!({ "name": "tier", "hold": "held", "detail": "namespaces" })
    );
    // A replay needs no walls at all.
    assert!(capsule.run(&["replay", "latest"]).exits(0).stdout.contains("1 ok · 0 failed"));
}

/// D23: what the policy hides stays hidden, by whatever name; what is outside stays outside.
#[test]
fn the_policy_holds_in_the_lower_tier() {
    let (capsule, policy) = capsule();
    let outside = capsule.directory().join("outside");
    std::fs::write(&outside, "outside").unwrap();
    std::fs::hard_link(capsule.workspace().join("x.secret"), capsule.workspace().join("innocent"))
        .unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = capsule.directory().join("socket");
    let _local = UnixListener::bind(&socket).unwrap();
    let ws = capsule.workspace();
    let script = format!(
        r#"use Socket;
        my $f; for my $path (@ARGV) {{ open($f, '<', $path) and print "read $path: ", <$f>, "\n" }}
        open($f, '>', 'new') and print "made new\n";
        open($f, '>', '{outside}') and print "wrote outside\n";
        chmod 0777, 'open/a.txt'; print "chmod\n" if ((stat 'open/a.txt')[2] & 07) == 07;
        print "unlink\n" if unlink 'open/a.txt';
        print "rename\n" if rename 'x.secret', 'open/z';
        print "list\n" if opendir(my $d, '/');
        socket(my $s, PF_INET, SOCK_STREAM, 0) and print "socket\n";
        socket($s, PF_UNIX, SOCK_STREAM, 0) and connect($s, sockaddr_un('{socket}')) and print "local\n";
        print "signal\n" if kill 0, getppid();
        print "tmp\n" if open($f, '>', "$ENV{{TMPDIR}}/x");
        print "host tmp\n" if open($f, '>', '/tmp/capsule-test-escape');"#,
        outside = outside.display(),
        socket = socket.display(),
    );
    // In the text, where no policy looks for them: here the walls are tried.
    let paths = [
        "open/a.txt",
        "other/b.txt",
        "x.secret",
        "deep/er/y.secret",
        "innocent",
        "../outside",
        "/etc/passwd",
        "/proc/self/environ",
        &format!("{}/x.secret", ws.display()),
        &format!("{}", outside.display()),
    ];
    let plan = capsule.write_plan(&format!(
        "- {{ tool: shell.run, args: {{ argv: {} }} }}\n",
        json!(["perl", "-e", format!("@ARGV = qw({}); {script}", paths.join(" "))])
    ));
    let ran = capsule
        .run_without_namespaces(&["run", &plan, "--policy", &policy, "--json"])
        .exits(0)
        .json();
    assert_eq!(
        ran["calls"][0]["result"]["stdout"],
        json!(
            "read open/a.txt: content of open/a.txt\nread other/b.txt: content of other/b.txt\ntmp\n"
        ),
        "{ran}"
    );
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "outside");
    assert!(!ws.join("new").exists() && ws.join("x.secret").exists());
    assert!(tcp.set_nonblocking(true).is_ok() && tcp.accept().is_err());
}

/// What a rule lets a program read binds it there, too.
#[test]
fn reads_bind_in_the_lower_tier() {
    let (capsule, policy) = capsule();
    let exec = |path: &str| {
        let line = ["exec", "--policy", &policy, "--", "head", "-c", "100", path];
        capsule.run_without_namespaces(&line)
    };
    assert_eq!(exec("open/a.txt").exits(0).stdout, "content of open/a.txt");
    let other = exec("other/b.txt");
    assert!(other.status != 0 && other.stdout.is_empty(), "{other:?}");
}

/// Without mounts the run works in a copy of the workspace, in which what is hidden is not.
#[test]
fn changes_are_staged_in_the_lower_tier() {
    let (capsule, _) = capsule();
    let policy = capsule
        .write_policy(&POLICY.replace("perl: allow", "perl: { decision: allow, writes: ['**'] }"));
    let exec = |words: &[&str]| {
        let line = [&["exec", "--policy", &policy, "--"][..], words].concat();
        capsule.run_without_namespaces(&line)
    };
    let read =
        |path: &str| std::fs::read_to_string(capsule.workspace().join(path)).unwrap_or_default();
    let ran = exec(&["perl", "-e", CHANGE]).exits(0);
    assert_eq!(ran.stdout, "content of open/a.txt | ", "what is hidden is not in the copy");
    assert!(ran.stderr.contains("the workspace was copied"), "{}", ran.stderr);
    assert_eq!(
        (read("open/a.txt").as_str(), read("new/file").as_str()),
        ("content of open/a.txt", "")
    );
    let changes = capsule.run(&["changes", "latest"]).exits(0).stdout;
    for path in ["open/a.txt", "new/file", "other/b.txt"] {
        assert!(changes.contains(path), "{changes}");
    }
    let _ = capsule.run(&["apply", "latest"]).exits(0);
    assert_eq!((read("open/a.txt").as_str(), read("new/file").as_str()), ("changed", "made"));
    assert!(!capsule.workspace().join("other/b.txt").exists());
    assert_eq!(read("x.secret"), "content of x.secret");
    // A program whose rule lets it change nothing reads the copy as it would the workspace.
    assert_eq!(exec(&["cat", "open/a.txt"]).exits(0).stdout, "changed");
    let call = ["call", "fs.write", "--policy", &policy, "--", "path=new.txt", "content=x"];
    let _ = capsule.run_without_namespaces(&call).exits(0);
    assert!(!capsule.workspace().join("new.txt").exists());
    assert!(capsule.run(&["changes", "latest"]).exits(0).stdout.contains("new.txt"));
}

/// C7: another name of a protected file is not in the copy either. A tool that would see an empty
/// file there changes nothing, and nothing else of the run is lost for it.
#[test]
fn tools_change_nothing_at_other_names_of_protected_files() {
    for hidden in ["[fs.read, fs.meta]", "[fs.read]", "[fs.meta]"] {
        let (capsule, _) = capsule();
        let root = capsule.workspace();
        std::fs::hard_link(root.join("x.secret"), root.join("alias")).unwrap();
        let policy = POLICY
            .replace("perl: allow", "perl: { decision: allow, writes: ['**'] }")
            .replace("[fs.read, fs.meta]", hidden);
        let policy = capsule.write_policy(&policy);
        let step = |tool: &str, args: Value| {
            format!("- {{ tool: {tool}, args: {args}, on_error: continue }}\n")
        };
        let make = "open F, '>', 'made' or die; print F 'new'";
        let plan = [
            step("shell.run", json!({ "argv": ["perl", "-e", make] })),
            step("fs.write", json!({ "path": "alias", "content": "x", "mode": "append" })),
            step("fs.write", json!({ "path": "alias", "content": "x" })),
            step("fs.write", json!({ "path": "other.txt", "content": "x" })),
        ];
        let plan = capsule.write_plan(&format!("version: 1\nsteps:\n{}", plan.concat()));
        let ran = capsule.run_without_namespaces(&["run", &plan, "--policy", &policy, "--json"]);
        let calls = ran.json()["calls"].clone();
        for refused in [1, 2] {
            assert_ne!(calls[refused]["status"], "ok", "{hidden}: {calls}");
        }
        assert_eq!(calls[3]["status"], "ok", "{hidden}: {calls}");
        let _ = capsule.run(&["apply", "latest"]).exits(0);
        let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
        assert_eq!((read("made").as_str(), read("other.txt").as_str()), ("new", "x"));
        let secret = "content of x.secret";
        assert_eq!((read("alias").as_str(), read("x.secret").as_str()), (secret, secret));
    }
}

/// Reads what it may and what it may not; makes, changes and removes.
const CHANGE: &str = "
    for my $path ('open/a.txt', 'x.secret', 'deep/er/y.secret') {
        open(F, '<', $path) and print <F>, ' | ';
    }
    mkdir 'new'; open(F, '>', 'new/file') or die; print F 'made'; close F;
    open(F, '>', 'open/a.txt') or die; print F 'changed'; close F;
    unlink 'other/b.txt' or die;
    rename 'deep', 'moved';
    open(F, '<', 'moved/er/y.secret') and print 'secret: ', <F>;
    rename 'moved', 'deep';
";

/// Changes of the workspace itself need mounts that hold what is protected.
#[test]
fn direct_changes_are_refused_in_the_lower_tier() {
    let (capsule, _) = capsule();
    let policy = capsule.write_policy(
        "version: 1
sandbox: { floor: landlock, workspace: direct }
tools:
  shell.run: { executables: { touch: { decision: allow, writes: [\"**\"] }, cat: allow } }
",
    );
    let exec = |words: &[&str]| {
        let line = [&["exec", "--policy", &policy, "--"][..], words].concat();
        capsule.run_without_namespaces(&line)
    };
    let ran = exec(&["touch", "new"]).exits(8);
    assert!(ran.stderr.contains("open places of the workspace for writing"), "{}", ran.stderr);
    assert!(!capsule.workspace().join("new").exists());
    assert_eq!(exec(&["cat", "open/a.txt"]).exits(0).stdout, "content of open/a.txt");
}

/// A floor that nobody knows is not a floor.
#[test]
fn a_floor_is_one_of_two_words() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let policy = capsule.write_policy("version: 1\nsandbox: { floor: none }\n");
    let ran = capsule.run(&["policy", "check", "--policy", &policy]).exits(2);
    assert!(ran.stderr.contains("landlock") || ran.stdout.contains("landlock"), "{ran:?}");
}

/// FR-17: a fork bomb is ended at once and named, also where its processes end all the time, and
/// where whoever runs it is root in a user namespace alone, as in many containers.
#[test]
fn a_bomb_ends_in_the_lower_tier() {
    let (capsule, _) = capsule();
    let policy = capsule.write_policy(&POLICY.replace(
        "    executables:",
        "    limits: { timeout: 5s, processes_max: 16 }\n    executables:",
    ));
    let began = std::time::Instant::now();
    let script = "1 while defined fork; exit 1";
    let line = ["exec", "--policy", &policy, "--json", "--", "perl", "-e", script];
    let ran = capsule.run_without_namespaces(&line).json();
    let reached = ran["result"]["limits_reached"].as_array().unwrap();
    assert!(reached.contains(&json!("processes")), "{ran}");
    assert!(began.elapsed() < std::time::Duration::from_secs(15), "{ran}");
}

/// Who changes the workspace and may not see all of it would see all of it: it is refused, and told what helps.
#[test]
fn nothing_is_hidden_from_who_changes_the_workspace() {
    let (capsule, _) = capsule();
    let of = |reads: &str, deny: &str| {
        capsule.write_policy(&format!(
            "version: 1
sandbox: {{ floor: landlock }}
tools:
  fs.read: {{ decision: allow, paths: {{ allow: [\"**\"]{deny} }} }}
  shell.run: {{ executables: {{ cp: {{ decision: allow, writes: [\"**\"]{reads} }} }} }}
"
        ))
    };
    let copy = |policy: &str| {
        let line = ["exec", "--policy", policy, "--json", "--", "cp", "-r", "open", "new"];
        capsule.run_without_namespaces(&line)
    };
    for policy in [of("", ", deny: [\"other/**\"]"), of(", reads: [\"open/**\", new]", "")] {
        let told = copy(&policy).exits(8).json();
        assert_eq!(told["code"], "sandbox.failed", "{told}");
        let (reason, helps) = (told["reason"].to_string(), told["suggestion"].to_string());
        assert!(reason.contains("without namespaces, nothing can be hidden"), "{told}");
        assert!(helps.contains("`fs.write`") && helps.contains("capsule doctor"), "{told}");
    }
    assert_eq!(copy(&of("", "")).exits(0).json()["result"]["changes_total"], json!(2));
}

/// E23: commands have no network in the lower tier, so a host that the policy opens is reached by no proxy and past none.
#[test]
fn no_host_is_reached_in_the_lower_tier() {
    let server = HttpServer::fixed("200 OK", "", "a page");
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let port = server.port();
    let policy = capsule.write_policy(&format!(
        "version: 1
extends: builtin:developer
sandbox:
  floor: landlock
  network:
    shell.run: proxy
    hosts: [\"localhost:{port}\"]
    loopback: {{ connect: [{port}] }}
    private_ips: {{ allow: [127.0.0.1] }}
tools:
  shell.run:
    effects: {{ network: allow }}
    executables: {{ curl: allow }}
"
    ));
    let url = format!("http://localhost:{port}/");
    let proxied: &[&str] =
        &["exec", "--unattended", "--policy", &policy, "--", "curl", "-sS", &url];
    let direct = [proxied, &["--noproxy", "*"]].concat();
    for line in [proxied, &direct] {
        let ran = capsule.run_without_namespaces(line).exits(7);
        assert!(ran.stderr.contains("Failed to connect"), "{ran:?}");
        let report = capsule.run(&["report", "latest"]).exits(0).stdout;
        assert!(
            report.contains("no namespaces") && !report.contains("network by proxy"),
            "{report}"
        );
    }
    assert!(server.requests().is_empty());
    // The same policy opens the host where there are namespaces.
    assert_eq!(capsule.run(proxied).exits(0).stdout, "a page");
}
