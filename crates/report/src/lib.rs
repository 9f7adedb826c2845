//! `report` tells: it turns events into text and JSON, and can cause nothing.
//!
//! A [`RunView`] is what the events of a run add up to. It is fed one event at a time, so the same
//! lines appear while a run goes on, when it is replayed, and when it is shown later.

mod action_text;
mod approval;
mod call_view;
mod card;
mod changes;
mod columns;
mod connections;
mod console;
mod detail;
mod distribution;
mod feedback;
mod fitted_line;
mod json;
mod layers;
mod list;
mod payloads;
mod plain_names;
mod policy;
mod programs;
mod prompts;
mod risk;
mod rule_changes;
mod rule_line;
mod run_view;
mod runs;
mod stats;
mod style;
mod summary;
mod trace;
mod undo;

pub use approval::{AnsweredBy, ApprovalView, GrantView};
pub use call_view::{CallView, left_running_text, refused_host_texts};
pub use card::{age_text, card_lines, diff_label, unconfined_warning};
pub use changes::{change_count, change_json, change_lines};
pub use columns::{Layout, clip, width, wrap};
pub use connections::{ConnectionView, connection_lines, network_usage};
pub use console::{Console, network_text};
pub use detail::call_detail;
pub use distribution::Distribution;
pub use feedback::FeedbackView;
pub use fitted_line::{fit_hanging, fit_line};
pub use json::{ReportError, call_json, write_run, write_runs};
pub use payloads::{PayloadLookup, payload_lookup};
pub use policy::{layer_rules, policy_lines, policy_rules};
pub use prompts::{PromptStats, RulePromptStats};
pub use rule_changes::{RuleChange, RuleChanges};
pub use rule_line::{RuleLine, RuleProperty};
pub use run_view::{AnswerView, ResumedView, RunHeader, RunView, SealedView, StepView};
pub use runs::{run_line, run_rows, time_text};
pub use stats::{CodeFriction, FrictionStats, RefusalCount, RefusalPattern, SafetyStats, Stats};
pub use summary::Summary;
pub use trace::trace_lines;
