//! Other names of what must not be changed, as far as the look at a workspace tells them.

use std::rc::Rc;

use capsule_core::action::{FileKind, PathFact, Place};
use capsule_core::change::Change;
use capsule_core::code::Code;
use capsule_core::orders::Orders;
use capsule_core::outcome::Problem;
use capsule_core::path::WorkspacePath;
use capsule_core::policy::Invariants;
use rustix::fs::{AtFlags, statat};

use super::{Drawn, Known, Veil};
use crate::orders::{Variables, around, gather};
use crate::repository::{self, Protects};
use crate::workspace::Workspace;

impl Veil {
    /// What else than the names of invariants leads to what they protect, as it was when the workspace
    /// was first looked at.
    ///
    /// # Errors
    /// Why that cannot be told; nothing may be changed then.
    pub(crate) fn orders(&self, workspace: &Workspace) -> Known {
        if self.orders.get().is_none() {
            self.draw(workspace);
        }
        self.orders.get().cloned().unwrap_or_else(|| Ok(Rc::default()))
    }

    /// The same as it is now.
    ///
    /// # Errors
    /// Why that cannot be told.
    pub(crate) fn orders_now(&self, workspace: &Workspace) -> Known {
        self.gathered(workspace, &self.up_to_date(workspace).borrow())
    }

    pub(super) fn gathered(&self, workspace: &Workspace, drawn: &Drawn) -> Known {
        match &self.invariants {
            Some(invariants) => {
                let variable = |name: &str| self.host.as_ref()?.variable(name);
                let by = (invariants, self.home.as_deref(), &variable as Variables<'_>);
                gather(workspace, &drawn.leads, by).map(Rc::new)
            }
            None => Ok(Rc::default()),
        }
    }

    /// Why a change may not be made for the sake of other names than its own.
    pub(crate) fn refuses(&self, orders: &Orders, change: &Change) -> Option<String> {
        self.invariants.as_ref()?.refuse(change, orders)
    }

    /// What keeps content of a repository from coming to a path later, as far as it is known now.
    pub(crate) fn protecting<'v>(&'v self, orders: &'v Orders) -> impl Protects + 'v {
        Protecting { invariants: self.invariants.as_ref(), orders }
    }

    /// The same for the sake of any name, of a change that is made in the workspace itself.
    pub(crate) fn refuses_in(
        &self,
        workspace: &Workspace,
        orders: &Orders,
        change: &Change,
    ) -> Option<String> {
        let path = WorkspacePath::beneath(&change.path)?;
        let around = || self.refuses(&repositories(workspace, &path), change);
        self.refuses(orders, change).or_else(around)
    }

    /// Tells by which protected names the host comes to what is to be changed.
    ///
    /// # Errors
    /// Why that cannot be told.
    pub(crate) fn name(&self, workspace: &Workspace, fact: &mut PathFact) -> Result<(), Problem> {
        let (Some(invariants), Place::Inside(real)) = (&self.invariants, &fact.real) else {
            return Ok(());
        };
        let orders = self.orders(workspace)?;
        // Of the rules that protect what lies beyond it, none need name it.
        let is_folder = fact.kind == FileKind::Folder;
        if let Some(name) = orders.through(real).next().filter(|_| !is_folder) {
            let message = format!("`{name}` leads through `{real}`, where orders are looked for");
            return Err(Problem::new(Code::ChangeProtected, message));
        }
        if let Some(why) = repository::keeps(workspace, real) {
            let problem = Problem::new(Code::ChangeProtected, why);
            return Err(problem.suggest("use a git command, such as `git commit`"));
        }
        let mut names = orders.names(real);
        names.extend(repositories(workspace, real).names(real));
        names.retain(|name| invariants.hold(name));
        fact.names.extend(names);
        fact.names.sort();
        fact.names.dedup();
        Ok(())
    }
}

/// Invariants, and the other names of what they protect.
struct Protecting<'v> {
    invariants: Option<&'v Invariants>,
    orders: &'v Orders,
}

impl Protects for Protecting<'_> {
    fn refuse(&self, change: &Change) -> Option<String> {
        self.invariants?.refuse_by_any_name(change, self.orders)
    }

    fn reaches(&self, path: &WorkspacePath) -> bool {
        let reach = |own: &Invariants| {
            let names = self.orders.names(path);
            [path].into_iter().chain(&names).any(|name| own.reach(name))
        };
        self.invariants.is_some_and(reach)
    }
}

/// The repositories that a path lies in, as they are now.
fn repositories(workspace: &Workspace, path: &WorkspacePath) -> Orders {
    around(path, |folder, part| {
        let path = folder.join(part);
        statat(workspace.root(), path.as_str(), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    })
}
