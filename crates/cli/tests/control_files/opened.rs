//! Programs of this machine are asked which configuration they read: each is started under `strace` with an empty
//! home directory, and each file that it looks for there, in the project, or for the whole machine is protected.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use capsule_testkit::run_in_parallel;
use serde_json::Value;

use super::{Bed, listed, table};

/// A program that is started, with variables of the environment (`VAR` is a directory apart), and one of the
/// files that it looks for: without that one it did not start as it should.
struct Start {
    line: &'static str,
    variables: &'static [(&'static str, &'static str)],
    expected: &'static str,
}

const fn start(line: &'static str, expected: &'static str) -> Start {
    Start { line, variables: &[], expected }
}

const fn with(
    line: &'static str,
    variables: &'static [(&'static str, &'static str)],
    expected: &'static str,
) -> Start {
    Start { line, variables, expected }
}

const STARTS: &[Start] = &[
    start("bash -i", "~/.bashrc"),
    start("bash -l -c true", "~/.bash_login"),
    start("sh -l -c true", "~/.profile"),
    with("sh -i -c true", &[("ENV", "VAR/rc")], "VAR/rc"),
    with("bash -c true", &[("BASH_ENV", "VAR/rc")], "VAR/rc"),
    with("bash -i", &[("INPUTRC", "VAR/keys")], "VAR/keys"),
    start("zsh -i -l -c true", "~/.zlogin"),
    with("zsh -i -l -c true", &[("ZDOTDIR", "VAR")], "VAR/.zshrc"),
    start("fish -l -c true", "~/.config/fish/config.fish"),
    with("fish -l -c true", &[("XDG_CONFIG_HOME", "VAR")], "VAR/fish/config.fish"),
    start("git status", "~/.gitconfig"),
    with("git status", &[("XDG_CONFIG_HOME", "VAR")], "VAR/git/ignore"),
    with("git status", &[("GIT_CONFIG_GLOBAL", "VAR/config")], "VAR/config"),
    start("tmux -S SOCKET new-session -d true", "~/.tmux.conf"),
    with("tmux -S SOCKET new-session -d true", &[("XDG_CONFIG_HOME", "VAR")], "VAR/tmux/tmux.conf"),
    start("ssh -G localhost", "~/.ssh/config"),
    start("/usr/bin/python3 -i", "~/.inputrc"),
    with("/usr/bin/python3 -i", &[("PYTHONSTARTUP", "VAR/start")], "VAR/start"),
    with("/usr/bin/python3 -i", &[("PYTHONUSERBASE", "VAR")], ""),
    start("perl -d -e 1", ".perldb"),
    start("less text", "~/.lesskey"),
    start("vim -c q", "~/.vimrc"),
    start("gdb -batch", ".gdbinit"),
    with("gdb -batch", &[("XDG_CONFIG_HOME", "VAR")], "VAR/gdb/gdbinit"),
    start("curl -s http://127.0.0.1:1", "~/.curlrc"),
    with("curl -s http://127.0.0.1:1", &[("CURL_HOME", "VAR")], "VAR/.curlrc"),
    start("wget -q http://127.0.0.1:1", "~/.wgetrc"),
    with("wget -q http://127.0.0.1:1", &[("WGETRC", "VAR/rc")], "VAR/rc"),
    start("gpg --list-keys", "~/.gnupg/gpg.conf"),
    start("sqlite3 -interactive text", "~/.sqliterc"),
    with("openssl version", &[("OPENSSL_CONF", "VAR/openssl.cnf")], "VAR/openssl.cnf"),
];

