//! Variables of the environment, by what they can do to a program.

mod table;

use alloc::string::String;

use table::{
    ALWAYS_DENIED, ALWAYS_DENIED_PREFIXES, CODE, CODE_PREFIXES, HARMLESS_NAMES, HARMLESS_VALUES,
    LOCATIONS, MAKE_HARMLESS, MODULE_DIRECTORIES, NODE_HARMLESS, OFFLINE, STARTING_PREFIXES,
};

use crate::specs::matches_wildcard;

/// What a variable can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableKind {
    /// It says how much is printed, what is built, or for whom.
    Plain,
    /// It decides which code of the project runs, or with which options it is built.
    Code,
    /// Its value names what a program loads or starts.
    StartsProgram,
    /// It says where programs look for what they start or read, or whom they talk to. A policy may
    /// hand it on.
    Location,
    /// It makes a program load or run something else than itself.
    AlwaysDenied,
}

/// What a variable can do, by its name.
pub fn variable_kind(name: &str) -> VariableKind {
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    if HARMLESS_NAMES.split(' ').any(|part| part == name) {
        VariableKind::Plain
    } else if ALWAYS_DENIED.contains(&name) || begins(ALWAYS_DENIED_PREFIXES) {
        VariableKind::AlwaysDenied
    } else if CODE.contains(&name) || begins(CODE_PREFIXES) {
        VariableKind::Code
    } else if LOCATIONS.contains(&name) {
        VariableKind::Location
    } else {
        VariableKind::Plain
    }
}

/// What a variable can do with this value. Some that could start a program say by their value that
/// nothing is started, or only what prints.
pub fn variable_kind_with_value(name: &str, value: &str) -> VariableKind {
    let quiet = HARMLESS_VALUES
        .iter()
        .any(|(names, values)| names.contains(&name) && values.contains(&value));
    let plain_words = match name {
        "NODE_OPTIONS" => value.split(' ').all(is_plain_for_node),
        "RUSTFLAGS" | "RUSTDOCFLAGS" => is_plain_for_rustc(value),
        "PYTHONPATH" => value.split(':').all(|part| MODULE_DIRECTORIES.contains(&part)),
        "MAKEFLAGS" => value.split(' ').all(|word| {
            let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            MAKE_HARMLESS.contains(&word) || word.strip_prefix("-j").is_some_and(is_number)
        }),
        _ => false,
    };
    match variable_kind(name) {
        _ if quiet || plain_words => VariableKind::Plain,
        VariableKind::Plain | VariableKind::Code if starts_program(name, value) => {
            VariableKind::StartsProgram
        }
        kind => kind,
    }
}

/// Whether a variable with this value keeps a program from contacting another computer by itself.
pub(crate) fn keeps_offline(program: &str, (name, value): &(String, String)) -> bool {
    offline_programs(name, value).contains(&program)
}

/// The programs that a variable with this value keeps from contacting another computer by themselves.
#[must_use]
pub fn offline_programs(name: &str, value: &str) -> &'static [&'static str] {
    let is_meant =
        |(_, variable, values): &&(_, &str, &[&str])| name == *variable && values.contains(&value);
    OFFLINE.iter().find(is_meant).map_or(&[], |(programs, ..)| programs)
}

/// Whether a value names what is loaded or started, in the way that the variable has for it.
fn starts_program(name: &str, value: &str) -> bool {
    let is_marked = |mark: &str| match mark.strip_prefix('*') {
        Some(part) => value.contains(part),
        None => value.split_whitespace().any(|word| word.starts_with(mark)),
    };
    let named = STARTING_PREFIXES
        .iter()
        .filter(|(names, _)| names.iter().any(|text| matches_wildcard(text, name)));
    named.flat_map(|(_, marks)| marks.iter()).any(|mark| is_marked(mark))
}

