//! Statements in SQL, and the commands of the programs that take them: whether they only ask, change
//! rows, run programs, or lose what cannot be brought back (SAF-2).
//!
//! Which dialect a text is in, it does not say. So a statement only asks if all of its words say so in
//! every dialect; where the dialects do not agree on what is text, nothing is taken for text.

mod lexer;
mod words;

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use self::lexer::{Statement, Token, is_of_word, read};
use self::words::has;
use crate::specs::Effect;

type Found = Vec<(Effect, &'static str)>;

const DESTROYS: (Effect, &str) =
    (Effect::Destroys, "loses rows or tables that nothing brings back");
const CHANGES: (Effect, &str) = (Effect::Writes, "changes a database");
const UNKNOWN: (Effect, &str) = (Effect::Unknown, "is a statement that is not known");
const CLIENT: (Effect, &str) =
    (Effect::Starts, "is a command that may run programs or write files");
// Some need no semicolon between two statements.
const MORE: (Effect, &str) = (Effect::Unknown, "does more than its first word says");
const COMPUTED: (Effect, &str) =
    (Effect::Unknown, "computes the name of a file or an address when it runs");
const UNSURE: (Effect, &str) =
    (Effect::Unknown, "is read in more than one way, and may do more than ask");

/// What statements do besides asking.
pub(super) fn effects(text: &str) -> Found {
    let script = read(text);
    let mut found: Found =
        script.statements.iter().flat_map(|statement| statement_effects(statement)).collect();
    if !script.is_certain && could_act(text) {
        found.push(UNSURE);
    }
    found
}

/// The files that statements name: each with whether it is written.
pub(super) fn files(text: &str) -> Vec<(String, bool)> {
    let script = read(text);
    let reaching = script.statements.iter().filter(|statement| reaches(statement));
    let mut found: Vec<(String, bool)> = reaching
        .flat_map(|item| quoted(item).map(|text| (text.to_string(), writes_there(item))))
        .filter(|(text, _)| !is_address(text))
        .collect();
    // Where it is not sure what is quoted, every way to read it counts.
    if !script.is_certain && words_of(text).any(|word| has(words::REACHES, &word)) {
        let pieces = text.split(['\'', '"', '`', '$']).filter(|part| part.contains('/'));
        found.extend(
            pieces.filter(|piece| !is_address(piece)).map(|piece| (piece.to_string(), false)),
        );
    }
    found
}

fn statement_effects(statement: &Statement) -> Found {
    let first = match statement.iter().find(|token| !matches!(token, Token::Sign('('))) {
        None => return Vec::new(),
        Some(Token::Word(word)) => word.as_str(),
        Some(Token::Sign('.')) => return dot_command(statement),
        Some(Token::Sign('\\')) => return backslash_command(statement),
        Some(Token::Sign('!' | ':')) => return alloc::vec![CLIENT],
        Some(_) => return alloc::vec![UNKNOWN],
    };
    let mut found = match first {
        "drop" | "truncate" | "dropdatabase" | "flushall" | "flushdb" => alloc::vec![DESTROYS],
        "delete" | "update" if !says(statement, "where") => alloc::vec![DESTROYS],
        "copy" => copy(statement),
        // Some run what they explain.
        "explain" if says(statement, "copy") => copy(statement),
        "pragma" => return pragma(statement),
        "set" if is_of_server(statement) => alloc::vec![UNKNOWN],
        "set" => asks(statement, first),
        word if has(words::CLIENT, word) => alloc::vec![CLIENT],
        word if has(words::RUNS, word) => {
            let opens = [(Effect::Code, "runs a procedure or opens another database")];
            let is_computed = word == "attach" && !is_literal(database(statement));
            opens.into_iter().chain(is_computed.then_some(COMPUTED)).collect()
        }
        word if has(words::CHANGES, word) => {
            let more = with_neighbours(statement).skip(1).any(|(word, _, is_call)| {
                matches!(word, "drop" | "truncate" | "exec" | "shutdown") && !is_call
            });
            // `vacuum into` writes a file.
            let mut places = behind(statement, &["into"]).into_iter();
            let is_computed = word == "vacuum" && places.any(|place| !is_literal(place));
            let more = more.then_some(MORE).into_iter().chain(is_computed.then_some(COMPUTED));
            [CHANGES].into_iter().chain(more).collect()
        }
        word if has(words::ASKS, word) => asks(statement, first),
        _ => alloc::vec![UNKNOWN],
    };
    if first == "alter" && says(statement, "drop") {
        found.push(DESTROYS);
    }
    found.extend(calls(statement));
    found.extend(addresses(statement));
    found
}

/// What a statement does that begins as one that only asks.
fn asks(statement: &Statement, first: &str) -> Found {
    let words: Vec<(&str, Option<&str>, bool)> = with_neighbours(statement).collect();
    let acts = |(word, before, is_call): &(&str, Option<&str>, bool)| {
        let is_named = match *word {
            // What is locked is not changed yet.
            "update" => *before == Some("for"),
            "create" => first == "show",
            "replace" | "truncate" | "insert" => *is_call,
            _ => false,
        };
        has(words::ACTS, word) && !is_named
    };
    let acting: Vec<&str> =
        words.iter().filter(|word| acts(word)).map(|(word, ..)| *word).collect();
    let loses = acting.iter().any(|text| matches!(*text, "delete" | "drop" | "truncate"));
    match first {
        _ if acting.is_empty() => Vec::new(),
        "with" | "explain" if loses => alloc::vec![DESTROYS],
        "with" | "explain" => alloc::vec![CHANGES],
        _ => alloc::vec![MORE],
    }
}

/// Whether a setting is one of more than this session, or says where files are.
fn is_of_server(statement: &Statement) -> bool {
    let is_own = |word: &str| matches!(word, "global" | "persist" | "persist_only");
    let leads = |word: &str| {
        ["directory", "repository", "path", "file"].iter().any(|text| word.contains(text))
    };
    with_neighbours(statement)
        .any(|(word, ..)| is_own(word) || leads(word) && word != "search_path")
}

fn copy(statement: &Statement) -> Found {
    if says(statement, "program") {
        return alloc::vec![(Effect::Starts, "starts a program by `copy`")];
    }
    let places = behind(statement, &["to", "from"]);
    let is_told = !places.is_empty() && places.iter().all(|place| is_literal(place));
    let is_printed = |item: &&[Token]| item.first() == Some(&Token::Word("stdout".to_string()));
    let mut found = match () {
        () if says(statement, "from") && !says(statement, "to") => alloc::vec![CHANGES],
        () if places.iter().any(is_printed) => Vec::new(),
        () => alloc::vec![
            (Effect::Writes, "writes a file"),
            (Effect::Opens, "writes or reads files on the database's side")
        ],
    };
    found.extend((!is_told).then_some(COMPUTED));
    found
}

/// What stands behind some words of a statement, outside of every parenthesis.
fn behind<'s>(statement: &'s Statement, words: &[&str]) -> Vec<&'s [Token]> {
    let mut depth = 0_usize;
    let mut found = Vec::new();
    for (at, token) in statement.iter().enumerate() {
        match token {
            Token::Sign('(') => depth += 1,
            Token::Sign(')') => depth = depth.saturating_sub(1),
            Token::Word(word) if depth == 0 && words.contains(&word.as_str()) => {
                found.extend(statement.get(at + 1..));
            }
            _ => {}
        }
    }
    found
}

