//! The parts of `FORMAT.md` that stand in the code as well: the tables, the fields of every event, the types
//! that they are made of, and the numbers. They are written between marks, and the rest of the page is prose.

use std::collections::{BTreeMap, BTreeSet};

use capsule_core::journal::{APPLICATION_ID, PayloadClass, VERSION};
use syn::{Attribute, Expr, Field, Fields, Item, ItemEnum, Lit, Meta, Type, Variant};

use crate::TaskResult;
use crate::docs::markdown;
use crate::repository::Repository;
use crate::tree::FileTree;

/// The page.
pub(super) const PAGE: &str = "FORMAT.md";

/// Where the types of events stand.
const EVENT_TYPES: [&str; 3] = ["crates/base/src/", "crates/command/src/", "crates/core/src/"];
/// Where the tables of a store stand.
const SCHEMA: &str = "crates/store/src/schema.rs";
/// Where a write fills a salt.
const WRITE: &str = "crates/store/src/write.rs";

/// What is no plain data of ours: how it is written.
const OPAQUE: &[(&str, &str)] = &[
    ("Capabilities", "list of the capabilities below, in that order, each once"),
    ("Code", "[code](#codes)"),
    ("Digest", "digest"),
    ("Fingerprint", "digest"),
    ("RunId", "run id"),
    ("String", "text"),
    ("ToolName", "text"),
    ("bool", "`true` or `false`"),
    ("u16", "number below 2^16"),
    ("u32", "number below 2^32"),
    ("u64", "number"),
];

/// The payloads of events: the event, the field that holds on to one, and its class. `Event::payloads` in
/// core is what counts; a test compares the two.
const PAYLOADS: &[(&str, &str, PayloadClass)] = &[
    ("run.opened", "plan.text", PayloadClass::Document),
    ("run.opened", "policy.text", PayloadClass::Document),
    ("run.opened", "inputs", PayloadClass::Document),
    ("run.opened", "key", PayloadClass::Key),
    ("run.opened", "extends.text", PayloadClass::Document),
    ("run.opened", "layers[].document.text", PayloadClass::Document),
    ("call.proposed", "args", PayloadClass::Arguments),
    ("call.decided", "text", PayloadClass::Text),
    ("call.decided", "action", PayloadClass::Action),
    ("approval.shown", "card", PayloadClass::Text),
    ("plan.shown", "card", PayloadClass::Text),
    ("connection.shown", "card", PayloadClass::Text),
    ("plan.answered", "why", PayloadClass::Text),
    ("connection.answered", "why", PayloadClass::Text),
    ("connection.answered", "grant.reach", PayloadClass::Text),
    ("plan.answered", "grant.reach", PayloadClass::Text),
    ("approval.waiting", "card", PayloadClass::Text),
    ("answer.given", "why", PayloadClass::Text),
    ("run.resumed", "progress", PayloadClass::Output),
    ("session.joined", "changes", PayloadClass::Changes),
    ("user.said", "text", PayloadClass::Text),
    ("user.answered", "text", PayloadClass::Text),
    ("model.requested", "added", PayloadClass::Text),
    ("model.answered", "answer", PayloadClass::Output),
    ("approval.answered", "why", PayloadClass::Text),
    ("approval.answered", "grant.reach", PayloadClass::Text),
    ("call.started", "undo", PayloadClass::Undo),
    ("connection.requested", "target", PayloadClass::Text),
    ("call.finished", "output", PayloadClass::Output),
    ("call.finished", "problem", PayloadClass::Text),
    ("call.finished", "changes", PayloadClass::Changes),
    ("step.ended", "note", PayloadClass::Text),
    ("feedback.given", "why", PayloadClass::Text),
    ("run.sealed", "outputs", PayloadClass::Output),
];

