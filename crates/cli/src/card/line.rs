//! One line of text that a person types: a reason, or arguments.

use crate::card::bytes::{Key, Move};

/// A line and a place in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    before: Vec<char>,
    /// What stands behind the cursor, the last character first.
    behind: Vec<char>,
    most: usize,
}

impl Line {
    /// A line with a text in it, of at most so many bytes.
    pub(crate) fn new(text: &str, most: usize) -> Self {
        Self { before: text.chars().collect(), behind: Vec::new(), most }
    }

    /// The text.
    pub(crate) fn text(&self) -> String {
        self.before.iter().chain(self.behind.iter().rev()).collect()
    }

    /// The text before and behind the cursor.
    pub(crate) fn halves(&self) -> (String, String) {
        (self.before.iter().collect(), self.behind.iter().rev().collect())
    }

    /// Puts a text in, line ends as blanks.
    pub(crate) fn put(&mut self, text: &str) {
        let mut used = self.text().len();
        for c in text.chars() {
            used += c.len_utf8();
            if used > self.most {
                return;
            }
            self.before.push(if c.is_control() { ' ' } else { c });
        }
    }

    /// Does what a key says; `Enter` is not its business.
    pub(crate) fn press(&mut self, key: Key) {
        match key {
            Key::Char(c) => self.put(c.encode_utf8(&mut [0; 4])),
            Key::Backspace => {
                self.before.pop();
            }
            Key::Delete => {
                self.behind.pop();
            }
            Key::Move(Move::Left) => self.behind.extend(self.before.pop()),
            Key::Move(Move::Right) => self.before.extend(self.behind.pop()),
            Key::Move(Move::First) => self.behind.extend(self.before.drain(..).rev()),
            Key::Move(Move::Last) => self.before.extend(self.behind.drain(..).rev()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_edited() {
        let mut line = Line::new("abc", 6);
        for key in [Key::Move(Move::First), Key::Delete, Key::Char('x'), Key::Move(Move::Right)] {
            line.press(key);
        }
        assert_eq!(line.halves(), ("xb".into(), "c".into()));
        line.put("1\n234");
        assert_eq!(line.text(), "xb1 2c");
        line.press(Key::Move(Move::Last));
        line.press(Key::Backspace);
        line.press(Key::Move(Move::Left));
        assert_eq!(line.halves(), ("xb1 ".into(), "2".into()));
    }
}
