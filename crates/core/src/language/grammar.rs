//! The language in one table, for people and models. The reference page is made of it, and every
//! example is read by the tests.

/// One form of the language.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// How it is written, with the parts that vary in capitals.
    pub form: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// A text that holds it.
    pub example: &'static str,
}

const fn form(form: &'static str, meaning: &'static str, example: &'static str) -> Form {
    Form { form, meaning, example }
}

/// Every form, from the largest to the smallest.
pub const GRAMMAR: &[Form] = &[
    form("LIST: PIPELINE && PIPELINE", "the second runs if the first ended with 0", "make && ls"),
    form(
        "LIST: PIPELINE || PIPELINE",
        "the second runs if the first ended with something else",
        "grep -q x a || grep -q x b",
    ),
    form(
        "LIST: PIPELINE ; PIPELINE",
        "both run, one after the other; a line end does the same",
        "git status; git diff",
    ),
    form(
        "PIPELINE: STAGE | STAGE",
        "both run together, and the second reads what the first prints; the status is the last one's",
        "git log --oneline | head -n 5",
    ),
    form("STAGE: WORD WORD ..", "a program and its arguments", "cargo test --workspace"),
    form(
        "STAGE: NAME=VALUE WORD ..",
        "the variable is set for this program alone, if the policy lists its name",
        "CI=1 npm test",
    ),
    form(
        "STAGE: cd DIR",
        "what follows runs in another folder of the workspace, if that is reached and there; `cd -` goes back",
        "cd src && ls",
    ),
    form(
        "STAGE: time WORD ..",
        "how long one plain program takes, without options and pipes",
        "time make",
    ),
    form("STAGE: type NAME .., command -v NAME ..", "where programs are", "type cargo"),
    form(
        "REDIRECT: > FILE, 1> FILE",
        "standard output goes into the file, emptied first",
        "ls > a",
    ),
    form("REDIRECT: >> FILE, 1>> FILE", "standard output goes to the end of the file", "ls >> a"),
    form("REDIRECT: 2> FILE, 2>> FILE", "the same for standard error", "make 2> errors.txt"),
    form(
        "REDIRECT: 2>&1",
        "standard error goes where standard output goes at this moment",
        "make > log 2>&1",
    ),
    form("REDIRECT: >&2, 1>&2", "and the other way round", "echo failed >&2"),
    form("REDIRECT: < FILE", "standard input comes from the file", "sort < a"),
    form(
        "REDIRECT: <<'WORD'",
        "standard input is what stands in the lines up to the word, as it is; the word is quoted",
        "cat <<'EOF'\ncosts $5\nEOF",
    ),
    form(
        "REDIRECT: <<-'WORD'",
        "the same without the tabs before each line",
        "cat <<-'EOF'\n\tindented\n\tEOF",
    ),
    form("REDIRECT: <<< WORD", "standard input is this word and a line end", "wc -c <<< 'text'"),
    form("WORD: 'TEXT'", "the text as it is", "grep '$HOME' a"),
    form(
        "WORD: \"TEXT\"",
        "the text, where `\\` before `$`, `\"`, `\\`, a backquote or a line end takes away its meaning",
        "grep \"don't\" a",
    ),
    form(
        "WORD: $'TEXT'",
        "the text, where `\\t`, `\\n` and `\\r` are a tab, a line end and a return, and `\\` before `\\`, `'` or `\"` takes away its meaning",
        "cut -d $'\\t' -f 2 a",
    ),
    form("WORD: \\CHARACTER", "the character as it is; a line end joins two lines", "ls a\\ b"),
    form(
        "WORD: *",
        "any characters of a name, also none; all matching names take the word's place",
        "wc -l src/*.rs",
    ),
    form(
        "WORD: **/",
        "the folder itself and every folder below it, none of them hidden or a link; a name or a pattern follows",
        "wc -l src/**/*.rs",
    ),
    form("WORD: ?", "one character of a name", "ls a?.txt"),
    form(
        "WORD: [LIST], [!LIST]",
        "one character of those named, or of all others",
        "ls [a-f]*[!0-9]",
    ),
    form("WORD: {A,B}", "a word with each of them in turn", "cp a.txt{,.bak}"),
    form("WORD: {1..5}, {a..e}, {01..10..3}", "a word with each of them in turn", "touch n{1..5}"),
    form("# TEXT", "where a word could begin: a comment up to the line end", "ls # all of it"),
];
