//! What programs make of a value when they write it into something else: each form in which a secret
//! of the policy is looked for.
//!
//! Those are the ways in which text is put into addresses, JSON, markup, command lines, base 16 and
//! base 64 without line breaks, and the wide characters of other systems. A program that wants to hide a
//! value has endless others: what it may read and reach is the wall against that, not this.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use zeroize::Zeroizing;

type EncodedValue = Zeroizing<Vec<u8>>;

/// Every form of a value.
pub(super) fn all_encodings(value: &[u8]) -> Vec<EncodedValue> {
    let wide = [utf16_encoding(value, u16::to_le_bytes), utf16_encoding(value, u16::to_be_bytes)];
    let mut forms: Vec<EncodedValue> = alloc::vec![Zeroizing::new(value.to_vec())];
    forms.extend(url_encodings(value));
    forms.extend(json_encodings(value));
    forms.extend(markup_encodings(value));
    forms.extend(shell_encodings(value));
    for bytes in [value, &wide[0], &wide[1]] {
        forms.extend(hex_encodings(bytes));
        forms.extend((0..3).flat_map(|offset| base64_encodings(bytes, offset)));
    }
    forms.extend(wide);
    forms
}

/// Byte by byte.
fn encode_bytes(value: &[u8], mut write: impl FnMut(u8, &mut Vec<u8>)) -> EncodedValue {
    let mut made = Zeroizing::new(Vec::with_capacity(value.len() * 6));
    for byte in value {
        write(*byte, &mut made);
    }
    // No more than it needs is kept.
    Zeroizing::new(made.to_vec())
}

/// What leaves letters, digits and these signs as they are (RFC 3986, section 2.3; what `encodeURI`,
/// `encodeURIComponent` and the forms of browsers leave besides), with large and small digits.
fn url_encodings(value: &[u8]) -> impl Iterator<Item = EncodedValue> {
    const PLAIN: [&[u8]; 4] = [b"-._~", b"-._~/", b"-._~!'()*", b"-._~!'()*;,/?:@&=+$#"];
    let ways = PLAIN.into_iter().flat_map(|plain| [(plain, false), (plain, true)]);
    ways.flat_map(move |(plain, lower)| {
        ["%20", "+"].map(|blank| {
            encode_bytes(value, |byte, made| match byte {
                b' ' => made.extend(blank.bytes()),
                _ if byte.is_ascii_alphanumeric() || plain.contains(&byte) => made.push(byte),
                _ if lower => made.extend(format!("%{byte:02x}").into_bytes()),
                _ => made.extend(format!("%{byte:02X}").into_bytes()),
            })
        })
    })
}

/// As JSON writes it (RFC 8259, section 7): the two signs that it must escape, and those that some
/// writers escape besides, so that it can stand in markup.
fn json_encodings(value: &[u8]) -> impl Iterator<Item = EncodedValue> {
    const MORE: [&[u8]; 4] = [b"", b"<>&", b"<>&'+", b"<>&'+\"`"];
    let ways = MORE.into_iter().flat_map(|more| [(more, false), (more, true)]);
    ways.flat_map(move |(more, slash)| {
        [true, false].map(|lower| {
            encode_bytes(value, |byte, made| match byte {
                _ if more.contains(&byte) && lower => {
                    made.extend(format!("\\u{byte:04x}").into_bytes());
                }
                _ if more.contains(&byte) => made.extend(format!("\\u{byte:04X}").into_bytes()),
                b'"' | b'\\' => made.extend([b'\\', byte]),
                b'/' if slash => made.extend(*b"\\/"),
                _ => made.push(byte),
            })
        })
    })
}

/// As HTML and XML write it.
fn markup_encodings(value: &[u8]) -> impl Iterator<Item = EncodedValue> {
    const QUOTES: [(&str, &str); 7] = [
        ("\"", "'"),
        ("&quot;", "'"),
        ("&quot;", "&#39;"),
        ("&quot;", "&apos;"),
        ("&#34;", "&#39;"),
        ("&quot;", "&#039;"),
        ("&quot;", "&#x27;"),
    ];
    QUOTES.into_iter().map(|(double, single)| {
        encode_bytes(value, |byte, made| {
            let name = match byte {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => double,
                b'\'' => single,
                _ => return made.push(byte),
            };
            made.extend(name.bytes());
        })
    })
}

