//! From events to a tree.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::Value as Json;

use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::limits;
use crate::yaml::{Dialect, syntax_errors};
use capsule_redact::excerpt;

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlNode {
    /// The bytes of the text that it takes up; for a list or map, its first ones.
    pub span: Range<usize>,
    /// The value.
    pub value: YamlValue,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum YamlValue {
    /// A single value.
    Scalar(YamlScalar),
    /// A list.
    List(Vec<YamlNode>),
    /// A map, in the order of the text; no key stands twice.
    Map(Vec<(YamlNode, YamlNode)>),
}

/// A single value, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlScalar {
    /// Its text.
    pub text: String,
    /// Whether it stands without quotes, so that it may be a number, a truth value or nothing.
    pub plain: bool,
}

impl YamlScalar {
    /// Whether it is YAML's nothing.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.plain && matches!(self.text.as_str(), "" | "~" | "null" | "Null" | "NULL")
    }

    /// The truth value, in YAML 1.2's only two words.
    #[must_use]
    pub fn boolean(&self) -> Option<bool> {
        match self.text.as_str() {
            "true" if self.plain => Some(true),
            "false" if self.plain => Some(false),
            _ => None,
        }
    }

    /// The whole number in plain decimal digits, as far as JSON has it exactly: a larger one would
    /// be judged as one number and recorded as another.
    #[must_use]
    pub fn number(&self) -> Option<i64> {
        let digits = self.text.strip_prefix('-').unwrap_or(&self.text);
        let decimal = self.plain
            && !digits.is_empty()
            && digits.bytes().all(|b| b.is_ascii_digit())
            && (digits == "0" || !digits.starts_with('0'));
        let number: Option<i64> = if decimal { self.text.parse().ok() } else { None };
        number.filter(|number| number.unsigned_abs() <= limits::EXACT_INTEGER)
    }
}

impl YamlNode {
    /// The scalar's text, whatever it could mean; none for lists, maps and nothing.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.scalar().filter(|scalar| !scalar.is_null()).map(|scalar| scalar.text.as_str())
    }

    /// The single value; none for lists and maps.
    #[must_use]
    pub const fn scalar(&self) -> Option<&YamlScalar> {
        match &self.value {
            YamlValue::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    /// Whether it is YAML's nothing.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.scalar().is_some_and(YamlScalar::is_null)
    }

    /// What kind of value it is, for a message.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match &self.value {
            YamlValue::Scalar(_) if self.is_null() => "nothing",
            YamlValue::Scalar(_) => "a single value",
            YamlValue::List(_) => "a list",
            YamlValue::Map(_) => "a map",
        }
    }

    /// The tree as JSON: whole numbers and truth values become what they are, everything else is
    /// text.
    #[must_use]
    pub fn to_json(&self) -> Json {
        match &self.value {
            YamlValue::Scalar(scalar) => match (scalar.boolean(), scalar.number()) {
                _ if scalar.is_null() => Json::Null,
                (Some(truth), _) => truth.into(),
                (_, Some(number)) => number.into(),
                _ => scalar.text.as_str().into(),
            },
            YamlValue::List(items) => items.iter().map(Self::to_json).collect(),
            YamlValue::Map(entries) => {
                let entries = entries
                    .iter()
                    .map(|(key, value)| (key.text().unwrap_or("").to_string(), value.to_json()));
                Json::Object(entries.collect())
            }
        }
    }

    /// The value of a key, if this is a map that has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        let YamlValue::Map(entries) = &self.value else { return None };
        entries.iter().find(|(key, _)| key.text() == Some(name)).map(|(_, value)| value)
    }
}

/// Parses one document. An empty text gives no tree and no error.
///
/// # Errors
/// The first thing that is not plain YAML.
pub fn parse(text: &str, dialect: &Dialect) -> Result<Option<YamlNode>, Diagnostic> {
    let places = ByteOffsets::of(text);
    let mut builder = Builder { dialect, open: Vec::new(), root: None, nodes: 0, documents: 0 };
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| {
            unreadable(text, places.byte(error.marker().index()), error.info(), dialect.syntax)
        })?;
        builder.handle_event(event, places.range(span))?;
    }
    Ok(builder.root)
}

/// A text that is no YAML. The parser notices a tab in an indentation one line early or late, and reads a
/// pattern without quotes as something else.
fn unreadable(text: &str, at: usize, info: &str, code: Code) -> Diagnostic {
    if let Some(tab) = tab(text, at, info.contains("tab")) {
        return Diagnostic::error(code, tab..tab + 1, "a tab stands in the indentation")
            .hint("indent with blanks");
    }
    let word = text.get(at..).unwrap_or_default();
    let word = word.split([',', ']', '}', '\n']).next().unwrap_or_default().trim_end();
    match word.chars().next() {
        Some(first @ ('*' | '&' | '!' | '%' | '@' | '|' | '>')) if word.len() > 1 => {
            let word = excerpt(word, limits::QUOTED_CHARS);
            let message =
                format!("`{word}` has no quotes, so that its `{first}` means something in YAML");
            Diagnostic::error(code, at..at, message).hint(format!("put it in quotes: `\"{word}\"`"))
        }
        _ => match syntax_errors::explain(info) {
            Some((message, hint)) => {
                let late = syntax_errors::is_noticed_late(info);
                let at = if late { end_of_line_before(text, at) } else { at };
                Diagnostic::error(code, at..at, message).hint(hint)
            }
            None => Diagnostic::error(code, at..at, format!("this is no YAML: {info}")),
        },
    }
}

