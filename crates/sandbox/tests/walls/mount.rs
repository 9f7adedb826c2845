//! A workspace at its own path, and the links that lead there.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use capsule_base::root_names::RootNames;
use capsule_sandbox::{Executor, SandboxBackend as _, SandboxView, StagingMount};
use tempfile::TempDir;

use crate::Test;
use crate::bed::{Nobody, Rows, launch, mask, text};
use crate::world;

pub(crate) const TESTS: &[Test] = &[
    ("a_workspace_is_seen_at_its_own_path", a_workspace_is_seen_at_its_own_path),
    ("every_name_of_a_root_leads_to_it", every_name_of_a_root_leads_to_it),
    ("what_is_hidden_is_hidden_at_every_path", what_is_hidden_is_hidden_at_every_path),
    ("changes_are_staged_at_its_own_path", changes_are_staged_at_its_own_path),
    ("tmp_stays_private_around_a_workspace", tmp_stays_private_around_a_workspace),
    ("no_mount_stands_on_the_sandbox", no_mount_stands_on_the_sandbox),
];

/// A workspace with files in it.
struct Place {
    folder: TempDir,
    executor: Executor,
}

impl Place {
    fn root(&self) -> PathBuf {
        self.folder.path().join("a b/workspace")
    }

    /// A workspace inside a directory, known by its own path, `/workspace` and a link.
    fn inside(directory: &str, is_staged: bool) -> Self {
        let folder = tempfile::Builder::new().prefix("capsule-at-").tempdir_in(directory).unwrap();
        let place = Self { folder, executor: Executor::start().unwrap() };
        let root = place.root();
        fs::create_dir_all(root.join("inner")).unwrap();
        for (path, content) in
            [("file", "content"), ("inner/open", "open"), ("inner/secret", "secret")]
        {
            fs::write(root.join(path), content).unwrap();
        }
        fs::write(place.folder.path().join("sibling"), "the sibling").unwrap();
        place.enter(is_staged)
    }

    fn enter(mut self, is_staged: bool) -> Self {
        let open_new = |name: &str| -> OwnedFd {
            let path = self.folder.path().join(name);
            fs::create_dir(&path).unwrap();
            File::open(path).unwrap().into()
        };
        let staging = is_staged.then(|| StagingMount::Overlay {
            changes: open_new("changes"),
            work: open_new("work"),
        });
        let root = self.root().to_str().unwrap().to_owned();
        let link = format!("{}/link", self.folder.path().display());
        let view = SandboxView {
            floor: world::current().floor(),
            workspace: File::open(&root).unwrap().into(),
            root_names: RootNames::new(root, ["/workspace".into(), link]),
            staging,
            hidden: vec![mask(b"inner/secret")],
            programs: Vec::new(),
            toolchains: Vec::new(),
            repository: None,
            git: capsule_sandbox::GitFiles::default(),
        };
        self.executor.enter(view).unwrap();
        self
    }

    /// Runs a line of a shell, which may write where changes are staged. `ROOT` and `LINK` are the
    /// workspace's path and the link.
    fn run(&mut self, line: &str, writes: bool) -> String {
        let root = self.root();
        let line = line.replace("ROOT", &format!("'{}'", root.display()));
        let line = line.replace("LINK", &format!("'{}/link'", self.folder.path().display()));
        let line = line.replace("ABOVE", &format!("'{}'", self.folder.path().display()));
        let mut launch = launch("/bin/sh", &["sh", "-c", &line]);
        launch.writes = writes;
        launch.hidden = vec![mask(b"inner/secret")];
        let result = self.executor.run(launch, &mut Nobody).unwrap();
        text(&result.stdout.bytes) + &text(&result.stderr.bytes)
    }
}

/// Directories of the host in which a workspace may lie.
fn directories() -> Vec<&'static str> {
    let all = ["/tmp", "/var/lib", "/opt", "/srv", "/root"];
    let is_root = rustix::process::geteuid().is_root();
    all.into_iter().filter(|path| is_root || *path == "/tmp").collect()
}

fn a_workspace_is_seen_at_its_own_path() {
    let mut rows = Rows::default();
    for directory in directories() {
        let mut place = Place::inside(directory, false);
        let root = place.root().display().to_string();
        for (line, expected) in [
            ("pwd", format!("{root}\n")),
            ("/bin/pwd", format!("{root}\n")),
            ("cat ROOT/file", "content".into()),
            ("cat ROOT/inner/../inner/open", "open".into()),
            ("cd ROOT/inner && cat open", "open".into()),
            ("ls ROOT", "file\ninner\n".into()),
        ] {
            let seen = place.run(line, false);
            rows.check(seen == expected, || format!("{directory}: {line}: {seen}"));
        }
        for line in
            ["cat ABOVE/sibling", "cat ROOT/../../sibling", "echo x > ROOT/file", "mkdir ROOT/d"]
        {
            let seen = place.run(&format!("{line} && echo DONE"), false);
            rows.check(!seen.contains("DONE"), || format!("{directory}: {line}: {seen}"));
        }
        let now = fs::read_to_string(place.root().join("file")).unwrap();
        rows.check(now == "content", || format!("{directory}: it was changed to {now}"));
    }
    rows.end();
}

