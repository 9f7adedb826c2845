//! Values and the functions that make them.

use std::collections::BTreeSet;

use capsule_base::code::Code;
use capsule_base::diagnostic::Diagnostic;
use capsule_base::escape;
use capsule_base::suggestion::closest;
use capsule_base::yaml::{Section, YamlNode, YamlValue, key};
use capsule_core::tool::ArgumentKind;
use serde_json::Value;

use super::{FUNCTIONS, Parser, closest_of};
use crate::plan::{Expression, ListItem, Reference, ValueSegment};

impl Parser {
    /// A value, or how to make one. `kind` is that of the argument it stands in.
    pub(super) fn expression(
        &mut self,
        node: &YamlNode,
        kind: Option<ArgumentKind>,
    ) -> Option<Expression> {
        match &node.value {
            YamlValue::Scalar(_) => Some(Expression::Value(literal(node, kind))),
            YamlValue::List(items) => self.list(items, kind),
            YamlValue::Map(entries) => match entries.first() {
                Some((name, inner)) if name.text().is_some_and(|name| name.starts_with('$')) => {
                    if let Some((other, _)) = entries.get(1) {
                        let message = "a `$`-function stands alone in its map";
                        self.error(Code::PlanFunction, other, message);
                        return None;
                    }
                    self.function(name, inner, kind)
                }
                _ => self.entries(entries, kind),
            },
        }
    }

    fn list(&mut self, items: &[YamlNode], kind: Option<ArgumentKind>) -> Option<Expression> {
        let mut list = Vec::new();
        for item in items {
            list.push(match item.get("$spread") {
                Some(inner) => ListItem::Spread(self.expression(inner, kind)?),
                None => ListItem::Single(self.expression(item, kind)?),
            });
        }
        let values: Option<Vec<Value>> = list
            .iter()
            .map(|item| match item {
                ListItem::Single(Expression::Value(value)) => Some(value.clone()),
                _ => None,
            })
            .collect();
        Some(match values {
            Some(values) => Expression::Value(Value::Array(values)),
            None => Expression::List(list),
        })
    }

    fn entries(
        &mut self,
        entries: &[(YamlNode, YamlNode)],
        kind: Option<ArgumentKind>,
    ) -> Option<Expression> {
        let mut map = Vec::new();
        for (name, inner) in entries {
            let key = name.text().unwrap_or("");
            if key.starts_with('$') {
                self.error(Code::PlanFunction, name, "a `$`-function stands alone in its map");
                return None;
            }
            map.push((key.to_owned(), self.expression(inner, kind)?));
        }
        let values: Option<serde_json::Map<String, Value>> = map
            .iter()
            .map(|(key, made)| match made {
                Expression::Value(value) => Some((key.clone(), value.clone())),
                _ => None,
            })
            .collect();
        Some(match values {
            Some(values) => Expression::Value(Value::Object(values)),
            None => Expression::Map(map),
        })
    }

    fn function(
        &mut self,
        name: &YamlNode,
        inner: &YamlNode,
        kind: Option<ArgumentKind>,
    ) -> Option<Expression> {
        match self.function_name(name)? {
            "$ref" => self.reference(inner).map(Expression::Ref),
            "$concat" => self.several(inner, kind).map(Expression::Concat),
            "$default" => self.several(inner, kind).map(Expression::Default),
            "$lines" => Some(Expression::Lines(Box::new(self.expression(inner, None)?))),
            "$not_empty" => Some(Expression::NotEmpty(Box::new(self.expression(inner, None)?))),
            "$url" => self.url(inner),
            "$template" => self.template(name, inner, kind),
            _ => {
                self.error(Code::PlanFunction, name, "`$spread` stands in a list");
                None
            }
        }
    }

