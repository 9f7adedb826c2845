//! What a command says once it is understood: a list of pipelines of stages, and between them what leads from one
//! to another.
//!
//! Loops, conditions and groups are no tree but elements that say where it goes on, so that who runs a list and who
//! looks ahead at how it may run both read one row from its beginning.

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
    /// The index of the element that is next where this one does not run.
    pub otherwise: usize,
    /// What it is.
    pub kind: ElementKind,
    /// What runs; without stages where no program does.
    pub pipeline: Pipeline,
    /// Whether a command of the text ends with it whose failure ends a list under `set -e`.
    pub is_checked: bool,
    /// Whether its output becomes words of another command.
    pub is_captured: bool,
    /// Whether the list goes on while it runs.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_background: bool,
    /// Where it stands.
    #[serde(skip)]
    pub span: Span,
}

/// What an element of a list does. Indexes are those of [`Script::elements`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ElementKind {
    /// Its pipeline runs.
    Run,
    /// A group begins.
    Enter {
        /// Whether what it prints becomes the value of a variable.
        captures: bool,
        /// What it shares with what is around it.
        scope: GroupScope,
    },
    /// The group ends. What was captured becomes the value of this variable.
    Leave(Option<String>),
    /// It goes on at another element.
    Jump(usize),
    /// The status becomes 0.
    Succeed,
    /// The status becomes 1 if it was 0, and 0 if not.
    Negate,
    /// The status is kept under a number.
    Note(usize),
    /// The status becomes the one that was kept.
    Recall(usize),
    /// A variable gets a value.
    Assign {
        /// Its name.
        name: String,
        /// What it becomes; none for one that is only exported.
        value: Option<ShellWord>,
        /// Whether programs see it.
        is_exported: bool,
        /// Whether the status stays that of a substitution in the value.
        keeps_status: bool,
    },
    /// The words that a loop goes through are kept under its number.
    Items(usize, Vec<ShellWord>),
    /// The next of them becomes the value of a variable; if there is none, the loop goes on at another element.
    Each {
        /// The number of the loop.
        number: usize,
        /// The variable.
        name: String,
        /// Where it goes on behind the last one.
        end: usize,
    },
    /// The lines of what was captured under a name are kept under the number of a loop.
    Lines {
        /// The number of the loop.
        number: usize,
        /// What they were captured under.
        name: String,
        /// Whether a last line without a line end counts.
        keeps_last: bool,
    },
    /// The fields of the next of them become the values of variables; if there is none, the loop goes on at another
    /// element.
    EachLine {
        /// The number of the loop.
        number: usize,
        /// The variables; the last one gets all that is left of a line.
        names: Vec<String>,
        /// What parts the fields; white space if it is not said.
        separators: Option<String>,
        /// Where it goes on behind the last line.
        end: usize,
    },
    /// An option of the list is switched.
    Option(ListOption, bool),
    /// The list ends, or the innermost group, with this status or the last one.
    Exit(Option<u8>),
    /// Programs are looked for in this directory first, where a virtual environment of Python has them.
    Activate(String),
}

/// What a group shares with the list that it is in: directory, variables and options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupScope {
    /// It begins with all of it and leaves nothing behind.
    Subshell,
    /// The same without `-e`, as in bash.
    Substitution,
    /// The same, but it sees exported variables alone, and neither options nor a status before.
    Shell,
}

/// What `set` can switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListOption {
    /// `-e`: a failure ends the list.
    ErrorExit,
    /// `-o pipefail`: a pipeline fails with any of its programs.
    PipeFail,
}

/// Stages that run together, each reading what the one before prints. The status is the last one's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pipeline {
    /// The stages from left to right; at least one.
    pub stages: Vec<PipelineStage>,
}

/// One program with what belongs to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Texts among variables and redirections that hold variables. Each replaces an empty text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub templates: Vec<(TextPlace, ShellWord)>,
    /// Where it stands.
    #[serde(skip)]
    pub span: Span,
}

/// A text of a stage that is none of its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TextPlace {
    /// The value of the variable with this index.
    Variable(usize),
    /// The path or the text of the redirection with this index.
    Redirect(usize),
}

