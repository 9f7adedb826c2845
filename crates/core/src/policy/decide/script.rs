//! A command of the language: every program and every file of it judged as the action that it would
//! be alone, and all of them together by the strictest word.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::action::{
    Action, Facts, FileKind, Part, PathFact, PathTarget, Place, Step, beneath, files, parts,
    patterns, show_argv,
};
use crate::capability::{Capabilities, Capability};
use crate::code::Code;
use crate::confinement::{Confinement, ProcessLimits, WorkspaceAccess};
use crate::decision::{Decision, Verdict};
use crate::language::Word;
use crate::path::{PathProblem, WorkspacePath};
use crate::policy::bounds::{Bounds, Scope};
use crate::policy::commands::{EffectRule, ExecRule, Form};
use crate::policy::decide::everything::everything;
use crate::policy::decide::flow::{EVERYTHING, Flow, input};
use crate::policy::decide::{
    Case, Check, Finding, Judgement, Trace, about, because, files as paths, never, simple, stakes,
    written_by_words,
};
use crate::policy::model::{Constraint, Never, Policy, ToolRule};
use crate::policy::variables::{Kind, kind_of_set};
use crate::programs::{Command, CommandLine, Effect, Effects, PathUse, effects_of_text};
use crate::risk::Risk;
use crate::tool::ToolName;

/// Decides a case that is about a command of the language.
pub(super) fn decide(policy: &Arc<Policy>, case: &Case<'_>, steps: &[Step]) -> Judgement {
    let Action::Command { .. } = case.action else {
        return simple(policy, case);
    };
    let mut all = All::new();
    let exec = policy.tool(case.tool).and_then(|rule| match &rule.constraint {
        Constraint::Exec(exec) => Some((exec, rule)),
        _ => None,
    });
    if let Some((exec, rule)) = exec
        && exec.form == Form::Argv
    {
        let reason = "the policy takes commands as a list of words only";
        let hint = "send `argv`: the program and each argument as a word of its own";
        let finding = Finding::deny(Code::ExecForm, reason);
        all.finding(finding.by(case.tool.as_str(), &rule.source).suggest(Some(hint)));
    }
    let mut flow = Flow::default();
    // What the parts leave to those behind them, as the calls that they are.
    let mut usage = case.usage.clone();
    for own in steps.chunk_by(|one, other| one.number == other.number) {
        for step in likely(own, &flow, case.facts) {
            all.step(policy, &Case { usage: &usage, ..*case }, exec, step, &mut flow);
        }
        let steps = own.get(..1).unwrap_or_default().to_vec();
        let (text, cwd) = (String::new(), PathTarget::parse("."));
        let part = Action::Command { steps, text, cwd, stdin: None, timeout_ms: None };
        usage.wrote(written_by_words(&part));
    }
    let bounds = match (steps, exec) {
        ([step], Some((exec, _))) => all.bounds(policy, exec, (step, case.facts)),
        _ => Bounds::Nothing,
    };
    all.judgement(policy, bounds)
}

/// A pipeline in the folders that it is judged in before the list runs. A `cd` to a folder that is there,
/// or that a part before makes, is taken to succeed, and one to a file to fail. A folder that is left only because
/// a program before a `cd` could fail does not count where the words would lead out of the workspace from it
/// (`mkdir -p build && cd build; cmake ..; cd ..`). Where a part runs otherwise, it is judged there when it is reached.
fn likely<'s>(own: &'s [Step], flow: &Flow, facts: &Facts) -> Vec<&'s Step> {
    let is_folder = |fact: &PathFact| fact.kind == FileKind::Folder;
    let is_there = |path: &WorkspacePath| flow.makes(path) || facts.at(path).is_some_and(is_folder);
    let is_file = |own: &Step| {
        let fact = own.cwd.inside().and_then(|path| facts.at(path));
        !own.is_change() && fact.is_some_and(|fact| fact.kind == FileKind::File)
    };
    let (less, likely): (Vec<_>, Vec<_>) =
        own.iter().partition(|own| is_file(own) || own.unless.iter().any(is_there));
    let likely = if likely.is_empty() { less } else { likely };
    let is_near = |own: &&Step| {
        !leads_away(own) && (own.is_change() || own.cwd.inside().is_some_and(is_there))
    };
    match likely.iter().copied().any(|own| is_near(&own)) {
        true => {
            likely.into_iter().filter(|own| !own.unless.is_empty() || !leads_away(own)).collect()
        }
        false => likely,
    }
}

