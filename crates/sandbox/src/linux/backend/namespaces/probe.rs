//! What can be held on this machine, found out by doing it.
//!
//! Everything that does not depend on the call is done here, before the deciding process knows what
//! it will run.

use std::fs;
use std::path::Path;

use capsule_core::confinement::{
    EnforcementLevel, LayerStatus, LimitStatus, ResourceLimit, SandboxLayer, SandboxStatus,
    SandboxTier,
};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, geteuid, set_dumpable_behavior};
use rustix::system::{sethostname, uname};
use rustix::thread::{CapabilitySet, set_no_new_privs};

use super::accounts::{self, HOST_NAME};
use super::isolate::{self, NamespaceHolder, RunNetwork};
use super::machine_files;
use super::root::{HostView, Root};
use super::shared_tmp::SharedTmp;
use crate::linux::backend::mountinfo::{self, Mount};
use crate::linux::backend::system::HOME;
use crate::linux::backend::{capabilities, limit_status, rlimits};
use crate::linux::executor::cgroup::Cgroups;
use crate::linux::kernel;
use crate::linux::landlock;
use crate::linux::protocol::{AtStep as _, SetupError, Step};
use crate::linux::seccomp;

/// The first kernel in which the highest process number belongs to the namespace. On older ones
/// the same file is the whole machine's.
const PID_MAX_KERNEL: (u32, u32) = (6, 14);
/// The smallest highest process number that the kernel takes.
pub(super) const MIN_PID_MAX: u64 = 301;

/// The capabilities that setting up a call takes; the first process of the call drops them, too.
pub(super) const SETUP_CAPABILITIES: [CapabilitySet; 3] =
    [CapabilitySet::SYS_ADMIN, CapabilitySet::SYS_RESOURCE, CapabilitySet::SETPCAP];

/// The one capability that an agent of root has: the kernel demands it of a process that maps root into a namespace, as a
/// sandbox inside does.
pub(super) const ROOT_AGENT_CAPABILITY: CapabilitySet = CapabilitySet::SETFCAP;

/// What belongs to a run and not to a call, before the workspace is known.
pub(crate) struct PreparedNamespaces {
    pub(super) root: Root,
    pub(super) abi: i32,
    pub(super) cgroups: Cgroups,
    /// Processes are bounded by their highest number.
    pub(super) pid_max: bool,
    /// The filters that commands get.
    pub(super) filters: CommandFilters,
    /// Its work is done; it is taken in when the ground is entered.
    pub(super) holder: NamespaceHolder,
}

/// The filters of commands: one for those that may make local sockets, and one for the others.
pub(super) struct CommandFilters {
    pub(super) with_sockets: seccomp::Filter,
    pub(super) without_sockets: seccomp::Filter,
}

impl CommandFilters {
    fn compile(abi: i32, cgroups: &Cgroups) -> Result<Self, seccomp::TooLong> {
        let compile = |sockets| {
            seccomp::command_filter(seccomp::FilterOptions {
                controls_local_sockets: sockets || landlock::controls_local_sockets(abi),
                memory_is_counted: cgroups.memory_mechanism().is_some(),
                namespaces: true,
            })
        };
        Ok(Self { with_sockets: compile(true)?, without_sockets: compile(false)? })
    }
}

/// Why these walls cannot be raised here, and what was found on the way.
pub(crate) struct UnavailableNamespaces {
    /// The layer that cannot be had.
    pub(crate) gap: MissingLayer,
    /// The newest Landlock interface of the kernel.
    pub(crate) abi: Result<i32, Errno>,
    /// Made before anything else, and as good for other walls.
    pub(crate) cgroups: Cgroups,
}

/// The layer that cannot be had, and why.
pub(crate) struct MissingLayer {
    pub(crate) layer: SandboxLayer,
    pub(crate) detail: String,
}

