//! `capsule grants`: what people allowed beyond a call, as long as it counts.

use capsule_base::escape;
use capsule_base::units::counted;
use capsule_report::age_text;
use capsule_runtime::{ActiveGrant, active_grants, clear_grants, now_micros, revoke_grant};
use capsule_store::Store;
use serde_json::{Value, json};

use crate::args::GrantsCommand;
use crate::command::open_store;
use crate::context::CliContext;
use crate::failure::Failure;
use crate::screen::{HINT, SUCCESS, Screen};

pub(crate) fn run(of: &GrantsCommand, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    match of {
        GrantsCommand::List => list(ctx, screen),
        GrantsCommand::Revoke(args) => {
            open_store(ctx, screen)?;
            revoke_grant(&mut Store::open(&ctx.store)?, &args.id)?;
            show_revoked(1, &format!("{} is taken back", args.id), screen)
        }
        GrantsCommand::Clear => {
            open_store(ctx, screen)?;
            let alive = clear_grants(&mut Store::open(&ctx.store)?)?;
            show_revoked(alive, &format!("all grants are taken back; {alive} were alive"), screen)
        }
    }
}

fn show_revoked(revoked: usize, says: &str, screen: &Screen) -> Result<u8, Failure> {
    if screen.json {
        screen.print_json(&json!({ "schema": 1, "revoked": revoked }))?;
        return Ok(0);
    }
    screen.print_fitted(&format!("{SUCCESS}✔{SUCCESS:#} {}", escape::line(says)))?;
    Ok(0)
}

fn list(ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let now = now_micros();
    // A store that is not there yet holds no grants.
    let alive = match !ctx.store_is_explicit && !ctx.store.exists() {
        true => Vec::new(),
        false => active_grants(&open_store(ctx, screen)?, now)?,
    };
    if screen.json {
        let alive: Vec<Value> = alive.iter().map(grant_json).collect();
        screen.print_json(&json!({ "schema": 1, "grants": alive }))?;
        return Ok(0);
    }
    if alive.is_empty() {
        screen.print_line("there are no active grants")?;
        return Ok(0);
    }
    for grant in &alive {
        let ActiveGrant { id, scope, pattern_text: covers, uses_left: left, until, stored, .. } =
            grant;
        let uses = counted(*left, "use");
        // Four hours are four hours for a moment longer than they are three.
        let left_micros = until.saturating_sub(now);
        let hour = 3_600_000_000;
        let rounding = if left_micros > hour { hour - 1 } else { 0 };
        let ends = age_text(left_micros + rounding);
        let waits = if *stored { " · waits for `capsule resume`" } else { "" };
        let covers = escape::line(covers);
        screen.print_fitted(&format!(
            "{id}  {:<7}  {covers} · {uses} · ends in {ends}{waits}",
            scope.keyword()
        ))?;
    }
    screen.eprint(&format!("{HINT}take one back{HINT:#}: capsule grants revoke ID"));
    Ok(0)
}

fn grant_json(grant: &ActiveGrant) -> Value {
    json!({
        "id": grant.id,
        "run": grant.run,
        "scope": grant.scope,
        "covers": grant.pattern_text,
        "left": grant.uses_left,
        "until": grant.until,
        "policy": grant.policy,
        "stored": grant.stored,
    })
}
