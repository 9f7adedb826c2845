//! The small languages that stand in words of command lines, against the programs that take them: what one
//! of those does besides printing, the reading of its text must have said, or that it cannot say.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "core starts nothing and opens nothing; its readings are compared with programs that do"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use capsule_command::specs::{CommandLine, Effect, Effects};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// A folder that is emptied before each text runs.
struct Bench(PathBuf);

impl Bench {
    fn new(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        Self(root)
    }

    fn file(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }

    /// Every file with its bytes.
    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(&self.0).unwrap().map(Result::unwrap);
        let read = |entry: fs::DirEntry| {
            (
                entry.file_name().to_string_lossy().into_owned(),
                fs::read(entry.path()).unwrap_or_default(),
            )
        };
        entries.map(read).collect()
    }

    fn empty(&self) {
        for name in self.files().into_keys() {
            fs::remove_file(self.0.join(name)).unwrap();
        }
    }

    fn run(&self, argv: &[&str]) -> Vec<u8> {
        let mut command = Command::new("timeout");
        command.args(["-k", "1", "5"]).args(argv).current_dir(&self.0).env_clear();
        command.envs([
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("LC_ALL", "C.UTF-8"),
            ("HOME", "/nonexistent"),
        ]);
        command.stdin(Stdio::null()).stderr(Stdio::null()).output().unwrap().stdout
    }
}

/// Whether a text is judged as one that reads and prints, by what it adds to its command line.
fn only_reads(argv: &[&str]) -> bool {
    let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
    let line = CommandLine::parse(&argv, None, false);
    let harmless = Effects::of(Effect::Reads).with(Effect::Opens);
    let mut added = line.parsed_argvs().flat_map(|reading| &reading.argument_effects);
    added
        .all(|added| added.argument != argv[argv.len() - 1] || added.effects.is_subset_of(harmless))
}

/// Texts until enough were tried. The same each time; others where more are asked for.
fn texts(strategy: impl Strategy<Value = String>, count: usize) -> impl Iterator<Item = String> {
    let more = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse::<usize>().ok());
    let mut runner = match more {
        Some(_) => TestRunner::default(),
        None => TestRunner::deterministic(),
    };
    (0..more.unwrap_or(0).max(count))
        .map(move |_| strategy.new_tree(&mut runner).unwrap().current())
}

/// Some of several pieces, one behind the other.
fn some_of(pieces: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(pieces), 0..most).prop_map(|pieces| pieces.concat())
}

#[test]
fn what_sqlite_does_was_told() {
    const PIECES: &[&str] = &[
        " as [a'b]",
        ", 'a''b'",
        " as \"a'b\"",
        ", 'a\\'",
        " -- it's\n",
        " /* ' */",
        " -1--1'\n",
        ", 1 as `a'b`",
        " /* /* */",
        " as [a\"b]",
        ", @a(')",
        ", :b(')",
        ", $c(')",
        " as \"a\\\"",
        " as [a--b]",
        ", x''",
        " as [/*]",
        "||'--'",
        ",'/*'",
        " as [;]",
        " as a$$",
        ", \"'\"",
        " as '\"'",
        " as 'b--'",
    ];
    const ODD: &[&str] = &[
        " as [a'b]",
        " as \"",
        "'",
        "\"",
        "`",
        "[",
        "]",
        "--",
        "/*",
        "*/",
        "#",
        "\\",
        "(",
        ")",
        "$$",
        ",",
        "\n",
        "go\n",
    ];
    const ACTS: &[&str] = &[
        "drop table x",
        "delete from x",
        "insert into x values (2)",
        "update x set a = 3",
        "create table z(b)",
        "alter table x rename to y",
        "replace into x values (1)",
        "pragma user_version = 7",
        "\n.shell touch made",
        "\n.output made",
        "\n.once made\nselect 1",
        "\n.save made",
        "vacuum",
        "select writefile('made', 'x')",
        "with a as (select 1) delete from x",
        "create table z as select 1",
        "\n.backup made",
        "\n.clone made",
        "\n.log made",
        "\n.import made2 x",
        "reindex",
        "analyze",
    ];
    let bench = Bench::new("sqlite");
    let act = prop::sample::select(ACTS);
    let joins = prop::sample::select(vec![";", "; ", ";\n", "\ngo\n", "\n/\n", " ", "\n"]);
    let around = || prop_oneof![4 => some_of(PIECES, 3), 1 => some_of(ODD, 4)];
    let text = (around(), joins.clone(), act, joins, around()).prop_map(
        |(before, one, act, other, behind)| {
            format!("select 1{before}{one}{act}{other}select 1{behind}")
        },
    );
    bench.run(&["sqlite3", "new.db", "create table x(a); insert into x values (1);"]);
    let new = fs::read(bench.0.join("new.db")).unwrap();
    assert!(!new.is_empty(), "sqlite3 is needed");
    let mut acted = 0;
    for text in texts(text, 900) {
        bench.empty();
        fs::write(bench.0.join("a.db"), &new).unwrap();
        bench.run(&["sqlite3", "a.db", &text]);
        let files = bench.files();
        if files.len() == 1 && files["a.db"] == new {
            continue;
        }
        acted += 1;
        assert!(!only_reads(&["sqlite3", "a.db", &text]), "{text:?} acts: {:?}", files.keys());
    }
    assert!(acted > 60, "only {acted} texts did something");
}

