//! Secrets in texts that are said otherwise than in plain bytes: in wide characters, in colours, with characters
//! in between that nobody sees.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests fail by panics"
)]

use capsule_redact::{MaskingStream, Redactor, Secret};
use proptest::prelude::*;
use zeroize::Zeroizing;

/// A token of a form that has no place to stand in.
fn token() -> String {
    format!("ghp_{}", "aB3x".repeat(9))
}

fn utf16(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(unit).collect()
}

fn utf32(text: &str, unit: fn(u32) -> [u8; 4]) -> Vec<u8> {
    text.chars().flat_map(|own| unit(u32::from(own))).collect()
}

/// An encoding: its name, and what makes bytes of a text.
type Encoding = (&'static str, fn(&str) -> Vec<u8>);

/// The encodings, with and without a mark.
fn encodings() -> Vec<Encoding> {
    vec![
        ("UTF-16LE", |text| utf16(text, u16::to_le_bytes)),
        ("UTF-16BE", |text| utf16(text, u16::to_be_bytes)),
        ("UTF-32LE", |text| utf32(text, u32::to_le_bytes)),
        ("UTF-32BE", |text| utf32(text, u32::to_be_bytes)),
        ("UTF-16LE, mark", |text| utf16(&format!("\u{feff}{text}"), u16::to_le_bytes)),
        ("UTF-16BE, mark", |text| utf16(&format!("\u{feff}{text}"), u16::to_be_bytes)),
        ("UTF-32LE, mark", |text| utf32(&format!("\u{feff}{text}"), u32::to_le_bytes)),
        ("UTF-32BE, mark", |text| utf32(&format!("\u{feff}{text}"), u32::to_be_bytes)),
        ("UTF-8, mark", |text| format!("\u{feff}{text}").into_bytes()),
    ]
}

fn whole(redactor: &Redactor, bytes: &[u8]) -> Vec<u8> {
    redactor.bytes(bytes, &mut 0).into_owned()
}

fn in_pieces(redactor: &Redactor, bytes: &[u8], size: usize) -> Vec<u8> {
    let mut stream = MaskingStream::new(redactor.clone());
    let mut out = Vec::new();
    bytes.chunks(size).for_each(|piece| stream.push(piece, &mut out));
    stream.finish(false, &mut out);
    out
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|own| own == part)
}

/// Whether any of the ways to say a text is among some bytes.
fn shows(bytes: &[u8], text: &str) -> bool {
    let plain: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
    contains(bytes, text.as_bytes()) || contains(&plain, text.as_bytes())
}

/// M5: a secret is masked in whatever characters it is said, and what is around it stays readable in those.
#[test]
fn wide_characters_are_masked_as_they_stand() {
    let token = token();
    let texts = [
        (format!("a line\nkey {token} and more\n"), "«token:github:40:", "aB3xaB3x"),
        ("name: x\npassword: hunter2hunter\nend: y\n".to_owned(), "«password:setting:", "hunter2"),
        ("DB_PASSWORD=Größe-und-Weite9\nx=1\n".to_owned(), "«password:setting:", "Weite9"),
        (
            format!(
                "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\nx\n",
                "QUJDa1b2".repeat(9)
            ),
            "«key:pem:",
            "QUJDa1b2",
        ),
    ];
    let redactor = Redactor::builtin();
    for (text, mask, secret) in &texts {
        let plain = redactor.text(text, &mut 0).into_owned();
        for (name, encode) in encodings() {
            let bytes = encode(text);
            let shown = whole(&redactor, &bytes);
            assert!(!shows(&shown, secret), "{name}: {text}");
            assert_eq!(
                shown,
                encode(&plain),
                "{name}: as if the masked text had been said so: {text}"
            );
            assert!(plain.contains(mask), "{plain}");
            for size in [1, 2, 3, 5, 7, 16, 100] {
                assert_eq!(in_pieces(&redactor, &bytes, size), shown, "{name} in pieces of {size}");
            }
            // Masking again changes nothing.
            assert_eq!(whole(&redactor, &shown), shown, "{name}");
        }
    }
}