/// Prepares, and says what can be held.
///
/// # Errors
/// A namespace cannot be had, or what stands behind it.
pub(crate) fn prepare() -> Result<(SandboxStatus, PreparedNamespaces), UnavailableNamespaces> {
    let abi = kernel::landlock_abi();
    let holder = start_namespaces(abi);
    // Control groups belong to the host, so they are made before it is left.
    let mounts = mountinfo::process_mounts();
    let cgroups = Cgroups::create(&mounts);
    let pid_max = !cgroups.limits_processes()
        && geteuid().is_root()
        && !isolate::is_read_only("/proc")
        && kernel_version(uname().release().to_bytes()) >= PID_MAX_KERNEL;
    let built = holder.and_then(|(holder, abi)| {
        build_root(holder, &mounts, &cgroups, pid_max, abi).map(|built| (built, abi))
    });
    let ((root, filters, holder), known) = match built {
        Ok(built) => built,
        Err(gap) => return Err(UnavailableNamespaces { gap, abi, cgroups }),
    };
    let status = SandboxStatus {
        tier: SandboxTier::Full,
        layers: SandboxLayer::ALL.iter().map(|layer| layer_status(*layer, known)).collect(),
        limits: limit_status::limit_statuses(
            &cgroups,
            process_limit_status(pid_max),
            limit_status::TMP_SIZE,
        ),
    };
    Ok((status, PreparedNamespaces { root, abi: known, cgroups, pid_max, filters, holder }))
}

fn start_namespaces(abi: Result<i32, Errno>) -> Result<(NamespaceHolder, i32), MissingLayer> {
    set_no_new_privs(true).at(Step::NoNewPrivileges).or_missing(SandboxLayer::NoNewPrivileges)?;
    let abi = abi.at(Step::Landlock).or_missing(SandboxLayer::AccessRules)?;
    for (layer, kind) in
        [(SandboxLayer::SeparateProcesses, "pid"), (SandboxLayer::SeparateIpc, "ipc")]
    {
        if let Some(detail) = missing_in_calls(kind) {
            return Err(MissingLayer { layer, detail });
        }
    }
    Ok((NamespaceHolder::start(RunNetwork::Private).map_err(missing_namespace)?, abi))
}

fn build_root(
    mut holder: NamespaceHolder,
    mounts: &[Mount],
    cgroups: &Cgroups,
    pid_max: bool,
    abi: i32,
) -> Result<(Root, CommandFilters, NamespaceHolder), MissingLayer> {
    holder.enter().map_err(missing_namespace)?;
    // From here on other processes of the same user cannot look into this one, nor can commands
    // look into the first process of their call, which is a copy of it.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .at(Step::UserNamespace)
        .or_missing(SandboxLayer::SeparateUsers)?;
    set_ceilings().or_missing(SandboxLayer::SeparateUsers)?;
    sethostname(HOST_NAME.as_bytes())
        .at(Step::HostName)
        .or_missing(SandboxLayer::SeparateHostName)?;
    capabilities::drop_all_but(&SETUP_CAPABILITIES)
        .at(Step::Capabilities)
        .or_missing(SandboxLayer::NoCapabilities)?;
    rlimits::set_fixed().at(Step::Limits).or_missing(SandboxLayer::NoCapabilities)?;
    if let Some(detail) = covered_proc(mounts) {
        return Err(MissingLayer { layer: SandboxLayer::SeparateFiles, detail });
    }
    let mut root =
        Root::build(pid_max, HostView::Layers).or_missing(SandboxLayer::SeparateFiles)?;
    let home = Path::new(HOME.trim_start_matches('/'));
    let private = SharedTmp::mount(&root.tree).and_then(|()| root.make_directory(home));
    private.at(Step::Tmp).or_missing(SandboxLayer::SeparateFiles)?;
    furnish(&mut root).or_missing(SandboxLayer::SeparateFiles)?;
    // Attached last: building the root is over, and every later step stands in the table.
    let filter = seccomp::executor_filter().map_err(|seccomp::TooLong| Errno::TOOBIG);
    let filter = filter.and_then(|filter| kernel::attach_filter(&filter));
    filter.at(Step::Filter).or_missing(SandboxLayer::CallFilter)?;
    let filters = CommandFilters::compile(abi, cgroups).map_err(|seccomp::TooLong| Errno::TOOBIG);
    let filters = filters.at(Step::Filter).or_missing(SandboxLayer::CallFilter)?;
    Ok((root, filters, holder))
}

/// Adds the files that tell a call of itself.
fn furnish(root: &mut Root) -> Result<(), SetupError> {
    accounts::write_accounts(root).at(Step::Configuration)?;
    machine_files::write_system_files(root).at(Step::Machine)
}

/// The namespace that cannot be had.
fn missing_namespace(failed: SetupError) -> MissingLayer {
    let layer = match failed.step {
        Step::MountNamespace => SandboxLayer::SeparateFiles,
        Step::NetworkNamespace | Step::Loopback => SandboxLayer::SeparateNetwork,
        _ => SandboxLayer::SeparateUsers,
    };
    MissingLayer { layer, detail: setup_error_text(failed) }
}

