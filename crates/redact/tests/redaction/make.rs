//! Makes the random part of a case from its name, so that no file of ours holds anything that a
//! scanner would take for a credential.

use base64::Engine as _;
use base64::alphabet::{STANDARD as STANDARD_ALPHABET, URL_SAFE};
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

const DIGITS: &str = "0123456789";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Numbers that are the same whenever the name is.
pub(crate) struct Maker(u64);

impl Maker {
    pub(crate) fn new(name: &str) -> Self {
        let seed = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn of(&mut self, alphabet: &str, length: usize) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        (0..length).map(|_| letters[self.below(letters.len())]).collect()
    }

    fn raw(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }

    /// The text of a case, with everything made that is to be made.
    pub(crate) fn fill(&mut self, text: &str) -> String {
        self.replaced(text, '⟪', '⟫')
    }

    fn replaced(&mut self, text: &str, open: char, close: char) -> String {
        let mut made = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(open) {
            let (what, behind) = after.split_once(close).expect("a generator is closed");
            made.push_str(before);
            made.push_str(&self.one(what));
            rest = behind;
        }
        made + rest
    }

    fn one(&mut self, what: &str) -> String {
        let (name, argument) = what.split_once(' ').unwrap_or((what, ""));
        let last = argument.rsplit(' ').next().unwrap_or("");
        let number = || last.parse::<usize>().unwrap_or_else(|_| panic!("`{what}`"));
        let label = argument.strip_suffix(last).unwrap_or("").trim_end();
        let hex = "0123456789abcdef";
        match name {
            "alnum" => self.with_all([LOWER, UPPER, DIGITS].concat().as_str(), number()),
            "lower" => self.with_all(&[LOWER, DIGITS].concat(), number()),
            "lower5" => self.of(&[LOWER, "234567"].concat(), number()),
            "upper" => self.with_all(&[UPPER, DIGITS].concat(), number()),
            "letters" => self.of(&[LOWER, UPPER].concat(), number()),
            "hex" => self.of(hex, number()),
            "HEX" => self.of("0123456789ABCDEF", number()),
            "digits" => self.of(DIGITS, number()),
            "url" => self.of(URL_SAFE.as_str(), number()),
            "b64" => self.of(STANDARD_ALPHABET.as_str(), number()),
            "b32" => self.of("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", number()),
            "b58" => {
                self.of("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", number())
            }
            "bech" => self.of("qpzry9x8gf2tvdw0s3jn54khce6mua7l", number()),
            "bytes" => STANDARD.encode(self.raw(number())),
            "urlbytes" => URL_SAFE_NO_PAD.encode(self.raw(number())),
            "mixed" => {
                let sets = [LOWER, UPPER, DIGITS, "!#%*+-=?@^_~"];
                self.with_all(&sets.concat(), number())
            }
            "uuid" => self.uuid(),
            "UUID" => self.uuid().to_uppercase(),
            "ulid" => format!("01HR{}", self.of("0123456789ABCDEFGHJKMNPQRSTVWXYZ", 22)),
            "crc" => self.checked(argument),
            "nkey" => self.nkey(argument),
            "jwt" => self.jwt(),
            "of" => STANDARD.encode(self.replaced(argument, '‹', '›').replace("\\0", "\0")),
            "pct" => percent(&self.replaced(argument, '‹', '›')),
            "cr" => "\r".to_owned(),
            "join" => String::new(),
            "colons" => self.pairs(number(), hex, ":"),
            "COLONS" => self.pairs(number(), "0123456789ABCDEF", ":"),
            "hexdump" => self.pairs(number(), hex, " "),
            "b64lines" => self.lines(number() * 57),
            _ => self.block(name, label, argument, last),
        }
    }

    /// Blocks of several lines.
    fn block(&mut self, name: &str, label: &str, argument: &str, last: &str) -> String {
        let size: usize = last.parse().unwrap_or_else(|_| panic!("`{name} {argument}`"));
        let whole = |own: &mut Self| own.pem(label, size);
        match name {
            "pem" => whole(self),
            "pemline" => whole(self).replace('\n', "\\n"),
            "pemline2" => whole(self).replace('\n', "\\\\n"),
            "pem64" => STANDARD.encode(whole(self) + "\n"),
            "pemcrlf" => whole(self).replace('\n', "\r\n"),
            "pemspace" => whole(self).replace('\n', " "),
            "pemindent" => whole(self).replace('\n', "\n  "),
            "pemindent4" => whole(self).replace('\n', "\n    "),
            "pemquote" => whole(self).replace('\n', "\n> "),
            "pemplus" => whole(self).replace('\n', "\n+"),
            "pemlog" => whole(self).replace('\n', "\nweb_1  | "),
            "pemjava" => whole(self).replace('\n', "\\n\" +\n    \""),
            "pemcut" => whole(self).rsplit_once("\n-----END").expect("it ends").0.to_owned(),
            "pemenc" => {
                let iv = self.of("0123456789ABCDEF", 32);
                let head = format!("Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{iv}\n\n");
                whole(self).replacen("-----\n", &format!("-----\n{head}"), 1)
            }
            "pgp" => self.armor("PRIVATE KEY BLOCK", size),
            "pgppublic" => self.armor("PUBLIC KEY BLOCK", size),
            "pgpmessage" => self.armor("MESSAGE", size),
            "pgpsignature" => self.armor("SIGNATURE", size),
            "ssh2" => format!(
                "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: \"ada\"\n{}\n\
                 ---- END SSH2 ENCRYPTED PRIVATE KEY ----",
                self.lines(size)
            ),
            _ => panic!("there is no generator `{name}`"),
        }
    }

