//! The program of an agent: where it is, and what of the host has to be shown for it to start.
//!
//! The system's directories are shown anyway. A program elsewhere brings the directory that it was installed into,
//! where one can be told: the packages of its interpreter, its virtual environment, its prefix; else its file alone.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// How many interpreters of interpreters are looked for.
const MAX_INTERPRETERS: usize = 4;
/// How much of a script is read for its first line: as much as the kernel takes.
const FIRST_LINE_BYTES: u64 = 256;

/// Directories of a home directory in which every other one may be the user's, or hold an account of a program: what is
/// directly in one of them is no prefix of programs.
const HOMES: [&str; 5] = ["", ".cache", ".config", ".local/share", ".local/state"];
/// Where credentials lie, in a home directory or in another one that is like it.
const CREDENTIALS: [&str; 20] = [
    ".aws",
    ".azure",
    ".cargo/credentials.toml",
    ".config/gcloud",
    ".config/gh",
    ".docker",
    ".env",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".mozilla",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pypirc",
    ".ssh",
    ".vault-token",
    "auth.json",
    "credentials.json",
];

/// Where programs are looked for.
pub(super) struct ProgramSearch<'s> {
    /// The user's directories of programs.
    pub(super) path: Vec<PathBuf>,
    /// The current directory.
    pub(super) cwd: &'s Path,
    /// The user's home directory, of which nothing as a whole is shown.
    pub(super) home: &'s Path,
    /// The real path of the workspace.
    pub(super) workspace: &'s Path,
    /// Whether an agent sees a real path anyway.
    pub(super) is_shown: &'s dyn Fn(&Path) -> bool,
}

/// What is shown for a program.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ShownProgram {
    /// Real paths of directories and files.
    pub(super) mounts: Vec<PathBuf>,
    /// Paths that lead to real ones.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
}

impl ProgramSearch<'_> {
    /// Finds a program by its name or path; its absolute path.
    pub(super) fn find(&self, name: &OsStr) -> Option<PathBuf> {
        if name.as_bytes().contains(&b'/') {
            return Some(self.cwd.join(name)).filter(|path| is_program(path));
        }
        let directories = self.path.iter().filter(|directory| directory.is_absolute());
        directories.map(|directory| directory.join(name)).find(|path| is_program(path))
    }

    /// Collects what is shown so that the program at this path starts, with its interpreter.
    pub(super) fn collect(&self, path: &Path) -> ShownProgram {
        let mut shown = ShownProgram::default();
        let mut next = Some(path.to_owned());
        for _ in 0..MAX_INTERPRETERS {
            let Some(path) = next else { break };
            self.show(&path, &mut shown);
            next = self.interpreter(&path);
        }
        shown.mounts.sort();
        shown.mounts.dedup();
        shown
    }

    fn show(&self, path: &Path, shown: &mut ShownProgram) {
        let Ok(real) = path.canonicalize() else { return };
        let covers =
            |mounts: &[PathBuf], path: &Path| mounts.iter().any(|root| path.starts_with(root));
        let is_there = |shown: &ShownProgram, path: &Path| {
            (self.is_shown)(path) || path.starts_with(self.workspace) || covers(&shown.mounts, path)
        };
        // A virtual environment is known by where a program is named, not by where that leads.
        if let Some(environment) = virtual_environment(path)
            && self.may_show(&environment)
            && !is_there(shown, path)
        {
            shown.mounts.push(environment);
        }
        if !is_there(shown, &real) {
            shown.mounts.push(self.package_of(&real));
        }
        if path != real && !is_there(shown, path) {
            shown.links.push((path.to_owned(), real));
        }
    }

    /// The directory that a program was installed into, or its file.
    fn package_of(&self, real: &Path) -> PathBuf {
        let modules = real.ancestors().filter(|above| above.ends_with("node_modules")).last();
        let prefix = || {
            let programs = real.parent()?;
            let is_of_programs =
                ["bin", "sbin", "libexec"].iter().any(|name| programs.ends_with(name));
            programs.parent().filter(|prefix| is_of_programs && self.is_prefix(prefix))
        };
        let found = modules.map(Path::to_owned).or_else(|| virtual_environment(real));
        let found = found.or_else(|| prefix().map(Path::to_owned));
        found.filter(|directory| self.may_show(directory)).unwrap_or_else(|| real.to_owned())
    }

    /// Whether a directory is a program's and not the user's, or the machine's.
    fn may_show(&self, directory: &Path) -> bool {
        let is_above = |path: &Path| path.starts_with(directory);
        let home = self.real_home();
        directory.components().count() > 2
            && !is_above(self.home)
            && !is_above(&home)
            && !is_above(self.workspace)
            && directory != home.join(".local")
    }

    /// Whether the directory above one of programs holds nothing but what belongs to them, as far as its place says.
    fn is_prefix(&self, directory: &Path) -> bool {
        let home = self.real_home();
        let is_of_user = |name: &str| directory.parent().is_some_and(|it| it == home.join(name));
        let has_credentials = |name: &str| {
            let known = home.join(name);
            known.starts_with(directory)
                || directory.starts_with(&known)
                || directory.join(name).symlink_metadata().is_ok()
        };
        !HOMES.into_iter().any(is_of_user) && !CREDENTIALS.into_iter().any(has_credentials)
    }

    fn real_home(&self) -> PathBuf {
        self.home.canonicalize().unwrap_or_else(|_| self.home.to_owned())
    }

    /// The interpreter that the first line of a script names.
    fn interpreter(&self, path: &Path) -> Option<PathBuf> {
        let mut start = Vec::new();
        File::open(path).ok()?.take(FIRST_LINE_BYTES).read_to_end(&mut start).ok()?;
        let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
        let line = String::from_utf8_lossy(line).into_owned();
        let mut words = line.split_whitespace();
        let named = PathBuf::from(words.next()?);
        if !named.ends_with("env") {
            return Some(named);
        }
        let program = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
        self.find(OsStr::new(program))
    }
}

