//! What a run changed in its staged workspace.

use capsule_base::escape;
use capsule_base::units::show_size;
use capsule_core::change::{Change, ChangeKind, FileState};
use serde_json::{Value, json};

/// One line for each change: its letter, its path, what stands there now, why it is refused.
pub fn change_lines<'c>(
    changes: impl IntoIterator<Item = &'c Change>,
) -> impl Iterator<Item = String> {
    changes.into_iter().map(change_line)
}

/// A change for programs, with the lines that differ, if they are wanted.
#[must_use]
pub fn change_json(change: &Change, diff: Option<String>) -> Value {
    let mut told = json!(change);
    if let Value::Object(map) = &mut told {
        map.insert("change".into(), change.kind().name().into());
        map.extend(diff.map(|diff| ("diff".to_owned(), diff.into())));
    }
    told
}

fn change_line(change: &Change) -> String {
    // As version control shows it.
    let letter = match change.kind() {
        ChangeKind::Added => 'A',
        ChangeKind::Modified => 'M',
        ChangeKind::Removed => 'D',
    };
    let path = escape::line(&change.path);
    let (slash, about) = match (&change.after, &change.before) {
        (Some(node), before) => (directory_slash(node), node_summary(node, before.as_ref())),
        (None, Some(node)) => (directory_slash(node), String::new()),
        (None, None) => ("", String::new()),
    };
    let refused = change.refused.as_ref().map(|why| format!("  ✖ refused: {}", escape::line(why)));
    let asked = || change.asked.as_ref().map(|why| format!("  ? asked: {}", escape::line(why)));
    format!("{letter} {path}{slash}{about}{}", refused.or_else(asked).unwrap_or_default())
}

const fn directory_slash(node: &FileState) -> &'static str {
    match node {
        FileState::Directory { .. } => "/",
        _ => "",
    }
}

fn node_summary(node: &FileState, before: Option<&FileState>) -> String {
    let was = match (before, node) {
        (Some(FileState::Directory { .. }), FileState::File { .. } | FileState::Link { .. }) => {
            "  was a folder"
        }
        (Some(FileState::File { .. }), FileState::Directory { .. } | FileState::Link { .. }) => {
            "  was a file"
        }
        (Some(FileState::Link { .. }), FileState::File { .. } | FileState::Directory { .. }) => {
            "  was a link"
        }
        _ => "",
    };
    let mode = match (before.and_then(file_mode), file_mode(node)) {
        (Some(old), Some(new)) if old != new && was.is_empty() => {
            format!("  mode {old:o} → {new:o}")
        }
        (Some(_), Some(_)) if was.is_empty() => String::new(),
        // What new files and folders have is not said each time.
        (_, Some(new)) if !matches!(new, 0o644 | 0o755) || is_executable(node) => {
            format!("  mode {new:o}")
        }
        _ => String::new(),
    };
    match node {
        FileState::File { bytes, .. } => format!("  {}{mode}{was}", show_size(*bytes)),
        FileState::Directory { .. } => format!("{mode}{was}"),
        FileState::Link { target } => format!(" → {}{was}", escape::line(target)),
        FileState::Special => String::new(),
    }
}

const fn file_mode(node: &FileState) -> Option<u32> {
    match node {
        FileState::File { mode, .. } | FileState::Directory { mode } => Some(*mode),
        _ => None,
    }
}

fn is_executable(node: &FileState) -> bool {
    matches!(node, FileState::File { mode, .. } if mode & 0o111 != 0)
}

/// How many changes there are, in a few words.
#[must_use]
pub fn change_count<'c>(changes: impl IntoIterator<Item = &'c Change>) -> String {
    let (mut count, mut refused, mut asked) = (0_u64, 0_u64, 0_u64);
    for change in changes {
        count += 1;
        refused += u64::from(change.refused.is_some());
        asked += u64::from(change.asked.is_some());
    }
    let noun = if count == 1 { "change" } else { "changes" };
    match (refused, asked) {
        (0, 0) => format!("{count} {noun}"),
        (0, asked) => format!("{count} {noun}, {asked} asked about"),
        (refused, _) => format!("{refused} of {count} {noun} refused"),
    }
}
