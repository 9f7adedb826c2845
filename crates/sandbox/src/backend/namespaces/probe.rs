//! What can be held on this machine, found out by doing it.
//!
//! Everything that does not depend on the call is done here, before the deciding process knows what
//! it will run: the namespace of the network takes longest, and other work goes on meanwhile.

use std::fs;

use capsule_core::confinement::{Bound, BoundHeld, Hold, Layer, LayerHeld, Tier, Walls};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Resource, geteuid, set_dumpable_behavior};
use rustix::system::{sethostname, uname};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities_secure_bits, set_no_new_privs,
};

use super::isolate::{self, Maker};
use super::mountinfo::{self, Mount};
use super::rlimits;
use super::root::Root;
use crate::executor::cgroup::Cgroups;
use crate::executor::sample;
use crate::kernel;
use crate::landlock;
use crate::protocol::{At as _, Failed, Step};
use crate::seccomp;

/// The name of the machine that commands see.
const HOST_NAME: &[u8] = b"capsule";
/// The first kernel in which the highest process number belongs to the namespace. On older ones
/// the same file is the whole machine's.
const OWN_PID_MAX: (u32, u32) = (6, 14);
/// The smallest highest process number that the kernel takes.
pub(super) const PID_MAX: u64 = 301;

/// The capabilities that setting up a call takes; the first process of the call drops them, too.
pub(super) const KEPT: [CapabilitySet; 3] =
    [CapabilitySet::SYS_ADMIN, CapabilitySet::SYS_RESOURCE, CapabilitySet::SETPCAP];
/// The only limit on core files that is also heeded where the system has them sent to a program: a
/// crash would have a process of the host's root look at what a command prepared.
const NO_CORE: u64 = 1;
/// Memory that may be kept from being paged out.
const LOCKED_BYTES: u64 = 65_536;
/// Bytes in queues by name.
const QUEUE_BYTES: u64 = 819_200;
/// Signals and timers that may wait for the processes of a call.
const PENDING_SIGNALS: u64 = 1_024;
/// The stack of a process, and how far it may raise it.
const STACK_BYTES: (u64, u64) = (8 << 20, 64 << 20);

/// What was found.
pub(crate) struct Probe {
    /// What can be held.
    pub(crate) walls: Walls,
    /// What was prepared; none if a wall is missing, and then nothing can be run.
    pub(crate) ground: Option<Ground>,
}

/// What belongs to a run and not to a call, before the workspace is known.
pub(crate) struct Ground {
    pub(super) root: Root,
    pub(super) abi: i32,
    pub(super) cgroups: Cgroups,
    /// Processes are bounded by their highest number.
    pub(super) pid_max: bool,
    /// The filter that each command gets.
    pub(super) filter: seccomp::Filter,
    /// Its work is done; it is taken in when the ground is entered.
    pub(super) maker: Maker,
}

/// The layer that cannot be had, and why.
struct Gap {
    layer: Layer,
    detail: String,
}

/// Prepares, and says what can be held.
pub(crate) fn probe() -> Probe {
    let abi = kernel::landlock_abi();
    let maker = begin(abi);
    // Control groups belong to the host, so they are made before it is left, and while the maker
    // works.
    let mounts = mountinfo::own();
    let cgroups = Cgroups::create(&mounts);
    let pid_max = !cgroups.bounds_processes()
        && geteuid().is_root()
        && version(uname().release().to_bytes()) >= OWN_PID_MAX;
    let bounds = bounds(&cgroups, pid_max);
    let ground = maker.and_then(|(maker, abi)| build(maker, &mounts, cgroups, pid_max, abi));
    let walls = Walls {
        tier: if ground.is_ok() { Tier::Namespaces } else { Tier::Landlock },
        layers: Layer::ALL.iter().map(|layer| held(*layer, ground.as_ref().err(), abi)).collect(),
        bounds,
    };
    let whole = walls.bounds.iter().all(|bound| bound.hold != Hold::Missing)
        && walls.layers.iter().all(|layer| layer.hold != Hold::Missing);
    Probe { ground: ground.ok().filter(|_| whole), walls }
}

fn begin(abi: Result<i32, Errno>) -> Result<(Maker, i32), Gap> {
    set_no_new_privs(true).at(Step::NoNewPrivileges).or_gap(Layer::NoNewPrivileges)?;
    let abi = abi.at(Step::Landlock).or_gap(Layer::Landlock)?;
    Ok((Maker::begin().or_gap(Layer::UserNamespace)?, abi))
}

