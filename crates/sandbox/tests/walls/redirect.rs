//! Streams of a program that lead to files: those of the workspace that the program itself could
//! open, and nothing else.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use capsule_sandbox::{
    CommandResult, DirectWrites, Launch, LaunchStage, RedirectTarget, SandboxError, StandardDevice,
    StandardStream, StreamRedirect, Termination,
};

use crate::Test;
use crate::bed::{Bed, Rows, mask, pipeline, stage, text};
use crate::world::{self, World};

pub(crate) const TESTS: &[Test] = &[
    ("streams_lead_where_they_are_led", streams_lead_where_they_are_led),
    ("redirections_are_relative_to_the_folder", redirections_are_relative_to_the_folder),
    ("a_file_of_a_redirection_is_a_change", a_file_of_a_redirection_is_a_change),
    ("without_the_right_to_write_nothing_is_made", without_the_right_to_write_nothing_is_made),
    ("only_plain_files_are_opened", only_plain_files_are_opened),
    ("files_in_tmp_are_opened_there_alone", files_in_tmp_are_opened_there_alone),
    ("what_is_hidden_is_not_redirected", what_is_hidden_is_not_redirected),
    ("what_is_held_is_not_redirected", what_is_held_is_not_redirected),
    ("a_refused_redirection_runs_nothing", a_refused_redirection_runs_nothing),
];

const IN: StandardStream = StandardStream::Input;
const OUT: StandardStream = StandardStream::Output;
const ERR: StandardStream = StandardStream::Error;

fn to(descriptor: StandardStream, to: RedirectTarget) -> StreamRedirect {
    StreamRedirect { descriptor, target: to }
}

fn read(path: &str) -> StreamRedirect {
    to(IN, RedirectTarget::Read(path.into()))
}

fn create(descriptor: StandardStream, path: &str) -> StreamRedirect {
    to(descriptor, RedirectTarget::Create(path.into()))
}

fn append(path: &str) -> StreamRedirect {
    to(OUT, RedirectTarget::Append(path.into()))
}

fn same(descriptor: StandardStream, other: StandardStream) -> StreamRedirect {
    to(descriptor, RedirectTarget::Same(other))
}

fn shell(line: &str, redirects: Vec<StreamRedirect>) -> LaunchStage {
    LaunchStage { redirects, ..stage("/bin/sh", &["sh", "-c", line]) }
}

/// A workspace in which commands may write, in the way of each tier.
fn writable(lay: impl Fn(&Path)) -> Bed {
    if world::current().is_lower() { Bed::copied(lay, &[]) } else { Bed::staged(lay, &[]).0 }
}

fn writing(stages: Vec<LaunchStage>) -> Launch {
    Launch { writes: true, ..pipeline(stages) }
}

/// One program that says something on both streams, and what it reads.
fn say(bed: &mut Bed, redirects: Vec<StreamRedirect>) -> CommandResult {
    let mut launch = writing(vec![shell("echo out; echo err >&2; cat", redirects)]);
    launch.stdin = b"given\n".to_vec();
    bed.try_run(launch).unwrap()
}

