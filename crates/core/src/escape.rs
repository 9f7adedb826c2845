//! Text from elsewhere, made safe to show.
//!
//! File names, output, arguments and error texts may hold control sequences that move the cursor,
//! characters that turn the reading direction, and characters that cannot be seen. On a screen each
//! of them becomes its code point in brackets, so that what is read is what is there.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt::Write;

/// Whether a character would do something other than show itself.
#[must_use]
pub fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Zero-width and joining characters, direction marks, embeddings and isolates.
            '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            // Variation selectors and tags: text that no font shows.
            | '\u{fe00}'..='\u{fe0f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
            // Private use: every font may show something else.
            | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}')
}

/// One line of text: every hostile character, line ends included, becomes `⟨U+202E⟩`.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// Text of several lines: line feeds and tabs stay.
#[must_use]
pub fn block(text: &str) -> Cow<'_, str> {
    escaped(text, |c| matches!(c, '\n' | '\t'))
}

fn escaped(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(|c| is_hostile(c) && !keep(c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hostile(c) && !keep(c) {
            // Writing to a string cannot fail.
            let _ = write!(shown, "⟨U+{:04X}⟩", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_named() {
        for (text, shown) in [
            ("plain text, ünïcode, 日本", "plain text, ünïcode, 日本"),
            ("a\u{202e}b", "a⟨U+202E⟩b"),
            ("\u{1b}[2J", "⟨U+001B⟩[2J"),
            ("a\u{200b}b\u{2060}c", "a⟨U+200B⟩b⟨U+2060⟩c"),
            ("one\ntwo\tthree", "one⟨U+000A⟩two⟨U+0009⟩three"),
            ("\u{9b}31m", "⟨U+009B⟩31m"),
            ("\u{e0041}", "⟨U+E0041⟩"),
        ] {
            assert_eq!(line(text), shown);
        }
        assert_eq!(block("one\ntwo\r\n"), "one\ntwo⟨U+000D⟩\n");
    }
}
