//! What the command language accepts means what it means to shells: the same words, variables and
//! streams as bash and dash make of the same text. This is the only place that starts a shell.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panics"
)]
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "core starts nothing and opens nothing; its language is compared with those that do"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use capsule_command::shell_syntax::{
    ListOption, PipelineStage, RESERVED_COMMANDS, Redirection, Script, ShellWord, StdStream,
    UnsupportedSyntax, WordPiece, parse,
};
use capsule_command::steps::{ListState, NextStep};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// The one program of the texts. It notes what it was given, writes to both streams, copies its
/// input, and ends as its last word says.
const SHOW: &str = r#"#!/bin/sh
printf '%s\0' "$(($# + 2))" "${A-none}" "${B-none}" "$@" >>"$RECORD"
if [ -n "$STREAMS" ]; then
    printf 'out %s\n' "$*"
    printf 'err %s\n' "$*" >&2
    cat
fi
for last; do :; done
[ "$last" != fail ]
"#;

/// A place to run texts in: an empty folder, the program, and what it notes.
struct Bench {
    root: PathBuf,
    /// Empty files in the folder.
    names: Vec<String>,
}

/// What a text did.
#[derive(Debug, Default, PartialEq, Eq)]
struct Done {
    /// What was run, in any order: `A`, `B`, and the words behind the program's name.
    runs: Vec<Vec<String>>,
    files: BTreeMap<String, String>,
    out: String,
    /// In any order: the stages of a pipeline write at once.
    err: Vec<String>,
    failed: bool,
}

impl Bench {
    fn new(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("bin")).unwrap();
        // A child writes the program: nothing that another test starts has it open for writing then.
        fs::write(root.join("show"), SHOW).unwrap();
        let mut install = Command::new("install");
        let written = install.current_dir(&root).args(["-m", "755", "show", "bin/show"]).status();
        assert!(written.unwrap().success());
        Self { root, names: Vec::new() }
    }

    /// Gives a text to a shell.
    fn run(&self, shell: &[&str], text: &str, streams: bool) -> Done {
        let (folder, record) = (self.root.join("work"), self.root.join("record"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        self.names.iter().for_each(|name| fs::write(folder.join(name), "").unwrap());
        fs::write(&record, "").unwrap();
        let path = format!("{}:/usr/bin:/bin", self.root.join("bin").display());
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).args(["-c", text]).current_dir(&folder).stdin(Stdio::null());
        command.env_clear().env("PATH", path).env("LC_ALL", "C.UTF-8").env("RECORD", &record);
        command.env("STREAMS", if streams { "yes" } else { "" });
        let Output { status, stdout, stderr } = command.output().expect("the shell is installed");
        let text_of = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let files = fs::read_dir(&folder).unwrap().map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap())
        });
        Done {
            runs: noted(&fs::read_to_string(&record).unwrap()),
            files: files.collect(),
            out: text_of(stdout),
            err: sorted_lines(&text_of(stderr)),
            failed: !status.success(),
        }
    }
}

fn sorted_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn noted(record: &str) -> Vec<Vec<String>> {
    let mut runs = Vec::new();
    let mut parts = record.split_terminator('\0');
    while let Some(count) = parts.next() {
        let count: usize = count.parse().unwrap();
        runs.push((0..count).map(|_| parts.next().unwrap().to_owned()).collect());
    }
    runs.sort();
    runs
}

/// What a script means, done by hand in memory.
#[derive(Default)]
struct Meaning {
    done: Done,
    /// What is open: a name and a place in it; none for the end.
    open: Vec<(String, Option<usize>)>,
    streams: bool,
}

/// How words that are patterns reach the program where nothing matches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patterns {
    Typed,
    Dropped,
}

