//! The configuration of a repository, as far as it names files that git takes orders from.
//!
//! It is read as git reads it ([`settings`]), and what it would refuse is refused here. What the value of a
//! key is to git says a table ([`judge`]); the value of a key that it does not know is taken for a command.

mod keys;
mod lexer;

pub use keys::{Judgement, judge};
pub use lexer::{Setting, settings};

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
    /// A file or a folder, whose content counts: the key and the path.
    Path(String, Vec<u8>),
    /// A command, or anything else that could be one: the key and the words that could name files.
    Command(String, Vec<Vec<u8>>),
}

/// A text that git would not read either, and the line where it breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Counted from one.
    pub line: usize,
}

/// What keys that no table knows have in their names where a folder that they name holds programs.
const PROGRAMS: [&str; 10] =
    ["hook", "template", "script", "plugin", "exec", "bin", "tool", "module", "driver", "helper"];

/// What a configuration names.
///
/// # Errors
/// [`Broken`] where git would not read it.
pub fn read(text: &[u8]) -> Result<Vec<Named>, Broken> {
    Ok(settings(text)?.iter().flat_map(Setting::names).collect())
}

impl Setting {
    /// What it names.
    #[must_use]
    pub fn names(&self) -> Vec<Named> {
        let Self { section, subsection, key, value } = self;
        if section.is_empty() {
            return Vec::new();
        }
        let about = subsection.as_deref().map(String::from_utf8_lossy);
        let whole = match &about {
            Some(about) => format!("{section}.{about}.{key}"),
            None => format!("{section}.{key}"),
        };
        // What it is called in a rule's terms: names of one's own say nothing about what it means.
        let short = format!("{section}.{key}");
        let value = value.as_deref().unwrap_or_default();
        let path = || value.strip_prefix(b":(optional)").unwrap_or(value).to_vec();
        let command = |value: &[u8]| Named::Command(short.clone(), words(value));
        let named = match judge(&whole) {
            Some(Judgement::Data) => None,
            Some(Judgement::Hooks) => Some(Named::Hooks(path())),
            Some(Judgement::Config) => Some(Named::Config(path())),
            Some(Judgement::Attributes) => Some(Named::Attributes(path())),
            Some(Judgement::Worktree) => Some(Named::Worktree(path())),
            Some(Judgement::Directory | Judgement::Trust) => {
                Some(Named::Path(short.clone(), path()))
            }
            Some(Judgement::Alias) => value.strip_prefix(b"!").map(command),
            Some(Judgement::Address) => {
                // What an address is replaced by is what its section is about.
                let address = if section == "url" { subsection.as_deref() } else { Some(value) };
                address.and_then(|own| own.strip_prefix(b"ext::")).map(command)
            }
            Some(Judgement::Command) => Some(command(value)),
            None => return unknown(&short, path(), command(value)),
        };
        named.into_iter().collect()
    }
}

/// What the value of a key could name that no table knows: a command, and where its name says so a folder
/// of programs.
fn unknown(key: &str, path: Vec<u8>, command: Named) -> Vec<Named> {
    let holds_programs = PROGRAMS.iter().any(|own| key.contains(own));
    let folder = holds_programs.then(|| Named::Path(key.into(), path));
    folder.into_iter().chain([command]).collect()
}

/// The words of a value that a shell may be given. More than a shell would see: what stands in quotes is
/// taken apart, too.
fn words(value: &[u8]) -> Vec<Vec<u8>> {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"'\"`;|&()<>=$!".contains(byte);
    let words = value.split(ends).filter(|word| !word.is_empty()).map(<[u8]>::to_vec);
    let words = words.chain(behind(value, ends));
    // As one, and as a path with spaces in it.
    let whole = std::iter::once(value.to_vec()).filter(|own| own.iter().any(ends));
    words.chain(whole).collect()
}

/// What stands behind a folder that only a shell knows: `$TOP/x`, `${TOP}/x`, `$(top)/x`, `"$TOP"/x`.
fn behind(value: &[u8], ends: impl Fn(&u8) -> bool + Copy) -> impl Iterator<Item = Vec<u8>> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let slashes = value.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    slashes.filter_map(move |(at, _)| {
        let before = value.get(..at)?;
        let name = before.iter().rev().take_while(|byte| is_name(byte)).count();
        let sign = before.len().checked_sub(name + 1).and_then(|at| before.get(at));
        let is_variable = name > 0 && sign == Some(&b'$');
        let is_closed = before.last().is_some_and(|last| b")}\"'`".contains(last));
        let rest = value.get(at + 1..)?.split(ends).next()?;
        ((is_variable || is_closed) && !rest.is_empty()).then(|| rest.to_vec())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_string();
        let show = |own: &Named| match own {
            Named::Hooks(path) => format!("hooks {}", text_of(path)),
            Named::Config(path) => format!("config {}", text_of(path)),
            Named::Attributes(path) => format!("attributes {}", text_of(path)),
            Named::Worktree(path) => format!("worktree {}", text_of(path)),
            Named::Path(key, path) => format!("path {key} {}", text_of(path)),
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
            (
                "[filter \"x\"]\nclean = ./c.sh %f\nrequired",
                vec!["filter.clean ./c.sh,%f,./c.sh %f"],
            ),
            ("[alias]\nst = \"!sh -c './x;y'\"", vec!["alias.st sh,-c,./x,y,sh -c './x;y'"]),
            (
                "[alias]\nst = \"!$(top)/a/b.sh $X/c\"",
                vec!["alias.st top,/a/b.sh,X/c,a/b.sh,c,$(top)/a/b.sh $X/c"],
            ),
            ("[alias]\nst = status src", vec![]),
            ("[branch \"b\"]\nmerge = refs/heads/b\n[remote \"o\"]\nurl = ../o", vec![]),
            ("[remote \"o\"]\nuploadpack = ./up", vec!["remote.uploadpack ./up"]),
            ("[remote \"o\"]\nurl = ext::./x y", vec!["remote.url ./x,y,./x y"]),
            ("[url \"ext::./x\"]\ninsteadOf = a", vec!["url.insteadof ./x"]),
            ("[submodule \"s\"]\nupdate = !./x\nurl = ../y", vec!["submodule.update ./x"]),
            ("[submodule \"s\"]\nupdate = rebase", vec![]),
            ("[init]\ntemplateDir = t", vec!["path init.templatedir t"]),
            ("[gpg \"ssh\"]\nallowedSignersFile = s", vec!["path gpg.allowedsignersfile s"]),
            ("[tool]\nhooksDir = h", vec!["path tool.hooksdir h", "tool.hooksdir h"]),
            ("[core]\nnewKey = ./x", vec!["core.newkey ./x"]),
            ("hookspath = x\n[core]\nhookspath = y", vec!["hooks y"]),
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
            ("[core]\nx = a\0b", 2),
            ("[core \"a\0b\"]\nx = a", 1),
        ] {
            assert_eq!(read(text.as_bytes()), Err(Broken { line }), "{text:?}");
        }
    }
}
