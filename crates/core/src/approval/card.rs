//! What a person is shown: the whole of a call, in the order of use, as data. A surface lays it out
//! and adds nothing.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval::{GrantLifetime, GrantPattern};
use crate::capability::Capabilities;
use crate::journal::PendingChanges;
use crate::risk::Risk;
use crate::tool::ToolName;
use capsule_base::digest::Digest;
use capsule_base::escape;
use capsule_base::json;
use capsule_redact::{Redactor, holds_mask, masked_argument};

/// What a person is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// The call's number within its run.
    pub call: u64,
    /// The plan's step.
    pub step: Option<String>,
    /// The tool.
    pub tool: ToolName,
    /// How much it could cost.
    pub risk: Risk,
    /// What it needs.
    pub capabilities: Capabilities,
    /// The call in one line: the command itself, or what the call is about.
    #[serde(rename = "says")]
    pub headline: String,
    /// What it may do, in the policy's words for its capabilities: `run a program`, `change files`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consequences: Vec<String>,
    /// The exact call: one word of a command line, or one argument, each.
    pub exact: Vec<CardField>,
    /// Where it happens: the folder, the variables.
    pub place: Option<String>,
    /// What is new about it, compared with earlier calls.
    pub new_here: Vec<String>,
    /// The files that calls of the session read before, for what can send: the newest of them, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_before: Option<String>,
    /// What calls of the session brought from elsewhere, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_before: Option<String>,
    /// Why it is asked: the rule's words, and where it stands.
    pub why: String,
    /// Whether it can be undone.
    pub undo: Reversibility,
    /// The command that brings it back, where an undo record is kept, and its effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo_hint: Option<String>,
    /// What waits in the same workspace from earlier runs, if anything does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "unpulled")]
    pub pending_changes: Option<PendingChanges>,
    /// What the sandbox will prevent, of what it will really be confined to.
    #[serde(rename = "cannot")]
    pub prevented: Vec<String>,
    /// Which of its arguments derive from content that nobody vouches for.
    pub tainted: Vec<String>,
    /// What may be allowed beyond this call.
    pub offers: Vec<GrantOffer>,
    /// The arguments, masked: what a person begins with who changes them.
    pub args: Value,
    /// The lines in which the file will differ, for what writes or edits one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// How many cards were shown in the time that the policy counts, this one among them, and how
    /// many may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention: Option<(u64, u64)>,
    /// How many steps of a plan it is about, if it is about a plan and no single call. Then its one
    /// offer is leave for these steps.
    #[serde(default, skip_serializing_if = "is_single_call")]
    pub steps: u64,
    /// The newest call here that was allowed when the same was asked: `r-7Q3K:2`. A rule can be learned
    /// from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "before")]
    pub previously_allowed: Option<String>,
    /// Whether it waits if nobody answers it now; else it is denied.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    #[serde(rename = "waits")]
    pub waits_unanswered: bool,
}

const fn is_single_call(steps: &u64) -> bool {
    *steps == 0
}

/// A part of the exact call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardField {
    /// What it is called, where it has a name: an argument's.
    pub name: Option<String>,
    /// It, as it is.
    pub text: String,
    /// What is to be known about it: where a program lies, that a word comes from elsewhere.
    pub note: Option<String>,
}

/// Whether what is about to happen can be brought back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reversibility {
    /// It changes nothing.
    #[serde(rename = "nothing")]
    NoChange,
    /// It changes a staged copy, which is applied or dropped later.
    Staged,
    /// An undo record is kept before.
    Recorded,
    /// It cannot.
    #[serde(rename = "not")]
    Irreversible,
}

/// Something that a person may allow beyond the call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantOffer {
    /// How long it would hold.
    pub scope: GrantLifetime,
    /// The calls that it would be about.
    #[serde(rename = "reach")]
    pub pattern: GrantPattern,
    /// How many uses it would have.
    pub uses: u64,
    /// How long it would live, in milliseconds.
    pub after_ms: u64,
    /// How many earlier calls here it would have covered.
    pub would_have_covered: u64,
    /// How many of those somebody denied.
    pub of_them_denied: u64,
    /// The newest of them, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub covered: Vec<String>,
}

/// Arguments that are texts, of which every line is shown.
const MULTILINE_ARGUMENTS: [&str; 5] = ["command", "content", "search", "replace", "stdin"];

impl Card {
    /// The digest of everything that is shown.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&json::canonical(self))
    }

    /// The same with every secret masked that stands anywhere in it: it is recorded, and shown, as a
    /// whole. None where it would not be a card any more.
    #[must_use]
    pub fn mask_secrets(self, redactor: &Redactor) -> Option<Self> {
        let mut masked = 0;
        let clean = redactor.value(serde_json::to_value(&self).ok()?, &mut masked);
        if masked == 0 {
            return Some(self);
        }
        serde_json::from_value(clean).ok()
    }

    /// Whether something in it would not be seen as it is, or may be taken for something else: then
    /// nothing beyond the call is offered.
    #[must_use]
    pub fn is_hostile(&self) -> bool {
        self.exact.iter().any(|field| match field.is_text() {
            true => matches!(escape::strict_block(&field.text), Cow::Owned(_)),
            false => matches!(escape::strict_line(&field.text), Cow::Owned(_)),
        })
    }

    /// What a mask hides that a person has to see: a program, an option, a path, a host, a word of
    /// which nothing says that it is no such thing. Such a call cannot be allowed.
    #[must_use]
    pub fn hidden_essential(&self) -> Option<&'static str> {
        let mut before: Option<&CardField> = None;
        let mut only_words = false;
        self.exact.iter().find_map(|field| {
            let last = before.replace(field);
            if field.name.is_none() {
                // Behind it stands no option; a program is noted with the place where it lies.
                only_words = field.note.is_none() && (only_words || field.text == "--");
            }
            if !holds_mask(field.text.as_bytes()) {
                return None;
            }
            match field.name.as_deref() {
                Some("path" | "paths" | "cwd" | "<" | ">" | ">>") => Some("a path"),
                Some("url" | "host") => Some("an address"),
                Some(_) => None,
                None if field.note.is_some() => Some("a program"),
                None if only_words => Some("a word"),
                None => {
                    let last = last.filter(|field| field.name.is_none());
                    masked_argument(&field.text, last.map_or("", |field| field.text.as_str()))
                }
            }
        })
    }
}

impl CardField {
    /// Whether it is a text, which has lines. Names and paths have none, nor has a program; another word of
    /// a command line may have some, such as a message or a program text.
    #[must_use]
    pub fn is_text(&self) -> bool {
        match &self.name {
            Some(name) => MULTILINE_ARGUMENTS.contains(&name.as_str()),
            None => self.note.is_none() && self.text.contains('\n'),
        }
    }
}
