//! The steps of the set-up, so that an error tells where it stopped.

use std::io;

use rustix::io::Errno;

use super::{ExecutorError, Malformed};
use crate::linux::kernel;

/// A step that failed, and the kernel's reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SetupError {
    pub(crate) step: Step,
    pub(crate) errno: Errno,
}

/// Names the step that fails, so that an error tells where the set-up stopped.
pub(crate) trait AtStep<T> {
    /// # Errors
    /// The step and the kernel's reason.
    fn at(self, step: Step) -> Result<T, SetupError>;
}

impl<T> AtStep<T> for Result<T, Errno> {
    fn at(self, step: Step) -> Result<T, SetupError> {
        self.map_err(|errno| SetupError { step, errno })
    }
}

impl<T> AtStep<T> for io::Result<T> {
    fn at(self, step: Step) -> Result<T, SetupError> {
        self.map_err(|error| kernel::errno(&error)).at(step)
    }
}

impl From<SetupError> for ExecutorError {
    fn from(failed: SetupError) -> Self {
        Self::Failed(failed)
    }
}

macro_rules! steps {
    ($($name:ident = $text:literal,)*) => {
        /// A step of the set-up.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Step { $(#[doc = $text] $name,)* }

        impl Step {
            const ALL: &[Self] = &[$(Self::$name,)*];

            /// The step in words, after "could not".
            pub(crate) const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            pub(super) fn read(number: u8) -> Result<Self, Malformed> {
                Self::ALL.get(usize::from(number)).copied().ok_or(Malformed)
            }
        }
    };
}

steps! {
    Descriptors = "close inherited descriptors",
    Signals = "reset signals",
    Parent = "watch the parent process",
    NoNewPrivileges = "give up new privileges",
    UserNamespace = "make a user namespace",
    IdMap = "write the map of users and groups",
    HostName = "set the host name",
    Capabilities = "drop capabilities",
    MountNamespace = "make mount and host name namespaces",
    NetworkNamespace = "make a network namespace",
    Loopback = "bring up the loopback network",
    Listen = "listen in the network of the calls",
    Terminals = "mount /dev/pts",
    Machine = "tell a call of its limits",
    PrivateMounts = "cut off the host's mounts",
    Root = "make an empty root",
    SystemFolder = "show a system folder",
    Configuration = "show the system's configuration",
    Device = "show a device",
    Order = "do things in order",
    Workspace = "show the workspace",
    Staging = "mount the changes over the workspace",
    WorkspaceMoved = "find the workspace again at its path",
    Mask = "hide a path",
    Shut = "hide a path from what changes the workspace",
    Program = "show a program",
    ProgramMoved = "find a program again at its path",
    Toolchain = "show a toolchain",
    ToolchainMoved = "find a toolchain again at its path",
    PivotRoot = "change the root",
    Filter = "attach the filter on system calls",
    Limits = "set limits",
    Cgroup = "use a control group",
    Birth = "make the first process of a call",
    Lifeline = "bind the first process to the executor",
    Proc = "mount /proc",
    Tmp = "mount /tmp",
    Direct = "open places of the workspace for writing",
    Landlock = "set up Landlock",
    Streams = "set up standard input and output",
    Pipe = "make pipes between programs",
    Folder = "go to the working folder",
    Memory = "watch the memory",
    Processor = "watch the processor time",
    Silence = "hear from the first process of a call",
}
