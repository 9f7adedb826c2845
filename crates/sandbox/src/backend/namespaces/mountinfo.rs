//! The kernel's list of mounts.

use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// One mount.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The folder of its file system that it shows.
    pub(crate) root: PathBuf,
    /// Where.
    pub(crate) point: PathBuf,
    /// The kind of file system.
    pub(crate) kind: String,
    /// The settings of the file system.
    pub(crate) settings: String,
}

/// The mounts that this process sees; none if they cannot be listed.
pub(crate) fn own() -> Vec<Mount> {
    parse(&std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
}

/// Reads the text of `/proc/self/mountinfo`. A line that does not have the documented form is left out.
pub(crate) fn parse(text: &str) -> Vec<Mount> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<Mount> {
    let (mount, source) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(3);
    let (root, point) = (mount.next()?, mount.next()?);
    let mut source = source.split(' ');
    let (kind, _device, settings) = (source.next()?, source.next()?, source.next()?);
    Some(Mount {
        root: unescape(root),
        point: unescape(point),
        kind: kind.to_owned(),
        settings: settings.to_owned(),
    })
}

/// The kernel writes space, tab, newline and backslash as three octal digits.
fn unescape(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.first_chunk::<3>().filter(|_| *first == b'\\');
        let value = digits.and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 8).ok()
        });
        match value {
            Some(value) => {
                bytes.push(value);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let text = "35 31 0:31 / /sys/fs/cgroup/memory rw,relatime shared:1 - cgroup cgroup rw,memory\n\
                    40 27 8:1 /a\\040b /mnt/new\\012line\\134x ro - ext4 /dev/sda1 rw\n\
                    nonsense\n";
        let mounts = parse(text);
        assert_eq!(mounts.len(), 2);
        assert_eq!(mounts[0].point, PathBuf::from("/sys/fs/cgroup/memory"));
        assert_eq!((mounts[0].kind.as_str(), mounts[0].settings.as_str()), ("cgroup", "rw,memory"));
        assert_eq!(mounts[1].root, PathBuf::from("/a b"));
        assert_eq!(mounts[1].point, PathBuf::from("/mnt/new\nline\\x"));
    }
}
