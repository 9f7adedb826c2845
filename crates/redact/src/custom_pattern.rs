//! Patterns that a policy adds.
//!
//! A pattern must say how long a match can be at most, since a stream is held back for as long as one
//! could go on; and it is matched over bytes, in linear time.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use core::ops::Range;

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::Look;

use crate::limits;
use crate::matches::{MaskLabel, PATTERN, SecretMatch};
use crate::scan_state::ScanStep;
use crate::text_window::TextWindow;

/// A pattern of a policy.
#[derive(Clone, Debug)]
pub struct CustomPattern {
    id: String,
    regex: Regex,
    longest: usize,
}

impl CustomPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// Says what is wrong with it: that it is none, that it could match nothing at all or without
    /// end, or that it asks where the text begins or ends, which a stream cannot say.
    pub fn parse(id: &str, text: &str) -> Result<Self, String> {
        if text.len() > limits::PATTERN_TEXT_BYTES {
            return Err(format!(
                "it has {} bytes; at most {}",
                text.len(),
                limits::PATTERN_TEXT_BYTES
            ));
        }
        let tree = ParserBuilder::new().unicode(false).utf8(false).build().parse(text);
        let tree = tree.map_err(|error| error.to_string())?;
        let properties = tree.properties();
        let most = limits::PATTERN_MATCH_MAX;
        let longest = match properties.maximum_len() {
            Some(longest) if longest <= most => longest,
            Some(longest) => {
                return Err(format!("it matches up to {longest} bytes; at most {most}"));
            }
            None => return Err("it matches without end; give a bound, as in `{8,200}`".into()),
        };
        if properties.minimum_len().is_none_or(|least| least < limits::PATTERN_MATCH_MIN) {
            let least = limits::PATTERN_MATCH_MIN;
            return Err(format!(
                "it matches fewer than {least} bytes, which would mask half of a text"
            ));
        }
        let looks = properties.look_set();
        if looks.contains(Look::Start) || looks.contains(Look::End) {
            return Err("it asks where the text begins or ends; `(?m)` makes that a line".into());
        }
        let regex = RegexBuilder::new(text)
            .unicode(false)
            .size_limit(limits::REGEX_BYTES)
            .dfa_size_limit(limits::REGEX_BYTES)
            .build();
        let regex = regex.map_err(|error| error.to_string())?;
        Ok(Self { id: id.to_string(), regex, longest })
    }

    /// What it is called.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The next match.
    pub(super) fn next(&self, view: &TextWindow<'_>, from: usize) -> ScanStep {
        let text = view.text();
        let sure =
            |start: usize| start.saturating_add(self.longest) < text.len() || !view.is_open();
        match self.regex.find_at(text, from.min(text.len())) {
            Some(found) if sure(found.start()) => ScanStep::Found(self.found(found.range())),
            // One that begins before what was found may only need more to be complete.
            _ if view.is_open() => {
                ScanStep::Wait(text.len().saturating_sub(self.longest).max(from))
            }
            _ => ScanStep::Done,
        }
    }

    fn found(&self, range: Range<usize>) -> SecretMatch {
        let label = MaskLabel { kind: PATTERN, rule: Cow::Owned(self.id.clone()) };
        SecretMatch::complete(label, range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_has_to_end() {
        assert!(CustomPattern::parse("a", "acme_[A-Za-z0-9]{32}").is_ok());
        assert!(CustomPattern::parse("a", r"(?i)\bacme[0-9]{4,9}\b").is_ok());
        for (text, why) in [
            ("acme_[a-z]+", "without end"),
            ("(a|b", "unclosed"),
            ("x?", "fewer than"),
            ("^acme[0-9]{4}", "begins or ends"),
            ("acme[0-9]{9999}", "at most"),
            (r"acme(?=x)....", "look-around"),
        ] {
            let error = CustomPattern::parse("a", text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
