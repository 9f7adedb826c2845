//! Other names of places in a workspace: those by which the host comes to them for its orders.
//!
//! `.git/hooks` may be a link to `tools/hooks`. Git then runs what stands in `tools/hooks`, and an
//! invariant that protects `.git/hooks/**` has to protect that as well. So a place is judged under every
//! name that it goes by, and whatever a policy says of a name holds for what it leads to.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::path::WorkspacePath;
use crate::spelling::Spelling;

/// The places of a workspace that go by other names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathAliases {
    /// How the file system compares names: places are kept in the spelling that stands for all.
    spelling: Spelling,
    /// The names of a place. What lies beneath it goes by them too.
    aliases: PathMap,
    /// The names of folders whose entries go by them, and not what lies beneath those.
    lists: PathMap,
    /// The names of a place by which nothing beneath it goes.
    exact: PathMap,
    /// What a name leads through on its way: links, itself among them, folders, and where nothing is yet that
    /// one could enter. The name leads elsewhere once something else stands there.
    traversed: PathMap,
    /// How many names there are.
    count: usize,
}

type PathMap = BTreeMap<WorkspacePath, BTreeSet<WorkspacePath>>;

impl PathAliases {
    /// None, in a workspace whose file system compares names so.
    #[must_use]
    pub fn spelled(spelling: Spelling) -> Self {
        Self { spelling, ..Self::default() }
    }

    fn key(&self, path: WorkspacePath) -> WorkspacePath {
        self.spelling.path(&path).unwrap_or(path)
    }

    /// Notes that a name leads to a place. Says whether that tells anything new: what lies beneath a
    /// place goes by its names already.
    pub fn add_alias(&mut self, name: &WorkspacePath, place: &WorkspacePath) -> bool {
        let place = &self.key(place.clone());
        let names = self.aliases.entry(place.clone()).or_default();
        if name == place || name.ancestors().any(|above| names.contains(&above)) {
            return false;
        }
        self.count += 1;
        names.insert(name.clone())
    }

    /// Notes that the entries of a folder go by a name of the folder.
    pub fn list(&mut self, name: &WorkspacePath, folder: &WorkspacePath) {
        let is_new = self.lists.entry(folder.clone()).or_default().insert(name.clone());
        self.count += usize::from(is_new);
    }

    /// Notes that a name leads to a place, and to nothing beneath it.
    pub fn add_exact_alias(&mut self, name: &WorkspacePath, place: &WorkspacePath) {
        let is_new = self.exact.entry(self.key(place.clone())).or_default().insert(name.clone());
        self.count += usize::from(is_new);
    }

    /// Notes that a name leads through something.
    pub fn add_traversal(&mut self, name: &WorkspacePath, through: WorkspacePath) {
        let through = self.key(through);
        if !through.is_root() {
            self.count +=
                usize::from(self.traversed.entry(through).or_default().insert(name.clone()));
        }
    }

    /// The other names of a path: those of every place that it is, or lies in.
    #[must_use]
    pub fn aliases_of(&self, path: &WorkspacePath) -> Vec<WorkspacePath> {
        let of = |above: WorkspacePath| {
            let depth = above.components().count();
            let names = self.aliases.get(&self.key(above)).into_iter().flatten();
            names.map(move |name| {
                path.components()
                    .skip(depth)
                    .fold(name.clone(), |component, part| component.join(part))
            })
        };
        let entry = || {
            let folder = self.lists.get(&path.parent()?)?;
            Some(folder.iter().map(|name| name.join(path.name().unwrap_or_default())))
        };
        let exact = self.exact.get(&self.key(path.clone())).into_iter().flatten().cloned();
        path.ancestors().flat_map(of).chain(entry().into_iter().flatten()).chain(exact).collect()
    }

    /// The names that lead elsewhere once something else than a folder stands at a path.
    pub fn names_through(&self, path: &WorkspacePath) -> impl Iterator<Item = &WorkspacePath> {
        self.traversed.get(&self.key(path.clone())).into_iter().flatten()
    }

    /// How many names are known.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn path(text: &str) -> WorkspacePath {
        WorkspacePath::from_fs_name(text).unwrap()
    }

    #[test]
    fn what_lies_in_a_place_goes_by_its_names() {
        let mut aliases = PathAliases::default();
        assert!(aliases.add_alias(&path(".git"), &path("data/repo")));
        assert!(aliases.add_alias(&path(".git/hooks"), &path("tools")));
        assert!(
            !aliases.add_alias(&path(".git/hooks/more"), &path("tools")),
            "told by `.git/hooks`"
        );
        assert!(!aliases.add_alias(&path("tools"), &path("tools")), "its own name");
        aliases.add_traversal(&path(".git"), path("data"));
        aliases.list(&path("$PATH"), &path("data"));
        aliases.add_exact_alias(&path("$ENV/RC"), &path("data/rc"));
        for (asked, names) in [
            ("data/repo", ".git $PATH/repo"),
            ("data/x", "$PATH/x"),
            ("data/rc", "$PATH/rc $ENV/RC"),
            ("data/rc/x", ""),
            ("data/x/y", ""),
            ("data/repo/hooks/x", ".git/hooks/x"),
            ("tools/x", ".git/hooks/x"),
            ("data", ""),
            ("data/repository", "$PATH/repository"),
        ] {
            let told = aliases.aliases_of(&path(asked));
            let told: Vec<_> = told.iter().map(ToString::to_string).collect();
            assert_eq!(told.join(" "), names, "{asked}");
        }
        assert_eq!(aliases.names_through(&path("data")).count(), 1);
        assert_eq!(aliases.names_through(&path("data/repo")).count(), 0);
        assert_eq!(aliases.count(), 5);
    }
}
