//! `capsule policy test`: what a policy says of its own decisions, decided and compared; and how
//! much of the policy that says anything about.

mod coverage;
mod mutants;

use std::sync::Arc;

use capsule_core::escape;
use capsule_core::exit::Exit;
use capsule_core::policy::Policy;
use capsule_runtime::{Authored, Checked, Law, check, claims};
use serde_json::{Value, json};

use crate::args::PolicyTest;
use crate::failure::Failure;
use crate::screen::{BAD, GOOD, HINT, Screen};
use crate::surroundings::Surroundings;

/// Exits with 0 if all of them are as they say, and with 2 if one is not, or if a changed rule goes
/// unnoticed where that is asked.
pub(crate) fn run(
    args: &PolicyTest,
    around: &Surroundings,
    screen: &Screen,
) -> Result<u8, Failure> {
    let law = around.law(&args.policy, None)?;
    // Each text is asked alone: what others add is not its author's.
    let of = |policy: &Arc<Policy>| check(policy, claims(policy));
    let mut checked = of(&law.alone());
    checked.extend(law.policy.layers.iter().flat_map(|layer| of(&layer.policy)));
    let failed = checked.iter().filter(|own| !own.wrong.is_empty()).count();
    let mut told = claims_json(&checked, failed);
    if !screen.json {
        show_claims(&law, &checked, failed, screen)?;
    }
    let mut is_ok = failed == 0;
    if args.coverage || args.mutate {
        let profile = args.policy.profile.as_deref();
        let authored = Authored::of(&law, profile)
            .map_err(|problems| Failure::Texts(law.text.clone(), problems))?;
        let mut put = |name: &str, value: Value| {
            if let Value::Object(map) = &mut told {
                map.insert(name.into(), value);
            }
        };
        if args.coverage {
            put("coverage", coverage::run(&authored, &law, screen)?);
        }
        // What does not hold by itself says nothing about slips.
        if args.mutate && is_ok {
            let (value, survived) = mutants::run(&authored, &law, screen)?;
            put("mutation", value);
            is_ok = survived == 0;
        } else if args.mutate && !screen.json {
            let why = "not tried until all examples and tests hold";
            screen.say(&format!("{HINT}mutants{HINT:#} {why}"))?;
        }
    }
    if screen.json {
        if let Value::Object(map) = &mut told {
            map.insert("ok".into(), is_ok.into());
        }
        screen.say_json(&told)?;
    }
    Ok(if is_ok { Exit::Ok } else { Exit::BadUsage }.status())
}

fn claims_json(checked: &[Checked], failed: usize) -> Value {
    let tests: Vec<Value> = checked.iter().map(row).collect();
    json!({ "passed": checked.len() - failed, "failed": failed, "tests": tests })
}

fn show_claims(
    law: &Law,
    checked: &[Checked],
    failed: usize,
    screen: &Screen,
) -> Result<(), Failure> {
    for own in checked.iter().filter(|own| !own.wrong.is_empty()) {
        told(own, screen)?;
    }
    let (style, word) = if failed == 0 { (GOOD, "✔ ok") } else { (BAD, "✖ wrong") };
    let name = escape::line(&law.policy.name);
    let passed = checked.len() - failed;
    screen.say(&format!("{style}{word}{style:#} {name} · {passed} passed · {failed} failed"))
}

fn told(own: &Checked, screen: &Screen) -> Result<(), Failure> {
    let Checked { claim, decision, wrong } = own;
    let under = claim.profile.as_ref().map(|own| format!(" under `{own}`")).unwrap_or_default();
    let line = format!("{}{under} [{}]", claim.name, claim.source.at);
    screen.say(&format!("{BAD}failed{BAD:#} {}", escape::line(&line)))?;
    for message in wrong {
        screen.say(&format!("  {}", escape::line(message)))?;
    }
    let by = decision.rule.as_deref().unwrap_or("no rule");
    let why = format!("{by}: {}", decision.reason);
    screen.say(&format!("  {HINT}decided{HINT:#} {}", escape::line(&why)))
}

fn row(own: &Checked) -> Value {
    let Checked { claim, decision, wrong } = own;
    let mut place = claim.source.at.rsplit(':').skip(1);
    let line: Option<usize> = place.next().and_then(|line| line.parse().ok());
    json!({
        "name": claim.name,
        "at": claim.source.at,
        "line": line,
        "profile": claim.profile,
        "tool": claim.tool,
        "args": claim.args,
        "ok": wrong.is_empty(),
        "wrong": wrong,
        "decision": decision,
    })
}
