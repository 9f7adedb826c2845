//! Patterns as other programs write them: gitignore, regular expressions, shells, Windows. Here they would mean
//! something else than their author thinks, so each is refused with the spelling that means it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::glob::{Glob, GlobError};

/// Why a pattern is refused, and how the same is written here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub why: String,
    /// How the same is written, where that is known.
    pub hint: Option<String>,
}

impl Refused {
    fn new(why: &str, hint: impl Into<String>) -> Self {
        Self { why: why.into(), hint: Some(hint.into()) }
    }

    /// Why the pattern language has no such pattern.
    pub fn by_glob(text: &str, error: GlobError) -> Self {
        let hint = match error {
            GlobError::AnyDepth => any_depth(text).map(|text| format!("write `{text}`")),
            GlobError::Braces => alternatives(text).map(|each| {
                let each: Vec<String> = each.iter().map(|each| format!("`{each}`")).collect();
                format!("write {}", each.join(" and "))
            }),
            GlobError::Length | GlobError::Class | GlobError::Component => None,
        };
        Self { why: error.to_string(), hint }
    }
}

/// Refuses a pattern for paths that is written as another program would have it.
///
/// # Errors
/// Says what it is taken for.
pub fn check(text: &str) -> Result<(), Refused> {
    if text.trim() != text {
        return Err(Refused::new(
            "the pattern begins or ends with a blank",
            format!("write `{}`", text.trim()),
        ));
    }
    for refusal in
        [negated, any_below, not_relative, variable, regular_expression, escaped, extended]
    {
        if let Some(refused) = refusal(text) {
            return Err(refused);
        }
    }
    Ok(())
}

/// `src/...`, as Go and Bazel have it.
fn any_below(text: &str) -> Option<Refused> {
    let folder = text.strip_suffix("...").filter(|text| text.is_empty() || text.ends_with('/'))?;
    let hint = format!("write `{}**`", folder.trim_start_matches("./"));
    Some(Refused::new("`...` is the name of a file", hint))
}

/// `!secrets/**`, as in gitignore; `:!secrets`, as in a pathspec of git.
fn negated(text: &str) -> Option<Refused> {
    let by_git = [":!", ":^", ":(exclude)"].into_iter().find_map(|sign| text.strip_prefix(sign));
    let sign = || text.strip_prefix('!').filter(|rest| !rest.starts_with('('));
    let rest = by_git.or_else(sign)?;
    let hint = format!(
        "write `{rest}` under `deny` of the tool's `paths`, or under `except` of a `never` rule; \
         `\\!` names the character"
    );
    Some(Refused::new("`!` takes nothing out of a list", hint))
}

/// `C:\x`, `\\server\x`, `https://x`, `~ada/x`.
fn not_relative(text: &str) -> Option<Refused> {
    let relative = "patterns count from the workspace, with `/` between folders: `src/**`";
    let mut chars = text.chars();
    let drive = chars.next().is_some_and(|c| c.is_ascii_alphabetic())
        && chars.next() == Some(':')
        && matches!(chars.next(), Some('\\' | '/'));
    if drive || text.starts_with("\\\\") {
        return Some(Refused::new("a path of Windows is no pattern", relative));
    }
    if text.contains("://") {
        return Some(Refused::new("a URL is no pattern for paths", relative));
    }
    let user = text.strip_prefix('~')?;
    let other = !user.is_empty() && !user.starts_with('/');
    let hint = "`~/` is your own home folder; write another one from the root: `/home/..`";
    other.then(|| Refused::new("`~` with a name behind it is not looked up", hint))
}

/// `$HOME/x`, `${HOME}/x`, `$(pwd)/x`, `%USERPROFILE%\x`.
fn variable(text: &str) -> Option<Refused> {
    let is_name = |c: char| c.is_ascii_uppercase() || c == '_';
    let dollar =
        unescaped(text, '$').any(|rest| rest.starts_with(|c| is_name(c) || c == '{' || c == '('));
    let percent = text.split('%').skip(1).step_by(2).zip(text.split('%').skip(2));
    let percent = percent
        .map(|(name, _)| name)
        .any(|name| name.len() > 2 && name.chars().all(|c| is_name(c) || c.is_ascii_digit()));
    let hint = "write the path itself; `~/` is your home folder, and `\\$` names the character";
    (dollar || percent).then(|| Refused::new("variables are not put in", hint))
}

