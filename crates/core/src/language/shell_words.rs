//! Words and names that a shell keeps for itself, with what to write instead.
//!
//! Whoever writes one of them first gets what the shell does and not the program of that name, quoted
//! or not; so they are refused. The words that a shell only does itself to be quick, such as `echo`
//! and `test`, are programs on every system and stay words.

use super::construct::Construct;

/// Words of a shell, what refuses them, and what to do instead.
pub const FIRST_WORDS: &[(&[&str], Construct, &str)] = &[
    (&["if", "then", "else", "elif", "fi"], Construct::Keyword, "use `&&` and `||`"),
    (
        &["for", "while", "until", "do", "done", "select"],
        Construct::Keyword,
        "use `find -exec` or `xargs`, name all files at once, or make several calls",
    ),
    (&["case", "esac"], Construct::Keyword, "look first, then make the call that fits"),
    (&["[[", "]]"], Construct::Keyword, "use `[ .. ]` or `test`"),
    (&["function"], Construct::Function, "write the commands themselves"),
    (&["coproc"], Construct::Keyword, "use a pipe"),
    (&["{", "}"], Construct::Group, "write the commands one after another"),
    (&["!"], Construct::Negation, "use `||`"),
    (
        &["source", "."],
        Construct::Builtin,
        "run the program by its path, such as `venv/bin/python`",
    ),
    (&["eval"], Construct::Builtin, "write the command itself"),
    (&["exec", "builtin"], Construct::Builtin, "leave the word out and write the program"),
    (
        &["command"],
        Construct::Builtin,
        "write the program itself; to find one, `command -v NAME` or `which NAME`",
    ),
    (
        &["export", "declare", "typeset", "local", "readonly"],
        Construct::Builtin,
        "put `NAME=value` before the command that needs it",
    ),
    (&["unset"], Construct::Builtin, "use `env -u NAME` before the command"),
    (
        &["set", "shopt", "enable"],
        Construct::Builtin,
        "leave it out; every failure is in the result",
    ),
    (&["alias", "unalias"], Construct::Builtin, "write the whole command"),
    (&["type"], Construct::Builtin, "ask for one or more programs: `type NAME` or `which NAME`"),
    (&["hash"], Construct::Builtin, "leave it out; to find a program, `which NAME`"),
    (&["let"], Construct::Builtin, "write the result, or use `expr`"),
    (&["pushd", "popd", "dirs", "chdir"], Construct::Builtin, "use `cd`, or the call's `cwd`"),
    (
        &["read", "mapfile", "readarray", "getopts"],
        Construct::Builtin,
        "read the output of the call, then write the next one",
    ),
    (&["exit", "logout", "return"], Construct::Builtin, "leave it out; `false` ends with status 1"),
    (&["break", "continue", "shift"], Construct::Builtin, "leave it out; there are no loops"),
    (&["ulimit"], Construct::Builtin, "leave it out; the policy sets limits"),
    (&["umask"], Construct::Builtin, "use `chmod` on the file"),
    (&["trap", "suspend"], Construct::Builtin, "leave it out; the runtime ends what it started"),
    (
        &["jobs", "fg", "bg", "wait", "disown"],
        Construct::Builtin,
        "leave it out; nothing runs in the background",
    ),
    (&["times", "caller"], Construct::Builtin, "put `time` before the command"),
    (&["history", "fc"], Construct::Builtin, "write the command itself"),
    (&["help"], Construct::Builtin, "use `NAME --help` or `man NAME`"),
    (
        &["bind", "complete", "compgen", "compopt"],
        Construct::Builtin,
        "leave it out; nobody types here",
    ),
];

/// Names that a shell sets itself, whatever it is told. Those that begin with `BASH_` belong to them.
pub const OWNED_VARIABLES: &[&str] = &[
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
