//! Lists of words.

use alloc::string::String;

/// A command line for reading: words with blanks or quotes stand in quotes.
#[must_use]
pub fn show_argv(argv: &[String]) -> String {
    let plain = |word: &str| {
        !word.is_empty()
            && word.chars().all(|c| c.is_alphanumeric() || "-_=./:,+@%^~[]{}".contains(c))
    };
    let mut line = String::new();
    for (index, word) in argv.iter().enumerate() {
        if index > 0 {
            line.push(' ');
        }
        if plain(word) {
            line.push_str(word);
        } else {
            line.push('\'');
            line.push_str(&word.replace('\'', "'\\''"));
            line.push('\'');
        }
    }
    line
}

/// Words as a text of the command language, each in quotes, whatever they mean there.
#[must_use]
pub fn quote_words(words: &[String]) -> String {
    let mut text = String::new();
    for (index, word) in words.iter().enumerate() {
        text.push_str(if index > 0 { " '" } else { "'" });
        text.push_str(&word.replace('\'', "'\\''"));
        text.push('\'');
    }
    text
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn words_are_shown_in_quotes_where_they_need_them() {
        let argv = ["git", "commit", "-m", "it's done", ""].map(|word| word.to_string());
        assert_eq!(show_argv(&argv), r"git commit -m 'it'\''s done' ''");
    }
}
