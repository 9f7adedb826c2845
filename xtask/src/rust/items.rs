//! The items of a file: what it declares, how long its functions are, and which lines are tests.

use std::ops::RangeInclusive;

use syn::visit::{self, Visit};
use syn::{Attribute, Block, Meta, Signature, UseName, UseRename, UseTree, Visibility};

use crate::rust::TestCase;

/// What a file declares.
#[derive(Debug, Default)]
pub(crate) struct Items {
    /// Functions and methods that have a body.
    pub(crate) functions: Vec<Function>,
    /// Everything that has a name of its own.
    pub(crate) declared: Vec<Declared>,
    /// Every implementation of a trait.
    pub(crate) implementations: Vec<Implementation>,
    /// Every enumeration.
    pub(crate) enumerations: Vec<Enumeration>,
    /// Every structure with named fields.
    pub(crate) structures: Vec<Structure>,
    /// The paths of several names that it imports or uses, with their lines; not what it hands on.
    pub(crate) imports: Vec<(Vec<String>, usize)>,
    /// The lines of modules and functions that only tests have.
    pub(crate) tests: Vec<RangeInclusive<usize>>,
    /// The lines on which a test returns before its end.
    pub(crate) early_returns: Vec<usize>,
}

/// A function.
#[derive(Debug)]
pub(crate) struct Function {
    /// Its name.
    pub(crate) name: String,
    /// The line of its signature.
    pub(crate) first_line: usize,
    /// The line of its closing brace.
    pub(crate) last_line: usize,
    /// The types that its parameters mention.
    pub(crate) parameter_types: Vec<String>,
    /// The types that its result mentions.
    pub(crate) result_types: Vec<String>,
}

impl Function {
    /// How long it is.
    pub(crate) const fn lines(&self) -> usize {
        self.last_line + 1 - self.first_line
    }
}

/// A name that a file gives.
#[derive(Debug)]
pub(crate) struct Declared {
    /// What it is given to.
    pub(crate) kind: &'static str,
    /// The name.
    pub(crate) name: String,
    /// Where.
    pub(crate) line: usize,
    /// Whether other crates may see it, as far as its own visibility goes.
    pub(crate) is_public: bool,
}

/// `impl Trait for Type`.
#[derive(Debug)]
pub(crate) struct Implementation {
    /// The trait's own name.
    pub(crate) trait_name: String,
    /// Where.
    pub(crate) line: usize,
}

/// An enumeration.
#[derive(Debug)]
pub(crate) struct Enumeration {
    /// Its name.
    pub(crate) name: String,
    /// Its variants, with their lines.
    pub(crate) variants: Vec<(String, usize)>,
}

/// A structure.
#[derive(Debug)]
pub(crate) struct Structure {
    /// Its name.
    pub(crate) name: String,
    /// Its fields with the types that they mention, and their lines.
    pub(crate) fields: Vec<(String, Vec<String>, usize)>,
}

impl Items {
    /// Reads a file.
    pub(crate) fn parse(file: &syn::File, cases: &[TestCase]) -> Self {
        let mut reader = ItemVisitor { items: Self::default(), cases };
        reader.visit_file(file);
        reader.items
    }
}

struct ItemVisitor<'r> {
    items: Items,
    cases: &'r [TestCase],
}

impl ItemVisitor<'_> {
    fn function(&mut self, attributes: &[Attribute], signature: &Signature, block: &Block) {
        let first = signature.fn_token.span.start().line;
        let last = block.brace_token.span.close().end().line;
        let name = signature.ident.to_string();
        self.declare("function", &signature.ident);
        let mut takes = MentionedTypes::default();
        signature.inputs.iter().for_each(|input| takes.visit_fn_arg(input));
        let mut gives = MentionedTypes::default();
        gives.visit_return_type(&signature.output);
        if self.cases.iter().any(|case| case.name == name && case.line <= first)
            && attributes.iter().any(|attribute| is_attribute(attribute, "test"))
        {
            self.items.tests.push(first..=last);
            let mut returns = EarlyReturns::default();
            returns.visit_block(block);
            self.items.early_returns.append(&mut returns.lines);
        }
        let (takes, gives) = (takes.names, gives.names);
        self.items.functions.push(Function {
            name,
            first_line: first,
            last_line: last,
            parameter_types: takes,
            result_types: gives,
        });
    }

    fn declare(&mut self, kind: &'static str, name: &syn::Ident) {
        self.declare_visible(kind, name, &Visibility::Inherited);
    }

    fn declare_visible(&mut self, kind: &'static str, name: &syn::Ident, to: &Visibility) {
        let line = name.span().start().line;
        let is_public = matches!(to, Visibility::Public(_));
        self.items.declared.push(Declared { kind, name: name.to_string(), line, is_public });
    }

    /// Notes every path of an import.
    fn import(&mut self, tree: &UseTree, mut path: Vec<String>) {
        match tree {
            UseTree::Path(inner) => {
                path.push(inner.ident.to_string());
                self.import(&inner.tree, path);
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|inner| self.import(inner, path.clone()));
            }
            UseTree::Name(UseName { ident }) | UseTree::Rename(UseRename { ident, .. }) => {
                let line = ident.span().start().line;
                path.push(ident.to_string());
                self.items.imports.push((path, line));
            }
            UseTree::Glob(glob) => {
                let line = glob.star_token.spans.first().map_or(0, |span| span.start().line);
                self.items.imports.push((path, line));
            }
        }
    }
}

