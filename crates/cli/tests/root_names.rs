//! The names of a workspace's root: commands see it at its own path, and calls may spell it by any name.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::fs;
use std::os::unix::fs::symlink;

use capsule_testkit::{Capsule, CommandOutput};
use serde_json::{Value, json};

const TOOLS: &str = r#"version: 1
tools:
  fs.read: { decision: allow, paths: ["**"] }
  fs.list: { decision: allow, paths: ["**"] }
  fs.write: { decision: allow, paths: ["out/**"] }
  git.diff: { decision: allow }
  shell.run:
    form: command
    effects: { writes: allow, unknown: allow }
    executables:
      cat: allow
      pwd: allow
      ls: allow
      touch: { decision: allow, writes: ["**"] }
      perl: { decision: allow, writes: ["**"] }
"#;

struct Bed {
    capsule: Capsule,
    policy: String,
    root: String,
}

impl Bed {
    /// A workspace under these lines of a policy. `link` beside it leads to it.
    fn new(sandbox: &str) -> Self {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        capsule.write_file("file", "content\n");
        capsule.write_file("d/inner", "inner\n");
        capsule.write_file(".env", "SECRET=x\n");
        fs::write(capsule.directory().join("sibling"), "the sibling\n").unwrap();
        symlink(capsule.workspace(), capsule.directory().join("link")).unwrap();
        let policy = capsule.write_policy(&format!("{TOOLS}{sandbox}"));
        let root = capsule.workspace().canonicalize().unwrap().to_str().unwrap().to_owned();
        Self { capsule, policy, root }
    }

    fn link(&self) -> String {
        self.capsule.directory().join("link").to_str().unwrap().to_owned()
    }

    /// A call from the link, as from a shell that went there.
    fn call(&self, tool: &str, args: &Value) -> Value {
        let args = args.to_string().replace("ROOT", &self.root).replace("LINK", &self.link());
        let line = ["call", tool, "--policy", &self.policy, "--json", "--args", &args];
        let mut command = self.capsule.command(&line);
        command.current_dir(self.link()).env("PWD", self.link());
        CommandOutput::from(command.output().unwrap()).json()
    }

    fn command(&self, text: &str) -> Value {
        self.call("shell.run", &json!({ "command": text }))
    }

    /// What a command prints, and the code of what became of it.
    fn printed(&self, text: &str) -> (String, String) {
        let answer = self.command(text);
        let printed = answer["result"]["stdout"].as_str().unwrap_or_default().to_owned();
        (printed, answer["code"].as_str().unwrap_or_default().to_owned())
    }
}

/// W9, W17: whatever name of the root a path begins with, tools, words, `cd`, `cwd`, patterns and streams understand
/// it; a path outside stays outside.
#[test]
fn paths_are_understood_by_every_name_of_the_root() {
    for sandbox in ["", "sandbox: { mount: workspace }\n", "sandbox: { workspace: staged }\n"] {
        let bed = Bed::new(sandbox);
        for name in ["ROOT", "LINK", "/workspace", "ROOT//.", "/workspace/d/.."] {
            let answer = bed.call("fs.read", &json!({ "path": format!("{name}/file") }));
            assert_eq!(answer["result"]["text"], "content\n", "{sandbox}{name}: {answer}");
            let answer = bed.call("fs.list", &json!({ "path": format!("{name}/d") }));
            assert_eq!(answer["result"]["entries"][0]["path"], "d/inner", "{name}: {answer}");
        }
        for name in ["ROOT", "LINK", "/workspace"] {
            for (text, expected) in [
                ("cat NAME/file", "content\n"),
                ("cat < NAME/d/inner", "inner\n"),
                ("cat NAME/d/*", "inner\n"),
                ("cat NAME/*ile NAME/d/inn*", "content\ninner\n"),
                ("cd NAME/d && cat inner ../file", "inner\ncontent\n"),
                ("cd NAME/d && cat NAME/file", "content\n"),
                ("cd d && cd NAME && cat file", "content\n"),
                ("ls NAME/d", "inner\n"),
            ] {
                let text = text.replace("NAME", name);
                let (printed, code) = bed.printed(&text);
                assert_eq!(printed, expected, "{sandbox}{text}: {code}");
            }
            let answer = bed
                .call("shell.run", &json!({ "command": "cat inner", "cwd": format!("{name}/d") }));
            assert_eq!(answer["result"]["stdout"], "inner\n", "{sandbox}{name}: {answer}");
        }
        for path in ["ROOT/../sibling", "ROOTx", "LINK/../sibling", "/workspace/../x", "ROOT/.."] {
            let answer = bed.call("fs.read", &json!({ "path": path }));
            assert_eq!(answer["code"], "path.outside-workspace", "{path}: {answer}");
            let (printed, code) = bed.printed(&format!("cat {path}"));
            assert_eq!((printed.as_str(), code.as_str()), ("", "path.outside-workspace"), "{path}");
        }
        for name in ["ROOT", "LINK", "/workspace"] {
            let (printed, code) = bed.printed(&format!("cat {name}/.env"));
            assert_eq!((printed.as_str(), code.as_str()), ("", "policy.never"), "{sandbox}{name}");
        }
    }
}

