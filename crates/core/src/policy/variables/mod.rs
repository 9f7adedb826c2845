//! Variables of the environment, by what they can do to a program.

mod table;

use table::{
    CODE, CODE_BEGINNINGS, HARMLESS, MARKS, NEVER, NEVER_BEGINNINGS, NODE_PLAIN, PLACES, QUIET,
};

use crate::programs::like;

/// What a variable can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It says how much is printed, what is built, or for whom.
    Plain,
    /// It decides which code of the project runs, or with which options it is built.
    Code,
    /// Its value names what a program loads or starts.
    Starts,
    /// It says where programs look for what they start or read, or whom they talk to. A policy may
    /// hand it on.
    Place,
    /// It makes a program load or run something else than itself.
    Never,
}

/// What a variable can do, by its name.
pub(crate) fn kind_of(name: &str) -> Kind {
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    if HARMLESS.split(' ').any(|own| own == name) {
        Kind::Plain
    } else if NEVER.contains(&name) || begins(NEVER_BEGINNINGS) {
        Kind::Never
    } else if CODE.contains(&name) || begins(CODE_BEGINNINGS) {
        Kind::Code
    } else if PLACES.contains(&name) {
        Kind::Place
    } else {
        Kind::Plain
    }
}

/// What a variable can do with this value. Some that could start a program say by their value that
/// nothing is started, or only what prints.
pub(crate) fn kind_of_set(name: &str, value: &str) -> Kind {
    let quiet =
        QUIET.iter().any(|(names, values)| names.contains(&name) && values.contains(&value));
    let plain_words = name == "NODE_OPTIONS" && value.split(' ').all(is_plain_for_node);
    match kind_of(name) {
        _ if quiet || plain_words => Kind::Plain,
        Kind::Plain | Kind::Code if starts(name, value) => Kind::Starts,
        kind => kind,
    }
}

/// Whether a value names what is loaded or started, in the way that the variable has for it.
fn starts(name: &str, value: &str) -> bool {
    let is_marked = |mark: &str| match mark.strip_prefix('*') {
        Some(part) => value.contains(part),
        None => value.split_whitespace().any(|word| word.starts_with(mark)),
    };
    let named = MARKS.iter().filter(|(names, _)| names.iter().any(|own| like(own, name)));
    named.flat_map(|(_, marks)| marks.iter()).any(|mark| is_marked(mark))
}

/// Options of node that load nothing and start nothing.
fn is_plain_for_node(word: &str) -> bool {
    const NUMBERS: &[&str] =
        &["--max-old-space-size=", "--max_old_space_size=", "--stack-trace-limit="];
    let is_number = |own: &str| !own.is_empty() && own.bytes().all(|byte| byte.is_ascii_digit());
    NODE_PLAIN.contains(&word)
        || NUMBERS.iter().any(|own| word.strip_prefix(own).is_some_and(is_number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_says_what_a_variable_does() {
        for (name, value, expected) in [
            ("CI", "1", Kind::Plain),
            ("PAGER", "cat", Kind::Plain),
            ("PAGER", "cat x", Kind::Never),
            ("LD_PRELOAD", "", Kind::Never),
            ("GIT_AUTHOR_NAME", "a b", Kind::Plain),
            ("GIT_CONFIG_GLOBAL", "/dev/null", Kind::Plain),
            ("GIT_CONFIG_GLOBAL", "x", Kind::Never),
            ("NODE_OPTIONS", "--no-warnings --max-old-space-size=1", Kind::Plain),
            ("NODE_OPTIONS", "--max-old-space-size=", Kind::Code),
            ("NODE_OPTIONS", "--inspect", Kind::Code),
            ("NODE_OPTIONS", "--no-warnings --require=./x", Kind::Starts),
            ("NODE_OPTIONS", "-r ./x", Kind::Starts),
            ("NODE_OPTIONS", "--unhandled-rejections=none", Kind::Code),
            ("PYTHONSTARTUP", "x.py", Kind::Starts),
            ("PYTHONPATH", "src", Kind::Code),
            ("CC", "clang", Kind::Plain),
            ("CC", "ccache gcc", Kind::Plain),
            ("CC", "./x", Kind::Starts),
            ("RUSTC_WRAPPER", "sccache", Kind::Code),
            ("RUSTC_WORKSPACE_WRAPPER", "./x", Kind::Starts),
            ("RUSTFLAGS", "-C target-cpu=native", Kind::Code),
            ("RUSTFLAGS", "-Clinker=x", Kind::Starts),
            ("MAKEFLAGS", "-j8 --no-print-directory", Kind::Code),
            ("MAKEFLAGS", "--eval=x", Kind::Starts),
            ("MAVEN_OPTS", "-Xmx2g", Kind::Plain),
            ("MAVEN_OPTS", "-Xmx2g -javaagent:x", Kind::Starts),
        ] {
            assert_eq!(kind_of_set(name, value), expected, "{name}={value}");
        }
    }
}