    fn function_name(&mut self, name: &YamlNode) -> Option<&'static str> {
        let text = name.text().unwrap_or("");
        let known = FUNCTIONS.iter().copied().find(|function| *function == text);
        if known.is_none() {
            let message = format!("there is no function `{}`", escape::line(text));
            let problem = Diagnostic::error(Code::PlanFunction, name.span.clone(), message);
            self.reader.problem(match closest(text, FUNCTIONS.iter().copied()) {
                Some(near) => problem.hint(format!("did you mean `{near}`?")),
                None => problem.hint(format!("there are `{}`", FUNCTIONS.join("`, `"))),
            });
        }
        known
    }

    fn several(&mut self, node: &YamlNode, kind: Option<ArgumentKind>) -> Option<Vec<Expression>> {
        let items = self.reader.list(node, "a list")?;
        items.iter().map(|item| self.expression(item, kind)).collect()
    }

    fn url(&mut self, node: &YamlNode) -> Option<Expression> {
        let section = self.reader.section(node, "`$url`", &[key("base"), key("query")])?;
        let base = self.reader.required(&section, "base", "`$url`")?;
        let base = Box::new(self.expression(base, Some(ArgumentKind::Url))?);
        Some(Expression::Url { base, query: self.named(&section, "query")? })
    }

    /// A template makes text, and text is all it can make: never a path, a URL or a word of a
    /// command line.
    fn template(
        &mut self,
        name: &YamlNode,
        node: &YamlNode,
        kind: Option<ArgumentKind>,
    ) -> Option<Expression> {
        if kind.is_some_and(|kind| kind != ArgumentKind::Text) {
            let wanted = kind.as_ref().map_or("", ArgumentKind::name);
            let message = format!("`$template` makes text; {wanted} is needed here");
            self.error(Code::PlanFunction, name, message);
        }
        let section = self.reader.section(node, "`$template`", &[key("text"), key("vars")])?;
        let text = self.reader.required(&section, "text", "`$template`")?;
        let text = Box::new(self.expression(text, None)?);
        Some(Expression::Template { text, vars: self.named(&section, "vars")? })
    }

    fn named(&mut self, section: &Section<'_>, name: &str) -> Option<Vec<(String, Expression)>> {
        let Some(node) = section.get(name) else { return Some(Vec::new()) };
        let map = self.reader.map(node, "a map")?;
        map.entries()
            .map(|(name, _, inner)| Some((name.to_owned(), self.expression(inner, None)?)))
            .collect()
    }

    fn reference(&mut self, node: &YamlNode) -> Option<Reference> {
        let text = self.reader.text(node)?;
        let reference = match Reference::parse(text) {
            Ok(reference) => reference,
            Err(why) => {
                self.error(Code::PlanRef, node, why);
                return None;
            }
        };
        let problem = match &reference {
            Reference::Input(name) => (!self.inputs.contains(name))
                .then(|| (format!("there is no input `{name}`"), closest_of(name, &self.inputs))),
            Reference::Step { id, path: way } => self.unknown_step(id, way),
        };
        if let Some((message, near)) = problem {
            let problem = Diagnostic::error(Code::PlanRef, node.span.clone(), message);
            self.reader.problem(match near {
                Some(near) => problem.hint(format!("did you mean `{near}`?")),
                None => problem,
            });
        }
        Some(reference)
    }

    fn unknown_step(&self, id: &str, way: &[ValueSegment]) -> Option<(String, Option<String>)> {
        let ids: Vec<String> = self.steps.iter().map(|(text, _)| text.clone()).collect();
        let Some((_, tool)) = self.steps.iter().find(|(text, _)| text == id) else {
            return Some((format!("no step before has the id `{id}`"), closest_of(id, &ids)));
        };
        let Some(ValueSegment::Key(field)) = way.first() else { return None };
        let fields = tool.results.iter().map(|result| result.name);
        let known: BTreeSet<&str> = fields.clone().collect();
        if known.contains(field.as_str()) {
            return None;
        }
        let near = closest(field, fields).map(Into::into);
        Some((format!("the result of `{}` has no `{field}`", tool.id), near))
    }
}

/// A scalar as JSON. In a place that takes text a number is the text that was written.
fn literal(node: &YamlNode, kind: Option<ArgumentKind>) -> Value {
    let takes_text = matches!(
        kind,
        Some(
            ArgumentKind::Argv
                | ArgumentKind::Paths
                | ArgumentKind::Text
                | ArgumentKind::Path
                | ArgumentKind::Url
                | ArgumentKind::Name
                | ArgumentKind::Headers
        )
    );
    match (takes_text, node.text()) {
        (true, Some(text)) => text.into(),
        _ => node.to_json(),
    }
}
