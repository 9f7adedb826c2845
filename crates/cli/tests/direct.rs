//! Direct changes: a command writes to the workspace itself, within its rule and the invariants, and
//! everybody is told that nothing of it is collected.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::ffi::OsStr;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use capsule_testkit::{Capsule, CommandOutput};
use rustix::fs::FileType;

const POLICY: &str = r#"version: 1
name: direct
sandbox: { workspace: direct }
tools:
  fs.read: { decision: allow, hidden: allow, paths: ["**"] }
  fs.write: { decision: allow, paths: ["**"] }
  shell.run:
    limits: { timeout: 30s }
    executables:
      perl: { decision: allow, writes: ["**"] }
      touch: { decision: allow, writes: ["open/**", "one"] }
      rm: { decision: allow, flags: { allow: [-f] }, writes: ["open/**"] }
      mkdir: { decision: allow, writes: ["absent/**"] }
      cp: { decision: allow, writes: ["open"] }
      cat: allow
      git:
        writes: ["**"]
        subcommands:
          add: allow
          commit: { decision: allow, flags: { allow: [-m] } }
"#;

/// What every script begins with: writing a file in a line.
const PUT: &str = "use strict; sub put { open(my $f, '>', $_[0]) or die \"$_[0]: $!\"; print $f $_[1]; close $f } ";

struct Bed {
    capsule: Capsule,
    policy: String,
}

impl Bed {
    fn new() -> Self {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        let root = capsule.workspace();
        for folder in ["open", "src", "keys", ".git/hooks", ".git/info", ".github/workflows"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        for path in KEPT.iter().chain(&["one", "src/file", ".git/HEAD", "open/file"]) {
            if !root.join(path).exists() {
                // A comment, for whoever reads it as configuration.
                fs::write(root.join(path), "# as it was\n").unwrap();
            }
        }
        let policy = capsule.write_policy(POLICY);
        Self { capsule, policy }
    }

    fn exec(&self, argv: &[&str]) -> CommandOutput {
        let line = ["exec", "--policy", &self.policy, "--json", "--"];
        self.capsule.run(&[&line, argv].concat())
    }

    fn perl(&self, script: &str) -> CommandOutput {
        self.exec(&["perl", "-e", &format!("{PUT}{script}")])
    }

    /// A script that the walls keep from what it wants.
    #[track_caller]
    fn perl_fails(&self, script: &str) -> CommandOutput {
        failed(script, self.perl(script))
    }

    fn run(&self, words: &[&str]) -> CommandOutput {
        self.capsule.run(words)
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.capsule.workspace().join(path)).ok()
    }

    fn check(&self, policy: &str) -> CommandOutput {
        let policy = self.capsule.write_policy(policy);
        self.run(&["policy", "check", "--policy", &policy])
    }
}

/// The program ran and could not do it; its own status is the one of the command.
#[track_caller]
fn failed(script: &str, ran: CommandOutput) -> CommandOutput {
    assert_eq!(ran.json()["code"], "exec.exit-nonzero", "{script}: {}", ran.stdout);
    ran
}

/// What an invariant protects, in a workspace of [`Bed`].
const KEPT: &[&str] = &[
    ".env",
    "keys/server.pem",
    ".git/config",
    ".git/hooks/pre-commit",
    ".git/info/attributes",
    ".gitmodules",
    ".github/workflows/ci.yml",
    ".envrc",
];

/// Inode, permissions and content of what is protected.
fn kept(root: &Path) -> Vec<(u64, u32, String)> {
    let facts = |path: &&str| {
        let own = root.join(path).symlink_metadata().unwrap();
        (own.ino(), own.mode(), fs::read_to_string(root.join(path)).unwrap())
    };
    KEPT.iter().map(facts).collect()
}

