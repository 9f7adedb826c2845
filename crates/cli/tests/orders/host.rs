//! Configuration of the host that lies outside and leads into the workspace: by links, hard links and bind
//! mounts, by a home directory that lies here, and by variables of the environment.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use capsule_testkit::{CommandOutput, run_in_parallel};
use serde_json::json;

use super::{Bed, WAYS, Way, appending, git, lay, link, ways_of};

/// The home directory that stands beside a workspace.
fn home(root: &Path) -> PathBuf {
    root.with_file_name("home")
}

/// Links something of the home directory to a path of the workspace.
fn from_home(root: &Path, at: &str, target: &str) {
    let at = home(root).join(at);
    fs::create_dir_all(at.parent().unwrap()).unwrap();
    symlink(root.join(target), at).unwrap();
}

/// One layout: what stands outside, variables of the environment (`WS` is the workspace), which paths stay as
/// they are, and which are changed.
struct Row {
    what: &'static str,
    lay: fn(&Path),
    variables: &'static [(&'static str, &'static str)],
    closed: &'static [&'static str],
    open: &'static [&'static str],
}

const fn row(
    what: &'static str,
    lay: fn(&Path),
    closed: &'static [&'static str],
    open: &'static [&'static str],
) -> Row {
    Row { what, lay, variables: &[], closed, open }
}

impl Row {
    fn bed(&self) -> Bed {
        let mut bed = Bed::new(|root| {
            lay(root);
            (self.lay)(root);
        });
        let root = bed.capsule.workspace();
        bed.is_named = self.variables.iter().any(|(name, _)| *name == "HOME");
        // What is recorded lies outside of it.
        bed.capsule.set("XDG_DATA_HOME", home(&root).join("data").to_str().unwrap());
        for (name, value) in self.variables {
            bed.capsule.set(name, &value.replace("WS", root.to_str().unwrap()));
        }
        bed
    }

    /// Tries to append to a path; gives what is wrong with what came of it.
    fn attempt(&self, way: Way, path: &str, is_open: bool) -> Option<String> {
        let bed = self.bed();
        let ran = bed.append(way, path);
        // In the workspace itself, what is new is told when it is there.
        let told = ran.stdout.contains("change.protected") || ran.stdout.contains("change.asked");
        let is_right = bed.has_evil(path) == is_open || told && way == Way::Direct && !is_open;
        let CommandOutput { status, stdout, stderr, .. } = ran;
        (!is_right).then(|| format!("{}, {path}, {way:?}: {status} {stdout} {stderr}", self.what))
    }
}

