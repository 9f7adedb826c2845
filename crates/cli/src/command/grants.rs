//! `capsule grants`: what people allowed beyond a call, as long as it is alive.

use capsule_core::escape;
use capsule_core::units::counted;
use capsule_report::age;
use capsule_runtime::{LiveGrant, clear_grants, live_grants, revoke_grant, this_moment};
use capsule_store::Store;
use serde_json::{Value, json};

use crate::args::GrantsOf;
use crate::command::open_store;
use crate::failure::Failure;
use crate::screen::{GOOD, HINT, Screen};
use crate::surroundings::Surroundings;

pub(crate) fn run(of: &GrantsOf, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    match of {
        GrantsOf::List => list(around, screen),
        GrantsOf::Revoke(args) => {
            open_store(around, screen)?;
            revoke_grant(&mut Store::open(&around.store)?, &args.id)?;
            told(1, &format!("{} is taken back", args.id), screen)
        }
        GrantsOf::Clear => {
            open_store(around, screen)?;
            let alive = clear_grants(&mut Store::open(&around.store)?)?;
            told(alive, &format!("all grants are taken back; {alive} were alive"), screen)
        }
    }
}

fn told(revoked: usize, says: &str, screen: &Screen) -> Result<u8, Failure> {
    if screen.json {
        screen.say_json(&json!({ "schema": 1, "revoked": revoked }))?;
        return Ok(0);
    }
    screen.say(&format!("{GOOD}✔{GOOD:#} {}", escape::line(says)))?;
    Ok(0)
}

fn list(around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let now = this_moment();
    // A store that is not there yet holds no grants.
    let alive = match !around.store_named && !around.store.exists() {
        true => Vec::new(),
        false => live_grants(&open_store(around, screen)?, now)?,
    };
    if screen.json {
        let alive: Vec<Value> = alive.iter().map(as_json).collect();
        screen.say_json(&json!({ "schema": 1, "grants": alive }))?;
        return Ok(0);
    }
    if alive.is_empty() {
        screen.say("no grant is alive")?;
        return Ok(0);
    }
    for own in &alive {
        let LiveGrant { id, scope, covers, left, until, stored, .. } = own;
        let uses = counted(*left, "use");
        let ends = age(until.saturating_sub(now));
        let waits = if *stored { " · waits for `capsule resume`" } else { "" };
        let covers = escape::line(covers);
        screen.say(&format!(
            "{id}  {:<7}  {covers} · {uses} · ends in {ends}{waits}",
            scope.keyword()
        ))?;
    }
    screen.complain(&format!("{HINT}take one back{HINT:#}: capsule grants revoke ID"));
    Ok(0)
}

fn as_json(own: &LiveGrant) -> Value {
    json!({
        "id": own.id,
        "run": own.run,
        "scope": own.scope,
        "covers": own.covers,
        "left": own.left,
        "until": own.until,
        "policy": own.policy,
        "stored": own.stored,
    })
}
