//! Makes the table of programs from the files under `programs/`: a new program is a file there, and
//! no line anywhere else. The files are parsed here, once, so that looking a program up costs a run
//! no more than unpacking what was found in its file (`src/programs/packed.rs` says how it is
//! packed).

#![allow(clippy::disallowed_methods, reason = "what builds core opens files; core opens none")]

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use saphyr_parser::{Event, Parser, ScalarStyle};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=programs");
    let home = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut files = Vec::new();
    collect(&home.join("programs"), &mut files)?;
    files.sort();
    let mut names: Vec<(String, usize)> = Vec::new();
    let mut whole = StringTable::default();
    let mut table = format!("static FILES: [File; {}] = [\n", files.len());
    let mut texts = format!("#[cfg(test)]\nstatic TEXTS: [&str; {}] = [\n", files.len());
    for (index, path) in files.iter().enumerate() {
        println!("cargo::rerun-if-changed={}", path.display());
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let file = pack(&fs::read_to_string(path)?)
            .map_err(|problem| format!("{}: {problem}", path.display()))?;
        let (own, packed) = (whole.add(&name)?, whole.add(&file.packed)?);
        let _ = writeln!(table, "File {{ name: {own}, packed: {packed} }},");
        let _ = writeln!(texts, "include_str!({path:?}),");
        names.extend(file.aliases.into_iter().chain([name]).map(|name| (name, index)));
    }
    names.sort();
    let _ = writeln!(table, "];\nstatic NAMES: [(Span, u16); {}] = [", names.len());
    for (name, index) in &names {
        let _ = writeln!(table, "({}, {}),", whole.add(name)?, u16::try_from(*index)?);
    }
    let _ = writeln!(table, "];\nconst SPEC_TEXTS: &str = {:?};\n{texts}];", whole.0);
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    Ok(fs::write(out.join("programs.rs"), table)?)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|own| own == "yaml") {
            files.push(path);
        }
    }
    Ok(())
}

/// All texts of the table, one behind the other. A table of texts would be one of addresses, and those
/// are only known once the program has been started: each of its pages would be written then.
#[derive(Default)]
struct StringTable(String);

impl StringTable {
    /// Adds one; gives its place as it is written in the table.
    fn add(&mut self, text: &str) -> Result<String, Box<dyn Error>> {
        let start = u32::try_from(self.0.len())?;
        self.0.push_str(text);
        Ok(format!("Span({start}, {})", u32::try_from(self.0.len())?))
    }
}

/// What a file says, packed, and the other names that it gives its program.
struct PackedSpec {
    packed: String,
    aliases: Vec<String>,
}

/// A list or map that is not complete yet: what it holds so far.
struct OpenContainer {
    tag: char,
    packed: String,
    values: usize,
    /// Of the outermost map: the key that waits for its value.
    key: Option<String>,
}

/// Whether what it says is right is for the reader of the table, and a test, to find.
fn pack(text: &str) -> Result<PackedSpec, Box<dyn Error>> {
    let mut open: Vec<OpenContainer> = Vec::new();
    let mut done = PackedSpec { packed: String::new(), aliases: Vec::new() };
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let mark = match event?.0 {
            Event::MappingStart(0, None) => '{',
            Event::SequenceStart(0, None) => '[',
            Event::Scalar(text, style, 0, None) => {
                let mark = if style == ScalarStyle::Plain { '-' } else { '"' };
                let is_also = match open.as_slice() {
                    [root, ..] => root.key.as_deref() == Some("also"),
                    [] => false,
                };
                if is_also {
                    done.aliases.push(text.to_string());
                }
                let value = format!("{mark}{}:{text}", text.len());
                attach_value(&mut open, &mut done, &value, Some(&text));
                continue;
            }
            Event::MappingEnd | Event::SequenceEnd => {
                let ended = open.pop().ok_or("an end without a beginning")?;
                let count = if ended.tag == '{' { ended.values / 2 } else { ended.values };
                let value = format!("{}{count}:{}", ended.tag, ended.packed);
                attach_value(&mut open, &mut done, &value, None);
                continue;
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => continue,
            _ => return Err("anchors, aliases and tags are not part of the language".into()),
        };
        open.push(OpenContainer { tag: mark, packed: String::new(), values: 0, key: None });
    }
    Ok(done)
}

/// Puts a complete value where it belongs.
fn attach_value(
    open: &mut [OpenContainer],
    done: &mut PackedSpec,
    value: &str,
    text: Option<&str>,
) {
    let outermost = open.len() == 1;
    let Some(parent) = open.last_mut() else {
        value.clone_into(&mut done.packed);
        return;
    };
    let is_key = parent.tag == '{' && parent.values.is_multiple_of(2);
    if outermost {
        parent.key = text.filter(|_| is_key).map(Into::into);
    }
    parent.packed.push_str(value);
    parent.values += 1;
}
