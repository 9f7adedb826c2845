//! What is wrong with a text that is no YAML: for what the parser says, our words, and how to write it.

/// What the parser's message holds, what is wrong, and how to write it. The first row that fits counts.
const MESSAGES: &[(&str, &str, &str)] = &[
    (
        "simple key expect",
        "the line has no `: `, and keys with values are expected here",
        "write `KEY: VALUE`; indent the lines of a text behind `|` or `>` deeper than its key",
    ),
    (
        "mapping values are not allowed",
        "a `: ` is not expected here",
        "put a text that holds `: ` in quotes; give all keys of a map the same indentation",
    ),
    (
        "mapping keys are not allowed",
        "a `? ` is not expected here",
        "put a text that begins with `? ` in quotes",
    ),
    (
        "did not find expected key",
        "the line is indented otherwise than the keys beside it",
        "give all keys of a map the same indentation",
    ),
    (
        "did not find expected '-' indicator",
        "the line is neither an item of the list nor a key beside it",
        "begin each item with `- `, all in the same column",
    ),
    (
        "block sequence entries are not allowed",
        "an item of a list cannot begin here",
        "begin the list in the line below its key, each item with `- ` in the same column",
    ),
    (
        "plain scalar cannot start with '-'",
        "a `-` without a blank behind it begins no item",
        "write `- ITEM`, or put the text in quotes",
    ),
    (
        "invalid indentation in quoted scalar",
        "the quote is not closed",
        "end the text with the quote that it begins with",
    ),
    (
        "found unexpected end of stream",
        "the quote is not closed",
        "end the text with the quote that it begins with",
    ),
    (
        "document indicator",
        "the quote is not closed",
        "end the text with the quote that it begins with",
    ),
    (
        "invalid trailing content after",
        "something follows the closing quote",
        "put the whole text in one pair of quotes; in single quotes, `''` is one quote",
    ),
    (
        "unknown escape character",
        "a backslash with this letter means nothing in double quotes",
        "put the text in single quotes, in which a backslash is itself",
    ),
    (
        "did not find expected hexadecimal",
        "the number of a character is not complete",
        "put the text in single quotes, in which a backslash is itself",
    ),
    (
        "while parsing a flow sequence",
        "a list is not closed, or a comma is missing in it",
        "separate its items by commas, and close it with `]`",
    ),
    (
        "while parsing a flow mapping",
        "a map is not closed, or a comma is missing in it",
        "separate its keys by commas, and close it with `}`; put a text with a comma or a bracket in quotes",
    ),
    (
        "invalid indentation in flow construct",
        "a list or map in brackets is not closed",
        "close it with `]` or `}`, and indent each of its lines deeper than its key",
    ),
    ("misplaced bracket", "a bracket closes nothing here", "remove it, or put the text in quotes"),
    (
        "expected node content",
        "a value is missing here",
        "write a value, or remove the comma or the key",
    ),
    (
        "illegal placement of ':'",
        "a `:` is not expected here",
        "put a text that holds `:` in quotes",
    ),
    (
        "block scalar",
        "the text behind `|` or `>` is indented wrongly",
        "begin it in the next line, each line deeper than its key",
    ),
    ("unexpected character", "a backtick begins no text", "put the text in quotes"),
    (
        "unprintable",
        "a character that cannot be seen is here",
        "remove it, or write it in double quotes as `\\uXXXX`",
    ),
    (
        "expected <document start>",
        "the text goes on after its end",
        "indent the line as those before it, or remove it",
    ),
    ("unexpected eof", "the text ends too early", "close every quote and bracket"),
    (
        "invalid indentation",
        "the line is indented otherwise than those beside it",
        "give all keys of a map the same indentation",
    ),
];

/// What a message of the parser means, and how to write it.
pub(super) fn explain(message: &str) -> Option<(&'static str, &'static str)> {
    let row = MESSAGES.iter().find(|(part, ..)| message.contains(part))?;
    Some((row.1, row.2))
}

/// Whether the parser noticed it only behind the line that is meant.
pub(super) fn is_noticed_late(message: &str) -> bool {
    message.contains("simple key expect")
}
