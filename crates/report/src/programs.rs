//! What a policy says about programs, in words.

use capsule_base::units::{show_size, show_span};
use capsule_command::specs::Effect;
use capsule_core::capability::Capability;
use capsule_core::confinement::ProcessLimits;
use capsule_core::policy::{
    CommandForm, CommandRule, ExecRule, FlagRule, ProgramRule, WorkDirectories,
};

use crate::rule_line::{RuleLine, pattern_texts, token_text};

/// What holds for every command.
pub(crate) fn with_exec_rule(line: RuleLine, exec: &ExecRule) -> RuleLine {
    let ExecRule { programs: _, form, effects, denied_tokens, cwd, env, limits, timeout_max_ms } =
        exec;
    let form = match form {
        CommandForm::Argv => "argv",
        CommandForm::Command => "command",
    };
    let set = env.set.iter().map(|(name, value)| format!("{name}={value}"));
    let effects = effects.iter().map(|_| "programs that no rule names go by what they do");
    line.with("form", [form])
        .with("effects", effects)
        .with("denied_tokens", denied_tokens.iter().map(|token| token_text(&token.token)))
        .with("cwd", cwd.iter().flat_map(WorkDirectories::texts))
        .with("env pass", &env.pass)
        .with("env set", set)
        .with("env accept", &env.accept)
        .with("limits", limit_texts(limits))
        .with("timeout_max", [duration_text(*timeout_max_ms)])
}

fn duration_text(millis: u64) -> String {
    show_span(millis)
}

/// The limits that a policy can set, each by its key.
pub(crate) fn limit_texts(limits: &ProcessLimits) -> [String; 8] {
    // Without `..`, so that a new one is not forgotten.
    let ProcessLimits {
        timeout_ms,
        cpu_ms,
        memory_bytes,
        processes,
        open_files: _,
        file_bytes,
        tmp_bytes,
        stdout_bytes,
        stderr_bytes,
    } = *limits;
    [
        format!("timeout {}", duration_text(timeout_ms)),
        format!("cpu {}", duration_text(cpu_ms)),
        format!("memory {}", show_size(memory_bytes)),
        match processes {
            1 => "1 process".into(),
            some => format!("{some} processes"),
        },
        format!("tmp {}", show_size(tmp_bytes)),
        format!("file {}", show_size(file_bytes)),
        format!("stdout {}", show_size(stdout_bytes)),
        format!("stderr {}", show_size(stderr_bytes)),
    ]
}

/// A line for every word about what programs do, for every program, and for every subcommand below
/// its program's.
pub(crate) fn exec_rules(tool: &str, exec: &ExecRule) -> Vec<RuleLine> {
    let effects = exec.effects.iter().flat_map(|rule| {
        Effect::ALL.into_iter().map(|effect| {
            let (word, source) = rule.verdict(effect);
            let id = format!("{tool}/effects.{}", effect.name());
            RuleLine::new("tools", id, source).with_decision(Some(word))
        })
    });
    effects.chain(exec.programs.iter().flat_map(|program| program_rules(tool, program))).collect()
}

fn program_rules(tool: &str, program: &ProgramRule) -> Vec<RuleLine> {
    let ProgramRule { name, source, path, sha256, command, global_flags, limits, timeout_max_ms } =
        program;
    let id = format!("{tool}/{name}");
    let line = RuleLine::new("tools", id.clone(), source)
        .with_decision(command.decision)
        .with("path", path.iter())
        .with("sha256", sha256.iter().map(ToString::to_string))
        .with("global only", global_flags.allow.iter().flatten())
        .with("global not", global_flags.deny.iter().map(|(flag, _)| flag))
        .with("limits", limits.iter().flat_map(limit_texts))
        .with("timeout_max", timeout_max_ms.map(duration_text));
    let mut lines = vec![with_command_rule(line, command)];
    add_subcommands(&id, command, &mut lines);
    lines
}

fn add_subcommands(id: &str, command: &CommandRule, lines: &mut Vec<RuleLine>) {
    for (name, inner) in &command.subcommands {
        let id = format!("{id}.{name}");
        let line = RuleLine::new("tools", id.clone(), &inner.source).with_decision(inner.decision);
        lines.push(with_command_rule(line, inner));
        add_subcommands(&id, inner, lines);
    }
}

fn with_command_rule(line: RuleLine, command: &CommandRule) -> RuleLine {
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
    line.with("only flags", allow.iter().flatten())
        .with("not flags", deny.iter().map(|(flag, _)| flag))
        .with("reads", reads.iter().flat_map(|read| pattern_texts(read)))
        .with("writes", writes.iter().flat_map(|write| pattern_texts(write)))
        .with("powers", needs.iter().flat_map(|need| need.iter()).map(Capability::name))
        .with_reason(because, suggest)
}
