//! What is refused, and how that is told.

use std::fs::{self, File};
use std::process::Command;

use capsule_base::limits;
use capsule_base::root_names::RootNames;
use capsule_core::confinement::{EnforcementLevel, SandboxLayer};
use capsule_sandbox::{Executor, Launch, SandboxBackend as _, SandboxError, SandboxView};

use crate::Test;
use crate::bed::{Bed, Nobody, launch, mask};

pub(crate) const TESTS: &[Test] = &[
    ("a_swapped_program_is_not_run", a_swapped_program_is_not_run),
    ("a_missing_program_is_told", a_missing_program_is_told),
    ("what_cannot_be_executed_is_told", what_cannot_be_executed_is_told),
    ("launches_without_sense_are_refused", launches_without_sense_are_refused),
    ("a_moved_workspace_is_not_entered", a_moved_workspace_is_not_entered),
    ("nothing_runs_without_a_view", nothing_runs_without_a_view),
    ("nothing_runs_without_user_namespaces", nothing_runs_without_user_namespaces),
    ("something_else_is_no_executor", something_else_is_no_executor),
    ("the_doctor_finds_all_well", the_doctor_finds_all_well),
    ("walls_name_every_layer", walls_name_every_layer),
];

fn a_swapped_program_is_not_run() {
    let mut bed = Bed::plain();
    let tool = bed.workspace().join("tool");
    fs::copy("/bin/true", &tool).unwrap();
    let mut decided = launch(tool.to_str().unwrap(), &["tool"]);
    decided.stages[0].program.path = "/workspace/tool".into();
    assert!(bed.try_run(decided.clone()).is_ok());
    fs::copy("/bin/false", bed.workspace().join("other")).unwrap();
    fs::rename(bed.workspace().join("other"), &tool).unwrap();
    assert!(matches!(bed.try_run(decided.clone()), Err(SandboxError::ProgramChanged { stage: 0 })));
    // So is one that was written over in place.
    let mut written = decided.clone();
    written.stages[0].program.identity =
        launch(tool.to_str().unwrap(), &["tool"]).stages[0].program.identity;
    assert!(bed.try_run(written.clone()).is_ok());
    std::thread::sleep(std::time::Duration::from_millis(20));
    fs::write(&tool, fs::read("/bin/true").unwrap()).unwrap();
    assert!(matches!(bed.try_run(written), Err(SandboxError::ProgramChanged { stage: 0 })));
    // One that is hidden now is another file, too.
    let mut hidden = decided;
    hidden.stages[0].program.identity =
        launch(tool.to_str().unwrap(), &["tool"]).stages[0].program.identity;
    hidden.hidden = vec![mask(b"tool")];
    let refused = bed.try_run(hidden);
    if crate::world::current().is_lower() {
        // There it is the same, and cannot be opened.
        assert!(matches!(refused, Err(SandboxError::NotExecutable { .. })), "{refused:?}");
    } else {
        assert!(matches!(refused, Err(SandboxError::ProgramChanged { stage: 0 })), "{refused:?}");
    }
    assert!(bed.try_run(launch("/bin/true", &["true"])).is_ok(), "the executor goes on");
}

fn a_missing_program_is_told() {
    let mut bed = Bed::plain();
    for path in ["/nowhere/tool", "/workspace/file/tool", "/proc/self/exe2", "/tmp/tool"] {
        let mut missing = launch("/bin/true", &["true"]);
        missing.stages[0].program.path = path.into();
        assert!(
            matches!(bed.try_run(missing), Err(SandboxError::ProgramMissing { stage: 0 })),
            "{path}"
        );
    }
}

fn what_cannot_be_executed_is_told() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut bed = Bed::new(
        |workspace| {
            fs::write(workspace.join("data"), "no program").unwrap();
            fs::write(workspace.join("script"), "#!/nowhere/interpreter\n").unwrap();
            fs::write(workspace.join("elf"), b"\x7fELF nonsense").unwrap();
            for name in ["script", "elf"] {
                let permissions = fs::Permissions::from_mode(0o755);
                fs::set_permissions(workspace.join(name), permissions).unwrap();
            }
        },
        &[],
    );
    for name in ["data", "script", "elf"] {
        let path = bed.workspace().join(name);
        let mut wrong = launch(path.to_str().unwrap(), &[name]);
        wrong.stages[0].program.path = format!("/workspace/{name}").into();
        let got = bed.try_run(wrong);
        assert!(matches!(got, Err(SandboxError::NotExecutable { .. })), "{name}: {got:?}");
    }
}

