//! Places that the host takes orders from under other names than those that invariants name: what links
//! and files lead to, repositories by any name, and what the configuration of a repository names.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

#[path = "orders/host.rs"]
mod host;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use capsule_testkit::{Capsule, CommandOutput, is_nightly, run_in_parallel};
use serde_json::json;

const TOOLS: &str = r#"
tools:
  fs.write: { decision: allow, hidden: allow, symlinks: inside, paths: ["**"] }
  fs.edit: { decision: allow, hidden: allow, symlinks: inside, paths: ["**"] }
  fs.delete: { decision: allow, hidden: allow, symlinks: inside, paths: ["**"] }
  shell.run:
    limits: { timeout: 30s }
    executables:
      perl: { decision: allow, writes: ["**"] }
"#;

/// How changes are made.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Staged,
    Copied,
    Direct,
    Write,
    WriteDirect,
}

const WAYS: [Way; 5] = [Way::Staged, Way::Copied, Way::Direct, Way::Write, Way::WriteDirect];

struct Bed {
    capsule: Capsule,
    staged: String,
    direct: String,
    /// Whether the workspace is named on the command line: a home directory is one only then.
    is_named: bool,
}

impl Bed {
    fn new(lay: impl Fn(&Path)) -> Self {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        lay(&capsule.workspace());
        let staged =
            capsule.write_policy(&format!("version: 1\nsandbox: {{ floor: landlock }}\n{TOOLS}"));
        let direct = staged.replace("policy.yaml", "direct.yaml");
        assert_ne!(staged, direct);
        let sandbox = "sandbox: { workspace: direct }";
        fs::write(&direct, format!("version: 1\n{sandbox}\n{TOOLS}")).unwrap();
        Self { capsule, staged, direct, is_named: false }
    }

    /// Where the workspace is, as far as it is named.
    fn place(&self) -> Vec<String> {
        let path = || self.capsule.workspace().to_str().unwrap().to_owned();
        if self.is_named { vec!["--workspace".into(), path()] } else { Vec::new() }
    }

    /// Where a path of the workspace is.
    fn inside(&self, path: &str) -> String {
        self.capsule.workspace().join(path).to_str().unwrap().to_owned()
    }

    /// Makes a file outside of the workspace; says where.
    fn outside(&self, name: &str, text: &str) -> String {
        let file = self.capsule.directory().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    }

    fn perl(&self, way: Way, script: &str) -> CommandOutput {
        let policy = if way == Way::Direct { &self.direct } else { &self.staged };
        let place = self.place();
        let place = place.iter().map(String::as_str);
        let line: Vec<&str> =
            ["exec", "--policy", policy, "--json"].into_iter().chain(place).collect();
        let line = [&line[..], &["--", "perl", "-e", script]].concat();
        match way {
            Way::Copied => self.capsule.run_without_namespaces(&line),
            _ => self.capsule.run(&line),
        }
    }

    fn call(&self, way: Way, tool: &str, args: &serde_json::Value) -> CommandOutput {
        let policy = if way == Way::WriteDirect { &self.direct } else { &self.staged };
        let (place, args) = (self.place(), args.to_string());
        let line = ["call", tool, "--policy", policy, "--args", &args];
        let line: Vec<&str> = line.into_iter().chain(place.iter().map(String::as_str)).collect();
        self.capsule.run(&line)
    }

    /// Tries to append to a file, and to have that in the workspace.
    fn append(&self, way: Way, path: &str) -> CommandOutput {
        let ran = match way {
            Way::Write | Way::WriteDirect => {
                let args = json!({ "path": path, "content": "evil\n", "mode": "append" });
                self.call(way, "fs.write", &args)
            }
            _ => self.perl(way, &appending(path)),
        };
        if matches!(way, Way::Staged | Way::Copied | Way::Write) {
            let _ = self.capsule.run(&["apply", "latest"]);
            let _ = self.capsule.run(&["discard", "latest"]);
        }
        ran
    }

    fn has_evil(&self, path: &str) -> bool {
        let read = fs::read(self.capsule.workspace().join(path));
        read.is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains("evil"))
    }
}

