//! The configuration of a repository. Reading it never panics and gives no more than was written; where it is
//! broken, the line is one of the text. A text means the same with other ends of lines, behind a mark of its
//! encoding, and again after itself. What a value names is read back from it when it is written down as
//! git writes it.

use capsule_workspace::git_config::{Named, read, settings};

pub(super) fn run(text: &[u8]) {
    written(text);
    let lines = text.iter().filter(|byte| **byte == b'\n').count() + 1;
    match read(text) {
        // The last line has an end, whether it is written or not.
        Err(broken) => assert!((1..=lines + 1).contains(&broken.line), "{broken:?}"),
        Ok(named) => accepted(text, &named),
    }
}

fn accepted(text: &[u8], named: &[Named]) {
    assert!(named.len() <= 2 * text.len());
    // A value that is a command line has the words of all its readings; each sign of it begins a bounded number.
    let (count, longest) = named
        .iter()
        .map(size)
        .fold((0, 0), |(count, longest), own| (count + own.0, own.1.max(longest)));
    assert!(longest <= text.len(), "{longest}");
    assert!(count <= 600 * (text.len() + 512), "{count}");
    let plain = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let marked = [b"\xef\xbb\xbf", plain].concat();
    assert_eq!(read(&marked).as_deref(), Ok(named));
    // An empty line ends a value that would go on. What stands before the first section counts for nothing.
    let is_sectioned =
        |own: &[u8]| settings(own).is_ok_and(|all| all.iter().all(|own| !own.section.is_empty()));
    if is_sectioned(plain) {
        let twice = [plain, b"\n\n[x]\n", plain].concat();
        assert_eq!(read(&twice).as_deref(), Ok([named, named].concat().as_slice()));
    }
    if !text.contains(&b'\r') {
        let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        assert_eq!(read(&lines.join(&b"\r\n"[..])).as_deref(), Ok(named));
    }
}

/// How many words it names, and how long the longest is.
fn size(named: &Named) -> (usize, usize) {
    match named {
        Named::Hooks(path)
        | Named::Config(path)
        | Named::Attributes(path)
        | Named::Worktree(path)
        | Named::Path(_, path) => (1, path.len()),
        Named::Command(_, words) => {
            (words.len(), words.iter().map(Vec::len).max().unwrap_or_default())
        }
    }
}

/// Any bytes as a value, as git writes them.
fn written(value: &[u8]) {
    let mut text = b"[core]\n\thooksPath = \"".to_vec();
    for byte in value {
        match byte {
            b'\n' => text.extend(b"\\n"),
            b'\t' => text.extend(b"\\t"),
            b'"' | b'\\' => text.extend([b'\\', *byte]),
            _ => text.push(*byte),
        }
    }
    text.extend(b"\"\n");
    let path = value.strip_prefix(b":(optional)").unwrap_or(value).to_vec();
    match value.contains(&0) {
        true => assert!(read(&text).is_err()),
        false => assert_eq!(read(&text), Ok(vec![Named::Hooks(path)])),
    }
}