/// Whether a pipeline goes to a folder outside of the workspace, or has a word that climbs out of it.
fn leads_away(step: &Step) -> bool {
    let words = step.stages.iter().flat_map(|stage| &stage.words).filter_map(Word::plain);
    let mut climbing = words.filter(|word| word.split('/').any(|part| part == ".."));
    step.cwd.inside().is_none() || climbing.any(|word| beneath(&step.cwd, word).inside().is_none())
}

/// What only the text of a stage tells: the variables that it sets, and its patterns.
fn of_stage(
    exec: Option<&ExecRule>,
    part: &Part<'_>,
    step: &Step,
    line: &CommandLine<'_>,
) -> Vec<Finding> {
    let set = part.stage.variables.iter().filter(|(name, value)| is_refused(exec, name, value));
    let here = step.cwd.inside().is_some_and(WorkspacePath::is_root);
    let mut all = patterns(part.stage).filter(|_| here && line.effects().has(Effect::Deletes));
    let whole = all.find(|(_, typed)| {
        let name = typed.trim_start_matches("./");
        let name = name.strip_prefix("**/").unwrap_or(name);
        matches!(name, "*" | ".[!.]*")
    });
    let whole = whole.map(|(_, typed)| everything(&typed));
    set.map(|(name, value)| variable(exec, name, value)).chain(whole).collect()
}

/// Whether a command line may not set a variable to a value: because the policy does not list it, or
/// because of what the value starts, which no list of names can have meant.
pub(super) fn is_refused(exec: Option<&ExecRule>, name: &str, value: &str) -> bool {
    exec.is_none_or(|exec| !exec.env.accepts(name, value))
        || matches!(kind_of_set(name, value), Kind::Code | Kind::Starts | Kind::Never)
}

/// A variable that the policy does not list: one that decides which code runs is as strange as a
/// program text, another one as an option that nobody knows; some are never set, but to a value that
/// starts nothing.
pub(super) fn variable(exec: Option<&ExecRule>, name: &str, value: &str) -> Finding {
    let word = |effect| exec.and_then(|exec| exec.effects.as_ref()).map(|own| own.word(effect).0);
    let kind = kind_of_set(name, value);
    let verdict = match kind {
        Kind::Plain => word(Effect::Unknown),
        Kind::Code => word(Effect::Code),
        Kind::Starts => word(Effect::Starts),
        Kind::Place | Kind::Never => None,
    };
    let reason = match kind {
        Kind::Starts => format!("the value of `{name}` names what is loaded or started"),
        _ => format!("the policy does not list the variable `{name}` for commands to set"),
    };
    let hint = format!("leave `{name}` out");
    match verdict {
        Some(verdict @ (Verdict::Ask | Verdict::AskEach)) => Finding::word(verdict, reason),
        _ => Finding::deny(Code::ExecVariable, reason),
    }
    .suggest(Some(hint))
}

/// A file of a stream, as the command shows it.
fn file(case: &Case<'_>) -> String {
    let sign = if matches!(case.action, Action::Write { .. }) { ">" } else { "<" };
    case.action.path().map(|path| format!("{sign} {}", path.asked)).unwrap_or_default()
}

/// What was found about all parts.
struct All {
    /// That a folder is gone to, where nothing else is done.
    goes: Option<Decision>,
    decisions: Vec<Decision>,
    /// Those of them that are about no part alone.
    own: Vec<Decision>,
    parts: Vec<Trace>,
    bounds: Vec<Bounds>,
    capabilities: Capabilities,
    named: Capabilities,
    risk: Risk,
}

impl All {
    fn new() -> Self {
        let capabilities = Capabilities::of(Capability::ProcExec);
        let (decisions, own, parts, bounds) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let named = Capabilities::NONE;
        Self { goes: None, decisions, own, parts, bounds, capabilities, named, risk: Risk::Low }
    }

