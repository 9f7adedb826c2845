//! `capsule doctor`: what this machine can hold, layer by layer, each tried out.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use capsule_base::digest::Digest;
use capsule_base::escape;
use capsule_base::units::counted;
use capsule_core::capability::Capability;
use capsule_core::confinement::{
    EnforcementLevel, LayerStatus, LimitStatus, NOT_TRIED, ResourceLimit, SandboxLayer,
    SandboxStatus, SandboxTier,
};
use capsule_core::decision::Verdict;
use capsule_core::journal::STAGED_SUFFIX;
use capsule_core::policy::Profile;
use capsule_report::{fit_hanging, width};
use capsule_runtime::{FoundToolchain, survey_toolchains};
use capsule_sandbox::{Executor, SandboxBackend as _, SelfTestResult};
use capsule_store::{Checkpoint, SignatureCheck, Signer, Store};
use rustix::process::{getegid, geteuid};
use serde_json::{Value, json};

use crate::command::connect::check_agents;
use crate::context::CliContext;
use crate::failure::Failure;
use crate::isolation::isolation;
use crate::screen::{ERROR, SUCCESS, Screen, WARNING};

/// How many runs with staged changes are named.
const MAX_SHOWN_RUNS: usize = 5;

/// One thing that was looked at.
struct Check {
    name: String,
    level: EnforcementLevel,
    detail: String,
}

/// From how many columns on all names stand in one column of a window, in front of what is told of them.
const WIDE_WINDOW: usize = 110;
/// The columns of a name below that. What is told of a longer one, or has a word for which there is no room, begins in the next line.
const SHORT_NAME: usize = 22;
/// The columns of the word in front of a name.
const WORD_COLUMNS: usize = 11;
/// The columns in front of what begins in a line of its own.
const BELOW_COLUMNS: usize = WORD_COLUMNS + 3;

impl Check {
    /// The lines of it, its name in so many columns; in a window, what has no room goes on below itself.
    fn lines(&self, names: usize, window: Option<usize>) -> Vec<String> {
        let (style, word) = match self.level {
            EnforcementLevel::Held => (SUCCESS, "✔ ok"),
            EnforcementLevel::Weaker => (WARNING, "⚠ weaker"),
            EnforcementLevel::Missing if self.detail.starts_with(NOT_TRIED) => {
                (WARNING, "· not tried")
            }
            EnforcementLevel::Missing => (ERROR, "✖ missing"),
        };
        let detail = escape::line(&self.detail).into_owned();
        let head = format!("{style}{word:<WORD_COLUMNS$}{style:#} {:<names$}", self.name);
        let line = format!("{head}  {detail}");
        let Some(columns) = window else { return vec![line.trim_end().to_owned()] };
        let indent = WORD_COLUMNS + 1 + names + 2;
        let has_room = |word: &str| indent + width(word) <= columns;
        let is_beside = width(&self.name) <= names && detail.split(' ').all(has_room);
        if is_beside || detail.is_empty() {
            return fit_hanging(line.trim_end(), columns, indent);
        }
        let below = format!("{:BELOW_COLUMNS$}{detail}", "");
        let head = head.trim_end().to_owned();
        std::iter::once(head).chain(fit_hanging(&below, columns, BELOW_COLUMNS)).collect()
    }
}

pub(crate) fn run(ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let mut checks = Vec::new();
    let tier = check_sandbox(&mut checks);
    checks.extend(
        Profile::BUILTIN.iter().filter_map(|text| check_profile(&Profile::builtin(text)?, tier)),
    );
    if let Some(tier) = tier {
        for SelfTestResult { name, passed, detail } in Executor::self_test() {
            let hold = if passed { EnforcementLevel::Held } else { EnforcementLevel::Missing };
            checks.push(Check { name: format!("try: {name}"), level: hold, detail });
        }
        checks.push(check_staging(ctx, tier));
        checks.extend(check_owners(&ctx.start_directory()));
    }
    checks.insert(0, check_kernel());
    checks.push(check_isolation());
    checks.extend(survey_toolchains(&ctx.home, None).iter().map(check_toolchain));
    checks.push(check_store(ctx));
    checks.push(check_key(ctx));
    checks.push(check_pending(ctx));
    checks.extend(check_agents(ctx).into_iter().map(|(name, level, detail)| Check {
        name,
        level,
        detail,
    }));
    if screen.json {
        let list: Vec<Value> = checks
            .iter()
            .map(|check| json!({ "name": check.name, "hold": check.level, "detail": check.detail }))
            .collect();
        screen.print_json(
            &json!({ "ok": worst_level(&checks) != EnforcementLevel::Missing, "checks": list }),
        )?;
    } else {
        let longest = checks.iter().map(|check| width(&check.name)).max().unwrap_or(0);
        let names = match screen.window() {
            Some(columns) if columns < WIDE_WINDOW => longest.min(SHORT_NAME),
            _ => longest,
        };
        for check in &checks {
            screen.print_lines(&check.lines(names, screen.window()))?;
        }
    }
    Ok(if worst_level(&checks) == EnforcementLevel::Missing { 8 } else { 0 })
}

