//! The configuration of a repository, as far as it names files that git takes orders from.
//!
//! It is read as git reads it: sections, subsections, keys, values with quotes, escapes and comments, and
//! lines that go on. What git would refuse is refused here.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// What an entry of a configuration names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// A folder of hooks.
    Hooks(Vec<u8>),
    /// More configuration, as a path from where this one lies.
    Config(Vec<u8>),
    /// A file of attributes, by which files get drivers.
    Attributes(Vec<u8>),
    /// A working tree, as a path from the repository.
    Worktree(Vec<u8>),
    /// A command, or anything else that could be one: the key and the words that could name files.
    Command(String, Vec<Vec<u8>>),
}

/// A text that git would not read either, and the line where it breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Counted from one.
    pub line: usize,
}

/// Sections that hold names, addresses and looks, and nothing that is run.
const SECTIONS: &[&str] = &[
    "advice",
    "author",
    "branch",
    "color",
    "column",
    "committer",
    "i18n",
    "submodule",
    "url",
    "user",
];
/// Other keys that name data, or addresses. What is not known to be data could be an order.
const DATA: &[&str] = &[
    "blame.ignorerevsfile",
    "commit.template",
    "core.excludesfile",
    "diff.orderfile",
    "format.signaturefile",
    "mailmap.file",
    "remote.fetch",
    "remote.push",
    "remote.pushurl",
    "remote.url",
];

/// One setting of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The section, in small letters.
    pub section: String,
    /// The key, in small letters.
    pub key: String,
    /// The value; none where the key stands alone.
    pub value: Option<Vec<u8>>,
}

impl Setting {
    /// Whether it is the one of a section and a key, both in small letters.
    #[must_use]
    pub fn is(&self, section: &str, key: &str) -> bool {
        self.section == section && self.key == key
    }
}

/// What a configuration names.
///
/// # Errors
/// [`Broken`] where git would not read it.
pub fn read(text: &[u8]) -> Result<Vec<Named>, Broken> {
    let settings = settings(text)?.into_iter();
    Ok(settings.filter_map(|own| named(&own.section, &own.key, own.value?)).collect())
}

/// The settings of a configuration, in their order.
///
/// # Errors
/// [`Broken`] where git would not read it.
pub fn settings(text: &[u8]) -> Result<Vec<Setting>, Broken> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut reader = Reader { text, at: 0, line: 1 };
    let (mut section, mut all) = (String::new(), Vec::new());
    while let Some(byte) = reader.next() {
        match byte {
            b'#' | b';' => reader.comment(),
            b'[' => section = reader.section()?,
            byte if is_space(byte) => {}
            byte if byte.is_ascii_alphabetic() && !section.is_empty() => {
                let (key, value) = reader.entry(byte)?;
                all.push(Setting { section: section.clone(), key, value });
            }
            _ => return Err(reader.broken()),
        }
    }
    Ok(all)
}

fn named(section: &str, key: &str, value: Vec<u8>) -> Option<Named> {
    let whole = format!("{section}.{key}");
    let path = || value.strip_prefix(b":(optional)").unwrap_or(&value).to_vec();
    Some(match whole.as_str() {
        "core.hookspath" => Named::Hooks(path()),
        "include.path" | "includeif.path" => Named::Config(path()),
        "core.attributesfile" => Named::Attributes(path()),
        "core.worktree" => Named::Worktree(path()),
        known if SECTIONS.contains(&section) || DATA.contains(&known) => return None,
        _ => Named::Command(whole, words(&value)),
    })
}

/// The words of a value that a shell may be given. More than a shell would see: what stands in quotes is
/// taken apart, too.
fn words(value: &[u8]) -> Vec<Vec<u8>> {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"'\"`;|&()<>=$!".contains(byte);
    let words = value.split(ends).filter(|word| !word.is_empty()).map(<[u8]>::to_vec);
    // As one, and as a path with spaces in it.
    let whole = core::iter::once(value.to_vec()).filter(|own| own.iter().any(ends));
    words.chain(whole).collect()
}

/// What git takes for space between things. A form feed is none: it is part of a value.
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    line: usize,
}