/// M5: colours, soft hyphens and letters struck twice are as invisible in wide characters as in narrow ones.
#[test]
fn nothing_invisible_hides_a_secret_in_wide_characters() {
    let token = token();
    let (start, end) = token.split_at(12);
    let again = format!("{}\u{8}{}", &start[11..], &start[11..]);
    let redactor = Redactor::builtin();
    for between in
        ["\u{1b}[31m", "\u{1b}[0m\u{1b}[1;32m", "\u{1b}(B", "\u{ad}", "\u{e}", &again[1..]]
    {
        for (name, encode) in encodings() {
            let bytes = encode(&format!("first line\nkey {start}{between}{end} and more\n"));
            let shown = whole(&redactor, &bytes);
            let seen: Vec<u8> = shown.iter().copied().filter(|byte| *byte != 0).collect();
            assert!(!contains(&seen, b"aB3xaB3x"), "{name}: {between:?}");
            for size in [1, 2, 3, 7, 16] {
                assert_eq!(
                    in_pieces(&redactor, &bytes, size),
                    shown,
                    "{name}, {between:?}: {size}"
                );
            }
        }
    }
}

/// M5: wherever a run of wide characters begins: behind binary, at an odd place, behind plain text.
#[test]
fn wide_characters_are_found_anywhere() {
    let token = token();
    let redactor = Redactor::builtin();
    let befores: [&[u8]; 7] = [
        b"",
        b"x",
        b"\0",
        b"\0\0\0",
        b"\x7fELF\x02\x01\x01\0\0\0\0",
        b"plain text\n",
        b"\xff\xfe\xfd",
    ];
    for before in befores {
        for after in [&b""[..], b"\0", b"\0\0", b"plain", b"\x01\x02\0\0\0\x03"] {
            for (name, encode) in &encodings()[..4] {
                let text = encode(&format!("password={}x&api_key= {token} \n", "hunter2"));
                let bytes = [before, &text, after].concat();
                let shown = whole(&redactor, &bytes);
                for secret in ["aB3xaB3x", "hunter2"] {
                    assert!(!shows(&shown, secret), "{name} behind {before:?}, before {after:?}");
                }
                for size in [1, 3, 64] {
                    assert_eq!(
                        in_pieces(&redactor, &bytes, size),
                        shown,
                        "{name} {before:?} {after:?}"
                    );
                }
            }
        }
    }
}

/// A text in two encodings, as programs on one pipe make it.
#[test]
fn encodings_may_change_in_the_middle() {
    let token = token();
    let redactor = Redactor::builtin();
    for (_, one) in &encodings()[..4] {
        for (_, other) in &encodings()[..4] {
            let bytes = [
                one(&format!("a {token} b\n")),
                other(&format!("c {token} d\n")),
                format!("e {token} f\n").into_bytes(),
            ]
            .concat();
            let shown = whole(&redactor, &bytes);
            assert!(!shows(&shown, "aB3xaB3x"));
            assert_eq!(in_pieces(&redactor, &bytes, 1), shown);
        }
    }
}

/// Colours, characters without width, letters that are struck twice.
#[test]
fn what_nobody_sees_hides_nothing() {
    let token = token();
    let redactor = Redactor::builtin();
    let spread = |by: &str| token.chars().map(|own| format!("{own}{by}")).collect::<String>();
    let bold: String = token.chars().map(|own| format!("{own}\u{8}{own}")).collect();
    for text in [
        "password\u{1b}[0m: \u{1b}[31mhunter2hunter\u{1b}[0m\n".to_owned(),
        "\u{1b}[1mpassword\u{1b}[0m\u{1b}[2m=\u{1b}[0m\u{1b}[38;2;1;2;3mhunter2hunter\u{1b}[m x\n"
            .into(),
        "\u{1b}[01;31m\u{1b}[Kpassword\u{1b}[m\u{1b}[K: hunter2hunter\n".into(),
        "\u{1b}(B\u{1b}[mpassword:\u{f} hunter2hunter\n".into(),
        "pass\u{ad}word: hunter2hunter\n".into(),
        "password\u{200b}: \u{feff}hunter2\u{200d}hunter\n".into(),
        "password: hun\u{1b}[7mter2hunter\n".into(),
        format!("x {} y", spread("\u{200b}")),
        format!("x {} y", spread("\u{ad}")),
        format!("x {} y", spread("\u{1b}[0m")),
        format!("x {bold} y"),
        format!("x {}\u{1b}[32m{} y", &token[..9], &token[9..]),
        format!("x\u{2060}{token}\u{2060}y"),
    ] {
        let shown = redactor.text(&text, &mut 0).into_owned();
        let visible: String = {
            let mut plain = shown.clone();
            for own in ["\u{200b}", "\u{ad}", "\u{1b}[0m", "\u{1b}[32m", "\u{1b}[7m", "\u{200d}"] {
                plain = plain.replace(own, "");
            }
            plain
        };
        assert!(!visible.contains("hunter2") && !visible.contains("aB3x"), "{text:?} -> {shown:?}");
        assert_eq!(redactor.text(&shown, &mut 0), shown, "masking again: {text:?}");
        for size in 1..12 {
            let pieces = String::from_utf8(in_pieces(&redactor, text.as_bytes(), size)).unwrap();
            assert_eq!(
                pieces,
                String::from_utf8(whole(&redactor, text.as_bytes())).unwrap(),
                "{size}"
            );
        }
    }
}

