//! Claude Code with the tools of `capsule mcp serve` in place of its built-in ones: the server in one file of its
//! settings, the denials in the other.

use std::path::{Path, PathBuf};

use capsule_runtime::CATALOGUE;
use serde_json::{Value, json};

use crate::context::CliContext;
use crate::hook::json_edit::{with_element, with_member, without_last, without_member};

/// What the agent puts before the name of a tool of our server. A server with a longer name may begin so, too.
const PREFIX: &str = "mcp__capsule__";
const ALLOWED: [&str; 2] = ["permissions", "allow"];
const DENIED: [&str; 2] = ["permissions", "deny"];
const SERVER: [&str; 2] = ["mcpServers", "capsule"];

/// The built-in tools that act outside of the agent; a denied one is not offered to the model.
const BUILT_IN: [&str; 20] = [
    "Bash",
    "PowerShell",
    "Monitor",
    "REPL",
    "Read",
    "Write",
    "Edit",
    "MultiEdit",
    "NotebookEdit",
    "Glob",
    "Grep",
    "LS",
    "LSP",
    "WebFetch",
    "WebSearch",
    "Skill",
    "Workflow",
    "CronCreate",
    "EnterWorktree",
    "ExitWorktree",
];

/// How far the replacement reaches, and what it does not cover.
pub(super) const COVERAGE_OF_REPLACED: [&str; 4] = [
    "level 3: the model acts by the tools of `capsule mcp serve`; the agent's built-in tools are denied in its settings",
    "any other tool, such as one of another MCP server, is judged by the hook, which denies tools that it does not know",
    "not covered: what the agent does without a tool (its start, its memory files, the processes of other MCP servers), and a \
     server of a project that is named `capsule` too",
    "the agent itself withholds its tools: the level holds as far as it keeps to its settings",
];

/// The tools that the hook is asked about beside the server: whatever is not denied and not exactly one of ours, also tools
/// that a later version brings, and those of other servers.
pub(super) fn other_tools() -> String {
    let names: Vec<&str> = our_tools().collect();
    format!("^(?!{PREFIX}({})$).*", names.join("|"))
}

/// The names of our tools that settings leave out of what the hook is asked about, where their matcher is one that
/// [`other_tools`] gave, in this version or in another.
pub(super) fn tools_left_out(matcher: &str) -> Option<impl Iterator<Item = &str>> {
    let names = matcher.strip_prefix("^(?!")?.strip_prefix(PREFIX)?.strip_prefix('(')?;
    Some(names.strip_suffix(")$).*")?.split('|'))
}

fn our_tools() -> impl Iterator<Item = &'static str> {
    CATALOGUE.0.iter().map(|tool| tool.model_name)
}

/// The rule that lets a tool of the server run without a question of the agent: the policy judges it.
fn leave(name: &str) -> Value {
    json!(format!("{PREFIX}{name}"))
}

/// The settings with the denials and the leaves for our tools: all of them at the end, or those that are missing.
pub(super) fn with_denials(text: &str, missing_only: bool) -> Option<String> {
    let read: Value = serde_json::from_str(text).unwrap_or_default();
    let has = |list, rule: &Value| strings(&read, list).any(|found| rule == found);
    let denials = BUILT_IN.iter().map(|name| (DENIED, json!(name)));
    let mut wanted = denials.chain(our_tools().map(|name| (ALLOWED, leave(name))));
    wanted.try_fold(text.to_owned(), |text, (list, rule)| match missing_only && has(list, &rule) {
        true => Some(text),
        false => with_element(&text, list, &rule),
    })
}

/// The settings without what [`with_denials`] put into them, which left out the tools of this matcher; a rule that the user
/// had before stays.
pub(super) fn without_denials(text: &str, matcher: &str) -> Option<String> {
    let text = without_leaves(text, matcher)?;
    BUILT_IN.iter().try_fold(text, |text, name| without_last(&text, DENIED, &json!(name)))
}

/// The settings without the leaves for the tools that this matcher leaves out.
pub(super) fn without_leaves(text: &str, matcher: &str) -> Option<String> {
    let mut names = tools_left_out(matcher)?;
    names.try_fold(text.to_owned(), |text, name| without_last(&text, ALLOWED, &leave(name)))
}

/// The built-in tools that these settings leave open.
pub(crate) fn open_tools(text: &str) -> Vec<&'static str> {
    let read: Value = serde_json::from_str(text).unwrap_or_default();
    let denied: Vec<&str> = strings(&read, DENIED).collect();
    BUILT_IN.into_iter().filter(|name| !denied.contains(name)).collect()
}

/// The texts of the list at this path.
fn strings<'v>(read: &'v Value, [outer, inner]: [&str; 2]) -> impl Iterator<Item = &'v str> {
    let list = read.get(outer).and_then(|outer| outer.get(inner)?.as_array());
    list.into_iter().flatten().filter_map(Value::as_str)
}

/// The file in which Claude Code keeps the user's servers, and much of its state.
pub(crate) struct ServerSettings {
    /// The file.
    pub(crate) path: PathBuf,
}

impl ServerSettings {
    /// That of the user.
    pub(crate) fn of(home: &Path) -> Self {
        let named = named_directory("CLAUDE_CONFIG_DIR");
        let older = named.clone().unwrap_or_else(|| home.join(".claude")).join(".config.json");
        let usual = named.unwrap_or_else(|| home.to_owned()).join(".claude.json");
        Self { path: if older.exists() { older } else { usual } }
    }

    /// The same settings with our server, run by these words, or without it; none where they cannot be read, or have a server
    /// of the same name that is not ours.
    pub(crate) fn with(text: &str, words: Option<&[String]>) -> Option<String> {
        let found = Self::words(text);
        if words == found.as_deref() {
            return Some(text.to_owned());
        }
        let text = match found {
            Some(_) => without_member(text, SERVER)?,
            None => text.to_owned(),
        };
        let Some((program, args)) = words.and_then(<[String]>::split_first) else {
            return Some(text);
        };
        let server = json!({ "type": "stdio", "command": program, "args": args });
        with_member(&text, SERVER, &server)
    }

    /// The words that run our server in these settings, if it is there.
    pub(crate) fn words(text: &str) -> Option<Vec<String>> {
        let read: Value = serde_json::from_str(text).ok()?;
        let [outer, name] = SERVER;
        let server = read.get(outer)?.get(name)?;
        let args: Vec<String> = serde_json::from_value(server.get("args")?.clone()).ok()?;
        let is_ours =
            matches!(args.as_slice(), [mcp, serve, ..] if mcp == "mcp" && serve == "serve");
        let program = server.get("command")?.as_str()?.to_owned();
        is_ours.then(|| [vec![program], args].concat())
    }
}

/// The directory that a variable of the environment names, if it does.
pub(super) fn named_directory(variable: &str) -> Option<PathBuf> {
    let value = (!variable.is_empty()).then(|| CliContext::variable(variable)).flatten();
    value.filter(|value| !value.is_empty()).map(PathBuf::from)
}
