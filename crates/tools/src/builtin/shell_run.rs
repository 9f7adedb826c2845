//! `shell.run`: a program with its arguments, confined. Never a shell.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use capsule_core::action::{Action, Facts, FileKind, PathTarget, ProgramFact};
use capsule_core::capability::Capability;
use capsule_core::code::Code;
use capsule_core::confinement::{Bound, Confinement, Enforcement, WorkspaceAccess};
use capsule_core::digest::Digest;
use capsule_core::evidence::{Permit, Prepared as Hands};
use capsule_core::limits;
use capsule_core::outcome::{Outcome, Output, Problem};
use capsule_core::policy::{Bounds, Environment, Scope};
use capsule_core::redact::Piece;
use capsule_core::tool::{Argument, Field, Kind, Shape, Signature};
use capsule_core::units;
use capsule_sandbox as sandbox;
use sandbox::{Exit, FileIdentity, How, Launch, Mask, SandboxError};
use serde_json::{Map, Value};

use crate::builtin::{Unable, invalid, text, wrong_permit};
use crate::commands::{Commands, NotRun, view};
use crate::direct::Ground;
use crate::staging::{Staging, too_many};
use crate::tool::{Cancel, Context, Host, Prepared, Sink, Stream, Tool, command_facts};
use crate::veil::{Veil, VeilError};
use crate::workspace::Workspace;

/// What `shell.run` is called, takes and gives.
pub static SIGNATURE: Signature = Signature {
    id: "shell.run",
    model_name: "shell_run",
    aliases: &["command_exec"],
    about: "Runs a program with its arguments as a list, confined and without a shell.",
    shape: Shape::Exec,
    capabilities: &[Capability::ProcExec],
    arguments: &[
        Argument {
            name: "argv",
            kind: Kind::Argv,
            required: true,
            about: "the program's name and its arguments, as a list",
        },
        Argument {
            name: "cwd",
            kind: Kind::Path,
            required: false,
            about: "the folder to run in; the workspace if left out",
        },
        Argument {
            name: "stdin",
            kind: Kind::Text,
            required: false,
            about: "what the program reads from its standard input",
        },
        Argument {
            name: "timeout",
            kind: Kind::Duration,
            required: false,
            about: "how long it may take",
        },
    ],
    results: &[
        Field { name: "exit_code", about: "the program's status; none if a signal ended it" },
        Field { name: "signal", about: "the signal that ended it" },
        Field { name: "stdout", about: "its standard output" },
        Field { name: "stdout_base64", about: "its standard output, where it is not text" },
        Field { name: "stderr", about: "its standard error" },
        Field { name: "stderr_base64", about: "its standard error, where it is not text" },
        Field { name: "stdout_bytes_total", about: "how much it wrote to its standard output" },
        Field { name: "stderr_bytes_total", about: "how much it wrote to its standard error" },
        Field { name: "truncated", about: "whether either was cut" },
        Field { name: "limits_reached", about: "the limits that it ran into" },
        Field { name: "changes", about: "what it changed, where the workspace is staged" },
        Field { name: "changes_total", about: "how many paths it changed there" },
        Field { name: "direct", about: "whether it could change the workspace itself" },
        Field { name: "clamped", about: "whether more time was asked for than it may have" },
    ],
};

/// Where programs are looked for, by us and by commands. Nothing that a run can write to is among
/// them, and every sandbox has them.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// What every command finds in its environment, and why. The policy can set other values.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("PATH", PATH),
    // Text is UTF-8 whatever the host's language is.
    ("LANG", "C.UTF-8"),
    // Nobody watches: no colours, no pagers, no questions.
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // Git would write its index when it only looks, and read the host's configuration.
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
];

/// Variables that name the private folder: programs write their caches there, and it is empty
/// afterwards. The policy can set other values for them, too.
const PRIVATE: [&str; 2] = ["HOME", "TMPDIR"];

/// Runs a program.
#[derive(Clone, Copy, Debug)]
pub struct ShellRun;

