//! Commands on a machine without any sandbox: refused, or asked each time by a policy that names that.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use capsule_testkit::{Capsule, CommandOutput};
use serde_json::{Value, json};

const POLICY: &str = r#"version: 1
name: bare
profile: later
sandbox: { require: false }
risk: { block_at: none }
never: [{ id: mine, capabilities: [fs.read, fs.meta], paths: ["**/*.secret"], because: Secret. }]
profiles:
  later:
    decide: { fs.meta: allow, fs.read: allow, proc.exec: allow, proc.unconfined: allow }
    unattended: wait
tools:
  fs.read: allow
  shell.run:
    form: command
    limits: { timeout: 3s, timeout_max: 60s, stdout_max: 1KB, memory: 200MiB }
    executables:
      perl: { decision: allow, capabilities: [proc.exec, proc.unconfined] }
      cat: { decision: allow, capabilities: [proc.unconfined] }
      head: allow
      env: { decision: allow, capabilities: [proc.unconfined] }
      git:
        capabilities: [proc.unconfined]
        subcommands:
          log: allow
          status: { decision: allow, capabilities: [proc.unconfined] }
  git.status: allow
"#;

struct Place {
    capsule: Capsule,
    policy: String,
}

impl Place {
    fn new(policy: &str) -> Self {
        let mut capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        capsule.set("UNRELATED", "of the user");
        let policy = capsule.write_policy(policy);
        capsule.write_file("a.txt", "content");
        capsule.write_file("x.secret", "hidden");
        Self { capsule, policy }
    }

    fn exec(&self, words: &[&str]) -> CommandOutput {
        let line = [&["exec", "--policy", self.policy.as_str(), "--"], words].concat();
        self.capsule.run_without_sandbox(&line)
    }

    /// The call in a plan of its own, which is asked; gives the question's name.
    #[track_caller]
    fn asked(&self, args: &Value) -> String {
        let plan = self.capsule.write_plan(&format!("- {{ tool: shell.run, args: {args} }}\n"));
        let ran = self.capsule.run_without_sandbox(&["run", &plan, "--policy", &self.policy]);
        let ran = ran.exits(4);
        assert!(ran.stdout.contains("sandbox    ✖ none: nothing confines"), "{}", ran.stdout);
        let list = self.capsule.run(&["approvals", "list", "--json"]).exits(0).json();
        let id = list["approvals"][0]["id"].as_str().unwrap().to_owned();
        let card = self.capsule.run(&["approvals", "show", &id]).exits(0).stdout;
        let card = card.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(card.contains("nothing prevents it from reading, changing, deleting"), "{card}");
        assert!(card.contains("risk high") && card.contains("cannot be brought back"), "{card}");
        id
    }

    /// The same, approved by a person, and carried out.
    #[track_caller]
    fn approved(&self, args: &Value) -> CommandOutput {
        let id = self.asked(args);
        // Nothing beyond this one call is offered, nor taken.
        for scope in ["task", "session"] {
            let more = self.capsule.run(&["approvals", "answer", &id, "--allow", scope]);
            assert_ne!(more.status, 0, "{scope}");
        }
        let _ = self.capsule.run(&["approvals", "answer", &id, "--allow", "once"]).exits(0);
        self.capsule.run_without_sandbox(&["resume", id.split(':').next().unwrap(), "--json"])
    }

    #[track_caller]
    fn perl(&self, script: &str) -> CommandOutput {
        self.approved(&json!({ "argv": ["perl", "-e", script] }))
    }