/// The end of the last line with something in it that begins before a place.
fn end_of_line_before(text: &str, at: usize) -> usize {
    text.get(..at).map_or(at, |before| before.trim_end().len())
}

/// The first tab among what a line begins with: in the line of a place, the one before it, or the next one;
/// in any line behind it where the parser speaks of a tab.
fn tab(text: &str, at: usize, is_certain: bool) -> Option<usize> {
    let before = text.get(..at)?;
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    let mut start = before.get(..line.saturating_sub(1))?.rfind('\n').map_or(0, |end| end + 1);
    let most = if is_certain { usize::MAX } else { 3 };
    for line in text.get(start..)?.split_inclusive('\n').take(most) {
        let indentation = line.len() - line.trim_start_matches([' ', '\t']).len();
        if let Some(tab) = line.get(..indentation)?.find('\t') {
            return Some(start + tab);
        }
        start += line.len();
    }
    None
}

/// Where characters stand in bytes.
struct ByteOffsets(Option<Vec<usize>>, usize);

impl ByteOffsets {
    fn of(text: &str) -> Self {
        let offsets =
            (!text.is_ascii()).then(|| text.char_indices().map(|(byte, _)| byte).collect());
        Self(offsets, text.len())
    }

    fn byte(&self, character: usize) -> usize {
        match &self.0 {
            Some(offsets) => offsets.get(character).copied().unwrap_or(self.1),
            None => character.min(self.1),
        }
    }

    fn range(&self, span: Span) -> Range<usize> {
        let start = self.byte(span.start.index());
        start..self.byte(span.end.index()).max(start)
    }
}

/// A list or map that is not complete yet.
enum OpenContainer {
    List(Range<usize>, Vec<YamlNode>),
    /// With the names of its keys so far, and a key that waits for its value.
    Map(Range<usize>, Vec<(YamlNode, YamlNode)>, BTreeSet<String>, Option<YamlNode>),
}

struct Builder<'d> {
    dialect: &'d Dialect,
    open: Vec<OpenContainer>,
    root: Option<YamlNode>,
    nodes: usize,
    documents: usize,
}

impl Builder<'_> {
    fn handle_event(&mut self, event: Event<'_>, span: Range<usize>) -> Result<(), Diagnostic> {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(self.feature(span, "a second document"));
                }
            }
            Event::Alias(_) => return Err(self.feature(span, "an alias")),
            Event::Scalar(text, style, anchor, tag) => {
                self.plain_yaml(&span, anchor, tag.is_some())?;
                let plain = style == ScalarStyle::Plain;
                let scalar = YamlScalar { text: text.into_owned(), plain };
                self.attach(YamlNode { span, value: YamlValue::Scalar(scalar) })?;
            }
            Event::SequenceStart(anchor, tag) => {
                self.plain_yaml(&span, anchor, tag.is_some())?;
                self.check_depth(&span)?;
                self.open.push(OpenContainer::List(span, Vec::new()));
            }
            Event::MappingStart(anchor, tag) => {
                self.plain_yaml(&span, anchor, tag.is_some())?;
                self.check_depth(&span)?;
                self.open.push(OpenContainer::Map(span, Vec::new(), BTreeSet::new(), None));
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(OpenContainer::List(span, items)) => {
                    self.attach(YamlNode { span, value: YamlValue::List(items) })?;
                }
                Some(OpenContainer::Map(span, entries, ..)) => {
                    self.attach(YamlNode { span, value: YamlValue::Map(entries) })?;
                }
                None => {}
            },
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        Ok(())
    }

    /// Puts a complete value where it belongs.
    fn attach(&mut self, node: YamlNode) -> Result<(), Diagnostic> {
        self.nodes += 1;
        if self.nodes > limits::YAML_NODES {
            return Err(self.feature(node.span, "more values than a file may hold"));
        }
        let (yaml, duplicate) = (self.dialect.yaml, self.dialect.duplicate_key);
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(OpenContainer::List(_, items)) => items.push(node),
            Some(OpenContainer::Map(_, entries, names, waiting)) => match waiting.take() {
                Some(name) => entries.push((name, node)),
                None => {
                    let Some(name) = node.text() else {
                        return Err(Diagnostic::error(yaml, node.span, "a key is a single word"));
                    };
                    if name == "<<" {
                        return Err(Diagnostic::error(yaml, node.span, "merge keys are not used"));
                    }
                    if !names.insert(name.to_string()) {
                        let message =
                            format!("the key `{}` stands twice", crate::escape::line(name));
                        return Err(Diagnostic::error(duplicate, node.span, message)
                            .hint("keep one of them"));
                    }
                    *waiting = Some(node);
                }
            },
        }
        Ok(())
    }

    fn plain_yaml(&self, span: &Range<usize>, anchor: usize, tag: bool) -> Result<(), Diagnostic> {
        if anchor != 0 {
            return Err(self.feature(span.clone(), "an anchor"));
        }
        if tag {
            return Err(self.feature(span.clone(), "a tag"));
        }
        Ok(())
    }

    fn check_depth(&self, span: &Range<usize>) -> Result<(), Diagnostic> {
        if self.open.len() >= limits::YAML_DEPTH {
            return Err(self.feature(span.clone(), "nesting this deep"));
        }
        Ok(())
    }

    fn feature(&self, span: Range<usize>, what: &str) -> Diagnostic {
        Diagnostic::error(self.dialect.yaml, span, format!("{what} is not part of the language"))
            .hint("write the value out in plain YAML; a text that begins with `!`, `&` or `*` stands in quotes")
    }
}
