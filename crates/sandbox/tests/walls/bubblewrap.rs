//! Another sandbox behind the same tests: a test that nothing can fail shows nothing.
//!
//! Bubblewrap is set up as its users set it up: namespaces of its own, the system read-only, the
//! workspace read-only, hidden paths covered. It claims no filter on system calls, no Landlock, and
//! no rule about what covers a path; so it must fail the tests of these, and pass the others.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use capsule_core::confinement::SandboxStatus;
use capsule_sandbox::{CapturedOutput, CommandResult, Launch, Termination};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid,
};

use crate::bed::PROBE;

/// Tests that ask something of our executor, or of how it is spoken to.
const OURS: &[&str] = &[
    "executor_has_one_thread",
    "exit_codes_and_signals_are_exact",
    "standard_input_arrives",
    "the_environment_is_exact",
    "the_working_folder_is_where_it_should_be",
    "masks_can_come_later",
    "mounts_in_the_workspace_are_hidden",
    "a_replaced_file_can_be_hidden_again",
];

pub(crate) fn can_try(name: &str) -> bool {
    !OURS.contains(&name)
}

pub(crate) struct Bubblewrap {
    workspace: PathBuf,
    masks: Vec<PathBuf>,
}

impl Bubblewrap {
    pub(crate) fn new(workspace: &Path, masks: &[&[u8]]) -> Self {
        let masks = masks.iter().map(|path| OsString::from_vec(path.to_vec()).into());
        Self { workspace: workspace.to_owned(), masks: masks.collect() }
    }

    pub(crate) fn run(&self, launch: &Launch, walls: SandboxStatus) -> CommandResult {
        // What somebody left open, for the test that asks about it.
        let inherited = rustix::io::dup(File::open("/dev/null").unwrap()).unwrap();
        // A command that hangs must not hang the tests; and somebody ignores a signal.
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' USR1; exec timeout --kill-after=1 4 bwrap \"$@\"", "sh"]);
        command.args(["--unshare-all", "--die-with-parent"]);
        command.args(["--new-session", "--cap-drop", "ALL", "--clearenv"]);
        for folder in ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/alternatives"] {
            command.args(["--ro-bind-try", folder, folder]);
        }
        command.args(["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]);
        command.args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]);
        command.arg("--ro-bind").arg(&self.workspace).arg("/workspace");
        for mask in &self.masks {
            let inside = Path::new("/workspace").join(mask);
            match std::fs::symlink_metadata(self.workspace.join(mask)) {
                Ok(found) if found.is_dir() => command.arg("--tmpfs").arg(inside),
                Ok(_) => command.arg("--ro-bind").arg("/dev/null").arg(inside),
                Err(_) => continue,
            };
        }
        command.arg("--ro-bind").arg(std::env::current_exe().unwrap()).arg(PROBE);
        for (name, value) in &launch.stages[0].environment {
            command.arg("--setenv").arg(name).arg(value);
        }
        command.arg("--chdir").arg(Path::new("/workspace").join(&launch.cwd));
        command.arg(&launch.stages[0].program.path).args(launch.stages[0].argv.iter().skip(1));
        // Files, not pipes: a first process that a test has stopped may outlive its sandbox, and
        // whoever waits for the end of a pipe then waits for ever.
        let [stdin, stdout, stderr] = [(); 3].map(|()| tempfile::tempfile().unwrap());
        stdin.write_all_at(&launch.stdin, 0).unwrap();
        command.stdin(stdin).stdout(stdout.try_clone().unwrap());
        command.stderr(stderr.try_clone().unwrap());
        let before = children();
        set_child_subreaper(Some(getpid())).unwrap();
        let status = command.status().unwrap();
        for left in children().difference(&before).filter_map(|id| Pid::from_raw(*id)) {
            kill_process(left, Signal::KILL).unwrap();
            waitpid(Some(left), WaitOptions::empty()).unwrap();
        }
        drop(inherited);
        let how = match (status.code(), status.signal()) {
            // As a shell tells of a signal, since only the outermost process can be asked.
            (Some(code @ 129..=192), _) => Termination::Signalled(code - 128),
            (Some(code), _) => Termination::Exited(code),
            (None, signal) => Termination::Signalled(signal.unwrap_or(libc::SIGKILL)),
        };
        let captured = |mut file: File| {
            let mut bytes = Vec::new();
            file.rewind().unwrap();
            file.read_to_end(&mut bytes).unwrap();
            CapturedOutput {
                total: bytes.len().try_into().unwrap(),
                bytes,
                ..CapturedOutput::default()
            }
        };
        let (stdout, stderr) = (captured(stdout), captured(stderr));
        let (stages, reached, peak_memory) = (vec![how], Vec::new(), None);
        let (micros, left_running) = (0, 0);
        CommandResult {
            termination: how,
            stages,
            stdout,
            stderr,
            sandbox_status: walls,
            micros,
            reached_limits: reached,
            peak_memory,
            left_running,
        }
    }
}

/// The processes that this one has to wait for, those among them whose parents have gone.
fn children() -> BTreeSet<i32> {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    threads
        .filter_map(|thread| {
            // A thread that ends meanwhile has none.
            std::fs::read_to_string(thread.unwrap().path().join("children")).ok()
        })
        .flat_map(|all| all.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<_>>())
        .collect()
}
