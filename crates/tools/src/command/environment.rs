//! What a command finds in its environment.

use std::ffi::{OsStr, OsString};

use capsule_command::variables::offline_programs;
use capsule_core::confinement::SandboxTier;
use capsule_core::policy::EnvironmentRule;
use capsule_sandbox::GIT_CONFIG_PATH;

use super::certificates::certificate_files;
use super::program::SEARCH_PATH;
use crate::host::ToolHost;
use crate::toolchain::Toolchains;

/// What every command finds in its environment, and why. The policy can set other values.
const ENVIRONMENT: &[(&str, &str)] = &[
    // Text is UTF-8 whatever the host's language is.
    ("LANG", "C.UTF-8"),
    // Nobody watches: no colours, no pagers, no questions.
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // Git would write its index when it only looks.
    ("GIT_OPTIONAL_LOCKS", "0"),
];

/// By these variables programs do not look for a newer version of themselves and do not tell their makers how they are
/// used. Each call has a new home, so that they would do so each time, and a person would be asked about a host that the
/// command itself does not need. The policy can set other values.
const SPARED_REQUESTS: &[(&str, &str)] = &[
    // npm, and what is built on the library `update-notifier`.
    ("NPM_CONFIG_UPDATE_NOTIFIER", "false"),
    ("NO_UPDATE_NOTIFIER", "1"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("GH_NO_UPDATE_NOTIFIER", "1"),
    ("DENO_NO_UPDATE_CHECK", "1"),
    ("HOMEBREW_NO_AUTO_UPDATE", "1"),
    // Terraform, Packer and their like, for both.
    ("CHECKPOINT_DISABLE", "1"),
    // How they are used: programs of several makers, then those that know only a name of their own.
    ("DO_NOT_TRACK", "1"),
    ("ASTRO_TELEMETRY_DISABLED", "1"),
    ("DOTNET_CLI_TELEMETRY_OPTOUT", "1"),
    ("GATSBY_TELEMETRY_DISABLED", "1"),
    ("NEXT_TELEMETRY_DISABLED", "1"),
    ("NG_CLI_ANALYTICS", "false"),
    ("NUXT_TELEMETRY_DISABLED", "1"),
    ("STORYBOOK_DISABLE_TELEMETRY", "1"),
    ("TURBO_TELEMETRY_DISABLED", "1"),
    ("YARN_ENABLE_TELEMETRY", "0"),
    // Packages that ask for gifts when they are installed.
    ("DISABLE_OPENCOLLECTIVE", "1"),
];

/// Who the user is to git, where variables say so.
const IDENTITY: [&str; 4] =
    ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];

/// Variables that name the private folder: programs write their caches there, and it is empty
/// afterwards. The policy can set other values for them, too.
const PRIVATE_DIRECTORY_VARIABLES: [&str; 2] = ["HOME", "TMPDIR"];

/// How much of its memory a program of Go may use before it collects its garbage more often, in percent. Go looks
/// for no limit but in this variable.
const GO_MEMORY_PERCENT: u64 = 90;

/// The environment of a command: ours, what the policy passes on, what it sets. `tier` is where it runs, if that is a
/// sandbox, and `memory` how much of it the command may have there; `has_network` says whether it reaches anybody.
pub(super) fn variables(
    environment: &EnvironmentRule,
    host: &dyn ToolHost,
    (tier, memory): (Option<SandboxTier>, Option<u64>),
    has_network: bool,
) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = Vec::new();
    let mut put = |name: &str, value: OsString| {
        variables.retain(|(known, _)| known != name);
        variables.push((name.into(), value));
    };
    let spared = if has_network { SPARED_REQUESTS } else { &[] };
    for (name, value) in ENVIRONMENT.iter().chain(spared) {
        put(name, (*value).into());
    }
    put("PATH", search_path(host.toolchains()));
    for (name, value) in host.toolchains().variables() {
        // By some of them programs do not try to fetch what they could not.
        if !has_network || offline_programs(name, value).is_empty() {
            put(name, value.into());
        }
    }
    if let Some(memory) = memory {
        put("GOMEMLIMIT", (memory / 100 * GO_MEMORY_PERCENT).to_string().into());
    }
    // The machine's configuration is another one where commands have an `/etc` of their own.
    match tier {
        Some(SandboxTier::Full) => put("GIT_CONFIG_SYSTEM", GIT_CONFIG_PATH.into()),
        _ => put("GIT_CONFIG_NOSYSTEM", "1".into()),
    }
    if has_network {
        for (name, path) in certificate_files(host) {
            put(name, path.into());
        }
    }
    for name in
        IDENTITY.iter().map(|name| (*name).to_owned()).chain(environment.pass.iter().cloned())
    {
        let name = &name;
        if let Some(value) = host.variable(name) {
            put(name, value);
        }
    }
    for (name, value) in &environment.set {
        put(name, value.into());
    }
    variables
}

/// Where a command looks for programs: in the directories of toolchains and of the system.
fn search_path(toolchains: &Toolchains) -> OsString {
    let paths: Vec<&OsStr> =
        toolchains.search_path(SEARCH_PATH).map(|path| path.as_os_str()).collect();
    paths.join(OsStr::new(":"))
}

/// The variables of an environment that name the private folder, since nothing else gives them a value.
pub(super) fn unset_private_variables(environment: &[(OsString, OsString)]) -> Vec<OsString> {
    let is_set = |name: &str| environment.iter().any(|(known, _)| known == name);
    let unset = PRIVATE_DIRECTORY_VARIABLES.into_iter().filter(|name| !is_set(name));
    unset.map(OsString::from).collect()
}