impl Tool for ShellRun {
    fn signature(&self) -> &'static Signature {
        &SIGNATURE
    }

    fn describe(&self, args: &Map<String, Value>, _: u64) -> Result<Action, Problem> {
        let words = args.get("argv").and_then(Value::as_array);
        let argv = words.into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect();
        let stdin = text(args, "stdin");
        if stdin.is_some_and(|stdin| stdin.len() > limits::STDIN_BYTES) {
            return Err(invalid(format!("`stdin` has at most {} bytes", limits::STDIN_BYTES)));
        }
        let timeout = match text(args, "timeout") {
            Some(text) => Some(
                units::parse_duration(text)
                    .map(units::millis)
                    .ok_or_else(|| invalid("`timeout` is a duration such as `10s`"))?,
            ),
            None => None,
        };
        Ok(Action::Run {
            argv,
            cwd: PathTarget::parse(text(args, "cwd").unwrap_or(".")),
            stdin: stdin.map(|stdin| {
                let bytes = u64::try_from(stdin.len()).unwrap_or(u64::MAX);
                (Digest::of(stdin.as_bytes()), bytes)
            }),
            timeout_ms: timeout,
        })
    }

    fn prepare(&self, action: &Action, args: &Value, context: &Context<'_>) -> Prepared {
        let Action::Run { argv, cwd, .. } = action else {
            let fault = Problem::new(Code::EngineFault, "not a command");
            return Prepared { facts: Facts::default(), hands: Box::new(Unable(fault)) };
        };
        let program = argv.first().and_then(|name| find(name, context.host.as_ref()));
        let found = program.as_ref().map(|program| program.fact.clone());
        let facts =
            Facts { walls: context.commands.walls(), ..command_facts(action, found, context) };
        let stdin = args.get("stdin").and_then(Value::as_str).unwrap_or_default();
        let nowhere = |path| facts.at(path).is_some_and(|fact| fact.kind == FileKind::Missing);
        let hands: Box<dyn Hands> = match (program, cwd.inside()) {
            (_, Some(path)) if nowhere(path) => {
                let message = format!("there is no folder `{path}` to run in");
                Box::new(Unable(Problem::new(Code::FileNotFound, message)))
            }
            (Some(program), Some(cwd)) => Box::new(Runner {
                workspace: Rc::clone(context.workspace),
                veil: Rc::clone(context.veil),
                commands: context.commands.clone(),
                host: Rc::clone(context.host),
                sink: Rc::clone(context.sink),
                cancel: context.cancel.clone(),
                staging: context.staging.ok().flatten().cloned(),
                program,
                argv: argv.iter().map(Into::into).collect(),
                cwd: facts.at(cwd).and_then(real).unwrap_or_else(|| cwd.as_str().into()),
                stdin: stdin.as_bytes().to_vec(),
            }),
            (None, _) => {
                let name = argv.first().map_or("", String::as_str);
                let message = format!("there is no program `{name}` in the system's folders");
                Box::new(Unable(Problem::new(Code::ExecNotFound, message)))
            }
            (_, None) => Box::new(Unable(Problem::new(Code::PathOutside, "`cwd` is not inside"))),
        };
        Prepared { facts, hands }
    }
}

fn real(fact: &capsule_core::action::PathFact) -> Option<OsString> {
    match &fact.real {
        capsule_core::action::Place::Inside(path) => Some(path.as_str().into()),
        capsule_core::action::Place::Outside(_) => None,
    }
}

/// A program that was found.
struct Program {
    fact: ProgramFact,
    file: sandbox::Program,
}

/// Finds a program: at the place that the policy names, or in the system's folders.
fn find(name: &str, host: &dyn Host) -> Option<Program> {
    let named = host.program_place(name).map(PathBuf::from);
    let path = match named {
        Some(path) => path,
        None if name.is_empty() || name.contains('/') => return None,
        None => PATH.split(':').map(|folder| Path::new(folder).join(name)).find(|path| {
            path.metadata().is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0)
        })?,
    };
    let real = path.canonicalize().ok()?;
    let file = File::open(&real).ok()?;
    let meta = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    // Taken before the bytes are read: whoever writes to them meanwhile changes it.
    let file_identity = FileIdentity::of(&meta);
    let sha256 = match host.known_digest(&real, &file_identity) {
        Some(digest) => digest,
        None => {
            let digest = digest(file)?;
            host.remember_digest(&real, &file_identity, digest);
            digest
        }
    };
    let fact = ProgramFact { path: path.to_str()?.into(), real: real.to_str()?.into(), sha256 };
    Some(Program { fact, file: sandbox::Program { path: real, identity: file_identity } })
}