/// Zero bytes that part names and values part them still.
#[test]
fn zero_bytes_part_what_they_parted() {
    let token = token();
    let redactor = Redactor::builtin();
    let environ = format!("A=b\0TOKEN={token}\0NAME=value-of-name\0PATH=/usr/bin\0");
    let shown = String::from_utf8(whole(&redactor, environ.as_bytes())).unwrap();
    assert!(!shown.contains("aB3x"), "{shown:?}");
    assert!(shown.contains("\0NAME=value-of-name\0PATH=/usr/bin\0"), "{shown:?}");
    let names = b"a\0b\0src/main.rs\0password\0notes.txt\0";
    assert_eq!(whole(&redactor, names), names);
}

/// What a policy knows is masked by its value in every encoding.
#[test]
fn known_values_are_masked_in_wide_characters() {
    let value = "correct=horse/9";
    let secret = Secret::new("VAULT", Zeroizing::new(value.into())).unwrap();
    let redactor = Redactor::with(&[secret], &[]);
    let text = format!("one {value} two {value}\n");
    let plain = redactor.text(&text, &mut 0).into_owned();
    for (name, encode) in encodings() {
        let shown = whole(&redactor, &encode(&text));
        assert!(!shows(&shown, "horse"), "{name}");
        assert_eq!(shown, encode(&plain), "{name}");
        assert_eq!(in_pieces(&redactor, &encode(&text), 3), shown, "{name}");
    }
}

proptest! {
    /// Whatever is between secrets, and in whatever pieces it comes.
    #[test]
    fn any_pieces_of_any_bytes_are_masked_alike(
        parts in prop::collection::vec(prop_oneof![
            Just(b"password: ".to_vec()), Just(utf16("password: ", u16::to_le_bytes)),
            Just(utf16("hunter2hunter\n", u16::to_le_bytes)), Just(utf16("key=s3cretS3cret ", u16::to_be_bytes)),
            Just(utf32("token: abc123def456", u32::to_le_bytes)), Just(b"\x1b[31m".to_vec()),
            Just(b"\x1b[".to_vec()), Just(b"\xe2\x80".to_vec()), Just(b"\xe2\x80\x8b".to_vec()),
            Just(b"hunter2hunter ".to_vec()), Just(b"\0".to_vec()), Just(b"a\0".to_vec()), Just(b"\n".to_vec()),
            Just(token().into_bytes()), Just(b"a\x08a".to_vec()), Just(b"\xff\xfe".to_vec()),
            prop::collection::vec(any::<u8>(), 0..6),
        ], 0..12),
        size in 1..40_usize,
    ) {
        let bytes = parts.concat();
        let redactor = Redactor::builtin();
        let shown = whole(&redactor, &bytes);
        prop_assert_eq!(in_pieces(&redactor, &bytes, size), shown);
    }
}

