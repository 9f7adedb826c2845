//! The ways to confine a command. A backend is two functions in one place: `probe` prepares what
//! can be prepared before anything is known and says what it can hold, and `spawn` starts a command
//! behind its walls. One is built: [`namespaces`].

pub(crate) mod namespaces;
