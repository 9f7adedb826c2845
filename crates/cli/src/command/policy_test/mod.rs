//! `capsule policy test`: what a policy says of its own decisions, decided and compared; and how
//! much of the policy that says anything about.

mod coverage;
mod mutants;

use std::sync::Arc;

use capsule_authoring::{CheckedAssertion, EditablePolicy, assertions, check_assertions};
use capsule_base::escape;
use capsule_base::exit::Exit;
use capsule_core::policy::Policy;
use capsule_runtime::{BoundPolicy, TOOL_SET};
use serde_json::{Value, json};

use crate::args::PolicyTestArgs;
use crate::context::CliContext;
use crate::failure::Failure;
use crate::screen::{ERROR, HINT, SUCCESS, Screen};

/// Exits with 0 if all of them are as they say, and with 2 if one is not, or if a changed rule goes
/// unnoticed where that is asked.
pub(crate) fn run(args: &PolicyTestArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let policy = args.named.named();
    let bound = ctx.load_policy(&policy, None)?;
    // Each text is asked alone: what others add is not its author's.
    let of = |policy: &Arc<Policy>| check_assertions(policy, assertions(policy), &TOOL_SET);
    let mut checked = of(&bound.without_layers());
    checked.extend(bound.policy.layers().iter().flat_map(|layer| of(&layer.policy)));
    let failed = checked.iter().filter(|assertion| !assertion.differences.is_empty()).count();
    let mut told = assertions_json(&checked, failed);
    if !screen.json {
        show_assertions(&bound, &checked, failed, screen)?;
    }
    let mut is_ok = failed == 0;
    if args.coverage || args.mutate {
        let profile = policy.profile.as_deref();
        let loaded = bound.loaded();
        let authored = EditablePolicy::parse(&loaded, &TOOL_SET, profile)
            .map_err(|problems| Failure::InvalidText(bound.text.clone(), problems))?;
        let mut put = |name: &str, value: Value| {
            if let Value::Object(map) = &mut told {
                map.insert(name.into(), value);
            }
        };
        if args.coverage {
            put("coverage", coverage::run(&authored, &bound, screen)?);
        }
        // What does not hold by itself says nothing about slips.
        if args.mutate && is_ok {
            let (value, survived) = mutants::run(&authored, &bound, screen)?;
            put("mutation", value);
            is_ok = survived == 0;
        } else if args.mutate && !screen.json {
            let why = "not tried until all examples and tests hold";
            screen.print_line(&format!("{HINT}mutants{HINT:#} {why}"))?;
        }
    }
    if screen.json {
        if let Value::Object(map) = &mut told {
            map.insert("ok".into(), is_ok.into());
        }
        screen.print_json(&told)?;
    }
    Ok(if is_ok { Exit::Ok } else { Exit::BadUsage }.status())
}

fn assertions_json(checked: &[CheckedAssertion], failed: usize) -> Value {
    let tests: Vec<Value> = checked.iter().map(assertion_json).collect();
    json!({ "passed": checked.len() - failed, "failed": failed, "tests": tests })
}

fn show_assertions(
    bound: &BoundPolicy,
    checked: &[CheckedAssertion],
    failed: usize,
    screen: &Screen,
) -> Result<(), Failure> {
    for difference in checked.iter().filter(|assertion| !assertion.differences.is_empty()) {
        show_failed(difference, screen)?;
    }
    let (style, word) = if failed == 0 { (SUCCESS, "✔ ok") } else { (ERROR, "✖ wrong") };
    let name = escape::line(&bound.policy.name);
    let passed = checked.len() - failed;
    screen.print_line(&format!("{style}{word}{style:#} {name} · {passed} passed · {failed} failed"))
}

fn show_failed(assertion: &CheckedAssertion, screen: &Screen) -> Result<(), Failure> {
    let CheckedAssertion { assertion, decision, differences: wrong } = assertion;
    let under =
        assertion.profile.as_ref().map(|profile| format!(" under `{profile}`")).unwrap_or_default();
    let line = format!("{}{under} [{}]", assertion.name, assertion.source.at);
    screen.print_line(&format!("{ERROR}failed{ERROR:#} {}", escape::line(&line)))?;
    for message in wrong {
        screen.print_line(&format!("  {}", escape::line(message)))?;
    }
    let by = decision.rule.as_deref().unwrap_or("no rule");
    let why = format!("{by}: {}", decision.reason);
    screen.print_line(&format!("  {HINT}decided{HINT:#} {}", escape::line(&why)))
}

fn assertion_json(assertion: &CheckedAssertion) -> Value {
    let CheckedAssertion { assertion, decision, differences: wrong } = assertion;
    let mut place = assertion.source.at.rsplit(':').skip(1);
    let line: Option<usize> = place.next().and_then(|line| line.parse().ok());
    json!({
        "name": assertion.name,
        "at": assertion.source.at,
        "line": line,
        "profile": assertion.profile,
        "tool": assertion.tool,
        "args": assertion.args,
        "ok": wrong.is_empty(),
        "wrong": wrong,
        "decision": decision,
    })
}
