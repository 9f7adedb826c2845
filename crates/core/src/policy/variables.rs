//! Variables of the environment, by what they can do to a program.

/// What a variable can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It says how much is printed, what is built, or for whom.
    Plain,
    /// It decides which code of the project runs, or with which options it is built.
    Code,
    /// Its value names what a program loads or starts.
    Starts,
    /// It says where programs look for what they start or read, or whom they talk to. A policy may
    /// hand it on.
    Place,
    /// It makes a program load or run something else than itself.
    Never,
}

/// What a variable can do, by its name.
pub(crate) fn kind_of(name: &str) -> Kind {
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    if HARMLESS.split(' ').any(|own| own == name) {
        Kind::Plain
    } else if NEVER.contains(&name) || begins(NEVER_BEGINNINGS) {
        Kind::Never
    } else if CODE.contains(&name) || begins(CODE_BEGINNINGS) {
        Kind::Code
    } else if PLACES.contains(&name) {
        Kind::Place
    } else {
        Kind::Plain
    }
}

/// What a variable can do with this value. Some that could start a program say by their value that
/// nothing is started, or only what prints.
pub(crate) fn kind_of_set(name: &str, value: &str) -> Kind {
    let quiet =
        QUIET.iter().any(|(names, values)| names.contains(&name) && values.contains(&value));
    let plain_words = name == "NODE_OPTIONS" && value.split(' ').all(is_plain_for_node);
    match kind_of(name) {
        _ if quiet || plain_words => Kind::Plain,
        Kind::Plain | Kind::Code if starts(name, value) => Kind::Starts,
        kind => kind,
    }
}

/// Whether a value names what is loaded or started, in the way that the variable has for it.
fn starts(name: &str, value: &str) -> bool {
    let is_marked = |mark: &str| match mark.strip_prefix('*') {
        Some(part) => value.contains(part),
        None => value.split_whitespace().any(|word| word.starts_with(mark)),
    };
    let named = MARKS.iter().filter(|(names, _)| names.iter().any(|own| is_like(own, name)));
    named.flat_map(|(_, marks)| marks.iter()).any(|mark| is_marked(mark))
}

/// Whether a name is this one, or fits around its `*`.
fn is_like(own: &str, name: &str) -> bool {
    match own.split_once('*') {
        Some((begun, ended)) => name.starts_with(begun) && name.ends_with(ended),
        None => own == name,
    }
}

/// How the words of a value begin that name something to load or to start, by the manuals of the
/// programs that read them; behind a `*`, what stands anywhere in it.
const MARKS: &[(&[&str], &[&str])] = &[
    (&["NODE_OPTIONS"], NODE),
    (&["PYTHONSTARTUP", "PYTHONBREAKPOINT", "LUA_INIT*"], &["*"]),
    (&["PERL5OPT"], &["-M", "-m", "-I", "-d"]),
    (&["RUBYOPT"], &["-r", "-I", "--require"]),
    (&["JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JAVA_OPTS", "JVM_OPTS"], JAVA),
    (&["MAVEN_OPTS", "MAVEN_ARGS", "GRADLE_OPTS", "SBT_OPTS", "ANT_OPTS", "KOTLIN_OPTS"], JAVA),
    (&["RUSTC", "RUSTDOC", "CARGO", "RUSTC_*WRAPPER", "CARGO_BUILD_RUSTC*"], &["*/"]),
    (&["CARGO_TARGET_*_RUNNER", "CARGO_TARGET_*_LINKER"], &["*/", "* "]),
    (
        &["RUSTFLAGS", "RUSTDOCFLAGS", "CARGO_ENCODED_RUSTFLAGS"],
        &["*linker=", "*fuse-ld=", "*codegen-backend="],
    ),
    (&["CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS"], COMPILER),
    (&["GOFLAGS"], &["-toolexec", "--toolexec", "-exec", "--exec", "-overlay", "--overlay"]),
    (
        &["MAKEFLAGS", "GNUMAKEFLAGS"],
        &["--eval", "SHELL", "-f", "--file", "--makefile", "*$(", "*=/", "*=./"],
    ),
    (&["CC", "CXX", "CPP", "LD", "AR", "AS", "FC", "NM", "RANLIB", "STRIP"], &["*/", "* -c"]),
    (
        &["TAR_OPTIONS"],
        &["--checkpoint-action", "--to-command", "-I", "-F", "--use", "--rsh", "--info"],
    ),
];

const NODE: &[&str] =
    &["-r", "--require", "--import", "--loader", "--experimental-loader", "--openssl-config"];

const COMPILER: &[&str] =
    &["-fplugin", "-fuse-ld=/", "-fuse-ld=.", "-B", "-wrapper", "-specs", "--specs"];

const JAVA: &[&str] = &[
    "-javaagent",
    "-agent",
    "-XX:OnError",
    "-XX:OnOutOfMemoryError",
    "-XX:Flags",
    "-Xbootclasspath",
    "@",
];

/// Values by which variables say that nothing is started.
const QUIET: &[(&[&str], &[&str])] = &[
    (&["PAGER", "GIT_PAGER", "MANPAGER"], &["", "cat"]),
    (&["EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR"], &["true", ":"]),
    (&["BROWSER"], &["", "none", "true", "false"]),
    (&["PYTHONBREAKPOINT"], &["0"]),
    (&["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"], &["/dev/null"]),
    (
        &[
            "GIT_TRACE",
            "GIT_TRACE_SETUP",
            "GIT_TRACE_PERFORMANCE",
            "GIT_TRACE2",
            "GIT_CURL_VERBOSE",
        ],
        &["0", "1", "2", "true", "false"],
    ),
];

