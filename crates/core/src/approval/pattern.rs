//! Which calls a grant is about.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::action::{Action, Fingerprint, ParsedUrl, PathLocation, expanded_argv};
use crate::approval::ApprovalRequest;
use crate::capability::Capability;
use crate::tool::ToolName;
use capsule_base::digest::Digest;
use capsule_base::path::WorkspacePath;
use capsule_base::url::HttpUrl;
use capsule_command::shell_syntax::is_single_command;
use capsule_command::specs::{CommandLine, Effect, Effects};

/// Which calls a grant is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "calls", rename_all = "kebab-case")]
pub enum GrantPattern {
    /// Exactly this one, made again.
    Same {
        /// What it is.
        fingerprint: Fingerprint,
    },
    /// A program with the same subcommand and no other options, in the same folder; whatever else
    /// stands in the line is judged by the policy as ever.
    Command {
        /// The program and its subcommands.
        names: Vec<String>,
        /// The options that it may have.
        options: Vec<String>,
        /// The folder that it runs in.
        cwd: String,
    },
    /// Files beneath a folder, by one tool.
    #[serde(rename = "folder")]
    Directory {
        /// The tool.
        tool: ToolName,
        /// The folder, as a path of the workspace.
        folder: String,
    },
    /// One host, by one tool.
    Host {
        /// The tool.
        tool: ToolName,
        /// Scheme, host and port.
        origin: String,
    },
    /// Steps of a plan, each exactly as it was found before the plan began.
    Steps {
        /// The steps.
        steps: Vec<StepCall>,
    },
    /// Everything that needs this capability and no other: chosen in so many words, and never the
    /// first choice.
    #[serde(rename = "whole")]
    AnyWithCapability {
        /// The capability.
        capability: Capability,
    },
}

/// The call of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepCall {
    /// The step.
    pub step: String,
    /// HMAC under the run's key of tool, action, facts and policy, with nothing masked.
    #[serde(rename = "bound")]
    pub binding: Digest,
    /// Digest of the lines that were shown to differ, masked, if any were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<Digest>,
}

impl StepCall {
    /// The call that a question is about.
    #[must_use]
    pub fn of(question: &ApprovalRequest<'_>) -> Self {
        Self {
            step: question.step.unwrap_or_default().into(),
            binding: question.binding,
            diff: question.diff.map(|diff| Digest::of(diff.as_bytes())),
        }
    }
}

/// What no grant is about but that for the very same call: what such a line does next time, its
/// words do not say.
const NEVER_GENERALIZED: [Effect; 3] = [Effect::Code, Effect::Starts, Effect::Unknown];

impl GrantPattern {
    /// The calls that are like one: the narrowest pattern that is more than the call itself. None
    /// where calls that look alike may do anything.
    #[must_use]
    pub fn similar_to(question: &ApprovalRequest<'_>) -> Option<Self> {
        let tool = question.tool.clone();
        match question.action {
            Action::Run { .. } | Action::Command { .. } => {
                let (names, options, cwd) = command_shape(question)?;
                Some(Self::Command { names, options, cwd })
            }
            Action::Write { path, .. }
            | Action::Edit { path, .. }
            | Action::Delete { path, .. } => {
                let folder = path.inside()?.parent()?;
                // The whole workspace is a capability, not a pattern.
                (!folder.is_root())
                    .then(|| Self::Directory { tool, folder: folder.as_str().into() })
            }
            Action::Fetch { url, .. } => match &url.parsed {
                ParsedUrl::Url(url) => Some(Self::Host { tool, origin: origin(url) }),
                ParsedUrl::Refused(_) => None,
            },
            _ => None,
        }
    }

