//! The ways to confine a command.
//!
//! A backend prepares what can be prepared before anything is known and says what it can hold
//! ([`probe()`]), is then shown the workspace ([`Ground::enter`]), and starts commands behind its walls
//! ([`View::spawn`]). There are two, the stronger one first: [`namespaces`], and [`landlock`] where
//! the machine allows no namespaces. Beside them stands [`bare`], which holds nothing and is reached by
//! neither. The last two share [`plain`]. What all share lies beside them: [`first`], the process that
//! stands at the head of each call; [`program`], from an order to a running program, [`pipeline`], from
//! one program to several, and [`redirect`], where their streams lead instead; and what every command
//! finds of the host ([`system`]).

mod capabilities;
mod host_path;
mod init_process;
pub(crate) mod landlock;
mod limit_status;
pub(crate) mod mountinfo;
pub(crate) mod namespaces;
mod no_namespaces;
mod pipeline;
mod program;
mod redirect;
mod rlimits;
pub(crate) mod system;
pub(crate) mod unconfined;

use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

use capsule_core::confinement::{EnforcementLevel, SandboxStatus};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::linux::executor::cgroup::Cgroups;
use crate::linux::protocol::{
    AtStep as _, CommandMessage, EnterRequest, ExecutorError, SetupError, Step,
};
pub(crate) use init_process::{CommandPaths, InitOptions, InitProcess, Streams};
pub(crate) use no_namespaces::PrivateTmp;
use system::{HOME, TMP};

/// What was found.
pub(crate) struct Probe {
    /// What can be held.
    pub(crate) status: SandboxStatus,
    /// What was prepared; none if a wall is missing, and then nothing can be run.
    pub(crate) prepared: Option<PreparedBackend>,
}

/// Prepares the strongest walls that this machine can hold.
pub(crate) fn probe() -> Probe {
    let (status, ground) = match namespaces::prepare() {
        Ok((status, ground)) => (status, Some(PreparedBackend::Namespaces(ground))),
        Err(unable) => {
            let (status, ground) = landlock::prepare(unable);
            (status, ground.map(PreparedBackend::Landlock))
        }
    };
    let bounded = status.limits.iter().all(|bound| bound.level != EnforcementLevel::Missing);
    Probe {
        prepared: ground.filter(|_| bounded && status.missing_layer(status.tier).is_none()),
        status,
    }
}

/// What belongs to a run and not to a call, before the workspace is known.
pub(crate) enum PreparedBackend {
    /// For the upper tier.
    Namespaces(namespaces::PreparedNamespaces),
    /// For the lower tier.
    Landlock(landlock::PreparedLandlock),
    /// For a program that nothing holds; no probe gives it.
    Unconfined(unconfined::PreparedUnconfined),
}

/// What a run sees, and what each call of it needs.
pub(crate) enum RunSandbox {
    /// In the upper tier.
    Namespaces(namespaces::NamespaceSandbox),
    /// In the lower tier.
    Landlock(landlock::LandlockSandbox),
    /// Nowhere.
    Unconfined(unconfined::UnconfinedRun),
}

/// A view that was built.
pub(crate) struct EnteredSandbox {
    pub(crate) sandbox: RunSandbox,
    /// The staged workspace, for the deciding process, if there is one.
    pub(crate) shared: Option<OwnedFd>,
    /// Where commands see the directory for temporary files, and then their home directory.
    pub(crate) private: [Vec<u8>; 2],
}

impl PreparedBackend {
    /// Shows the workspace.
    ///
    /// # Errors
    /// The step that failed. The ground is lost with it, so that no half-built view is ever used.
    pub(crate) fn enter(self, enter: &EnterRequest) -> Result<EnteredSandbox, ExecutorError> {
        match self {
            Self::Namespaces(ground) => {
                let (view, shared) = ground.enter(enter)?;
                Ok(EnteredSandbox {
                    sandbox: RunSandbox::Namespaces(view),
                    shared,
                    private: [TMP, HOME].map(|path| path.as_bytes().to_vec()),
                })
            }
            Self::Landlock(ground) => {
                let view = ground.enter(enter)?;
                let tmp = view.resources.tmp.path().as_os_str().as_bytes().to_vec();
                let private = [tmp.clone(), tmp];
                Ok(EnteredSandbox { sandbox: RunSandbox::Landlock(view), shared: None, private })
            }
            Self::Unconfined(ground) => {
                let view = ground.enter(enter)?;
                let tmp = view.resources.tmp.path().as_os_str().as_bytes().to_vec();
                let private = [tmp.clone(), tmp];
                Ok(EnteredSandbox { sandbox: RunSandbox::Unconfined(view), shared: None, private })
            }
        }
    }
}

/// Listens on ports of the loopback of this process' network, each of which the kernel chooses where it is 0. None of the
/// sockets waits where no connection is there.
///
/// # Errors
/// The kernel refused.
pub(crate) fn listen_on(ports: &[u16]) -> Result<Vec<TcpListener>, SetupError> {
    let listen = |port: &u16| {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).at(Step::Listen)?;
        socket.set_nonblocking(true).at(Step::Listen).map(|()| socket)
    };
    ports.iter().map(listen).collect()
}

