//! The cases of `fs.edit` whose results were written down before the tool was.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panics")]

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capsule_tools::edit::{EditError, EditRequest, edit};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    file: Option<String>,
    file_base64: Option<String>,
    search: String,
    replace: String,
    count: Option<u64>,
    #[serde(default)]
    markdown: bool,
    expect: Expected,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Expected {
    Text(String),
    Base64(String),
    Refused(String),
}

/// The word of the corpus for a refusal.
fn word(refusal: &EditError) -> &'static str {
    match refusal {
        EditError::Empty => "empty",
        EditError::NoChange => "no-change",
        EditError::Omission(_) => "omission",
        EditError::Binary => "binary",
        EditError::Encoding(_) => "encoding",
        EditError::NotFound { .. } | EditError::UnknownIndentation { .. } => "not-found",
        EditError::Ambiguous(_) => "ambiguous",
        EditError::WrongCount(_) => "count",
        EditError::TooCostly => "too-large",
    }
}

fn check(case: &Case) -> Result<(), String> {
    let file = match (&case.file, &case.file_base64) {
        (Some(text), None) => text.clone().into_bytes(),
        (None, Some(encoded)) => STANDARD.decode(encoded).unwrap(),
        _ => return Err("needs one of `file` and `file_base64`".into()),
    };
    let request = EditRequest {
        search: &case.search,
        replace: &case.replace,
        count: case.count,
        path: if case.markdown { "a.md" } else { "a" },
    };
    let got = edit(&file, &request);
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let expected = match &case.expect {
        Expected::Text(text) => Ok(text.clone().into_bytes()),
        Expected::Base64(encoded) => Ok(STANDARD.decode(encoded).unwrap()),
        Expected::Refused(word) => Err(word.as_str()),
    };
    match (&got, expected) {
        (Ok(edited), Ok(bytes)) if edited.bytes == bytes => Ok(()),
        (Err(refusal), Err(expected)) if word(refusal) == expected => Ok(()),
        (Ok(edited), expected) => Err(format!(
            "{}: {:?}\n  expected {:?}",
            edited.tolerance.as_str(),
            shown(&edited.bytes),
            expected.map(|bytes| shown(&bytes))
        )),
        (Err(refusal), expected) => Err(format!(
            "refused: {}\n  expected {:?}",
            word(refusal),
            expected.map(|bytes| shown(&bytes))
        )),
    }
}

/// SAF-1: tolerant where it is sure, refused where it is not, and literal in what is put there.
#[test]
fn edits_are_as_they_were_written_down() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/decisions/edits");
    let (mut checked, mut wrong) = (0, Vec::new());
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    for path in files.iter().filter(|path| path.extension().is_some_and(|end| end == "json")) {
        let text = fs::read_to_string(path).unwrap();
        let cases: Vec<Case> =
            serde_json::from_str(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for case in cases {
            checked += 1;
            if let Err(why) = check(&case) {
                let search = &case.search;
                wrong.push(format!("{name}: {}: {search:?}\n  {why}", case.name));
            }
        }
    }
    assert!(checked >= 10, "only {checked} cases were found");
    assert!(wrong.is_empty(), "{} of {checked}:\n{}", wrong.len(), wrong.join("\n"));
}
