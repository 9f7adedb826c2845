//! `policy fmt` changes how a policy looks and nothing that it says.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "tests fail by panics"
)]

use std::fs;
use std::path::{Path, PathBuf};

use capsule_authoring::format_policy;
use capsule_base::yaml;
use capsule_base::yaml::POLICY_DIALECT;
use capsule_policy::PolicyDraft;
use capsule_runtime::CATALOGUE;
use capsule_testkit::{Capsule, run_in_parallel};
use serde_json::Value;

/// The repository.
fn root() -> PathBuf {
    std::env::var_os("CAPSULE_TEST_ROOT")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), PathBuf::from)
}

fn shipped() -> Vec<String> {
    let names = ["assistant", "developer", "readonly", "starter", "base"];
    let read = |name: &str| fs::read_to_string(root().join(format!("policies/{name}.yaml")));
    names.iter().map(|name| read(name).unwrap()).collect()
}

/// Numbers that are the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }
}

/// Writes a tree as YAML: what it looks like follows the one row of numbers, how much white space
/// there is the other.
struct Writer {
    style: Numbers,
    space: Numbers,
    text: String,
}

impl Writer {
    fn end(&mut self) {
        if self.style.below(9) == 0 {
            self.text += "  # said behind it";
        }
        self.text += &" ".repeat(self.space.below(3));
        self.text += "\n";
        if self.style.below(6) == 0 {
            for _ in 0..=self.space.below(3) {
                self.text += &" ".repeat(self.space.below(4));
                self.text += "\n";
            }
        }
    }

    fn comment(&mut self, indent: usize) {
        if self.style.below(8) == 0 {
            self.text += &format!("{:indent$}# - a: comment, {{ of: some }} kind\n", "");
        }
    }

    fn scalar(&mut self, value: &Value) -> String {
        match value {
            Value::String(text) => {
                let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
                match self.style.below(3) {
                    0 if !text.is_empty() && text.chars().all(is_plain) => text.clone(),
                    1 if !text.contains('\n') => format!("'{}'", text.replace('\'', "''")),
                    _ => value.to_string(),
                }
            }
            other => other.to_string(),
        }
    }

    fn value(&mut self, value: &Value, indent: usize) {
        let is_flow = self.style.below(4) == 0;
        match value {
            Value::Object(map) if !map.is_empty() && !is_flow => {
                self.end();
                let inner = indent + 1 + self.space.below(4);
                self.block(value, inner);
            }
            Value::Array(items) if !items.is_empty() && !is_flow => {
                self.end();
                // Below a key, the dashes may stand as far out as the key.
                let more = self.space.below(4);
                self.block(value, indent + more);
            }
            // A text of several lines.
            Value::String(text)
                if text.len() > 20 && !text.contains('\n') && self.style.below(2) == 0 =>
            {
                let deeper = indent + 1 + self.space.below(4);
                self.text += " >-\n";
                let lines: Vec<&str> = text.split(' ').collect();
                for words in lines.chunks(4) {
                    self.text += &format!("{:deeper$}{}\n", "", words.join(" "));
                }
            }
            Value::Object(_) | Value::Array(_) => {
                self.text += &format!(" {value}");
                self.end();
            }
            scalar => {
                let text = self.scalar(scalar);
                self.text += &format!(" {text}");
                self.end();
            }
        }
    }

    fn block(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Object(map) => {
                for (key, inner) in map {
                    self.comment(indent);
                    let key = serde_json::to_string(key).unwrap();
                    self.text += &format!("{:indent$}{key}:", "");
                    self.value(inner, indent);
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.comment(indent);
                    self.text += &format!("{:indent$}-", "");
                    match item {
                        Value::Object(map) if !map.is_empty() => {
                            // The first key stands behind the dash, the others below it.
                            let gap = 1 + self.space.below(3);
                            let inner = indent + 1 + gap;
                            let before = self.text.len();
                            self.block(item, inner);
                            let written = self.text.split_off(before);
                            let is_led = written.trim_start().starts_with('#');
                            let own = if is_led {
                                format!("\n{written}")
                            } else {
                                written[indent + 1..].to_owned()
                            };
                            self.text += &own;
                        }
                        _ => self.value(item, indent + 1),
                    }
                }
            }
            _ => {}
        }
    }
}

fn written(value: &Value, style: u64, space: u64) -> String {
    let mut writer = Writer { style: Numbers(style), space: Numbers(space), text: String::new() };
    writer.block(value, 0);
    writer.text
}

fn as_json(text: &str) -> Value {
    yaml::parse(text, &POLICY_DIALECT)
        .unwrap_or_else(|error| panic!("{error:?}\n{text}"))
        .unwrap()
        .to_json()
}

