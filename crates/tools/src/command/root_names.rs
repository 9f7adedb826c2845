//! The names by which commands and calls know the root of a workspace.

use std::path::{Component, Path, PathBuf};

use capsule_base::root_names::{RootNames, WORKSPACE_MOUNT};
use capsule_core::confinement::{MountPoint, WorkspaceAccess};
use capsule_core::policy::SandboxRule;
use capsule_sandbox::{Executor, SandboxBackend as _};

/// The names of a root with this real path: where commands see it under these rules, and the others
/// that calls may use. `spellings` are paths by which a person named it.
#[must_use]
pub fn root_names(root: &Path, rule: &SandboxRule, spellings: &[PathBuf]) -> RootNames {
    let Some(real) = root.to_str() else { return RootNames::default() };
    let is_same = rule.mount == MountPoint::Same && mount_conflict(root, rule).is_none();
    let mount = if is_same { real } else { WORKSPACE_MOUNT };
    // A workspace inside `/workspace` leaves that name to the directory above it.
    let usual = Some(WORKSPACE_MOUNT).filter(|usual| !is_same || !root.starts_with(usual));
    let spelled = spellings.iter().filter(|path| is_plain(path) && leads_to(path, root));
    let spelled = spelled
        .filter_map(|path| path.components().collect::<PathBuf>().to_str().map(String::from));
    let others = usual.into_iter().chain([real]).map(String::from).chain(spelled);
    // The sandbox has no link directly in `/tmp`, where a call could put another one in its place.
    let others = others.filter(|name| Path::new(name).parent() != Some(Path::new("/tmp")));
    RootNames::new(mount.to_owned(), others)
}

/// The mount of the sandbox that keeps commands from seeing a workspace at its path.
#[must_use]
pub fn mount_conflict(root: &Path, rule: &SandboxRule) -> Option<&'static str> {
    Executor::mount_conflict(root, rule.workspace == WorkspaceAccess::Direct)
}

/// Whether a path is absolute and without `.` and `..`.
fn is_plain(path: &Path) -> bool {
    let plain = |component| matches!(component, Component::RootDir | Component::Normal(_));
    path.is_absolute() && path.components().all(plain)
}

fn leads_to(path: &Path, root: &Path) -> bool {
    path.canonicalize().is_ok_and(|real| real == root)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(root: &str, rule: &SandboxRule) -> Vec<String> {
        let names = root_names(Path::new(root), rule, &[]);
        [names.mount()].into_iter().chain(names.aliases()).map(String::from).collect()
    }

    #[test]
    fn a_root_is_known_by_its_own_path_and_the_usual_one() {
        let same = SandboxRule::default();
        let fixed = SandboxRule { mount: MountPoint::Workspace, ..same };
        let direct = SandboxRule { workspace: WorkspaceAccess::Direct, ..same };
        for (root, rule, expected) in [
            ("/home/a/p", &same, &["/home/a/p", "/workspace"][..]),
            ("/home/a/p", &fixed, &["/workspace", "/home/a/p"]),
            ("/workspace", &same, &["/workspace"]),
            ("/workspace/p", &same, &["/workspace/p"]),
            ("/workspace/p", &fixed, &["/workspace", "/workspace/p"]),
            ("/usr/src/app", &same, &["/workspace", "/usr/src/app"]),
            ("/tmp/p", &same, &["/tmp/p", "/workspace"]),
            ("/tmp/p", &direct, &["/workspace"]),
            ("/tmp/a/p", &direct, &["/workspace", "/tmp/a/p"]),
            ("/", &same, &["/workspace"]),
        ] {
            assert_eq!(names(root, rule), expected, "{root} {rule:?}");
        }
    }

    #[test]
    fn a_spelling_counts_that_leads_there() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("p");
        std::fs::create_dir(&root).unwrap();
        let link = root.with_file_name("link");
        std::os::unix::fs::symlink(&root, &link).unwrap();
        let spellings = [link.clone(), link.join("../p"), root.with_file_name("none")];
        let names = root_names(&root, &SandboxRule::default(), &spellings);
        assert!(names.aliases().eq(["/workspace", link.to_str().unwrap()]));
    }
}
