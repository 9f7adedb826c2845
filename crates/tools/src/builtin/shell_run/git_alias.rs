//! Names that the user gave to subcommands of git. The words of an alias are judged and run in its place.

use capsule_command::shell_syntax::{Script, ShellWord, WordPiece};
use capsule_workspace::GitAliases;

/// The program whose subcommands have such names.
const GIT: &str = "git";

/// Puts the words for an alias into a list of words.
pub(super) fn expand_argv(argv: Vec<&str>, aliases: &dyn Fn() -> GitAliases) -> Vec<String> {
    let mut words: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
    if let [GIT, arguments @ ..] = argv.as_slice()
        && let Some((at, with)) = aliases().expansion(arguments)
    {
        words.splice(at + 1..=at + 1, with);
    }
    words
}

/// Puts the words for aliases into a text of the command language.
pub(super) fn expand_script(script: &mut Script, aliases: &dyn Fn() -> GitAliases) {
    let stages = script.elements.iter_mut().flat_map(|element| &mut element.pipeline.stages);
    for stage in stages {
        // What is no plain text is no alias, and an option neither.
        let literal = |word: &ShellWord| word.literal().unwrap_or("--").to_owned();
        let words: Vec<String> = stage.words.iter().map(literal).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if let [GIT, arguments @ ..] = words.as_slice()
            && let Some((at, with)) = aliases().expansion(arguments)
        {
            let span = stage.words.get(at + 1).map(|word| word.span.clone()).unwrap_or_default();
            let word = |text| {
                let pieces = vec![WordPiece::Text(text)];
                ShellWord { pieces, span: span.clone(), ..ShellWord::default() }
            };
            stage.words.splice(at + 1..=at + 1, with.into_iter().map(word));
        }
    }
}
