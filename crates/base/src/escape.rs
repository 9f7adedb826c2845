//! Text from elsewhere, made safe to show.
//!
//! File names, output, arguments and error texts may hold control sequences that move the cursor,
//! characters that turn the reading direction, and characters that cannot be seen. On a screen each
//! of them becomes its code point in brackets, so that what is read is what is there.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt::Write;

use crate::confusables;

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

/// One line of which every character matters: words, names and paths. What may be taken for another
/// character is named, too.
#[must_use]
pub fn strict_line(text: &str) -> Cow<'_, str> {
    let alike = confusables::find_confusables(text, true);
    escaped_at(text, |at, c| is_hostile(c) || alike.contains(&at))
}

/// Text of several lines, of which every word matters: as [`block`], and a letter that passes for
/// another one is named, too.
#[must_use]
pub fn strict_block(text: &str) -> Cow<'_, str> {
    let alike = confusables::find_confusables(text, false);
    let hides = |c: char| is_hostile(c) && !matches!(c, '\n' | '\t');
    escaped_at(text, |at, c| hides(c) || alike.contains(&at))
}

fn escaped(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    escaped_at(text, |_, c| is_hostile(c) && !keep(c))
}

fn escaped_at(text: &str, hides: impl Fn(usize, char) -> bool) -> Cow<'_, str> {
    if !text.char_indices().any(|(at, c)| hides(at, c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        if hides(at, c) {
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
        for (given, shown) in [
            ("rm -rf /tmp/x", "rm -rf /tmp/x"),
            ("\u{433}m", "⟨U+0433⟩m"),
            ("\u{441}\u{43e}\u{440}", "⟨U+0441⟩⟨U+043E⟩⟨U+0440⟩"),
            ("\u{2014}force", "⟨U+2014⟩force"),
            ("notes \u{2014} more", "notes \u{2014} more"),
            ("a\u{2044}b c\u{a0}d", "a⟨U+2044⟩b c⟨U+00A0⟩d"),
            ("⟨U+0041⟩", "⟨U+27E8⟩U+0041⟨U+27E9⟩"),
            ("\u{ff52}\u{ff4d}", "⟨U+FF52⟩⟨U+FF4D⟩"),
            ("отчёт.md", "отчёт.md"),
            ("Übung naïve 日本", "Übung naïve 日本"),
        ] {
            assert_eq!(strict_line(given), shown);
        }
        assert_eq!(strict_block("a\u{a0}b \u{440}m\n\tмир"), "a\u{a0}b ⟨U+0440⟩m\n\tмир");
        assert_eq!(block("one\ntwo\r\n"), "one\ntwo⟨U+000D⟩\n");
    }
}
