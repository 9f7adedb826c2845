//! Words and names that a shell keeps for itself, with what to write instead.
//!
//! Whoever writes one of them first gets what the shell does and not the program of that name, quoted
//! or not; so they are refused. The words that a shell only does itself to be quick, such as `echo`
//! and `test`, are programs on every system and stay words.

use super::unsupported::UnsupportedSyntax;

/// Words of a shell, what refuses them, and what to do instead.
pub const RESERVED_COMMANDS: &[(&[&str], UnsupportedSyntax, &str)] = &[
    (&["if", "then", "else", "elif", "fi"], UnsupportedSyntax::Keyword, "use `&&` and `||`"),
    (
        &["for", "while", "until", "do", "done", "select"],
        UnsupportedSyntax::Keyword,
        "use `find -exec` or `xargs`, name all files at once, or make several calls",
    ),
    (&["case", "esac"], UnsupportedSyntax::Keyword, "look first, then make the call that fits"),
    (&["[[", "]]"], UnsupportedSyntax::Keyword, "use `[ .. ]` or `test`"),
    (&["function"], UnsupportedSyntax::Function, "write the commands themselves"),
    (&["coproc"], UnsupportedSyntax::Keyword, "use a pipe"),
    (&["{", "}"], UnsupportedSyntax::Group, "write the commands one after another"),
    (&["!"], UnsupportedSyntax::Negation, "use `||`"),
    (
        &["source", "."],
        UnsupportedSyntax::Builtin,
        "run the program by its path, such as `venv/bin/python`",
    ),
    (&["eval"], UnsupportedSyntax::Builtin, "write the command itself"),
    (&["exec", "builtin"], UnsupportedSyntax::Builtin, "leave the word out and write the program"),
    (
        &["command"],
        UnsupportedSyntax::Builtin,
        "write the program itself; to find one, `command -v NAME` or `which NAME`",
    ),
    (
        &["export", "declare", "typeset", "local", "readonly"],
        UnsupportedSyntax::Builtin,
        "put `NAME=value` before the command that needs it",
    ),
    (&["unset"], UnsupportedSyntax::Builtin, "use `env -u NAME` before the command"),
    (
        &["set", "shopt", "enable"],
        UnsupportedSyntax::Builtin,
        "leave it out; every failure is in the result",
    ),
    (&["alias", "unalias"], UnsupportedSyntax::Builtin, "write the whole command"),
    (
        &["type"],
        UnsupportedSyntax::Builtin,
        "ask for one or more programs: `type NAME` or `which NAME`",
    ),
    (&["hash"], UnsupportedSyntax::Builtin, "leave it out; to find a program, `which NAME`"),
    (&["let"], UnsupportedSyntax::Builtin, "write the result, or use `expr`"),
    (
        &["pushd", "popd", "dirs", "chdir"],
        UnsupportedSyntax::Builtin,
        "use `cd`, or the call's `cwd`",
    ),
    (
        &["read", "mapfile", "readarray", "getopts"],
        UnsupportedSyntax::Builtin,
        "read the output of the call, then write the next one",
    ),
    (
        &["exit", "logout", "return"],
        UnsupportedSyntax::Builtin,
        "leave it out; `false` ends with status 1",
    ),
    (
        &["break", "continue", "shift"],
        UnsupportedSyntax::Builtin,
        "leave it out; there are no loops",
    ),
    (&["ulimit"], UnsupportedSyntax::Builtin, "leave it out; the policy sets limits"),
    (&["umask"], UnsupportedSyntax::Builtin, "use `chmod` on the file"),
    (
        &["trap", "suspend"],
        UnsupportedSyntax::Builtin,
        "leave it out; the runtime ends what it started",
    ),
    (
        &["jobs", "fg", "bg", "wait", "disown"],
        UnsupportedSyntax::Builtin,
        "leave it out; nothing runs in the background",
    ),
    (&["times", "caller"], UnsupportedSyntax::Builtin, "put `time` before the command"),
    (&["history", "fc"], UnsupportedSyntax::Builtin, "write the command itself"),
    (&["help"], UnsupportedSyntax::Builtin, "use `NAME --help` or `man NAME`"),
    (
        &["bind", "complete", "compgen", "compopt"],
        UnsupportedSyntax::Builtin,
        "leave it out; nobody types here",
    ),
];

/// Names that a shell sets itself, whatever it is told. Those that begin with `BASH_` belong to them.
pub const SHELL_VARIABLES: &[&str] = &[
    "_",
    "UID",
    "EUID",
    "PPID",
    "SHELLOPTS",
    "BASHOPTS",
    "GROUPS",
    "SHLVL",
    "FUNCNAME",
    "DIRSTACK",
];
