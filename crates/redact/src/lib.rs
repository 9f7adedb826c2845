//! Masking what looks like a secret.
//!
//! What providers give out is told by its form (`rules`); what people and programs keep is told by
//! where it stands: behind a name (`setting`, `key`), in an address (`url`), a header (`header`), a
//! block (`pem`) or a command line (`command`), and by how it looks (`value`). What the policy knows
//! is told by its value (`known`) or by a pattern (`custom`).
//!
//! A match becomes a mask, `«token:github:40:9f3a»`: the kind, the rule, the length and, where nobody
//! could guess by it, the first digits of a digest, so that two places with one secret can be told to
//! be the same. Masking twice changes nothing, and it makes no difference in what pieces a text comes.
//!
//! It knows nothing of policies, decisions or records: texts come in and go out. There is no file,
//! process, network, environment, clock or randomness in it.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod call_patterns;
mod classifier;
mod command;
mod custom_pattern;
mod detectors;
mod encodings;
mod expression;
mod header;
mod json_values;
mod known_secrets;
pub mod limits;
mod lines;
mod mask_context;
mod mask_restore;
mod masked_argument;
mod masked_value;
mod matches;
mod name_tables;
mod pem;
mod prefilter;
mod prefix;
mod program_table;
mod quoted_value;
mod reader;
mod rules;
mod scan;
mod scan_state;
mod secret;
mod setting;
mod setting_names;
mod span;
mod stream;
mod text_window;
mod token_pattern;
mod tokens;
mod url;
mod value;
mod visible;
mod word_tables;

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use once_cell::race::OnceBox;

pub use custom_pattern::CustomPattern;
pub use mask_restore::UnresolvedMask;
pub use masked_argument::masked_argument;
pub use matches::{holds_mask, masks};
pub use secret::Secret;
pub use stream::MaskingStream;

use matches::SecretMatch;
use reader::{Reader, Text};
use scan::RuleSet;
use scan_state::ScanStep;
use text_window::TextEnd;
use visible::Start;

/// Finds and masks secrets.
#[derive(Clone, Debug)]
pub struct Redactor {
    rules: Arc<RuleSet>,
}

/// A secret that was found: what it is and where, never what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretFinding {
    /// What kind of secret.
    pub kind: &'static str,
    /// The rule that found it.
    pub rule: String,
    /// Its first byte, from 0.
    pub offset: u64,
    /// The line that it begins in, from 1.
    pub line: u64,
    /// Its first byte in that line, from 1.
    pub column: u64,
    /// How many bytes it has.
    pub length: u64,
}

/// A kind of credential that is told by its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CredentialKind {
    /// What its mask says first.
    pub kind: &'static str,
    /// Whose it is.
    pub name: &'static str,
    /// What it is.
    pub description: &'static str,
    /// Its form, as a regular expression.
    pub pattern: &'static str,
}

/// Whether a name says of its value that it is a secret: `password`, `--api-token`, `DB_PASS`. Of a key it
/// does not: most are files, or names of something.
#[must_use]
pub fn names_secret(name: &str) -> bool {
    let held = setting_names::category(name.trim_start_matches('-').as_bytes());
    held.is_some_and(|category| category != setting_names::SecretCategory::Key)
}

/// Every kind of credential that is told by its form.
pub fn credential_kinds() -> impl Iterator<Item = CredentialKind> {
    rules::all().map(|rule| {
        let rules::Rule { kind, name, description: what, pattern: form, .. } = *rule;
        CredentialKind { kind, name, description: what, pattern: form }
    })
}

/// The rules that this build ships, made once.
static BUILTIN: OnceBox<Arc<RuleSet>> = OnceBox::new();

impl Redactor {
    /// The rules that this build ships.
    #[must_use]
    pub fn builtin() -> Self {
        let make = || Box::new(Arc::new(RuleSet::new(Vec::new(), Vec::new())));
        Self { rules: Arc::clone(BUILTIN.get_or_init(make)) }
    }

    /// The same with secrets whose values are known, and with patterns of a policy.
    #[must_use]
    pub fn with(secrets: &[Secret], patterns: &[CustomPattern]) -> Self {
        if secrets.is_empty() && patterns.is_empty() {
            return Self::builtin();
        }
        let known = secrets.iter().map(known_secrets::KnownSecret::of).collect();
        Self { rules: Arc::new(RuleSet::new(known, patterns.to_vec())) }
    }

    const fn rules(&self) -> &Arc<RuleSet> {
        &self.rules
    }