fn every_name_of_a_root_leads_to_it() {
    let mut rows = Rows::default();
    for directory in directories() {
        let mut place = Place::inside(directory, false);
        for name in ["/workspace", "LINK", "ROOT"] {
            let seen = place.run(&format!("cat {name}/inner/open {name}/file"), false);
            rows.check(seen == "opencontent", || format!("{directory}: {name}: {seen}"));
        }
    }
    rows.end();
}

fn what_is_hidden_is_hidden_at_every_path() {
    let mut rows = Rows::default();
    for directory in directories() {
        for is_staged in [false, true] {
            let mut place = Place::inside(directory, is_staged);
            for name in ["/workspace", "LINK", "ROOT", "."] {
                let seen = place.run(&format!("cat {name}/inner/secret"), is_staged);
                let is_held = seen.contains("denied") && !seen.contains("secret\n");
                rows.check(is_held, || format!("{directory}: {name}: {seen}"));
            }
        }
    }
    rows.end();
}

fn changes_are_staged_at_its_own_path() {
    let mut rows = Rows::default();
    for directory in directories() {
        let mut place = Place::inside(directory, true);
        let seen = place.run("echo new > ROOT/file; echo y > /workspace/inner/new; cat file", true);
        rows.check(seen == "new\n", || format!("{directory}: {seen}"));
        let changes = place.folder.path().join("changes");
        let staged = ["file", "inner/new"].map(|path| changes.join(path).exists());
        rows.check(staged == [true, true], || format!("{directory}: staged {staged:?}"));
        let now = fs::read_to_string(place.root().join("file")).unwrap();
        rows.check(now == "content", || format!("{directory}: it was changed to {now}"));
        // The next call sees what the one before has made, and nothing else of it.
        let seen = place.run("cat ROOT/file ROOT/inner/new; ls ABOVE", false);
        rows.check(seen.starts_with("new\ny\n"), || format!("{directory}: {seen}"));
        rows.check(!seen.contains("changes"), || format!("{directory}: {seen}"));
    }
    rows.end();
}

fn tmp_stays_private_around_a_workspace() {
    let mut place = Place::inside("/tmp", false);
    let marker = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    let seen = place.run("ls -A /tmp; ls -A ABOVE; echo x > /tmp/made && cat /tmp/made", false);
    assert!(!seen.contains(&*marker.path().file_name().unwrap().to_string_lossy()), "{seen}");
    assert!(!seen.contains("sibling") && seen.ends_with("x\n"), "{seen}");
    // The next call of the run sees it, and the host does not.
    assert_eq!(place.run("cat /tmp/made", false), "x\n");
    assert!(!Path::new("/tmp/made").exists());
    // What is above it can be neither moved away nor replaced: the next call would be shown something else there.
    let first = "first=/tmp/$(echo ABOVE | cut -d/ -f3)";
    for line in ["mv $first /tmp/moved", "rm -rf $first", "mkdir $first/new", "chmod 700 $first"] {
        let seen = place.run(&format!("{first}; {line} && echo done"), false);
        assert!(!seen.contains("done"), "{line}: {seen}");
    }
    let now = fs::read_to_string(place.root().join("file")).unwrap();
    assert_eq!(now, "content");
    assert_eq!(place.run("cat ROOT/file", false), "content");
}

fn no_mount_stands_on_the_sandbox() {
    let folder = tempfile::tempdir().unwrap();
    for mount in ["/", "/usr", "/usr/lib/x", "/etc/x", "/proc/x", "/dev/x", "/tmp", "/a/../b", "x"]
    {
        let mut executor = Executor::start().unwrap();
        let view = SandboxView {
            floor: world::current().floor(),
            workspace: File::open(folder.path()).unwrap().into(),
            root_names: RootNames::new(mount.into(), []),
            staging: None,
            hidden: Vec::new(),
            programs: Vec::new(),
            toolchains: Vec::new(),
            repository: None,
            git: capsule_sandbox::GitFiles::default(),
        };
        assert!(executor.enter(view).is_err(), "{mount}");
    }
}
