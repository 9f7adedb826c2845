//! What every command sees of the host besides the workspace, as data with a reason per entry.
//!
//! Everything here is read-only, and nothing in it may be the user's own: no accounts, no keys, no
//! names of hosts, no settings that carry credentials.

use std::ffi::CStr;
use std::path::Path;

use capsule_base::root_names::WORKSPACE_MOUNT;

/// A path of the host that commands see, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VisiblePath {
    /// The absolute path; a trailing `*` stands for the rest of a name.
    pub(crate) path: &'static str,
    /// Why.
    pub(crate) why: &'static str,
}

const fn visible_path(path: &'static str, why: &'static str) -> VisiblePath {
    VisiblePath { path, why }
}

/// Folders of programs and libraries; those that are links are made as links. `/opt` is not among
/// them: what stands there is often a service with its settings, so a program in it is shown by
/// name. `/home`, `/root`, `/var`, `/run`, `/srv`, `/mnt` and `/boot` hold what nobody inside needs.
pub(crate) const DIRECTORIES: &[VisiblePath] = &[
    visible_path("/usr", "programs, libraries and their data"),
    visible_path("/bin", "programs, on systems that keep them apart from /usr"),
    visible_path("/sbin", "programs of administration; without privileges they only show"),
    visible_path("/lib", "libraries and the loader"),
    visible_path("/lib32", "libraries for 32-bit programs"),
    visible_path("/lib64", "libraries; the loader's own path begins with it"),
    visible_path("/libx32", "a link that package tools expect"),
];

/// Folders beneath those that look empty.
pub(crate) const COVERED: &[VisiblePath] = &[
    visible_path(
        "/usr/local/etc",
        "settings of programs that a person built, with what they contain",
    ),
    visible_path("/usr/local/var", "data of such programs"),
];

/// Files and folders of the configuration and of generated data that programs cannot do without.
///
/// Of a program that runs or builds a project, those that its package installs and without which it does not start, or
/// lacks its modules; of a service, none. Files among them in which a person may write a password are left out.
pub(crate) const CONFIGURATION: &[VisiblePath] = &[
    visible_path("/etc/ld.so.cache", "where libraries lie; without it starting is slow or fails"),
    visible_path("/etc/ld.so.conf", "where libraries lie"),
    visible_path("/etc/ld.so.conf.d", "where libraries lie"),
    visible_path("/etc/alternatives", "links from /usr/bin to the chosen program (Debian)"),
    visible_path("/etc/localtime", "the time zone"),
    visible_path("/etc/os-release", "which system this is"),
    visible_path("/etc/mime.types", "types of files by name"),
    visible_path("/etc/terminfo", "terminals"),
    visible_path("/etc/ssl/certs", "public certificates"),
    visible_path("/etc/ssl/openssl.cnf", "settings of the library, without keys"),
    visible_path("/etc/ssl/cert.pem", "public certificates (Alpine, Arch)"),
    visible_path("/etc/pki/tls/certs", "public certificates (Fedora)"),
    visible_path("/etc/pki/ca-trust/extracted", "public certificates (Fedora)"),
    visible_path("/etc/ca-certificates/extracted", "public certificates (Arch)"),
    visible_path("/etc/crypto-policies", "settings of libraries, without keys (Fedora)"),
    visible_path("/etc/fonts", "fonts, for programs that draw"),
    visible_path("/etc/perl", "modules that Perl looks for there"),
    visible_path("/etc/python3*", "settings of the interpreter's start"),
    visible_path("/etc/java-*", "settings without which Java does not start"),
    visible_path("/etc/maven/m2.conf", "where Maven's own classes lie; not its settings"),
    visible_path("/etc/maven/logging", "how Maven prints"),
    visible_path("/etc/php", "which modules PHP loads"),
    visible_path("/etc/R", "where R finds its packages"),
    visible_path("/etc/texmf", "where TeX finds its files"),
    visible_path("/var/lib/texmf", "formats and fonts of TeX, made when it is installed"),
    visible_path("/var/lib/ghc", "which packages the Haskell compiler has"),
    visible_path("/var/lib/gems", "packages of Ruby that a person installed for all"),
    visible_path("/etc/xml", "where schemas lie that are named by address"),
    visible_path("/etc/sgml", "where schemas lie that are named by address"),
    visible_path("/var/lib/aspell", "dictionaries, made when they are installed"),
    visible_path("/etc/ImageMagick-*", "limits and colours of ImageMagick"),
    visible_path("/etc/groff", "how manual pages are set"),
    visible_path("/etc/magic", "kinds of files by content"),
    visible_path("/etc/inputrc", "keys of line editors"),
];

/// Devices that every program may use.
pub(crate) const DEVICES: &[VisiblePath] = &[
    visible_path("/dev/null", "nothing"),
    visible_path("/dev/zero", "zeroes"),
    visible_path("/dev/full", "a disk that is full"),
    visible_path("/dev/random", "random numbers"),
    visible_path("/dev/urandom", "random numbers"),
];

/// The device of an agent, which has a terminal.
pub(crate) const TERMINAL: VisiblePath = visible_path("/dev/tty", "the terminal of the session");

