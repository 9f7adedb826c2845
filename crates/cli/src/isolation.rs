//! Whether Capsule itself runs apart from the machine of its user: in a sandbox, a container or a virtual machine.
//!
//! Only what can be known counts. A machine that says nothing is taken for the user's (APR-10).

use std::fs;
use std::path::Path;

/// Files and directories that only such a place has, and which one it is.
const MARKS: &[(&str, &str)] = &[
    ("/run/capsule/bin", "a sandbox of `capsule sandbox`"),
    ("/run/capsule/lease", "a container of `capsule sandbox`"),
    ("/.dockerenv", "a container of Docker"),
    ("/run/.containerenv", "a container of Podman"),
    ("/run/systemd/container", "a container"),
    ("/dev/lxd/sock", "a container of LXD"),
];

/// The place that Capsule itself is isolated in; none where it is the machine itself, or where that is not known.
pub(crate) fn isolation() -> Option<&'static str> {
    let mark = MARKS.iter().find(|(path, _)| Path::new(path).exists());
    let of_processors = || {
        let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        is_virtual(&text).then_some("a virtual machine")
    };
    mark.map(|(_, place)| *place).or_else(of_processors)
}

/// Whether processors say that they are those of a virtual machine.
fn is_virtual(text: &str) -> bool {
    let flags = text.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unknown_is_no_isolation() {
        for (text, expected) in [
            ("processor\t: 0\nflags\t\t: fpu hypervisor lahf_lm\n", true),
            ("processor\t: 0\nflags\t\t: fpu vme\nbugs\t: hypervisor\n", false),
            ("", false),
        ] {
            assert_eq!(is_virtual(text), expected, "{text}");
        }
    }
}
