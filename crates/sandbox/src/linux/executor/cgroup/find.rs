//! Where groups could be made: a pure reading of the kernel's lists, plus a look at the folders.

use std::fs;
use std::path::{Path, PathBuf};

use crate::linux::backend::mountinfo::Mount;

/// Which of the two interfaces a tree of groups has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// A tree per resource.
    V1,
    /// One tree for all.
    V2,
}

/// A folder in which a group could be made, and what it would bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CgroupParent {
    pub(super) version: Version,
    pub(super) directory: PathBuf,
    pub(super) memory: bool,
    pub(super) processes: bool,
}

/// Every folder in which a group could be made, best first.
pub(super) fn candidate_parents(mounts: &[Mount]) -> Vec<CgroupParent> {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut places = find_v2(&text, mounts, |folder| {
        fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default()
    });
    places.extend(find_v1(&text, mounts));
    places
}

/// Version 2: a group that holds processes cannot have bounded groups beneath it, so ours stands
/// beneath the nearest group above that hands memory and processes on.
fn find_v2(text: &str, mounts: &[Mount], handed_on: impl Fn(&Path) -> String) -> Vec<CgroupParent> {
    let path = text.lines().find_map(|line| line.strip_prefix("0::"));
    let mount = mounts.iter().find(|mount| mount.kind == "cgroup2");
    let Some((path, mount)) = path.zip(mount) else { return Vec::new() };
    let Some(folder) = mounted_path(mount, path) else { return Vec::new() };
    folder
        .ancestors()
        .take_while(|folder| folder.starts_with(&mount.point))
        .filter(|folder| {
            let handed_on = handed_on(folder);
            let has = |name| handed_on.split_whitespace().any(|controller| controller == name);
            has("memory") && has("pids")
        })
        .map(|folder| CgroupParent {
            version: Version::V2,
            directory: folder.to_path_buf(),
            memory: true,
            processes: true,
        })
        .collect()
}

/// Version 1: beneath our own group in the tree of each resource.
fn find_v1(text: &str, mounts: &[Mount]) -> Vec<CgroupParent> {
    let mut places = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let has = |name| controllers.split(',').any(|controller| controller == name);
        let (memory, processes) = (has("memory"), has("pids"));
        let mount = mounts.iter().find(|mount| {
            let settings = |name| mount.settings.split(',').any(|setting| setting == name);
            mount.kind == "cgroup" && controllers.split(',').all(settings)
        });
        let folder = mount.and_then(|mount| mounted_path(mount, path));
        if let Some(folder) = folder.filter(|_| memory || processes) {
            places.push(CgroupParent {
                version: Version::V1,
                directory: folder,
                memory,
                processes,
            });
        }
    }
    places
}

/// A group's folder, if the mount shows it.
fn mounted_path(mount: &Mount, path: &str) -> Option<PathBuf> {
    let within = Path::new(path).strip_prefix(&mount.root).ok()?;
    Some(mount.point.join(within))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::backend::mountinfo;

    #[test]
    fn the_older_version_has_a_tree_per_resource() {
        let text = "8:pids:/\n4:memory:/a/b\n1:cpu:/\n0::/\n";
        let mounts = mountinfo::parse(
            b"35 31 0:31 / /cg/memory rw - cgroup cgroup rw,memory\n\
             39 31 0:36 / /cg/pids rw - cgroup cgroup rw,pids\n\
             41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n",
        );
        let place = |folder: &str, memory| CgroupParent {
            version: Version::V1,
            directory: PathBuf::from(folder),
            memory,
            processes: !memory,
        };
        let found = find_v1(text, &mounts);
        assert_eq!(found, [place("/cg/pids/", false), place("/cg/memory/a/b", true)]);
        assert_eq!(find_v2(text, &mounts, |_| "hugetlb\n".to_owned()), []);
    }

    #[test]
    fn the_newer_version_climbs_to_a_group_that_hands_on() {
        let text = "0::/user.slice/user@7.service/app.slice/term.scope\n";
        let mounts = mountinfo::parse(b"30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        let handed_on = |folder: &Path| {
            if folder.ends_with("term.scope") {
                String::new()
            } else {
                "cpu memory pids\n".to_owned()
            }
        };
        let found = find_v2(text, &mounts, handed_on);
        let folders: Vec<&Path> = found.iter().map(|place| place.directory.as_path()).collect();
        assert_eq!(
            folders,
            [
                "/sys/fs/cgroup/user.slice/user@7.service/app.slice",
                "/sys/fs/cgroup/user.slice/user@7.service",
                "/sys/fs/cgroup/user.slice",
                "/sys/fs/cgroup"
            ]
            .map(Path::new)
        );
    }

    #[test]
    fn a_group_that_is_not_shown_is_none() {
        let mounts = mountinfo::parse(b"30 1 0:26 /other /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        assert_eq!(find_v2("0::/mine\n", &mounts, |_| "memory pids".to_owned()), []);
    }
}