    /// One pipeline: its programs, and the files that its streams lead to.
    fn step(
        &mut self,
        policy: &Arc<Policy>,
        case: &Case<'_>,
        rule: Option<(&ExecRule, &ToolRule)>,
        step: &Step,
        flow: &mut Flow,
    ) {
        let Action::Command { timeout_ms, .. } = case.action else { return };
        let exec = rule.map(|(exec, _)| exec);
        let words = exec.and_then(|exec| exec.effects.as_ref());
        if step.is_change() {
            self.folder(case, &step.cwd, rule.map(|(_, rule)| rule));
        }
        flow.fed = Effects::NONE;
        for part in parts(step, *timeout_ms, case.facts) {
            let tool = ToolName::asked(match part.action {
                Action::Write { .. } => "fs.write",
                Action::Read { .. } => "fs.read",
                _ => case.tool.as_str(),
            });
            let own = Case { tool: &tool, action: &part.action, ..*case };
            if let Action::Run { argv, .. } = &part.action {
                let program = argv.first().and_then(|name| case.facts.of_program(name));
                let line = CommandLine::of(argv, program, false);
                let folder = step.folder(case.facts);
                self.fed(policy, &line, flow.reaching(&line, &folder));
                flow.behind(&line, &folder);
                self.input(words, &line, input(&step.stages, part.stage));
                let stage = of_stage(exec, &part, step, &line);
                stage.into_iter().for_each(|finding| self.finding(finding));
                self.part(show_argv(argv), about(policy, &own, Some(&line)));
            } else if policy.tool(&tool).is_some() {
                self.part(file(&own), simple(policy, &own));
            } else {
                self.file(policy, &own, words);
            }
        }
    }

    fn part(&mut self, about: String, judgement: Judgement) {
        let Judgement { decision, bounds, trace, named } = judgement;
        self.parts.push(Trace { about, ..trace });
        self.capabilities = self.capabilities.union(decision.capabilities);
        self.named = self.named.union(named);
        self.risk = self.risk.max(decision.risk);
        self.decisions.push(decision);
        self.bounds.push(bounds);
    }

    fn finding(&mut self, finding: Finding) {
        let decision = finding.decision(Capabilities::of(Capability::ProcExec), Risk::Low);
        self.own.push(decision.clone());
        self.decisions.push(decision);
    }

    /// A file of a stream, where the policy has no rule for the tool that would be about it: it is read
    /// as programs read, and written if programs may write.
    fn file(&mut self, policy: &Arc<Policy>, case: &Case<'_>, words: Option<&EffectRule>) {
        let Some(path) = case.action.path() else { return };
        let found = paths::inside(path, case).err();
        let broken = never::check(policy, case, None);
        found.into_iter().chain(broken).for_each(|finding| self.finding(finding));
        if matches!(case.action, Action::Write { .. }) {
            let reason = format!("`{}` is written", path.asked);
            self.finding(match words.map(|words| words.word(Effect::Writes)) {
                Some((verdict, source)) => {
                    Finding::word(verdict, reason).by("shell.run/effects.writes", source)
                }
                None => Finding::deny(Code::NoRule, "the policy has no rule for `fs.write`"),
            });
            self.capabilities = self.capabilities.with(Capability::FsWrite);
            self.risk = self.risk.max(Risk::Medium);
        }
    }

    /// A folder that the command goes to. Whether it is there says how the list goes on.
    fn folder(&mut self, case: &Case<'_>, to: &PathTarget, rule: Option<&ToolRule>) {
        let real = to.inside().and_then(|path| case.facts.at(path)).map(|fact| &fact.real);
        let places = core::iter::once(&to.place).chain(real);
        let problem = places.into_iter().find_map(|place| match place {
            Place::Outside(problem) => Some(*problem),
            Place::Inside(_) => None,
        });
        match (problem, rule) {
            (Some(problem), _) => self.finding(paths::outside(&to.asked, problem)),
            (None, None) => {}
            (None, Some(rule)) => {
                let goes = Finding::word(Verdict::Allow, "it only goes to a folder");
                let goes = goes.by(case.tool.as_str(), &rule.source);
                self.goes = Some(goes.decision(self.capabilities, Risk::Low));
            }
        }
    }

    /// A text that a program is given to run, on its standard input.
    fn input(&mut self, words: Option<&EffectRule>, line: &CommandLine<'_>, text: Option<String>) {
        let (Some(words), Some(text)) = (words, text) else { return };
        if line.readings.iter().any(|(known, _)| known.is_some_and(|known| known.feeds)) {
            // The words are those of the command line that stands in it.
            if text == EVERYTHING && line.effects().has(Effect::Deletes) {
                self.finding(everything("what `ls` lists"));
            }
            let mut strays = text.split_whitespace().filter_map(PathUse::stray);
            if let Some(stray) = strays.next() {
                self.finding(paths::outside(&stray.path, PathProblem::Absolute));
            }
        }
        let kinds = line.readings.iter().filter_map(|(known, _)| known.and_then(Command::input));
        for (effect, why) in kinds.flat_map(|kind| effects_of_text(kind, &text)) {
            let (verdict, source) = words.word(effect);
            let reason = format!("what `{}` reads {why}", line.shown());
            let id = format!("shell.run/effects.{}", effect.name());
            self.risk = self.risk.max(Risk::Medium);
            self.finding(Finding::word(verdict, reason).by(id, source));
        }
    }