/// The page with what stands between its marks made anew; none in a house without that page.
///
/// # Errors
/// When the page lacks a mark, or the code has a form that a table cannot be made of.
pub(super) fn page(house: &Repository) -> TaskResult<Option<String>> {
    let file = house.tree.files.iter().find(|file| file.path == PAGE);
    let Some(mut page) = file.and_then(|file| file.text.clone()) else { return Ok(None) };
    let types = Types::read(&house.tree)?;
    let (events, reached) = types.events()?;
    for (name, text) in [
        ("numbers", numbers(&house.tree)?),
        ("schema", schema(&house.tree)?),
        ("payloads", payloads()),
        ("events", events),
        ("types", types.tables(&reached)?),
    ] {
        page = marked(&page, name, &text)?;
    }
    Ok(Some(page))
}

/// The page with a part behind its mark.
fn marked(page: &str, name: &str, text: &str) -> TaskResult<String> {
    let (begin, end) = (format!("<!-- generated: {name} -->\n"), format!("<!-- end of {name} -->"));
    let (before, rest) = page.split_once(&begin).ok_or_else(|| format!("{PAGE}: no {begin}"))?;
    let (_, after) = rest.split_once(&end).ok_or_else(|| format!("{PAGE}: no {end}"))?;
    Ok(format!("{before}{begin}\n{}\n\n{end}{after}", text.trim()))
}

/// The items of a file.
fn items(tree: &FileTree, path: &str) -> TaskResult<Vec<Item>> {
    let file = tree.files.iter().find(|file| file.path == path);
    let text = file.and_then(|file| file.text.as_deref()).ok_or_else(|| format!("no {path}"))?;
    Ok(syn::parse_file(text).map_err(|error| format!("{path}: {error}"))?.items)
}

/// A constant of a file, as it is written.
fn constant<'i>(items: &'i [Item], name: &str) -> TaskResult<&'i Lit> {
    let found = items.iter().find_map(|item| match item {
        Item::Const(item) if item.ident == name => match &*item.expr {
            Expr::Lit(lit) => Some(&lit.lit),
            _ => None,
        },
        _ => None,
    });
    found.ok_or_else(|| format!("{name} is not a literal"))
}

fn number(items: &[Item], name: &str) -> TaskResult<String> {
    match constant(items, name)? {
        Lit::Int(number) => Ok(number.base10_digits().to_owned()),
        _ => Err(format!("{name} is no number")),
    }
}

fn schema(tree: &FileTree) -> TaskResult<String> {
    let items = items(tree, SCHEMA)?;
    let text = |name: &str| match constant(&items, name)? {
        Lit::Str(text) => Ok(text.value()),
        _ => Err(format!("{name} is no text")),
    };
    Ok(format!("```sql\n{}\n{}\n```", text("TABLES")?.trim(), text("VIEWS")?.trim_end()))
}

fn numbers(tree: &FileTree) -> TaskResult<String> {
    let schema = items(tree, SCHEMA)?;
    let salt = number(&items(tree, WRITE)?, "SALT_BYTES")?;
    let rows = [
        (
            "`application_id` of the file",
            format!("{APPLICATION_ID} (0x{APPLICATION_ID:08X}, \"CPSL\")"),
        ),
        ("`user_version` of the file: the version of the tables", number(&schema, "VERSION")?),
        ("`v` of an event: the version of events", VERSION.to_string()),
        ("payload rows that a leaf has room for", number(&schema, "PAYLOADS_PER_EVENT")?),
        ("bytes of a salt", salt),
        ("the largest number", capsule_base::limits::EXACT_INTEGER.to_string()),
        ("the longest name of a log, in bytes", capsule_base::limits::ORIGIN_BYTES.to_string()),
    ];
    let rows = rows.into_iter().map(|(of, number)| vec![of.to_owned(), number]);
    Ok(markdown::table(&["number", "is"], rows))
}

