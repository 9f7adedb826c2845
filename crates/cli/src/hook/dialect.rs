//! The programs that call `capsule hook`, one row each: how they ask, what they take for an answer, and what they do
//! when the hook fails.
//!
//! All of them pass an object with `session_id`, `cwd`, `hook_event_name`, `tool_name` and `tool_input` (for
//! opencode, the plugin file that `capsule connect` writes does). What differs is here.

use clap::ValueEnum;

use crate::hook::host_tool::{
    CLAUDE_CODE_TOOLS, CODEX_TOOLS, GEMINI_TOOLS, HostTool, OPENCODE_TOOLS,
};

/// The name of a dialect, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DialectName {
    /// Claude Code 2.1
    ClaudeCode,
    /// Codex 0.169
    Codex,
    /// Gemini CLI 0.61
    Gemini,
    /// opencode 1.18
    Opencode,
}

/// How a program asks and is answered.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// Its name, with which the names of its sessions begin.
    pub(crate) name: &'static str,
    /// The name of the event that comes before a call.
    pub(crate) event: &'static str,
    /// The variable of the environment that names the directory of the project.
    pub(crate) project: &'static str,
    /// The tools of the host.
    pub(crate) tools: &'static [HostTool],
    /// The answer that lets a call go ahead; nothing is printed where it is empty.
    pub(crate) allow: &'static str,
    /// The answer that refuses a call, with `$reason`.
    pub(crate) deny: &'static str,
    /// The answer that changes the arguments of a call, with `$input`.
    pub(crate) rewrite: &'static str,
    /// The failures of the hook after which the host goes ahead by itself, where it is called without the shell line that
    /// `capsule connect` writes.
    pub(crate) fails_open: &'static [&'static str],
}

/// All kinds of failure: the hook prints nothing, or no JSON, among them.
const FAILURES: [&str; 5] = ["crash", "hang", "nothing", "rubbish", "missing"];

const CLAUDE_DENY: &str = r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse",
    "permissionDecision": "deny", "permissionDecisionReason": "$reason"}}"#;
const CLAUDE_REWRITE: &str = r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse",
    "permissionDecision": "allow", "updatedInput": "$input"}}"#;

static CLAUDE_CODE: Dialect = Dialect {
    name: "claude-code",
    event: "PreToolUse",
    project: "CLAUDE_PROJECT_DIR",
    tools: CLAUDE_CODE_TOOLS,
    allow: r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}"#,
    deny: CLAUDE_DENY,
    rewrite: CLAUDE_REWRITE,
    fails_open: &FAILURES,
};

static CODEX: Dialect = Dialect {
    name: "codex",
    event: "PreToolUse",
    project: "",
    tools: CODEX_TOOLS,
    // A bare `allow` is not supported and counts as a failure of the hook.
    allow: "",
    deny: CLAUDE_DENY,
    rewrite: CLAUDE_REWRITE,
    fails_open: &FAILURES,
};

static GEMINI: Dialect = Dialect {
    name: "gemini",
    event: "BeforeTool",
    project: "GEMINI_PROJECT_DIR",
    tools: GEMINI_TOOLS,
    allow: r#"{"decision": "allow"}"#,
    deny: r#"{"decision": "deny", "reason": "$reason"}"#,
    rewrite: r#"{"decision": "allow",
        "hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": "$input"}}"#,
    fails_open: &FAILURES,
};

static OPENCODE: Dialect = Dialect {
    name: "opencode",
    event: "tool.execute.before",
    project: "",
    tools: OPENCODE_TOOLS,
    allow: r#"{"decision": "allow"}"#,
    deny: r#"{"decision": "deny", "reason": "$reason"}"#,
    rewrite: r#"{"decision": "allow", "args": "$input"}"#,
    // Whatever throws in a plugin denies, and a missing plugin file is no plugin.
    fails_open: &["hang", "nothing", "rubbish", "missing"],
};

impl DialectName {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::ClaudeCode, Self::Codex, Self::Gemini, Self::Opencode];

    /// Its row.
    pub(crate) const fn dialect(self) -> &'static Dialect {
        match self {
            Self::ClaudeCode => &CLAUDE_CODE,
            Self::Codex => &CODEX,
            Self::Gemini => &GEMINI,
            Self::Opencode => &OPENCODE,
        }
    }
}
