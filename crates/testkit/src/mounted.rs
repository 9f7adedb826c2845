//! File systems that do less than the usual ones, or compare names otherwise, mounted through FUSE.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted file system, for as long as this lives.
#[derive(Debug)]
pub struct Mounted {
    place: PathBuf,
}

impl Mounted {
    /// Another view of a directory, through a file system that cannot rename without replacing, nor exchange.
    ///
    /// # Panics
    /// It cannot be mounted here.
    #[must_use]
    pub fn plain(from: &Path, place: &Path) -> Self {
        fs::create_dir_all(place).unwrap();
        run(Command::new("bindfs").arg(from).arg(place), "bindfs");
        Self { place: place.to_owned() }
    }

    /// An empty file system that takes names in another case for the same (NTFS), in an image beside `place`.
    ///
    /// # Panics
    /// It cannot be made or mounted here.
    #[must_use]
    pub fn folding(place: &Path) -> Self {
        fs::create_dir_all(place).unwrap();
        let image = place.with_extension("ntfs");
        File::create(&image).unwrap().set_len(16 << 20).unwrap();
        run(Command::new("mkntfs").args(["-F", "-Q", "-q"]).arg(&image), "ntfs-3g");
        let options = "ignore_case,big_writes";
        run(Command::new("lowntfs-3g").args(["-o", options]).arg(&image).arg(place), "ntfs-3g");
        Self { place: place.to_owned() }
    }
}

/// Runs a program that has to succeed.
fn run(command: &mut Command, package: &str) {
    assert!(Path::new("/dev/fuse").exists(), "the test needs FUSE, and there is no /dev/fuse");
    let ran = command.output().unwrap_or_else(|error| {
        panic!("{command:?}: {error}; the test needs the package `{package}`")
    });
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{command:?}: {said}");
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = |program: &str, words: &[&str]| {
            let ran = Command::new(program).args(words).arg(&self.place).output();
            ran.is_ok_and(|output| output.status.success())
        };
        let _ = unmounted("umount", &["-l"]) || unmounted("fusermount3", &["-u", "-z"]);
    }
}
