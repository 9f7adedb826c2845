//! Other names of what must not be changed, as far as the look at a workspace tells them.

use std::path::PathBuf;
use std::rc::Rc;

use capsule_base::code::Code;
use capsule_base::path::WorkspacePath;
use capsule_base::path_aliases::PathAliases;
use capsule_core::action::{FileKind, PathFact, PathLocation};
use capsule_core::change::{Change, FileState};
use capsule_core::outcome::CodedError;
use capsule_core::policy::{Invariants, PathScope};
use rustix::fs::AtFlags;

use super::index::HiddenIndex;
use super::{AliasResult, HiddenPaths};
use crate::control_files::{
    PATH, VARIABLES, Variables, collect_aliases, enclosing_repositories, relative_orders,
};
use crate::repository;
use crate::repository::Protects;
use crate::resolve::Workspace;
use crate::system::statat;

impl HiddenPaths {
    /// What else than the names of invariants leads to what they protect, as it was before the first change.
    ///
    /// # Errors
    /// Why that cannot be told; nothing may be changed then.
    pub fn path_aliases(&self, workspace: &Workspace) -> AliasResult {
        // As late as can be: a run that changes nothing never asks.
        let look = || {
            let drawn = self.index.get().unwrap_or_else(|| self.refreshed(workspace));
            self.collect_path_aliases(workspace, &drawn.borrow())
        };
        self.aliases.get_or_init(look).clone()
    }

    /// The same as it is now.
    ///
    /// # Errors
    /// Why that cannot be told.
    pub fn path_aliases_now(&self, workspace: &Workspace) -> AliasResult {
        self.collect_path_aliases(workspace, &self.refreshed(workspace).borrow())
    }

    pub(super) fn collect_path_aliases(
        &self,
        workspace: &Workspace,
        drawn: &HiddenIndex,
    ) -> AliasResult {
        match &self.invariants {
            Some(invariants) => {
                let variable = |name: &str| self.variables.as_ref()?.variable(name);
                let names = self.variables.as_ref().map(|all| all.variables()).unwrap_or_default();
                let by = (names.as_slice(), &variable as Variables<'_>);
                collect_aliases(
                    workspace,
                    &drawn.alias_candidates,
                    (invariants, self.home.as_deref()),
                    by,
                )
                .map(Rc::new)
            }
            None => Ok(Rc::default()),
        }
    }

    /// Why a change may not be made for the sake of other names than its own.
    pub fn alias_refusal(&self, aliases: &PathAliases, change: &Change) -> Option<String> {
        self.invariants.as_ref()?.refusal_reason(change, aliases)
    }

    /// What keeps content of a repository from coming to a path later, as far as it is known now.
    pub fn protecting<'v>(&'v self, aliases: &'v PathAliases) -> impl Protects + 'v {
        Protecting { hidden_paths: self, invariants: self.invariants.as_ref(), aliases }
    }

    /// What a person is asked before a staged change is applied, if anything: `scope` is what the rule of a
    /// command opens, and `is_new` says whether a path was not there before the run.
    pub fn question(
        &self,
        aliases: &PathAliases,
        change: &Change,
        scope: Option<&PathScope>,
        is_new: &dyn Fn(&WorkspacePath) -> bool,
    ) -> Option<String> {
        let path = WorkspacePath::from_fs_name(&change.path)?;
        let names = names(aliases, &path, Stand::of(change.after.as_ref()));
        self.invariants.as_ref()?.question(change, &names, scope, is_new)
    }

    /// The same for the sake of any name, of a change that is made in the workspace itself.
    pub(crate) fn workspace_alias_refusal(
        &self,
        workspace: &Workspace,
        aliases: &PathAliases,
        change: &Change,
    ) -> Option<String> {
        let path = WorkspacePath::from_fs_name(&change.path)?;
        let around = || self.alias_refusal(&repositories_around(workspace, &path), change);
        self.alias_refusal(aliases, change).or_else(around)
    }

    /// Tells by which protected names the host comes to what is to be changed.
    ///
    /// # Errors
    /// Why that cannot be told.
    pub fn name_aliases(
        &self,
        workspace: &Workspace,
        fact: &mut PathFact,
    ) -> Result<(), CodedError> {
        let (Some(invariants), PathLocation::Inside(real)) = (&self.invariants, &fact.real) else {
            return Ok(());
        };
        let aliases = self.path_aliases(workspace)?;
        // Of the rules that protect what lies beyond it, none need name it.
        let is_folder = fact.kind == FileKind::Directory;
        if let Some(name) = aliases.names_through(real).next().filter(|_| !is_folder) {
            let message = format!("`{name}` leads through `{real}`, where orders are looked for");
            return Err(CodedError::new(Code::ChangeProtected, message));
        }
        if let Some(why) = repository::reserved_path_reason(workspace, real) {
            let problem = CodedError::new(Code::ChangeProtected, why);
            return Err(problem.with_suggestion("use a git command, such as `git commit`"));
        }
        fact.absent = match fact.kind {
            FileKind::Missing => absent(workspace, real),
            _ => None,
        };
        let stand = if is_folder { Stand::Folder } else { Stand::File };
        let mut names = names(&aliases, real, stand);
        names.extend(repositories_around(workspace, real).aliases_of(real));
        names.retain(|name| invariants.protects(name));
        fact.protected_names.extend(names);
        fact.protected_names.sort();
        fact.protected_names.dedup();
        Ok(())
    }
}

/// Invariants, and the other names of what they protect.
struct Protecting<'v> {
    hidden_paths: &'v HiddenPaths,
    invariants: Option<&'v Invariants>,
    aliases: &'v PathAliases,
}

