//! What is measured, how long, and where files may be put.

use std::path::PathBuf;

use crate::Answer;

/// The options of a run.
#[derive(Debug)]
pub(crate) struct Options {
    /// The folder that the main workspace is built into: the binary is there, and results go there.
    pub(crate) folder: PathBuf,
    /// The measures that are wanted; all of them if none are named.
    pub(crate) only: Option<Vec<String>>,
    /// Whether to measure less, for a first look.
    pub(crate) quick: bool,
}

impl Options {
    /// Reads the command line.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Answer<Self> {
        let mut options = Self { folder: PathBuf::from("target"), only: None, quick: false };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--folder" => options.folder = PathBuf::from(value()?),
                "--only" => {
                    let ids = value()?;
                    options.only = Some(ids.split(',').map(str::to_owned).collect());
                }
                "--quick" => options.quick = true,
                _ => {
                    return Err(format!("`{word}` is unknown; there are --only P1,P4 and --quick"));
                }
            }
        }
        Ok(options)
    }

    /// One number for a whole run, another for a quick one.
    pub(crate) const fn pick(&self, whole: usize, quick: usize) -> usize {
        if self.quick { quick } else { whole }
    }

    /// An empty folder for a measure's files, on the disk that everything else is on.
    pub(crate) fn fresh(&self, name: &str) -> Answer<PathBuf> {
        let place = self.folder.join("bench-files").join(name);
        let cleared = match std::fs::remove_dir_all(&place) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            other => other,
        };
        cleared
            .and_then(|()| std::fs::create_dir_all(&place))
            .and_then(|()| place.canonicalize())
            .map_err(|error| format!("{}: {error}", place.display()))
    }
}
