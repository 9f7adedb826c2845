//! A note of the lint.

use capsule_base::code::Code;
use capsule_base::diagnostic::Diagnostic;
use capsule_core::policy::SourceLocation;

/// A note on a rule.
pub(super) fn lint_note(source: &SourceLocation, message: impl Into<String>) -> Diagnostic {
    Diagnostic::warning(Code::PolicyLint, source.span.clone(), message)
}