fn payloads() -> String {
    let mut kinds: Vec<&str> = PAYLOADS.iter().map(|(kind, ..)| *kind).collect();
    kinds.dedup();
    let rows = kinds.into_iter().map(|kind| {
        let item = PAYLOADS.iter().filter(|(text, ..)| *text == kind);
        let fields = item.map(|(_, field, class)| format!("`{field}` ({})", class.name()));
        vec![markdown::code(kind), fields.collect::<Vec<_>>().join(", ")]
    });
    markdown::table(&["event", "its payloads, in this order"], rows)
}

/// The types that JSON is made of.
struct Types {
    structs: BTreeMap<String, syn::ItemStruct>,
    enums: BTreeMap<String, ItemEnum>,
}

/// The types that others hold.
type Reached = BTreeSet<String>;

impl Types {
    /// All types of core that are written as JSON.
    fn read(tree: &FileTree) -> TaskResult<Self> {
        let mut types = Self { structs: BTreeMap::new(), enums: BTreeMap::new() };
        let is_of_events =
            |path: &str| EVENT_TYPES.iter().any(|directory| path.starts_with(directory));
        for file in tree.files.iter().filter(|file| is_of_events(&file.path)) {
            if !file.path.ends_with(".rs") {
                continue;
            }
            for item in items(tree, &file.path)? {
                match item {
                    Item::Struct(item) if is_written(&item.attrs) => {
                        types.structs.insert(item.ident.to_string(), item);
                    }
                    Item::Enum(item) if is_written(&item.attrs) => {
                        types.enums.insert(item.ident.to_string(), item);
                    }
                    _ => {}
                }
            }
        }
        Ok(types)
    }

    /// A table for the body of each event, and the types that those hold.
    fn events(&self) -> TaskResult<(String, Reached)> {
        let events = self.enums.get("Event").ok_or("there is no `Event`")?;
        let (mut text, mut reached) = (String::new(), Reached::new());
        for variant in &events.variants {
            let kind = serde(&variant.attrs, "rename").ok_or("an event without its kind")?;
            text.push_str(&format!("\n#### `{kind}`\n\n{}\n\n", doc(&variant.attrs)));
            let fields = match &variant.fields {
                Fields::Named(_) => &variant.fields,
                Fields::Unnamed(unnamed) => {
                    let inner = unnamed.unnamed.first().ok_or("an event that holds nothing")?;
                    let name = inner_name(&inner.ty).ok_or("an event of no plain type")?;
                    &self.structs.get(&name).ok_or_else(|| format!("no `{name}`"))?.fields
                }
                Fields::Unit => return Err(format!("{kind} has no body")),
            };
            text.push_str(&self.table(fields, Some(&kind), &mut reached)?);
        }
        Ok((text, reached))
    }

    /// The types that were reached, and those that they reach.
    fn tables(&self, reached: &Reached) -> TaskResult<String> {
        let (mut text, mut told) = (String::new(), Reached::new());
        let mut left: Vec<String> = reached.iter().rev().cloned().collect();
        while let Some(name) = left.pop() {
            if !told.insert(name.clone()) {
                continue;
            }
            let mut more = Reached::new();
            if let Some(item) = self.structs.get(&name) {
                text.push_str(&format!("\n#### Type {name}\n\n{}\n\n", doc(&item.attrs)));
                text.push_str(&self.table(&item.fields, None, &mut more)?);
            } else {
                let item = self.enums.get(&name).ok_or_else(|| format!("no type `{name}`"))?;
                text.push_str(&format!("\n#### Type {name}\n\n{}\n\n", doc(&item.attrs)));
                text.push_str(&self.words(item, &mut more)?);
            }
            left.extend(more.into_iter().rev().filter(|more| !told.contains(more)));
        }
        let names = capsule_core::capability::Capability::ALL
            .map(|capability| markdown::code(capability.name()));
        text.push_str(&format!("\n#### Capabilities\n\nIn this order: {}.\n", names.join(", ")));
        let codes: Vec<String> =
            capsule_base::code::Code::ALL.iter().map(|code| markdown::code(code.slug())).collect();
        text.push_str(&format!("\n#### Codes\n\n{}.\n", codes.join(", ")));
        Ok(text)
    }

