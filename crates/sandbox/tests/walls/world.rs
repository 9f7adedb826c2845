//! The circumstances under which the tests run.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Says which world a process is in; without it, the one it finds.
const VARIABLE: &str = "CAPSULE_TEST_WORLD";
/// Nobody.
const USER: u32 = 65_534;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum World {
    /// Root, with all that it has.
    Root,
    /// An ordinary user.
    User,
    /// Root, where no control group can be made.
    NoCgroups,
    /// An ordinary user, with another sandbox in the place of ours, to try the tests themselves.
    /// Not root: what it does not hold back would change this machine.
    Bubblewrap,
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Root => "root",
            Self::User => "user",
            Self::NoCgroups => "root-without-cgroups",
            Self::Bubblewrap => "bubblewrap",
        })
    }
}

pub(crate) fn current() -> World {
    match std::env::var(VARIABLE).as_deref() {
        Ok("no-cgroups") => World::NoCgroups,
        Ok("bubblewrap") => {
            assert!(!rustix::process::geteuid().is_root(), "as root it could change this machine");
            World::Bubblewrap
        }
        Ok(_) => World::User,
        Err(_) if rustix::process::geteuid().is_root() => World::Root,
        Err(_) => World::User,
    }
}

/// The worlds that are tried behind this one.
pub(crate) fn others(world: World) -> &'static [World] {
    match (world, std::env::var_os(VARIABLE)) {
        (World::Root, _) => &[World::User, World::NoCgroups, World::Bubblewrap],
        (World::User, None) => &[World::Bubblewrap],
        _ => &[],
    }
}

/// Runs the tests once more in another world.
pub(crate) fn enter(world: World, words: &[String]) -> bool {
    // Where cargo builds, an ordinary user may have no business.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("walls");
    fs::copy("/proc/self/exe", &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let status = match world {
        World::Root => panic!("the first world"),
        World::User | World::Bubblewrap => {
            let mut command = Command::new(&program);
            let word = if world == World::User { "user" } else { "bubblewrap" };
            command.args(words).env(VARIABLE, word).env_remove("TMPDIR");
            if rustix::process::geteuid().is_root() {
                command.uid(USER).gid(USER);
            }
            command.status()
        }
        World::NoCgroups => Command::new("unshare")
            .args([
                "--mount",
                "sh",
                "-c",
                "mount -t tmpfs none /sys/fs/cgroup && exec \"$0\" \"$@\"",
            ])
            .arg(&program)
            .args(words)
            .env(VARIABLE, "no-cgroups")
            .status(),
    };
    status.unwrap().success()
}
