//! The language in one table, for people and models. The reference page is made of it, and every
//! example is read by the tests.

/// One form of the language.
#[derive(Clone, Copy, Debug)]
pub struct GrammarRule {
    /// How it is written, with the parts that vary in capitals.
    pub syntax: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// A text that holds it.
    pub example: &'static str,
}

const fn rule(form: &'static str, meaning: &'static str, example: &'static str) -> GrammarRule {
    GrammarRule { syntax: form, meaning, example }
}

/// Every form, from the largest to the smallest.
pub const GRAMMAR: &[GrammarRule] = &[
    rule("LIST: PIPELINE && PIPELINE", "the second runs if the first ended with 0", "make && ls"),
    rule(
        "LIST: PIPELINE || PIPELINE",
        "the second runs if the first ended with something else",
        "grep -q x a || grep -q x b",
    ),
    rule(
        "LIST: PIPELINE ; PIPELINE",
        "both run, one after the other; a line end does the same",
        "git status; git diff",
    ),
    rule(
        "PIPELINE: STAGE | STAGE",
        "both run together, and the second reads what the first prints; the status is the last one's",
        "git log --oneline | head -n 5",
    ),
    rule("STAGE: WORD WORD ..", "a program and its arguments", "cargo test --workspace"),
    rule(
        "STAGE: NAME=VALUE WORD ..",
        "the variable is set for this program alone, if the policy lists its name",
        "CI=1 npm test",
    ),
    rule("LIST: ! PIPELINE", "the status becomes the opposite", "! grep -q x a && ls"),
    rule(
        "LIST: if LIST; then LIST; elif LIST; then LIST; else LIST; fi",
        "the part behind the first condition that ended with 0 runs",
        "if [ -f a ]; then cat a; else echo none; fi",
    ),
    rule(
        "LIST: for NAME in WORD ..; do LIST; done",
        "the list runs once for each word; `break` and `continue` are known",
        "for f in src/*.py; do wc -l \"$f\"; done",
    ),
    rule(
        "LIST: while LIST; do LIST; done, until LIST; do LIST; done",
        "the list runs as long as, or until, the first one ends with 0; one that cannot end is refused",
        "until [ -f done ]; do sleep 1; done",
    ),
    rule(
        "LIST: while read -r NAME ..; do LIST; done < FILE, PIPELINE | while read -r ..; do LIST; done",
        "the list runs once for each line of the file, or of what the pipeline prints, which must only read; also with \
         `IFS=..` before `read` and `|| [ -n \"$NAME\" ]` behind it; programs in the list find nothing on their input",
        "while read -r name; do wc -l \"src/$name\"; done < names.txt",
    ),
    rule(
        "LIST: ( LIST )",
        "a group that leaves directory and variables as they were",
        "( cd src && make ); ls",
    ),
    rule(
        "LIST: { LIST; }",
        "a group; behind it, as behind any group, loop or condition, `> FILE`, `>> FILE`, `2> FILE`, `2>&1` and `| STAGE` take \
         what all of its programs print; the file is opened first, each program writes behind the one before, and nothing in \
         the group may write to it by its name; what a `cd` says that fails, or a program that is not there, stays on standard \
         error",
        "{ date; git status; } > log 2>&1",
    ),
    rule(
        "LIST: NAME=VALUE",
        "the variable has this value in what follows, where `$NAME` is read; programs do not see it",
        "dir=src; ls \"$dir\"",
    ),
    rule(
        "LIST: export NAME=VALUE",
        "the same, and programs see it, if the policy lists its name",
        "export CI=1; npm test",
    ),
    rule(
        "LIST: set -e, set -u, set -o pipefail",
        "the list ends at a failure; variables without a value are refused in any case; a pipeline fails with any of its programs",
        "set -euo pipefail; make; make test",
    ),
    rule(
        "LIST: PIPELINE &, ( cd DIR && PIPELINE ) &",
        "the list goes on while it runs, at most eight in a list; it reaches no hosts, nor does any part while one runs, but what listens on \
         `localhost` is reached by the parts behind it; it ends with the list, and its output comes with the call that ends it",
        "python3 server.py > log 2>&1 & sleep 1; curl -s localhost:8000; kill %1",
    ),
    rule(
        "LIST: wait, wait %N, wait $!",
        "waits for the end of all such parts, or of the Nth of the list, whose status it has",
        "make test & make docs; wait $!",
    ),
    rule("LIST: jobs", "lists such parts, and whether they run", "make test & jobs; wait"),
    rule(
        "LIST: kill %N, kill $!, kill -9 %N, kill -0 %N",
        "ends all processes of such a part at once, whatever signal is named; 0 only asks whether it runs",
        "sleep 9 & kill -0 %1 && kill %1",
    ),
    rule(
        "WORD: $!",
        "the name of the part that was started last (`%1`), not a process number; never a program, a directory or a file",
        "sleep 9 & PID=$!; kill $PID",
    ),
    rule("LIST: exit N", "the list, or the group, ends with this status", "make || exit 1; ls"),
    rule(
        "LIST: source DIR/bin/activate",
        "programs of this virtual environment of Python are found by their names",
        "source .venv/bin/activate && pytest",
    ),
    rule(
        "STAGE: bash -c TEXT, sh -c TEXT",
        "the text is read as this language; also with `-l`, `-e`, `-u`, `-o pipefail`",
        "bash -lc 'cd src && make'",
    ),
    rule(
        "STAGE: sh FILE, bash FILE",
        "the text of a script of the workspace is read as this language, where `fs.read` may read it and nothing before it in the list could change it",
        "sh scripts/test.sh",
    ),
    rule(
        "STAGE: cd DIR",
        "what follows runs in another folder of the workspace, if that is reached and there; `cd -` goes back",
        "cd src && ls",
    ),
    rule(
        "STAGE: time WORD ..",
        "how long one plain program takes, without options and pipes",
        "time make",
    ),
    rule("STAGE: type NAME .., command -v NAME ..", "where programs are", "type cargo"),
    rule(
        "REDIRECT: > FILE, 1> FILE",
        "standard output goes into the file, emptied first",
        "ls > a",
    ),
    rule("REDIRECT: >> FILE, 1>> FILE", "standard output goes to the end of the file", "ls >> a"),
    rule("REDIRECT: 2> FILE, 2>> FILE", "the same for standard error", "make 2> errors.txt"),
    rule(
        "REDIRECT: 2>&1",
        "standard error goes where standard output goes at this moment",
        "make > log 2>&1",
    ),
    rule(
        "REDIRECT: &> FILE, &>> FILE",
        "both standard output and standard error go into the file",
        "make &> log",
    ),
    rule("PIPELINE: STAGE |& STAGE", "the second reads standard error, too", "make |& tail -n 5"),
    rule("REDIRECT: >&2, 1>&2", "and the other way round", "echo failed >&2"),
    rule(
        "REDIRECT: < FILE",
        "standard input comes from the file, `/dev/null`, `/dev/zero` or `/dev/urandom`",
        "sort < a",
    ),
    rule(
        "REDIRECT: <<'WORD'",
        "standard input is what stands in the lines up to the word, as it is; the word is quoted",
        "cat <<'EOF'\ncosts $5\nEOF",
    ),
    rule(
        "REDIRECT: <<WORD",
        "the same where the word is not quoted: variables and substitutions are put in, `\\` takes away the meaning of `$`",
        "cat <<EOF\ntext\nEOF",
    ),
    rule(
        "REDIRECT: <<-'WORD'",
        "the same without the tabs before each line",
        "cat <<-'EOF'\n\tindented\n\tEOF",
    ),
    rule("REDIRECT: <<< WORD", "standard input is this word and a line end", "wc -c <<< 'text'"),
    rule("WORD: 'TEXT'", "the text as it is", "grep '$HOME' a"),
    rule(
        "WORD: \"TEXT\"",
        "the text, where `\\` before `$`, `\"`, `\\`, a backquote or a line end takes away its meaning",
        "grep \"don't\" a",
    ),
    rule(
        "WORD: $'TEXT'",
        "the text, where `\\t`, `\\n` and `\\r` are a tab, a line end and a return, and `\\` before `\\`, `'` or `\"` takes away its meaning",
        "cut -d $'\\t' -f 2 a",
    ),
    rule(
        "WORD: $NAME, ${NAME}, $PWD, $?",
        "the value that the text gave a variable, the directory, the status before; outside of double quotes it is split at white space",
        "v=1.2; echo \"version $v\"",
    ),
    rule(
        "WORD: $(LIST)",
        "what the list prints, which must only read; never a program, a file of a stream, a directory or an option, nor a word for what deletes, runs code or contacts others",
        "echo \"on $(git branch --show-current)\"",
    ),
    rule(
        "WORD: \"$(cat <<'WORD')\"",
        "the lines up to the word as one text",
        "git commit -m \"$(cat <<'EOF'\nsubject\n\nbody\nEOF\n)\"",
    ),
    rule("WORD: \\CHARACTER", "the character as it is; a line end joins two lines", "ls a\\ b"),
    rule(
        "WORD: *",
        "any characters of a name, also none; all matching names take the word's place",
        "wc -l src/*.rs",
    ),
    rule(
        "WORD: **/",
        "the folder itself and every folder below it, none of them hidden or a link; a name or a pattern follows",
        "wc -l src/**/*.rs",
    ),
    rule("WORD: ?", "one character of a name", "ls a?.txt"),
    rule(
        "WORD: [LIST], [!LIST]",
        "one character of those named, or of all others",
        "ls [a-f]*[!0-9]",
    ),
    rule("WORD: {A,B}", "a word with each of them in turn", "cp a.txt{,.bak}"),
    rule("WORD: {1..5}, {a..e}, {01..10..3}", "a word with each of them in turn", "touch n{1..5}"),
    rule("# TEXT", "where a word could begin: a comment up to the line end", "ls # all of it"),
];
