//! The page of the command language: what is accepted, and what is refused with what to do instead.

use capsule_base::limits;
use capsule_command::shell_syntax::{
    GRAMMAR, RESERVED_COMMANDS, SHELL_VARIABLES, UnsupportedSyntax,
};

use crate::docs::markdown;

const ABOUT: &str = "Where a policy says `form: command`, `shell.run` takes a text instead of a list \
of words. No shell reads it: it is parsed, every program in it is judged, and then each is started \
with its words. What is accepted means what it means to a POSIX shell and to bash; braces and \
here-strings mean what they mean to bash, and `**/` what it means to zsh, fish, and bash with `globstar`. What could mean something else, or depends on more than the \
text, is refused with the code `exec.not-in-language`, and nothing of the text runs. Line ends in the \
examples are shown as `⏎` and tabs as `⇥`, other characters that cannot be seen by their numbers.";

/// The page.
pub(super) fn page() -> String {
    let mut text = markdown::head("The command language", ABOUT);
    text.push_str("\n## What is accepted\n\n");
    let forms = GRAMMAR.iter().map(|rule| {
        vec![markdown::code(rule.syntax), rule.meaning.to_owned(), example(rule.example)]
    });
    text.push_str(&markdown::table(&["form", "meaning", "example"], forms));
    text.push_str(DETAILS);
    text.push_str("\n## What is refused\n\n");
    let constructs = UnsupportedSyntax::ALL.iter().map(|syntax| {
        let (message, suggestion) = (syntax.message(), syntax.suggestion());
        let cells = [markdown::code(syntax.slug()), message.to_owned(), suggestion.to_owned()];
        cells.into_iter().chain([example(syntax.refused()), example(syntax.instead())]).collect()
    });
    let columns = ["construct", "what", "instead", "refused", "accepted"];
    text.push_str(&markdown::table(&columns, constructs));
    text.push_str("\n## First words that are refused\n\n");
    let words = RESERVED_COMMANDS.iter().map(|(words, _, instead)| {
        let words: Vec<String> = words.iter().map(|word| markdown::code(word)).collect();
        vec![words.join(", "), (*instead).to_owned()]
    });
    text.push_str(&markdown::table(&["word", "instead"], words));
    let owned: Vec<String> = SHELL_VARIABLES.iter().map(|name| markdown::code(name)).collect();
    text.push_str(&format!(
        "\nA shell sets these variables itself, so they cannot be put before a command: {}, and all that \
         begin with `BASH_`.\n",
        owned.join(", ")
    ));
    text.push_str("\n## Limits\n\n");
    text.push_str(&markdown::table(&["of", "at most"], limit_rows()));
    text
}

/// What a table cannot say.
const DETAILS: &str = "
Quotes, wildcards and braces are read as bash reads them, with these borders:

- `$` is text where nothing follows that it would replace: `'a$'`, `\"a$|b\"`, `a$`.
- `{}`, `HEAD@{1}` and other braces without a comma or a range are text.
- Ranges in `[..]` go from one digit, small letter or capital letter to another of the same kind, and \
count by the numbers of the characters whatever the language of the machine. `?` is one character.
- A pattern never matches `/`, but for `**/`, and names that begin with a dot only where the dot is written. \
A match that begins with `-` becomes `./-`. A pattern that matches nothing stands for itself, as in a shell. \
A name stands once among those that a pattern with more than one `**/` stands for.
- Characters that cannot be seen are refused, and so are carriage returns; `$'\\r'` makes one. Spaces other than the plain \
one, and the joiners that some scripts and emoji are written with, may stand in quotes and here-documents.
- `echo`, `printf`, `test`, `[`, `true`, `false`, `pwd`, `kill` and `:` are programs here.
";

/// An example in one cell.
fn example(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let shown = text.replace('\t', "⇥").replace('\n', "⏎");
    let shown = capsule_base::escape::line(&shown).replace('\u{a0}', "⟨U+00A0⟩");
    if shown.contains('`') { format!("`` {shown} ``") } else { markdown::code(&shown) }
}

fn limit_rows() -> impl Iterator<Item = Vec<String>> {
    [
        ("bytes of a text", limits::COMMAND_BYTES),
        ("pipelines of a text", limits::COMMAND_ELEMENTS),
        ("stages of a pipeline", limits::PIPELINE_STAGES),
        ("words of a text", limits::ARGV_WORDS),
        ("bytes of all words", limits::ARGV_BYTES),
        ("words that one brace makes", limits::BRACE_WORDS),
        ("levels of braces", limits::BRACE_DEPTH),
        ("redirections of a program", limits::STAGE_REDIRECTS),
        ("variables of a program", limits::STAGE_VARIABLES),
        ("bytes of a here-document", limits::STDIN_BYTES),
    ]
    .into_iter()
    .map(|(of, most)| vec![of.to_owned(), most.to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_construct_has_a_row() {
        let page = page();
        for construct in UnsupportedSyntax::ALL {
            let message = construct.message().replace('|', "\\|");
            let row = format!("| `{}` | {message} |", construct.slug());
            assert!(page.contains(&row), "{row}");
        }
        assert!(!page.chars().any(|c| c != '\n' && capsule_base::escape::is_hostile(c)));
    }

    #[test]
    fn an_example_stays_in_its_cell() {
        assert_eq!(example("a\nb\u{a0}"), "`a⏎b⟨U+00A0⟩`");
        assert_eq!(example("a `b`"), "`` a `b` ``");
    }
}
