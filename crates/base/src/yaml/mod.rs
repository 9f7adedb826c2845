//! Plain YAML with one reading, and every problem at its place.
//!
//! The library parses; this module takes its events and builds a tree in which every value knows
//! where it stands, and refuses what would let two readers see two things: tags, anchors, aliases,
//! merge keys, keys that stand twice, a second document. Depth and size are bounded.
//!
//! [`YamlReader`] then reads typed values out of the tree and collects what is wrong instead of
//! stopping at the first problem.

mod reader;
mod syntax_errors;
mod tree;

pub use reader::{Dialect, KeySpec, POLICY_DIALECT, Section, YamlReader, key, unsupported_key};
pub use tree::{YamlNode, YamlScalar, YamlValue, parse};
