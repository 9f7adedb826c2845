//! Why a text is no command, where, and how to say it.

use alloc::string::String;
use core::fmt;

use super::ast::Span;
use super::unsupported::UnsupportedSyntax;
use capsule_base::code::Code;
use capsule_base::diagnostic::Diagnostic;
use capsule_base::escape;

/// How many characters of a line are shown on each side of what is refused.
const CONTEXT_CHARS: usize = 40;

/// A refusal that teaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxRefusal {
    /// What was met.
    pub construct: UnsupportedSyntax,
    /// Where, in bytes of the text, on borders of characters.
    pub span: Span,
    /// What is wrong: a fragment in lower case.
    pub message: String,
    /// What to do instead: a fragment in lower case.
    pub suggestion: String,
}

impl SyntaxRefusal {
    pub(super) fn of(construct: UnsupportedSyntax, span: Span) -> Self {
        Self::with_reason(construct, span, construct.message(), construct.suggestion())
    }

    pub(super) fn with_reason(
        construct: UnsupportedSyntax,
        span: Span,
        why: &str,
        instead: &str,
    ) -> Self {
        Self { construct, span, message: why.into(), suggestion: instead.into() }
    }

    pub(super) fn limit(span: Span, of: &str, most: usize) -> Self {
        let (why, construct) =
            (alloc::format!("a command has at most {most} {of}"), UnsupportedSyntax::TooMuch);
        Self::with_reason(construct, span, &why, construct.suggestion())
    }

    /// Refuses more than there may be.
    pub(super) fn check(count: usize, of: &str, most: usize, place: &Span) -> Result<(), Self> {
        if count > most { Err(Self::limit(place.clone(), of, most)) } else { Ok(()) }
    }

    /// The refusal as a problem of the text.
    #[must_use]
    pub fn diagnostic(&self) -> Diagnostic {
        Diagnostic::error(Code::ExecNotInLanguage, self.span.clone(), self.message.clone())
            .hint(self.suggestion.clone())
    }

    /// The line of the text that holds it, and a line below that underlines it. What cannot be seen
    /// is shown by its number, and of a long line only what stands around the place.
    #[must_use]
    pub fn underlined(&self, text: &str) -> String {
        let (before, behind) = text.split_at(text.floor_char_boundary(self.span.start));
        let before = before.rsplit('\n').next().unwrap_or("");
        let length = self.span.end.saturating_sub(self.span.start);
        let rest = behind.split('\n').next().unwrap_or("");
        let (marked, rest) = rest.split_at(rest.floor_char_boundary(length));
        let (skipped, before) = last_chars(before, CONTEXT_CHARS);
        let (marked, cut) = first_chars(marked, CONTEXT_CHARS);
        let (rest, more) = if cut { ("", true) } else { first_chars(rest, CONTEXT_CHARS) };
        let dots = |cut: bool| if cut { "…" } else { "" };
        let [before, marked, rest] = [before, marked, rest].map(escape::line);
        let count = |text: &str| text.chars().count();
        let head = alloc::format!("{}{before}", dots(skipped));
        let (indent, marks) = (" ".repeat(count(&head)), "^".repeat(count(&marked).max(1)));
        alloc::format!("{head}{marked}{rest}{}\n{indent}{marks}", dots(more))
    }
}

/// The first characters, and whether there are more.
fn first_chars(text: &str, most: usize) -> (&str, bool) {
    let end = text.char_indices().nth(most).map(|(at, _)| at);
    (end.and_then(|end| text.get(..end)).unwrap_or(text), end.is_some())
}

/// The last characters, and whether there are more.
fn last_chars(text: &str, most: usize) -> (bool, &str) {
    let start = text.char_indices().rev().nth(most.saturating_sub(1)).map_or(0, |(at, _)| at);
    (start > 0, text.get(start..).unwrap_or(text))
}

impl fmt::Display for SyntaxRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.suggestion)
    }
}
