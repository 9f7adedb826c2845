//! Programs of `awk`: whether they run commands, write files or read others than those named
//! (awk(1), POSIX, gawk 5, mawk 1.3, the one of BusyBox).
//!
//! A slash divides or begins a regular expression, and implementations do not agree which. So the text is
//! read in every way at once: what can be code in any of them counts as code, and only what is text,
//! comment or expression in all of them is left out.

use alloc::string::String;
use alloc::vec::Vec;

use crate::specs::Effect;
use crate::specs::embedded::words::AWK_KEYWORDS;

/// What a character may belong to, in all readings of the text before it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Readings(u16);

impl Readings {
    const NONE: Self = Self(0);
    const CODE: Self = Self(1);
    const TEXT: Self = Self(2);
    const REGEX: Self = Self(4);
    /// In a bracket of an expression: there, a slash ends the expression or does not.
    const CLASS: Self = Self(8);
    const COMMENT: Self = Self(16);
    /// Behind a backslash in each of them.
    const CODE_ESCAPED: Self = Self(32);
    const TEXT_ESCAPED: Self = Self(64);
    const REGEX_ESCAPED: Self = Self(128);
    const CLASS_ESCAPED: Self = Self(256);
    const COMMENT_ESCAPED: Self = Self(512);
    /// Where a bracket begins, and in one in which another was opened.
    const CLASS_BEGINS: Self = Self(1024);
    const CLASS_NESTS: Self = Self(2048);

    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// What the next character may belong to.
    fn behind(self, letter: char, slash: Slash) -> Self {
        let each = (0..12).map(|bit| Self(1 << bit)).filter(|one| self.has(*one));
        each.fold(Self::NONE, |all, one| all.and(one.one_behind(letter, slash)))
    }

    /// The same, where this one belongs to one thing.
    fn one_behind(self, letter: char, slash: Slash) -> Self {
        match (self, letter) {
            (Self::CODE, '"') => Self::TEXT,
            (Self::CODE, '#') => Self::COMMENT,
            (Self::CODE, '\\') => Self::CODE_ESCAPED,
            (Self::CODE, '/') => match slash {
                Slash::Divides => Self::CODE,
                Slash::Begins => Self::REGEX,
                Slash::Either => Self::CODE.and(Self::REGEX),
            },
            (Self::TEXT, '"') | (Self::REGEX, '/') | (Self::COMMENT, '\n') => Self::CODE,
            (Self::CLASS | Self::CLASS_BEGINS | Self::CLASS_NESTS, '/') => Self::CODE.and(self),
            (Self::CLASS_BEGINS | Self::CLASS_NESTS | Self::CLASS_ESCAPED, ']') => {
                Self::REGEX.and(Self::CLASS)
            }
            (Self::CLASS, ']') => Self::REGEX,
            (Self::CLASS, '[') => Self::CLASS_NESTS,
            (Self::REGEX, '[') | (Self::CLASS_BEGINS, '^') => Self::CLASS_BEGINS,
            (Self::TEXT, '\\') => Self::TEXT_ESCAPED,
            (Self::REGEX, '\\') => Self::REGEX_ESCAPED,
            (Self::CLASS | Self::CLASS_BEGINS | Self::CLASS_NESTS, '\\') => Self::CLASS_ESCAPED,
            // Some have a comment go on with its line.
            (Self::COMMENT, '\\') => Self::COMMENT.and(Self::COMMENT_ESCAPED),
            (Self::COMMENT_ESCAPED, '\n') => Self::COMMENT,
            // What does not end on its line is no program at all.
            (
                Self::TEXT | Self::REGEX | Self::CLASS | Self::CLASS_BEGINS | Self::CLASS_NESTS,
                '\n',
            )
            | (Self::COMMENT_ESCAPED, _) => Self::NONE,
            (Self::CLASS_BEGINS, _) => Self::CLASS,
            (Self::CODE_ESCAPED, _) => Self::CODE,
            (Self::TEXT_ESCAPED, _) => Self::TEXT,
            (Self::REGEX_ESCAPED, _) => Self::REGEX,
            (Self::CLASS_ESCAPED, _) => Self::CLASS,
            (same, _) => same,
        }
    }
}

/// What a slash in code is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slash {
    Divides,
    Begins,
    Either,
}

/// What is code in some reading.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Unit {
    Letter(char),
    /// A string.
    Text(String),
    /// The end of a regular expression.
    Regex,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A name, a keyword or a number.
    Name(String),
    /// A string.
    Text(String),
    /// A regular expression.
    Regex,
    /// Any other sign; `o` and `a` are those of "or" and "and".
    Symbol(char),
    /// The end of a line.
    Line,
}

