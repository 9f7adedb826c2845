//! Which spellings of a name a file system takes for the same.
//!
//! On NTFS, FAT, APFS, HFS+, and where a directory of ext4 says so, `.ENV` is `.env`. Whatever closes a name there
//! closes all of its spellings. What a file system does exactly differs, and is not asked: two names that any of
//! them takes for one are taken for one here (Unicode case, compatible forms, characters without width, dots and
//! blanks at the end, streams behind a colon).

use alloc::borrow::Cow;
use alloc::string::String;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use crate::path::WorkspacePath;

/// How a file system compares names, as far as that is known; what is stricter comes later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spelling {
    /// Byte by byte.
    #[default]
    Exact,
    /// In whatever form of Unicode.
    Form,
    /// In whatever case, as every file system has it that folds names: what surely is the same.
    Case,
    /// In whatever case and form.
    Folded,
    /// Nobody knows: as strictly as any does.
    Unknown,
}

/// How often case is folded: a letter may become one that has a further fold (`ẞ`, `ß`, `ss`).
const ROUNDS: usize = 3;

impl Spelling {
    /// Whether names are compared byte by byte.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        matches!(self, Self::Exact)
    }

    /// By which spellings something is opened: a rule that opens a name opens what surely has it.
    #[must_use]
    pub const fn opening(self) -> Self {
        match self {
            Self::Case | Self::Folded => Self::Case,
            Self::Exact | Self::Form | Self::Unknown => Self::Exact,
        }
    }

    /// The one spelling that stands for all of a name's.
    #[must_use]
    pub fn name<'n>(self, name: &'n str) -> Cow<'n, str> {
        if self == Self::Case {
            return self.text(name);
        }
        if self == Self::Exact || is_plain(name) {
            return Cow::Borrowed(name);
        }
        // A stream is a part of the file before the colon.
        let file = name.split(':').next().filter(|file| !file.is_empty()).unwrap_or(name);
        let folded = self.text(file);
        // What file systems of Windows drop, and what other systems put in its place.
        let trimmed = folded.trim_end_matches(['.', ' ', '\u{f028}', '\u{f029}']);
        if trimmed.is_empty() { Cow::Borrowed(name) } else { Cow::Owned(trimmed.into()) }
    }

    /// The one spelling of a part of a name.
    #[must_use]
    pub fn text(self, text: &str) -> Cow<'_, str> {
        if self == Self::Exact
            || text.is_ascii() && !text.bytes().any(|byte| byte.is_ascii_uppercase())
        {
            return Cow::Borrowed(text);
        }
        if self == Self::Case {
            return Cow::Owned(text.nfc().flat_map(char::to_lowercase).nfc().collect());
        }
        let visible = |c: &char| !is_ignored(*c);
        let mut folded: String = text.nfkd().filter(visible).collect();
        for _ in 0..ROUNDS {
            if self >= Self::Folded {
                let upper = folded.chars().flat_map(char::to_uppercase);
                folded = upper.flat_map(char::to_lowercase).collect();
            }
            folded = folded.nfkd().filter(visible).collect();
        }
        // No form of a character parts a path.
        Cow::Owned(
            folded.nfkc().map(|c| if c == '/' { char::REPLACEMENT_CHARACTER } else { c }).collect(),
        )
    }

    /// The one spelling of a path; none where it has that one.
    #[must_use]
    pub fn path(self, path: &WorkspacePath) -> Option<WorkspacePath> {
        if self == Self::Exact || path.components().all(is_plain) {
            return None;
        }
        let root = WorkspacePath::root();
        let folded = path.components().fold(root, |above, name| above.join(&self.name(name)));
        (folded != *path).then_some(folded)
    }

    /// Whether two names are taken for one.
    #[must_use]
    pub fn is_same(self, one: &str, other: &str) -> bool {
        one == other || self != Self::Exact && self.name(one) == self.name(other)
    }
}

/// Whether a name is its own spelling, as most are.
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase() && byte != b':';
    name.bytes().all(plain) && !name.ends_with(['.', ' '])
}

