//! Lines in place of text which was left out.
//!
//! Such a line is wholly a comment, wholly in brackets, or bare. Code that only begins with dots is honest, as a spread
//! is; so are quoted text, and a sentence that only goes on after dots.

/// What begins a comment, the longest first, and what ends it.
const COMMENTS: &[(&str, &str)] = &[
    ("<!--", "-->"),
    ("{/*", "*/}"),
    ("{{!--", "--}}"),
    ("/**", "*/"),
    ("/*", "*/"),
    ("(*", "*)"),
    ("{-", "-}"),
    ("<%#", "%>"),
    ("///", ""),
    ("//!", ""),
    ("//", ""),
    ("--", ""),
    ("##", ""),
    ("#", ""),
    (";;", ""),
    (";", ""),
    ("%", ""),
    ("* ", ""),
];
/// Brackets of which one pair may be around the words.
const BRACKETS: &[(char, char)] = &[('(', ')'), ('[', ']'), ('<', '>'), ('{', '}')];
/// The words that say what was left out: those that hardly say anything else behind dots, and those that may.
const STRONG: &[&str] =
    &["rest", "existing", "unchanged", "remaining", "remainder", "omitted", "unmodified"];
const WEAK: &[&str] = &["other", "others", "same", "previous"];
/// What they are about: the parts of a file.
const PARTS: &[&str] = &[
    "file",
    "files",
    "function",
    "functions",
    "method",
    "methods",
    "class",
    "classes",
    "code",
    "content",
    "contents",
    "implementation",
    "implementations",
    "import",
    "imports",
    "body",
    "logic",
    "line",
    "lines",
    "prop",
    "props",
    "property",
    "properties",
    "field",
    "fields",
    "item",
    "items",
    "entry",
    "entries",
    "test",
    "tests",
    "module",
    "script",
    "component",
    "components",
    "template",
    "page",
    "document",
    "text",
    "section",
    "sections",
    "block",
    "definition",
    "definitions",
    "declaration",
    "declarations",
    "setup",
    "config",
    "configuration",
    "program",
    "source",
    "handler",
    "handlers",
    "route",
    "routes",
    "helper",
    "helpers",
    "styles",
    "rules",
    "options",
    "settings",
    "variables",
    "constants",
    "types",
    "cases",
    "attributes",
    "elements",
    "markup",
    "columns",
    "rows",
    "keys",
    "values",
    "steps",
    "members",
    "statements",
    "struct",
    "docstring",
    "stuff",
];
/// The other words of such a line, but for those that join it to a sentence before.
const FILLERS: &[&str] = &[
    "of",
    "the",
    "this",
    "your",
    "my",
    "our",
    "all",
    "any",
    "as",
    "before",
    "above",
    "below",
    "is",
    "are",
    "be",
    "remain",
    "remains",
    "stay",
    "stays",
    "keep",
    "here",
    "for",
    "brevity",
    "with",
    "goes",
    "go",
    "in",
    "from",
    "original",
    "no",
    "changes",
    "continues",
    "unaltered",
    "exactly",
    "were",
    "was",
    "it",
    "they",
];

/// The first line of a new text in place of text which was left out, as in `// ... existing code ...`; none where each
/// such line is in the old text too. `extension` is that of the file: whether dots alone are code differs.
pub(super) fn find_omission<'t>(new: &'t str, old: &str, extension: &str) -> Option<&'t str> {
    let lines: Vec<&str> = new.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let neighbour =
        |at: Option<usize>| at.and_then(|at| lines.get(at)).copied().unwrap_or_default();
    let found = lines.iter().enumerate().find(|(at, line)| {
        let beside = (neighbour(at.checked_sub(1)), neighbour(Some(at + 1)));
        let left_out = match is_dots(line) {
            true => are_dots_left_out(beside, extension),
            false => is_omission(line, extension),
        };
        left_out && !old.lines().any(|known| known.trim() == **line)
    });
    found.map(|(_, line)| *line)
}

fn is_dots(line: &str) -> bool {
    matches!(line, "..." | "\u{2026}")
}

