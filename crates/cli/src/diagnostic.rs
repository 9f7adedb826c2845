//! Shows what is wrong with a text, with the text under it.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use capsule_base::diagnostic::{Diagnostic, Diagnostics, Position, Severity};
use capsule_base::escape;
use capsule_policy::SourceText;
use serde_json::{Value, json};

use crate::screen::Screen;

/// Every problem, each with its place underlined.
pub(crate) fn render(text: &SourceText, problems: &Diagnostics, screen: &Screen) -> String {
    let renderer = if screen.has_color() { Renderer::styled() } else { Renderer::plain() };
    let shown: Vec<String> =
        problems.iter().map(|problem| render_one(text, problem, &renderer)).collect();
    shown.join("\n\n")
}

fn render_one(text: &SourceText, problem: &Diagnostic, renderer: &Renderer) -> String {
    let level = match problem.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let message = escape::line(&problem.message).into_owned();
    let title = level.primary_title(message).id(problem.code.slug());
    // Characters that would move the cursor stay out of the quoted lines; a replacement of the same
    // size in bytes keeps every place where it is.
    let source: String = text
        .text
        .chars()
        .flat_map(|c| {
            let hostile = escape::is_hostile(c) && !matches!(c, '\n' | '\t');
            std::iter::repeat_n(
                if hostile { '?' } else { c },
                if hostile { c.len_utf8() } else { 1 },
            )
        })
        .collect();
    let end = problem.span.end.min(source.len()).max(problem.span.start.min(source.len()));
    let start = problem.span.start.min(end);
    let snippet = Snippet::source(source)
        .path(text.name.clone())
        .annotation(AnnotationKind::Primary.span(start..end));
    let group = title.element(snippet);
    let group = match &problem.hint {
        Some(hint) => group.element(Level::HELP.message(escape::line(hint).into_owned())),
        None => group,
    };
    renderer.render(&[group])
}

/// Every problem as JSON.
pub(crate) fn to_json(text: &SourceText, problems: &Diagnostics) -> Value {
    problems
        .iter()
        .map(|problem| {
            let Position { line, column } = Position::of(&text.text, problem.span.start);
            json!({
                "code": problem.code,
                "severity": match problem.severity {
                    Severity::Error => "error",
                    Severity::Warning => "warning",
                },
                "file": text.name,
                "line": line,
                "column": column,
                "span": [problem.span.start, problem.span.end],
                "message": problem.message,
                "hint": problem.hint,
            })
        })
        .collect()
}
