//! A command of the language: every program and every file of it judged as the action that it would
//! be alone, and all of them together by the strictest word.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::action::{
    Action, CommandStep, Facts, FileKind, PathFact, PathLocation, PathTarget, SubAction,
    is_everything, redirect_files, sub_actions, target_from,
};
use crate::capability::{Capabilities, Capability};
use crate::confinement::{Confinement, WorkspaceAccess};
use crate::decision::{Decision, Verdict};
use crate::policy::commands::{CommandForm, EffectRule, ExecRule};
use crate::policy::decide::call::{decide_single, evaluate_call};
use crate::policy::decide::check::{Finding, PolicyInput, reason_or};
use crate::policy::decide::command_line::parse_argv;
use crate::policy::decide::data_flow::{ANY_NAME, DataFlow, literal_stdin};
use crate::policy::decide::instructions::written_by_words;
use crate::policy::decide::judgement::{DecisionTrace, Judgement, PolicyCheck};
use crate::policy::decide::variables::{is_refused, variable_finding};
use crate::policy::decide::workspace_wipe::whole_workspace;
use crate::policy::decide::{files as paths, hard_deny, hosts, risk};
use crate::policy::model::{HardDenyRule, Policy, ToolRule};
use crate::policy::restrictions::{HostScope, PathScope, Restrictions};
use crate::risk::Risk;
use crate::tool::ToolName;
use capsule_base::code::Code;
use capsule_base::path::{PathProblem, WorkspacePath};
use capsule_base::root_names::RootNames;
use capsule_command::argv::show_argv;
use capsule_command::endless_output::endless_output;
use capsule_command::shell_syntax::{OUTPUT_PLACEHOLDER, PipelineStage, ShellWord};
use capsule_command::specs::{CommandLine, CommandSpec, Effect, Effects, PathUse, effects_of_text};

/// Decides a case that is about a command of the language.
pub(super) fn decide(
    policy: &Arc<Policy>,
    input: &PolicyInput<'_>,
    steps: &[CommandStep],
) -> Judgement {
    let mut all = CombinedDecision::new();
    let exec = policy.exec_rule(input.tool).zip(policy.tool(input.tool));
    if let Some((exec, rule)) = exec
        && exec.form == CommandForm::Argv
    {
        let reason = "the policy takes commands as a list of words only";
        let hint = "send `argv`: the program and each argument as a word of its own";
        let finding = Finding::deny(Code::ExecForm, reason);
        all.add_finding(
            finding.under_rule(input.tool.as_str(), &rule.source).with_suggestion(Some(hint)),
        );
    }
    let mut flow = DataFlow::default();
    // What the parts leave to those behind them, as the calls that they are.
    let mut usage = input.usage.clone();
    for item in steps.chunk_by(|one, other| one.number == other.number) {
        for step in likely(item, &flow, input.facts) {
            all.step(policy, &PolicyInput { usage: &usage, ..*input }, exec, step, &mut flow);
        }
        for step in item {
            let (steps, text, cwd) =
                (alloc::vec![step.clone()], String::new(), PathTarget::parse("."));
            let part = Action::Command { steps, text, cwd, stdin: None, timeout_ms: None };
            usage.wrote(written_by_words(&part, &input.facts.root_names));
        }
    }
    let bounds = match (steps, exec) {
        ([step], Some((exec, _))) => all.bounds(policy, exec, (step, input.facts)),
        _ => Restrictions::Nothing,
    };
    all.judgement(policy, bounds)
}

/// A pipeline in the folders that it is judged in before the list runs. A `cd` to a folder that is there,
/// or that a part before makes, is taken to succeed, and one to a file to fail. A folder that is left only because
/// a program before a `cd` could fail does not count where the words would lead out of the workspace from it
/// (`mkdir -p build && cd build; cmake ..; cd ..`). Where a part runs otherwise, it is judged there when it is reached.
fn likely<'s>(item: &'s [CommandStep], flow: &DataFlow, facts: &Facts) -> Vec<&'s CommandStep> {
    let is_folder = |fact: &PathFact| fact.kind == FileKind::Directory;
    let is_there =
        |path: &WorkspacePath| flow.makes(path) || facts.path_fact(path).is_some_and(is_folder);
    let is_file = |step: &CommandStep| {
        let fact = step.cwd.inside().and_then(|path| facts.path_fact(path));
        !step.is_cd() && fact.is_some_and(|fact| fact.kind == FileKind::File)
    };
    let (less, likely): (Vec<_>, Vec<_>) =
        item.iter().partition(|step| is_file(step) || step.unless.iter().any(is_there));
    let likely = if likely.is_empty() { less } else { likely };
    let is_near = |step: &&CommandStep| {
        !leads_away(step, &facts.root_names)
            && (step.is_cd() || step.cwd.inside().is_some_and(is_there))
    };
    match likely.iter().copied().any(|step| is_near(&step)) {
        true => {
            let stays = |step: &&CommandStep| !leads_away(step, &facts.root_names);
            likely.into_iter().filter(|step| !step.unless.is_empty() || stays(step)).collect()
        }
        false => likely,
    }
}

