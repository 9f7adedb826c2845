//! What a plan may say, and probably should not.

use std::collections::BTreeMap;

use capsule_base::code::Code;
use capsule_base::diagnostic::{Diagnostic, Diagnostics};
use capsule_core::tool::ToolShape;

use crate::plan::{Plan, Reference};

/// Warns of arguments that others get to count: `$spread` of what a command printed or a server sent
/// makes as many of them as it likes, and each may be a flag.
#[must_use]
pub fn lint(plan: &Plan) -> Diagnostics {
    let shapes: BTreeMap<&str, ToolShape> =
        plan.steps.iter().map(|step| (step.id.as_str(), step.tool.shape)).collect();
    let mut found = Vec::new();
    for step in &plan.steps {
        for (name, expression) in &step.args {
            let mut sources = Vec::new();
            expression.visit_references(false, &mut |reference, spread| {
                if let (Reference::Step { id, .. }, true) = (reference, spread) {
                    sources.push(id.clone());
                }
            });
            let outside = sources.iter().find(|id| {
                matches!(shapes.get(id.as_str()), Some(ToolShape::Exec | ToolShape::Fetch))
            });
            if let Some(id) = outside {
                let message =
                    format!("`{name}` spreads what `{id}` gave: it says how many there are");
                let problem = Diagnostic::warning(Code::PlanFunction, step.span.clone(), message);
                found.push(problem.hint("a `$ref` fills exactly one place; so does `$concat`"));
            }
        }
    }
    found
}
