//! Where the kernel lays no changes over the workspace, the run works in a copy of it, and everything
//! else holds as it does elsewhere.

use std::os::unix::fs::chown;

use super::*;

/// A command in mounts of its own, in which something is mounted in the workspace: over that the
/// kernel lays nothing.
pub(super) fn under_a_mount(inner: &Command, workspace: &Path) -> Command {
    let script = "mount -t tmpfs none \"$0/mnt\" && echo SECRET > \"$0/mnt/theirs\" && exec \"$@\"";
    elsewhere(inner, script, workspace)
}

/// A command that is run by a script of a shell in user and mount namespaces of its own; `$0` is a
/// folder.
pub(super) fn elsewhere(inner: &Command, script: &str, folder: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).arg(folder);
    command.arg(inner.get_program()).args(inner.get_args());
    command.current_dir(inner.get_current_dir().unwrap()).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// The same command, in mounts of its own alone.
fn without_users(inner: &Command) -> Command {
    let mut command = Command::new("unshare");
    command.args(inner.get_args().skip_while(|own| own.to_string_lossy() != "--mount"));
    command.current_dir(inner.get_current_dir().unwrap()).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// A bed in which the kernel refuses to lay changes over the workspace.
fn copied() -> Bed {
    Bed { copied: true, ..Bed::new() }
}

/// What was told of a copy.
const TOLD: &str = "the workspace was copied";

/// APR-11, APR-2: the same table as with changes that are laid over the workspace.
#[test]
fn what_is_applied_from_a_copy_is_what_was_done() {
    is_done_when_applied(copied);
}

/// C22, C24, C28, D11: the same table, again.
#[test]
fn what_is_refused_in_a_copy_is_never_applied() {
    is_never_applied(copied);
}

/// C25: the same, again.
#[test]
fn what_lies_beside_a_store_is_refused_in_a_copy() {
    is_beside_a_store(&copied());
}

/// `decisions.md` 3.
#[test]
fn tools_and_commands_see_one_copy() {
    is_one_workspace(&copied());
}

#[test]
fn a_file_with_several_names_is_written_by_a_tool_in_a_copy() {
    is_split_by_a_tool(&copied());
}

#[test]
fn conflicts_with_a_copy_are_found() {
    are_found(copied);
}

/// What somebody does in the workspace is seen by nobody in the copy, and found when it counts.
#[test]
fn what_somebody_does_beside_a_copy_is_kept() {
    is_kept(copied);
}

/// C19.
#[test]
fn a_copy_is_seen_as_the_workspace_is() {
    is_not_seen(&copied());
    are_hidden(&copied());
}

#[test]
fn the_size_of_changes_in_a_copy_is_bounded() {
    is_bounded(&copied());
}

/// A run that crashes leaves its copy, which goes with its changes.
#[test]
fn copies_are_dropped() {
    are_dropped(&copied());
    is_not_applied(&copied());
}

/// A run that is killed while the workspace is copied has a name by which its copy is dropped.
#[test]
fn a_copy_that_was_not_finished_is_dropped() {
    const MANY: usize = 8_000;
    let bed = copied();
    for n in 0..MANY {
        bed.capsule.write_file(&format!("many/{n}"), "");
    }
    let line = ["exec", "--policy", &bed.policy, "--", "perl", "-e", "1"];
    let mut child = bed.command(&line).stdout(Stdio::null()).spawn().unwrap();
    wait_until("it is being copied", || bed.has_staged("many/10"));
    child.kill().unwrap();
    let _ = child.wait().unwrap();
    assert!(!bed.has_staged(&format!("many/{}", MANY - 1)), "it came to its end");
    let told = bed.run(&["changes", "latest"]).exits(0);
    assert!(told.stderr.contains("crashed") && told.stderr.contains("discard"), "{}", told.stderr);
    let id = bed.run(&["changes", "latest", "--json"]).exits(0).json()["run"].clone();
    let waits = |bed: &Bed| -> Value {
        let doctor = bed.run(&["doctor", "--json"]).json();
        let checks = doctor["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|own| own["name"] == "staged changes").unwrap()
    };
    let advice = waits(&bed)["detail"].clone();
    let named = advice.as_str().unwrap().strip_prefix("1 run: capsule changes ").unwrap();
    assert!(id.as_str().unwrap().starts_with(named) && named.len() > 4, "{advice}");
    let _ = bed.run(&["apply", "latest"]).exits(1);
    let _ = bed.run(&["discard", "latest"]).exits(0);
    assert_eq!(bed.staged_folders(), 0);
    // What no command can name is not said to be a run.
    let stray = bed.capsule.store().with_file_name("store.db.staged").join("stray");
    fs::create_dir(&stray).unwrap();
    let told = waits(&bed);
    assert_eq!(told["hold"], "weaker");
    let detail = told["detail"].as_str().unwrap();
    assert!(detail.contains("of no run") && detail.contains(stray.to_str().unwrap()), "{detail}");
    assert!(!detail.contains("capsule changes"), "{detail}");
}

/// C19: a protected file has no other name in a copy either.
#[test]
fn other_names_stay_protected_in_a_copy() {
    let bed = copied();
    let root = bed.capsule.workspace();
    fs::hard_link(root.join(".env"), root.join("innocent.txt")).unwrap();
    fs::hard_link(root.join(".env"), root.join("0-first.txt")).unwrap();
    let ran =
        bed.perl("for ('.env', 'innocent.txt', '0-first.txt') { open(F, '<', $_) and print <F> }");
    assert_eq!(ran.json()["result"]["stdout"], "", "{}", ran.stdout);
    assert!(ran.stderr.contains(TOLD), "{}", ran.stderr);
    let args = json!({ "path": "innocent.txt" }).to_string();
    let _ = bed.run(&["call", "fs.read", "--policy", &bed.policy, "--args", &args]).exits(3);
}

/// C8, C19: a folder that is moved in a copy does not take along what is protected in it.
#[test]
fn protected_files_are_not_in_the_copy() {
    let bed = copied();
    bed.capsule.write_file("d/e/own.key", "SECRET");
    bed.capsule.write_file("d/keys/one", "SECRET");
    let never = "never:\n- { id: keys, because: ours, capabilities: [fs.read, fs.meta], paths: [\"d/e/*.key\", \"d/keys/**\"] }\n";
    let policy = bed.capsule.write_policy(&POLICY.replace("tools:", &format!("{never}tools:")));
    let step = |tool: &str, args: Value| {
        format!("- {{ tool: {tool}, args: {args}, on_error: continue }}\n")
    };
    let plan = [
        step(
            "shell.run",
            json!({ "argv": ["perl", "-e", "rename 'd', 'moved'; print -d 'moved' ? 'it moved' : 'it stayed'"] }),
        ),
        step(
            "shell.run",
            json!({ "argv": ["cat", "moved/e/own.key", "moved/keys/one", "d/e/own.key"] }),
        ),
        step("fs.read", json!({ "path": "moved/e/own.key" })),
        step("fs.read", json!({ "path": "moved/keys/one" })),
    ];
    let plan = bed.capsule.write_plan(&format!("version: 1\nsteps:\n{}", plan.concat()));
    let ran = bed.run(&["run", &plan, "--policy", &policy, "--json"]);
    let story = ran.json();
    assert_eq!(story["calls"][0]["result"]["stdout"], "it moved", "{}", ran.stderr);
    let results: Vec<String> =
        (0..4).map(|call| story["calls"][call]["result"].to_string()).collect();
    assert!(results.iter().all(|result| !result.contains("SECRET")), "{results:?}");
    let folder = bed.capsule.store().with_file_name("store.db.staged");
    let found = Command::new("grep").args(["-r", "SECRET"]).arg(folder).output().unwrap();
    assert!(found.stdout.is_empty(), "no second copy of it lies anywhere");
    let _ = bed.run(&["apply", "latest"]).exits(3);
}

/// C7, C19: what stands in the copy for a protected file is refused under each of its names, wherever
/// they go: applied, it would empty one.
#[test]
fn other_names_of_protected_files_go_nowhere() {
    let bed = copied();
    let root = bed.capsule.workspace();
    fs::hard_link(root.join(".env"), root.join("d/alias")).unwrap();
    let before = bed.tree();
    let ended = bed.perl("rename 'd', 'moved' or die").exits(3).json();
    assert_eq!(ended["code"], "change.refused", "{ended}");
    let told = bed.run(&["changes", "latest", "--json"]).exits(0).json();
    let changes = told["changes"].as_array().unwrap().clone();
    let gone = changes.iter().find(|own| own["path"] == "d/alias").unwrap();
    assert!(gone["refused"].is_string(), "{gone}");
    let _ = bed.run(&["apply", "latest"]).exits(3);
    assert_eq!(bed.tree(), before);
}

/// C19: what lies in a folder that nobody may look into reaches neither the agent nor the record, not
/// even its name or its digest; nor does the digest of a protected file.
#[test]
fn what_is_hidden_leaves_no_trace_in_changes() {
    let bed = copied();
    bed.capsule.write_file("sub/.ssh/id_for_bank", "SECRET");
    bed.capsule.write_file("sub/.env", "SECRET");
    let digest = capsule_base::digest::Digest::of(b"SECRET").to_string();
    for script in [
        "rename 'sub', 'sub2' or die",
        "rename 'sub', 'sub2' or die; mkdir 'sub'; mkdir 'sub/.ssh'; put('sub/.ssh/id_for_bank', 1)",
        "rename 'sub', 'sub2' or die; mkdir 'sub'; put('sub/.ssh', 1)",
        "rename 'sub', 'sub2' or die; mkdir 'sub'; put('sub/.env', 1)",
    ] {
        let ran = bed.perl(&format!("{PUT}{script}")).exits(3);
        let told = bed.run(&["changes", "latest", "--json"]).exits(0);
        let made = script.contains("put('sub/.ssh/id_for_bank'");
        for text in [&ran.stdout, &told.stdout] {
            assert!(made || !text.contains("id_for_bank"), "{script}: {text}");
            assert!(text.contains("sub/.ssh"), "{script}: {text}");
        }
        for change in told.json()["changes"].as_array().unwrap() {
            assert!(!change["before"].to_string().contains(&digest), "{script}: {change}");
            let is_inside = change["path"] == "sub/.ssh/id_for_bank";
            assert!(!is_inside || change["before"].is_null(), "{script}: {change}");
        }
        let _ = bed.run(&["apply", "latest"]).exits(3);
        let _ = bed.run(&["discard", "latest"]).exits(0);
    }
}

/// A copy gives nobody more rights than the workspace does: what root could read and a command could
/// not, it cannot read or write there either.
#[test]
fn files_of_others_stay_theirs_in_a_copy() {
    let bed = Bed::new();
    let root = bed.capsule.workspace();
    for path in ["theirs", "d/theirs", "readable"] {
        let path = bed.capsule.write_file(path, "SECRET");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        // An ordinary user has no others whose files to copy: what nobody may read stands for them.
        if chown(&path, Some(12_345), Some(12_345)).is_err() {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        }
    }
    let own = root.join("readable");
    let is_theirs = own.metadata().unwrap().uid() == 12_345;
    fs::set_permissions(&own, fs::Permissions::from_mode(0o444)).unwrap();
    let script = format!(
        "{PUT}for ('theirs', 'd/theirs', 'readable') {{ print \"$_:\"; if (open(F, '<', $_)) {{ print <F> }} \
         open(F, '>', $_) and print 'written'; print \"\\n\" }} print((stat 'readable')[4]); put('mine', 1)"
    );
    let line = ["exec", "--policy", &bed.policy, "--json", "--", "perl", "-e", &script];
    let mut command = under_a_mount(&bed.capsule.command(&line), &root);
    if is_theirs {
        // Root's own rights, with which it reads everything: another namespace of users has none.
        command = without_users(&command);
    }
    let ran: CommandOutput = command.stdin(Stdio::null()).output().unwrap().into();
    let ran = ran.exits(0);
    assert!(ran.stderr.contains(TOLD), "{}", ran.stderr);
    let told = ran.json()["result"]["stdout"].as_str().unwrap().to_owned();
    assert!(told.starts_with("theirs:\nd/theirs:\nreadable:SECRET\n"), "{told}");
    assert!(!is_theirs || told.ends_with("\n12345"), "{told}");
    let _ = bed.run(&["apply", "latest"]).exits(0);
    assert_eq!(fs::read_to_string(root.join("mine")).unwrap(), "1");
    assert_eq!(own.metadata().unwrap().uid() == 12_345, is_theirs, "it is still theirs");
}

/// Another file system in the workspace is neither shown nor changed.
#[test]
fn other_file_systems_are_not_copied() {
    let bed = copied();
    let (before, root) = (bed.tree(), bed.capsule.workspace());
    let look = "open(F, '<', 'mnt/theirs') and print <F>; opendir(D, 'mnt') and print readdir D";
    let seen = bed.perl(look).exits(0).json();
    assert!(!seen["result"]["stdout"].to_string().contains("theirs"), "{seen}");
    assert!(!seen["result"]["stdout"].to_string().contains("SECRET"), "{seen}");
    assert_eq!(bed.staged_folders(), 0, "nothing was changed, so nothing is left");
    for script in
        ["rmdir 'mnt' or die", "rename 'mnt', 'moved' or die", "rmdir 'mnt'; put('mnt', 1)"]
    {
        let ran = bed.perl(&format!("{PUT}{script}"));
        // What is hidden is mounted over, and cannot go.
        assert_ne!(ran.status, 0, "{script}: {}", ran.stdout);
        let _ = bed.run(&["discard", "latest"]);
        assert_eq!(bed.tree(), before);
    }
    // With `fs.write`, too.
    let args = json!({ "path": "mnt/new", "content": "x" }).to_string();
    let ran = bed.run(&["call", "fs.write", "--policy", &bed.policy, "--args", &args]);
    assert_ne!(ran.status, 0, "{}", ran.stdout);
    assert!(fs::read_dir(root.join("mnt")).unwrap().next().is_none());
}

/// Pipes and sockets lead to processes of the host: no copy has them, and nothing takes their place.
#[test]
fn pipes_are_not_copied() {
    let bed = copied();
    let pipe = bed.capsule.workspace().join("d/pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let there = bed.perl("print -e 'd/pipe' ? 'there' : 'not there'").exits(0).json();
    assert_eq!(there["result"]["stdout"], "not there");
    let refused = bed.perl(&format!("{PUT}put('d/pipe', 1)")).exits(3).json();
    assert!(refused["reason"].as_str().unwrap().contains("was not copied"), "{refused}");
    let _ = bed.run(&["discard", "latest"]).exits(0);
    // It goes with its folder.
    let _ = bed.perl("unlink 'd/x', 'd/e/y'; rmdir 'd/e'; rmdir 'd' or die").exits(0);
    let _ = bed.run(&["apply", "latest"]).exits(0);
    assert!(!bed.capsule.workspace().join("d").exists());
}

/// What was copied and not changed is gone when the run has ended.
#[test]
fn only_changes_are_left_of_a_copy() {
    let bed = copied();
    let root = bed.capsule.workspace();
    let old = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    fs::File::open(root.join("a")).unwrap().set_modified(old).unwrap();
    fs::set_permissions(root.join("full"), fs::Permissions::from_mode(0o555)).unwrap();
    let script = "printf '%d %o', (stat 'a')[9], (stat 'full')[2] & 07777";
    let told = bed.perl(&format!("{PUT}put('d/e/y', 'new'); {script}")).exits(0).json();
    assert_eq!(told["result"]["stdout"], "1000000 555", "dates and permissions are kept");
    let folder = bed.capsule.store().with_file_name("store.db.staged");
    let run = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let left: Vec<String> = tree(&run.join("changes")).into_keys().collect();
    assert_eq!(left, ["d", "d/e", "d/e/y"]);
    let shown = bed.run(&["changes", "latest", "--diff"]).exits(0).stdout;
    assert!(shown.contains("  -y\n  +new"), "{shown}");
    let _ = bed.run(&["apply", "latest"]).exits(0);
    assert_eq!(fs::read_to_string(root.join("d/e/y")).unwrap(), "new");
    fs::set_permissions(root.join("full"), fs::Permissions::from_mode(0o755)).unwrap();
}

/// A store in a container lies on an overlay, which holds no other one.
#[test]
fn a_store_on_an_overlay_takes_a_copy() {
    let bed = Bed::new();
    let around = bed.capsule.directory();
    for folder in ["upper", "work"] {
        fs::create_dir(around.join(folder)).unwrap();
    }
    let script = "cd \"$0\" && mount -t overlay -o userxattr,lowerdir=home,upperdir=upper,workdir=work none home \
                  && cd ws && exec \"$@\"";
    let run = |words: &[&str]| -> CommandOutput {
        let mut command = elsewhere(&bed.capsule.command(words), script, around);
        command.stdin(Stdio::null()).output().unwrap().into()
    };
    let before = bed.tree();
    let script = format!(
        "{PUT}unlink 'a'; put('d/x', 'new'); unlink 'full/1'; rename 'deep', 'shallow' or die"
    );
    let line = ["exec", "--policy", &bed.policy, "--json", "--", "perl", "-e", &script];
    let ran = run(&line).exits(0);
    assert!(ran.stderr.contains(TOLD), "{}", ran.stderr);
    assert_eq!(bed.tree(), before);
    let doctor = run(&["doctor", "--json"]).json();
    let checks = doctor["checks"].as_array().unwrap().clone();
    let staging =
        checks.iter().find(|own| own["name"] == "try: what is written is staged, not done");
    let staging = staging.unwrap();
    assert_eq!(staging["hold"], "weaker", "{staging}");
    assert!(staging["detail"].as_str().unwrap().contains("by a copy"), "{staging}");
    let _ = run(&["apply", "latest"]).exits(0);
    let twin = around.join("twin");
    lay(&twin);
    let done = Command::new("perl").args(["-e", &script]).current_dir(&twin).status().unwrap();
    assert!(done.success());
    assert_eq!(bed.tree(), tree(&twin));
}

/// In memory, a page that was read through a mapping is written to without a trace in the dates;
/// the change is found all the same.
#[test]
fn what_is_written_through_a_mapping_is_seen() {
    let bed = Bed::new();
    let share = bed.capsule.store().with_file_name("");
    fs::create_dir_all(&share).unwrap();
    fs::write(bed.capsule.workspace().join("a"), "x".repeat(4_096)).unwrap();
    // Calls of the system by their numbers: mmap, read and write.
    let numbers = match std::env::consts::ARCH {
        "aarch64" => "222, 63, 64",
        _ => "9, 0, 1",
    };
    let script = format!(
        "my ($mmap, $read, $write) = ({numbers}); open(F, '+<', 'a') or die; \
         pipe(R, W); pipe(S, T); syswrite(T, 'changed'); \
         my $at = syscall($mmap, 0, 4096, 3, 1, fileno(F), 0); die if $at == -1; \
         syscall($write, fileno(W), $at, 7) == 7 or die; select(undef, undef, undef, 0.1); \
         syscall($read, fileno(S), $at, 7) == 7 or die; close F; \
         open(F, '<', 'a'); read(F, my $now, 7); print $now; exit"
    );
    let line = ["exec", "--policy", &bed.policy, "--json", "--", "perl", "-e", &script];
    let mounts = format!(
        "mount -t tmpfs none '{}' && mount -t tmpfs none \"$0/mnt\" && exec \"$@\"",
        share.display()
    );
    let mut command = elsewhere(&bed.capsule.command(&line), &mounts, &bed.capsule.workspace());
    let ran: CommandOutput = command.stdin(Stdio::null()).output().unwrap().into();
    let ended = ran.exits(0);
    assert!(ended.stderr.contains(TOLD), "{}", ended.stderr);
    let result = &ended.json()["result"];
    assert_eq!(result["stdout"], "changed", "{}", ended.stdout);
    assert_eq!(result["changes"], json!([{ "path": "a", "change": "modified" }]));
}

/// A store in the workspace itself is not copied into itself.
#[test]
fn a_store_in_the_workspace_is_not_copied_into_itself() {
    let bed = copied();
    let own = bed.capsule.workspace().join("own");
    fs::create_dir(&own).unwrap();
    let store = own.join("store.db");
    let store = store.to_str().unwrap();
    let script = format!("{PUT}put('new', 1); print join(' ', glob 'own/store.db.staged/*')");
    let line =
        ["--store", store, "exec", "--policy", &bed.policy, "--json", "--", "perl", "-e", &script];
    for _ in 0..2 {
        let ran = bed.run(&line).exits(0);
        assert!(ran.stderr.contains(TOLD), "{}", ran.stderr);
        assert_eq!(ran.json()["result"]["stdout"], "");
    }
    let _ = bed.run(&["--store", store, "apply", "latest"]).exits(0);
    assert_eq!(fs::read_to_string(bed.capsule.workspace().join("new")).unwrap(), "1");
}

/// A workspace that is too large is not copied, and nothing that changes something runs there.
#[test]
fn a_large_workspace_is_not_copied() {
    let bed = copied();
    let root = bed.capsule.workspace();
    fs::File::create(root.join("large")).unwrap().set_len(5 << 30).unwrap();
    let mut share = Command::new("cp");
    share.arg("--reflink=always").arg(root.join("a")).arg(bed.capsule.directory().join("shared"));
    // Where files can share their bytes, a copy takes none.
    let shares = share.stderr(Stdio::null()).status().unwrap().success();
    let expected =
        if shares { [Value::Null, Value::Null] } else { [json!("sandbox.failed"), json!(LARGE)] };
    let status = if shares { 0 } else { 8 };
    let ended = bed.perl(&format!("{PUT}put('new', 1)")).exits(status).json();
    assert_eq!([ended["code"].clone(), ended["reason"].clone()], expected);
    let _ = bed.run(&["discard", "latest"]);
    // What changes nothing runs, and leaves nothing.
    let _ = bed.exec(&["cat", "a"]).exits(0);
    assert_eq!(bed.staged_folders(), 0);
}

/// What is told of a workspace that is too large.
const LARGE: &str = "the workspace cannot be mounted as an overlay (Invalid argument (os error 22)); the workspace is not \
                     copied, since it holds more than 4.2 GB";

/// D22: what the doctor says of staging is what runs meet in this workspace, and it says what helps.
#[test]
fn the_doctor_tells_which_way_is_used() {
    let staging = |bed: &Bed| -> Value {
        let doctor = bed.run(&["doctor", "--json"]).json();
        let checks = doctor["checks"].as_array().unwrap().clone();
        let name = "try: what is written is staged, not done";
        checks.into_iter().find(|own| own["name"] == name).unwrap()
    };
    assert_eq!(staging(&Bed::new())["hold"], "held");
    let bed = copied();
    let before = bed.tree();
    let told = staging(&bed);
    assert_eq!(told["hold"], "weaker", "{told}");
    let detail = told["detail"].as_str().unwrap();
    assert!(detail.contains("by a copy") && detail.contains("mounted"), "{told}");
    assert_eq!((bed.tree(), bed.staged_folders()), (before, 0));
}

/// D22: many runs that wait are counted, and a few of them named.
#[test]
fn the_doctor_names_a_few_runs() {
    let bed = Bed::new();
    for n in 0..7 {
        let _ = bed.perl(&format!("{PUT}put('n{n}', 'x')")).exits(0);
    }
    let doctor = bed.run(&["doctor"]).stdout;
    let line = doctor.lines().find(|line| line.contains("staged changes")).unwrap();
    assert!(line.contains("7 runs:") && line.ends_with("and 2 more"), "{line}");
}
