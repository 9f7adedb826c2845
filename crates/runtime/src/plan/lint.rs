//! What a plan may say, and probably should not.

use std::collections::BTreeMap;

use capsule_core::code::Code;
use capsule_core::diagnostic::{Diagnostic, Diagnostics};
use capsule_core::tool::Shape;

use crate::plan::{Expression, Item, Plan, Reference};

/// Warns of arguments that others get to count: `$spread` of what a command printed or a server sent
/// makes as many of them as it likes, and each may be a flag.
#[must_use]
pub fn lint(plan: &Plan) -> Diagnostics {
    let shapes: BTreeMap<&str, Shape> =
        plan.steps.iter().map(|step| (step.id.as_str(), step.tool.shape)).collect();
    let mut found = Vec::new();
    for step in &plan.steps {
        for (name, expression) in &step.args {
            let mut sources = Vec::new();
            spread(expression, false, &mut sources);
            let outside = sources
                .iter()
                .find(|id| matches!(shapes.get(id.as_str()), Some(Shape::Exec | Shape::Fetch)));
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

/// The steps whose results are spread in an expression.
fn spread(expression: &Expression, within: bool, found: &mut Vec<String>) {
    match expression {
        Expression::Value(_) | Expression::Ref(Reference::Input(_)) => {}
        Expression::Ref(Reference::Step { id, .. }) => {
            if within {
                found.push(id.clone());
            }
        }
        Expression::List(items) => {
            for item in items {
                match item {
                    Item::One(inner) => spread(inner, within, found),
                    Item::Spread(inner) => spread(inner, true, found),
                }
            }
        }
        Expression::Map(entries) => {
            entries.iter().for_each(|(_, inner)| spread(inner, within, found));
        }
        Expression::Concat(parts) | Expression::Default(parts) => {
            parts.iter().for_each(|inner| spread(inner, within, found));
        }
        Expression::Url { base, query } => {
            spread(base, within, found);
            query.iter().for_each(|(_, inner)| spread(inner, within, found));
        }
        Expression::Template { text, vars } => {
            spread(text, within, found);
            vars.iter().for_each(|(_, inner)| spread(inner, within, found));
        }
        Expression::Lines(inner) | Expression::NotEmpty(inner) => spread(inner, within, found),
    }
}
