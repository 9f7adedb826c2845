//! What is looked for, and the bytes that each begins with.

use crate::call_patterns::CALLS;
use crate::prefix::Prefix;
use crate::program_table::{PROGRAMS, PasswordProgram};
use crate::rules::{self, Rule};

/// What is tried where its bytes stand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Detector {
    /// A secret that the policy names.
    Known(usize),
    /// A kind of credential.
    Token(&'static Rule),
    /// A name of a setting.
    Setting,
    /// One of `PLACES`.
    Literal(usize),
    /// An address.
    Address,
    /// A scheme of `Authorization`.
    Scheme(&'static str),
    /// `Authorization` itself.
    Authorization,
    /// `Cookie`.
    Cookie,
    /// `AUTH`.
    Auth,
    /// A private key in a block.
    PemBlock,
    /// A key of PuTTY.
    Putty,
    /// Oracle's addresses.
    OracleDsn,
    /// Go's addresses.
    GoDsn,
    /// A line of fields.
    Pgpass,
    /// A command line.
    Command(usize),
    /// What is fed to a program.
    PipedPassword,
    /// An argument of a call.
    Call(usize),
    /// The private part of a key in JSON.
    Jwk,
    /// A text in quotes behind words that say what it is.
    Phrase(&'static str),
}

/// What begins each trial that is no format: all of it, and the form of its first four bytes.
pub(super) const LITERALS: &[(&str, &str, Detector)] = &[
    ("-BEGIN ", "-BEGIN ", Detector::PemBlock),
    ("- BEGIN ", "- BEGIN ", Detector::PemBlock),
    ("Private-Lines:", "Private-Lines:", Detector::Putty),
    ("Bearer", "Bearer", Detector::Scheme("bearer")),
    ("Basic", "Basic", Detector::Scheme("basic")),
    ("Token", "Token[ -@]", Detector::Scheme("token")),
    ("ApiKey", "ApiKey", Detector::Scheme("apikey")),
    ("Authorization", "Authorization", Detector::Authorization),
    ("Cookie", "Cookie", Detector::Cookie),
    ("AUTH", "AUTH[ \"]", Detector::Auth),
    ("://", "://[!-~]", Detector::Address),
    ("oracle:thin:", "oracle:thin:", Detector::OracleDsn),
    ("@tcp(", "@tcp\\(", Detector::GoDsn),
    (":", ":[0-9]{4}:", Detector::Pgpass),
    ("echo", "echo", Detector::PipedPassword),
    ("printf", "printf", Detector::PipedPassword),
    ("\"d\"", "\"d\":", Detector::Jwk),
    ("identified by ", "identified by ", Detector::Phrase("identified by ")),
    ("SecureString ", "SecureString ", Detector::Phrase("SecureString ")),
];

/// What names of settings are known by. A short one needs a sign behind it.
pub(super) const NAMES: &[&str] = &[
    "pass",
    "pwd[ -/:-@\\[-`{-~]",
    "pw[\"'=:][ -~]",
    "secret",
    "token",
    "apikey",
    "key[ -@\\[-`{-~]",
    "keybase",
    "keypem",
    "keydata",
    "keyprod",
    "keydev",
    "keylive",
    "keytest",
    "keystring",
    "keyvalue",
    "keyhex",
    "keyraw",
    "psk[ -/:-@\\[-`{-~]",
    "privkey",
    "auth[ -/:-@\\[-`{-~]",
    "cred",
    "session",
    "sess[ -/:-@\\[-`{-~]",
    "ssid[ -/:-@\\[-`{-~]",
    "sid=[!-~]",
    "sig=[!-~]",
    "totp",
    "jwt[ -/:-@\\[-`{-~]",
    "pat[_=:\"][ -~]",
    "mnemonic",
    "seed",
    "phrase",
    "kennwort",
    "senha",
    "wachtwoord",
    "contrase",
    "parola",
    "hasl",
    "identified by ",
    "securestring",
];

/// What stands behind the name of a program in its command line.
const AFTER_PROGRAM: &str = "[ \"',\\\\\u{1f}\t][ -~]{2}";

/// How many rules are shipped.
const COUNT: usize = rules::COUNT + LITERALS.len() + CALLS.len() + PROGRAMS.len() + NAMES.len();

/// What is shipped, in the order in which it is tried where several begin.
pub(super) static SHIPPED: [(Prefix<'static>, Detector); COUNT] = shipped();

#[expect(clippy::indexing_slicing, reason = "a constant: out of bounds does not compile")]
const fn shipped() -> [(Prefix<'static>, Detector); COUNT] {
    const fn form(form: &str) -> Prefix<'_> {
        Prefix { text: b"", pattern: form }
    }
    let mut all = [(form(""), Detector::Setting); COUNT];
    let (mut at, mut family) = (0, 0);
    while family < rules::FAMILIES.len() {
        let mut number = 0;
        while number < rules::FAMILIES[family].len() {
            let rule = &rules::FAMILIES[family][number];
            all[at] = (form(rule.pattern), Detector::Token(rule));
            (at, number) = (at + 1, number + 1);
        }
        family += 1;
    }
    let mut number = 0;
    while number < LITERALS.len() {
        all[at] = (form(LITERALS[number].1), Detector::Literal(number));
        (at, number) = (at + 1, number + 1);
    }
    number = 0;
    while number < CALLS.len() {
        all[at] =
            (Prefix { text: CALLS[number].name.as_bytes(), pattern: "" }, Detector::Call(number));
        (at, number) = (at + 1, number + 1);
    }
    number = 0;
    while number < PROGRAMS.len() {
        let beginning = match &PROGRAMS[number] {
            PasswordProgram { marker: Some(beginning), .. } => form(beginning),
            program => Prefix { text: program.name.as_bytes(), pattern: AFTER_PROGRAM },
        };
        all[at] = (beginning, Detector::Command(number));
        (at, number) = (at + 1, number + 1);
    }
    number = 0;
    while number < NAMES.len() {
        all[at] = (form(NAMES[number]), Detector::Setting);
        (at, number) = (at + 1, number + 1);
    }
    all
}
