//! One layout for policies: two columns a level, no space at the ends of lines, no two empty lines.
//!
//! Only white space changes, and never inside of a text: comments, quotes, order and line breaks stay
//! as their author wrote them. What comes out is read again and must be the same tree.

use std::collections::{BTreeMap, BTreeSet};

use capsule_base::diagnostic::Diagnostic;
use capsule_base::yaml::POLICY_DIALECT;
use capsule_base::yaml::{self, YamlNode, YamlScalar, YamlValue};

/// Columns of one level.
const INDENT_STEP: usize = 2;

/// Where no key or dash stands: inside of brackets.
const IN_BRACKETS: (usize, usize) = (usize::MAX, 0);

/// A text that cannot be laid out anew without changing what it says.
#[derive(Debug)]
pub enum FormatError {
    /// It cannot be read.
    Unreadable(Box<Diagnostic>),
    /// It would say something else, so it stays as it is.
    Ambiguous,
}

/// The same policy in its canonical layout.
///
/// # Errors
/// When the text cannot be read, or would say something else.
pub fn format_policy(text: &str) -> Result<String, FormatError> {
    let read = |text: &str| yaml::parse(text, &POLICY_DIALECT);
    let before = read(text).map_err(|problem| FormatError::Unreadable(Box::new(problem)))?;
    let Some(root) = &before else { return Err(FormatError::Ambiguous) };
    let mut sheet = LineLayout::new(text);
    let laid = sheet
        .add_block(root, None, 0)
        .and_then(|()| sheet.write())
        .ok_or(FormatError::Ambiguous)?;
    let after = read(&laid).ok().flatten().ok_or(FormatError::Ambiguous)?;
    let solid = |text: &str| text.split_whitespace().collect::<String>();
    match same_tree(root, &after) && solid(text) == solid(&laid) {
        true => Ok(laid),
        false => Err(FormatError::Ambiguous),
    }
}

/// Whether two trees say the same, wherever they stand.
fn same_tree(one: &YamlNode, other: &YamlNode) -> bool {
    match (&one.value, &other.value) {
        (YamlValue::Scalar(one), YamlValue::Scalar(other)) => one == other,
        (YamlValue::List(one), YamlValue::List(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| same_tree(one, other))
        }
        (YamlValue::Map(one), YamlValue::Map(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|((key, one), (name, other))| {
                    same_tree(key, name) && same_tree(one, other)
                })
        }
        _ => false,
    }
}

/// What begins at a column.
#[derive(Clone, Copy)]
struct IndentToken {
    /// The column that it belongs in.
    indent: usize,
    /// Whether what follows on other lines moves with it: it is a key or a dash.
    moves_following: bool,
}

/// The lines of a text, and what begins on them.
struct LineLayout<'t> {
    lines: Vec<&'t str>,
    /// Where each line begins.
    starts: Vec<usize>,
    /// By line: the columns where a key, a dash or an item begins.
    tokens: BTreeMap<usize, BTreeMap<usize, IndentToken>>,
    /// The lines behind the first of a text of several lines.
    texts: BTreeSet<usize>,
}

impl<'t> LineLayout<'t> {
    fn new(text: &'t str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(ends).collect();
        let lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
        Self { lines, starts, tokens: BTreeMap::new(), texts: BTreeSet::new() }
    }

