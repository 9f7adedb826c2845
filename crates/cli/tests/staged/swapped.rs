//! Where a folder and a link take each other's place, what is beneath the link is never taken for what is
//! in the folder: such changes are applied and undone like all others, whoever is killed meanwhile.

use super::*;

/// Links to a folder, to a file, to another link and to nothing, beside what every test finds.
fn lay_links(root: &Path) {
    lay(root);
    for (target, link) in [("d", "ld"), ("nowhere", "dead"), ("link", "ll"), ("../b", "d/e/up")] {
        symlink(target, root.join(link)).unwrap();
    }
}

fn linked(mut bed: Bed) -> Bed {
    let root = bed.capsule.workspace();
    fs::remove_dir_all(&root).unwrap();
    lay_links(&root);
    bed.policy = bed.capsule.write_policy(&POLICY.replace("timeout: 30s", "timeout: 60s"));
    bed
}

/// What the scripts begin with, beside [`PUT`].
const GONE: &str = "sub gone { my $p = $_[0]; if (-d $p && !-l $p) { gone($_) for glob \"$p/*\"; rmdir $p or die \"$p: $!\" } \
                    else { unlink $p or die \"$p: $!\" } } \
                    sub mv { my ($p, $q) = @_; if (-d $p && !-l $p) { mkdir $q or die $!; \
                    for (glob \"$p/*\") { my $n = s|.*/||r; mv(\"$p/$n\", \"$q/$n\") } rmdir $p or die $! } \
                    else { rename $p, $q or die \"$p: $!\" } } ";

