//! `capsule connect`: writes our hook into the settings of an agent, or our server in place of its tools; or takes both
//! out.

use std::fs::{self, Permissions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use capsule_base::code::Code;
use capsule_base::escape;
use capsule_core::confinement::EnforcementLevel;
use capsule_core::outcome::CodedError;
use similar::TextDiff;

use crate::args::{ConnectArgs, ConnectLevel};
use crate::card;
use crate::context::CliContext;
use crate::failure::Failure;
use crate::hook::{AgentSettings, DialectName, ServerSettings, open_tools};
use crate::new_file::write_new;
use crate::screen::{HINT, SUCCESS, Screen};

/// The policy of an agent whose user has none.
const OFFERED_POLICY: &str = "builtin:developer";

/// A file of settings that is to be another.
struct FileEdit {
    path: PathBuf,
    before: String,
    after: String,
    /// Whether what was there before is kept: settings with what is ours are not that.
    keeps: bool,
}

pub(crate) fn run(args: &ConnectArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let name = args.agent.dialect().name;
    refuse_replacement(args)?;
    let settings = AgentSettings::of(args.agent, &ctx.home);
    let edits = file_edits(args, ctx, &settings)?;
    if edits.is_empty() {
        let state = if args.undo { "is not connected" } else { "is connected already" };
        screen.eprint(&format!("{SUCCESS}✔{SUCCESS:#} {name} {state}"));
        return Ok(0);
    }
    for edit in &edits {
        let shown = edit.path.display().to_string();
        let diff = TextDiff::from_lines(&edit.before, &edit.after);
        let diff = diff.unified_diff().header(&shown, &shown).to_string();
        screen.print_lines(&escape::block(&diff).lines().map(str::to_owned).collect::<Vec<_>>())?;
    }
    if args.print {
        return Ok(0);
    }
    let answer = card::choose(screen, "y: write this · anything else: leave it as it is ");
    if answer.is_some_and(|answer| answer != "y") {
        screen.eprint("nothing was written");
        return Ok(0);
    }
    for edit in &edits {
        let written = write(edit).map_err(|error| unusable(&edit.path, &error.to_string()))?;
        if let Some(backup) = written {
            let backup = escape::line(&backup.display().to_string()).into_owned();
            screen.eprint(&format!("what was there before is in `{backup}`"));
        }
    }
    if args.undo {
        screen.eprint(&format!("{SUCCESS}✔{SUCCESS:#} {name} is not connected any more"));
        return Ok(0);
    }
    screen.eprint(&format!("{SUCCESS}✔{SUCCESS:#} {name} is connected"));
    for line in settings.coverage(args.level) {
        screen.eprint(&format!("  {line}"));
    }
    screen.eprint(&format!(
        "{HINT}try it{HINT:#}: capsule doctor · take it back: capsule connect {name} --undo"
    ));
    Ok(0)
}

/// Refuses to take the tools of an agent away where that is not known to hold.
fn refuse_replacement(args: &ConnectArgs) -> Result<(), Failure> {
    if args.level == ConnectLevel::Hook || args.agent == DialectName::ClaudeCode {
        return Ok(());
    }
    let name = args.agent.dialect().name;
    let message =
        format!("the built-in tools of {name} cannot be replaced, only those of claude-code");
    Err(CodedError::new(Code::Usage, message)
        .with_suggestion(format!(
            "connect its hook with `capsule connect {name}`, or confine it as a whole with `capsule sandbox`"
        ))
        .into())
}

/// The files that are to be others, for the connection that is asked for.
fn file_edits(
    args: &ConnectArgs,
    ctx: &CliContext,
    settings: &AgentSettings,
) -> Result<Vec<FileEdit>, Failure> {
    let read =
        |path: &Path| read_settings(path).map_err(|error| unusable(path, &error.to_string()));
    let before = read(&settings.path)?;
    let level = settings.level(&before);
    let mut edits = Vec::new();
    let replaces = !args.undo && args.level == ConnectLevel::Replace;
    if replaces || level == Some(ConnectLevel::Replace) {
        let path = ServerSettings::of(&ctx.home).path;
        let words = replaces.then(|| program_words(args, ctx, &["mcp", "serve"])).transpose()?;
        let before = read(&path)?;
        let after = ServerSettings::with(&before, words.as_deref()).ok_or_else(|| {
            unusable(
                &path,
                "they are no JSON that a server fits into, or have another server `capsule`",
            )
        })?;
        if ServerSettings::words(&after) != words {
            return Err(unusable(&path, TWICE));
        }
        let keeps = ServerSettings::words(&before).is_none();
        edits.push(FileEdit { path, before, after, keeps });
    }
    let after = changed(args, ctx, (settings, &before))?;
    edits.push(FileEdit { path: settings.path.clone(), before, after, keeps: level.is_none() });
    edits.retain(|edit| edit.before != edit.after);
    Ok(edits)
}

/// Why settings cannot be changed that have a key of ours twice.
const TWICE: &str = "a key is there twice, and the agent would read the other one";

/// The settings as they are to be, in which the agent finds the hook, or finds none.
fn changed(
    args: &ConnectArgs,
    ctx: &CliContext,
    (settings, before): (&AgentSettings, &str),
) -> Result<String, Failure> {
    let hook = ["hook", args.agent.dialect().name];
    let words = if args.undo { None } else { Some(program_words(args, ctx, &hook)?) };
    let after = match &words {
        None => settings.disconnected(before),
        Some(words) => settings.connected(before, words, args.level),
    };
    let refuse = |why: &str| unusable(&settings.path, why);
    let after = after.ok_or_else(|| refuse("they are no JSON that a hook fits into"))?;
    if let Some(obstacle) = settings.obstacle(&after).filter(|_| words.is_some()) {
        return Err(refuse(obstacle));
    }
    let is_level = words.is_none() || settings.level(&after) == Some(args.level);
    if !settings.says(&after, words.as_deref()) || !is_level {
        return Err(refuse(TWICE));
    }
    Ok(after)
}

/// The words that run a command of ours under the policy that was named, or is offered.
fn program_words(
    args: &ConnectArgs,
    ctx: &CliContext,
    command: &[&str],
) -> Result<Vec<String>, Failure> {
    let binary = std::env::current_exe().ok().and_then(|path| path.to_str().map(str::to_owned));
    let binary = binary.ok_or_else(|| {
        CodedError::new(Code::EngineFault, "the path of `capsule` cannot be told")
    })?;
    let mut words = vec![binary];
    words.extend(command.iter().map(|word| (*word).to_owned()));
    let offered = (!ctx.has_user_policy()).then(|| OFFERED_POLICY.to_owned());
    if let Some(policy) = args.policy.policy.clone().or(offered) {
        // A policy that cannot be read would deny every call: the user learns it now.
        ctx.load_policy(&args.policy_for(&policy), None)?;
        let is_builtin = policy.starts_with("builtin:");
        let path = ctx.cwd.join(&policy).display().to_string();
        words.push(format!("--policy={}", if is_builtin { policy } else { path }));
    }
    words.extend(args.policy.profile.as_ref().map(|profile| format!("--profile={profile}")));
    if ctx.store_is_explicit {
        words.push(format!("--store={}", ctx.store.display()));
    }
    Ok(words)
}

/// Writes the settings, whole or not at all, and what was there before beside them where that is to be kept; gives the
/// place of that. Settings that are empty are removed.
fn write(edit: &FileEdit) -> io::Result<Option<PathBuf>> {
    // The person may have thought for long, while the agent wrote its state.
    if read_settings(&edit.path)? != edit.before {
        return Err(io::Error::other("another program changed them meanwhile"));
    }
    // A link leads to the file that is meant, which may be on another file system than the link.
    let path = edit.path.canonicalize().unwrap_or_else(|_| edit.path.clone());
    let beside = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    // Settings may hold keys: no copy of them can be read by more users than they can.
    let permissions = fs::metadata(&path).ok().map(|there| there.permissions());
    let keeps = edit.keeps && !edit.before.is_empty();
    let backup = keeps.then(|| beside(".before-capsule"));
    if let Some(backup) = &backup {
        write_again(backup, &edit.before, permissions.as_ref())?;
    }
    if edit.after.is_empty() {
        fs::remove_file(&path)?;
        return Ok(backup);
    }
    let new = beside(".new-by-capsule");
    write_again(&new, &edit.after, permissions.as_ref())?;
    fs::rename(&new, &path)?;
    Ok(backup)
}

/// Writes a file in place of one that an earlier try may have left.
fn write_again(path: &Path, text: &str, permissions: Option<&Permissions>) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => write_new(path, text, permissions),
    }
}

