//! Words and names that a shell keeps for itself, with what to write instead.
//!
//! A caller that writes one of them first gets what the shell does and not the program of that name, quoted
//! or not; so they are refused. The words that a shell only does itself to be quick, such as `echo`
//! and `test`, are programs on every system and stay words.

use super::unsupported::UnsupportedSyntax;

/// Words of a shell, what refuses them, and what to do instead.
pub const RESERVED_COMMANDS: &[(&[&str], UnsupportedSyntax, &str)] = &[
    (
        &["if", "then", "else", "elif", "fi"],
        UnsupportedSyntax::Keyword,
        "write `if COMMANDS; then COMMANDS; fi`, each of these words where a command could begin",
    ),
    (
        &["for", "while", "until", "do", "done"],
        UnsupportedSyntax::Keyword,
        "write `for NAME in WORDS; do COMMANDS; done`, each of these words where a command could begin",
    ),
    (&["select"], UnsupportedSyntax::Keyword, "use `for`; no answer is typed here"),
    (&["case", "esac"], UnsupportedSyntax::Keyword, "use `if [ .. = .. ]; then .. fi`"),
    (&["[[", "]]"], UnsupportedSyntax::Keyword, "use `[ .. ]` or `test`"),
    (&["function"], UnsupportedSyntax::Function, "write the commands themselves"),
    (&["coproc"], UnsupportedSyntax::Keyword, "use a pipe"),
    (&["{", "}"], UnsupportedSyntax::Keyword, "write `{ COMMANDS; }` where a command could begin"),
    (&["!"], UnsupportedSyntax::Keyword, "write it once, before a command"),
    (
        &["source", "."],
        UnsupportedSyntax::Builtin,
        "`source .venv/bin/activate` is known; of other files, write the commands themselves",
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
        "write `export NAME=value`, or put `NAME=value` before the command that needs it",
    ),
    (&["unset"], UnsupportedSyntax::Builtin, "use `env -u NAME` before the command"),
    (
        &["set", "shopt", "enable"],
        UnsupportedSyntax::Builtin,
        "`set -e`, `set -u` and `set -o pipefail` are known; leave others out",
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
        &["read"],
        UnsupportedSyntax::Builtin,
        "write `while IFS=: read -r A B; do COMMANDS; done <<< \"$VALUE\"`, or `done < FILE`; `IFS=` may be missing",
    ),
    (
        &["mapfile", "readarray", "getopts"],
        UnsupportedSyntax::Builtin,
        "`while read -r NAME; do COMMANDS; done < FILE` is known; else read the output, then write the next call",
    ),
    (
        &["exit", "logout", "return"],
        UnsupportedSyntax::Builtin,
        "`exit` and `exit N` are known, as commands of their own; `false` ends with status 1",
    ),
    (
        &["break", "continue", "shift"],
        UnsupportedSyntax::Builtin,
        "`break` and `continue` stand in a loop, as commands of their own",
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
        "of a part that `CMD &` started, `wait %1` waits for the end, `kill %1` ends it, `jobs` says whether it runs",
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

/// Names that programs find in their environment in any case: a new value is a matter of them, too.
pub(super) const INHERITED_VARIABLES: &[&str] = &[
    "HOME",
    "TMPDIR",
    "LANG",
    "LC_ALL",
    "TERM",
    "USER",
    "LOGNAME",
    "SHELL",
    "EDITOR",
    "PAGER",
    "NO_COLOR",
    "GIT_PAGER",
    "GIT_TERMINAL_PROMPT",
    "GIT_OPTIONAL_LOCKS",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GOMEMLIMIT",
];

/// Whether a text may assign a variable of this name.
pub(super) fn is_assignable(name: &str) -> bool {
    let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
    !name.is_empty()
        && name.chars().all(is_name)
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !matches!(
            name,
            "PWD" | "OLDPWD" | "IFS" | "PATH" | "OPTIND" | "RANDOM" | "SECONDS" | "LINENO"
        )
        && !SHELL_VARIABLES.contains(&name)
        && !name.starts_with("BASH_")
}