fn launches_without_sense_are_refused() {
    let mut bed = Bed::plain();
    let good = || launch("/bin/true", &["true"]);
    let mut bad = Vec::new();
    for change in [
        |l: &mut Launch| l.stages[0].program.path = "true".into(),
        |l: &mut Launch| l.stages[0].argv.clear(),
        |l: &mut Launch| l.stages[0].argv = vec!["x".into(); limits::ARGV_WORDS + 1],
        |l: &mut Launch| l.stages[0].argv = vec!["x".repeat(limits::ARGV_BYTES + 1).into()],
        |l: &mut Launch| l.stages[0].argv.push("a\0b".into()),
        |l: &mut Launch| l.stages[0].environment.push(("A=B".into(), "c".into())),
        |l: &mut Launch| l.stages[0].environment.push(("".into(), "c".into())),
        |l: &mut Launch| l.stages[0].environment.push(("A".into(), "c\0".into())),
        |l: &mut Launch| l.cwd = "a\0".into(),
        |l: &mut Launch| l.hidden = vec![mask(b"x"); limits::HIDDEN_PATHS + 1],
    ] {
        let mut launch = good();
        change(&mut launch);
        bad.push(launch);
    }
    for (number, launch) in bad.into_iter().enumerate() {
        let got = bed.try_run(launch);
        assert!(matches!(got, Err(SandboxError::Launch { .. })), "{number}: {got:?}");
    }
    // Long, but as long as it may be.
    let mut long = good();
    long.stages[0].argv.extend(vec!["x".repeat(100_000).into(); 9]);
    assert!(bed.try_run(long).is_ok());
    let mut masks = good();
    masks.hidden =
        (0..limits::HIDDEN_PATHS).map(|i| mask(format!("missing/{i}").as_bytes())).collect();
    assert!(bed.try_run(masks).is_ok());
}

fn a_moved_workspace_is_not_entered() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("workspace");
    fs::create_dir(&workspace).unwrap();
    let opened: std::os::fd::OwnedFd = File::open(&workspace).unwrap().into();
    fs::rename(&workspace, folder.path().join("moved")).unwrap();
    fs::create_dir(&workspace).unwrap();
    let mut executor = Executor::start().unwrap();
    // The path is that of the moved folder, so this is fine.
    let view = SandboxView {
        git: capsule_sandbox::GitFiles::default(),
        floor: crate::world::current().floor(),
        workspace: opened.try_clone().unwrap(),
        root_names: RootNames::default(),
        staging: None,
        hidden: Vec::new(),
        programs: Vec::new(),
        toolchains: Vec::new(),
        repository: None,
    };
    executor.enter(view).unwrap();
    fs::remove_dir(folder.path().join("moved")).unwrap();
    let mut executor = Executor::start().unwrap();
    let view = SandboxView {
        git: capsule_sandbox::GitFiles::default(),
        floor: crate::world::current().floor(),
        workspace: opened,
        root_names: RootNames::default(),
        staging: None,
        hidden: Vec::new(),
        programs: Vec::new(),
        toolchains: Vec::new(),
        repository: None,
    };
    let got = executor.enter(view);
    assert!(
        matches!(got, Err(SandboxError::Setup { .. } | SandboxError::Launch { .. })),
        "{got:?}"
    );
    let ran = executor.run(launch("/bin/true", &["true"]), &mut Nobody);
    assert!(ran.is_err(), "nothing runs in a view that was not built");
}

fn nothing_runs_without_a_view() {
    let mut executor = Executor::start().unwrap();
    let ran = executor.run(launch("/bin/true", &["true"]), &mut Nobody);
    if crate::world::current().is_lower() {
        // Nobody has said yet that the lower tier will do.
        assert!(matches!(ran, Err(SandboxError::Unavailable { .. })), "{ran:?}");
    } else {
        assert!(matches!(ran, Err(SandboxError::Setup { .. })), "{ran:?}");
    }
    // And a view is built once.
    let mut bed = Bed::plain();
    let workspace = File::open(bed.workspace()).unwrap().into();
    let again = bed.executor.enter(SandboxView {
        git: capsule_sandbox::GitFiles::default(),
        floor: crate::world::current().floor(),
        workspace,
        root_names: RootNames::default(),
        staging: None,
        hidden: Vec::new(),
        programs: Vec::new(),
        toolchains: Vec::new(),
        repository: None,
    });
    assert!(again.is_err());
    assert!(bed.try_run(launch("/bin/true", &["true"])).is_ok());
}

