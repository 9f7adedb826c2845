//! Patterns where a file system takes several spellings of a name for the same.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Component, Glob, Token};
use crate::spelling::Spelling;

impl Glob {
    /// The pattern that matches the one spelling which stands for those of the paths that this one matches; none
    /// where it is this one.
    #[must_use]
    pub fn spelled(&self, spelling: Spelling) -> Option<Self> {
        let components: Vec<Component> =
            self.components.iter().map(|component| component.spelled(spelling)).collect();
        (components != self.components).then(|| Self { text: self.text.clone(), components })
    }
}

impl Token {
    /// The same, which takes the small letters of the capitals that it takes.
    fn spelled(&self) -> Self {
        let Self::Class { negated: false, ranges } = self else { return self.clone() };
        let small = |c: char| c.to_lowercase().next().unwrap_or(c);
        // What one range leaves out between two letters is of no other case.
        let both =
            ranges.iter().flat_map(|(low, high)| [(*low, *high), (small(*low), small(*high))]);
        Self::Class { negated: false, ranges: both.filter(|(low, high)| low <= high).collect() }
    }
}

impl Component {
    fn spelled(&self, spelling: Spelling) -> Self {
        match self {
            Self::AnyDepth => Self::AnyDepth,
            Self::Literal(text) => Self::Literal(spelling.name(text).into()),
            Self::Wild(tokens) => {
                let mut spelled = Vec::new();
                let mut text = String::new();
                let end = |text: &mut String, spelled: &mut Vec<Token>| {
                    spelled.extend(spelling.text(text).chars().map(Token::Char));
                    text.clear();
                };
                for token in tokens {
                    match token {
                        Token::Char(c) => text.push(*c),
                        other => {
                            end(&mut text, &mut spelled);
                            spelled.push(other.spelled());
                        }
                    }
                }
                end(&mut text, &mut spelled);
                Self::Wild(spelled)
            }
        }
    }
}
