//! Bubblewrap with the mounts that a command of Capsule's has, one by one.
//!
//! What they are is not written down here: a command of Capsule's lists them. On both sides something is
//! left. The reference makes no copies of the small files of the configuration, no links in `/etc` and `/dev`,
//! no Landlock ruleset, no filter of system calls, no control groups and no second mount namespace for the
//! call. It does bring up the loopback interface of its network, and lays read-only binds over parts of
//! `/proc`.

use std::path::Path;
use std::process::Command;

use crate::Answer;

/// What lists the mounts that it sees, a line each: where, of which kind.
pub(crate) const LIST: &[&str] = &["findmnt", "--raw", "--noheadings", "--output", "TARGET,FSTYPE"];

/// Bubblewrap with all of its namespaces, and nothing mounted yet.
pub(crate) const NAMESPACES: &[&str] = &["--unshare-all", "--die-with-parent", "--new-session"];

/// Where a command sees the workspace.
const WORKSPACE: &str = "/workspace";

/// Links of the host's root, which are made as links.
const LINKS: &[&str] = &["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// Folders of the host's that a command finds empty.
const COVERED: &[&str] = &["/usr/local/etc", "/usr/local/var"];

/// Bubblewrap with these mounts and all of its namespaces, for `true`. `empty` lies where a folder is
/// covered.
pub(crate) fn confined(
    bwrap: &Path,
    mounts: &str,
    (workspace, empty): (&Path, &Path),
) -> Answer<Command> {
    let mut command = Command::new(bwrap);
    command.args(NAMESPACES);
    for (source, target) in binds(mounts)? {
        match source {
            Source::Proc => command.args(["--proc", target]),
            Source::Memory => command.args(["--tmpfs", target]),
            Source::Device => command.args(["--dev-bind", target, target]),
            Source::Itself => command.args(["--ro-bind", target, target]),
            Source::Nothing => command.arg("--ro-bind").arg(empty).arg(target),
            Source::Workspace => command.arg("--ro-bind").arg(workspace).arg(target),
        };
    }
    for name in LINKS {
        let place = Path::new("/").join(name);
        if let Ok(leads) = std::fs::read_link(&place) {
            command.arg("--symlink").arg(leads).arg(place);
        }
    }
    command.args(["--chdir", WORKSPACE, "/bin/true"]);
    Ok(command)
}

/// What stands at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The processes.
    Proc,
    /// A new file system in memory.
    Memory,
    /// The host's device of that path.
    Device,
    /// What the host has at that path, read-only.
    Itself,
    /// An empty folder, laid over what the host has there.
    Nothing,
    /// The workspace, read-only.
    Workspace,
}

/// Reads the list. The root is bubblewrap's own, and so are the processes with all that the host has mounted
/// beneath them; a bind takes with it what is mounted beneath its source.
fn binds(mounts: &str) -> Answer<Vec<(Source, &str)>> {
    let mut all: Vec<(Source, &str)> = Vec::new();
    for line in mounts.lines() {
        let (target, kind) = line.split_once(' ').ok_or_else(|| format!("not a mount: {line}"))?;
        if target.contains('\\') {
            return Err(format!("a mount with a strange name: {target}"));
        }
        let source = match (target, kind) {
            ("/", _) => continue,
            ("/proc", _) => Source::Proc,
            _ if target.starts_with("/proc/") => continue,
            ("/tmp" | "/dev/shm", _) => Source::Memory,
            _ if target.starts_with("/dev/") => Source::Device,
            (WORKSPACE, _) => Source::Workspace,
            _ if COVERED.contains(&target) => Source::Nothing,
            (_, "tmpfs") => return Err(format!("a file system in memory at {target}")),
            _ if has_been_bound(&all, target) => continue,
            _ => Source::Itself,
        };
        // The host's own processes lie beneath those of the call, which cover them.
        if !all.contains(&(source, target)) {
            all.push((source, target));
        }
    }
    let has = |wanted| all.iter().any(|(_, target)| *target == wanted);
    if ["/proc", "/tmp", WORKSPACE].into_iter().all(has) {
        Ok(all)
    } else {
        Err(format!("these are not the mounts of a command: {mounts}"))
    }
}

/// Whether this came with a bind that is made before it.
fn has_been_bound(binds: &[(Source, &str)], target: &str) -> bool {
    let target = Path::new(target);
    binds.iter().any(|(source, bound)| *source == Source::Itself && target.starts_with(bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mount_is_made_once() {
        let list = "/ tmpfs\n/usr ext4\n/usr/local/etc tmpfs\n/etc/fonts ext4\n/dev/null devtmpfs\n\
                    /proc proc\n/workspace ext4\n/proc proc\n/tmp tmpfs\n";
        let expected = [
            (Source::Itself, "/usr"),
            (Source::Nothing, "/usr/local/etc"),
            (Source::Itself, "/etc/fonts"),
            (Source::Device, "/dev/null"),
            (Source::Proc, "/proc"),
            (Source::Workspace, "/workspace"),
            (Source::Memory, "/tmp"),
        ];
        assert_eq!(binds(list).as_deref(), Ok(expected.as_slice()));
    }

    #[test]
    fn what_comes_with_another_mount_is_not_made_for_itself() {
        let list = "/ tmpfs\n/usr ext4\n/usr/share/data xfs\n/usr/local/etc tmpfs\n/usr2 ext4\n\
                    /proc proc\n/proc/sys/fs/binfmt_misc binfmt_misc\n/dev/shm tmpfs\n\
                    /workspace ext4\n/tmp tmpfs\n";
        let expected = [
            (Source::Itself, "/usr"),
            (Source::Nothing, "/usr/local/etc"),
            (Source::Itself, "/usr2"),
            (Source::Proc, "/proc"),
            (Source::Memory, "/dev/shm"),
            (Source::Workspace, "/workspace"),
            (Source::Memory, "/tmp"),
        ];
        assert_eq!(binds(list).as_deref(), Ok(expected.as_slice()));
    }

    #[test]
    fn what_is_no_list_is_an_error() {
        let whole = "/proc proc\n/workspace ext4\n/tmp tmpfs\n";
        assert!(binds(whole).is_ok());
        for line in ["nonsense\n", "/a\\x20b ext4\n", "/usr/share tmpfs\n"] {
            assert!(binds(&format!("{whole}{line}")).is_err(), "{line}");
        }
        for list in [
            "",
            "/ tmpfs\n",
            "nonsense",
            "/usr ext4\n/a\\x20b ext4\n",
            "/proc proc\n/tmp tmpfs\n",
            "/proc proc\n/workspace ext4\n/dev/shm tmpfs\n",
        ] {
            assert!(binds(list).is_err(), "{list}");
        }
    }
}