/// Whether these are options of the Rust compiler that say what is warned about or what code is made for
/// (`rustc --help -v`, `rustc -C help`).
fn is_plain_for_rustc(value: &str) -> bool {
    const LINTS: &[&str] = &["-D", "-W", "-A", "-F"];
    const CODE_GENERATION: &[&str] =
        &["target-cpu=", "target-feature=", "opt-level=", "debuginfo=", "debug-assertions="];
    let mut words = value.split_whitespace();
    while let Some(word) = words.next() {
        let (option, attached) = word.split_at(word.len().min(2));
        let argument = match attached.is_empty() {
            true => words.next().unwrap_or_default(),
            false => attached,
        };
        let is_lint = LINTS.contains(&option)
            && argument.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:-".contains(&byte));
        let is_generation =
            option == "-C" && CODE_GENERATION.iter().any(|key| argument.starts_with(key));
        if !is_lint && !is_generation {
            return false;
        }
    }
    true
}

/// Options of node that load nothing and start nothing.
fn is_plain_for_node(word: &str) -> bool {
    const NUMBERS: &[&str] =
        &["--max-old-space-size=", "--max_old_space_size=", "--stack-trace-limit="];
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    NODE_HARMLESS.contains(&word)
        || NUMBERS.iter().any(|number| word.strip_prefix(number).is_some_and(is_number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_says_what_a_variable_does() {
        for (name, value, expected) in [
            ("CI", "1", VariableKind::Plain),
            ("PAGER", "cat", VariableKind::Plain),
            ("PAGER", "cat x", VariableKind::AlwaysDenied),
            ("LD_PRELOAD", "", VariableKind::AlwaysDenied),
            ("GIT_AUTHOR_NAME", "a b", VariableKind::Plain),
            ("GIT_CONFIG_GLOBAL", "/dev/null", VariableKind::Plain),
            ("GIT_CONFIG_GLOBAL", "x", VariableKind::AlwaysDenied),
            ("NODE_OPTIONS", "--no-warnings --max-old-space-size=1", VariableKind::Plain),
            ("NODE_OPTIONS", "--max-old-space-size=", VariableKind::Code),
            ("NODE_OPTIONS", "--inspect", VariableKind::Code),
            ("NODE_OPTIONS", "--no-warnings --require=./x", VariableKind::StartsProgram),
            ("NODE_OPTIONS", "-r ./x", VariableKind::StartsProgram),
            ("NODE_OPTIONS", "--unhandled-rejections=none", VariableKind::Code),
            ("PYTHONSTARTUP", "x.py", VariableKind::StartsProgram),
            ("PYTHONPATH", "src", VariableKind::Plain),
            ("PYTHONPATH", "src:lib:.", VariableKind::Plain),
            ("PYTHONPATH", "src:/tmp", VariableKind::Code),
            ("MAKEFLAGS", "-j4 -k", VariableKind::Plain),
            ("MAKEFLAGS", "-j", VariableKind::Plain),
            ("MAKEFLAGS", "-j4 SHELL=x", VariableKind::StartsProgram),
            ("MAKEFLAGS", "CC=evil", VariableKind::Code),
            ("PYTHONPATH", "./evil", VariableKind::Code),
            ("CC", "clang", VariableKind::Plain),
            ("CC", "ccache gcc", VariableKind::Plain),
            ("CC", "./x", VariableKind::StartsProgram),
            ("RUSTC_WRAPPER", "sccache", VariableKind::Code),
            ("RUSTC_WORKSPACE_WRAPPER", "./x", VariableKind::StartsProgram),
            ("RUSTFLAGS", "-C target-cpu=native -Dwarnings", VariableKind::Plain),
            ("RUSTFLAGS", "-L native=x", VariableKind::Code),
            ("RUSTFLAGS", "-Clinker=x", VariableKind::StartsProgram),
            ("MAKEFLAGS", "-j8 --no-print-directory", VariableKind::Plain),
            ("MAKEFLAGS", "--eval=x", VariableKind::StartsProgram),
            ("MAVEN_OPTS", "-Xmx2g", VariableKind::Plain),
            ("MAVEN_OPTS", "-Xmx2g -javaagent:x", VariableKind::StartsProgram),
        ] {
            assert_eq!(variable_kind_with_value(name, value), expected, "{name}={value}");
        }
    }
}
