//! `agent` asks: the loop in which a model calls tools, and the providers that it is reached by.
//!
//! A model is untrusted. Its calls enter a [`ModelSession`](capsule_runtime::ModelSession), which takes them
//! down the one path; there is no other way from here to a tool. Every message of a server is bounded before
//! it is read, and an answer is used only once it has come to its end.

mod answer;
mod context;
mod conversation;
mod edits;
mod http;
mod message;
mod model;
mod observer;
mod provider;
mod resume;
mod scripted;
mod sse;
mod turn;

pub use conversation::Conversation;
pub use message::{Message, ModelAnswer, ModelCall};
pub use model::{AnswerPiece, Model, Prices, RequestError, Until};
pub use observer::{ConversationEvent, ConversationObserver};
pub use provider::{Provider, ProviderKind, ProviderVariables, provider_keys};
pub use scripted::ScriptedModel;
pub use turn::{TaskEnd, TaskLimits};
