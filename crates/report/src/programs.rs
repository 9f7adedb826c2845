//! What a policy says about programs, in words.

use capsule_core::capability::Capability;
use capsule_core::command_specs::Effect;
use capsule_core::confinement::ProcessLimits;
use capsule_core::policy::{
    CommandForm, CommandRule, ExecRule, FlagRule, ProgramRule, WorkDirectories,
};
use capsule_core::units::{show_size, show_span};

use crate::policy::{RuleLine, texts, token};

/// What holds for every command.
pub(crate) fn exec_rule(line: RuleLine, exec: &ExecRule) -> RuleLine {
    let ExecRule { programs: _, form, effects, denied_tokens, cwd, env, limits, timeout_max_ms } =
        exec;
    let form = match form {
        CommandForm::Argv => "argv",
        CommandForm::Command => "command",
    };
    let set = env.set.iter().map(|(name, value)| format!("{name}={value}"));
    let effects = effects.iter().map(|_| "programs that no rule names go by what they do");
    line.says("form", [form])
        .says("effects", effects)
        .says("denied_tokens", denied_tokens.iter().map(|own| token(&own.token)))
        .says("cwd", cwd.iter().flat_map(WorkDirectories::texts))
        .says("env pass", &env.pass)
        .says("env set", set)
        .says("env accept", &env.accept)
        .says("limits", bounds(limits))
        .says("timeout_max", [time(*timeout_max_ms)])
}

fn time(millis: u64) -> String {
    show_span(millis)
}

pub(crate) fn bounds(limits: &ProcessLimits) -> [String; 6] {
    [
        format!("timeout {}", time(limits.timeout_ms)),
        format!("cpu {}", time(limits.cpu_ms)),
        format!("memory {}", show_size(limits.memory_bytes)),
        match limits.processes {
            1 => "1 process".into(),
            some => format!("{some} processes"),
        },
        format!("stdout {}", show_size(limits.stdout_bytes)),
        format!("stderr {}", show_size(limits.stderr_bytes)),
    ]
}

/// A line for every word about what programs do, for every program, and for every subcommand below
/// its program's.
pub(crate) fn exec_rules(tool: &str, exec: &ExecRule) -> Vec<RuleLine> {
    let effects = exec.effects.iter().flat_map(|rule| {
        Effect::ALL.into_iter().map(|effect| {
            let (word, source) = rule.verdict(effect);
            let id = format!("{tool}/effects.{}", effect.name());
            RuleLine::new("tools", id, source).word(Some(word))
        })
    });
    effects.chain(exec.programs.iter().flat_map(|program| one(tool, program))).collect()
}

fn one(tool: &str, program: &ProgramRule) -> Vec<RuleLine> {
    let ProgramRule { name, source, path, sha256, command, global_flags, limits, timeout_max_ms } =
        program;
    let id = format!("{tool}/{name}");
    let line = RuleLine::new("tools", id.clone(), source)
        .word(command.decision)
        .says("path", path.iter())
        .says("sha256", sha256.iter().map(ToString::to_string))
        .says("global only", global_flags.allow.iter().flatten())
        .says("global not", global_flags.deny.iter().map(|(flag, _)| flag))
        .says("limits", limits.iter().flat_map(bounds))
        .says("timeout_max", timeout_max_ms.map(time));
    let mut lines = vec![said(line, command)];
    subcommands(&id, command, &mut lines);
    lines
}

fn subcommands(id: &str, command: &CommandRule, lines: &mut Vec<RuleLine>) {
    for (name, inner) in &command.subcommands {
        let id = format!("{id}.{name}");
        let line = RuleLine::new("tools", id.clone(), &inner.source).word(inner.decision);
        lines.push(said(line, inner));
        subcommands(&id, inner, lines);
    }
}

fn said(line: RuleLine, command: &CommandRule) -> RuleLine {
    let CommandRule {
        source: _,
        decision: _,
        flags,
        subcommands: _,
        reads,
        writes,
        needs,
        because,
        suggest,
    } = command;
    let FlagRule { source: _, allow, deny } = flags;
    line.says("only flags", allow.iter().flatten())
        .says("not flags", deny.iter().map(|(flag, _)| flag))
        .says("reads", reads.iter().flat_map(|own| texts(own)))
        .says("writes", writes.iter().flat_map(|own| texts(own)))
        .says("powers", needs.iter().flat_map(|own| own.iter()).map(Capability::name))
        .why(because, suggest)
}
