//! The command language: from the text of a command to what it means, or a refusal that teaches.
//!
//! No shell is ever started. This is a language of our own, made so that whatever it accepts means
//! exactly what a POSIX shell and bash make of it; what could mean something else there, or depends
//! on what is not in the text, is refused by name ([`UnsupportedSyntax`]) with a way to say it that works. Braces,
//! here-strings, `&>` and `|&`, which only bash has, mean what they mean to bash.
//!
//! The text is read once, from left to right: `lexer` makes words, redirections and signs of it
//! (`quotes` for the words), `parser` makes stages, pipelines and lists of those, `statements` loops, conditions
//! and groups, `braces` and `wildcards` make each word final, and `command_name` looks at what would be run. Names
//! of files are not looked up here: a pattern stays a pattern ([`ShellWord::as_glob`]). What a variable or a
//! substitution means is put in when a command is reached (`values`).
//!
//! A character is one of Unicode: the reading is that of a machine whose texts are UTF-8.

mod ast;
mod braces;
mod builtins;
mod command_name;
mod cursor;
mod grammar;
mod group_streams;
mod lexer;
mod parser;
mod quotes;
mod read_loop;
mod refusal;
mod reserved_words;
mod statements;
mod tokens;
mod unparse;
mod unsupported;
mod values;
mod wildcards;

pub use ast::{
    ElementKind, GroupScope, ListOperator, ListOption, Pipeline, PipelineStage, Redirection,
    Script, ScriptElement, ShellWord, Span, StdStream, TextPlace, WordPiece,
};
pub use builtins::SHELLS;
pub use command_name::is_about_jobs;
pub use grammar::{GRAMMAR, GrammarRule};
pub(crate) use read_loop::fields;
pub use refusal::SyntaxRefusal;
pub use reserved_words::{RESERVED_COMMANDS, SHELL_VARIABLES};
pub use unparse::quote_argv;
pub use unsupported::UnsupportedSyntax;
pub use values::{OUTPUT_PLACEHOLDER, Value, ValueProblem, Values};

/// Reads the text of a command.
///
/// # Errors
/// What of it is not of the language. Of several such places it is the first that says what was
/// meant: in `for f in $(ls` it is the loop.
pub fn parse(text: &str) -> Result<Script, SyntaxRefusal> {
    parser::parse_text(text, 0)
}

