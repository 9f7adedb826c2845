//! What holds for every edit, and the cases where a wrong place would be easy to take.

use proptest::prelude::*;

use super::*;

fn made(file: &str, search: &str, replace: &str, count: Option<u64>) -> Result<String, EditError> {
    let request = EditRequest { search, replace, count, path: "a" };
    edit(file.as_bytes(), &request).map(|edited| String::from_utf8(edited.bytes).unwrap())
}

#[test]
fn edits_are_made() {
    for (file, search, replace, new, how) in [
        ("a = 1\n", "1", "2", "a = 2\n", MatchTolerance::Exact),
        ("a $1\n", "$1", "$& \\0 \\n $$", "a $& \\0 \\n $$\n", MatchTolerance::Exact),
        ("a\r\nb\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\n", MatchTolerance::LineEnds),
        ("f(a,\r\n  b)\r\n", "(a,\n  b", "(\n  c", "f(\r\n  c)\r\n", MatchTolerance::LineEnds),
        ("a\r\nb\n", "b", "b\nc", "a\r\nb\nc\n", MatchTolerance::Exact),
        ("a\nb", "b\n", "c\n", "a\nc", MatchTolerance::LineEnds),
        ("a\nb", "b\n", "", "a", MatchTolerance::LineEnds),
        ("a\nb\n", "b\n", "c", "a\nc\n", MatchTolerance::Exact),
        ("a\nb", "b", "c\n", "a\nc", MatchTolerance::Exact),
        ("a \nb\n", "a\nb", "a\nc", "a\nc\n", MatchTolerance::TrailingSpace),
        ("a\nb\nc\n", "b\t\n", "", "a\nc\n", MatchTolerance::TrailingSpace),
        ("say “hi” – now\n", "say \"hi\" - now", "bye", "bye\n", MatchTolerance::Spelling),
        ("cafe\u{301}\n", "caf\u{e9}", "tea", "tea\n", MatchTolerance::Spelling),
        (
            "\tif a {\n\t\tb\n\t}\n",
            "    if a {\n        b\n",
            "    if a {\n        c\n            d\n",
            "\tif a {\n\t\tc\n\t\t\td\n\t}\n",
            MatchTolerance::Tabs,
        ),
        (
            "  if a:\n    b()\n",
            "if a:\n  b()",
            "if a:\n  c()\n\n  d()",
            "  if a:\n    c()\n\n    d()\n",
            MatchTolerance::Indentation,
        ),
        (
            "if a:\n        b()\n",
            "    b()\n",
            "    if c:\n        b()\n",
            "if a:\n        if c:\n            b()\n",
            MatchTolerance::Indentation,
        ),
        (
            "if a:\n        b()\n",
            "    b()",
            "    c()",
            "if a:\n        c()\n",
            MatchTolerance::Exact,
        ),
        (
            "if a:\n  b()\n",
            "    if a:\n      b()",
            "    if a:\n      c()",
            "if a:\n  c()\n",
            MatchTolerance::Indentation,
        ),
        (
            "\tfor x {\n\t\ty\n\t}\n",
            "for x {\n    y\n}",
            "for x {\n    if z {\n        y\n    }\n}",
            "\tfor x {\n\t\tif z {\n\t\t\ty\n\t\t}\n\t}\n",
            MatchTolerance::Indentation,
        ),
        ("a\n\n\nb\n", "a\n\nb", "a\n\nc", "a\n\nc\n", MatchTolerance::BlankLines),
        ("x\na\nb\ny\n", "\n\na\nb\n", "\n\na\nc\n", "x\na\nc\ny\n", MatchTolerance::BlankLines),
        (
            "def f(a, b):\n    pass\n",
            "def f(a,  b) :",
            "def g(a):",
            "def g(a):\n    pass\n",
            MatchTolerance::InnerSpace,
        ),
        ("x = {  'a': 1 }\n", "x = {'a' : 1}", "x = {}", "x = {}\n", MatchTolerance::InnerSpace),
        ("if a  b\n", "if a b", "if c", "if c\n", MatchTolerance::InnerSpace),
    ] {
        let request = EditRequest { search, replace, count: None, path: "a.py" };
        let edited = edit(file.as_bytes(), &request);
        let got = edited.map(|result| (String::from_utf8(result.bytes).unwrap(), result.tolerance));
        assert_eq!(got, Ok((new.to_owned(), how)), "{file:?} {search:?}");
    }
}

