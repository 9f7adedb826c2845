//! What makes the calls of a client, behind the server.

use std::path::Path;

use capsule_core::approval::Card;
use capsule_core::outcome::CodedError;
use capsule_runtime::{Cancel, ModelTool, Prompt};
use serde_json::Value;

/// What came of a call, for the client.
#[derive(Clone, Debug)]
pub struct CallAnswer {
    /// The result as a model gets it: `status`, and what belongs to it.
    pub value: Value,
    /// Whether the call did not go as asked.
    pub is_error: bool,
    /// The call, as `RUN:CALL`; none where it is not on record.
    pub call: Option<String>,
}

/// Whether the policy is another one than when this was made.
pub type PolicyWatch = Box<dyn Fn() -> bool>;

/// Makes the calls of a client.
pub trait McpHost {
    /// The tools that may be called, and what a model may do under the policy, in plain words.
    ///
    /// # Errors
    /// When the policy or the workspace cannot be used.
    fn offer(&self) -> Result<(Vec<ModelTool>, String), CodedError>;

    /// Looks whether the policy was changed, and takes it as it is now. Whether it was.
    fn refresh(&mut self) -> bool;

    /// Looks whether the policy in force is changed, for as long as a call goes on.
    fn policy_watch(&self) -> PolicyWatch;

    /// Whether the client may name the workspace, because neither the user nor the policy did.
    fn awaits_root(&self) -> bool;

    /// Takes the directory that a client works in as the workspace; without one it is the directory that the server was
    /// started in.
    fn take_root(&mut self, root: Option<&Path>);

    /// The whole of a card as text that cannot act; none where a part of it cannot be shown.
    fn card_text(&self) -> fn(&Card) -> Option<String>;

    /// Stops the call that goes on, from any thread.
    fn interrupter(&self) -> fn();

    /// Lets the next call go on after one that was stopped.
    fn resumer(&self) -> fn();

    /// Says that the process is asked to stop.
    fn cancel(&self) -> Cancel;

    /// Makes a call, of a tool by the name and the arguments that the client gave. The prompt asks the client's user, of
    /// this call and of those behind it.
    ///
    /// # Errors
    /// When it cannot be judged or recorded: then nothing ran.
    fn call(
        &mut self,
        call: (&str, &str),
        prompt: Box<dyn Prompt>,
    ) -> Result<CallAnswer, CodedError>;

    /// No call has come for a moment: what is held for the next one is given back.
    fn rest(&mut self);
}