/// Whether Capsule itself, and the agent that uses it, is apart from the machine.
fn check_isolation() -> Check {
    let (level, detail) = match isolation() {
        Some(place) => (EnforcementLevel::Held, format!("Capsule itself runs in {place}")),
        None => (
            EnforcementLevel::Weaker,
            "Capsule itself runs on this machine, as far as is known; `capsule sandbox` confines an agent as a whole"
                .to_owned(),
        ),
    };
    Check { name: "isolation".into(), level, detail }
}

fn worst_level(checks: &[Check]) -> EnforcementLevel {
    checks.iter().map(|check| check.level).min().unwrap_or_default()
}

/// The walls; gives their tier, if commands can be run behind any.
fn check_sandbox(checks: &mut Vec<Check>) -> Option<SandboxTier> {
    let walls: Result<SandboxStatus, String> = Executor::start()
        .and_then(|mut executor| executor.sandbox_status().cloned())
        .map_err(|error| error.to_string());
    match walls {
        Ok(status) => {
            let reached = status.meets(status.tier).then_some(status.tier);
            checks.push(check_tier(&status));
            for layer in &status.layers {
                let name = layer.layer.name().to_owned();
                checks.push(Check { name, level: layer.level, detail: layer.detail.clone() });
            }
            for limit in &status.limits {
                checks.push(check_limit(limit));
            }
            reached
        }
        Err(why) => {
            let detail = format!("{why}; commands are refused with exit 8");
            checks.push(Check { name: "sandbox".into(), level: EnforcementLevel::Missing, detail });
            None
        }
    }
}

/// Whether runs under a profile begin here, and what becomes of their commands. What else a profile
/// wants, a staged workspace or a clean copy, is a matter of the policy and the folder.
fn check_profile(profile: &Profile, tier: Option<SandboxTier>) -> Option<Check> {
    let name = format!("profile: {}", profile.name);
    let runs = profile.verdict_for(Capability::ProcExec) != Verdict::Deny;
    let bare = profile.verdict_for(Capability::ProcUnconfined) != Verdict::Deny;
    let (hold, detail) = match (tier, profile.requires.sandbox) {
        (Some(SandboxTier::Full), _) if runs => {
            (EnforcementLevel::Held, "starts; commands are confined")
        }
        (_, false) if !runs => (EnforcementLevel::Held, "starts; it runs no commands"),
        (Some(_), true) => (
            EnforcementLevel::Weaker,
            "starts only by policies with `sandbox.floor: landlock`: exit 8 else",
        ),
        (Some(_), false) => (
            EnforcementLevel::Weaker,
            "starts; commands only by policies with `sandbox.floor: landlock`",
        ),
        (None, true) => {
            (EnforcementLevel::Missing, "does not start: no isolation is enforced here (exit 8)")
        }
        (None, false) if bare => {
            let detail = "starts; commands are refused, but for those whose rules name \
                          `proc.unconfined` by policies with `sandbox.require: false`: each is asked, \
                          and nothing confines it";
            (EnforcementLevel::Missing, detail)
        }
        (None, false) => (EnforcementLevel::Missing, "starts; commands are refused"),
    };
    Some(Check { name, level: hold, detail: detail.into() })
}

