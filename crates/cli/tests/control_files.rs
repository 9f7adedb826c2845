//! Files that programs of the host obey: each one that is listed is protected, programs obey what is listed for
//! them, ordinary files of projects stay ordinary, and a person is asked about what nobody listed.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panics"
)]

#[path = "control_files/opened.rs"]
mod opened;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use capsule_testkit::{Capsule, CommandOutput, run_in_parallel, write_program};
use serde_json::{Value, json};
use toml::Table;

fn capsule() -> Capsule {
    Capsule::new(env!("CARGO_BIN_EXE_capsule"))
}

/// The table as people edit it.
fn table() -> Table {
    let root = std::env::var_os("CAPSULE_TEST_ROOT")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), PathBuf::from);
    fs::read_to_string(root.join("policies/control-files.toml")).unwrap().parse().unwrap()
}

/// All items of one kind, of every program.
fn listed(table: &Table, kind: &str) -> Vec<String> {
    let programs = table["program"].as_array().unwrap().iter();
    let lists = programs.filter_map(|own| own.get(kind)?.as_array());
    lists.flatten().map(|own| own.as_str().unwrap().to_owned()).collect()
}

/// What the developer's policy decides about writing each of these paths, in one go.
fn decide(capsule: &Capsule, paths: &[String]) -> Vec<Value> {
    let calls = paths.iter().enumerate().map(|(id, path)| {
        let args = json!({ "path": path, "content": "x" });
        json!({ "id": id.to_string(), "tool": "fs.write", "args": args }).to_string()
    });
    let file = capsule.write_file("calls.jsonl", calls.collect::<Vec<_>>().join("\n"));
    let line = ["policy", "explain", "--policy", "builtin:developer", "--json", "--batch"];
    let ran = capsule.run(&[&line[..], &[file.to_str().unwrap()]].concat());
    let answers: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), paths.len(), "{} {}", ran.stdout, ran.stderr);
    answers
}

/// A path that a pattern of the table names.
fn sample(pattern: &str) -> String {
    let path = pattern.strip_suffix("/**").map_or(pattern.to_owned(), |own| format!("{own}/x"));
    path.replace('*', "a")
}

/// C22, C23: every entry of the table, at the root and beneath it.
#[test]
fn every_listed_file_is_protected() {
    let samples: Vec<String> = listed(&table(), "tree").iter().map(|own| sample(own)).collect();
    assert!(samples.len() > 300, "{}", samples.len());
    let nested = samples.iter().map(|own| format!("packages/one/{own}"));
    let paths: Vec<String> = samples.iter().cloned().chain(nested).collect();
    let answers = decide(&capsule(), &paths);
    let open = paths.iter().zip(&answers).filter(|(_, answer)| answer["decision"] != "deny");
    let open: Vec<_> = open.collect();
    assert!(open.is_empty(), "{open:?}");
}

/// C23: what runs only when somebody builds, tests or starts the project is the project's.
#[test]
fn ordinary_files_of_projects_are_written() {
    let paths = [
        "package.json",
        "package-lock.json",
        "Makefile",
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "tox.ini",
        "conftest.py",
        "tests/conftest.py",
        "Cargo.toml",
        "build.rs",
        "src/main.rs",
        "CMakeLists.txt",
        "build.gradle",
        "build.gradle.kts",
        "settings.gradle",
        "pom.xml",
        "gradlew",
        "Dockerfile",
        "docker-compose.yml",
        "Gemfile",
        "Rakefile",
        "go.mod",
        "mix.exs",
        "composer.json",
        "Taskfile.yml",
        "justfile",
        "flake.nix",
        "shell.nix",
        ".gitignore",
        ".gitattributes",
        ".editorconfig",
        ".dockerignore",
        ".prettierrc",
        ".eslintrc.json",
        "eslint.config.js",
        "vite.config.ts",
        "jest.config.js",
        "webpack.config.js",
        "tsconfig.json",
        ".github/CODEOWNERS",
        ".github/ISSUE_TEMPLATE/bug.md",
        "README.md",
        "docs/hooks/README.md",
        "hooks/use-state.ts",
        "src/hooks/index.ts",
        "bin/tool",
        "scripts/deploy.sh",
        "config/settings.json",
        "netlify.toml",
        "Procfile",
        "manage.py",
        "latexmkrc",
        "ros/robot.launch",
        ".env.example",
        ".nvmrc",
        ".python-version",
        ".bazelrc",
        ".clang-tidy",
        ".pylintrc",
        ".flake8",
        "requirements.txt",
        "poetry.lock",
        "uv.lock",
        ".storybook/main.ts",
        ".changeset/one.md",
    ];
    let paths = paths.map(str::to_owned);
    let answers = decide(&capsule(), &paths);
    let closed = paths.iter().zip(&answers).filter(|(_, answer)| answer["decision"] != "allow");
    let closed: Vec<_> = closed.collect();
    assert!(closed.is_empty(), "{closed:?}");
}

