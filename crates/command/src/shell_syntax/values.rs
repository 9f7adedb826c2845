//! The values of variables and of substitutions are put into the words of a command.
//!
//! Before a list runs, what a program will print is not known: a placeholder is in its place. When a command is reached,
//! its real values are put in, and it is judged again with them.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::ast::{PipelineStage, Redirection, ShellWord, TextPlace, WordPiece};
use capsule_base::limits;

/// Stands for what a program will print.
pub const OUTPUT_PLACEHOLDER: &str = "(output)";

/// The value of a variable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Value {
    /// The text; a pattern of file names as long as the names are not known.
    pub pieces: Vec<WordPiece>,
    /// Whether a program printed it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_opaque: bool,
    /// Whether programs find it in their environment.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_exported: bool,
}

/// Values by names: of variables, of outputs (`(` and a number), and the status (`?`).
pub type Values = BTreeMap<String, Value>;

/// Why values cannot be put in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueProblem {
    /// The variable has no value where the command is reached.
    Unset(String),
    /// A value outside of quotes has characters that a shell would take for a pattern.
    Pattern(String),
    /// What a program printed cannot stand here: an option, the path of a stream, or text that would be hidden.
    Output(&'static str),
    /// What values make is longer than a command may be.
    TooLong,
}

impl Value {
    /// A plain text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self { pieces: ShellWord::text(text).pieces, ..Self::default() }
    }

    /// The text as it is known.
    #[must_use]
    pub fn unexpanded(&self) -> String {
        self.pieces.iter().map(WordPiece::unexpanded).collect()
    }

    /// How many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.pieces.iter().map(piece_bytes).sum::<usize>()
    }
}

impl ShellWord {
    /// The word as one text, whatever its values hold, as in an assignment. A value is that of the first map that has the
    /// name. What it takes is taken from `room`.
    ///
    /// # Errors
    /// A variable has no value, or there is no room.
    pub(crate) fn value(
        &self,
        values: &[&Values],
        room: &mut usize,
    ) -> Result<Value, ValueProblem> {
        let mut value = Value { is_opaque: self.is_opaque, ..Value::default() };
        for piece in &self.pieces {
            match piece {
                WordPiece::Variable { name, .. } => {
                    let found = find(values, name)?;
                    value.is_opaque |= found.is_opaque;
                    for piece in &found.pieces {
                        push(&mut value.pieces, piece, room)?;
                    }
                }
                other => push(&mut value.pieces, other, room)?,
            }
        }
        Ok(value)
    }

    /// The words that this one makes with its values: outside of quotes it is split at white space. What they take is
    /// taken from `room`.
    ///
    /// # Errors
    /// Says what cannot be put in.
    pub(crate) fn with_values(
        &self,
        values: &[&Values],
        room: &mut usize,
    ) -> Result<Vec<Self>, ValueProblem> {
        if !self.has_variables() {
            take(room, self.pieces.iter().map(piece_bytes).sum())?;
            return Ok([self.clone()].into());
        }
        let mut words = Vec::new();
        let begin = || Self { quoted: self.quoted, span: self.span.clone(), ..Self::default() };
        // Whether a word has begun, be it with nothing in quotes.
        let (mut word, mut has_begun) = (begin(), false);
        for piece in &self.pieces {
            let WordPiece::Variable { name, quoted } = piece else {
                push(&mut word.pieces, piece, room)?;
                has_begun = true;
                continue;
            };
            let value = find(values, name)?;
            let is_text = |piece: &WordPiece| matches!(piece, WordPiece::Text(_));
            if *quoted || !value.pieces.iter().all(is_text) {
                word.is_opaque |= value.is_opaque;
                has_begun |= *quoted || !value.pieces.is_empty();
                for piece in &value.pieces {
                    push(&mut word.pieces, piece, room)?;
                }
                continue;
            }
            let text = value.unexpanded();
            let is_blank = |c: char| matches!(c, ' ' | '\t' | '\n');
            // Where quotes around nothing stand, it would begin a word of its own.
            if text.contains(['*', '?', '[', '\\']) || self.quoted && text.contains(is_blank) {
                return Err(ValueProblem::Pattern(name.clone()));
            }
            for (index, part) in text.split(is_blank).enumerate() {
                if index > 0 && has_begun {
                    if words.len() >= limits::ARGV_WORDS {
                        return Err(ValueProblem::TooLong);
                    }
                    words.push(core::mem::replace(&mut word, begin()));
                    has_begun = false;
                }
                if !part.is_empty() {
                    push(&mut word.pieces, &WordPiece::Text(part.into()), room)?;
                    word.is_opaque |= value.is_opaque;
                    has_begun = true;
                }
            }
        }
        if has_begun || words.is_empty() && self.quoted {
            words.push(word);
        }
        Ok(words)
    }
}

/// Whether a word begins with a dash.
fn is_option(word: &ShellWord) -> bool {
    matches!(word.pieces.first(), Some(WordPiece::Text(text)) if text.starts_with('-'))
}