fn check(rows: &[Row], ways: &[Way]) {
    let mut tried = Vec::new();
    for row in rows {
        let closed = row.closed.iter().map(|path| (path, false));
        for (path, is_open) in closed.chain(row.open.iter().map(|path| (path, true))) {
            let ways = ways_of(tried.len(), ways);
            tried.extend(ways.map(|way| (row, *way, *path, is_open)));
        }
    }
    let wrong = run_in_parallel(tried, |(row, way, path, is_open)| row.attempt(way, path, is_open));
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// C22: a configuration file of the home directory that is a link into the workspace is protected there.
#[test]
fn what_the_home_directory_links_to_is_protected() {
    let rows = [
        row("a file", |root| from_home(root, ".gitconfig", "plain"), &["plain"], &["ci/own"]),
        row(
            "a file through other links, the last of which is inside",
            |root| {
                symlink("apart/rc", home(root).join(".bashrc")).unwrap();
                from_home(root, "apart/rc", "ci/current");
                link(root, "../scripts/own", "ci/current");
            },
            &["scripts/own"],
            &["scripts/new", "ci/own"],
        ),
        row(
            "a whole directory",
            |root| from_home(root, ".config/nvim", "tools"),
            &["tools/own", "tools/hooks/own", "tools/lua/new.lua"],
            &["ci/own"],
        ),
        row(
            "a directory above several",
            |root| from_home(root, ".config", "data"),
            &["data/fish/conf.d/x.fish", "data/git/config", "data/systemd/user/x.service"],
            &["ci/own"],
        ),
        row(
            "a file in a directory of the home directory",
            |root| from_home(root, ".config/fish/conf.d/own.fish", "plain"),
            &["plain"],
            &["ci/own"],
        ),
        row(
            "a directory behind a link that stays outside",
            |root| {
                from_home(root, "apart/lua/own", "scripts");
                fs::create_dir_all(home(root).join(".config")).unwrap();
                symlink("../apart", home(root).join(".config/nvim")).unwrap();
            },
            &["scripts/own", "scripts/new.lua"],
            &["ci/own"],
        ),
        row(
            "what is not there yet",
            |root| from_home(root, ".zshenv", "ci/zshenv"),
            &["ci/zshenv"],
            &["ci/own"],
        ),
        row(
            "units, desktop entries, keys and a program",
            |root| {
                from_home(root, ".config/systemd/user/x.service", "plain");
                from_home(root, ".config/autostart/x.desktop", "ci/own");
                from_home(root, ".ssh/authorized_keys", "data/own");
                from_home(root, ".local/bin/git", "scripts/own");
            },
            &["plain", "ci/own", "data/own", "scripts/own"],
            &["tools/own"],
        ),
    ];
    check(&rows, &WAYS);
}

/// C22: no program is listed for it, but it is hidden in the home directory.
#[test]
fn what_a_hidden_name_of_the_home_directory_links_to_is_asked_about() {
    let rows = [
        row(
            "a directory",
            |root| from_home(root, ".newtool", "tools"),
            &["tools/own", "tools/new"],
            &["ci/own"],
        ),
        row(
            "configuration",
            |root| from_home(root, ".config/newtool.toml", "plain"),
            &["plain"],
            &["ci/own"],
        ),
        row(
            "in a directory of its own",
            |root| {
                from_home(root, ".config/newtool/rc", "plain");
                from_home(root, ".newtool/plugins", "tools");
            },
            &["plain", "tools/own", "tools/new"],
            &["ci/own"],
        ),
        row(
            "all of the workspace",
            |root| from_home(root, ".newtool", ""),
            &[],
            &["plain", "ci/own"],
        ),
        row("caches", |root| from_home(root, ".cache", "data"), &[], &["data/own"]),
    ];
    check(&rows, &[Way::Staged, Way::Copied, Way::Direct, Way::Write]);
    // Where nothing is staged, the question comes before the call.
    let bed = rows[0].bed();
    let ran = bed.append(Way::WriteDirect, "tools/own").exits(4);
    let told = ran.stdout + &ran.stderr;
    assert!(told.contains("hidden in the home directory"), "{told}");
    assert!(!bed.has_evil("tools/own"));
}

/// C22: the same file under another name, without a link that says so. What is applied takes the place of the
/// name in the workspace alone, and yet is refused: the two are meant to be one.
#[test]
fn a_hard_link_to_configuration_is_protected() {
    let rows = [
        row(
            "a file",
            |root| fs::hard_link(root.join("plain"), home(root).join(".tmux.conf")).unwrap(),
            &["plain"],
            &["ci/own"],
        ),
        row(
            "a file in a directory",
            |root| {
                fs::create_dir_all(home(root).join(".config/kitty")).unwrap();
                fs::hard_link(root.join("ci/own"), home(root).join(".config/kitty/kitty.conf"))
                    .unwrap();
            },
            &["ci/own"],
            &["plain"],
        ),
    ];
    check(&rows, &WAYS);
}

/// C22: the home directory is the workspace, or lies in it.
#[test]
fn a_home_directory_in_the_workspace_is_protected() {
    let closed = &[
        ".gitconfig",
        ".config/nvim/init.lua",
        ".config/systemd/user/x.service",
        "bin/git",
        ".config/newtool/rc",
        ".newtool",
    ];
    let rows = [
        Row {
            what: "the workspace itself",
            lay: |_| {},
            variables: &[("HOME", "WS")],
            closed,
            open: &["plain", "ci/own"],
        },
        Row {
            what: "a link in the home directory",
            lay: |root| link(root, "scripts", "bin"),
            variables: &[("HOME", "WS")],
            closed: &["scripts/own", "scripts/new"],
            open: &["plain", "ci/own"],
        },
        Row {
            what: "a directory of it",
            lay: |root| fs::create_dir_all(root.join("users/ada")).unwrap(),
            variables: &[("HOME", "WS/users/ada")],
            closed: &["users/ada/.gitconfig", "users/ada/bin/git", "users/ada/.newtool/rc"],
            open: &["users/ada/notes", "bin/git", "users/ada/.cache/x"],
        },
    ];
    check(&rows, &[Way::Staged, Way::Direct, Way::Write, Way::WriteDirect]);
}

/// C22: what variables of the environment name takes the place of what is looked for in the home directory.
#[test]
fn what_variables_name_is_protected() {
    let rows = [
        Row {
            what: "directories of configuration",
            lay: |_| {},
            variables: &[("XDG_CONFIG_HOME", "WS/data"), ("CLAUDE_CONFIG_DIR", "WS/ci/claude")],
            closed: &[
                "data/fish/config.fish",
                "data/systemd/user/x.timer",
                "ci/claude/settings.json",
            ],
            open: &["ci/own", "plain"],
        },
        Row {
            what: "files, one of them in a list",
            lay: |_| {},
            variables: &[
                ("PYTHONSTARTUP", "WS/plain"),
                ("BASH_ENV", "WS/scripts/own"),
                ("KUBECONFIG", "/none:WS/data/own"),
            ],
            closed: &["plain", "scripts/own", "data/own"],
            open: &["ci/own"],
        },
        Row {
            what: "a directory that stands for the home directory, a list of them, a relative path",
            lay: |_| {},
            variables: &[
                ("ZDOTDIR", "WS/ci"),
                ("XDG_CONFIG_DIRS", "/none:WS/tools"),
                ("INPUTRC", "data/rc"),
            ],
            closed: &["ci/.zshrc", "tools/autostart/x.desktop", "data/rc"],
            open: &["ci/own", "data/own"],
        },
        Row {
            what: "command lines",
            lay: |_| {},
            variables: &[
                ("EDITOR", "WS/scripts/own --wait"),
                ("LESSOPEN", "|WS/tools/own %s"),
                ("NODE_OPTIONS", "--require=WS/ci/own --max-old-space-size=100"),
                ("VIMINIT", "source WS/plain"),
                ("EXINIT", "source WS/data/new.vim"),
                ("GIT_EDITOR", "env sh WS/ci/new"),
                ("GIT_EXTERNAL_DIFF", "sh tools/new"),
                ("GIT_CONFIG_COUNT", "1"),
                ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
                ("GIT_CONFIG_VALUE_0", "sh WS/data/monitor"),
            ],
            closed: &[
                "scripts/own",
                "tools/own",
                "ci/own",
                "plain",
                "data/new.vim",
                "ci/new",
                "tools/new",
                "data/monitor",
            ],
            open: &["data/own", "scripts/new"],
        },
    ];
    check(&rows, &WAYS);
}

/// C22: a file that a variable names which no table has.
#[test]
fn what_any_variable_names_is_asked_about() {
    let rows = [Row {
        what: "a file, there or not, and an option with one; neither directories nor what they hold",
        lay: |root| fs::write(root.join("tools/own"), "").unwrap(),
        variables: &[
            ("NEWTOOL_RC", "WS/plain"),
            ("NEWTOOL_OPTIONS", "-v --load=WS/ci/own"),
            ("CARGO_TARGET_NONE_RUNNER", "WS/tools/own -x"),
            ("NEWTOOL_FOLDER", "WS/scripts"),
            ("NEWTOOL_NAME", "own"),
            ("NEWTOOL_CACHE", "WS/data/cache"),
            ("OLDPWD", "WS"),
            ("_", "WS/scripts/own"),
            ("MAKEFILES", "WS/data/new.mk"),
            ("MAKEFLAGS", "-f data/flags.mk"),
            ("PYTEST_ADDOPTS", "-p x -cdata/new.ini"),
            ("GOFLAGS", "-toolexec=WS/ci/exec"),
            ("NEWTOOL_LIST", "/none:WS/ci/list"),
        ],
        closed: &[
            "plain",
            "ci/own",
            "tools/own",
            "data/new.mk",
            "data/flags.mk",
            "data/new.ini",
            "ci/exec",
            "ci/list",
        ],
        open: &["scripts/own", "scripts/new", "data/own", "data/cache/x"],
    }];
    check(&rows, &[Way::Staged, Way::Copied, Way::Direct, Way::Write, Way::WriteDirect]);
    let bed = rows[0].bed();
    let _ = bed.append(Way::Staged, "data/own");
    let _ = bed.perl(Way::Staged, &appending("plain")).exits(0);
    let applied = bed.capsule.run(&["apply", "latest"]).exits(4);
    assert!(
        applied.stderr.contains("A variable of the environment names it"),
        "{}",
        applied.stderr
    );
}

/// C22: where the shell looks for programs.
#[test]
fn programs_on_the_path_are_asked_about() {
    let rows = [Row {
        what: "a directory of the workspace, and a relative one",
        lay: |root| symlink("../scripts", root.join("ci/bin")).unwrap(),
        variables: &[("PATH", "WS/ci/bin:tools:/usr/local/bin:/usr/bin:/bin")],
        closed: &["scripts/own", "scripts/git", "tools/git"],
        open: &["tools/hooks/own", "ci/own", "plain"],
    }];
    check(&rows, &[Way::Staged, Way::Copied, Way::Direct, Way::Write, Way::WriteDirect]);
    // By `.` in the path, what runs at the root is a program, and nothing else.
    let row = Row {
        what: "the root",
        lay: |_| {},
        variables: &[("PATH", "/usr/local/bin:/usr/bin:/bin:.")],
        closed: &[],
        open: &["plain", "new.md"],
    };
    check(std::slice::from_ref(&row), &[Way::Staged, Way::Write, Way::WriteDirect]);
    let bed = row.bed();
    let script = format!("{}; chmod 0755, 'ls' or die", appending("ls"));
    let _ = bed.perl(Way::Staged, &script).exits(0);
    let applied = bed.capsule.run(&["apply", "latest"]).exits(4);
    assert!(applied.stderr.contains("looks for programs"), "{}", applied.stderr);
}

/// C22: what is mounted twice is one file, whatever it is called. The mounts are made in a name space of their own.
#[test]
fn a_bind_mount_to_configuration_is_protected() {
    for (source, target, path) in
        [("tools", ".config/nvim", "tools/own"), ("plain", ".profile", "plain")]
    {
        let bed = Bed::new(|root| {
            lay(root);
            let at = home(root).join(target);
            match root.join(source).is_dir() {
                true => fs::create_dir_all(at).unwrap(),
                false => fs::write(at, "").unwrap(),
            }
        });
        let args = json!({ "path": path, "content": "evil\n", "mode": "append" }).to_string();
        let inner =
            bed.capsule.command(&["call", "fs.write", "--policy", &bed.staged, "--args", &args]);
        let mut outer = Command::new("unshare");
        outer.args(["--mount", "--propagation", "private"]);
        if !rustix_is_root() {
            outer.args(["--user", "--map-root-user"]);
        }
        outer.args(["sh", "-c", "mount --bind \"$1\" \"$2\" && shift 2 && exec \"$@\"", "sh"]);
        outer.arg(bed.capsule.workspace().join(source)).arg(bed.capsule.home().join(target));
        outer.arg(inner.get_program()).args(inner.get_args()).current_dir(bed.capsule.workspace());
        outer.env_clear().envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let ran = outer.output().unwrap();
        let told = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(3), "{target}: {told}");
        assert!(
            told.contains("to which `~/") || String::from_utf8_lossy(&ran.stdout).contains("~/"),
            "{told}"
        );
    }
}