/// Places that overlap are as many as can be replaced, where only one choice of them is.
#[test]
fn overlapping_places_are_counted_as_they_are_replaced() {
    assert_eq!(made("aaaa\n", "aa", "b", Some(2)), Ok("bb\n".to_owned()));
    assert_eq!(made("abababa\n", "aba", "x", Some(2)), Ok("xbx\n".to_owned()));
    assert_eq!(made("----\n", "--", "=", Some(2)), Ok("==\n".to_owned()));
    // However many there are.
    let line = "a".repeat(100) + "\n";
    assert_eq!(made(&line, "aa", "b", Some(50)), Ok("b".repeat(50) + "\n"));
    let count = MatchCount { count: 99, lines: vec![1], has_more: false, overlaps: true };
    assert_eq!(made(&line, "aa", "b", None), Err(EditError::Ambiguous(count)));
    let long = "a".repeat(200_000);
    assert_eq!(made(&long, &"a".repeat(1_000), "b", Some(200)), Err(EditError::TooCostly));
}

#[test]
fn what_is_not_sure_is_refused() {
    let lines = |times, lines: &[usize]| MatchCount {
        count: times,
        lines: lines.to_vec(),
        ..MatchCount::default()
    };
    let overlapping = |times| MatchCount { overlaps: true, ..lines(times, &[1]) };
    for (file, search, replace, count, refusal) in [
        ("a\n", "", "b", None, EditError::Empty),
        ("a\n", "a", "a", None, EditError::NoChange),
        ("a\nb", "b", "b\n", None, EditError::NoChange),
        ("a\nb\na\n", "a", "c", None, EditError::Ambiguous(lines(2, &[1, 3]))),
        ("a\nb\na\n", "a", "c", Some(3), EditError::WrongCount(lines(2, &[1, 3]))),
        ("a\nb\na\n", "a", "c", Some(1), EditError::WrongCount(lines(2, &[1, 3]))),
        ("aaa\n", "aa", "b", None, EditError::Ambiguous(overlapping(2))),
        ("aaa\n", "aa", "b", Some(2), EditError::WrongCount(overlapping(2))),
        ("aaaa\n", "aa", "b", Some(3), EditError::WrongCount(overlapping(3))),
        ("a b a\nb\n", "a", "c", None, EditError::Ambiguous(lines(2, &[1]))),
        ("aaaaa\n", "aa", "b", Some(2), EditError::WrongCount(overlapping(4))),
        ("f(a, b)\nf(a,  b)\n", "f(a,b)", "g", None, EditError::Ambiguous(lines(2, &[1, 2]))),
        (
            "a\nb\n",
            "a\n",
            "c\n# ... rest of file\n",
            None,
            EditError::Omission("# ... rest of file".into()),
        ),
        // It is there as it is written, and within a line that is indented deeper.
        (
            "a:\n    b\n        b\n",
            "    b\n",
            "    c\n",
            None,
            EditError::Ambiguous(lines(2, &[2, 3])),
        ),
        // The change is the indentation, and that is off.
        (
            "a:\n  b\n  c\n",
            "    b\n    c\n",
            "    b\nc\n",
            None,
            EditError::UnknownIndentation { line: 2 },
        ),
        // Only one of the two stands alone on its line; nobody said that it is that one.
        ("xab\nab\n", "ab", "c", None, EditError::Ambiguous(lines(2, &[1, 2]))),
        (
            "  a:\n    b\n\ta:\n\t  b\n",
            "a:\n  b",
            "c",
            None,
            EditError::Ambiguous(lines(2, &[1, 3])),
        ),
        ("x:\n  a\ny:\n      a\n", "    a\n", "", None, EditError::Ambiguous(lines(2, &[2, 4]))),
        // Neither of the two is indented as it is searched for.
        (
            "a:\n  b\n\n      b\n",
            "    b\n",
            "    c\n",
            None,
            EditError::Ambiguous(lines(2, &[2, 4])),
        ),
        // The replacement cannot be moved as far to the left.
        ("a:\n  b\n", "    a:\n      b", "  c", None, EditError::UnknownIndentation { line: 1 }),
    ] {
        assert_eq!(made(file, search, replace, count), Err(refusal), "{file:?} {search:?}");
    }
    for (file, search) in [
        // Blanks in quotes count, and tabs.
        ("x = \"a  b\"\n", "x = \"a b\"\n"),
        ("a\tb\n", "a b\n"),
        // A line is whole or it is not there.
        ("return value\n", "    return val"),
        ("foo  \nbar baz\n", "foo\nbar"),
        // Its own indentation within the block is another program.
        ("if a:\n    b()\n    c()\n", "  if a:\n      b()\n  c()\n"),
        ("a\n", "\n\n\n"),
    ] {
        let got = made(file, search, "new", None);
        assert!(matches!(got, Err(EditError::NotFound { .. })), "{file:?} {search:?}: {got:?}");
    }
    // Two spaces at the end of a line may be a line break, where there are such.
    let request = EditRequest { search: "a\nb\n", replace: "new", count: None, path: "a.md" };
    assert!(matches!(edit(b"a  \nb\n", &request), Err(EditError::NotFound { .. })));
    assert_eq!(made("a  \nb\n", "a\nb\n", "new", None).as_deref(), Ok("new\n"));
    assert_eq!(made("a\nb\n", "a  \nb \n", "new", None).as_deref(), Ok("new\n"));
    let many = "a\n".repeat(60_000);
    let got = made(&many, &format!("{} a\nb", "a\n".repeat(20_000)), "c", None);
    assert_eq!(got, Err(EditError::TooCostly));
}

