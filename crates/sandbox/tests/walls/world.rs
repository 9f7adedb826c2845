//! The circumstances under which the tests run.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command};

use capsule_core::confinement::SandboxTier;
use tempfile::TempDir;

/// Says which world a process is in; without it, the one it finds.
const VARIABLE: &str = "CAPSULE_TEST_WORLD";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum World {
    /// Root, with all that it has.
    Root,
    /// An ordinary user.
    User,
    /// Root, where no control group can be made.
    NoCgroups,
    /// Root, where no namespaces can be had, so that the lower tier serves.
    Landlock,
    /// An ordinary user where the same is so because of a filter, as in a container.
    LandlockUser,
    /// An ordinary user, with another sandbox in the place of ours, to try the tests themselves.
    /// Not root: what it does not hold back would change this machine.
    Bubblewrap,
}

impl World {
    /// Whether the lower tier serves.
    pub(crate) fn is_lower(self) -> bool {
        matches!(self, Self::Landlock | Self::LandlockUser)
    }

    /// The tier that is asked for.
    pub(crate) fn floor(self) -> SandboxTier {
        if self.is_lower() { SandboxTier::Basic } else { SandboxTier::Full }
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Root => "root",
            Self::User => "user",
            Self::NoCgroups => "root-without-cgroups",
            Self::Landlock => "landlock-root",
            Self::LandlockUser => "landlock-user",
            Self::Bubblewrap => "bubblewrap",
        })
    }
}

pub(crate) fn current() -> World {
    match std::env::var(VARIABLE).as_deref() {
        Ok("no-cgroups") => World::NoCgroups,
        Ok("landlock-root") => World::Landlock,
        Ok("landlock-user") => World::LandlockUser,
        Ok("bubblewrap") => {
            assert!(!rustix::process::geteuid().is_root(), "as root it could change this machine");
            World::Bubblewrap
        }
        Ok(_) => World::User,
        Err(_) if rustix::process::geteuid().is_root() => World::Root,
        Err(_) => World::User,
    }
}

/// The worlds that are tried beside this one.
pub(crate) fn beside(world: World) -> &'static [World] {
    if world == World::Root { &[World::User, World::LandlockUser, World::NoCgroups] } else { &[] }
}

/// The worlds that are tried behind this one. Those that make control groups are all behind [`World::Root`]:
/// an executor that starts clears away what another one has left, and some tests look for just that.
pub(crate) fn behind(world: World) -> &'static [World] {
    match (world, std::env::var_os(VARIABLE)) {
        (World::Root, _) => &[World::Landlock, World::Bubblewrap],
        (World::User, None) => &[World::LandlockUser, World::Bubblewrap],
        _ => &[],
    }
}

/// Who somebody is there who was root. Some limits are a user's and not a call's, so no two ordinary
/// users are the same.
fn user(world: World) -> Option<u32> {
    match world {
        World::User => Some(65_534),
        World::LandlockUser => Some(65_533),
        World::Bubblewrap => Some(65_532),
        World::Root | World::NoCgroups | World::Landlock => None,
    }
}

/// A namespace of users in which no further one can be made, as on a machine that allows none.
fn without_namespaces(program: &Path, words: &[String]) -> Command {
    const NO_MORE: &str = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", NO_MORE]).arg(program).args(words);
    command.env(VARIABLE, World::Landlock.to_string()).env_remove("TMPDIR");
    command
}

/// Rules out, for this process and all that it starts, what the filters of containers rule out: no
/// namespaces, no mounts, and the call whose flags no filter can see is not there at all.
pub(crate) fn be_contained() {
    const REFUSED: &[i64] = &[
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_pivot_root,
        libc::SYS_fsopen,
        libc::SYS_fsmount,
        libc::SYS_move_mount,
        libc::SYS_open_tree,
        libc::SYS_keyctl,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
    ];
    let namespaces = 0x7e02_0000; // CLONE_NEW*
    let load = |at| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, at);
    let equal = |to: i64, skip| {
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, skip, to.try_into().unwrap())
    };
    let answer = |error: i32| {
        let value = libc::SECCOMP_RET_ERRNO | u32::try_from(error).unwrap();
        step(libc::BPF_RET | libc::BPF_K, 0, 0, value)
    };
    let mut filter = vec![load(0)];
    filter.extend([equal(libc::SYS_clone3, 1), answer(libc::ENOSYS)]);
    for number in REFUSED {
        filter.extend([equal(*number, 1), answer(libc::EPERM)]);
    }
    let any = step(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 0, 1, namespaces);
    filter.extend([equal(libc::SYS_clone, 3), load(16), any, answer(libc::EPERM)]);
    filter.push(step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW));
    let program =
        libc::sock_fprog { len: filter.len().try_into().unwrap(), filter: filter.as_mut_ptr() };
    rustix::thread::set_no_new_privs(true).unwrap();
    let attached = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
    };
    assert_eq!(attached, 0, "{}", io::Error::last_os_error());
}

fn step(code: u32, yes: u8, no: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code.try_into().unwrap(), jt: yes, jf: no, k }
}

/// The tests, once more, in another world and a process of their own: who has left root cannot come back.
pub(crate) struct Entered {
    child: Child,
    /// Where the program lies: where cargo builds, an ordinary user may have no business.
    _folder: TempDir,
}

impl Entered {
    /// Waits for the end, and says whether all was as it should be.
    pub(crate) fn succeeds(mut self) -> bool {
        self.child.wait().unwrap().success()
    }
}

/// Begins with the tests in another world.
pub(crate) fn enter(world: World, words: &[String]) -> Entered {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("walls");
    fs::copy("/proc/self/exe", &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = match world {
        World::Root => panic!("the first world"),
        World::User | World::LandlockUser | World::Bubblewrap => {
            let mut command = Command::new(&program);
            command.args(words).env(VARIABLE, world.to_string()).env_remove("TMPDIR");
            let user = user(world).filter(|_| rustix::process::geteuid().is_root());
            if let Some(user) = user {
                command.uid(user).gid(user);
            }
            command
        }
        World::NoCgroups => {
            let mut command = Command::new("unshare");
            let script = "mount -t tmpfs none /sys/fs/cgroup && exec \"$0\" \"$@\"";
            command.args(["--mount", "sh", "-c", script]).arg(&program).args(words);
            command.env(VARIABLE, "no-cgroups");
            command
        }
        World::Landlock => without_namespaces(&program, words),
    };
    // Where this one ends early, nobody waits for the other's end any more.
    let end_with_us = || {
        let kill = Some(rustix::process::Signal::KILL);
        rustix::process::set_parent_process_death_signal(kill).map_err(io::Error::from)
    };
    unsafe { command.pre_exec(end_with_us) };
    Entered { child: command.spawn().unwrap(), _folder: folder }
}
