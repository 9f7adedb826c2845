//! The least walls, as P2's reference: a small program in C that does what no confinement of this kind can do
//! without, and nothing else. What it is and is not stands at the head of its source.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Answer;
use crate::binary::printed;
use crate::peer;

/// Its source.
const SOURCE: &str = include_str!("../peers/least.c");

/// The program, built.
pub(crate) struct Least {
    program: PathBuf,
}

impl Least {
    /// Builds it in a folder.
    pub(crate) fn build(folder: &Path) -> Answer<Self> {
        let (source, program) = (folder.join("least.c"), folder.join("least"));
        std::fs::write(&source, SOURCE)
            .map_err(|error| format!("{}: {error}", source.display()))?;
        let mut build = Command::new(peer::CC.find()?);
        // Small and in one piece, so that little is copied for a first process.
        build.args(["-O2", "-static", "-o"]).args([&program, &source]);
        printed(&mut build)?;
        Ok(Self { program })
    }

    /// The time of one of this many commands.
    pub(crate) fn spawns(&self, count: usize) -> Answer<f64> {
        let text = printed(Command::new(&self.program).arg(count.to_string()))?;
        text.trim().parse().map_err(|_| format!("the least walls said `{text}`"))
    }
}
