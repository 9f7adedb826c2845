//! Where a directory of the host stands besides: a bind mount shows one in several places, and no link says so.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// What the kernel tells of the mounts of this process.
const TABLE: &str = "/proc/self/mountinfo";

/// A mount: where it stands, of which file system it is, and what of that it shows.
#[derive(Debug)]
struct Mount {
    at: PathBuf,
    device: String,
    root: PathBuf,
}

/// The mounts of the host, as far as they may show what is in the workspace.
#[derive(Debug, Default)]
pub(super) struct Mounts {
    all: Vec<Mount>,
    /// The file system of the workspace, and where in it that is; none where it stands in one place alone.
    workspace: Option<(String, PathBuf)>,
}

impl Mounts {
    /// Those of this process.
    pub(super) fn read(workspace: &Path) -> Self {
        // Where the kernel does not tell, there is no such file either.
        Self::of(&std::fs::read(TABLE).unwrap_or_default(), workspace)
    }

    fn of(table: &[u8], workspace: &Path) -> Self {
        let all: Vec<Mount> = table.split(|byte| *byte == b'\n').filter_map(mount).collect();
        let mut mounts = Self { all, workspace: None };
        let Some((device, place)) = mounts.place(workspace) else { return mounts };
        let shown = mounts.all.iter().filter(|mount| mount.device == device).count();
        mounts.workspace = (shown > 1).then_some((device, place));
        mounts
    }

    /// The path beneath the workspace that a path without links also is.
    pub(super) fn beneath(&self, path: &Path) -> Option<PathBuf> {
        let (device, workspace) = self.workspace.as_ref()?;
        let (text, place) = self.place(path)?;
        let rest = place.strip_prefix(workspace).ok().filter(|_| text == *device)?;
        Some(rest.to_owned())
    }

    /// The file system that a path without links is on, and where in it.
    fn place(&self, path: &Path) -> Option<(String, PathBuf)> {
        let holds = |item: &&Mount| path.starts_with(&item.at);
        // Of several in one place, the last one lies on top.
        let mount = self.all.iter().filter(holds).max_by_key(|mount| mount.at.as_os_str().len())?;
        let rest = path.strip_prefix(&mount.at).ok()?;
        Some((mount.device.clone(), mount.root.join(rest)))
    }
}

/// A line of the table: number, parent, device, root, place, and more.
fn mount(line: &[u8]) -> Option<Mount> {
    let mut words = line.split(|byte| *byte == b' ');
    let device = words.nth(2)?;
    let (root, at) = (words.next()?, words.next()?);
    let device = String::from_utf8(device.to_vec()).ok()?;
    Some(Mount { device, root: plain(root), at: plain(at) })
}

/// A path as the table writes it: spaces and the like as octal numbers.
fn plain(word: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((first, behind)) = rest.split_first() {
        let number = behind.get(..3).filter(|_| *first == b'\\');
        let number =
            number.and_then(|number| u8::from_str_radix(std::str::from_utf8(number).ok()?, 8).ok());
        bytes.push(number.unwrap_or(*first));
        rest = behind.get(if number.is_some() { 3 } else { 0 }..).unwrap_or_default();
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = "\
21 1 8:1 / / rw - ext4 /dev/sda1 rw
22 21 0:5 / /proc rw - proc proc rw
30 21 8:1 /home/ada/my\\040dots/nvim /home/ada/.config/nvim rw - ext4 /dev/sda1 rw
31 21 8:1 /home /srv/home rw - ext4 /dev/sda1 rw
32 21 8:2 / /srv/home/ada/my\\040dots/other rw - ext4 /dev/sdb1 rw
";

    #[test]
    fn a_bind_mount_leads_to_the_place_that_it_shows() {
        for (workspace, path, beneath) in [
            ("/home/ada/my dots", "/home/ada/.config/nvim/init.lua", Some("nvim/init.lua")),
            ("/home/ada/my dots", "/srv/home/ada/my dots/a", Some("a")),
            ("/home/ada/my dots", "/srv/home/ada/my dots/other/a", None),
            ("/home/ada/my dots", "/home/ada/.config/git", None),
            ("/srv/home/ada", "/home/ada/.bashrc", Some(".bashrc")),
            ("/proc/1", "/home/ada", None),
        ] {
            let mounts = Mounts::of(ROWS.as_bytes(), Path::new(workspace));
            let item = mounts.beneath(Path::new(path));
            assert_eq!(item.as_deref(), beneath.map(Path::new), "{workspace} {path}");
        }
    }

    #[test]
    fn a_workspace_that_stands_in_one_place_alone_is_not_looked_for() {
        let rows =
            "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n22 21 8:2 / /home rw - ext4 /dev/sdb1 rw\n";
        let mounts = Mounts::of(rows.as_bytes(), Path::new("/home/ada"));
        assert_eq!(mounts.beneath(Path::new("/home/ada/x")), None);
        assert!(mounts.workspace.is_none());
    }
}