fn unusable(path: &Path, why: &str) -> Failure {
    let message = format!("the settings `{}` cannot be changed: {why}", path.display());
    CodedError::new(Code::Usage, message)
        .with_suggestion("mend the file, or move it away, and connect the agent again")
        .into()
}

/// A connected agent, tried out: its name, whether its hook denies what it cannot read, and what was found.
pub(super) fn check_agents(ctx: &CliContext) -> Vec<(String, EnforcementLevel, String)> {
    let all = DialectName::ALL.iter().map(|name| AgentSettings::of(*name, &ctx.home));
    let connected = all.filter_map(|settings| {
        let text = read_settings(&settings.path).ok()?;
        let level = settings.level(&text)?;
        let name = settings.name.dialect().name;
        let tried = try_connection(&settings, &text, (level, ctx));
        let (held, detail) = match tried {
            // A hook is advisory, and so are denials: the agent decides whether it keeps to them.
            Ok(()) if level == ConnectLevel::Hook => (
                EnforcementLevel::Weaker,
                "connected at level 2 for commands and 1 for files; its hook answers".to_owned(),
            ),
            Ok(()) => (
                EnforcementLevel::Weaker,
                "connected at level 3: its built-in tools are denied, and our server and hook answer; not covered: its start, \
                 memory files, and the processes of other servers"
                    .to_owned(),
            ),
            Err(fault) => (EnforcementLevel::Missing, fault),
        };
        Some((format!("agent: {name}"), held, detail))
    });
    connected.collect()
}

