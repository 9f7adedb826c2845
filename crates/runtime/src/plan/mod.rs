//! Plans: steps that are known before anything runs.
//!
//! A reference is a typed object that becomes one value in one place; it is never text that is put
//! together. There are no expressions and no loops, so a plan can be checked and judged as it
//! stands. [`Plan::parse`] reports everything that is wrong with a text; [`execute`] runs the steps.

mod evaluate;
mod execute;
mod expect;
mod expression;
mod forecast;
mod lint;
mod parse;
mod requirements;
mod schema;

pub use evaluate::{EvalScope, StepResult, TaintedValue};
pub use execute::{
    PlanProgress, PlanResult, PredictedEnding, execute, predict_ending, resume_plan,
};
pub use expect::{ExpectedDenial, FieldMatcher, StepExpectation};
pub use expression::{Expression, ListItem, Reference, ValueSegment};
pub use forecast::{StepForecast, forecast_steps};
pub use lint::lint;
pub use requirements::PlanRequirements;
pub use schema::plan_schema;

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use capsule_core::tool::ToolSignature;
use serde_json::Value;

/// A plan that was read and checked.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What it is called.
    pub name: String,
    /// What it must be given.
    pub inputs: Vec<PlanInput>,
    /// Its steps, in the order in which they run.
    pub steps: Vec<PlanStep>,
    /// What it gives, by name.
    pub outputs: Vec<(String, Expression)>,
}

/// Something that a plan must be given.
#[derive(Clone, Debug)]
pub struct PlanInput {
    /// Its name.
    pub name: String,
    /// What it may be.
    pub kind: InputKind,
    /// What it is where it is not given.
    pub default: Option<Value>,
    /// What its text must match as a whole.
    pub pattern: Option<regex::Regex>,
}

/// What an input may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// Text.
    String,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
}

/// A step.
#[derive(Clone, Debug)]
pub struct PlanStep {
    /// Its id; its number where the plan gives none.
    pub id: String,
    /// Its tool.
    pub tool: &'static ToolSignature,
    /// Its arguments.
    pub args: Vec<(String, Expression)>,
    /// What it must give.
    pub expect: StepExpectation,
    /// What to do when it goes wrong.
    pub on_error: OnError,
    /// The steps that must have gone well.
    pub needs: Vec<String>,
    /// When to run it at all.
    pub when: Option<Expression>,
    /// How long it may take, where its tool can be told.
    pub timeout: Option<Duration>,
    /// Where it stands in the text.
    pub span: Range<usize>,
}

impl Plan {
    /// The steps whose results something in the plan refers to: only those need be kept.
    #[must_use]
    pub fn referred_steps(&self) -> BTreeSet<String> {
        let mut steps = BTreeSet::new();
        let mut visit = |reference: &Reference, _| {
            if let Reference::Step { id, .. } = reference {
                steps.insert(id.clone());
            }
        };
        let item = self.steps.iter().flat_map(|step| step.args.iter().map(|(_, arg)| arg));
        let when = self.steps.iter().filter_map(|step| step.when.as_ref());
        let outputs = self.outputs.iter().map(|(_, output)| output);
        item.chain(when)
            .chain(outputs)
            .for_each(|expression| expression.visit_references(false, &mut visit));
        steps
    }
}

/// What to do when a step goes wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// End the run.
    #[default]
    Stop,
    /// Go on.
    Continue,
    /// Try again, so many times, with a pause in between.
    Retry {
        /// How many times more.
        times: u64,
        /// The pause before each.
        backoff: Duration,
    },
}
