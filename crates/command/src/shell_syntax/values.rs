//! The values of variables and of substitutions are put into the words of a command.
//!
//! Before a list runs, what a program will print is not known: a placeholder is in its place. When a command is reached,
//! its real values are put in, and it is judged again with them.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::ast::{PipelineStage, Redirection, ShellWord, TextPlace, WordPiece};

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
}

impl Value {
    /// A plain text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self { pieces: ShellWord::text(text).pieces, ..Self::default() }
    }

    /// What a program printed.
    #[must_use]
    pub fn output(text: &str) -> Self {
        Self { is_opaque: true, ..Self::text(text) }
    }

    /// The text as it is known.
    #[must_use]
    pub fn unexpanded(&self) -> String {
        self.pieces.iter().map(WordPiece::unexpanded).collect()
    }
}

impl ShellWord {
    /// The word as one text, whatever its values hold, as in an assignment.
    ///
    /// # Errors
    /// A variable has no value.
    pub fn value(&self, values: &Values) -> Result<Value, ValueProblem> {
        let mut value = Value::default();
        for piece in &self.pieces {
            match piece {
                WordPiece::Variable { name, .. } => {
                    let found = find(values, name)?;
                    value.is_opaque |= found.is_opaque;
                    found.pieces.into_iter().for_each(|piece| push(&mut value.pieces, piece));
                }
                other => push(&mut value.pieces, other.clone()),
            }
        }
        Ok(value)
    }

    /// The words that this one makes with its values: outside of quotes it is split at white space.
    ///
    /// # Errors
    /// Says what cannot be put in.
    pub fn with_values(&self, values: &Values) -> Result<Vec<Self>, ValueProblem> {
        if !self.has_variables() {
            return Ok([self.clone()].into());
        }
        let mut words = Vec::new();
        let begin = || Self { quoted: self.quoted, span: self.span.clone(), ..Self::default() };
        // Whether a word has begun, be it with nothing in quotes.
        let (mut word, mut has_begun) = (begin(), false);
        for piece in &self.pieces {
            let WordPiece::Variable { name, quoted } = piece else {
                push(&mut word.pieces, piece.clone());
                has_begun = true;
                continue;
            };
            let value = find(values, name)?;
            let is_text = |piece: &WordPiece| matches!(piece, WordPiece::Text(_));
            if *quoted || !value.pieces.iter().all(is_text) {
                word.is_opaque |= value.is_opaque;
                has_begun |= *quoted || !value.pieces.is_empty();
                value.pieces.into_iter().for_each(|piece| push(&mut word.pieces, piece));
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
                    words.push(core::mem::replace(&mut word, begin()));
                    has_begun = false;
                }
                if !part.is_empty() {
                    push(&mut word.pieces, WordPiece::Text(part.into()));
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

impl PipelineStage {
    /// The stage with its values, and with what is exported in its environment.
    ///
    /// # Errors
    /// Says what cannot be put in.
    pub fn with_values(&self, values: &Values) -> Result<Self, ValueProblem> {
        let mut stage = Self { words: Vec::new(), templates: Vec::new(), ..self.clone() };
        let mut ends_options = false;
        for word in &self.words {
            for made in word.with_values(values)? {
                let begins = matches!(made.pieces.first(), Some(WordPiece::Text(text)) if text.starts_with('-'));
                let is_typed = matches!(word.pieces.first(), Some(WordPiece::Text(text)) if text.starts_with('-'));
                if made.is_opaque && begins && !is_typed && !ends_options {
                    return Err(ValueProblem::Output(
                        "begins with a dash, where it would be an option",
                    ));
                }
                ends_options |= made.literal() == Some("--") && !made.is_opaque;
                stage.words.push(made);
            }
        }
        for (place, word) in &self.templates {
            let value = word.value(values)?;
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
        let exported: Vec<(String, String)> = exported
            .filter(|(name, _)| !is_set(name))
            .map(|(name, value)| (name.clone(), value.unexpanded()))
            .collect();
        stage.variables.splice(0..0, exported);
        Ok(stage)
    }

    /// The variables that it needs the values of.
    pub fn variable_names(&self) -> impl Iterator<Item = &str> {
        let templates = self.templates.iter().map(|(_, word)| word);
        self.words.iter().chain(templates).flat_map(ShellWord::variables)
    }
}

/// The value of a name. Line ends behind an output are left out; where it feeds a pipe, it is whole.
fn find(values: &Values, name: &str) -> Result<Value, ValueProblem> {
    let value = values.get(name).ok_or_else(|| ValueProblem::Unset(name.into()))?;
    if !name.starts_with('(') {
        return Ok(value.clone());
    }
    let text = value.unexpanded();
    let pieces = ShellWord::text(text.trim_end_matches('\n')).pieces;
    Ok(Value { pieces, ..value.clone() })
}

/// Adds a piece; two texts become one.
fn push(pieces: &mut Vec<WordPiece>, piece: WordPiece) {
    match (pieces.last_mut(), piece) {
        (Some(WordPiece::Text(text)), WordPiece::Text(more)) => text.push_str(&more),
        (Some(WordPiece::Any), WordPiece::Any) => {}
        (_, piece) => pieces.push(piece),
    }
}