/// What `attach` opens.
fn database(statement: &Statement) -> &[Token] {
    const BEFORE: &str = "attach or replace database if not exists";
    let is_before = |token: &Token| matches!(token, Token::Word(word) if has(BEFORE, word));
    let at = statement.iter().take_while(|token| is_before(token)).count();
    statement.get(at..).unwrap_or_default()
}

/// Whether the name of a file is one text in quotes, or the standard input or output: all else is computed
/// when the statement runs.
fn is_literal(place: &[Token]) -> bool {
    match place {
        [Token::Word(word), ..] => matches!(word.as_str(), "stdin" | "stdout"),
        [Token::Quoted(_)] => true,
        [Token::Quoted(_), next, ..] => {
            matches!(next, Token::Word(_) | Token::Sign('(' | ')' | ','))
        }
        _ => false,
    }
}

/// Whether the first argument of a function is a literal, or a list of them in brackets.
fn is_literal_argument(arguments: &[Token]) -> bool {
    let [Token::Sign('['), items @ ..] = arguments else { return is_literal(arguments) };
    let Some(end) = items.iter().position(|item| *item == Token::Sign(']')) else { return false };
    let (items, rest) = items.split_at(end);
    let mut parts = items.split(|item| *item == Token::Sign(','));
    parts.all(|part| matches!(part, [Token::Quoted(_)]))
        && matches!(rest.get(1), Some(Token::Sign(',' | ')')))
}

