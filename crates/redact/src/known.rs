//! Secrets whose value is known: wherever one comes back, it is masked, as it is and as what programs
//! make of it.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use zeroize::Zeroizing;

use crate::anchors::{Try, WIDTH};
use crate::found::{Found, Label, SECRET};
use crate::secret::Secret;
use crate::view::{Read, View};

/// A secret, and every form in which it is looked for, the longest first.
#[derive(Clone)]
pub(super) struct Known {
    name: String,
    forms: Vec<Zeroizing<Vec<u8>>>,
}

impl core::fmt::Debug for Known {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Known({})", self.name)
    }
}

impl Known {
    pub(super) fn of(secret: &Secret) -> Self {
        let value = secret.expose().as_bytes();
        let mut forms = alloc::vec![
            value.to_vec(),
            percent(value, false),
            percent(value, true),
            escaped(value),
            hex(value),
        ];
        forms.extend((0..3).flat_map(|offset| in_base64(value, offset)));
        forms.retain(|form| form.len() >= WIDTH);
        forms.sort_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
        forms.dedup();
        let forms = forms.into_iter().map(Zeroizing::new).collect();
        Self { name: secret.name().into(), forms }
    }

    /// What each form begins with, as a form of its own.
    pub(super) fn beginnings(&self) -> impl Iterator<Item = String> {
        let escape = |byte: &u8| match byte {
            byte if byte.is_ascii_alphanumeric() => String::from(char::from(*byte)),
            byte => format!("\\{}", char::from(*byte)),
        };
        self.forms.iter().map(move |form| form.iter().take(WIDTH).map(escape).collect())
    }

    /// The secret, if one of its forms stands here.
    pub(super) fn find(
        &self,
        view: &View<'_>,
        at: usize,
        own: Try,
        floor: usize,
    ) -> Read<Option<Found>> {
        let start = at.saturating_sub(usize::from(own.back)).max(floor);
        view.hold(start);
        for form in &self.forms {
            let rest = view.bytes(start..start + form.len());
            let begins = form.get(..rest.len()).is_some_and(|own| own == rest);
            if rest.len() < form.len() && begins {
                view.at(start + rest.len())?;
            }
            if begins && (rest.len() == form.len() || view.is_cut(start + rest.len())) {
                let label = Label { kind: SECRET, rule: Cow::Owned(self.name.clone()) };
                return Ok(Some(Found::whole(label, start..start + rest.len())));
            }
        }
        Ok(None)
    }
}

fn percent(value: &[u8], lower: bool) -> Vec<u8> {
    let mut made = Vec::new();
    for byte in value {
        match byte {
            byte if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) => made.push(*byte),
            byte if lower => made.extend(format!("%{byte:02x}").into_bytes()),
            byte => made.extend(format!("%{byte:02X}").into_bytes()),
        }
    }
    made
}

/// As JSON writes it.
fn escaped(value: &[u8]) -> Vec<u8> {
    let escape = |byte: &u8| match byte {
        b'"' | b'\\' => alloc::vec![b'\\', *byte],
        byte => alloc::vec![*byte],
    };
    value.iter().flat_map(escape).collect()
}

fn hex(value: &[u8]) -> Vec<u8> {
    value.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect()
}

/// What of a value can be seen in base64 when so many bytes stand before it in its first group,
/// whatever they are and whatever stands behind.
fn in_base64(value: &[u8], offset: usize) -> [Vec<u8>; 2] {
    let shifted = Zeroizing::new([[0_u8, 0].get(..offset).unwrap_or_default(), value].concat());
    let skipped = if offset == 0 { 0 } else { offset + 1 };
    let whole = shifted.len() * 8 / 6;
    let seen = |text: String| {
        let text = Zeroizing::new(text.into_bytes());
        text.get(skipped..whole).unwrap_or_default().to_vec()
    };
    [seen(STANDARD_NO_PAD.encode(&*shifted)), seen(URL_SAFE_NO_PAD.encode(&*shifted))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_seen_in_base64_wherever_it_stands() {
        let value = b"correct-horse-9";
        for before in 0..7 {
            for behind in 0..4 {
                let text =
                    ["x".repeat(before).as_bytes(), value, "y".repeat(behind).as_bytes()].concat();
                let encoded = STANDARD_NO_PAD.encode(&text).into_bytes();
                let found = (0..3).any(|offset| {
                    let [form, _] = in_base64(value, offset);
                    encoded.windows(form.len()).any(|own| own == form)
                });
                assert!(found, "{before} {behind}");
            }
        }
    }
}
