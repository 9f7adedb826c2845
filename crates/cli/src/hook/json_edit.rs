//! Changes to the settings of other programs: an element of a list goes in or out, and every other byte stays.

use std::ops::Range;

use serde_json::Value;

/// Where the key of a part of an object or list is, if it has one, and where its value is.
type JsonPart = (Option<Range<usize>>, Range<usize>);

/// Where a value begins and ends in a JSON text, and where its parts do.
#[derive(Debug)]
struct JsonScanner<'t> {
    text: &'t str,
    at: usize,
}

impl JsonScanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Passes a value of a valid text.
    fn value(&mut self) -> Option<Range<usize>> {
        self.skip_space();
        let start = self.at;
        match self.peek()? {
            b'{' | b'[' => {
                self.parts()?;
            }
            b'"' => self.string()?,
            _ => {
                while self.peek().is_some_and(|byte| !b",]} \t\r\n".contains(&byte)) {
                    self.at += 1;
                }
            }
        }
        Some(start..self.at)
    }

    fn string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            match self.peek()? {
                b'\\' => self.at += 2,
                b'"' => break,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Some(())
    }

    /// The parts of the object or list that begins here: the key of each, if it has one, and its value.
    fn parts(&mut self) -> Option<Vec<JsonPart>> {
        let is_object = self.peek()? == b'{';
        self.at += 1;
        let mut parts = Vec::new();
        loop {
            self.skip_space();
            match self.peek()? {
                b'}' | b']' => break,
                b',' => self.at += 1,
                _ if is_object => {
                    let key = self.value()?;
                    self.skip_space();
                    self.at += 1;
                    parts.push((Some(key), self.value()?));
                }
                _ => parts.push((None, self.value()?)),
            }
        }
        self.at += 1;
        Some(parts)
    }
}

/// The parts of the object or list at this place of a valid text.
fn parts(text: &str, at: usize) -> Option<Vec<JsonPart>> {
    JsonScanner { text, at }.parts()
}

/// Where the value of a member of an object is.
fn member(text: &str, object: usize, name: &str) -> Option<Range<usize>> {
    let is_named = |key: &Option<Range<usize>>| {
        let key = key.clone().and_then(|key| text.get(key));
        key.and_then(|key| serde_json::from_str::<String>(key).ok()).is_some_and(|key| key == name)
    };
    parts(text, object)?.into_iter().find(|(key, _)| is_named(key)).map(|(_, value)| value)
}

/// The text with an element at the end of the list `outer.inner`, which is made where it is not there.
///
/// None where the text is no JSON object, or has something else there.
pub(crate) fn with_element(
    text: &str,
    [outer, inner]: [&str; 2],
    element: &Value,
) -> Option<String> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let read: Value = serde_json::from_str(text).ok()?;
    let root = read.as_object().map(|_| text.find('{'))??;
    let shown = |value: &Value, depth: usize| {
        let text = serde_json::to_string_pretty(value).ok()?;
        Some(text.replace('\n', &format!("\n{}", "  ".repeat(depth))))
    };
    let object =
        |name: &str, value: Value| Value::Object([(name.to_owned(), value)].into_iter().collect());
    let Some(hooks) = member(text, root, outer) else {
        let value = shown(&object(inner, Value::Array(vec![element.clone()])), 1)?;
        return insert(text, root, (&format!("\"{outer}\": {value}"), 1));
    };
    if !read.get(outer)?.is_object() {
        return None;
    }
    let Some(list) = member(text, hooks.start, inner) else {
        let value = shown(&Value::Array(vec![element.clone()]), 2)?;
        return insert(text, hooks.start, (&format!("\"{inner}\": {value}"), 2));
    };
    if !read.get(outer)?.get(inner)?.is_array() {
        return None;
    }
    insert(text, list.start, (&shown(element, 3)?, 3))
}

