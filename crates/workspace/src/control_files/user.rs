//! What gives orders to every repository of the user, wherever it lies: the configuration of the user and of
//! the machine, and what variables of the environment say.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use capsule_base::limits;

use crate::git_config;
use crate::git_config::{Named, Setting};
use crate::system::stat;

/// Says what a variable of the user's environment holds.
pub(crate) type Variables<'v> = &'v dyn Fn(&str) -> Option<OsString>;

/// The user's configuration, in the home directory.
const HOME: [&str; 2] = [".gitconfig", ".config/git/config"];
/// The user's attributes there.
const HOME_ATTRIBUTES: &str = ".config/git/attributes";
/// Where programs are, whatever the `PATH` says. Their prefix has a folder `etc`.
const PROGRAMS: [&str; 4] = ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin", "/opt/local/bin"];
/// The folder `etc` of programs that come with the system.
const ETC: &str = "/etc";
/// Variables that name files of configuration.
const CONFIGS: [&str; 3] = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG"];
/// Variables that name programs which git starts.
const COMMANDS: [&str; 12] = [
    "EDITOR",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "PAGER",
    "SSH_ASKPASS",
    "VISUAL",
];
/// Variables that name what git runs, copies to where it runs it, or believes servers by.
const PATHS: [&str; 4] = ["GIT_EXEC_PATH", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_TEMPLATE_DIR"];
/// Variables that name a repository.
const REPOSITORIES: [&str; 2] = ["GIT_DIR", "GIT_COMMON_DIR"];
/// Where the accounts of the machine are.
const ACCOUNTS: &str = "/etc/passwd";

/// What every repository of the user takes orders from.
#[derive(Debug, Default)]
pub(super) struct User {
    /// Files of configuration.
    pub files: BTreeSet<PathBuf>,
    /// Files of attributes.
    pub attributes: BTreeSet<PathBuf>,
    /// What variables say.
    pub settings: Vec<Named>,
    /// Repositories that variables name, each with the folder of its files.
    pub repositories: Vec<(PathBuf, Option<PathBuf>)>,
}

impl User {
    pub(super) fn of(home: Option<&Path>, variables: Variables<'_>) -> Self {
        let named =
            |name: &str| variables(name).filter(|variable| !variable.is_empty()).map(PathBuf::from);
        let mut user = Self::default();
        let item = home.into_iter().flat_map(|home| HOME.map(|file| home.join(file)));
        let xdg = named("XDG_CONFIG_HOME").map(|folder| folder.join("git"));
        let etc = machine(variables);
        let all = item.chain(CONFIGS.into_iter().filter_map(named));
        user.files.extend(all.chain(xdg.iter().map(|folder| folder.join("config"))));
        user.files.extend(etc.iter().map(|etc| etc.join("gitconfig")));
        user.attributes.extend(home.map(|home| home.join(HOME_ATTRIBUTES)));
        user.attributes.extend(xdg.map(|folder| folder.join("attributes")));
        user.attributes.extend(etc.iter().map(|etc| etc.join("gitattributes")));
        user.settings = settings(variables);
        let tree = named("GIT_WORK_TREE");
        let repositories = REPOSITORIES.into_iter().filter_map(named);
        user.repositories = repositories.map(|repository| (repository, tree.clone())).collect();
        user
    }
}

/// The relative paths by which the configuration of the user and of the machine names what git runs, in whatever
/// repository it is; none where that cannot be known.
pub(crate) fn relative_orders(
    home: Option<&Path>,
    variables: Variables<'_>,
) -> Option<Vec<PathBuf>> {
    let User { files, settings, .. } = User::of(home, variables);
    let (mut waiting, mut seen) = (files.into_iter().collect::<Vec<_>>(), BTreeSet::new());
    let mut named: Vec<(PathBuf, Named)> =
        settings.into_iter().map(|item| (PathBuf::new(), item)).collect();
    let mut orders = Vec::new();
    loop {
        for (file, item) in named.drain(..) {
            match item {
                Named::Config(path) => {
                    let path = PathBuf::from(OsString::from_vec(path));
                    let at_home = path.strip_prefix("~").ok();
                    waiting.push(match at_home {
                        Some(rest) => home?.join(rest),
                        None => file.parent().filter(|_| !path.starts_with("~"))?.join(path),
                    });
                }
                Named::Hooks(path) | Named::Attributes(path) | Named::Path(_, path) => {
                    orders.push(path);
                }
                Named::Command(_, words) => {
                    // A program without a slash is looked for elsewhere.
                    let skipped =
                        usize::from(words.first().is_some_and(|word| !word.contains(&b'/')));
                    orders.extend(words.into_iter().skip(skipped));
                }
                Named::Worktree(_) => return None,
            }
        }
        let Some(file) = waiting.pop() else { break };
        if !seen.insert(file.clone()) {
            continue;
        }
        let read = match std::fs::read(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            read => read.ok().filter(|_| seen.len() <= limits::CONFIG_FILES)?,
        };
        named.extend(git_config::read(&read).ok()?.into_iter().map(|item| (file.clone(), item)));
    }
    let is_relative =
        |path: &Vec<u8>| !path.is_empty() && !path.starts_with(b"/") && !path.starts_with(b"~");
    Some(
        orders
            .into_iter()
            .filter(is_relative)
            .map(|path| OsString::from_vec(path).into())
            .collect(),
    )
}

/// The folders in which gits of this machine look for what holds for all users: beside the folder of each.
fn machine(variables: Variables<'_>) -> BTreeSet<PathBuf> {
    let path = variables("PATH").unwrap_or_default();
    let path = std::env::split_paths(&path).filter(|path| path.is_absolute());
    let mut all = BTreeSet::from([PathBuf::from(ETC)]);
    for folder in path.chain(PROGRAMS.map(PathBuf::from)) {
        let program = folder.join("git");
        if stat(&program).is_err() {
            continue;
        }
        let real = program.canonicalize().ok().and_then(|path| path.parent().map(Path::to_owned));
        for folder in [Some(folder), real].into_iter().flatten() {
            all.extend(folder.parent().map(|prefix| prefix.join("etc")));
        }
    }
    all
}

/// What variables say that configurations say otherwise.
fn settings(variables: Variables<'_>) -> Vec<Named> {
    let text = |name: &str| variables(name).map(OsString::into_vec);
    let mut all = Vec::new();
    for name in COMMANDS {
        let value = text(name).unwrap_or_default();
        all.extend(git_config::command(name, &value));
    }
    for name in PATHS {
        all.extend(text(name).map(|value| Named::Path(name.into(), value)));
    }
    let count =
        text("GIT_CONFIG_COUNT").and_then(|item| String::from_utf8(item).ok()?.parse().ok());
    for number in 0..count.unwrap_or(0).min(limits::CONFIG_FILES) {
        let pair = |what: &str| text(&format!("GIT_CONFIG_{what}_{number}"));
        if let Some((key, value)) = pair("KEY").zip(pair("VALUE")) {
            all.extend(Setting::of(&key, value).into_iter().flat_map(|setting| setting.names()));
        }
    }
    for word in quoted(&text("GIT_CONFIG_PARAMETERS").unwrap_or_default()) {
        all.extend(Setting::parse(&word).into_iter().flat_map(|setting| setting.names()));
    }
    all
}

/// The words of settings that one git hands to another: `'KEY'='VALUE'`, apart by spaces. A quote in them
/// stands outside of the quotes, behind a backslash.
fn quoted(text: &[u8]) -> Vec<Vec<u8>> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), Vec::new(), false);
    let mut rest = text.iter().copied();
    while let Some(byte) = rest.next() {
        match byte {
            b'\'' => is_quoted = !is_quoted,
            b'\\' if !is_quoted => word.extend(rest.next()),
            b' ' if !is_quoted => words.push(std::mem::take(&mut word)),
            byte => word.push(byte),
        }
    }
    words.push(word);
    words
}

