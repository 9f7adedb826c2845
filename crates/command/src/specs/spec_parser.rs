//! Reads a file of program knowledge.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::specs::command_spec::{ANY_SUBCOMMAND, ArgKind, CommandSpec, NamedEffect, OptionSpec};
use crate::specs::effect::{Effect, EffectSpec, Effects};
use crate::specs::spec_keys::{ADDS, OPTION, PROGRAM, STYLES, WORDS};
use capsule_base::code::Code;
use capsule_base::diagnostic::{Diagnostic, Diagnostics};
use capsule_base::yaml::POLICY_DIALECT;
use capsule_base::yaml::{Section, YamlNode, YamlReader};

/// Reads the file of the program `name`.
///
/// # Errors
/// Every problem of the file.
pub(super) fn parse_spec(name: &str, root: &YamlNode) -> Result<CommandSpec, Diagnostics> {
    let mut reader = YamlReader::new(&POLICY_DIALECT);
    let section = reader.section(root, "a program", PROGRAM);
    let program = section.and_then(|section| {
        let item = reader.required(&section, "program", "a program")?;
        if item.text() != Some(name) {
            let message = alloc::format!("the file of `{name}` is about another program");
            reader.problem(Diagnostic::error(Code::PolicyValue, item.span.clone(), message));
        }
        let groups = section.get("groups").map(|node| groups(&mut reader, node));
        let inherited = CommandSpec { abbreviates: true, ..CommandSpec::default() };
        Some(command(&mut reader, &section, &groups.unwrap_or_default(), &inherited))
    });
    match program {
        Some(program) if reader.problems.is_empty() => Ok(program),
        _ => Err(reader.problems),
    }
}

/// Options that several subcommands share, by the name of the group.
type OptionGroups<'n> = Vec<(&'n str, Vec<OptionSpec>)>;

fn groups<'n>(reader: &mut YamlReader, node: &'n YamlNode) -> OptionGroups<'n> {
    let Some(map) = reader.map(node, "the groups") else { return Vec::new() };
    map.entries().map(|(name, _, node)| (name, options(reader, node))).collect()
}

/// Reads a command; how its options are spelled holds for its subcommands as well.
fn command(
    reader: &mut YamlReader,
    section: &Section<'_>,
    groups: &OptionGroups<'_>,
    above: &CommandSpec,
) -> CommandSpec {
    reader.required(section, "effect", "a command");
    let mut truth = |name| section.get(name).and_then(|node| reader.boolean(node));
    let (negates, abbreviates) = (truth("negates"), truth("abbreviates"));
    let [feeds, ends, lenient, walks, plain] =
        ["feeds", "ends", "lenient", "walks", "plain"].map(|name| truth(name).unwrap_or(false));
    let style = section.get("style").and_then(|node| choice(reader, node, STYLES));
    let mut options = section.get("options").map(|node| options(reader, node)).unwrap_or_default();
    for used in section.get("uses").and_then(|node| reader.list(node, "groups")).unwrap_or_default()
    {
        match groups.iter().find(|(name, _)| used.text() == Some(name)) {
            Some((_, shared)) => options.extend_from_slice(shared),
            None => reader.wrong_type(used, "the name of a group"),
        }
    }
    let mut spec = CommandSpec {
        base_effect: effect_spec(reader, section),
        style: style.unwrap_or(above.style),
        operands: section.get("operands").map(|node| operands(reader, node)).unwrap_or_default(),
        last: section.get("last").and_then(|node| choice(reader, node, WORDS)),
        options,
        subcommands: Vec::new(),
        abbreviates: abbreviates.unwrap_or(above.abbreviates),
        negates: negates.unwrap_or(above.negates),
        prefix: section.get("prefix").and_then(|node| reader.line(node)),
        without_operands: section.get("bare").and_then(|node| optional_effect_spec(reader, node)),
        many_operands: section.get("beyond").map(|node| beyond(reader, node)).unwrap_or_default(),
        operand_effects: section
            .get("targets")
            .map(|node| targets(reader, node))
            .unwrap_or_default(),
        appends_arguments: feeds,
        options_end_at_operand: ends,
        lenient,
        is_recursive: walks,
        opens_named_only: plain,
    };
    if let Some(node) = section.get("subcommands") {
        spec.subcommands = subcommands(reader, node, groups, &spec);
    }
    spec
}

fn subcommands(
    reader: &mut YamlReader,
    node: &YamlNode,
    groups: &OptionGroups<'_>,
    above: &CommandSpec,
) -> Vec<(String, CommandSpec)> {
    let Some(map) = reader.map(node, "the subcommands") else { return Vec::new() };
    let mut found = Vec::new();
    for (name, _, node) in map.entries() {
        let Some(section) = reader.section(node, "a subcommand", PROGRAM) else { continue };
        let command = command(reader, &section, groups, above);
        let also = texts(reader, section.get("also"));
        if name == ANY_SUBCOMMAND && command.operands.is_empty() {
            reader.wrong_type(node, "what its words stand for: `operands`");
        }
        found.extend(also.into_iter().map(|name| (name, command.clone())));
        found.push((name.to_string(), command));
    }
    found
}