/// What a command changes is in the workspace when it ends, and nobody says otherwise.
#[test]
fn changes_are_made_at_once_and_said_to_be() {
    let bed = Bed::new();
    let script = "put('new', 'n'); unlink 'one' or die; rename 'src', 'lib' or die";
    let ended = bed.perl(script).exits(0).json();
    assert_eq!(ended["result"]["direct"], true, "{ended}");
    assert!(ended["result"].get("changes").is_none() && ended["staged"].is_null(), "{ended}");
    assert_eq!(bed.read("new").as_deref(), Some("n"));
    assert_eq!((bed.read("one"), bed.read("lib/file").as_deref()), (None, Some("# as it was\n")));

    let told = bed.run(&["report", "latest"]).exits(0).stdout;
    assert!(told.contains("direct: changes are not collected"), "{told}");
    assert!(told.contains("changes not collected"), "{told}");
    let told = bed.run(&["show-run", "latest:1"]).exits(0).stdout;
    assert!(told.contains("made in the workspace itself"), "{told}");
    let report = bed.run(&["report", "latest", "--format", "json"]).exits(0).json();
    let call = &report["calls"][0];
    assert_eq!(
        (&report["opened"]["entry"]["direct"], &call["direct"]),
        (&true.into(), &true.into())
    );
    let needs = call["decision"]["capabilities"].to_string();
    assert!(needs.contains("fs.write") && needs.contains("fs.delete"), "{needs}");
    let records = report["records"].as_array().unwrap().iter();
    let started: Vec<_> = records.filter(|own| own.to_string().contains("call.started")).collect();
    let started = started.first().unwrap().to_string();
    assert!(started.contains(r#""effects":true"#), "durable before anything acts: {started}");
    assert!(started.contains(r#""workspace":"direct""#), "{started}");

    let told = bed.run(&["changes", "latest"]).exits(0).stdout;
    assert!(told.contains("workspace itself"), "{told}");
    let _ = bed.run(&["apply", "latest"]).exits(2);
    let _ = bed.run(&["discard", "latest"]).exits(2);
    assert!(!bed.capsule.store().with_file_name("store.db.staged").exists());
    // A replay serves the record, and changes nothing again.
    fs::remove_file(bed.capsule.workspace().join("new")).unwrap();
    let _ = bed.run(&["replay", "latest"]).exits(0);
    assert_eq!(bed.read("new"), None);
    let _ = bed.run(&["verify"]).exits(0);
}

/// Tools act in the same workspace, and a program without `writes` changes nothing.
#[test]
fn tools_and_commands_share_the_workspace() {
    let bed = Bed::new();
    let plan = bed.capsule.write_plan(
        r#"version: 1
steps:
  - id: write
    tool: fs.write
    args: { path: note.txt, content: by tool }
  - id: add
    tool: shell.run
    args: { argv: [perl, -e, "open(my $f, '>>', 'note.txt') or die; print $f ' and command'"] }
  - id: cat
    tool: shell.run
    args: { argv: [cat, note.txt] }
    expect: { stdout: by tool and command }
"#,
    );
    let ran = bed.run(&["run", &plan, "--policy", &bed.policy]).exits(0);
    assert!(ran.stdout.contains("direct: changes are not collected"), "{}", ran.stdout);
    assert_eq!(bed.read("note.txt").as_deref(), Some("by tool and command"));
    let ended = bed.exec(&["cat", "note.txt"]).exits(0).json();
    assert!(ended["result"].get("direct").is_none(), "{ended}");
}

/// C22, C23: a repository takes commits, and its hooks and its configuration stay what they are.
#[test]
fn a_repository_takes_commits_and_no_orders() {
    let bed = Bed::new();
    let root = bed.capsule.workspace();
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "init.defaultBranch=main"]).args(words).current_dir(&root);
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", bed.capsule.home());
        let ran = command.output().unwrap();
        assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stdout).into_owned()
    };
    fs::remove_dir_all(root.join(".git")).unwrap();
    let _ = git(&["init", "."]);
    let _ = git(&["config", "user.name", "n"]);
    let _ = git(&["config", "user.email", "n@localhost"]);
    let config = bed.read(".git/config");
    for round in 0..2 {
        let _ = bed.perl(&format!("put('src/file', 'round {round}')")).exits(0);
        let _ = bed.exec(&["git", "add", "src/file"]).exits(0);
        let _ = bed.exec(&["git", "commit", "-m", &format!("round {round}")]).exits(0);
    }
    assert_eq!(git(&["log", "--format=%s"]), "round 1\nround 0\n");
    let _ = git(&["fsck", "--strict"]);
    for script in [
        "put('.git/config', '[core] hooksPath = /tmp')",
        "put('.git/hooks/pre-commit', 1)",
        "rename '.git', 'g' or die",
        "rename '.git/hooks', 'h' or die",
        "mkdir 'g'; rename 'g', '.git' or die",
    ] {
        let _ = bed.perl_fails(script);
    }
    assert_eq!(bed.read(".git/config"), config);
    assert!(root.join(".git/hooks").is_dir() && !root.join(".git/hooks/pre-commit").exists());
}