impl Meaning {
    fn of(script: &Script, streams: bool, patterns: Patterns) -> Done {
        let mut own = Self { streams, ..Self::default() };
        let mut state = ListState::new(());
        while let Ok(NextStep::Run(index)) = state.advance(script, &|()| None, &|(), _| None) {
            let before = own.done.files.remove("1").unwrap_or_default();
            let (mut input, mut any_failed) = (String::new(), false);
            let stages = &script.elements[index].pipeline.stages;
            for (index, stage) in stages.iter().enumerate() {
                let pipe = (index + 1 < stages.len()).then_some("|");
                let stage = stage.with_values(&state.values_here(None)).unwrap();
                input = own.stage(&stage, input, pipe.unwrap_or("1"), patterns);
                any_failed |= own.done.failed;
            }
            own.done.failed |= any_failed && state.has_option(ListOption::PipeFail);
            let printed = own.done.files.remove("1").unwrap_or_default();
            let kept = if state.captures() { before } else { before + &printed };
            own.done.files.insert("1".into(), kept);
            let status = u8::from(own.done.failed);
            state.ended(script, Some(status), Some(&printed)).unwrap();
        }
        own.done.failed = state.status != Some(0);
        own.done.runs.sort();
        own.done.out = own.done.files.remove("1").unwrap_or_default();
        own.done.err = sorted_lines(&own.done.files.remove("2").unwrap_or_default());
        own.done
    }

    /// Runs one stage; what it writes into the pipe is given back.
    fn stage(
        &mut self,
        stage: &PipelineStage,
        input: String,
        out: &str,
        patterns: Patterns,
    ) -> String {
        self.open = vec![(out.into(), None), ("2".into(), None)];
        self.done.files.remove("|");
        let (mut input, mut streams) = (input, [0, 1]);
        for redirect in &stage.redirects {
            let index = |stream: StdStream| usize::from(stream == StdStream::Err);
            match redirect {
                Redirection::File { stream, path, append } => {
                    let file = self.done.files.entry(path.clone()).or_default();
                    if !append {
                        file.clear();
                    }
                    streams[index(*stream)] = self.open.len();
                    self.open.push((path.clone(), (!append).then_some(0)));
                }
                Redirection::Duplicate { stream, target } => {
                    streams[index(*stream)] = streams[index(*target)]
                }
                Redirection::Input { path } => input = self.done.files[path].clone(),
                Redirection::Here { text } => input = text.clone(),
            }
        }
        let value = |name: &str| {
            let last = stage.variables.iter().rev().find(|own| own.0 == name);
            last.map_or("none".to_owned(), |own| own.1.clone())
        };
        let is_kept = |word: &&ShellWord| patterns == Patterns::Typed || word.as_glob().is_none();
        let words: Vec<String> =
            stage.words.iter().skip(1).filter(is_kept).map(ShellWord::unexpanded).collect();
        if let Some(program @ ("cat" | "true")) = stage.words[0].literal() {
            // What a group prints, on its way into a file that was opened before.
            if program == "cat" {
                self.write(streams[0], &input);
            }
            self.done.failed = false;
            return self.done.files.remove("|").unwrap_or_default();
        }
        self.done.failed = words.last().is_some_and(|last| last == "fail");
        if self.streams {
            self.write(streams[0], &format!("out {}\n", words.join(" ")));
            self.write(streams[1], &format!("err {}\n", words.join(" ")));
            self.write(streams[0], &input);
        }
        self.done.runs.push([value("A"), value("B")].into_iter().chain(words).collect());
        self.done.files.remove("|").unwrap_or_default()
    }

    fn write(&mut self, open: usize, text: &str) {
        let (path, place) = &mut self.open[open];
        let file = self.done.files.entry(path.clone()).or_default();
        match place {
            None => file.push_str(text),
            Some(place) => {
                let end = (*place + text.len()).min(file.len());
                file.replace_range(*place..end, text);
                *place += text.len();
            }
        }
    }
}

/// Whether dash has what the text is made of. Braces and here-strings are bash's own, and escapes in
/// quotes came into POSIX in 2024.
fn is_posix(text: &str) -> bool {
    !["{", "<<<", "$'", "&>", "|&", "pipefail", "(<"].iter().any(|own| text.contains(own))
}