    /// The call as it was written down last.
    #[track_caller]
    fn told(&self) -> String {
        let told = self.capsule.run(&["show-run", "latest:1"]).exits(0).stdout;
        told.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// D: where the policy says nothing, no sandbox is no run; the header says so, and so does the doctor.
#[test]
fn without_a_sandbox_nothing_runs() {
    let strict = POLICY.replace("require: false", "require: true");
    for (policy, words) in [
        (strict.as_str(), &["perl", "-e", "open(F, '>ran')"][..]),
        (POLICY, &["head", "a.txt"]),
        // A rule above or beside the one that is meant does not name it for that one.
        (POLICY, &["git", "log"]),
        // Nor does a program for the one that it starts.
        (POLICY, &["env", "head", "a.txt"]),
    ] {
        let place = Place::new(policy);
        let ran = place.exec(words).exits(8);
        assert!(ran.stderr.contains("[sandbox.below-floor]"), "{words:?}: {}", ran.stderr);
        assert!(!place.capsule.workspace().join("ran").exists());
        assert!(!place.told().contains("ended done"), "{words:?}");
        let report = place.capsule.run(&["report", "latest"]).exits(0).stdout;
        assert!(report.contains("sandbox    ✖ none"), "{report}");
        let refused = policy == strict;
        assert_eq!(report.contains("✖ none: commands are refused"), refused, "{report}");
    }
    let place = Place::new(POLICY);
    // A pipeline, a list and the narrow tools are never unconfined.
    for (tool, args) in [
        ("shell.run", json!({ "command": "cat a.txt | perl -e 1" })),
        ("shell.run", json!({ "command": "cat a.txt" })),
        ("shell.run", json!({ "command": "cat a.txt; cat a.txt" })),
        ("git.status", json!({})),
    ] {
        let args = args.to_string();
        let line = ["call", tool, "--args", &args, "--policy", &place.policy, "--json"];
        let ran = place.capsule.run_without_sandbox(&line).exits(8).json();
        assert_eq!(ran["code"], "sandbox.below-floor", "{args}");
    }
    // What is never allowed is not asked.
    for words in [&["cat", "x.secret"][..], &["cat", "/etc/hostname"], &["env", "sh", "-c", "id"]] {
        let ran = place.exec(words).exits(3);
        assert!(ran.stderr.contains("denied"), "{words:?}: {}", ran.stderr);
    }
}

/// Whether it runs is asked each time, under the profiles that ask; under no other one does it run.
#[test]
fn it_is_asked_each_time_or_denied() {
    for (profile, status, code) in [
        ("supervised", 4, "approval.needed"),
        ("readonly", 3, "profile.denied"),
        ("autonomous", 8, "profile.requires"),
        // The word for all others is none for this.
        ("lax", 3, "profile.denied"),
        // And it is asked where the profile and the rule allow it.
        ("open", 4, "approval.needed"),
    ] {
        let more = "profiles:\n  lax: { decide: { \"*\": allow } }\n  open: { decide: { \"*\": allow, \
                    proc.unconfined: allow } }\n";
        let text = POLICY.replace("profile: later", &format!("profile: {profile}"));
        let place = Place::new(&text.replace("profiles:\n", more));
        let line = ["exec", "--policy", &place.policy, "--", "perl", "-e", "open(F, '>ran')"];
        let ran = place.capsule.run_without_sandbox(&line).exits(status);
        assert!(ran.stderr.contains(&format!("[{code}]")), "{profile}: {}", ran.stderr);
        assert!(!place.capsule.workspace().join("ran").exists(), "{profile}");
    }
    // High risk is refused, unless the policy says otherwise.
    let place = Place::new(&POLICY.replace("risk: { block_at: none }\n", ""));
    let ran = place.exec(&["perl", "-e", "1"]).exits(3);
    assert!(ran.stderr.contains("[risk.blocked]"), "{}", ran.stderr);
    // Nothing can be staged there.
    let place = Place::new(&POLICY.replace("false }", "false, workspace: staged }"));
    let ran = place.exec(&["perl", "-e", "1"]).exits(8);
    assert!(ran.stderr.contains("cannot be staged: `capsule doctor`"), "{}", ran.stderr);
}

/// Only the user's own policy lets it run: no layer does, no policy that is extended without its word, and
/// a layer can take it back.
#[test]
fn no_layer_and_no_other_text_lets_it_run() {
    let strict = POLICY.replace("require: false", "require: true");
    let unnamed = POLICY.replace(
        "perl: { decision: allow, capabilities: [proc.exec, proc.unconfined] }",
        "perl: allow",
    );
    let above = "version: 1\nextends: builtin:developer\nsandbox: { require: false }\nrisk: { block_at: none }\n\
                 tools: { shell.run: { executables: { perl: allow } } }\n";
    let named =
        "tools: { shell.run: { executables: { perl: { capabilities: [proc.unconfined] } } } }\n";
    for (policy, layer, status, code) in [
        // The layer says what the policy does not.
        (
            strict.as_str(),
            format!("sandbox: {{ require: false }}\n{named}"),
            8,
            "sandbox.below-floor",
        ),
        (&unnamed, format!("sandbox: {{ require: false }}\n{named}"), 8, "sandbox.below-floor"),
        (
            above,
            format!(
                "{named}profile: open\nprofiles: {{ open: {{ decide: {{ \"*\": allow }} }} }}\n"
            ),
            8,
            "sandbox.below-floor",
        ),
        (
            &POLICY.replace("block_at: none", "block_at: high"),
            "risk: { block_at: none }\n".into(),
            3,
            "risk.blocked",
        ),
        (
            &POLICY.replace("profile: later", "profile: readonly"),
            "profile: open\nprofiles: { open: { decide: { proc.unconfined: allow } } }\n".into(),
            3,
            "profile.denied",
        ),
        // The layer takes back what the policy says.
        (POLICY, "sandbox: { require: true }\n".into(), 8, "sandbox.below-floor"),
        (
            POLICY,
            "profile: no\nprofiles: { no: { decide: { proc.unconfined: deny } } }\n".into(),
            3,
            "profile.denied",
        ),
        (
            POLICY,
            "tools: { shell.run: { executables: { perl: { capabilities: [proc.exec] } } } }\n"
                .into(),
            8,
            "sandbox.below-floor",
        ),
        (
            POLICY,
            "tools: { shell.run: { executables: { perl: deny } } }\n".into(),
            3,
            "policy.denied",
        ),
        // The layer has no opinion: it is asked, whatever the layer allows.
        (POLICY, "tools: { fs.read: deny }\n".into(), 4, "approval.waiting"),
        (
            POLICY,
            "profile: some\nprofiles: { some: { decide: { fs.read: ask } } }\n".into(),
            4,
            "approval.waiting",
        ),
        (
            POLICY,
            "tools: { shell.run: { executables: { perl: allow } } }\n".into(),
            4,
            "approval.waiting",
        ),
    ] {
        let place = Place::new(policy);
        place
            .capsule
            .write_file(".capsule/policy.yaml", format!("version: 1\nlayer: workspace\n{layer}"));
        let ran = place.exec(&["perl", "-e", "open(F, '>ran')"]);
        let (wanted, told) = (format!("[{code}]"), &ran.stderr);
        assert!(ran.status == status && told.contains(&wanted), "{layer}: {} {told}", ran.status);
        assert!(!place.capsule.workspace().join("ran").exists(), "{layer}");
    }
}

/// A layer that has no opinion leaves the yes of a person what it is.
#[test]
fn an_approved_one_runs_under_a_layer() {
    let place = Place::new(POLICY);
    let layer = "version: 1\nlayer: workspace\ntools: { fs.read: deny }\n";
    place.capsule.write_file(".capsule/policy.yaml", layer);
    let ran = place.perl("print 'ran';").exits(0).json();
    assert_eq!(ran["calls"][0]["result"]["stdout"], json!("ran"), "{ran}");
}

/// What an approved one finds: a fresh environment, no descriptors, no terminal, no privileges. The
/// record says that nothing held it, and serves it again.
#[test]
fn an_approved_one_runs_and_says_that_nothing_held_it() {
    let place = Place::new(POLICY);
    let script = r#"
        print "env: ", join(" ", sort keys %ENV), "\n";
        for my $n (3 .. 64) { print "descriptor $n\n" if open(my $f, "<&=", $n) && -e $f }
        print "terminal\n" if -t 0 || open(my $t, "<", "/dev/tty");
        open(my $s, "<", "/proc/self/status"); print grep { /CapEff|NoNewPrivs/ } <$s>;
        open(my $new, ">", "new") and print "wrote\n";
        print "read: ", join("", do { open(my $f, "<", "x.secret"); <$f> }), "\n";
        print "key AKIA", "Z7QWXTPL3NVK2R5D end\n";
        print STDERR "x" x 100;"#;
    let ran = place.perl(script).exits(0).json();
    let call = &ran["calls"][0];
    assert_eq!(call["result"]["unconfined"], json!(true), "{ran}");
    let stdout = call["result"]["stdout"].as_str().unwrap();
    let expected = "env: GIT_CONFIG_NOSYSTEM GIT_OPTIONAL_LOCKS GIT_PAGER GIT_TERMINAL_PROMPT HOME LANG \
                    NO_COLOR PAGER PATH TERM TMPDIR\n\
                    CapEff:\t0000000000000000\nNoNewPrivs:\t1\nwrote\nread: hidden\nkey «";
    assert!(stdout.starts_with(expected), "{stdout}");
    assert!(!stdout.contains("AKIA"), "it is masked: {stdout}");
    assert!(place.capsule.workspace().join("new").exists());
    let told = place.told();
    for words in [
        "held by nothing: it could do whatever you can",
        "risk high",
        "needs proc.exec proc.unconfined",
        "\"unconfined\": true",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let report = place.capsule.run(&["report", "latest"]).exits(0).stdout;
    assert!(report.contains("NOT CONFINED"), "{report}");
    let calls = place.capsule.run(&["report", "latest", "--format", "json"]).exits(0).stdout;
    assert!(calls.contains("\"by\": \"nothing\""), "{calls}");
    // The replay needs no machine like that, and executes nothing.
    fs::remove_file(place.capsule.workspace().join("new")).unwrap();
    let _ = place.capsule.run(&["replay", "latest"]).exits(0);
    assert!(!place.capsule.workspace().join("new").exists());
    let _ = place.capsule.run(&["verify"]).exits(0);
}

/// What outlives its parents is ended with the command, and so is what takes too long, writes too much
/// or takes too much memory.
#[test]
fn whatever_it_started_ends_with_it() {
    let place = Place::new(POLICY);
    let left = r#"
        use POSIX;
        for my $n (1 .. 3) {
            next if fork;
            POSIX::setsid();
            exit if fork;
            $SIG{TERM} = $SIG{HUP} = "IGNORE";
            while (1) { open(my $f, ">", "beat$n"); select(undef, undef, undef, 0.05) }
        }
        select(undef, undef, undef, 0.3);"#;
    let beats = || (1..=3).map(|n| place.capsule.workspace().join(format!("beat{n}")));
    let stopped = || {
        for beat in beats() {
            fs::remove_file(beat).expect("it was there while the command ran");
        }
        std::thread::sleep(Duration::from_millis(400));
        assert!(!beats().any(|beat| beat.exists()), "something of the command still runs");
    };
    let ran = place.perl(left).exits(0).json();
    assert_eq!(ran["calls"][0]["result"]["exit_code"], json!(0));
    stopped();
    let begun = Instant::now();
    let ran = place.perl(&format!("{left} sleep 60")).exits(1).json();
    assert_eq!(ran["calls"][0]["problem"]["code"], json!("exec.timeout"), "{ran}");
    assert!(begun.elapsed() < Duration::from_secs(20));
    stopped();
    let ran = place.perl("print 'y' x 5000").exits(0).json();
    let result = &ran["calls"][0]["result"];
    let kept = ["stdout", "stdout_tail"].map(|name| result[name].as_str().unwrap().len());
    assert_eq!(kept, [750, 250]);
    assert_eq!((&result["truncated"], &result["stdout_bytes_total"]), (&json!(true), &json!(5000)));
    let ran = place.perl("my $x = 'y' x 500_000_000; sleep 2").exits(1).json();
    assert_eq!(ran["calls"][0]["problem"]["code"], json!("exec.memory"), "{ran}");
}

/// Nor does it go on when Capsule is killed.
#[test]
fn it_ends_with_the_deciding_process() {
    let place = Place::new(POLICY);
    let script = "while (1) { open(my $f, '>', 'beat'); select(undef, undef, undef, 0.05) }";
    let id = place.asked(&json!({ "argv": ["perl", "-e", script], "timeout": "60s" }));
    let _ = place.capsule.run(&["approvals", "answer", &id, "--allow", "once"]).exits(0);
    let run = id.split(':').next().unwrap();
    let mut command = place.capsule.command_without_sandbox(&["resume", run]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let beat = place.capsule.workspace().join("beat");
    let end = Instant::now() + Duration::from_secs(20);
    while !beat.exists() {
        assert!(Instant::now() < end && child.try_wait().unwrap().is_none(), "it never ran");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    let _ = child.wait().unwrap();
    let still = || {
        let _ = fs::remove_file(&beat);
        std::thread::sleep(Duration::from_millis(300));
        beat.exists()
    };
    while still() {
        assert!(Instant::now() < end, "it still runs");
    }
    let told = place.told();
    assert!(told.contains("outcome unknown") && told.contains("proc.unconfined"), "{told}");
}

/// Where the machine has walls, the same policy is held by them, and nobody is asked.
#[test]
fn where_there_is_a_sandbox_it_is_used() {
    let place = Place::new(POLICY);
    let script =
        "print -e 'x.secret' && open(my $f, '<', 'x.secret') ? <$f> : 'nothing'; open(F, '>new')";
    let ran = place.capsule.run(&["exec", "--policy", &place.policy, "--", "perl", "-e", script]);
    assert!(!ran.exits(0).stdout.contains("hidden"));
    assert!(!place.capsule.workspace().join("new").exists());
    assert!(place.told().contains("held by namespaces"), "{}", place.told());
    // One that is weaker than the policy wants is better than none, and is still refused.
    let line = ["exec", "--policy", &place.policy, "--", "perl", "-e", script];
    let ran = place.capsule.run_without_namespaces(&line).exits(8);
    assert!(ran.stderr.contains("`capsule doctor`"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("`sandbox.floor: landlock`"), "{}", ran.stderr);
    assert!(!place.capsule.workspace().join("new").exists());
}

/// An answer that was given where there is no sandbox is none where there is one, and the other way.
#[test]
fn an_answer_is_about_the_machine_that_it_was_given_on() {
    let place = Place::new(POLICY);
    let args = json!({ "argv": ["perl", "-e", "open(F, '>ran')"] });
    let plan = place.capsule.write_plan(&format!("- {{ tool: shell.run, args: {args} }}\n"));
    let _ = place.capsule.run_without_sandbox(&["run", &plan, "--policy", &place.policy]).exits(4);
    let list = place.capsule.run(&["approvals", "list", "--json"]).exits(0).json();
    let id = list["approvals"][0]["id"].as_str().unwrap().to_owned();
    let _ = place.capsule.run(&["approvals", "answer", &id, "--allow", "once"]).exits(0);
    let ran = place.capsule.run(&["resume", id.split(':').next().unwrap()]);
    assert!(ran.stdout.contains("approval.changed-after"), "{}", ran.stdout);
    assert!(!place.capsule.workspace().join("ran").exists());
}

/// What the author is told, and what would happen here.
#[test]
fn the_author_is_told_what_it_comes_to() {
    let place = Place::new(POLICY);
    let line = ["policy", "check", "--policy", &place.policy];
    let told = place.capsule.run(&line);
    let told = format!("{}{}", told.stdout, told.stderr);
    assert!(told.contains("nothing confines `perl`: it is asked each time"), "{told}");
    let explain = |ran: CommandOutput| ran.exits(0).json();
    let line = ["policy", "explain", "--policy", &place.policy, "--json", "--tool", "shell.run"];
    let line = [&line[..], &["--", "perl", "-e", "1"]].concat();
    let here = explain(place.capsule.run(&line));
    assert_eq!((&here["decision"], &here["risk"]), (&json!("allow"), &json!("medium")));
    let there = explain(place.capsule.run_without_sandbox(&line));
    assert_eq!((&there["decision"], &there["risk"]), (&json!("ask-each"), &json!("high")));
    assert_eq!(there["capabilities"], json!(["proc.exec", "proc.unconfined"]));
    let shown = place.capsule.run(&["policy", "show", "--policy", &place.policy]).exits(0).stdout;
    assert!(shown.contains("proc.unconfined"), "{shown}");
    let doctor = place.capsule.run_without_sandbox(&["doctor"]).exits(8).stdout;
    for words in ["profile: autonomous", "does not start", "`proc.unconfined`"] {
        assert!(doctor.contains(words), "{words}: {doctor}");
    }
}