    /// Whether it is about a call.
    #[must_use]
    pub fn covers(&self, question: &ApprovalRequest<'_>) -> bool {
        match self {
            Self::Same { fingerprint } => *fingerprint == question.fingerprint,
            Self::Command { names, options, cwd } => {
                command_shape(question).is_some_and(|(item, used, here)| {
                    let fewer = used.iter().all(|option| options.contains(option));
                    item == *names && fewer && here == *cwd
                })
            }
            Self::Directory { tool, folder } => {
                let below = |path: &WorkspacePath| {
                    let rest = path.as_str().strip_prefix(folder.as_str());
                    rest.is_some_and(|rest| rest.starts_with('/'))
                };
                let path = question.action.path().and_then(|path| path.inside());
                let real = |path| match question.facts.path_fact(path).map(|fact| &fact.real) {
                    Some(PathLocation::Inside(real)) => below(real),
                    Some(PathLocation::Outside(_)) => false,
                    None => true,
                };
                let whole = matches!(question.action, Action::Delete { recursive: true, .. });
                tool == question.tool
                    && !whole
                    && path.is_some_and(|path| below(path) && real(path))
            }
            Self::Host { tool, origin } => match question.action {
                Action::Fetch { url, .. } => match &url.parsed {
                    ParsedUrl::Url(url) => tool == question.tool && self::origin(url) == *origin,
                    ParsedUrl::Refused(_) => false,
                },
                _ => false,
            },
            Self::Steps { steps } => {
                question.step.is_some() && steps.contains(&StepCall::of(question))
            }
            Self::AnyWithCapability { capability } => {
                let mut needed = question.decision.capabilities.iter();
                needed.next() == Some(*capability) && needed.next().is_none()
            }
        }
    }
}

/// A command line without what it is about: its names, every option that it has, and its folder.
/// None where it is more than one program, where that may do anything, or where nobody knows it well
/// enough to tell options from words.
fn command_shape(question: &ApprovalRequest<'_>) -> Option<(Vec<String>, Vec<String>, String)> {
    let facts = question.facts;
    let (argv, program, cwd) = match question.action {
        Action::Run { argv, cwd, .. } => (argv.clone(), facts.program.as_ref(), cwd),
        Action::Command { steps, text, .. } => {
            let [step] = steps.as_slice() else { return None };
            if !is_single_command(text) {
                return None;
            }
            let [stage] = step.stages.as_slice() else { return None };
            if !stage.variables.is_empty() || !stage.redirects.is_empty() {
                return None;
            }
            let argv = expanded_argv(stage, &step.cwd, &facts.expansions);
            let program = argv.first().and_then(|name| facts.program_named(name));
            (argv, program, &step.cwd)
        }
        _ => return None,
    };
    let line = CommandLine::parse(&argv, program, false);
    let open: Effects = NEVER_GENERALIZED.into_iter().collect();
    if line.effects().intersects(open) || line.too_deep || !line.nested.is_empty() {
        return None;
    }
    let [(Some(_), reading)] = line.interpretations.as_slice() else { return None };
    let names = reading.levels.iter().map(|level| level.name.clone()).collect();
    let flags = reading.levels.iter().flat_map(|level| &level.flags);
    let mut options: Vec<String> =
        flags.map(|flag| flag.names.first().unwrap_or(&flag.spelled).clone()).collect();
    options.sort();
    options.dedup();
    Some((names, options, cwd.inside()?.as_str().to_string()))
}

fn origin(url: &HttpUrl) -> String {
    format!("{}://{}:{}", url.scheme(), url.host(), url.port())
}

impl fmt::Display for GrantPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same { .. } => f.write_str("exactly this call"),
            Self::Command { names, options, cwd } => {
                let words = [names.join(" "), options.join(" ")].join(" ");
                let place = if cwd.is_empty() { String::new() } else { format!(" in {cwd}") };
                write!(f, "`{} …`{place}", words.trim_end())
            }
            Self::Directory { tool, folder } => write!(f, "`{tool}` beneath {folder}/"),
            Self::Host { tool, origin } => write!(f, "`{tool}` to {origin}"),
            Self::Steps { steps } => {
                let names: Vec<&str> = steps.iter().map(|step| step.step.as_str()).collect();
                write!(f, "the steps {} as they were shown", names.join(", "))
            }
            Self::AnyWithCapability { capability } => {
                write!(f, "everything that needs `{}`", capability.name())
            }
        }
    }
}