fn compare(bench: &Bench, text: &str, script: &Script, streams: bool) {
    let typed = Meaning::of(script, streams, Patterns::Typed);
    let mut compared = Vec::new();
    compared.push((bench.run(&["bash", "-f"], text, streams), &typed, "bash"));
    if is_posix(text) {
        compared.push((bench.run(&["dash", "-f"], text, streams), &typed, "dash"));
    }
    let patterns = || script.stages().flat_map(|stage| &stage.words).filter_map(ShellWord::as_glob);
    let dropped = Meaning::of(script, streams, Patterns::Dropped);
    let text_of =
        |pieces: &[_]| ShellWord { pieces: pieces.to_vec(), ..ShellWord::default() }.unexpanded();
    // Whether a bracket that nothing closes makes a word a pattern that nothing matches, bash decides by
    // a rule of its own; it hands on the same word either way, but for this option.
    let mut plain = script.stages().flat_map(|stage| &stage.words).filter_map(ShellWord::literal);
    let open = plain.any(|word| word.contains('['));
    // Elsewhere than in the empty folder there are names to match, and so there are in it once it holds a file.
    let empty = !patterns().any(|own| text_of(own).contains('/')) && dropped.files.is_empty();
    if !open && patterns().count() > 0 && empty {
        compared.push((bench.run(&["bash", "-O", "nullglob"], text, streams), &dropped, "globs"));
    }
    for (done, meant, shell) in compared {
        assert_eq!(&done, meant, "{shell}: {text:?}\n{script:?}");
    }
}

/// Texts of words.
const WORDS: &[&str] = &[
    "show a 'b c' \"d e\" f\\ g ''",
    "show 'it'\\''s' a'b'\"c\"d \"\"",
    "show \"a\\\"b\\\\c\\$d\\`e\\nf\\\ng\\'\"",
    "show \\' \\\" \\| \\& \\; \\\\ \\# \\$ \\a \\~ \\* \\{a,b} \\<",
    "show $ a$ \"$\" \"a$|b\" \"$.\" $/ $\\a $: $= \"$ \" $, {a,$} 'a$'",
    "show $ a$ \"$\" \"a$|b\" \"$.\" $/ $\\a $: $= \"$ \" $, 'a$' $% $+ $^ $. \"$)\" \"$'\"",
    "sh\\\now a\\\nb 'a\\\nb' \"a\\\nb\" \\\n c",
    "show a#b # c $x `d`\nshow '#' \\# a''#",
    "show a \\\n# comment\nshow b",
    "show ! a! = a=b ] } { % ^ , : @ + - -- . .. / a/b a:b a,b",
    "show HEAD~1 HEAD^ stash@{0} HEAD:a a~ '~' \\~ a:~ =a",
    "show '~' a:~ b~:~ -x=a:b",
    "show é 'é x' 日本 'a\u{a0}b' '✔\u{fe0f}' \"ن\u{200c}م\" “a b”",
    r#"show $'a\tb' x$'\n'y $'\r' $'it\'s \"q\" \\' $'' $'*' $'{a,b}' "$'a'" '$'"#,
    "show $'a\nb $x `d` $ #'",
    "show\ta \t b\t",
    "show 'a\tb\nc' \"d\n\ne\"",
    "show [ a ] [] [!] a[ b[c ]d [! x]",
    "show a* ?b [a-c0-9_]* [!x]y []a] *.rs a*b?c [a-c-] [-a] [!]a] [a!] [a^]",
    "show '*' \\* \"[a]\" \\[a] [a\\] '?'x*",
    "show .git* .[!.]* a/.b* .a*.b",
    "show if then time for do done ! { } [[ ]] case in function",
    "show export eval exit . source",
    "A=1 B='x y' show; show A=1",
    "A=1 A=2 B= show 'A=3'",
    "A=*.c B={a,b} show",
    "A=a:b=c B=\"a b\"'c'\\ d show $",
    "A='~' B=a\\~ show",
    "show 2 22 '2' 1>n",
    "show {a,b}{1..3} a{,b}c {,} {'',d} x{,}",
    "show {} {a} {a{b,c}} {{a,b},c} a{} {}b {}{a,b} {{}} {{},a}",
    "show {3..1} {-1..1} {a..c} {C..A} {5..5} {z..x..2} {1..2}{a,b}",
    "show {01..3} {1..9..4} {9..1..-4} {-01..1} {1..5..0} {1..10..100} {08..11} {001..2} {1..-1}",
    "show '{a,b}' {a\\,b} {'a,b'} {1'..'3} {1\\..3} \"{a\"{b,c}\"}\" {a,\"b c\"}",
    "show {a,b}* {\\*,?} {[,x}a] {a,'*'} {.a,b}*",
    "show {a{b{c,d},e},f}g {a,b{1..2}} {{1..2},3} {a}{b}{c,d} {a},{b,c} {{.A}},{{.B}}",
    "show {A,B}=1 A={x,y} {a=1,b}",
    "show {'a',b\\ c} {a,}'x' ''{a,b} {a,''}",
    "show {if,'x'}; show {a,#b} {a,b}#c",
    "show {'1..3'} {1.'.'3} {a.b,c..d} {a..b,c}",
];

