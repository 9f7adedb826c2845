//! Programs of `awk`: whether they run commands, write files or read others than those named
//! (awk(1), POSIX and gawk 5).

use alloc::string::String;
use alloc::vec::Vec;

use crate::programs::Effect;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A name or keyword.
    Name(String),
    /// A string.
    Text(String),
    /// A number or a regular expression.
    Value,
    /// Any other sign.
    Sign(char),
    /// The end of a statement.
    End,
}

/// What a program does besides printing.
pub(super) fn effects(text: &str) -> Vec<(Effect, &'static str)> {
    let Some(tokens) = tokens(text) else {
        return alloc::vec![(Effect::Unknown, "is a program that cannot be read here")];
    };
    let mut found = Vec::new();
    // Whether a statement that prints is open, and how many brackets are in it.
    let mut printing: Option<usize> = None;
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1);
        match token {
            Token::Name(name) => match name.as_str() {
                "system" => found.push((Effect::Starts, "runs a command by `system`")),
                // Behind it may stand the variable that takes the line.
                "getline" if [next, tokens.get(at + 2)].contains(&Some(&Token::Sign('<'))) => {
                    found.push((Effect::Opens, "reads files that its program names"));
                }
                "ARGV" | "ARGC" | "ENVIRON" => {
                    found.push((Effect::Opens, "reads what its words do not name"));
                }
                "print" | "printf" => printing = Some(0),
                _ => {}
            },
            Token::Sign('|') => found.push((Effect::Starts, "runs a command by a pipe")),
            Token::Sign('@') => found.push((Effect::Code, "loads or calls what it names by text")),
            Token::Sign('(' | '[') => printing = printing.map(|depth| depth + 1),
            Token::Sign(')' | ']') => printing = printing.and_then(|depth| depth.checked_sub(1)),
            Token::Sign('>') if printing == Some(0) => {
                found.push((Effect::Writes, "writes files that its program names"));
            }
            Token::End | Token::Sign('{' | '}') => printing = None,
            _ => {}
        }
    }
    found
}

/// The files that a program names in plain text, each with whether it is written.
pub(super) fn files(text: &str) -> Vec<(String, bool)> {
    let tokens = tokens(text).unwrap_or_default();
    let mut found = Vec::new();
    for pair in tokens.windows(2) {
        match pair {
            [Token::Sign('>'), Token::Text(path)] => found.push((path.clone(), true)),
            [Token::Sign('<'), Token::Text(path)] => found.push((path.clone(), false)),
            _ => {}
        }
    }
    // A comparison with a text looks the same; what is compared is seldom a path.
    found.retain(|(path, _)| path.contains('/') || path.contains('.'));
    found
}

/// The tokens of a program; none where it is not understood.
fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => {
                tokens.push(Token::Text(until(&mut letters, '"')?));
            }
            '/' if !divides(tokens.last()) => {
                expression(&mut letters)?;
                tokens.push(Token::Value);
            }
            '#' => while letters.next_if(|letter| *letter != '\n').is_some() {},
            '\n' | ';' => tokens.push(Token::End),
            '\\' => drop(letters.next_if_eq(&'\n')?),
            '|' if letters.next_if_eq(&'|').is_some() => tokens.push(Token::Sign('o')),
            '|' => {
                letters.next_if_eq(&'&');
                tokens.push(Token::Sign('|'));
            }
            '&' => drop(letters.next_if_eq(&'&').map(|_| tokens.push(Token::Sign('&')))?),
            '>' if letters.next_if_eq(&'=').is_some() => tokens.push(Token::Sign('g')),
            letter if letter.is_whitespace() => {}
            letter if letter.is_ascii_digit() || letter == '.' => {
                while letters.next_if(|own| own.is_ascii_alphanumeric() || *own == '.').is_some() {}
                tokens.push(Token::Value);
            }
            letter if letter.is_alphabetic() || letter == '_' => {
                let mut name = String::from(letter);
                while let Some(own) = letters.next_if(|own| own.is_alphanumeric() || *own == '_') {
                    name.push(own);
                }
                tokens.push(Token::Name(name));
            }
            letter => tokens.push(Token::Sign(letter)),
        }
    }
    Some(tokens)
}

