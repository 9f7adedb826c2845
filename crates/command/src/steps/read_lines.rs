//! The lines that a loop goes through.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use super::UnsupportedStep;
use super::list_state::{ListState, LoopState};
use crate::shell_syntax::{OUTPUT_PLACEHOLDER, Value, fields};

impl<F: Clone> ListState<F> {
    /// Keeps the lines of a text for a loop. The last entry is what is left behind the last line end.
    pub(super) fn keep_lines(
        &mut self,
        number: usize,
        name: &str,
        keeps_last: bool,
    ) -> Result<(), UnsupportedStep> {
        let text = self.values.get(name).map(Value::unexpanded).unwrap_or_default();
        let mut lines: Vec<&str> = text.split('\n').collect();
        if text == OUTPUT_PLACEHOLDER {
            // How many lines there are is not known: what one round leaves, the next one meets.
            lines = alloc::vec![OUTPUT_PLACEHOLDER, OUTPUT_PLACEHOLDER, ""];
        } else if keeps_last && lines.last().is_some_and(|last| !last.is_empty()) {
            lines.push("");
        }
        let items: Vec<Value> = lines.into_iter().map(Value::text).collect();
        let bytes = items.iter().map(Value::bytes).sum();
        self.check_room(bytes)?;
        self.loops.insert(number, LoopState { items: items.into(), at: 0, bytes });
        Ok(())
    }

    /// Gives variables the fields of the next line; false where there is none.
    pub(super) fn next_line(
        &mut self,
        number: usize,
        names: &[String],
        separators: Option<&str>,
    ) -> Result<bool, UnsupportedStep> {
        let Some(state) = self.loops.get_mut(&number) else { return Ok(false) };
        let line = state.items.get(state.at).map(Value::unexpanded).unwrap_or_default();
        state.at += 1;
        let is_line = state.at < state.items.len();
        let values = match line == OUTPUT_PLACEHOLDER {
            true => names.iter().map(|_| line.clone()).collect(),
            false => fields(&line, separators, names.len()),
        };
        for (name, text) in names.iter().zip(values) {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            self.set(name, Value { is_opaque: !is_number, ..Value::text(&text.to_string()) })?;
        }
        Ok(is_line)
    }
}
