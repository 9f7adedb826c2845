//! JSON that has one reading.
//!
//! Arguments come from models. A parser that lets a key stand twice lets the policy read one value
//! and the tool another; one that rounds integers changes what was asked. Both are refused here,
//! and depth and size are bounded. What is written is canonical (RFC 8785), so that equal values
//! have equal bytes and equal digests.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::code::Code;
use crate::limits;

/// Why a text is not JSON that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// One of the `args.` codes.
    pub code: Code,
    /// What is wrong and where.
    pub message: String,
}

/// Reads one JSON value.
///
/// # Errors
/// [`Code::ArgsDuplicateKey`], [`Code::ArgsTooDeep`], [`Code::ArgsTooLarge`], [`Code::ArgsNumber`],
/// or [`Code::ArgsInvalid`] for what is not JSON at all.
pub fn parse(text: &[u8]) -> Result<Value, JsonError> {
    if text.len() > limits::ARGUMENT_BYTES {
        return Err(JsonError {
            code: Code::ArgsTooLarge,
            message: alloc::format!(
                "{} bytes; at most {} are taken",
                text.len(),
                limits::ARGUMENT_BYTES
            ),
        });
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = StrictValue { depth: limits::ARGUMENT_DEPTH }
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|error| {
            let message = alloc::format!("{error}");
            let marked = |mark: &str| message.starts_with(mark);
            let code = match () {
                () if marked(DUPLICATE_KEY) => Code::ArgsDuplicateKey,
                () if marked(TOO_DEEP) || marked("recursion limit") => Code::ArgsTooDeep,
                () if marked(INEXACT_NUMBER) => Code::ArgsNumber,
                () => Code::ArgsInvalid,
            };
            JsonError { code, message }
        })?;
    Ok(value)
}

const DUPLICATE_KEY: &str = "the key stands twice";
const TOO_DEEP: &str = "nested too deep";
const INEXACT_NUMBER: &str = "the number is not exact";

/// The canonical bytes of a value (RFC 8785).
///
/// Our values hold no number that JSON cannot write, so writing cannot fail; should it ever, the
/// result is JSON's `null`, which no reader of ours accepts in an event or an action.
#[must_use]
pub fn canonical<T: serde::Serialize>(value: &T) -> Vec<u8> {
    let plain = serde_json::to_value(value).ok().and_then(|value| canonical_fast(&value));
    plain.unwrap_or_else(|| canonical_slow(value))
}

/// The same of a value that is JSON already, which is not taken apart for it.
#[must_use]
pub fn canonical_value(value: &Value) -> Vec<u8> {
    canonical_fast(value).unwrap_or_else(|| canonical_slow(value))
}

fn canonical_fast(value: &Value) -> Option<Vec<u8>> {
    let mut out = String::with_capacity(FAST_CAPACITY);
    write_fast(value, &mut out).then(|| out.into_bytes())
}

fn canonical_slow<T: serde::Serialize>(value: &T) -> Vec<u8> {
    serde_json_canonicalizer::to_vec(value).unwrap_or_else(|_| b"null".to_vec())
}

/// About as much as most events take.
const FAST_CAPACITY: usize = 1_024;

/// From this byte on, the order of keys by their UTF-8 and that by their UTF-16, which the canonical
/// form has, may differ: the first one of U+E000.
const ORDER_DIVERGES: u8 = 0xEE;

/// Writes what nearly every value of ours is made of, at much less cost than the library: text,
/// whole numbers that are exact, and maps that are in order, as they are wherever no crate asks
/// `serde_json` for another one. Whether that was all there is; whatever else there may be, the library
/// writes. A test has both write the same.
fn write_fast(value: &Value, out: &mut String) -> bool {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => {
            let whole = number.as_i64();
            let Some(whole) = whole.filter(|whole| whole.unsigned_abs() <= limits::EXACT_INTEGER)
            else {
                return false;
            };
            return write!(out, "{whole}").is_ok();
        }
        Value::String(text) => write_text_fast(text, out),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                out.push(if index == 0 { '[' } else { ',' });
                if !write_fast(item, out) {
                    return false;
                }
            }
            out.push_str(if items.is_empty() { "[]" } else { "]" });
        }
        Value::Object(entries) => {
            let mut before: Option<&str> = None;
            for (key, value) in entries {
                let in_order = before.is_none_or(|before| before < key.as_str());
                if !in_order || key.bytes().any(|byte| byte >= ORDER_DIVERGES) {
                    return false;
                }
                out.push(if before.is_none() { '{' } else { ',' });
                write_text_fast(key, out);
                out.push(':');
                if !write_fast(value, out) {
                    return false;
                }
                before = Some(key);
            }
            out.push_str(if entries.is_empty() { "{}" } else { "}" });
        }
    }
    true
}

fn write_text_fast(text: &str, out: &mut String) {
    let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    if text.bytes().all(is_plain) {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        // Escaping text cannot fail; should it ever, what is left is no JSON, which no reader takes.
        out.push_str(&serde_json::to_string(text).unwrap_or_default());
    }
}

#[derive(Clone, Copy)]
struct StrictValue {
    depth: usize,
}

impl StrictValue {
    fn nested<E: de::Error>(self) -> Result<Self, E> {
        let depth = self.depth.checked_sub(1).ok_or_else(|| E::custom(TOO_DEEP))?;
        Ok(Self { depth })
    }
}

