//! The lower tier: walls out of Landlock and seccomp alone, for machines that allow no namespaces
//! (containers, hardened distributions). Only a policy whose floor allows it is served by it.
//!
//! Commands see the host's own paths, and of these only what they may read can be opened. Nothing
//! that they write stays but in a folder that is thrown away. What namespaces would keep apart is
//! taken away whole: no sockets, no queues, no `/proc`, no change of permissions and dates. What
//! can be seen nevertheless is facts about files: names, sizes, dates.
//!
//! In order: [`prepare`] says what holds and prepares what does not depend on the workspace;
//! [`PreparedLandlock::enter`] remembers the workspace; [`LandlockSandbox::spawn`] makes the first
//! process of a call, which works out what the command may open and starts it. Every
//! process of a call is in a Landlock domain of its own, from which no signal leads out; so one
//! signal from inside ends all of them at once, however many they are.

mod access_rules;
mod call_confinement;
mod init_process;
mod prepare;
mod run_sandbox;

pub(crate) use prepare::{PreparedLandlock, prepare};
pub(crate) use run_sandbox::LandlockSandbox;