/// Whether a pipeline goes to a folder outside of the workspace, or has a word that climbs out of it.
fn leads_away(step: &CommandStep, names: &RootNames) -> bool {
    let words = step.stages.iter().flat_map(|stage| &stage.words).filter_map(ShellWord::literal);
    let mut climbing = words.filter(|word| word.split('/').any(|part| part == ".."));
    step.cwd.inside().is_none()
        || climbing.any(|word| target_from(&step.cwd, word, names).inside().is_none())
}

/// What a command may do whose output is put into another.
const OUTPUT_SOURCES: Effects = Effects::of(Effect::Reads).with(Effect::Opens);
/// What a command may do whose words come from another.
const OUTPUT_TARGETS: Effects = OUTPUT_SOURCES.with(Effect::Writes).with(Effect::Interactive);
/// What it may do where these words are numbers.
const OUTPUT_COUNTED: Effects = OUTPUT_TARGETS.with(Effect::Runs);

/// What only the text of a stage tells: the variables that it sets, and its patterns.
fn check_stage(
    exec: Option<&ExecRule>,
    part: &SubAction<'_>,
    (step, names): (&CommandStep, &RootNames),
    line: &CommandLine<'_>,
) -> Vec<Finding> {
    let effects = line.effects();
    let set = part.stage.variables.iter();
    let set = set.filter(|(name, value)| is_refused(exec, effects, (name, value)));
    let mut words = part.stage.words.iter().filter(|_| line.effects().contains(Effect::Deletes));
    let whole = words.find(|word| is_everything(word, &step.cwd, names));
    let whole = whole.map(|word| whole_workspace(&word.unexpanded()));
    let inputs = part.stage.redirects.iter().filter(|redirect| redirect.is_input());
    // Which of them is read hangs on their order, and one alone is ever meant.
    let two_inputs = (inputs.count() > 1).then(|| {
        Finding::deny(Code::ExecNotInLanguage, "a program is given two texts to read")
            .with_suggestion(Some("leave one of them out"))
    });
    let set = set.map(|(name, value)| variable_finding(exec, name, value));
    set.chain(whole).chain(two_inputs).collect()
}

/// Why a program cannot run beside the parts behind it. All of them share a loopback, and so would share a proxy; and
/// whose change something is, is not known in the workspace itself.
fn check_background(policy: &Policy, line: &CommandLine<'_>) -> Option<Finding> {
    let is_direct = policy.sandbox.workspace == WorkspaceAccess::Direct;
    (is_direct || !hosts::of_line(line).hosts.is_empty()).then(|| {
        let reason =
            "what runs in the background reaches no hosts, and changes a staged workspace alone";
        Finding::deny(Code::ExecNotInLanguage, reason).with_suggestion(Some("leave the `&` out"))
    })
}

/// A file of a stream, as the command shows it.
fn stream_file(input: &PolicyInput<'_>) -> String {
    let sign = if matches!(input.action, Action::Write { .. }) { ">" } else { "<" };
    input.action.path().map(|path| format!("{sign} {}", path.asked)).unwrap_or_default()
}

/// What was found about all parts.
#[derive(Default)]
struct CombinedDecision {
    /// That a folder is gone to, where nothing else is done.
    goes: Option<Decision>,
    decisions: Vec<Decision>,
    /// Those of them that are about no part alone.
    whole: Vec<Decision>,
    parts: Vec<DecisionTrace>,
    restrictions: Vec<Restrictions>,
    capabilities: Capabilities,
    named_capabilities: Capabilities,
    risk: Risk,
}