    /// The line and column of a byte.
    fn position(&self, byte: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= byte).saturating_sub(1);
        (line, byte - self.starts.get(line).copied().unwrap_or(0))
    }

    fn line(&self, number: usize) -> &'t str {
        self.lines.get(number).copied().unwrap_or("")
    }

    fn add_token(&mut self, (line, column): (usize, usize), indent: usize) {
        self.tokens
            .entry(line)
            .or_default()
            .insert(column, IndentToken { indent, moves_following: true });
    }

    /// Notes where everything begins that stands on a level of its own. Nothing where that cannot be
    /// told.
    fn add_block(
        &mut self,
        node: &YamlNode,
        key: Option<(usize, usize)>,
        depth: usize,
    ) -> Option<()> {
        let indent = depth * INDENT_STEP;
        // What is in brackets takes up at least its bracket.
        let is_block = node.span.is_empty();
        match &node.value {
            YamlValue::Map(entries) if is_block => entries.iter().try_for_each(|(key, value)| {
                let place = self.position(key.span.start);
                self.add_token(place, indent);
                self.add_text(key, place.0);
                self.add_value(value, place, depth + 1)
            }),
            YamlValue::List(items) if is_block => {
                let column = self.dash_column(node, key);
                items.iter().try_for_each(|item| {
                    let dash = self.dash_line(self.position(item.span.start).0, column)?;
                    self.add_token((dash, column), indent);
                    let rest = self.line(dash).get(column + 1..)?;
                    let bare = rest.trim_start();
                    if !bare.is_empty() && !bare.starts_with('#') {
                        let token =
                            IndentToken { indent: indent + INDENT_STEP, moves_following: false };
                        let place = column + 1 + rest.len() - bare.len();
                        self.tokens.entry(dash).or_default().insert(place, token);
                    }
                    self.add_value(item, (dash, column), depth + 1)
                })
            }
            _ => self.add_value(node, (0, 0), depth),
        }
    }

    /// A value whose key or dash stands here.
    fn add_value(&mut self, node: &YamlNode, owner: (usize, usize), depth: usize) -> Option<()> {
        match &node.value {
            YamlValue::Scalar(scalar) => {
                self.add_scalar(node, scalar, owner.0);
                Some(())
            }
            YamlValue::List(_) | YamlValue::Map(_) if node.span.is_empty() => {
                self.add_block(node, Some(owner), depth)
            }
            YamlValue::List(items) => {
                items.iter().try_for_each(|item| self.add_value(item, IN_BRACKETS, depth))
            }
            YamlValue::Map(entries) => entries.iter().try_for_each(|(key, value)| {
                self.add_text(key, IN_BRACKETS.0);
                self.add_value(value, IN_BRACKETS, depth)
            }),
        }
    }

    fn add_text(&mut self, node: &YamlNode, owner: usize) {
        if let YamlValue::Scalar(scalar) = &node.value {
            self.add_scalar(node, scalar, owner);
        }
    }

    /// Notes the lines of a text that must stay as they are among themselves.
    fn add_scalar(&mut self, node: &YamlNode, scalar: &YamlScalar, owner: usize) {
        let (first, _) = self.position(node.span.start);
        let (mut last, column) = self.position(node.span.end);
        // It may end on the line of what follows it, before that begins.
        if last > first && self.line(last).get(..column).is_some_and(|text| text.trim().is_empty())
        {
            last -= 1;
        }
        let head = self.line(owner).trim_end();
        let head = head.split(" #").next().unwrap_or("").trim_end();
        let bare = head.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-'));
        let is_literal = !scalar.plain && first > owner && bare.ends_with(['|', '>']);
        if !is_literal {
            self.texts.extend(first + 1..=last);
            return;
        }
        let keeps_all = head.get(bare.len()..).is_some_and(|signs| signs.contains('+'));
        while !keeps_all && last > owner && self.line(last).trim().is_empty() {
            last -= 1;
        }
        self.texts.extend(owner + 1..=last);
    }

    /// The column of the dashes of a list. Below a key they may stand as far out as the key itself.
    fn dash_column(&self, list: &YamlNode, key: Option<(usize, usize)>) -> usize {
        let (line, column) = self.position(list.span.start);
        let is_out = |(above, number): &(usize, usize)| {
            self.dash_line(line, *number).is_some_and(|dash| dash > *above)
        };
        key.filter(is_out).map_or(column, |(_, number)| number)
    }

    /// The line of the dash of an item: the item's own, or one above.
    fn dash_line(&self, line: usize, column: usize) -> Option<usize> {
        let is_dash = |number: &usize| {
            let (before, rest) = self.line(*number).split_at_checked(column).unwrap_or_default();
            rest.starts_with('-') && before.chars().all(|c| matches!(c, ' ' | '-'))
        };
        (0..=line).rev().find(is_dash)
    }

    /// The lines in their new places.
    fn write(&self) -> Option<String> {
        let mut laid = String::new();
        let mut levels: Vec<(usize, usize)> = Vec::new();
        // How far the level has moved that the line before is on.
        let (mut from, mut to) = (0, 0);
        let mut is_after_empty = false;
        for (number, line) in self.lines.iter().enumerate() {
            let bare = line.trim_end();
            if self.texts.contains(&number) {
                laid += &shift_line(line, from, to);
                laid.push('\n');
                continue;
            }
            if bare.is_empty() {
                is_after_empty = !laid.is_empty();
                continue;
            }
            if std::mem::take(&mut is_after_empty) {
                laid.push('\n');
            }
            if let Some(tokens) = self.tokens.get(&number) {
                laid += &reindent_line(bare, tokens)?;
                let (first, _) = tokens.first_key_value()?;
                levels.retain(|(column, _)| column < first);
                let item = tokens.iter().filter(|(_, token)| token.moves_following);
                levels.extend(item.map(|(column, token)| (*column, token.indent)));
                (from, to) = *levels.last()?;
            } else if bare.trim_start().starts_with('#') && !self.is_inside_value(number) {
                let indent = self.comment_indent(number, &levels);
                laid += &format!("{:indent$}{}", "", bare.trim_start());
            } else {
                laid += &shift_line(bare, from, to);
            }
            laid.push('\n');
        }
        Some(laid)
    }

    /// The next line behind this one that is neither empty nor a comment.
    fn next_content_line(&self, number: usize) -> Option<usize> {
        let is_more = |item: &usize| {
            let line = self.line(*item).trim();
            !line.is_empty() && (!line.starts_with('#') || self.texts.contains(item))
        };
        (number + 1..self.lines.len()).find(is_more)
    }

    /// Whether a comment stands in the middle of something.
    fn is_inside_value(&self, number: usize) -> bool {
        self.next_content_line(number).is_some_and(|next| !self.tokens.contains_key(&next))
    }

    /// A comment belongs to what follows it, or to the level that it stands on where it is deeper.
    fn comment_indent(&self, number: usize, levels: &[(usize, usize)]) -> usize {
        let line = self.line(number);
        let column = line.len() - line.trim_start().len();
        let next = self
            .next_content_line(number)
            .and_then(|next| self.tokens.get(&next)?.first_key_value());
        let (follows, indent) = next.map_or((0, 0), |(column, token)| (*column, token.indent));
        let item = levels.iter().rev().find(|(level, _)| *level <= column);
        match item {
            Some((level, indent)) if column > follows && *level > follows => *indent,
            _ => indent,
        }
    }
}