/// A file that a program of this machine obeys: its path in the home directory or the variable that names it,
/// what stands in it (`MARK` is a file that it makes), and the command line that makes it do so.
struct Obeyed {
    listed: &'static str,
    text: &'static str,
    line: &'static [&'static str],
}

const OBEYED: &[Obeyed] = &[
    Obeyed { listed: ".bashrc", text: "touch MARK", line: &["bash", "-i", "-c", "true"] },
    Obeyed { listed: ".bash_profile", text: "touch MARK", line: &["bash", "-l", "-c", "true"] },
    Obeyed { listed: ".profile", text: "touch MARK", line: &["sh", "-l", "-c", "true"] },
    Obeyed { listed: "BASH_ENV", text: "touch MARK", line: &["bash", "-c", "true"] },
    Obeyed { listed: "ENV", text: "touch MARK", line: &["sh", "-i", "-c", "true"] },
    Obeyed { listed: ".zshenv", text: "touch MARK", line: &["zsh", "-c", "true"] },
    Obeyed { listed: ".zshrc", text: "touch MARK", line: &["zsh", "-i", "-c", "true"] },
    Obeyed { listed: ".gitconfig", text: "[alias]\nx = !touch MARK", line: &["git", "x"] },
    Obeyed { listed: ".config/git/config", text: "[alias]\nx = !touch MARK", line: &["git", "x"] },
    Obeyed {
        listed: ".tmux.conf",
        text: "run-shell 'touch MARK'",
        line: &["tmux", "-S", "SOCKET", "new-session", "-d", "true"],
    },
    Obeyed { listed: "PYTHONSTARTUP", text: "open('MARK', 'w')", line: &["python3", "-i"] },
    Obeyed {
        listed: "EDITOR",
        text: "#!/bin/sh\ntouch MARK",
        line: &["git", "config", "--global", "-e"],
    },
];

