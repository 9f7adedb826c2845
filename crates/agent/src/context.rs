//! The part of a conversation that a model is sent where its window is full.
//!
//! Old results and arguments are cut first, then the oldest messages are left out. What is left out is recorded with
//! the request, so that a process that goes on with the conversation has the same messages.

use std::ops::Range;

use capsule_base::limits;
use serde_json::{Value, json};

use crate::message::{Message, ModelCall};

/// The bytes of a message beside its texts.
const MESSAGE_BYTES: usize = 100;

/// The parts that are left out of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Omission {
    /// How many of the first messages have their results and arguments cut.
    shortened: usize,
    /// The messages that are taken out then, one range after the other.
    dropped: Vec<Range<usize>>,
}

impl Omission {
    /// The parts to leave out so that the messages have at most so many bytes; none where no part has to be, or
    /// nothing can be.
    pub(crate) fn plan(messages: &[Message], most: usize) -> Option<Self> {
        let mut total: usize = messages.iter().map(size).sum();
        if total <= most {
            return None;
        }
        let is_model = |message: &Message| matches!(message, Message::Model(_));
        let newest = messages.iter().rposition(is_model).unwrap_or(messages.len());
        let mut planned = Self::default();
        for message in messages.get(..newest).unwrap_or_default() {
            if total <= most {
                return Some(planned);
            }
            total -= size(message) - size(&shortened(message));
            planned.shortened += 1;
        }
        planned.drop_oldest(messages, (newest, most), &mut total);
        // The results that the model has not seen are cut last.
        for message in messages.get(newest..).unwrap_or_default() {
            if total <= most {
                break;
            }
            total -= size(message) - size(&shortened(message));
            planned.shortened += 1;
        }
        let is_changed = planned.apply(messages.to_vec()) != messages;
        is_changed.then_some(planned)
    }

    /// Takes out what comes before the user's last message, then the oldest answers behind it.
    fn drop_oldest(
        &mut self,
        messages: &[Message],
        (newest, most): (usize, usize),
        total: &mut usize,
    ) {
        let is_user = |message: &Message| matches!(message, Message::User(_));
        let Some(last_user) = messages.iter().rposition(is_user) else { return };
        let mut from = 0;
        for (kept, boundary_is_user) in [(0..last_user, true), (last_user + 1..newest, false)] {
            let end = kept.end;
            let mut cut = kept.start;
            for (at, message) in messages.iter().enumerate().take(end + 1).skip(kept.start + 1) {
                if *total <= most {
                    break;
                }
                if is_user(message) == boundary_is_user
                    && !matches!(message, Message::ToolResult { .. })
                {
                    let left_out = messages.get(cut..at).unwrap_or_default();
                    *total -=
                        left_out.iter().map(|message| size(&shortened(message))).sum::<usize>();
                    cut = at;
                }
            }
            if cut > kept.start {
                self.dropped.push(kept.start - from..cut - from);
                from += cut - kept.start;
            }
        }
    }

    /// The messages without what is left out.
    pub(crate) fn apply(&self, mut messages: Vec<Message>) -> Vec<Message> {
        for message in messages.iter_mut().take(self.shortened) {
            *message = shortened(message);
        }
        for range in &self.dropped {
            let end = range.end.min(messages.len());
            messages.drain(range.start.min(end)..end);
        }
        messages
    }

    /// As it is recorded.
    pub(crate) fn to_json(&self) -> Value {
        let dropped: Vec<_> = self.dropped.iter().map(|range| [range.start, range.end]).collect();
        json!({ "shortened": self.shortened, "dropped": dropped })
    }

    /// Reads what was recorded.
    pub(crate) fn from_json(value: &Value) -> Self {
        let number = |value: &Value| usize::try_from(value.as_u64()?).ok();
        let range = |value: &Value| Some(number(value.get(0)?)?..number(value.get(1)?)?);
        let dropped = value.get("dropped").and_then(Value::as_array).into_iter().flatten();
        Self {
            shortened: value.get("shortened").and_then(number).unwrap_or_default(),
            dropped: dropped.filter_map(range).collect(),
        }
    }
}

