//! The binary as it is shipped, and as it is measured.

use std::path::Path;
use std::process::Command;

use crate::{TaskResult, cargo};

/// How the compiler names a machine on which the program can hold the C library in itself.
const STATIC_TARGET: &str = "linux-gnu";

/// What makes it hold the library, and keeps what has to be adjusted at every start small.
const STATIC_FLAGS: [&str; 3] =
    ["--", "-Ctarget-feature=+crt-static", "-Clink-arg=-Wl,-z,pack-relative-relocs"];

/// Builds it: one file that needs no library of the machine's (ADR 33).
///
/// # Errors
/// When it does not build, or what was built does not start: a C library before 2.36 does not know the
/// compact form, and a program that holds it finds no address of its own.
pub(crate) fn build(root: &Path) -> TaskResult<()> {
    let mut build = cargo::command(root);
    build.args(["rustc", "--locked", "--profile", "dist", "--package", "capsule-cli"]);
    build.args(["--bin", "capsule"]);
    if host_target()?.ends_with(STATIC_TARGET) {
        build.args(STATIC_FLAGS);
    }
    cargo::run(&mut build)?;
    let binary = cargo::target_directory(root)?.join("dist/capsule");
    rewrite_contiguous(&binary)?;
    cargo::run(Command::new(&binary).arg("--version"))?;
    println!("{}", binary.display());
    Ok(())
}

/// Writes it anew in one piece. A linker writes page by page, and so the kernel keeps the file: until it is
/// dropped from the cache, every start maps its code in more than a hundred small steps (ADR 33).
fn rewrite_contiguous(binary: &Path) -> TaskResult<()> {
    let failed = |error: std::io::Error| format!("{}: {error}", binary.display());
    let whole = std::fs::read(binary).map_err(failed)?;
    let rights = std::fs::metadata(binary).map_err(failed)?.permissions();
    let beside = binary.with_extension("new");
    let laid = std::fs::write(&beside, whole)
        .and_then(|()| std::fs::set_permissions(&beside, rights))
        .and_then(|()| std::fs::rename(&beside, binary));
    laid.map_err(|error| {
        // Half of it is of no use to anybody; the file that was built is still there.
        let _ = std::fs::remove_file(&beside);
        failed(error)
    })
}

/// The machine that the compiler builds for.
fn host_target() -> TaskResult<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output();
    let output = output.map_err(|error| format!("rustc cannot be started: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc does not name its machine".to_owned())
}
