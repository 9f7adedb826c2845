//! Puts rules into the text of a policy: whatever stands there stays as it is, comments and layout
//! with it, and what is new is written where it belongs.

use std::ops::Range;

use capsule_core::escape;
use capsule_core::yaml::{YamlNode, YamlScalar, YamlValue};

/// What is to stand in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A word, in place of the one that stands there.
    Word(String),
    /// These items, behind those that stand there.
    List(Vec<Wanted>),
    /// These keys; the others stay.
    Map(Vec<(String, Wanted)>),
}

/// What cannot be put in without laying the text out anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stuck(pub(super) String);

impl Wanted {
    pub(super) fn word(text: impl Into<String>) -> Self {
        Self::Word(text.into())
    }

    /// A list of words.
    pub(super) fn words<T: Into<String>>(words: impl IntoIterator<Item = T>) -> Self {
        Self::List(words.into_iter().map(Self::word).collect())
    }

    pub(super) fn map<K: Into<String>>(entries: impl IntoIterator<Item = (K, Self)>) -> Self {
        Self::Map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }

    /// A value beneath keys.
    pub(super) fn beneath(self, keys: &[&str]) -> Self {
        keys.iter().rev().fold(self, |inner, key| Self::map([(*key, inner)]))
    }

    /// Both together.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Map(mut own), Self::Map(more)) => {
                for (key, value) in more {
                    match own.iter().position(|(name, _)| *name == key) {
                        Some(at) => {
                            let (name, before) = own.remove(at);
                            own.insert(at, (name, before.and(value)));
                        }
                        None => own.push((key, value)),
                    }
                }
                Self::Map(own)
            }
            (Self::List(mut own), Self::List(more)) => {
                let more: Vec<Self> = more.into_iter().filter(|item| !own.contains(item)).collect();
                own.extend(more);
                Self::List(own)
            }
            (_, other) => other,
        }
    }
}

/// The text with what is wanted.
pub(super) fn splice(text: &str, root: &YamlNode, wanted: &Wanted) -> Result<String, Stuck> {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut splice = Splice { text, newline, edits: Vec::new() };
    splice.merge(root, "", wanted)?;
    let Splice { mut edits, .. } = splice;
    // Those at one place stay in their order: what is further in was put there first.
    edits.sort_by_key(|(range, _)| range.start);
    let mut out = String::with_capacity(text.len() + 1_000);
    let mut done = 0;
    for (range, new) in edits {
        out.push_str(text.get(done..range.start).unwrap_or_default());
        out.push_str(&new);
        done = done.max(range.end);
    }
    out.push_str(text.get(done..).unwrap_or_default());
    Ok(out)
}

struct Splice<'t> {
    text: &'t str,
    newline: &'t str,
    edits: Vec<(Range<usize>, String)>,
}

