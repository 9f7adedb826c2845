//! Keys that are no provider's: those of programs and formats.

use super::rule::{Check, Rule, form_only};

/// A key of a program or a format.
const fn key(name: &'static str, form: &'static str, check: Check, what: &'static str) -> Rule {
    Rule { kind: "key", name, pattern: form, check, description: what }
}

/// Keys and signed tokens.
pub(super) const RULES: &[Rule] = &[
    // Source: RFC 7519 and RFC 7516; the head is a JSON object in base64url, hence `eyJ`.
    Rule {
        kind: "token",
        name: "jwt",
        pattern: "eyJ[A-Za-z0-9_-]{10,}\\.eyJ[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]{16,}",
        check: Check::FormOnly,
        description: "signed token",
    },
    Rule {
        kind: "token",
        name: "jwe",
        pattern: "eyJ[A-Za-z0-9_-]{10,}\\.[A-Za-z0-9_-]{0,}\\.[A-Za-z0-9_-]{10,}\\.[A-Za-z0-9_-]{10,}\\.[A-Za-z0-9_-]{10,}",
        check: Check::FormOnly,
        description: "encrypted token",
    },
    // Source: age(1).
    key(
        "age",
        "AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7Lqpzry9x8gf2tvdw0s3jn54khce6mua7l]{58}",
        Check::FormOnly,
        "identity",
    ),
    key("age", "AGE-PLUGIN-[A-Z0-9-]{3,}1[A-Z0-9]{20,}", Check::FormOnly, "identity of a plugin"),
    // Source: the documentation of NATS, `nk`: a checksum of 16 bits is at the end.
    key("nats", "SUA[A-P][A-Z2-7]{54}", Check::Nkey, "seed of a user"),
    key("nats", "SAA[A-P][A-Z2-7]{54}", Check::Nkey, "seed of an account"),
    key("nats", "SOA[A-P][A-Z2-7]{54}", Check::Nkey, "seed of an operator"),
    key("nats", "SNA[A-P][A-Z2-7]{54}", Check::Nkey, "seed of a server"),
    key("nats", "SCA[A-P][A-Z2-7]{54}", Check::Nkey, "seed of a cluster"),
    key("nats", "SXA[A-P][A-Z2-7]{54}", Check::Nkey, "seed of a curve key"),
    // Source: BIP 32.
    key("bip32", "xprv[1-9A-HJ-NP-Za-km-z]{100,}", Check::FormOnly, "extended private key"),
    key("bip32", "[yz]prv[1-9A-HJ-NP-Za-km-z]{100,}", Check::FormOnly, "extended private key"),
    // Source: minisign(1); the first bytes say that a password encrypts it.
    key("minisign", "RWRTY0Iy[A-Za-z0-9+/]{180,}={0,2}", Check::FormOnly, "secret key"),
    key(
        "minisign",
        "RWQAAEIy[A-Za-z0-9+/]{180,}={0,2}",
        Check::FormOnly,
        "secret key without a password",
    ),
    // `-----BEGIN` in base64; what it says behind decides.
    key(
        "pem",
        "LS0tLS1CRUdJTi[A-Za-z0-9+/]{60,}={0,2}",
        Check::PemInBase64,
        "private key, in base64 once more",
    ),
    // Source: crypt(5): what `passwd` and `htpasswd` keep, behind the name that it is for.
    form_only(
        "crypt",
        "[a-z0-9_.-]{1,32}:(\\$6\\$[A-Za-z0-9./=]{1,32}\\$[A-Za-z0-9./]{86})",
        "kept password",
    ),
    form_only(
        "crypt",
        "[a-z0-9_.-]{1,32}:(\\$5\\$[A-Za-z0-9./=]{1,32}\\$[A-Za-z0-9./]{43})",
        "kept password",
    ),
    form_only(
        "crypt",
        "[a-z0-9_.-]{1,32}:(\\$y\\$[A-Za-z0-9./]{1,8}\\$[A-Za-z0-9./]{1,86}\\$[A-Za-z0-9./]{43})",
        "kept password",
    ),
    form_only(
        "crypt",
        "[a-z0-9_.-]{1,32}:(\\$apr1\\$[A-Za-z0-9./]{1,8}\\$[A-Za-z0-9./]{22})",
        "kept password",
    ),
    form_only(
        "crypt",
        "[a-z0-9_.-]{1,32}:(\\$1\\$[A-Za-z0-9./]{1,8}\\$[A-Za-z0-9./]{22})",
        "kept password",
    ),
    form_only(
        "crypt",
        "[a-z0-9_.-]{1,32}:(\\$2[aby]\\$[0-9]{2}\\$[A-Za-z0-9./]{53})",
        "kept password",
    ),
];