impl CombinedDecision {
    fn new() -> Self {
        let capabilities = Capabilities::of(Capability::ProcExec);
        Self { capabilities, risk: Risk::Low, ..Self::default() }
    }

    /// One pipeline: its programs, and the files that its streams lead to.
    fn step(
        &mut self,
        policy: &Arc<Policy>,
        case: &PolicyInput<'_>,
        rule: Option<(&ExecRule, &ToolRule)>,
        step: &CommandStep,
        flow: &mut DataFlow,
    ) {
        let Action::Command { timeout_ms, .. } = case.action else { return };
        let exec = rule.map(|(exec, _)| exec);
        let words = exec.and_then(|exec| exec.effects.as_ref());
        if step.is_cd() {
            self.add_directory(case, &step.cwd, rule.map(|(_, rule)| rule));
        }
        flow.input_effects = Effects::NONE;
        if let Some(name) = endless_output(&step.stages) {
            let reason = format!("what `{name}` prints never ends, and goes to a file");
            let finding = Finding::deny(Code::ExecNotInLanguage, reason);
            self.add_finding(finding.with_suggestion(Some("end it: `| head -c 1000 > FILE`")));
        }
        for part in sub_actions(step, *timeout_ms, case.facts) {
            let tool = ToolName::unchecked(match part.action {
                Action::Write { .. } => "fs.write",
                Action::Read { .. } => "fs.read",
                _ => case.tool.as_str(),
            });
            let input = PolicyInput { tool: &tool, action: &part.action, ..*case };
            // No rule about files of the workspace is about what lies in `/tmp`.
            let is_temporary = |path: &PathTarget| path.inside()?.as_temporary();
            let leads_to_tmp = part.action.path().is_some_and(|path| is_temporary(path).is_some());
            if let Action::Run { argv, .. } = &part.action {
                let program = argv.first().and_then(|name| case.facts.program_named(name));
                let mut line = parse_argv(policy, case, argv, program);
                line.set_variables(&part.stage.variables);
                let folder = case.facts.real_directory(step);
                let from = (&folder, &case.facts.root_names);
                self.check_fed(policy, &line, flow.effects_into(&line, from));
                flow.record_output(&line, from);
                self.add_input(words, &line, literal_stdin(&step.stages, part.stage));
                let stage = check_stage(exec, &part, (step, from.1), &line);
                let beside = check_background(policy, &line).filter(|_| step.is_background);
                stage.into_iter().chain(beside).for_each(|finding| self.add_finding(finding));
                self.add_part(show_argv(argv), evaluate_call(policy, &input, Some(&line)));
                self.check_outputs(step, part.stage, &line);
            } else if !leads_to_tmp && policy.tool(&tool).is_some() {
                self.add_part(stream_file(&input), decide_single(policy, &input));
            } else {
                self.add_file(policy, &input, words);
            }
        }
    }

    fn add_part(&mut self, about: String, judgement: Judgement) {
        let Judgement { decision, restrictions: bounds, trace, named_capabilities: named } =
            judgement;
        self.parts.push(DecisionTrace { subject: about, ..trace });
        self.capabilities = self.capabilities.union(decision.capabilities);
        self.named_capabilities = self.named_capabilities.union(named);
        self.risk = self.risk.max(decision.risk);
        self.decisions.push(decision);
        self.restrictions.push(bounds);
    }

    fn add_finding(&mut self, finding: Finding) {
        let decision = finding.decision(Capabilities::of(Capability::ProcExec), Risk::Low);
        self.whole.push(decision.clone());
        self.decisions.push(decision);
    }

    /// A file of a stream, where the policy has no rule for the tool that would be about it: it is read
    /// as programs read, and written if programs may write.
    fn add_file(
        &mut self,
        policy: &Arc<Policy>,
        case: &PolicyInput<'_>,
        words: Option<&EffectRule>,
    ) {
        let Some(path) = case.action.path() else { return };
        let found = paths::check_inside(path, case).err();
        let broken = hard_deny::check(policy, case, None);
        found.into_iter().chain(broken).for_each(|finding| self.add_finding(finding));
        if matches!(case.action, Action::Write { .. }) {
            let reason = format!("`{}` is written", path.asked);
            self.add_finding(match words.map(|words| words.verdict(Effect::Writes)) {
                Some((verdict, source)) => Finding::with_verdict(verdict, reason)
                    .under_rule("shell.run/effects.writes", source),
                None => Finding::deny(Code::NoRule, "the policy has no rule for `fs.write`"),
            });
            self.capabilities = self.capabilities.with(Capability::FsWrite);
            self.risk = self.risk.max(Risk::Medium);
        }
    }

