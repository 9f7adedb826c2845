//! Reads the text of a policy, and of a layer over one.
//!
//! [`PolicyDraft::parse`] reads a text and reports everything that is wrong with it; [`PolicyDraft::bind`] reads the base
//! policy besides, and has `capsule-core` bind the two to a workspace. What comes out is a
//! [`Policy`](capsule_core::policy::Policy), which decides; nothing here decides, and nothing here makes a permit. No file
//! is opened: texts come in as arguments.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod builtin;
mod draft;
pub mod language;
mod loaded;
mod parse;

pub use builtin::{builtin_names, builtin_text};
pub use draft::{ExtendedPolicy, LayerDraft, PolicyDraft};
pub use loaded::{LoadedPolicy, SourceText};
pub use parse::is_layer;
