//! What git leaves out where it looks for new files: paths that are hidden from a command and in no index. Git would
//! look for their content at `git add -A`, find none that it may read, and add nothing at all. So `info/exclude` names
//! them while a command runs, in a block that is taken out at its end.

use std::collections::BTreeSet;

use crate::change_path::split_parent;

/// The directory of the list, beneath that of a repository.
pub(super) const DIRECTORY: &str = "info";
/// The list.
pub(super) const NAME: &str = "exclude";

/// By what git knows that the list is being written.
pub(super) const LOCK: &str = "exclude.lock";

const BEGIN: &[u8] = b"# Hidden from this command by Capsule:\n";
const END: &[u8] = b"# Up to here.\n";

/// Whether a path may be that of a list.
pub(super) fn is_list(path: &str) -> bool {
    let (directory, name) = split_parent(path);
    name == NAME && split_parent(directory).1 == DIRECTORY
}

/// The list with a block of such paths.
pub(super) fn with_hidden_paths(list: &[u8], names: &BTreeSet<Vec<u8>>) -> Vec<u8> {
    let mut text = without_hidden_paths(list).unwrap_or_else(|| list.to_vec());
    if text.last().is_some_and(|last| *last != b'\n') {
        text.push(b'\n');
    }
    text.extend(BEGIN);
    for name in names.iter().filter(|name| !name.is_empty() && !name.contains(&b'\n')) {
        text.push(b'/');
        for byte in name {
            if b"\\*?[ ".contains(byte) {
                text.push(b'\\');
            }
            text.push(*byte);
        }
        text.push(b'\n');
    }
    text.extend(END);
    text
}

/// The list without the block; none where there is none.
pub(super) fn without_hidden_paths(list: &[u8]) -> Option<Vec<u8>> {
    let at = |text: &[u8], from: usize| {
        let rest = list.get(from..)?;
        rest.windows(text.len()).position(|window| window == text).map(|place| from + place)
    };
    let begin = at(BEGIN, 0)?;
    let end = at(END, begin)? + END.len();
    Some([list.get(..begin)?, list.get(end..)?].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_comes_and_goes() {
        let names = [&b".env"[..], b"a b/[x]", b"c\nd"].map(<[u8]>::to_vec).into();
        for list in [&b"# git\n*.o\n"[..], b"", b"x\n"] {
            let hidden = with_hidden_paths(list, &names);
            let text = String::from_utf8(hidden.clone()).unwrap();
            assert!(text.contains("\n/.env\n/a\\ b/\\[x]\n# Up"), "{text}");
            assert_eq!(with_hidden_paths(&hidden, &names), hidden);
            assert_eq!(without_hidden_paths(&hidden).unwrap(), list);
            assert_eq!(without_hidden_paths(list), None);
        }
        let more = [&with_hidden_paths(b"x\n", &names)[..], b"y\n"].concat();
        assert_eq!(without_hidden_paths(&more).unwrap(), b"x\ny\n");
    }
}
