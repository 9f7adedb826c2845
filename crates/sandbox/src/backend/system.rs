//! What every command sees of the host besides the workspace, as data with a reason per entry.
//!
//! Everything here is read-only, and nothing in it may be the user's own: no accounts, no keys, no
//! names of hosts, no settings that carry credentials.

use std::ffi::CStr;

use capsule_core::path::WORKSPACE_MOUNT;

/// A path of the host that commands see, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The absolute path; a trailing `*` stands for the rest of a name.
    pub(crate) path: &'static str,
    /// Why.
    pub(crate) why: &'static str,
}

const fn shown(path: &'static str, why: &'static str) -> Shown {
    Shown { path, why }
}

/// Folders of programs and libraries; those that are links are made as links. `/opt` is not among
/// them: what stands there is often a service with its settings, so a program in it is shown by
/// name. `/home`, `/root`, `/var`, `/run`, `/srv`, `/mnt` and `/boot` hold what nobody inside needs.
pub(crate) const FOLDERS: &[Shown] = &[
    shown("/usr", "programs, libraries and their data"),
    shown("/bin", "programs, on systems that keep them apart from /usr"),
    shown("/sbin", "programs of administration; without privileges they only show"),
    shown("/lib", "libraries and the loader"),
    shown("/lib32", "libraries for 32-bit programs"),
    shown("/lib64", "libraries; the loader's own path begins with it"),
    shown("/libx32", "a link that package tools expect"),
];

/// Folders beneath those that look empty.
pub(crate) const COVERED: &[Shown] = &[
    shown("/usr/local/etc", "settings of programs that a person built, with what they contain"),
    shown("/usr/local/var", "data of such programs"),
];

/// Files and folders of the configuration that programs cannot do without.
pub(crate) const CONFIGURATION: &[Shown] = &[
    shown("/etc/ld.so.cache", "where libraries lie; without it starting is slow or fails"),
    shown("/etc/ld.so.conf", "where libraries lie"),
    shown("/etc/ld.so.conf.d", "where libraries lie"),
    shown("/etc/alternatives", "links from /usr/bin to the chosen program (Debian)"),
    shown("/etc/localtime", "the time zone"),
    shown("/etc/os-release", "which system this is"),
    shown("/etc/mime.types", "types of files by name"),
    shown("/etc/terminfo", "terminals"),
    shown("/etc/ssl/certs", "public certificates"),
    shown("/etc/ssl/openssl.cnf", "settings of the library, without keys"),
    shown("/etc/ssl/cert.pem", "public certificates (Alpine, Arch)"),
    shown("/etc/pki/tls/certs", "public certificates (Fedora)"),
    shown("/etc/pki/ca-trust/extracted", "public certificates (Fedora)"),
    shown("/etc/ca-certificates/extracted", "public certificates (Arch)"),
    shown("/etc/crypto-policies", "settings of libraries, without keys (Fedora)"),
    shown("/etc/fonts", "fonts, for programs that draw"),
    shown("/etc/perl", "modules that Perl looks for there"),
    shown("/etc/python3*", "settings of the interpreter's start"),
    shown("/etc/java-*", "settings without which Java does not start"),
];

/// Devices that every program may use.
pub(crate) const DEVICES: &[Shown] = &[
    shown("/dev/null", "nothing"),
    shown("/dev/zero", "zeroes"),
    shown("/dev/full", "a disk that is full"),
    shown("/dev/random", "random numbers"),
    shown("/dev/urandom", "random numbers"),
];

/// Links that every program may follow.
pub(crate) const LINKS: &[(&str, &CStr)] = &[
    ("dev/fd", c"/proc/self/fd"),
    ("dev/stdin", c"/proc/self/fd/0"),
    ("dev/stdout", c"/proc/self/fd/1"),
    ("dev/stderr", c"/proc/self/fd/2"),
    // One bounded file system for everything that is thrown away with the call.
    ("dev/shm", c"/tmp"),
    ("var/tmp", c"/tmp"),
];

/// Whether a command sees this absolute path of the host at the same place, because it lies in a
/// system folder. Links on the way are not followed: ask with a resolved path.
#[must_use]
pub fn is_system_path(path: &std::path::Path) -> bool {
    let beneath = |entry: &Shown| path.starts_with(entry.path);
    FOLDERS.iter().any(beneath) && !COVERED.iter().any(beneath)
}

/// The folder of its own that every command has where this absolute path of the host lies, so that the path
/// cannot be shown to it.
#[must_use]
pub fn taken(path: &std::path::Path) -> Option<&'static str> {
    let covered = COVERED.iter().map(|shown| shown.path);
    TAKEN.into_iter().chain(covered).find(|folder| path.starts_with(folder))
}

/// What each call puts there itself, and where the workspace stands.
const TAKEN: [&str; 5] = ["/proc", "/tmp", "/var/tmp", "/dev", WORKSPACE_MOUNT];

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

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
            let shows =
                |entry: &Shown| Path::new(private).starts_with(entry.path.trim_end_matches('*'));
            let mut shown = [FOLDERS, CONFIGURATION, DEVICES].into_iter().flatten();
            assert!(!shown.any(shows), "{private}");
        }
    }
}
