//! `capsule stats`: what refusals add up to over the runs of the store. Patterns, never contents.

use capsule_base::escape;
use capsule_base::units::counted;
use capsule_report::{
    CodeFriction, Distribution, FrictionStats, PromptStats, RefusalCount, RulePromptStats,
    SafetyStats, Stats,
};
use capsule_store::RunFilter;
use serde_json::{Value, json};

use crate::args::{StatsArgs, StatsCommand};
use crate::command::{open_store, parse_since, read_run};
use crate::context::CliContext;
use crate::failure::Failure;
use crate::screen::{Screen, WARNING};

pub(crate) fn run(of: &StatsCommand, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let (StatsCommand::Denials(args)
    | StatsCommand::Approvals(args)
    | StatsCommand::Safety(args)
    | StatsCommand::Friction(args)) = of;
    let stats = gather(args, ctx, screen)?;
    match of {
        StatsCommand::Denials(_) => show_denials(&stats, args, screen),
        StatsCommand::Approvals(_) => show_approvals(&stats, args, screen),
        StatsCommand::Safety(_) => show_safety(&stats, args, screen),
        StatsCommand::Friction(_) => show_friction(&stats, args, screen),
    }?;
    Ok(0)
}

fn gather(args: &StatsArgs, ctx: &CliContext, screen: &Screen) -> Result<Stats, Failure> {
    let mut stats = Stats::default();
    // A store that is not there yet holds no runs.
    if !ctx.store_is_explicit && !ctx.store.exists() {
        return Ok(stats);
    }
    let store = open_store(ctx, screen)?;
    let filter = RunFilter { since: parse_since(args.since.as_deref())?, ..RunFilter::default() };
    for run in store.list(&filter)?.iter().rev() {
        stats.add(&read_run(&store, &run.run)?);
    }
    Ok(stats)
}

fn head_json(stats: &Stats, args: &StatsArgs) -> Value {
    json!({
        "schema": 1,
        "since": args.since,
        "runs": stats.runs,
        "calls": stats.calls,
        "expected": stats.expected,
    })
}

/// The numbers of a report, with those that every report has.
fn print_json(
    stats: &Stats,
    args: &StatsArgs,
    value: Value,
    screen: &Screen,
) -> Result<(), Failure> {
    let mut all = head_json(stats, args);
    if let (Some(all), Value::Object(map)) = (all.as_object_mut(), value) {
        all.extend(map);
    }
    screen.print_json(&all)
}

fn counts_text(stats: &Stats) -> String {
    let expected = match stats.expected {
        0 => String::new(),
        number => format!(" · {number} refused as expected"),
    };
    format!("{} · {}{expected}", counted(stats.runs, "run"), counted(stats.calls, "call"))
}

fn show_denials(stats: &Stats, args: &StatsArgs, screen: &Screen) -> Result<(), Failure> {
    let rows = stats.refusal_counts();
    if screen.json {
        return print_json(stats, args, json!({ "denials": rows }), screen);
    }
    screen.print_line(&counts_text(stats))?;
    for RefusalCount { pattern, count, runs } in rows {
        let rule = pattern.rule.as_deref().unwrap_or("(no rule matches)");
        let program = pattern.program.map(|program| format!(" · {program}")).unwrap_or_default();
        let times = counted(runs, "run");
        let line = format!("{} · {rule} · {}{program} · {times}", pattern.code, pattern.tool);
        screen.print_fitted(&format!("{count:>6}  {}", escape::line(&line)))?;
    }
    Ok(())
}

