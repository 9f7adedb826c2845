//! How a conversation is watched while it goes on.

use capsule_runtime::{NullObserver, ToolAnswer};

/// Sees what happens in a conversation, in order and at once. It can show, and change nothing.
pub trait ConversationObserver {
    /// Something happened.
    fn on_conversation(&mut self, event: &ConversationEvent<'_>);
}

/// An event of a conversation.
#[derive(Clone, Copy, Debug)]
pub enum ConversationEvent<'e> {
    /// The model is asked.
    Requested {
        /// The number of the request within the run, from 1 on.
        turn: u64,
    },
    /// A piece of the answer's text came, masked: the pieces of an answer make the text that is recorded.
    Text(&'e str),
    /// The request is sent again: the pieces that came of its answer are not recorded, and do not count.
    TextDropped,
    /// The answer came to its end, and is recorded.
    Answered {
        /// Its whole text, as it is recorded.
        text: &'e str,
        /// How many calls it has.
        calls: usize,
    },
    /// A call of the answer is about to be made.
    CallProposed {
        /// Its id within the conversation.
        id: &'e str,
        /// The tool, as the model named it.
        tool: &'e str,
        /// The arguments as the model wrote them, masked.
        args: &'e str,
    },
    /// The model is told what came of a call.
    CallFinished {
        /// Its id within the conversation.
        id: &'e str,
        /// The text for the model, and the result of the call.
        answer: &'e ToolAnswer,
    },
}

impl ConversationObserver for NullObserver {
    fn on_conversation(&mut self, _: &ConversationEvent<'_>) {}
}
