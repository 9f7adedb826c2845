//! P2: one confined command, warm: per call inside one run, against a bare spawn, and against a bare
//! spawn with one durable row; and the walls alone, without policy and journal, of the executor that is
//! shipped.
//!
//! What a run costs once is taken away: a plan of one step is measured beside the plan of many. What the three
//! parts of a call cost is held against what each of them cannot do without (ADR 41): the walls against the
//! least walls, being durable against one durable row.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use capsule_base::root_names::RootNames;
use capsule_core::confinement::{ProcessLimits, SandboxTier};
use capsule_sandbox::{
    CommandWatcher, Executable, Executor, FileIdentity, GitFiles, Launch, LaunchStage, OutputKind,
    SandboxBackend as _, SandboxError, SandboxView, Termination,
};

use crate::Answer;
use crate::binary::{Binary, quiet};
use crate::least::Least;
use crate::options::Options;
use crate::pairs::{Pairs, beyond, seconds};
use crate::row::{Row, Target};

const POLICY: &str = r#"version: 1
name: many-commands
tools:
  shell.run:
    executables:
      "true": { decision: allow }
"#;

/// Termination the row is called for which nothing is judged and nothing is written down.
const WALLS: &str = "the walls alone, per call in one executor";

/// What no confinement of this kind can do without.
const LEAST: &str = "the least walls, per call";

/// What a call takes in memory beyond its walls.
const JUDGED: &str = "policy and record, per call";

/// What a call takes on the disk beyond what it takes in memory.
const DURABLE: &str = "being durable, per call";

/// A file system in memory, where a durable commit costs nothing.
const IN_MEMORY: &str = "/dev/shm";

/// Termination long the kernel is given to take the namespaces of a run apart.
const PAUSE: Duration = Duration::from_millis(200);

pub(crate) fn measure(options: &Options) -> Answer<Vec<Row>> {
    let steps = options.pick(1_000, 100);
    let rounds = options.pick(9, 3);
    let files = options.fresh("p2")?;
    let workspace = options.fresh("p2-workspace")?;
    let plans = (plan(&files, 1)?, plan(&files, steps)?);
    let per_call = |binary: &Binary| each(binary, &plans, steps);
    let durable = Binary::new(options, &files, &workspace, POLICY)?;
    let reference = Reference::new(&files.join("reference"), steps)?;
    let synced =
        Pairs::take(rounds, PAUSE, || per_call(&durable), || reference.spawns(steps, true))?;
    let in_memory = Memory::new()?;
    let quick = Binary::new(options, &files, &workspace, POLICY)?;
    let quick = quick.storing(in_memory.0.join("store.db"));
    let plain = Pairs::take(rounds, PAUSE, || per_call(&quick), || reference.spawns(steps, false))?;
    let bare =
        Pairs::take(rounds, PAUSE, || per_call(&durable), || reference.spawns(steps, false))?;
    let mut walls = Walls::new(&durable, &workspace)?;
    let alone =
        Pairs::take(rounds, PAUSE, || walls.spawns(steps), || reference.spawns(steps, false))?;
    let judged = Pairs::take(
        rounds,
        PAUSE,
        || beyond(per_call(&quick), walls.spawns(steps)),
        || reference.spawns(steps, false),
    )?;
    let kept = Pairs::take(
        rounds,
        PAUSE,
        || beyond(per_call(&durable), per_call(&quick)),
        || beyond(reference.spawns(steps, true), reference.spawns(steps, false)),
    )?;
    let (spawn, row) = (bare.theirs().median, kept.theirs().median);
    let disk =
        format!("one durable row of the reference takes {:.2} of its spawn here", row / spawn);
    let what = format!("shell.run true, per call of a plan of {steps}");
    let memory = format!("{what}, record in memory");
    let mut rows = vec![
        Row::new("P2", &what, "spawn + fdatasync", synced, Target::TimeAtMost(1.2)).note(disk),
        Row::new("P2", memory, "bare spawn", plain, Target::TimeAtMost(2.0)),
        Row::new("P2", what, "bare spawn", bare, Target::None),
        Row::new("P2", WALLS, "bare spawn", alone, Target::TimeAtMost(1.5)),
        Row::new("P2", JUDGED, "bare spawn", judged, Target::TimeAtMost(0.5)),
        Row::new("P2", DURABLE, "fdatasync of one row", kept, Target::TimeAtMost(1.2)),
    ];
    let least = against_least(&files, (rounds, steps), &mut walls, &reference);
    rows.extend(least.unwrap_or_else(|why| vec![Row::untaken("P2", why)]));
    Ok(rows)
}

/// The walls against the least walls, and those against a bare spawn.
fn against_least(
    files: &Path,
    (rounds, steps): (usize, usize),
    walls: &mut Walls,
    reference: &Reference,
) -> Answer<Vec<Row>> {
    let least = Least::build(files)?;
    let ours = Pairs::take(rounds, PAUSE, || walls.spawns(steps), || least.spawns(steps))?;
    let bare = || reference.spawns(steps, false);
    let alone = Pairs::take(rounds, PAUSE, || least.spawns(steps), bare)?;
    Ok(vec![
        Row::new("P2", LEAST, "bare spawn", alone, Target::None),
        Row::new("P2", WALLS, LEAST, ours, Target::TimeAtMost(1.25)),
    ])
}

