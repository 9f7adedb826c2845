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
    let list = member(text, root, outer).and_then(|outer| member(text, outer.start, inner));
    let Some(list) = list.filter(|_| read.get(outer).is_some_and(Value::is_object)) else {
        return with_member(text, [outer, inner], &Value::Array(vec![element.clone()]));
    };
    if !read.get(outer)?.get(inner)?.is_array() {
        return None;
    }
    insert(text, list.start, (&pretty(element, 3)?, 3))
}

/// The text with a member at the end of the object `outer`, which is made where it is not there.
///
/// None where the text is no JSON object, has something else there, or has such a member.
pub(crate) fn with_member(text: &str, [outer, name]: [&str; 2], value: &Value) -> Option<String> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let read: Value = serde_json::from_str(text).ok()?;
    let root = read.as_object().map(|_| text.find('{'))??;
    let Some(object) = member(text, root, outer) else {
        let value = Value::Object([(name.to_owned(), value.clone())].into_iter().collect());
        return insert(text, root, (&format!("\"{outer}\": {}", pretty(&value, 1)?), 1));
    };
    if read.get(outer)?.as_object()?.contains_key(name) {
        return None;
    }
    insert(text, object.start, (&format!("\"{name}\": {}", pretty(value, 2)?), 2))
}

/// A value as it is written this many levels deep.
fn pretty(value: &Value, depth: usize) -> Option<String> {
    let text = serde_json::to_string_pretty(value).ok()?;
    Some(text.replace('\n', &format!("\n{}", "  ".repeat(depth))))
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
    without_parts(text, &[outer, inner], usize::MAX, |_, value| is_meant(value))
}

/// The text without the last element of the list `outer.inner` that is this one.
pub(crate) fn without_last(
    text: &str,
    [outer, inner]: [&str; 2],
    element: &Value,
) -> Option<String> {
    without_parts(text, &[outer, inner], 1, |_, value| value == element)
}

/// The text without the member of the object `outer` that has this name.
pub(crate) fn without_member(text: &str, [outer, name]: [&str; 2]) -> Option<String> {
    without_parts(text, &[outer], 1, |key, _| key == Some(name))
}

/// The text without the last parts of the object or list at this path that are meant, by their key and value. Where
/// something that has no parts is there, or nothing, the text stays.
fn without_parts(
    text: &str,
    path: &[&str],
    times: usize,
    is_meant: impl Fn(Option<&str>, &Value) -> bool,
) -> Option<String> {
    let mut text = text.to_owned();
    for _ in 0..times {
        if text.trim().is_empty() {
            break;
        }
        serde_json::from_str::<Value>(&text).ok()?.as_object()?;
        let has_parts = |at: usize| {
            text.get(at..).is_some_and(|rest| rest.starts_with('{') || rest.starts_with('['))
        };
        let mut whole = Some(text.find('{')?..text.len());
        for name in path {
            let object = whole.filter(|range| text.get(range.start..).is_some_and(is_object));
            whole = object.and_then(|range| member(&text, range.start, name));
        }
        let Some(whole) = whole.filter(|range| has_parts(range.start)) else { break };
        let parts = parts(&text, whole.start)?;
        let value = |range: &Range<usize>| serde_json::from_str(text.get(range.clone())?).ok();
        let key = |range: Option<&Range<usize>>| {
            serde_json::from_str::<String>(text.get(range?.clone())?).ok()
        };
        let found = parts.iter().rposition(|(name, range)| {
            let name = key(name.as_ref());
            value(range).is_some_and(|value| is_meant(name.as_deref(), &value))
        });
        let Some(found) = found else { break };
        let start = |(key, value): &JsonPart| key.as_ref().unwrap_or(value).start;
        let part = parts.get(found)?;
        // A comma goes with it, and the space between.
        let before = found.checked_sub(1).and_then(|at| parts.get(at));
        let cut = match (before, parts.get(found + 1)) {
            (Some((_, before)), _) => before.end..part.1.end,
            (None, Some(next)) => start(part)..start(next),
            (None, None) => whole.start + 1..whole.end - 1,
        };
        text.replace_range(cut, "");
    }
    Some(text)
}

fn is_object(text: &str) -> bool {
    text.starts_with('{')
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
            let member = with_member(text, ["servers", "x"], &element).unwrap();
            let read: Value = serde_json::from_str(&member).unwrap();
            assert_eq!(read["servers"]["x"], element, "{member}");
            assert_eq!(with_member(&member, ["servers", "x"], &element), None);
            let other = with_member(&member, ["servers", "y"], &element).unwrap();
            assert_eq!(without_member(&other, ["servers", "y"]).unwrap(), member);
            let left = without_member(&other, ["servers", "x"]).unwrap();
            let left: Value = serde_json::from_str(&left).unwrap();
            assert_eq!(left["servers"], json!({ "y": element }), "{other}");
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