fn pragma(statement: &Statement) -> Found {
    let mut named = statement.iter().skip(1).filter_map(|token| match token {
        Token::Word(word) => Some(word.as_str()),
        _ => None,
    });
    // `pragma main.table_info(t)`
    let mut name = named.next().unwrap_or_default();
    if statement.get(2) == Some(&Token::Sign('.')) {
        name = named.next().unwrap_or_default();
    }
    let sign = |sign| statement.contains(&Token::Sign(sign));
    match () {
        () if sign('=') || sign('(') && !has(words::PRAGMAS_ABOUT, name) => {
            alloc::vec![(Effect::Writes, "changes how a database is kept")]
        }
        () if has(words::PRAGMAS, name) => Vec::new(),
        () => alloc::vec![UNKNOWN],
    }
}

/// A command of the SQLite shell.
fn dot_command(statement: &Statement) -> Found {
    let name = match statement.get(1) {
        Some(Token::Word(name)) => name.as_str(),
        _ => "",
    };
    match has(words::DOT_PRINTS, &alloc::format!(".{name}")) {
        true => Vec::new(),
        false => alloc::vec![CLIENT],
    }
}

/// A command of `psql`: one, with plain words behind it.
fn backslash_command(statement: &Statement) -> Found {
    let name = match statement.get(1) {
        Some(Token::Word(name)) => name.as_str(),
        Some(Token::Sign('?')) => "?",
        _ => "",
    };
    let prints = name.starts_with('d') || has(words::BACKSLASH_PRINTS, name);
    let is_plain = |token: &Token| {
        matches!(
            token,
            Token::Word(_) | Token::Quoted(_) | Token::Sign('.' | '*' | '+' | '?' | '=')
        )
    };
    match prints && statement.iter().skip(1).all(is_plain) {
        true => Vec::new(),
        false => alloc::vec![CLIENT],
    }
}

/// The functions that a statement calls which are not known to compute and nothing else.
fn calls(statement: &Statement) -> Found {
    let mut found = Vec::new();
    let mut before: Option<&Token> = None;
    let mut name_before: Option<&Token> = None;
    for (at, token) in statement.iter().enumerate() {
        let called = match (token, before) {
            (Token::Sign('('), Some(Token::Word(word))) => Some((word.as_str(), name_before)),
            // A name in quotes or brackets.
            (Token::Sign('('), Some(Token::Quoted(_) | Token::Sign(']'))) => {
                Some(("", name_before))
            }
            _ => None,
        };
        if let Some((word, behind)) = called {
            let is_name = matches!(behind, Some(Token::Word(own)) if has(words::BEFORE_NAME, own));
            let is_of_schema = behind == Some(&Token::Sign('.'));
            let computes = has(words::FUNCTIONS, word) && !is_of_schema;
            let reads = word.starts_with("read_")
                || matches!(word, "parquet_scan" | "sniff_csv" | "readfile");
            let is_listed = word == "glob"
                && matches!(behind, Some(Token::Word(own)) if matches!(own.as_str(), "from" | "join"));
            let arguments = statement.get(at + 1..).unwrap_or_default();
            if (reads || is_listed) && !is_literal_argument(arguments) {
                found.push(COMPUTED);
            }
            let is_known =
                computes || has(words::BEFORE_PARENTHESIS, word) || word.starts_with("pragma_");
            match () {
                () if is_name || is_known => {}
                () if reads => found.push((Effect::Opens, "reads files that it names")),
                () if matches!(
                    word,
                    "load_extension" | "writefile" | "edit" | "lo_import" | "lo_export"
                ) =>
                {
                    found.push((Effect::Code, "reaches files or programs on the database's side"));
                }
                () => found.push((Effect::Unknown, "calls a function of which nothing is known")),
            }
        }
        name_before = before;
        before = Some(token);
    }
    if says(statement, "outfile") || says(statement, "dumpfile") {
        found.push((Effect::Code, "reaches files or programs on the database's side"));
    }
    // A client puts the value of a variable here, whatever that is.
    let is_variable = |pair: &[Token]| {
        matches!(pair, [before, Token::Sign(':'), Token::Word(_) | Token::Quoted(_) | Token::Sign('{')]
            if *before != Token::Sign(':') && !matches!(before, Token::Word(word) if word.starts_with(|c: char| c.is_ascii_digit())))
    };
    if statement.windows(3).any(is_variable) {
        found.push((Effect::Unknown, "holds a variable of which only the client knows the value"));
    }
    found
}