#[test]
fn counts_take_in_what_is_exact() {
    assert_eq!(made("a\nb\na\n", "a", "c", Some(2)), Ok("c\nb\nc\n".into()));
    assert_eq!(
        made("  x:\n  y\nx:\ny\n", "x:\ny", "z:\ny", Some(2)),
        Ok("  z:\n  y\nz:\ny\n".into())
    );
}

#[test]
fn encodings_are_kept() {
    let request = EditRequest { search: "b", replace: "é\nc", count: None, path: "a" };
    let wide = |text: &str| -> Vec<u8> {
        let units = text.encode_utf16().flat_map(u16::to_le_bytes);
        b"\xff\xfe".iter().copied().chain(units).collect()
    };
    for (file, new, encoding) in [
        (b"a\r\nb".to_vec(), "a\r\né\r\nc".as_bytes().to_vec(), TextEncoding::Utf8),
        (b"\xef\xbb\xbfb\n".to_vec(), "\u{feff}é\nc\n".as_bytes().to_vec(), TextEncoding::Utf8Bom),
        (b"\xe4\nb\n".to_vec(), b"\xe4\n\xe9\nc\n".to_vec(), TextEncoding::Latin1),
        (wide("a\r\nb\r\n"), wide("a\r\né\r\nc\r\n"), TextEncoding::Utf16Le),
    ] {
        let edited = edit(&file, &request).unwrap();
        assert_eq!((edited.bytes, edited.encoding), (new, encoding));
    }
    let euro = EditRequest { search: "b", replace: "€", count: None, path: "a" };
    assert_eq!(edit(b"\xe4b", &euro), Err(EditError::Encoding(TextEncoding::Latin1)));
    assert_eq!(edit(b"a\0b", &euro), Err(EditError::Binary));
}

/// Lines of a few kinds, so that they often meet.
fn texts() -> impl Strategy<Value = String> {
    let line = "[ \t]{0,4}[ab\"“éx:]{0,3}[ \t]{0,1}";
    let lines = prop::collection::vec((line, "\n|\r\n|\n\n"), 0..8);
    (lines, "[ab]{0,2}").prop_map(|(lines, last)| {
        lines.into_iter().map(|(line, end)| line + &end).collect::<String>() + &last
    })
}

fn paths() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a", "a.py", "a.rs", "a.js", "a.tsx", "a.sh", "a.yaml", "a.css", "a.md", "a.html", "a.rb",
        "a.php",
    ])
}

/// Signs that begin and end texts, comments and lines of text, with blanks between them.
fn mixed_lines() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "a", "b", " ", "  ", "\t", "\"", "'", "`", "\"\"\"", "${", "}", "{", "(", ")", "/*", "*/",
        "//", "#", "<<E", "E", "\\", "=", "+", "-", ",", ":", "<", ">", "|", "/", "r#\"", "\"#",
        "\n", "\n  ", "%q(", "<?", "?>", "<p>", "</p>", "[[", "]]", "$$",
    ]);
    prop::collection::vec(part, 1..24).prop_map(|parts| parts.concat() + "\n")
}

