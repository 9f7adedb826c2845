//! What the files in a repository's folder are to git, by their names.

use super::id::{Format, ObjectId};
use super::{commit_graph, loose};

/// The directory of the links to other working trees.
pub(super) const WORKTREES: &str = "worktrees";

/// What a file is to git.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'p> {
    /// Text that git shows or hands on, and never takes for content.
    Text,
    /// What an invariant protects by its name. Where a policy drops that, it is open.
    Control,
    /// What the next commit will hold.
    Index,
    /// A reference, by its name.
    Reference(&'p str),
    /// All references that have no file of their own.
    PackedReferences,
    /// The names of objects, one at the beginning of each line, which git uses where it is told to.
    Objects,
    /// Where to go back to after a search.
    Start,
    /// Which paths a search is about.
    Names,
    /// What references stood for.
    Log,
    /// An object in a file of its own.
    Loose(ObjectId),
    /// A pack, or its index, by the name of both.
    Pack(&'p str),
    /// What is computed from a pack and only says in which order its objects lie, or when they came.
    Order,
    /// What is noted of commits.
    CommitGraph,
    /// A large file that is kept beside the objects, by the digest of its content.
    Large(&'p str),
    /// What git leaves when it is killed, and never reads.
    Leftover,
    /// Git has nothing of that name.
    Unknown,
    /// What is not changed, and why. It may go.
    Closed(&'static str),
    /// What may not even go, and why.
    Fixed(&'static str),
}

/// Texts, each for a person or for a message.
const TEXTS: [&str; 20] = [
    "ADD_EDIT.patch",
    "BISECT_ANCESTORS_OK",
    "BISECT_FIRST_PARENT",
    "BISECT_LOG",
    "BISECT_RUN",
    "BISECT_TERMS",
    "COMMIT_EDITMSG",
    "EDIT_DESCRIPTION",
    "MERGE_MODE",
    "MERGE_MSG",
    "MERGE_RR",
    "NOTES_EDITMSG",
    "SQUASH_MSG",
    "TAG_EDITMSG",
    "addp-hunk-edit.diff",
    "description",
    "gc.log",
    "gc.pid",
    "info/exclude",
    // Why a working tree is kept.
    "locked",
];

/// What invariants protect, beneath which folder or as which file.
const CONTROL: [&str; 12] = [
    "branches",
    "commondir",
    "config",
    "config.worktree",
    "gitdir",
    "hooks",
    "info/attributes",
    "objects/info/alternates",
    "rebase-apply",
    "rebase-merge",
    "remotes",
    "sequencer",
];

/// References that git keeps beside the others and uses without being told to.
const ROOTS: [&str; 4] = ["AUTO_MERGE", "HEAD", "MERGE_AUTOSTASH", "ORIG_HEAD"];
/// Those that it uses where a command names them, or as parents of the next commit.
const NAMED: [&str; 8] = [
    "BISECT_EXPECTED_REV",
    "BISECT_HEAD",
    "CHERRY_PICK_HEAD",
    "FETCH_HEAD",
    "MERGE_HEAD",
    "REBASE_HEAD",
    "REVERT_HEAD",
    "info/refs",
];

/// What is neither changed nor removed, and why.
const FIXED: [(&str, &str); 8] = [
    ("info/grafts", "it gives commits other parents"),
    ("info/sparse-checkout", "it says which files stand in the working tree"),
    ("modules", "it belongs to a submodule"),
    ("objects/info/http-alternates", "it names other places for objects"),
    ("refs/replace", "it puts one object in another's place"),
    ("reftable", "references in this form cannot be compared"),
    ("shallow", "it says where the history ends"),
    (WORKTREES, "it belongs to another working tree"),
];

/// What may be removed and not changed, and why.
const CLOSED: [(&str, &str); 3] = [
    ("objects/info/commit-graphs", "a commit graph in parts cannot be compared"),
    ("objects/pack/multi-pack-index", "an index of several packs cannot be compared"),
    ("rr-cache", "git resolves later conflicts with what stands there"),
];

fn is_at(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What a file is, by its path beneath the repository's folder.
pub(super) fn part(format: Format, path: &str) -> Part<'_> {
    let among = |list: &'static [(&str, &str)]| {
        list.iter().find(|(place, _)| is_at(path, place)).map(|(_, why)| *why)
    };
    if let Some(why) = among(&FIXED) {
        return Part::Fixed(why);
    }
    if let Some(why) = among(&CLOSED) {
        return Part::Closed(why);
    }
    if CONTROL.iter().any(|place| is_at(path, place)) {
        return Part::Control;
    }
    if path.ends_with(".lock") {
        return Part::Closed("it is a lock, which keeps git from changing anything");
    }
    if let Some(object) = path.strip_prefix("objects/") {
        return object_part(format, object);
    }
    if let Some(large) = path.strip_prefix("lfs/objects/") {
        return Part::Large(large);
    }
    match path {
        "index" => Part::Index,
        "packed-refs" => Part::PackedReferences,
        "BISECT_START" => Part::Start,
        "BISECT_NAMES" => Part::Names,
        path if TEXTS.contains(&path) => Part::Text,
        path if ROOTS.contains(&path) || path.starts_with("refs/") => Part::Reference(path),
        path if NAMED.contains(&path) => Part::Objects,
        path if path.starts_with("logs/") => Part::Log,
        _ => Part::Unknown,
    }
}

/// What a file is, by its path beneath the folder of all objects.
pub(super) fn object_part(format: Format, path: &str) -> Part<'_> {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    if let Some(id) = loose::named(format, path) {
        return Part::Loose(id);
    }
    if path == commit_graph::PLACE {
        return Part::CommitGraph;
    }
    if path == "info/packs" {
        return Part::Text;
    }
    if name.starts_with("tmp_") || name.starts_with(".tmp-") {
        return Part::Leftover;
    }
    match path.strip_prefix("pack/").and_then(|name| name.rsplit_once('.')) {
        Some((name, "pack" | "idx")) if is_pack(name) => Part::Pack(name),
        Some((name, "rev" | "mtimes" | "keep")) if is_pack(name) => Part::Order,
        Some((_, "bitmap")) => Part::Closed("what it says of the history cannot be compared"),
        _ => Part::Closed("it is not known what git takes it for"),
    }
}

fn is_pack(name: &str) -> bool {
    name.starts_with("pack-") && !name.contains('/')
}

/// Whether folders may come and go somewhere: where the others are what they belong to.
pub(super) fn may_hold(path: &str) -> bool {
    let places = ["objects", "refs", "logs", "info", "lfs"];
    let is_closed = FIXED.iter().chain(&CLOSED).any(|(place, _)| is_at(path, place));
    !is_closed && (path.is_empty() || places.iter().any(|place| is_at(path, place)))
}

/// Files and directories that say where a working tree is, or what was begun in it.
const STATE: [&str; 8] = [
    "commondir",
    "gitdir",
    "rebase-apply",
    "rebase-merge",
    "reftable",
    "sequencer",
    "shallow",
    WORKTREES,
];

/// Whether commands see a file or directory of a repository that lies outside of the workspace, by its name there.
/// What starts programs, what belongs to other repositories and what git does not know is hidden.
pub(crate) fn is_shown_outside(name: &str) -> bool {
    let is_known = || {
        !matches!(
            part(Format::Sha1, name),
            Part::Unknown | Part::Control | Part::Fixed(_) | Part::Closed(_) | Part::Large(_)
        )
    };
    STATE.contains(&name)
        || may_hold(name) && name != "lfs"
        || name.starts_with("sharedindex.")
        || is_known()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_a_file_is() {
        let loose = "objects/e6/9de29bb2d1d6434b8b29ae775ad8c2e48c5391";
        let what = |path: &str| format!("{:?}", part(Format::Sha1, path));
        for (path, expected) in [
            ("HEAD", "Reference"),
            ("refs/heads/a/b", "Reference"),
            ("refs/replace/x", "Fixed"),
            ("refs/heads/main.lock", "Closed"),
            ("MERGE_HEAD", "Objects"),
            ("COMMIT_EDITMSG", "Text"),
            ("logs/refs/stash", "Log"),
            ("hooks/pre-commit", "Control"),
            ("config", "Control"),
            ("config.new", "Unknown"),
            ("index", "Index"),
            ("sharedindex.0123", "Unknown"),
            (loose, "Loose"),
            ("objects/pack/pack-01.idx", "Pack"),
            ("objects/pack/pack-01.rev", "Order"),
            ("objects/pack/pack-01.bitmap", "Closed"),
            ("objects/pack/multi-pack-index", "Closed"),
            ("objects/pack/tmp_pack_x", "Leftover"),
            ("objects/e6/tmp_obj_x", "Leftover"),
            ("objects/info/commit-graph", "CommitGraph"),
            ("objects/new", "Closed"),
            ("rr-cache/01/postimage", "Closed"),
            ("info/exclude", "Text"),
            ("info/sparse-checkout", "Fixed"),
            ("main", "Unknown"),
        ] {
            assert!(what(path).starts_with(expected), "{path}: {}", what(path));
        }
        assert!(may_hold("refs/heads/x") && may_hold("objects/ab"));
        assert!(!may_hold("rr-cache") && !may_hold("refs/replace") && !may_hold("svn"));
    }
}