impl Splice<'_> {
    fn merge(&mut self, node: &YamlNode, key: &str, wanted: &Wanted) -> Result<(), Stuck> {
        match (&node.value, wanted) {
            (YamlValue::Map(entries), Wanted::Map(new)) => {
                let mut missing = Vec::new();
                for (key, value) in new {
                    match entries.iter().find(|(own, _)| own.text() == Some(key)) {
                        Some((_, own)) => self.merge(own, key, value)?,
                        None => missing.push((key, value)),
                    }
                }
                self.add_entries(node, entries, &missing)
            }
            (YamlValue::List(items), Wanted::List(new)) => self.add_items(node, items, new),
            (YamlValue::List(_), Wanted::Map(new)) if matches!(key, "paths" | "urls") => {
                // The list is short for `{ allow: [..] }`.
                match new.as_slice() {
                    [(name, inner)] if name == "allow" => self.merge(node, name, inner),
                    _ => Err(stuck(key)),
                }
            }
            (YamlValue::List(items), Wanted::Map(new)) if key == "executables" => {
                let named = items
                    .iter()
                    .filter_map(YamlNode::text)
                    .map(|name| (name, Wanted::Map(Vec::new())));
                let long = flow(&Wanted::map(named).and(Wanted::Map(new.clone())));
                let end = self.end(node)?;
                match items.first().filter(|_| !self.is_flow(node)) {
                    // What takes the place of dashes stands further in than they may.
                    Some(first) => self.replace(self.dash(first)?..end, format!("  {long}"), key),
                    None => self.replace(node.span.start..end, long, key),
                }
            }
            (YamlValue::Scalar(scalar), Wanted::Map(new)) if !scalar.is_null() => {
                // The word is short for `{ decision: .. }`.
                let own = Wanted::map([("decision", Wanted::word(scalar.text.as_str()))]);
                let end = self.end(node)?;
                self.replace(node.span.start..end, flow(&own.and(Wanted::Map(new.clone()))), key)
            }
            (YamlValue::Scalar(scalar), Wanted::Word(word)) if !scalar.is_null() => {
                let end = self.end(node)?;
                self.replace(node.span.start..end, quoted(word), key)
            }
            _ => Err(stuck(key)),
        }
    }

    /// Puts something in place of a value that holds no comment.
    fn replace(&mut self, range: Range<usize>, new: String, key: &str) -> Result<(), Stuck> {
        if self.text.get(range.clone()).is_none_or(|own| own.contains('#')) {
            return Err(stuck(key));
        }
        self.edits.push((range, new));
        Ok(())
    }

    fn add_entries(
        &mut self,
        node: &YamlNode,
        entries: &[(YamlNode, YamlNode)],
        new: &[(&String, &Wanted)],
    ) -> Result<(), Stuck> {
        if new.is_empty() {
            return Ok(());
        }
        let entry = |(key, value): &(&String, &Wanted)| format!("{}: {}", quoted(key), flow(value));
        let Some((first, _)) = entries.first().filter(|_| !self.is_flow(node)) else {
            let new: Vec<String> = new.iter().map(entry).collect();
            return self.add_to_flow(node, entries.last().map(|(_, value)| value), &new);
        };
        let column = self.column(first.span.start);
        let at = self.line_end(self.end(node)?);
        let lines = new.iter().map(|(key, value)| {
            format!("{}{:column$}{}:{}", self.newline, "", quoted(key), self.block(value, column))
        });
        let lines: String = lines.collect();
        self.edits.push((at..at, lines));
        Ok(())
    }

    fn add_items(
        &mut self,
        node: &YamlNode,
        items: &[YamlNode],
        new: &[Wanted],
    ) -> Result<(), Stuck> {
        let stands = |wanted: &&Wanted| match wanted {
            Wanted::Word(word) => items.iter().any(|item| item.text() == Some(word)),
            Wanted::List(_) | Wanted::Map(_) => false,
        };
        let new: Vec<&Wanted> = new.iter().filter(|own| !stands(own)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let Some(first) = items.first().filter(|_| !self.is_flow(node)) else {
            let new: Vec<String> = new.into_iter().map(flow).collect();
            return self.add_to_flow(node, items.last(), &new);
        };
        let column = self.column(self.dash(first)?);
        let at = self.line_end(self.end(node)?);
        let lines = new
            .into_iter()
            .map(|item| format!("{}{:column$}-{}", self.newline, "", self.item(item, column)));
        let lines: String = lines.collect();
        self.edits.push((at..at, lines));
        Ok(())
    }

    /// Puts something behind the last child of what stands in brackets.
    fn add_to_flow(
        &mut self,
        node: &YamlNode,
        last: Option<&YamlNode>,
        new: &[String],
    ) -> Result<(), Stuck> {
        let new = new.join(", ");
        match last {
            Some(last) => {
                let at = self.end(last)?;
                self.edits.push((at..at, format!(", {new}")));
            }
            None => {
                let is_map = matches!(node.value, YamlValue::Map(_));
                let inner = node.span.start + 1..self.end(node)?.saturating_sub(1);
                let new = if is_map { format!(" {new} ") } else { new };
                return self.replace(inner, new, "an empty list or map");
            }
        }
        Ok(())
    }

    /// Whether a list or map stands in brackets. One that does begins before its first child.
    fn is_flow(&self, node: &YamlNode) -> bool {
        let first = match &node.value {
            YamlValue::Scalar(_) => return false,
            YamlValue::List(items) => items.first(),
            YamlValue::Map(entries) => entries.first().map(|(key, _)| key),
        };
        let rest = self.text.get(node.span.start..).unwrap_or_default();
        rest.starts_with(['{', '[']) && first.is_none_or(|own| own.span.start > node.span.start)
    }

    /// Where the dash before an item stands.
    fn dash(&self, item: &YamlNode) -> Result<usize, Stuck> {
        let before = self.text.get(..item.span.start).unwrap_or_default().trim_end();
        let before = before.strip_suffix('-').ok_or_else(|| stuck("a list"))?;
        Ok(before.len())
    }

    /// Where a value ends.
    fn end(&self, node: &YamlNode) -> Result<usize, Stuck> {
        let last = match &node.value {
            YamlValue::Scalar(YamlScalar { .. }) => {
                let own = self.text.get(node.span.clone()).unwrap_or_default();
                return Ok(node.span.start + own.trim_end().len());
            }
            YamlValue::List(items) => items.last(),
            YamlValue::Map(entries) => entries.last().map(|(_, value)| value),
        };
        let inner = last.map(|last| self.end(last)).transpose()?;
        match self.is_flow(node) {
            true => self.bracket(inner.unwrap_or(node.span.start + 1)),
            false => inner.ok_or_else(|| stuck("an empty value")),
        }
    }

    /// Where the bracket closes behind the last child.
    fn bracket(&self, from: usize) -> Result<usize, Stuck> {
        let mut comment = false;
        for (offset, c) in self.text.get(from..).unwrap_or_default().char_indices() {
            match c {
                '\n' => comment = false,
                _ if comment => {}
                '#' => comment = true,
                '}' | ']' => return Ok(from + offset + 1),
                c if c.is_whitespace() || c == ',' || c == ':' => {}
                _ => break,
            }
        }
        Err(stuck("a list or map in brackets"))
    }

    fn column(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or_default();
        before.rsplit('\n').next().map_or(0, |line| line.chars().count())
    }

    /// Where the line ends that this byte stands in, behind its comment.
    fn line_end(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        let line = rest.find('\n').map_or(rest, |end| rest.get(..end).unwrap_or_default());
        at + line.trim_end_matches('\r').len()
    }

    /// A value behind its key, in a map whose keys stand in this column.
    fn block(&self, wanted: &Wanted, column: usize) -> String {
        let inner = column + INDENT;
        match wanted {
            Wanted::Map(entries) if !is_short(wanted, column) && !entries.is_empty() => {
                let lines = entries.iter().map(|(key, value)| {
                    format!(
                        "{}{:inner$}{}:{}",
                        self.newline,
                        "",
                        quoted(key),
                        self.block(value, inner)
                    )
                });
                lines.collect()
            }
            Wanted::List(items) if items.iter().any(|item| !matches!(item, Wanted::Word(_))) => {
                let lines = items.iter().map(|item| {
                    format!("{}{:inner$}-{}", self.newline, "", self.item(item, inner))
                });
                lines.collect()
            }
            _ => format!(" {}", flow(wanted)),
        }
    }

    /// An item behind its dash, which stands in this column.
    fn item(&self, wanted: &Wanted, column: usize) -> String {
        match wanted {
            Wanted::Map(entries) if flow(wanted).len() + column > WIDTH => {
                let inner = column + INDENT;
                let lines = entries.iter().enumerate().map(|(index, (key, value))| {
                    let value = format!("{}:{}", quoted(key), self.block(value, inner));
                    match index {
                        0 => format!(" {value}"),
                        _ => format!("{}{:inner$}{value}", self.newline, ""),
                    }
                });
                lines.collect()
            }
            _ => format!(" {}", flow(wanted)),
        }
    }
}