/// Whether what was written for a connection is whole, and answers.
fn try_connection(
    settings: &AgentSettings,
    text: &str,
    (level, ctx): (ConnectLevel, &CliContext),
) -> Result<(), String> {
    let anew = "`capsule connect` writes it anew";
    if let Some(obstacle) = settings.obstacle(text) {
        return Err(format!("its settings have the hook, and {obstacle}"));
    }
    if !settings.hook_line(text).is_some_and(|line| try_hook(&line)) {
        return Err(format!("connected, and its hook does not answer: {anew}"));
    }
    if level == ConnectLevel::Hook {
        return Ok(());
    }
    if settings.is_outdated(text) {
        return Err(format!("connected, for the tools of another version: {anew}"));
    }
    let open = open_tools(text);
    if !open.is_empty() {
        let open = open.join(", ");
        return Err(format!("connected, and these built-in tools are not denied: {open}; {anew}"));
    }
    let servers = read_settings(&ServerSettings::of(&ctx.home).path).unwrap_or_default();
    match ServerSettings::words(&servers).is_some_and(|words| try_server(&words)) {
        true => Ok(()),
        false => Err(format!("connected, and our server is not there or does not answer: {anew}")),
    }
}

/// Whether the line of a hook denies an input that is none, in the agent's form.
fn try_hook(line: &str) -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).stdin(Stdio::null()).stderr(Stdio::null());
    let Ok(done) = shell.output() else { return false };
    let answer = String::from_utf8_lossy(&done.stdout);
    done.status.success() && answer.contains(Code::HookInput.slug())
}

/// Whether a server starts, and ends well with its input. The directory of a project is not at hand here.
fn try_server(words: &[String]) -> bool {
    let Some((program, args)) = words.split_first() else { return false };
    let mut server = Command::new(program);
    server.args(args).current_dir(std::env::temp_dir());
    server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    server.status().is_ok_and(|status| status.success())
}

/// The text of settings; empty where there are none.
fn read_settings(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read,
    }
}