/// Texts of lists and of streams. Whoever stands behind a pipe reads it: else the one before may be
/// ended while it writes.
const STREAMS: &[&str] = &[
    "show a && show b || show c; show d",
    "show fail && show b || show c",
    "show fail || show fail || show c && show d",
    "show fail; show b\nshow fail\n\n",
    "show a &&\n\n# why\n show b |\n show c",
    "show a|show b|show c fail",
    "show a fail | show b",
    "show a ; \n show b ;",
    "show a \\\n && show b &\\\n& show c |\\\n| show d",
    "show a >b",
    "show a>b 2>c",
    "show a 1>b 2>'c d' >>e",
    "show a 2 >b",
    "show a '2'>b x2>c",
    "show a 2''>b",
    "show a \\2>b",
    "show a 2\\\n>b",
    "show a 2>\\\n>b",
    "show a >b; show c >>b; show d >b 2>>b",
    "show a >b 2>&1",
    "show a 2>&1 >b",
    "show a 2>&1 >b | show c",
    "show a >b 2>&1 >c 1>&2",
    "show a >&2 | show b",
    "show a 1>&2 2>b | show c 2>&1",
    "show a 2>& 1 >\tb",
    "show a 2>&1 | show b 2>&1 | show c >d",
    ">b show a 2>c; show d <b",
    "show a >b && A=1 <b show c >d",
    "show a >b; show b <b <<'E'\ntext\nE",
    "show a >b; show b <<'E' <b\ntext\nE",
    "show <<'E' | show b\nx $y `z` \\\nw 'q\" \nE\nshow c",
    "show a <<\\E <<\"F\"\na\nE\nb\nF",
    "show a <<E\\F\nx\nEF\n",
    "show a <<-'E' && show b\n\t\ta\n\t b\t\n  E\n\tE\n",
    "show a <<'E' &&\nE\nshow b",
    "show a <<'E' # c\n# d\nE",
    "show a <<E''F\na\nEF",
    "show a <<'E' || show b; show c <<'F'\ne\nE\nf\nF\nshow d",
    "show 'a\nb' <<'E' c\\\nd\ne\nE",
    "show a <<'E' 'b\nc'\ne\nE",
    "show <<'E';show b\nE ;\n E\nE",
    "show a <<'e.o-f_1'\ntext\ne.o-f_1",
    "show a <<'É'\ntext\nÉ",
    "show a <<< b; show c <<<'d e'",
    "show a <<< \"b\nc\" | show d; show e <<< ''",
    "show a >'b*' 2>c\\ d; show e > \"f\"g",
    "show a > b#c",
    "show a >-",
];