/// Cases of the property above: what one reading finds depends on bytes that another has not read yet.
#[test]
fn readings_of_one_text_are_masked_alike_in_pieces() {
    let redactor = Redactor::builtin();
    let le = |text: &str| utf16(text, u16::to_le_bytes);
    let token = token().into_bytes();
    let mark = b"\xff\xfe".to_vec();
    let cases: [&[Vec<u8>]; 3] = [
        &[le("hunter2hunter\n"), b"a\0".to_vec(), token.clone(), le("password: ")],
        &[
            mark.clone(),
            token.clone(),
            b"hunter2hunter ".to_vec(),
            utf16("key=s3cretS3cret ", u16::to_be_bytes),
            le("password: "),
            b"hunter2hunter ".to_vec(),
        ],
        &[
            mark.clone(),
            b"\x1b[31m".to_vec(),
            token.clone(),
            b"\x1b[31m".to_vec(),
            token,
            mark,
            le("password: "),
            b"password: ".to_vec(),
        ],
    ];
    for case in cases {
        let bytes = case.concat();
        let shown = whole(&redactor, &bytes).escape_ascii().to_string();
        for size in 1..40 {
            let pieces = in_pieces(&redactor, &bytes, size).escape_ascii().to_string();
            assert_eq!(pieces, shown, "{size}: {}", bytes.escape_ascii());
        }
    }
}

proptest! {
    /// The same for wide characters with colours between them, in whatever pieces they come.
    #[test]
    fn any_pieces_of_coloured_wide_characters_are_masked_alike(
        parts in prop::collection::vec(prop_oneof![
            Just("password: ".to_owned()), Just("hunter2".to_owned()), Just("\n".to_owned()), Just(format!("{} ", token())),
            Just("\u{1b}[1m".to_owned()), Just("\u{1b}[".to_owned()), Just("\u{1b}".to_owned()),
            Just("\u{1b}(B".to_owned()), Just("\u{ad}".to_owned()), Just("a\u{8}a".to_owned()), Just("\u{e}".to_owned()),
            "[ -~]{0,6}",
        ], 0..12),
        encoding in 0..9_usize,
        odd in prop::collection::vec(any::<u8>(), 0..2),
        size in 1..20_usize,
    ) {
        let wide = encodings()[encoding].1(&parts.concat());
        let bytes = [&odd[..], &wide].concat();
        let redactor = Redactor::builtin();
        let shown = whole(&redactor, &bytes);
        prop_assert_eq!(in_pieces(&redactor, &bytes, size), shown);
    }
}

/// A stream holds back a bounded part, whatever nobody sees of it.
#[test]
fn what_is_held_back_is_bounded() {
    let size = 1 << 20;
    let redactor = Redactor::builtin();
    let narrow = [
        &b"\x1b[m"[..],
        b"\x1b[38;2;1;2;3",
        b"\0",
        b"a\0",
        b"a\0\0\0",
        b"\0a\0\0",
        b"\xe2\x80\x8b",
        b"\xe2\x80",
        b"a\x08",
        b"\xff\xfea\0",
        b"\xfe\xffa\0",
        b"a\x1b[m",
        b"word\x1b[m \0",
    ];
    let narrow = narrow.iter().map(|part| part.repeat(size / part.len()));
    let marked = &encodings()[4..];
    let wide = marked.iter().flat_map(|(_, encode)| {
        ["a\u{e9} ", "\u{200b}", "\u{1b}[m", "\u{1b}[38;2;1;2;3", "\u{34f}"]
            .map(|part| encode(&format!("password: Tr0{}", part.repeat(size / 48))))
    });
    let key = format!(
        "-----BEGIN RSA PRIVATE KEY-----\n{}",
        format!("Q{}", "\u{200b}".repeat(60)).repeat(size / 180)
    );
    let keys = marked[1..2].iter().map(|(_, encode)| encode(&key));
    for bytes in narrow.chain(wide).chain(keys) {
        let mut stream = MaskingStream::new(redactor.clone());
        let (mut out, mut most) = (Vec::new(), 0);
        for piece in bytes.chunks(4_096) {
            stream.push(piece, &mut out);
            most = most.max(stream.held());
        }
        stream.finish(false, &mut out);
        let begin = &bytes[..8];
        assert!(most <= (9 << 16) + 4_096, "{begin:x?}: {most} bytes are held back");
    }
}