/// Redirections, what then comes out of both streams, and files with their content.
type Case =
    (Vec<StreamRedirect>, &'static str, &'static str, &'static [(&'static str, &'static str)]);

fn streams_lead_where_they_are_led() {
    let lay = |workspace: &Path| fs::write(workspace.join("old"), "old\n").unwrap();
    let mut rows = Rows::default();
    let null = |descriptor| to(descriptor, RedirectTarget::Device(StandardDevice::Null));
    let cases: &[Case] = &[
        (vec![], "out\ngiven\n", "err\n", &[]),
        (vec![read("old")], "out\nold\n", "err\n", &[("old", "old\n")]),
        (vec![null(IN)], "out\n", "err\n", &[]),
        (vec![create(OUT, "new")], "", "err\n", &[("new", "out\ngiven\n")]),
        (vec![create(OUT, "old")], "", "err\n", &[("old", "out\ngiven\n")]),
        (vec![append("old")], "", "err\n", &[("old", "old\nout\ngiven\n")]),
        (vec![append("new")], "", "err\n", &[("new", "out\ngiven\n")]),
        (vec![create(ERR, "new")], "out\ngiven\n", "", &[("new", "err\n")]),
        (vec![null(OUT)], "", "err\n", &[]),
        (vec![null(OUT), null(ERR)], "", "", &[]),
        (vec![same(ERR, OUT)], "out\nerr\ngiven\n", "", &[]),
        (vec![same(OUT, ERR)], "", "out\nerr\ngiven\n", &[]),
        (vec![same(ERR, OUT), create(OUT, "new")], "err\n", "", &[("new", "out\ngiven\n")]),
        (vec![create(OUT, "new"), same(ERR, OUT)], "", "", &[("new", "out\nerr\ngiven\n")]),
        (vec![append("old"), same(ERR, OUT)], "", "", &[("old", "old\nout\nerr\ngiven\n")]),
        // Each is opened, and the last one counts.
        (
            vec![create(OUT, "old"), create(OUT, "new")],
            "",
            "err\n",
            &[("old", ""), ("new", "out\ngiven\n")],
        ),
        (vec![create(OUT, "new"), read("new"), null(OUT)], "", "err\n", &[("new", "")]),
    ];
    for (redirects, stdout, stderr, files) in cases {
        let mut bed = writable(lay);
        let exit = say(&mut bed, redirects.clone());
        let told = (text(&exit.stdout.bytes), text(&exit.stderr.bytes));
        rows.check(exit.termination == Termination::Exited(0), || {
            format!("{redirects:?}: {:?}", exit.termination)
        });
        rows.check((told.0.as_str(), told.1.as_str()) == (*stdout, *stderr), || {
            format!("{redirects:?}: {told:?}")
        });
        for (name, content) in *files {
            let changed = bed.changes().join(name);
            let place = if changed.exists() { changed } else { bed.workspace().join(name) };
            let found = fs::read_to_string(place).unwrap_or_else(|error| error.to_string());
            rows.check(found == *content, || format!("{redirects:?}: {name} is {found:?}"));
        }
    }
    // In a pipeline, what is led elsewhere does not flow on.
    let mut bed = writable(lay);
    for (first, second, stdout, stderr) in [
        (vec![same(ERR, OUT)], vec![], "err\nout\n", ""),
        (vec![same(ERR, OUT), null(OUT)], vec![], "err\n", ""),
        (vec![null(OUT)], vec![], "", "err\n"),
        (vec![], vec![read("old")], "old\n", "err\n"),
        (vec![], vec![create(OUT, "end")], "", "err\n"),
    ] {
        // In this order, because whoever writes to nobody is ended.
        let line = "echo err >&2; echo out";
        let stages = vec![shell(line, first.clone()), shell("cat", second.clone())];
        let exit = bed.try_run(writing(stages)).unwrap();
        let told = (text(&exit.stdout.bytes), text(&exit.stderr.bytes));
        rows.check((told.0.as_str(), told.1.as_str()) == (stdout, stderr), || {
            format!("{first:?} | {second:?}: {told:?}")
        });
    }
    rows.check(fs::read_to_string(bed.changes().join("end")).unwrap() == "out\n", || "end".into());
    rows.end();
}

fn redirections_are_relative_to_the_folder() {
    let lay = |workspace: &Path| {
        fs::create_dir_all(workspace.join("a/b")).unwrap();
        fs::write(workspace.join("a/b/in"), "in").unwrap();
        symlink("../b/in", workspace.join("a/b/link")).unwrap();
        symlink("../new", workspace.join("a/to-new")).unwrap();
    };
    let mut bed = writable(lay);
    for (folder, path, place) in
        [("", "x", "x"), ("a", "x", "a/x"), ("a/b", "../../y", "y"), ("a", "to-new", "new")]
    {
        let mut launch = writing(vec![shell("pwd", vec![create(OUT, path)])]);
        launch.cwd = folder.into();
        assert_eq!(
            bed.try_run(launch).unwrap().termination,
            Termination::Exited(0),
            "{folder}: {path}"
        );
        let found = fs::read_to_string(bed.changes().join(place)).unwrap();
        let lower = world::current().is_lower();
        let own = if lower { bed.changes() } else { "/workspace".into() };
        assert_eq!(Path::new(found.trim_end()), own.join(folder), "{path}");
    }
    for (folder, path) in [("a/b", "in"), ("a", "b/in"), ("a", "b/link"), ("", "a/../a/b/in")] {
        let mut launch = pipeline(vec![shell("cat", vec![read(path)])]);
        launch.cwd = folder.into();
        assert_eq!(text(&bed.try_run(launch).unwrap().stdout.bytes), "in", "{folder}: {path}");
    }
    let mut up = writing(vec![shell("pwd", vec![create(OUT, "../../y")])]);
    up.cwd = "a".into();
    let got = bed.try_run(up);
    assert!(matches!(got, Err(SandboxError::Redirect { .. })), "{got:?}");
}

fn a_file_of_a_redirection_is_a_change() {
    let lay = |workspace: &Path| fs::write(workspace.join("old"), "old").unwrap();
    let mut bed = writable(lay);
    let stages = vec![shell("echo 2; echo 1", vec![]), shell("sort", vec![create(OUT, "new")])];
    assert_eq!(bed.try_run(writing(stages)).unwrap().termination, Termination::Exited(0));
    let stages = vec![shell("echo more", vec![append("old")])];
    assert_eq!(bed.try_run(writing(stages)).unwrap().termination, Termination::Exited(0));
    // What a program itself makes is no different.
    assert_eq!(bed.write("echo x > by-program").termination, Termination::Exited(0));
    let changes = bed.changes();
    let facts = |name: &str| changes.join(name).symlink_metadata().unwrap();
    let (new, own) = (facts("new"), facts("by-program"));
    assert_eq!((new.mode(), new.uid(), new.gid()), (own.mode(), own.uid(), own.gid()));
    assert_eq!(new.mode() & 0o7777, 0o644);
    assert_eq!(fs::read_to_string(bed.changes().join("new")).unwrap(), "1\n2\n");
    assert_eq!(fs::read_to_string(bed.changes().join("old")).unwrap(), "oldmore\n");
    assert_eq!(fs::read_to_string(bed.workspace().join("old")).unwrap(), "old");
    assert!(!bed.workspace().join("new").exists());
    // The next command sees it.
    let exit = bed.try_run(pipeline(vec![shell("cat", vec![read("new")])])).unwrap();
    assert_eq!(text(&exit.stdout.bytes), "1\n2\n");
    // The bound of a file's size is that of the program, and the limits are told.
    let mut long = writing(vec![shell("exec yes", vec![create(OUT, "long")])]);
    long.limits.file_bytes = 100_000;
    let exit = bed.try_run(long).unwrap();
    assert_eq!(exit.termination, Termination::Signalled(libc::SIGXFSZ));
    assert_eq!(facts("long").size(), 100_000);
}

fn without_the_right_to_write_nothing_is_made() {
    let lay = |workspace: &Path| fs::write(workspace.join("old"), "old").unwrap();
    let mut rows = Rows::default();
    for mut bed in [writable(lay), Bed::new(lay, &[])] {
        for redirect in [create(OUT, "new"), create(OUT, "old"), append("new"), append("old")] {
            let got = bed.try_run(pipeline(vec![shell("echo x", vec![redirect.clone()])]));
            let told = matches!(&got, Err(SandboxError::Redirect { stage: 0, write: true, .. }));
            rows.check(told, || format!("{redirect:?}: {got:?}"));
        }
        let exit = bed.try_run(pipeline(vec![shell("cat", vec![read("old")])])).unwrap();
        rows.check(exit.stdout.bytes == b"old", || "it can be read".into());
        rows.check(!bed.workspace().join("new").exists(), || "something was made".into());
        rows.check(!bed.changes().join("new").exists(), || "something was changed".into());
    }
    rows.end();
}

/// All that is beneath a folder: kind and permissions, size and time of change, and content.
fn all(folder: &Path) -> BTreeMap<PathBuf, (u32, u64, i64, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        if folder.ends_with("work/work") {
            continue; // the kernel's own
        }
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let facts = path.symlink_metadata().unwrap();
            let content = if facts.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            let told = (facts.mode(), facts.size(), facts.mtime(), facts.mtime_nsec(), content);
            if facts.is_dir() {
                waiting.push(path.clone());
            }
            found.insert(path, told);
        }
    }
    found
}