/// Texts of statements, variables and substitutions.
const STATEMENTS: &[&str] = &[
    "A=a; show $A \"$A b\" ${A}c '$A' \\$A",
    "A='a b'; show $A \"$A\" x$A; B=$A; show \"$B\"",
    "A=; show $A \"$A\" x$A; A=' '; show $A",
    "A=' a  b '; show $A; show x$A",
    "A=1; A=2; show $A; B=$A$A; show ${B}3",
    "A=1; A=2 show $A; show $A",
    "A=1; B=$A show; show",
    "export A=1; show; A=2; show; A=3 show; show $A",
    "A=x; export A B=y; show; B=z; show $B",
    "show fail; show $?; show $?; show a || show $?",
    "A=f; show a > $A; show b >> \"$A\" 2> $A.err; show c < $A",
    "A=a; show <<E\n$A 'b' \\$A \"$A\" \\\\ \\a\nE\nshow b",
    "A='a b'; show <<< $A; show <<< \"x $A\"",
    "show <<E\nplain \"text\"\nE\nshow <<-E\n\tx\n\tE\n",
    "show \"$(cat <<'E'\na $b\n\n'c' )\nE\n)\" d",
    "show a && (show b; show c fail) || show d; (show e)",
    "(A=1; show $A; export A; show); show; (show fail); show $?",
    "{ show a; show b fail; } && show c; { show d; }",
    "{ show a; show b; } > f; show c",
    "! show a && show b; ! show fail; show $?; ! show a | show b",
    "if show a; then show b; fi; if show fail; then show c; fi; show $?",
    "if show fail; then show a; elif show b; then show c; else show d; fi",
    "if show fail || show a && show b; then show c; else show d; fi && show e",
    "if show fail\nthen\nshow a\nelse\nshow b fail\nfi || show c",
    "for a in x 'y z' w{1,2}; do show \"$a\" $a; done; show $a",
    "for a in x y; do for b in 1 2; do show $a$b; done; done",
    "for a in x fail y; do show $a && continue; show z$a; done; show $?",
    "for a in x fail y; do show $a || break; done; show $?",
    "for a in x y fail; do show $a; done || show last",
    "for a in x y; do show $a; done > f",
    "A='x y'; for a in $A \"$A\"; do show $a; done; for a in $A; do A=1; show $A; done",
    "A=x; while show $A; do A=fail; done; show $?; until show $A; do A=y; done",
    "A=1; while show; do if show $A fail; then show a; else break; fi; done; show $?",
    "set -e; show a; show b || show c; show fail && show d; show e; show fail; show f",
    "set -e; if show fail; then show a; fi; ! show b; (show fail; show c); show d",
    "set -e; set +e; show fail; show a",
    "set -o pipefail; show fail | show a; show $?; show a | show b",
    "show a; exit 3; show b",
    "(show a; exit 0; show b); show c; exit",
    "show a || exit 1; (exit 4) || show $?",
    "bash -c 'show a; show b fail' || show c; sh -c 'show d'",
    "A=1; export B=2; bash -c 'show; A=3; show $A'; show $A",
    "bash -ec 'show fail; show a'; bash -c \"sh -c 'show b'\" | show c",
    "A=1; bash -c 'A=2; show $A'; show $A; sh -c 'set -e; show a'; show fail; show $?",
    "show fail; bash -c 'show $?'; show fail || sh -c 'show a; show $?'",
    "show fail; bash -c 'show $?; show fail; show $?'; show $?; sh -c 'show b; exit 3; show c'; show d",
    "set -o pipefail; bash -c 'show fail | show a'; show $?",
    "bash -o pipefail -c 'show fail | show a'; show $?; set -e; bash -c 'show fail; show b'; show c",
    "A=a; show a && A=b || A=c; show $A; show fail && A=d; show $A",
    "A=a && show fail && A=b; show $A",
];