/// The tier that the layers add up to, and how to get the higher one.
fn check_tier(status: &SandboxStatus) -> Check {
    let name = String::from("tier");
    // Without Landlock neither tier can be had, whatever else is missing.
    let gap = status.missing_layer(SandboxTier::Basic).or(status.missing_layer(SandboxTier::Full));
    let remedy = gap.map(remedy_text).unwrap_or_default();
    let (hold, detail) = match status.tier {
        SandboxTier::Full if gap.is_none() => (EnforcementLevel::Held, "namespaces".to_owned()),
        SandboxTier::Basic if status.meets(SandboxTier::Basic) => {
            let served = "landlock: only policies with `sandbox.floor: landlock` are served";
            (EnforcementLevel::Weaker, format!("{served}; for namespaces: {remedy}"))
        }
        _ => {
            (EnforcementLevel::Missing, format!("none: commands are refused with exit 8; {remedy}"))
        }
    };
    Check { name, level: hold, detail }
}

/// A toolchain or package cache that is there, and whether `toolchains: [NAME]` would show it to commands.
fn check_toolchain(found: &FoundToolchain) -> Check {
    let name = format!("toolchain: {}", found.name);
    match &found.shown {
        Ok(paths) => {
            let parts = paths.iter().filter_map(|path| path.strip_prefix(&found.home).ok());
            let parts: Vec<_> = parts.map(|part| part.display().to_string()).collect();
            let parts = parts.join(", ");
            let shown = if parts.is_empty() { String::new() } else { format!(": {parts}") };
            let detail = format!("{}{shown}", found.home.display());
            Check { name, level: EnforcementLevel::Held, detail }
        }
        Err(why) => Check { name, level: EnforcementLevel::Weaker, detail: why.clone() },
    }
}

/// What the owner of the machine can do about a layer that is missing. In containers the two filters
/// come first, since what they rule out looks like a setting of the kernel.
fn remedy_text(gap: &LayerStatus) -> String {
    let setting = |name: &str| {
        let value = std::fs::read_to_string(Path::new("/proc/sys").join(name));
        value.unwrap_or_default().trim().to_owned()
    };
    let remedy = match gap.layer {
        SandboxLayer::SeparateUsers if setting("user/max_user_namespaces") == "0" => {
            "`sysctl user.max_user_namespaces=10000`"
        }
        SandboxLayer::SeparateUsers if setting("kernel/unprivileged_userns_clone") == "0" => {
            "`sysctl kernel.unprivileged_userns_clone=1`"
        }
        SandboxLayer::SeparateUsers | SandboxLayer::SeparateFiles
            if setting("kernel/apparmor_restrict_unprivileged_userns") == "1" =>
        {
            let program = std::env::current_exe().unwrap_or_else(|_| "/usr/bin/capsule".into());
            return apparmor_remedy(&program);
        }
        SandboxLayer::SeparateUsers | SandboxLayer::SeparateFiles => {
            "start the container with a seccomp profile that allows `unshare`, `clone3` and `mount` \
             (`--security-opt seccomp=FILE`), and without masked parts of /proc \
             (`--security-opt systempaths=unconfined`)"
        }
        SandboxLayer::AccessRules => {
            "a kernel of Linux 6.12 or newer, with `landlock` in the boot option `lsm=`"
        }
        _ => "the layer below that is missing says why",
    };
    remedy.to_owned()
}

/// The lines that give this program a profile of AppArmor with which it may use user namespaces.
fn apparmor_remedy(program: &Path) -> String {
    format!(
        "as root, type `printf 'abi <abi/4.0>,\\nprofile capsule \"%s\" flags=(unconfined) {{ userns, }}\\n' \
         '{}' > /etc/apparmor.d/capsule` and `apparmor_parser -r /etc/apparmor.d/capsule`",
        escape::line(&program.display().to_string())
    )
}

/// A limit, and what the owner of the machine can do where it is only kept by looking.
fn check_limit(status: &LimitStatus) -> Check {
    let remedy = match status.limit {
        _ if status.level == EnforcementLevel::Held => "",
        ResourceLimit::Memory | ResourceLimit::Processes => {
            "; for a control group: start Capsule by `systemd-run --user --scope`, or its container with \
             a cgroup that it may write"
        }
        ResourceLimit::Cpu => {
            "; for an exact sum: a control group of version 2, as `systemd-run --user --scope` gives, or a \
             container that may write one"
        }
        ResourceLimit::Tmp => "; a file system of its own takes namespaces",
        _ => "",
    };
    let detail = format!("{}{remedy}", status.detail);
    Check { name: format!("limit: {}", status.limit.name()), level: status.level, detail }
}

