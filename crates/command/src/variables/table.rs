//! The variables that do more than say how much is printed, with the values that matter.

/// Values by which variables say that nothing is started.
pub(super) const HARMLESS_VALUES: &[(&[&str], &[&str])] = &[
    (&["PAGER", "GIT_PAGER", "MANPAGER"], &["", "cat"]),
    (&["EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR"], &["true", ":"]),
    (&["BROWSER"], &["", "none", "true", "false"]),
    (&["PYTHONBREAKPOINT"], &["0"]),
    (&["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"], &["/dev/null"]),
    (&["GOPROXY"], &["off"]),
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

/// Programs, a variable and its values with which they contact no other computer by themselves, by the manuals of the
/// programs.
pub(super) const OFFLINE: &[(&[&str], &str, &[&str])] = &[
    (&["go"], "GOPROXY", &["off"]),
    (&["cargo"], "CARGO_NET_OFFLINE", &["true"]),
    (&["pip"], "PIP_NO_INDEX", &["1", "true", "yes", "on"]),
    (&["uv", "uvx"], "UV_OFFLINE", &["1", "true"]),
    (&["npm", "npx", "pnpm"], "npm_config_offline", &["true"]),
    (&["composer"], "COMPOSER_DISABLE_NETWORK", &["1", "true"]),
    (&["conda"], "CONDA_OFFLINE", &["1", "true"]),
];

/// How the words of a value begin that name something to load or to start, by the manuals of the
/// programs that read them; behind a `*`, what stands anywhere in it.
pub(super) const STARTING_PREFIXES: &[(&[&str], &[&str])] = &[
    (&["NODE_OPTIONS"], NODE_OPTIONS),
    (&["PYTHONSTARTUP", "PYTHONBREAKPOINT", "LUA_INIT*"], &["*"]),
    (&["PERL5OPT"], &["-M", "-m", "-I", "-d"]),
    (&["RUBYOPT"], &["-r", "-I", "--require"]),
    (
        &["JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JAVA_OPTS", "JVM_OPTS"],
        JAVA_OPTIONS,
    ),
    (
        &["MAVEN_OPTS", "MAVEN_ARGS", "GRADLE_OPTS", "SBT_OPTS", "ANT_OPTS", "KOTLIN_OPTS"],
        JAVA_OPTIONS,
    ),
    (&["RUSTC", "RUSTDOC", "CARGO", "RUSTC_*WRAPPER", "CARGO_BUILD_RUSTC*"], &["*/"]),
    (&["CARGO_TARGET_*_RUNNER", "CARGO_TARGET_*_LINKER"], &["*/", "* "]),
    (
        &["RUSTFLAGS", "RUSTDOCFLAGS", "CARGO_ENCODED_RUSTFLAGS"],
        &["*linker=", "*fuse-ld=", "*codegen-backend="],
    ),
    (&["CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS"], COMPILER_OPTIONS),
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

const NODE_OPTIONS: &[&str] =
    &["-r", "--require", "--import", "--loader", "--experimental-loader", "--openssl-config"];

const COMPILER_OPTIONS: &[&str] =
    &["-fplugin", "-fuse-ld=/", "-fuse-ld=.", "-B", "-wrapper", "-specs", "--specs"];

const JAVA_OPTIONS: &[&str] = &[
    "-javaagent",
    "-agent",
    "-XX:OnError",
    "-XX:OnOutOfMemoryError",
    "-XX:Flags",
    "-Xbootclasspath",
    "@",
];

/// These begin like others below and only say how much is printed or kept, or by whom and when.
pub(super) const HARMLESS_NAMES: &str = "PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONFAULTHANDLER PYTHONHASHSEED \
    PYTHONIOENCODING PYTHONUTF8 GIT_ADVICE GIT_AUTHOR_DATE GIT_AUTHOR_EMAIL \
    GIT_AUTHOR_NAME GIT_COMMITTER_DATE GIT_COMMITTER_EMAIL GIT_COMMITTER_NAME \
    GIT_CONFIG_NOSYSTEM GIT_LFS_SKIP_SMUDGE GIT_MERGE_AUTOEDIT GIT_OPTIONAL_LOCKS \
    GIT_PAGER_IN_USE GIT_TERMINAL_PROMPT";

pub(super) const ALWAYS_DENIED_PREFIXES: &[&str] = &["LD_", "DYLD_", "GIT_", "BASH_FUNC_"];

pub(super) const CODE_PREFIXES: &[&str] = &["PYTHON", "PERL5", "RUBY"];

pub(super) const CODE: &[&str] = &[
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
    "R_PROFILE",
    "R_PROFILE_USER",
    "R_ENVIRON",
    "R_ENVIRON_USER",
    "AWKPATH",
    "AWKLIBPATH",
];

pub(super) const ALWAYS_DENIED: &[&str] = &[
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

pub(super) const LOCATIONS: &[&str] = &[
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

/// The directories in which projects keep their own modules.
pub(super) const MODULE_DIRECTORIES: &[&str] = &["", ".", "src", "lib", "test", "tests"];

/// Options of make that only say how many recipes run at a time, and how much is printed.
pub(super) const MAKE_HARMLESS: &[&str] = &["", "-k", "-s", "-w", "-O", "--no-print-directory"];

/// Options of node that load nothing and start nothing.
pub(super) const NODE_HARMLESS: &[&str] = &[
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