/// However much white space there was: the same policy, in the same layout, and laid out for good.
#[test]
fn white_space_decides_nothing() {
    let mut laid_out = 0;
    for policy in shipped() {
        let policy = as_json(&policy);
        for style in 0..16 {
            let mut first = None;
            for space in 0..4 {
                let text = written(&policy, style, space);
                assert_eq!(as_json(&text), policy, "{text}");
                let laid = format_policy(&text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
                assert_eq!(as_json(&laid), policy, "of:\n{text}\nbecame:\n{laid}");
                assert_eq!(format_policy(&laid).unwrap(), laid, "of:\n{laid}");
                let comments = |text: &str| text.matches('#').count();
                assert_eq!(comments(&laid), comments(&text), "of:\n{text}\nbecame:\n{laid}");
                assert!(!laid.contains("\n\n\n") && !laid.contains(" \n"), "{laid}");
                let first = first.get_or_insert_with(|| laid.clone());
                let block = |text: &str| -> Vec<String> {
                    // Texts of several lines keep the indentation that they were given.
                    let lines = text.lines().map(str::trim_end);
                    lines
                        .filter(|line| line.contains("\":") || line.trim_start().starts_with('-'))
                        .map(str::to_owned)
                        .collect()
                };
                assert_eq!(block(first), block(&laid), "of:\n{text}");
                laid_out += 1;
            }
        }
    }
    assert_eq!(laid_out, 5 * 16 * 4);
}

/// Any other character in any place: either it cannot be read, or it stays the same policy.
#[test]
fn broken_texts_stay_what_they_are() {
    let mut numbers = Numbers(7);
    let mut broken = Vec::new();
    for policy in shipped() {
        for _ in 0..300 {
            let mut text = policy.clone();
            for _ in 0..=numbers.below(3) {
                let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
                let at = places[numbers.below(places.len())];
                let more = [
                    "\n", "  ", "\t", "- ", "#", ":", "'", "\"", "|", "\r\n", "é", "{", "]",
                    " # x\n",
                ];
                match numbers.below(3) {
                    0 => drop(text.remove(at)),
                    _ => text.insert_str(at, more[numbers.below(more.len())]),
                }
            }
            broken.push(text);
        }
    }
    let count = broken.len();
    let laid = run_in_parallel(broken, |text| {
        let Ok(laid) = format_policy(&text) else { return false };
        assert_eq!(as_json(&laid), as_json(&text), "of:\n{text}");
        assert_eq!(format_policy(&laid).unwrap(), laid, "of:\n{text}");
        true
    });
    let same = laid.into_iter().filter(|own| *own).count();
    let refused = count - same;
    assert!(same > 300 && refused > 100, "{same} {refused}");
}

#[test]
fn what_is_shipped_is_laid_out() {
    for policy in shipped() {
        assert_eq!(format_policy(&policy).unwrap(), policy);
    }
}

#[test]
fn a_file_is_laid_out_in_its_place() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let wild =
        "version: 1\n\n\n# Why.\ntools:\n      fs.read:   allow   # reads\n      fs.list: allow\n";
    let neat = "version: 1\n\n# Why.\ntools:\n  fs.read:   allow   # reads\n  fs.list: allow\n";
    let path = capsule.write_policy(wild);
    let said = capsule.run(&["policy", "fmt", "--check", &path]).exits(1).stdout;
    assert!(said.contains("not laid out"), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), wild);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    }
    let _ = capsule.run(&["policy", "fmt", &path]).exits(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), neat);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }
    let json = capsule.run(&["policy", "fmt", "--check", "--json", &path]).exits(0).json();
    assert_eq!(json["laid_out"], true);
    let piped = capsule.run_with(&["policy", "fmt", "-"], wild).exits(0).stdout;
    assert_eq!(piped, neat);
    // Nothing else is left beside it.
    let beside = fs::read_dir(Path::new(&path).parent().unwrap()).unwrap();
    let names: Vec<_> = beside.map(|own| own.unwrap().file_name()).collect();
    assert!(names.iter().all(|own| !own.to_string_lossy().contains(".new")), "{names:?}");
    let broken = capsule.write_policy("version: 1\ntols: {}\n");
    let why = capsule.run(&["policy", "fmt", &broken]).exits(2).stderr;
    assert!(why.contains("did you mean `tools`"), "{why}");
    assert_eq!(fs::read_to_string(&broken).unwrap(), "version: 1\ntols: {}\n");
}

/// What is laid out decides by the same rules.
#[test]
fn a_policy_that_is_laid_out_has_the_same_rules() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    for policy in shipped().into_iter().filter(|own| !own.contains("\ndeny:")) {
        let wild = written(&as_json(&policy), 3, 5);
        assert!(PolicyDraft::parse(&wild, "p", "/home/ada", CATALOGUE).is_ok(), "{wild}");
        let a = capsule.write_policy(&wild);
        let b = capsule.directory().join("b.yaml");
        fs::write(&b, format_policy(&wild).unwrap()).unwrap();
        let b = b.to_string_lossy();
        let line = ["policy", "diff", "--json", "--workspace", ".", &a, &b];
        let rules = capsule.run(&line).exits(0).json()["rules"].clone();
        assert!(
            rules.as_object().unwrap().values().all(|own| own == &Value::Array(Vec::new())),
            "{rules}"
        );
    }
}