/// What becomes of what, and the changes that are told.
type Row = (&'static str, &'static [&'static str]);

const ROWS: &[Row] = &[
    // Folders whose place a link takes: to another folder, to nothing, to a file, to itself.
    ("gone('full'); symlink 'd', 'full'", &["M full", "D full/1", "D full/2", "D full/3"]),
    ("gone('full'); symlink 'nothing', 'full'", &["M full", "D full/1", "D full/2", "D full/3"]),
    ("gone('full'); symlink 'a', 'full'", &["M full", "D full/1", "D full/2", "D full/3"]),
    ("gone('full'); symlink 'full', 'full'", &["M full", "D full/1", "D full/2", "D full/3"]),
    ("gone('open'); symlink 'd', 'open'", &["M open"]),
    (
        "gone('deep'); symlink 'd', 'deep'",
        &["M deep", "D deep/sub/", "D deep/sub/1", "D deep/sub/2"],
    ),
    // To a folder in which everything has the names that it had there.
    (
        "mv('full', 'moved'); symlink 'moved', 'full'",
        &[
            "M full",
            "D full/1",
            "D full/2",
            "D full/3",
            "A moved/",
            "A moved/1",
            "A moved/2",
            "A moved/3",
        ],
    ),
    // Links whose place a folder takes.
    ("unlink 'ld'; mkdir 'ld'; put('ld/x', 'mine')", &["M ld/", "A ld/x"]),
    (
        "unlink 'ld'; mkdir 'ld'; mkdir 'ld/e'; put('ld/e/y', 'y')",
        &["M ld/", "A ld/e/", "A ld/e/y"],
    ),
    ("unlink 'dead'; mkdir 'dead'; put('dead/x', 1)", &["M dead/", "A dead/x"]),
    ("unlink 'll'; mkdir 'll'; symlink '../d', 'll/d'", &["M ll/", "A ll/d"]),
    (
        "unlink 'ld'; mv('full', 'ld')",
        &["D full/", "D full/1", "D full/2", "D full/3", "M ld/", "A ld/1", "A ld/2", "A ld/3"],
    ),
    // Links, files and folders for each other.
    ("unlink 'ld'; symlink 'full', 'ld'", &["M ld"]),
    ("unlink 'ld'; put('ld', 'file')", &["M ld"]),
    ("unlink 'a'; symlink 'd', 'a'", &["M a"]),
    ("unlink 'a'; mkdir 'a'; put('a/in', 1)", &["M a/", "A a/in"]),
    ("gone('full'); put('full', 1)", &["M full", "D full/1", "D full/2", "D full/3"]),
    ("unlink 'ld'", &["D ld"]),
    // Both ways at once, one in the other, and one in what was swapped.
    (
        "unlink 'ld'; mv('d', 'ld'); symlink 'ld', 'd'",
        &[
            "M d",
            "D d/e/",
            "D d/e/up",
            "D d/e/y",
            "D d/x",
            "M ld/",
            "A ld/e/",
            "A ld/e/up",
            "A ld/e/y",
            "A ld/x",
        ],
    ),
    (
        "gone('deep/sub'); symlink '../d', 'deep/sub'; unlink 'd/e/up'; mkdir 'd/e/up'; put('d/e/up/in', 1)",
        &["M d/e/up/", "A d/e/up/in", "M deep/sub", "D deep/sub/1", "D deep/sub/2"],
    ),
    (
        "gone('d'); symlink 'n', 'd'; mkdir 'n'; symlink '../full', 'n/e'; put('n/x', 'n')",
        &["M d", "D d/e/", "D d/e/up", "D d/e/y", "D d/x", "A n/", "A n/e", "A n/x"],
    ),
    (
        "unlink 'ld'; mkdir 'ld'; mkdir 'ld/e'; gone('d/e'); symlink '../ld/e', 'd/e'; put('ld/e/y', 'other')",
        &["M d/e", "D d/e/up", "D d/e/y", "M ld/", "A ld/e/", "A ld/e/y"],
    ),
    // What is closed at the end, where a link was.
    ("unlink 'ld'; mkdir 'ld'; put('ld/x', 1); chmod 0555, 'ld'", &["M ld/", "A ld/x"]),
];

/// Each is applied as it was done, undone as it was before, and undone again.
#[test]
fn folders_and_links_are_swapped() {
    are_swapped(Bed::new, 1);
}

/// The same, in a copy; in the nightly part each of them.
#[test]
fn folders_and_links_are_swapped_in_a_copy() {
    are_swapped(|| Bed { copied: true, ..Bed::new() }, if is_nightly() { 1 } else { 3 });
}

/// `step` is 1 where each of the rows is tried.
fn are_swapped(make: fn() -> Bed, step: usize) {
    let mut wrong = Vec::new();
    for (script, expected) in ROWS.iter().step_by(step) {
        let bed = linked(make());
        let before = bed.tree();
        let script = format!("{PUT}{GONE}{script}");
        let ran = bed.perl(&script);
        assert_eq!(ran.status, 0, "{script}\n{}\n{}", ran.stdout, ran.stderr);
        assert_eq!(bed.changes(), *expected, "{script}");
        let run = bed.run(&["changes", "latest", "--json"]).exits(0).json();
        let run = run["run"].as_str().unwrap();
        let twin = bed.capsule.directory().join("twin");
        lay_links(&twin);
        let done = Command::new("perl").args(["-e", &script]).current_dir(&twin).status().unwrap();
        assert!(done.success(), "{script}");
        let after = tree(&twin);
        let line = |words: &[&str], wanted: &Tree, wrong: &mut Vec<String>| {
            let ran = bed.run(words);
            if ran.status != 0 || bed.tree() != *wanted {
                wrong.push(format!("{words:?}: {script}: {}", ran.stderr));
            }
        };
        line(&["apply", run], &after, &mut wrong);
        line(&["undo", run], &before, &mut wrong);
        line(&["undo", "latest"], &after, &mut wrong);
        line(&["undo", run], &before, &mut wrong);
        for closed in [twin.join("ld"), bed.capsule.workspace().join("ld")] {
            let _ = fs::set_permissions(closed, fs::Permissions::from_mode(0o755));
        }
        let _ = bed.run(&["verify"]).exits(0);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A link is known to be the one that comes or goes: any other, at its place or on the way to it, is
/// somebody's own, and nothing is written beneath it.
#[test]
fn a_link_of_somebody_else_is_a_conflict() {
    let other = |link: &'static str, target: &'static str| {
        move |root: &Path| {
            let place = root.join(link);
            match place.symlink_metadata() {
                Ok(own) if own.is_dir() => fs::rename(&place, root.join("../away")).unwrap(),
                Ok(_) => fs::remove_file(&place).unwrap(),
                Err(_) => {}
            }
            symlink(target, place).unwrap();
        }
    };
    type Deed = Box<dyn Fn(&Path)>;
    let rows: Vec<(&str, Deed)> = vec![
        ("gone('full'); symlink 'd', 'full'", Box::new(other("full", "deep"))),
        ("gone('deep/sub'); symlink '../d', 'deep/sub'", Box::new(other("deep", "../away"))),
        ("unlink 'ld'; mkdir 'ld'; put('ld/x', 1)", Box::new(other("ld", "full"))),
        ("unlink 'ld'; mkdir 'ld'; put('ld/x', 1)", Box::new(other("ld", "../outside"))),
        ("unlink 'd/e/up'; mkdir 'd/e/up'; put('d/e/up/x', 1)", Box::new(other("d", "../away"))),
        ("put('d/x', 1); unlink 'ld'; symlink 'full', 'ld'", Box::new(other("d", "ld"))),
    ];
    for (script, deed) in rows {
        let bed = linked(Bed::new());
        let script = format!("{PUT}{GONE}{script}");
        let _ = bed.perl(&script).exits(0);
        let root = bed.capsule.workspace();
        fs::create_dir(bed.capsule.directory().join("outside")).unwrap();
        deed(&root);
        let before = bed.tree();
        let refused = bed.run(&["apply", "latest"]).exits(1);
        assert!(refused.stderr.contains("change.conflict"), "{script}: {}", refused.stderr);
        assert_eq!(bed.tree(), before, "{script}");
        assert_eq!(tree(&bed.capsule.directory().join("outside")), Tree::new(), "{script}");
    }
    // The same for what was applied.
    let bed = linked(Bed::new());
    let _ = bed.perl(&format!("{PUT}{GONE}gone('full'); symlink 'd', 'full'")).exits(0);
    let _ = bed.run(&["apply", "latest"]).exits(0);
    other("full", "deep")(&bed.capsule.workspace());
    let before = bed.tree();
    let refused = bed.run(&["undo", "latest"]).exits(1);
    assert!(refused.stderr.contains("undo.conflict"), "{}", refused.stderr);
    assert_eq!(bed.tree(), before);
}

/// What the tests of interruptions swap: many files, both ways.
const SWAPS: &str = "for my $n (0 .. 5) { gone(\"f$n\"); symlink 'd', \"f$n\"; unlink \"l$n\"; mkdir \"l$n\"; \
                     put(\"l$n/$_\", $_) for 0 .. 20; mkdir \"l$n/in\"; symlink '../../a', \"l$n/in/a\" }";

/// A workspace in which [`SWAPS`] was staged; gives its tree before, and the run.
fn with_swaps() -> (Bed, Tree, String) {
    let bed = linked(Bed::new());
    let root = bed.capsule.workspace();
    for n in 0..6 {
        fs::create_dir_all(root.join(format!("f{n}/in"))).unwrap();
        symlink(format!("f{n}"), root.join(format!("l{n}"))).unwrap();
        for file in 0..20 {
            fs::write(root.join(format!("f{n}/{file}")), format!("{file}")).unwrap();
            fs::write(root.join(format!("f{n}/in/{file}")), "in").unwrap();
        }
    }
    let before = bed.tree();
    let _ = bed.perl(&format!("{PUT}{GONE}{SWAPS}")).exits(0);
    let told = bed.run(&["changes", "latest", "--json"]).exits(0).json();
    let run = told["run"].as_str().unwrap().to_owned();
    (bed, before, run)
}

/// Starts a command and kills it when so much time has gone since something was changed.
fn killed(bed: &Bed, words: &[&str], since: Duration) {
    // What goes first, either way.
    let place = bed.capsule.workspace().join("l5");
    let look = || (place.is_symlink(), fs::read_dir(&place).map_or(0, Iterator::count));
    let before = look();
    let mut child = bed.capsule.command(words);
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while child.try_wait().unwrap().is_none() && look() == before {}
    std::thread::sleep(since);
    child.kill().unwrap();
    let _ = child.wait().unwrap();
}

/// Compares trees, and tells of what differs alone.
#[track_caller]
fn same(bed: &Bed, wanted: &Tree, round: u32) {
    let now = bed.tree();
    let differ = now.iter().filter(|(path, own)| wanted.get(*path) != Some(*own));
    let missing = wanted.keys().filter(|path| !now.contains_key(*path));
    let (differ, missing): (Vec<_>, Vec<_>) = (differ.collect(), missing.collect());
    assert!(differ.is_empty() && missing.is_empty(), "round {round}: {differ:#?} {missing:#?}");
}

/// G8: whoever applies or undoes such changes and is killed has left something that is gone on
/// with, or gone back from.
#[test]
fn a_killed_swap_can_be_gone_on_with() {
    let (bed, _, run) = with_swaps();
    let _ = bed.run(&["apply", &run]).exits(0);
    let after = bed.tree();
    let mut interrupted = 0;
    for round in 0..if is_nightly() { 6_u32 } else { 3 } {
        let (bed, before, run) = with_swaps();
        killed(&bed, &["apply", &run], Duration::from_millis(3) * round);
        interrupted += i32::from(bed.tree() != after);
        if round % 2 == 0 {
            let told = bed.run(&["changes", &run, "--json"]).exits(0).json();
            if !told["staged"].is_null() {
                let _ = bed.run(&["apply", &run]).exits(0);
            }
            same(&bed, &after, round);
        } else {
            let _ = bed.run(&["undo", &run]).exits(0);
            same(&bed, &before, round);
            continue;
        }
        killed(&bed, &["undo", &run], Duration::from_millis(3) * round);
        interrupted += i32::from(bed.tree() != before);
        if round % 4 == 0 && bed.tree() != before {
            let _ = bed.run(&["undo", "latest"]).exits(0);
            same(&bed, &after, round);
        }
        let _ = bed.run(&["undo", &run]).exits(0);
        same(&bed, &before, round);
        let _ = bed.run(&["verify"]).exits(0);
    }
    assert!(interrupted > 0, "none was interrupted");
}

/// After an apply that was killed, `changes`, `show-run` and `discard` say how much of it stands, and an undo
/// takes back all that it left, by the name of either run and even where no change was made.
#[test]
fn an_apply_that_was_cut_short_is_reported_and_taken_back() {
    let mut cut = 0;
    for round in 0..if is_nightly() { 8_u32 } else { 4 } {
        let (bed, before, run) = with_swaps();
        killed(&bed, &["apply", &run], Duration::from_millis(2) * (round / 2));
        let told = bed.run(&["changes", &run, "--json"]).exits(0).json();
        let Some(applied) = told["staged"]["cut_short"].as_u64() else { continue };
        cut += 1;
        let id = told["run"].as_str().unwrap();
        let left = bed.capsule.workspace().join(format!(".capsule-apply-{id}.tmp"));
        fs::write(&left, "half").unwrap();
        for words in [&["changes", &run][..], &["show-run", &run]] {
            let told = bed.run(words).exits(0);
            let told = format!("{}{}", told.stdout, told.stderr);
            assert!(told.contains("an apply was cut short"), "{told}");
            assert!(told.contains("continues it · capsule undo"), "{told}");
        }
        if round % 2 == 0 {
            // The newest run is the one that applied them.
            let undone = if round % 4 == 0 { "latest" } else { run.as_str() };
            let _ = bed.run(&["undo", undone]).exits(0);
            assert!(!left.exists(), "round {round}");
            fs::write(&left, "once more").unwrap();
            let _ = bed.run(&["undo", &run]).exits(0);
            assert!(!left.exists(), "round {round}: nothing was left to undo");
        } else {
            let told = bed.run(&["discard", &run]).exits(0).stderr;
            assert!(told.contains(&format!("{applied} of them stay in the workspace")), "{told}");
            assert!(!left.exists());
            let _ = bed.run(&["undo", &run]).exits(0);
        }
        same(&bed, &before, round);
    }
    assert!(cut > 0, "none was cut short");
}