fn make_node(path: &Path, kind: libc::mode_t, device: libc::dev_t) -> bool {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    unsafe { libc::mknod(path.as_ptr(), kind | 0o666, device) == 0 }
}

fn files_in_tmp_are_opened_there_alone() {
    if world::current().is_lower() {
        return; // `/tmp` is the host's there, and closed
    }
    let mut bed = writable(|workspace| fs::write(workspace.join("file"), "content").unwrap());
    let made = "cd /tmp; mkdir d; ln -s d inner; ln -s /workspace away; ln -s /etc/hostname system; mkfifo pipe; echo x > d/x";
    let seen = bed.try_run(writing(vec![shell(made, Vec::new())])).unwrap();
    assert_eq!(text(&seen.stderr.bytes), "");
    let mut rows = Rows::default();
    let shut = [
        "/tmp/away/new",
        "/tmp/system",
        "/tmp/pipe",
        "/tmp",
        "/tmp/d",
        "/tmp/../workspace/new",
        "/tmpx/new",
    ];
    for path in shut {
        for redirect in [read(path), create(OUT, path), append(path)] {
            let got = bed.try_run(writing(vec![shell("cat; echo x", vec![redirect.clone()])]));
            let is_refused = matches!(got, Err(SandboxError::Redirect { .. }));
            rows.check(is_refused, || format!("{redirect:?}: {got:?}"));
        }
    }
    for path in ["/tmp/d/x", "/tmp/inner/x", "//tmp/./d/x"] {
        let lines = vec![shell("cat", vec![read(path)])];
        let got = bed.try_run(writing(lines)).map(|got| text(&got.stdout.bytes));
        rows.check(matches!(got.as_deref(), Ok("x\n")), || format!("{path}: {got:?}"));
    }
    // What was judged by its words follows no link there, whoever made it; others do.
    for (ignores_tmp_links, expected) in [(true, ""), (false, "x\ncontent")] {
        let line = "cat /tmp/inner/x /tmp/away/file 2>/dev/null";
        let launch = Launch { ignores_tmp_links, ..writing(vec![shell(line, Vec::new())]) };
        let got = bed.try_run(launch).map(|got| text(&got.stdout.bytes));
        rows.check(matches!(got.as_deref(), Ok(said) if said == expected), || format!("{got:?}"));
    }
    bed.try_run(writing(vec![shell("echo a", vec![create(OUT, "/tmp/d/y")])])).unwrap();
    bed.try_run(writing(vec![shell("echo b", vec![append("/tmp/d/y")])])).unwrap();
    let got = bed.try_run(writing(vec![shell("cat /tmp/d/y", Vec::new())])).unwrap();
    rows.check(text(&got.stdout.bytes) == "a\nb\n", || format!("{got:?}"));
    rows.end();
}