/// Options of node that load nothing and start nothing.
fn is_plain_for_node(word: &str) -> bool {
    const PLAIN: &[&str] = &[
        "--enable-source-maps",
        "--experimental-vm-modules",
        "--no-deprecation",
        "--no-experimental-fetch",
        "--no-warnings",
        "--openssl-legacy-provider",
        "--trace-deprecation",
        "--trace-uncaught",
        "--trace-warnings",
        "--unhandled-rejections=strict",
        "--unhandled-rejections=warn",
    ];
    const NUMBERS: &[&str] =
        &["--max-old-space-size=", "--max_old_space_size=", "--stack-trace-limit="];
    let is_number = |own: &str| !own.is_empty() && own.bytes().all(|byte| byte.is_ascii_digit());
    PLAIN.contains(&word) || NUMBERS.iter().any(|own| word.strip_prefix(own).is_some_and(is_number))
}

/// These begin like others below and only say how much is printed or kept, or by whom and when.
const HARMLESS: &str = "PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONFAULTHANDLER PYTHONHASHSEED \
    PYTHONIOENCODING PYTHONUTF8 GIT_ADVICE GIT_AUTHOR_DATE GIT_AUTHOR_EMAIL \
    GIT_AUTHOR_NAME GIT_COMMITTER_DATE GIT_COMMITTER_EMAIL GIT_COMMITTER_NAME \
    GIT_CONFIG_NOSYSTEM GIT_LFS_SKIP_SMUDGE GIT_MERGE_AUTOEDIT GIT_OPTIONAL_LOCKS \
    GIT_PAGER_IN_USE GIT_TERMINAL_PROMPT";

const NEVER_BEGINNINGS: &[&str] = &["LD_", "DYLD_", "GIT_", "BASH_FUNC_"];

const CODE_BEGINNINGS: &[&str] = &["PYTHON", "PERL5", "RUBY"];

const CODE: &[&str] = &[
    "NODE_OPTIONS",
    "NODE_PATH",
    "PERLLIB",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTFLAGS",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "MAKEFLAGS",
    "CLASSPATH",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LUA_INIT",
    "AWKPATH",
    "AWKLIBPATH",
];

const NEVER: &[&str] = &[
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "PS4",
    "IFS",
    "SHELLOPTS",
    "BASHOPTS",
    "PERLIO_DEBUG",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "MALLOC_CHECK_",
    "NLSPATH",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "LESSOPEN",
    "LESSCLOSE",
    "MANPAGER",
    "BROWSER",
    "RIPGREP_CONFIG_PATH",
    "SSH_AUTH_SOCK",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "TMPDIR",
    "HOME",
    "PATH_SEPARATOR",
];

const PLACES: &[&str] = &[
    "PATH",
    "ZDOTDIR",
    "INPUTRC",
    "TERMINFO",
    "LOCALDOMAIN",
    "RES_OPTIONS",
    "HOSTALIASES",
    "XDG_CONFIG_HOME",
    "CDPATH",
    "GOPROXY",
    "GONOSUMCHECK",
    "PIP_INDEX_URL",
    "NPM_CONFIG_REGISTRY",
    "SSL_CERT_FILE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "DOCKER_HOST",
    "KUBECONFIG",
    "AWS_PROFILE",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_says_what_a_variable_does() {
        for (name, value, expected) in [
            ("CI", "1", Kind::Plain),
            ("PAGER", "cat", Kind::Plain),
            ("PAGER", "cat x", Kind::Never),
            ("LD_PRELOAD", "", Kind::Never),
            ("GIT_AUTHOR_NAME", "a b", Kind::Plain),
            ("GIT_CONFIG_GLOBAL", "/dev/null", Kind::Plain),
            ("GIT_CONFIG_GLOBAL", "x", Kind::Never),
            ("NODE_OPTIONS", "--no-warnings --max-old-space-size=1", Kind::Plain),
            ("NODE_OPTIONS", "--max-old-space-size=", Kind::Code),
            ("NODE_OPTIONS", "--inspect", Kind::Code),
            ("NODE_OPTIONS", "--no-warnings --require=./x", Kind::Starts),
            ("NODE_OPTIONS", "-r ./x", Kind::Starts),
            ("NODE_OPTIONS", "--unhandled-rejections=none", Kind::Code),
            ("PYTHONSTARTUP", "x.py", Kind::Starts),
            ("PYTHONPATH", "src", Kind::Code),
            ("CC", "clang", Kind::Plain),
            ("CC", "ccache gcc", Kind::Plain),
            ("CC", "./x", Kind::Starts),
            ("RUSTC_WRAPPER", "sccache", Kind::Code),
            ("RUSTC_WORKSPACE_WRAPPER", "./x", Kind::Starts),
            ("RUSTFLAGS", "-C target-cpu=native", Kind::Code),
            ("RUSTFLAGS", "-Clinker=x", Kind::Starts),
            ("MAKEFLAGS", "-j8 --no-print-directory", Kind::Code),
            ("MAKEFLAGS", "--eval=x", Kind::Starts),
            ("MAVEN_OPTS", "-Xmx2g", Kind::Plain),
            ("MAVEN_OPTS", "-Xmx2g -javaagent:x", Kind::Starts),
        ] {
            assert_eq!(kind_of_set(name, value), expected, "{name}={value}");
        }
    }
}
