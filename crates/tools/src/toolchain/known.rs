//! The toolchains and package caches that are known by name, as data.
//!
//! Of each home directory only the parts are listed that programs need to run or to build: settings,
//! credentials and histories that lie beside them are never shown.

/// A toolchain or package cache that a policy can name.
#[derive(Debug)]
pub(super) struct KnownToolchain {
    /// Its name in a policy.
    pub(super) name: &'static str,
    /// The variable that names its home directory, where the user has set it.
    pub(super) variable: Option<&'static str>,
    /// Its home directory otherwise: from the user's home directory on, or absolute.
    pub(super) home: &'static str,
    /// The parts that are shown.
    pub(super) parts: &'static [Part],
    /// Where its programs are.
    pub(super) programs: &'static [Programs],
    /// Variables that commands find, where the home directory is shown, in place of `{}`.
    pub(super) variables: &'static [(&'static str, &'static str)],
}

/// A file or directory of a home directory that is shown; `.` for all of it.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) path: &'static str,
    /// Whether commands may write there, which vanishes with the call: a cache in which the tool puts locks
    /// and indexes also where it only reads.
    pub(super) discards_writes: bool,
    /// What is hidden in it, with `*` for any name: it may hold the address of a repository or registry, with a
    /// token in it.
    pub(super) hidden: &'static [&'static str],
}