/// An account of this machine.
pub(super) struct Account {
    name: Vec<u8>,
    /// Its number, where that is one.
    pub id: Option<u32>,
    /// Its home directory.
    pub home: PathBuf,
}

/// The accounts of this machine, as far as a file of it tells them.
pub(super) fn accounts() -> Vec<Account> {
    let text = std::fs::read(ACCOUNTS).unwrap_or_default();
    let account = |line: &[u8]| {
        let words: Vec<&[u8]> = line.split(|byte| *byte == b':').collect();
        let name = words.first()?.to_vec();
        let id = words.get(2).and_then(|item| std::str::from_utf8(item).ok()?.parse().ok());
        let home = PathBuf::from(OsStr::from_bytes(words.get(5)?));
        Some(Account { name, id, home })
    };
    text.split(|byte| *byte == b'\n').filter_map(account).collect()
}

/// The home directory of an account.
pub(super) fn home_of(user: &[u8]) -> Option<PathBuf> {
    accounts().into_iter().find(|account| account.name == user).map(|account| account.home)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(variables: &[(&str, &str)]) -> Vec<String> {
        let variable = |name: &str| {
            variables.iter().find(|(text, _)| *text == name).map(|(_, value)| OsString::from(value))
        };
        let shown = |named: &Named| match named {
            Named::Hooks(path) => format!("hooks {}", String::from_utf8_lossy(path)),
            Named::Path(key, path) => format!("{key} {}", String::from_utf8_lossy(path)),
            Named::Command(key, words) => {
                format!("{key} {}", String::from_utf8_lossy(&words.join(&b',')))
            }
            other => format!("{other:?}"),
        };
        settings(&variable).iter().map(shown).collect()
    }

    /// Each git of this machine says itself where what holds for all users is.
    #[test]
    fn it_is_known_where_each_git_looks() {
        let path = std::env::var("PATH").unwrap();
        let variable = |name: &str| (name == "PATH").then(|| OsString::from(&path));
        let known = User::of(None, &variable).files;
        let mut asked = 0;
        for folder in path.split(':').chain(PROGRAMS) {
            let git = Path::new(folder).join("git");
            if !git.exists() {
                continue;
            }
            let mut command = std::process::Command::new(&git);
            command
                .args(["config", "--system", "--edit"])
                .env("GIT_EDITOR", "echo")
                .current_dir("/");
            let told = String::from_utf8(command.output().unwrap().stdout).unwrap();
            assert!(known.contains(Path::new(told.trim())), "{}: {told}", git.display());
            asked += 1;
        }
        assert!(asked > 0, "this test needs git");
    }

    #[test]
    fn variables_are_read_as_settings() {
        assert!(told(&[]).is_empty());
        assert_eq!(told(&[("GIT_EDITOR", "./ed -w")]), ["GIT_EDITOR ./ed,-w,./ed -w"]);
        assert_eq!(told(&[("GIT_TEMPLATE_DIR", "t")]), ["GIT_TEMPLATE_DIR t"]);
        let counted = [
            ("GIT_CONFIG_COUNT", "2"),
            ("GIT_CONFIG_KEY_0", "Core.HooksPath"),
            ("GIT_CONFIG_VALUE_0", "h"),
            ("GIT_CONFIG_KEY_1", "filter.a.B.clean"),
            ("GIT_CONFIG_VALUE_1", "./c"),
        ];
        assert_eq!(told(&counted), ["hooks h", "filter.clean ./c"]);
        for text in
            ["'core.hooksPath=h' 'user.name=x'", "'user.name'='it'\\''s' 'core.hookspath'='h'"]
        {
            assert_eq!(told(&[("GIT_CONFIG_PARAMETERS", text)]), ["hooks h"], "{text}");
        }
    }
}
