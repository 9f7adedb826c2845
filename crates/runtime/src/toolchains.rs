//! The toolchains that a policy names, looked for on this machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use capsule_base::code::Code;
use capsule_base::diagnostic::{Diagnostic, Diagnostics, Severity};
use capsule_core::policy::{BindRoots, Policy};
use capsule_tools::{FoundToolchain, ToolchainContext, Toolchains};

/// Looks for the toolchains of a policy. One that is not there becomes a warning.
///
/// # Errors
/// Names each entry by which nothing runs.
pub(crate) fn resolve(
    policy: &Policy,
    (roots, home): (&BindRoots, &Path),
    warnings: &mut Diagnostics,
) -> Result<Toolchains, Diagnostics> {
    if policy.toolchains.is_empty() {
        return Ok(Toolchains::default());
    }
    let own_files: Vec<PathBuf> = roots.runtime_files.iter().map(PathBuf::from).collect();
    let context = ToolchainContext {
        home,
        variable: &variable,
        workspace: Some(Path::new(&roots.workspace)),
        own_files: &own_files,
        allows_paths: roots.may_drop_base_rules,
    };
    let (toolchains, problems) = Toolchains::resolve(&policy.toolchains, &context);
    let mut errors = Diagnostics::new();
    for problem in problems {
        let (span, message) = (problem.span, problem.message);
        let diagnostic = Diagnostic::error(Code::PolicyToolchain, span, message).hint(problem.hint);
        match problem.is_error {
            true => errors.push(diagnostic),
            false => warnings.push(Diagnostic { severity: Severity::Warning, ..diagnostic }),
        }
    }
    if errors.is_empty() { Ok(toolchains) } else { Err(errors) }
}

/// Every known toolchain that is on this machine, and what of it a policy would show.
#[must_use]
pub fn survey_toolchains(home: &Path, workspace: Option<&Path>) -> Vec<FoundToolchain> {
    let context = ToolchainContext {
        home,
        variable: &variable,
        workspace,
        own_files: &[],
        allows_paths: true,
    };
    Toolchains::survey(&context)
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}
