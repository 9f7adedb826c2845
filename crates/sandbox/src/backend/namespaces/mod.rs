//! Walls out of namespaces: users, mounts, network and host name once a run; processes, mounts and
//! queues once a call. Landlock and seccomp stand behind them.
//!
//! In order: [`probe`](mod@probe) makes what belongs to the run and an empty root with the system's folders in
//! it ([`root`]); [`Ground::enter`] puts the workspace into it and goes there ([`view`]);
//! [`View::spawn`] makes the first process of a call, which builds the rest and starts the program
//! ([`first`]).

mod direct;
mod first;
mod isolate;
mod masks;
mod probe;
mod root;
mod spawn;
mod staging;
mod view;

pub(crate) use probe::{Gap, Ground, Unable, explain, prepare};
pub(crate) use view::View;
