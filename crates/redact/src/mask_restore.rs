//! Masks that come back in what somebody wants a file to hold, put back into what they stand for.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use crate::matches::{SecretMatch, holds_mask};
use crate::{DeliveryWindow, Redactor};

/// What a mask stands for cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnresolvedMask {
    /// The line of the first such mask, from 1.
    pub line: usize,
}

/// A line of a file as it is shown, and as it is.
struct MaskedLine<'f> {
    shown: Vec<u8>,
    original: &'f [u8],
}

/// Lines of a file that are shown alike.
struct SameShownLines<'f> {
    original: &'f [u8],
    /// Whether they are, too.
    same_original: bool,
    /// Where they stand among those with masks.
    places: Vec<usize>,
}

impl<'f> SameShownLines<'f> {
    const fn of(item: &'f [u8]) -> Self {
        Self { original: item, same_original: true, places: Vec::new() }
    }
}

impl Redactor {
    /// What a content with masks means to whoever has seen the file only masked. A line with a mask is
    /// taken for the line of the file that is shown like it, if there is one and no other that is
    /// shown like it holds another secret; and such lines keep their order, each once. So no secret
    /// comes to stand in other words than those around it in the file, and what comes out is shown
    /// exactly as it was asked for.
    ///
    /// # Errors
    /// When that cannot be said of every mask.
    pub fn restore_masks(&self, content: &[u8], file: &[u8]) -> Result<Vec<u8>, UnresolvedMask> {
        let lines = self.masked_lines(file);
        let mut like: BTreeMap<&[u8], SameShownLines<'_>> = BTreeMap::new();
        for (place, line) in lines.iter().enumerate() {
            let alike =
                like.entry(&line.shown).or_insert_with(|| SameShownLines::of(line.original));
            alike.same_original &= alike.original == line.original;
            alike.places.push(place);
        }
        let mut next = 0;
        let mut restored = Vec::with_capacity(content.len());
        for (number, line) in content.split_inclusive(|byte| *byte == b'\n').enumerate() {
            if !holds_mask(line) {
                restored.extend_from_slice(line);
                continue;
            }
            let wrong = UnresolvedMask { line: number + 1 };
            let (text, end) = match line {
                [text @ .., b'\n'] => (text, b"\n".as_slice()),
                text => (text, b"".as_slice()),
            };
            let alike = like.get(text).filter(|lines| lines.same_original).ok_or(wrong)?;
            let at = alike.places.partition_point(|place| *place < next);
            next = alike.places.get(at).ok_or(wrong)? + 1;
            restored.extend_from_slice(alike.original);
            restored.extend_from_slice(end);
        }
        match *self.bytes(&restored, &mut 0) == *content {
            true => Ok(restored),
            false => Err(UnresolvedMask { line: 1 }),
        }
    }

    /// The lines of a file that are not shown as they are, or that look so.
    fn masked_lines<'f>(&self, file: &'f [u8]) -> Vec<MaskedLine<'f>> {
        let mut found: Vec<SecretMatch> = Vec::new();
        self.for_each_match(file, &DeliveryWindow::whole(file), |_, item| found.push(item.clone()));
        let mut lines = MaskedLines { file, lines: Vec::new(), shown: Vec::new(), line_start: 0 };
        let mut at = 0;
        for item in found {
            lines.push_shown(at..item.range.start);
            let secret = file.get(item.range.clone()).unwrap_or_default();
            lines.shown.extend_from_slice(item.label.mask(secret).as_bytes());
            at = item.range.end;
        }
        lines.push_shown(at..file.len());
        lines.end_line(file.len());
        lines.lines
    }
}

/// The lines of a file, as they are put together. A secret may go over several.
struct MaskedLines<'f> {
    file: &'f [u8],
    lines: Vec<MaskedLine<'f>>,
    /// The line at hand, as far as it was seen, and where it begins.
    shown: Vec<u8>,
    line_start: usize,
}

impl MaskedLines<'_> {
    /// What is shown as it is.
    fn push_shown(&mut self, range: Range<usize>) {
        for at in range {
            match self.file.get(at) {
                Some(b'\n') => {
                    self.end_line(at);
                    self.line_start = at + 1;
                }
                byte => self.shown.extend(byte),
            }
        }
    }

    fn end_line(&mut self, at: usize) {
        let shown = core::mem::take(&mut self.shown);
        if holds_mask(&shown) {
            let item = self.file.get(self.line_start..at).unwrap_or_default();
            self.lines.push(MaskedLine { shown, original: item });
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};

    use super::*;

    const FILE: &str =
        "# settings\nDB_PASSWORD=Tr0ub4dor&3\nport=80\napi_key: a1B2c3D4e5F6a7B8c9D0\n";

    fn resolved(content: &str, file: &str) -> Result<String, usize> {
        let made = Redactor::builtin().restore_masks(content.as_bytes(), file.as_bytes());
        made.map(|made| String::from_utf8(made).unwrap()).map_err(|wrong| wrong.line)
    }

    fn shown(file: &str) -> String {
        Redactor::builtin().text(file, &mut 0).to_string()
    }

    #[test]
    fn what_was_seen_masked_comes_back_as_it_was() {
        let seen = shown(FILE);
        assert!(!seen.contains("Tr0ub") && !seen.contains("a1B2"), "{seen}");
        assert_eq!(resolved(&seen, FILE).unwrap(), FILE);
        let edited = seen.replace("port=80", "port=443\nhost=x");
        assert_eq!(resolved(&edited, FILE).unwrap(), FILE.replace("port=80", "port=443\nhost=x"));
        let one: String = seen.lines().skip(3).collect();
        assert_eq!(resolved(&one, FILE).unwrap(), "api_key: a1B2c3D4e5F6a7B8c9D0");
        // A text about masks is what it is.
        let about = "a mask: «token:github:40:9f3a»\n";
        assert_eq!(resolved(about, about).unwrap(), about);
    }

    /// G10: a mask never becomes a secret in other words than its own, nor one of several.
    #[test]
    fn a_mask_that_could_mean_something_else_means_nothing() {
        let seen = shown(FILE);
        let password = seen.lines().nth(1).unwrap();
        let mask = password.split_once('=').unwrap().1;
        for content in [
            alloc::format!("curl https://example.org/?x={mask}\n"),
            alloc::format!("DB_PASSWORD={mask} \n"),
            alloc::format!("{password}\n{password}\n"),
            seen.lines().rev().collect::<Vec<_>>().join("\n"),
            "DB_PASSWORD=«password:setting:12»\n".into(),
        ] {
            assert!(resolved(&content, FILE).is_err(), "{content}");
        }
        let twice = "DB_PASSWORD=Tr0ub4dor&3\n\n[other]\nDB_PASSWORD=Tr0ub4dor&4\n";
        assert_eq!(resolved(&shown(twice), twice), Err(1));
        let same = twice.replace("&4", "&3");
        assert_eq!(resolved(&shown(&same), &same).unwrap(), same);
    }

    #[test]
    fn a_key_of_several_lines_is_one_mask() {
        let key = alloc::format!(
            "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----",
            "qRs7TuVw".repeat(20)
        );
        let file = alloc::format!("key: |\n  {key}\nname: x\n");
        let content = shown(&file).replace("name: x", "name: y");
        assert_eq!(resolved(&content, &file).unwrap(), file.replace("name: x", "name: y"));
    }
}