/// Whether dots alone on a line are in place of code. They are an expression in some languages, parameters in others,
/// and prose and data may say anything.
fn are_dots_left_out((before, after): (&str, &str), extension: &str) -> bool {
    const STATEMENT: &[&str] = &["py", "pyi", "pyx", "pyw", "pl", "pm", "raku", "yaml", "yml"];
    const PROSE: &[&str] = &["md", "markdown", "mdx", "rst", "adoc", "org", "tex", "ipynb"];
    const CODE: &[&str] = &[
        "c", "h", "cc", "cpp", "cxx", "hpp", "hh", "m", "mm", "java", "js", "jsx", "mjs", "cjs",
        "ts", "tsx", "rs", "go", "cs", "kt", "kts", "swift", "scala", "php", "rb", "dart", "lua",
        "sql", "css", "scss", "less", "sh", "bash", "zsh", "vue", "svelte", "html", "xml", "json",
        "toml", "zig", "proto", "tf", "ex", "exs", "hs",
    ];
    let is_parameter = before.ends_with([',', '(']) && (after.is_empty() || after.starts_with(')'));
    let is_code = CODE.contains(&extension)
        || [before, after].iter().any(|line| line.ends_with([';', '{', '}']));
    !is_parameter && !STATEMENT.contains(&extension) && !PROSE.contains(&extension) && is_code
}

/// Whether a line is nothing but words for what is left out.
fn is_omission(line: &str, extension: &str) -> bool {
    let is_list = matches!(extension, "md" | "markdown" | "mdx" | "txt" | "rst" | "adoc" | "org");
    let comment = COMMENTS.iter().find_map(|(open, close)| {
        let text = line.strip_prefix(open).filter(|_| !(is_list && *open == "* "))?;
        Some(text.strip_suffix(close).or_else(|| text.strip_suffix("*/")).unwrap_or(text).trim())
    });
    let text = comment.unwrap_or(line);
    let (inner, in_brackets) = strip_brackets(text);
    let marker = Marker::parse(inner);
    // Brackets may stand behind the dots, too.
    let (words, inner_brackets) = strip_brackets(marker.text);
    let words = split_words(words);
    let is_in_brackets = in_brackets || inner_brackets;
    match (marker.begins, marker.ends) {
        _ if words.is_empty() || words.len() > MOST_WORDS => false,
        (false, false) => is_omission_in_words(&words, comment.is_some(), is_in_brackets),
        _ if marker.is_spread => false,
        (begins, ends) if comment.is_some() || in_brackets => {
            let is_open = begins && (ends || words.len() <= 3 || leads_with(&words, STRONG));
            is_closed(&words)
                || is_open && leads_with(&words, &[STRONG, WEAK].concat())
                || starts_with_rest_of(&words)
        }
        // Bare text is taken for it only where every word says so.
        (begins, ends) => {
            let has = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
            begins
                && is_closed(&words)
                && (ends || has(PARTS) || has(&["unchanged", "omitted", "above", "before"]))
        }
    }
}

/// The most words of such a line.
const MOST_WORDS: usize = 12;

/// A text between dots.
struct Marker<'t> {
    text: &'t str,
    begins: bool,
    ends: bool,
    /// Whether the dots belong to an expression, as in `...rest,` or `...(a ? b : c)`.
    is_spread: bool,
}

impl<'t> Marker<'t> {
    fn parse(text: &'t str) -> Self {
        let is_dot = |sign: char| matches!(sign, '.' | '\u{2026}');
        let dots = |text: &str, rest: &str| {
            let dots = text.len() - rest.len();
            dots >= 3 && (dots < 6 || text.starts_with(is_dot) || text.ends_with(is_dot))
        };
        let after = text.trim_start_matches(is_dot);
        let begins = dots(text, after);
        let after = if begins { after } else { text };
        let before = after.trim_end_matches(is_dot);
        let ends = dots(after, before);
        let inner = if ends { before } else { after };
        let is_attached = begins && !inner.starts_with(char::is_whitespace);
        let has_blank = inner.trim().contains(char::is_whitespace);
        // Words of a sentence have blanks between them and nothing else; an expression has signs.
        let is_name = |sign: char| sign.is_alphanumeric() || "_ \t-'/()".contains(sign);
        let is_expression = !inner.trim().trim_end_matches('.').chars().all(is_name)
            || inner.starts_with(['(', '[', '{'])
            || inner.trim().strip_suffix(')').is_some_and(|head| !head.contains(' '))
            || !has_blank && !ends;
        Self { text: inner.trim(), begins, ends, is_spread: is_attached && is_expression }
    }
}

