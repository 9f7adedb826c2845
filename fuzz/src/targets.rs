//! The fuzz targets: each takes bytes and panics where a property does not hold.

mod arguments;
mod argv;
mod command;
mod edit;
mod events;
mod git_config;
mod http_head;
mod mcp;
mod path;
mod plan;
mod policy_yaml;
mod redact;
mod url;

/// A fuzz target: a property of everything that reads bytes of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, which is that of the directory of its seeds, too.
    pub name: &'static str,
    /// Tries one input.
    ///
    /// # Panics
    /// When the property does not hold.
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: &[Target] = &[
    target("policy_yaml", policy_yaml::run),
    target("plan", plan::run),
    target("arguments", arguments::run),
    target("path", path::run),
    target("url", url::run),
    target("argv", argv::run),
    target("command", command::run),
    target("git_config", git_config::run),
    target("edit", edit::run),
    target("redact", redact::run),
    target("events", events::run),
    target("mcp", mcp::run),
    target("http_head", http_head::run),
];

const fn target(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run }
}
