//! `capsule stats`: what refusals add up to over the runs of the store. Patterns, never contents.

use capsule_core::escape;
use capsule_core::units::counted;
use capsule_report::{Asked, Friction, Prompts, Row, Safety, Spread, Stats};
use capsule_store::Filter;
use serde_json::{Value, json};

use crate::args::{StatsArgs, StatsOf};
use crate::command::{open_store, since, story};
use crate::failure::Failure;
use crate::screen::{CARE, Screen};
use crate::surroundings::Surroundings;

pub(crate) fn run(of: &StatsOf, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let (StatsOf::Denials(args)
    | StatsOf::Approvals(args)
    | StatsOf::Safety(args)
    | StatsOf::Friction(args)) = of;
    let stats = gather(args, around, screen)?;
    match of {
        StatsOf::Denials(_) => denials(&stats, args, screen),
        StatsOf::Approvals(_) => approvals(&stats, args, screen),
        StatsOf::Safety(_) => safety(&stats, args, screen),
        StatsOf::Friction(_) => friction(&stats, args, screen),
    }?;
    Ok(0)
}

fn gather(args: &StatsArgs, around: &Surroundings, screen: &Screen) -> Result<Stats, Failure> {
    let mut stats = Stats::default();
    // A store that is not there yet holds no runs.
    if !around.store_named && !around.store.exists() {
        return Ok(stats);
    }
    let store = open_store(around, screen)?;
    let filter = Filter { since: since(args.since.as_deref())?, ..Filter::default() };
    for run in store.list(&filter)?.iter().rev() {
        stats.add(&story(&store, &run.run)?);
    }
    Ok(stats)
}

fn head(stats: &Stats, args: &StatsArgs) -> Value {
    json!({
        "schema": 1,
        "since": args.since,
        "runs": stats.runs,
        "calls": stats.calls,
        "expected": stats.expected,
    })
}

/// The numbers of a report, with those that every report has.
fn say_json(stats: &Stats, args: &StatsArgs, own: Value, screen: &Screen) -> Result<(), Failure> {
    let mut all = head(stats, args);
    if let (Some(all), Value::Object(own)) = (all.as_object_mut(), own) {
        all.extend(own);
    }
    screen.say_json(&all)
}

fn told(stats: &Stats) -> String {
    let expected = match stats.expected {
        0 => String::new(),
        number => format!(" · {number} refused as expected"),
    };
    format!("{} · {}{expected}", counted(stats.runs, "run"), counted(stats.calls, "call"))
}

fn denials(stats: &Stats, args: &StatsArgs, screen: &Screen) -> Result<(), Failure> {
    let rows = stats.denials();
    if screen.json {
        return say_json(stats, args, json!({ "denials": rows }), screen);
    }
    screen.say(&told(stats))?;
    for Row { pattern, count, runs } in rows {
        let rule = pattern.rule.as_deref().unwrap_or("(no rule matches)");
        let program = pattern.program.map(|own| format!(" · {own}")).unwrap_or_default();
        let times = counted(runs, "run");
        let line = format!("{} · {rule} · {}{program} · {times}", pattern.code, pattern.tool);
        screen.say(&format!("{count:>6}  {}", escape::line(&line)))?;
    }
    Ok(())
}

fn approvals(stats: &Stats, args: &StatsArgs, screen: &Screen) -> Result<(), Failure> {
    let prompts = stats.prompts();
    let tenths = prompts.tenths_per_hour();
    if screen.json {
        let per_hour = tenths.map(|own| format!("{}.{}", own / 10, own % 10));
        return say_json(
            stats,
            args,
            json!({ "approvals": prompts, "prompts_per_hour": per_hour }),
            screen,
        );
    }
    let Prompts { prompts, most_in_an_hour, by_grants, unattended, rules, .. } = prompts;
    screen.say(&told(stats))?;
    let rate = tenths
        .map(|own| format!(" · {}.{} an hour, at most {most_in_an_hour}", own / 10, own % 10));
    screen.say(&format!("prompts       {prompts}{}", rate.unwrap_or_default()))?;
    screen.say(&format!("by grants     {by_grants}"))?;
    screen.say(&format!("nobody there  {unattended}"))?;
    for (rule, own) in rules {
        let Asked { allowed, denied, neither, millis, unread, is_unread } = own;
        let median = millis.median.map(|own| format!(" · median {own} ms")).unwrap_or_default();
        let neither = if *neither > 0 { format!(" · {neither} neither") } else { String::new() };
        let line = format!("{rule} · {allowed} allowed · {denied} denied{neither}{median}");
        screen.say(&format!("        {}", escape::line(&line)))?;
        if *is_unread {
            screen.say(&format!(
                "        {CARE}you are not reading these{CARE:#}: {unread} of {allowed} were allowed \
                 sooner than they can be read; write a rule instead"
            ))?;
        }
    }
    Ok(())
}

fn safety(stats: &Stats, args: &StatsArgs, screen: &Screen) -> Result<(), Failure> {
    let safety = stats.safety();
    if screen.json {
        return say_json(stats, args, json!({ "safety": safety }), screen);
    }
    let Safety { prevented, effects, denied, false_alarms, missed, false_alarms_per_mille } =
        safety;
    screen.say(&told(stats))?;
    screen.say(&format!("prevented     {}", prevented.values().sum::<u64>()))?;
    for (rule, count) in &prevented {
        screen.say(&format!("{count:>6}  {}", escape::line(rule)))?;
    }
    if !effects.is_empty() {
        screen.say("of commands that would have been")?;
    }
    for (effect, count) in &effects {
        screen.say(&format!("{count:>6}  {effect}"))?;
    }
    let rate = false_alarms_per_mille
        .map(|rate| format!(" ({}.{} % of {denied} refusals)", rate / 10, rate % 10));
    screen.say(&format!("false alarms  {false_alarms}{}", rate.unwrap_or_default()))?;
    screen.say(&format!("missed        {missed}"))?;
    screen.complain("false alarms and misses are what people reported with `capsule feedback`");
    Ok(())
}

fn friction(stats: &Stats, args: &StatsArgs, screen: &Screen) -> Result<(), Failure> {
    let friction = stats.friction();
    if screen.json {
        return say_json(stats, args, json!({ "friction": friction }), screen);
    }
    let Friction {
        refusals,
        rows,
        overcome,
        ended_the_run,
        refusals_until_accepted,
        millis_until_accepted,
        repeated,
    } = friction;
    let spread = |own: &Spread, unit: &str| match (own.median, own.most) {
        (Some(median), Some(most)) => format!("median {median}{unit} · at most {most}{unit}"),
        _ => "nothing to measure".into(),
    };
    screen.say(&told(stats))?;
    screen.say(&format!("refusals               {refusals} in {rows} rows"))?;
    screen.say(&format!("rows overcome          {overcome} · {ended_the_run} ended the run"))?;
    screen.say(&format!("refusals until then    {}", spread(refusals_until_accepted, "")))?;
    screen.say(&format!("time until then        {}", spread(millis_until_accepted, " ms")))?;
    screen.say(&format!("asked again unchanged  {repeated}"))
}
