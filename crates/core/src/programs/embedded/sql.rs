//! Statements in SQL, and the commands of the programs that take them: whether they only ask, change
//! rows, run programs, or lose what cannot be brought back (SAF-2).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::programs::Effect;

/// What statements do besides asking.
pub(super) fn effects(text: &str) -> Vec<(Effect, &'static str)> {
    let mut found = Vec::new();
    for statement in statements(text) {
        found.extend(statement_effect(&statement.words));
    }
    found
}

/// Words that a statement that only asks may begin with.
const ASKS: &[&str] = &[
    "select", "show", "explain", "describe", "desc", "values", "table", "use", "help", "status",
    "begin", "commit", "rollback", "start", "end", "set", "pragma", "analyze", "with", "fetch",
    "declare", "close", "listen", "check",
];

/// Words that change rows, tables or rights.
const CHANGES: &[&str] = &[
    "insert",
    "update",
    "delete",
    "replace",
    "merge",
    "create",
    "alter",
    "grant",
    "revoke",
    "comment",
    "rename",
    "vacuum",
    "reindex",
    "refresh",
    "lock",
    "load",
    "upsert",
    "optimize",
    "cluster",
    "reset",
    "prepare",
    "execute",
    "deallocate",
];

fn statement_effect(words: &[String]) -> Vec<(Effect, &'static str)> {
    let Some(first) = words.first() else { return Vec::new() };
    let has = |word: &str| words.iter().any(|own| own == word);
    let mut found = Vec::new();
    let destroys = (Effect::Destroys, "loses rows or tables that nothing brings back");
    match first.as_str() {
        "drop" | "truncate" | "dropdatabase" | "flushall" | "flushdb" => found.push(destroys),
        "delete" | "update" if !has("where") => found.push(destroys),
        "copy" if has("program") => found.push((Effect::Starts, "starts a program by `copy`")),
        "copy" if has("from") && !has("stdout") => {
            found.push((Effect::Writes, "changes a database"))
        }
        "copy" => found.push((Effect::Opens, "writes or reads files on the database's side")),
        "system" | "source" => {
            found.push((Effect::Starts, "is a command that may run programs or write files"));
        }
        "attach" | "detach" | "install" | "call" | "exec" | "do" => {
            found.push((Effect::Code, "runs a procedure or opens another database"));
        }
        word if word.starts_with('.') => found.extend(dot_command(word)),
        word if word.starts_with('\\') => found.extend(backslash_command(word)),
        word if CHANGES.contains(&word) => found.push((Effect::Writes, "changes a database")),
        word if ASKS.contains(&word) => {}
        _ => found.push((Effect::Unknown, "is a statement that is not known")),
    }
    let alters = first == "alter" && has("drop");
    let nested = first == "with" && (has("delete") || has("drop") || has("truncate"));
    if alters || nested {
        found.push(destroys);
    } else if matches!(first.as_str(), "with" | "explain") && CHANGES.iter().any(|word| has(word)) {
        found.push((Effect::Writes, "changes a database"));
    }
    if has("outfile")
        || has("dumpfile")
        || has("load_extension")
        || has("writefile")
        || has("readfile")
        || has("pg_read_file")
        || has("lo_import")
    {
        found.push((Effect::Code, "reaches files or programs on the database's side"));
    }
    found
}

/// Words by which statements reach files.
const REACHES: &[&str] = &[
    "attach",
    "copy",
    "export",
    "glob",
    "import",
    "into",
    "load",
    "parquet_scan",
    "read_blob",
    "read_csv",
    "read_csv_auto",
    "read_json",
    "read_json_auto",
    "read_parquet",
    "read_text",
    "readfile",
    "restore",
    "writefile",
];

/// What stands in quotes, where the statements reach files.
pub(super) fn files(text: &str) -> Vec<String> {
    let found = statements(text);
    let mut words = found.iter().flat_map(|own| &own.words);
    match words.any(|own| REACHES.contains(&own.as_str())) {
        true => found.into_iter().flat_map(|own| own.quoted).collect(),
        false => Vec::new(),
    }
}

/// A command of the SQLite shell.
fn dot_command(word: &str) -> Option<(Effect, &'static str)> {
    const PRINTS: &[&str] = &[
        ".tables",
        ".schema",
        ".dump",
        ".mode",
        ".headers",
        ".header",
        ".indexes",
        ".indices",
        ".databases",
        ".help",
        ".quit",
        ".exit",
        ".show",
        ".stats",
        ".width",
        ".separator",
        ".nullvalue",
        ".timer",
        ".explain",
        ".fullschema",
        ".dbinfo",
        ".print",
        ".bail",
        ".echo",
        ".changes",
        ".eqp",
        ".lint",
        ".version",
    ];
    (!PRINTS.contains(&word))
        .then_some((Effect::Starts, "is a command that may run programs or write files"))
}

