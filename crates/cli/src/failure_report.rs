//! The report of a failure: on standard error for people, and as JSON for programs.

use capsule_base::code::Code;
use capsule_base::diagnostic::{Diagnostic, Severity};
use capsule_base::escape;
use capsule_core::outcome::{CodedError, Status};
use capsule_runtime::{Divergence, DivergenceCause};
use serde_json::{Value, json};

use crate::command::layers::show_change;
use crate::diagnostic;
use crate::failure::Failure;
use crate::screen::{ERROR, HINT, Screen, hint, problem_text};

/// A command line that cannot be read: what is wrong with it, without how it should look.
fn argument_failure(error: &clap::Error) -> Failure {
    let told = error.render().to_string();
    let about: Vec<&str> =
        told.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let message = about.join(" ");
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    let tip = told.lines().find_map(|line| line.trim().strip_prefix("tip: "));
    CodedError::new(Code::Usage, message)
        .with_suggestion(tip.unwrap_or(Code::Usage.next_step()))
        .into()
}

/// Says what is wrong with a command line to whoever wrote it, and, where JSON was asked for, to the
/// program that reads the output. Whether it could be said.
pub(crate) fn show_argument_error(error: &clap::Error) -> bool {
    let mut words = std::env::args_os().take_while(|word| word != "--");
    let printed = error.print();
    if error.use_stderr() && words.any(|word| word == "--json") {
        // Nobody is told if that fails, either.
        let _ = Screen::for_json().print_json(&argument_failure(error).to_json());
    }
    printed.is_ok()
}

impl Failure {
    /// Shows it on standard error.
    pub(crate) fn show(&self, screen: &Screen) {
        match self {
            Self::Problem(problem) => show_problem(screen, problem),
            Self::InvalidText(text, problems) => {
                screen.eprint(&diagnostic::render(text, problems, screen));
            }
            Self::WeakerLayer(news) => {
                show_change(news, screen);
                show_problem(screen, &news.refusal());
            }
            Self::Diverged { label, divergences } => {
                for divergence in divergences {
                    show_divergence(screen, label, divergence);
                }
                if divergences
                    .iter()
                    .any(|divergence| divergence.cause == DivergenceCause::PlanChanged)
                {
                    screen.eprint("then    run the changed plan anew with `capsule run`");
                }
            }
            Self::Quiet(_) => return,
        }
        if screen.needs_json() {
            // Nobody is told if that fails, either.
            let _ = screen.print_json(&self.to_json());
        }
    }

    /// The same for programs, in the words of a call's result.
    pub(crate) fn to_json(&self) -> Value {
        let (code, message, suggestion) = match self {
            Self::Problem(problem) => {
                (problem.code, problem.message.clone(), problem.suggestion.clone())
            }
            Self::WeakerLayer(news) => {
                let refusal = news.refusal();
                (refusal.code, refusal.message, refusal.suggestion)
            }
            Self::InvalidText(_, problems) => {
                let first = problems.iter().find(|problem| problem.severity == Severity::Error);
                let told = |diagnostic: &Diagnostic| {
                    (diagnostic.code, diagnostic.message.clone(), diagnostic.hint.clone())
                };
                first.map_or((Code::Usage, "the text is wrong".into(), None), told)
            }
            Self::Diverged { divergences, .. } => {
                let cause =
                    divergences.first().map_or("", |divergence| divergence.cause.description());
                (Code::ReplayDiverged, cause.into(), None)
            }
            Self::Quiet(_) => (Code::Usage, String::new(), None),
        };
        let mut told = json!({
            "schema": 1,
            "status": Status::from(code),
            "code": code,
            "message": message,
            "suggestion": suggestion,
            "exit": self.exit(),
        });
        if let (Self::InvalidText(text, problems), Some(map)) = (self, told.as_object_mut()) {
            map.insert("problems".into(), diagnostic::to_json(text, problems));
        }
        told
    }
}

/// Shows a problem on standard error, with what to do about it.
pub(crate) fn show_problem(screen: &Screen, problem: &CodedError) {
    screen.eprint(&format!("{ERROR}error{ERROR:#}: {}", problem_text(problem)));
    if let Some(hint) = hint(problem) {
        screen.eprint(&format!("{HINT}hint{HINT:#}: {hint}"));
    }
}

fn show_divergence(screen: &Screen, label: &str, divergence: &Divergence) {
    let step = match &divergence.step {
        Some(step) => format!(" at step `{}`", escape::line(step)),
        None => String::new(),
    };
    screen.eprint(&format!(
        "{ERROR}{}{ERROR:#}{step} ({} of {} served)",
        Code::ReplayDiverged,
        divergence.served,
        divergence.calls
    ));
    for difference in &divergence.differences {
        let what = escape::line(&difference.name).into_owned();
        let value = |text: &str| capsule_report::clip(&escape::line(text), 300);
        screen.eprint(&format!("  {what}"));
        screen.eprint(&format!("    recorded  {}", value(&difference.recorded)));
        screen.eprint(&format!("    now       {}", value(&difference.now)));
    }
    let place = divergence.location.as_ref().map(|place| format!(": {}", escape::line(place)));
    screen.eprint(&format!(
        "cause   {}{}",
        divergence.cause.description(),
        place.unwrap_or_default()
    ));
    if let Some(nearest) = divergence.nearest {
        screen
            .eprint(&format!("effect  no recorded answer fits; the nearest is {label}:{nearest}"));
    }
}