/// C7, C8, C22: what an invariant protects stays what and where it is, by whatever name.
#[test]
fn what_is_protected_stays() {
    let bed = Bed::new();
    let root = bed.capsule.workspace();
    fs::hard_link(root.join(".git/config"), root.join("alias")).unwrap();
    symlink("file", root.join("src/.envrc")).unwrap();
    let before = kept(&root);
    for path in KEPT {
        for script in [
            "put(P, 1)",
            "open(my $f, '>>', P) or die",
            "truncate P, 0 or die",
            "unlink P or die",
            "rename P, 'other' or die",
            "put('x', 1); rename 'x', P or die",
            "put('x', 1); unlink P; link 'x', P or die",
            "unlink P; symlink 'x', P or die",
            "link P, 'other' or die",
            "chmod 0777, P or die",
            "utime 1, 1, P or die",
        ] {
            let line = script.replace('P', &format!("'{path}'"));
            let _ = bed.perl_fails(&line);
            assert_eq!(kept(&root), before, "{line}");
        }
        for above in Path::new(path).ancestors().skip(1).filter(|own| *own != Path::new("")) {
            let _ = bed.perl_fails(&format!("rename '{}', 'other' or die", above.display()));
        }
    }
    // Other names of it, and links.
    for script in [
        "put('alias', 1)",
        "unlink 'alias' or die",
        "unlink 'src/.envrc' or die",
        "rename 'src', 'other' or die",
        "put('src/file', 'what a protected link leads to')",
    ] {
        let _ = bed.perl_fails(script);
    }
    // What is hidden cannot be read either.
    for path in [".env", "keys/server.pem"] {
        let ended = bed.perl_fails(&format!("open(my $f, '<', '{path}') or die; print <$f>"));
        assert!(!ended.stdout.contains("as it was"), "{}", ended.stdout);
    }
    let _ = bed.perl("system('rm', '-rf', glob('* .g*'))");
    assert_eq!(kept(&root), before);
    assert!(root.join("src/.envrc").is_symlink() && !root.join("one").exists());
}

/// The named gap: a protected name that is not there yet can be made. It is found and told, and the
/// call is not said to have gone well.
#[test]
fn a_protected_name_that_is_made_is_told() {
    for (script, path) in [
        ("mkdir '.vscode'; put('.vscode/tasks.json', 1)", ".vscode"),
        ("put('src/.envrc', 1)", "src/.envrc"),
        ("mkdir 'sub'; mkdir 'sub/.git'", "sub/.git"),
        ("put('.git/commondir', 1)", ".git/commondir"),
        ("symlink 'src', '.idea' or die", ".idea"),
    ] {
        let bed = Bed::new();
        let ended = bed.perl(script).exits(3).json();
        assert_eq!(ended["code"], "change.protected", "{script}: {ended}");
        let told = ended.to_string();
        assert!(told.contains(&format!("`{path}`")), "{script}: {told}");
        // What was there before holds nobody up; it is held from now on.
        let _ = bed.perl("put('new', 1)").exits(0);
        let _ = bed.perl_fails(&format!("rename '{path}', 'other' or die"));
    }
}

