//! From a tree to typed values, collecting every problem on the way.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::escape;
use crate::limits;
use crate::suggestion::closest;
use crate::units;
use crate::yaml::{YamlNode, YamlScalar, YamlValue};

/// The codes of one language's problems.
#[derive(Debug)]
pub struct Dialect {
    /// Not YAML.
    pub syntax: Code,
    /// YAML, but not plain.
    pub yaml: Code,
    /// A key stands twice.
    pub duplicate_key: Code,
    /// There is no such key.
    pub unknown_key: Code,
    /// The key is known and not enforced yet.
    pub not_yet: Code,
    /// A key is needed.
    pub missing_key: Code,
    /// A value of another kind.
    pub wrong_type: Code,
    /// A word that is not one of those known.
    pub unknown_value: Code,
    /// A size or duration without its unit.
    pub unit: Code,
}

/// The codes of the policy language, in which specifications of programs are written, too.
pub static POLICY_DIALECT: Dialect = Dialect {
    syntax: Code::PolicySyntax,
    yaml: Code::PolicyYaml,
    duplicate_key: Code::PolicyDuplicateKey,
    unknown_key: Code::PolicyUnknownKey,
    not_yet: Code::PolicyNotYetSupported,
    missing_key: Code::PolicyMissingKey,
    wrong_type: Code::PolicyType,
    unknown_value: Code::PolicyValue,
    unit: Code::PolicyUnit,
};

/// A key of a section.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    /// Its name.
    pub name: &'static str,
    /// Whether this build enforces it.
    pub supported: bool,
}

/// A key that this build enforces.
#[must_use]
pub const fn key(name: &'static str) -> KeySpec {
    KeySpec { name, supported: true }
}

/// A key that the language has and this build does not enforce yet: it is refused, never ignored.
#[must_use]
pub const fn unsupported_key(name: &'static str) -> KeySpec {
    KeySpec { name, supported: false }
}

/// Reads values and collects problems.
#[derive(Debug)]
pub struct YamlReader {
    dialect: &'static Dialect,
    /// The problems found so far, in the order found.
    pub problems: Diagnostics,
}

/// A map whose keys were checked.
#[derive(Clone, Debug)]
pub struct Section<'n> {
    /// Where it stands.
    pub span: Range<usize>,
    entries: &'n [(YamlNode, YamlNode)],
}

impl<'n> Section<'n> {
    /// The value of a key.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'n YamlNode> {
        self.entries.iter().find(|(key, _)| key.text() == Some(name)).map(|(_, value)| value)
    }

    /// Where a key stands, or else the section.
    #[must_use]
    pub fn key_span(&self, name: &str) -> Range<usize> {
        let key = self.entries.iter().find(|(key, _)| key.text() == Some(name));
        key.map_or_else(|| self.span.clone(), |(key, _)| key.span.clone())
    }

    /// Every key with its value, in the order of the text.
    pub fn entries(&self) -> impl Iterator<Item = (&'n str, &'n YamlNode, &'n YamlNode)> {
        self.entries.iter().map(|(key, value)| (key.text().unwrap_or(""), key, value))
    }
}

impl YamlReader {
    /// A reader for a language.
    #[must_use]
    pub const fn new(dialect: &'static Dialect) -> Self {
        Self { dialect, problems: Vec::new() }
    }

