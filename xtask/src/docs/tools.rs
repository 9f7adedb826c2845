//! The page of the tools, from their signatures.
//!
//! A signature is plain data: a `static SIGNATURE` in the tool's own file. It is read from the
//! source and not from the compiled catalogue, so that a page can be made without building the
//! sandbox; a form that is not plain data is an error here, never a gap in the page.

use std::collections::BTreeMap;

use syn::{Expr, ExprStruct, Item, Lit, Member};

use crate::TaskResult;
use crate::docs::markdown;
use crate::repository::Repository;

/// Where the tools stand.
const TOOLS_DIRECTORY: &str = "crates/tools/src/builtin/";

const ABOUT: &str = "What each tool takes and gives. Results come as `{status, result: {..}}`; the \
fields below are those of `result`. Every tool has a deadline, and what is cut is marked.";

/// A value of a signature.
#[derive(Clone, Debug)]
enum SignatureData {
    Text(String),
    Bool(bool),
    /// A variant, with what it holds.
    Variant(String, Vec<SignatureData>),
    List(Vec<SignatureData>),
    Fields(BTreeMap<String, SignatureData>),
}

/// The page.
///
/// # Errors
/// When a signature is not plain data.
pub(super) fn page(house: &Repository) -> TaskResult<String> {
    let mut text = markdown::head("Tools", ABOUT);
    for file in house.tree.files.iter().filter(|file| file.path.starts_with(TOOLS_DIRECTORY)) {
        let Some(source) = file.text.as_deref().filter(|_| file.path.ends_with(".rs")) else {
            continue;
        };
        let parsed = syn::parse_file(source).map_err(|error| format!("{}: {error}", file.path))?;
        if let Some(signature) =
            signature(&parsed).map_err(|why| format!("{}: {why}", file.path))?
        {
            text.push_str(&section(&signature).ok_or(format!("{}: SIGNATURE", file.path))?);
        }
    }
    Ok(text)
}

/// The `SIGNATURE` of a file, if it has one.
fn signature(file: &syn::File) -> TaskResult<Option<SignatureData>> {
    let constants: BTreeMap<String, &Expr> = file
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Const(item) => Some((item.ident.to_string(), &*item.expr)),
            Item::Static(item) => Some((item.ident.to_string(), &*item.expr)),
            _ => None,
        })
        .collect();
    constants.get("SIGNATURE").map(|expression| read(expression, &constants)).transpose()
}

fn read(expression: &Expr, constants: &BTreeMap<String, &Expr>) -> TaskResult<SignatureData> {
    let all = |list: Vec<&Expr>| -> TaskResult<Vec<SignatureData>> {
        list.into_iter().map(|expr| read(expr, constants)).collect()
    };
    match expression {
        Expr::Lit(lit) => match &lit.lit {
            Lit::Str(text) => Ok(SignatureData::Text(text.value())),
            Lit::Bool(truth) => Ok(SignatureData::Bool(truth.value)),
            _ => Err("a literal that is neither text nor truth".to_owned()),
        },
        Expr::Reference(reference) => read(&reference.expr, constants),
        Expr::Array(array) => Ok(SignatureData::List(all(array.elems.iter().collect())?)),
        Expr::Struct(item) => fields(item, constants),
        Expr::Call(call) => match read(&call.func, constants)? {
            SignatureData::Variant(name, _) => {
                Ok(SignatureData::Variant(name, all(call.args.iter().collect())?))
            }
            _ => Err("a call of something that is no variant".to_owned()),
        },
        Expr::Path(path) => {
            let name = path.path.segments.last().map(|last| last.ident.to_string());
            let name = name.ok_or("an empty path")?;
            match constants.get(&name).filter(|_| path.path.segments.len() == 1) {
                Some(constant) => read(constant, constants),
                None => Ok(SignatureData::Variant(name, Vec::new())),
            }
        }
        _ => Err("SIGNATURE is not plain data".to_owned()),
    }
}

fn fields(item: &ExprStruct, constants: &BTreeMap<String, &Expr>) -> TaskResult<SignatureData> {
    let mut fields = BTreeMap::new();
    for field in &item.fields {
        let Member::Named(name) = &field.member else { return Err("a field without name".into()) };
        fields.insert(name.to_string(), read(&field.expr, constants)?);
    }
    Ok(SignatureData::Fields(fields))
}

