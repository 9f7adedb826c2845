//! What a run changed in its staged workspace.

use capsule_core::change::{Change, ChangeKind, Node};
use capsule_core::escape;
use capsule_core::units::show_size;

/// One line for each change: its letter, its path, what stands there now, why it is refused.
pub fn change_lines<'c>(
    changes: impl IntoIterator<Item = &'c Change>,
) -> impl Iterator<Item = String> {
    changes.into_iter().map(line)
}

fn line(change: &Change) -> String {
    // As version control shows it.
    let letter = match change.kind() {
        ChangeKind::Added => 'A',
        ChangeKind::Modified => 'M',
        ChangeKind::Removed => 'D',
    };
    let path = escape::line(&change.path);
    let (slash, about) = match (&change.after, &change.before) {
        (Some(node), before) => (slash(node), about(node, before.as_ref())),
        (None, Some(node)) => (slash(node), String::new()),
        (None, None) => ("", String::new()),
    };
    let refused = change.refused.as_ref().map(|why| format!("  ✖ refused: {}", escape::line(why)));
    format!("{letter} {path}{slash}{about}{}", refused.unwrap_or_default())
}

const fn slash(node: &Node) -> &'static str {
    match node {
        Node::Folder { .. } => "/",
        _ => "",
    }
}

fn about(node: &Node, before: Option<&Node>) -> String {
    let modes = |node: &Node| match node {
        Node::File { mode, .. } | Node::Folder { mode } => Some(*mode),
        _ => None,
    };
    let mode = match (before.and_then(modes), modes(node)) {
        (Some(old), Some(new)) if old != new => format!("  mode {old:o} → {new:o}"),
        _ => String::new(),
    };
    match node {
        Node::File { bytes, .. } => format!("  {}{mode}", show_size(*bytes)),
        Node::Folder { .. } => mode,
        Node::Link { target } => format!(" → {}", escape::line(target)),
        Node::Special => String::new(),
    }
}

/// How many changes there are, in a few words.
#[must_use]
pub fn change_count<'c>(changes: impl IntoIterator<Item = &'c Change>) -> String {
    let (mut count, mut refused) = (0_u64, 0_u64);
    for change in changes {
        count += 1;
        refused += u64::from(change.refused.is_some());
    }
    let noun = if count == 1 { "change" } else { "changes" };
    match refused {
        0 => format!("{count} {noun} staged"),
        refused => format!("{refused} of {count} {noun} refused"),
    }
}
