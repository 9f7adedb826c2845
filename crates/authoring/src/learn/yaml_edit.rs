//! Puts rules into the text of a policy: whatever stands there stays as it is, comments and layout
//! with it, and what is new is written where it belongs.

use std::ops::Range;

use capsule_base::escape;
use capsule_base::yaml::{YamlNode, YamlScalar, YamlValue};

/// What is to stand in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum YamlInsertion {
    /// A word, in place of the one that stands there.
    Scalar(String),
    /// These items, behind those that stand there.
    List(Vec<YamlInsertion>),
    /// These keys; the others stay.
    Map(Vec<(String, YamlInsertion)>),
}

/// What cannot be put in without laying the text out anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CannotInsert(pub(super) String);

impl YamlInsertion {
    pub(super) fn scalar(text: impl Into<String>) -> Self {
        Self::Scalar(text.into())
    }

    /// A list of words.
    pub(super) fn list<T: Into<String>>(words: impl IntoIterator<Item = T>) -> Self {
        Self::List(words.into_iter().map(Self::scalar).collect())
    }

    pub(super) fn map<K: Into<String>>(entries: impl IntoIterator<Item = (K, Self)>) -> Self {
        Self::Map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }

    /// A value beneath keys.
    pub(super) fn under_keys(self, keys: &[&str]) -> Self {
        keys.iter().rev().fold(self, |inner, key| Self::map([(*key, inner)]))
    }

    /// Both together.
    pub(super) fn merge(self, other: Self) -> Self {
        match (self, other) {
            (Self::Map(mut entries), Self::Map(more)) => {
                for (key, value) in more {
                    match entries.iter().position(|(name, _)| *name == key) {
                        Some(at) => {
                            let (name, before) = entries.remove(at);
                            entries.insert(at, (name, before.merge(value)));
                        }
                        None => entries.push((key, value)),
                    }
                }
                Self::Map(entries)
            }
            (Self::List(mut items), Self::List(more)) => {
                let more: Vec<Self> =
                    more.into_iter().filter(|item| !items.contains(item)).collect();
                items.extend(more);
                Self::List(items)
            }
            (_, other) => other,
        }
    }
}

/// The text with what is wanted.
pub(super) fn insert_yaml(
    text: &str,
    root: &YamlNode,
    wanted: &YamlInsertion,
) -> Result<String, CannotInsert> {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut splice = YamlEditor { text, newline, edits: Vec::new() };
    splice.merge(root, "", wanted)?;
    let YamlEditor { mut edits, .. } = splice;
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

struct YamlEditor<'t> {
    text: &'t str,
    newline: &'t str,
    edits: Vec<(Range<usize>, String)>,
}