/// What programs look for and take no orders from.
const DATA: &[&str] = &[
    // What was typed before.
    "~/.bash_history",
    "~/.python_history",
    "~/.lesshst",
    "~/.viminfo",
    "~/.wget-hsts",
    "~/.sqlite_history",
    ".gdb_history",
    // How terminals are spoken to, which languages there are.
    "~/.terminfo",
    "~/.termcap",
    "/etc/terminfo",
    "/etc/termcap",
    "/etc/locale.alias",
    "/etc/localtime",
    // The project itself; what git keeps is looked at in the tests of orders.
    "text",
    "index.html",
    ".git",
    ".gitignore",
    // Names of users, hosts and services; what is true of the whole machine.
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/resolv.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/mailname",
    "/etc/debian_chroot",
    "/etc/os-release",
    "/etc/papersize",
    "/etc/selinux",
    "/etc/suid-debug",
    "/etc/gcrypt",
    "/etc/gnutls",
    "/etc/ssl/certs",
];

/// One start: the directories that the program was given.
struct Scene {
    folder: tempfile::TempDir,
    home: PathBuf,
    variable: PathBuf,
    project: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let [home, variable, project] = ["home", "variable", "project"].map(|own| root.join(own));
        // Some look no further where a directory is missing.
        for own in [home.join(".config/tmux"), variable.join("tmux"), project.clone()] {
            fs::create_dir_all(own).unwrap();
        }
        fs::write(project.join("text"), "text\n").unwrap();
        let made = Command::new("git").args(["init", "-q"]).current_dir(&project).status();
        assert!(made.unwrap().success());
        Self { folder, home, variable, project }
    }

    /// The paths that a program looks for: `~/NAME`, `VAR/NAME`, `/etc/NAME`, and `NAME` for one of the project.
    fn looked_for(&self, start: &Start) -> BTreeSet<String> {
        let (trace, socket) = (self.folder.path().join("trace"), self.folder.path().join("socket"));
        let mut command = Command::new("strace");
        command.args(["-f", "-y", "-s", "4096", "-e", "trace=%file", "-o"]).arg(&trace);
        command.args(start.line.split(' ').map(|word| match word {
            "SOCKET" => socket.to_str().unwrap(),
            word => word,
        }));
        command.current_dir(&self.project).env_clear().stdin(Stdio::null());
        command.env("HOME", &self.home).env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.env("TERM", "xterm").env("LANG", "C");
        for (name, value) in start.variables {
            command.env(name, value.replace("VAR", self.variable.to_str().unwrap()));
        }
        let ran = command.output().unwrap_or_else(|error| panic!("strace: {error}"));
        let _ = Command::new("tmux").arg("-S").arg(&socket).arg("kill-server").output();
        let text =
            fs::read(&trace).unwrap_or_else(|error| panic!("{}: {error}: {ran:?}", start.line));
        let text = String::from_utf8_lossy(&text);
        let found: BTreeSet<String> = text.lines().filter_map(|line| self.named(line)).collect();
        // What is above something else is a directory on its way.
        let is_above = |own: &str| found.iter().any(|other| other.starts_with(&format!("{own}/")));
        found.iter().filter(|own| !is_above(own)).cloned().collect()
    }

    /// The path that one system call reads.
    fn named(&self, line: &str) -> Option<String> {
        let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "mkdir", "unlink", "rename", "symlink"];
        if writes.iter().any(|word| line.contains(word)) || line.contains("execve(") {
            return None;
        }
        let (before, rest) = line.split_once('"')?;
        let (path, _) = rest.split_once('"')?;
        let base = before.split_once('<').and_then(|(_, own)| own.split_once('>'));
        let base = base.map_or(self.project.as_path(), |(own, _)| Path::new(own));
        let mut whole = PathBuf::new();
        for part in base.join(path).components() {
            match part {
                Component::ParentDir => drop(whole.pop()),
                Component::CurDir => {}
                part => whole.push(part),
            }
        }
        // Some ask for the home directory of the account, whatever the environment says.
        let account = account_home();
        let roots =
            [(&self.home, "~/"), (&self.variable, "VAR/"), (&self.project, ""), (&account, "~/")];
        let own = roots.iter().find_map(|(root, name)| {
            let rest = whole.strip_prefix(root).ok()?.to_str()?;
            (!rest.is_empty()).then(|| format!("{name}{rest}"))
        });
        own.or_else(|| whole.starts_with("/etc/").then(|| whole.to_str().unwrap().to_owned()))
    }
}