/// A word of a list of words, with what it means.
fn choice<T: Copy>(
    reader: &mut YamlReader,
    node: &YamlNode,
    words: &[(&'static str, T)],
) -> Option<T> {
    let names: Vec<&'static str> = words.iter().map(|(name, _)| *name).collect();
    let name = reader.keyword(node, &names)?;
    words.iter().find(|(text, _)| *text == name).map(|(_, meaning)| *meaning)
}

/// One word, or a list of them.
fn texts(reader: &mut YamlReader, node: Option<&YamlNode>) -> Vec<String> {
    match node {
        Some(node) if node.text().is_some() => reader.line(node).into_iter().collect(),
        Some(node) => reader.lines(node, "a list").into_iter().map(|(text, _)| text).collect(),
        None => Vec::new(),
    }
}

/// The effects of a section, with their reasons.
fn effect_spec(reader: &mut YamlReader, section: &Section<'_>) -> EffectSpec {
    let mut line = |name| section.get(name).and_then(|node| reader.line(node));
    let (why, instead) = (line("why"), line("instead"));
    let effects = section.get("effect").map(|node| effects(reader, node)).unwrap_or_default();
    let touches = texts(reader, section.get("touches"));
    EffectSpec { effects, why, alternative: instead, touches }
}

fn optional_effect_spec(reader: &mut YamlReader, node: &YamlNode) -> Option<EffectSpec> {
    let section = reader.section(node, "an effect", ADDS)?;
    Some(effect_spec(reader, &section))
}

fn effects(reader: &mut YamlReader, node: &YamlNode) -> Effects {
    let one = |reader: &mut YamlReader, node: &YamlNode| {
        let names: Vec<&'static str> = Effect::ALL.into_iter().map(Effect::name).collect();
        reader.keyword(node, &names).and_then(Effect::from_word)
    };
    if node.text().is_some() {
        return one(reader, node).into_iter().collect();
    }
    let items = reader.list(node, "effects").unwrap_or_default();
    items.iter().filter_map(|item| one(reader, item)).collect()
}

fn operands(reader: &mut YamlReader, node: &YamlNode) -> Vec<ArgKind> {
    if let Some(items) = node.text().is_none().then(|| reader.list(node, "operands")).flatten() {
        return items.iter().filter_map(|item| choice(reader, item, WORDS)).collect();
    }
    choice(reader, node, WORDS).into_iter().collect()
}

fn beyond(reader: &mut YamlReader, node: &YamlNode) -> Vec<(usize, EffectSpec)> {
    let Some(map) = reader.map(node, "numbers of operands") else { return Vec::new() };
    let mut found = Vec::new();
    for (count, at, node) in map.entries() {
        match count.parse() {
            Ok(count) => found.extend(optional_effect_spec(reader, node).map(|adds| (count, adds))),
            Err(_) => reader.wrong_type(at, "a number of operands"),
        }
    }
    found
}

fn targets(reader: &mut YamlReader, node: &YamlNode) -> Vec<NamedEffect> {
    let Some(map) = reader.map(node, "the names of operands") else { return Vec::new() };
    let target = |(names, _, node): (&str, &YamlNode, &YamlNode)| {
        let adds = optional_effect_spec(reader, node)?;
        Some(NamedEffect {
            names: names.split(',').map(|name| name.trim().into()).collect(),
            effect: adds,
        })
    };
    map.entries().filter_map(target).collect()
}

fn options(reader: &mut YamlReader, node: &YamlNode) -> Vec<OptionSpec> {
    let Some(map) = reader.map(node, "the options") else { return Vec::new() };
    let mut options = Vec::new();
    for (names, at, node) in map.entries() {
        if let Some(value) = plain_value(names) {
            // Nothing else is to be said of these: `flag: [-a --all, --long]`.
            for (names, _) in reader.lines(node, "options") {
                let names = names.split(' ').map(Into::into).collect();
                options.push(OptionSpec { names, value, ..OptionSpec::default() });
            }
            continue;
        }
        let names: Vec<String> = names.split(", ").map(Into::into).collect();
        let is_name = |name: &String| {
            let keyed = name.ends_with('=') && !name.starts_with('-');
            let marks = name.trim_start_matches('-').trim_matches('?').is_empty();
            let is_plain = marks || !name.contains([' ', '?', ',']);
            is_plain && (keyed || name.starts_with('-') && !name.contains('='))
        };
        if !names.iter().all(is_name) {
            reader.wrong_type(at, "names such as `-n, --lines`");
        }
        let Some(section) = reader.section(node, "an option", OPTION) else { continue };
        let mut truth =
            |name| section.get(name).and_then(|node| reader.boolean(node)).unwrap_or_default();
        let (attached, first, changes) = (truth("attached"), truth("first"), truth("changes"));
        let (narrows, ends, offline) = (truth("narrows"), truth("ends"), truth("offline"));
        let values = section.get("value").map(|node| operands(reader, node)).unwrap_or_default();
        options.push(OptionSpec {
            names,
            value: values.first().copied(),
            more_values: values.get(1..).unwrap_or_default().to_vec(),
            attached,
            until: texts(reader, section.get("until")),
            effect: effect_spec(reader, &section),
            except: texts(reader, section.get("except")),
            replaces_effects: section.get("only").map(|node| effects(reader, node)),
            offline,
            value_effects: section
                .get("targets")
                .map(|node| targets(reader, node))
                .unwrap_or_default(),
            replaces_first_operand: first,
            modifies_operands: changes,
            limits_walk: narrows,
            ends,
        });
    }
    options
}

/// The kind of value that all options of a list take, by the key of the list: `flag` for none.
fn plain_value(key: &str) -> Option<Option<ArgKind>> {
    let known = WORDS.iter().find(|(word, _)| *word == key).map(|(_, kind)| Some(*kind));
    known.or((key == "flag").then_some(None))
}