/// What a user namespace as a whole may use up, which would otherwise be taken from the user's own.
const CEILINGS: &[(&str, &str)] = &[
    // A second wall behind the filter: nobody inside can become root of a namespace.
    ("max_user_namespaces", "0"),
];

fn set_ceilings() -> Result<(), SetupError> {
    if isolate::is_read_only("/proc") {
        // Within the sandbox of an agent of root. The filter alone holds then.
        return Ok(());
    }
    for (name, value) in CEILINGS {
        isolate::write_setting(&format!("/proc/sys/user/{name}"), value).at(Step::Limits)?;
    }
    Ok(())
}

/// Why no `/proc` of one's own can be mounted: the kernel refuses it where parts of the visible one
/// are covered, as container engines do, since a new one would uncover them.
pub(super) fn covered_proc(mounts: &[Mount]) -> Option<String> {
    let above = mounts.iter().find(|mount| {
        mount.point.starts_with("/proc/")
            && mount.point.as_os_str() != "/proc"
            && !mount.point.starts_with("/proc/sys/fs/binfmt_misc")
    })?;
    Some(format!("`{}` is covered, so /proc cannot be mounted anew", above.point.display()))
}

trait OrMissingLayer<T> {
    fn or_missing(self, layer: SandboxLayer) -> Result<T, MissingLayer>;
}

impl<T> OrMissingLayer<T> for Result<T, SetupError> {
    fn or_missing(self, layer: SandboxLayer) -> Result<T, MissingLayer> {
        self.map_err(|failed| MissingLayer { layer, detail: setup_error_text(failed) })
    }
}

/// A failed step for people; for the frequent cases with the setting behind it.
pub(crate) fn setup_error_text(failed: SetupError) -> String {
    format!("could not {}: {}", failed.step.text(), setup_error_reason(failed))
}

/// The reason alone.
pub(crate) fn setup_error_reason(SetupError { step, errno }: SetupError) -> String {
    match (step, errno) {
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
    }
}

/// How far one layer holds, once all of them stand.
fn layer_status(layer: SandboxLayer, abi: i32) -> LayerStatus {
    let (hold, detail) = match layer {
        SandboxLayer::AccessRules if abi >= landlock::SCOPE_ABI => {
            (EnforcementLevel::Held, format!("abi {abi}"))
        }
        SandboxLayer::AccessRules => {
            (EnforcementLevel::Weaker, format!("abi {abi}, before signals and abstract sockets"))
        }
        SandboxLayer::SeparateProcesses | SandboxLayer::SeparateIpc => {
            (EnforcementLevel::Held, "new for each call".to_owned())
        }
        SandboxLayer::SeparateHostName => {
            (EnforcementLevel::Held, "host name `capsule`".to_owned())
        }
        SandboxLayer::SeparateNetwork => {
            (EnforcementLevel::Held, "only a loopback of its own".to_owned())
        }
        SandboxLayer::CallFilter => {
            (EnforcementLevel::Held, format!("{} calls judged", seccomp::covered_syscalls()))
        }
        _ => (EnforcementLevel::Held, String::new()),
    };
    LayerStatus { layer, level: hold, detail }
}

/// Why a namespace that each call makes anew cannot be had, if so: whether the kernel has it and the
/// system allows any.
fn missing_in_calls(kind: &str) -> Option<String> {
    if !fs::exists(format!("/proc/self/ns/{kind}")).unwrap_or(false) {
        return Some("the kernel was built without it".to_owned());
    }
    let most = fs::read_to_string(format!("/proc/sys/user/max_{kind}_namespaces"));
    let is_off = most.is_ok_and(|most| most.trim() == "0");
    is_off.then(|| format!("switched off (sysctl user.max_{kind}_namespaces)"))
}

/// By what means processes are bounded where no control group does it.
fn process_limit_status(pid_max: bool) -> LimitStatus {
    let (hold, detail) = match (geteuid().is_root(), pid_max) {
        (false, _) => (EnforcementLevel::Weaker, "rlimit".to_owned()),
        (true, true) => (EnforcementLevel::Weaker, format!("pid_max {MIN_PID_MAX}")),
        (true, false) => (EnforcementLevel::Weaker, "counted every 50 ms".to_owned()),
    };
    LimitStatus { limit: ResourceLimit::Processes, level: hold, detail }
}

/// The first two numbers of a kernel's release.
fn kernel_version(release: &[u8]) -> (u32, u32) {
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
            assert_eq!(kernel_version(release), expected);
        }
    }
}
