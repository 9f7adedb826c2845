//! `capsule connect`: writes our hook into the settings of an agent, or takes it out.

use std::fs::{self, Permissions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use capsule_base::code::Code;
use capsule_base::escape;
use capsule_core::confinement::EnforcementLevel;
use capsule_core::outcome::CodedError;
use similar::TextDiff;

use crate::args::ConnectArgs;
use crate::card;
use crate::context::CliContext;
use crate::failure::Failure;
use crate::hook::{AgentSettings, DialectName};
use crate::new_file::write_new;
use crate::screen::{HINT, SUCCESS, Screen};

/// The policy of an agent whose user has none.
const OFFERED_POLICY: &str = "builtin:developer";

pub(crate) fn run(args: &ConnectArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let settings = AgentSettings::of(args.agent, &ctx.home);
    let before = settings.read().map_err(|error| unusable(&settings.path, &error.to_string()))?;
    let after = changed(args, ctx, (&settings, &before))?;
    let name = args.agent.dialect().name;
    if after == before {
        let state = if args.undo { "is not connected" } else { "is connected already" };
        screen.eprint(&format!("{SUCCESS}✔{SUCCESS:#} {name} {state}"));
        return Ok(0);
    }
    let shown = settings.path.display().to_string();
    let diff = TextDiff::from_lines(&before, &after);
    let diff = diff.unified_diff().header(&shown, &shown).to_string();
    screen.print_lines(&escape::block(&diff).lines().map(str::to_owned).collect::<Vec<_>>())?;
    if args.print {
        return Ok(0);
    }
    let answer = card::choose(screen, "y: write this · anything else: leave it as it is ");
    if answer.is_some_and(|answer| answer != "y") {
        screen.eprint("nothing was written");
        return Ok(0);
    }
    // Settings with our hook are not what was there before.
    let keeps = !before.is_empty() && settings.hook_line(&before).is_none();
    let backup = write(&settings.path, keeps.then_some(before.as_str()), &after)
        .map_err(|error| unusable(&settings.path, &error.to_string()))?;
    if let Some(backup) = backup {
        let backup = escape::line(&backup.display().to_string()).into_owned();
        screen.eprint(&format!("what was there before is in `{backup}`"));
    }
    if args.undo {
        screen.eprint(&format!("{SUCCESS}✔{SUCCESS:#} {name} is not connected any more"));
        return Ok(0);
    }
    screen.eprint(&format!("{SUCCESS}✔{SUCCESS:#} {name} is connected"));
    for line in settings.coverage() {
        screen.eprint(&format!("  {line}"));
    }
    screen.eprint(&format!(
        "{HINT}try it{HINT:#}: capsule doctor · take it back: capsule connect {name} --undo"
    ));
    Ok(0)
}

/// The settings as they are to be, in which the agent finds the hook, or finds none.
fn changed(
    args: &ConnectArgs,
    ctx: &CliContext,
    (settings, before): (&AgentSettings, &str),
) -> Result<String, Failure> {
    let words = if args.undo { None } else { Some(hook_words(args, ctx)?) };
    let after = match &words {
        None => settings.disconnected(before),
        Some(words) => settings.connected(before, words),
    };
    let refuse = |why: &str| unusable(&settings.path, why);
    let after = after.ok_or_else(|| refuse("they are no JSON that a hook fits into"))?;
    if let Some(obstacle) = settings.obstacle(&after).filter(|_| words.is_some()) {
        return Err(refuse(obstacle));
    }
    if !settings.says(&after, words.as_deref()) {
        return Err(refuse("a key is there twice, and the agent would read the other one"));
    }
    Ok(after)
}

/// The words that run the hook.
fn hook_words(args: &ConnectArgs, ctx: &CliContext) -> Result<Vec<String>, Failure> {
    let binary = std::env::current_exe().ok().and_then(|path| path.to_str().map(str::to_owned));
    let binary = binary.ok_or_else(|| {
        CodedError::new(Code::EngineFault, "the path of `capsule` cannot be told")
    })?;
    let mut words = vec![binary, "hook".to_owned(), args.agent.dialect().name.to_owned()];
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
fn write(path: &Path, before: Option<&str>, after: &str) -> io::Result<Option<PathBuf>> {
    // A link leads to the file that is meant, which may be on another file system than the link.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
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
    let backup = before.map(|before| (beside(".before-capsule"), before));
    if let Some((backup, before)) = &backup {
        write_again(backup, before, permissions.as_ref())?;
    }
    let backup = backup.map(|(backup, _)| backup);
    if after.is_empty() {
        fs::remove_file(&path)?;
        return Ok(backup);
    }
    let new = beside(".new-by-capsule");
    write_again(&new, after, permissions.as_ref())?;
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
        let text = settings.read().ok()?;
        let line = settings.hook_line(&text)?;
        let obstacle = settings.obstacle(&text);
        Some((settings, line, obstacle))
    });
    connected
        .map(|(settings, line, obstacle)| {
            let name = settings.name.dialect().name;
            let (level, detail) = match (obstacle, try_hook(&line, name)) {
                (Some(obstacle), _) => (
                    EnforcementLevel::Missing,
                    format!("its settings have the hook, and {obstacle}"),
                ),
                // A hook is advisory: the agent decides whether it asks.
                (None, true) => (
                    EnforcementLevel::Weaker,
                    "connected at level 2 for commands and 1 for files; its hook answers"
                        .to_owned(),
                ),
                (None, false) => (
                    EnforcementLevel::Missing,
                    "connected, and its hook does not answer: `capsule connect` writes it anew"
                        .to_owned(),
                ),
            };
            (format!("agent: {name}"), level, detail)
        })
        .collect()
}

/// Whether the line of a hook denies an input that is none, in the agent's form.
fn try_hook(line: &str, name: &str) -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).stdin(Stdio::null()).stderr(Stdio::null());
    let Ok(done) = shell.output() else { return false };
    let answer = String::from_utf8_lossy(&done.stdout);
    done.status.success() && answer.contains(Code::HookInput.slug()) && !name.is_empty()
}