/// Whether a statement reaches files or other computers by what it quotes.
fn reaches(statement: &Statement) -> bool {
    let named = |token: &Token| matches!(token, Token::Word(word) if has(words::REACHES, word));
    let follows = |pair: &[Token]| match pair {
        [Token::Word(word), Token::Quoted(text)] => {
            has(words::TABLE_FOLLOWS, word) && text.contains(['/', '.', '*'])
        }
        _ => false,
    };
    statement.iter().any(named) || statement.windows(2).any(follows)
}

/// Whether what a statement quotes is written.
fn writes_there(statement: &Statement) -> bool {
    let first = statement.first();
    let writes = |text: &str| first == Some(&Token::Word(text.to_string()));
    ["copy", "export", "attach"].into_iter().any(writes) && !says(statement, "from")
        || says(statement, "into") && !writes("insert")
}

/// The other computers that a statement reaches.
fn addresses(statement: &Statement) -> Found {
    let is_reached = reaches(statement) && quoted(statement).any(is_address);
    match is_reached {
        false => Vec::new(),
        true if writes_there(statement) => {
            alloc::vec![(Effect::Publishes, "sends data to another computer")]
        }
        true => alloc::vec![(Effect::Network, "fetches from another computer")],
    }
}

fn is_address(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && !scheme.eq_ignore_ascii_case("file")
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    })
}

fn quoted(statement: &Statement) -> impl Iterator<Item = &str> {
    statement.iter().filter_map(|token| match token {
        Token::Quoted(text) => Some(text.as_str()),
        _ => None,
    })
}

fn says(statement: &Statement, word: &str) -> bool {
    statement.iter().any(|token| matches!(token, Token::Word(own) if own == word))
}

/// Each word with the word before it, and whether a parenthesis follows.
fn with_neighbours(statement: &Statement) -> impl Iterator<Item = (&str, Option<&str>, bool)> {
    let word = |at: Option<usize>| match statement.get(at?) {
        Some(Token::Word(word)) => Some(word.as_str()),
        _ => None,
    };
    (0..statement.len()).filter_map(move |at| {
        let is_call = statement.get(at + 1) == Some(&Token::Sign('('));
        Some((word(Some(at))?, word(at.checked_sub(1)), is_call))
    })
}

/// The words of a text, whatever is quoted.
fn words_of(text: &str) -> impl Iterator<Item = String> {
    text.split(|letter| !is_of_word(letter) || letter == '$').map(str::to_lowercase)
}

