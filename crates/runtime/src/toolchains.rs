//! The toolchains that a policy names, looked for on this machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use capsule_base::code::Code;
use capsule_base::diagnostic::{Diagnostic, Diagnostics, Severity};
use capsule_core::policy::{BASE_NAME, BindRoots, Policy};
use capsule_policy::{PolicyDraft, builtin_text};
use capsule_tools::{
    CATALOGUE, FoundToolchain, ToolchainContext, ToolchainDirectory, Toolchains, WELL_KNOWN,
};

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
    let runtime_files: Vec<PathBuf> = roots.runtime_files.iter().map(PathBuf::from).collect();
    let context = ToolchainContext {
        home,
        variable: &variable,
        workspace: Some(Path::new(&roots.workspace)),
        runtime_files: &runtime_files,
        allows_paths: roots.may_drop_base_rules,
        base_policy: &|| base_policy(home),
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
        runtime_files: &[],
        allows_paths: true,
        base_policy: &|| base_policy(home),
    };
    Toolchains::survey(&context)
}

/// The directories and files of every known toolchain that is on this machine.
#[must_use]
pub fn well_known_toolchains(home: &Path, workspace: Option<&Path>) -> Vec<ToolchainDirectory> {
    let context = ToolchainContext {
        home,
        variable: &variable,
        workspace,
        runtime_files: &[],
        allows_paths: false,
        base_policy: &|| base_policy(home),
    };
    let (toolchains, _) = Toolchains::resolve(&[(WELL_KNOWN.to_owned(), 0..0)], &context);
    toolchains.directories().to_vec()
}

/// The base policy alone, bound to the root of the file system.
fn base_policy(home: &Path) -> Option<Policy> {
    let home = home.to_string_lossy();
    let (draft, _) = PolicyDraft::parse(builtin_text("base")?, BASE_NAME, &home, CATALOGUE).ok()?;
    let roots = BindRoots { workspace: "/".to_owned(), ..BindRoots::default() };
    draft.bind(&roots, &home, CATALOGUE).ok()
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}