/// The text with one more part at the end of the object or list at this place.
fn insert(text: &str, at: usize, (part, depth): (&str, usize)) -> Option<String> {
    let indent = format!("\n{}", "  ".repeat(depth));
    match parts(text, at)?.last() {
        Some((_, last)) => {
            let (head, tail) = text.split_at_checked(last.end)?;
            Some(format!("{head},{indent}{part}{tail}"))
        }
        None => {
            let end = JsonScanner { text, at }.value()?.end;
            let (head, tail) = (text.get(..=at)?, text.get(end - 1..)?);
            Some(format!("{head}{indent}{part}\n{}{tail}", "  ".repeat(depth - 1)))
        }
    }
}

/// The text without the elements of the list `outer.inner` that are meant.
pub(crate) fn without_elements(
    text: &str,
    [outer, inner]: [&str; 2],
    is_meant: impl Fn(&Value) -> bool,
) -> Option<String> {
    let mut text = text.to_owned();
    loop {
        if text.trim().is_empty() {
            return Some(text);
        }
        serde_json::from_str::<Value>(&text).ok()?.as_object()?;
        let root = text.find('{')?;
        let list = member(&text, root, outer)
            .filter(|hooks| text.get(hooks.start..).is_some_and(|rest| rest.starts_with('{')))
            .and_then(|hooks| member(&text, hooks.start, inner))
            .filter(|list| text.get(list.start..).is_some_and(|rest| rest.starts_with('[')));
        let Some(list) = list else { return Some(text) };
        let elements = parts(&text, list.start)?;
        let value = |range: &Range<usize>| serde_json::from_str(text.get(range.clone())?).ok();
        let found = elements
            .iter()
            .position(|(_, range)| value(range).is_some_and(|value| is_meant(&value)));
        let Some(found) = found else { return Some(text) };
        let range = elements.get(found)?.1.clone();
        // A comma goes with it, and the space between.
        let before = found.checked_sub(1).and_then(|at| elements.get(at));
        let cut = match (before, elements.get(found + 1)) {
            (Some((_, before)), _) => before.end..range.end,
            (None, Some((_, next))) => range.start..next.start,
            (None, None) => list.start + 1..list.end - 1,
        };
        text.replace_range(cut, "");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PATH: [&str; 2] = ["hooks", "PreToolUse"];

    /// Whatever is there stays byte by byte, and what was put in goes out again.
    #[test]
    fn an_element_goes_in_and_out() {
        let element = json!({ "ours": [1, "a\"]}"] });
        let texts = [
            "{}\n",
            "{\n  \"b\": 1,\n  \"a\": \"x\\\"{[\"\n}\n",
            "{\"hooks\": {}}",
            "{ \"z\": [], \"hooks\": { \"PostToolUse\": [ {\"x\": 1.50} ] } }",
            "{\"hooks\": {\"PreToolUse\": []}}",
            "{\"hooks\": {\"PreToolUse\": [ {\"theirs\": \"a]\"} ], \"b\": null}, \"c\": true}",
        ];
        for text in texts {
            let with = with_element(text, PATH, &element).unwrap();
            let read: Value = serde_json::from_str(&with).unwrap();
            assert!(read["hooks"]["PreToolUse"].as_array().unwrap().contains(&element), "{with}");
            let without = without_elements(&with, PATH, |value| *value == element).unwrap();
            let before = without_elements(text, PATH, |_| false).unwrap();
            let (now, then): (Value, Value) =
                (serde_json::from_str(&without).unwrap(), serde_json::from_str(text).unwrap());
            let same = |value: &Value| {
                let mut value = value.clone();
                let hooks = value.as_object_mut().unwrap().entry("hooks").or_insert(json!({}));
                hooks.as_object_mut().unwrap().entry("PreToolUse").or_insert(json!([]));
                value
            };
            assert_eq!(same(&now), same(&then), "{text}");
            assert_eq!(before, text);
            // Something was put in, and nothing else is another.
            let same = |(one, other): &(char, char)| one == other;
            let head = text.chars().zip(with.chars()).take_while(same).count();
            let tail = text.chars().rev().zip(with.chars().rev()).take_while(same).count();
            assert!(head + tail >= text.chars().count(), "{with}");
        }
        for wrong in ["[]", "{", "{\"hooks\": 1}", "{\"hooks\": {\"PreToolUse\": {}}}", "// c\n{}"]
        {
            assert_eq!(with_element(wrong, PATH, &element), None, "{wrong}");
        }
    }
}
