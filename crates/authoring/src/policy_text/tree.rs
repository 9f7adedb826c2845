//! The tree of a policy's text, with changes to it, and as a text again.

use capsule_base::yaml::{YamlNode, YamlScalar, YamlValue};

/// A value of the tree, with the way to it: which child of which child.
#[derive(Clone, Debug)]
pub(crate) struct NodePath<'n> {
    pub(crate) node: &'n YamlNode,
    pub(crate) path: Vec<usize>,
}

impl<'n> NodePath<'n> {
    pub(crate) const fn root(node: &'n YamlNode) -> Self {
        Self { node, path: Vec::new() }
    }

    fn child(&self, index: usize, node: &'n YamlNode) -> Self {
        let mut path = self.path.clone();
        path.push(index);
        Self { node, path }
    }

    /// The entries of a map, each with its key; none of anything else.
    pub(crate) fn entries(&self) -> Vec<(&'n YamlNode, Self)> {
        let YamlValue::Map(entries) = &self.node.value else { return Vec::new() };
        let numbered = entries.iter().enumerate();
        numbered.map(|(index, (key, value))| (key, self.child(index, value))).collect()
    }

    /// The items of a list; none of anything else.
    pub(crate) fn items(&self) -> Vec<Self> {
        let YamlValue::List(items) = &self.node.value else { return Vec::new() };
        items.iter().enumerate().map(|(index, item)| self.child(index, item)).collect()
    }

    /// The value of a key.
    pub(crate) fn get(&self, name: &str) -> Option<Self> {
        self.entries().into_iter().find(|(key, _)| key.text() == Some(name)).map(|(_, path)| path)
    }

    /// The text of a key's value.
    pub(crate) fn text_of(&self, name: &str) -> Option<&'n str> {
        self.get(name).and_then(|path| path.node.text())
    }

    pub(crate) const fn is_list(&self) -> bool {
        matches!(self.node.value, YamlValue::List(_))
    }
}

/// A change to a tree.
#[derive(Clone, Debug)]
pub(crate) enum TreeEdit {
    /// What stands there goes, with its key if it has one.
    Remove(Vec<usize>),
    /// Something else stands there.
    Put(Vec<usize>, YamlNode),
}

impl TreeEdit {
    /// The tree with the change; none if there is no such place.
    pub(crate) fn apply(&self, root: &YamlNode) -> Option<YamlNode> {
        let mut changed = root.clone();
        match self {
            Self::Put(path, node) => *node_at(&mut changed, path)? = node.clone(),
            Self::Remove(path) => {
                let (last, above) = path.split_last()?;
                match &mut node_at(&mut changed, above)?.value {
                    YamlValue::List(items) if *last < items.len() => drop(items.remove(*last)),
                    YamlValue::Map(entries) if *last < entries.len() => drop(entries.remove(*last)),
                    _ => return None,
                }
            }
        }
        Some(changed)
    }
}

fn node_at<'n>(node: &'n mut YamlNode, path: &[usize]) -> Option<&'n mut YamlNode> {
    let Some((first, rest)) = path.split_first() else { return Some(node) };
    let child = match &mut node.value {
        YamlValue::Scalar(_) => None,
        YamlValue::List(items) => items.get_mut(*first),
        YamlValue::Map(entries) => entries.get_mut(*first).map(|(_, value)| value),
    }?;
    node_at(child, rest)
}

/// A word that stands nowhere yet.
pub(crate) fn word_node(text: &str) -> YamlNode {
    scalar(text, true)
}

/// A text that stands nowhere yet.
pub(crate) fn quoted_node(text: &str) -> YamlNode {
    scalar(text, false)
}

fn scalar(text: &str, plain: bool) -> YamlNode {
    YamlNode { span: 0..0, value: YamlValue::Scalar(YamlScalar { text: text.to_owned(), plain }) }
}

/// A list that stands nowhere yet.
pub(crate) fn list_node(items: impl IntoIterator<Item = YamlNode>) -> YamlNode {
    YamlNode { span: 0..0, value: YamlValue::List(items.into_iter().collect()) }
}

/// A map that stands nowhere yet.
pub(crate) fn map_node(entries: impl IntoIterator<Item = (&'static str, YamlNode)>) -> YamlNode {
    let entries = entries.into_iter().map(|(key, value)| (word_node(key), value)).collect();
    YamlNode { span: 0..0, value: YamlValue::Map(entries) }
}

/// The tree as a text that reads as the same tree, but for its places.
pub(crate) fn to_yaml(node: &YamlNode) -> String {
    let mut out = String::new();
    write_node(node, &mut out);
    out.push('\n');
    out
}

fn write_node(node: &YamlNode, out: &mut String) {
    match &node.value {
        YamlValue::Scalar(scalar) => {
            // What is a number, a truth value or nothing stays one; all else is text anyway.
            let bare = scalar.boolean().is_some() || scalar.number().is_some();
            match bare {
                true => out.push_str(&scalar.text),
                false if scalar.is_null() => out.push_str("null"),
                false => out.push_str(&serde_json::Value::from(scalar.text.as_str()).to_string()),
            }
        }
        YamlValue::List(items) => {
            out.push('[');
            for item in items {
                write_node(item, out);
                out.push_str(",\n");
            }
            out.push(']');
        }
        YamlValue::Map(entries) => {
            out.push('{');
            for (key, value) in entries {
                let key = serde_json::Value::from(key.text().unwrap_or_default());
                out.push_str(&key.to_string());
                out.push_str(": ");
                write_node(value, out);
                out.push_str(",\n");
            }
            out.push('}');
        }
    }
}

/// A map with one key more.
pub(crate) fn with_key(root: &YamlNode, key: &str, value: YamlNode) -> YamlNode {
    let mut root = root.clone();
    if let YamlValue::Map(entries) = &mut root.value {
        entries.push((word_node(key), value));
    }
    root
}
