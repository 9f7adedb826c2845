//! The files of the repository, as the next commit would have them: what git tracks, and what it
//! would add.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::TaskResult;

/// Texts beyond this size are not read; that they are too large is found by their size.
const READ_BYTES: u64 = 4_000_000;

/// The files, by path.
#[derive(Debug, Default)]
pub(crate) struct FileTree {
    /// Every file, sorted by path.
    pub(crate) files: Vec<TreeFile>,
    /// The paths that git tracks although it is told to ignore them.
    pub(crate) tracked_although_ignored: Vec<String>,
}

/// One file.
#[derive(Debug)]
pub(crate) struct TreeFile {
    /// Where it stands, from the root, with `/` between the parts.
    pub(crate) path: String,
    /// Its size.
    pub(crate) bytes: u64,
    /// Its text, where it is one.
    pub(crate) text: Option<String>,
    /// Whether git tracks it already.
    pub(crate) tracked: bool,
}

impl FileTree {
    /// Reads the repository.
    ///
    /// # Errors
    /// When git cannot be asked.
    pub(crate) fn read(root: &Path) -> TaskResult<Self> {
        let tracked = git_files(root, &["--cached"])?;
        let new = git_files(root, &["--others", "--exclude-standard"])?;
        let ignored = git_files(root, &["--cached", "--ignored", "--exclude-standard"])?;
        let mut files = Vec::new();
        for path in tracked.union(&new) {
            let place = root.join(path);
            // A path that git knows and the disk does not is about to be removed.
            let Ok(metadata) = std::fs::symlink_metadata(&place) else { continue };
            if !metadata.is_file() {
                continue;
            }
            let bytes = metadata.len();
            let text = match bytes {
                ..=READ_BYTES => std::fs::read(&place).ok().and_then(|b| String::from_utf8(b).ok()),
                _ => None,
            };
            files.push(TreeFile {
                path: path.clone(),
                bytes,
                text,
                tracked: tracked.contains(path),
            });
        }
        Ok(Self { files, tracked_although_ignored: ignored.into_iter().collect() })
    }

    /// A tree for tests of checks.
    #[cfg(test)]
    pub(crate) fn from_files(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| TreeFile {
            path: (*path).to_owned(),
            bytes: text.len() as u64,
            text: Some((*text).to_owned()),
            tracked: true,
        };
        Self { files: files.iter().map(file).collect(), tracked_although_ignored: Vec::new() }
    }

    /// The text of a file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|file| file.path == path)?.text.as_deref()
    }

    /// Whether a file or a folder stands at this path.
    pub(crate) fn contains(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        self.files.iter().any(|file| {
            file.path
                .strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

/// What `git ls-files` lists.
fn git_files(root: &Path, options: &[&str]) -> TaskResult<BTreeSet<String>> {
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["ls-files", "-z"])
        .args(options)
        .output()
        .map_err(|error| format!("git cannot be started: {error}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("git ls-files failed: {}", words.trim()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
}
