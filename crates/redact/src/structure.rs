//! Masking values of JSON: what a key says of its text, and what an argument says of the next.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::{Map, Value};

use crate::found::Found;
use crate::judge::{Joined, Wording, is_secret};
use crate::quoted::SEPARATOR;
use crate::setting::label;
use crate::{Around, Redactor, key, limits};

impl Redactor {
    /// Masks every text of a value, keys included, and counts the masks. What comes out is at rest, as
    /// [`Redactor::text`] has it.
    #[must_use]
    pub fn value(&self, mut value: Value, masked: &mut u64) -> Value {
        for _ in 0..limits::ROUNDS {
            let before = *masked;
            self.once(&mut value, masked);
            if *masked == before {
                break;
            }
        }
        value
    }

    /// Where nothing is masked, which is nearly everywhere, nothing is moved or copied.
    fn once(&self, value: &mut Value, masked: &mut u64) {
        match value {
            Value::String(text) => self.plain(text, masked),
            Value::Array(list) => self.list(list, masked),
            Value::Object(map) => self.map(map, masked),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn plain(&self, text: &mut String, masked: &mut u64) {
        if let Cow::Owned(clean) = self.text(text, masked) {
            *text = clean;
        }
    }

    fn map(&self, map: &mut Map<String, Value>, masked: &mut u64) {
        // `{"name": "DB_PASSWORD", "value": ".."}`
        let text_of = |name: &str| {
            let mut entries = map.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name));
            entries.find_map(|(_, item)| item.as_str())
        };
        let named = text_of("name").or_else(|| text_of("key")).map(ToString::to_string);
        for (name, item) in map.iter_mut() {
            match (item, &named) {
                (Value::String(text), Some(named)) if name.eq_ignore_ascii_case("value") => {
                    self.named(named, text, masked);
                }
                (Value::String(text), _) => self.named(name, text, masked),
                (other, _) => self.once(other, masked),
            }
        }
        let mut inside = 0;
        map.keys().for_each(|name| drop(self.text(name, &mut inside)));
        if inside > 0 {
            *masked += inside;
            let entries = core::mem::take(map).into_iter();
            *map = entries.map(|(name, item)| (self.text(&name, &mut 0).into(), item)).collect();
        }
    }

    /// The text under a key.
    fn named(&self, name: &str, text: &mut String, masked: &mut u64) {
        const HEADERS: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "set-cookie"];
        if HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name)) && !text.contains('\n') {
            let mut line = String::from(name);
            line.push_str(": ");
            let behind = line.len();
            line.push_str(text);
            let mut inside = 0;
            let clean = self.text(&line, &mut inside);
            if let Some(rest) = clean.get(behind..).filter(|_| inside > 0) {
                *masked += inside;
                *text = rest.to_string();
                return;
            }
        }
        let wording = Wording { joined: Joined::Assigned, quoted: true, line: false };
        let holds = key::holds(name.as_bytes());
        let secret = holds.filter(|own| is_secret(*own, text.as_bytes(), &wording));
        let (Some(holds), false) = (secret, self.is_covered(text.as_bytes())) else {
            return self.plain(text, masked);
        };
        *masked += 1;
        *text = label(holds).mask(text.as_bytes());
    }

    /// Whether one finding is all of a text: then its own mask says more.
    fn is_covered(&self, text: &[u8]) -> bool {
        let mut covered = false;
        self.each(text, &Around::whole(text), |_, found| covered |= found.range == (0..text.len()));
        covered
    }

    /// A list: texts that follow one another are looked at together, as a command line is.
    fn list(&self, list: &mut [Value], masked: &mut u64) {
        list.split_mut(|item| !is_joined(item)).for_each(|texts| self.texts(texts, masked));
        let others = list.iter_mut().filter(|item| !is_joined(item));
        others.for_each(|item| self.once(item, masked));
    }

    fn texts(&self, texts: &mut [Value], masked: &mut u64) {
        let mut joined: Vec<u8> = Vec::new();
        for text in texts.iter().filter_map(Value::as_str) {
            joined.extend_from_slice(text.as_bytes());
            joined.push(SEPARATOR);
        }
        let mut found: Vec<Found> = Vec::new();
        self.each(&joined, &Around::whole(&joined), |_, own| found.push(own.clone()));
        *masked += u64::try_from(found.len()).unwrap_or(u64::MAX);
        let mut start = 0;
        for item in texts {
            let end = start + item.as_str().map_or(0, str::len);
            if found.iter().any(|own| own.range.start < end && own.range.end > start) {
                *item = Value::String(part(&joined, start..end, &found));
            }
            start = end + 1;
        }
    }
}

/// Whether an item of a list is looked at together with those beside it.
fn is_joined(item: &Value) -> bool {
    item.as_str().is_some_and(|text| !text.as_bytes().contains(&SEPARATOR))
}

/// One text of several, with the masks that begin in it. What a mask of an earlier one covers is gone.
fn part(joined: &[u8], range: core::ops::Range<usize>, found: &[Found]) -> String {
    let mut made: Vec<u8> = Vec::new();
    let mut kept = range.start;
    for own in found.iter().filter(|own| own.range.end > range.start && own.range.start < range.end)
    {
        let at = own.range.start.max(range.start);
        made.extend_from_slice(joined.get(kept..at).unwrap_or_default());
        if own.range.start >= range.start {
            let secret = joined.get(own.range.clone()).unwrap_or_default();
            made.extend_from_slice(own.label.mask(secret).as_bytes());
        }
        kept = own.range.end.min(range.end);
    }
    made.extend_from_slice(joined.get(kept..range.end).unwrap_or_default());
    String::from_utf8_lossy(&made).into_owned()
}