/// Whether anything in a text could be more than asking, if all of it were code.
fn could_act(text: &str) -> bool {
    let lists = [words::ACTS, words::CHANGES, words::RUNS, words::CLIENT, words::COULD];
    let acts = words_of(text).any(|word| lists.iter().any(|list| has(list, &word)));
    let calls = text.match_indices('(').any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default().trim_end();
        let name = before.rsplit(|c| !is_of_word(c)).next().unwrap_or_default().to_lowercase();
        let is_quoted = before.ends_with(['"', '`', ']']);
        is_quoted
            || !name.is_empty()
                && !has(words::FUNCTIONS, &name)
                && !has(words::BEFORE_PARENTHESIS, &name)
    });
    // Each semicolon could end a statement.
    let begins = text.split(';').any(|part| {
        let first = words_of(part).find(|word| !word.is_empty());
        first.is_some_and(|word| !has(words::ASKS, &word))
    });
    let tells = text.lines().any(|line| line.trim_start().starts_with(['.', '\\', '!', ':']));
    let is_end = |rest: &str| matches!(rest.trim_end(), "\\G" | "\\g" | "\\G;" | "\\g;");
    let escapes = text.match_indices('\\').any(|(at, _)| {
        let rest = text.get(at..).unwrap_or_default();
        let next = rest.chars().nth(1);
        next.is_none_or(|next| next.is_ascii_alphabetic() || next == '!') && !is_end(rest)
    });
    acts || begins || calls || tells || escapes
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
            "select count(*), max(a), coalesce(b, 'x') from t where c in (1, 2) and d like '%\\_%'",
            "select replace(a, 'x', 'y'), truncate(b, 2) from t for update",
            "select a from t where b = 'it''s; drop table t'",
            "select \"update\", [order] from t where x = 'a' -- drop it; it's old\n order by 1",
            "select 1 /* it's */ as a",
            "select a::numeric(10,2) from t",
            "select * from t where created > now() - interval '1 day'\\G",
            "with recursive t(n) as (select 1 union all select n+1 from t where n < 9) select n from t",
            "pragma table_info(users)",
            "pragma user_version;",
            "show create table users",
            "select array[1,2][1]",
            "(select 1) union (select 2)",
            ".mode column\n.headers on\nselect 1;",
            "select strftime('%Y-%m', at) as month, sum(total) from orders group by month having sum(total) > 3",
            "select u.name from users u left join orders o on o.user_id = u.id where o.id is null limit 5 offset 2",
            "select * from 'data/a.parquet' where x > 3",
        ] {
            assert_eq!(effects(text), [], "{text}");
        }
    }

    #[test]
    fn a_file_in_quotes_is_not_computed() {
        for text in [
            "copy t to 'x.csv'",
            "copy t to 'x.parquet' (format parquet)",
            "copy (select a from t) to 'x.csv' with (header)",
            "copy t (a, b) from 'x.csv' delimiter ','",
            "copy t from stdin",
            "copy t to stdout",
            "select * from read_csv('x.csv', header = true)",
            "from read_parquet(['a.parquet', 'b.parquet'])",
            "select * from glob('data/*')",
            "select name from t where glob(pattern, name)",
            "attach 'x.db' as x",
            "attach if not exists 'x.db'",
            "vacuum into 'y.db'",
            "vacuum",
        ] {
            assert!(!effects(text).contains(&COMPUTED), "{text}: {:?}", effects(text));
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
            assert!(files(text).iter().any(|own| own.0 == "/home/x"), "{text}: {:?}", files(text));
        }
        assert_eq!(files("select path from routes where path = '/api/users'"), []);
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
            // What is text to some dialects and code to others (M7).
            ("select 1 as [a'b]; drop table x; select 1 as [a'b]", Effect::Unknown),
            ("select $$'$$; drop table x; select $$'$$", Effect::Unknown),
            ("select $a$'$a$; drop table x; select $a$'$a$", Effect::Unknown),
            ("select E'\\''; drop table x; --'", Effect::Unknown),
            ("select 'a\\'; drop table x; --'", Effect::Unknown),
            ("select 1--1; drop table x", Effect::Unknown),
            ("select 1 # it's\n; drop table x; # it's", Effect::Unknown),
            ("select 1 /* /* */ ; drop table x; -- */", Effect::Unknown),
            ("select `a'b`; drop table x; select `a'b`", Effect::Unknown),
            ("select @a('); drop table x; select @a(')", Effect::Unknown),
            ("select \"a\\\"; drop table x; --\"", Effect::Unknown),
            ("select q'['];drop table x;--]'", Effect::Unknown),
            ("select 1 -- a\rdrop table x", Effect::Unknown),
            ("select 1 as [/*];pragma user_version = 7;\nselect 1", Effect::Unknown),
            ("select 1 as [/*]; frobnicate; select 1", Effect::Unknown),
            // Two statements without a semicolon between them.
            ("select 1\ngo\ndrop table x", Effect::Unknown),
            ("select 1 drop table x", Effect::Unknown),
            ("select * into b from a", Effect::Unknown),
            ("delimiter //\nselect 1//\ndrop table x//", Effect::Unknown),
            ("\\d //\nselect 1// drop table x//", Effect::Starts),
            // Functions that do more than compute.
            ("select pg_terminate_backend(1)", Effect::Unknown),
            ("select nextval('s')", Effect::Unknown),
            ("select \"load_extension\"('x')", Effect::Unknown),
            ("select [writefile]('x', 'y')", Effect::Unknown),
            ("select evil.lower('x')", Effect::Unknown),
            ("select * from fsdir('x')", Effect::Unknown),
            ("insert into t select load_extension('x')", Effect::Code),
            ("select :name", Effect::Unknown),
            ("pragma writable_schema=on", Effect::Writes),
            ("pragma wal_checkpoint(truncate)", Effect::Writes),
            ("pragma optimize", Effect::Unknown),
            ("set global x = 1", Effect::Unknown),
            ("set extension_directory = 'x'", Effect::Unknown),
            // Commands of clients.
            ("select 1\nsystem id", Effect::Starts),
            ("tee out", Effect::Starts),
            ("pager sh", Effect::Starts),
            ("source x", Effect::Starts),
            ("\\dt \\! id", Effect::Starts),
            ("\\copy t to program 'sh'", Effect::Starts),
            ("select 1 \\g |sh", Effect::Unknown),
            ("select 1;\n.shell id", Effect::Starts),
            (".once out", Effect::Starts),
            (".save out", Effect::Starts),
            ("!! id", Effect::Starts),
            (":r x", Effect::Starts),
            // Other computers (L5).
            ("copy t to 'https://example.org/x'", Effect::Publishes),
            ("copy (select 1) to 's3://bucket/x'", Effect::Publishes),
            ("copy t from 'https://example.org/x'", Effect::Network),
            ("select * from 'https://example.org/x.csv'", Effect::Network),
            ("select * from read_csv('https://example.org/x.csv')", Effect::Network),
            ("attach 'postgres://db' as d", Effect::Publishes),
            ("install httpfs", Effect::Code),
            ("load httpfs", Effect::Code),
            ("copy t to 'x.csv'", Effect::Writes),
            // A file or an address that is computed.
            ("copy t to ('https'||'://e/x')", Effect::Unknown),
            ("copy t to 'https'||'://e/x'", Effect::Unknown),
            ("copy t to getvariable('x')", Effect::Unknown),
            ("copy t to concat('https', '://e/x')", Effect::Unknown),
            ("copy t from ('ht'||'tps://e/x')", Effect::Unknown),
            ("copy stdout to ('https'||'://e/x')", Effect::Unknown),
            ("copy (select 1 as stdout) to ('https'||'://e/x')", Effect::Unknown),
            ("copy t to 'ht'\n'tps://e/x'", Effect::Unknown),
            ("copy t to 'x'.replace('x', 'y')", Effect::Unknown),
            ("explain analyze copy t to ('https'||'://e/x')", Effect::Unknown),
            ("from read_csv('ht'||'tps://e/x')", Effect::Unknown),
            ("select * from read_csv(getvariable('x'))", Effect::Unknown),
            ("select * from read_parquet(['a', 'ht'||'tps://e/x'])", Effect::Unknown),
            ("select * from parquet_scan(concat('a', 'b'))", Effect::Unknown),
            ("select * from read_text(x)", Effect::Unknown),
            ("from glob('/e'||'tc/*')", Effect::Unknown),
            ("select readfile('a'||'b')", Effect::Unknown),
            ("attach ('a'||'b') as x", Effect::Unknown),
            ("attach 'x'||y", Effect::Unknown),
            ("attach database if not exists 'x'||y as z", Effect::Unknown),
            ("vacuum into 'a'||'b'", Effect::Unknown),
            (".read '|id'", Effect::Starts),
            (".read x.sql", Effect::Starts),
            (".output |sh", Effect::Starts),
            (".import '|id' t", Effect::Starts),
            ("copy t to program 'sh'", Effect::Starts),
        ] {
            let found = effects(text);
            assert!(found.iter().any(|(own, _)| *own == effect), "{text}: {found:?}");
        }
    }
}
