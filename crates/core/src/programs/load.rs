//! Reads a file of program knowledge.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::policy::DIALECT;
use crate::programs::{ANY, Adds, Command, Effect, Effects, Opt, Style, Target, Word};
use crate::yaml::{Key, Node, Reader, Section, key};

const PROGRAM: &[Key] = &[
    key("program"),
    key("also"),
    key("about"),
    key("effect"),
    key("why"),
    key("instead"),
    key("touches"),
    key("style"),
    key("operands"),
    key("last"),
    key("options"),
    key("groups"),
    key("uses"),
    key("subcommands"),
    key("abbreviates"),
    key("negates"),
    key("prefix"),
    key("bare"),
    key("beyond"),
    key("targets"),
    key("feeds"),
    key("ends"),
    key("lenient"),
    key("walks"),
    key("plain"),
];
const OPTION: &[Key] = &[
    key("value"),
    key("attached"),
    key("until"),
    key("effect"),
    key("why"),
    key("instead"),
    key("touches"),
    key("only"),
    key("targets"),
    key("first"),
    key("changes"),
    key("narrows"),
    key("ends"),
    key("except"),
];
const ADDS: &[Key] = &[key("effect"), key("why"), key("instead"), key("touches")];
const STYLES: &[(&str, Style)] =
    &[("gnu", Style::Letters), ("words", Style::Words), ("bundle", Style::Bundle)];
const WORDS: &[(&str, Word)] = &[
    ("text", Word::Text),
    ("literal", Word::Literal),
    ("setting", Word::Setting),
    ("argument", Word::Argument),
    ("path", Word::Path),
    ("written", Word::Written),
    ("deleted", Word::Deleted),
    ("maybe-path", Word::MaybePath),
    ("folder", Word::Folder),
    ("range", Word::Range),
    ("script", Word::Script),
    ("module", Word::Module),
    ("code", Word::Code),
    ("command", Word::Command),
    ("assignments", Word::Assignments),
    ("sed", Word::Sed),
    ("awk", Word::Awk),
    ("sql", Word::Sql),
    ("url", Word::Url),
    ("name", Word::Name),
];

/// Reads the file of the program `name`.
///
/// # Errors
/// Every problem of the file.
pub(super) fn load(name: &str, root: &Node) -> Result<Command, Diagnostics> {
    let mut reader = Reader::new(&DIALECT);
    let section = reader.section(root, "a program", PROGRAM);
    let program = section.and_then(|section| {
        let own = reader.need(&section, "program", "a program")?;
        if own.text() != Some(name) {
            let message = alloc::format!("the file of `{name}` is about another program");
            reader.problem(Diagnostic::error(Code::PolicyValue, own.span.clone(), message));
        }
        let groups = section.get("groups").map(|node| groups(&mut reader, node));
        let inherited = Command { abbreviates: true, ..Command::default() };
        Some(command(&mut reader, &section, &groups.unwrap_or_default(), &inherited))
    });
    match program {
        Some(program) if reader.problems.is_empty() => Ok(program),
        _ => Err(reader.problems),
    }
}

/// Options that several subcommands share, by the name of the group.
type Groups<'n> = Vec<(&'n str, Vec<Opt>)>;

fn groups<'n>(reader: &mut Reader, node: &'n Node) -> Groups<'n> {
    let Some(map) = reader.map(node, "the groups") else { return Vec::new() };
    map.entries().map(|(name, _, node)| (name, options(reader, node))).collect()
}

/// Reads a command; how its options are spelled holds for its subcommands as well.
fn command(
    reader: &mut Reader,
    section: &Section<'_>,
    groups: &Groups<'_>,
    above: &Command,
) -> Command {
    reader.need(section, "effect", "a command");
    let mut truth = |name| section.get(name).and_then(|node| reader.truth(node));
    let (negates, abbreviates) = (truth("negates"), truth("abbreviates"));
    let [feeds, ends, lenient, walks, plain] =
        ["feeds", "ends", "lenient", "walks", "plain"].map(|name| truth(name).unwrap_or(false));
    let style = section.get("style").and_then(|node| choice(reader, node, STYLES));
    let mut options = section.get("options").map(|node| options(reader, node)).unwrap_or_default();
    for used in section.get("uses").and_then(|node| reader.list(node, "groups")).unwrap_or_default()
    {
        match groups.iter().find(|(name, _)| used.text() == Some(name)) {
            Some((_, shared)) => options.extend_from_slice(shared),
            None => reader.wrong(used, "the name of a group"),
        }
    }
    let mut own = Command {
        nature: adds(reader, section),
        style: style.unwrap_or(above.style),
        operands: section.get("operands").map(|node| operands(reader, node)).unwrap_or_default(),
        last: section.get("last").and_then(|node| choice(reader, node, WORDS)),
        options,
        subcommands: Vec::new(),
        abbreviates: abbreviates.unwrap_or(above.abbreviates),
        negates: negates.unwrap_or(above.negates),
        prefix: section.get("prefix").and_then(|node| reader.line(node)),
        bare: section.get("bare").and_then(|node| added(reader, node)),
        beyond: section.get("beyond").map(|node| beyond(reader, node)).unwrap_or_default(),
        targets: section.get("targets").map(|node| targets(reader, node)).unwrap_or_default(),
        feeds,
        ends,
        lenient,
        walks,
        plain,
    };
    if let Some(node) = section.get("subcommands") {
        own.subcommands = subcommands(reader, node, groups, &own);
    }
    own
}