fn only_plain_files_are_opened() {
    let lay = |workspace: &Path| {
        fs::create_dir(workspace.join("folder")).unwrap();
        fs::write(workspace.join("file"), "content").unwrap();
        let _listener = UnixListener::bind(workspace.join("socket")).unwrap();
        assert!(make_node(&workspace.join("pipe"), libc::S_IFIFO, 0));
        assert!(make_node(&workspace.join("held-pipe"), libc::S_IFIFO, 0));
        symlink("pipe", workspace.join("to-pipe")).unwrap();
        symlink("folder", workspace.join("to-folder")).unwrap();
        symlink("/etc/passwd", workspace.join("absolute")).unwrap();
        symlink("../sibling", workspace.join("relative")).unwrap();
        symlink("/tmp/new", workspace.join("nowhere")).unwrap();
        symlink("../new", workspace.join("nowhere-above")).unwrap();
        symlink("..", workspace.join("above")).unwrap();
        symlink("circle", workspace.join("circle")).unwrap();
        if world::current() == World::Root {
            let device = workspace.join("device");
            assert!(make_node(&device, libc::S_IFCHR, libc::makedev(1, 3)));
        }
    };
    let mut bed = writable(lay);
    let above = bed.workspace().parent().unwrap().to_owned();
    let own = above.join("sibling");
    fs::write(&own, "the sibling").unwrap();
    // One with somebody at the other end could be opened without waiting.
    let held = [bed.workspace(), bed.changes()].map(|folder| folder.join("held-pipe"));
    let held: Vec<File> = held
        .iter()
        .filter_map(|path| File::options().read(true).write(true).open(path).ok())
        .collect();
    assert!(!held.is_empty());
    let before = all(&above);
    let paths = [
        "folder",
        "folder/",
        ".",
        "..",
        "",
        "file/",
        "file/x",
        "missing/x",
        "pipe",
        "held-pipe",
        "to-pipe",
        "to-folder",
        "socket",
        "device",
        "absolute",
        "relative",
        "nowhere",
        "nowhere-above",
        "above/new",
        "above/sibling",
        "circle",
        "../sibling",
        "../new",
        "folder/../../new",
        "folder/../../sibling",
        "/etc/passwd",
        "/tmp/new",
        "/dev/null",
        "/dev/zero",
        "/proc/self/status",
        "/proc/self/fd/1",
        "/proc/self/root/etc/passwd",
        "/workspace/file",
        own.to_str().unwrap(),
    ];
    let mut rows = Rows::default();
    for path in paths {
        if path == "device" && world::current() != World::Root {
            continue; // nobody else can make one
        }
        if path == "/tmp/new" && !world::current().is_lower() {
            continue; // a file of the sandbox
        }
        for redirect in [read(path), create(OUT, path), append(path)] {
            let start = std::time::Instant::now();
            let got = bed.try_run(writing(vec![shell("cat; echo x", vec![redirect.clone()])]));
            let told = match &got {
                Err(SandboxError::Redirect { stage: 0, path: named, write, reason }) => {
                    named.as_os_str() == path
                        && *write == (redirect.descriptor == OUT)
                        && !reason.is_empty()
                }
                _ => false,
            };
            rows.check(told, || format!("{redirect:?}: {got:?}"));
            rows.check(start.elapsed().as_secs() < 3, || format!("{redirect:?}: it waited"));
        }
    }
    let after = all(&above);
    rows.check(before == after, || {
        format!("something was left: {:?}", difference(&before, &after))
    });
    rows.end();
    drop(held);
    assert_eq!(
        say(&mut bed, vec![read("file")]).termination,
        Termination::Exited(0),
        "the executor goes on"
    );
}

