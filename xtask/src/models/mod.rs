//! Tasks with real models, in an environment of their own: none of it touches the home or the store of the user.

pub(crate) mod adapt;
pub(crate) mod local_model;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::{TaskResult, cargo};

/// The files of every workspace in which a model works.
const FILES: &[(&str, &str)] = &[
    ("README.md", "# Garden\n\nNotes of a garden. Old names are in `notes.md`.\n"),
    ("notes.md", "apples: 3\npears: 12\nplums: 7\n"),
    ("letters/may.txt", "The old pump is broken. Call the plumber.\n"),
    ("letters/june.txt", "The new pump works. Pay the plumber 120.\n"),
    ("build/old.o", "x"),
    (".env", "TOKEN=a-secret-of-the-gardener\n"),
];

/// A home, a store and a workspace that end with this value.
pub(crate) struct TaskEnvironment {
    root: PathBuf,
    binary: PathBuf,
}

impl TaskEnvironment {
    /// Makes them new in the directory that everything is built into, with a binary of the sources as they are.
    ///
    /// # Errors
    /// When it does not build, or a file cannot be written.
    pub(crate) fn make(repository: &Path, name: &str) -> TaskResult<Self> {
        let mut build = cargo::command(repository);
        cargo::run(build.args(["build", "--quiet", "--locked", "--package", "capsule-cli"]))?;
        let target = cargo::target_directory(repository)?;
        let root = target.join("models").join(name);
        if root.exists() {
            fs::remove_dir_all(&root).map_err(|error| at(&root, &error))?;
        }
        let made = Self { root, binary: target.join("debug/capsule") };
        made.fill_workspace()?;
        fs::create_dir_all(made.root.join("home")).map_err(|error| at(&made.root, &error))?;
        Ok(made)
    }

    /// Writes the files of the workspace, and removes what else is there.
    pub(crate) fn fill_workspace(&self) -> TaskResult<()> {
        let workspace = self.workspace();
        if workspace.exists() {
            fs::remove_dir_all(&workspace).map_err(|error| at(&workspace, &error))?;
        }
        for (name, text) in FILES {
            let path = workspace.join(name);
            let directory = path.parent().unwrap_or(&workspace);
            fs::create_dir_all(directory)
                .and_then(|()| fs::write(&path, text))
                .map_err(|error| at(&path, &error))?;
        }
        Ok(())
    }

    /// Where the model works.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.root.join("garden")
    }

    /// Whether every file of the workspace is as it was written.
    pub(crate) fn is_unchanged(&self) -> bool {
        let workspace = self.workspace();
        let is_same = |(name, text): &(&str, &str)| {
            fs::read_to_string(workspace.join(name)).is_ok_and(|now| now == *text)
        };
        FILES.iter().all(is_same)
    }

    /// Starts the binary in this environment, and waits for its end.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn run(&self, args: &[&str], variables: &[(&str, &str)]) -> TaskResult<Output> {
        let mut command = Command::new(&self.binary);
        command.args(args).current_dir(self.workspace()).env_clear();
        command.env("HOME", self.root.join("home")).env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.envs(variables.iter().copied());
        command.output().map_err(|error| at(&self.binary, &error))
    }
}

/// The text of a problem with a file.
fn at(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