/// Texts whose outputs become words; `show` prints the words that it is given.
const SUBSTITUTIONS: &[&str] = &[
    "show $(show a b) \"$(show c d)\" x$(show e)y",
    "A=$(show a); show \"$A\" $A; A=$(show fail); show $?",
    "A=\"$(show a)\" show; show \"$(show a | show b)\"",
    "for a in $(show x y); do show $a; done",
    "show \"$(show \"$(show a)\")\"; show \"$(A=1; show $A; show b)\"",
    "show fail && show $(show a); show c || show $(show b)",
    "show <<E\nx $(show a) y\nE",
    "show a > f; show \"$(<f)\" $(cat < f)",
    "show \"$( (show a; show b) )\"; show \"$(if show a; then show b; fi)\"",
    "A=$(show a) B=$(show b); show \"$A$B\"; export A=$(show c); show",
    "set -e; A=$(show fail); show $A",
    "if A=$(show a fail); then show b; else show \"$A\"; fi",
];

fn compare_all(name: &str, texts: &[&str], streams: bool) {
    let bench = Bench::new(name);
    for text in texts {
        let script = parse(text).unwrap_or_else(|refusal| panic!("{text:?}: {refusal:?}"));
        compare(&bench, text, &script, streams);
    }
}

#[test]
fn words_are_those_of_shells() {
    compare_all("language-words", WORDS, false);
}

#[test]
fn lists_and_streams_are_those_of_shells() {
    compare_all("language-streams", STREAMS, true);
}

#[test]
fn statements_are_those_of_shells() {
    compare_all("language-statements", STATEMENTS, false);
    compare_all("language-statement-streams", STATEMENTS, true);
    compare_all("language-substitutions", SUBSTITUTIONS, true);
}

/// What a text may be made of at random.
const ATOMS: &[&str] = &[
    "a", "b", "1", "2", "01", "-", " ", " ", " ", "\t", "\n", ";", "&&", "||", "'", "'", "\"",
    "\"", "\\", "\\\n", "$", "{", "}", "{", "}", ",", ",", "..", "{a,b}", "{1..3}", "*", "?", "[",
    "]", "!", "^", ".", "/", "~", "=", "A=", ":", "#", "%", "@", "é", " show ", " fail", "\nshow ",
    " <<'E'\n", "\nE\n", "2>&1", " >f", ">&2", "time", "if", "\u{a0}", "``", "$(", "<<<", "&", "(",
    "B='x'",
];

/// Words made of quotes and braces that close.
fn closed() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a", "b", "1", "''", "' '", "\"{\"", "'}'", "\\,", "','", ".", "..", "1..3", "c..a", "$",
        "~", "=", "A=", "*", "[", "]", "?", "-", "01..2", "#", "\\\n", "é", "x,y", "", ",",
    ]);
    let leaf = leaf.prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            prop::collection::vec(inner.clone(), 1..4)
                .prop_map(|parts| format!("{{{}}}", parts.join(","))),
            inner.clone().prop_map(|part| format!("{{{part}}}")),
            inner.prop_map(|part| format!("\"{part}\"")),
        ]
    })
}

/// Compares texts until enough of them were accepted; says how many were made.
fn compare_made(name: &str, texts: impl Strategy<Value = String>, enough: usize) {
    let bench = Bench::new(name);
    let mut runner = TestRunner::default();
    let mut compared = 0;
    for _ in 0..enough * 200 {
        let text = texts.new_tree(&mut runner).unwrap().current();
        let Ok(script) = parse(&text) else { continue };
        // Files are made in the one folder there is.
        let is_far = |own: &Redirection| matches!(own, Redirection::File { path, .. } if path.contains('/') || path == "..");
        let is_show = |stage: &PipelineStage| {
            stage.words[0].literal() == Some("show") && !stage.redirects.iter().any(is_far)
        };
        if compared < enough && script.stages().all(is_show) {
            compare(&bench, &text, &script, false);
            compared += 1;
        }
    }
    assert_eq!(compared, enough, "too few texts were accepted");
}

