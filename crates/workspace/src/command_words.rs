//! The words of a command line, or of options, among which there may be paths.
//!
//! A shell, git and other programs take such a text apart in different ways. It is read in all of them, and every
//! word counts that one of them may find: a word that names no path of a workspace costs nothing.

use std::collections::BTreeSet;

use capsule_base::limits;

/// How deep command lines are read that are words of others: `sh -c 'sh -c ...'`.
const DEPTH: usize = 4;
/// How many letters of options may stand before a value in the same word.
const LETTERS: usize = 8;
/// Behind how many signs of a word what is left of it counts as a whole.
const PARTS: usize = 64;
/// Programs that run what the words behind them name, and words of a shell before a command.
const RUNNERS: [&[u8]; 29] = [
    b"!", b".", b"ash", b"bash", b"command", b"dash", b"do", b"elif", b"else", b"env", b"eval",
    b"exec", b"if", b"ksh", b"nice", b"nohup", b"perl", b"python", b"python3", b"ruby", b"sh",
    b"source", b"sudo", b"then", b"time", b"until", b"while", b"xargs", b"zsh",
];
/// Up to how many values by default, and how many words behind unknown directories, are read of one text.
const READ: usize = 256;

/// The words and directories that a command line names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandWords {
    /// Words that may be paths, in their order; the first one is the program.
    pub words: Vec<Vec<u8>>,
    /// Directories of programs whose names cannot be read: `tools` of `sh tools/$x`.
    pub directories: Vec<Vec<u8>>,
}

impl CommandWords {
    /// Reads a text.
    pub(crate) fn read(text: &[u8]) -> Self {
        let mut reader = Reader::default();
        reader.split(text);
        reader.line(text, DEPTH);
        for word in reader.found.words.clone() {
            reader.parts(&word);
        }
        reader.found
    }
}

#[derive(Default)]
struct Reader {
    found: CommandWords,
    seen: BTreeSet<Vec<u8>>,
}

/// Whether a byte ends a word in some reading.
fn ends(byte: &u8) -> bool {
    byte.is_ascii_whitespace() || b"'\"`;|&()<>=$!".contains(byte)
}

