//! Reads a file of program knowledge.

use alloc::string::String;
use alloc::vec::Vec;

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::policy::DIALECT;
use crate::programs::{Command, Effect, Opt, Word};
use crate::yaml::{self, Key, Node, Reader, Section, key};

const PROGRAM: &[Key] = &[
    key("program"),
    key("about"),
    key("effect"),
    key("why"),
    key("operands"),
    key("options"),
    key("groups"),
    key("uses"),
    key("subcommands"),
    key("abbreviates"),
    key("negates"),
];
const OPTION: &[Key] = &[key("value"), key("attached"), key("effect"), key("why")];
const EFFECTS: &[&str] = &["reads", "opens", "writes", "runs", "network"];
const WORDS: &[&str] = &["text", "path", "written", "maybe-path", "folder", "range"];

/// Reads the file of the program `name`.
///
/// # Errors
/// Every problem of the file.
pub fn load(name: &str, text: &str) -> Result<Command, Diagnostics> {
    let mut reader = Reader::new(&DIALECT);
    let root = yaml::parse(text, &DIALECT).map_err(|problem| alloc::vec![problem])?;
    let command = root.and_then(|root| {
        let section = reader.section(&root, "a program", PROGRAM)?;
        let own = reader.need(&section, "program", "a program")?;
        if own.text() != Some(name) {
            let message = alloc::format!("the file of `{name}` is about another program");
            reader.problem(Diagnostic::error(Code::PolicyValue, own.span.clone(), message));
        }
        let groups = section.get("groups").map(|node| groups(&mut reader, node));
        Some(command(&mut reader, &section, &groups.unwrap_or_default(), false))
    });
    match command {
        Some(command) if reader.problems.is_empty() => Ok(command),
        _ => Err(reader.problems),
    }
}

/// Options that several subcommands share, by the name of the group.
type Groups<'n> = Vec<(&'n str, Vec<Opt>)>;

fn groups<'n>(reader: &mut Reader, node: &'n Node) -> Groups<'n> {
    let Some(map) = reader.map(node, "the groups") else { return Vec::new() };
    map.entries().map(|(name, _, node)| (name, options(reader, node))).collect()
}

/// Reads a command; what negates its options holds for its subcommands as well.
fn command(
    reader: &mut Reader,
    section: &Section<'_>,
    groups: &Groups<'_>,
    negates: bool,
) -> Command {
    let negates = section.get("negates").and_then(|node| reader.truth(node)).unwrap_or(negates);
    let effect = reader
        .need(section, "effect", "a command")
        .and_then(|node| effect(reader, node))
        .unwrap_or(Effect::Network);
    let operands = section.get("operands").map(|node| operands(reader, node)).unwrap_or_default();
    let mut options = section.get("options").map(|node| options(reader, node)).unwrap_or_default();
    for used in section.get("uses").and_then(|node| reader.list(node, "groups")).unwrap_or_default()
    {
        match groups.iter().find(|(name, _)| used.text() == Some(name)) {
            Some((_, shared)) => options.extend_from_slice(shared),
            None => reader.wrong(used, "the name of a group"),
        }
    }
    let subcommands = section
        .get("subcommands")
        .map(|node| subcommands(reader, node, groups, negates))
        .unwrap_or_default();
    let abbreviates =
        section.get("abbreviates").and_then(|node| reader.truth(node)).unwrap_or(true);
    Command { effect, operands, options, subcommands, abbreviates, negates }
}

fn subcommands(
    reader: &mut Reader,
    node: &Node,
    groups: &Groups<'_>,
    negates: bool,
) -> Vec<(String, Command)> {
    let Some(map) = reader.map(node, "the subcommands") else { return Vec::new() };
    map.entries()
        .filter_map(|(name, _, node)| {
            let section = reader.section(node, "a subcommand", PROGRAM)?;
            Some((name.into(), command(reader, &section, groups, negates)))
        })
        .collect()
}

fn effect(reader: &mut Reader, node: &Node) -> Option<Effect> {
    Some(match reader.word(node, EFFECTS)? {
        "reads" => Effect::Reads,
        "opens" => Effect::Opens,
        "writes" => Effect::Writes,
        "runs" => Effect::Runs,
        _ => Effect::Network,
    })
}

fn word(reader: &mut Reader, node: &Node) -> Option<Word> {
    Some(match reader.word(node, WORDS)? {
        "path" => Word::Path,
        "written" => Word::Written,
        "maybe-path" => Word::MaybePath,
        "folder" => Word::Folder,
        "range" => Word::Range,
        _ => Word::Text,
    })
}

fn operands(reader: &mut Reader, node: &Node) -> Vec<Word> {
    if let Some(items) = node.text().is_none().then(|| reader.list(node, "operands")).flatten() {
        return items.iter().filter_map(|item| word(reader, item)).collect();
    }
    word(reader, node).into_iter().collect()
}

fn options(reader: &mut Reader, node: &Node) -> Vec<Opt> {
    let Some(map) = reader.map(node, "the options") else { return Vec::new() };
    let mut options = Vec::new();
    for (names, at, node) in map.entries() {
        let names: Vec<String> = names.split(", ").map(Into::into).collect();
        if names.iter().any(|name| !name.starts_with('-') || name.contains([' ', '='])) {
            reader.wrong(at, "names such as `-n, --lines`");
        }
        let Some(section) = reader.section(node, "an option", OPTION) else { continue };
        let value = section.get("value").and_then(|node| word(reader, node));
        let effect = section.get("effect").and_then(|node| effect(reader, node));
        let attached = section.get("attached").and_then(|node| reader.truth(node));
        let why = section.get("why").and_then(|node| reader.line(node));
        options.push(Opt { names, value, attached: attached.unwrap_or(false), effect, why });
    }
    options
}
