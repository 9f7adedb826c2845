//! Everything that the checks look at, read once.

use std::path::Path;

use serde_json::Value;

use crate::attacks::{self, AttackRow};
use crate::rust::Source;
use crate::tree::FileTree;
use crate::{TaskResult, cargo};

/// The repository, read.
#[derive(Debug, Default)]
pub(crate) struct Repository {
    /// Its files.
    pub(crate) tree: FileTree,
    /// Its Rust files, parsed.
    pub(crate) sources: Vec<Source>,
    /// The rows of its attack tables.
    pub(crate) attacks: Vec<AttackRow>,
    /// What cargo says about its packages.
    pub(crate) metadata: Value,
    /// The files that could not be parsed, and why.
    pub(crate) unparsed: Vec<(String, String)>,
}

impl Repository {
    /// Reads the repository.
    ///
    /// # Errors
    /// When git or cargo cannot be asked.
    pub(crate) fn read(root: &Path) -> TaskResult<Self> {
        let mut house = Self::parse(FileTree::read(root)?);
        house.metadata = cargo::metadata(root)?;
        Ok(house)
    }

    /// Parses a tree.
    pub(crate) fn parse(tree: FileTree) -> Self {
        let mut house = Self::default();
        for file in &tree.files {
            let Some(text) = &file.text else { continue };
            if file.path.ends_with(".rs") {
                match Source::parse(&file.path, text) {
                    Ok(source) => house.sources.push(source),
                    Err(why) => house.unparsed.push((file.path.clone(), why)),
                }
            } else if attacks::is_table(&file.path) {
                match attacks::parse_rows(&file.path, text) {
                    Ok(rows) => house.attacks.extend(rows),
                    Err(why) => house.unparsed.push((file.path.clone(), why)),
                }
            }
        }
        house.tree = tree;
        house
    }

    /// A house for tests of checks.
    #[cfg(test)]
    pub(crate) fn from_files(files: &[(&str, &str)]) -> Self {
        Self::parse(FileTree::from_files(files))
    }
}
