//! Everything that the checks look at, read once.

use std::path::Path;

use serde_json::Value;

use crate::attacks::{self, Row};
use crate::rust::Source;
use crate::tree::Tree;
use crate::{Answer, cargo};

/// The repository, read.
#[derive(Debug, Default)]
pub(crate) struct House {
    /// Its files.
    pub(crate) tree: Tree,
    /// Its Rust files, parsed.
    pub(crate) sources: Vec<Source>,
    /// The rows of its attack tables.
    pub(crate) attacks: Vec<Row>,
    /// What cargo says about its packages.
    pub(crate) metadata: Value,
    /// The files that could not be parsed, and why.
    pub(crate) broken: Vec<(String, String)>,
}

impl House {
    /// Reads the repository.
    ///
    /// # Errors
    /// When git or cargo cannot be asked.
    pub(crate) fn read(root: &Path) -> Answer<Self> {
        let mut house = Self::of(Tree::read(root)?);
        house.metadata = cargo::metadata(root)?;
        Ok(house)
    }

    /// Parses a tree.
    pub(crate) fn of(tree: Tree) -> Self {
        let mut house = Self::default();
        for file in &tree.files {
            let Some(text) = &file.text else { continue };
            if file.path.ends_with(".rs") {
                match Source::parse(&file.path, text) {
                    Ok(source) => house.sources.push(source),
                    Err(why) => house.broken.push((file.path.clone(), why)),
                }
            } else if attacks::is_table(&file.path) {
                match attacks::rows(&file.path, text) {
                    Ok(rows) => house.attacks.extend(rows),
                    Err(why) => house.broken.push((file.path.clone(), why)),
                }
            }
        }
        house.tree = tree;
        house
    }

    /// A house for tests of checks.
    #[cfg(test)]
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        Self::of(Tree::of(files))
    }
}