/// A text with the number of its blanks changed where it has some, and put beside some signs.
fn respaced(text: &str, choices: &[u8]) -> String {
    let mut choices = choices.iter().cycle();
    let mut out = String::new();
    for sign in text.chars() {
        match (sign, choices.next()) {
            (' ', Some(0)) => out.push_str("  "),
            (' ', Some(1)) => {}
            ('=' | ',' | '(' | ')' | ':' | '+', Some(2)) => out.extend([' ', sign]),
            ('=' | ',' | '(' | ')' | ':' | '+', Some(3)) => out.extend([sign, ' ']),
            _ => out.push(sign),
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// What is found by its blanks alone has the same tokens as what was searched for, and is all that is changed.
    #[test]
    fn a_place_that_is_found_has_the_same_tokens(lines in prop::collection::vec(mixed_lines(), 1..5), at in 0..4_usize, choices in prop::collection::vec(0..6_u8, 1..40), path in paths()) {
        let file = lines.concat();
        let line = lines[at % lines.len()].clone();
        let search = respaced(&line, &choices);
        let request = EditRequest { search: &search, replace: "new\n", count: None, path };
        let split = Lines::split(&file);
        let Ok((MatchTolerance::InnerSpace, found)) = find_matches(&file, &split, &request) else { return Ok(()) };
        let range = found[0].range.clone();
        let squeezed = |text: &str| text.replace([' ', '\t', '\n'], "");
        let matched = file.get(range.clone()).unwrap();
        prop_assert_eq!(squeezed(matched), squeezed(&search));
        let language = language::Language::of(&request.extension(), &file);
        let mut scanner = scanner::Scanner::new(&language);
        for before in file.get(..range.start).unwrap().lines() {
            let _ = spacing::read_form(&language, &mut scanner, before);
        }
        let mut other = scanner.clone();
        let wanted = search.lines().filter(|line| !line.trim().is_empty());
        let place = matched.lines().filter(|line| !line.trim().is_empty());
        for (one, two) in place.zip(wanted) {
            let indent = indent::split_indent(one).0;
            let two = format!("{indent}{}", two.trim_start());
            prop_assert_eq!(spacing::read_form(&language, &mut scanner, one), spacing::read_form(&language, &mut other, &two));
        }
        let Ok(made) = edit(file.as_bytes(), &request) else { return Ok(()) };
        let new = std::str::from_utf8(&made.bytes).unwrap();
        prop_assert_eq!(new.get(..range.start), file.get(..range.start));
        prop_assert!(new.ends_with(file.get(range.end..).unwrap()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// What is not replaced stays byte for byte, and what is replaced is as often there as expected.
    #[test]
    fn only_what_was_found_is_changed(file in texts(), search in texts(), replace in texts(), count in 1..3_u64, path in paths()) {
        let request = EditRequest { search: &search, replace: &replace, count: Some(count), path };
        if let Ok(edited) = edit(file.as_bytes(), &request) {
            let lines = Lines::split(&file);
            let (how, found) = find_matches(&file, &lines, &request).unwrap();
            prop_assert_eq!(how, edited.tolerance);
            prop_assert_eq!(found.len() as u64, count);
            prop_assert!(edited.bytes != file.as_bytes());
            let first = found.first().unwrap().range.start;
            let after = file.len() - found.last().unwrap().range.end;
            let new = std::str::from_utf8(&edited.bytes).unwrap();
            prop_assert_eq!(new.get(..first), file.get(..first));
            if after > 0 {
                prop_assert_eq!(new.get(new.len() - after..), file.get(file.len() - after..));
            }
            let ends = |text: &str| text.ends_with('\n');
            let gone = replace.trim().is_empty();
            prop_assert!(gone || after > 0 || ends(new) == ends(&file));
        }
    }

    /// What is there once, as it is written, is always found and put back by the edit the other way.
    #[test]
    fn an_exact_edit_can_be_taken_back(before in "[ab \t]{0,9}", after in "[ab \t]{0,9}") {
        let file = format!("{before}old{after}\n");
        let new = made(&file, "old", "new", None).unwrap();
        prop_assert_eq!(made(&new, "new", "old", None).unwrap(), file);
    }

    /// A block that is moved as a whole is found, and what replaces it is moved as far.
    #[test]
    fn a_moved_block_is_found(indents in prop::collection::vec(0..3_usize, 2..5), shift in 1..5_usize, deep in 0..3_usize) {
        let block = |base: usize, words: &str| -> String {
            let lines = indents.iter().zip(0..);
            lines.map(|(own, nth)| format!("{}{words}{nth}\n", " ".repeat(base + own * 2))).collect()
        };
        let file = format!("head\n{}tail\n", block(shift + deep, "old"));
        let got = made(&file, &block(deep, "old"), &block(deep, "new"), None);
        // Where all but the first line agree as they stand, the block is found as it is.
        prop_assert_eq!(got, Ok(format!("head\n{}tail\n", block(shift + deep, "new"))));
    }

    #[test]
    fn no_text_breaks_the_reader(text in "(<edit path=\"x\">|<search>|</search>|<replace>|</replace>|</edit>|<count>|<!\\[CDATA\\[|\\]\\]>|a|\n){0,12}") {
        let found = blocks::find_edits(&text);
        prop_assert!(found.rest.len() <= text.len());
    }
}
