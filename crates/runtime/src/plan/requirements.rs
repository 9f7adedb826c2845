//! All that a plan will need, put together: what can be told of it before it begins.

use std::collections::BTreeSet;

use capsule_base::path::WorkspacePath;
use capsule_command::specs::{CommandLine, Effects, PathAccess};
use capsule_core::action::{Action, Facts, ParsedUrl, PathTarget, sub_actions};
use capsule_core::capability::Capabilities;
use capsule_core::decision::Verdict;
use capsule_core::lifecycle::PlannedCall;
use serde::Serialize;

use crate::plan::StepForecast;

/// All that the steps of a plan need which are known before it begins and are not denied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PlanRequirements {
    /// The capabilities.
    pub capabilities: Capabilities,
    /// Files and folders that are read, as paths of the workspace.
    pub reads: BTreeSet<String>,
    /// Files that are made or changed.
    pub writes: BTreeSet<String>,
    /// What is removed.
    pub deletes: BTreeSet<String>,
    /// Scheme, host and port of what is fetched.
    pub hosts: BTreeSet<String>,
    /// The programs that are started, where they lie.
    pub programs: BTreeSet<String>,
    /// How many calls are made at most.
    pub calls: u64,
    /// How many bytes `fs.write` writes at most.
    pub written_bytes: u64,
    /// How many steps of it a person is asked about.
    pub asks: u64,
    /// How many steps are denied.
    pub denied: u64,
    /// How many steps depend on what others give, and are in none of the above.
    pub open: u64,
}

impl PlanRequirements {
    /// Puts steps together.
    #[must_use]
    pub fn combine(steps: &[StepForecast]) -> Self {
        let mut all = Self::default();
        for step in steps {
            match step {
                StepForecast::Unknown => all.open += 1,
                StepForecast::Refused(_) => all.denied += 1,
                StepForecast::Known(step) => all.add_step(step),
            }
        }
        all
    }

    fn add_step(&mut self, step: &PlannedCall) {
        match step.decision().verdict {
            Verdict::Deny => {
                self.denied += 1;
                return;
            }
            Verdict::Ask | Verdict::AskEach => self.asks += 1,
            Verdict::Allow => {}
        }
        self.capabilities =
            self.capabilities.iter().chain(step.decision().capabilities.iter()).collect();
        self.calls = self.calls.saturating_add(step.max_attempts());
        self.add_action((step.action(), step.facts()), step.max_attempts());
    }

    fn add_action(&mut self, (action, facts): (&Action, &Facts), tries: u64) {
        match action {
            Action::Write { path, bytes, .. } => {
                self.written_bytes = self.written_bytes.saturating_add(bytes.saturating_mul(tries));
                self.writes.insert(target_text(path));
            }
            Action::Edit { path, .. } => {
                self.writes.insert(target_text(path));
            }
            Action::Delete { path, .. } => {
                self.deletes.insert(target_text(path));
            }
            Action::Read { path, .. } | Action::List { path, .. } | Action::Search { path, .. } => {
                self.reads.insert(target_text(path));
            }
            Action::Git { query: ask } => self.reads.extend(ask.paths().iter().map(target_text)),
            Action::Fetch { url, .. } => {
                self.hosts.insert(match &url.parsed {
                    ParsedUrl::Url(url) => {
                        format!("{}://{}:{}", url.scheme(), url.host(), url.port())
                    }
                    ParsedUrl::Refused(_) => url.asked.clone(),
                });
            }
            Action::Run { argv, .. } => self.add_command_line(argv, action, facts),
            Action::Command { steps, timeout_ms, .. } => {
                for step in steps {
                    for part in sub_actions(step, *timeout_ms, facts) {
                        self.add_action((&part.action, facts), tries);
                    }
                }
            }
            // What they need is in no words of theirs.
            Action::Test { .. }
            | Action::AskUser { .. }
            | Action::Attach { .. }
            | Action::Agent { .. }
            | Action::Apply { .. }
            | Action::Undo { .. } => {
                self.programs.extend(facts.program.as_ref().map(|fact| fact.real.clone()));
            }
        }
    }

    /// A command line: its program, and the paths among its words.
    fn add_command_line(&mut self, argv: &[String], action: &Action, facts: &Facts) {
        let first = argv.first().map(String::as_str).unwrap_or_default();
        let program = facts.program_named(first).or(facts.program.as_ref());
        self.programs.insert(program.map_or_else(|| first.to_owned(), |fact| fact.real.clone()));
        let line = CommandLine::parse(argv, program, false);
        let lines = line.with_nested();
        let readings = lines.iter().flat_map(|line| line.parsed_argvs());
        for used in readings.flat_map(|reading| &reading.paths).filter(|item| !item.is_name) {
            let places = action.resolve_path_argument(used, facts).unwrap_or_default();
            // What may be something else counts where it is there.
            let counts =
                |place: &&WorkspacePath| used.is_certain || facts.path_fact(place).is_some();
            let names = places.iter().filter(counts).map(path_text);
            match used.access {
                PathAccess::Read | PathAccess::ReadTree => self.reads.extend(names),
                PathAccess::Write | PathAccess::Change => self.writes.extend(names),
                PathAccess::Delete => self.deletes.extend(names),
            }
        }
    }
}

/// Whether a call runs what files say: what it does then, its own words do not tell.
pub(super) fn runs_code(step: &PlannedCall) -> bool {
    let facts = step.facts();
    let told = |argv: &[String]| {
        let first = argv.first().map(String::as_str).unwrap_or_default();
        let program = facts.program_named(first).or(facts.program.as_ref());
        CommandLine::parse(argv, program, false).effects().intersects(Effects::BY_FILES)
    };
    match step.action() {
        Action::Test { .. } => true,
        Action::Run { argv, .. } => told(argv),
        Action::Command { steps, timeout_ms, .. } => {
            let all = steps.iter().flat_map(|step| sub_actions(step, *timeout_ms, facts));
            all.into_iter()
                .any(|part| matches!(&part.action, Action::Run { argv, .. } if told(argv)))
        }
        _ => false,
    }
}

fn target_text(path: &PathTarget) -> String {
    path.inside().map_or_else(|| path.asked.clone(), path_text)
}

fn path_text(path: &WorkspacePath) -> String {
    path.as_temporary().unwrap_or_else(|| path.to_string())
}
