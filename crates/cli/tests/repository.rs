//! The database of a git repository: what a run makes of it is compared with what was there, before it is
//! applied.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Output};

use capsule_testkit::{Capsule, CommandOutput, run_in_parallel};

#[path = "repository/content.rs"]
mod content;
#[path = "repository/honest.rs"]
mod honest;
#[path = "repository/looked_at.rs"]
mod looked_at;

const POLICY: &str = r#"version: 1
sandbox: { floor: landlock }
tools:
  fs.write: { decision: allow, hidden: allow, paths: ["**"] }
  fs.edit: { decision: allow, hidden: allow, paths: ["**"] }
  fs.delete: { decision: allow, hidden: allow, paths: ["**"] }
  shell.run:
    limits: { timeout: 60s, timeout_max: 60s }
    executables:
      perl: { decision: allow, writes: ["**"] }
"#;

/// What every repository here has: two commits, of which the second changes what a build server runs, and a
/// branch of somebody else that was fetched and has something else there.
const REPOSITORY: &str = r#"
git init -q -b main .
git config user.name Ada
git config user.email ada@localhost
mkdir -p .github/workflows .husky src
echo one > .github/workflows/ci.yml
echo 'echo hook' > .husky/pre-commit
for n in 1 2 3; do seq $n 200 > src/$n; done
git add .
git commit -qm first
echo two > .github/workflows/ci.yml
echo more >> src/1
git commit -qam second
git checkout -q -b theirs
echo evil > .github/workflows/ci.yml
echo theirs > src/theirs
git add .
git commit -qm theirs
git update-ref refs/remotes/origin/theirs HEAD
git checkout -q main
git branch -qD theirs
git reflog expire --expire=now --all
"#;

/// A workspace with a repository in it.
struct Bed {
    capsule: Capsule,
    policy: String,
}

impl Bed {
    fn new(more: &str) -> Self {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        let policy = capsule.write_policy(POLICY);
        let bed = Self { capsule, policy };
        bed.host(&format!("{REPOSITORY}{more}"));
        bed
    }

    /// Runs a script on the host; it has to succeed.
    fn host(&self, script: &str) -> String {
        let ran = self.on_host(script);
        let told = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{script}: {told}");
        String::from_utf8_lossy(&ran.stdout).into_owned()
    }

    fn on_host(&self, script: &str) -> Output {
        let mut command = Command::new("sh");
        command.args(["-ec", script]).current_dir(self.capsule.workspace());
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.env("HOME", self.capsule.home()).env("GIT_CONFIG_NOSYSTEM", "1");
        command.output().unwrap()
    }

    /// Runs a script in the sandbox, which changes the workspace itself.
    fn directly(&self, script: &str) -> CommandOutput {
        let direct = self.policy.replace("policy.yaml", "direct.yaml");
        assert_ne!(direct, self.policy);
        let policy = POLICY.replace("{ floor: landlock }", "{ workspace: direct }");
        fs::write(&direct, policy).unwrap();
        self.run(&direct, script)
    }

    /// Runs a script in the sandbox.
    fn inside(&self, script: &str) -> CommandOutput {
        self.run(&self.policy, script)
    }

    fn run(&self, policy: &str, script: &str) -> CommandOutput {
        let perl = "local $/; my $script = <STDIN>; exec('sh', '-ec', $script) or die";
        let line = ["exec", "--policy", policy, "--json", "--stdin", "--", "perl", "-e", perl];
        self.capsule.run_with(&line, script)
    }

    fn apply(&self) -> CommandOutput {
        self.capsule.run(&["apply", "latest"])
    }

    /// Every file of the workspace.
    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut all = BTreeMap::new();
        let root = self.capsule.workspace();
        let mut waiting = vec![root.clone()];
        while let Some(folder) = waiting.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
                if path.is_symlink() {
                    let target = fs::read_link(&path).unwrap();
                    all.insert(name, target.to_string_lossy().into_owned().into_bytes());
                } else if path.is_dir() {
                    waiting.push(path);
                } else {
                    all.insert(name, fs::read(&path).unwrap());
                }
            }
        }
        all
    }
}

/// What a result says, for a message.
fn told(ran: &CommandOutput) -> String {
    let reason = serde_json::from_str::<serde_json::Value>(&ran.stdout).unwrap_or_default();
    let said = [&reason["reason"], &reason["result"]["stderr"]].map(ToString::to_string);
    format!("{} {} {}", ran.status, said.join(" "), ran.stderr)
}
