//! Reads the labelled cases.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::make::Maker;

/// A text, and what in it has to be masked.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) text: String,
    /// Ranges of the text.
    pub(crate) secrets: Vec<std::ops::Range<usize>>,
}

impl Case {
    fn new(name: String, template: &str) -> Self {
        let filled = Maker::new(&name).fill(template);
        let (mut text, mut secrets) = (String::new(), Vec::new());
        let mut rest = filled.as_str();
        while let Some((before, after)) = rest.split_once('⟦') {
            let (secret, behind) = after.split_once('⟧').expect("a mark is closed");
            text.push_str(before);
            secrets.push(text.len()..text.len() + secret.len());
            text.push_str(secret);
            rest = behind;
        }
        text.push_str(rest);
        Self { name, text, secrets }
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/redaction")
}

fn read(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn files(name: &str) -> Vec<String> {
    let entries = fs::read_dir(folder().join(name)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|own| own.ends_with(".txt")).collect();
    names.sort();
    names.into_iter().map(|own| format!("{name}/{own}")).collect()
}

/// The blocks of a file: `--- name`, then lines until the next.
fn blocks(file: &str) -> Vec<(String, String)> {
    let text = read(file);
    let mut found: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("--- ") {
            Some(name) => found.push((name.to_owned(), String::new())),
            None => {
                if let Some((_, block)) = found.last_mut() {
                    block.push_str(line);
                    block.push('\n');
                }
            }
        }
    }
    found
}

fn whole(names: Vec<String>) -> Vec<Case> {
    let cases = names.iter().flat_map(|file| {
        let short = file.trim_end_matches(".txt").to_owned();
        blocks(file)
            .into_iter()
            .map(move |(name, block)| Case::new(format!("{short}/{name}"), &block))
    });
    cases.collect()
}

/// Secrets in places of their own.
pub(crate) fn placed() -> Vec<Case> {
    whole(files("secrets"))
}

/// What only looks like one.
pub(crate) fn alike() -> Vec<Case> {
    whole(files("alike"))
}

/// The formats: a name and a template.
pub(crate) fn formats() -> Vec<(String, String)> {
    let text = read("tokens.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let split = |line: &str| {
        let (name, format) = line.split_once(" | ").unwrap_or_else(|| panic!("`{line}`"));
        let marked = match format.contains('⟦') {
            true => format.to_owned(),
            false => format!("⟦{format}⟧"),
        };
        (name.to_owned(), marked)
    };
    lines.map(split).collect()
}

/// Every format in `each` of the surroundings, another few for each format.
pub(crate) fn tokens(each: usize) -> Vec<Case> {
    let around = blocks("surroundings.txt");
    let mut cases = Vec::new();
    for (index, (name, format)) in formats().iter().enumerate() {
        for turn in 0..each {
            let (place, block) = &around[(index * 7 + turn * 13) % around.len()];
            cases.push(Case::new(format!("{name}@{place}"), &block.replace("@@", format)));
        }
    }
    cases
}

/// The names of the cases that are known to fail.
pub(crate) fn gaps() -> BTreeSet<String> {
    let text = read("gaps.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split(" | ").next().unwrap().to_owned()).collect()
}