impl<'ast> Visit<'ast> for ItemVisitor<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        match &item.default {
            Some(block) => self.function(&item.attrs, &item.sig, block),
            None => self.declare("function", &item.sig.ident),
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if matches!(item.vis, Visibility::Inherited) {
            self.import(&item.tree, Vec::new());
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if names.len() > 1 {
            let line = path.segments.first().map_or(0, |part| part.ident.span().start().line);
            self.items.imports.push((names, line));
        }
        visit::visit_path(self, path);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.declare("module", &item.ident);
        if let Some((brace, _)) = item.content.as_ref().filter(|_| is_test_only(&item.attrs)) {
            let first =
                item.attrs.first().map_or(item.mod_token.span, |attr| attr.pound_token.span);
            self.items.tests.push(first.start().line..=brace.span.close().end().line);
        }
        visit::visit_item_mod(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.declare_visible("type", &item.ident, &item.vis);
        let field = |field: &syn::Field| {
            let name = field.ident.as_ref()?;
            let mut mentioned = MentionedTypes::default();
            mentioned.visit_type(&field.ty);
            Some((name.to_string(), mentioned.names, name.span().start().line))
        };
        let fields = item.fields.iter().filter_map(field).collect();
        self.items.structures.push(Structure { name: item.ident.to_string(), fields });
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.declare_visible("type", &item.ident, &item.vis);
        let variant =
            |variant: &syn::Variant| (variant.ident.to_string(), variant.ident.span().start().line);
        let variants = item.variants.iter().map(variant).collect();
        self.items.enumerations.push(Enumeration { name: item.ident.to_string(), variants });
        visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.declare_visible("type", &item.ident, &item.vis);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.declare_visible("type", &item.ident, &item.vis);
        visit::visit_item_type(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let named = item.trait_.as_ref().and_then(|(path, ..)| path.segments.last());
        if let Some(segment) = named {
            let line = item.impl_token.span.start().line;
            let of = segment.ident.to_string();
            self.items.implementations.push(Implementation { trait_name: of, line });
        }
        visit::visit_item_impl(self, item);
    }
}

/// `#[word]`.
fn is_attribute(attribute: &Attribute, word: &str) -> bool {
    matches!(&attribute.meta, Meta::Path(path) if path.is_ident(word))
}

/// `#[cfg(test)]`, or a condition that only tests fulfil.
fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string();
            condition == "test" || condition.replace(' ', "").starts_with("all(test,")
        }
        _ => false,
    })
}

/// The names of the types that something mentions.
#[derive(Default)]
struct MentionedTypes {
    names: Vec<String>,
}

impl<'ast> Visit<'ast> for MentionedTypes {
    fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
        self.names.push(segment.ident.to_string());
        visit::visit_path_segment(self, segment);
    }
}

/// The places where a test gives up: a `return` that is its own and not a closure's.
#[derive(Default)]
struct EarlyReturns {
    lines: Vec<usize>,
}

impl<'ast> Visit<'ast> for EarlyReturns {
    fn visit_expr_return(&mut self, expression: &'ast syn::ExprReturn) {
        self.lines.push(expression.return_token.span.start().line);
    }

    fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}

    fn visit_expr_async(&mut self, _: &'ast syn::ExprAsync) {}

    fn visit_item(&mut self, _: &'ast syn::Item) {}
}
