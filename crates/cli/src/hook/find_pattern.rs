//! Patterns of names by which hosts find files: which of them stay within the directory that is searched.

use capsule_base::limits;

/// The most patterns that the braces of one may come to.
const ALTERNATIVES: usize = 256;
/// Signs that mean something in a pattern and vanish from the names that it finds.
const SIGNS: [char; 13] = ['\\', '[', ']', '{', '}', '(', ')', '@', '+', '?', '!', '|', '^'];

/// Whether a pattern finds nothing outside of its directory, however a host reads it: no alternative of it is
/// absolute, begins at a home directory, or goes up.
pub(crate) fn stays_inside(pattern: &str) -> bool {
    // Groups of other pattern languages are taken for braces.
    let braces: String = pattern
        .chars()
        .map(|sign| match sign {
            '(' => '{',
            ')' => '}',
            '|' => ',',
            sign => sign,
        })
        .collect();
    let is_inside = |text: &String| {
        let plain: String = text.chars().filter(|sign| !SIGNS.contains(sign)).collect();
        !plain.starts_with(['/', '~']) && !goes_up(&plain)
    };
    let is_short = pattern.len() <= limits::PATH_BYTES;
    let expanded = (is_short && !goes_up(pattern)).then(|| alternatives(&braces)).flatten();
    expanded.is_some_and(|texts| texts.iter().all(is_inside))
}

/// Whether two dots are next to each other, except between letters and digits: a range, or a name.
fn goes_up(text: &str) -> bool {
    let is_name = |sign: Option<char>| sign.is_some_and(|sign| sign.is_ascii_alphanumeric());
    text.match_indices("..").any(|(at, dots)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + dots.len()..).and_then(|after| after.chars().next());
        !is_name(before) || !is_name(after)
    })
}

/// The patterns that the braces of one come to; none where there are too many.
fn alternatives(pattern: &str) -> Option<Vec<String>> {
    let (mut open, mut done) = (vec![pattern.to_owned()], Vec::new());
    while let Some(text) = open.pop() {
        let parts: Option<Vec<String>> = first_braces(&text).map(|(head, inner, tail)| {
            // One more than there may be is enough to refuse them.
            let inner = inner.into_iter().take(ALTERNATIVES + 1);
            inner.map(|part| format!("{head}{part}{tail}")).collect()
        });
        match parts {
            None => done.push(text),
            Some(parts) => open.extend(parts),
        }
        if open.len() + done.len() > ALTERNATIVES {
            return None;
        }
    }
    Some(done)
}

/// The first pair of braces without others in it: what is before it, its parts, and what is behind it.
fn first_braces(text: &str) -> Option<(&str, Vec<&str>, &str)> {
    let (before, tail) = text
        .match_indices('}')
        .filter_map(|(end, _)| Some((text.get(..end)?, text.get(end + 1..)?)))
        .find(|(before, _)| before.contains('{'))?;
    let (head, inner) = before.rsplit_once('{')?;
    Some((head, inner.split(',').collect(), tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_leave_their_directory_are_found() {
        let inside = [
            "*",
            "**/*.rs",
            "src/**/*.{ts,tsx}",
            ".{a,b}rc.{js,json}",
            "[a-z]*/x",
            "a{1..3}",
            "a..b",
            "",
            "{",
            "}{",
            "!(x)/*",
            "{.github,docs}/**",
            "a~",
            "./x",
        ];
        for pattern in inside {
            assert!(stays_inside(pattern), "{pattern}");
        }
        let outside = [
            "/etc/*",
            "~/x",
            "~",
            "../x",
            "a/../../x",
            "..",
            "{a,../x}",
            "{..,a}/x",
            "{a,{b,..}}/x",
            "{/etc,x}/*",
            "{.,x}./y",
            ".{.,x}/y",
            "[.]./x",
            ".[.]/x",
            "@(.).",
            "@(a|..)/x",
            "\\.\\./x",
            "\\/etc",
            "[/]etc",
            "{~,a}/x",
            "{..}/x",
            "..\\x",
            "{,,,}{,,,}{,,,}{,,,}{,,,}x",
        ];
        for pattern in outside {
            assert!(!stays_inside(pattern), "{pattern}");
        }
    }
}
