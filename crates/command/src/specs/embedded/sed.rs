//! Scripts of `sed`: what they write, read and run besides printing lines (sed(1), GNU sed 4.9).

use alloc::string::String;
use alloc::vec::Vec;
use core::iter::Peekable;
use core::str::Chars;

use crate::specs::Effect;

/// What a script does besides printing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SedScript {
    pub(super) effects: Vec<(Effect, &'static str)>,
    /// The files that it names, each with whether it writes it.
    pub(super) files: Vec<(String, bool)>,
}

type Letters<'t> = Peekable<Chars<'t>>;

/// Reads a script; none where it is not understood.
pub(super) fn parse(text: &str) -> Option<SedScript> {
    let mut letters = text.chars().peekable();
    let mut script = SedScript::default();
    let mut depth = 0_usize;
    loop {
        skip(&mut letters, |letter| letter.is_whitespace() || letter == ';');
        if letters.peek().is_none() {
            return (depth == 0).then_some(script);
        }
        skip_addresses(&mut letters)?;
        match letters.next()? {
            '{' => depth += 1,
            '}' => depth = depth.checked_sub(1)?,
            '#' => rest_of_line(&mut letters).clear(),
            'a' | 'i' | 'c' => skip_text(&mut letters),
            // Where a label ends is not the same everywhere, but for one that is a plain word.
            ':' | 'b' | 't' | 'T' => {
                skip(&mut letters, |letter| matches!(letter, ' ' | '\t'));
                skip(&mut letters, |letter| {
                    letter.is_ascii_alphanumeric() || "_-.".contains(letter)
                });
            }
            'r' | 'R' => script.files.push((read_file_name(&mut letters)?, false)),
            'w' | 'W' => add_write(&mut script, read_file_name(&mut letters)?),
            'e' => {
                rest_of_line(&mut letters).clear();
                script.effects.push((Effect::Starts, "runs a command of its script"));
            }
            's' => substitution(&mut letters, &mut script)?,
            'y' => {
                let end = letters.next()?;
                skip_part(&mut letters, end)?;
                skip_part(&mut letters, end)?;
            }
            'q' | 'Q' | 'l' | 'L' => {
                skip(&mut letters, |letter| letter == ' ' || letter.is_ascii_digit())
            }
            '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => {}
            _ => return None,
        }
        skip(&mut letters, |letter| letter == ' ' || letter == '\t');
        if !matches!(letters.peek(), None | Some(';' | '\n' | '}' | '#'))
            && !follows_brace(text, &letters)
        {
            return None;
        }
    }
}

/// Whether the letter before was a brace that opens, behind which a command may follow at once.
fn follows_brace(text: &str, letters: &Letters<'_>) -> bool {
    let rest: usize = letters.clone().map(char::len_utf8).sum();
    let before = text.get(..text.len() - rest).unwrap_or_default();
    before.trim_end_matches([' ', '\t']).ends_with('{')
}

fn add_write(script: &mut SedScript, file: String) {
    if !matches!(file.as_str(), "/dev/stdout" | "/dev/stderr") {
        script.effects.push((Effect::Writes, "writes a file that its script names"));
    }
    script.files.push((file, true));
}

fn skip(letters: &mut Letters<'_>, matches: impl Fn(char) -> bool) {
    while letters.next_if(|letter| matches(*letter)).is_some() {}
}

/// The rest of the line.
fn rest_of_line(letters: &mut Letters<'_>) -> String {
    let mut line = String::new();
    while let Some(letter) = letters.next_if(|letter| *letter != '\n') {
        line.push(letter);
    }
    line
}

fn read_file_name(letters: &mut Letters<'_>) -> Option<String> {
    let line = rest_of_line(letters);
    let name = line.trim();
    (!name.is_empty()).then(|| name.into())
}

/// The text of `a`, `i` and `c`: to the end of a line that does not end with a backslash of its own.
fn skip_text(letters: &mut Letters<'_>) {
    loop {
        let line = rest_of_line(letters);
        let goes_on = line.chars().rev().take_while(|letter| *letter == '\\').count() % 2 == 1;
        if !goes_on || letters.next().is_none() {
            return;
        }
    }
}

/// The addresses before a command.
fn skip_addresses(letters: &mut Letters<'_>) -> Option<()> {
    loop {
        match letters.peek()? {
            '/' => {
                letters.next();
                skip_part(letters, '/')?;
                skip(letters, |letter| matches!(letter, 'I' | 'M'));
            }
            '\\' => {
                letters.next();
                let end = letters.next()?;
                skip_part(letters, end)?;
                skip(letters, |letter| matches!(letter, 'I' | 'M'));
            }
            letter if letter.is_ascii_digit() => skip(letters, |letter| letter.is_ascii_digit()),
            '$' | ',' | '~' | '+' | '!' | ' ' | '\t' => drop(letters.next()),
            _ => return Some(()),
        }
    }
}