/// Run again where no user namespace can be made.
fn nothing_runs_without_user_namespaces() {
    const INSIDE: &str = "CAPSULE_TEST_NO_NAMESPACES";
    if std::env::var_os(INSIDE).is_some() {
        let mut executor = Executor::start().unwrap();
        let walls = executor.sandbox_status().unwrap();
        let user =
            walls.layers.iter().find(|held| held.layer == SandboxLayer::SeparateUsers).unwrap();
        assert_eq!(user.level, EnforcementLevel::Missing);
        assert!(user.detail.contains("user.max_user_namespaces"), "{}", user.detail);
        assert!(
            walls.layers.iter().any(|held| held.layer == SandboxLayer::AccessRules
                && held.level == EnforcementLevel::Held)
        );
        let workspace = File::open("/").unwrap().into();
        let entered = executor.enter(SandboxView {
            git: capsule_sandbox::GitFiles::default(),
            floor: crate::world::current().floor(),
            workspace,
            root_names: RootNames::default(),
            staging: None,
            hidden: Vec::new(),
            programs: Vec::new(),
            toolchains: Vec::new(),
            repository: None,
        });
        assert!(
            matches!(
                entered,
                Err(SandboxError::Unavailable { layer: SandboxLayer::SeparateUsers, .. })
            ),
            "{entered:?}"
        );
        let ran = executor.run(launch("/bin/true", &["true"]), &mut Nobody);
        assert!(matches!(ran, Err(SandboxError::Unavailable { .. })), "{ran:?}");
        return;
    }
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" \"$@\"";
    let program = fs::read_link("/proc/self/exe").unwrap();
    let status = Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", script])
        .arg(program)
        .arg("nothing_runs_without_user_namespaces")
        .env(INSIDE, "1")
        .env("CAPSULE_TEST_WORLD", "user")
        .status()
        .unwrap();
    assert!(status.success());
}

fn something_else_is_no_executor() {
    for program in ["/bin/true", "/bin/cat", "/bin/sleep"] {
        let mut executor = Executor::start_with(program.as_ref(), &["0.1".as_ref()]).unwrap();
        let walls = executor.sandbox_status().cloned();
        assert!(matches!(walls, Err(SandboxError::ExecutorDied { .. })), "{program}: {walls:?}");
    }
    assert!(Executor::start_with("/nowhere".as_ref(), &[]).is_err());
}

fn the_doctor_finds_all_well() {
    let findings = Executor::self_test();
    assert!(findings.len() > 8, "{findings:?}");
    for finding in &findings {
        assert!(finding.passed, "{finding:?}");
    }
    let place = tempfile::tempdir().unwrap();
    let staged = Executor::try_staging(place.path());
    assert_eq!(staged.passed, !crate::world::current().is_lower(), "{staged:?}");
    assert_eq!(place.path().read_dir().unwrap().count(), 0, "nothing is left");
    let copied = Executor::try_copying(place.path());
    assert!(copied.passed, "{copied:?}");
    assert_eq!(place.path().read_dir().unwrap().count(), 0, "nothing is left");
    let nowhere = Executor::try_staging(&place.path().join("nowhere"));
    assert!(!nowhere.passed && nowhere.detail.contains("nowhere"), "{nowhere:?}");
}

fn walls_name_every_layer() {
    let mut executor = Executor::start().unwrap();
    let walls = executor.sandbox_status().unwrap();
    let named: Vec<SandboxLayer> = walls.layers.iter().map(|held| held.layer).collect();
    assert_eq!(named, SandboxLayer::ALL);
    let landlock =
        walls.layers.iter().find(|held| held.layer == SandboxLayer::AccessRules).unwrap();
    assert!(landlock.detail.starts_with("abi "), "{}", landlock.detail);
}
