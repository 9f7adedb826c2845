//! Values that are made when a step is reached.

use std::fmt;

use serde_json::Value;

/// A value, or how to make one.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// The value itself.
    Value(Value),
    /// A list of items.
    List(Vec<ListItem>),
    /// A map; keys are never made.
    Map(Vec<(String, Expression)>),
    /// `{ $ref: steps.log.stdout }`: a value from before.
    Ref(Reference),
    /// `{ $concat: [..] }`: texts, one after the other.
    Concat(Vec<Expression>),
    /// `{ $url: { base, query } }`: a URL whose query is encoded.
    Url {
        /// The URL without its query.
        base: Box<Expression>,
        /// The query, by name.
        query: Vec<(String, Expression)>,
    },
    /// `{ $template: { text, vars } }`: text with `{{ name }}` replaced.
    Template {
        /// The text.
        text: Box<Expression>,
        /// What stands for each name.
        vars: Vec<(String, Expression)>,
    },
    /// `{ $lines: .. }`: the lines of a text that are not empty.
    Lines(Box<Expression>),
    /// `{ $default: [..] }`: the first value that is there.
    Default(Vec<Expression>),
    /// `{ $not_empty: .. }`: whether a value holds anything.
    NotEmpty(Box<Expression>),
}

/// An item of a list.
#[derive(Clone, Debug, PartialEq)]
pub enum ListItem {
    /// One value.
    Single(Expression),
    /// `{ $spread: .. }`: every item of a list.
    Spread(Expression),
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// An input.
    Input(String),
    /// A field of a step's result, and what is inside it.
    Step {
        /// The step.
        id: String,
        /// The way to the value; the first segment is the field.
        path: Vec<ValueSegment>,
    },
}

/// One step of the way into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueSegment {
    /// A key of a map.
    Key(String),
    /// A place in a list.
    Index(usize),
}

impl Reference {
    /// Reads `inputs.NAME` or `steps.ID.FIELD[.KEY|.NUMBER]...`.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let mut parts = text.split('.');
        match (parts.next(), parts.next()) {
            (Some("inputs"), Some(name)) if parts.next().is_none() && !name.is_empty() => {
                Ok(Self::Input(name.into()))
            }
            (Some("steps"), Some(id)) if !id.is_empty() => {
                let way: Vec<ValueSegment> = parts
                    .map(|part| match part.parse() {
                        Ok(index) => ValueSegment::Index(index),
                        Err(_) => ValueSegment::Key(part.into()),
                    })
                    .collect();
                match way.first() {
                    Some(ValueSegment::Key(field)) if !field.is_empty() => {
                        Ok(Self::Step { id: id.into(), path: way })
                    }
                    _ => Err("a step's result is named by its field: `steps.log.stdout`"),
                }
            }
            _ => Err("a reference is `inputs.NAME` or `steps.ID.FIELD`"),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(name) => write!(f, "inputs.{name}"),
            Self::Step { id, path: way } => {
                write!(f, "steps.{id}")?;
                way.iter().try_for_each(|segment| match segment {
                    ValueSegment::Key(key) => write!(f, ".{key}"),
                    ValueSegment::Index(index) => write!(f, ".{index}"),
                })
            }
        }
    }
}

impl Expression {
    /// Visits every reference in it, and says of each whether what it leads to is spread.
    pub fn visit_references(&self, spread: bool, visit: &mut dyn FnMut(&Reference, bool)) {
        match self {
            Self::Value(_) => {}
            Self::Ref(reference) => visit(reference, spread),
            Self::Lines(inner) | Self::NotEmpty(inner) => inner.visit_references(spread, visit),
            Self::Concat(items) | Self::Default(items) => {
                items.iter().for_each(|item| item.visit_references(spread, visit));
            }
            Self::Map(entries) => {
                entries.iter().for_each(|(_, item)| item.visit_references(spread, visit))
            }
            Self::Url { base: text, query: entries } | Self::Template { text, vars: entries } => {
                text.visit_references(spread, visit);
                entries.iter().for_each(|(_, item)| item.visit_references(spread, visit));
            }
            Self::List(items) => items.iter().for_each(|item| match item {
                ListItem::Single(inner) => inner.visit_references(spread, visit),
                ListItem::Spread(inner) => inner.visit_references(true, visit),
            }),
        }
    }
}