/// Whether a slash behind this token divides; elsewhere it begins a regular expression.
fn divides(before: Option<&Token>) -> bool {
    match before {
        Some(Token::Value | Token::Text(_) | Token::Sign(')' | ']' | '$')) => true,
        Some(Token::Name(name)) => !matches!(
            name.as_str(),
            "print"
                | "printf"
                | "return"
                | "in"
                | "case"
                | "getline"
                | "do"
                | "else"
                | "exit"
                | "delete"
        ),
        _ => false,
    }
}

fn until(letters: &mut impl Iterator<Item = char>, end: char) -> Option<String> {
    let mut text = String::new();
    loop {
        match letters.next()? {
            '\\' => text.push(letters.next()?),
            '\n' => return None,
            letter if letter == end => return Some(text),
            letter => text.push(letter),
        }
    }
}

fn expression(letters: &mut impl Iterator<Item = char>) -> Option<()> {
    let mut class = 0_usize;
    loop {
        match letters.next()? {
            '\\' => drop(letters.next()?),
            '\n' => return None,
            '[' => class = 1,
            ']' if class > 1 => class = 0,
            '/' if class == 0 => return Some(()),
            _ if class > 0 => class += 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_only_print_do_nothing_else() {
        for text in [
            "{print $1}",
            "NR==1,NR==20",
            "$3 > 5 {print $1, $2}",
            "/a|b/ {n++} END {print n}",
            "{s+=$1} END{print s/NR}",
            "{printf \"%s | %s > %s\\n\", $1, $2, $3}",
            "!seen[$0]++",
            "NF > 3 && $1 ~ /^x/",
            "{print ($1 > 2) ? \"a\" : \"b\"}",
            "BEGIN{FS=\":\"} {print $NF}",
            "length($0) > 80 {print FILENAME\":\"FNR}",
            "{gsub(/[/]/,\"-\"); print}",
            "$1 == \"x\" || $2 == \"y\"",
            "while ((getline) > 0) n++",
            "{ print # a > b\n}",
            "$2/$3 > 1/2",
        ] {
            assert_eq!(effects(text), [], "{text}");
        }
    }

    #[test]
    fn what_runs_or_writes_is_told() {
        for (text, effect) in [
            ("BEGIN{system(\"id\")}", Effect::Starts),
            ("BEGIN { system (\"id\") }", Effect::Starts),
            ("{print | \"sh\"}", Effect::Starts),
            ("BEGIN{\"id\" | getline x}", Effect::Starts),
            ("{print |& \"x\"}", Effect::Starts),
            ("{print > \"out\"}", Effect::Writes),
            ("{print >> \"out\"}", Effect::Writes),
            ("{printf(\"%s\", $1) > $2}", Effect::Writes),
            ("{getline x < \"/etc/passwd\"}", Effect::Opens),
            ("BEGIN{while((getline l < f)>0) print l}", Effect::Opens),
            ("@load \"filefuncs\"\nBEGIN{}", Effect::Code),
            ("@include \"x\"", Effect::Code),
            ("BEGIN{f=\"system\"; @f(\"id\")}", Effect::Code),
            ("{print ENVIRON[\"HOME\"]}", Effect::Opens),
            ("{print $1 / 2; x = y / z; system(\"id\")}", Effect::Starts),
            ("{print \"unclosed}", Effect::Unknown),
            ("/x/ {print $1 > \"a\"}", Effect::Writes),
        ] {
            let found = effects(text);
            assert!(found.iter().any(|(own, _)| *own == effect), "{text}: {found:?}");
        }
    }
}
