//! Credentials that are told by their form.

use core::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use crate::masked_value::{classify, is_masked, is_placeholder};
use crate::matches::{MaskLabel, SecretMatch, find_bytes as find_text};
use crate::prefilter::Candidate;
use crate::rules::{Check, Rule};
use crate::scan_state::Continuation;
use crate::text_window::{Lookahead, TextWindow};
use crate::token_pattern::{MAX_RUN, PatternFit, PatternItem, PatternItems, match_pattern};
use crate::value::{CharCounts, ValueLook, is_template, wordiness};

/// A credential of a format, of which the bytes that are looked for stand here.
pub(super) fn find_token(
    view: &TextWindow<'_>,
    at: usize,
    candidate: Candidate,
    rule: &'static Rule,
) -> Lookahead<Option<SecretMatch>> {
    let Some(start) = token_start(view, at, candidate, rule) else { return Ok(None) };
    view.set_undecided_from(start);
    let Some(fit) = match_pattern(rule.pattern, view, start)? else { return Ok(None) };
    if !is_credential(rule, view, &fit) {
        return Ok(None);
    }
    let label = MaskLabel::new(rule.kind, rule.name);
    Ok(Some(SecretMatch { label, range: fit.secret, continues: fit.continues }))
}

/// Where a format begins whose bytes stand here; none if it would begin inside of a word.
fn token_start(
    view: &TextWindow<'_>,
    at: usize,
    candidate: Candidate,
    rule: &Rule,
) -> Option<usize> {
    if !candidate.starts_with_run {
        let start = at.checked_sub(usize::from(candidate.offset))?;
        let strict = rule.check == Check::RandomWord;
        let joined = |byte: u8| matches!(byte, b'_' | b'-' | b'+' | b'/' | b'.');
        let fine = view.begins_word(start)
            && !(strict
                && view.before(start).is_some_and(joined)
                && view.before(start - 1).is_some_and(|byte| byte.is_ascii_alphanumeric()));
        return fine.then_some(start);
    }
    let Some(PatternItem::Place(lead)) = PatternItems::of(rule.pattern).next() else { return None };
    let end = at + usize::from(candidate.offset);
    let start = view.run_start(end, lead.max + 1, |byte| lead.set.contains(byte));
    let length = end - start;
    // What only leads to the secret may be longer than is looked at.
    let part = rule.pattern.contains('(');
    match length > lead.max {
        true if part => Some(end - lead.max),
        true => None,
        false => (length >= lead.min && (part || view.begins_word(start))).then_some(start),
    }
}

/// Whether what fits a format is a credential.
fn is_credential(rule: &Rule, view: &TextWindow<'_>, fit: &PatternFit) -> bool {
    let Rule { check, pattern: form, .. } = rule;
    let text = view.bytes(fit.secret.clone());
    if view.is_cut(fit.whole.end) {
        return true;
    }
    // What its maker put before the random part says nothing about that part.
    let body =
        view.bytes(fit.secret.start.max(fit.whole.start + prefix_length(form))..fit.secret.end);
    match check {
        Check::Crc => has_checksum(text) || is_no_placeholder(body),
        Check::FormOnly => is_no_placeholder(body),
        Check::Random | Check::RandomWord => {
            let count = CharCounts::of(body);
            is_no_placeholder(body)
                && count.digit > 0
                && (count.upper > 0 || count.lower > 0)
                && wordiness(body) < 12
                && !(*check == Check::RandomWord && classify(body) != ValueLook::Random)
        }
        Check::Nkey => is_nkey(text),
        Check::PemInBase64 => STANDARD_NO_PAD
            .decode(text.get(..64).unwrap_or_default())
            .is_ok_and(|head| find_text(&head, b"PRIVATE KEY").is_some()),
    }
}

/// Whether a text that fits is not what a manual has in its place.
fn is_no_placeholder(body: &[u8]) -> bool {
    let example = find_text(body, b"EXAMPLE").is_some() || find_text(body, b"example").is_some();
    let random = classify(body) == ValueLook::Random || CharCounts::of(body).distinct <= 3;
    !(example || is_masked(body) || is_template(body) || !random && is_placeholder(body))
}

/// How many letters every credential of a form begins with.
fn prefix_length(form: &str) -> usize {
    let fixed = PatternItems::of(form).take_while(|item| match item {
        PatternItem::Place(place) => {
            place.min == 1 && place.max == 1 && place.set.bits().is_power_of_two()
        }
        PatternItem::Open | PatternItem::Close => true,
    });
    fixed.filter(|item| matches!(item, PatternItem::Place(_))).count()
}

/// The checksum of GitHub and npm: of the 30 characters behind the prefix, in base 62.
fn has_checksum(text: &[u8]) -> bool {
    let Some(body) = text.len().checked_sub(36).and_then(|at| text.get(at..)) else { return false };
    let Some((random, sum)) = body.split_at_checked(30) else { return false };
    let digit = |byte: &u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'A'..=b'Z' => Some(byte - b'A' + 10),
        b'a'..=b'z' => Some(byte - b'a' + 36),
        _ => None,
    };
    let said = sum.iter().try_fold(0_u64, |sum, byte| Some(sum * 62 + u64::from(digit(byte)?)));
    said == Some(u64::from(crc32(random)))
}

fn crc32(bytes: &[u8]) -> u32 {
    let sum = bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(sum & 1))
        })
    });
    !sum
}

/// A seed of NATS: base 32, of which the last two bytes are the CRC-16 of those before.
fn is_nkey(text: &[u8]) -> bool {
    let mut bytes = [0_u8; 40];
    let (mut held, mut bits, mut length) = (0_u32, 0_u32, 0_usize);
    for letter in text {
        let byte = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'2'..=b'7' => letter - b'2' + 26,
            _ => return false,
        };
        held = held << 5 | u32::from(byte);
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            let Some(slot) = bytes.get_mut(length) else { return false };
            *slot = (held >> bits & 0xff) as u8;
            length += 1;
        }
    }
    let Some((body, [low, high, ..])) =
        bytes.get(..length).and_then(|item| item.split_at_checked(length.saturating_sub(2)))
    else {
        return false;
    };
    crc16(body) == u16::from_le_bytes([*low, *high])
}

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ u16::from(*byte) << 8, |sum: u16, _| {
            let carry = sum & 0x8000 != 0;
            sum << 1 ^ if carry { 0x1021 } else { 0 }
        })
    })
}

/// The rest of a run that was longer than is masked as one.
pub(super) fn continue_run(
    view: &TextWindow<'_>,
    start: usize,
    label: &MaskLabel,
) -> Lookahead<Option<SecretMatch>> {
    let end = view.run_end(start, MAX_RUN, |byte| {
        byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'`' | b',' | b';' | b'<' | b'>')
    })?;
    let range: Range<usize> = start..end;
    let goes_on = range.len() == MAX_RUN;
    Ok((!range.is_empty()).then(|| SecretMatch { label: label.clone(), range, continues: goes_on }))
}

/// What goes on behind a secret that was longer than is masked as one.
pub(super) fn continuation(found: &SecretMatch) -> Option<Continuation> {
    found.continues.then(|| match (found.label.kind, found.label.rule.as_ref()) {
        ("key", "pem") => Continuation::Key,
        _ => Continuation::Token(found.label.clone()),
    })
}
