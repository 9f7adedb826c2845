//! `core` decides and never does.
//!
//! Here are the nouns of the house (a call, an action, a capability, a decision, a permit, an
//! outcome, an event), the policy that judges, the evidence that makes the order of the one path a
//! matter of types, and the chain that the journal is built of. There is no file, process, network,
//! environment, clock or randomness in it: everything it needs comes in as an argument, so that it
//! can be audited, fuzzed and proved alone.
//!
//! Read in this order: [`call`], [`action`], [`capability`], [`policy`], [`decision`],
//! [`lifecycle`], [`outcome`], [`journal`].

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod action;
pub mod approval;
pub mod call;
pub mod capability;
pub mod change;
pub mod confinement;
pub mod control_files;
pub mod decision;
pub mod id;
pub mod journal;
pub mod lifecycle;
pub mod outcome;
pub mod policy;
pub mod risk;
pub mod tool;
pub mod undo;