/// The characters that a backslash is there for.
const SPECIAL: &str = "*?[]{}\\!~$%#()|^+@, ";

/// `secrets\x`, where `/` is meant, and `\.env`, where no backslash is needed.
fn escaped(text: &str) -> Option<Refused> {
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            continue;
        }
        match chars.next() {
            Some(next) if SPECIAL.contains(next) => {}
            Some('.') => {
                let hint = format!("write `{}`", text.replace("\\.", "."));
                let why =
                    "`\\.` is of regular expressions; here a dot is a dot, and `*` is any text";
                return Some(Refused::new(why, hint));
            }
            _ => {
                let hint = format!("write `{}`", text.replace('\\', "/"));
                let why =
                    "a backslash takes the next character as it is, and does not part folders";
                return Some(Refused::new(why, hint));
            }
        }
    }
    None
}

/// `^src/.+$`, `(a|b)/**`, `[[:alpha:]]`.
fn regular_expression(text: &str) -> Option<Refused> {
    let choice = unescaped(text, '|').next().is_some() && text.contains('(') && text.contains(')');
    let ends = unescaped(text, '$').any(str::is_empty);
    let many = text.split('/').any(|part| part.ends_with(".+") || part.ends_with("]+"));
    let classes = ["\\d", "\\w", "\\s"]
        .into_iter()
        .any(|class| text.split(class).skip(1).any(|rest| rest.starts_with(['+', '*', '{'])));
    let found = text.starts_with('^') || ends || choice || many || classes || text.contains("[[:");
    let hint = "`*` is any text within a name, `**` any folders, `?` one character, `[a-z]` one of those; \
        of two choices make two patterns";
    found.then(|| Refused::new("regular expressions are not understood", hint))
}

/// `+(a|b)`, `@(x)`, `!(x)`: what some shells have besides.
fn extended(text: &str) -> Option<Refused> {
    let opens = |sign| unescaped(text, sign).any(|rest| rest.starts_with('('));
    let found = ['+', '@', '!', '?', '*'].into_iter().any(opens);
    let hint = "make a pattern of each choice; a backslash takes the next character as it is";
    found.then(|| Refused::new("extended patterns of shells are not understood", hint))
}

/// What stands behind each place of a character that no backslash stands before.
fn unescaped(text: &str, wanted: char) -> impl Iterator<Item = &str> {
    let mut taken = false;
    text.char_indices().filter_map(move |(at, c)| {
        let literal = core::mem::replace(&mut taken, false);
        taken = c == '\\' && !literal;
        (c == wanted && !literal).then(|| text.get(at + c.len_utf8()..).unwrap_or_default())
    })
}

/// `**.env` as `**/*.env`, `src**` as `src/**`.
fn any_depth(text: &str) -> Option<String> {
    let part = |part: &str| match part.strip_prefix("**") {
        Some("") | None => part
            .strip_suffix("**")
            .filter(|text| !text.is_empty())
            .map_or_else(|| part.to_string(), |head| format!("{}/**", head.trim_end_matches('*'))),
        Some(rest) => format!("**/*{}", rest.trim_start_matches('*')),
    };
    let parts: Vec<String> = text.split('/').map(part).collect();
    let spelled = parts.join("/");
    Glob::parse(&spelled).is_ok().then_some(spelled)
}

/// The most patterns that stand for one with braces.
const ALTERNATIVES: usize = 6;

