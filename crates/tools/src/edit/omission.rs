//! Lines in place of text which was left out.

/// The words of comments before such a line, and behind it.
const COMMENT_SIGNS: &[char] = &['/', '#', '-', ';', '*', '%', '<', '!', '>', '"', '\'', '(', '{'];
/// The words by which it says what was left out.
const LEFT_OUT: &[&str] = &[
    "rest",
    "existing",
    "unchanged",
    "remaining",
    "remainder",
    "previous",
    "omitted",
    "same",
    "other",
];

/// The first line of a new text in place of text which was left out, as in `// ... existing code ...`; none where each
/// such line is in the old text too.
pub(super) fn find_omission<'t>(new: &'t str, old: &str) -> Option<&'t str> {
    let mut lines = new.lines().map(str::trim);
    lines.find(|line| is_omission(line) && !old.lines().any(|known| known.trim() == *line))
}

/// Whether a line is nothing but an ellipsis with a word for what is left out. Code that begins otherwise is none.
fn is_omission(line: &str) -> bool {
    let is_frame = |sign: char| sign.is_whitespace() || COMMENT_SIGNS.contains(&sign);
    let text = line.trim_matches(|sign: char| is_frame(sign) || matches!(sign, ')' | '}'));
    let is_comment = line.starts_with(COMMENT_SIGNS);
    let begins = ["...", "\u{2026}"].iter().any(|dots| text.starts_with(dots));
    let ends = ["...", "\u{2026}"].iter().any(|dots| text.ends_with(dots));
    let mut words = text.split(|sign: char| !sign.is_alphanumeric());
    (begins || ends && is_comment)
        && words.any(|word| LEFT_OUT.contains(&word.to_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_seen() {
        for line in [
            "# ... rest of file",
            "    // ... existing code ...",
            "/* … unchanged … */",
            "<!-- rest of the page ... -->",
            "... remaining functions",
            "-- ... (same as before)",
            "{/* ... other props ... */}",
        ] {
            assert_eq!(find_omission(line, ""), Some(line.trim()));
            assert_eq!(find_omission(line, &format!("a\n  {line}\nb")), None, "{line}");
        }
        for line in [
            "...",
            "    ...",
            "print(\"loading the rest ...\")",
            "f(...rest)",
            "const { a, ...rest } = b;",
            "// and so on ...",
            "// the rest is unchanged",
            "[...existing, next]",
            "...",
            "## Other",
        ] {
            assert_eq!(find_omission(line, ""), None, "{line}");
        }
    }
}