fn digest(mut file: File) -> Option<Digest> {
    Digest::of_all(|buffer| file.read(buffer)).ok()
}

struct Runner {
    workspace: Rc<Workspace>,
    veil: Rc<RefCell<Veil>>,
    commands: Commands,
    host: Rc<dyn Host>,
    sink: Rc<dyn Sink>,
    cancel: Cancel,
    staging: Option<Rc<Staging>>,
    program: Program,
    argv: Vec<OsString>,
    cwd: OsString,
    stdin: Vec<u8>,
}

impl Hands for Runner {
    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        let Bounds::Run { confinement, clamped, environment, reads, writes } = permit.bounds()
        else {
            return wrong_permit();
        };
        let direct = writes.as_ref().filter(|_| confinement.workspace == WorkspaceAccess::Direct);
        let workspace = Rc::clone(&self.workspace);
        let survey = |writes| Ground::survey(&workspace, writes, self.host.store());
        let mut ground = match direct.map(survey).transpose() {
            Ok(ground) => ground,
            Err(problem) => return Outcome::failed(problem),
        };
        let ended = match self.launch(confinement, environment, reads.as_ref(), ground.as_mut()) {
            Ok(exit) => outcome(exit, confinement, *clamped),
            Err(problem) => Outcome::failed(problem),
        };
        match ground {
            Some(ground) => ground.judged(ended),
            None => ended,
        }
    }
}

impl Runner {
    fn launch(
        self,
        confinement: &Confinement,
        environment: &Environment,
        reads: Option<&Scope>,
        mut ground: Option<&mut Ground<'_>>,
    ) -> Result<Exit, Problem> {
        let drawn = |veil: &Veil| Ok((veil.hidden(&self.workspace)?, veil.way()));
        let drawn = match reads.cloned() {
            None => drawn(&self.veil.borrow()),
            // A walk of its own for each call: few programs have a view of their own.
            Some(reads) => {
                drawn(&Veil::new(Box::new(move |path, folder| reads.conceals(path, folder))))
            }
        };
        let (hidden, way) = drawn.map_err(VeilError::problem)?;
        let mut masks: Vec<Mask> = hidden.into_iter().map(|path| Mask { path }).collect();
        let direct = ground.as_mut().map(|ground| ground.bounds(&mut masks, way)).transpose()?;
        let environment = variables(environment, self.host.as_ref());
        let set = |name: &str| environment.iter().any(|(own, _)| own == name);
        let private = PRIVATE.into_iter().filter(|name| !set(name)).map(OsString::from).collect();
        let floor = confinement.floor;
        let launch = Launch {
            program: self.program.file.clone(),
            argv: self.argv.clone(),
            environment,
            private,
            cwd: self.cwd.clone(),
            stdin: self.stdin.clone(),
            limits: confinement.limits,
            writes: confinement.workspace == WorkspaceAccess::Staged,
            direct,
            // All of them each time: what was hidden before may be another file by now.
            masks,
        };
        let staging = self.staging.as_deref().filter(|_| launch.writes);
        let full = Cell::new(false);
        let mut watch = Watch {
            sink: self.sink.as_ref(),
            cancel: &self.cancel,
            staging,
            full: &full,
            ground: ground.as_deref(),
        };
        let view = |launch: &Launch| {
            view(&self.workspace, self.host.as_ref(), floor, None, launch.masks.clone())
        };
        let exit = self.commands.run(launch, &mut watch, view).map_err(|why| match why {
            NotRun::Sandbox(error) => sandbox_problem(&self.argv, &error),
            NotRun::View(error) => {
                Problem::new(Code::SandboxFailed, format!("the workspace cannot be shown: {error}"))
            }
        })?;
        if full.get() { Err(too_many()) } else { Ok(exit) }
    }
}

/// The environment of a command: ours, what the policy passes on, what it sets.
fn variables(environment: &Environment, host: &dyn Host) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = Vec::new();
    let mut put = |name: &str, value: OsString| {
        variables.retain(|(own, _)| own != name);
        variables.push((name.into(), value));
    };
    for (name, value) in ENVIRONMENT {
        put(name, (*value).into());
    }
    for name in &environment.pass {
        if let Some(value) = host.variable(name) {
            put(name, value);
        }
    }
    for (name, value) in &environment.set {
        put(name, value.into());
    }
    variables
}