/// A script that appends to a file, and makes the folders that it needs.
fn appending(path: &str) -> String {
    format!(
        "use strict; my $p = ''; my @n = split m{{/}}, '{path}'; pop @n; \
         for (@n) {{ $p .= \"$_/\"; mkdir $p }} \
         open(my $f, '>>', '{path}') or die $!; print $f \"evil\\n\"; close $f or die $!"
    )
}

fn git(root: &Path, words: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=n", "-c", "user.email=n@localhost"]);
    command.args(words).current_dir(root);
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", "/nonexistent");
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// What every workspace here has beside what a row lays.
fn lay(root: &Path) {
    git(root, &["init", "-q"]);
    for folder in ["scripts", "tools/hooks", "data", "ci"] {
        fs::create_dir_all(root.join(folder)).unwrap();
        fs::write(root.join(folder).join("own"), "own\n").unwrap();
    }
    fs::write(root.join("plain"), "# plain\n").unwrap();
}

/// A file that stands in the way of a link goes.
fn link(root: &Path, target: &str, at: &str) {
    let at = root.join(at);
    let _ = fs::remove_dir_all(&at);
    let _ = fs::remove_file(&at);
    fs::create_dir_all(at.parent().unwrap()).unwrap();
    symlink(target, at).unwrap();
}

type Lay = fn(&Path);

/// The ways in which the path of this number is tried: in one, another than that of the path before; in the nightly part in all.
fn ways_of(number: usize, ways: &[Way]) -> impl Iterator<Item = &Way> {
    let count = if is_nightly() { ways.len() } else { 1 };
    ways.iter().cycle().skip(number % ways.len()).take(count)
}

/// Each row: what is closed stays as it was, what is open is changed.
fn check(rows: &[(&str, Lay, &[&str], &[&str])], ways: &[Way]) {
    let mut tried = Vec::new();
    for (what, row, closed, open) in rows {
        let closed = closed.iter().map(|path| (path, false));
        for (path, is_open) in closed.chain(open.iter().map(|path| (path, true))) {
            let ways = ways_of(tried.len(), ways);
            tried.extend(ways.map(|way| (what, row, way, path, is_open)));
        }
    }
    let wrong = run_in_parallel(tried, |(what, row, way, path, is_open)| {
        let bed = Bed::new(|root| {
            lay(root);
            row(root);
        });
        let ran = bed.append(*way, path);
        // In the workspace itself, what is new is told when it is there.
        let told = ran.stdout.contains("change.protected");
        let is_held = bed.has_evil(path) == is_open || told && *way == Way::Direct && !is_open;
        (!is_held).then(|| {
            format!("{what}, {path}, {way:?}: {} {} {}", ran.status, ran.stdout, ran.stderr)
        })
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// C22: what a protected name leads to is protected as what it is, whoever changes it.
#[test]
fn what_protected_names_lead_to_is_protected() {
    let rows: &[(&str, Lay, &[&str], &[&str])] = &[
        (
            "a hook that is a link",
            |root| link(root, "../../scripts/own", ".git/hooks/pre-commit"),
            &["scripts/own"],
            &["scripts/new", "plain"],
        ),
        (
            "a folder of hooks that is a link, and links in it",
            |root| {
                link(root, "../tools/hooks", ".git/hooks");
                link(root, "../../scripts/own", "tools/hooks/pre-commit");
            },
            &["tools/hooks/own", "tools/hooks/new", "scripts/own"],
            &["tools/own", "scripts/new"],
        ),
        ("a configuration", |root| link(root, "../plain", ".git/config"), &["plain"], &["ci/own"]),
        (
            "a link to what is not there",
            |root| link(root, "ci/envrc", ".envrc"),
            &["ci/envrc"],
            &["ci/own"],
        ),
        (
            "a link through a link, and an absolute one",
            |root| {
                link(root, "ci", "current");
                link(root, root.join("current").to_str().unwrap(), ".vscode");
            },
            &["ci/own", "ci/tasks.json"],
            &["plain"],
        ),
        (
            "a folder above what is protected",
            |root| link(root, "ci", ".github"),
            &["ci/workflows/ci.yml"],
            &["plain"],
        ),
        (
            "a link to where no folder is yet",
            |root| link(root, "vendor/gh", ".github"),
            &["vendor/gh/workflows/ci.yml", "vendor"],
            &["vendor/gh/own", "vendor/own"],
        ),
        (
            "a build server's file",
            |root| link(root, "../../ci/own", ".github/workflows/ci.yml"),
            &["ci/own"],
            &["plain"],
        ),
    ];
    check(rows, &WAYS);
}

/// C22: a repository that lies elsewhere than its `.git` says is protected as that.
#[test]
fn a_repository_that_a_name_leads_to_is_protected() {
    let rows: &[(&str, Lay, &[&str], &[&str])] = &[
        (
            "a link to the repository",
            |root| {
                fs::rename(root.join(".git"), root.join("data/repo")).unwrap();
                symlink("data/repo", root.join(".git")).unwrap();
            },
            &[
                "data/repo/hooks/pre-commit",
                "data/repo/config",
                "data/repo/info/attributes",
                "data/repo/objects/new",
                "data/repo/index",
            ],
            &["data/repo/COMMIT_EDITMSG", "data/own"],
        ),
        (
            "a file that names the repository",
            |root| git(root, &["init", "-q", "--separate-git-dir=data/repo"]),
            &[
                "data/repo/hooks/pre-commit",
                "data/repo/config",
                "data/repo/commondir",
                "data/repo/refs/heads/new",
            ],
            &["data/repo/COMMIT_EDITMSG", "data/own"],
        ),
    ];
    check(rows, &[Way::Staged, Way::Copied, Way::Write, Way::WriteDirect]);
    // In the workspace itself, all of it is held.
    let closed = rows.iter().map(|(what, lay, closed, _)| (*what, *lay, *closed, &[][..]));
    check(&closed.collect::<Vec<_>>(), &[Way::Direct]);
}

/// C22, C23: a repository is one by what is in it, and takes commits but no orders.
#[test]
fn a_repository_by_any_name_is_protected() {
    let rows: &[(&str, Lay, &[&str], &[&str])] = &[
        (
            "a bare repository with hooks",
            |root| git(root, &["init", "-q", "--bare", "data/origin.git"]),
            &[
                "data/origin.git/hooks/post-update",
                "data/origin.git/hooks/post-update.sample",
                "data/origin.git/config",
                "data/origin.git/info/attributes",
                "data/origin.git/refs/heads/new",
                "data/origin.git/HEAD",
            ],
            &["data/origin.git/COMMIT_EDITMSG", "data/own"],
        ),
        (
            "the workspace itself",
            |root| {
                fs::remove_dir_all(root.join(".git")).unwrap();
                git(root, &["init", "-q", "--bare", "."]);
            },
            &["hooks/post-update", "config", "objects/new"],
            &["description", "plain"],
        ),
        (
            "hooks that are a link",
            |root| {
                git(root, &["init", "-q", "--bare", "data/other"]);
                link(root, "../../scripts", "data/other/hooks");
            },
            &["scripts/own", "scripts/post-update", "data/other/objects/new"],
            &["data/other/description", "plain"],
        ),
    ];
    check(rows, &WAYS);
}

/// Adds to the configuration of the workspace's repository.
fn configure(root: &Path, text: &str) {
    let file = root.join(".git/config");
    let all = fs::read_to_string(&file).unwrap() + text;
    fs::write(file, all).unwrap();
}

/// B11, C22: what the configuration of a repository names is protected as what it gives orders to.
#[test]
fn what_a_configuration_names_is_protected() {
    let rows: &[(&str, Lay, &[&str], &[&str])] = &[
        (
            "hooks, and a link in them",
            |root| {
                configure(root, "[core]\n\thooksPath = tools/hooks # ours\n");
                link(root, "../../scripts/own", "tools/hooks/pre-commit");
            },
            &["tools/hooks/own", "tools/hooks/new", "scripts/own"],
            &["tools/own", ".git/COMMIT_EDITMSG"],
        ),
        (
            "configuration that is included, and what that names",
            |root| {
                configure(
                    root,
                    "[include]\npath = ../plain\n[includeIf \"onbranch:x\"]\npath=../new\n",
                );
                fs::write(root.join("plain"), "[core]\nattributesFile = \\\n  ci/own\n").unwrap();
            },
            &["plain", "new", "ci/own"],
            &["data/own"],
        ),
        (
            "commands",
            |root| {
                configure(root, "[core]\nfsmonitor = ./tools/own\n[filter \"f\"]\n");
                configure(root, "clean = \"perl 'scripts/own' %f\"\n[alias]\nx = !ci/new\n");
            },
            &["tools/own", "scripts/own", "ci/new"],
            &["ci/own", "scripts/new"],
        ),
        (
            "commands of subcommands, of submodules and of addresses",
            |root| {
                configure(root, "[alias]\nx = !ci/new a\ny = status plain\n");
                configure(root, "[submodule \"s\"]\nupdate = !./tools/own\n");
                configure(root, "[remote \"r\"]\nurl = ext::./scripts/own %S\n");
                configure(root, "[url \"ext::data/own\"]\ninsteadOf = x:\n");
            },
            &["ci/new", "tools/own", "scripts/own", "data/own"],
            &["plain", "ci/own"],
        ),
        (
            "what new repositories are made of, and whom to believe",
            |root| {
                configure(root, "[init]\ntemplateDir = tools\n[http]\nsslCAInfo = ci/own\n");
                configure(root, "[core]\nexcludesFile = data/own\nnewKey = ./scripts/own\n");
            },
            &["tools/own", "tools/hooks/post-checkout", "ci/own", "scripts/own"],
            &["data/own", "scripts/new", "plain"],
        ),
        (
            "a folder by a key that nobody knows",
            |root| configure(root, "[else]\nhookDir = ci\nplace = data\n[gui]\nrecentrepo = .\n"),
            &["ci/own", "ci/new"],
            &["data/own", "plain"],
        ),
        (
            "another repository, and one whose folder lies elsewhere",
            |root| {
                git(root, &["init", "-q", "data/inner"]);
                git(&root.join("data/inner"), &["config", "core.hooksPath", "../own-hooks"]);
                git(root, &["init", "-q", "--separate-git-dir=data/apart", "ci"]);
                git(&root.join("ci"), &["config", "core.fsmonitor", "./own"]);
            },
            &["data/own-hooks/pre-commit", "ci/own"],
            &["data/own", "data/inner/own"],
        ),
    ];
    check(rows, &WAYS);
}

/// C22: every word of a command line counts, whether a file stands there or not, and however it is spelled.
#[test]
fn every_word_of_a_command_that_a_configuration_names_is_protected() {
    let rows: &[(&str, Lay, &[&str], &[&str])] = &[
        (
            "behind another word, before it is there",
            |root| {
                configure(root, "[core]\nfsmonitor = sh ./tools/new\neditor = env sh ci/new\n");
                configure(root, "[diff]\nexternal = sh -e scripts/new\n");
                configure(root, "[alias]\nx = \"!cd data && ./new\"\n");
            },
            &["tools/new", "ci/new", "scripts/new", "data/new"],
            &["tools/own", "sh", "data/newer"],
        ),
        (
            "with escapes, quotes, values by default, and in one word with an option",
            |root| {
                configure(root, "[core]\neditor = tools\\\\/own\npager = ${X:-ci/own}\n");
                configure(root, "sshCommand = ssh -Fdata/ssh\n");
                configure(root, "[diff]\nexternal = 'scri''pts'/own --rc=data/rc\n");
            },
            &["tools/own", "ci/own", "data/ssh", "scripts/own", "data/rc"],
            &["data/own"],
        ),
        (
            "a program whose name cannot be read, and files that one is given",
            |root| {
                configure(root, "[alias]\nx = \"!sh tools/$1\"\ny = \"!fmt -i scripts/*\"\n");
            },
            &["tools/own", "tools/new"],
            &["scripts/own", "scripts/new"],
        ),
        (
            "aliases made of options of git",
            |root| {
                configure(root, "[alias]\nv = -c core.editor=ci/own commit\n");
                configure(root, "w = difftool -y -x data/new HEAD~1\n");
                configure(root, "x = -c alias.yy=!scripts/own yy\n");
                configure(root, "y = -c core.hooksPath=tools/hooks commit\n");
            },
            &["ci/own", "data/new", "scripts/own", "tools/hooks/new"],
            &["tools/own", "data/own"],
        ),
        (
            "aliases of subcommands that start nothing",
            |root| {
                configure(root, "[alias]\nlg = log --oneline\nco = checkout\nlog = log plain\n");
                configure(root, "d = diff -- ci/own data/new\n");
            },
            &[],
            &["plain", "ci/own", "data/new", "log", "checkout"],
        ),
    ];
    check(rows, &[Way::Staged, Way::Direct, Way::Write]);
}

/// B11, C22: a repository that lies outside names hooks by a path that counts from the workspace.
#[test]
fn what_a_repository_outside_names_is_protected() {
    let rows: &[(&str, Lay, &[&str], &[&str])] = &[
        (
            "a linked working tree",
            |root| {
                let main = root.with_file_name("main");
                fs::rename(root, &main).unwrap();
                git(&main, &["config", "core.hooksPath", "scripts"]);
                git(&main, &["add", "."]);
                git(&main, &["commit", "-q", "--no-verify", "-m", "all"]);
                git(&main, &["worktree", "add", "-q", root.to_str().unwrap()]);
            },
            &["scripts/own", "scripts/pre-commit"],
            &["tools/own"],
        ),
        (
            "a repository whose folder lies outside, and hooks that lead back",
            |root| {
                let apart = root.with_file_name("apart");
                let apart = apart.to_str().unwrap();
                git(root, &["init", "-q", "--separate-git-dir", apart]);
                link(Path::new(apart), root.join("scripts").to_str().unwrap(), "hooks");
            },
            &["scripts/own", "scripts/pre-commit"],
            &["tools/own"],
        ),
        (
            "a repository around the workspace",
            |root| {
                let above = root.parent().unwrap();
                fs::rename(root.join(".git"), above.join(".git")).unwrap();
                git(above, &["config", "core.hooksPath", "ws/scripts"]);
            },
            &["scripts/own", "scripts/pre-commit"],
            &["tools/own"],
        ),
    ];
    check(rows, &WAYS);
}

/// B11, C22: what the user's own configuration names, and none that cannot be read.
#[test]
fn nothing_is_changed_where_orders_are_unknown() {
    let bed = Bed::new(lay);
    fs::write(bed.capsule.home().join(".gitconfig"), "[core]\nhooksPath = tools/hooks\n").unwrap();
    for way in WAYS {
        let ran = bed.append(way, "tools/hooks/own");
        assert!(!bed.has_evil("tools/hooks/own"), "{way:?} {}", ran.stdout);
    }
    // Containers say so that there is none.
    link(&bed.capsule.home(), "/dev/null", ".gitconfig");
    for (at, way) in WAYS.into_iter().enumerate() {
        let ran = bed.append(way, &format!("data/new{at}"));
        assert!(bed.has_evil(&format!("data/new{at}")), "{way:?} {} {}", ran.stdout, ran.stderr);
    }
    fs::remove_file(bed.capsule.home().join(".gitconfig")).unwrap();
    fs::write(bed.capsule.home().join(".gitconfig"), "as it was\n").unwrap();
    for way in WAYS {
        let ran = bed.append(way, "plain");
        let told = ran.stdout + &ran.stderr;
        assert!(told.contains("path.orders-unknown") && told.contains("line 1"), "{way:?}: {told}");
        assert!(!told.contains("\"exit_code\""), "it did not run: {told}");
        assert!(!bed.has_evil("plain"), "{way:?}");
    }
}

/// C22: the configuration of the user and of the machine is found wherever variables and links say that it is,
/// and what they say themselves counts.
#[test]
fn the_user_s_configuration_is_found_wherever_it_is() {
    type Set = fn(&mut Bed);
    let rows: &[(&str, Set, &[&str])] = &[
        (
            "the user's own file is a link into the workspace",
            |bed| link(&bed.capsule.home(), &bed.inside("data/own"), ".gitconfig"),
            &["data/own"],
        ),
        (
            "so is the folder of all configuration",
            |bed| link(&bed.capsule.home(), &bed.inside("data"), ".config"),
            &["data/git/config", "data/git/attributes"],
        ),
        (
            "a variable names that folder",
            |bed| {
                let at = bed.outside("xdg/git/config", "[core]\nhooksPath = tools/hooks\n");
                bed.capsule.set("XDG_CONFIG_HOME", at.strip_suffix("/git/config").unwrap());
            },
            &["tools/hooks/own", "tools/hooks/new"],
        ),
        (
            "a variable names the file",
            |bed| {
                let at = bed.outside("own", "[filter \"x\"]\nclean = ./scripts/own\n");
                bed.capsule.set("GIT_CONFIG_GLOBAL", &at);
            },
            &["scripts/own"],
        ),
        (
            "a variable names the machine's, which is here",
            |bed| {
                let at = bed.inside("plain");
                bed.capsule.set("GIT_CONFIG_SYSTEM", &at);
            },
            &["plain"],
        ),
        (
            "another git has another one for the machine",
            |bed| {
                let at = bed.outside("prefix/etc/gitconfig", "[core]\nfsmonitor = ./scripts/own\n");
                let prefix = at.strip_suffix("/etc/gitconfig").unwrap();
                fs::create_dir(format!("{prefix}/bin")).unwrap();
                symlink("/usr/bin/git", format!("{prefix}/bin/git")).unwrap();
                bed.capsule.set("PATH", &format!("{prefix}/bin:/usr/bin:/bin"));
            },
            &["scripts/own"],
        ),
        (
            "variables are settings",
            |bed| {
                bed.capsule.set("GIT_CONFIG_COUNT", "1");
                bed.capsule.set("GIT_CONFIG_KEY_0", "core.hooksPath");
                bed.capsule.set("GIT_CONFIG_VALUE_0", "scripts");
            },
            &["scripts/own", "scripts/pre-commit"],
        ),
        (
            "variables name programs, and what new repositories are made of",
            |bed| {
                bed.capsule.set("GIT_SSH_COMMAND", "perl ./scripts/own -v");
                let at = bed.inside("ci");
                bed.capsule.set("GIT_TEMPLATE_DIR", &at);
            },
            &["scripts/own", "ci/hooks/post-checkout"],
        ),
        (
            "a variable names the repository",
            |bed| {
                let folder = bed.capsule.directory().join("apart");
                git(bed.capsule.directory(), &["init", "-q", "--bare", "apart"]);
                git(&folder, &["config", "core.fsmonitor", "./scripts/own"]);
                bed.capsule.set("GIT_DIR", folder.to_str().unwrap());
            },
            &["scripts/own"],
        ),
    ];
    let mut tried = Vec::new();
    for (what, set, closed) in rows {
        for way in [Way::Staged, Way::Direct, Way::Write] {
            tried.extend(closed.iter().map(|path| (what, set, way, path)));
        }
    }
    let wrong = run_in_parallel(tried, |(what, set, way, path)| {
        let mut bed = Bed::new(lay);
        set(&mut bed);
        let ran = bed.append(way, path);
        let told = ran.stdout.contains("change.protected");
        let is_held = !bed.has_evil(path) || told && way == Way::Direct;
        // What nothing names is open.
        let open = bed.append(way, "tools/else");
        let is_open = bed.has_evil("tools/else");
        (!is_held || !is_open).then(|| {
            format!("{what}, {path}, {way:?}: {} {} {}", ran.stdout, ran.stderr, open.stdout)
        })
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// C22: a repository in the workspace may name any place of it. Where its configuration is broken nothing is
/// changed anywhere, and the refusal says what to mend, and where; once it is, all goes on.
#[test]
fn a_broken_configuration_is_named_with_its_line_and_the_remedy() {
    let bed = Bed::new(|root| {
        lay(root);
        fs::create_dir_all(root.join("vendor/lib")).unwrap();
        git(&root.join("vendor/lib"), &["init", "-q"]);
    });
    let config = bed.capsule.workspace().join("vendor/lib/.git/config");
    let whole = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("[core]\n\tx = \\q\n{whole}")).unwrap();
    for way in WAYS {
        let ran = bed.append(way, "plain");
        let told = ran.stdout + &ran.stderr;
        for part in ["vendor/lib/.git/config", "line 2 is broken", "mend line 2", "away"] {
            assert!(told.contains(part), "{way:?}: {part}: {told}");
        }
        assert!(!bed.has_evil("plain"), "{way:?}");
    }
    // Git says the same.
    let git = Command::new("git").args(["status"]).current_dir(config.parent().unwrap()).output();
    let told = String::from_utf8_lossy(&git.unwrap().stderr).to_string();
    assert!(told.contains("bad config line 2"), "{told}");
    fs::write(&config, whole).unwrap();
    for (at, way) in WAYS.into_iter().enumerate() {
        let ran = bed.append(way, &format!("data/new{at}"));
        assert!(bed.has_evil(&format!("data/new{at}")), "{way:?} {} {}", ran.stdout, ran.stderr);
    }
}

/// C22, C28: what a protected name leads through stays what it is, and no new link stands where orders
/// are looked for.
#[test]
fn nothing_leads_protected_names_elsewhere() {
    let rows: &[(&str, Lay, &str, &str)] = &[
        (
            "a link on the way",
            |root| {
                link(root, "ci", "current");
                link(root, "current", ".vscode");
            },
            "unlink 'current' or die; symlink 'data', 'current' or die",
            "current",
        ),
        (
            "a folder on the way to what is not there",
            |root| {
                link(root, "empty/tasks", ".vscode");
                fs::create_dir(root.join("empty")).unwrap();
            },
            "rmdir 'empty' or die; symlink 'data', 'empty' or die",
            "empty",
        ),
        (
            "a folder in place of a link on the way",
            |root| {
                link(root, "v1", "tools/current");
                fs::create_dir(root.join("tools/v1")).unwrap();
                link(root, "../tools/current", ".git/hooks");
            },
            "unlink 'tools/current' or die; mkdir 'tools/current' or die; \
             open(my $f, '>', 'tools/current/pre-commit') or die; close $f",
            "tools/current",
        ),
        (
            "a link where no folder is yet",
            |root| configure(root, "[core]\nhooksPath = vendor/hooks\n"),
            "mkdir 'src' or die; mkdir 'src/hooks' or die; symlink 'src', 'vendor' or die; \
             open(my $f, '>', 'src/hooks/pre-commit') or die; close $f",
            "vendor",
        ),
        (
            "a link where no folder is yet, though the way goes up again",
            |root| link(root, "none/../ci", ".github"),
            "symlink 'data', 'none' or die",
            "none",
        ),
        ("a link in their place", |_| {}, "symlink 'ci', '.github' or die", ".github"),
        (
            "a link to where they are",
            |root| link(root, "../tools/hooks", ".git/hooks"),
            "symlink 'tools/hooks', 'easy' or die",
            "easy",
        ),
    ];
    let mut wrong = Vec::new();
    for (what, row, script, path) in rows {
        for way in [Way::Staged, Way::Copied] {
            let bed = Bed::new(|root| {
                lay(root);
                row(root);
            });
            let at = bed.capsule.workspace().join(path);
            let before = fs::read_link(&at).ok();
            let ran = bed.perl(way, script);
            let _ = bed.capsule.run(&["apply", "latest"]).exits(3);
            if ran.json()["code"] != "change.refused" || fs::read_link(&at).ok() != before {
                wrong.push(format!("{what}, {way:?}: {} {}", ran.status, ran.stdout));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// C22, C28: the same in the workspace itself, where it is told when it is there.
#[test]
fn what_leads_elsewhere_in_the_workspace_itself_is_told() {
    let rows: &[(Lay, &str, bool)] = &[
        (
            |_| {},
            "mkdir 'mine' or die; mkdir 'mine/workflows' or die; symlink 'mine', '.github' or die; \
             open(my $f, '>', 'mine/workflows/x.yml') or die; close $f",
            true,
        ),
        (
            |root| configure(root, "[core]\nhooksPath = vendor/hooks\n"),
            "mkdir 'src' or die; mkdir 'src/hooks' or die; symlink 'src', 'vendor' or die",
            true,
        ),
        (
            |root| configure(root, "[core]\nhooksPath = vendor/hooks\n"),
            "mkdir 'vendor' or die; mkdir 'vendor/own' or die",
            false,
        ),
    ];
    for (row, script, is_told) in rows {
        let bed = Bed::new(|root| {
            lay(root);
            row(root);
        });
        let ran = bed.perl(Way::Direct, script);
        let told = ran.stdout.contains("change.protected");
        assert!(told == *is_told && (told || ran.status == 0), "{script}: {}", ran.stdout);
    }
}

/// C22, C28: no tool takes away a link that a protected name leads through, whether or not a rule has that
/// name.
#[test]
fn no_tool_changes_what_a_name_leads_through() {
    let bed = Bed::new(|root| {
        lay(root);
        link(root, "v1", "ci/current");
        fs::create_dir(root.join("ci/v1")).unwrap();
        link(root, "ci/current", ".github");
        link(root, "none/x", ".gitea");
    });
    for way in [Way::Write, Way::WriteDirect] {
        for (tool, args) in [
            ("fs.delete", json!({ "path": "ci/current" })),
            ("fs.delete", json!({ "path": "ci", "recursive": true })),
            ("fs.write", json!({ "path": "none", "content": "" })),
        ] {
            let ran = bed.call(way, tool, &args).exits(3);
            let told = ran.stdout + &ran.stderr;
            assert!(told.contains("leads through") || told.contains("protected"), "{args}: {told}");
        }
    }
    assert!(bed.capsule.workspace().join("ci/current").is_symlink());
    assert!(!bed.capsule.workspace().join("none").exists());
}

/// C22: tools that change and delete are told the same, by the rule that protects the name.
#[test]
fn every_tool_knows_what_a_name_leads_to() {
    let bed = Bed::new(|root| {
        lay(root);
        link(root, "../../scripts/own", ".git/hooks/pre-commit");
    });
    let edit = json!({ "path": "scripts/own", "search": "own", "replace": "evil" });
    for way in [Way::Write, Way::WriteDirect] {
        for (tool, args) in [
            ("fs.edit", &edit),
            ("fs.delete", &json!({ "path": "scripts/own" })),
            ("fs.delete", &json!({ "path": "scripts", "recursive": true })),
        ] {
            let ran = bed.call(way, tool, args).exits(3);
            let told = ran.stdout + &ran.stderr;
            assert!(told.contains("no-git-control"), "{tool} {args}: {told}");
        }
    }
    assert_eq!(fs::read_to_string(bed.capsule.workspace().join("scripts/own")).unwrap(), "own\n");
}

/// C22: who makes a link while changes wait has them looked at again.
#[test]
fn what_came_to_lead_there_meanwhile_is_not_applied() {
    let bed = Bed::new(lay);
    let _ = bed.perl(Way::Staged, &appending("scripts/own")).exits(0);
    link(&bed.capsule.workspace(), "../../scripts/own", ".git/hooks/pre-commit");
    let applied = bed.capsule.run(&["apply", "latest"]);
    assert_ne!(applied.status, 0);
    assert!(applied.stderr.contains("change.refused"), "{}", applied.stderr);
    assert!(!bed.has_evil("scripts/own"));
}

/// C22: an undo is looked at in the same way. Here it would bring a hook back that a person took away.
#[test]
fn what_came_to_lead_there_meanwhile_is_not_undone() {
    for row in [
        |root: &Path| link(root, "../../scripts/own", ".git/hooks/pre-commit"),
        |root: &Path| configure(root, "[core]\nhooksPath = scripts\n"),
    ] {
        let bed = Bed::new(lay);
        let path = "scripts/own";
        let _ = bed.append(Way::WriteDirect, path);
        let _ = bed.capsule.run(&["undo", "latest"]).exits(0);
        row(&bed.capsule.workspace());
        let undone = bed.capsule.run(&["undo", "latest"]);
        assert_ne!(undone.status, 0);
        assert!(undone.stderr.contains("change.refused"), "{}", undone.stderr);
        assert!(undone.stderr.contains("bring that file back yourself"), "{}", undone.stderr);
        assert!(!bed.has_evil(path));
    }
}

/// A folder that names lead through may come and go, as long as it is one.
#[test]
fn a_folder_where_orders_are_looked_for_is_undone() {
    for way in [Way::Staged, Way::WriteDirect] {
        let bed = Bed::new(|root| {
            lay(root);
            configure(root, "[core]\nhooksPath = vendor/hooks\n");
        });
        if way == Way::Staged {
            let _ = bed.perl(way, &appending("vendor/other")).exits(0);
            let _ = bed.capsule.run(&["apply", "latest"]).exits(0);
        } else {
            let _ = bed.append(way, "vendor/other");
        }
        assert!(bed.has_evil("vendor/other"));
        let undone = bed.capsule.run(&["undo", "latest"]);
        assert_eq!(undone.status, 0, "{way:?}: {}", undone.stderr);
        assert!(!bed.capsule.workspace().join("vendor").exists());
    }
}