/// What a program does besides printing.
pub(super) fn effects(text: &str) -> Vec<(Effect, &'static str)> {
    let Some((tokens, is_twofold)) = read(text) else {
        return alloc::vec![(Effect::Unknown, "is a program that cannot be read here")];
    };
    let mut found = Vec::new();
    let has =
        |name: &str| tokens.iter().any(|token| matches!(token, Token::Name(own) if own == name));
    let (prints, gets) = (has("print") || has("printf"), has("getline"));
    // Whether a statement that prints is open, and how many brackets are in it.
    let mut printing: Option<usize> = None;
    let mut before = &Token::Line;
    for token in &tokens {
        match token {
            Token::Name(name) => match name.as_str() {
                "system" => found.push((Effect::Starts, "runs a command by `system`")),
                "ARGV" | "ARGC" | "ENVIRON" | "SYMTAB" => {
                    found.push((Effect::Opens, "reads what its words do not name"));
                }
                "print" | "printf" => printing = Some(0),
                _ => {}
            },
            Token::Symbol('|') => found.push((Effect::Starts, "runs a command by a pipe")),
            Token::Symbol('@') => {
                found.push((Effect::Code, "loads or calls what it names by text"))
            }
            Token::Symbol('<') if gets => {
                found.push((Effect::Opens, "reads files that its program names"));
            }
            Token::Symbol('(' | '[') => printing = printing.map(|depth| depth + 1),
            Token::Symbol(')' | ']') => printing = printing.and_then(|depth| depth.checked_sub(1)),
            Token::Symbol('>') if printing == Some(0) => {
                found.push((Effect::Writes, "writes files that its program names"));
            }
            Token::Symbol('>') if prints && is_twofold => {
                found.push((Effect::Unknown, "compares or writes, which cannot be told here"));
            }
            // Behind these the line goes on.
            Token::Line if matches!(before, Token::Symbol(',' | 'o' | 'a' | '?' | ':')) => continue,
            Token::Line | Token::Symbol(';' | '{' | '}') => printing = None,
            _ => {}
        }
        before = token;
    }
    found
}

/// The files that a program names in plain text, each with whether it is written.
pub(super) fn files(text: &str) -> Vec<(String, bool)> {
    let tokens = read(text).map(|(tokens, _)| tokens).unwrap_or_default();
    let mut found = Vec::new();
    for pair in tokens.windows(2) {
        match pair {
            [Token::Symbol('>'), Token::Text(path)] => found.push((path.clone(), true)),
            [Token::Symbol('<'), Token::Text(path)] => found.push((path.clone(), false)),
            _ => {}
        }
    }
    // A comparison with a text looks the same; what is compared is seldom a path.
    found.retain(|(path, _)| path.contains('/') || path.contains('.'));
    found
}

/// What of a program is code in some reading, and whether more than one reading comes to an end; none
/// where no reading does.
fn read(text: &str) -> Option<(Vec<Token>, bool)> {
    let mut units: Vec<Unit> = Vec::new();
    let (mut now, mut is_twofold) = (Readings::CODE, false);
    for letter in text.chars() {
        let slash = if now == Readings::CODE { slash_behind(&units) } else { Slash::Either };
        let next = now.behind(letter, slash);
        let class = Readings::CLASS.and(Readings::CLASS_BEGINS).and(Readings::CLASS_NESTS);
        let ends = letter == '/' && now.has(Readings::REGEX.and(class));
        is_twofold |= ends && now != Readings::REGEX;
        // A line ends with its comment as well.
        let is_line = letter == '\n' && now.has(Readings::COMMENT);
        match letter {
            '\\' if !now.has(Readings::CODE_ESCAPED) => {}
            '"' if now.has(Readings::CODE) => units.push(Unit::Text(String::new())),
            '\n' if now.has(Readings::CODE_ESCAPED) => {}
            '#' if now == Readings::CODE => {}
            '/' if now == Readings::CODE && next == Readings::REGEX => {}
            letter if now.has(Readings::CODE.and(Readings::CODE_ESCAPED)) || is_line => {
                units.push(Unit::Letter(letter));
            }
            '/' if next.has(Readings::CODE) => units.push(Unit::Regex),
            _ => {}
        }
        let is_text = now.has(Readings::TEXT) && !matches!(letter, '"' | '\\');
        if is_text || now.has(Readings::TEXT_ESCAPED) {
            let last = units.iter_mut().rev().find_map(|unit| match unit {
                Unit::Text(text) => Some(text),
                _ => None,
            });
            last.into_iter().for_each(|text| text.push(letter));
        }
        now = next;
    }
    let ends = now.has(Readings::CODE.and(Readings::COMMENT));
    ends.then(|| (tokens(units), is_twofold))
}