/// A line whose level moved from one column to another.
fn shift_line(line: &str, from: usize, to: usize) -> String {
    let bare = line.trim_start_matches(' ');
    if bare.is_empty() {
        return line.to_owned();
    }
    let indent = (line.len() - bare.len() + to).saturating_sub(from);
    format!("{:indent$}{bare}", "")
}

/// A line whose parts go where they belong. Nothing where something else stands between them.
fn reindent_line(line: &str, tokens: &BTreeMap<usize, IndentToken>) -> Option<String> {
    let mut laid = String::new();
    let mut rest = tokens.iter().peekable();
    let (first, _) = rest.peek()?;
    if !line.get(..**first)?.trim_start_matches(' ').is_empty() {
        return None;
    }
    while let Some((column, token)) = rest.next() {
        let part = match rest.peek() {
            Some((next, _)) => line.get(*column..**next)?.trim_end(),
            None => line.get(*column..)?,
        };
        if rest.peek().is_some() && part != "-" {
            return None;
        }
        let space = token.indent.checked_sub(laid.len())?;
        laid += &format!("{:space$}{part}", "");
    }
    Some(laid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, after: &str) {
        let laid = format_policy(before).unwrap_or_else(|error| panic!("{error:?}:\n{before}"));
        assert_eq!(laid, after, "of:\n{before}");
        assert_eq!(format_policy(&laid).unwrap(), laid);
    }

    #[test]
    fn levels_have_two_columns() {
        check(
            "a:\n      b: 1\n      c:\n       - x\n       -  y: 2\n          z: 3\n",
            "a:\n  b: 1\n  c:\n    - x\n    - y: 2\n      z: 3\n",
        );
        check("a:\n- - q\n  - r\n-\n   z: 2\n", "a:\n  - - q\n    - r\n  -\n    z: 2\n");
        check("a: 1", "a: 1\n");
        check(
            "a: {b: 1,\n     c: [x,\n  y]}\nd:\n    e: [ # why\n        f,\n\n        g\n    ]\n",
            "a: {b: 1,\n     c: [x,\n  y]}\nd:\n  e: [ # why\n      f,\n\n      g\n  ]\n",
        );
    }

    #[test]
    fn space_that_nobody_sees_goes() {
        check("\n\na: 1   \r\n\n\n\nb:\t\n  - x  \n\n\n", "a: 1\n\nb:\n  - x\n");
    }

    #[test]
    fn comments_stay_with_what_they_are_about() {
        check(
            "# top\na:\n     # of b\n     b: 1   # behind\n     # still of a\n# of c\nc:\n- x\n# end\n",
            "# top\na:\n  # of b\n  b: 1   # behind\n  # still of a\n# of c\nc:\n  - x\n# end\n",
        );
    }

    #[test]
    fn texts_stay_as_they_are() {
        check(
            "a:\n    b: |\n        one  \n\n\n          two # no comment\n        # none either\n    c: >-\n      x\n\n\nd: 'q\n  r'\n",
            "a:\n  b: |\n      one  \n\n\n        two # no comment\n      # none either\n  c: >-\n    x\n\nd: 'q\n  r'\n",
        );
        check("a:\n    b: |+\n        x\n\n\nc: 1\n", "a:\n  b: |+\n      x\n\n\nc: 1\n");
        check("a:\n   - |2\n       x\n   -   >\n     y\n", "a:\n  - |2\n      x\n  - >\n    y\n");
    }

    #[test]
    fn what_cannot_be_read_is_not_touched() {
        for text in ["a: [", "a: 1\na: 2\n", "&x a: 1", ""] {
            assert!(format_policy(text).is_err(), "{text}");
        }
    }
}