fn rustix_is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// C22: the refusal names what leads there, and its rule can be dropped by itself.
#[test]
fn a_refusal_names_what_leads_there_and_can_be_lifted() {
    let row = row("", |root| from_home(root, ".config/starship.toml", "plain"), &[], &[]);
    let bed = row.bed();
    let ran = bed.append(Way::Write, "plain").exits(3);
    let told = ran.stdout + &ran.stderr;
    for part in ["no-host-configuration", "to which `~/.config/starship.toml` leads"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    // Without it a person is still asked: the name is hidden in the home directory.
    let text = fs::read_to_string(&bed.staged).unwrap();
    let lift = "lift: [{ id: no-host-configuration, because: these are my dotfiles }]\n";
    fs::write(&bed.staged, text + lift).unwrap();
    let args = json!({ "path": "plain", "content": "evil\n" });
    let _ = bed.call(Way::Write, "fs.write", &args).exits(0);
    let _ = bed.capsule.run(&["apply", "latest"]).exits(4);
    let _ = bed.capsule.run(&["apply", "latest", "--with", "plain"]).exits(0);
    assert!(bed.has_evil("plain"));
}

/// C22: who works in a directory that agents keep working trees in does not configure the agent.
#[test]
fn a_working_tree_beneath_an_agents_directory_is_a_workspace() {
    for (at, is_open) in [(".claude/worktrees/one", true), (".config/nvim/lua", false)] {
        let bed = Bed::new(lay);
        let workspace = bed.capsule.home().join(at);
        fs::create_dir_all(&workspace).unwrap();
        git(&workspace, &["init", "-q"]);
        let args = json!({ "path": "src/a.lua", "content": "evil\n" }).to_string();
        let mut line = vec!["call", "fs.write", "--policy", &bed.staged, "--args", &args];
        line.extend(["--workspace", workspace.to_str().unwrap()]);
        let ran = bed.capsule.run(&line);
        assert_eq!(ran.status == 0, is_open, "{at}: {} {}", ran.stdout, ran.stderr);
    }
}