fn plan(files: &Path, steps: usize) -> Answer<PathBuf> {
    let place = files.join(format!("plan-{steps}.yaml"));
    let step = "  - tool: shell.run\n    args: { argv: [\"true\"] }\n";
    let text = format!("version: 1\nname: many\nsteps:\n{}", step.repeat(steps));
    std::fs::write(&place, text).map_err(|error| format!("{}: {error}", place.display()))?;
    Ok(place)
}

/// The time of one call: the plan of many less the plan of one.
fn each(binary: &Binary, (one, many): &(PathBuf, PathBuf), steps: usize) -> Answer<f64> {
    let run = |plan: &Path| {
        let plan = plan.to_str().ok_or("a path that is no text")?;
        seconds(|| quiet(&mut binary.command(&["run", plan], &[])))
    };
    let (one, many) = (run(one)?, run(many)?);
    Ok((many - one) / number(steps.saturating_sub(1)))
}

/// A bare loop of spawns, and a file for rows that are durable. The file has its size from the
/// start, as SQLite's log has once it was used, so that a row costs no more than it must.
struct Reference {
    file: File,
}

/// The size of a row.
const ROW: usize = 400;

impl Reference {
    fn new(place: &Path, rows: usize) -> Answer<Self> {
        let made = std::fs::write(place, vec![0; rows * ROW])
            .and_then(|()| File::options().write(true).open(place))
            .and_then(|file| file.sync_all().map(|()| file));
        made.map(|file| Self { file }).map_err(|error| format!("{}: {error}", place.display()))
    }

    /// The time of one spawn, with one durable row each if they are wanted.
    fn spawns(&self, count: usize, durable: bool) -> Answer<f64> {
        let failed = |error: std::io::Error| format!("the reference: {error}");
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let all = seconds(|| {
            for _ in 0..count {
                if durable {
                    file.write_all(&[7; ROW]).and_then(|()| file.sync_data()).map_err(failed)?;
                }
                // The standard library spawns by `posix_spawn` where nothing asks for more.
                Command::new("/bin/true").status().map_err(failed)?;
            }
            Ok(())
        })?;
        Ok(all / number(count))
    }
}

/// An executor, and nobody who decides or writes anything down.
struct Walls {
    executor: Executor,
    program: Executable,
}

impl Walls {
    fn new(binary: &Binary, workspace: &Path) -> Answer<Self> {
        let failed = |error: SandboxError| format!("the walls: {error}");
        let unread = |error: std::io::Error| format!("the walls: {error}");
        let path = Path::new("/bin/true").canonicalize().map_err(unread)?;
        let identity = FileIdentity::from_metadata(&path.metadata().map_err(unread)?);
        let mut executor = binary.executor().map_err(failed)?;
        let view = SandboxView {
            floor: SandboxTier::Full,
            workspace: File::open(workspace).map_err(unread)?.into(),
            root_names: RootNames::default(),
            staging: None,
            hidden: Vec::new(),
            programs: Vec::new(),
            git: GitFiles::default(),
            toolchains: Vec::new(),
            repository: None,
        };
        executor.enter(view).map_err(failed)?;
        Ok(Self { executor, program: Executable { path, identity } })
    }

    /// The time of one of this many commands.
    fn spawns(&mut self, count: usize) -> Answer<f64> {
        let all = seconds(|| (0..count).try_for_each(|_| self.spawn()))?;
        Ok(all / number(count))
    }

    fn spawn(&mut self) -> Answer<()> {
        let stage = LaunchStage {
            program: self.program.clone(),
            argv: vec!["true".into()],
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            redirects: Vec::new(),
        };
        let launch = Launch {
            stages: vec![stage],
            private_directory_variables: Vec::new(),
            cwd: OsString::new(),
            stdin: Vec::new(),
            limits: ProcessLimits::default(),
            writes: false,
            direct: None,
            hidden: Vec::new(),
            is_last: false,
            ignores_tmp_links: false,
        };
        match self.executor.run(launch, &mut Nobody) {
            Ok(exit) if exit.termination == Termination::Exited(0) => Ok(()),
            Ok(exit) => Err(format!("the walls: `true` ended with {:?}", exit.termination)),
            Err(error) => Err(format!("the walls: {error}")),
        }
    }
}

/// Somebody who keeps nothing and never cancels.
struct Nobody;

impl CommandWatcher for Nobody {
    fn output(&mut self, _stream: OutputKind, _bytes: &[u8]) {}

    fn is_cancelled(&self) -> bool {
        false
    }
}

fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::NAN, f64::from)
}

/// A folder in memory that goes away with the measure.
struct Memory(PathBuf);

impl Memory {
    fn new() -> Answer<Self> {
        let place = Path::new(IN_MEMORY).join(format!("capsule-bench-{}", std::process::id()));
        let made = std::fs::create_dir(&place);
        made.map_err(|error| format!("{}: {error}", place.display()))?;
        Ok(Self(place))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // What cannot be removed is a few kilobytes in memory, and the next boot clears it.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