/// Whether commands could be let write. Where not, policies that let none write are as good as ever.
fn check_staging(ctx: &CliContext, tier: SandboxTier) -> Check {
    // Where the store will be, if it is not there yet.
    let place = ctx.store.ancestors().skip(1).find(|folder| folder.is_dir());
    let place = place.unwrap_or(Path::new("/"));
    let SelfTestResult { name, passed, detail } = Executor::try_staging(place);
    let name = format!("try: {name}");
    // What holds for a folder of ours may not for the workspace, in which something may be mounted.
    let workspace = ctx.start_directory();
    let laid = if passed { Executor::try_overlay(place, &workspace) } else { Ok(()) };
    let (detail, remedy) = match (passed, laid) {
        (true, Ok(())) => return Check { name, level: EnforcementLevel::Held, detail },
        (true, Err(why)) => {
            let detail = format!("{why}, over {}", workspace.display());
            (detail, "let nothing be mounted in the workspace")
        }
        (false, _) => (detail, overlay_hint(tier)),
    };
    let copied = Executor::try_copying(place);
    let meanwhile = match copied.passed {
        true => "by a copy of the workspace, which takes time and space".into(),
        false => format!("runs whose policy has `writes` change nothing ({})", copied.detail),
    };
    Check {
        name,
        level: EnforcementLevel::Weaker,
        detail: format!("{meanwhile}: {detail}; {remedy}"),
    }
}

/// What of the workspace commands cannot change, whoever may outside: behind the walls there is one user with
/// one group, and root is one as any other. Nothing where there is no such file.
fn check_owners(workspace: &Path) -> Option<Check> {
    let item = (geteuid().as_raw(), getegid().as_raw());
    let (mut folders, mut left) = (vec![workspace.to_owned()], MAX_OWNER_FILES);
    let (mut count, mut first) = (0_usize, None);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten().take(left) {
            left = left.saturating_sub(1);
            let Ok(found) = entry.metadata() else { continue };
            if is_of_others((found.uid(), found.gid()), item) {
                count = count.saturating_add(1);
                first.get_or_insert_with(|| entry.path());
            }
            if found.is_dir() && entry.file_name() != ".git" {
                folders.push(entry.path());
            }
        }
    }
    let first = first?;
    let (whose, remedy) = match item.0 {
        0 => ("another user", "run Capsule as that user, or give them to root (`chown`)"),
        _ => ("another group", "give them to your own group (`chgrp`)"),
    };
    let first = first.strip_prefix(workspace).unwrap_or(&first).display();
    let most = if left == 0 { "at least " } else { "" };
    let detail = format!(
        "files of {whose}: {most}{count} (`{first}`), which commands cannot change; {remedy}"
    );
    Some(Check { name: "workspace: owners".into(), level: EnforcementLevel::Weaker, detail })
}

/// How many files are looked at.
const MAX_OWNER_FILES: usize = 20_000;

/// Whether commands of this user and group cannot change a file that the user may otherwise: root one of
/// another user, a user one of a further group, to which nothing behind the walls corresponds. What this user
/// may not change anyway is no matter of the walls.
const fn is_of_others((user, group): (u32, u32), item: (u32, u32)) -> bool {
    match item.0 {
        0 => user != 0,
        _ => user == item.0 && group != item.1,
    }
}

/// What helps where changes are laid over no folder at all.
const fn overlay_hint(tier: SandboxTier) -> &'static str {
    match tier {
        SandboxTier::Full => {
            "a store on a local disk (`--store`) helps where this one's file system holds no overlay"
        }
        SandboxTier::Basic => "laying anything over anything takes namespaces",
    }
}

/// Changes that nobody has applied or discarded, those of crashed runs among them. A folder of a run
/// that the store does not know can be named by no command.
fn check_pending(ctx: &CliContext) -> Check {
    let folder = capsule_store::sidecar_path(&ctx.store, STAGED_SUFFIX);
    let names = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    // One that begins otherwise is being removed.
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    let store = Store::open_read_only(&ctx.store).ok();
    let is_known = |name: &String| {
        store.as_ref().is_some_and(|store| store.find(name).is_ok_and(|id| id == *name))
    };
    let (runs, strays): (Vec<_>, Vec<_>) = names.into_iter().partition(is_known);
    let label = |run: &String| store.as_ref().map_or_else(|| run.clone(), |store| store.label(run));
    let mut detail = match runs.as_slice() {
        [] => String::from("no changes wait"),
        [one] => format!("1 run: capsule changes {}", label(one)),
        runs => {
            let shown: Vec<String> = runs.iter().take(MAX_SHOWN_RUNS).map(label).collect();
            let more = match runs.len().saturating_sub(MAX_SHOWN_RUNS) {
                0 => String::new(),
                more => format!(" · and {more} more"),
            };
            format!("{} runs: capsule changes {}{more}", runs.len(), shown.join(" · "))
        }
    };
    if let Some(first) = strays.first() {
        let (count, first) = (strays.len(), folder.join(first));
        let folders = counted(count, "folder");
        let told = format!("; {folders} of no run of the store, to be removed by hand");
        detail = format!("{detail}{told}: {}", first.display());
    }
    let hold = if strays.is_empty() { EnforcementLevel::Held } else { EnforcementLevel::Weaker };
    Check { name: "staged changes".into(), level: hold, detail }
}