/// A text without the one pair of brackets that is around all of it.
fn strip_brackets(text: &str) -> (&str, bool) {
    let inner = BRACKETS.iter().find_map(|(open, close)| {
        let inner = text.strip_prefix(*open)?.strip_suffix(*close)?;
        (!inner.contains([*open, *close])).then_some(inner.trim())
    });
    (inner.unwrap_or(text), inner.is_some())
}

/// The words of a text, small; none where it has signs that no such line has.
fn split_words(text: &str) -> Vec<String> {
    if text.contains(['"', '`', '=', ';', '$', '@', '?', '{', '}']) || text.ends_with([':', ',']) {
        return Vec::new();
    }
    let words = text.split(|sign: char| !sign.is_alphanumeric() && sign != '_');
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// Whether the first word that is neither a filler nor a part of a file is one of these.
fn leads_with(words: &[String], known: &[&str]) -> bool {
    let is_lead = |word: &str| FILLERS.contains(&word) || PARTS.contains(&word);
    words
        .iter()
        .map(String::as_str)
        .find(|word| !is_lead(word))
        .is_some_and(|word| known.contains(&word))
}

/// Whether all words are those of such a line, one of them for what is left out.
fn is_closed(words: &[String]) -> bool {
    let mut says = false;
    words.iter().map(String::as_str).all(|word| {
        let says_it = STRONG.contains(&word) || WEAK.contains(&word) || word == "changes";
        says |= says_it;
        says_it || FILLERS.contains(&word) || PARTS.contains(&word) || word == "and"
    }) && says
}

fn starts_with_rest_of(words: &[String]) -> bool {
    let mut words =
        words.iter().map(String::as_str).skip_while(|word| matches!(*word, "the" | "keep"));
    matches!(words.next(), Some("rest" | "remainder")) && words.next() == Some("of")
}

/// Whether words without dots say it: `rest of the file`, `existing code remains the same`, `(unchanged)`. A sentence
/// such as `the rest is unchanged` may be about anything.
fn is_omission_in_words(words: &[String], is_comment: bool, is_in_brackets: bool) -> bool {
    let has = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    if !(is_comment || is_in_brackets && words.len() > 1) || !is_closed(words) {
        return false;
    }
    let names_part = has(PARTS) && has(&["rest", "remainder", "existing", "remaining", "omitted"]);
    let is_rest = starts_with_rest_of(words) && has(PARTS);
    let is_same = names_part && has(&["same", "unchanged", "here", "omitted", "unmodified"]);
    let is_named = matches!(words, [first, part] if matches!(&**first, "existing" | "remaining")
        && matches!(&**part, "code" | "file" | "implementation"));
    let is_short =
        matches!(words, [rest, unchanged] if *rest == "rest" && *unchanged == "unchanged");
    let is_annotation = is_in_brackets && has(&["unchanged", "omitted", "unmodified"]);
    is_rest || is_same || is_named || is_short || is_annotation
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACEHOLDERS: &[(&str, &str)] = &[
        ("py", "# ... rest of file"),
        ("js", "    // ... existing code ..."),
        ("c", "/* \u{2026} unchanged \u{2026} */"),
        ("html", "<!-- rest of the page ... -->"),
        ("js", "... remaining functions"),
        ("sql", "-- ... (same as before)"),
        ("jsx", "{/* ... other props ... */}"),
        ("ts", "// rest of the function remains the same"),
        ("py", "# (unchanged)"),
        ("txt", "[rest of file unchanged]"),
        ("js", "// ... (rest of the code stays the same)"),
        ("go", "// Rest of the file is unchanged"),
        ("rs", "// ... keep existing code ..."),
        ("py", "# ... (rest of the code stays the same)"),
        ("html", "<!-- ... remaining content ... -->"),
        ("sql", "-- ... other code ..."),
        ("c", "/* ... rest of the code unchanged ... */"),
        ("java", "// \u{2026} existing code \u{2026}"),
        ("js", "...existing code..."),
        ("txt", "... existing code ..."),
        ("js", "// ...rest of the component"),
        ("js", "// ...existing code..."),
        ("css", "/* ... existing styles ... */"),
        ("py", "# ... existing imports ..."),
        ("java", "// ... other methods ..."),
        ("java", "// ... remaining methods of UserService"),
        ("rb", "# ... rest of parse_config ..."),
        ("lua", "-- existing code here"),
        ("ts", "// (rest of the implementation remains unchanged)"),
        ("ts", "// existing code remains unchanged"),
        ("py", "# Code omitted for brevity"),
        ("py", "# ... code omitted for brevity ..."),
        ("java", "* ... rest of the class"),
        ("txt", "[... rest of the file ...]"),
        ("md", "<rest of the file unchanged>"),
        ("lisp", ";; ... rest of file"),
        ("tex", "% ... rest of the document unchanged"),
        ("c", "// ... no changes here ..."),
        ("c", "..."),
        ("rs", "\u{2026}"),
    ];

    const HONEST: &[(&str, &str)] = &[
        ("js", "...rest,"),
        ("js", "...rest"),
        ("jsx", "{...rest}"),
        ("js", "...existing,"),
        ("js", "...other"),
        ("js", "...state.previous,"),
        ("js", "...(same ? a : b),"),
        ("js", "...(other),"),
        ("js", "...remaining.map(f),"),
        ("js", "...existing[0],"),
        ("js", "...(await other()),"),
        ("js", "...rest(other)"),
        ("js", "// ...rest,"),
        ("js", "...(existing ?? {}),"),
        ("txt", "\"...the rest is silence\","),
        ("js", "\"... existing code ...\""),
        ("js", "'// ... existing code ...',"),
        ("md", "... and the other one said:"),
        ("md", "- ... and the rest"),
        ("py", "# ... and so on for other cases"),
        ("py", "print(\"loading the rest ...\")"),
        ("js", "f(...rest)"),
        ("js", "const { a, ...rest } = b;"),
        ("js", "// and so on ..."),
        ("js", "// the rest is unchanged"),
        ("js", "[...existing, next]"),
        ("md", "## Other"),
        ("py", "..."),
        ("pyi", "    ..."),
        ("py", "def f(): ..."),
        ("py", "def rest(self) -> int: ..."),
        ("md", "..."),
        ("yaml", "..."),
        ("c", "/* ... */"),
        ("js", "// waiting for other threads..."),
        ("go", "// existing connections are kept..."),
        ("c", "// same as above"),
        ("java", "// other methods"),
        ("cpp", "template <typename... Rest>"),
        ("go", "args ...string,"),
        ("rs", "..Default::default()"),
        ("js", "// Loads the rest of the data."),
        ("py", "# Remaining time in seconds."),
        ("ini", "[existing]"),
        ("md", "[unchanged]"),
        ("sh", "echo \"rest of the file unchanged\""),
        ("txt", "The rest of the file is unchanged."),
        ("html", "<rest>"),
        ("md", "* ... and the same again"),
    ];

    #[test]
    fn placeholders_are_seen() {
        for (extension, line) in PLACEHOLDERS {
            assert_eq!(find_omission(line, "", extension), Some(line.trim()), "{line}");
            let old = format!("a\n  {line}\nb");
            assert_eq!(find_omission(line, &old, extension), None, "{line}");
        }
    }

    #[test]
    fn honest_lines_are_none() {
        for (extension, line) in HONEST {
            assert_eq!(find_omission(line, "", extension), None, "{extension} {line}");
        }
    }

    /// Dots alone are judged by the file and by the lines beside them.
    #[test]
    fn dots_alone_are_code_in_some_languages() {
        for (extension, text, is_omission) in [
            ("c", "int B;\n...\n", true),
            ("txt", "int B;\n...\n", true),
            ("js", "function f() {\n  ...\n}\n", true),
            ("js", "const a = {\n  b: 1,\n  ...\n};\n", true),
            ("rs", "fn a() {}\n...\nfn b() {}\n", true),
            ("c", "int printf(const char *format,\n           ...\n);\n", false),
            ("c", "int f(\n    int a,\n    ...\n) {\n", false),
            ("py", "class A:\n    def f(self):\n        ...\n", false),
            ("pl", "sub f {\n    ...\n}\n", false),
            ("md", "```c\nint a;\n...\nint b;\n```\n", false),
            ("txt", "He waited.\n...\nNothing came.\n", false),
        ] {
            assert_eq!(find_omission(text, "", extension).is_some(), is_omission, "{text}");
        }
    }
}
