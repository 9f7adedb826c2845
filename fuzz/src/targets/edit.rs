//! A file, what is searched for in it and what is to stand there, between 0x1f bytes. An edit never
//! panics; what it makes differs from the file only where it says, and is found again by the edit the
//! other way or refused. The same bytes as the text of a model: blocks become calls or errors, and the
//! rest of the text stays.

use capsule_runtime::edit::{EditRequest, MatchTolerance, TextEncoding, blocks, edit};

pub(super) fn run(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        read(text);
    }
    let mut parts = bytes.splitn(3, |byte| *byte == 0x1f);
    let (Some(file), Some(search), Some(replace)) = (parts.next(), parts.next(), parts.next())
    else {
        return;
    };
    let (Ok(search), Ok(replace)) = (std::str::from_utf8(search), std::str::from_utf8(replace))
    else {
        return;
    };
    for count in [None, Some(1), Some(2)] {
        for path in ["a", "a.md", "a.py", "a.rs", "a.js", "a.sh", "a.yaml", "a.rb"] {
            made(file, &EditRequest { search, replace, count, path });
        }
    }
}

fn made(file: &[u8], request: &EditRequest<'_>) {
    let Ok(edited) = edit(file, request) else { return };
    assert_ne!(edited.bytes, file);
    let (before, after) = &edited.text;
    assert!(edited.line >= 1 && edited.line <= before.split(['\n', '\r']).count());
    let last = |text: &str| text.ends_with('\n');
    if edited.tolerance == MatchTolerance::Exact
        && request.count.is_none()
        && !request.search.contains(['\n', '\r'])
    {
        assert_eq!(before.matches(request.search).count(), 1);
        let (head, tail) = before.split_once(request.search).expect("it is there");
        assert!(after.starts_with(head));
        assert!(tail.is_empty() || after.ends_with(tail));
    }
    let is_blank = request.replace.trim().is_empty();
    assert!(after.is_empty() || is_blank || last(before) == last(after));
    if edited.encoding == TextEncoding::Utf8 {
        assert_eq!(std::str::from_utf8(&edited.bytes).ok(), Some(after.as_str()));
    }
}

fn read(text: &str) {
    let found = blocks::find_edits(text);
    assert!(found.rest.len() <= text.len());
    for call in found.calls.iter().flatten() {
        assert_eq!(call.tool, blocks::TOOL);
        let _ = capsule_runtime::describe(call.tool, &call.args, 0);
        for name in ["path", "search", "replace"] {
            let own = call.args[name].as_str().expect("it is a text");
            assert!(text.contains(own), "what is asked for stands in the text");
        }
    }
    if found.calls.is_empty() {
        assert_eq!(found.rest, text);
    }
}
