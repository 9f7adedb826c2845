//! The binary, in surroundings of its own: a home, a store and a workspace that nobody else has.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The binary and everything around it.
#[derive(Debug)]
pub struct Capsule {
    binary: PathBuf,
    temp_directory: TempDir,
    env: Vec<(String, String)>,
}

/// What a command came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandOutput {
    /// The exit status; -1 if a signal ended it.
    pub status: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl CommandOutput {
    /// The same, checked for its status.
    ///
    /// # Panics
    /// When the status is another one.
    #[track_caller]
    #[must_use]
    pub fn exits(self, status: i32) -> Self {
        assert_eq!(self.status, status, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Standard output as JSON.
    ///
    /// # Panics
    /// When it is none.
    #[track_caller]
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}:\n{}\n{}", self.stdout, self.stderr))
    }
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Has `landlock_create_ruleset` answer ENOSYS for what it starts, by a filter of four instructions: take
/// the call's number; if it is 444, that error; else the call itself.
const NO_LANDLOCK: &str = r#"
    my %numbers = (x86_64 => 157, aarch64 => 167);
    chomp(my $machine = `uname -m`);
    my $prctl = $numbers{$machine} or die "prctl of $machine is not known";
    my $filter = pack("SCCL" x 4, 0x20, 0, 0, 0, 0x15, 0, 1, 444, 0x06, 0, 0, 0x50026, 0x06, 0, 0, 0x7fff0000);
    my $program = pack("S x![P] P", 4, $filter);
    syscall($prctl, 38, 1, 0, 0, 0) == 0 or die "no new privileges: $!";
    syscall($prctl, 22, 2, $program, 0, 0) == 0 or die "filter: $!";
    exec { $ARGV[0] } @ARGV or die "exec: $!";
"#;

impl Capsule {
    /// The binary at `binary`, in fresh surroundings.
    ///
    /// # Panics
    /// When no folder can be made.
    #[must_use]
    pub fn new(binary: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "ws"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        // Tests that were built by one user are run again by another, who cannot look there.
        let binary = std::env::var_os("CAPSULE_TEST_BINARY").map_or(binary.into(), PathBuf::from);
        Self { binary, temp_directory: folder, env: Vec::new() }
    }

    /// The workspace.
    #[must_use]
    pub fn workspace(&self) -> PathBuf {
        self.temp_directory.path().join("ws")
    }

    /// The home.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.temp_directory.path().join("home")
    }

    /// The folder around home and workspace.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.temp_directory.path()
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.home().join(".local/share/capsule/store.db")
    }

    /// The file with this digest that some run has kept for an undo.
    ///
    /// # Panics
    /// When it cannot be read.
    #[must_use]
    pub fn backup(&self, sha256: &str) -> Option<Vec<u8>> {
        let runs = fs::read_dir(self.store().with_file_name("store.db.undo")).ok()?;
        let mut kept = runs.map(|run| run.unwrap().path().join(sha256));
        kept.find(|path| path.exists()).map(|path| fs::read(path).unwrap())
    }

    /// Sets a variable for every command from now on.
    pub fn set(&mut self, name: &str, value: &str) {
        self.env.push((name.into(), value.into()));
    }

    /// Writes a file; relative paths lie in the workspace.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write_file(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.workspace().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Writes a program of the workspace, as [`crate::write_program`] does; gives its path.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write_program(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        crate::write_program(self.workspace().join(path), content)
    }

    /// Writes a policy beside the workspace; gives its path.
    ///
    /// # Panics
    /// When it cannot be written.
    #[must_use]
    pub fn write_policy(&self, text: &str) -> String {
        let path = self.temp_directory.path().join("policy.yaml");
        fs::write(&path, text).unwrap();
        path.to_string_lossy().into_owned()
    }

    /// Writes a plan beside the workspace; gives its path.
    ///
    /// # Panics
    /// When it cannot be written.
    #[must_use]
    pub fn write_plan(&self, text: &str) -> String {
        let path = self.temp_directory.path().join("plan.yaml");
        fs::write(&path, text).unwrap();
        path.to_string_lossy().into_owned()
    }

    /// The command with these arguments, run in the workspace.
    #[must_use]
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(args).current_dir(self.workspace()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.home());
        // Each command is a run of its own, also in a terminal, unless a test names a session.
        command.env("CAPSULE_SESSION", "none");
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        // Where the tests of coverage put what they count.
        let profile = "LLVM_PROFILE_FILE";
        command.envs(std::env::var_os(profile).map(|value| (profile, value)));
        command
    }

    /// The command with these arguments, started by the words in front of it: a shell that changes what the binary
    /// finds, or a program that starts another one behind a filter.
    ///
    /// # Panics
    /// When there are no words.
    #[must_use]
    pub fn command_behind(&self, words: &[&str], args: &[&str]) -> Command {
        let (program, words) = words.split_first().unwrap();
        let mut command = Command::new(program);
        command.args(words).arg(&self.binary).args(args);
        self.set_environment(&mut command);
        command
    }

    /// Gives a program the workspace and the environment of the binary, and nothing to read.
    fn set_environment(&self, command: &mut Command) {
        command.current_dir(self.workspace()).env_clear().stdin(Stdio::null());
        let inner = self.command(&[]);
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    }

    /// Runs the binary with these arguments.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn run(&self, args: &[&str]) -> CommandOutput {
        self.command(args).stdin(Stdio::null()).output().unwrap().into()
    }

    /// Runs the binary with these arguments where no namespaces can be had: in a namespace of users in
    /// which no further one can be made.
    ///
    /// # Panics
    /// When that cannot be had itself.
    #[must_use]
    pub fn run_without_namespaces(&self, args: &[&str]) -> CommandOutput {
        self.command_without_namespaces(args).output().unwrap().into()
    }

    /// The command of [`Self::run_without_namespaces`].
    #[must_use]
    pub fn command_without_namespaces(&self, args: &[&str]) -> Command {
        self.without_namespaces_through(&[], args)
    }

    /// The command with these arguments where no sandbox of any kind can be had: no namespaces, as in
    /// [`Self::run_without_namespaces`], and a kernel that answers as one without Landlock does, since a
    /// filter on system calls, such as containers have, says so.
    #[must_use]
    pub fn command_without_sandbox(&self, args: &[&str]) -> Command {
        self.without_namespaces_through(&["perl", "-e", NO_LANDLOCK], args)
    }

    /// Runs that.
    ///
    /// # Panics
    /// When it cannot be had.
    #[must_use]
    pub fn run_without_sandbox(&self, args: &[&str]) -> CommandOutput {
        self.command_without_sandbox(args).output().unwrap().into()
    }

    /// Runs it where a folder of the host is an empty one of its own, in which these lines of a shell have put
    /// something first. No other process sees that folder.
    ///
    /// # Panics
    /// When it cannot be had.
    #[must_use]
    pub fn run_in_place(&self, folder: &str, lines: &str, args: &[&str]) -> CommandOutput {
        let mut command = self.in_place(folder, lines);
        command.arg(&self.binary).args(args).output().unwrap().into()
    }

    /// A command in such a place: the program and its arguments are to be added.
    #[must_use]
    pub fn in_place(&self, folder: &str, lines: &str) -> Command {
        let script = format!("mount -t tmpfs none {folder} || exit 99\n{lines}\nexec \"$@\"");
        self.within(&["--mount"], &script)
    }

    /// The command where no namespaces can be had, started through another one.
    fn without_namespaces_through(&self, through: &[&str], args: &[&str]) -> Command {
        const NO_MORE: &str = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
        let mut command = self.within(&[], NO_MORE);
        command.args(through).arg(&self.binary).args(args);
        command
    }

    /// A shell that is root in namespaces of its own, with the surroundings of the binary.
    fn within(&self, namespaces: &[&str], script: &str) -> Command {
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-root-user"])
            .args(namespaces)
            .args(["sh", "-c", script, "sh"]);
        self.set_environment(&mut command);
        command
    }

    /// Runs the binary with these arguments and this standard input.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn run_with(&self, args: &[&str], stdin: &str) -> CommandOutput {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
        child.wait_with_output().unwrap().into()
    }
}