fn build(
    mut maker: Maker,
    mounts: &[Mount],
    cgroups: Cgroups,
    pid_max: bool,
    abi: i32,
) -> Result<Ground, Gap> {
    maker.enter().map_err(|failed| {
        let layer = match failed.step {
            Step::MountNamespace => Layer::MountNamespace,
            _ => Layer::UserNamespace,
        };
        Gap { layer, detail: explain(failed) }
    })?;
    // From here on other processes of the same user cannot look into this one, nor can commands
    // look into the first process of their call, which is a copy of it.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .at(Step::UserNamespace)
        .or_gap(Layer::UserNamespace)?;
    set_ceilings().or_gap(Layer::UserNamespace)?;
    sethostname(HOST_NAME).at(Step::HostName).or_gap(Layer::UtsNamespace)?;
    drop_most_capabilities().at(Step::Capabilities).or_gap(Layer::NoCapabilities)?;
    set_fixed_limits().at(Step::Limits).or_gap(Layer::NoCapabilities)?;
    if let Some(detail) = covered_proc(mounts) {
        return Err(Gap { layer: Layer::MountNamespace, detail });
    }
    let root = Root::build(pid_max).or_gap(Layer::MountNamespace)?;
    maker.enter_network().or_gap(Layer::NetworkNamespace)?;
    // Attached last: building the root is over, and every later step stands in the table.
    let filter = seccomp::executor().map_err(|seccomp::TooLong| Errno::TOOBIG);
    let filter = filter.and_then(|filter| kernel::attach_filter(&filter));
    filter.at(Step::Filter).or_gap(Layer::Seccomp)?;
    let filter = seccomp::command(seccomp::Circumstances {
        sockets_are_judged: landlock::judges_sockets(abi),
        memory_is_counted: cgroups.memory_means().is_some(),
    });
    let filter = filter.map_err(|seccomp::TooLong| Errno::TOOBIG);
    let filter = filter.at(Step::Filter).or_gap(Layer::Seccomp)?;
    Ok(Ground { root, abi, cgroups, pid_max, filter, maker })
}

/// Gives up, for this process and all it starts, the capabilities that setting up a call does not
/// take, and locks the rules by which root would get capabilities back.
fn drop_most_capabilities() -> Result<(), Errno> {
    clear_ambient_capability_set()?;
    for number in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if KEPT.contains(&capability) {
            continue;
        }
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // Beyond the last one that this kernel knows.
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error),
        }
    }
    set_capabilities_secure_bits(
        CapabilitiesSecureBits::NO_ROOT
            | CapabilitiesSecureBits::NO_ROOT_LOCKED
            | CapabilitiesSecureBits::NO_SETUID_FIXUP
            | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
            | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED,
    )
}

/// What a user namespace as a whole may use up, which would otherwise be taken from the user's own.
const CEILINGS: &[(&str, &str)] = &[
    // A second wall behind the filter: nobody inside can become root of a namespace.
    ("max_user_namespaces", "0"),
];

fn set_ceilings() -> Result<(), Failed> {
    for (name, value) in CEILINGS {
        isolate::write(&format!("/proc/sys/user/{name}"), value).at(Step::Limits)?;
    }
    Ok(())
}

/// The limits that are the same for every command.
fn set_fixed_limits() -> Result<(), Errno> {
    rlimits::lower(&[
        (Resource::Core, NO_CORE, NO_CORE),
        (Resource::Memlock, LOCKED_BYTES, LOCKED_BYTES),
        (Resource::Msgqueue, QUEUE_BYTES, QUEUE_BYTES),
        (Resource::Sigpending, PENDING_SIGNALS, PENDING_SIGNALS),
        (Resource::Stack, STACK_BYTES.0, STACK_BYTES.1),
        (Resource::Nice, 0, 0),
        (Resource::Rtprio, 0, 0),
    ])
}

/// Why no `/proc` of one's own can be mounted: the kernel refuses it where parts of the visible one
/// are covered, as container engines do, since a new one would uncover them.
fn covered_proc(mounts: &[Mount]) -> Option<String> {
    let above = mounts.iter().find(|mount| {
        mount.point.starts_with("/proc/")
            && mount.point.as_os_str() != "/proc"
            && !mount.point.starts_with("/proc/sys/fs/binfmt_misc")
    })?;
    Some(format!("`{}` is covered, so /proc cannot be mounted anew", above.point.display()))
}

trait OrGap<T> {
    fn or_gap(self, layer: Layer) -> Result<T, Gap>;
}

impl<T> OrGap<T> for Result<T, Failed> {
    fn or_gap(self, layer: Layer) -> Result<T, Gap> {
        self.map_err(|failed| Gap { layer, detail: explain(failed) })
    }
}

