//! The same agents as a whole in `capsule sandbox`, without a hook and with all permissions of their own.

use std::fs;
use std::path::Path;
use std::process::Command;

use capsule_testkit::HttpServer;
use serde_json::{Value, json};

use super::model::{WireFormat, serve};
use super::{Client, SECONDS, SECRET, at, codex_steps, tell};
use crate::TaskResult;

/// What a model asks for: what lies in the workspace, in the home directory and in `/tmp`.
const LOOK: &str = "ls; pwd; cat ~/.ssh/id_rsa; ls /tmp";
const EDIT: &str = "echo 'quinces: 12' > notes.md; make -s -f test.mk test";

impl Client {
    /// Claude Code in the sandbox, by its tools for commands, reading and editing.
    pub(super) fn check_confined_claude_code(&self, program: &Path) -> TaskResult<bool> {
        let command = |text: &str| ("Bash", json!({ "command": text, "description": "a step" }));
        let notes = "/workspace/notes.md";
        let key = self.home.join(".ssh/id_rsa");
        let steps = vec![
            command(LOOK),
            ("Read", json!({ "file_path": notes })),
            ("Read", json!({ "file_path": key })),
            ("Edit", json!({ "file_path": notes, "old_string": "pears", "new_string": "quinces" })),
            command("make -s -f test.mk test; git status --short; touch ~/outside.txt"),
        ];
        let server = serve(WireFormat::Messages, steps);
        let url = format!("ANTHROPIC_BASE_URL={}", server.url(""));
        let variables =
            [&url, "ANTHROPIC_API_KEY=none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"];
        let words = ["-p", "go", "--output-format", "json", "--dangerously-skip-permissions"];
        self.check_confined(program, &variables, &words, &server)
    }

    /// Codex in the sandbox, by its commands.
    pub(super) fn check_confined_codex(&self, program: &Path) -> TaskResult<bool> {
        let steps = codex_steps(&[LOOK, EDIT, "touch ~/outside.txt"]);
        let server = serve(WireFormat::Responses, steps);
        let provider = format!(
            "model_providers.local={{ name = \"local\", base_url = \"{}\", wire_api = \"responses\", env_key = \"SCRIPTED_KEY\" }}",
            server.url("/v1")
        );
        let settings = ["model=\"scripted\"", "model_provider=\"local\"", &provider];
        let mut words = vec!["exec", "--dangerously-bypass-approvals-and-sandbox"];
        words.extend(["--skip-git-repo-check"]);
        words.extend(settings.iter().flat_map(|setting| ["-c", setting]));
        words.push("go");
        self.check_confined(program, &["SCRIPTED_KEY=none"], &words, &server)
    }

    fn check_confined(
        &self,
        program: &Path,
        variables: &[&str],
        words: &[&str],
        server: &HttpServer,
    ) -> TaskResult<bool> {
        let name = format!("of-the-host-{}", std::process::id());
        let mark = std::env::temp_dir().join(&name);
        fs::write(&mark, "").map_err(|error| at(&mark, &error))?;
        let mut agent = Command::new("timeout");
        agent.arg(SECONDS).arg(&self.capsule).arg("sandbox");
        agent.args(variables.iter().flat_map(|variable| ["--env", variable]));
        agent.arg("--").arg(program).args(words);
        let done = self.output(&mut agent)?;
        fs::remove_file(&mark).map_err(|error| at(&mark, &error))?;
        let bodies: Vec<String> = server
            .requests()
            .iter()
            .map(|request| String::from_utf8_lossy(&request.body).into_owned())
            .collect();
        let sent = |text: &str| bodies.iter().any(|body| body.contains(text));
        let notes = fs::read_to_string(self.workspace.join("notes.md")).unwrap_or_default();
        let is_good = tell(&[
            (done.status.success(), "the agent ended badly"),
            (sent("notes.md") && sent("/workspace"), "the workspace was not seen"),
            (notes == "quinces: 12\n", "the workspace was not edited"),
            (sent("passed"), "the test did not run"),
            (!sent(SECRET), "a private key of the host was seen"),
            (!sent(&name), "the host's directory of temporary files was seen"),
            (!self.home.join("outside.txt").exists(), "the home directory was written"),
        ]);
        if !is_good {
            let last = bodies.last().map(|body| serde_json::from_str::<Value>(body));
            println!("{}\n{last:?}", String::from_utf8_lossy(&done.stderr));
        }
        Ok(is_good)
    }
}