fn subcommands(
    reader: &mut Reader,
    node: &Node,
    groups: &Groups<'_>,
    above: &Command,
) -> Vec<(String, Command)> {
    let Some(map) = reader.map(node, "the subcommands") else { return Vec::new() };
    let mut found = Vec::new();
    for (name, _, node) in map.entries() {
        let Some(section) = reader.section(node, "a subcommand", PROGRAM) else { continue };
        let command = command(reader, &section, groups, above);
        let also = texts(reader, section.get("also"));
        if name == ANY && command.operands.is_empty() {
            reader.wrong(node, "what its words stand for: `operands`");
        }
        found.extend(also.into_iter().map(|name| (name, command.clone())));
        found.push((name.to_string(), command));
    }
    found
}

/// A word of a list of words, with what it means.
fn choice<T: Copy>(reader: &mut Reader, node: &Node, words: &[(&'static str, T)]) -> Option<T> {
    let names: Vec<&'static str> = words.iter().map(|(name, _)| *name).collect();
    let name = reader.word(node, &names)?;
    words.iter().find(|(own, _)| *own == name).map(|(_, meaning)| *meaning)
}

/// One word, or a list of them.
fn texts(reader: &mut Reader, node: Option<&Node>) -> Vec<String> {
    match node {
        Some(node) if node.text().is_some() => reader.line(node).into_iter().collect(),
        Some(node) => reader.lines(node, "a list").into_iter().map(|(text, _)| text).collect(),
        None => Vec::new(),
    }
}

/// The effects of a section, with their reasons.
fn adds(reader: &mut Reader, section: &Section<'_>) -> Adds {
    let mut line = |name| section.get(name).and_then(|node| reader.line(node));
    let (why, instead) = (line("why"), line("instead"));
    let effects = section.get("effect").map(|node| effects(reader, node)).unwrap_or_default();
    let touches = texts(reader, section.get("touches"));
    Adds { effects, why, instead, touches }
}

fn added(reader: &mut Reader, node: &Node) -> Option<Adds> {
    let section = reader.section(node, "an effect", ADDS)?;
    Some(adds(reader, &section))
}

fn effects(reader: &mut Reader, node: &Node) -> Effects {
    let one = |reader: &mut Reader, node: &Node| {
        let names: Vec<&'static str> = Effect::ALL.into_iter().map(Effect::name).collect();
        reader.word(node, &names).and_then(Effect::named)
    };
    if node.text().is_some() {
        return one(reader, node).into_iter().collect();
    }
    let items = reader.list(node, "effects").unwrap_or_default();
    items.iter().filter_map(|item| one(reader, item)).collect()
}

fn operands(reader: &mut Reader, node: &Node) -> Vec<Word> {
    if let Some(items) = node.text().is_none().then(|| reader.list(node, "operands")).flatten() {
        return items.iter().filter_map(|item| choice(reader, item, WORDS)).collect();
    }
    choice(reader, node, WORDS).into_iter().collect()
}

fn beyond(reader: &mut Reader, node: &Node) -> Vec<(usize, Adds)> {
    let Some(map) = reader.map(node, "numbers of operands") else { return Vec::new() };
    let mut found = Vec::new();
    for (count, at, node) in map.entries() {
        match count.parse() {
            Ok(count) => found.extend(added(reader, node).map(|adds| (count, adds))),
            Err(_) => reader.wrong(at, "a number of operands"),
        }
    }
    found
}

fn targets(reader: &mut Reader, node: &Node) -> Vec<Target> {
    let Some(map) = reader.map(node, "the names of operands") else { return Vec::new() };
    let target = |(names, _, node): (&str, &Node, &Node)| {
        let adds = added(reader, node)?;
        Some(Target { names: names.split(',').map(|name| name.trim().into()).collect(), adds })
    };
    map.entries().filter_map(target).collect()
}

fn options(reader: &mut Reader, node: &Node) -> Vec<Opt> {
    let Some(map) = reader.map(node, "the options") else { return Vec::new() };
    let mut options = Vec::new();
    for (names, at, node) in map.entries() {
        let names: Vec<String> = names.split(", ").map(Into::into).collect();
        let is_name = |name: &String| {
            let keyed = name.ends_with('=') && !name.starts_with('-');
            let marks = name.trim_start_matches('-').trim_matches('?').is_empty();
            let is_plain = marks || !name.contains([' ', '?', ',']);
            is_plain && (keyed || name.starts_with('-') && !name.contains('='))
        };
        if !names.iter().all(is_name) {
            reader.wrong(at, "names such as `-n, --lines`");
        }
        let Some(section) = reader.section(node, "an option", OPTION) else { continue };
        let mut truth =
            |name| section.get(name).and_then(|node| reader.truth(node)).unwrap_or_default();
        let (attached, first, changes) = (truth("attached"), truth("first"), truth("changes"));
        let (narrows, ends) = (truth("narrows"), truth("ends"));
        let values = section.get("value").map(|node| operands(reader, node)).unwrap_or_default();
        options.push(Opt {
            names,
            value: values.first().copied(),
            more: values.get(1..).unwrap_or_default().to_vec(),
            attached,
            until: texts(reader, section.get("until")),
            adds: adds(reader, &section),
            except: texts(reader, section.get("except")),
            only: section.get("only").map(|node| effects(reader, node)),
            targets: section.get("targets").map(|node| targets(reader, node)).unwrap_or_default(),
            first,
            changes,
            narrows,
            ends,
        });
    }
    options
}
