//! What a command says once it is understood: a list of pipelines of stages.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use serde::{Deserialize, Serialize};

/// Where something stands in the text, in bytes. It is no part of the meaning, so it is not kept.
pub type Span = Range<usize>;

/// A command: what is run one after another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// The pipelines in the order of the text; at least one where the script was parsed.
    pub elements: Vec<ScriptElement>,
}

/// When an element runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListOperator {
    /// It is the first.
    First,
    /// `&&`: if the last one that ran ended with 0.
    And,
    /// `||`: if the last one that ran ended with something else.
    Or,
    /// `;` or a line end: in any case.
    Then,
}

/// One pipeline of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptElement {
    /// When it runs. `&&` and `||` bind alike and from the left.
    pub join: ListOperator,
    /// What runs.
    pub pipeline: Pipeline,
    /// Where it stands.
    #[serde(skip)]
    pub span: Span,
}

/// Stages that run together, each reading what the one before prints. The status is the last one's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pipeline {
    /// The stages from left to right; at least one.
    pub stages: Vec<PipelineStage>,
}

/// One program with what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelineStage {
    /// What is set in the environment of this program alone, in the order of the text; the last
    /// value of a name holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<(String, String)>,
    /// The program and its arguments; at least the program, which is plain text.
    pub words: Vec<ShellWord>,
    /// What its streams are, to be applied from left to right after the pipe.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redirects: Vec<Redirection>,
    /// Where it stands.
    #[serde(skip)]
    pub span: Span,
}

/// A word after quotes were taken away and braces were expanded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellWord {
    /// Its parts. Two texts never follow one another, nor do two `*`; an empty word has none.
    pub pieces: Vec<WordPiece>,
    /// Whether any part of it was quoted.
    #[serde(skip)]
    pub quoted: bool,
    /// Where it stands. The words that one brace makes share a place.
    #[serde(skip)]
    pub span: Span,
}

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WordPiece {
    /// These characters.
    Text(String),
    /// `*`: any characters, also none.
    Any,
    /// `**/`: any folders, also none, with the slash behind them. A component of its own, and never
    /// the last one.
    #[serde(rename = "folders")]
    Directories,
    /// `?`: one character.
    One,
    /// `[..]`: one character of those named.
    Class {
        /// Whether it is one of all others (`[!..]`).
        negated: bool,
        /// What is named, from and to; the same twice for a single character.
        ranges: Vec<(char, char)>,
    },
}

/// A stream of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StdStream {
    /// Standard output, 1.
    Out,
    /// Standard error, 2.
    Err,
}

/// What a stream is, in place of what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Redirection {
    /// `> path`, `2>> path`: a file that is written, made where it is missing.
    File {
        /// What goes there.
        stream: StdStream,
        /// The path as it is written.
        path: String,
        /// Whether it goes to the end; the file is emptied first if not.
        append: bool,
    },
    /// `2>&1`: the stream goes where the other one goes at this moment.
    #[serde(rename = "same")]
    Duplicate {
        /// What goes there.
        stream: StdStream,
        /// Where it goes.
        target: StdStream,
    },
    /// `< path`: standard input comes from a file.
    Input {
        /// The path as it is written.
        path: String,
    },
    /// A here-document or a here-string: standard input is this text, with its line end.
    Here {
        /// The text.
        text: String,
    },
}

impl ShellWord {
    /// A word that is plain text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        let pieces =
            if text.is_empty() { Vec::new() } else { [WordPiece::Text(text.into())].into() };
        Self { pieces, ..Self::default() }
    }

    /// The text of a word that stands for itself; none where it is a pattern.
    #[must_use]
    pub fn literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [WordPiece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The pieces of a word that is a pattern of file names; none where it is plain.
    ///
    /// The pattern is matched component by component, from the folder that the stage runs in, or
    /// from the root if it begins with `/`:
    ///
    /// - `/` is only ever matched by a `/` of the text, never by a wildcard or a class;
    /// - a name that begins with a dot is only matched where the component begins with that dot as
    ///   text, and `.` and `..` are never matched: patterns that could are refused by the parser;
    /// - `**/` stands for the folder that it is reached in and for every folder below it, none of them
    ///   hidden or a link;
    /// - a class holds characters by their numbers, whatever the language of the machine;
    /// - components without a wildcard are names that must exist, a `/` at the end wants a folder;
    /// - matches are in the order of their bytes.
    ///
    /// Where nothing matches, the pattern stands for itself ([`ShellWord::unexpanded`]), as in a shell.
    #[must_use]
    pub fn as_glob(&self) -> Option<&[WordPiece]> {
        if self.literal().is_some() { None } else { Some(&self.pieces) }
    }

    /// The word as a shell would hand it on unexpanded: without quotes, wildcards as they are typed.
    #[must_use]
    pub fn unexpanded(&self) -> String {
        self.pieces.iter().map(WordPiece::unexpanded).collect()
    }
}

impl WordPiece {
    pub(super) fn unexpanded(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Any => "*".into(),
            Self::Directories => "**/".into(),
            Self::One => "?".into(),
            Self::Class { negated, ranges } => {
                let mut typed = String::from(if *negated { "[!" } else { "[" });
                for (low, high) in ranges {
                    typed.push(*low);
                    if low != high {
                        typed.push('-');
                        typed.push(*high);
                    }
                }
                typed.push(']');
                typed
            }
        }
    }
}

impl Script {
    /// The same without what is only about how it was written: places and quotes. Two texts that
    /// mean the same are equal so.
    #[must_use]
    pub fn normalized(mut self) -> Self {
        for element in &mut self.elements {
            element.span = Span::default();
            for stage in &mut element.pipeline.stages {
                stage.span = Span::default();
                for word in &mut stage.words {
                    *word = ShellWord {
                        pieces: core::mem::take(&mut word.pieces),
                        ..ShellWord::default()
                    };
                }
            }
        }
        self
    }

    /// Every stage, from left to right.
    pub fn stages(&self) -> impl Iterator<Item = &PipelineStage> {
        self.elements.iter().flat_map(|element| &element.pipeline.stages)
    }
}
