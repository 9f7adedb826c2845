//! `report` tells: it turns events into text and JSON, and can cause nothing.
//!
//! A [`Story`] is what the events of a run add up to. It is fed one event at a time, so the same
//! lines appear while a run goes on, when it is replayed, and when it is shown later.

mod changes;
mod columns;
mod console;
mod detail;
mod json;
mod runs;
mod story;

pub use changes::{change_count, change_json, change_lines};
pub use columns::{Layout, clip, width, wrap};
pub use console::Console;
pub use detail::call_detail;
pub use json::{call, run as run_json};
pub use runs::{run_list, run_list_json};
pub use story::{CallStory, Header, Payloads, Sealed, StepStory, Story, Summary, kept};