/// The table and the programs agree: what is listed for them is obeyed without anybody naming the file. A program
/// that is not there fails the test (`.ci/run` installs them).
#[test]
fn programs_obey_what_is_listed() {
    let table = table();
    let home = listed(&table, "home");
    let is_listed = |own: &str| {
        let covers = |pattern: &String| {
            pattern == own
                || pattern.strip_suffix("/**").is_some_and(|folder| own.starts_with(folder))
        };
        let programs = table["program"].as_array().unwrap();
        let variables = programs.iter().filter_map(|own| own.get("variables")?.as_table());
        home.iter().any(covers)
            || variables.flat_map(Table::keys).any(|name| name == own)
            || listed(&table, "commands").iter().any(|name| name == own)
    };
    let mut wrong = Vec::new();
    for Obeyed { listed, text, line } in OBEYED {
        let folder = tempfile::tempdir().unwrap();
        let (root, mark) = (folder.path(), folder.path().join("mark"));
        let is_variable = listed.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        let file = root.join(if is_variable { "named" } else { listed });
        let file = write_program(file, text.replace("MARK", mark.to_str().unwrap()) + "\n");
        if !root.join(".gitconfig").exists() && is_variable {
            fs::write(root.join(".gitconfig"), "[user]\nname = n\n").unwrap();
        }
        let socket = root.join("socket");
        let words = line.iter().map(|word| word.replace("SOCKET", socket.to_str().unwrap()));
        let words: Vec<String> = words.collect();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(root).env_clear().stdin(Stdio::null());
        command.env("HOME", root).env("PATH", std::env::var_os("PATH").unwrap());
        command.env("TERM", "xterm");
        if is_variable {
            command.env(listed, &file);
        }
        let ran = command.output();
        for _ in 0..100 {
            if mark.exists() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let _ = Command::new("tmux").arg("-S").arg(&socket).arg("kill-server").output();
        if !mark.exists() || !is_listed(listed) {
            wrong.push(format!("{listed}, listed: {}: {ran:?}", is_listed(listed)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const POLICY: &str = r#"
tools:
  fs.write: { decision: allow, hidden: allow, symlinks: inside, paths: ["**"] }
  shell.run:
    limits: { timeout: 30s }
    executables:
      perl: { decision: allow, writes: [WRITES] }
"#;

struct Bed {
    capsule: Capsule,
    staged: String,
    direct: String,
}

impl Bed {
    fn new(writes: &str) -> Self {
        let capsule = capsule();
        let policy = POLICY.replace("WRITES", writes);
        let staged = capsule.write_policy(&format!("version: 1\n{policy}"));
        let direct = staged.replace("policy.yaml", "direct.yaml");
        fs::write(&direct, format!("version: 1\nsandbox: {{ workspace: direct }}\n{policy}"))
            .unwrap();
        Self { capsule, staged, direct }
    }

    /// Makes files, with the directories that they need.
    fn make(&self, policy: &str, paths: &[&str]) -> CommandOutput {
        let script = "use File::Path; use File::Basename; for (@ARGV) { File::Path::make_path(dirname($_)); \
                      open(my $f, '>>', $_) or die \"$_: $!\"; print $f 'new'; close $f or die }";
        let line = ["exec", "--policy", policy, "--json", "--", "perl", "-e", script, "--"];
        self.capsule.run(&[&line[..], paths].concat())
    }

    fn has(&self, path: &str) -> bool {
        self.capsule.workspace().join(path).symlink_metadata().is_ok()
    }
}

/// What is asked about, and what is not.
const ASKED: &[&str] = &[
    ".newtool",
    ".newtool/rc",
    ".newtool/deep/er/rc",
    "AGENTS.md",
    "docs/CLAUDE.md",
    ".tool-versions",
    ".eslintrc.cjs",
    "one/.bsp/sbt.json",
    "hie.yaml",
    // What other programs than git keep of a repository is checked out as well.
    ".hg/store/data/_.envrc.i",
    ".jj/working_copy/tree_state",
    "sub/.svn/wc.db",
    "_FOSSIL_",
];
const OPEN: &[&str] = &[
    "src/a.rs",
    ".venv/lib/x.py",
    ".pytest_cache/v",
    ".mypy_cache/x",
    ".ruff_cache/x",
    ".gitignore",
    ".dockerignore",
    ".next/x",
    ".eslintcache",
    ".coverage",
    ".DS_Store",
    ".old/new",
    "sub/.hidden",
    ".env.example",
    ".prettierrc",
    ".eslintrc.json",
    ".changeset/one.md",
];

/// C22: a new hidden name at the root, instructions for agents, and the choice of a toolchain.
#[test]
fn new_hidden_names_are_asked_about() {
    let tried =
        ASKED.iter().map(|path| (*path, false)).chain(OPEN.iter().map(|path| (*path, true)));
    let wrong = run_in_parallel(tried.collect::<Vec<_>>(), |(path, is_open)| {
        let bed = Bed::new("\"**\"");
        bed.capsule.write_file(".old/own", "own");
        let _ = bed.make(&bed.staged, &[path]).exits(0);
        let applied = bed.capsule.run(&["apply", "latest"]);
        let told = applied.stderr.contains("change.asked") && applied.stderr.contains("--with");
        let is_right = bed.has(path) == is_open
            && (applied.status == if is_open { 0 } else { 4 })
            && told != is_open;
        let staged = (!is_right).then(|| format!("{path}: {} {}", applied.status, applied.stderr));
        let _ = bed.capsule.run(&["discard", "latest"]);
        let args = json!({ "path": path, "content": "other" }).to_string();
        let line = |policy| ["call", "fs.write", "--policy", policy, "--args", &args];
        let _ = bed.capsule.run(&line(&bed.staged)).exits(0);
        let by_tool = bed.capsule.run(&["apply", "latest"]);
        let by_tool = (by_tool.status != if is_open { 0 } else { 4 })
            .then(|| format!("{path}, tool: {}", by_tool.stderr));
        let direct = bed.make(&bed.direct, &[path]);
        let is_told = direct.stdout.contains("change.asked");
        let direct = (!is_open && !is_told || is_open && direct.status != 0)
            .then(|| format!("{path}, direct: {} {}", direct.status, direct.stdout));
        staged.into_iter().chain(by_tool).chain(direct).collect::<Vec<_>>()
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// C22: a tool that writes the workspace itself is asked about before it does.
#[test]
fn a_tool_that_writes_at_once_asks_before() {
    let bed = Bed::new("\"**\"");
    bed.capsule.write_file(".old/own", "own");
    for (path, status) in
        [(".newtool/rc", 4), ("AGENTS.md", 4), (".old/new", 0), (".venv/x", 0), ("src/a", 0)]
    {
        let args = json!({ "path": path, "content": "new" }).to_string();
        let ran = bed.capsule.run(&["call", "fs.write", "--policy", &bed.direct, "--args", &args]);
        assert_eq!(
            (ran.status, bed.has(path)),
            (status, status == 0),
            "{path}: {} {}",
            ran.stdout,
            ran.stderr
        );
    }
}

/// C22: the rest of a run is applied without what is asked about, or refused; and all of it where a person says so.
#[test]
fn what_is_asked_about_or_refused_can_be_left_out() {
    let paths = [".newtool/rc", "src/a.rs", ".vscode/tasks.json"];
    let bed = Bed::new("\"**\"");
    let _ = bed.make(&bed.staged, &paths);
    let apply = |flags: &[&str]| bed.capsule.run(&[&["apply", "latest"][..], flags].concat());
    let refused = apply(&[]).exits(3);
    for part in ["change.refused", "--without .vscode` applies the rest"] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    let asked = apply(&["--without", ".vscode"]).exits(4);
    for part in [
        "`.newtool`",
        "--without .vscode --with .newtool`",
        "--without .vscode --without .newtool`",
    ] {
        assert!(asked.stderr.contains(part), "{part}: {}", asked.stderr);
    }
    let unknown = apply(&["--without", "none"]).exits(2);
    assert!(unknown.stderr.contains("changed nothing at `none`"), "{}", unknown.stderr);
    let _ = apply(&["--without", ".vscode", "--without", ".newtool"]).exits(0);
    assert_eq!(paths.map(|path| bed.has(path)), [false, true, false]);
    // It was applied, and is undone as such.
    let _ = bed.capsule.run(&["undo", "latest"]).exits(0);
    assert!(!bed.has("src/a.rs"));
    let bed = Bed::new("\"**\"");
    let _ = bed.make(&bed.staged, &paths[..2]).exits(0);
    let shown = bed.capsule.run(&["changes", "latest"]).exits(0);
    assert!(shown.stdout.contains("? asked: `.newtool`"), "{}", shown.stdout);
    let _ = bed.capsule.run(&["apply", "latest", "--with", ".newtool"]).exits(0);
    assert!(paths[..2].iter().all(|path| bed.has(path)));
    // No command is suggested that would leave nothing, and none that leaves the given flags out.
    let bed = Bed::new("\"**\"");
    let _ = bed.make(&bed.staged, &[".newtool/rc", ".other"]).exits(0);
    let asked = bed.capsule.run(&["apply", "latest", "--with", ".newtool"]).exits(4);
    assert!(
        asked.stderr.contains("--with .newtool --with .other` applies all"),
        "{}",
        asked.stderr
    );
    assert!(asked.stderr.contains("--with .newtool --without .other` applies"), "{}", asked.stderr);
    let asked = bed.capsule.run(&["apply", "latest"]).exits(4);
    assert!(!asked.stderr.contains("--without"), "{}", asked.stderr);
    // What is applied already is not asked about again.
    let _ = bed.capsule.run(&["apply", "latest", "--with", "."]).exits(0);
    let again = bed.capsule.run(&["apply", "latest"]).exits(2);
    assert!(again.stderr.contains("applied already"), "{}", again.stderr);
}

/// C22: a rule that has the path in its text has answered; one that opens everything has not.
#[test]
fn a_rule_that_spells_a_path_has_answered() {
    for (writes, is_open) in [
        ("\"**\"", false),
        ("\"*\", \"*/**\"", false),
        ("\"**\", \".newtool/**\"", true),
        ("\"**\", \".new*/**\"", true),
        ("\"**\", \".other/**\"", false),
    ] {
        let bed = Bed::new(writes);
        let _ = bed.make(&bed.staged, &[".newtool/rc"]).exits(0);
        let applied = bed.capsule.run(&["apply", "latest"]);
        assert_eq!(bed.has(".newtool/rc"), is_open, "{writes}: {}", applied.stderr);
    }
}
