//! Where the programs of toolchains are looked for.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::known::{KnownToolchain, Programs};
use capsule_sandbox::{Executor, SandboxBackend as _};

/// The directories of programs of a toolchain, in its order.
pub(super) fn program_directories(known: &KnownToolchain, home: &Path) -> Vec<PathBuf> {
    let mut directories = Vec::new();
    for programs in known.programs {
        match programs {
            Programs::In(".") => directories.push(home.to_owned()),
            Programs::In(path) => directories.push(home.join(path)),
            Programs::InEach(above, inner) => {
                directories.extend(
                    names_in(&home.join(above))
                        .into_iter()
                        .map(|name| home.join(above).join(name).join(inner)),
                );
            }
            Programs::InVersion(above, file, inner) => {
                let chosen = chosen_version(&home.join(above), &home.join(file));
                directories
                    .extend(chosen.map(|version| home.join(above).join(version).join(inner)));
            }
        }
    }
    directories.retain(|path| path.is_dir());
    directories
}

/// The version that a file names, or the newest.
fn chosen_version(versions: &Path, file: &Path) -> Option<String> {
    let names = names_in(versions);
    let named = fs::read_to_string(file).unwrap_or_default();
    let named = named.lines().next().unwrap_or_default().trim().trim_start_matches('v').to_owned();
    let plain = |name: &str| name.trim_start_matches('v').to_owned();
    let is_named = |name: &&String| {
        let rest = plain(name).strip_prefix(&named).map(str::to_owned);
        !named.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let newest = |names: Vec<&String>| names.into_iter().max_by_key(|name| numbers(name)).cloned();
    newest(names.iter().filter(is_named).collect()).or_else(|| newest(names.iter().collect()))
}

/// The numbers of a version, by which versions are compared.
fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    parts.map(|part| part.parse().unwrap_or(u64::MAX)).collect()
}

/// The names in a directory, in order.
fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Where programs are looked for, before and behind the system's directories. The user's own `PATH`
/// decides for directories that stand there; the others come first, as their installers put them.
pub(super) fn in_order(
    others: &[PathBuf],
    user_path: &OsStr,
    shown: &dyn Fn(&Path) -> bool,
) -> [Vec<PathBuf>; 2] {
    let mut of_user: Vec<PathBuf> =
        std::env::split_paths(user_path).filter(|path| path.is_absolute()).collect();
    let at = of_user.iter().position(|path| Executor::is_system_path(path) && !shown(path));
    let behind = of_user.split_off(at.unwrap_or(of_user.len()));
    let [mut before, behind] = [of_user, behind].map(|paths| {
        let mut kept: Vec<PathBuf> = Vec::new();
        for path in paths.into_iter().filter(|path| shown(path)) {
            if !kept.contains(&path) {
                kept.push(path);
            }
        }
        kept
    });
    for path in others {
        if !before.contains(path) && !behind.contains(path) {
            before.push(path.clone());
        }
    }
    // A name with a colon would be two.
    [before, behind].map(|paths| {
        paths
            .into_iter()
            .filter(|path| path.to_str().is_some_and(|path| !path.contains(':')))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_named_one_or_the_newest() {
        let directory = tempfile::tempdir().unwrap();
        let versions = directory.path().join("versions");
        for name in ["v9.11.2", "v18.2.0", "v18.10.1", "v20.0.0"] {
            fs::create_dir_all(versions.join(name)).unwrap();
        }
        let file = directory.path().join("default");
        for (named, expected) in [
            ("18\n", "v18.10.1"),
            ("v18.2", "v18.2.0"),
            ("v9.11.2", "v9.11.2"),
            ("lts/*", "v20.0.0"),
            ("1", "v20.0.0"),
            ("", "v20.0.0"),
        ] {
            fs::write(&file, named).unwrap();
            assert_eq!(chosen_version(&versions, &file).as_deref(), Some(expected), "{named:?}");
        }
        assert_eq!(chosen_version(&directory.path().join("none"), &file), None);
    }
}