struct Watch<'w> {
    sink: &'w dyn Sink,
    cancel: &'w Cancel,
    /// Where the command's changes go, if it may make any.
    staging: Option<&'w Staging>,
    /// Whether it was ended because it changed too much.
    full: &'w Cell<bool>,
    /// What bounds it, if it changes the workspace itself.
    ground: Option<&'w Ground<'w>>,
}

impl sandbox::Watch for Watch<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        self.sink.output(stream, bytes);
    }

    fn cancelled(&self) -> bool {
        if self.staging.is_some_and(Staging::is_full) {
            self.full.set(true);
        }
        self.full.get() || self.cancel.is_set() || self.ground.is_some_and(Ground::is_lost)
    }
}

fn sandbox_problem(argv: &[OsString], error: &SandboxError) -> Problem {
    let name = argv.first().map(|name| name.to_string_lossy()).unwrap_or_default();
    let code = match error {
        SandboxError::ProgramChanged => Code::ApprovalChangedAfter,
        SandboxError::ProgramMissing | SandboxError::NotExecutable { .. } => Code::ExecNotFound,
        SandboxError::Launch { .. } => Code::ExecArgv,
        _ => Code::SandboxFailed,
    };
    Problem::new(code, format!("`{name}`: {error}"))
}

/// The limits that a command ran into, behind how it ended.
fn beyond(reached: &[Bound]) -> String {
    let names: Vec<&str> =
        reached.iter().filter(|own| **own != Bound::Output).map(|own| own.name()).collect();
    match names.as_slice() {
        [] => String::new(),
        names => format!("; it ran into its limit of {}", names.join(" and ")),
    }
}

/// What came of a command, as everyone sees it.
fn outcome(exit: Exit, confinement: &Confinement, clamped: bool) -> Outcome {
    let limits = &confinement.limits;
    let (problem, code, signal) = match exit.how {
        How::Exited(0) => (None, Some(0), None),
        How::Exited(code) => {
            let message = format!("the program ended with status {code}{}", beyond(&exit.reached));
            (Some(Problem::new(Code::ExecFailed, message)), Some(code), None)
        }
        How::Signalled(signal) => {
            let message =
                format!("the program was ended by signal {signal}{}", beyond(&exit.reached));
            (Some(Problem::new(Code::ExecSignal, message)), None, Some(signal))
        }
        How::TimedOut => {
            let after = units::show_duration(limits.timeout_ms.saturating_mul(1_000));
            let message = format!("the program was ended after {after}");
            (Some(Problem::new(Code::ExecTimeout, message)), None, None)
        }
        How::Cancelled => {
            (Some(Problem::new(Code::ExecCancelled, "the program was cancelled")), None, None)
        }
        How::MemoryExceeded => {
            let most = units::show_size(limits.memory_bytes);
            let message = format!("the program used more than {most} of memory and was ended");
            (Some(Problem::new(Code::ExecMemory, message)), None, None)
        }
        How::OutputFlood => {
            let message = "the program wrote without end and was ended";
            (Some(Problem::new(Code::ExecSignal, message)), None, None)
        }
    };
    let output = Output::default()
        .with("exit_code", code)
        .with("signal", signal)
        .with_bytes(
            "stdout",
            "stdout_base64",
            Piece::beginning(exit.stdout.bytes, exit.stdout.truncated),
        )
        .with_bytes(
            "stderr",
            "stderr_base64",
            Piece::beginning(exit.stderr.bytes, exit.stderr.truncated),
        )
        .with("stdout_bytes_total", exit.stdout.total)
        .with("stderr_bytes_total", exit.stderr.total)
        .with("truncated", exit.stdout.truncated || exit.stderr.truncated)
        .with("limits_reached", serde_json::to_value(&exit.reached).unwrap_or_default())
        .with("clamped", clamped);
    let output = match confinement.workspace {
        WorkspaceAccess::Direct => output.with("direct", true),
        WorkspaceAccess::ReadOnly | WorkspaceAccess::Staged => output,
    };
    let enforcement = Enforcement::Walls(exit.walls);
    match problem {
        None => Outcome { enforcement, ..Outcome::done(output) },
        Some(problem) => Outcome { output, enforcement, ..Outcome::failed(problem) },
    }
}