/// W9: the path that programs print is true on the host, unless the policy says `/workspace`, and a stream that is led
/// to an absolute path is staged like any other.
#[test]
fn programs_print_the_path_of_the_host() {
    let bed = Bed::new("");
    assert_eq!(bed.printed("pwd").0, format!("{}\n", bed.root));
    assert_eq!(bed.printed("cd d && pwd").0, format!("{}/d\n", bed.root));
    let back = bed.printed("cd d && cd .. && cd - && cat inner").0;
    assert_eq!(back, format!("{}/d\ninner\n", bed.root));
    let fixed = Bed::new("sandbox: { mount: workspace }\n");
    assert_eq!(fixed.printed("pwd").0, "/workspace\n");
    let written = bed.command("perl -e 'open F, q(>), q(ROOT/out) or die; print F q(ROOT/d)'");
    assert_eq!(written["result"]["changes"][0]["path"], "out", "{written}");
    let _ = bed.capsule.run(&["apply", "latest"]).exits(0);
    let text = fs::read_to_string(bed.capsule.workspace().join("out")).unwrap();
    assert_eq!(text, format!("{}/d", bed.root));
}

/// The record says where commands saw the workspace, and a replay and an explanation need no look at the disk for it.
#[test]
fn the_record_says_where_commands_saw_the_workspace() {
    let bed = Bed::new("");
    assert_eq!(bed.printed("cat ROOT/file && cd ROOT/d && cat LINK/d/inner").0, "content\ninner\n");
    let log = bed.capsule.run(&["audit", "export"]).exits(0).stdout;
    let opened = log.lines().find(|line| line.contains("run.opened")).unwrap();
    assert!(opened.contains(&format!("\"mount\":\"{}\"", bed.root)), "{opened}");
    let away = bed.capsule.directory().join("moved");
    fs::rename(bed.capsule.workspace(), &away).unwrap();
    fs::remove_file(bed.link()).unwrap();
    let line = ["replay", "latest"];
    let replayed: CommandOutput =
        bed.capsule.command(&line).current_dir(&away).output().unwrap().into();
    let _ = replayed.exits(0);
    let line = ["policy", "explain", "latest:1", "--json"];
    let explained: CommandOutput =
        bed.capsule.command(&line).current_dir(&away).output().unwrap().into();
    assert_eq!(explained.exits(0).json()["decision"], "allow");
}

/// A root that is a mount of the sandbox is shown at `/workspace`, which the run says once.
#[test]
fn a_root_among_the_system_is_shown_elsewhere() {
    let bed = Bed::new("");
    let place = tempfile::Builder::new().prefix("capsule-at-").tempdir_in("/usr/src").unwrap();
    fs::write(place.path().join("file"), "content\n").unwrap();
    let root = place.path().to_str().unwrap();
    let plan = bed.capsule.write_plan(&format!(
        "version: 1\nsteps:\n  - {{ id: a, tool: shell.run, args: {{ command: pwd }} }}\n  \
         - {{ id: b, tool: fs.read, args: {{ path: {root}/file }} }}\n"
    ));
    let line = ["run", &plan, "--policy", &bed.policy, "--workspace", root];
    let told = bed.capsule.run(&line).exits(0).stdout;
    assert_eq!(told.matches("commands see it at /workspace").count(), 1, "{told}");
    let line = ["exec", "--policy", &bed.policy, "--workspace", root, "--", "pwd"];
    assert_eq!(bed.capsule.run(&line).exits(0).stdout, "/workspace\n");
}