/// A part of a substitution or an address, up to what ends it.
fn skip_part(letters: &mut Letters<'_>, end: char) -> Option<()> {
    let mut class = false;
    loop {
        match letters.next()? {
            '\\' => drop(letters.next()?),
            '[' if !class && end != '[' => {
                class = true;
                // A bracket that comes first stands for itself.
                letters.next_if(|letter| *letter == '^');
                letters.next_if(|letter| *letter == ']');
            }
            ']' if class => class = false,
            letter if letter == end && !class => return Some(()),
            // An open bracket may be meant as itself: then the end counts where the line ends.
            '\n' if class => return None,
            _ => {}
        }
    }
}

/// The replacement of a substitution, in which brackets mean nothing.
fn skip_replacement(letters: &mut Letters<'_>, end: char) -> Option<()> {
    loop {
        match letters.next()? {
            '\\' => drop(letters.next()?),
            letter if letter == end => return Some(()),
            _ => {}
        }
    }
}

fn substitution(letters: &mut Letters<'_>, script: &mut SedScript) -> Option<()> {
    let end = letters.next().filter(|end| !matches!(end, '\n' | '\\'))?;
    skip_part(letters, end)?;
    skip_replacement(letters, end)?;
    loop {
        match letters.peek() {
            Some('g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9') => drop(letters.next()),
            Some('e') => {
                letters.next();
                script.effects.push((Effect::Starts, "runs what it has replaced as a command"));
            }
            Some('w') => {
                letters.next();
                add_write(script, read_file_name(letters)?);
            }
            _ => return Some(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_only_print_do_nothing_else() {
        for text in [
            "1,20p",
            "s/a/b/g",
            "s|/usr|/opt|",
            "/start/,/end/p",
            "$d",
            "5q",
            "s/[/]/x/",
            "/^#/d;/^$/d",
            "1!G;h;$!d",
            "s/\\//-/g",
            "y/abc/xyz/",
            "/x/{s/a/b/;p}",
            "/x/ {n;d}",
            "\\,a,p",
            "2,+3p",
            "0~4d",
            "a hello; w x",
            "s/e/w/",
            "s/.*\"\\(.*\\)\".*/\\1/p",
            ":a;N;$!ba;s/\\n/ /g",
            "=",
            "s/a/b/w /dev/stdout",
            "s/[]]/x/",
            "s/[^]/]/x/",
            "10,$p",
            "$!N",
            "/a/I,/b/p",
        ] {
            let script = parse(text).unwrap_or_else(|| panic!("{text} is not read"));
            assert_eq!(script.effects, [], "{text}");
        }
    }

    #[test]
    fn what_writes_reads_or_runs_is_told() {
        for (text, effect) in [
            ("w out", Effect::Writes),
            ("s/a/b/w out", Effect::Writes),
            ("s/a/b/gw out", Effect::Writes),
            ("1e id", Effect::Starts),
            ("e", Effect::Starts),
            ("s/a/id/e", Effect::Starts),
            ("s/a/id/ge", Effect::Starts),
            ("/x/{p;e id\n}", Effect::Starts),
            ("p;p;1,3e", Effect::Starts),
            ("s;a;b;;e", Effect::Starts),
            ("$!{e id\n}", Effect::Starts),
            ("s/[/]/x/e", Effect::Starts),
            ("y/a/b/;e", Effect::Starts),
            ("b\ne id", Effect::Starts),
            ("#n\ne id", Effect::Starts),
            ("a x\\\\\ne id", Effect::Starts),
            ("a\\\nx\ne id", Effect::Starts),
            ("s\u{1}a\u{1}id\u{1}e", Effect::Starts),
        ] {
            let script = parse(text).unwrap_or_else(|| panic!("{text} is not read"));
            assert!(script.effects.iter().any(|(own, _)| *own == effect), "{text}: {script:?}");
        }
        assert_eq!(parse("r /etc/passwd").unwrap().files, [("/etc/passwd".into(), false)]);
    }

    #[test]
    fn what_is_not_a_script_is_not_read() {
        for text in
            ["s/a", "k", "p x", "{p", "}", "s/a/b/ e", "y/a/b", "s/a/b/k", "ba/a/ 1,$w x", ":a b"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