impl Reader<'_> {
    /// The next byte; the end of a line is one, however it is written.
    fn next(&mut self) -> Option<u8> {
        let byte = *self.text.get(self.at)?;
        self.at += 1;
        if byte == b'\r' && self.text.get(self.at) == Some(&b'\n') {
            return self.next();
        }
        self.line += usize::from(byte == b'\n');
        Some(byte)
    }

    /// The next byte, or the end of a line at the end of the text.
    fn go_on(&mut self) -> u8 {
        self.next().unwrap_or(b'\n')
    }

    const fn broken(&self) -> Broken {
        Broken { line: self.line }
    }

    fn comment(&mut self) {
        while self.go_on() != b'\n' {}
    }

    /// The name of a section. What its subsection is called says nothing about what its keys mean.
    fn section(&mut self) -> Result<String, Broken> {
        let mut name = String::new();
        loop {
            match self.go_on() {
                b']' => break,
                b' ' | b'\t' => {
                    self.subsection()?;
                    break;
                }
                byte if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.') => {
                    name.push(char::from(byte.to_ascii_lowercase()));
                }
                _ => return Err(self.broken()),
            }
        }
        let name = name.split('.').next().unwrap_or_default();
        if name.is_empty() { Err(self.broken()) } else { Ok(name.into()) }
    }

    fn subsection(&mut self) -> Result<(), Broken> {
        let mut byte = self.go_on();
        while matches!(byte, b' ' | b'\t') {
            byte = self.go_on();
        }
        if byte != b'"' {
            return Err(self.broken());
        }
        loop {
            match self.go_on() {
                b'"' => break,
                b'\\' if self.go_on() != b'\n' => {}
                b'\n' | b'\\' => return Err(self.broken()),
                _ => {}
            }
        }
        if self.go_on() == b']' { Ok(()) } else { Err(self.broken()) }
    }

    /// A key, and its value if it has one.
    fn entry(&mut self, first: u8) -> Result<(String, Option<Vec<u8>>), Broken> {
        let mut key = String::from(char::from(first.to_ascii_lowercase()));
        let mut byte = self.go_on();
        while byte.is_ascii_alphanumeric() || byte == b'-' {
            key.push(char::from(byte.to_ascii_lowercase()));
            byte = self.go_on();
        }
        while matches!(byte, b' ' | b'\t') {
            byte = self.go_on();
        }
        match byte {
            b'\n' => Ok((key, None)),
            b'=' => Ok((key, Some(self.value()?))),
            _ => Err(self.broken()),
        }
    }

    fn value(&mut self) -> Result<Vec<u8>, Broken> {
        let (mut value, mut quoted, mut kept) = (Vec::new(), false, 0);
        loop {
            match self.go_on() {
                b'\n' if quoted => return Err(self.broken()),
                b'\n' => break,
                b'#' | b';' if !quoted => {
                    self.comment();
                    break;
                }
                byte if is_space(byte) && !quoted => {
                    // Not at the beginning, and in the end only what stands before something.
                    if !value.is_empty() {
                        value.push(byte);
                    }
                    continue;
                }
                b'"' => quoted = !quoted,
                b'\\' => match self.go_on() {
                    b'\n' => continue,
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'n' => value.push(b'\n'),
                    byte @ (b'\\' | b'"') => value.push(byte),
                    _ => return Err(self.broken()),
                },
                byte => value.push(byte),
            }
            kept = value.len();
        }
        value.truncate(kept);
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    fn told(text: &str) -> Vec<String> {
        let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_string();
        let show = |own: &Named| match own {
            Named::Hooks(path) => format!("hooks {}", text_of(path)),
            Named::Config(path) => format!("config {}", text_of(path)),
            Named::Attributes(path) => format!("attributes {}", text_of(path)),
            Named::Worktree(path) => format!("worktree {}", text_of(path)),
            Named::Command(key, words) => {
                let words: Vec<_> = words.iter().map(|own| text_of(own)).collect();
                format!("{key} {}", words.join(","))
            }
        };
        read(text.as_bytes()).unwrap().iter().map(show).collect()
    }

    #[test]
    fn what_names_files_is_read() {
        for (text, expected) in [
            ("[core]\n\thooksPath = .githooks\n", vec!["hooks .githooks"]),
            ("[CORE]HooksPath=a b ; more\n", vec!["hooks a b"]),
            ("[core]\nhookspath = \"a # b \" # c", vec!["hooks a # b "]),
            ("[core]\r\nhookspath = x\\\r\n  y\r\n", vec!["hooks x  y"]),
            ("\u{feff}[core] ; c\nhookspath=a\\\\b\\\"c", vec!["hooks a\\b\"c"]),
            ("[include]\npath = ../.gitconfig", vec!["config ../.gitconfig"]),
            ("[includeIf \"gitdir:~/x]\\\"\"]\npath = p", vec!["config p"]),
            (
                "[core]\nattributesFile = :(optional)at\nworktree = ..",
                vec!["attributes at", "worktree .."],
            ),
            ("[core.sub]\nhookspath = x", vec!["hooks x"]),
            (
                "[filter \"x\"]\nclean = ./c.sh %f\nrequired",
                vec!["filter.clean ./c.sh,%f,./c.sh %f"],
            ),
            ("[alias]\nst = \"!sh -c './x;y'\"", vec!["alias.st sh,-c,./x,y,!sh -c './x;y'"]),
            ("[branch \"b\"]\nmerge = refs/heads/b\n[remote \"o\"]\nurl = ../o", vec![]),
            ("[remote \"o\"]\nuploadpack = ./up", vec!["remote.uploadpack ./up"]),
            ("# nothing\n; at all\n[core]\n\n", vec![]),
            ("[core]\nhookspath =\n", vec!["hooks "]),
            ("[core]\nhookspath = \u{c}x\u{c}\n", vec!["hooks \u{c}x\u{c}"]),
        ] {
            assert_eq!(told(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_git_refuses_is_refused() {
        for (text, line) in [
            ("as it was", 1),
            ("[core\nx = 1", 2),
            ("[core]\nx = \"open\n", 3),
            ("[core]\nx = \\q\n", 2),
            ("[core]\nx y = 1", 2),
            ("[core \"a\nb\"]", 2),
            ("[core \"a\"x]", 1),
            ("[]\nx = 1", 1),
            ("[core]\n= 1", 2),
            ("[core]\n1x = 1", 2),
            ("[core]\n\u{c}x = 1", 2),
        ] {
            assert_eq!(read(text.as_bytes()), Err(Broken { line }), "{text:?}");
        }
    }
}
