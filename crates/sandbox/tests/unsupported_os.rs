//! The backend of a system that has none, built on Linux by the feature `unsupported-os`.
//!
//! `cargo test -p capsule-sandbox --features unsupported-os --test unsupported_os`

#![cfg(feature = "unsupported-os")]
#![allow(clippy::unwrap_used, reason = "tests fail by panics")]

use std::path::Path;

use capsule_core::confinement::SandboxFailure;
use capsule_sandbox::{Executor, SandboxBackend as _, SandboxError};

/// Nothing can be run: there is no executor to run it with, and every way to one says why.
#[test]
fn every_command_is_refused_for_want_of_a_platform() {
    for started in [Executor::start(), Executor::start_forked()] {
        let error = started.unwrap_err();
        assert!(matches!(error, SandboxError::UnsupportedPlatform { .. }), "{error:?}");
        let failure = SandboxFailure::from(&error);
        assert!(matches!(failure, SandboxFailure::Unsupported { .. }), "{failure:?}");
        let reason = format!("Capsule has no sandbox for {} yet", std::env::consts::OS);
        assert_eq!(failure.reason(), &reason);
    }
}

/// What is asked about the sandbox has an answer, and no check passes.
#[test]
fn no_check_of_the_sandbox_passes() {
    let root = Path::new("/");
    let mut checks = Executor::self_test();
    checks.extend([Executor::try_staging(root), Executor::try_copying(root)]);
    assert_eq!(checks.len(), 3);
    for check in checks {
        assert!(!check.passed, "{check:?}");
        assert!(check.detail.contains("no sandbox"), "{check:?}");
    }
    assert!(Executor::try_overlay(root, root).is_err());
    assert!(!Executor::is_system_path(Path::new("/usr/bin")));
    assert_eq!(Executor::mount_conflict(root, true), None);
    assert_eq!(Executor::private_directory(Path::new("/tmp")), None);
}