/// A failed step for people; for the frequent cases with the setting behind it.
fn explain(Failed { step, errno }: Failed) -> String {
    let why = match (step, errno) {
        (Step::UserNamespace, Errno::NOSPC) => {
            "the system allows no more of them (sysctl user.max_user_namespaces)".to_owned()
        }
        (Step::UserNamespace, Errno::PERM) => {
            "the system does not allow it to this user or inside this container".to_owned()
        }
        (Step::MountNamespace | Step::PrivateMounts, Errno::PERM | Errno::ACCESS) => {
            "the system allows user namespaces but no capabilities in them (AppArmor)".to_owned()
        }
        (Step::Landlock, Errno::NOSYS) => "the kernel was built without it".to_owned(),
        (Step::Landlock, Errno::OPNOTSUPP) => "the kernel was started without it".to_owned(),
        (_, errno) => std::io::Error::from(errno).to_string(),
    };
    format!("could not {}: {why}", step.text())
}

/// How far one layer holds.
fn held(layer: Layer, gap: Option<&Gap>, abi: Result<i32, Errno>) -> LayerHeld {
    let (hold, detail) = match (gap, layer) {
        (Some(gap), layer) if gap.layer == layer => (Hold::Missing, gap.detail.clone()),
        (_, Layer::Landlock) => match abi {
            Ok(abi) if abi >= landlock::SCOPES => (Hold::Held, format!("abi {abi}")),
            Ok(abi) => (Hold::Weaker, format!("abi {abi}, before signals and abstract sockets")),
            Err(errno) => (Hold::Missing, explain(Failed { step: Step::Landlock, errno })),
        },
        (Some(_), Layer::Seccomp | Layer::NoNewPrivileges) => (Hold::Held, String::new()),
        (Some(gap), _) => (Hold::Missing, format!("not tried, without the {}", gap.layer.name())),
        (None, Layer::PidNamespace) => of_a_call("pid"),
        (None, Layer::IpcNamespace) => of_a_call("ipc"),
        (None, Layer::UtsNamespace) => (Hold::Held, "host name `capsule`".to_owned()),
        (None, Layer::NetworkNamespace) => (Hold::Held, "no interface is up".to_owned()),
        (None, Layer::Seccomp) => (Hold::Held, format!("{} calls judged", seccomp::judged())),
        (None, _) => (Hold::Held, String::new()),
    };
    LayerHeld { layer, hold, detail }
}

/// A namespace that each call makes anew: whether the kernel has it and the system allows any.
fn of_a_call(kind: &str) -> (Hold, String) {
    if !fs::exists(format!("/proc/self/ns/{kind}")).unwrap_or(false) {
        return (Hold::Missing, "the kernel was built without it".to_owned());
    }
    let most = fs::read_to_string(format!("/proc/sys/user/max_{kind}_namespaces"));
    if most.is_ok_and(|most| most.trim() == "0") {
        return (Hold::Missing, format!("switched off (sysctl user.max_{kind}_namespaces)"));
    }
    (Hold::Held, "new for each call".to_owned())
}

/// By what means each bound holds.
fn bounds(cgroups: &Cgroups, pid_max: bool) -> Vec<BoundHeld> {
    let held =
        |bound, detail: &str| BoundHeld { bound, hold: Hold::Held, detail: detail.to_owned() };
    let weaker =
        |bound, detail: &str| BoundHeld { bound, hold: Hold::Weaker, detail: detail.to_owned() };
    let missing =
        |bound, detail: &str| BoundHeld { bound, hold: Hold::Missing, detail: detail.to_owned() };
    let memory = match cgroups.memory_means() {
        Some(means) => held(Bound::Memory, means),
        None if sample::can() => weaker(Bound::Memory, "sampled every 50 ms"),
        None => missing(Bound::Memory, "no control group, and processes cannot be listed"),
    };
    let processes = match cgroups.processes_means() {
        Some(means) => held(Bound::Processes, means),
        None if !geteuid().is_root() => weaker(Bound::Processes, "rlimit"),
        None if pid_max => weaker(Bound::Processes, &format!("pid_max {PID_MAX}")),
        None => missing(Bound::Processes, "root without a control group, before Linux 6.14"),
    };
    vec![
        held(Bound::Time, "the tree is killed by its first process"),
        held(Bound::Cpu, "rlimit"),
        memory,
        processes,
        held(Bound::FileSize, "rlimit"),
        held(Bound::OpenFiles, "rlimit"),
        held(Bound::Output, "counted while it is read"),
        held(Bound::Tmp, "size of the file system"),
    ]
}

/// The first two numbers of a kernel's release.
fn version(release: &[u8]) -> (u32, u32) {
    let text = String::from_utf8_lossy(release);
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        for (release, expected) in [
            (&b"6.18.44-fc-v657"[..], (6, 18)),
            (b"5.4.0-100-generic", (5, 4)),
            (b"6.14-rc1", (6, 14)),
            (b"x", (0, 0)),
        ] {
            assert_eq!(version(release), expected);
        }
    }
}