/// What a slash is behind what is code in the only reading there is.
fn slash_behind(units: &[Unit]) -> Slash {
    let is_blank = |unit: &&Unit| !matches!(unit, Unit::Letter(' ' | '\t' | '\r'));
    let end = units.iter().rposition(|unit| is_blank(&unit)).map_or(0, |at| at + 1);
    let before = units.get(..end).unwrap_or_default();
    match before.last() {
        None
        | Some(Unit::Letter(
            '\n' | '(' | ',' | '{' | ';' | '~' | '!' | '&' | '|' | '=' | '?' | ':',
        )) => Slash::Begins,
        Some(Unit::Text(_) | Unit::Letter(']')) => Slash::Divides,
        Some(Unit::Letter(letter)) if is_of_name(*letter) => {
            let word = before.iter().rev().map_while(|unit| match unit {
                Unit::Letter(letter) if is_of_name(*letter) => Some(*letter),
                _ => None,
            });
            let word: Vec<char> = word.collect();
            let is_keyword =
                AWK_KEYWORDS.iter().any(|keyword| keyword.chars().rev().eq(word.iter().copied()));
            if is_keyword { Slash::Either } else { Slash::Divides }
        }
        _ => Slash::Either,
    }
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '.')
}

fn tokens(units: Vec<Unit>) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut units = units.into_iter().peekable();
    while let Some(unit) = units.next() {
        let letter = match unit {
            Unit::Letter(letter) => letter,
            Unit::Text(text) => {
                tokens.push(Token::Text(text));
                continue;
            }
            Unit::Regex => {
                tokens.push(Token::Regex);
                continue;
            }
        };
        let mut doubled = |other: char| units.next_if_eq(&Unit::Letter(other)).is_some();
        tokens.push(match letter {
            '\n' => Token::Line,
            '|' if doubled('|') => Token::Symbol('o'),
            '&' if doubled('&') => Token::Symbol('a'),
            '>' if doubled('=') => continue,
            letter if letter.is_whitespace() => continue,
            letter if is_of_name(letter) => {
                let mut name = String::from(letter);
                while let Some(Unit::Letter(c)) =
                    units.next_if(|unit| matches!(unit, Unit::Letter(own) if is_of_name(*own)))
                {
                    name.push(c);
                }
                Token::Name(name)
            }
            letter => Token::Symbol(letter),
        });
    }
    tokens
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
            "{print $1/2 \" > \" $2/3}",
            "/\"/ {n++} END {print n}",
            "{ x++ / 2; print x }",
            "(NR % 2) {print $1}",
            "{ print a[1]/2, \"a|b\" }",
            "BEGIN { while (i++ < 3) print i # it's > |\n}",
            "/[|>]/ {n++}",
            "/[[:alpha:]|]/ { if ($3 > 5) print $1 }",
            "{ sum += $1 } END { print sum / NR; print (sum > 3) }",
            "$1 ~ /system/ {print \"system(x)\"}",
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
            // A slash that divides for some and begins an expression for others.
            ("x++ / 1; system(\"id\"); y = 1 / 1", Effect::Starts),
            ("x-- / 1; print > \"a\"; y = 1 / 1", Effect::Writes),
            ("(x) / 1; system(\"id\"); y = 1 / 1", Effect::Starts),
            ("{ if (x) /\"/; system(\"id\") }", Effect::Starts),
            ("{ length / 1; system(\"id\"); y = 1 / 1 }", Effect::Starts),
            ("/[/] { system(\"id\") } /]/", Effect::Starts),
            ("{ print x++ /(/ 1 > \"out\" } /)/", Effect::Unknown),
            ("{ print 1,\n2 > \"out\" }", Effect::Writes),
            ("{ print 1 ||\n2 > \"out\" }", Effect::Writes),
            ("{ print 1, # more\n2 > \"out\" }", Effect::Writes),
            ("# c \\\n{ system(\"id\") }", Effect::Starts),
            ("{ pri\\\nnt > \"out\" }", Effect::Writes),
            ("{ system\\\n(\"id\") }", Effect::Starts),
            ("{ (getline line) < \"f\" }", Effect::Opens),
        ] {
            let found = effects(text);
            assert!(found.iter().any(|(own, _)| *own == effect), "{text}: {found:?}");
        }
    }
}
