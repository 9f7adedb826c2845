//! Programs that a test writes, and has started.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Writes an executable file, with the directories above it; gives its path.
///
/// A child writes the file. If this process had it open for writing, a child that another test starts at that
/// moment would inherit the descriptor until it becomes another program, and the kernel does not start a file
/// that is open for writing (`ETXTBSY`).
///
/// # Panics
/// When it cannot be written.
pub fn write_program(path: impl Into<PathBuf>, content: impl AsRef<[u8]>) -> PathBuf {
    let path = path.into();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let source = tempfile::NamedTempFile::new().unwrap();
    fs::write(source.path(), content).unwrap();
    let written = Command::new("install")
        .args(["-m", "755", "--"])
        .args([source.path(), path.as_path()])
        .stdin(Stdio::null())
        .status();
    assert!(written.unwrap().success(), "{} was not written", path.display());
    path
}
