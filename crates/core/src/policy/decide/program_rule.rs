//! The rule for the program of a command line.

use alloc::string::String;

use crate::policy::commands::{CommandRule, ExecRule, ProgramRule};
use capsule_command::specs::{CommandLine, ParsedArgv};

/// The rule for a program: by its plain name, or by the very path that the rule names.
pub(super) fn program_rule<'p>(exec: &'p ExecRule, argv: &[String]) -> Option<&'p ProgramRule> {
    let asked = argv.first()?;
    exec.programs.iter().find(|program| match asked.contains('/') {
        true => program.path.as_ref() == Some(asked),
        false => program.name == *asked,
    })
}

/// The rule for a subcommand: by its name, or the one for any.
pub(super) fn subcommand<'r>(rule: &'r CommandRule, name: &str) -> Option<&'r CommandRule> {
    let exact = rule.subcommands.iter().find(|(text, _)| text == name);
    let any = || rule.subcommands.iter().find(|(text, _)| text == "*");
    exact.or_else(any).map(|(_, inner)| inner)
}

/// The line read anew, where nothing is known of the program and its rule names subcommands.
pub(super) fn reread_with_subcommands<'c>(
    program: &ProgramRule,
    line: &CommandLine<'c>,
) -> Option<CommandLine<'c>> {
    let expects =
        !program.command.subcommands.is_empty() && !line.parsed_argvs().any(ParsedArgv::known);
    expects.then(|| CommandLine::parse(line.argv, line.program, true))
}