    /// The language's codes.
    #[must_use]
    pub const fn dialect(&self) -> &'static Dialect {
        self.dialect
    }

    /// Notes a problem; beyond the limit further ones are dropped, the first ones stay.
    pub fn problem(&mut self, problem: Diagnostic) {
        if self.problems.len() < limits::DIAGNOSTICS {
            self.problems.push(problem);
        }
    }

    /// A value of the wrong kind.
    pub fn wrong_type(&mut self, node: &YamlNode, wanted: &str) {
        let message = format!("{wanted} is needed here, and this is {}", node.kind());
        self.problem(Diagnostic::error(self.dialect.wrong_type, node.span.clone(), message));
    }

    /// A map with any keys.
    pub fn map<'n>(&mut self, node: &'n YamlNode, what: &str) -> Option<Section<'n>> {
        let YamlValue::Map(entries) = &node.value else {
            let message = format!("{what} is a map of keys, and this is {}", node.kind());
            let problem = Diagnostic::error(self.dialect.wrong_type, node.span.clone(), message);
            self.problem(problem.hint("write `KEY: VALUE`, each key in a line, indented below"));
            return None;
        };
        let span = entries.first().map_or_else(|| node.span.clone(), |(key, _)| key.span.clone());
        Some(Section { span, entries })
    }

    /// A map with some of these keys and no other.
    pub fn section<'n>(
        &mut self,
        node: &'n YamlNode,
        what: &str,
        keys: &[KeySpec],
    ) -> Option<Section<'n>> {
        let section = self.map(node, what)?;
        for (name, at, _) in section.entries() {
            let problem = match keys.iter().find(|key| key.name == name) {
                Some(key) if key.supported => continue,
                Some(_) => Diagnostic::error(
                    self.dialect.not_yet,
                    at.span.clone(),
                    format!("`{name}` is not enforced by this build yet, so it is refused"),
                )
                .hint("remove it; `capsule explain-code policy.not-yet-supported` says more"),
                None => self.unknown_key(name, at, keys, what),
            };
            self.problem(problem);
        }
        Some(section)
    }

    fn unknown_key(&self, name: &str, at: &YamlNode, keys: &[KeySpec], what: &str) -> Diagnostic {
        let message = format!("{what} has no key `{}`", escape::line(name));
        let problem = Diagnostic::error(self.dialect.unknown_key, at.span.clone(), message);
        match closest(name, keys.iter().map(|key| key.name)) {
            Some(near) => problem.hint(format!("did you mean `{near}`?")),
            None => {
                let names = keys.iter().filter(|key| key.supported).map(|key| key.name);
                let names: Vec<&str> = names.collect();
                problem.hint(format!("it knows `{}`", names.join("`, `")))
            }
        }
    }

    /// The value of a key that must be there.
    pub fn required<'n>(
        &mut self,
        section: &Section<'n>,
        name: &str,
        what: &str,
    ) -> Option<&'n YamlNode> {
        let found = section.get(name);
        if found.is_none() {
            let message = format!("{what} needs `{name}`");
            let at = section.span.clone();
            self.problem(Diagnostic::error(self.dialect.missing_key, at, message));
        }
        found
    }

    /// A text. Numbers and truth values are taken as they are written.
    pub fn text<'n>(&mut self, node: &'n YamlNode) -> Option<&'n str> {
        self.expected(node, node.text(), "text")
    }

    /// The value that a node was read as; a problem where it is something else.
    fn expected<T>(&mut self, node: &YamlNode, read: Option<T>, what: &str) -> Option<T> {
        if read.is_none() {
            self.wrong_type(node, what);
        }
        read
    }

    /// A text without line ends and control characters, for names and places.
    pub fn line(&mut self, node: &YamlNode) -> Option<String> {
        let text = self.text(node)?;
        let line = (!text.chars().any(char::is_control)).then(|| text.to_string());
        self.expected(node, line, "one line of text")
    }

    /// A name: one line, and no longer than a list can show.
    pub fn name(&mut self, node: &YamlNode) -> Option<String> {
        let name = self.line(node)?;
        let chars = name.chars().count();
        let most = limits::NAME_CHARS;
        if chars > most {
            let message = format!("a name has at most {most} characters; this one has {chars}");
            self.problem(Diagnostic::error(self.dialect.unknown_value, node.span.clone(), message));
            return None;
        }
        Some(name)
    }

    /// One of these words.
    pub fn keyword(&mut self, node: &YamlNode, words: &[&'static str]) -> Option<&'static str> {
        let text = self.text(node)?;
        if let Some(word) = words.iter().copied().find(|word| *word == text) {
            return Some(word);
        }
        let message = format!("`{}` is not one of `{}`", escape::line(text), words.join("`, `"));
        let problem = Diagnostic::error(self.dialect.unknown_value, node.span.clone(), message);
        let problem = match closest(text, words.iter().copied()) {
            Some(near) => problem.hint(format!("did you mean `{near}`?")),
            None => problem,
        };
        self.problem(problem);
        None
    }

    /// A word of which one is enforced and the others are known and refused.
    pub fn only_supported(
        &mut self,
        node: &YamlNode,
        enforced: &'static str,
        not_yet: &[&'static str],
    ) -> bool {
        let mut words = alloc::vec![enforced];
        words.extend(not_yet);
        let Some(word) = self.keyword(node, &words) else { return false };
        if word != enforced {
            let message = format!("`{word}` is not enforced by this build yet, so it is refused");
            let problem = Diagnostic::error(self.dialect.not_yet, node.span.clone(), message);
            self.problem(problem.hint(format!("this build knows `{enforced}`")));
        }
        word == enforced
    }

    /// A truth value.
    pub fn boolean(&mut self, node: &YamlNode) -> Option<bool> {
        let truth = node.scalar().and_then(YamlScalar::boolean);
        self.expected(node, truth, "`true` or `false`")
    }

    /// A whole number that is not negative.
    pub fn number(&mut self, node: &YamlNode) -> Option<u64> {
        let number = node.scalar().and_then(YamlScalar::number);
        let number = number.and_then(|number| u64::try_from(number).ok());
        self.expected(node, number, "a whole number")
    }

    /// A size with its unit.
    pub fn size(&mut self, node: &YamlNode) -> Option<u64> {
        let size = node.text().and_then(units::parse_size);
        self.unit(node, size, "a size", "50KB, 256KiB or 1MiB")
    }

    /// A duration with its unit.
    pub fn duration(&mut self, node: &YamlNode) -> Option<Duration> {
        let duration = node.text().and_then(units::parse_duration);
        self.unit(node, duration, "a duration", "500ms, 10s or 5m")
    }

    /// A sum in US dollars; gives millionths of a dollar.
    pub fn dollars(&mut self, node: &YamlNode) -> Option<u64> {
        let dollars = node.text().and_then(units::parse_usd);
        self.expected(node, dollars, "a sum in US dollars, such as `0.15`,")
    }

    fn unit<T>(&mut self, at: &YamlNode, read: Option<T>, what: &str, such: &str) -> Option<T> {
        if read.is_none() {
            let message = format!("{what} with its unit is needed");
            let problem = Diagnostic::error(self.dialect.unit, at.span.clone(), message);
            self.problem(problem.hint(format!("for example {such}")));
        }
        read
    }

    /// A list.
    pub fn list<'n>(&mut self, node: &'n YamlNode, what: &str) -> Option<&'n [YamlNode]> {
        let YamlValue::List(items) = &node.value else {
            self.wrong_type(node, what);
            return None;
        };
        Some(items)
    }

    /// A list of texts of one line.
    pub fn lines(&mut self, node: &YamlNode, what: &str) -> Vec<(String, Range<usize>)> {
        let items = self.list(node, what).unwrap_or_default();
        items
            .iter()
            .filter_map(|item| self.line(item).map(|text| (text, item.span.clone())))
            .collect()
    }
}
