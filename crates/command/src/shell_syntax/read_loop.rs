//! `while read -r NAME ..; do LIST; done < FILE`, and the same behind a pipe: the list runs once for each line.
//!
//! What is read is read whole before the first line is used, so that programs in the list find nothing left of it on
//! their standard input.

use alloc::string::String;
use alloc::vec::{IntoIter, Vec};
use core::iter::Peekable;

use super::ast::{ElementKind, GroupScope, ListOperator, PipelineStage, Span, TextPlace, enter};
use super::parser::{Parser, ends_command};
use super::refusal::SyntaxRefusal;
use super::reserved_words::is_assignable;
use super::tokens::{CharKind, Token, Unit, is_bare};
use super::unsupported::UnsupportedSyntax;

/// What `read` is told.
pub(super) struct ReadCommand {
    names: Vec<String>,
    /// What parts the fields of a line; white space if it is not said.
    separators: Option<String>,
    /// Whether a last line without a line end counts: `|| [ -n "$NAME" ]`.
    keeps_last: bool,
}

/// The name of fields that are not looked at. A shell has another value for `$_`, which stays refused.
const UNUSED: &str = "_";

/// The value of `IFS=VALUE`, where it is plain text.
fn separators(units: &[Unit]) -> Option<String> {
    let (_, value) = units.split_at_checked(4).filter(|(name, _)| is_bare(name, "IFS="))?;
    let is_mark = |unit: &&Unit| unit.kind != CharKind::Quote;
    value.iter().filter(is_mark).map(|unit| unit.char()).collect()
}

/// The name, where a word is `"$NAME"`.
fn variable(units: &[Unit]) -> Option<String> {
    let mut units = units.iter().filter(|unit| unit.kind != CharKind::Quote);
    let (first, last) = (units.next()?, units.next_back()?);
    let is_variable = matches!(first.kind, CharKind::Variable { .. });
    let is_end = matches!(last.kind, CharKind::VariableEnd);
    (is_variable && is_end).then(|| units.filter_map(|unit| unit.char()).collect())
}

/// The words that come next.
fn take_words(tokens: &mut Peekable<IntoIter<(Token, Span)>>) -> Vec<Vec<Unit>> {
    let mut words = Vec::new();
    while let Some((Token::Word(units), _)) =
        tokens.next_if(|(token, _)| matches!(token, Token::Word(_)))
    {
        words.push(units);
    }
    words
}

impl Parser {
    /// Takes `read -r NAME ..` up to the `do` behind it, if that comes next.
    ///
    /// # Errors
    /// A `read` without `-r`, which takes backslashes for something.
    pub(super) fn take_read(&mut self) -> Result<Option<ReadCommand>, SyntaxRefusal> {
        let place = self.place();
        let mut rest = self.tokens.clone();
        let words = take_words(&mut rest);
        let separators = words.first().and_then(|units| separators(units));
        let words = words.get(usize::from(separators.is_some())..).unwrap_or_default();
        let Some((read, words)) = words.split_first() else { return Ok(None) };
        if !is_bare(read, "read") {
            return Ok(None);
        }
        let (is_raw, words) = match words {
            [option, words @ ..] if is_bare(option, "-r") => (true, words),
            words => (false, words),
        };
        let plain = |units: &Vec<Unit>| units.iter().map(|unit| unit.bare()).collect();
        let names: Option<Vec<String>> = words.iter().map(plain).collect();
        let names =
            names.filter(|names| names.iter().all(|name| name == UNUSED || is_assignable(name)));
        let Some(names) = names.filter(|names| is_raw && !names.is_empty()) else {
            let why = "only `read -r NAME ..` is known here";
            let hint = "write `while read -r NAME; do COMMANDS; done < FILE`";
            return Err(SyntaxRefusal::with_reason(UnsupportedSyntax::Builtin, place, why, hint));
        };
        let has_test = rest.next_if(|(token, _)| matches!(token, Token::Or)).is_some();
        let tests = if has_test { take_words(&mut rest) } else { Vec::new() };
        let keeps_last = match tests.as_slice() {
            [] => false,
            [open, is_set, value, close]
                if is_bare(open, "[")
                    && is_bare(is_set, "-n")
                    && is_bare(close, "]")
                    && variable(value) == names.first().cloned() =>
            {
                true
            }
            _ => return Ok(None),
        };
        if rest.next_if(ends_command).is_none() {
            return Ok(None);
        }
        self.tokens = rest;
        self.skip_lines();
        Ok(Some(ReadCommand { names, separators, keeps_last }))
    }

    /// A loop over the lines of what its redirection names. Gives where it begins behind what reads the file.
    pub(super) fn loop_over_file(
        &mut self,
        read: ReadCommand,
        place: &Span,
    ) -> Result<usize, SyntaxRefusal> {
        let start = self.next_index();
        let output = self.loop_over_lines(read, place)?;
        let input = self.tokens.next_if(
            |(token, _)| matches!(token, Token::Redirect(redirect, _) if redirect.is_input()),
        );
        let Some((Token::Redirect(redirect, units), span)) = input else {
            let why = "nothing says what this loop reads";
            let hint = "write `done < FILE`, or `COMMAND | while read -r NAME; do ..`";
            let construct = UnsupportedSyntax::Builtin;
            return Err(SyntaxRefusal::with_reason(construct, place.clone(), why, hint));
        };
        let mut templates = Vec::new();
        if !units.is_empty() {
            self.check_names(&units)?;
            let word = super::wildcards::parse_template(&units, span)?;
            templates.push((TextPlace::Redirect(0), word));
        }
        let redirects = [redirect].into();
        let stage = PipelineStage { redirects, templates, ..PipelineStage::of(["cat"], place) };
        let behind = self.next_index();
        self.captures(&stage)?;
        self.begin_capture(place)?;
        self.emit_run([stage].into(), true, place.clone())?;
        let end = self.end_capture(output, place)?;
        if let Some(element) = self.elements.get_mut(end) {
            element.is_checked = true;
        }
        // A file that cannot be read is a failure of the loop.
        let fails = self.jump(ListOperator::Or, place)?;
        let body = self.move_to_front(start, behind);
        self.land(&[fails - (behind - start)]);
        Ok(body)
    }