/// Links that every program may follow.
pub(crate) const LINKS: &[(&str, &CStr)] = &[
    ("dev/fd", c"/proc/self/fd"),
    ("dev/ptmx", c"pts/ptmx"),
    ("dev/stdin", c"/proc/self/fd/0"),
    ("dev/stdout", c"/proc/self/fd/1"),
    ("dev/stderr", c"/proc/self/fd/2"),
    // One bounded file system for everything that is thrown away with the run.
    ("dev/shm", c"/tmp"),
    ("var/tmp", c"/tmp"),
];

/// Whether a command sees this absolute path of the host at the same place, because it lies in a
/// system folder. Links on the way are not followed: ask with a resolved path.
pub(crate) fn is_system_path(path: &Path) -> bool {
    let beneath = |entry: &VisiblePath| path.starts_with(entry.path);
    DIRECTORIES.iter().any(beneath) && !COVERED.iter().any(beneath)
}

/// The mount of the sandbox that keeps a workspace with this real path from being mounted there.
/// `is_direct` says whether commands change the workspace itself: inside `/tmp`, where commands may make anything, Landlock would then not tell the two apart.
pub(crate) fn mount_conflict(root: &Path, is_direct: bool) -> Option<&'static str> {
    let system = DIRECTORIES.iter().map(|shown| shown.path);
    let mut others = SANDBOX_MOUNTS.into_iter().chain(system);
    let at_tmp = (is_direct && root.starts_with(TMP)) || Path::new(TMP).starts_with(root);
    if at_tmp || !root.is_absolute() {
        return Some(TMP);
    }
    // Neither in one of them, nor so that one would be in it.
    others.find(|mount| root.starts_with(mount) || Path::new(mount).starts_with(root))
}

/// The directory in which all calls of a run keep what is removed at its end.
pub(crate) const TMP: &str = "/tmp";

/// The home directory of a call, which no other call sees: programs take orders from files in it.
pub(crate) const HOME: &str = "/run/home";

/// What the sandbox puts into its root besides the system's directories and `/tmp`.
const SANDBOX_MOUNTS: [&str; 6] = ["/etc", "/proc", "/dev", "/sys", "/var/tmp", HOME];

/// The folder of its own that every command has where this absolute path of the host lies, so that the path
/// cannot be shown to it.
pub(crate) fn private_directory(path: &Path) -> Option<&'static str> {
    let covered = COVERED.iter().map(|shown| shown.path);
    TAKEN.into_iter().chain(covered).find(|folder| path.starts_with(folder))
}

/// What the sandbox puts there itself, and where the workspace stands.
const TAKEN: [&str; 6] = ["/proc", TMP, "/var/tmp", "/dev", HOME, WORKSPACE_MOUNT];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_paths_are_whole_components() {
        for (path, expected) in [
            ("/usr/bin/git", true),
            ("/usr", true),
            ("/bin/sh", true),
            ("/usr2/bin", false),
            ("/usr/local/bin/tool", true),
            ("/usr/local/etc/tool.conf", false),
            ("/etc/ld.so.cache", false),
            ("/home/a/bin/x", false),
            ("/opt/x/bin/x", false),
        ] {
            assert_eq!(is_system_path(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn a_workspace_stands_at_its_path_where_nothing_else_does() {
        for (root, is_direct, expected) in [
            ("/home/a/project", false, None),
            ("/home/a/project", true, None),
            ("/home/a", false, None),
            ("/root", false, None),
            ("/var/www/site", false, None),
            ("/opt/x", false, None),
            ("/workspace", false, None),
            ("/tmp/x", false, None),
            ("/tmp/x", true, Some("/tmp")),
            ("/tmp", false, Some("/tmp")),
            ("/", false, Some("/tmp")),
            ("/usr/src/app", false, Some("/usr")),
            ("/lib", false, Some("/lib")),
            ("/etc/x", false, Some("/etc")),
            ("/proc/1", false, Some("/proc")),
            ("/dev/shm/x", false, Some("/dev")),
            ("/sys/x", false, Some("/sys")),
            ("/var", false, Some("/var/tmp")),
            ("/var/tmp/x", false, Some("/var/tmp")),
            ("/etcetera", false, None),
        ] {
            assert_eq!(mount_conflict(Path::new(root), is_direct), expected, "{root}");
        }
    }

    #[test]
    fn nothing_of_the_users_is_shown() {
        for private in [
            "/etc/passwd",
            "/etc/shadow",
            "/etc/group",
            "/etc/hosts",
            "/etc/hostname",
            "/etc/resolv.conf",
            "/etc/machine-id",
            "/etc/ssh",
            "/etc/gitconfig",
            "/etc/npmrc",
            "/etc/pip.conf",
            "/etc/ssl/private",
            "/home",
            "/root",
            "/var",
            "/run",
            "/tmp",
            "/sys",
        ] {
            let shows = |entry: &VisiblePath| {
                Path::new(private).starts_with(entry.path.trim_end_matches('*'))
            };
            let mut shown = [DIRECTORIES, CONFIGURATION, DEVICES].into_iter().flatten();
            assert!(!shown.any(shows), "{private}");
        }
    }
}