/// About how many bytes of a request a message takes.
pub(crate) fn size(message: &Message) -> usize {
    MESSAGE_BYTES
        + match message {
            Message::User(text) => text.len(),
            Message::ToolResult { id, text } => id.len() + text.len(),
            Message::Model(answer) => {
                let call = |call: &ModelCall| {
                    MESSAGE_BYTES + call.id.len() + call.tool.len() + call.args.len()
                };
                answer.text.len() + answer.calls.iter().map(call).sum::<usize>()
            }
        }
}

/// A message with its results and arguments cut.
fn shortened(message: &Message) -> Message {
    let mut message = message.clone();
    match &mut message {
        Message::User(_) => {}
        Message::ToolResult { text, .. } => {
            if text.len() > 2 * limits::MODEL_SHORTENED_BYTES {
                let end = text.floor_char_boundary(limits::MODEL_SHORTENED_BYTES);
                let left = text.len() - end;
                text.truncate(end);
                text.push_str(&format!(
                    " [{left} bytes are left out here to save room; make the call again if they are needed]"
                ));
            }
        }
        Message::Model(answer) => {
            for call in &mut answer.calls {
                if call.args.len() > 2 * limits::MODEL_SHORTENED_BYTES {
                    // Providers want an object.
                    call.args = json!({ "left_out_bytes": call.args.len() }).to_string();
                }
            }
        }
    }
    message
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panics")]

    use proptest::prelude::*;

    use super::*;
    use crate::message::ModelAnswer;

    /// A conversation: for each message of the user, the sizes of the results that it led to.
    fn conversation(exchanges: &[Vec<usize>]) -> Vec<Message> {
        let mut messages = Vec::new();
        for results in exchanges {
            messages.push(Message::User("do it".to_owned()));
            for (at, size) in results.iter().enumerate() {
                let id = format!("c{at}");
                let call = ModelCall { id: id.clone(), tool: "fs_read".into(), args: "{}".into() };
                let answer = ModelAnswer { text: String::new(), calls: vec![call] };
                messages.push(Message::Model(answer));
                messages.push(Message::ToolResult { id, text: "x".repeat(*size) });
            }
        }
        messages
    }

    fn bytes(messages: &[Message]) -> usize {
        messages.iter().map(size).sum()
    }

    #[test]
    fn old_results_are_cut_before_messages_are_left_out() {
        let messages = conversation(&[vec![5_000, 5_000, 5_000]]);
        assert_eq!(Omission::plan(&messages, 20_000), None);
        let planned = Omission::plan(&messages, 11_500).unwrap();
        assert_eq!(planned, Omission { shortened: 3, dropped: vec![] });
        let kept = planned.apply(messages.clone());
        assert_eq!(kept.len(), messages.len());
        assert_eq!(kept.get(4..), messages.get(4..));
        let planned = Omission::plan(&messages, 6_500).unwrap();
        let kept = planned.apply(messages.clone());
        assert_eq!(kept.first(), messages.first());
        assert_eq!(kept.last(), messages.last());
    }

    proptest! {
        /// Whatever is left out: the user's last message stays, it begins with a message of the user, each result
        /// follows the answer that asked for it, and what is recorded leads to the same messages.
        #[test]
        fn what_is_left_out_leaves_a_conversation(
            exchanges in prop::collection::vec(prop::collection::vec(0_usize..3_000, 0..5), 1..6),
            most in 0_usize..20_000,
        ) {
            let messages = conversation(&exchanges);
            let Some(planned) = Omission::plan(&messages, most) else {
                return Ok(());
            };
            let kept = planned.apply(messages.clone());
            prop_assert!(bytes(&kept) <= bytes(&messages));
            prop_assert_eq!(&Omission::from_json(&planned.to_json()).apply(messages.clone()), &kept);
            prop_assert!(matches!(kept.first(), Some(Message::User(_))));
            let results = exchanges.last().unwrap().len();
            let kept_user = kept.iter().rposition(|message| matches!(message, Message::User(_)));
            prop_assert!(kept.len() - kept_user.unwrap() <= 2 * results + 1);
            for (at, message) in kept.iter().enumerate() {
                let before = at.checked_sub(1).and_then(|at| kept.get(at));
                let is_asked = matches!(before, Some(Message::Model(_)));
                prop_assert_eq!(matches!(message, Message::ToolResult { .. }), is_asked);
            }
            // Where even the last exchange cannot be cut any more, nothing better can be done.
            let least = planned.dropped.len() == 2 || results < 2;
            prop_assert!(bytes(&kept) <= most || least || kept.len() <= 2 * results + 1);
        }
    }
}
