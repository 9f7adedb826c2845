//! No walls at all, for a program that the policy lets run on a machine that has none.
//!
//! It is reached by an executor of its own, which is started for this and can do nothing else; an
//! executor that confines never comes here. What is left are courtesies and limits, none of which holds
//! against a program that means harm: whatever this user may do, it may do.

mod prepare;

pub(crate) use prepare::{PreparedUnconfined, UnconfinedRun, prepare};
