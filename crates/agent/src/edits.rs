//! Edits in the text of an answer, which are calls of `fs.edit` like others.

use capsule_core::outcome::CodedError;
use capsule_runtime::edit::blocks::find_edits;

use crate::message::ModelCall;

/// The name that models know the tool by.
const TOOL: &str = "fs_edit";

/// A call of an answer, or why the block of text that asks for it is none.
#[derive(Debug)]
pub(crate) struct PlannedCall {
    pub(crate) call: ModelCall,
    pub(crate) problem: Option<CodedError>,
}

/// The calls of an answer, with an id each: a server may leave one out, or give one twice. Those that its text asks for
/// come last.
pub(crate) fn planned_calls(calls: Vec<ModelCall>, text: &str, turn: u64) -> Vec<PlannedCall> {
    let mut planned: Vec<PlannedCall> =
        calls.into_iter().map(|call| PlannedCall { call, problem: None }).collect();
    for found in find_edits(text).calls {
        let (args, problem) = match found {
            Ok(edit) => (edit.args.to_string(), None),
            Err(problem) => ("{}".to_owned(), Some(problem)),
        };
        let call = ModelCall { id: String::new(), tool: TOOL.to_owned(), args };
        planned.push(PlannedCall { call, problem });
    }
    let mut given = std::collections::BTreeSet::new();
    for (at, PlannedCall { call, .. }) in planned.iter_mut().enumerate() {
        if call.id.is_empty() || given.contains(&call.id) {
            call.id = format!("call_{turn}_{at}");
        }
        given.insert(call.id.clone());
    }
    planned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_in_a_text_are_calls() {
        let text = "I change this:\n<edit path=\"a.rs\">\n<search>if a < b && c</search>\n\
                    <replace>if a <= b && c</replace>\n</edit>\nThen `a <edit b` stays text.\n\
                    <edit path=\"b.rs\"><search>x</search></edit>\n";
        let call = ModelCall { id: "c".into(), tool: "fs_read".into(), args: "{}".into() };
        let planned = planned_calls(vec![call.clone(), call.clone()], text, 7);
        let ids: Vec<&str> = planned.iter().map(|planned| planned.call.id.as_str()).collect();
        assert_eq!(ids, ["c", "call_7_1", "call_7_2", "call_7_3"]);
        let edit = planned.get(2).map(|planned| planned.call.args.as_str());
        let expected = r#"{"path":"a.rs","replace":"if a <= b && c","search":"if a < b && c"}"#;
        assert_eq!(edit, Some(expected));
        assert!(planned.last().is_some_and(|planned| planned.problem.is_some()));
        assert!(planned_calls(Vec::new(), "no edit here", 1).is_empty());
    }
}
