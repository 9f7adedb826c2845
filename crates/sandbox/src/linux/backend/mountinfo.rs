//! The kernel's list of mounts.

use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

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
pub(crate) fn process_mounts() -> Vec<Mount> {
    parse(&std::fs::read("/proc/self/mountinfo").unwrap_or_default())
}

/// Where something is mounted within a folder, relative to it.
///
/// # Errors
/// The mounts cannot be listed.
pub(crate) fn mounts_within(folder: &Path) -> Result<Vec<PathBuf>, Errno> {
    let mounts = process_mounts();
    if mounts.is_empty() {
        return Err(Errno::NOENT);
    }
    let within = mounts.iter().filter_map(|mount| mount.point.strip_prefix(folder).ok());
    Ok(within.filter(|path| !path.as_os_str().is_empty()).map(Path::to_owned).collect())
}

/// Reads the content of `/proc/self/mountinfo`. A line that does not have the documented form is left
/// out. Names in it are bytes, as the file systems have them: whoever makes a folder chooses them.
pub(crate) fn parse(content: &[u8]) -> Vec<Mount> {
    content.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ').skip(3);
    let (root, point) = (fields.next()?, fields.next()?);
    // How it is mounted, and fields of which there are more or fewer, up to a dash.
    let mut source = fields.skip(1).skip_while(|field| *field != b"-").skip(1);
    let (kind, _device, settings) = (source.next()?, source.next()?, source.next()?);
    let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
    let (root, point) = (unescape(root), unescape(point));
    Some(Mount { root, point, kind: text(kind), settings: text(settings) })
}

/// The kernel writes space, tab, newline and backslash as three octal digits.
fn unescape(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
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
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn lines_are_read() {
        let text =
            b"35 31 0:31 / /sys/fs/cgroup/memory rw,relatime shared:1 - cgroup cgroup rw,memory\n\
                    40 27 8:1 /a\\040b /mnt/new\\012line\\134x ro - ext4 /dev/sda1 rw\n\
                    41 27 8:1 / /caf\xe9 ro master:1 propagate_from:2 - ext4 /dev/sda1 rw\n\
                    nonsense\n42 27 8:1 / /cut ro - ext4\n";
        let mounts = parse(text);
        assert_eq!(mounts.len(), 3);
        assert_eq!(mounts[0].point, PathBuf::from("/sys/fs/cgroup/memory"));
        assert_eq!((mounts[0].kind.as_str(), mounts[0].settings.as_str()), ("cgroup", "rw,memory"));
        assert_eq!(mounts[1].root, PathBuf::from("/a b"));
        assert_eq!(mounts[1].point, PathBuf::from("/mnt/new\nline\\x"));
        assert_eq!(mounts[2].point.as_os_str().as_bytes(), b"/caf\xe9");
        assert_eq!(mounts[2].kind, "ext4");
    }
}