impl RunSandbox {
    /// Starts a command.
    ///
    /// # Errors
    /// The step that failed; nothing runs then.
    pub(crate) fn spawn(
        &mut self,
        paths: CommandPaths<'_>,
        run: &CommandMessage,
        built: InitOptions,
        streams: &Streams,
    ) -> Result<InitProcess, ExecutorError> {
        match self {
            Self::Namespaces(view) => view.spawn(paths, run, built, streams),
            Self::Landlock(view) => view.spawn(paths, run, built, streams),
            Self::Unconfined(view) => view.spawn(paths, run, built, streams),
        }
    }

    /// Uses the time until the next call, if anything can be made ready for it.
    pub(crate) fn prepare_next(&mut self, built: InitOptions) {
        match self {
            Self::Namespaces(view) => view.prepare_next(built),
            Self::Landlock(_) | Self::Unconfined(_) => {}
        }
    }

    /// Lets the first process of a call that is over end by itself; the next command does not wait for
    /// it to be gone.
    pub(crate) fn leave_to_end(&mut self, first: InitProcess) {
        match self {
            Self::Namespaces(view) => view.previous = Some(first),
            Self::Landlock(_) | Self::Unconfined(_) => drop(first),
        }
    }

    /// Takes that process in when it is gone, unless something comes over the socket before.
    pub(crate) fn reap(&mut self, socket: &OwnedFd) {
        if let Self::Namespaces(view) = self {
            view.previous = view.previous.take().filter(|first| !first.ends_before(socket));
        }
    }

    /// Whether a call may leave something behind when its first process has ended.
    pub(crate) fn leaves_traces(&self) -> bool {
        !matches!(self, Self::Namespaces(_))
    }

    /// Tidies up behind a call.
    ///
    /// # Errors
    /// Something of it is left.
    pub(crate) fn clean_up(&mut self) -> Result<(), SetupError> {
        match self {
            Self::Namespaces(_) => Ok(()),
            Self::Landlock(view) => view.resources.clean_up(),
            Self::Unconfined(view) => view.resources.clean_up(),
        }
    }

    /// The control groups of the run, to be read.
    fn cgroups_ref(&self) -> &Cgroups {
        match self {
            Self::Namespaces(view) => &view.cgroups,
            Self::Landlock(view) => &view.resources.cgroups,
            Self::Unconfined(view) => &view.resources.cgroups,
        }
    }

    /// Listens on the loopback of the calls' own network: on a port that the kernel chooses, and on each of
    /// `ports`. Gives the former, and the sockets in that order.
    ///
    /// # Errors
    /// The calls have no network of their own, or the kernel refused.
    pub(crate) fn listen(&self, ports: &[u16]) -> Result<(u16, Vec<TcpListener>), SetupError> {
        if !matches!(self, Self::Namespaces(_)) {
            return Err(SetupError { step: Step::Listen, errno: Errno::OPNOTSUPP });
        }
        // A port that is named is not taken by chance.
        let named = listen_on(ports)?;
        let mut sockets = listen_on(&[0])?;
        let proxy = sockets.first().ok_or(Errno::INVAL).at(Step::Listen)?;
        let port = proxy.local_addr().at(Step::Listen)?.port();
        sockets.extend(named);
        Ok((port, sockets))
    }

    /// The control groups of the run.
    pub(crate) fn cgroups(&mut self) -> &mut Cgroups {
        match self {
            Self::Namespaces(view) => &mut view.cgroups,
            Self::Landlock(view) => &mut view.resources.cgroups,
            Self::Unconfined(view) => &mut view.resources.cgroups,
        }
    }

    /// The folder in which commands may write, where nothing but looking bounds its size.
    pub(crate) fn unbounded_tmp(&self) -> Option<&PrivateTmp> {
        match self {
            Self::Namespaces(_) => None,
            Self::Landlock(view) => Some(&view.resources.tmp),
            Self::Unconfined(view) => Some(&view.resources.tmp),
        }
    }

    /// How long the processes of the run have had a processor, where a control group counts it.
    pub(crate) fn counted_processor_time(&self) -> Option<Result<Duration, Errno>> {
        self.cgroups_ref().cpu_time()
    }

    /// Whether that group has counted for another call before.
    pub(crate) fn has_served(&self) -> bool {
        self.cgroups_ref().cpu_mechanism().is_some() && self.cgroups_ref().have_served()
    }

    /// Whether memory is only kept by adding it up.
    pub(crate) fn counts_memory(&self) -> bool {
        self.cgroups_ref().memory_mechanism().is_none()
    }

    /// Whether nobody but ourselves counts the processes.
    pub(crate) fn counts_processes(&self) -> bool {
        !self.cgroups_ref().limits_processes()
    }

    /// Whether their number is then only kept by ending them all when they are too many.
    pub(crate) fn kills_on_process_limit(&self) -> bool {
        match self {
            Self::Namespaces(view) => geteuid().is_root() && !view.pid_max,
            Self::Landlock(_) | Self::Unconfined(_) => true,
        }
    }
}