/// A command of `psql`.
fn backslash_command(word: &str) -> Option<(Effect, &'static str)> {
    let name = word.trim_start_matches('\\').trim_end_matches(['+', 'S']);
    let prints = name.starts_with('d')
        || matches!(
            name,
            "l" | "x"
                | "timing"
                | "conninfo"
                | "q"
                | "pset"
                | "z"
                | "h"
                | "?"
                | "echo"
                | "c"
                | "connect"
                | "a"
                | "t"
                | "encoding"
                | "sf"
                | "sv"
        );
    (!prints).then_some((Effect::Starts, "is a command that may run programs or write files"))
}

/// Goes on behind the end of a comment.
fn skip_comment(letters: &mut impl Iterator<Item = char>) {
    let mut before = ' ';
    for own in letters {
        if before == '*' && own == '/' {
            break;
        }
        before = own;
    }
}

/// A statement, without its comments.
#[derive(Default)]
struct Statement {
    /// What is not quoted, in lower case.
    words: Vec<String>,
    /// What is quoted, each as it stands between its quotes.
    quoted: Vec<String>,
}

/// The statements of a text.
fn statements(text: &str) -> Vec<Statement> {
    let mut found = alloc::vec![Statement::default()];
    let mut word = String::new();
    let mut letters = text.chars().peekable();
    let flush = |word: &mut String, found: &mut Vec<Statement>| {
        if let Some(last) = found.last_mut().filter(|_| !word.is_empty()) {
            last.words.push(word.to_lowercase().to_string());
        }
        word.clear();
    };
    while let Some(letter) = letters.next() {
        match letter {
            '\'' | '"' | '`' => {
                flush(&mut word, &mut found);
                let quoted = letters.by_ref().take_while(|own| *own != letter).collect();
                if let Some(last) = found.last_mut() {
                    last.quoted.push(quoted);
                }
            }
            '-' if letters.next_if_eq(&'-').is_some() => {
                flush(&mut word, &mut found);
                while letters.next_if(|own| *own != '\n').is_some() {}
            }
            '/' if letters.next_if_eq(&'*').is_some() => {
                flush(&mut word, &mut found);
                // MySQL runs what stands in `/*! ... */`.
                if letters.next_if_eq(&'!').is_some() {
                    continue;
                }
                skip_comment(&mut letters);
            }
            ';' => {
                flush(&mut word, &mut found);
                found.push(Statement::default());
            }
            '\n' => {
                flush(&mut word, &mut found);
                // An order to the shell ends with its line.
                let first = found.last().and_then(|own| own.words.first());
                if first.is_some_and(|word| word.starts_with(['.', '\\'])) {
                    found.push(Statement::default());
                }
            }
            own if own.is_alphanumeric()
                || matches!(own, '_' | '\\' | '?')
                || own == '.' && word.is_empty() =>
            {
                word.push(own)
            }
            _ => flush(&mut word, &mut found),
        }
    }
    flush(&mut word, &mut found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_only_ask_do_nothing_else() {
        for text in [
            "select * from users",
            "SELECT 'drop table x'",
            "show tables;",
            "\\dt",
            "\\d users",
            ".tables",
            ".schema users",
            "EXPLAIN SELECT 1",
            "select 1; select 2;",
            "-- drop table x\nselect 1",
            "with a as (select 1) select * from a",
            "",
        ] {
            assert_eq!(effects(text), [], "{text}");
        }
    }

    #[test]
    fn places_are_in_quotes_of_any_kind() {
        for text in [
            "copy t to '/home/x'",
            "-- don't\ncopy t to '/home/x'",
            "/* it's */ attach \"/home/x\" as o",
            "select 'a''b'; copy t to '/home/x'",
            "load '/home/x",
        ] {
            assert!(files(text).iter().any(|own| own == "/home/x"), "{text}: {:?}", files(text));
        }
        assert_eq!(files("select path from routes where path = '/api/users'"), [""; 0]);
    }

    #[test]
    fn what_changes_or_loses_is_told() {
        for (text, effect) in [
            ("DROP DATABASE prod", Effect::Destroys),
            ("drop schema if exists x", Effect::Destroys),
            ("TRUNCATE TABLE users", Effect::Destroys),
            ("select 1; dRoP/**/table x", Effect::Destroys),
            ("delete from users", Effect::Destroys),
            ("update users set a=1", Effect::Destroys),
            ("delete from users where id = 1", Effect::Writes),
            ("insert into a values (1)", Effect::Writes),
            ("alter table a drop column b", Effect::Destroys),
            ("copy a to program 'sh'", Effect::Starts),
            ("\\! id", Effect::Starts),
            (".shell id", Effect::Starts),
            (".system id", Effect::Starts),
            ("/*! drop table x */", Effect::Destroys),
            ("frobnicate", Effect::Unknown),
            ("with x as (delete from a returning *) select 1", Effect::Destroys),
            ("select load_extension('x')", Effect::Code),
        ] {
            let found = effects(text);
            assert!(found.iter().any(|(own, _)| *own == effect), "{text}: {found:?}");
        }
    }
}
