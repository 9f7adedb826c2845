//! What is looked for, and the bytes that each begins with.

use crate::anchors::Beginning;
use crate::calls::CALLS;
use crate::programs::{PROGRAMS, Program};
use crate::rules::{self, Rule};

/// What is tried where its bytes stand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Trial {
    /// A secret that the policy names.
    Known(usize),
    /// A kind of credential.
    Format(&'static Rule),
    /// A name of a setting.
    Name,
    /// One of `PLACES`.
    Place(usize),
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
    Block,
    /// A key of PuTTY.
    Putty,
    /// Oracle's addresses.
    Oracle,
    /// Go's addresses.
    Go,
    /// A line of fields.
    Fields,
    /// A command line.
    Command(usize),
    /// What is fed to a program.
    Echo,
    /// An argument of a call.
    Call(usize),
    /// The private part of a key in JSON.
    Jwk,
    /// A text in quotes behind words that say what it is.
    Told(&'static str),
}

/// What begins each trial that is no format: all of it, and the form of its first four bytes.
pub(super) const PLACES: &[(&str, &str, Trial)] = &[
    ("-BEGIN ", "-BEGIN ", Trial::Block),
    ("- BEGIN ", "- BEGIN ", Trial::Block),
    ("Private-Lines:", "Private-Lines:", Trial::Putty),
    ("Bearer", "Bearer", Trial::Scheme("bearer")),
    ("Basic", "Basic", Trial::Scheme("basic")),
    ("Token", "Token[ -@]", Trial::Scheme("token")),
    ("ApiKey", "ApiKey", Trial::Scheme("apikey")),
    ("Authorization", "Authorization", Trial::Authorization),
    ("Cookie", "Cookie", Trial::Cookie),
    ("AUTH", "AUTH[ \"]", Trial::Auth),
    ("://", "://[!-~]", Trial::Address),
    ("oracle:thin:", "oracle:thin:", Trial::Oracle),
    ("@tcp(", "@tcp\\(", Trial::Go),
    (":", ":[0-9]{4}:", Trial::Fields),
    ("echo", "echo", Trial::Echo),
    ("printf", "printf", Trial::Echo),
    ("\"d\"", "\"d\":", Trial::Jwk),
    ("identified by ", "identified by ", Trial::Told("identified by ")),
    ("SecureString ", "SecureString ", Trial::Told("SecureString ")),
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
const BEHIND_PROGRAM: &str = "[ \"',\\\\\u{1f}\t][ -~]{2}";

/// How many rules are shipped.
const COUNT: usize = rules::COUNT + PLACES.len() + CALLS.len() + PROGRAMS.len() + NAMES.len();

/// What is shipped, in the order in which it is tried where several begin.
pub(super) static SHIPPED: [(Beginning<'static>, Trial); COUNT] = shipped();

#[expect(clippy::indexing_slicing, reason = "a constant: out of bounds does not compile")]
const fn shipped() -> [(Beginning<'static>, Trial); COUNT] {
    const fn form(form: &str) -> Beginning<'_> {
        Beginning { text: b"", form }
    }
    let mut all = [(form(""), Trial::Name); COUNT];
    let (mut at, mut family) = (0, 0);
    while family < rules::FAMILIES.len() {
        let mut own = 0;
        while own < rules::FAMILIES[family].len() {
            let rule = &rules::FAMILIES[family][own];
            all[at] = (form(rule.form), Trial::Format(rule));
            (at, own) = (at + 1, own + 1);
        }
        family += 1;
    }
    let mut own = 0;
    while own < PLACES.len() {
        all[at] = (form(PLACES[own].1), Trial::Place(own));
        (at, own) = (at + 1, own + 1);
    }
    own = 0;
    while own < CALLS.len() {
        all[at] = (Beginning { text: CALLS[own].name.as_bytes(), form: "" }, Trial::Call(own));
        (at, own) = (at + 1, own + 1);
    }
    own = 0;
    while own < PROGRAMS.len() {
        let beginning = match &PROGRAMS[own] {
            Program { seen: Some(beginning), .. } => form(beginning),
            program => Beginning { text: program.name.as_bytes(), form: BEHIND_PROGRAM },
        };
        all[at] = (beginning, Trial::Command(own));
        (at, own) = (at + 1, own + 1);
    }
    own = 0;
    while own < NAMES.len() {
        all[at] = (form(NAMES[own]), Trial::Name);
        (at, own) = (at + 1, own + 1);
    }
    all
}