fn is_name(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

impl Reader {
    fn note(&mut self, word: &[u8]) {
        let may_be_path = !word.is_empty() && word.len() <= limits::PATH_BYTES;
        if may_be_path && self.seen.insert(word.to_vec()) {
            self.found.words.push(word.to_vec());
        }
    }

    /// The words between all signs that end one somewhere, and the text as one path with spaces in it.
    fn split(&mut self, text: &[u8]) {
        text.split(ends).for_each(|word| self.note(word));
        behind(text).take(READ).for_each(|word| self.note(word));
        self.note(text);
    }

    /// The words as a shell reads them: without quotes and escapes, and with the values that variables have by
    /// default.
    fn line(&mut self, text: &[u8], depth: usize) {
        let mut line = Line { left: text.iter().rev().copied().collect(), ..Line::default() };
        line.read();
        for directory in line.directories {
            if !self.found.directories.contains(&directory) {
                self.found.directories.push(directory);
            }
        }
        for word in line.words {
            self.note(&word);
            if depth > 0 && word != text && word.iter().any(ends) {
                self.line(&word, depth - 1);
            }
        }
    }

    /// The parts of a word: values of options, also of such in one word with them, entries of lists, and what
    /// stands behind `@`.
    fn parts(&mut self, word: &[u8]) {
        let part = |byte: &u8| b"=:,@".contains(byte);
        for (at, _) in word.iter().enumerate().filter(|(_, byte)| part(byte)).take(PARTS) {
            // Also what has such a sign in its name.
            self.note(word.get(at + 1..).unwrap_or_default());
        }
        word.split(part).for_each(|part| self.note(part));
        let slash = word.iter().position(|byte| *byte == b'/').unwrap_or(word.len());
        if word.starts_with(b"-") && !word.starts_with(b"--") {
            (2..=LETTERS.min(slash)).for_each(|at| self.note(word.get(at..).unwrap_or_default()));
            self.note(word.get(slash..).unwrap_or_default());
        }
    }
}

/// The paths behind a directory that only a shell knows: `$TOP/x`, `${TOP}/x`, `$(top)/x`, `"$TOP"/x`.
fn behind(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = value.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    slashes.filter_map(move |(at, _)| {
        let before = value.get(..at)?;
        let name = before.iter().rev().take_while(|byte| is_name(byte)).count();
        let sign = before.len().checked_sub(name + 1).and_then(|at| before.get(at));
        let is_variable = name > 0 && sign == Some(&b'$');
        let is_closed = before.last().is_some_and(|last| b")}\"'`".contains(last));
        let rest = value.get(at + 1..).filter(|_| is_variable || is_closed)?;
        let most = rest.len().min(limits::PATH_BYTES);
        rest.get(..most)?.split(ends).next().filter(|part| !part.is_empty())
    })
}

/// A command line while a shell reads it.
#[derive(Default)]
struct Line {
    /// What is still to be read, last first.
    left: Vec<u8>,
    /// The word so far, if there is one.
    word: Vec<u8>,
    /// Whether the word has a part that is not known.
    is_cut: bool,
    /// The quote that is open.
    quote: Option<u8>,
    /// Whether a word that comes next is a program, or something that one runs.
    is_operand: bool,
    /// How many values by default were read.
    defaults: usize,
    words: Vec<Vec<u8>>,
    directories: Vec<Vec<u8>>,
}

impl Line {
    fn read(&mut self) {
        while let Some(byte) = self.left.pop() {
            match (self.quote, byte) {
                (Some(quote), byte) if byte == quote => self.quote = None,
                (Some(b'\''), byte) => self.word.push(byte),
                (_, b'\\') => match self.left.pop() {
                    Some(b'\n') | None => {}
                    Some(byte) => self.word.push(byte),
                },
                (_, b'$') => self.variable(),
                (_, b'`') => {
                    self.unknown();
                    self.end(true);
                }
                (Some(_), byte) => self.word.push(byte),
                (None, b'\'' | b'"') => self.quote = Some(byte),
                (None, b'{') if self.left.last().is_some_and(u8::is_ascii_whitespace) => {
                    self.end(true);
                }
                (None, b'*' | b'?' | b'[' | b'{') => self.unknown(),
                (None, b'\n' | b';' | b'|' | b'&' | b'(' | b')') => self.end(true),
                (None, byte) if byte.is_ascii_whitespace() || b"<>".contains(&byte) => {
                    self.end(false);
                }
                (None, byte) => self.word.push(byte),
            }
        }
        self.end(true);
    }

    /// A `$`: a value by default stands for the variable; all others are not known.
    fn variable(&mut self) {
        match self.left.last() {
            Some(b'{') => {}
            Some(b'(') => {
                self.unknown();
                // Read as a command line of its own, in quotes or not.
                self.quote = None;
                return;
            }
            Some(byte) if is_name(byte) || b"@*#?!-$".contains(byte) => {
                let name = self.left.iter().rev().take_while(|byte| is_name(byte)).count().max(1);
                self.left.truncate(self.left.len() - name);
                return self.unknown();
            }
            _ => return self.word.push(b'$'),
        }
        let mut depth = 0_usize;
        let mut inner = Vec::new();
        while let Some(byte) = self.left.pop() {
            inner.push(byte);
            depth = match byte {
                b'{' => depth + 1,
                b'}' => depth - 1,
                _ => depth,
            };
            if depth == 0 || inner.len() > limits::PATH_BYTES {
                break;
            }
        }
        let inner = inner.strip_prefix(b"{").unwrap_or(&inner);
        let inner = inner.strip_suffix(b"}").unwrap_or(inner);
        let name = inner.iter().take_while(|byte| is_name(byte)).count();
        let operator = inner.get(name..).unwrap_or_default();
        match operator.strip_prefix(b":").unwrap_or(operator) {
            [b'-' | b'=' | b'+', value @ ..] if name > 0 && self.defaults < READ => {
                self.defaults += 1;
                self.left.extend(value.iter().rev());
            }
            _ => self.unknown(),
        }
    }

    /// An unknown part follows: of the word before it, the directory is known.
    fn unknown(&mut self) {
        let slash = self.word.iter().rposition(|byte| *byte == b'/');
        let directory = slash.and_then(|at| self.word.get(..at)).unwrap_or_default();
        let directory =
            if self.is_cut { directory.strip_prefix(b"/").unwrap_or_default() } else { directory };
        if !self.is_operand && !directory.is_empty() {
            self.directories.push(directory.to_vec());
        }
        self.word.clear();
        self.is_cut = true;
    }

    /// A word ends, and with it perhaps the command.
    fn end(&mut self, with_command: bool) {
        let word = std::mem::take(&mut self.word);
        let is_cut = std::mem::take(&mut self.is_cut);
        let word = if is_cut { word.strip_prefix(b"/").unwrap_or_default().to_vec() } else { word };
        let name = word.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let runs_more = word.starts_with(b"-") || word.contains(&b'=') || RUNNERS.contains(&name);
        self.is_operand |= is_cut || !word.is_empty() && !runs_more;
        if !word.is_empty() {
            self.words.push(word);
        }
        if with_command {
            self.is_operand = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> CommandWords {
        CommandWords::read(text.as_bytes())
    }

    #[test]
    fn every_reading_of_a_word_is_found() {
        for (text, word) in [
            ("sh ./d", "./d"),
            ("tools\\/e", "tools/e"),
            ("to'ol's/\"e\"", "tools/e"),
            ("\"tools\"/e", "tools/e"),
            ("tools/a\\ b -x", "tools/a b"),
            ("'tools/a b'", "tools/a b"),
            ("tools/\\\ne", "tools/e"),
            ("${X:-tools/e}", "tools/e"),
            ("${X-tools/e} y", "tools/e"),
            ("${X:=tools}/e", "tools/e"),
            ("\"${X:+tools/$Y}\"/e ${A:-${B:-tools/f}}", "tools/f"),
            ("${X:-\"tools\"/e}", "tools/e"),
            ("$TOP/tools/e", "tools/e"),
            ("\"$(git top)\"/tools/e", "tools/e"),
            ("x `tools/e`", "tools/e"),
            ("sh -c 'sh -c \"to\\ols/e\"'", "tools/e"),
            ("ssh -F/abs/s", "/abs/s"),
            ("ssh -Ftools/s", "tools/s"),
            ("ssh -vqFtools/s", "tools/s"),
            ("x --rc=/abs/s", "/abs/s"),
            ("x -Wl,-rpath,tools/s", "tools/s"),
            ("-javaagent:/abs/s.jar=verbose", "/abs/s.jar"),
            ("cc @tools/args", "tools/args"),
            ("/none:/abs/s", "/abs/s"),
            ("-c alias.yy=!tools/e yy", "tools/e"),
            ("cat <tools/e", "tools/e"),
        ] {
            let words = read(text).words;
            assert!(words.iter().any(|own| own == word.as_bytes()), "{text}: {words:?}");
        }
    }

    #[test]
    fn directories_of_programs_that_cannot_be_read_are_found() {
        for (text, directories) in [
            ("sh tools/$x", vec!["tools"]),
            ("tools/deep/`x`.sh", vec!["tools/deep"]),
            ("env X=y sh -e \"$TOP\"/tools/$(uname)", vec!["tools"]),
            ("true && tools/*.sh", vec!["tools"]),
            ("f() { sh tools/$1; }; f", vec!["tools"]),
            ("sh -c 'tools/$1'", vec!["tools"]),
            // Files that a program is given are not run.
            ("fmt -i src/*.c src/$1", vec![]),
            ("sh $x", vec![]),
            ("log -- $1/x", vec![]),
        ] {
            let told = read(text).directories;
            let told: Vec<_> = told.iter().map(|told| String::from_utf8_lossy(told)).collect();
            assert_eq!(told, directories, "{text}");
        }
    }

    /// What is read is bounded, whatever a text is made of.
    #[test]
    fn a_long_text_is_read_in_time() {
        for part in ["${a:-", ",", "}/", "'\"", "$(", "-a=b/"] {
            let text = part.repeat(200_000 / part.len());
            let bytes: usize = read(&text).words.iter().map(Vec::len).sum();
            assert!(bytes < 10_000_000, "{part}: {bytes}");
        }
    }
}