#[test]
fn what_awk_does_was_told() {
    const PIECES: &[&str] = &[
        "x", "1", "$1", " ", " ", "/", "/", "\"", "\"", "#", "\n", ";", "(", ")", "{", "}", "[",
        "]", "[/]", "\\", "\\\n", "++", "--", "+", "~", "!", "=", "/=", "print ", "print", ",",
        ",\n", "a[1]", "length", "/\"/", "\"/\"", "/#/", "\"#\"", "\\/", "\\\"", "x++ / 1",
        "if (x) ", "getline ", "1 / 1", "&&", "||\n", "in ", "# c\n", "# c \\\n", "return ",
        "x = ", "/a/", "/[/]/", "%", "-", "?", ":", "<", ">",
    ];
    const ACTS: &[&str] = &[
        "system(\"touch made\")",
        "print > \"made\"",
        "print 1 > \"made\"",
        "print | \"cat > made\"",
        "\"touch made\" | getline",
        "printf(\"x\") > \"made\"",
        "print 1, 2 >> \"made\"",
        "print(1)(2) > \"made\"",
        "system(\"touch\" \" \" \"made\")",
        "printf \"%s\", 1 > \"made\"",
        "print x++ /(/ 1 > \"made\"",
        "print 1,\n2 > \"made\"",
    ];
    let bench = Bench::new("awk");
    let act = prop::sample::select(ACTS);
    let (open, join) = (
        prop::sample::select(vec!["BEGIN {", "{", "BEGIN { x = 1;", "{ y = x", "NR == 1 {", ""]),
        prop::sample::select(vec![";", "\n", " ", "}", "; "]),
    );
    let close = prop::sample::select(vec!["}", "; y = 1 / 1 }", "}\n/x/", "", " /)/ }", "# /\n}"]);
    let text = (open, some_of(PIECES, 5), join.clone(), act, join, some_of(PIECES, 5), close)
        .prop_map(|(open, before, one, act, other, behind, close)| {
            format!("{open}{before}{one}{act}{other}{behind}{close}")
        });
    bench.file("in", "a b\n");
    assert_eq!(bench.run(&["original-awk", "{print $2}", "in"]), b"b\n");
    let mut acted = 0;
    for text in texts(text, 500) {
        for program in [&["mawk"][..], &["gawk"], &["busybox", "awk"], &["original-awk"]] {
            bench.empty();
            bench.file("in", "a b\n");
            let mut argv = program.to_vec();
            argv.extend(["--", &text, "in"]);
            bench.run(&argv);
            if bench.files().len() == 1 {
                continue;
            }
            acted += 1;
            let added = only_reads(&["awk", &text]);
            assert!(!added, "{program:?} {text:?} acts: {:?}", bench.files().keys());
        }
    }
    assert!(acted > 60, "only {acted} texts did something");
}

#[test]
fn what_sed_does_was_told() {
    const PIECES: &[&str] = &[
        "p",
        "d",
        "1",
        "$",
        "/a/",
        "\\,a,",
        "s/a/b/",
        "s/[/]/x/",
        "s,[,],x,",
        "y/a/b/",
        "{",
        "}",
        ";",
        "\n",
        " ",
        "!",
        "a\\\n",
        "a x",
        "i\\",
        "c\\\nx\n",
        ":a",
        "ba",
        "t",
        "n",
        "N",
        "G",
        "h",
        "=",
        "l",
        "q5",
        "#n",
        "# c",
        "\\",
        "/",
        "[",
        "]",
        "s/a/x\\\ny/",
        "s/a/b/;",
        "s/\\//b/",
        "s/[]/]/x/",
        "s/[^]/]/x/",
        "s|a|b|g",
        "0~1",
        "1,2",
        "/[/]/",
        "/a/I",
        "s/a/b/2p",
        "z",
        "F",
        "D",
        "P",
        "x",
        "s/a\\/b/x/",
        "}",
        "-e ",
        "'",
        "\"",
        "s/[[:alpha:]/]/x/",
        "s/[[.].]/]/x/",
        "s/[\\/]/x/",
        "s/[a\\]/]/x/",
        "\\[a[",
        "s[a[b[",
        "s]a]b]",
    ];
    const ACTS: &[&str] = &[
        "w made",
        "e touch made",
        "s/.*/touch made/e",
        "s/a/b/w made",
        "W made",
        "1e touch made",
        "s/.*/touch made/;e",
        "1,$w made",
        "s/a/b/gw made",
        "s/a/b/2;w made",
        "/a/w made",
        "s,x*,,w made",
        "s/.*/touch made/Me",
        "{w made\n}",
        "$!w made\nw made",
        "\\,a,w made",
        "e",
        "s/^/touch made #/\ne",
    ];
    let bench = Bench::new("sed");
    let act = prop::sample::select(ACTS);
    let join = prop::sample::select(vec![";", "\n", "", " ", "{", "}", ";;", "\n\n"]);
    let text = (some_of(PIECES, 5), join.clone(), act, join, some_of(PIECES, 4))
        .prop_map(|(before, one, act, other, behind)| format!("{before}{one}{act}{other}{behind}"));
    let mut acted = 0;
    for text in texts(text, 500) {
        for program in [&["sed"][..], &["sed", "-E"], &["sed", "--posix"], &["busybox", "sed"]] {
            bench.empty();
            bench.file("in", "a/b\na\n");
            let mut argv = program.to_vec();
            argv.extend(["-n", "--", &text, "in"]);
            bench.run(&argv);
            if bench.files().len() == 1 {
                continue;
            }
            acted += 1;
            assert!(
                !only_reads(&["sed", &text]),
                "{program:?} {text:?} acts: {:?}",
                bench.files().keys()
            );
        }
    }
    assert!(acted > 60, "only {acted} texts did something");
}
