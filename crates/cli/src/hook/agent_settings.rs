//! Where an agent keeps its settings, and what `capsule connect` writes into them: a table of the agents.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::args::ConnectLevel;
use crate::hook::dialect::{Dialect, DialectName};
use crate::hook::json_edit::{with_element, without_elements};
use crate::hook::replaced_tools::{
    COVERAGE_OF_REPLACED, named_directory, other_tools, tools_left_out, with_denials,
    without_denials, without_leaves,
};
use crate::hook::rewrite::quote;

/// How long the agent waits for the hook, in seconds: six times as long as the hook takes at most.
const HOST_WAIT_SECONDS: u64 = 60;
/// The words of the agent's shell to the model where the hook cannot be started or ends badly.
const FAILED: &str = "Capsule denies this call: its hook failed. Tell the user: capsule doctor";

/// The settings of an agent.
pub(crate) struct AgentSettings {
    /// The agent.
    pub(crate) name: DialectName,
    /// The file.
    pub(crate) path: PathBuf,
}

/// The variable that names the directory of settings, that directory within the home, and the file in it.
const fn location(name: DialectName) -> (&'static str, &'static str, &'static str) {
    match name {
        DialectName::ClaudeCode => ("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
        DialectName::Codex => ("CODEX_HOME", ".codex", "hooks.json"),
        DialectName::Gemini => ("", ".gemini", "settings.json"),
        DialectName::Opencode => ("OPENCODE_CONFIG_DIR", ".config/opencode", "plugin/capsule.js"),
    }
}

impl AgentSettings {
    /// Those of the user.
    pub(crate) fn of(name: DialectName, home: &Path) -> Self {
        let (variable, directory, file) = location(name);
        let named = named_directory;
        // Of the four, opencode alone keeps to the directory of settings that the user has for all programs.
        let shared = || match name {
            DialectName::Opencode => named("XDG_CONFIG_HOME").map(|shared| shared.join("opencode")),
            _ => None,
        };
        let directory = named(variable).or_else(shared).unwrap_or_else(|| home.join(directory));
        Self { name, path: directory.join(file) }
    }

    fn dialect(&self) -> &'static Dialect {
        self.name.dialect()
    }

    /// The same settings with our hook, run by these words; none where they cannot be read.
    pub(crate) fn connected(
        &self,
        text: &str,
        words: &[String],
        level: ConnectLevel,
    ) -> Option<String> {
        if self.name == DialectName::Opencode {
            return Some(plugin(words));
        }
        let line = shell_line(words);
        let wait = match self.name {
            DialectName::Gemini => HOST_WAIT_SECONDS * 1_000,
            _ => HOST_WAIT_SECONDS,
        };
        let mut hook = json!({ "type": "command", "command": line, "timeout": wait });
        if self.name == DialectName::ClaudeCode
            && let Some(map) = hook.as_object_mut()
        {
            map.insert("onFailure".into(), "block".into());
        }
        let matcher = match (level, self.name) {
            (ConnectLevel::Replace, _) => other_tools(),
            (_, DialectName::ClaudeCode) => "*".to_owned(),
            _ => ".*".to_owned(),
        };
        let text = match (level, self.replacing_matcher(text)) {
            (ConnectLevel::Replace, Some(found)) if found == matcher => with_denials(text, true)?,
            // Another version had other tools.
            (ConnectLevel::Replace, Some(found)) => {
                with_denials(&without_leaves(text, &found)?, true)?
            }
            (ConnectLevel::Replace, None) => with_denials(&self.disconnected(text)?, false)?,
            _ => self.disconnected(text)?,
        };
        let element = json!({ "matcher": matcher, "hooks": [hook] });
        with_element(&self.without_hook(&text)?, self.list(), &element)
    }

    /// The level at which these settings are connected, if they are.
    pub(crate) fn level(&self, text: &str) -> Option<ConnectLevel> {
        let _connected = self.hook_line(text)?;
        Some(match self.replacing_matcher(text) {
            Some(_) => ConnectLevel::Replace,
            None => ConnectLevel::Hook,
        })
    }

    /// What our hook is asked about in these settings, where our tools are in place of the agent's.
    fn replacing_matcher(&self, text: &str) -> Option<String> {
        let read: Value = serde_json::from_str(text).ok()?;
        let [outer, inner] = self.list();
        let mut list = read.get(outer)?.get(inner)?.as_array()?.iter();
        let of_ours = list.find(|item| self.line_of(item).is_some())?;
        let matcher = of_ours.get("matcher")?.as_str()?;
        tools_left_out(matcher).map(|_| matcher.to_owned())
    }

    /// Whether our hook in these settings leaves out other tools of ours than this version has.
    pub(crate) fn is_outdated(&self, text: &str) -> bool {
        self.replacing_matcher(text).is_some_and(|found| found != other_tools())
    }

    /// The same settings without what was written for either level; none where they cannot be read.
    pub(crate) fn disconnected(&self, text: &str) -> Option<String> {
        match self.replacing_matcher(text) {
            Some(found) => self.without_hook(&without_denials(text, &found)?),
            None => self.without_hook(text),
        }
    }

    fn without_hook(&self, text: &str) -> Option<String> {
        match self.name {
            DialectName::Opencode => Some(String::new()),
            _ => without_elements(text, self.list(), |element| self.line_of(element).is_some()),
        }
    }

    /// Why the agent would not ask a hook that is in these settings, if so.
    pub(crate) fn obstacle(&self, text: &str) -> Option<&'static str> {
        let read: Value = serde_json::from_str(text).ok()?;
        let is = |pointer: &str, value: bool| read.pointer(pointer) == Some(&Value::Bool(value));
        match self.name {
            DialectName::ClaudeCode if is("/disableAllHooks", true) => {
                Some("`disableAllHooks` is true in them, so that the agent asks no hook")
            }
            DialectName::Gemini if is("/hooksConfig/enabled", false) => {
                Some("`hooksConfig.enabled` is false in them, so that the agent asks no hook")
            }
            _ => None,
        }
    }

    /// Whether the agent, as it reads these settings, finds our hook with these words, or none of ours for no words.
    pub(crate) fn says(&self, text: &str, words: Option<&[String]>) -> bool {
        self.hook_line(text) == words.map(shell_line)
    }

    const fn list(&self) -> [&'static str; 2] {
        match self.name {
            DialectName::Gemini => ["hooks", "BeforeTool"],
            _ => ["hooks", "PreToolUse"],
        }
    }

    /// The line of our hook in an element of the list, if the element is ours.
    fn line_of(&self, element: &Value) -> Option<String> {
        let lines = element
            .get("hooks")?
            .as_array()?
            .iter()
            .filter_map(|hook| hook.get("command")?.as_str());
        let ours = format!(" hook {}", self.dialect().name);
        lines.filter(|line| line.contains(&ours) && line.contains(FAILED)).map(str::to_owned).next()
    }

    /// The line of our hook in these settings, if it is there.
    pub(crate) fn hook_line(&self, text: &str) -> Option<String> {
        if self.name == DialectName::Opencode {
            let words = text.lines().find_map(|line| line.strip_prefix("const HOOK = "))?;
            let words: Vec<String> = serde_json::from_str(words.trim_end_matches(';')).ok()?;
            return Some(shell_line(&words));
        }
        let read: Value = serde_json::from_str(text).ok()?;
        let [outer, inner] = self.list();
        read.get(outer)?.get(inner)?.as_array()?.iter().find_map(|element| self.line_of(element))
    }

    /// How far the connection reaches, and what it does not cover, in lines.
    pub(crate) fn coverage(&self, level: ConnectLevel) -> Vec<String> {
        if level == ConnectLevel::Replace {
            return COVERAGE_OF_REPLACED.map(str::to_owned).to_vec();
        }
        let guard = match self.name {
            DialectName::Opencode => "the plugin file denies then",
            _ => "the shell line of the hook denies where it crashes or is missing",
        };
        let mut lines = vec![
            "level 2 for commands: each is rewritten to run confined by `capsule exec`".to_owned(),
            "level 1 for the agent's own file tools: judged, recorded and backed up; the agent itself carries them out".to_owned(),
            "not covered: what the agent does without its hook (its start, its memory files, its MCP servers' own processes), \
             and redirects of what it fetches"
                .to_owned(),
            format!("by itself the agent goes ahead when a hook fails ({}); {guard}", self.dialect().fails_open.join(", ")),
        ];
        if self.name == DialectName::Codex {
            lines.push(
                "Codex runs a hook only once you trust it: type `/hooks` in Codex".to_owned(),
            );
        }
        lines
    }
}