impl SignatureData {
    fn field(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Fields(fields) => fields.get(name),
            _ => None,
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        match self.field(name)? {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn list(&self, name: &str) -> Option<&[Self]> {
        match self.field(name)? {
            Self::List(list) => Some(list),
            _ => None,
        }
    }
}

/// The part of the page about one tool; none if the signature lacks a field.
fn section(signature: &SignatureData) -> Option<String> {
    let mut text = format!("\n## {}\n\n{}\n\n", signature.text("id")?, signature.text("about")?);
    text.push_str(&format!("- for models: {}\n", markdown::code(signature.text("model_name")?)));
    let aliases = names(signature.list("aliases")?);
    if !aliases.is_empty() {
        text.push_str(&format!("- also understood: {}\n", aliases.join(", ")));
    }
    let capabilities: Option<Vec<String>> =
        signature.list("capabilities")?.iter().map(capability).collect();
    text.push_str(&format!("- needs: {}\n\n", capabilities?.join(", ")));
    let arguments: Option<Vec<_>> = signature.list("arguments")?.iter().map(argument).collect();
    text.push_str(&markdown::table(&["argument", "takes", "", "for"], arguments?.into_iter()));
    text.push('\n');
    let results: Option<Vec<_>> = signature.list("results")?.iter().map(result).collect();
    text.push_str(&markdown::table(&["result", "holds"], results?.into_iter()));
    Some(text)
}

fn names(list: &[SignatureData]) -> Vec<String> {
    let texts = list.iter().filter_map(|data| match data {
        SignatureData::Text(text) => Some(markdown::code(text)),
        _ => None,
    });
    texts.collect()
}

/// `FsRead` is `fs.read`, as policies write it.
fn capability(data: &SignatureData) -> Option<String> {
    let SignatureData::Variant(variant, _) = data else { return None };
    let known = capsule_core::capability::Capability::ALL.into_iter();
    let capability = known.into_iter().find(|capability| format!("{capability:?}") == *variant)?;
    Some(markdown::code(capability.name()))
}

fn argument(data: &SignatureData) -> Option<Vec<String>> {
    let SignatureData::Bool(required) = data.field("required")? else { return None };
    let needed = if *required { "needed" } else { "" };
    let name = markdown::code(data.text("name")?);
    Some(vec![name, kind(data.field("kind")?)?, needed.to_owned(), data.text("about")?.to_owned()])
}

fn result(data: &SignatureData) -> Option<Vec<String>> {
    Some(vec![markdown::code(data.text("name")?), data.text("about")?.to_owned()])
}

/// What an argument may be, in words.
fn kind(data: &SignatureData) -> Option<String> {
    use capsule_core::tool::ArgumentKind;
    let SignatureData::Variant(variant, holds) = data else { return None };
    if let ("OneOf", [SignatureData::List(words)]) = (variant.as_str(), holds.as_slice()) {
        return Some(format!("one of {}", names(words).join(", ")));
    }
    let kinds = [
        ArgumentKind::Path,
        ArgumentKind::Url,
        ArgumentKind::Paths,
        ArgumentKind::Argv,
        ArgumentKind::Text,
        ArgumentKind::Name,
        ArgumentKind::Number,
        ArgumentKind::Flag,
        ArgumentKind::Size,
        ArgumentKind::Duration,
        ArgumentKind::Time,
        ArgumentKind::Headers,
    ];
    let kind = kinds.into_iter().find(|kind| format!("{kind:?}") == *variant)?;
    Some(kind.name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: &str = r#"const MODES: &[&str] = &["a", "b"];
pub static SIGNATURE: Signature = Signature { id: "fs.x", model_name: "fs_x", aliases: &["x"],
    about: "Does.", shape: Shape::Files, capabilities: &[Capability::FsRead],
    arguments: &[Argument { name: "mode", kind: Kind::OneOf(MODES), required: true, about: "how" }],
    results: &[Field { name: "path", about: "the file" }] };"#;

    #[test]
    fn a_signature_becomes_a_section() {
        let path = "crates/tools/src/builtin/fs_x.rs";
        let page = page(&Repository::from_files(&[(path, TOOL)])).unwrap();
        assert!(
            page.contains("## fs.x\n\nDoes.\n\n- for models: `fs_x`\n- also understood: `x`\n")
        );
        assert!(page.contains("- needs: `fs.read`\n"));
        assert!(page.contains("| `mode` | one of `a`, `b` | needed | how |\n"));
    }

    #[test]
    fn a_signature_that_is_not_plain_data_is_an_error() {
        let made = TOOL.replace("\"Does.\"", "about()");
        let path = "crates/tools/src/builtin/fs_x.rs";
        assert!(page(&Repository::from_files(&[(path, &made)])).is_err());
        let missing = TOOL.replace("about: \"Does.\",", "");
        assert!(page(&Repository::from_files(&[(path, &missing)])).is_err());
    }
}
