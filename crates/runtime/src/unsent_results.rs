//! The results of calls that a model was not sent before its process ended.

use capsule_core::call::{Origin, ToolCall};
use capsule_core::policy::ATTACH_TOOL;

use crate::call_result::CallResult;
use crate::model_call::{call_args, result_text, tool_id};

/// The results and files that a model was not sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnsentResults {
    /// The text for each call; none for a call without a result in the record.
    pub of_calls: Vec<Option<String>>,
    /// The text of each file that the user attached.
    pub attached: Vec<String>,
}

impl UnsentResults {
    /// The results of these calls, each a tool and its arguments, out of all that were made since the last answer.
    pub(crate) fn of(made: Vec<(ToolCall, CallResult)>, calls: &[(&str, &str)]) -> Self {
        let (by_model, others): (Vec<_>, Vec<_>) =
            made.into_iter().partition(|(call, _)| call.origin == Origin::Model);
        let mut by_model = by_model.into_iter().peekable();
        // Calls whose arguments could not be read were not made.
        let of_calls = calls.iter().map(|(tool, args)| {
            let (tool, args) = (tool_id(tool), call_args(args).ok()?);
            let is_same =
                |(call, _): &(ToolCall, CallResult)| call.tool == tool && call.args == args;
            by_model.next_if(is_same).map(|(_, result)| result_text(&result))
        });
        let of_calls = of_calls.collect();
        let attached = others
            .iter()
            .filter(|(call, result)| call.tool.as_str() == ATTACH_TOOL && result.problem.is_none());
        let attached = attached.map(|(_, result)| result_text(result)).collect();
        Self { of_calls, attached }
    }
}