    /// What no program may be fed with.
    fn fed(&mut self, policy: &Policy, line: &CommandLine<'_>, fed: Effects) {
        let into = line.effects();
        let meets = |rule: &&Never| {
            !rule.into.is_empty() && rule.effects.meets(fed) && rule.into.meets(into)
        };
        if let Some(rule) = policy.never.iter().find(meets) {
            let why = because(&rule.because, || format!("rule `{}`", rule.id));
            let reason = format!("what `{}` is fed with: {why}", line.shown());
            let finding = Finding::deny(Code::Never, reason).by(rule.id.clone(), &rule.source);
            self.finding(finding.suggest(rule.suggest.clone()));
        }
    }

    /// The strictest decision, with what all parts need.
    fn judgement(mut self, policy: &Policy, bounds: Bounds) -> Judgement {
        // What its files need is known only now.
        if let Some(finding) = stakes::ceiling(policy, self.capabilities) {
            self.finding(finding);
        }
        let strictest = self.decisions.iter().map(|own| own.verdict).max();
        let decided = self.decisions.into_iter().find(|own| Some(own.verdict) == strictest);
        let decided = decided.or(self.goes).unwrap_or_else(|| {
            let nothing = Finding::deny(Code::NoRule, "there is nothing to decide about");
            nothing.decision(self.capabilities, Risk::Low)
        });
        let decision = Decision { capabilities: self.capabilities, risk: self.risk, ..decided };
        let bounds = if decision.verdict == Verdict::Deny { Bounds::Nothing } else { bounds };
        let checks = alloc::vec![(Check::Command, self.own)];
        let trace = Trace { checks, parts: self.parts, ..Trace::default() };
        Judgement { decision, bounds, trace, named: self.named }
    }

    /// The bounds of a pipeline: its programs share their walls, so each may use what the most
    /// generous rule gives; what they may see and change all their rules have to agree on.
    fn bounds(
        &self,
        policy: &Arc<Policy>,
        exec: &ExecRule,
        (step, facts): (&Step, &Facts),
    ) -> Bounds {
        let mut sum: Option<Confinement> = None;
        let (mut seen, mut written): (Option<Scope>, Option<Scope>) = (None, None);
        let mut too_long = false;
        for own in &self.bounds {
            let Bounds::Run { confinement, clamped, reads, writes, .. } = own else { continue };
            too_long |= clamped;
            sum = Some(match sum {
                Some(sum) => Confinement { limits: most(sum.limits, confinement.limits), ..sum },
                None => *confinement,
            });
            seen = Scope::both(seen, reads.clone());
            written = Scope::both(written, writes.clone());
        }
        // What one of them runs may need what the others could not name; they share their view.
        let opens = |own: &Bounds| match own {
            Bounds::Run { reads, .. } => !reads.as_ref().is_some_and(Scope::closes),
            _ => false,
        };
        if self.bounds.iter().any(opens) {
            seen = seen.map(Scope::opened);
        }
        let Some(mut confinement) = sum else { return Bounds::Nothing };
        let own = step.stages.iter().flat_map(files).filter(|(_, written)| written.is_some());
        let folder = step.folder(facts);
        let targets: Vec<WorkspacePath> =
            own.filter_map(|(path, _)| beneath(&folder, path).inside().cloned()).collect();
        if !targets.is_empty() {
            let nothing = || Scope::new(Arc::clone(policy), alloc::vec![Vec::new()]);
            written = Some(written.unwrap_or_else(nothing).and_also(targets));
        }
        confinement.workspace = match written {
            Some(_) => policy.sandbox.workspace,
            None => WorkspaceAccess::ReadOnly,
        };
        Bounds::Run {
            confinement,
            clamped: too_long,
            environment: Box::new(exec.env.clone()),
            reads: seen,
            writes: written,
        }
    }
}

/// The larger of each bound.
fn most(one: ProcessLimits, other: ProcessLimits) -> ProcessLimits {
    ProcessLimits {
        timeout_ms: one.timeout_ms.max(other.timeout_ms),
        cpu_ms: one.cpu_ms.max(other.cpu_ms),
        memory_bytes: one.memory_bytes.max(other.memory_bytes),
        processes: one.processes.max(other.processes),
        stdout_bytes: one.stdout_bytes.max(other.stdout_bytes),
        stderr_bytes: one.stderr_bytes.max(other.stderr_bytes),
        ..one
    }
}
