//! The context of a parser: the text that it reads, its place, and the problems that were found.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::language::{LanguageKey, LanguageSection};
use crate::parse::overlay;
use capsule_base::code::Code;
use capsule_base::diagnostic::{Diagnostic, LineIndex, Position};
use capsule_base::glob::foreign;
use capsule_base::yaml::{KeySpec, POLICY_DIALECT, Section, YamlNode, YamlReader};
use capsule_core::capability::{Capabilities, Capability};
use capsule_core::policy::BASE_NAME;
use capsule_core::policy::LayerKind;
use capsule_core::policy::PathPattern;
use capsule_core::policy::SourceLocation;
use capsule_core::tool::Catalogue;

/// What every part of the parser needs.
pub(super) struct Context<'c> {
    pub(super) reader: YamlReader,
    pub(super) lines: LineIndex<'c>,
    pub(super) name: &'c str,
    pub(super) home: &'c str,
    pub(super) tools: Catalogue,
    /// The texts that it is laid over, whose places are counted behind the end of its own.
    underlying: Vec<UnderlyingText<'c>>,
    /// Whose layer it is, if it is one.
    pub(super) layer: Option<LayerKind>,
}

/// A text that another one is laid over.
struct UnderlyingText<'c> {
    /// Where its places begin.
    start: usize,
    lines: LineIndex<'c>,
    name: &'c str,
}

/// The text of a policy that another one extends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExtendedText<'u> {
    /// How its place is shown.
    pub(crate) name: &'u str,
    /// The text.
    pub(crate) text: &'u str,
}

impl<'c> Context<'c> {
    pub(super) fn of(text: &'c str, name: &'c str, home: &'c str, tools: Catalogue) -> Self {
        let (reader, lines) = (YamlReader::new(&POLICY_DIALECT), LineIndex::of(text));
        Self { reader, lines, name, home, tools, underlying: Vec::new(), layer: None }
    }

    pub(super) fn source(&self, node: &YamlNode) -> SourceLocation {
        self.source_at(node.span.clone())
    }

    pub(super) fn source_at(&self, span: Range<usize>) -> SourceLocation {
        let (lines, name, start) =
            match self.underlying.iter().rfind(|text| span.start >= text.start) {
                Some(text) => (&text.lines, text.name, span.start - text.start),
                None => (&self.lines, self.name, span.start),
            };
        let Position { line, column } = lines.position(start);
        SourceLocation { at: format!("{name}:{line}:{column}"), span }
    }

    /// Whether a place is in a text that this one is laid over.
    pub(super) fn is_underlying(&self, span: &Range<usize>) -> bool {
        span.start > self.lines.text().len()
    }

    /// Lays a tree where its text stands behind those before it.
    pub(super) fn append_underlying(&mut self, tree: &mut YamlNode, text: ExtendedText<'c>) {
        let last = self.underlying.last();
        let end = last.map_or(self.lines.text().len(), |text| text.start + text.lines.text().len());
        let start = end + 1;
        overlay::shift_spans(tree, start);
        self.underlying.push(UnderlyingText {
            start,
            lines: LineIndex::of(text.text),
            name: text.name,
        });
    }

    /// A map with the keys of a section of the language and no other.
    pub(super) fn section<'n>(
        &mut self,
        node: &'n YamlNode,
        what: &str,
        section: &LanguageSection,
    ) -> Option<Section<'n>> {
        self.section_with(node, what, section.keys)
    }

    /// Likewise, with those that only the base policy has.
    pub(super) fn section_for_base<'n>(
        &mut self,
        node: &'n YamlNode,
        what: &str,
        (section, more): (&LanguageSection, &LanguageSection),
    ) -> Option<Section<'n>> {
        let more = if self.name == BASE_NAME { more.keys } else { &[] };
        self.section_with(node, what, &[section.keys, more].concat())
    }

    /// Likewise, with these keys.
    pub(super) fn section_with<'n>(
        &mut self,
        node: &'n YamlNode,
        what: &str,
        keys: &[LanguageKey],
    ) -> Option<Section<'n>> {
        let keys: Vec<KeySpec> = keys.iter().map(LanguageKey::spec).collect();
        self.reader.section(node, what, &keys)
    }

    pub(super) fn error(&mut self, code: Code, node: &YamlNode, message: impl Into<String>) {
        self.reader.problem(Diagnostic::error(code, node.span.clone(), message));
    }

    /// A list of patterns for paths.
    pub(super) fn paths(&mut self, node: &YamlNode) -> Vec<PathPattern> {
        let items = self.reader.list(node, "a list of patterns").unwrap_or_default();
        let mut patterns = Vec::new();
        for item in items {
            let Some(text) = self.reader.text(item) else { continue };
            let pattern = foreign::check(text).and_then(|()| {
                PathPattern::parse(text, self.source(item), self.home)
                    .map_err(|error| foreign::Refused::by_glob(text, error))
            });
            match pattern {
                Ok(pattern) => patterns.push(pattern),
                Err(foreign::Refused { why, hint }) => {
                    let problem = Diagnostic::error(Code::PolicyGlob, item.span.clone(), why);
                    self.reader.problem(hint.into_iter().fold(problem, Diagnostic::hint));
                }
            }
        }
        patterns
    }

    /// A list of capabilities.
    pub(super) fn capabilities(&mut self, node: &YamlNode) -> Capabilities {
        let names = Capability::WORDS;
        let items = self.reader.list(node, "a list of capabilities").unwrap_or_default();
        let words = items.iter().filter_map(|item| self.reader.keyword(item, &names));
        words.filter_map(Capability::from_word).collect()
    }

    /// The name of a rule: letters, digits, dashes and dots.
    pub(super) fn id(&mut self, node: &YamlNode) -> Option<String> {
        let text = self.reader.name(node)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if text.is_empty() || !text.chars().all(plain) {
            self.error(Code::PolicyType, node, "an id has letters, digits, `-`, `_` and `.`");
            return None;
        }
        Some(text)
    }
}