    /// The fields of a type; `kind` is the event whose body it is.
    fn table(
        &self,
        fields: &Fields,
        kind: Option<&str>,
        reached: &mut Reached,
    ) -> TaskResult<String> {
        let mut rows = Vec::new();
        for field in fields {
            let name = written_name(field)?;
            let path = format!("{}.{name}", kind.unwrap_or_default());
            let mut holds = self.holds(&field.ty, reached)?;
            match serde(&field.attrs, "skip_serializing_if").as_deref() {
                None => {}
                Some("Option::is_none") => {
                    holds = holds.replace(" or null", "");
                    holds.push_str("; absent where there is none");
                }
                Some("Vec::is_empty") => holds.push_str("; absent where it is empty"),
                Some("core::ops::Not::not") => holds = "`true`; absent where it is not".to_owned(),
                // A method that says which of its values a type has: `Spelling::is_exact`.
                Some(other) => match other.split_once("::is_") {
                    Some((_, value)) => {
                        holds.push_str(&format!("; absent where it is {}", markdown::code(value)));
                    }
                    None => return Err(format!("{path} is left out by {other}")),
                },
            }
            rows.push(vec![markdown::code(&name), holds, doc(&field.attrs)]);
        }
        Ok(markdown::table(&["field", "holds", "meaning"], rows.into_iter()))
    }

    /// The words of an enumeration, or its forms where they hold more.
    fn words(&self, item: &ItemEnum, reached: &mut Reached) -> TaskResult<String> {
        let rename = serde(&item.attrs, "rename_all").unwrap_or_default();
        let tag = serde(&item.attrs, "tag");
        let mut rows = Vec::new();
        for variant in &item.variants {
            let word = written_word(variant, &rename)?;
            let mut holds = match &tag {
                None => markdown::code(&word),
                Some(tag) => format!("`{tag}`: `{word}`"),
            };
            match &variant.fields {
                Fields::Unit => {}
                Fields::Named(fields) => {
                    for field in &fields.named {
                        let name = written_name(field)?;
                        let inner = self.holds(&field.ty, reached)?;
                        holds.push_str(&format!(", `{name}`: {inner}"));
                    }
                }
                Fields::Unnamed(fields) if tag.is_some() => {
                    let inner = fields.unnamed.first().ok_or("a variant that holds nothing")?;
                    let inner = self.holds(&inner.ty, reached)?;
                    holds.push_str(&format!(", and the fields of {inner}"));
                }
                Fields::Unnamed(_) => return Err(format!("{} holds without a tag", item.ident)),
            }
            rows.push(vec![holds, doc(&variant.attrs)]);
        }
        Ok(markdown::table(&["written as", "meaning"], rows.into_iter()))
    }

    /// How a type is written, in words.
    fn holds(&self, ty: &Type, reached: &mut Reached) -> TaskResult<String> {
        let Type::Path(path) = ty else { return Err("a type that is no path".to_owned()) };
        let last = path.path.segments.last().ok_or("an empty path")?;
        let name = last.ident.to_string();
        if let syn::PathArguments::AngleBracketed(inner) = &last.arguments {
            let Some(syn::GenericArgument::Type(inner)) = inner.args.first() else {
                return Err(format!("{name} of nothing"));
            };
            let inner = self.holds(inner, reached)?;
            return match name.as_str() {
                "Option" => Ok(format!("{inner} or null")),
                "Vec" => Ok(format!("list of {inner}")),
                "Box" => Ok(inner),
                _ => Err(format!("{name} of {inner}")),
            };
        }
        if let Some((_, words)) = OPAQUE.iter().find(|(text, _)| *text == name) {
            return Ok((*words).to_owned());
        }
        if name == "PayloadRef" {
            return Ok("payload".to_owned());
        }
        if !self.structs.contains_key(&name) && !self.enums.contains_key(&name) {
            return Err(format!("nobody says how `{name}` is written"));
        }
        reached.insert(name.clone());
        Ok(format!("[{name}](#type-{})", name.to_lowercase()))
    }
}