impl PipelineStage {
    /// The stage with its values, and with what is exported in its environment.
    ///
    /// # Errors
    /// Says what cannot be put in.
    pub fn with_values(&self, values: &Values) -> Result<Self, ValueProblem> {
        let mut stage = Self { words: Vec::new(), templates: Vec::new(), ..self.clone() };
        let mut room = limits::ARGV_BYTES;
        for word in &self.words {
            for (index, made) in word.with_values(&[values], &mut room)?.into_iter().enumerate() {
                // Only the first of several words begins with what is typed. A `--` does not help: it may be that of a
                // program which starts another one.
                let is_typed = index == 0 && is_option(word);
                if made.is_opaque && is_option(&made) && !is_typed {
                    return Err(ValueProblem::Output(
                        "begins with a dash, where it would be an option",
                    ));
                }
                if stage.words.len() >= limits::ARGV_WORDS {
                    return Err(ValueProblem::TooLong);
                }
                stage.words.push(made);
            }
        }
        let mut here_room = limits::STDIN_BYTES;
        for (place, word) in &self.templates {
            let is_here = match place {
                TextPlace::Redirect(index) => {
                    matches!(self.redirects.get(*index), Some(Redirection::Here { .. }))
                }
                TextPlace::Variable(_) => false,
            };
            let room = if is_here { &mut here_room } else { &mut room };
            let value = word.value(&[values], room)?;
            let text = value.unexpanded();
            match place {
                TextPlace::Variable(index) => {
                    if let Some((_, value)) = stage.variables.get_mut(*index) {
                        *value = text;
                    }
                }
                TextPlace::Redirect(index) => match stage.redirects.get_mut(*index) {
                    Some(Redirection::Here { text: into }) => *into = text,
                    Some(Redirection::File { path, .. } | Redirection::Input { path }) => {
                        if value.is_opaque || text.is_empty() {
                            return Err(ValueProblem::Output(
                                "would say which file a stream leads to",
                            ));
                        }
                        *path = text;
                    }
                    _ => {}
                },
            }
        }
        let exported = values.iter().filter(|(_, value)| value.is_exported);
        let is_set = |name: &str| stage.variables.iter().any(|(known, _)| known == name);
        let mut environment = Vec::new();
        for (name, value) in exported.filter(|(name, _)| !is_set(name)) {
            take(&mut room, name.len() + value.bytes())?;
            environment.push((name.clone(), value.unexpanded()));
        }
        stage.variables.splice(0..0, environment);
        Ok(stage)
    }

    /// The variables that it needs the values of.
    pub fn variable_names(&self) -> impl Iterator<Item = &str> {
        let templates = self.templates.iter().map(|(_, word)| word);
        self.words.iter().chain(templates).flat_map(ShellWord::variables)
    }
}

/// The value of a name. Line ends behind an output are left out; where it feeds a pipe, it is whole.
fn find<'v>(values: &[&'v Values], name: &str) -> Result<Cow<'v, Value>, ValueProblem> {
    let value = values.iter().find_map(|map| map.get(name));
    let value = value.ok_or_else(|| ValueProblem::Unset(name.into()))?;
    if !name.starts_with('(') {
        return Ok(Cow::Borrowed(value));
    }
    let text = value.unexpanded();
    let pieces = ShellWord::text(text.trim_end_matches('\n')).pieces;
    Ok(Cow::Owned(Value { pieces, is_opaque: value.is_opaque, is_exported: value.is_exported }))
}

/// Adds a piece, if there is room for it; two texts become one.
fn push(
    pieces: &mut Vec<WordPiece>,
    piece: &WordPiece,
    room: &mut usize,
) -> Result<(), ValueProblem> {
    take(room, piece_bytes(piece))?;
    match (pieces.last_mut(), piece) {
        (Some(WordPiece::Text(text)), WordPiece::Text(more)) => text.push_str(more),
        (Some(WordPiece::Any), WordPiece::Any) => {}
        (_, piece) => pieces.push(piece.clone()),
    }
    Ok(())
}

/// How many bytes a piece takes.
fn piece_bytes(piece: &WordPiece) -> usize {
    match piece {
        WordPiece::Text(text) => text.len(),
        _ => size_of::<WordPiece>(),
    }
}

fn take(room: &mut usize, bytes: usize) -> Result<(), ValueProblem> {
    *room = room.checked_sub(bytes).ok_or(ValueProblem::TooLong)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell_syntax::parse;

    fn stage(text: &str, values: &Values) -> Result<PipelineStage, ValueProblem> {
        let script = parse(text).unwrap();
        let last = script.elements.iter().rfind(|element| !element.pipeline.stages.is_empty());
        last.unwrap().pipeline.stages[0].with_values(values)
    }

    #[test]
    fn values_stop_before_they_make_too_much() {
        let text = "x".repeat(limits::ARGV_BYTES / 2);
        let values = Values::from([("F".into(), Value::text(&text))]);
        assert!(stage("F=x; echo \"$F\"", &values).is_ok());
        for text in [
            "F=x; echo \"$F$F$F\"",
            "F=x; echo $F $F $F",
            "F=x; A=$F$F$F echo x",
            "F=x; cat <<E\n$F$F$F\nE",
        ] {
            assert_eq!(stage(text, &values), Err(ValueProblem::TooLong), "{text:?}");
        }
    }

    #[test]
    fn an_output_is_an_option_behind_nothing() {
        let values =
            Values::from([("F".into(), Value { is_opaque: true, ..Value::text("-osrc/a.txt") })]);
        for text in ["F=x; env -- sort \"$F\"", "F=x; sort -- $F", "F=x; sort $F"] {
            let made = stage(text, &values);
            assert!(matches!(made, Err(ValueProblem::Output(_))), "{text:?}");
        }
        let values =
            Values::from([("F".into(), Value { is_opaque: true, ..Value::text("a -osrc/a.txt") })]);
        assert!(matches!(stage("F=x; sort -k$F", &values), Err(ValueProblem::Output(_))));
    }
}