/// Characters that file systems leave out when they compare (`Default_Ignorable_Code_Point`).
const fn is_ignored(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// The forms of Unicode in which file systems keep names, where a text is in another one.
pub fn forms(text: &str) -> impl Iterator<Item = String> {
    let forms: [String; 2] = [text.nfc().collect(), text.nfd().collect()];
    forms.into_iter().filter(move |form| form != text)
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;
    use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

    use super::*;

    #[test]
    fn spellings_that_some_file_system_takes_for_one_are_one() {
        for (one, other, form, folded) in [
            (".env", ".ENV", false, true),
            (".env", ".Env.", false, true),
            (".env", ".env ", true, true),
            (".env", ".env. .", true, true),
            (".env", ".env:stream", true, true),
            (".env", ".env::$DATA", true, true),
            (".env", ".e\u{200c}nv", true, true),
            (".env", "\u{feff}.env", true, true),
            (".env", ".\u{ff45}\u{ff4e}\u{ff56}", true, true),
            (".env", "\u{ff0e}env", true, true),
            (".env", ".env\u{f029}", true, true),
            ("k", "\u{212a}", false, true),
            ("s", "\u{17f}", true, true),
            ("i", "\u{131}", false, true),
            ("Schlüssel", "Schlu\u{308}ssel", true, true),
            ("schlüssel", "SCHLU\u{308}SSEL", false, true),
            ("straße", "STRASSE", false, true),
            ("straße", "STRA\u{1e9e}E", false, true),
            ("σ", "ς", false, true),
            ("ﬁle", "file", true, true),
            (".env", ".env.x", false, false),
            (".env", "env", false, false),
            (".env", "x.env", false, false),
            ("...", ".", false, false),
            (":x", ":y", false, false),
            ("..", "\u{ff0e}\u{ff0e}", false, false),
            ("a/b", "a\u{ff0f}b", false, false),
        ] {
            for (spelling, expected) in
                [(Spelling::Exact, false), (Spelling::Form, form), (Spelling::Folded, folded)]
            {
                assert_eq!(
                    spelling.is_same(one, other),
                    expected,
                    "{spelling:?} {one:?} {other:?}"
                );
            }
        }
        // What a rule opens is less than what one closes.
        for (one, other, same) in [
            ("README.md", "readme.MD", true),
            ("Schlüssel", "SCHLU\u{308}SSEL", true),
            (".env", ".env.", false),
            (".env", ".\u{ff45}nv", false),
            ("straße", "strasse", false),
        ] {
            assert_eq!(Spelling::Folded.opening().is_same(one, other), same, "{one} {other}");
            assert!(!Spelling::Unknown.opening().is_same(one, other), "{one} {other}");
            assert!(Spelling::Unknown.is_same(one, other) || !same, "{one} {other}");
        }
        let path = WorkspacePath::parse("Sub/.ENV").unwrap();
        let folded = Spelling::Folded.path(&path).map(|path| path.to_string());
        assert_eq!(folded.as_deref(), Some("sub/.env"));
        assert_eq!(Spelling::Folded.path(&WorkspacePath::parse("sub/.env").unwrap()), None);
        assert_eq!(Spelling::Exact.path(&path), None);
    }

    /// What NTFS, ext4 and f2fs compare by is at least Unicode's simple folding.
    #[test]
    fn letters_that_unicode_folds_are_one() {
        for c in '\u{80}'..=char::MAX {
            let mut class = ClassUnicode::new([ClassUnicodeRange::new(c, c)]);
            class.try_case_fold_simple().unwrap();
            let text = Spelling::Folded.text(c.encode_utf8(&mut [0; 4])).into_owned();
            for other in class.iter().flat_map(|range| range.start()..=range.end()) {
                let other_folded =
                    Spelling::Folded.text(other.encode_utf8(&mut [0; 4])).into_owned();
                assert_eq!(text, other_folded, "{c:?} {other:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_spelling_stands_for_itself(name in "[^/]{1,12}") {
            for spelling in [Spelling::Form, Spelling::Case, Spelling::Folded, Spelling::Unknown] {
                let once = spelling.name(&name).into_owned();
                // Trimming may leave what would be trimmed on.
                let twice = spelling.name(&once).into_owned();
                prop_assert_eq!(spelling.name(&twice), twice.as_str());
                prop_assert!(spelling.is_same(&name, &name));
            }
        }
    }
}