impl Protects for Protecting<'_> {
    fn refuse(&self, change: &Change) -> Option<String> {
        self.invariants?.refuse_by_any_name(change, self.aliases)
    }

    fn reaches(&self, path: &WorkspacePath) -> bool {
        let reach = |invariants: &Invariants| {
            let names = self.aliases.aliases_of(path);
            [path].into_iter().chain(&names).any(|name| invariants.concerns(name))
        };
        self.invariants.is_some_and(reach)
    }

    fn relative_orders(&self) -> Option<Vec<PathBuf>> {
        let HiddenPaths { home, variables, .. } = self.hidden_paths;
        let variable = |name: &str| variables.as_ref()?.variable(name);
        relative_orders(home.as_deref(), &variable)
    }
}

/// What stands at a path, as far as it matters where the shell looks for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    /// A directory, which is not searched.
    Folder,
    /// A file that may be a program.
    File,
    /// A file that is one.
    Program,
}

impl Stand {
    fn of(node: Option<&FileState>) -> Self {
        match node {
            Some(FileState::Directory { .. }) => Self::Folder,
            Some(FileState::File { mode, .. }) if mode & 0o111 == 0 => Self::File,
            Some(FileState::File { .. } | FileState::Link { .. }) => Self::Program,
            Some(FileState::Special) | None => Self::File,
        }
    }
}

/// The names of a path. Where the shell looks for programs at the root itself, by `.` or nothing in its path,
/// only programs count: everything else that stands there is the project's. A directory is no file that a variable
/// names.
pub fn names(aliases: &PathAliases, path: &WorkspacePath, stand: Stand) -> Vec<WorkspacePath> {
    let mut names = aliases.aliases_of(path);
    let at_root = path.components().count() == 1;
    if stand == Stand::Folder {
        names.retain(|name| name.components().next() != Some(VARIABLES));
    }
    if stand == Stand::Folder || at_root && stand == Stand::File {
        names.retain(|name| name.components().next() != Some(PATH));
    }
    names
}

/// The topmost of a path and the folders above it that is not there.
fn absent(workspace: &Workspace, path: &WorkspacePath) -> Option<WorkspacePath> {
    let is_there = |path: &WorkspacePath| {
        statat(workspace.root(), path.as_str(), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    };
    path.ancestors().take_while(|ancestor| !ancestor.is_root() && !is_there(ancestor)).last()
}

/// The repositories that a path lies in, as they are now.
fn repositories_around(workspace: &Workspace, path: &WorkspacePath) -> PathAliases {
    enclosing_repositories(path, |folder, part| {
        let path = folder.join(part);
        statat(workspace.root(), path.as_str(), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    })
}
