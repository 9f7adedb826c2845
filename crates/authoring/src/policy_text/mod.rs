//! The text of a policy as a tree, and the rules in it.

mod programs;
pub(crate) mod site_collector;
pub(crate) mod sites;
pub(crate) mod tree;