fn difference<T: PartialEq>(
    before: &BTreeMap<PathBuf, T>,
    after: &BTreeMap<PathBuf, T>,
) -> Vec<PathBuf> {
    let paths = before.keys().chain(after.keys());
    paths.filter(|path| before.get(*path) != after.get(*path)).cloned().collect()
}

fn what_is_hidden_is_not_redirected() {
    let lay = |workspace: &Path| {
        fs::create_dir(workspace.join("keys")).unwrap();
        fs::write(workspace.join("keys/id"), "secret").unwrap();
        fs::write(workspace.join(".env"), "secret").unwrap();
        symlink(".env", workspace.join("link")).unwrap();
    };
    let masks: &[&[u8]] = &[b".env", b"keys"];
    let mut beds = vec![(Bed::new(lay, masks), false)];
    if !world::current().is_lower() {
        // In a copy it is not there.
        beds.push((Bed::staged(lay, masks).0, true));
    }
    let mut rows = Rows::default();
    for (mut bed, writes) in beds {
        for path in [".env", "keys", "keys/id", "keys/new", "link", "keys/../.env"] {
            for redirect in [read(path), create(OUT, path), append(path)] {
                let mut launch = pipeline(vec![shell("cat; echo x", vec![redirect.clone()])]);
                launch.writes = writes;
                launch.hidden = masks.iter().map(|path| mask(path)).collect();
                let got = bed.try_run(launch);
                let told = matches!(&got, Err(SandboxError::Redirect { .. }));
                rows.check(told, || format!("{redirect:?}: {got:?}"));
            }
        }
        let content = fs::read_to_string(bed.workspace().join(".env")).unwrap();
        rows.check(content == "secret", || content);
    }
    rows.end();
}

