//! A run that was recorded, for tests of what is done with records.

use crate::Capsule;

/// A policy for the plan.
pub const POLICY: &str = "version: 1
name: recorder
tools:
  fs.read: allow
  fs.list: allow
  fs.write: { decision: allow, paths: [\"out/**\"] }
";

/// A plan with a step of every kind: read, denied as expected, broken, written, wrong, not reached.
pub const PLAN: &str = "version: 1
name: recorded
inputs: { who: { default: world } }
steps:
  - { id: read, tool: fs.read, args: { path: a.txt } }
  - { id: denied, tool: fs.read, args: { path: .env }, expect: { denied: no-credentials } }
  - { id: broken, tool: fs.read, args: { path: nothing }, on_error: continue }
  - id: write
    tool: fs.write
    args: { path: out/b.txt, content: { $concat: [{ $ref: steps.read.text }, { $ref: inputs.who }] } }
  - { id: wrong, tool: fs.read, args: { path: a.txt }, expect: { text: other }, on_error: { retry: 1 } }
  - { id: never, tool: fs.list, args: { path: . } }
outputs: { file: { $ref: steps.write.path } }
";

/// A recorded run and everything around it.
#[derive(Debug)]
pub struct RecordedRun {
    /// The surroundings; its store holds this run.
    pub capsule: Capsule,
    /// The policy's path.
    pub policy: String,
    /// The plan's path.
    pub plan: String,
    /// What the run printed.
    pub transcript: String,
    /// How it ended.
    pub exit: i32,
}

impl RecordedRun {
    /// Runs a plan under [`POLICY`], with `a.txt` in the workspace and the input `who=you`.
    #[must_use]
    pub fn record(capsule: Capsule, plan: &str) -> Self {
        capsule.write_file("a.txt", "hello ");
        let policy = capsule.write_policy(POLICY);
        let plan = capsule.write_plan(plan);
        let ran = capsule.run(&["run", &plan, "--policy", &policy, "--input", "who=you"]);
        Self { transcript: ran.stdout, exit: ran.status, capsule, policy, plan }
    }
}
