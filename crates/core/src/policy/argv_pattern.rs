//! The patterns of a policy for command lines.

use alloc::string::String;
use alloc::vec::Vec;

use regex::bytes::Regex;

use crate::policy::source_location::SourceLocation;
use capsule_command::specs::{CommandLine, CommandSpec};

/// One word, or many.
#[derive(Clone, Debug)]
pub enum TokenMatcher {
    /// This word.
    Exact(String),
    /// The words that this expression matches as a whole.
    Regex(Regex),
}

impl TokenMatcher {
    /// Whether it is this word.
    #[must_use]
    pub fn matches(&self, word: &str) -> bool {
        match self {
            Self::Exact(text) => text == word,
            Self::Regex(regex) => regex.is_match(word.as_bytes()),
        }
    }
}

/// A pattern for command lines: the program, the words that follow it, and the options that must be
/// among the rest.
#[derive(Clone, Debug)]
pub struct ArgvPattern {
    /// Where it stands.
    pub source: SourceLocation,
    /// The words from the program on.
    pub arguments: Vec<ArgumentPattern>,
    /// Options that must be there.
    pub flags: Vec<String>,
}

/// A pattern for one word.
#[derive(Clone, Debug)]
pub enum ArgumentPattern {
    /// One of these.
    Any(Vec<TokenMatcher>),
    /// `...`: any words, or none.
    Gap,
}

impl ArgumentPattern {
    fn matches(&self, word: &str) -> bool {
        match self {
            Self::Any(tokens) => tokens.iter().any(|token| token.matches(word)),
            Self::Gap => true,
        }
    }
}

impl ArgvPattern {
    /// Whether a command line is one of those meant. Its program goes by any of its names, and each
    /// reading counts. Where it is not known whether an option takes the next word, both do.
    #[must_use]
    pub fn matches(&self, line: &CommandLine<'_>) -> bool {
        let Some((program, words)) = self.arguments.split_first() else { return false };
        if !line.names.iter().any(|name| program.matches(name)) {
            return false;
        }
        let arguments = line.argv.get(1..).unwrap_or_default();
        line.interpretations.iter().any(|(knowledge, reading)| {
            let flags = || reading.levels.iter().flat_map(|level| &level.flags);
            self.flags.iter().all(|wanted| flags().any(|flag| flag.could_be(wanted)))
                && match_arguments(words, arguments, *knowledge)
        })
    }
}

/// Matches the words behind the program, stepping over options.
fn match_arguments(
    pattern: &[ArgumentPattern],
    words: &[String],
    knowledge: Option<&CommandSpec>,
) -> bool {
    // One entry for each place in the pattern that is reached before the next word.
    let mut reached = alloc::vec![false; pattern.len() + 1];
    let mark = |reached: &mut Vec<bool>, mut at: usize| loop {
        if let Some(slot) = reached.get_mut(at) {
            *slot = true;
        }
        match pattern.get(at) {
            Some(ArgumentPattern::Gap) => at += 1,
            _ => break,
        }
    };
    mark(&mut reached, 0);
    let complete = |reached: &[bool]| reached.last().copied().unwrap_or(false);
    // Whether the word before was an option that may take this one as its value.
    let mut maybe_value = false;
    for word in words {
        if complete(&reached) {
            return true;
        }
        let is_option = word.len() > 1 && word.starts_with('-');
        // Either reading of an option's value keeps the places reached so far.
        let keep = is_option || maybe_value;
        let mut next = if keep { reached.clone() } else { alloc::vec![false; reached.len()] };
        for (at, expected) in pattern.iter().enumerate() {
            if !reached.get(at).copied().unwrap_or(false) {
                continue;
            }
            match expected {
                ArgumentPattern::Gap => mark(&mut next, at),
                ArgumentPattern::Any(_) if expected.matches(word) => mark(&mut next, at + 1),
                ArgumentPattern::Any(_) => {}
            }
        }
        maybe_value = is_option && !word.contains('=') && takes_value(word, knowledge);
        reached = next;
    }
    complete(&reached)
}

/// Whether an option may take the next word; without knowledge, any may.
fn takes_value(option: &str, knowledge: Option<&CommandSpec>) -> bool {
    match knowledge.and_then(|command| command.option(option)) {
        Some(known) => known.value.is_some() && !known.attached,
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn pattern(text: &str) -> ArgvPattern {
        let (flags, words): (Vec<&str>, Vec<&str>) =
            text.split(' ').partition(|word| word.starts_with('-'));
        let words = words
            .into_iter()
            .map(|word| match word {
                "..." => ArgumentPattern::Gap,
                _ => ArgumentPattern::Any(
                    word.split('|').map(|w| TokenMatcher::Exact(w.into())).collect(),
                ),
            })
            .collect();
        let flags = flags.iter().map(ToString::to_string).collect();
        ArgvPattern { source: SourceLocation::default(), arguments: words, flags }
    }

    fn check(text: &str, line: &str, expected: bool) {
        let argv: Vec<String> = line.split(' ').map(String::from).collect();
        let got = pattern(text).matches(&CommandLine::parse(&argv, None, false));
        assert_eq!(got, expected, "{text} on {line}");
    }

    #[test]
    fn words_match_behind_any_options() {
        for (text, line, expected) in [
            ("git push", "git push origin main", true),
            ("git push", "git -c a=b push", true),
            ("git push", "git --git-dir x push", true),
            ("git push", "git --unknown x push", true),
            ("git push", "git log push", false),
            ("git push", "git log", false),
            ("git remote add|set-url", "git remote add x y", true),
            ("git remote add|set-url", "git remote -v", false),
            ("npm|cargo publish|push", "cargo publish", true),
            ("npm|cargo publish|push", "cargo +nightly publish", false),
            ("sh|bash", "bash -c id", true),
            ("env ... sh|bash", "env -i A=b sh -c id", true),
            ("env ... sh|bash", "env ls", false),
            ("rm -r", "rm -rf x", true),
            ("rm -r", "rm x", false),
        ] {
            check(text, line, expected);
        }
    }
}