/// The virtual environment whose directory of programs a path names.
fn virtual_environment(path: &Path) -> Option<PathBuf> {
    let environment = path.parent()?.parent()?;
    environment.join("pyvenv.cfg").is_file().then(|| environment.to_owned())
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// What is shown for a program at one path, below a directory in place of the machine.
    #[test]
    fn a_program_brings_what_it_was_installed_into() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let file = |path: &str, content: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        let node = format!("#!{}\n", root.join("opt/node/bin/node").display());
        file("opt/node/bin/node", "binary");
        file("home/.npm/lib/node_modules/@a/claude/cli.js", &node);
        file("home/.npm/lib/node_modules/@a/claude/node_modules/x/run.js", "#!/usr/bin/env node\n");
        file("home/venv/pyvenv.cfg", "");
        file(
            "home/venv/bin/aider",
            &format!("#!{}\n", root.join("home/venv/bin/python").display()),
        );
        file("usr/bin/python3", "binary");
        file("home/bin/tool", "binary");
        file("home/.local/bin/other", "binary");
        file("home/ws/run.sh", "#!/bin/sh\n");
        file("home/.docker/bin/buildx", "binary");
        file("home/code/bin/mine", "binary");
        file("home/.local/share/code/bin/code", "binary");
        file("home/tools/far/bin/far", "binary");
        file("home/tools/near/bin/near", "binary");
        file("home/tools/near/.npmrc", "");
        file("home/target/debug/capsule", "binary");
        symlink(root.join("usr/bin/python3"), root.join("home/venv/bin/python")).unwrap();
        symlink("../lib/node_modules/@a/claude/cli.js", root.join("home/.npm/claude"))
            .unwrap_or(());
        fs::create_dir_all(root.join("home/.npm/bin")).unwrap();
        symlink("../lib/node_modules/@a/claude/cli.js", root.join("home/.npm/bin/claude")).unwrap();
        let (home, workspace) = (root.join("home"), root.join("home/ws"));
        let system = [root.join("usr"), PathBuf::from("/bin"), PathBuf::from("/usr")];
        let search = ProgramSearch {
            path: vec![
                root.join("opt/node/bin"),
                root.join("home/bin"),
                root.join("home/.npm/bin"),
            ],
            cwd: &workspace,
            home: &home,
            workspace: &workspace,
            is_shown: &|path| system.iter().any(|root| path.starts_with(root)),
        };
        let modules = "home/.npm/lib/node_modules";
        for (name, mounts, links) in [
            ("node", &["opt/node"][..], &[][..]),
            ("claude", &[modules, "opt/node"], &["home/.npm/bin/claude"]),
            ("tool", &["home/bin/tool"], &[]),
            ("./run.sh", &[], &[]),
            ("../venv/bin/aider", &["home/venv"], &[]),
            ("../venv/bin/python", &["home/venv"], &[]),
            ("../.local/bin/other", &["home/.local/bin/other"], &[]),
            ("../.docker/bin/buildx", &["home/.docker/bin/buildx"], &[]),
            ("../code/bin/mine", &["home/code/bin/mine"], &[]),
            ("../.local/share/code/bin/code", &["home/.local/share/code/bin/code"], &[]),
            ("../tools/far/bin/far", &["home/tools/far"], &[]),
            ("../tools/near/bin/near", &["home/tools/near/bin/near"], &[]),
            ("../target/debug/capsule", &["home/target/debug/capsule"], &[]),
        ] {
            let path = search.find(OsStr::new(name)).unwrap_or_else(|| panic!("{name}"));
            // As the wrapper does with a path that was typed.
            let path =
                path.parent().unwrap().canonicalize().unwrap().join(path.file_name().unwrap());
            let shown = search.collect(&path);
            let wanted: Vec<PathBuf> = mounts.iter().map(|mount| root.join(mount)).collect();
            assert_eq!(shown.mounts, wanted, "{name}");
            let shown: Vec<PathBuf> = shown.links.into_iter().map(|(link, _)| link).collect();
            let wanted: Vec<PathBuf> = links.iter().map(|link| root.join(link)).collect();
            assert_eq!(shown, wanted, "{name}");
        }
        assert_eq!(search.find(OsStr::new("missing")), None);
    }
}