    /// Masks bytes and counts the masks.
    #[must_use]
    pub fn bytes<'t>(&self, text: &'t [u8], masked: &mut u64) -> Cow<'t, [u8]> {
        self.mask_window(text, &DeliveryWindow::whole(text), masked)
    }

    /// Masks a text so that its lines keep their numbers: a mask that hides line breaks is followed by as many.
    #[must_use]
    pub fn keeping_lines<'t>(&self, text: &'t [u8], masked: &mut u64) -> Cow<'t, [u8]> {
        let breaks = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count();
        let mut clean: Vec<u8> = Vec::new();
        let mut kept = 0;
        self.for_each_match(text, &DeliveryWindow::whole(text), |item, found| {
            let Range { start, end } = found.range;
            clean.extend_from_slice(text.get(kept..start).unwrap_or_default());
            let before = clean.len();
            item.mask(found, &mut clean);
            let written = breaks(clean.get(before..).unwrap_or_default());
            let hidden = breaks(text.get(start..end).unwrap_or_default()).saturating_sub(written);
            clean.resize(clean.len() + hidden, b'\n');
            kept = end;
            *masked += 1;
        });
        if kept == 0 {
            return Cow::Borrowed(text);
        }
        clean.extend_from_slice(text.get(kept..).unwrap_or_default());
        Cow::Owned(clean)
    }

    /// Masks what is delivered of a piece and counts the masks. What reaches into it from outside
    /// is masked whole.
    #[must_use]
    pub fn piece<'t>(&self, piece: &'t TextPiece, masked: &mut u64) -> Cow<'t, [u8]> {
        let TextPiece { bytes, window, cut_before, cut_after } = piece;
        let window = window.start.min(bytes.len())..window.end.min(bytes.len());
        let around = DeliveryWindow { window, cut_before: *cut_before, cut_after: *cut_after };
        self.mask_window(bytes, &around, masked)
    }

    /// Masks text and counts the masks. What comes out is at rest: masking it again changes nothing, so
    /// that it can be recorded, shown and compared.
    #[must_use]
    pub fn text<'t>(&self, text: &'t str, masked: &mut u64) -> Cow<'t, str> {
        let mut clean = Cow::Borrowed(text);
        for _ in 0..limits::MASK_ROUNDS {
            match self.bytes(clean.as_bytes(), masked) {
                Cow::Borrowed(_) => break,
                Cow::Owned(bytes) => {
                    clean = Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
                }
            }
        }
        clean
    }

    /// The secrets of a text.
    #[must_use]
    pub fn findings(&self, text: &[u8]) -> Vec<SecretFinding> {
        let mut stream = MaskingStream::with_findings(self.clone());
        let mut out = Vec::new();
        stream.push(text, &mut out);
        stream.finish(false, &mut out);
        stream.take_findings()
    }

    fn mask_window<'t>(
        &self,
        text: &'t [u8],
        around: &DeliveryWindow,
        masked: &mut u64,
    ) -> Cow<'t, [u8]> {
        let Range { start, end } = around.window;
        let mut clean: Vec<u8> = Vec::new();
        let mut kept = start;
        self.for_each_match(text, around, |item, found| {
            let range = &found.range;
            if range.end <= start || range.start >= end {
                return;
            }
            clean.extend_from_slice(text.get(kept..range.start).unwrap_or_default());
            item.mask(found, &mut clean);
            kept = range.end;
            *masked += 1;
        });
        let rest = text.get(kept.min(end)..end).unwrap_or_default();
        if clean.is_empty() {
            return Cow::Borrowed(rest);
        }
        clean.extend_from_slice(rest);
        Cow::Owned(clean)
    }

    fn for_each_match(
        &self,
        bytes: &[u8],
        around: &DeliveryWindow,
        mut see: impl FnMut(&Text<'_>, &SecretMatch),
    ) {
        let start = Start::behind(around.cut_before);
        let text =
            Text::of(bytes, start, if around.cut_after { TextEnd::Cut } else { TextEnd::Over });
        let mut reader = Reader::default();
        if around.cut_before
            && let Some(found) = Reader::cut_off(&text)
        {
            see(&text, &found);
            reader.passed(&text, &SecretMatch { continues: false, ..found });
        }
        while let ScanStep::Found(found) = reader.next(&self.rules, &text) {
            if found.range.start >= around.window.end {
                break;
            }
            see(&text, &found);
            reader.passed(&text, &found);
        }
    }
}

/// What is delivered of a text, and whether the text is cut itself.
struct DeliveryWindow {
    window: Range<usize>,
    cut_before: bool,
    cut_after: bool,
}

impl DeliveryWindow {
    const fn whole(text: &[u8]) -> Self {
        Self { window: 0..text.len(), cut_before: false, cut_after: false }
    }
}

/// Bytes of which only a part is delivered: what stands around it is for the redactor's eyes, since
/// a credential that is cut in two is one no more by its looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextPiece {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Those of them that are delivered.
    pub window: Range<usize>,
    /// Whether something stands before the bytes.
    pub cut_before: bool,
    /// Whether something follows them: then what begins like a credential at their very end is
    /// masked as one.
    pub cut_after: bool,
}

impl TextPiece {
    /// The beginning of something that may go on.
    #[must_use]
    pub fn beginning(bytes: Vec<u8>, cut_after: bool) -> Self {
        Self { window: 0..bytes.len(), bytes, cut_before: false, cut_after }
    }
}

impl From<Vec<u8>> for TextPiece {
    fn from(bytes: Vec<u8>) -> Self {
        Self::beginning(bytes, false)
    }
}

/// The beginning of a text that a message quotes. It ends where no credential could go on, so that
/// none is cut in two before it is masked.
#[must_use]
pub fn excerpt(text: &str, most_chars: usize) -> Cow<'_, str> {
    let Some((end, _)) = text.char_indices().nth(most_chars) else { return Cow::Borrowed(text) };
    let beginning = text.get(..end).unwrap_or_default();
    let goes_on = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    Cow::Owned(format!("{}…", beginning.trim_end_matches(goes_on)))
}
