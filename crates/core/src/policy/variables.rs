//! Variables of the environment, by what they can do to a program.

/// What a variable can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It says how much is printed, what is built, or for whom.
    Plain,
    /// It decides which code of the project runs, or with which options it is built.
    Code,
    /// It says where programs look for what they start or read, or whom they talk to. A policy may
    /// hand it on.
    Place,
    /// It makes a program load or run something else than itself.
    Never,
}

/// What a variable can do, by its name.
pub(crate) fn kind_of(name: &str) -> Kind {
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    if HARMLESS.contains(&name) {
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

/// These begin like others below and only say how much is printed or kept.
const HARMLESS: &[&str] = &[
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONFAULTHANDLER",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
];

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