    /// A folder that the command goes to. Whether it is there says how the list goes on.
    fn add_directory(&mut self, input: &PolicyInput<'_>, to: &PathTarget, rule: Option<&ToolRule>) {
        let real = to.inside().and_then(|path| input.facts.path_fact(path)).map(|fact| &fact.real);
        let places = core::iter::once(&to.location).chain(real);
        let problem = places.into_iter().find_map(|place| match place {
            PathLocation::Outside(problem) => Some(*problem),
            PathLocation::Inside(_) => None,
        });
        if let Some(problem) = problem {
            self.add_finding(paths::outside_finding(&to.asked, problem));
        } else if let Some(rule) = rule {
            let goes = Finding::with_verdict(Verdict::Allow, "it only goes to a folder");
            let goes = goes.under_rule(input.tool.as_str(), &rule.source);
            self.goes = Some(goes.decision(self.capabilities, Risk::Low));
        }
    }

    /// A text that a program is given to run, on its standard input.
    fn add_input(
        &mut self,
        words: Option<&EffectRule>,
        line: &CommandLine<'_>,
        text: Option<String>,
    ) {
        let (Some(words), Some(text)) = (words, text) else { return };
        if line
            .interpretations
            .iter()
            .any(|(known, _)| known.is_some_and(|known| known.appends_arguments))
        {
            // The words are those of the command line that stands in it.
            if text == ANY_NAME && line.effects().contains(Effect::Deletes) {
                self.add_finding(whole_workspace("what `ls` lists"));
            }
            let mut outside = text.split_whitespace().filter_map(PathUse::outside);
            if let Some(stray) = outside.next() {
                self.add_finding(paths::outside_finding(&stray.path, PathProblem::Absolute));
            }
        }
        let kinds = line
            .interpretations
            .iter()
            .filter_map(|(known, _)| known.and_then(CommandSpec::stdin_kind));
        for (effect, why) in kinds.flat_map(|kind| effects_of_text(kind, &text)) {
            let (verdict, source) = words.verdict(effect);
            let reason = format!("what `{}` reads {why}", line.display_name());
            let id = format!("shell.run/effects.{}", effect.name());
            self.risk = self.risk.max(Risk::Medium);
            self.add_finding(Finding::with_verdict(verdict, reason).under_rule(id, source));
        }
    }

    /// What is printed into the words of another command only reads, and it leads to nothing that cannot be judged
    /// before.
    fn check_outputs(&mut self, step: &CommandStep, stage: &PipelineStage, line: &CommandLine<'_>) {
        let effects = line.effects();
        if step.is_captured && !effects.is_subset_of(OUTPUT_SOURCES) {
            let reason = format!(
                "`{}` does more than read, so its output cannot be put in",
                line.display_name()
            );
            let hint = "run it as a command of its own, and write its output into the next one";
            let finding = Finding::deny(Code::ExecNotInLanguage, reason);
            self.add_finding(finding.with_suggestion(Some(hint)));
        }
        let mut outputs = stage.words.iter().filter(|word| word.is_opaque).peekable();
        if outputs.peek().is_none() {
            return;
        }
        // A number is no output any more once it is known; before, it may be one.
        let is_unknown = |word: &ShellWord| word.unexpanded().contains(OUTPUT_PLACEHOLDER);
        if effects.is_subset_of(OUTPUT_TARGETS)
            || effects.is_subset_of(OUTPUT_COUNTED) && outputs.all(is_unknown)
        {
            return;
        }
        let reason =
            format!("what a program printed would say what `{}` works on", line.display_name());
        let hint = "run the inner command first, then write what it printed into this one";
        let finding = Finding::deny(Code::ExecNotInLanguage, reason);
        self.add_finding(finding.with_suggestion(Some(hint)));
    }

