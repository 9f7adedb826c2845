//! Everything of a shell's language that ours refuses, in one table.
//!
//! Each construct says what it is, what to do instead, and shows both: a text that is refused for it,
//! and one that is accepted and does what was meant, where the language can say it at all. The tests
//! read every example, and the reference page is made of this table.

macro_rules! constructs {
    ($( $variant:ident = $slug:literal, $message:literal, $suggestion:literal,
        $refused:literal => $instead:literal; )*) => {
        /// What a refused text holds.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum UnsupportedSyntax { $( #[doc = concat!("For example `", $refused, "`.")] $variant, )* }

        impl UnsupportedSyntax {
            /// Every construct, in the table's order.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )* ];

            /// The stable name.
            #[must_use]
            pub const fn slug(self) -> &'static str {
                match self { $( Self::$variant => $slug, )* }
            }

            /// What is refused: a fragment in lower case.
            #[must_use]
            pub const fn message(self) -> &'static str {
                match self { $( Self::$variant => $message, )* }
            }

            /// What to do instead: a fragment in lower case.
            #[must_use]
            pub const fn suggestion(self) -> &'static str {
                match self { $( Self::$variant => $suggestion, )* }
            }

            /// A text that is refused for it.
            #[must_use]
            pub const fn refused(self) -> &'static str {
                match self { $( Self::$variant => $refused, )* }
            }

            /// A text of the language that does what was meant; empty where it has none.
            #[must_use]
            pub const fn instead(self) -> &'static str {
                match self { $( Self::$variant => $instead, )* }
            }
        }
    };
}

