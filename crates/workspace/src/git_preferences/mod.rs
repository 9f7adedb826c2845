//! The user's preferences for git: the part that commands get of the configuration of the user and of the machine.
//!
//! These are the settings which the table of keys calls preferences, such as an identity or the name of the first
//! branch; aliases for subcommands that start nothing; the workspace, if the user trusts it; and the patterns of
//! files that the user never adds. Nothing that starts a program or names another file is among them.

mod aliases;
mod config_files;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use capsule_base::limits;
use rustix::process::geteuid;

pub use self::aliases::GitAliases;
use self::config_files::user_settings;
use crate::git_config::{self, KeyJudgement, Setting};
use crate::hidden_paths::UserVariables;
use crate::system::stat;

/// Trusts every repository, as a value of `safe.directory`.
const ANY: &[u8] = b"*";

/// The user's preferences for git.
#[derive(Debug, Default)]
pub struct GitPreferences {
    settings: Vec<Setting>,
    /// The names that the user gave to subcommands.
    pub aliases: GitAliases,
    /// The patterns of files that the user never adds to a repository.
    pub ignored: Vec<u8>,
}

impl GitPreferences {
    /// Reads those that hold for a workspace. A configuration that cannot be read has none.
    #[must_use]
    pub fn read(user: &dyn UserVariables, root: &Path) -> Self {
        let all = user_settings(user, root);
        let mut preferences = Self::default();
        let (mut trusted, mut ignored): (Vec<Vec<u8>>, Option<PathBuf>) = (Vec::new(), None);
        for setting in all {
            let value = setting.value.clone().unwrap_or_default();
            if setting.is("safe", "directory") {
                // An empty value takes back what was trusted before.
                match value.is_empty() {
                    true => trusted.clear(),
                    false => trusted.push(value),
                }
            } else if setting.is("core", "excludesfile") {
                ignored = config_files::expand_home(user, &value);
            } else if setting.section == "alias" {
                preferences.aliases.add(&setting);
            } else if is_preference(&setting) {
                preferences.settings.push(setting);
            }
        }
        preferences.settings.extend(preferences.aliases.harmless());
        preferences.settings.extend(trust(user, root, &trusted));
        let ignored = ignored.or_else(|| config_files::default_ignore(user));
        preferences.ignored =
            ignored.and_then(|path| config_files::read_small(&path)).unwrap_or_default();
        preferences
    }

    /// A configuration of these preferences, for git. `mount` is where commands see the workspace.
    #[must_use]
    pub fn config_text(&self, root: &Path, mount: &Path) -> Vec<u8> {
        let mut text = Vec::new();
        for setting in &self.settings {
            let mut setting = setting.clone();
            if setting.is("safe", "directory")
                && let Some(value) = &mut setting.value
                && let Ok(rest) = Path::new(OsStr::from_bytes(value)).strip_prefix(root)
            {
                let place =
                    if rest.as_os_str().is_empty() { mount.into() } else { mount.join(rest) };
                *value = place.into_os_string().as_bytes().to_vec();
            }
            let written = setting.written();
            if text.len() + written.len() <= limits::GIT_PREFERENCES_BYTES {
                text.extend(written);
            }
        }
        text
    }
}

/// Whether commands get a setting as the user has it.
fn is_preference(setting: &Setting) -> bool {
    // Programs read what git prints.
    let always_colours = setting.section == "color" && setting.value.as_deref() == Some(b"always");
    !always_colours && git_config::judge(&setting.name()) == Some(KeyJudgement::Preference)
}

/// Trust in the workspace and in what lies in it, as far as git on the host has it: by the user's configuration, or
/// because `sudo` was used by the owner.
fn trust(user: &dyn UserVariables, root: &Path, trusted: &[Vec<u8>]) -> Vec<Setting> {
    let owner = stat(root).ok().map(|stat| stat.st_uid);
    let caller = user.variable("SUDO_UID").and_then(|text| text.to_str()?.parse::<u32>().ok());
    let by_sudo = geteuid().is_root() && owner.is_some() && owner == caller;
    let above = |value: &[u8]| {
        let above = value.strip_suffix(b"/*").filter(|above| !above.is_empty());
        above.is_some_and(|above| root.starts_with(OsStr::from_bytes(above)))
    };
    let whole = by_sudo || trusted.iter().any(|value| value == ANY || above(value));
    let inside =
        trusted.iter().filter(|value| Path::new(OsStr::from_bytes(value)).starts_with(root));
    let values: Vec<Vec<u8>> = match whole {
        true => vec![ANY.to_vec()],
        false => inside.cloned().collect(),
    };
    values.into_iter().map(|value| Setting::plain("safe", "directory", value)).collect()
}

#[cfg(test)]
mod tests;
