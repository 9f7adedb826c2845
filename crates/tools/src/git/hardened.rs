//! The words and the environment under which git answers.

use std::ffi::OsString;

use super::drivers::{Drivers, HEED_CHECK};

/// Words before the subcommand. Nobody pages, and nothing is written while git only looks.
pub(super) const GLOBAL_OPTIONS: &[&str] = &["--no-pager", "--no-optional-locks"];

/// A folder that is nowhere: no program is found in it.
const EMPTY_PATH: &str = "/nonexistent";

/// What git finds in its environment, and why.
const ENVIRONMENT: &[(&str, &str)] = &[
    // The repository and its files are where the policy judged them to be, whatever `core.worktree`
    // says, and whoever owns them.
    ("GIT_DIR", ".git"),
    ("GIT_WORK_TREE", "."),
    // Neither the machine's configuration nor the user's.
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    // No program is found by its name, and no part of git that is a program of its own.
    ("PATH", EMPTY_PATH),
    ("GIT_EXEC_PATH", EMPTY_PATH),
    // Nothing is fetched: a partial clone has git fetch what is missing, by whatever transport its
    // configuration names.
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", ""),
    // Objects are shown as they are, not as replaced by others.
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ADVICE", "0"),
];

/// A program that ends without a word, for where a setting must name one. It is not found, either.
const FAILING_PROGRAM: &str = "false";

/// Settings that win over those of the repository, and why.
const SETTINGS: &[(&str, &str)] = &[
    HEED_CHECK,
    // Programs that a configuration can name.
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", FAILING_PROGRAM),
    ("core.editor", FAILING_PROGRAM),
    ("core.askPass", FAILING_PROGRAM),
    ("core.sshCommand", FAILING_PROGRAM),
    ("core.gitProxy", FAILING_PROGRAM),
    ("core.alternateRefsCommand", FAILING_PROGRAM),
    ("credential.helper", ""),
    ("gpg.program", FAILING_PROGRAM),
    ("gpg.openpgp.program", FAILING_PROGRAM),
    ("gpg.x509.program", FAILING_PROGRAM),
    ("gpg.ssh.program", FAILING_PROGRAM),
    ("log.showSignature", "false"),
    ("protocol.allow", "never"),
    ("maintenance.auto", "false"),
    ("gc.auto", "0"),
    // Files elsewhere that a configuration can name.
    ("core.attributesFile", "/dev/null"),
    ("core.excludesFile", "/dev/null"),
    ("mailmap.file", "/dev/null"),
    ("mailmap.blob", ""),
    // Other repositories.
    ("submodule.recurse", "false"),
    ("diff.ignoreSubmodules", "all"),
    ("status.submoduleSummary", "false"),
    // One process and one thread.
    ("core.preloadIndex", "false"),
    ("core.untrackedCache", "false"),
    ("index.threads", "1"),
    ("pack.threads", "1"),
    ("grep.threads", "1"),
    // What the answer looks like.
    ("core.quotePath", "false"),
    ("diff.noprefix", "false"),
    ("diff.mnemonicPrefix", "false"),
    ("diff.relative", "false"),
    ("diff.renames", "true"),
    ("diff.interHunkContext", "0"),
    ("diff.context", "3"),
    ("status.relativePaths", "false"),
    ("status.renames", "true"),
    ("log.mailmap", "false"),
    ("log.follow", "false"),
    ("log.decorate", "false"),
];

/// The environment of git, with what switches off the repository's drivers.
pub(super) fn environment(drivers: &Drivers) -> Vec<(OsString, OsString)> {
    let fixed = SETTINGS.iter().map(|(key, value)| (OsString::from(key), OsString::from(value)));
    let settings: Vec<(OsString, OsString)> = fixed.chain(drivers.disabling_settings()).collect();
    let item =
        ENVIRONMENT.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let count = ("GIT_CONFIG_COUNT".into(), settings.len().to_string().into());
    let mut environment: Vec<(OsString, OsString)> = item.chain([count]).collect();
    for (index, (key, value)) in settings.into_iter().enumerate() {
        environment.push((format!("GIT_CONFIG_KEY_{index}").into(), key));
        environment.push((format!("GIT_CONFIG_VALUE_{index}").into(), value));
    }
    environment
}