/// `*.{md,txt}` as `*.md` and `*.txt`.
fn alternatives(text: &str) -> Option<Vec<String>> {
    let (head, rest) = text.split_once('{')?;
    let (inner, tail) = rest.split_once('}')?;
    let each: Vec<String> =
        inner.split(',').map(|part| format!("{head}{part}{tail}")).take(ALTERNATIVES + 1).collect();
    let plain = each.iter().all(|text| Glob::parse(text).is_ok());
    (plain && each.len() > 1 && each.len() <= ALTERNATIVES).then_some(each)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is refused, and how it is written instead.
    fn refused(text: &str) -> Option<Refused> {
        check(text)
            .err()
            .or_else(|| Glob::parse(text).err().map(|error| Refused::by_glob(text, error)))
    }

    #[test]
    fn patterns_of_other_programs_are_refused_with_the_right_spelling() {
        for (text, why, hint) in [
            ("!secrets/**", "`!` takes", "write `secrets/**` under `deny`"),
            ("!**/*.md", "`!` takes", "`except`"),
            ("**.env", "`**` stands alone", "write `**/*.env`"),
            ("src**", "`**` stands alone", "write `src/**`"),
            ("src/...", "`...`", "write `src/**`"),
            ("./...", "`...`", "write `**`"),
            (":!secrets/**", "`!` takes nothing out", "write `secrets/**` under `deny`"),
            (":(exclude)x", "`!` takes nothing out", "write `x` under `deny`"),
            ("a/***/b", "`**` stands alone", ""),
            ("*.{md,txt}", "braces", "write `*.md` and `*.txt`"),
            ("{a,b}/**", "braces", "write `a/**` and `b/**`"),
            ("a{1..9}", "braces", ""),
            (" src/**", "a blank", "write `src/**`"),
            ("src/**\t", "a blank", "write `src/**`"),
            ("C:\\src\\**", "Windows", "with `/`"),
            ("d:/src", "Windows", "with `/`"),
            ("\\\\host\\share", "Windows", "with `/`"),
            ("secrets\\prod\\**", "does not part folders", "write `secrets/prod/**`"),
            ("file:///etc/**", "a URL", "count from the workspace"),
            ("https://x.org/**", "a URL", "count from the workspace"),
            ("~ada/.ssh/**", "is not looked up", "`~/` is your own"),
            ("$HOME/.ssh/**", "variables", "`~/`"),
            ("${HOME}/.ssh", "variables", "`~/`"),
            ("$(pwd)/x", "variables", "`~/`"),
            ("src/$USER/**", "variables", "`\\$`"),
            ("%USERPROFILE%/x", "variables", "`~/`"),
            ("%APPDATA%", "variables", "`~/`"),
            (".*\\.env$", "regular expressions", "`*` is any text"),
            ("**/\\.env", "a dot is a dot", "write `**/.env`"),
            ("^secrets/.*", "regular expressions", "`**` any folders"),
            ("secrets/.+", "regular expressions", "`**` any folders"),
            ("src/[a-z]+/**", "regular expressions", "`**` any folders"),
            (".*env$", "regular expressions", "`**` any folders"),
            ("(a|b)/**", "regular expressions", "two patterns"),
            ("[[:alpha:]]*", "regular expressions", "`[a-z]`"),
            ("\\d+.log", "regular expressions", "`[a-z]`"),
            ("+(a|b)", "regular expressions", ""),
            ("src/@(x)/**", "extended", "each choice"),
            ("!(x)", "extended", "each choice"),
            ("a/../b", "`..`", ""),
        ] {
            let found = refused(text);
            let said = found
                .as_ref()
                .map(|refused| (refused.why.as_str(), refused.hint.as_deref().unwrap_or("")));
            assert!(
                said.is_some_and(|(own, instead)| own.contains(why) && instead.contains(hint)),
                "{text}: {found:?}"
            );
        }
    }

    #[test]
    fn names_that_only_look_so_are_patterns() {
        for text in [
            "app/(auth)/**",
            "app/@modal/(.)photo/**",
            "routes/$id.tsx",
            "routes/$.tsx",
            "c++/**",
            "+page.svelte",
            "100%/**",
            "50%-60%.txt",
            "a^b",
            "\\!important",
            "\\$HOME",
            "a\\*b",
            "[!a-c]x",
            "[^a]",
            "./notes.md",
            "secrets/",
            "~/.aws/**",
            "/etc/**",
            "**/.env.*",
            ".*",
            "x.*",
            "#notes",
            "a, b",
            "a|b",
            "d:notes",
        ] {
            assert_eq!(refused(text), None, "{text}");
        }
    }
}
