//! What a tool is called, what it takes and what it gives: facts, never an opinion.
//!
//! The tools themselves live in another room; here is the form of their signatures, and the one
//! function that checks arguments against them, so that a plan, a model, a policy example and a
//! command line are all held to the same contract.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::action::Action;
use crate::capability::Capability;
use crate::outcome::CodedError;
use capsule_base::suggestion::closest;

/// The id of a tool, such as `fs.read`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolName(String);

impl ToolName {
    /// Takes a name as it was asked; it names a tool only if a [`Catalogue`] knows it.
    #[must_use]
    pub fn unchecked(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Which constraints a policy can put on a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolShape {
    /// It works on paths of the workspace.
    Files,
    /// It fetches URLs.
    Fetch,
    /// It runs programs.
    Exec,
    /// It looks at a repository.
    Repository,
    /// It runs the project's tests.
    Test,
    /// It asks the user.
    User,
}

/// What an argument may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// A path inside the workspace.
    Path,
    /// A URL.
    Url,
    /// Paths inside the workspace.
    Paths,
    /// The words of a command line.
    Argv,
    /// Text that nothing is derived from.
    Text,
    /// A pattern for file names.
    Name,
    /// A number, not negative.
    Number,
    /// Yes or no.
    Flag,
    /// A size: a number of bytes, or text with a unit.
    Size,
    /// A duration as text with a unit.
    Duration,
    /// A point in time: RFC 3339, a date, or a duration ago.
    Time,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A map from names to text.
    Headers,
}

capsule_base::words! {
    ArgumentKind::name(..):
    Path = "a path", Url = "a URL", Paths = "a list of paths", Argv = "a list of words",
    Text = "text", Name = "a name pattern", Number = "a whole number", Flag = "true or false",
    Size = "a size", Duration = "a duration such as `10s`", Time = "a time", OneOf = "a word",
    Headers = "a map of headers",
}

impl ArgumentKind {
    fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Number => value.as_u64().is_some(),
            Self::Size => value.as_u64().is_some() || value.is_string(),
            Self::Flag => value.is_boolean(),
            Self::Argv | Self::Paths => {
                value.as_array().is_some_and(|words| words.iter().all(Value::is_string))
            }
            Self::Headers => {
                value.as_object().is_some_and(|map| map.values().all(Value::is_string))
            }
            Self::OneOf(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            _ => value.is_string(),
        }
    }
}

/// One argument of a tool.
#[derive(Clone, Copy, Debug)]
pub struct ToolArgument {
    /// Its name.
    pub name: &'static str,
    /// What it may be.
    pub kind: ArgumentKind,
    /// Whether it must be there.
    pub required: bool,
    /// What it is for.
    pub about: &'static str,
}

/// One field of a tool's result.
#[derive(Clone, Copy, Debug)]
pub struct ResultField {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub about: &'static str,
}

/// What a tool is called, takes and gives.
#[derive(Clone, Copy, Debug)]
pub struct ToolSignature {
    /// The id that policies and plans use.
    pub id: &'static str,
    /// The name that models are given: some providers allow no dots.
    pub model_name: &'static str,
    /// Other names that are understood.
    pub aliases: &'static [&'static str],
    /// What it does, in a sentence.
    pub about: &'static str,
    /// Which constraints a policy can put on it.
    pub shape: ToolShape,
    /// The capabilities that every call needs; a call may need more.
    pub capabilities: &'static [Capability],
    /// What it takes.
    pub arguments: &'static [ToolArgument],
    /// What its result holds.
    pub results: &'static [ResultField],
}

/// Why arguments do not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentError {
    /// The argument that is wrong; none if they are no map at all.
    pub argument: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do instead.
    pub suggestion: Option<String>,
}

impl ToolSignature {
    /// The argument of that name.
    #[must_use]
    pub fn argument(&self, name: &str) -> Option<&'static ToolArgument> {
        self.arguments.iter().find(|argument| argument.name == name)
    }

    /// Whether a call gives a list, and takes how long that may be.
    #[must_use]
    pub fn gives_list(&self) -> bool {
        self.argument("limit").is_some_and(|limit| limit.kind == ArgumentKind::Number)
    }

    /// Checks that arguments are those that the tool takes.
    ///
    /// # Errors
    /// Names the first argument that is unknown, missing or of another kind.
    pub fn check<'v>(&self, args: &'v Value) -> Result<&'v Map<String, Value>, ArgumentError> {
        let Value::Object(map) = args else {
            let message = format!("`{}` takes its arguments as a map", self.id);
            return Err(ArgumentError { argument: None, message, suggestion: None });
        };
        for (name, value) in map {
            let known = self.argument(name).ok_or_else(|| self.unknown(name))?;
            if !known.kind.accepts(value) {
                let wanted = match known.kind {
                    ArgumentKind::OneOf(words) => format!("one of `{}`", words.join("`, `")),
                    kind => kind.name().to_owned(),
                };
                let message = format!("`{name}` of `{}` takes {wanted}", self.id);
                let argument = Some(name.clone());
                return Err(ArgumentError { argument, message, suggestion: None });
            }
        }
        let missing =
            |argument: &&ToolArgument| argument.required && !map.contains_key(argument.name);
        if let Some(argument) = self.arguments.iter().find(missing) {
            let message = format!("`{}` needs `{}`: {}", self.id, argument.name, argument.about);
            let argument = Some(argument.name.to_owned());
            return Err(ArgumentError { argument, message, suggestion: None });
        }
        Ok(map)
    }

    fn unknown(&self, name: &str) -> ArgumentError {
        let names = self.arguments.iter().map(|argument| argument.name);
        let suggestion = match closest(name, names.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let all: alloc::vec::Vec<&str> = names.collect();
                format!("it takes `{}`", all.join("`, `"))
            }
        };
        let shown = capsule_base::escape::line(name);
        let message = format!("`{}` has no argument `{shown}`", self.id);
        ArgumentError { argument: Some(name.to_owned()), message, suggestion: Some(suggestion) }
    }
}

/// The signatures of every tool of this build.
#[derive(Clone, Copy, Debug)]
pub struct Catalogue(pub &'static [&'static ToolSignature]);

impl Catalogue {
    /// The tool of that id, model-facing name or alias; letters must agree exactly.
    #[must_use]
    pub fn find(self, name: &str) -> Option<&'static ToolSignature> {
        self.0.iter().copied().find(|signature| {
            signature.id == name
                || signature.model_name == name
                || signature.aliases.contains(&name)
        })
    }

    /// The id that comes closest to a misspelt one.
    #[must_use]
    pub fn closest(self, name: &str) -> Option<&'static str> {
        closest(name, self.0.iter().map(|signature| signature.id))
    }
}

/// The tools of a build for code that only asks about calls and can run none of them.
#[derive(Clone, Copy, Debug)]
pub struct ToolSet {
    /// Their signatures.
    pub catalogue: Catalogue,
    /// What a call of a tool means, from the tool's name, the arguments and the time in microseconds.
    pub describe: fn(&str, &Value, u64) -> Result<Action, CodedError>,
    /// The directory that hides an absolute path of the host from every command, because each command
    /// has a directory of its own there.
    pub hiding_directory: fn(&str) -> Option<&'static str>,
}