/// A word after quotes were taken away and braces were expanded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellWord {
    /// Its parts. Two texts never follow one another, nor do two `*`; an empty word has none.
    pub pieces: Vec<WordPiece>,
    /// Whether a part of it is what a program printed.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_opaque: bool,
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
    /// `$NAME`, before its value is put in.
    Variable {
        /// Its name; what is no name of a variable is the output of a substitution, or the status (`?`).
        name: String,
        /// Whether the value stays one word.
        quoted: bool,
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

impl PipelineStage {
    /// A program with plain words.
    pub(super) fn of<const N: usize>(words: [&str; N], span: &Span) -> Self {
        let words = words.map(ShellWord::text).into();
        Self { words, span: span.clone(), ..Self::default() }
    }

    /// Puts a redirection before its others, and the word that its empty text stands for.
    pub(super) fn redirect_first(&mut self, redirect: Redirection, text: Option<ShellWord>) {
        self.redirects.insert(0, redirect);
        for (place, _) in &mut self.templates {
            if let TextPlace::Redirect(index) = place {
                *index += 1;
            }
        }
        self.templates.extend(text.map(|text| (TextPlace::Redirect(0), text)));
    }
}

impl Redirection {
    /// The stream that it leads somewhere; none where it is what the program reads.
    pub(super) const fn stream(&self) -> Option<StdStream> {
        match self {
            Self::File { stream, .. } | Self::Duplicate { stream, .. } => Some(*stream),
            Self::Input { .. } | Self::Here { .. } => None,
        }
    }

    /// Whether it is what the program reads.
    #[must_use]
    pub const fn is_input(&self) -> bool {
        self.stream().is_none()
    }
}

impl ShellWord {
    /// A word that is plain text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        let pieces =
            if text.is_empty() { Vec::new() } else { [WordPiece::Text(text.into())].into() };
        Self { pieces, ..Self::default() }
    }

    /// A word that is the value of a variable, whatever that holds.
    pub(super) fn value_of(name: &str) -> Self {
        let pieces = [WordPiece::Variable { name: name.into(), quoted: true }].into();
        Self { pieces, quoted: true, ..Self::default() }
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
        let is_wild = |piece: &WordPiece| !matches!(piece, WordPiece::Text(_));
        if self.has_variables() || !self.pieces.iter().any(is_wild) {
            None
        } else {
            Some(&self.pieces)
        }
    }

    /// The variables whose values are still to be put in, in their order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            WordPiece::Variable { name, .. } => Some(name.as_str()),
            _ => None,
        })
    }

    /// Whether values are still to be put in.
    #[must_use]
    pub fn has_variables(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, WordPiece::Variable { .. }))
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
            Self::Variable { name, .. } => alloc::format!("${{{name}}}"),
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

/// The beginning of a group.
pub(super) const fn enter(captures: bool, scope: GroupScope) -> ElementKind {
    ElementKind::Enter { captures, scope }
}

impl ElementKind {
    /// The index of the element at which it may go on.
    pub(super) const fn target_mut(&mut self) -> Option<&mut usize> {
        match self {
            Self::Jump(to) | Self::Each { end: to, .. } | Self::EachLine { end: to, .. } => {
                Some(to)
            }
            _ => None,
        }
    }
}

impl ScriptElement {
    /// An element that always runs, the one with this index.
    pub(super) const fn new(kind: ElementKind, index: usize, span: Span) -> Self {
        let pipeline = Pipeline { stages: Vec::new() };
        let (join, otherwise) = (ListOperator::Then, index + 1);
        let (is_checked, is_captured, is_background) = (false, false, false);
        Self { join, otherwise, kind, pipeline, is_checked, is_captured, is_background, span }
    }

    /// Has an element of another script be one of this: its indexes begin at `base`, its numbers at `first`.
    pub(super) fn renumber(&mut self, base: usize, first: usize) {
        self.otherwise += base;
        if let Some(to) = self.kind.target_mut() {
            *to += base;
        }
        let rename = |name: &mut String| match name.chars().next() {
            Some('(') => *name = alloc::format!("({first}.{}", name.trim_start_matches('(')),
            Some(mark @ ('|' | '*')) => {
                let number: usize = name.trim_start_matches(mark).parse().unwrap_or(0);
                *name = alloc::format!("{mark}{}", first + number);
            }
            _ => {}
        };
        match &mut self.kind {
            ElementKind::Note(number)
            | ElementKind::Recall(number)
            | ElementKind::Items(number, _)
            | ElementKind::Each { number, .. }
            | ElementKind::EachLine { number, .. } => *number += first,
            ElementKind::Lines { number, name, .. } => {
                *number += first;
                rename(name);
            }
            ElementKind::Leave(Some(name)) | ElementKind::Assign { name, .. } => rename(name),
            _ => {}
        }
        let words = match &mut self.kind {
            ElementKind::Assign { value, .. } => value.as_mut_slice(),
            ElementKind::Items(_, words) => words.as_mut_slice(),
            _ => &mut [],
        };
        let stages = self.pipeline.stages.iter_mut();
        let of_stages = stages.flat_map(|stage| {
            stage.words.iter_mut().chain(stage.templates.iter_mut().map(|(_, word)| word))
        });
        for word in words.iter_mut().chain(of_stages) {
            for piece in &mut word.pieces {
                if let WordPiece::Variable { name, .. } = piece {
                    rename(name);
                }
            }
        }
    }
}

impl Script {
    /// Whether it is one pipeline and nothing else.
    #[must_use]
    pub fn is_single(&self) -> bool {
        matches!(self.elements.as_slice(), [one] if one.kind == ElementKind::Run)
    }

    /// Every stage, from left to right.
    pub fn stages(&self) -> impl Iterator<Item = &PipelineStage> {
        self.elements.iter().flat_map(|element| &element.pipeline.stages)
    }
}