/// Whether a text is one program with its words, and nothing besides: no list, loop, redirection or variable.
#[must_use]
pub fn is_single_command(text: &str) -> bool {
    parse(text).ok().as_ref().and_then(Script::only_stage).is_some_and(|stage| {
        let has_more = !stage.variables.is_empty() || !stage.redirects.is_empty();
        !has_more && stage.templates.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use capsule_base::limits;

    /// The parts of a script in a short form: words between bars, joins between them.
    fn shown(script: &Script) -> String {
        let mut shown = String::new();
        for (index, element) in script.elements.iter().enumerate() {
            shown.push_str(match element.join {
                ListOperator::First => "",
                ListOperator::And => " && ",
                ListOperator::Or => " || ",
                ListOperator::Then => " ; ",
            });
            if element.join != ListOperator::First && element.otherwise != index + 1 {
                shown.push_str(&alloc::format!("(else {}) ", element.otherwise));
            }
            shown.push_str(&kind(&element.kind));
            let stages: Vec<String> = element.pipeline.stages.iter().map(stage).collect();
            shown.push_str(&stages.join(" | "));
        }
        shown
    }

    fn kind(kind: &ElementKind) -> String {
        let word = |word: &ShellWord| word.unexpanded();
        match kind {
            ElementKind::Run => String::new(),
            ElementKind::Enter { captures, scope } => {
                alloc::format!("{scope:?}{}", if *captures { " captured" } else { "" })
            }
            ElementKind::Leave(name) => alloc::format!("leave {}", name.as_deref().unwrap_or("")),
            ElementKind::Assign { name, value, is_exported, .. } => {
                let value = value.as_ref().map(word).unwrap_or_default();
                alloc::format!("{name}{}{value}", if *is_exported { ":=" } else { "=" })
            }
            ElementKind::Items(number, words) => {
                let words: Vec<String> = words.iter().map(word).collect();
                alloc::format!("items {number} {}", words.join(" "))
            }
            ElementKind::Each { number, name, end } => {
                alloc::format!("{name} of {number} else {end}")
            }
            ElementKind::Lines { number, name, .. } => alloc::format!("lines {number} {name}"),
            ElementKind::EachLine { number, names, end, .. } => {
                alloc::format!("{} of {number} else {end}", names.join(","))
            }
            other => alloc::format!("{other:?}"),
        }
    }

    fn stage(stage: &PipelineStage) -> String {
        let word = |word: &ShellWord| match word.literal() {
            Some(text) => alloc::format!("[{text}]"),
            None => alloc::format!("<{}>", word.unexpanded()),
        };
        let variables =
            stage.variables.iter().map(|(name, value)| alloc::format!("{name}={value}:"));
        let words = stage.words.iter().map(word);
        let redirects = stage.redirects.iter().map(|redirect| match redirect {
            Redirection::File { stream, path, append } => {
                alloc::format!("{stream:?}{}{path}", if *append { ">>" } else { ">" })
            }
            Redirection::Duplicate { stream, target } => alloc::format!("{stream:?}>&{target:?}"),
            Redirection::Input { path } => alloc::format!("<{path}"),
            Redirection::Here { text } => alloc::format!("<<{text:?}"),
        });
        let templates = stage
            .templates
            .iter()
            .map(|(place, word)| alloc::format!("{place:?}={}", word.unexpanded()));
        variables.chain(words).chain(redirects).chain(templates).collect()
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(parse(text).map(|script| shown(&script)).as_deref(), Ok(expected), "{text:?}");
    }

    fn refused(text: &str, construct: UnsupportedSyntax, underlined: &str) {
        match parse(text) {
            Ok(script) => panic!("accepted {text:?} as {}", shown(&script)),
            Err(refusal) => {
                assert_eq!(refusal.construct, construct, "{text:?}");
                assert_eq!(text.get(refusal.span), Some(underlined), "{text:?}");
            }
        }
    }

    #[test]
    fn words_are_as_a_shell_has_them() {
        for (text, expected) in [
            ("ls -l  src\t-a", "[ls][-l][src][-a]"),
            ("echo 'a b' \"c d\" e\\ f ''", "[echo][a b][c d][e f][]"),
            ("echo 'it'\\''s' a'b'\"c\"d", "[echo][it's][abcd]"),
            ("echo \"a\\\"b\\\\c\\$d\\`e\\nf\"", "[echo][a\"b\\c$d`e\\nf]"),
            ("echo \\' \\\" \\| \\\\ \\# \\$", "[echo]['][\"][|][\\][#][$]"),
            ("echo $ a$ \"$\" \"a$|b\" \"$.\" $/", "[echo][$][a$][$][a$|b][$.][$/]"),
            ("g\\\nit st\\\natus", "[git][status]"),
            ("echo 'a\\\nb' \"c\\\nd\"", "[echo][a\\\nb][cd]"),
            ("echo a#b # c $x `d`\nls", "[echo][a#b] ; [ls]"),
            ("\n\n# nothing\n  ls\n", "[ls]"),
            ("echo ! a! = a=b ] } { % ^ , :", "[echo][!][a!][=][a=b][]][}][{][%][^][,][:]"),
            (
                "git show HEAD~1 HEAD^ stash@{0} HEAD:a",
                "[git][show][HEAD~1][HEAD^][stash@{0}][HEAD:a]",
            ),
            ("[ -f a ] && test a = b", "[[][-f][a][]] && [test][a][=][b]"),
            ("find . -name '*.rs' -exec wc {} \\;", "[find][.][-name][*.rs][-exec][wc][{}][;]"),
            ("echo é\u{a0}x 'é x' '✔\u{fe0f}'", ""),
            (
                "echo 'a\u{a0}b' '✔\u{fe0f}' \"ن\u{200c}م\"",
                "[echo][a\u{a0}b][✔\u{fe0f}][ن\u{200c}م]",
            ),
        ] {
            if expected.is_empty() {
                refused(text, UnsupportedSyntax::Space, "\u{a0}");
            } else {
                check(text, expected);
            }
        }
    }

    #[test]
    fn lists_and_pipelines_are_as_a_shell_has_them() {
        for (text, expected) in [
            ("a && b || c; d", "[a] && [b] || [c] ; [d]"),
            ("a;b\nc\n\n", "[a] ; [b] ; [c]"),
            ("a &&\n\n# why\n b |\n c", "[a] && [b] | [c]"),
            ("a|b|c", "[a] | [b] | [c]"),
            ("a;", "[a]"),
            ("a ; \n b", "[a] ; [b]"),
            ("a \\\n && b &\\\n& c", "[a] && [b] && [c]"),
            ("A=1 B='x y' C= make D=2", "A=1:B=x y:C=:[make][D=2]"),
            ("A=*.c{a,b} x 'B'=2", "A=*.c{a,b}:[x][B=2]"),
            ("'A'=1 B=2", "[A=1][B=2]"),
            ("A''=1 x", "[A=1][x]"),
            (
                "a &> b &>> c |& d; e >| f",
                "[a]Out>bErr>&OutOut>>cErr>&OutErr>&Out | [d] ; [e]Out>f",
            ),
            ("time make -j 4 > log", "[time][make][-j][4]Out>log"),
            ("cd src && ls", "[cd][src] && [ls]"),
            (": ; : a ; true ; 'ls' ; \\ls", "[true] ; [true][a] ; [true] ; [ls] ; [ls]"),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn streams_are_as_a_shell_has_them() {
        for (text, expected) in [
            ("a >b", "[a]Out>b"),
            ("a>b 2>>c<d", "[a]Out>bErr>>c<d"),
            ("a 1>b 2>'c d' >>e", "[a]Out>bErr>c dOut>>e"),
            ("a 2 >b", "[a][2]Out>b"),
            ("a '2'>b x2>b", "[a][2][x2]Out>bOut>b"),
            ("a \\2>b", "[a][2]Out>b"),
            (">b a x <y z", "[a][x][z]Out>b<y"),
            ("a 2>&1 >b | c", "[a]Err>&OutOut>b | [c]"),
            ("a >b 2>&1", "[a]Out>bErr>&Out"),
            ("a 1>&2; b >&2; c >& 2", "[a]Out>&Err ; [b]Out>&Err ; [c]Out>&Err"),
            (
                "cat <<'E' | wc\nx $y `z` \\\nw\nE\nls",
                "[cat]<<\"x $y `z` \\\\\\nw\\n\" | [wc] ; [ls]",
            ),
            ("cat <<\\E <<\"F\"\na\nE\nb\nF", "[cat]<<\"a\\n\"<<\"b\\n\""),
            ("cat <<-'E' && ls\n\t\ta\n\t b\n\tE\n", "[cat]<<\"a\\n b\\n\" && [ls]"),
            ("cat <<'E' &&\nE\nls", "[cat]<<\"\" && [ls]"),
            ("cat <<'E' # c\n# d\nE", "[cat]<<\"# d\\n\""),
            ("cat <<E''F\na\nEF", "[cat]<<\"a\\n\""),
            ("cat <<< a; cat <<<'b c'", "[cat]<<\"a\\n\" ; [cat]<<\"b c\\n\""),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn statements_become_a_row_of_elements() {
        for (text, expected) in [
            ("A=1; ls \"$A\" $A.b", "A=1 ; [ls]<${A}><${A}.b>"),
            ("A=1; B=$A; echo $? ${B} \"$PWD\"", "A=1 ; B=${A} ; [echo]<${?}><${B}><${PWD}>"),
            ("export A=1 B; x", ""),
            ("B=2; export A=$B B; x", "B=2 ; A:=${B} ; B:= ; [x]"),
            ("A=1; B=$A x > $A.log", "A=1 ; B=:[x]Out>Variable(0)=${A}Redirect(0)=${A}.log"),
            ("a || { b; c; }; d", "[a] || (else 3) [b] ; [c] ; [d]"),
            ("(cd a && b) || c", "Subshell ; [cd][a] && [b] ; leave  || [c]"),
            ("! a && b", "[a] ; Negate && [b]"),
            ("if a; then b; fi; c", "[a] || Jump(4) ; [b] ; Jump(5) ; Succeed ; [c]"),
            (
                "if a; then b; elif c; then d; else e; fi",
                "[a] || Jump(4) ; [b] ; Jump(9) ; [c] || Jump(8) ; [d] ; Jump(9) ; [e]",
            ),
            (
                "for f in a 'b c'\ndo\n  x $f\ndone",
                "items 1 a b c ; Note(2) ; Succeed ; Note(1) ; Recall(2) ; f of 1 else 9 ; [x]<${f}> ; Note(1) ; Jump(5) ; Recall(1)",
            ),
            (
                "until a; do b; done",
                "Note(2) ; Succeed ; Note(1) ; Recall(2) ; [a] && Jump(9) ; [b] ; Note(1) ; Jump(4) ; Recall(1)",
            ),
            (
                "for f in *.c; do x; done",
                "Note(2) ; Subshell captured ; [printf][%s\\0]<*.c> ; leave *1 ; Recall(2) ; items 1 *.c ; Note(3) ; Succeed ; \
                 Note(1) ; Recall(3) ; f of 1 else 14 ; [x] ; Note(1) ; Jump(10) ; Recall(1)",
            ),
            (
                "a && x \"$(b | c)\"",
                "[a] && (else 5) Substitution captured ; [b] | [c] ; leave (0 ; [x]<${(0}>",
            ),
            ("A=$(a); b", "Substitution captured ; [a] ; leave (0 ; A=${(0} ; [b]"),
            ("x $(<f)", "Substitution captured ; [cat]<f ; leave (0 ; [x]<${(0}>"),
            ("x \"$(pwd)/a\"", "[x]<${PWD}/a>"),
            ("x \"$(cat <<'E'\na $b\n\n'c\nE\n)\"", "[x][a $b\n\n'c]"),
            ("x \"$(cat <<E\na\nE\n)\"", "[x][a]"),
            ("cat <<E\na 'b' \\$c \"d\"\nE", "[cat]<<\"a 'b' $c \\\"d\\\"\\n\""),
            ("A=1; cat <<E\n$A\nE", "A=1 ; [cat]<<\"\"Redirect(0)=${A}\n"),
            ("A=1; cat <<< $A", "A=1 ; [cat]<<\"\"Redirect(0)=${A}\n"),
            (
                "{ a; b; } > c",
                "|1=c ; Note(2) ; [true]Out>cRedirect(0)=c || Jump(7) ; Recall(2) ; [a]Out>>Redirect(0)=${|1} ; \
                 [b]Out>>Redirect(0)=${|1}",
            ),
            (
                "{ cd a; b | c; } > d 2>&1",
                "|1=${PWD}/d ; Note(2) ; [true]Out>dErr>&OutRedirect(0)=${PWD}/d || Jump(7) ; Recall(2) ; [cd][a] ; \
                 [b]Err>>Redirect(0)=${|1} | [c]Out>>Err>&OutRedirect(0)=${|1}",
            ),
            (
                "V=x; { a >&2; } 2>> $V",
                "V=x ; |1=${V} ; Note(2) ; [true]Err>>Redirect(0)=${V} || Jump(7) ; Recall(2) ; \
                 [a]Err>>Out>&ErrRedirect(0)=${|1}",
            ),
            (
                "for f in a; do x; done 2>/dev/null",
                "items 1 a ; Note(2) ; Succeed ; Note(1) ; Recall(2) ; f of 1 else 9 ; [x]Err>/dev/null ; Note(1) ; Jump(5) ; Recall(1)",
            ),
            (
                "(a; b | c) 2>/dev/null | wc",
                "Subshell captured ; Subshell ; [a]Err>/dev/null ; [b]Err>/dev/null | [c]Err>/dev/null ; leave  ; leave |1 ; [wc]<<\"\"Redirect(0)=${|1}",
            ),
            (
                "{ a; b; } |& wc",
                "Subshell captured ; [a]Err>&Out ; [b]Err>&Out ; leave |1 ; [wc]<<\"\"Redirect(0)=${|1}",
            ),
            (
                "{ a; } 2>&1 >c",
                "|1=c ; Note(2) ; [true]Err>&OutOut>cRedirect(1)=c || Jump(6) ; Recall(2) ; [a]Err>&OutOut>>Redirect(1)=${|1}",
            ),
            (
                "(a) | cat",
                "Subshell captured ; Subshell ; [a] ; leave  ; leave |1 ; [cat]<<\"\"Redirect(0)=${|1}",
            ),
            (
                "set -euo pipefail; a",
                "Option(ErrorExit, true) ; Option(PipeFail, true) ; Succeed ; [a]",
            ),
            ("a; exit 3", "[a] ; Exit(Some(3))"),
            ("cd a && b &", "Subshell ; [cd][a] && [b] ; leave  ; Succeed ; !=%1"),
            ("source v/bin/activate && a", "Activate(\"v/bin\") && [a]"),
            ("bash -c 'a; b' && c", "Shell ; [a] ; [b] ; leave  && [c]"),
            ("bash -lc 'a 2>&1' | b; sh -c 'c > d' > e", "[a]Err>&Out | [b] ; [c]Out>eOut>d"),
            ("bash -c \"sh -c 'a'\"", "[a]"),
            ("sh -c 'cd d'; a", "Shell ; [cd][d] ; leave  ; [a]"),
            ("bash -c \"sh -c 'cd d'\"", "Shell ; Shell ; [cd][d] ; leave  ; leave "),
            // In a pipeline, and with a file, nothing but a shell does that.
            ("sh -c 'cd d' | a; sh -c 'cd d' > e", "[sh][-c][cd d] | [a] ; [sh][-c][cd d]Out>e"),
            ("bash -o pipefail -c 'a | b' | c", "[bash][-o][pipefail][-c][a | b] | [c]"),
            ("a | sh -c 'b $?'; sh -c 'b $?'", "[a] | [sh][-c][b $?] ; Shell ; [b]<${?}> ; leave "),
        ] {
            match expected {
                "" => refused(text, UnsupportedSyntax::Builtin, "export"),
                expected => check(text, expected),
            }
        }
    }

    #[test]
    fn braces_and_patterns_are_as_bash_has_them() {
        for (text, expected) in [
            ("x {a,b}{1..3}", "[x][a1][a2][a3][b1][b2][b3]"),
            ("x a{,b}c {,} {'',d}", "[x][ac][abc][][d]"),
            ("x {} {a} {a{b,c}} {{a,b},c}", "[x][{}][{a}][{ab}][{ac}][a][b][c]"),
            ("x {3..1} {-1..1} {a..c} {C..A}", "[x][3][2][1][-1][0][1][a][b][c][C][B][A]"),
            (
                "x {01..3} {1..9..4} {9..1..-4} {-01..1}",
                "[x][01][02][03][1][5][9][9][5][1][-01][000][001]",
            ),
            ("x {''1..3} {1..3''} '{a,b}' \\{a,b}", ""),
            ("x '{a,b}' {a\\,b} {'a,b'} {1'..'3}", "[x][{a,b}][{a,b}][{a,b}][{1..3}]"),
            (
                "x a* ?.rs [a-c0-9_]* [!x]y [] [!] a[ []a]",
                "[x]<a*><?.rs><[a-c0-9_]*><[!x]y>[[]][[!]][a[]<[]a]>",
            ),
            ("x '*' \\* \"[a]\" \\[a]", "[x][*][*][[a]][[a]]"),
            ("x {a,b}* {\\*,?}", "[x]<a*><b*>[*]<?>"),
            ("x .[!.]* .git* a.* ./*", "[x]<.[!.]*><.git*><a.*><./*>"),
            ("x [a-c-] [-a]", "[x]<[a-c-]><[-a]>"),
        ] {
            if expected.is_empty() {
                refused(text, UnsupportedSyntax::Brace, "{''1..3}");
            } else {
                check(text, expected);
            }
        }
    }

    /// Every construct is refused for what it is, and what is said to do instead can be done.
    #[test]
    fn refusals_teach() {
        for construct in UnsupportedSyntax::ALL.iter().copied() {
            let text = construct.refused();
            let refusal = parse(text).expect_err(text);
            assert_eq!(refusal.construct, construct, "{text:?}");
            assert!(text.get(refusal.span.clone()).is_some(), "{text:?} {:?}", refusal.span);
            let instead = construct.instead();
            if !instead.is_empty() {
                parse(instead).expect(instead);
            }
            let says = [construct.message(), construct.suggestion(), &refusal.message];
            for said in says.into_iter().chain(RESERVED_COMMANDS.iter().map(|row| row.2)) {
                let first = said.chars().next().unwrap();
                assert!(!first.is_uppercase() && !said.ends_with('.'), "{said}");
            }
        }
        for (words, construct, _) in RESERVED_COMMANDS {
            for word in *words {
                let refusal = parse(&alloc::format!("A=1 {word} x")).expect_err(word);
                assert_eq!(refusal.construct, *construct, "{word}");
            }
        }
        for form in GRAMMAR {
            parse(form.example).expect(form.example);
        }
    }

    #[test]
    fn what_is_refused_is_underlined() {
        use UnsupportedSyntax as C;
        for (text, construct, underlined) in [
            ("rm -r $HOME/x", C::Variable, "$HOME"),
            ("rm -r \"${HOME}/x\"", C::Variable, "${HOME}"),
            ("echo \"a $\\\nHOME\"", C::Variable, "$\\\nHOME"),
            ("echo $? $1", C::SpecialParameter, "$1"),
            ("A=1; echo $A $B", C::Variable, "$B"),
            ("A=1; echo $A\\\nB", C::Variable, "$A"),
            ("A=1; ${A} x", C::ProgramPattern, "${A}"),
            ("A=1; echo ${A:-2}", C::Variable, "${A:-2}"),
            ("echo $(ls", C::CommandSubstitution, "$("),
            ("echo $(a $(b $(c $(d))))", C::CommandSubstitution, "$("),
            ("echo $(ls))", C::Parenthesis, ")"),
            ("$(ls) x", C::ProgramPattern, "$(ls)"),
            ("echo $(rm -rf x; eval y)", C::Builtin, "eval"),
            ("cat <<E $(ls)\nE", C::CommandSubstitution, "$("),
            ("echo $é", C::Variable, "$é"),
            ("x $[1+1]", C::Arithmetic, "$[1+1]"),
            ("x $((1+1))", C::Arithmetic, "$((1+1))"),
            ("for a in x; do y $((a*2)); done", C::Arithmetic, "$((a*2))"),
            ("if x; then y $((1)); fi", C::Arithmetic, "$((1))"),
            ("((a=1))", C::Arithmetic, "(("),
            ("x {$,y}HOME", C::Variable, "$"),
            ("x {$,y}'a'", C::AnsiQuotes, "$"),
            ("x $'a\\x41'", C::AnsiQuotes, "\\x"),
            ("x $'\\101'", C::AnsiQuotes, "\\1"),
            ("x $'a", C::OpenQuote, "$'"),
            ("x a=~/y", C::Home, "~"),
            ("x A=a:~", C::Home, "~"),
            ("A=a:~ x", C::Home, "~"),
            ("x {a,~}/y", C::Home, "~"),
            ("x > ~/y", C::Home, "~"),
            ("x ~root ~+", C::Home, "~"),
            ("x **", C::RecursivePattern, "**"),
            ("x a/**", C::RecursivePattern, "a/**"),
            ("x a/**/", C::RecursivePattern, "a/**/"),
            ("x a**/b", C::RecursivePattern, "a**/b"),
            ("x **//b", C::RecursivePattern, "**//b"),
            ("x **/**/b", C::RecursivePattern, "**/**/b"),
            ("x **/./b", C::RecursivePattern, "**/./b"),
            ("x **/../b", C::RecursivePattern, "**/../b"),
            ("x **/a/..", C::RecursivePattern, "**/a/.."),
            ("x **/a/**/b/**/c/**/d", C::RecursivePattern, "**/a/**/b/**/c/**/d"),
            ("x ***/b", C::RecursivePattern, "***/b"),
            ("x **'/'b", C::RecursivePattern, "**'/'b"),
            ("x **/.*", C::HiddenPattern, "**/.*"),
            ("x {*,a}*", C::RecursivePattern, "{*,a}*"),
            ("x +(a)", C::ExtendedPattern, "("),
            ("x [^a]", C::PatternClass, "[^a]"),
            ("x [a-Z]", C::PatternClass, "[a-Z]"),
            ("x [{]", C::PatternClass, "[{]"),
            ("x {[\\,,{]a,b}c]", C::Brace, "{"),
            ("x [é]", C::PatternClass, "[é]"),
            ("x [\"a\"]", C::PatternClass, "[\"a\"]"),
            ("x a/.?", C::HiddenPattern, "a/.?"),
            ("x .?*", C::HiddenPattern, ".?*"),
            ("l? -a", C::ProgramPattern, "l?"),
            ("x > {a,b}", C::TargetPattern, "{a,b}"),
            ("x <<< *", C::TargetPattern, "*"),
            ("x {a},b}", C::Brace, "}"),
            ("x {1..{2,3}}", C::Brace, "{1..{2,3}}"),
            ("x {a..Z}", C::Brace, "{a..Z}"),
            ("x {1..+3}", C::Brace, "{1..+3}"),
            ("x >& a", C::BothStreams, ">& a"),
            ("x &> ", C::NoTarget, "&> "),
            ("x >&- y", C::Descriptor, ">&-"),
            ("x 0< a", C::Descriptor, "0<"),
            ("x 10> a", C::Descriptor, "10>"),
            ("x {fd}> a", C::Descriptor, "{fd}>"),
            ("x 2>&1>a", C::Descriptor, "2>&1"),
            ("x <<<2>&1", C::Descriptor, "<<<2"),
            ("x >1<y", C::Descriptor, ">1"),
            ("x 2>&3", C::Descriptor, "2>&3"),
            ("x <&1", C::Descriptor, "<&"),
            ("x > # a", C::NoTarget, "> "),
            ("x > ''", C::NoTarget, "> ''"),
            ("x <<< ", C::NoTarget, "<<< "),
            ("x && y &", C::Background, "&"),
            ("x || y & z", C::Background, "&"),
            ("! x &", C::Background, "&"),
            ("(x; y) &", C::Background, "&"),
            ("(cd a; x; cd b) &", C::Background, "&"),
            ("(cd a && x) | wc &", C::Background, "&"),
            ("(A=$(y); x) &", C::Background, "&"),
            ("(cd a; x; exit 1) &", C::Background, "&"),
            ("for f in a; do cd $f && x; done &", C::Background, "&"),
            ("while x; do cd a; done &", C::Background, "&"),
            ("(x &)", C::Background, "&"),
            ("{ x & }", C::Background, "&"),
            ("for f in a; do x & done", C::Background, "&"),
            ("if x & then y; fi", C::Background, "&"),
            ("x $(y & z)", C::Background, "&"),
            ("x $(y) &", C::Background, "&"),
            ("bash -c 'x & y'", C::Background, "bash -c 'x & y'"),
            ("cd a &", C::Background, "&"),
            ("A=1 &", C::Background, "&"),
            ("x & kill $! &", C::Background, "&"),
            ("x & wait &", C::Background, "&"),
            ("x & y & z & x & y & z & x & y & z &", C::TooMuch, "&"),
            ("x & & y", C::EmptyCommand, "&"),
            ("x & ; y", C::EmptyCommand, ";"),
            ("& x", C::EmptyCommand, "&"),
            ("echo $!", C::Variable, "$!"),
            ("(x; echo $!)", C::Variable, "$!"),
            ("x & $!", C::ProgramPattern, "$!"),
            ("x & %1", C::Builtin, "%1"),
            ("x & fg", C::Builtin, "fg"),
            ("wait", C::Builtin, "wait"),
            ("kill %1", C::Builtin, "kill"),
            ("x & wait | cat", C::Builtin, "wait"),
            ("x & (wait)", C::Builtin, "wait"),
            ("x | ; y", C::EmptyCommand, ";"),
            ("| x", C::EmptyCommand, "|"),
            ("x |", C::EmptyCommand, ""),
            ("x &&", C::EmptyCommand, ""),
            ("x ;; y", C::EmptyCommand, ";"),
            ("# x", C::EmptyCommand, ""),
            ("", C::EmptyCommand, ""),
            ("f () { x; }", C::Function, "("),
            ("x )", C::Parenthesis, ")"),
            ("A=(a b)", C::VariableForm, "("),
            ("a[0]=1 x", C::VariableForm, "a[0]=1"),
            ("UID=0 x", C::VariableForm, "UID=0"),
            ("for f in $(ls); do", C::EmptyCommand, ""),
            ("for f in a; do x", C::EmptyCommand, "for"),
            ("for f; do x; done", C::Keyword, "for"),
            ("for 1 in a; do x; done", C::Keyword, "for"),
            ("while true; do x; done", C::Keyword, "while"),
            ("until false; do x; done", C::Keyword, "until"),
            ("x && while true; do x", C::EmptyCommand, "while"),
            ("if a; then b; done", C::Keyword, "done"),
            ("if a; then b; ", C::EmptyCommand, "if"),
            ("if a; b; fi", C::Keyword, "fi"),
            ("x; fi", C::Keyword, "fi"),
            ("break", C::Builtin, "break"),
            ("for f in a; do ( break ); done", C::Builtin, "break"),
            ("( a", C::Parenthesis, "("),
            ("( a; b ) c", C::Group, "c"),
            ("{ a; } < b", C::Group, "< b"),
            ("V=x; { cd a; b; } > $V", C::Group, "> $V"),
            ("{ a; } > $(b)", C::Group, "> $(b)"),
            ("{ a; } > b | c", C::Group, "{"),
            // What leads into a pipe cannot say that it goes behind all of it.
            ("{ a | b; } 2>&1 | c", C::Group, "{"),
            ("{ A=$(a); b; } > c 2>&1", C::Group, "{"),
            ("for f in a; do { break; } | c; done", C::Group, "{"),
            ("! ! x", C::Keyword, "!"),
            ("x | { y; }", C::Keyword, "{"),
            ("case x in x) y;; esac", C::Keyword, "case"),
            ("A=1; A=2 B=$A x", C::VariableForm, "A=2 B=$A x"),
            ("A=1", C::OnlyVariables, "A=1"),
            ("PATH=x; ls", C::VariableForm, "PATH=x"),
            ("HOME=x; ls", C::OnlyVariables, "HOME=x"),
            ("export PATH=x; ls", C::Builtin, "export"),
            ("export $(cat .env); ls", C::Builtin, "export"),
            ("set -x; ls", C::Builtin, "set"),
            ("source setup.sh", C::Builtin, "source"),
            ("exit a", C::Builtin, "exit"),
            ("bash -c 'eval x'", C::Builtin, "bash -c 'eval x'"),
            ("'eval' x", C::Builtin, "'eval'"),
            ("x | command y", C::Builtin, "command"),
            ("%1", C::Builtin, "%1"),
            ("{,}", C::NoProgram, "{,}"),
            ("time x | y", C::Time, "time"),
            ("time x 2> y", C::Time, "time"),
            ("time", C::Time, "time"),
            ("cat <<'E'", C::OpenHereDocument, "<<'E'"),
            ("cat <<'E'\na\nE ", C::OpenHereDocument, "<<'E'"),
            ("cat <<'a b'\na b", C::HereDelimiter, "<<'a b'"),
            ("cat <<$'E'\na\nE", C::HereDelimiter, "<<$'E'"),
            ("cat <<E\na\\\nE", C::UnquotedHereDocument, "\\"),
            ("cat <<E\n`a`\nE", C::Backquotes, "`a`"),
            ("cat <<E\n$HOME\nE", C::Variable, "$HOME"),
            ("echo \"a", C::OpenQuote, "\""),
            ("x 'a\r\nb'", C::CarriageReturn, "\r"),
            ("x \0", C::Control, "\0"),
            ("x \u{202e}y", C::Invisible, "\u{202e}"),
            ("x '\u{202e}y'", C::Invisible, "\u{202e}"),
            ("x a\u{200d}b", C::Invisible, "\u{200d}"),
            ("x \\\u{2003}", C::Space, "\u{2003}"),
        ] {
            refused(text, construct, underlined);
        }
    }

    #[test]
    fn two_stars_around_nothing_are_refused() {
        for text in ["x *''*", "x a'*'*\"\"*b", "x *\"\\\n\"*", "x */*''*"] {
            assert_eq!(
                parse(text).unwrap_err().construct,
                UnsupportedSyntax::RecursivePattern,
                "{text}"
            );
        }
        assert!(parse("x '*'* *'*' *?*").is_ok());
    }

    /// A1, A2, A4, A5, A7, A8, A10, A11, A13, A14, A16, A17, A22, A25, A26: what each attack on the
    /// reading of a command is to this language. What is accepted is there for a policy to judge,
    /// word by word.
    #[test]
    fn attacks_on_the_reading_are_met() {
        for (text, expected) in [
            ("ls && rm -rf x", "[ls] && [rm][-rf][x]"),
            ("ls\nrm -rf x", "[ls] ; [rm][-rf][x]"),
            ("ls | tee out", "[ls] | [tee][out]"),
            ("ls > ../out", "[ls]Out>../out"),
            ("r\\\nm -r\\\nf x", "[rm][-rf][x]"),
            ("'r'm -rf x", "[rm][-rf][x]"),
            ("sh <<'E'\nid\nE", "[sh]<<\"id\\n\""),
            ("python3 <<< 'import os'", "[python3]<<\"import os\\n\""),
            ("GIT_PAGER='sh -c id' git log", "GIT_PAGER=sh -c id:[git][log]"),
            ("sh \\-c id", "[id]"),
            ("𝐫𝐦 x", "[𝐫𝐦][x]"),
            ("RM x", "[RM][x]"),
        ] {
            check(text, expected);
        }
        for text in [
            "echo `id`",
            "diff <(cat /etc/passwd) x",
            "tee >(sh)",
            "git log &&& rm",
            "git log \"",
            "ls <> x",
            "ls | tee ~/.bashrc",
            "$'\\x72\\x6d' -rf /",
            "$(echo rm) -rf x",
            "${x:-rm} -rf x",
            "P1=~/.ssh P2=id_rsa; cat $P1/$P2",
            "r\u{200b}m x",
            "r\u{2060}m x",
            "ls \u{202e}x",
            "ls \0x",
            "FOO=bar",
            "bash -c 'id &'",
            "[[ x =~ $(id) ]]",
            "cat < /dev/tcp/1.1.1.1/80",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn everything_is_bounded() {
        let many = |part: &str, count: usize| part.repeat(count);
        for text in [
            many("x", limits::COMMAND_BYTES + 1),
            many("x;", limits::COMMAND_ELEMENTS + 1),
            many("x|", limits::PIPELINE_STAGES) + "x",
            many("x ", limits::ARGV_WORDS + 1),
            String::from("x ") + &many(">a ", limits::STAGE_REDIRECTS + 1),
            many("A=1 ", limits::STAGE_VARIABLES + 1) + "x",
            String::from("x ") + &many("{a,b}", 11),
            String::from("x ") + &many("{1..1000}", 2) + &many("y", 1000),
            String::from("x {1..1000}") + &many("y", limits::ARGV_BYTES / 999),
            String::from("x {a,b,c,d}") + &many("y", limits::ARGV_BYTES / 3),
            String::from("x {1..999999999}"),
            String::from("x ") + &many("{a,", 100_000),
            String::from("x ") + &many("{a,", 20) + "b" + &many("}", 20),
            String::from("cat <<'E'\n") + &many("x\n", limits::STDIN_BYTES / 2 + 1) + "E",
        ] {
            let refusal = parse(&text).unwrap_err();
            assert_eq!(refusal.construct, UnsupportedSyntax::TooMuch, "{} bytes", text.len());
        }
        let most = [many("x;", limits::COMMAND_ELEMENTS), many("x ", limits::ARGV_WORDS)];
        assert!(most.iter().all(|text| parse(text).is_ok()));
    }

    #[test]
    fn a_refusal_shows_the_place() {
        for (text, expected) in [
            ("ls $x -l", "ls $x -l\n   ^^"),
            ("ls\ncat é $y", "cat é $y\n      ^^"),
            ("ls a\u{202e}b", "ls a⟨U+202E⟩b\n    ^^^^^^^^"),
            ("ls |", "ls |\n    ^"),
            ("echo\t$x", "echo⟨U+0009⟩$x\n            ^^"),
        ] {
            assert_eq!(parse(text).unwrap_err().underlined(text), expected, "{text:?}");
        }
        let long = alloc::format!("echo {}$x {}", "a".repeat(100), "b".repeat(100));
        let shown = parse(&long).unwrap_err().underlined(&long);
        let (a, b) = ("a".repeat(40), "b".repeat(39));
        assert_eq!(shown, alloc::format!("…{a}$x {b}…\n{}^^", " ".repeat(41)));
        let diagnostic = parse("ls $x").unwrap_err().diagnostic();
        assert_eq!(diagnostic.code.slug(), "exec.not-in-language");
        assert_eq!(diagnostic.span, 3..5);
    }

    #[test]
    fn a_command_line_is_written_as_it_is_read() {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        for (argv, text) in [
            (words(&["ls", "-l", "a b"]), "ls -l 'a b'"),
            (
                words(&["echo", "it's", "", "$x", "{a,b}", "~", "*"]),
                "echo 'it'\\''s' '' '$x' '{a,b}' '~' '*'",
            ),
            (words(&["A=1", "x"]), "'A=1' x"),
            (words(&["x", "\r'\\n\n*"]), "x $'\\r\\'\\\\n\n*'"),
        ] {
            assert_eq!(quote_argv(&argv).as_deref(), Ok(text));
        }
        for argv in [words(&[]), words(&["eval", "x"]), words(&["ls", "a\0b"]), words(&["time"])] {
            assert!(quote_argv(&argv).is_err(), "{argv:?}");
        }
    }

    #[test]
    fn what_is_kept_is_read_back() {
        let text = "A=1 x 'a b' *.[!a-c]? 2>&1 >>y <z | w <<'E'\nt\nE\n";
        let script = normalized(parse(text).unwrap());
        let kept = serde_json::to_string(&script).unwrap();
        assert!(!kept.contains("span") && !kept.contains("quoted"), "{kept}");
        assert_eq!(serde_json::from_str::<Script>(&kept).ok(), Some(script));
    }

    /// A script without what is only about how it was written: places and quotes.
    fn normalized(mut script: Script) -> Script {
        for element in &mut script.elements {
            element.span = Span::default();
            for stage in &mut element.pipeline.stages {
                stage.span = Span::default();
                for word in &mut stage.words {
                    let pieces = core::mem::take(&mut word.pieces);
                    *word = ShellWord { pieces, ..ShellWord::default() };
                }
            }
        }
        script
    }

    #[test]
    fn parts_run_in_the_background() {
        for (text, expected) in [
            ("x & y", [true, false].as_slice()),
            ("x &", &[true]),
            ("x&y&", &[true, true]),
            ("x | y > f 2>&1 &\nz", &[true, false]),
            ("x &> f & # why", &[true]),
            ("cat <<E & z\ntext\nE", &[true, false]),
            ("bash -c 'x | y' & z", &[true, false]),
            ("x 'a & b' \\& && y", &[false, false]),
            ("(cd a && x) & y", &[false, true, false]),
            ("cd a && A=1 && x | y &", &[false, true]),
            ("{ cd a; x; } > b 2>&1 &", &[false, false, true]),
            ("bash -c 'cd a && x' & wait", &[false, true, false]),
        ] {
            let script = parse(text).unwrap();
            let runs = script.elements.iter().filter(|element| element.kind == ElementKind::Run);
            let found: Vec<bool> = runs.map(|element| element.is_background).collect();
            assert_eq!(found, expected, "{text:?}");
        }
        for text in
            ["x & wait", "x & wait $! || true", "x & A=$!; kill $A 2>/dev/null", "x & kill -9 %1"]
        {
            assert!(parse(text).is_ok(), "{text:?}");
        }
    }

    /// Texts of the pieces that matter, put together at random.
    fn texts() -> impl Strategy<Value = String> {
        let atoms = prop::sample::select(ATOMS.to_vec());
        prop::collection::vec(atoms, 0..24).prop_map(|atoms| atoms.concat())
    }

    const ATOMS: &[&str] = &[
        "a",
        "b",
        "x",
        "1",
        "2",
        "01",
        " ",
        " ",
        " ",
        "\t",
        "\n",
        ";",
        "|",
        "||",
        "&&",
        "&",
        "'",
        "\"",
        "\\",
        "\\\n",
        "`",
        "$",
        "$'",
        "\\r",
        "\\n",
        "${",
        "(",
        ")",
        "{",
        "}",
        ",",
        "..",
        "{a,b}",
        "{1..3}",
        "*",
        "?",
        "[",
        "]",
        "[a-z]",
        "!",
        "^",
        "-",
        ".",
        "/",
        "~",
        "=",
        "A=",
        ":",
        "#",
        "<",
        ">",
        ">>",
        "2>",
        "2>&1",
        ">&2",
        "<<<",
        "<<'E'\n",
        "<<-\"E\"\n",
        "\nE\n",
        "\tE\n",
        "time",
        "if",
        "é",
        "\u{a0}",
        "\u{200d}",
        "\r",
        "\u{202e}",
        "%",
        "@",
        "+",
    ];

    fn holds(text: &str) {
        match parse(text) {
            Ok(script) => {
                let written = script.to_string();
                let again = parse(&written).map(normalized);
                let is_list = script.elements.iter().all(|element| {
                    let stages = &element.pipeline.stages;
                    element.kind == ElementKind::Run
                        && stages.iter().all(|stage| stage.variable_names().count() == 0)
                });
                if is_list {
                    assert_eq!(again, Ok(normalized(script.clone())), "{text:?} as {written:?}");
                }
                for stage in script.stages() {
                    assert!(stage.words[0].literal().is_some());
                    let words = stage.words.iter().map(|word| word.span.clone());
                    for span in words.chain([stage.span.clone()]) {
                        assert!(text.get(span).is_some(), "{text:?}");
                    }
                }
            }
            Err(refusal) => {
                assert!(text.get(refusal.span.clone()).is_some(), "{text:?} {refusal:?}");
                let shown = refusal.underlined(text);
                assert_eq!(shown.lines().count(), 2, "{shown:?}");
            }
        }
    }

    #[test]
    fn what_is_read_from_a_word_may_hold_a_carriage_return() {
        for text in ["cat <<<$'\\r'", "cat <<<$'a\\r\\n'", "cat <<<$'\\n\\r'"] {
            assert!(parse(text).is_ok(), "{text}");
            holds(text);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn no_text_breaks_the_reading(text in texts()) {
            holds(&text);
        }

        #[test]
        fn no_characters_break_the_reading(text in "\\PC{0,30}|[ -~\\n\\t]{0,40}") {
            holds(&text);
        }

        #[test]
        fn any_command_line_is_read_back(argv in prop::collection::vec("[ -~\\n\\té]{0,12}", 1..6)) {
            match quote_argv(&argv) {
                Ok(text) => {
                    let script = parse(&text).unwrap();
                    let words = script.elements[0].pipeline.stages[0].words.iter();
                    let read: Option<Vec<&str>> = words.map(ShellWord::literal).collect();
                    prop_assert_eq!(read, Some(argv.iter().map(String::as_str).collect()));
                    prop_assert_eq!(script.elements.len(), 1);
                }
                Err(refusal) => {
                    let expected = [UnsupportedSyntax::Builtin, UnsupportedSyntax::Keyword, UnsupportedSyntax::Time,
                        UnsupportedSyntax::Function];
                    // `:` is read as `true`.
                    let expected = [&expected[..], &[UnsupportedSyntax::EmptyCommand]].concat();
                    prop_assert!(expected.contains(&refusal.construct), "{:?} {:?}", argv, refusal);
                }
            }
        }
    }
}
