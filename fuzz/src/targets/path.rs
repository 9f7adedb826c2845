//! Three lines: a path as a call names it, a pattern, and the folder that is the workspace. A path
//! that was read, or is followed from there, leads nowhere else and reads back as itself; a pattern answers in bounded time, the
//! same from the file system's root and from the workspace, and its quick answers never contradict
//! the exact one. Our own files are out of reach wherever the workspace lies.

use std::sync::LazyLock;

use capsule_base::glob::{Glob, escape, expand_home};
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_base::spelling::Spelling;
use capsule_core::capability::{Capabilities, Capability};
use capsule_core::policy::{BindRoots, PathPattern, SourceLocation};
use capsule_policy::PolicyDraft;
use capsule_runtime::CATALOGUE;

static DRAFT: LazyLock<PolicyDraft> =
    LazyLock::new(|| PolicyDraft::parse("version: 1", "policy.yaml", "", CATALOGUE).unwrap().0);

pub(super) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut lines = text.split('\n');
    let mut next = || lines.next().unwrap_or("");
    let (asked, pattern, folder) = (next(), next(), next());
    let path = WorkspacePath::parse(asked).ok();
    if let Some(path) = &path {
        inside(path);
        path.resolve_from(pattern).iter().for_each(inside);
    }
    let written = expand_home(pattern, folder).unwrap_or_else(|| pattern.into());
    let Ok(glob) = Glob::parse(&written) else { return };
    let beneath = glob.relative_to(folder);
    let Some(path) = path else { return };
    matching(&glob, &path);
    let parts = folder.split('/').filter(|part| !part.is_empty());
    let whole: Vec<&str> = parts.chain(path.components()).collect();
    assert_eq!(glob.matches_components(&whole), beneath.iter().any(|glob| glob.matches(&path)));
    let is_real =
        folder.starts_with('/') && !folder.split('/').any(|part| part == "." || part == "..");
    if is_real && written.starts_with('/') && !path.is_root() {
        denied(&glob, &written, folder, &path, &whole);
        out_of_reach(folder, &path);
    }
}

fn inside(path: &WorkspacePath) {
    let text = path.as_str();
    assert!(!text.starts_with('/') && !text.ends_with('/') && !text.contains("//"));
    let is_refused = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r');
    assert!(!text.chars().any(is_refused) && text.len() <= limits::PATH_BYTES);
    assert!(path.components().all(|part| !matches!(part, "" | "." | "..")));
    // As a record keeps it.
    let kept = serde_json::to_value(path).expect("a path can be written");
    assert_eq!(serde_json::from_value(kept).ok().as_ref(), Some(path));
    match (path.parent(), path.name()) {
        (Some(parent), Some(name)) => assert_eq!(parent.join(name), *path),
        _ => assert!(path.is_root()),
    }
    // Patterns hold no control characters: a name with one is met by `*` alone.
    if (1..=512).contains(&text.len()) && !text.chars().any(char::is_control) {
        assert!(Glob::parse(&escape(text)).is_ok_and(|glob| glob.matches(path)));
    }
}

fn matching(glob: &Glob, path: &WorkspacePath) {
    // The path and every folder above it, without the root.
    let above: Vec<WorkspacePath> = path.ancestors().filter(|path| !path.is_root()).collect();
    let met = above
        .iter()
        .any(|path| path.name().is_some_and(|name| glob.could_end_in(name)) && glob.matches(path));
    if !path.is_root() {
        assert_eq!(glob.covers(path), met, "a walk from the root down meets what is covered");
    }
    if glob.matches(path) {
        assert!(above.iter().skip(1).all(|folder| glob.can_match_beneath(folder)));
        assert!(path.is_root() || glob.can_match_beneath(&WorkspacePath::root()));
    }
}

/// A denial from the file system's root covers a path if it matches the path or any folder above.
fn denied(glob: &Glob, written: &str, folder: &str, path: &WorkspacePath, whole: &[&str]) {
    let mut denial =
        PathPattern::parse(written, SourceLocation::default(), "").expect("it is a pattern");
    denial.bind(folder, Spelling::Exact);
    let named = (1..=whole.len()).any(|depth| glob.matches_components(&whole[..depth]));
    assert_eq!(denial.covers(path), named);
}

fn out_of_reach(folder: &str, path: &WorkspacePath) {
    let own = vec![format!("{folder}/{path}")];
    let spelling = Spelling::Exact;
    let roots = BindRoots {
        workspace: folder.into(),
        runtime_files: own,
        spelling,
        may_drop_base_rules: true,
    };
    let policy = DRAFT.clone().bind(&roots, "", CATALOGUE).expect("it names no pattern");
    assert!(policy.forbids(path, Capabilities::of(Capability::FsRead)).is_some());
}
