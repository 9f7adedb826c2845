//! One line of text that a person types: a reason, or arguments.

use crate::card::key_decoder::{Key, Motion};

/// A line and a place in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextField {
    before: Vec<char>,
    /// What stands behind the cursor, the last character first.
    after: Vec<char>,
    max_bytes: usize,
}

impl TextField {
    /// A line with a text in it, of at most so many bytes.
    pub(crate) fn new(text: &str, most: usize) -> Self {
        Self { before: text.chars().collect(), after: Vec::new(), max_bytes: most }
    }

    /// The text.
    pub(crate) fn text(&self) -> String {
        self.before.iter().chain(self.after.iter().rev()).collect()
    }

    /// The text before and behind the cursor.
    pub(crate) fn around_cursor(&self) -> (String, String) {
        (self.before.iter().collect(), self.after.iter().rev().collect())
    }

    /// Puts a text in, line ends as blanks.
    pub(crate) fn insert(&mut self, text: &str) {
        let mut used = self.text().len();
        for c in text.chars() {
            used += c.len_utf8();
            if used > self.max_bytes {
                return;
            }
            self.before.push(if c.is_control() { ' ' } else { c });
        }
    }

    /// Does what a key says; `Enter` is not its business.
    pub(crate) fn handle_key(&mut self, key: Key) {
        match key {
            Key::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            Key::Backspace => {
                self.before.pop();
            }
            Key::Delete => {
                self.after.pop();
            }
            Key::Move(Motion::Left) => self.after.extend(self.before.pop()),
            Key::Move(Motion::Right) => self.before.extend(self.after.pop()),
            Key::Move(Motion::First) => self.after.extend(self.before.drain(..).rev()),
            Key::Move(Motion::Last) => self.before.extend(self.after.drain(..).rev()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_edited() {
        let mut line = TextField::new("abc", 6);
        for key in [Key::Move(Motion::First), Key::Delete, Key::Char('x'), Key::Move(Motion::Right)]
        {
            line.handle_key(key);
        }
        assert_eq!(line.around_cursor(), ("xb".into(), "c".into()));
        line.insert("1\n234");
        assert_eq!(line.text(), "xb1 2c");
        line.handle_key(Key::Move(Motion::Last));
        line.handle_key(Key::Backspace);
        line.handle_key(Key::Move(Motion::Left));
        assert_eq!(line.around_cursor(), ("xb1 ".into(), "2".into()));
    }
}