fn what_is_held_is_not_redirected() {
    let lay = |workspace: &Path| {
        fs::create_dir_all(workspace.join("out/held")).unwrap();
        fs::create_dir_all(workspace.join("closed")).unwrap();
        for file in ["out/held/file", "out/file", "closed/file"] {
            fs::write(workspace.join(file), "content").unwrap();
        }
        symlink("held/file", workspace.join("out/link")).unwrap();
    };
    let mut bed = Bed::new(lay, &[]);
    let direct = DirectWrites {
        writable: vec!["out".into()],
        read_only: vec!["out/held".into()],
        pinned: Vec::new(),
    };
    let mut launch = |folder: &str, redirect: StreamRedirect| {
        let mut launch = pipeline(vec![shell("echo x; pwd >&2", vec![redirect])]);
        (launch.direct, launch.cwd) = (Some(direct.clone()), folder.into());
        bed.try_run(launch)
    };
    let mut rows = Rows::default();
    for path in ["out/held/file", "out/held/new", "out/link", "closed/file", "closed/new", "new"] {
        for redirect in [create(OUT, path), append(path)] {
            let got = launch("", redirect.clone());
            let told = matches!(&got, Err(SandboxError::Redirect { write: true, .. }));
            rows.check(told, || format!("{redirect:?}: {got:?}"));
        }
    }
    let exit = launch("out", append("file")).unwrap();
    rows.check(text(&exit.stderr.bytes) == "/workspace/out\n", || "the working folder".into());
    let exit = launch("closed", create(OUT, "../out/new")).unwrap();
    rows.check(exit.termination == Termination::Exited(0), || format!("{exit:?}"));
    // The bits by which a program runs as its owner are still kept off.
    let mut bits = pipeline(vec![shell("chmod 4755 out/new", vec![create(OUT, "out/log")])]);
    bits.direct = Some(direct.clone());
    let exit = bed.try_run(bits).unwrap();
    rows.check(exit.termination != Termination::Exited(0), || "the bits were set".into());
    rows.end();
    for (file, content) in
        [("out/held/file", "content"), ("out/file", "contentx\n"), ("out/new", "x\n")]
    {
        assert_eq!(fs::read_to_string(bed.workspace().join(file)).unwrap(), content, "{file}");
    }
    assert_eq!(bed.workspace().join("out/new").metadata().unwrap().mode() & 0o7777, 0o644);
    assert!(
        !bed.workspace().join("out/held/new").exists() && !bed.workspace().join("new").exists()
    );
}

fn a_refused_redirection_runs_nothing() {
    let lay = |workspace: &Path| fs::write(workspace.join("file"), "content").unwrap();
    let mut bed = writable(lay);
    for number in 0..3 {
        let mut stages: Vec<LaunchStage> =
            (0..3).map(|i| shell(&format!("echo > ran-{i}"), vec![])).collect();
        stages[number].redirects =
            vec![to(ERR, RedirectTarget::Device(StandardDevice::Null)), read("missing")];
        match bed.try_run(writing(stages)) {
            Err(SandboxError::Redirect { stage, path, write: false, reason }) => {
                assert_eq!((stage, path.as_os_str()), (number, "missing".as_ref()));
                assert!(reason.contains("No such file"), "{reason}");
            }
            got => panic!("{number}: {got:?}"),
        }
        for other in 0..3 {
            assert!(!bed.changes().join(format!("ran-{other}")).exists(), "{number}: {other}");
        }
    }
}