impl<'de> DeserializeSeed<'de> for StrictValue {
    type Value = Value;
    fn deserialize<D: de::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        if value > limits::EXACT_INTEGER {
            return Err(E::custom(INEXACT_NUMBER));
        }
        Ok(Value::from(value))
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        if value.unsigned_abs() > limits::EXACT_INTEGER {
            return Err(E::custom(INEXACT_NUMBER));
        }
        Ok(Value::from(value))
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        // An integer too large for 64 bits arrives here too: it was rounded already.
        let exact = limits::EXACT_INTEGER as f64;
        if !(-exact..=exact).contains(&value) {
            return Err(E::custom(INEXACT_NUMBER));
        }
        // `1e3` and `1000.0` are written as 1000, and have to be read as what is written.
        let whole = value as i64;
        Ok(if whole as f64 == value { Value::from(whole) } else { Value::from(value) })
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::from(value))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.nested()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let inner = self.nested()?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(inner)?;
            if map.insert(key, value).is_some() {
                return Err(de::Error::custom(DUPLICATE_KEY));
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reading_or_none() {
        let deep = "[".repeat(100_000);
        let ok_depth = alloc::format!("{}{}", "[".repeat(60), "]".repeat(60));
        for (text, code) in [
            (r#"{"path":"ok","path":"/etc/shadow"}"#, Some(Code::ArgsDuplicateKey)),
            (r#"{"a":{"b":1,"b":1}}"#, Some(Code::ArgsDuplicateKey)),
            (deep.as_str(), Some(Code::ArgsTooDeep)),
            (ok_depth.as_str(), None),
            ("9007199254740993", Some(Code::ArgsNumber)),
            ("-9007199254740993", Some(Code::ArgsNumber)),
            ("123456789012345678901234567890", Some(Code::ArgsNumber)),
            ("9007199254740992", None),
            ("1.5", None),
            ("NaN", Some(Code::ArgsInvalid)),
            ("{} {}", Some(Code::ArgsInvalid)),
            ("", Some(Code::ArgsInvalid)),
            (r#""\ud800""#, Some(Code::ArgsInvalid)),
        ] {
            let got = parse(text.as_bytes()).err().map(|error| error.code);
            assert_eq!(got, code, "{}", text.chars().take(40).collect::<String>());
        }
    }

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for (text, written) in [("1e3", "1000"), ("1000.0", "1000"), ("-0.0", "0"), ("0.5", "0.5")]
        {
            let read = parse(text.as_bytes()).unwrap();
            assert_eq!(canonical(&read), written.as_bytes());
            assert_eq!(parse(written.as_bytes()).unwrap(), read, "{text}");
        }
    }

    #[test]
    fn what_is_written_plainly_is_what_the_library_writes() {
        let texts =
            ["", "a", "\u{1}\u{1f}\u{7f}\u{80}", "\"\\/\u{8}\u{c}\n\r\t", "é\u{2028}", "\u{fffd}"];
        let exact = i64::try_from(limits::EXACT_INTEGER).unwrap();
        let mut values: Vec<Value> = texts.iter().map(|text| Value::from(*text)).collect();
        values.extend([0, 1, -1, exact, -exact].map(Value::from));
        values.extend([Value::Null, Value::Bool(true), Value::Array(Vec::new())]);
        values.push(Value::Object(Map::new()));
        values.push(Value::Array(values.clone()));
        let map =
            texts.iter().take(5).zip(&values).map(|(key, value)| ((*key).into(), value.clone()));
        values.push(Value::Object(map.collect()));
        for value in &values {
            let mut out = String::new();
            assert!(write_fast(value, &mut out), "{value}");
            assert_eq!(out.as_bytes(), serde_json_canonicalizer::to_vec(value).unwrap(), "{value}");
        }
    }

    #[test]
    fn an_event_is_written_as_the_library_writes_it() {
        #[derive(serde::Serialize)]
        struct Outer {
            zeta: u64,
            none: Option<u8>,
            #[serde(flatten)]
            inner: Inner,
            numbers: alloc::collections::BTreeMap<u64, i8>,
            at: (bool, char),
        }
        #[derive(serde::Serialize)]
        #[serde(tag = "kind", content = "body", rename_all = "kebab-case")]
        enum Inner {
            RunSealed { text: &'static str, a: [u8; 2] },
        }
        let numbers = [(9, -1), (10, 1)].into_iter().collect();
        let inner = Inner::RunSealed { text: "\u{7}\n", a: [1, 2] };
        let value =
            Outer { zeta: limits::EXACT_INTEGER, none: None, inner, numbers, at: (true, 'x') };
        assert_eq!(canonical(&value), serde_json_canonicalizer::to_vec(&value).unwrap());
        assert!(write_fast(&serde_json::to_value(&value).unwrap(), &mut String::new()));
    }

    #[test]
    fn what_the_library_alone_knows_is_left_to_it() {
        let too_large = limits::EXACT_INTEGER + 1;
        for (text, written) in [
            ("[1.5]", "[1.5]"),
            ("[1e300]", "[1e+300]"),
            // By UTF-16, U+1F600 (d83d de00) stands before U+FFFD.
            ("{\"\u{fffd}\":1,\"\u{1f600}\":2}", "{\"\u{1f600}\":2,\"\u{fffd}\":1}"),
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert!(!write_fast(&value, &mut String::new()), "{text}");
            assert_eq!(canonical(&value), written.as_bytes());
            assert_eq!(canonical_value(&value), written.as_bytes());
        }
        assert!(!write_fast(&Value::from(too_large), &mut String::new()));
    }

    #[test]
    fn writing_is_canonical() {
        let value = parse(br#"{"b":1,"a":[true,null,"\u00e9"],"A":1.0}"#).unwrap();
        assert_eq!(canonical(&value), r#"{"A":1,"a":[true,null,"é"],"b":1}"#.as_bytes());
    }
}
