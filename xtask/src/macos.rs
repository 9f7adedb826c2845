//! Type-checks the binary for macOS, on a machine that is none.
//!
//! The standard library of those targets is built from its sources, by a compiler that has them: the packages
//! `rustc-web`, `cargo-web` and `rust-web-src` of Debian, or another toolchain with `rust-src`. The C library
//! of SQLite takes a C compiler for the target, such as `zig cc` (`ziglang` from PyPI). Nothing of what is
//! built can be run here.

use std::path::Path;
use std::process::Command;

use crate::{TaskResult, cargo};

/// The two kinds of processors of a Mac.
const TARGETS: [&str; 2] = ["aarch64-apple-darwin", "x86_64-apple-darwin"];

/// Where Debian's compiler is, unless another place is named.
const TOOLCHAIN: &str = "/usr";

/// Checks both targets.
///
/// # Errors
/// When no such compiler is there, or the binary does not compile.
pub(crate) fn check(root: &Path, options: &[&str]) -> TaskResult<()> {
    let toolchain = match options {
        [] => TOOLCHAIN,
        ["--toolchain", toolchain] => toolchain,
        _ => return Err("only `--toolchain DIRECTORY` is known".into()),
    };
    let bin = Path::new(toolchain).join("bin");
    let sources = Path::new(toolchain).join("lib/rustlib/src/rust/library/std");
    if !bin.join("cargo").is_file() || !sources.is_dir() {
        return Err(format!(
            "{toolchain} has no cargo with the sources of the standard library: install `rustc-web`, \
             `cargo-web` and `rust-web-src`, or name a toolchain with `--toolchain`"
        ));
    }
    // In a directory of its own: the compiler is another one.
    let built = cargo::target_directory(root)?.join("macos");
    for target in TARGETS {
        let mut check = Command::new(bin.join("cargo"));
        check.current_dir(root).env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
        check.env("RUSTC", bin.join("rustc")).env("RUSTC_BOOTSTRAP", "1");
        check.env("CARGO_TARGET_DIR", &built).env_remove("CARGO_MANIFEST_DIR");
        check.args(["check", "--quiet", "--locked", "--package", "capsule-cli"]);
        check.args(["-Z", "build-std=std,panic_abort", "--target", target]);
        cargo::run(&mut check)?;
        println!("{target}: compiles");
    }
    Ok(())
}