/// The kernel that everything else rests on. It is told, not judged: the layers below are.
fn check_kernel() -> Check {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = match release.trim() {
        "" => "unknown",
        release => release,
    };
    let cgroup = match Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
        true => "cgroup v2",
        false => "cgroup v1 or none",
    };
    let detail = format!("{} {release} · {cgroup}", std::env::consts::OS);
    Check { name: "kernel".into(), level: EnforcementLevel::Held, detail }
}

/// The key that signs the record: it is there, its own alone, and what it signs is known by its public line.
fn check_key(ctx: &CliContext) -> Check {
    let name = String::from("signing key");
    let signer = match Signer::load(&ctx.store) {
        Ok(Some(signer)) => signer,
        Ok(None) => {
            let detail = "there is none, so nothing is signed: `capsule init` makes one".into();
            return Check { name, level: EnforcementLevel::Weaker, detail };
        }
        Err(error) => {
            let detail = format!("{error}; no run begins until it is usable or put away");
            return Check { name, level: EnforcementLevel::Missing, detail };
        }
    };
    let public = signer.verifier();
    let trial = Checkpoint { origin: public.name().into(), size: 0, root: Digest::of(b"") };
    let (hold, told) = match signer.sign(&trial).verify(public) {
        SignatureCheck::Valid => (EnforcementLevel::Held, "signs and verifies"),
        SignatureCheck::Invalid | SignatureCheck::Absent => {
            (EnforcementLevel::Missing, "does not verify what it signs")
        }
    };
    let newest = Store::open_read_only(&ctx.store).and_then(|store| store.newest_checkpoint());
    let newest = newest.ok().flatten().and_then(|note| note.checkpoint());
    let newest = newest.map_or_else(
        || "nothing is signed yet".to_owned(),
        |checkpoint| format!("the newest checkpoint is of {}", counted(checkpoint.size, "event")),
    );
    Check { name, level: hold, detail: format!("{told}; {newest}; {public}") }
}

fn check_store(ctx: &CliContext) -> Check {
    let place = ctx.store.display();
    let name = String::from("store");
    // What this user cannot see is not the same as what is not there.
    match ctx.store.try_exists() {
        Ok(true) => {}
        Ok(false) => {
            let detail = format!("{place} is made by the first run");
            return Check { name, level: EnforcementLevel::Held, detail };
        }
        Err(error) => {
            let detail = format!("{place} cannot be reached: {error}");
            return Check { name, level: EnforcementLevel::Missing, detail };
        }
    }
    let verified = Store::open_read_only(&ctx.store).and_then(|store| store.verify(None));
    match verified {
        Ok(Ok(proof)) => {
            let detail = format!("{place}: {}, as written", counted(proof.leaves, "event"));
            Check { name, level: EnforcementLevel::Held, detail }
        }
        Ok(Err(fault)) => {
            let detail = format!("{place}: {}: {}", fault.place, fault.what);
            Check { name, level: EnforcementLevel::Missing, detail }
        }
        Err(error) => Check { name, level: EnforcementLevel::Missing, detail: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_others_are_known() {
        for (file, item, others) in [
            ((0, 0), (0, 0), false),
            ((0, 7), (0, 0), false),
            ((1_000, 0), (0, 0), true),
            ((1_000, 1_000), (1_000, 1_000), false),
            ((1_000, 2_000), (1_000, 1_000), true),
            ((1_001, 2_000), (1_000, 1_000), false),
        ] {
            assert_eq!(is_of_others(file, item), others, "{file:?} {item:?}");
        }
    }
}