fn show_approvals(stats: &Stats, args: &StatsArgs, screen: &Screen) -> Result<(), Failure> {
    let prompts = stats.prompts();
    let tenths = prompts.tenths_per_hour();
    if screen.json {
        let per_hour = tenths.map(|tenth| format!("{}.{}", tenth / 10, tenth % 10));
        return print_json(
            stats,
            args,
            json!({ "approvals": prompts, "prompts_per_hour": per_hour }),
            screen,
        );
    }
    let PromptStats { prompts, most_in_an_hour, by_grants, unattended, rules, .. } = prompts;
    screen.print_line(&counts_text(stats))?;
    let rate = tenths.map(|tenth| {
        format!(" · {}.{} an hour, at most {most_in_an_hour}", tenth / 10, tenth % 10)
    });
    screen.print_fitted(&format!("prompts       {prompts}{}", rate.unwrap_or_default()))?;
    screen.print_fitted(&format!("by grants     {by_grants}"))?;
    screen.print_fitted(&format!("unattended    {unattended}"))?;
    for (rule, stats) in rules {
        let RulePromptStats { allowed, denied, neither, millis, unread, is_unread } = stats;
        let median =
            millis.median.map(|median| format!(" · median {median} ms")).unwrap_or_default();
        let neither = if *neither > 0 { format!(" · {neither} neither") } else { String::new() };
        let line = format!("{rule} · {allowed} allowed · {denied} denied{neither}{median}");
        screen.print_fitted(&format!("        {}", escape::line(&line)))?;
        if *is_unread {
            screen.print_fitted(&format!(
                "        {WARNING}you are not reading these{WARNING:#}: {unread} of {allowed} were allowed \
                 sooner than they can be read; write a rule instead"
            ))?;
        }
    }
    Ok(())
}

fn show_safety(stats: &Stats, args: &StatsArgs, screen: &Screen) -> Result<(), Failure> {
    let safety = stats.safety();
    if screen.json {
        return print_json(stats, args, json!({ "safety": safety }), screen);
    }
    let SafetyStats {
        prevented,
        effects,
        denied,
        prevented_per_mille,
        false_alarms,
        missed,
        false_alarms_per_mille,
    } = safety;
    screen.print_line(&counts_text(stats))?;
    let rate = prevented_per_mille
        .map(|rate| format!(" ({}.{} % of what was dangerous)", rate / 10, rate % 10));
    let number = prevented.values().sum::<u64>();
    screen.print_fitted(&format!("prevented     {number}{}", rate.unwrap_or_default()))?;
    for (rule, count) in &prevented {
        screen.print_fitted(&format!("{count:>6}  {}", escape::line(rule)))?;
    }
    if !effects.is_empty() {
        screen.print_line("of commands that would have been")?;
    }
    for (effect, count) in &effects {
        screen.print_fitted(&format!("{count:>6}  {effect}"))?;
    }
    let rate = false_alarms_per_mille
        .map(|rate| format!(" ({}.{} % of {denied} refusals)", rate / 10, rate % 10));
    screen.print_fitted(&format!("false alarms  {false_alarms}{}", rate.unwrap_or_default()))?;
    screen.print_fitted(&format!("missed        {missed}"))?;
    screen.eprint("false alarms and misses are what people reported with `capsule feedback`");
    Ok(())
}

fn show_friction(stats: &Stats, args: &StatsArgs, screen: &Screen) -> Result<(), Failure> {
    let friction = stats.friction();
    if screen.json {
        return print_json(stats, args, json!({ "friction": friction }), screen);
    }
    let FrictionStats {
        refusals,
        rows,
        overcome,
        ended_the_run,
        refusals_until_accepted,
        millis_until_accepted,
        repeated,
        by_code,
    } = friction;
    let spread =
        |distribution: &Distribution, unit: &str| match (distribution.median, distribution.most) {
            (Some(median), Some(most)) => format!("median {median}{unit} · at most {most}{unit}"),
            _ => "nothing to measure".into(),
        };
    screen.print_line(&counts_text(stats))?;
    let tasks =
        if *rows == 1 { "one place of a run".into() } else { format!("{rows} places of runs") };
    screen.print_fitted(&format!("refusals               {refusals}, in {tasks}"))?;
    screen.print_fitted(&format!(
        "accepted in the end    {overcome} of {rows} · {ended_the_run} ended the run"
    ))?;
    screen
        .print_fitted(&format!("refusals until then    {}", spread(refusals_until_accepted, "")))?;
    screen.print_fitted(&format!(
        "time until then        {}",
        spread(millis_until_accepted, " ms")
    ))?;
    screen.print_fitted(&format!("asked again unchanged  {repeated}"))?;
    if !by_code.is_empty() {
        screen.print_line("proposals until a valid one, by the refusal that came first")?;
    }
    for (code, CodeFriction { rows, overcome, proposals_until_accepted }) in by_code {
        let proposals = spread(proposals_until_accepted, "");
        screen.print_fitted(&format!("        {code} · {overcome} of {rows} · {proposals}"))?;
    }
    Ok(())
}