/// The line that an agent gives to a shell: whatever ends badly denies, with a reason for the model.
fn shell_line(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
    format!("{} || {{ echo {} >&2; exit 2; }}", words.join(" "), quote(FAILED))
}

/// The plugin file of opencode. A hook that throws denies.
fn plugin(words: &[String]) -> String {
    let words = json!(words);
    format!(
        r#"// Written by `capsule connect opencode`; `capsule connect opencode --undo` removes it.
import {{ spawnSync }} from "node:child_process";

const HOOK = {words};

export const Capsule = async ({{ directory }}) => ({{
  "tool.execute.before": async (input, output) => {{
    const call = {{
      session_id: input.sessionID,
      cwd: directory,
      hook_event_name: "tool.execute.before",
      tool_name: input.tool,
      tool_input: output.args,
    }};
    const done = spawnSync(HOOK[0], HOOK.slice(1), {{
      input: JSON.stringify(call),
      timeout: {wait},
      maxBuffer: 1 << 26,
    }});
    if (done.status !== 0) throw new Error("{FAILED}");
    const text = done.stdout.toString();
    if (text === "") return;
    const answer = JSON.parse(text);
    if (answer.decision !== "allow") throw new Error(answer.reason ?? "{FAILED}");
    if (answer.args) Object.assign(output.args, answer.args);
  }},
}});
"#,
        wait = HOST_WAIT_SECONDS * 1_000
    )
}
