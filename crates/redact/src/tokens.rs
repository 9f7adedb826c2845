//! Credentials that are told by their form.

use core::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use crate::anchors::Try;
use crate::form::{Fit, Item, Items, RUN, fits};
use crate::found::{Found, Label, find as find_text};
use crate::rules::{Check, Rule};
use crate::state::Inside;
use crate::value::{Count, Look, is_masked, is_stand_in, is_template, look, wordiness};
use crate::view::{Read, View};

/// A credential of a format, of which the bytes that are looked for stand here.
pub(super) fn find(
    view: &View<'_>,
    at: usize,
    own: Try,
    rule: &'static Rule,
) -> Read<Option<Found>> {
    let Some(start) = start(view, at, own, rule) else { return Ok(None) };
    view.hold(start);
    let Some(fit) = fits(rule.form, view, start)? else { return Ok(None) };
    if !holds(rule, view, &fit) {
        return Ok(None);
    }
    let label = Label::new(rule.kind, rule.name);
    Ok(Some(Found { label, range: fit.secret, goes_on: fit.goes_on }))
}

/// Where a format begins whose bytes stand here; none if it would begin inside of a word.
fn start(view: &View<'_>, at: usize, own: Try, rule: &Rule) -> Option<usize> {
    if !own.runs {
        let start = at.checked_sub(usize::from(own.back))?;
        let strict = rule.check == Check::Weak;
        let joined = |byte: u8| matches!(byte, b'_' | b'-' | b'+' | b'/' | b'.');
        let fine = view.begins_word(start)
            && !(strict
                && view.before(start).is_some_and(joined)
                && view.before(start - 1).is_some_and(|byte| byte.is_ascii_alphanumeric()));
        return fine.then_some(start);
    }
    let Some(Item::Place(lead)) = Items::of(rule.form).next() else { return None };
    let end = at + usize::from(own.back);
    let start = view.run_back(end, lead.most + 1, |byte| lead.set.holds(byte));
    let length = end - start;
    // What only leads to the secret may be longer than is looked at.
    let part = rule.form.contains('(');
    match length > lead.most {
        true if part => Some(end - lead.most),
        true => None,
        false => (length >= lead.least && (part || view.begins_word(start))).then_some(start),
    }
}

/// Whether what fits a format is a credential.
fn holds(rule: &Rule, view: &View<'_>, fit: &Fit) -> bool {
    let Rule { check, form, .. } = rule;
    let text = view.bytes(fit.secret.clone());
    if view.is_cut(fit.whole.end) {
        return true;
    }
    // What its maker put before the random part says nothing about that part.
    let body = view.bytes(fit.secret.start.max(fit.whole.start + prefix(form))..fit.secret.end);
    match check {
        Check::Crc => has_checksum(text) || stands_alone(body),
        Check::Plain => stands_alone(body),
        Check::Mixed | Check::Weak => {
            let count = Count::of(body);
            stands_alone(body)
                && count.digit > 0
                && (count.upper > 0 || count.lower > 0)
                && wordiness(body) < 12
                && !(*check == Check::Weak && look(body) != Look::Random)
        }
        Check::Nkey => is_nkey(text),
        Check::PemInBase64 => STANDARD_NO_PAD
            .decode(text.get(..64).unwrap_or_default())
            .is_ok_and(|head| find_text(&head, b"PRIVATE KEY").is_some()),
    }
}

/// Whether a text that fits is not what a manual has in its place.
fn stands_alone(body: &[u8]) -> bool {
    let example = find_text(body, b"EXAMPLE").is_some() || find_text(body, b"example").is_some();
    let random = look(body) == Look::Random || Count::of(body).distinct <= 3;
    !(example || is_masked(body) || is_template(body) || !random && is_stand_in(body))
}

/// How many letters every credential of a form begins with.
fn prefix(form: &str) -> usize {
    let fixed = Items::of(form).take_while(|item| match item {
        Item::Place(place) => {
            place.least == 1 && place.most == 1 && place.set.bits().is_power_of_two()
        }
        Item::Open | Item::Close => true,
    });
    fixed.filter(|item| matches!(item, Item::Place(_))).count()
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
    let said = sum.iter().try_fold(0_u64, |sum, own| Some(sum * 62 + u64::from(digit(own)?)));
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
        let own = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'2'..=b'7' => letter - b'2' + 26,
            _ => return false,
        };
        held = held << 5 | u32::from(own);
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            let Some(slot) = bytes.get_mut(length) else { return false };
            *slot = (held >> bits & 0xff) as u8;
            length += 1;
        }
    }
    let Some((body, [low, high, ..])) =
        bytes.get(..length).and_then(|own| own.split_at_checked(length.saturating_sub(2)))
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
pub(super) fn rest(view: &View<'_>, start: usize, label: &Label) -> Read<Option<Found>> {
    let end = view.run(start, RUN, |byte| {
        byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'`' | b',' | b';' | b'<' | b'>')
    })?;
    let range: Range<usize> = start..end;
    let goes_on = range.len() == RUN;
    Ok((!range.is_empty()).then(|| Found { label: label.clone(), range, goes_on }))
}

/// What goes on behind a secret that was longer than is masked as one.
pub(super) fn inside(found: &Found) -> Option<Inside> {
    found.goes_on.then(|| match (found.label.kind, found.label.rule.as_ref()) {
        ("key", "pem") => Inside::Key,
        _ => Inside::Run(found.label.clone()),
    })
}