/// Directories of programs.
#[derive(Debug)]
pub(super) enum Programs {
    /// One directory.
    In(&'static str),
    /// A directory in every directory of another one: `candidates`, `current/bin`.
    InEach(&'static str, &'static str),
    /// A directory in the version that a file names, or in the newest: `versions`, the file, `bin`.
    InVersion(&'static str, &'static str, &'static str),
}

use Programs::{In, InEach, InVersion};

const fn part(path: &'static str) -> Part {
    Part { path, discards_writes: false, hidden: &[] }
}

const fn cache(path: &'static str) -> Part {
    Part { path, discards_writes: true, hidden: &[] }
}

/// A cache in which some paths are hidden.
const fn cache_without(path: &'static str, hidden: &'static [&'static str]) -> Part {
    Part { path, discards_writes: true, hidden }
}

const fn known(
    name: &'static str,
    (variable, home): (Option<&'static str>, &'static str),
    parts: &'static [Part],
    programs: &'static [Programs],
    variables: &'static [(&'static str, &'static str)],
) -> KnownToolchain {
    KnownToolchain { name, variable, home, parts, programs, variables }
}

/// A version manager that keeps `versions`, and scripts that start the chosen one.
const SHIMMED: &[Part] =
    &[part("versions"), part("shims"), part("bin"), part("libexec"), part("version")];
const SHIMMED_PROGRAMS: &[Programs] =
    &[In("shims"), In("bin"), InVersion("versions", "version", "bin")];

/// The known toolchains. A home directory that several of them share is named once for each.
pub(super) const KNOWN: &[KnownToolchain] = &[
    // Rust.
    known(
        "cargo",
        (Some("CARGO_HOME"), ".cargo"),
        &[
            part("bin"),
            part("env"),
            cache_without("registry", &["index/*/.git/FETCH_HEAD", "index/*/.git/logs"]),
            cache_without(
                "git",
                &[
                    "db/*/FETCH_HEAD",
                    "db/*/logs",
                    "checkouts/*/*/.git/FETCH_HEAD",
                    "checkouts/*/*/.git/logs",
                ],
            ),
        ],
        &[In("bin")],
        // Commands have no network, so cargo need not try; where they have one, the variable is left out.
        &[("CARGO_HOME", "{}"), ("CARGO_NET_OFFLINE", "true")],
    ),
    known(
        "rustup",
        (Some("RUSTUP_HOME"), ".rustup"),
        &[part("toolchains"), part("settings.toml")],
        &[],
        &[("RUSTUP_HOME", "{}")],
    ),
    // Python.
    known(
        "pyenv",
        (Some("PYENV_ROOT"), ".pyenv"),
        SHIMMED,
        SHIMMED_PROGRAMS,
        &[("PYENV_ROOT", "{}")],
    ),
    known(
        "uv",
        (Some("UV_PYTHON_INSTALL_DIR"), ".local/share/uv/python"),
        &[part(".")],
        &[],
        &[("UV_PYTHON_INSTALL_DIR", "{}")],
    ),
    known("uv-tools", (Some("UV_TOOL_DIR"), ".local/share/uv/tools"), &[part(".")], &[], &[]),
    known(
        "uv-cache",
        (Some("UV_CACHE_DIR"), ".cache/uv"),
        &[cache_without(
            ".",
            &["git-v*/db/*/FETCH_HEAD", "git-v*/db/*/logs", "git-v*/checkouts/*/*/.git/FETCH_HEAD"],
        )],
        &[],
        &[("UV_CACHE_DIR", "{}"), ("UV_OFFLINE", "1")],
    ),
    known(
        "pip-cache",
        (Some("PIP_CACHE_DIR"), ".cache/pip"),
        &[cache(".")],
        &[],
        &[("PIP_CACHE_DIR", "{}")],
    ),
    known("pipx", (None, ".local/share/pipx"), &[part("venvs"), part("shared")], &[], &[]),
    known(
        "poetry-cache",
        (None, ".cache/pypoetry"),
        &[cache("cache"), cache("artifacts"), part("virtualenvs")],
        &[],
        &[],
    ),
    known("miniconda", (None, "miniconda3"), CONDA, CONDA_PROGRAMS, &[]),
    known("miniforge", (None, "miniforge3"), CONDA, CONDA_PROGRAMS, &[]),
    known("anaconda", (None, "anaconda3"), CONDA, CONDA_PROGRAMS, &[]),
    // JavaScript.
    known(
        "nvm",
        (Some("NVM_DIR"), ".nvm"),
        &[part("versions"), part("alias")],
        &[InVersion("versions/node", "alias/default", "bin")],
        &[("NVM_DIR", "{}")],
    ),
    known(
        "fnm",
        (Some("FNM_DIR"), ".local/share/fnm"),
        &[part("node-versions"), part("aliases")],
        &[In("aliases/default/bin")],
        &[],
    ),
    known(
        "volta",
        (Some("VOLTA_HOME"), ".volta"),
        &[part("bin"), part("tools")],
        &[In("bin")],
        &[("VOLTA_HOME", "{}")],
    ),
    known(
        "nodenv",
        (Some("NODENV_ROOT"), ".nodenv"),
        SHIMMED,
        SHIMMED_PROGRAMS,
        &[("NODENV_ROOT", "{}")],
    ),
    known(
        "npm-cache",
        (Some("npm_config_cache"), ".npm"),
        &[cache("_cacache")],
        &[],
        &[
            ("npm_config_cache", "{}"),
            // Its logs would lie beside the cache, where nothing can be written.
            ("npm_config_logs_max", "0"),
            ("npm_config_update_notifier", "false"),
        ],
    ),
    known(
        "pnpm",
        (Some("PNPM_HOME"), ".local/share/pnpm"),
        &[
            part("pnpm"),
            part("pnpx"),
            part("global"),
            part(".tools"),
            part("nodejs"),
            cache("store"),
        ],
        &[],
        &[("PNPM_HOME", "{}")],
    ),
    known("yarn-cache", (None, ".cache/yarn"), &[cache(".")], &[], &[]),
    known("yarn-berry", (None, ".yarn/berry"), &[cache("cache"), cache("index")], &[], &[]),
    known(
        "bun",
        (Some("BUN_INSTALL"), ".bun"),
        &[part("bin"), cache("install")],
        &[In("bin")],
        &[("BUN_INSTALL", "{}")],
    ),
    known("deno", (Some("DENO_INSTALL"), ".deno"), &[part("bin")], &[In("bin")], &[]),
    known(
        "deno-cache",
        (Some("DENO_DIR"), ".cache/deno"),
        &[cache(".")],
        &[],
        &[("DENO_DIR", "{}")],
    ),
    // Go.
    known(
        "go",
        (Some("GOPATH"), "go"),
        // Repositories as they were fetched; what go builds from is in the cache of downloads.
        &[part("bin"), cache_without("pkg", &["mod/cache/vcs"])],
        &[In("bin")],
        &[("GOPATH", "{}"), ("GOPROXY", "off"), ("GOTOOLCHAIN", "local")],
    ),
    known("go-root", (Some("GOROOT"), "/usr/local/go"), &[part(".")], &[In("bin")], &[]),
    known("go-sdk", (None, "sdk"), &[part(".")], &[], &[]),
    known(
        "goenv",
        (Some("GOENV_ROOT"), ".goenv"),
        SHIMMED,
        SHIMMED_PROGRAMS,
        &[("GOENV_ROOT", "{}")],
    ),
    // The JVM.
    known(
        "sdkman",
        (Some("SDKMAN_DIR"), ".sdkman"),
        &[part("candidates")],
        &[InEach("candidates", "current/bin")],
        &[("SDKMAN_DIR", "{}"), ("JAVA_HOME", "{}/candidates/java/current")],
    ),
    known("jenv", (Some("JENV_ROOT"), ".jenv"), SHIMMED, SHIMMED_PROGRAMS, &[("JENV_ROOT", "{}")]),
    known("jdks", (None, ".jdks"), &[part(".")], &[], &[]),
    known(
        "maven",
        (None, ".m2"),
        &[cache("repository"), part("wrapper")],
        &[],
        &[
            // Maven looks in the home directory of the account, which commands do not have.
            ("MAVEN_OPTS", "-Dmaven.repo.local={}/repository"),
        ],
    ),
    known(
        "gradle",
        (Some("GRADLE_USER_HOME"), ".gradle"),
        &[part("caches"), part("wrapper"), part("jdks")],
        &[],
        &[("GRADLE_RO_DEP_CACHE", "{}/caches")],
    ),
    known(
        "coursier",
        (None, ".cache/coursier"),
        &[cache(".")],
        &[],
        &[("COURSIER_CACHE", "{}/v1")],
    ),
    // Others.
    known(
        "rbenv",
        (Some("RBENV_ROOT"), ".rbenv"),
        SHIMMED,
        SHIMMED_PROGRAMS,
        &[("RBENV_ROOT", "{}")],
    ),
    known("gem", (None, ".gem"), &[part("ruby")], &[InEach("ruby", "bin")], &[]),
    known(
        "asdf",
        (Some("ASDF_DATA_DIR"), ".asdf"),
        &[
            part("installs"),
            part("shims"),
            part("plugins"),
            part("bin"),
            part("lib"),
            part("libexec"),
        ],
        &[In("shims"), In("bin")],
        &[("ASDF_DATA_DIR", "{}")],
    ),
    known(
        "mise",
        (Some("MISE_DATA_DIR"), ".local/share/mise"),
        &[part("installs"), part("shims"), part("plugins")],
        &[In("shims")],
        &[("MISE_DATA_DIR", "{}")],
    ),
    known(
        "ghcup",
        (None, ".ghcup"),
        &[part("bin"), part("ghc"), part("hls"), part("cabal")],
        &[In("bin")],
        &[],
    ),
    known(
        "dotnet",
        (Some("DOTNET_ROOT"), ".dotnet"),
        &[
            part("dotnet"),
            part("host"),
            part("sdk"),
            part("shared"),
            part("packs"),
            part("templates"),
            part("sdk-manifests"),
            part("tools"),
        ],
        &[In("."), In("tools")],
        &[("DOTNET_ROOT", "{}")],
    ),
    known(
        "nuget",
        (Some("NUGET_PACKAGES"), ".nuget/packages"),
        &[cache(".")],
        &[],
        &[("NUGET_PACKAGES", "{}")],
    ),
    known(
        "composer-cache",
        (Some("COMPOSER_CACHE_DIR"), ".cache/composer"),
        &[cache_without(".", &["vcs"])],
        &[],
        &[("COMPOSER_CACHE_DIR", "{}")],
    ),
    known("local-bin", (None, ".local/bin"), &[part(".")], &[In(".")], &[]),
];

/// The parts of an installation of conda that are shown.
const CONDA: &[Part] = &[
    part("bin"),
    part("condabin"),
    part("conda-meta"),
    part("envs"),
    part("etc"),
    part("include"),
    part("lib"),
    part("libexec"),
    Part { path: "pkgs", discards_writes: false, hidden: &["urls.txt", "urls", "cache"] },
    part("share"),
    part("shell"),
    part("ssl"),
    part("x86_64-conda-linux-gnu"),
    part("aarch64-conda-linux-gnu"),
];
const CONDA_PROGRAMS: &[Programs] = &[In("bin"), In("condabin")];

/// The one with a name.
pub(super) fn find(name: &str) -> Option<&'static KnownToolchain> {
    KNOWN.iter().find(|known| known.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_no_settings_are_shown() {
        for (at, known) in KNOWN.iter().enumerate() {
            assert!(KNOWN[..at].iter().all(|other| other.name != known.name), "{}", known.name);
            let hidden =
                ["config", "credentials", "settings.xml", "npmrc", "gradle.properties", "auth"];
            for part in known.parts {
                assert!(!hidden.iter().any(|word| part.path.contains(word)), "{}", part.path);
                let is_plain = !part.path.starts_with('/') && !part.path.contains("..");
                assert!(is_plain, "{} {}", known.name, part.path);
            }
        }
    }
}
