//! `report` tells: it turns events into text and JSON, and can cause nothing.
//!
//! A [`Story`] is what the events of a run add up to. It is fed one event at a time, so the same
//! lines appear while a run goes on, when it is replayed, and when it is shown later.

mod approval;
mod card;
mod changes;
mod columns;
mod console;
mod detail;
mod feedback;
mod json;
mod layers;
mod list;
mod policy;
mod programs;
mod prompts;
mod rule_changes;
mod runs;
mod stakes;
mod stats;
mod story;
mod summary;
mod trace;
mod undo;

pub use approval::{Allowed, AnsweredBy, Approval};
pub use card::{age, card_lines, unconfined};
pub use changes::{change_count, change_json, change_lines};
pub use columns::{Layout, clip, width, wrap};
pub use console::Console;
pub use detail::call_detail;
pub use feedback::Feedback;
pub use json::{ReportError, call, write_run, write_runs};
pub use policy::{RuleLine, Saying, layer_rules, policy_lines, policy_rules};
pub use prompts::{Asked, Prompts};
pub use rule_changes::{RuleChange, RuleChanges};
pub use runs::{run_line, when};
pub use stats::{Friction, Pattern, Row, Safety, Spread, Stats};
pub use story::{
    Answer, CallStory, Header, Payloads, Resumed, Sealed, StepStory, Story, kept, left_running,
};
pub use summary::Summary;
pub use trace::trace_lines;