#[test]
fn texts_made_at_random_are_those_of_shells() {
    let atoms = prop::collection::vec(prop::sample::select(ATOMS.to_vec()), 1..12);
    let texts = atoms.prop_map(|atoms| format!("show {}", atoms.concat()));
    compare_made("language-atoms", texts, cases(250));
}

#[test]
fn words_made_at_random_are_those_of_shells() {
    let words = prop::collection::vec(closed(), 1..4);
    let texts = words.prop_map(|words| format!("show {}", words.join(" ")));
    compare_made("language-closed", texts, cases(250));
}

/// Classes are read member by member, so each is asked about every character that a name can be.
#[test]
fn classes_are_those_of_shells() {
    let names = (' '..='~').filter(|c| !matches!(c, '/' | '.')).map(String::from);
    let bench = Bench { names: names.collect(), ..Bench::new("language-classes") };
    for class in [
        "[abc]",
        "[a-c]",
        "[!a-c]",
        "[]a]",
        "[!]a]",
        "[-a]",
        "[a-]",
        "[!-a]",
        "[a-c-]",
        "[a!]",
        "[a^]",
        "[0-9A-Fa-f]",
        "[a-a]",
        "[*]",
        "[?]",
        "[!!]",
        "[#=~]",
        "[a,b]",
        "[%:+@_]",
        "[.]",
        "[!.x]",
        "?",
    ] {
        let text = format!("show {class}");
        let Ok(script) = parse(&text) else {
            assert!(class.contains('~'), "{class} is refused");
            continue;
        };
        let stage = script.stages().next().unwrap();
        let matches = |name: &&String| match stage.words[1].as_glob() {
            Some([WordPiece::Class { negated, ranges }]) => {
                let c = name.chars().next().unwrap();
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
            }
            Some([WordPiece::One]) => true,
            other => panic!("{class} is {other:?}"),
        };
        let own: Vec<String> = bench.names.iter().filter(matches).cloned().collect();
        for shell in [&["bash", "-O", "nullglob"][..], &["dash"]] {
            let runs = bench.run(shell, &text, false).runs;
            let mut found = runs[0][2..].to_vec();
            found.sort();
            // Without a match, dash hands on the pattern.
            found.retain(|name| name != class || own.contains(name));
            assert_eq!(found, own, "{shell:?} {class}");
        }
    }
}

/// How many texts are compared; more at night.
fn cases(count: usize) -> usize {
    let more = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    more.map_or(count, |more: usize| more.max(count))
}

/// Programs that shells also have in themselves, and that do the same.
const PROGRAMS: &[&str] = &["true", "false", "echo", "printf", "test", "[", "pwd", "kill", ":"];

/// Whatever a shell keeps for itself is either refused or known to be a program.
#[test]
fn no_word_of_a_shell_is_taken_for_a_program() {
    let list = |which: &str| {
        let output = Command::new("bash").args(["-c", which]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let words = list("compgen -b; compgen -k");
    assert!(words.lines().count() > 60, "{words}");
    for word in words.lines().filter(|word| !PROGRAMS.contains(word)) {
        let is_refused = RESERVED_COMMANDS.iter().any(|row| row.0.contains(&word));
        assert!(is_refused || matches!(word, "cd" | "time" | "in"), "{word}");
    }
    for text in ["time", "time -p show", "time show | show", "time A=1 show"] {
        assert_eq!(
            parse(text).map_err(|own| own.construct),
            Err(UnsupportedSyntax::Time),
            "{text}"
        );
    }
    let bench = Bench::new("language-time");
    let script = parse("time show a").unwrap();
    let words: Vec<Option<&str>> =
        script.stages().flat_map(|own| &own.words).map(ShellWord::literal).collect();
    assert_eq!(words, [Some("time"), Some("show"), Some("a")]);
    assert_eq!(bench.run(&["bash"], "time show a", false).runs, [["none", "none", "a"]]);
}