constructs! {
    // ---- what is replaced by something else ----------------------------------------------------------
    CommandSubstitution = "command-substitution",
        "this `$(` is not closed, or is too deep in others",
        "close it with `)`; in text, use single quotes",
        "wc -l $(git ls-files" => "wc -l $(git ls-files)";
    Backquotes = "backquotes",
        "backquotes are not read alike everywhere",
        "write `$(..)`; in text, use single quotes",
        "git commit -m \"fix `parse`\"" => "git commit -m 'fix `parse`'";
    Variable = "variable",
        "this variable has no value in the text",
        "give it one before (`NAME=value`), or write the value itself; in text, use single quotes",
        "grep \"$HOME\" notes.md" => "grep '$HOME' notes.md";
    SpecialParameter = "special-parameter",
        "parameters such as `$1` and `$$` are not replaced",
        "write the value itself; `$?` is the status of the command before; in text, use single quotes",
        "echo $1" => "echo '$1'";
    Arithmetic = "arithmetic",
        "arithmetic is not done here",
        "write the result, or use `expr`",
        "head -n $((2 * 5)) a.txt" => "head -n 10 a.txt";
    AnsiQuotes = "ansi-quotes",
        "this escape is not the same in every shell",
        "in `$'..'` write the character itself, or `\\t`, `\\n`, `\\r`, `\\\\`, `\\'`, `\\\"`",
        "printf $'\\x41'" => "printf $'A\\t'";
    LocaleQuotes = "locale-quotes",
        "`$\"..\"` would be translated",
        "leave the `$` out",
        "echo $\"hello\"" => "echo \"hello\"";
    ProcessSubstitution = "process-substitution",
        "a command cannot stand for a file",
        "write its output to a file first",
        "diff <(sort a) b" => "sort a > a.sorted && diff a.sorted b";
    UnquotedHereDocument = "unquoted-here-document",
        "joined lines in this here-document are not read alike everywhere",
        "quote the word behind `<<`, so that the text stays as it is",
        "cat <<EOF\na\\\nb\nEOF" => "cat <<'EOF'\na\\\nb\nEOF";
    Home = "home",
        "no home folder is put in for `~`",
        "write the path from the workspace, or its absolute path; quote a `~` that is text",
        "ls ~/project" => "ls .";

    // ---- patterns and braces ---------------------------------------------------------------------------
    RecursivePattern = "recursive-pattern",
        "`**` stands for all folders below one, and only before a `/` with a name behind it",
        "write `**/` and what is looked for, such as `**/*.rs`, or use `find`",
        "ls src/**" => "ls src/**/*";
    ExtendedPattern = "extended-pattern",
        "extended patterns are not part of the language",
        "use braces or two patterns; quote it if it is text",
        "ls !(a).txt" => "ls {b,c}.txt";
    PatternClass = "pattern-class",
        "this class of characters is not the same everywhere",
        "use plain characters and ranges such as `[a-z]`, `[0-9]`, `[!x]`; quote it if it is text",
        "ls [[:upper:]]*" => "ls [A-Z]*";
    HiddenPattern = "hidden-pattern",
        "this pattern could match `.` and `..`",
        "write `.[!.]*`",
        "ls -d .*" => "ls -d .[!.]*";
    ProgramPattern = "program-pattern",
        "a pattern or a value does not say which program is run",
        "write the program's name",
        "./build*.sh" => "./build-all.sh";
    TargetPattern = "target-pattern",
        "a pattern does not say which file is meant",
        "write the one name, in quotes if it holds these characters",
        "sort < *.txt" => "sort < a.txt";
    Brace = "brace",
        "these braces are not read alike everywhere",
        "write `{a,b}` or `{1..5}`; quote braces that are text",
        "echo {a,b" => "echo '{a,b'";

    // ---- streams ---------------------------------------------------------------------------------------
    BothStreams = "both-streams",
        "both streams at once are written in another way",
        "write `> file 2>&1` or `&> file`",
        "make >& log" => "make > log 2>&1";
    ReadWrite = "read-write",
        "a file is either read or written",
        "write `<` or `>`",
        "cat <> a" => "cat < a";
    Descriptor = "descriptor",
        "only standard input, output (1) and error (2) can be redirected",
        "write `> file`, `2> file`, `2>&1` or `1>&2`, each with a space behind it",
        "make 3> log" => "make 2> log";
    NetworkFile = "network-file",
        "this name would open a connection",
        "use `http.get`",
        "cat < /dev/tcp/localhost/80" => "";
    NoTarget = "no-target",
        "nothing stands behind this redirection",
        "name the file; for a here-document, the word that ends it",
        "sort >" => "sort > b";
    HereDelimiter = "here-delimiter",
        "this word cannot end a here-document",
        "use a word of letters, such as `<<'EOF'`",
        "cat <<''\n\n" => "cat <<'EOF'\nEOF";

    // ---- the shape of commands -------------------------------------------------------------------------
    Background = "background",
        "only one pipeline runs in the background, with nothing but `cd` and variables before it, and not inside of a group",
        "write `CMD &` or `(cd DIR && CMD) &` as a part of its own, and what comes first before it; quote an `&` that is text",
        "make && ./server &" => "make; (cd web && ./server) &";
    Group = "group",
        "this cannot follow a group, a condition or a loop",
        "join it by `;`, `&&`, `||` or one `|`; `> file`, `2> file` and `2>&1` lead what all of it prints, where each of \
         its programs can be led there",
        "{ sort; ls; } < a.txt" => "{ sort < a.txt; ls; } > log 2>&1";
    Parenthesis = "parenthesis",
        "a parenthesis is not part of the language",
        "quote it if it is text",
        "echo a (b)" => "echo 'a (b)'";
    Function = "function",
        "functions are not part of the language",
        "write the commands themselves",
        "build() { make; }" => "make";
    Keyword = "keyword",
        "this word of a shell's language does not stand here, or is not part of this one",
        "`if`, `for NAME in WORDS`, `while` and `until` are; use `if` for `case`, and `[ .. ]` for `[[ .. ]]`",
        "[[ -f a ]] && ls" => "[ -f a ] && ls";
    Time = "time",
        "`time` is not the same in every shell here",
        "put it before one plain command without options; `/usr/bin/time` takes options",
        "time -p make" => "/usr/bin/time -p make";
    Builtin = "builtin",
        "this exists only inside of a shell",
        "there is no shell here; see the words with their alternatives",
        "eval ls" => "ls";
    OnlyVariables = "only-variables",
        "without a command this has no effect",
        "put it before the command that needs it",
        "CI=1" => "CI=1 make";
    VariableForm = "variable-form",
        "this is not a plain `NAME=value`",
        "write `NAME=value` before the command, with another name if a shell owns this one",
        "FLAGS+=-g make" => "FLAGS=-g make";
    EmptyCommand = "empty-command",
        "a command is missing here",
        "write a command on both sides, or remove the sign",
        "git log &&& ls" => "git log && ls";
    NoProgram = "no-program",
        "no program is named here",
        "write the program first; `true > file` makes an empty file",
        "> a.txt" => "true > a.txt";

    // ---- characters ------------------------------------------------------------------------------------
    OpenQuote = "open-quote",
        "this quote is not closed",
        "close it; a `'` of text goes into double quotes",
        "echo don't" => "echo \"don't\"";
    OpenHereDocument = "open-here-document",
        "this here-document does not end",
        "put its word on a line of its own behind the text",
        "cat <<'EOF'\ntext" => "cat <<'EOF'\ntext\nEOF";
    TrailingBackslash = "trailing-backslash",
        "nothing follows this backslash",
        "remove it, or quote it",
        "echo a\\" => "echo 'a\\'";
    CarriageReturn = "carriage-return",
        "a carriage return is not a line end here",
        "end lines with a line feed alone",
        "ls\r\n" => "ls\n";
    Control = "control",
        "a control character cannot be seen",
        "remove it; `printf` makes such characters",
        "echo '\u{1b}[1m'" => "printf '\\033[1m'";
    Invisible = "invisible",
        "this character cannot be seen, or changes how others are read",
        "remove it",
        "ls\u{200b} -l" => "ls -l";
    Space = "space",
        "this looks like a space and is not one",
        "use a space, or quote it if it is text",
        "ls\u{a0}-l" => "ls -l";
    TooMuch = "too-much",
        "this is more than a command may hold",
        "split it into several calls; write long text with `fs.write`",
        "echo {1..9999}" => "seq 9999";
}