    /// A text that has a letter of each kind, as generators of keys make sure of.
    fn with_all(&mut self, alphabet: &str, length: usize) -> String {
        let kinds: [fn(char) -> bool; 4] = [
            |c| c.is_ascii_lowercase(),
            |c| c.is_ascii_uppercase(),
            |c| c.is_ascii_digit(),
            |c| c.is_ascii_punctuation(),
        ];
        let wanted: Vec<_> = kinds.iter().filter(|kind| alphabet.chars().any(kind)).collect();
        loop {
            let made = self.of(alphabet, length);
            let starts = made.starts_with(|c: char| c.is_ascii_alphanumeric());
            let ends = made.ends_with(|c: char| c.is_ascii_alphanumeric());
            let has = |kind: &&fn(char) -> bool| made.chars().any(kind);
            if starts && ends && (length < 6 || wanted.iter().all(has)) {
                return made;
            }
        }
    }

    fn uuid(&mut self) -> String {
        let mut part = |length| self.of("0123456789abcdef", length);
        format!("{}-{}-4{}-a{}-{}", part(8), part(4), part(3), part(3), part(12))
    }

    fn pairs(&mut self, count: usize, alphabet: &str, between: &str) -> String {
        let pairs: Vec<String> = (0..count).map(|_| self.of(alphabet, 2)).collect();
        pairs.join(between)
    }

    /// The prefix, 30 characters, and six of a checksum over these, in base 62.
    fn checked(&mut self, prefix: &str) -> String {
        const BASE: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let body = self.of(std::str::from_utf8(BASE).expect("it is text"), 30);
        let mut sum = crc32(body.as_bytes());
        let mut tail = [b'0'; 6];
        for slot in tail.iter_mut().rev() {
            *slot = BASE[(sum % 62) as usize];
            sum /= 62;
        }
        format!("{prefix}{body}{}", String::from_utf8_lossy(&tail))
    }

    /// A seed as `nk` makes it: two bytes that say what it is, 32 of the seed, a checksum.
    fn nkey(&mut self, kind: &str) -> String {
        let kind = match kind {
            "U" => 20_u8 << 3,
            "A" => 0,
            _ => panic!("`nkey {kind}`"),
        };
        let seed = 18_u8 << 3;
        let mut bytes = vec![seed | (kind >> 5), (kind & 31) << 3];
        bytes.extend(self.raw(32));
        let sum = crc16(&bytes);
        bytes.extend(sum.to_le_bytes());
        base32(&bytes)
    }

    fn jwt(&mut self) -> String {
        let head = URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256","typ":"JWT"}"#);
        let user = self.uuid();
        let body = URL_SAFE_NO_PAD.encode(format!(r#"{{"sub":"{user}","iat":1709546672}}"#));
        format!("{head}.{body}.{}", URL_SAFE_NO_PAD.encode(self.raw(64)))
    }

    fn lines(&mut self, size: usize) -> String {
        let text = STANDARD.encode(self.raw(size));
        let lines: Vec<&str> =
            text.as_bytes().chunks(64).map(|own| std::str::from_utf8(own).unwrap()).collect();
        lines.join("\n")
    }

    fn pem(&mut self, label: &str, size: usize) -> String {
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----", self.lines(size))
    }

    fn armor(&mut self, label: &str, size: usize) -> String {
        let body = self.lines(size);
        let sum = STANDARD.encode(self.raw(3));
        format!(
            "-----BEGIN PGP {label}-----\nVersion: GnuPG v2\n\n{body}\n={sum}\n-----END PGP {label}-----"
        )
    }
}

fn percent(text: &str) -> String {
    let encoded = |c: char| match c {
        'A'..='Z' | 'a'..='z' | '0'..='9' | '-' | '_' | '.' | '~' => c.to_string(),
        other => format!("%{:02X}", other as u32),
    };
    text.chars().map(encoded).collect()
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(sum & 1));
        }
    }
    !sum
}

fn crc16(bytes: &[u8]) -> u16 {
    let mut sum = 0_u16;
    for byte in bytes {
        sum ^= u16::from(*byte) << 8;
        for _ in 0..8 {
            let carry = sum & 0x8000 != 0;
            sum <<= 1;
            if carry {
                sum ^= 0x1021;
            }
        }
    }
    sum
}

fn base32(bytes: &[u8]) -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let (mut held, mut bits, mut made) = (0_u32, 0, String::new());
    for byte in bytes {
        held = (held << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            made.push(char::from(letters[((held >> bits) & 31) as usize]));
        }
    }
    if bits > 0 {
        made.push(char::from(letters[((held << (5 - bits)) & 31) as usize]));
    }
    made
}