/// Whether a type is written as JSON by its fields.
fn is_written(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("derive")).any(|attribute| {
        let mut found = false;
        let _ = attribute.parse_nested_meta(|meta| {
            found |= meta.path.segments.last().is_some_and(|segment| segment.ident == "Serialize");
            Ok(())
        });
        found
    })
}

/// What serde is told under a name.
fn serde(attributes: &[Attribute], name: &str) -> Option<String> {
    let mut found = None;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        let _ = attribute.parse_nested_meta(|meta| {
            let value = meta.value().and_then(|value| value.parse::<Lit>()).ok();
            if let (true, Some(Lit::Str(text))) = (meta.path.is_ident(name), value) {
                found = Some(text.value());
            }
            Ok(())
        });
    }
    found
}

/// A comment as one line.
fn doc(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(value) if value.path.is_ident("doc") => match &value.value {
            Expr::Lit(lit) => match &lit.lit {
                Lit::Str(text) => Some(text.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    lines.collect::<Vec<_>>().join(" ")
}

/// The name of a field as serde writes it.
fn written_name(field: &Field) -> TaskResult<String> {
    let name = || field.ident.as_ref().map(ToString::to_string);
    serde(&field.attrs, "rename").or_else(name).ok_or("a field without a name".to_owned())
}

/// A variant as serde writes it.
fn written_word(variant: &Variant, rename_all: &str) -> TaskResult<String> {
    match serde(&variant.attrs, "rename") {
        Some(word) => Ok(word),
        None => cased(&variant.ident.to_string(), rename_all),
    }
}

/// A name in another case.
fn cased(name: &str, rename: &str) -> TaskResult<String> {
    let between = match rename {
        "kebab-case" => "-",
        "snake_case" => "_",
        "lowercase" => return Ok(name.to_lowercase()),
        other => return Err(format!("{name} is renamed by `{other}`")),
    };
    let mut word = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !word.is_empty() {
            word.push_str(between);
        }
        word.push(letter.to_ascii_lowercase());
    }
    Ok(word)
}

/// The name of a type, or of what a box holds.
fn inner_name(ty: &Type) -> Option<String> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    match &last.arguments {
        syn::PathArguments::AngleBracketed(inner) => match inner.args.first()? {
            syn::GenericArgument::Type(inner) => inner_name(inner),
            _ => None,
        },
        _ => Some(last.ident.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use capsule_base::digest::Digest;
    use capsule_core::journal::Event;
    use serde_json::{Value, json};

    use super::*;

    fn types() -> Types {
        let built = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let root = std::env::var_os("CAPSULE_TEST_ROOT").map_or_else(built, PathBuf::from);
        Types::read(&FileTree::read(&root).unwrap()).unwrap()
    }

    /// A value of a type with everything in it, and the payloads in it by their commitments.
    fn sample(types: &Types, ty: &Type, path: &str, payloads: &mut Vec<(Digest, String)>) -> Value {
        let Type::Path(named) = ty else { panic!("{path}") };
        let last = named.path.segments.last().unwrap();
        let name = last.ident.to_string();
        if let syn::PathArguments::AngleBracketed(inner) = &last.arguments {
            let Some(syn::GenericArgument::Type(inner)) = inner.args.first() else {
                panic!("{path}")
            };
            return match name.as_str() {
                "Vec" => json!([sample(types, inner, &format!("{path}[]"), payloads)]),
                _ => sample(types, inner, path, payloads),
            };
        }
        match name.as_str() {
            "Capabilities" => json!(["fs.read"]),
            "Code" => json!("policy.allowed"),
            "Digest" | "Fingerprint" => json!("0".repeat(64)),
            "RunId" => json!(format!("r-{}", "0".repeat(16))),
            "String" | "ToolName" => json!("x"),
            "bool" => json!(true),
            "u16" | "u32" | "u64" => json!(1),
            "PayloadRef" => {
                let commit = Digest::of(path.as_bytes());
                payloads.push((commit, path.to_owned()));
                json!({ "commit": commit, "bytes": 1 })
            }
            _ => match types.structs.get(&name) {
                Some(item) => fields(types, &item.fields, path, payloads),
                None => {
                    let item = types.enums.get(&name).unwrap();
                    let rename = serde(&item.attrs, "rename_all").unwrap();
                    let first = item.variants.first().unwrap();
                    let word = written_word(first, &rename).unwrap();
                    match serde(&item.attrs, "tag") {
                        Some(tag) => json!({ tag: word }),
                        None => json!(word),
                    }
                }
            },
        }
    }

    fn fields(
        types: &Types,
        fields: &Fields,
        path: &str,
        payloads: &mut Vec<(Digest, String)>,
    ) -> Value {
        // What has its first value is not written where it says so of itself: `Spelling::is_exact`.
        let is_written = |field: &&Field| {
            let left_out = serde(&field.attrs, "skip_serializing_if").unwrap_or_default();
            !matches!(left_out.split_once("::is_"), Some((own, _)) if types.enums.contains_key(own))
        };
        let all = fields.iter().filter(is_written).map(|field| {
            let name = written_name(field).unwrap();
            let inner = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            (name, sample(types, &field.ty, &inner, payloads))
        });
        all.collect::<serde_json::Map<_, _>>().into()
    }

    /// The tables of fields say what is written: an event that is made by them is one, with the payloads that the
    /// page names, in its order.
    #[test]
    fn events_are_what_the_page_says() {
        let types = types();
        let mut named = 0;
        for variant in &types.enums.get("Event").unwrap().variants {
            let kind = serde(&variant.attrs, "rename").unwrap();
            let mut payloads = Vec::new();
            let body = match &variant.fields {
                Fields::Unnamed(unnamed) => {
                    let name = inner_name(&unnamed.unnamed.first().unwrap().ty).unwrap();
                    fields(&types, &types.structs.get(&name).unwrap().fields, "", &mut payloads)
                }
                named => fields(&types, named, "", &mut payloads),
            };
            let event = json!({ "kind": kind, "body": body });
            let read: Event = serde_json::from_value(event.clone())
                .unwrap_or_else(|error| panic!("{kind}: {error}: {event}"));
            assert_eq!(serde_json::to_value(&read).unwrap(), event, "{kind}");
            let path = |commit: Digest| {
                payloads.iter().find(|(digest, _)| *digest == commit).map(|(_, path)| path.clone())
            };
            let held: Vec<(String, PayloadClass)> = read
                .payloads()
                .into_iter()
                .map(|(item, class)| (path(item.commit).unwrap(), class))
                .collect();
            let told: Vec<(String, PayloadClass)> = PAYLOADS
                .iter()
                .filter(|(text, ..)| *text == kind)
                .map(|(_, path, class)| ((*path).to_owned(), *class))
                .collect();
            assert_eq!(held, told, "{kind}");
            assert_eq!(payloads.len(), told.len(), "{kind}: a field that no payload is known of");
            named += told.len();
        }
        assert_eq!(named, PAYLOADS.len());
    }

    #[test]
    fn a_part_is_written_between_its_marks() {
        let page = "a\n<!-- generated: x -->\nold\n<!-- end of x -->\nb\n";
        let made = marked(page, "x", "\nnew\n").unwrap();
        assert_eq!(made, "a\n<!-- generated: x -->\n\nnew\n\n<!-- end of x -->\nb\n");
        assert_eq!(marked(&made, "x", "new").unwrap(), made);
        assert!(marked("a", "x", "").is_err());
    }
}