/// How far what stands in something is moved in.
const INDENT: usize = 2;
/// How wide a line may be.
const WIDTH: usize = 100;

/// Whether a map is best read in one line: it is short, and no map stands in it.
fn is_short(wanted: &Wanted, column: usize) -> bool {
    let Wanted::Map(entries) = wanted else { return true };
    let flat = entries.iter().all(|(_, value)| match value {
        Wanted::Word(_) => true,
        Wanted::List(items) => items.iter().all(|item| matches!(item, Wanted::Word(_))),
        Wanted::Map(_) => false,
    });
    let is_call = entries.iter().any(|(key, _)| key == "tool");
    (flat || is_call) && flow(wanted).len() + column < WIDTH
}

/// A value in one line.
pub(super) fn flow(wanted: &Wanted) -> String {
    match wanted {
        Wanted::Word(word) => quoted(word),
        Wanted::List(items) => {
            format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        Wanted::Map(entries) if entries.is_empty() => "{}".into(),
        Wanted::Map(entries) => {
            let entries =
                entries.iter().map(|(key, value)| format!("{}: {}", quoted(key), flow(value)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

/// A text as it can stand anywhere: bare where it is plain. Characters that would not show
/// themselves to whoever reads the patch are written as their numbers.
fn quoted(text: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let scalar = YamlScalar { text: text.into(), plain: true };
    match begins && text.chars().all(bare) && !scalar.is_null() && scalar.boolean().is_none() {
        true => text.to_owned(),
        false => serde_json::Value::from(text)
            .to_string()
            .chars()
            .flat_map(|c| match escape::is_hostile(c) {
                true => format!("\\U{:08X}", u32::from(c)).chars().collect::<Vec<_>>(),
                false => vec![c],
            })
            .collect(),
    }
}

fn stuck(what: &str) -> Stuck {
    Stuck(format!("`{what}` is written so that nothing can be put in without laying it out anew"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panics")]

    use capsule_core::policy::DIALECT;
    use capsule_core::yaml::parse;

    use super::*;

    fn check(text: &str, wanted: &Wanted, expected: &str) {
        let root = parse(text, &DIALECT).unwrap().unwrap();
        let got = splice(text, &root, wanted).unwrap();
        assert_eq!(got, expected, "{text}");
        // What stands there twice is put there once, and what is new can be read.
        let again = parse(&got, &DIALECT).unwrap().unwrap();
        assert!(again.to_json().to_string().len() >= root.to_json().to_string().len());
    }

    fn rule() -> Wanted {
        Wanted::map([("id", Wanted::word("x")), ("paths", Wanted::words(["a b", "c"]))])
    }

    #[test]
    fn what_is_new_stands_where_it_belongs() {
        let rules = Wanted::List(vec![rule()]).beneath(&["tools", "fs.read", "rules"]);
        for (text, expected) in [
            (
                "tools:\n  fs.read:  # why\n    hidden: deny # last\n    # behind\n  fs.list: allow\n",
                "tools:\n  fs.read:  # why\n    hidden: deny # last\n    rules:\n      - { id: x, paths: [\"a b\", c] }\n    # behind\n  fs.list: allow\n",
            ),
            (
                "tools:\n  fs.read: allow # short\nname: p",
                "tools:\n  fs.read: { decision: allow, rules: [{ id: x, paths: [\"a b\", c] }] } # short\nname: p",
            ),
            (
                "tools: { fs.read: {} }\n",
                "tools: { fs.read: { rules: [{ id: x, paths: [\"a b\", c] }] } }\n",
            ),
            (
                "tools:\n  fs.read:\n    rules:\n    - { id: y }\n    - id: z\n      paths: [a,\n        b] # end\nname: p\n",
                "tools:\n  fs.read:\n    rules:\n    - { id: y }\n    - id: z\n      paths: [a,\n        b] # end\n    - { id: x, paths: [\"a b\", c] }\nname: p\n",
            ),
            (
                "tools:\n  fs.read: { rules: [ { id: y }, # one\n   ] }\n",
                "tools:\n  fs.read: { rules: [ { id: y }, { id: x, paths: [\"a b\", c] }, # one\n   ] }\n",
            ),
            (
                "name: p\r\n",
                "name: p\r\ntools:\r\n  fs.read:\r\n    rules:\r\n      - { id: x, paths: [\"a b\", c] }\r\n",
            ),
            (
                "name: |\n  text\n  more\n",
                "name: |\n  text\n  more\ntools:\n  fs.read:\n    rules:\n      - { id: x, paths: [\"a b\", c] }\n",
            ),
            (
                "{\"name\": \"p\"}",
                "{\"name\": \"p\", tools: { fs.read: { rules: [{ id: x, paths: [\"a b\", c] }] } }}",
            ),
        ] {
            check(text, &rules, expected);
        }
    }

    #[test]
    fn short_forms_become_long_only_where_they_must() {
        let open = Wanted::words(["b", "a"]).beneath(&["paths", "allow"]);
        check("paths: [a]\n", &open, "paths: [a, b]\n");
        check("paths:\n  - a # first\n", &open, "paths:\n  - a # first\n  - b\n");
        check("paths: { deny: [x] }\n", &open, "paths: { deny: [x], allow: [b, a] }\n");
        let program = Wanted::word("allow").beneath(&["executables", "ls", "decision"]);
        check(
            "executables: [git, rg]\n",
            &program,
            "executables: { git: {}, rg: {}, ls: { decision: allow } }\n",
        );
        check(
            "a:\n  executables:\n  - git\n  - rg\n",
            &program.clone().beneath(&["a"]),
            "a:\n  executables:\n    { git: {}, rg: {}, ls: { decision: allow } }\n",
        );
        check(
            "executables:\n  git:\n    decision: ask\n",
            &Wanted::word("allow").beneath(&["executables", "git", "decision"]),
            "executables:\n  git:\n    decision: allow\n",
        );
        let both = program.clone().and(open);
        check(
            "executables: {}\n",
            &both,
            "executables: { ls: { decision: allow } }\npaths: { allow: [b, a] }\n",
        );
        let text = "executables:\n  - git # looks\n  - rg\n";
        let root = parse(text, &DIALECT).unwrap().unwrap();
        assert!(splice(text, &root, &program).is_err(), "the comment would be lost");
    }

    #[test]
    fn what_is_long_stands_on_lines_of_its_own() {
        let test = Wanted::map([
            ("name", Wanted::word("a name that is long enough to be a sentence of some words: 1")),
            ("call", Wanted::map([("tool", Wanted::word("fs.read")), ("args", rule())])),
            ("expect", Wanted::map([("decision", Wanted::word("allow"))])),
        ]);
        check(
            "name: p\ntests:\n  - name: one\n    expect: { x: y }\n",
            &Wanted::List(vec![test]).beneath(&["tests"]),
            "name: p\ntests:\n  - name: one\n    expect: { x: y }\n  - name: \"a name that is long enough to be a sentence of some words: 1\"\n    call: { tool: fs.read, args: { id: x, paths: [\"a b\", c] } }\n    expect: { decision: allow }\n",
        );
    }

    /// Words that mean something else without quotes have them.
    #[test]
    fn words_stay_words() {
        for (word, expected) in [
            ("git", "git"),
            ("docs/a-b_c.md", "docs/a-b_c.md"),
            ("true", "\"true\""),
            ("null", "\"null\""),
            ("12", "\"12\""),
            ("-m", "\"-m\""),
            ("*", "\"*\""),
            ("a: b", "\"a: b\""),
            ("é", "\"é\""),
            ("a\u{202e}b", "\"a\\U0000202Eb\""),
            ("\u{9b}\u{1}\u{e0041}", "\"\\U0000009B\\u0001\\U000E0041\""),
            ("", "\"\""),
        ] {
            assert_eq!(quoted(word), expected);
            let node = parse(&format!("[{}]", quoted(word)), &DIALECT).unwrap().unwrap();
            assert_eq!(node.to_json(), serde_json::json!([word]));
        }
    }
}