/// As a shell has it: in quotes of either kind, or with every sign escaped.
fn shell_encodings(value: &[u8]) -> [EncodedValue; 4] {
    let escape = |signs: fn(u8) -> bool| {
        encode_bytes(value, |byte, made| match signs(byte) {
            true => made.extend([b'\\', byte]),
            false => made.push(byte),
        })
    };
    let single = |between: &'static [u8]| {
        encode_bytes(value, |byte, made| match byte {
            b'\'' => made.extend(between),
            _ => made.push(byte),
        })
    };
    [
        single(b"'\\''"),
        single(b"'\"'\"'"),
        escape(|byte| b"$`\"\\".contains(&byte)),
        escape(|byte| !byte.is_ascii_alphanumeric() && !b"%+,-./:=@_".contains(&byte)),
    ]
}

fn hex_encodings(value: &[u8]) -> [EncodedValue; 2] {
    [
        encode_bytes(value, |byte, made| made.extend(format!("{byte:02x}").into_bytes())),
        encode_bytes(value, |byte, made| made.extend(format!("{byte:02X}").into_bytes())),
    ]
}

/// In characters of two bytes.
fn utf16_encoding(value: &[u8], bytes: fn(u16) -> [u8; 2]) -> EncodedValue {
    encode_bytes(value, |byte, made| made.extend(bytes(u16::from(byte))))
}

/// What of a value can be seen in base 64 when so many bytes stand before it in its first group,
/// whatever they are and whatever stands behind.
fn base64_encodings(value: &[u8], offset: usize) -> [EncodedValue; 2] {
    let shifted = Zeroizing::new([[0_u8, 0].get(..offset).unwrap_or_default(), value].concat());
    let skipped = if offset == 0 { 0 } else { offset + 1 };
    let whole = shifted.len() * 8 / 6;
    let seen = |text: String| {
        let text = Zeroizing::new(text.into_bytes());
        Zeroizing::new(text.get(skipped..whole).unwrap_or_default().to_vec())
    };
    [seen(STANDARD_NO_PAD.encode(&*shifted)), seen(URL_SAFE_NO_PAD.encode(&*shifted))]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(value: &[u8], text: &[u8]) -> bool {
        all_encodings(value)
            .iter()
            .any(|form| text.windows(form.len()).any(|item| item == form.as_slice()))
    }

    #[test]
    fn a_value_is_seen_in_base64_wherever_it_stands() {
        let value = b"correct-horse-9";
        for before in 0..7 {
            for behind in 0..4 {
                let text =
                    ["x".repeat(before).as_bytes(), value, "y".repeat(behind).as_bytes()].concat();
                let encoded = STANDARD_NO_PAD.encode(&text).into_bytes();
                assert!(holds(value, &encoded), "{before} {behind}");
            }
        }
    }

    #[test]
    fn a_value_is_seen_as_others_write_it() {
        let value = br#"a/b&c"d'e f<g\h+i$j"#;
        for text in [
            r#"a%2Fb%26c%22d%27e%20f%3Cg%5Ch%2Bi%24j"#,
            r#"a%2fb%26c%22d%27e%20f%3cg%5ch%2bi%24j"#,
            r#"a/b%26c%22d%27e%20f%3Cg%5Ch%2Bi%24j"#,
            r#"a%2Fb%26c%22d'e+f%3Cg%5Ch%2Bi%24j"#,
            r#"a/b&c%22d'e%20f%3Cg%5Ch+i$j"#,
            r#"a/b&c\"d'e f<g\\h+i$j"#,
            r#"a\/b&c\"d'e f<g\\h+i$j"#,
            r#"a/b\u0026c\"d'e f\u003cg\\h+i$j"#,
            r#"a\/b\u0026c\"d\u0027e f\u003Cg\\h\u002Bi$j"#,
            r#"a/b&amp;c&quot;d&#39;e f&lt;g\h+i$j"#,
            r#"a/b&amp;c"d'e f&lt;g\h+i$j"#,
            r#"a/b&c"d'\''e f<g\h+i$j"#,
            r#"a/b&c\"d'e f<g\\h+i\$j"#,
            r#"a/b\&c\"d\'e\ f\<g\\h+i\$j"#,
            "612F6226632264276520663C675C682B69246A",
        ] {
            assert!(holds(value, text.as_bytes()), "{text}");
        }
        let wide: Vec<u8> = value.iter().flat_map(|byte| [*byte, 0]).collect();
        assert!(holds(value, &wide));
        assert!(holds(value, STANDARD_NO_PAD.encode(&wide).as_bytes()));
    }
}
