//! Notes, as a crate of its own.

/// The words of a text, each with how often it occurs.
///
/// ```
/// assert_eq!(notes::words("a b a").len(), 2);
/// ```
pub fn words(text: &str) -> std::collections::BTreeMap<&str, usize> {
    text.split_whitespace().fold(Default::default(), |mut all, word| {
        *all.entry(word).or_default() += 1;
        all
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_are_counted() {
        let text = "one two three two ".repeat(100_000);
        assert_eq!(super::words(&text)["two"], 200_000);
    }

    #[test]
    fn files_are_read() {
        let directory = std::env::temp_dir().join(format!("notes-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        for number in 0..300 {
            std::fs::write(directory.join(number.to_string()), "a note").unwrap();
        }
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 300);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
