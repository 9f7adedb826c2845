//! Tests of what is read of a configuration, against git's own reading.

use std::ffi::OsString;
use std::fs;

use super::*;

/// A home directory with a configuration, and variables of the environment.
struct TestUser {
    home: tempfile::TempDir,
    variables: Vec<(&'static str, OsString)>,
}

impl UserVariables for TestUser {
    fn variable(&self, name: &str) -> Option<OsString> {
        let home = || (name == "HOME").then(|| self.home.path().into());
        self.variables
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value.clone())
            .or_else(home)
    }

    fn variables(&self) -> Vec<OsString> {
        Vec::new()
    }
}

impl TestUser {
    fn with(config: &str) -> Self {
        let user = Self {
            home: tempfile::tempdir().unwrap(),
            variables: vec![("GIT_CONFIG_SYSTEM", "/dev/null".into())],
        };
        user.write(".gitconfig", config);
        user
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.home.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The preferences for a workspace as git reads them, sorted.
    fn listed(&self, root: &Path) -> Vec<String> {
        let text = GitPreferences::read(self, root).config_text(root, Path::new("/mnt"));
        let file = self.home.path().join("listed");
        fs::write(&file, text).unwrap();
        let mut git = std::process::Command::new("git");
        let done = git.args(["config", "--list", "-z", "--file"]).arg(file).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        let printed = String::from_utf8(done.stdout).unwrap();
        let mut lines: Vec<String> = printed
            .split('\0')
            .filter(|text| !text.is_empty())
            .map(|text| text.replacen('\n', "=", 1))
            .collect();
        lines.sort_unstable();
        lines
    }
}

/// Settings that start something, name a file, believe a server or hold a secret stay where they are.
#[test]
fn preferences_are_told_and_nothing_else() {
    let user = TestUser::with(
        "[user]\nname = \"A \\\"B\\\" \\\\ ;c\"\nemail=a@b\nsigningKey=K\n[core]\nautocrlf=input\neditor=vi\npager=less\n\
         hooksPath=/h\nfsmonitor=./x\nsshCommand=x\nattributesFile=/a\n[commit]\ngpgSign=true\nverbose\ntemplate=/t\n\
         [credential]\nhelper=store\n[url \"ssh://x/\"]\ninsteadOf=https://x/\n[http]\nextraHeader=secret\n\
         [filter \"x\"]\nclean=./c\n[diff]\nexternal=./d\nrenames=copies\n[color]\nui=always\n[color \"diff\"]\nmeta=red\n\
         [help]\nautocorrect=immediate\n[sendemail]\nsmtpPass=secret\n[init]\ndefaultBranch=trunk\ntemplateDir=/t\n\
         [alias]\nst=status -sb\np=push\nx=!id\ny=-c core.pager=x log\n",
    );
    assert_eq!(
        user.listed(Path::new("/w")),
        [
            "alias.st=status -sb",
            "color.diff.meta=red",
            "commit.verbose",
            "core.autocrlf=input",
            "diff.renames=copies",
            "init.defaultbranch=trunk",
            "user.email=a@b",
            "user.name=A \"B\" \\ ;c",
        ]
    );
}

#[test]
fn configuration_is_included_as_git_does() {
    let work = tempfile::tempdir().unwrap();
    let root = work.path().canonicalize().unwrap().join("org/project");
    fs::create_dir_all(root.join(".git")).unwrap();
    fs::write(root.join(".git/HEAD"), "ref: refs/heads/topic/a\n").unwrap();
    let above = root.parent().unwrap().to_str().unwrap().to_owned();
    for (condition, holds) in [
        (format!("gitdir:{above}/"), true),
        (format!("gitdir:{above}"), false),
        (format!("gitdir:{above}/project/.git"), true),
        (format!("gitdir/i:{}/", above.to_uppercase()), true),
        (format!("gitdir:{}/", above.to_uppercase()), false),
        ("gitdir:org/".into(), true),
        ("gitdir:other/".into(), false),
        ("gitdir:~/".into(), false),
        ("onbranch:topic/".into(), true),
        ("onbranch:main".into(), false),
        ("hasconfig:remote.*.url:x".into(), false),
    ] {
        let user = TestUser::with(&format!(
            "[user]\nemail=a@b\n[include]\npath=more\n[includeIf \"{condition}\"]\npath=~/work.inc\n"
        ));
        user.write("more", "[include]\npath=more\n[user]\nname=More\n");
        user.write("work.inc", "[user]\nemail=work@b\n");
        let listed = user.listed(&root);
        assert!(listed.contains(&"user.name=More".to_owned()), "{listed:?}");
        assert_eq!(
            listed.contains(&"user.email=work@b".to_owned()),
            holds,
            "{condition}: {listed:?}"
        );
    }
}

#[test]
fn variables_say_where_the_configuration_is() {
    let mut user = TestUser::with("[user]\nname=Home\n");
    user.write("xdg/git/config", "[user]\nemail=xdg@b\n");
    user.write("xdg/git/ignore", "*.swp\n");
    user.write("machine", "[user]\nname=Machine\n[core]\nabbrev=9\n");
    let path = |name: &str, user: &TestUser| user.home.path().join(name).into_os_string();
    let (xdg, machine) = (path("xdg", &user), path("machine", &user));
    user.variables = vec![("XDG_CONFIG_HOME", xdg), ("GIT_CONFIG_SYSTEM", machine.clone())];
    let root = Path::new("/w");
    assert_eq!(
        user.listed(root),
        ["core.abbrev=9", "user.email=xdg@b", "user.name=Home", "user.name=Machine"]
    );
    assert_eq!(GitPreferences::read(&user, root).ignored, b"*.swp\n");
    user.variables.push(("GIT_CONFIG_NOSYSTEM", "1".into()));
    assert_eq!(user.listed(root), ["user.email=xdg@b", "user.name=Home"]);
    user.variables =
        vec![("GIT_CONFIG_GLOBAL", machine), ("GIT_CONFIG_SYSTEM", "/dev/null".into())];
    assert_eq!(user.listed(root), ["core.abbrev=9", "user.name=Machine"]);
    // A configuration that git would not read, and one that never ends.
    let user = TestUser::with("[user\nname=x\n");
    assert!(user.listed(root).is_empty());
    let mut user = TestUser::with("");
    user.variables.push(("GIT_CONFIG_GLOBAL", "/dev/zero".into()));
    assert!(user.listed(root).is_empty());
}

/// The workspace is trusted where git on the host trusts it, and nothing else is.
#[test]
fn trust_is_told_for_the_workspace() {
    for (values, expected) in [
        (&["/w"][..], vec!["safe.directory=/mnt"]),
        (&["/w/sub", "/other"], vec!["safe.directory=/mnt/sub"]),
        (&["/other"], vec![]),
        (&["*"], vec!["safe.directory=*"]),
        (&["/*"], vec![]),
        (&["/w/*"], vec!["safe.directory=*"]),
        (&["*", ""], vec![]),
    ] {
        let lines: Vec<String> =
            values.iter().map(|value| format!("directory = \"{value}\"\n")).collect();
        let user = TestUser::with(&format!("[safe]\n{}", lines.concat()));
        assert_eq!(user.listed(Path::new("/w")), expected, "{values:?}");
    }
}

#[test]
fn aliases_stand_for_words_of_git() {
    let user = TestUser::with(
        "[alias]\nst = status -sb\nss = st\nci = commit\nstatus = push\nsh = !sh\nq = log --format='a b'\n\
         a = b\nb = a\nlg = log --oneline\nlg = !id\n[alias \"\u{fc}\"]\ncommand = diff\n",
    );
    let aliases = GitPreferences::read(&user, Path::new("/w")).aliases;
    let expand = |words: &[&str]| {
        let (at, with) = aliases.expansion(words)?;
        Some(
            [&words[..at], &with.iter().map(String::as_str).collect::<Vec<_>>(), &words[at + 1..]]
                .concat()
                .join(" "),
        )
    };
    for (words, expected) in [
        (&["st"][..], Some("status -sb")),
        (&["-C", "sub", "--no-pager", "ss", "a"], Some("-C sub --no-pager status -sb a")),
        (&["ci", "-m", "x"], Some("commit -m x")),
        (&["\u{fc}"], Some("diff")),
        (&["status"], None),
        (&["sh"], None),
        (&["q"], None),
        (&["a"], None),
        (&["lg"], None),
        (&["--exec-path=x", "st"], None),
        (&["-C"], None),
        (&[], None),
    ] {
        assert_eq!(expand(words).as_deref(), expected, "{words:?}");
    }
}