/// The home directory that the machine has for the user of this process.
fn account_home() -> PathBuf {
    let user =
        std::os::unix::fs::MetadataExt::uid(&fs::metadata("/proc/self").unwrap()).to_string();
    let accounts = fs::read_to_string("/etc/passwd").unwrap();
    let mut own = accounts.lines().map(|line| line.split(':').collect::<Vec<_>>());
    PathBuf::from(own.find(|words| words[2] == user).unwrap()[5])
}

fn is_data(path: &str) -> bool {
    let covers = |own: &&str| path == *own || path.starts_with(&format!("{own}/"));
    // What the dynamic linker keeps is asked for by every program.
    path.starts_with("/etc/ld.so.cache") || DATA.iter().any(covers)
}

/// What of these paths can be changed from the workspace, were they links into it: what is applied is refused for
/// each, by its own name.
fn unprotected(start: &Start, paths: &[&String]) -> Vec<String> {
    let mut bed = Bed::new("\"**\"");
    let around = bed.capsule.home().parent().unwrap().to_owned();
    let variable = around.join("variable");
    bed.capsule.set("XDG_DATA_HOME", around.join("data").to_str().unwrap());
    for (name, value) in start.variables {
        bed.capsule.set(name, &value.replace("VAR", variable.to_str().unwrap()));
    }
    let mut places = Vec::new();
    for (at, path) in paths.iter().enumerate() {
        let outside = match path.split_once('/') {
            Some(("~", rest)) => bed.capsule.home().join(rest),
            Some(("VAR", rest)) => variable.join(rest),
            _ => {
                places.push((*path).clone());
                continue;
            }
        };
        let place = format!("place{at}");
        bed.capsule.write_file(&place, "own");
        fs::create_dir_all(outside.parent().unwrap()).unwrap();
        symlink(bed.capsule.workspace().join(&place), outside).unwrap();
        places.push(place);
    }
    let words: Vec<&str> = places.iter().map(String::as_str).collect();
    let ran = bed.make(&bed.staged, &words);
    let shown = bed.capsule.run(&["changes", "latest", "--json"]).exits(0);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let changes = shown["changes"].as_array().unwrap();
    let is_refused = |place: &String| {
        let mut own = changes.iter().filter(|change| change["path"] == place.as_str());
        own.next().unwrap_or_else(|| panic!("{place}: {} {}", ran.stdout, ran.stderr))["refused"]
            .is_string()
    };
    let open = paths.iter().zip(&places).filter(|(_, place)| !is_refused(place));
    open.map(|(path, _)| (*path).clone()).collect()
}

/// C22: the programs themselves say which files they read. A program that is not there fails the test (`.ci/run`
/// installs them).
#[test]
fn what_programs_look_for_is_protected() {
    let table = table();
    let system = listed(&table, "system");
    let is_listed = |path: &str| {
        system.iter().any(|own| match own.strip_suffix("/**") {
            Some(folder) => path == folder || path.starts_with(&format!("{folder}/")),
            None => path == own,
        })
    };
    let wrong = run_in_parallel(STARTS.iter().collect::<Vec<_>>(), |start| {
        let mut found = Scene::new().looked_for(start);
        let is_there = start.expected.is_empty() || found.contains(start.expected);
        let missing =
            (!is_there).then(|| format!("{} is not looked for: {found:?}", start.expected));
        found.retain(|path| !is_data(path));
        let (system, own): (Vec<&String>, Vec<&String>) =
            found.iter().partition(|path| path.starts_with('/'));
        let open = system.into_iter().filter(|path| !is_listed(path)).cloned();
        let wrong = open.chain(unprotected(start, &own)).chain(missing);
        wrong.map(|what| format!("{}: {what}", start.line)).collect::<Vec<_>>()
    });
    let wrong: BTreeSet<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.into_iter().collect::<Vec<_>>().join("\n"));
}