/// C22: what is closed behind what was made does not keep it from being told. Whoever may look into
/// every folder finds the name itself.
#[test]
fn a_folder_that_is_closed_behind_it_hides_nothing() {
    for (script, path, inner) in [
        ("put('.git/commondir', 1); chmod 0311, '.git' or die", ".git", ".git/commondir"),
        ("put('src/.envrc', 1); chmod 0311, 'src' or die", "src", "src/.envrc"),
        ("put('.git/commondir', 1); chmod 0, '.git' or die", ".git", ".git/commondir"),
    ] {
        let bed = Bed::new();
        let root = bed.capsule.workspace();
        let ended = bed.perl(script).exits(3).json();
        assert_eq!(ended["code"], "change.protected", "{script}: {ended}");
        let sees_all = fs::read_dir(root.join(path)).is_ok();
        // Where it cannot be looked into, it or what is known to be in it is named.
        let expected = if sees_all { format!("`{inner}`") } else { format!("`{path}") };
        let told = ended.to_string();
        assert!(told.contains(&expected), "{script}: {told}");
        // Nobody could look into it before the next call: nothing in it can be changed then.
        let _ = bed.perl(&format!("chmod 0755, '{path}'; put('{path}/new', 1)"));
        assert_eq!(root.join(path).join("new").exists(), sees_all, "{script}");
        fs::set_permissions(root.join(path), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// What somebody else does while a command runs: it says that it runs, and waits for them.
#[track_caller]
fn meanwhile(bed: &Bed, act: impl FnOnce(&Path)) -> (CommandOutput, Duration) {
    let root = bed.capsule.workspace();
    let script = "put('open/runs', 1); for (1..400) { last if -e 'open/go'; select(undef, undef, undef, 0.05) }";
    let script = format!("{PUT}{script}");
    let line = ["exec", "--policy", &bed.policy, "--json", "--", "perl", "-e", &script];
    let began = Instant::now();
    std::thread::scope(|scope| {
        let ran = scope.spawn(|| bed.capsule.run(&line));
        while !root.join("open/runs").exists() {
            assert!(began.elapsed() < Duration::from_secs(20), "the command does not run");
            std::thread::sleep(Duration::from_millis(10));
        }
        act(&root);
        let ended = ran.join().unwrap();
        (ended, began.elapsed())
    })
}

/// A rename from outside takes a mount away. The command does not go on without it, and it is told.
#[test]
fn what_somebody_replaces_ends_the_command() {
    for path in [".git/config", ".env", ".git", "keys/server.pem", ".github/workflows"] {
        let bed = Bed::new();
        let (ended, took) = meanwhile(&bed, |root| {
            let (new, old) =
                (bed.capsule.directory().join("new"), bed.capsule.directory().join("old"));
            if root.join(path).is_dir() {
                fs::create_dir(&new).unwrap();
                fs::rename(root.join(path), &old).unwrap();
            } else {
                fs::write(&new, "another\n").unwrap();
            }
            fs::rename(&new, root.join(path)).unwrap();
        });
        let ended = ended.exits(3).json();
        assert!(took < Duration::from_secs(15), "{path}: it was not ended: {took:?}");
        assert_eq!(ended["code"], "change.protected", "{path}: {ended}");
        let told = ended.to_string();
        assert!(told.contains(&format!("`{path}`")), "{path}: {told}");
        assert!(told.contains("while the command ran, by it or by somebody else"), "{told}");
    }
}

/// What somebody writes into a protected file, the command did not; nobody else can tell, so it is told.
#[test]
fn what_somebody_writes_is_told() {
    let bed = Bed::new();
    let (ended, _) = meanwhile(&bed, |root| {
        fs::write(root.join(".git/config"), "[user]\n\tname = another\n").unwrap();
        fs::write(root.join("open/go"), "").unwrap();
    });
    let ended = ended.exits(3).json();
    assert_eq!(ended["code"], "change.protected", "{ended}");
    assert_eq!(ended["result"]["exit_code"], 0, "it was not ended: {ended}");
    let told = ended.to_string();
    assert!(told.contains("`.git/config` was changed while the command ran"), "{told}");
    let _ = bed.perl("put('new', 1)").exits(0);
}

/// An editor that saves beneath a folder that is held takes no mount away, and holds nobody up.
#[test]
fn what_somebody_saves_in_a_held_folder_holds_nobody_up() {
    let bed = Bed::new();
    // Kept open, so that no new file is given its inode: that one would count as another name of it.
    let _old = fs::File::open(bed.capsule.workspace().join(".github/workflows/ci.yml")).unwrap();
    let (ended, _) = meanwhile(&bed, |root| {
        let folder = root.join(".github/workflows");
        fs::write(folder.join("new"), "saved\n").unwrap();
        fs::rename(folder.join("new"), folder.join("ci.yml")).unwrap();
        fs::write(root.join("src/file"), "saved\n").unwrap();
        fs::write(root.join("open/go"), "").unwrap();
    });
    let _ = ended.exits(0);
    assert_eq!(bed.read(".github/workflows/ci.yml").as_deref(), Some("saved\n"));
}

/// G7: nobody writes where the record of the run lies, whatever it is called there. Beside it, a command
/// could make a journal that the database then takes for its own.
#[test]
fn the_record_lies_where_no_command_writes() {
    let bed = Bed::new();
    let root = bed.capsule.workspace();
    let elsewhere = bed.capsule.directory().join("elsewhere");
    symlink(root.join("open"), &elsewhere).unwrap();
    let touch = |store: &str, argv: &[&str]| {
        let line = ["exec", "--policy", &bed.policy, "--json", "--store", store, "--"];
        bed.run(&[&line, argv].concat())
    };
    let led = elsewhere.join("led.db");
    for (number, store) in
        ["open/run.db", "open/deep/run.db", &led.to_string_lossy()].into_iter().enumerate()
    {
        fs::create_dir_all(root.join("open/deep")).unwrap();
        let name = format!("open/new{number}");
        let refused = touch(store, &["touch", &name]);
        assert_eq!(refused.json()["code"], "sandbox.failed", "{store}: {}", refused.stdout);
        let told = format!("{}{}", refused.stdout, refused.stderr);
        assert!(told.contains("the record of this run is kept in `open"), "{store}: {told}");
        assert!(told.contains("--store"), "{store}: {told}");
        assert!(!root.join(name).exists(), "{store}");
    }
    // Where nothing is open, or an invariant holds the folder, it lies well.
    let _ = touch("src/run.db", &["touch", "open/new"]).exits(0);
    // Beside one that is not in use, a name is told.
    fs::copy(root.join("src/run.db"), root.join("src/other.db")).unwrap();
    for end in ["-journal", "-wal", "-shm"] {
        let plant = format!("src/other.db{end}");
        let ended = bed.perl(&format!("put('{plant}', 1)")).exits(3).json();
        assert!(ended.to_string().contains(&format!("`{plant}` was made")), "{ended}");
        fs::remove_file(root.join(plant)).unwrap();
    }
    fs::create_dir_all(root.join(".capsule")).unwrap();
    let _ = touch(".capsule/run.db", &["perl", "-e", "mkdir 'made' or die"]).exits(0);
    let plant = "open(my $f, '>', '.capsule/run.db-journal') or die";
    let _ = failed(plant, touch(".capsule/run.db", &["perl", "-e", plant]));
    let refused = touch("run.db", &["perl", "-e", "mkdir 'more' or die"]);
    assert_eq!(refused.json()["code"], "sandbox.failed", "{}", refused.stdout);
}

/// C8, C22: a protected link leads where it led, through whatever it leads.
#[test]
fn the_way_of_a_protected_link_stays() {
    let bed = Bed::new();
    let root = bed.capsule.workspace();
    for folder in ["v1", "v2", "real/hooks", "cur", "sub", "aside"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for file in ["v1/env", "v1/key", "real/config"] {
        fs::write(root.join(file), "as it was\n").unwrap();
    }
    for (target, link) in [
        ("../current/env", "src/.env"),
        ("v1", "current"),
        ("../cur/git", "sub/.git"),
        ("../real", "cur/git"),
        ("aside/../v1/key", "own.pem"),
        ("later/env", ".env.later"),
    ] {
        symlink(target, root.join(link)).unwrap();
    }
    for script in [
        "unlink 'current' or die; symlink 'v2', 'current' or die",
        "rename 'current', 'other' or die",
        "unlink 'cur/git' or die",
        "rename 'cur', 'other' or die",
        "put('real/config', 1)",
        "rmdir 'aside' or die",
        "rename 'aside', 'other' or die",
        "open(my $f, '<', 'v1/env') or die; print <$f>",
        "open(my $f, '<', 'v1/key') or die; print <$f>",
    ] {
        let ended = bed.perl_fails(script);
        assert!(!ended.stdout.contains("as it was"), "{script}: {}", ended.stdout);
    }
    // What makes one lead somewhere is told, and held from then on.
    let ended = bed.perl("symlink 'v1', 'later' or die").exits(3).json();
    assert!(ended.to_string().contains("`later`"), "{ended}");
    let _ = bed.perl_fails("unlink 'later' or die");
}

/// C7: a link that may not be read keeps its name, or what it led to would be read.
#[test]
fn a_hidden_link_stays() {
    let bed = Bed::new();
    let root = bed.capsule.workspace();
    fs::create_dir_all(root.join("v1")).unwrap();
    fs::write(root.join("v1/token"), "as it was\n").unwrap();
    symlink("v1", root.join("current")).unwrap();
    symlink("current/token", root.join("token")).unwrap();
    let never = "never:\n  - { id: own, capabilities: [fs.read], paths: [token] }\n";
    let policy = bed.capsule.write_policy(&format!("{POLICY}{never}"));
    for script in [
        "unlink 'token' or die",
        "rename 'token', 'other' or die",
        "put('x', 1); rename 'x', 'token' or die",
        "unlink 'current' or die",
        "rename 'v1', 'other' or die",
        "open(my $f, '<', 'v1/token') or die; print <$f>",
    ] {
        let script = format!("{PUT}{script}");
        let line = ["exec", "--policy", &policy, "--json", "--", "perl", "-e", &script];
        let ended = failed(&script, bed.run(&line));
        assert!(!ended.stdout.contains("as it was"), "{script}: {}", ended.stdout);
    }
    assert!(root.join("token").is_symlink() && root.join("current").is_symlink());
}

/// C22: a `.git` file names the folder from which git takes its orders: that one is held too.
#[test]
fn what_a_git_file_names_is_held() {
    let bed = Bed::new();
    let root = bed.capsule.workspace();
    let git = |words: &[&str], at: &str| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=n", "-c", "user.email=n@localhost"]);
        command.args(words).current_dir(root.join(at));
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", bed.capsule.home());
        let ran = command.output().unwrap();
        assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
    };
    fs::create_dir_all(root.join("apart")).unwrap();
    git(&["init", "-q", "--separate-git-dir=../realgit", "."], "apart");
    git(&["init", "-q", "--bare", "shared"], "");
    git(&["clone", "-q", "shared", "clone"], "");
    git(&["commit", "-q", "--allow-empty", "-m", "first"], "clone");
    git(&["push", "-q", "origin", "HEAD:refs/heads/tree"], "clone");
    git(&["worktree", "add", "-q", "../tree", "tree"], "shared");
    symlink("realgit", root.join("way")).unwrap();
    fs::create_dir_all(root.join("by-way")).unwrap();
    fs::write(root.join("by-way/.git"), "gitdir: ../way\n").unwrap();
    for script in [
        "put('realgit/config', 1)",
        "put('realgit/hooks/pre-commit', 1)",
        "put('realgit/commondir', 1)",
        "rename 'realgit', 'other' or die",
        "put('shared/config', 1)",
        "put('shared/hooks/pre-commit', 1)",
        "put('shared/worktrees/tree/commondir', 1)",
        "rename 'shared', 'other' or die",
        "unlink 'way' or die",
    ] {
        let _ = bed.perl_fails(script);
    }
    // A repository in its own folder takes commits, whoever else names it.
    fs::write(root.join("by-way/.git"), "gitdir: ../clone/.git\n").unwrap();
    let _ = bed.perl("put('clone/.git/COMMIT_EDITMSG', 1)").exits(0);
}

/// A rule's `writes` bound its program to what is there.
#[test]
fn writes_bound_a_program() {
    let bed = Bed::new();
    let _ = bed.exec(&["touch", "open/new", "open/file", "one"]).exits(0);
    assert!(bed.read("open/new").is_some());
    for outside in ["two", "src/new", "src/file"] {
        let _ = bed.exec(&["touch", outside]).exits(1);
    }
    // What the word names is closed to fs.write, so the program is not started.
    let _ = bed.exec(&["touch", ".git/new"]).exits(3);
    let _ = bed.exec(&["rm", "-f", "src/file"]).exits(1);
    let _ = bed.exec(&["rm", "-f", "open/new"]).exits(0);
    assert_eq!((bed.read("open/new"), bed.read("two"), bed.read("src/new")), (None, None, None));
    assert!(bed.read("src/file").is_some());
    // What is not there cannot be opened, nor can a folder by a name that means a file.
    for (argv, hint) in [
        (&["mkdir", "absent/deep"][..], "no folder of that name"),
        (&["cp", "one", "open/two"], "open/**"),
    ] {
        let refused = bed.exec(argv).exits(1);
        assert!(refused.stdout.contains(hint), "{argv:?}: {} {}", refused.stdout, refused.stderr);
    }
    symlink("src", bed.capsule.workspace().join("absent")).unwrap();
    let _ = bed.exec(&["mkdir", "absent/deep"]).exits(1);
    assert!(!bed.capsule.workspace().join("src/deep").exists());
}

/// C13, D11: what leads to processes of the host is not reached, and nothing is made that does.
#[test]
fn nothing_odd_is_reached_or_left() {
    let bed = Bed::new();
    let root = bed.capsule.workspace();
    let pipe = root.join("open/pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = fs::File::options().read(true).write(true).open(&pipe).unwrap();
    rustix::fs::fcntl_setfl(&reader, rustix::fs::OFlags::NONBLOCK).unwrap();
    let write =
        "use Fcntl; sysopen(my $f, 'open/pipe', O_RDWR | O_NONBLOCK) or die; syswrite $f, 1";
    let _ = bed.perl_fails(write);
    assert_eq!(rustix::io::read(&reader, &mut [0_u8; 8]), Err(rustix::io::Errno::AGAIN));
    for script in [
        "unlink 'open/pipe' or die",
        "use POSIX; POSIX::mkfifo('p', 0600) or die",
        "put('p', 1); chmod 04755, 'p' or die",
        "put('p', 1); chmod 02755, 'p' or die",
    ] {
        let _ = bed.perl_fails(script);
    }
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    assert_eq!(fs::metadata(root.join("p")).unwrap().mode() & 0o6000, 0);
}

/// What only mounts can bound must be places; and `direct` without anything to write is read-only.
#[test]
fn policies_say_what_direct_can_hold() {
    let bed = Bed::new();
    let policy = |writes: &str, more: &str| {
        format!(
            "version: 1\nsandbox: {{ workspace: direct }}\ntools:\n  shell.run:\n    executables: {{ \
             touch: {{ decision: allow, {writes} }} }}\n{more}"
        )
    };
    for own in ["**/*.rs", "src/*.rs", "s?c/**", "**/out/**", "out/**/x", "[a]"] {
        let refused = bed.check(&policy(&format!("writes: [\"ok/**\", \"{own}\"]"), "")).exits(2);
        let told = refused.stderr;
        assert!(told.contains("policy.glob") && told.contains("staged"), "{own}: {told}");
        assert!(told.contains(":5:"), "{own}: {told}");
    }
    for own in ["**", "out/**", "out/", "./out/deep/**", "file", "with\\\\*star"] {
        let _ = bed.check(&policy(&format!("writes: [\"{own}\"]"), "")).exits(0);
    }
    let digest = "audit: { payloads: digest }\n";
    let _ = bed.check(&policy("writes: [\"**\"]", digest)).exits(0);
    // Nothing may write.
    let file = bed.capsule.write_policy(&policy("reads: [\"**\"]", ""));
    let ran = bed.run(&["exec", "--policy", &file, "--json", "--", "touch", "new"]).exits(1);
    assert!(ran.json()["result"].get("direct").is_none(), "{}", ran.stdout);
    assert_eq!(bed.read("new"), None);
    let told = bed.run(&["report", "latest"]).exits(0).stdout;
    assert!(!told.contains("direct"), "{told}");
    // Every program may.
    let file = bed.capsule.write_policy(
        "version: 1\nsandbox: { workspace: direct, level: workspace-write }\ntools:\n  shell.run: { \
         decision: allow, executables: [touch] }\n",
    );
    let _ = bed.run(&["exec", "--policy", &file, "--", "touch", "new"]).exits(0);
    assert!(bed.read("new").is_some());
    let _ = bed.run(&["exec", "--policy", &file, "--", "touch", ".git/config"]).exits(3);
}

/// An invariant of the policy's own protects a folder with what is not there yet.
#[test]
fn own_invariants_hold_whole_folders() {
    let bed = Bed::new();
    let never = "never:\n  - { id: own, capabilities: [fs.write, fs.delete], paths: [\"src/**\", \"conf/*\"], except: [\"src/free/**\"] }\n";
    let policy = bed.capsule.write_policy(&format!("{POLICY}{never}"));
    fs::create_dir_all(bed.capsule.workspace().join("conf")).unwrap();
    let perl = |script: &str| {
        let script = format!("{PUT}{script}");
        bed.run(&["exec", "--policy", &policy, "--json", "--", "perl", "-e", &script])
    };
    for script in [
        "put('src/new', 1)",
        "put('conf/new', 1)",
        "mkdir 'src/free' or die",
        "rename 'conf', 'c' or die",
    ] {
        let _ = failed(script, perl(script));
    }
    let _ = perl("put('new', 1)").exits(0);
    let everything = "never:\n  - { id: all, capabilities: [fs.write], paths: [\"**\"] }\n";
    let policy = bed.capsule.write_policy(&format!("{POLICY}{everything}"));
    let line = ["exec", "--policy", &policy, "--json", "--", "perl", "-e", "mkdir 'n'"];
    let refused = bed.run(&line);
    assert_ne!(refused.status, 0, "{}", refused.stdout);
    assert!(!bed.capsule.workspace().join("n").exists());
}

/// A name that is not text holds nobody up, and what is hidden in it stays hidden.
#[test]
fn a_folder_with_an_odd_name_holds_nobody_up() {
    let bed = Bed::new();
    let odd = bed.capsule.workspace().join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&odd).unwrap();
    fs::write(odd.join(".env"), "as it was\n").unwrap();
    let _ = bed.perl("put('new', 1)").exits(0);
    assert_eq!(bed.read("new").as_deref(), Some("1"));
    let script = "my ($odd) = glob('caf*'); open(my $f, '<', \"$odd/.env\") or die; print <$f>";
    let ended = bed.perl_fails(script);
    assert!(!ended.stdout.contains("as it was"), "{}", ended.stdout);
    let _ = bed.perl_fails("my ($odd) = glob('caf*'); rename $odd, 'other' or die");
}

/// A pipe of the host is nothing to read from, for a program that may write and for one that may not.
#[test]
fn what_is_meant_for_the_host_is_not_taken() {
    let bed = Bed::new();
    let place = bed.capsule.workspace().join("open/pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &place,
        FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o666),
        0,
    )
    .unwrap();
    let mut host = fs::File::options().read(true).write(true).open(&place).unwrap();
    host.write_all(b"for the host").unwrap();
    let script = "use Fcntl; sysopen(my $p, 'open/pipe', O_RDONLY | O_NONBLOCK) or exit 9; \
        sysread($p, my $got, 100); print $got";
    let read_only = "version: 1\ntools:\n  shell.run: { executables: { perl: allow } }\n";
    let policies = [POLICY, &POLICY.replace("writes: [\"**\"] }", "}"), read_only];
    for policy in policies {
        let policy = bed.capsule.write_policy(policy);
        let ran = bed.run(&["exec", "--policy", &policy, "--json", "--", "perl", "-e", script]);
        assert_eq!(ran.json()["result"]["exit_code"], 9, "{policy}: {}", ran.stdout);
    }
    let mut got = [0; 12];
    host.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"for the host");
}