    /// A loop over the lines that the stages print. Gives where it begins behind them.
    pub(super) fn loop_over_output(
        &mut self,
        stages: Vec<PipelineStage>,
        place: &Span,
    ) -> Result<usize, SyntaxRefusal> {
        let read = self.take_read()?;
        let Some(read) = read.filter(|_| !self.fails_with_pipes()) else {
            return Err(SyntaxRefusal::of(UnsupportedSyntax::Group, place.clone()));
        };
        self.groups += 1;
        self.emit(enter(false, GroupScope::Subshell), place.clone())?;
        let start = self.next_index();
        let output = self.loop_over_lines(read, place)?;
        let behind = self.next_index();
        self.begin_capture(place)?;
        self.run_stages(stages, None)?;
        self.end_capture(output, place)?;
        let body = self.move_to_front(start, behind);
        self.groups -= 1;
        self.leave(place).map(|()| body)
    }

    /// The loop itself, and the name under which it finds what it reads.
    fn loop_over_lines(
        &mut self,
        read: ReadCommand,
        place: &Span,
    ) -> Result<String, SyntaxRefusal> {
        let number = self.number();
        let output = alloc::format!("|{number}");
        let ReadCommand { names, separators, keeps_last } = read;
        let lines = ElementKind::Lines { number, name: output.clone(), keeps_last };
        self.emit(lines, place.clone())?;
        self.names.extend(names.iter().filter(|name| *name != UNUSED).cloned());
        self.begin_loop(number, place)?;
        let each = ElementKind::EachLine { number, names, separators, end: 0 };
        let leaves = self.emit(each, place.clone())?;
        self.end_loop(leaves, place)?;
        Ok(output)
    }

    fn begin_capture(&mut self, place: &Span) -> Result<(), SyntaxRefusal> {
        self.captured += 1;
        self.emit(enter(true, GroupScope::Subshell), place.clone()).map(drop)
    }

    fn end_capture(&mut self, name: String, place: &Span) -> Result<usize, SyntaxRefusal> {
        self.captured -= 1;
        self.emit(ElementKind::Leave(Some(name)), place.clone())
    }

    /// Has the elements from `behind` on run before those from `start` on. Gives where these begin then.
    pub(super) fn move_to_front(&mut self, start: usize, behind: usize) -> usize {
        let (first, second) = (behind - start, self.next_index() - behind);
        let moved = |index: usize| index + if index >= start { second } else { 0 };
        for (at, element) in self.elements.iter_mut().enumerate().skip(start) {
            let to = |index: usize| if at < behind { moved(index) } else { index - first };
            element.otherwise = to(element.otherwise);
            if let Some(index) = element.kind.target_mut() {
                *index = if *index == 0 { 0 } else { to(*index) };
            }
        }
        if let Some(rows) = self.elements.get_mut(start..) {
            rows.rotate_left(first);
        }
        for frame in &mut self.loops {
            frame.breaks.iter_mut().for_each(|index| *index = moved(*index));
        }
        start + second
    }
}

/// The fields of a line: as many as there are names, the last with all that is left.
pub(crate) fn fields(line: &str, separators: Option<&str>, count: usize) -> Vec<String> {
    let separators = separators.unwrap_or(" \t\n");
    let is_blank = |c: char| matches!(c, ' ' | '\t' | '\n') && separators.contains(c);
    let mut rest = line.trim_matches(is_blank);
    let mut found = Vec::new();
    while found.len() < count {
        let end = rest.find(|c| separators.contains(c)).unwrap_or(rest.len());
        let (field, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let behind = behind.trim_start_matches(is_blank);
        let behind = behind.strip_prefix(|c| separators.contains(c)).unwrap_or(behind);
        let behind = behind.trim_start_matches(is_blank);
        let is_last = found.len() + 1 == count;
        found.push(if is_last && !behind.is_empty() { rest } else { field }.into());
        rest = behind;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `read -r` of bash 5.2 splits these lines.
    #[test]
    fn lines_are_split_as_bash_splits_them() {
        for (line, separators, count, expected) in [
            ("  a b  c ", None, 1, "a b  c"),
            ("  a b  c ", None, 2, "a|b  c"),
            ("a", None, 3, "a||"),
            ("  a ", Some(""), 1, "  a "),
            ("a=b=c", Some("="), 2, "a|b=c"),
            ("a:b:", Some(":"), 2, "a|b"),
            ("a:b:c:", Some(":"), 2, "a|b:c:"),
            ("a::b", Some(":"), 3, "a||b"),
            ("a , b", Some(", "), 2, "a|b"),
            ("", None, 2, "|"),
        ] {
            assert_eq!(fields(line, separators, count).join("|"), expected, "{line:?} {count}");
        }
    }
}
