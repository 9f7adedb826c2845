//! Text of a model in lines, while it comes: broken between words, with nothing in it that moves the cursor but
//! what this module puts there.

use capsule_base::escape;
use capsule_report::width;

/// How many blanks a tab is.
const TAB: &str = "    ";

/// Breaks a text that comes in pieces into lines, and holds none of it back: a word that does not fit behind what
/// is shown already is taken back and begins the next line.
#[derive(Debug)]
pub(crate) struct TextFlow {
    /// The columns of a line; none where the terminal breaks lines by itself.
    columns: Option<usize>,
    /// How many are used.
    used: usize,
    /// The word that the last piece ended in.
    word: String,
    /// Whether nothing was written since the last end.
    is_empty: bool,
}

impl TextFlow {
    /// A text in lines of so many columns.
    pub(crate) const fn new(columns: Option<usize>) -> Self {
        Self { columns, used: 0, word: String::new(), is_empty: true }
    }

    /// Takes a piece; gives what is to be written.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let mut out = String::with_capacity(piece.len() + 8);
        for c in escape::block(piece).chars() {
            match c {
                // Nothing is shown of the line ends that a text begins with.
                '\n' if self.is_empty => {}
                '\n' => self.break_line(&mut out),
                '\t' => TAB.chars().for_each(|blank| self.push_blank(blank, &mut out)),
                ' ' => self.push_blank(c, &mut out),
                c => self.push_letter(c, &mut out),
            }
        }
        out
    }

    /// Ends the text; gives what is to be written before anything else is.
    pub(crate) fn end(&mut self) -> &'static str {
        let is_open = self.used > 0;
        *self = Self::new(self.columns);
        if is_open { "\n" } else { "" }
    }

    fn break_line(&mut self, out: &mut String) {
        out.push('\n');
        self.used = 0;
        self.word.clear();
    }

    fn push_blank(&mut self, blank: char, out: &mut String) {
        self.word.clear();
        match self.columns {
            // The blank behind a full line is its end.
            Some(columns) if self.used >= columns => self.break_line(out),
            _ => {
                out.push(blank);
                self.used += 1;
            }
        }
    }

    fn push_letter(&mut self, c: char, out: &mut String) {
        let wide = width(c.encode_utf8(&mut [0; 4]));
        if self.columns.is_some_and(|columns| self.used + wide > columns) {
            let taken = width(&self.word);
            if taken > 0 && taken < self.used {
                out.push_str(&format!("\x1b[{taken}D\x1b[K\n{}", self.word));
                self.used = taken;
            } else {
                self.break_line(out);
            }
        }
        out.push(c);
        self.word.push(c);
        self.used += wide;
        self.is_empty = false;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panics")]

    use std::num::NonZero;

    use super::*;

    /// The text that a terminal shows of what was written.
    fn shown(written: &[String]) -> Vec<String> {
        let size = |size| NonZero::new(size).unwrap();
        let mut screen = vt100::Parser::new(size(20), size(40), 0);
        for piece in written {
            screen.process(piece.replace('\n', "\r\n").as_bytes());
        }
        let rows = screen.screen().rows(0, 40);
        let rows: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
        let used = rows.iter().rposition(|row| !row.is_empty()).map_or(0, |at| at + 1);
        rows.into_iter().take(used).collect()
    }

    /// However a text is cut into pieces, it ends in the same lines, none of them too long and no word in two.
    #[test]
    fn words_stay_whole_however_they_come() {
        let text = "\n\nThe quick brown fox jumps over the lazy dog.\n\n- 日本語日本語日本語 wide\n\
                    a-word-that-is-longer-than-any-line-can-be end";
        let whole = shown(&[TextFlow::new(Some(16)).push(text)]);
        assert!(whole.iter().all(|line| width(line) <= 16), "{whole:#?}");
        assert_eq!(whole.first().map(String::as_str), Some("The quick brown"));
        for size in 1..9 {
            let mut flow = TextFlow::new(Some(16));
            let letters: Vec<char> = text.chars().collect();
            let pieces = letters.chunks(size).map(|piece| piece.iter().collect::<String>());
            let written: Vec<String> = pieces.map(|piece| flow.push(&piece)).collect();
            assert_eq!(shown(&written), whole, "{size}");
            assert_eq!(flow.end(), "\n");
            assert_eq!(flow.end(), "");
        }
    }

    /// Nothing of a model's text reaches the terminal as a control character.
    #[test]
    fn hostile_text_is_escaped_in_every_piece() {
        let mut flow = TextFlow::new(None);
        let written: String = ["a\u{1b}", "[2Jb\r", "c\u{9b}31m\u{7}", "\u{202e}d\te"]
            .map(|piece| flow.push(piece))
            .concat();
        assert_eq!(written, "a⟨U+001B⟩[2Jb⟨U+000D⟩c⟨U+009B⟩31m⟨U+0007⟩⟨U+202E⟩d    e");
    }
}