/// `..` behind a folder that is no link leads where it seems to, and is judged by that; behind a link, or a name that is
/// not there, it may lead anywhere.
#[test]
fn parents_of_folders_are_understood() {
    let bed = Bed::new("sandbox: { workspace: staged }\n");
    symlink(bed.capsule.directory(), bed.capsule.workspace().join("away")).unwrap();
    symlink("d", bed.capsule.workspace().join("near")).unwrap();
    bed.capsule.write_file("d/e/deep", "deep\n");
    for (text, expected, code) in [
        ("cat d/../file", "content\n", ""),
        ("cat d/e/../../file | cat", "content\n", ""),
        ("cat ROOT/d/./../file", "content\n", ""),
        ("cd d && cat e/../inner", "inner\n", ""),
        ("cat d/../.env", "", "policy.never"),
        ("cat d/../../sibling", "", "path.outside-workspace"),
        ("cat away/../file", "", "path.invalid"),
        ("cat near/../file", "", "path.invalid"),
        ("cat near/e/../inner", "", "path.invalid"),
        ("cat none/../file", "", "path.invalid"),
    ] {
        let (printed, found) = bed.printed(text);
        assert_eq!((printed.as_str(), found.as_str()), (expected, code), "{text}");
    }
}

/// Names with tabs and line ends are names like others; they are shown escaped.
#[test]
fn names_hold_tabs_and_line_ends() {
    let bed = Bed::new("sandbox: { workspace: staged }\n");
    bed.capsule.write_file("t\tab", "tab\n");
    bed.capsule.write_file("out/before", "");
    let words = |words: &[&str]| bed.call("shell.run", &json!({ "argv": words }));
    assert_eq!(words(&["cat", "t\tab"])["result"]["stdout"], "tab\n");
    let answer = bed.call("fs.read", &json!({ "path": "t\tab" }));
    assert_eq!(answer["result"]["text"], "tab\n", "{answer}");
    let made = words(&["touch", "out/line\nend", "out/Icon\r"]);
    let run = made["run"].as_str().unwrap();
    let shown = bed.capsule.run(&["changes", run]).exits(0).stdout;
    assert!(
        shown.contains("A out/line⟨U+000A⟩end") && shown.contains("A out/Icon⟨U+000D⟩"),
        "{shown}"
    );
    drop(bed.capsule.run(&["apply", run]).exits(0));
    assert!(bed.capsule.workspace().join("out/line\nend").exists());
    let answer = words(&["cat", "a\u{1b}[2Jb"]);
    assert_eq!(answer["code"], "path.invalid", "{answer}");
}

/// A single word that is a command line is run as one.
#[test]
fn one_word_may_be_a_command_line() {
    let bed = Bed::new("");
    let exec = |words: &[&str]| {
        let mut args = vec!["exec", "--unattended", "--policy", &bed.policy, "--"];
        args.extend(words);
        bed.capsule.run(&args)
    };
    assert_eq!(exec(&["cat file | cat"]).exits(0).stdout, "content\n");
    assert_eq!(exec(&["cat", "file"]).exits(0).stdout, "content\n");
    let refused = exec(&["case x in x) cat file;; esac"]).exits(3).stderr;
    assert!(refused.contains("language [exec.not-in-language]\n  case x in"), "{refused}");
    let argv = bed.capsule.write_policy(&TOOLS.replace("form: command", "form: argv"));
    let refused = bed.capsule.run(&["exec", "--policy", &argv, "--", "cat file | cat"]).exits(3);
    assert!(refused.stderr.contains("[exec.form-denied]"), "{}", refused.stderr);
}