    /// What no program may be fed with.
    fn check_fed(&mut self, policy: &Policy, line: &CommandLine<'_>, fed: Effects) {
        let into = line.effects();
        let meets = |rule: &&HardDenyRule| {
            !rule.into.is_empty() && rule.effects.intersects(fed) && rule.into.intersects(into)
        };
        if let Some(rule) = policy.hard_denies.iter().find(meets) {
            let why = reason_or(&rule.because, || format!("rule `{}`", rule.id));
            let reason = format!("what `{}` is fed with: {why}", line.display_name());
            let finding =
                Finding::deny(Code::Never, reason).under_rule(rule.id.clone(), &rule.source);
            self.add_finding(finding.with_suggestion(rule.suggest.clone()));
        }
    }

    /// The strictest decision, with what all parts need.
    fn judgement(mut self, policy: &Policy, bounds: Restrictions) -> Judgement {
        // What its files need is known only now.
        if let Some(finding) = risk::check_ceiling(policy, self.capabilities) {
            self.add_finding(finding);
        }
        let strictest = self.decisions.iter().map(|decision| decision.verdict).max();
        let decided =
            self.decisions.into_iter().find(|decision| Some(decision.verdict) == strictest);
        let decided = decided.or(self.goes).unwrap_or_else(|| {
            let nothing = Finding::deny(Code::NoRule, "there is nothing to decide about");
            nothing.decision(self.capabilities, Risk::Low)
        });
        let decision = Decision { capabilities: self.capabilities, risk: self.risk, ..decided };
        let bounds = if decision.verdict == Verdict::Deny { Restrictions::Nothing } else { bounds };
        let checks = alloc::vec![(PolicyCheck::Command, self.whole)];
        let trace = DecisionTrace { checks, parts: self.parts, ..DecisionTrace::default() };
        Judgement {
            decision,
            restrictions: bounds,
            trace,
            named_capabilities: self.named_capabilities,
        }
    }

    /// The bounds of a pipeline: its programs share their walls, so each may use what the most
    /// generous rule gives; what they may see and change all their rules have to agree on.
    fn bounds(
        &self,
        policy: &Arc<Policy>,
        exec: &ExecRule,
        (step, facts): (&CommandStep, &Facts),
    ) -> Restrictions {
        let mut sum: Option<Confinement> = None;
        let (mut seen, mut written): (Option<PathScope>, Option<PathScope>) = (None, None);
        let (mut too_long, mut open) = (false, None);
        for restriction in &self.restrictions {
            let Restrictions::Run { confinement, clamped, reads, writes, hosts, .. } = restriction
            else {
                continue;
            };
            too_long |= clamped;
            open = HostScope::union_optional(open, hosts.clone());
            let limits = sum.map(|sum| sum.limits.combine(confinement.limits, u64::max));
            sum = Some(Confinement {
                limits: limits.unwrap_or(confinement.limits),
                ..sum.unwrap_or(*confinement)
            });
            seen = PathScope::intersect_optional(seen, reads.clone());
            written = PathScope::intersect_optional(written, writes.clone());
        }
        // What one of them runs may need what the others could not name; they share their view.
        let opens = |restrictions: &Restrictions| match restrictions {
            Restrictions::Run { reads, .. } => !reads.as_ref().is_some_and(PathScope::has_denied),
            _ => false,
        };
        if self.restrictions.iter().any(opens) {
            seen = seen.map(|seen| seen.with_denied(Vec::new(), false));
        }
        let Some(mut confinement) = sum else { return Restrictions::Nothing };
        let item =
            step.stages.iter().flat_map(redirect_files).filter(|(_, written)| written.is_some());
        let folder = facts.real_directory(step);
        let target = |path| target_from(&folder, path, &facts.root_names).inside().cloned();
        let targets = item.filter_map(|(path, _)| target(path));
        let targets: Vec<WorkspacePath> =
            targets.filter(|path| path.as_temporary().is_none()).collect();
        if !targets.is_empty() {
            let nothing = || PathScope::new(Arc::clone(policy), alloc::vec![Vec::new()]);
            written = Some(written.unwrap_or_else(nothing).with_extra_paths(targets));
        }
        confinement.workspace = match written {
            Some(_) => policy.sandbox.workspace,
            None => WorkspaceAccess::ReadOnly,
        };
        Restrictions::Run {
            confinement,
            clamped: too_long,
            environment: Box::new(exec.env.clone()),
            reads: seen,
            writes: written,
            hosts: open,
        }
    }
}