impl YamlEditor<'_> {
    fn merge(
        &mut self,
        node: &YamlNode,
        key: &str,
        wanted: &YamlInsertion,
    ) -> Result<(), CannotInsert> {
        match (&node.value, wanted) {
            (YamlValue::Map(entries), YamlInsertion::Map(new)) => {
                let mut missing = Vec::new();
                for (key, value) in new {
                    match entries.iter().find(|(node, _)| node.text() == Some(key)) {
                        Some((_, node)) => self.merge(node, key, value)?,
                        None => missing.push((key, value)),
                    }
                }
                self.add_entries(node, entries, &missing)
            }
            (YamlValue::List(items), YamlInsertion::List(new)) => self.add_items(node, items, new),
            (YamlValue::List(_), YamlInsertion::Map(new)) if matches!(key, "paths" | "urls") => {
                // The list is short for `{ allow: [..] }`.
                match new.as_slice() {
                    [(name, inner)] if name == "allow" => self.merge(node, name, inner),
                    _ => Err(cannot_insert(key)),
                }
            }
            (YamlValue::List(items), YamlInsertion::Map(new)) if key == "executables" => {
                let named = items
                    .iter()
                    .filter_map(YamlNode::text)
                    .map(|name| (name, YamlInsertion::Map(Vec::new())));
                let long =
                    format_flow(&YamlInsertion::map(named).merge(YamlInsertion::Map(new.clone())));
                let end = self.value_end(node)?;
                match items.first().filter(|_| !self.is_flow(node)) {
                    // What takes the place of dashes stands further in than they may.
                    Some(first) => {
                        self.replace(self.dash_before(first)?..end, format!("  {long}"), key)
                    }
                    None => self.replace(node.span.start..end, long, key),
                }
            }
            (YamlValue::Scalar(scalar), YamlInsertion::Map(new)) if !scalar.is_null() => {
                // The word is short for `{ decision: .. }`.
                let insertion =
                    YamlInsertion::map([("decision", YamlInsertion::scalar(scalar.text.as_str()))]);
                let end = self.value_end(node)?;
                self.replace(
                    node.span.start..end,
                    format_flow(&insertion.merge(YamlInsertion::Map(new.clone()))),
                    key,
                )
            }
            (YamlValue::Scalar(scalar), YamlInsertion::Scalar(word)) if !scalar.is_null() => {
                let end = self.value_end(node)?;
                self.replace(node.span.start..end, quoted(word), key)
            }
            _ => Err(cannot_insert(key)),
        }
    }

    /// Puts something in place of a value that holds no comment.
    fn replace(&mut self, range: Range<usize>, new: String, key: &str) -> Result<(), CannotInsert> {
        if self.text.get(range.clone()).is_none_or(|text| text.contains('#')) {
            return Err(cannot_insert(key));
        }
        self.edits.push((range, new));
        Ok(())
    }

    fn add_entries(
        &mut self,
        node: &YamlNode,
        entries: &[(YamlNode, YamlNode)],
        new: &[(&String, &YamlInsertion)],
    ) -> Result<(), CannotInsert> {
        if new.is_empty() {
            return Ok(());
        }
        let entry = |(key, value): &(&String, &YamlInsertion)| {
            format!("{}: {}", quoted(key), format_flow(value))
        };
        let Some((first, _)) = entries.first().filter(|_| !self.is_flow(node)) else {
            let new: Vec<String> = new.iter().map(entry).collect();
            return self.add_to_flow(node, entries.last().map(|(_, value)| value), &new);
        };
        let column = self.column(first.span.start);
        let at = self.line_end(self.value_end(node)?);
        let lines = new.iter().map(|(key, value)| {
            format!(
                "{}{:column$}{}:{}",
                self.newline,
                "",
                quoted(key),
                self.format_block(value, column)
            )
        });
        let lines: String = lines.collect();
        self.edits.push((at..at, lines));
        Ok(())
    }

    fn add_items(
        &mut self,
        node: &YamlNode,
        items: &[YamlNode],
        new: &[YamlInsertion],
    ) -> Result<(), CannotInsert> {
        let stands = |wanted: &&YamlInsertion| match wanted {
            YamlInsertion::Scalar(word) => items.iter().any(|item| item.text() == Some(word)),
            YamlInsertion::List(_) | YamlInsertion::Map(_) => false,
        };
        let new: Vec<&YamlInsertion> = new.iter().filter(|insertion| !stands(insertion)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let Some(first) = items.first().filter(|_| !self.is_flow(node)) else {
            let new: Vec<String> = new.into_iter().map(format_flow).collect();
            return self.add_to_flow(node, items.last(), &new);
        };
        let column = self.column(self.dash_before(first)?);
        let at = self.line_end(self.value_end(node)?);
        let lines = new.into_iter().map(|item| {
            format!("{}{:column$}-{}", self.newline, "", self.format_item(item, column))
        });
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
    ) -> Result<(), CannotInsert> {
        let new = new.join(", ");
        match last {
            Some(last) => {
                let at = self.value_end(last)?;
                self.edits.push((at..at, format!(", {new}")));
            }
            None => {
                let is_map = matches!(node.value, YamlValue::Map(_));
                let inner = node.span.start + 1..self.value_end(node)?.saturating_sub(1);
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
        rest.starts_with(['{', '[']) && first.is_none_or(|item| item.span.start > node.span.start)
    }

    /// Where the dash before an item stands.
    fn dash_before(&self, item: &YamlNode) -> Result<usize, CannotInsert> {
        let before = self.text.get(..item.span.start).unwrap_or_default().trim_end();
        let before = before.strip_suffix('-').ok_or_else(|| cannot_insert("a list"))?;
        Ok(before.len())
    }

    /// Where a value ends.
    fn value_end(&self, node: &YamlNode) -> Result<usize, CannotInsert> {
        let last = match &node.value {
            YamlValue::Scalar(YamlScalar { .. }) => {
                let text = self.text.get(node.span.clone()).unwrap_or_default();
                return Ok(node.span.start + text.trim_end().len());
            }
            YamlValue::List(items) => items.last(),
            YamlValue::Map(entries) => entries.last().map(|(_, value)| value),
        };
        let inner = last.map(|last| self.value_end(last)).transpose()?;
        match self.is_flow(node) {
            true => self.closing_bracket(inner.unwrap_or(node.span.start + 1)),
            false => inner.ok_or_else(|| cannot_insert("an empty value")),
        }
    }

    /// Where the bracket closes behind the last child.
    fn closing_bracket(&self, from: usize) -> Result<usize, CannotInsert> {
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
        Err(cannot_insert("a list or map in brackets"))
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
    fn format_block(&self, wanted: &YamlInsertion, column: usize) -> String {
        let inner = column + INDENT_WIDTH;
        match wanted {
            YamlInsertion::Map(entries) if !is_short(wanted, column) && !entries.is_empty() => {
                let lines = entries.iter().map(|(key, value)| {
                    format!(
                        "{}{:inner$}{}:{}",
                        self.newline,
                        "",
                        quoted(key),
                        self.format_block(value, inner)
                    )
                });
                lines.collect()
            }
            YamlInsertion::List(items)
                if items.iter().any(|item| !matches!(item, YamlInsertion::Scalar(_))) =>
            {
                let lines = items.iter().map(|item| {
                    format!("{}{:inner$}-{}", self.newline, "", self.format_item(item, inner))
                });
                lines.collect()
            }
            _ => format!(" {}", format_flow(wanted)),
        }
    }

    /// An item behind its dash, which stands in this column.
    fn format_item(&self, wanted: &YamlInsertion, column: usize) -> String {
        match wanted {
            YamlInsertion::Map(entries) if format_flow(wanted).len() + column > LINE_WIDTH => {
                let inner = column + INDENT_WIDTH;
                let lines = entries.iter().enumerate().map(|(index, (key, value))| {
                    let value = format!("{}:{}", quoted(key), self.format_block(value, inner));
                    match index {
                        0 => format!(" {value}"),
                        _ => format!("{}{:inner$}{value}", self.newline, ""),
                    }
                });
                lines.collect()
            }
            _ => format!(" {}", format_flow(wanted)),
        }
    }
}

/// How far what stands in something is moved in.
const INDENT_WIDTH: usize = 2;
/// How wide a line may be.
const LINE_WIDTH: usize = 100;

/// Whether a map is best read in one line: it is short, and no map stands in it.
fn is_short(wanted: &YamlInsertion, column: usize) -> bool {
    let YamlInsertion::Map(entries) = wanted else { return true };
    let flat = entries.iter().all(|(_, value)| match value {
        YamlInsertion::Scalar(_) => true,
        YamlInsertion::List(items) => {
            items.iter().all(|item| matches!(item, YamlInsertion::Scalar(_)))
        }
        YamlInsertion::Map(_) => false,
    });
    let is_call = entries.iter().any(|(key, _)| key == "tool");
    (flat || is_call) && format_flow(wanted).len() + column < LINE_WIDTH
}

/// A value in one line.
pub(super) fn format_flow(wanted: &YamlInsertion) -> String {
    match wanted {
        YamlInsertion::Scalar(word) => quoted(word),
        YamlInsertion::List(items) => {
            format!("[{}]", items.iter().map(format_flow).collect::<Vec<_>>().join(", "))
        }
        YamlInsertion::Map(entries) if entries.is_empty() => "{}".into(),
        YamlInsertion::Map(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| format!("{}: {}", quoted(key), format_flow(value)));
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

fn cannot_insert(what: &str) -> CannotInsert {
    CannotInsert(format!(
        "`{what}` is written so that nothing can be put in without laying it out anew"
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panics")]

    use capsule_base::yaml::POLICY_DIALECT;
    use capsule_base::yaml::parse;

    use super::*;

    fn check(text: &str, wanted: &YamlInsertion, expected: &str) {
        let root = parse(text, &POLICY_DIALECT).unwrap().unwrap();
        let got = insert_yaml(text, &root, wanted).unwrap();
        assert_eq!(got, expected, "{text}");
        // What stands there twice is put there once, and what is new can be read.
        let again = parse(&got, &POLICY_DIALECT).unwrap().unwrap();
        assert!(again.to_json().to_string().len() >= root.to_json().to_string().len());
    }

    fn rule() -> YamlInsertion {
        YamlInsertion::map([
            ("id", YamlInsertion::scalar("x")),
            ("paths", YamlInsertion::list(["a b", "c"])),
        ])
    }

    #[test]
    fn what_is_new_stands_where_it_belongs() {
        let rules = YamlInsertion::List(vec![rule()]).under_keys(&["tools", "fs.read", "rules"]);
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
        let open = YamlInsertion::list(["b", "a"]).under_keys(&["paths", "allow"]);
        check("paths: [a]\n", &open, "paths: [a, b]\n");
        check("paths:\n  - a # first\n", &open, "paths:\n  - a # first\n  - b\n");
        check("paths: { deny: [x] }\n", &open, "paths: { deny: [x], allow: [b, a] }\n");
        let program = YamlInsertion::scalar("allow").under_keys(&["executables", "ls", "decision"]);
        check(
            "executables: [git, rg]\n",
            &program,
            "executables: { git: {}, rg: {}, ls: { decision: allow } }\n",
        );
        check(
            "a:\n  executables:\n  - git\n  - rg\n",
            &program.clone().under_keys(&["a"]),
            "a:\n  executables:\n    { git: {}, rg: {}, ls: { decision: allow } }\n",
        );
        check(
            "executables:\n  git:\n    decision: ask\n",
            &YamlInsertion::scalar("allow").under_keys(&["executables", "git", "decision"]),
            "executables:\n  git:\n    decision: allow\n",
        );
        let both = program.clone().merge(open);
        check(
            "executables: {}\n",
            &both,
            "executables: { ls: { decision: allow } }\npaths: { allow: [b, a] }\n",
        );
        let text = "executables:\n  - git # looks\n  - rg\n";
        let root = parse(text, &POLICY_DIALECT).unwrap().unwrap();
        assert!(insert_yaml(text, &root, &program).is_err(), "the comment would be lost");
    }

    #[test]
    fn what_is_long_stands_on_lines_of_its_own() {
        let test = YamlInsertion::map([
            (
                "name",
                YamlInsertion::scalar(
                    "a name that is long enough to be a sentence of some words: 1",
                ),
            ),
            (
                "call",
                YamlInsertion::map([("tool", YamlInsertion::scalar("fs.read")), ("args", rule())]),
            ),
            ("expect", YamlInsertion::map([("decision", YamlInsertion::scalar("allow"))])),
        ]);
        check(
            "name: p\ntests:\n  - name: one\n    expect: { x: y }\n",
            &YamlInsertion::List(vec![test]).under_keys(&["tests"]),
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
            let node = parse(&format!("[{}]", quoted(word)), &POLICY_DIALECT).unwrap().unwrap();
            assert_eq!(node.to_json(), serde_json::json!([word]));
        }
    }
}
