//! Where groups could be made: a pure reading of the kernel's lists, plus a look at the folders.

use std::fs;
use std::path::{Path, PathBuf};

use crate::backend::mountinfo::Mount;

/// Which of the two interfaces a tree of groups has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// A tree per resource.
    One,
    /// One tree for all.
    Two,
}

/// A folder in which a group could be made, and what it would bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) version: Version,
    pub(super) folder: PathBuf,
    pub(super) memory: bool,
    pub(super) processes: bool,
}

/// Every folder in which a group could be made, best first.
pub(super) fn places(mounts: &[Mount]) -> Vec<Place> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut places = in_one_tree(&own, mounts, |folder| {
        fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default()
    });
    places.extend(in_many_trees(&own, mounts));
    places
}

/// Version 2: a group that holds processes cannot have bounded groups beneath it, so ours stands
/// beneath the nearest group above that hands memory and processes on.
fn in_one_tree(own: &str, mounts: &[Mount], handed_on: impl Fn(&Path) -> String) -> Vec<Place> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"));
    let mount = mounts.iter().find(|mount| mount.kind == "cgroup2");
    let Some((path, mount)) = path.zip(mount) else { return Vec::new() };
    let Some(folder) = beneath(mount, path) else { return Vec::new() };
    folder
        .ancestors()
        .take_while(|folder| folder.starts_with(&mount.point))
        .filter(|folder| {
            let handed_on = handed_on(folder);
            let has = |name| handed_on.split_whitespace().any(|controller| controller == name);
            has("memory") && has("pids")
        })
        .map(|folder| Place {
            version: Version::Two,
            folder: folder.to_path_buf(),
            memory: true,
            processes: true,
        })
        .collect()
}

/// Version 1: beneath our own group in the tree of each resource.
fn in_many_trees(own: &str, mounts: &[Mount]) -> Vec<Place> {
    let mut places = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let has = |name| controllers.split(',').any(|controller| controller == name);
        let (memory, processes) = (has("memory"), has("pids"));
        let mount = mounts.iter().find(|mount| {
            let settings = |name| mount.settings.split(',').any(|setting| setting == name);
            mount.kind == "cgroup" && controllers.split(',').all(settings)
        });
        let folder = mount.and_then(|mount| beneath(mount, path));
        if let Some(folder) = folder.filter(|_| memory || processes) {
            places.push(Place { version: Version::One, folder, memory, processes });
        }
    }
    places
}

/// A group's folder, if the mount shows it.
fn beneath(mount: &Mount, path: &str) -> Option<PathBuf> {
    let within = Path::new(path).strip_prefix(&mount.root).ok()?;
    Some(mount.point.join(within))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::mountinfo;

    #[test]
    fn the_older_version_has_a_tree_per_resource() {
        let own = "8:pids:/\n4:memory:/a/b\n1:cpu:/\n0::/\n";
        let mounts = mountinfo::parse(
            b"35 31 0:31 / /cg/memory rw - cgroup cgroup rw,memory\n\
             39 31 0:36 / /cg/pids rw - cgroup cgroup rw,pids\n\
             41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n",
        );
        let place = |folder: &str, memory| Place {
            version: Version::One,
            folder: PathBuf::from(folder),
            memory,
            processes: !memory,
        };
        let found = in_many_trees(own, &mounts);
        assert_eq!(found, [place("/cg/pids/", false), place("/cg/memory/a/b", true)]);
        assert_eq!(in_one_tree(own, &mounts, |_| "hugetlb\n".to_owned()), []);
    }

    #[test]
    fn the_newer_version_climbs_to_a_group_that_hands_on() {
        let own = "0::/user.slice/user@7.service/app.slice/term.scope\n";
        let mounts = mountinfo::parse(b"30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        let handed_on = |folder: &Path| {
            if folder.ends_with("term.scope") {
                String::new()
            } else {
                "cpu memory pids\n".to_owned()
            }
        };
        let found = in_one_tree(own, &mounts, handed_on);
        let folders: Vec<&Path> = found.iter().map(|place| place.folder.as_path()).collect();
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
        assert_eq!(in_one_tree("0::/mine\n", &mounts, |_| "memory pids".to_owned()), []);
    }
}
