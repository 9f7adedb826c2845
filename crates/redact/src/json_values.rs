//! Masking values of JSON: what a key says of its text, and what an argument says of the next.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::{Map, Value};

use crate::classifier::{Joiner, ValueContext, is_secret};
use crate::matches::SecretMatch;
use crate::quoted_value::SEPARATOR;
use crate::setting::label;
use crate::{DeliveryWindow, Redactor, limits, setting_names};

impl Redactor {
    /// Masks every text of a value, keys included, and counts the masks. What comes out is at rest, as
    /// [`Redactor::text`] has it.
    #[must_use]
    pub fn value(&self, mut value: Value, masked: &mut u64) -> Value {
        for _ in 0..limits::MASK_ROUNDS {
            let before = *masked;
            self.mask_in_place(&mut value, masked);
            if *masked == before {
                break;
            }
        }
        value
    }

    /// Where nothing is masked, which is nearly everywhere, nothing is moved or copied.
    fn mask_in_place(&self, value: &mut Value, masked: &mut u64) {
        match value {
            Value::String(text) => self.mask_text(text, masked),
            Value::Array(list) => self.mask_list(list, masked),
            Value::Object(map) => self.mask_map(map, masked),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn mask_text(&self, text: &mut String, masked: &mut u64) {
        if let Cow::Owned(clean) = self.text(text, masked) {
            *text = clean;
        }
    }

    fn mask_map(&self, map: &mut Map<String, Value>, masked: &mut u64) {
        // `{"name": "DB_PASSWORD", "value": ".."}`
        let text_of = |name: &str| {
            let mut entries = map.iter().filter(|(text, _)| text.eq_ignore_ascii_case(name));
            entries.find_map(|(_, item)| item.as_str())
        };
        let named = text_of("name").or_else(|| text_of("key")).map(ToString::to_string);
        for (name, item) in map.iter_mut() {
            match (item, &named) {
                (Value::String(text), Some(named)) if name.eq_ignore_ascii_case("value") => {
                    self.mask_named(named, text, masked);
                }
                (Value::String(text), _) => self.mask_named(name, text, masked),
                (other, _) => self.mask_in_place(other, masked),
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
    fn mask_named(&self, name: &str, text: &mut String, masked: &mut u64) {
        const HEADERS: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "set-cookie"];
        if HEADERS.iter().any(|header| header.eq_ignore_ascii_case(name)) && !text.contains('\n') {
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
        let wording = ValueContext { joined: Joiner::Assigned, quoted: true, whole_line: false };
        let holds = setting_names::category(name.as_bytes());
        let secret = holds.filter(|hold| is_secret(*hold, text.as_bytes(), &wording));
        let (Some(holds), false) = (secret, self.is_covered(text.as_bytes())) else {
            return self.mask_text(text, masked);
        };
        *masked += 1;
        *text = label(holds).mask(text.as_bytes());
    }

    /// Whether one finding is all of a text: then its own mask says more.
    fn is_covered(&self, text: &[u8]) -> bool {
        let mut covered = false;
        self.for_each_match(text, &DeliveryWindow::whole(text), |_, found| {
            covered |= found.range == (0..text.len())
        });
        covered
    }

    /// A list: texts that follow one another are looked at together, as a command line is.
    fn mask_list(&self, list: &mut [Value], masked: &mut u64) {
        list.split_mut(|item| !joins_neighbours(item))
            .for_each(|texts| self.mask_texts(texts, masked));
        let others = list.iter_mut().filter(|item| !joins_neighbours(item));
        others.for_each(|item| self.mask_in_place(item, masked));
    }

    fn mask_texts(&self, texts: &mut [Value], masked: &mut u64) {
        let mut joined: Vec<u8> = Vec::new();
        for text in texts.iter().filter_map(Value::as_str) {
            joined.extend_from_slice(text.as_bytes());
            joined.push(SEPARATOR);
        }
        let mut found: Vec<SecretMatch> = Vec::new();
        self.for_each_match(&joined, &DeliveryWindow::whole(&joined), |_, item| {
            found.push(item.clone())
        });
        *masked += u64::try_from(found.len()).unwrap_or(u64::MAX);
        let mut start = 0;
        for item in texts {
            let end = start + item.as_str().map_or(0, str::len);
            if found.iter().any(|item| item.range.start < end && item.range.end > start) {
                *item = Value::String(joined_part(&joined, start..end, &found));
            }
            start = end + 1;
        }
    }
}

/// Whether an item of a list is looked at together with those beside it.
fn joins_neighbours(item: &Value) -> bool {
    item.as_str().is_some_and(|text| !text.as_bytes().contains(&SEPARATOR))
}

/// One text of several, with the masks that begin in it. What a mask of an earlier one covers is gone.
fn joined_part(joined: &[u8], range: core::ops::Range<usize>, found: &[SecretMatch]) -> String {
    let mut made: Vec<u8> = Vec::new();
    let mut kept = range.start;
    for item in
        found.iter().filter(|found| found.range.end > range.start && found.range.start < range.end)
    {
        let at = item.range.start.max(range.start);
        made.extend_from_slice(joined.get(kept..at).unwrap_or_default());
        if item.range.start >= range.start {
            let secret = joined.get(item.range.clone()).unwrap_or_default();
            made.extend_from_slice(item.label.mask(secret).as_bytes());
        }
        kept = item.range.end.min(range.end);
    }
    made.extend_from_slice(joined.get(kept..range.end).unwrap_or_default());
    String::from_utf8_lossy(&made).into_owned()
}
