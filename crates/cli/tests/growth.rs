//! What a call costs does not grow with what its run did before.

#![allow(clippy::unwrap_used, reason = "tests fail by panics")]

use std::process::Command;

use capsule_testkit::Capsule;

const POLICY: &str = r#"version: 1
tools:
  fs.read: { decision: allow, paths: ["**"] }
  fs.write: { decision: allow, paths: ["**"] }
  fs.edit: { decision: allow, paths: ["**"] }
  fs.delete: { decision: allow, paths: ["**"] }
  shell.run: { executables: { cp: { decision: allow, writes: ["**"] } } }
budgets: { run: { calls: 100000 } }
sandbox: { workspace: staged }
"#;

/// How often a call may cost what it cost in a short run. Without the defect it is 1.0 to 1.1.
const MOST: f64 = 1.5;

/// The same for steps that are further apart, without what the run costs by itself.
const FAR: f64 = 1.3;

/// The processor time in seconds of a plan with so many steps in a staged workspace, a step.
fn cost(steps: u32, step: &str) -> f64 {
    spent(steps, step) / f64::from(steps)
}

/// The processor time in seconds of such a plan.
fn spent(steps: u32, step: &str) -> f64 {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let policy = capsule.write_policy(POLICY);
    let mut plan = String::from("version: 1\nname: many\nsteps:\n");
    for number in 0..steps {
        let _ = capsule.write_file(&format!("in/f{number}.txt"), format!("hello {number}\n"));
        plan += &step.replace("{n}", &number.to_string());
    }
    let plan = capsule.write_plan(&plan);
    let run = capsule.command(&["run", &plan, "--policy", &policy]);
    // The kernel counts the time of a child for the process that waited for it.
    let mut timed = Command::new("perl");
    timed
        .args(["-e", "system(@ARGV) == 0 or exit 1; my @t = times; print 'spent ', $t[2] + $t[3]"]);
    timed.arg(run.get_program()).args(run.get_args());
    timed.current_dir(run.get_current_dir().unwrap()).env_clear();
    timed.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = timed.output().unwrap();
    let said = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    said.rsplit_once("spent ").unwrap().1.parse().unwrap()
}

/// L2: a change of a staged run costs the same, however many came before it.
#[test]
fn staged_changes_cost_the_same_however_many_there_are() {
    for step in [
        "  - { tool: fs.write, args: { path: 'out/d/f{n}.txt', content: 'x{n}', mode: create } }\n",
        "  - { tool: fs.edit, args: { path: 'in/f{n}.txt', search: 'hello', replace: 'bye' } }\n",
        "  - { tool: fs.delete, args: { path: 'in/f{n}.txt' } }\n",
    ] {
        let (few, many) = (cost(150, step), cost(900, step));
        assert!(many < few * MOST, "{step}: {few:.6} s a step, then {many:.6}");
    }
}

/// L2: the same far into a run, where new paths come one after the other. What a run costs by itself is taken
/// off, so that it does not hide the growth.
#[test]
fn thousands_of_new_paths_cost_the_same_each() {
    const STEP: &str =
        "  - { tool: fs.write, args: { path: 'out/d/f{n}.txt', content: 'x{n}', mode: create } }\n";
    let (begun, few, many) = (spent(1, STEP), spent(500, STEP), spent(3_000, STEP));
    let (early, late) = ((few - begun) / 499.0, (many - few) / 2_500.0);
    assert!(late < early * FAR, "{early:.6} s a step, then {late:.6}");
}
