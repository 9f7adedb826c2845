//! Runs the command that was asked for.

use capsule_runtime::CommandRunner;

use super::{
    approvals, audit, call, changes, chat, connect, doctor, exec, explain_code, feedback, grants,
    init, list_runs, manual, plan, policy, policy_test, preflight, redact, replay, report, resume,
    run, session, show_run, stats, undo, verify,
};
use crate::args::{Arguments, Command, PlanCommand, PolicyCommand};
use crate::chat::RunCommand;
use crate::context::CliContext;
use crate::failure::Failure;
use crate::hook;
use crate::mcp;
use crate::sandbox;
use crate::screen::Screen;

/// Runs a command; gives the exit status. What runs commands of the user may be there already.
pub(crate) fn dispatch(
    arguments: &Arguments,
    screen: &Screen,
    commands: Option<CommandRunner>,
) -> Result<u8, Failure> {
    let ctx = || CliContext::read(&arguments.globals);
    match &arguments.command {
        Command::Init(args) => init::run(args, &ctx()?, screen),
        Command::Run(args) => run::run(args, &ctx()?, screen),
        Command::Call(args) => call::run(args, &ctx()?, screen),
        Command::Exec(args) => exec::run(args, &ctx()?, screen, commands),
        Command::Chat(args) => {
            let run_command: RunCommand = |arguments, screen| dispatch(arguments, screen, None);
            chat::run(args, (&arguments.globals, run_command), &ctx()?, screen)
        }
        Command::Sandbox(args) => sandbox::run(args, &arguments.globals, &ctx()?, screen),
        Command::Connect(args) => connect::run(args, &ctx()?, screen),
        Command::Hook(args) => hook::run(args, &arguments.globals),
        Command::Mcp(of) => mcp::run(of, &ctx()?, screen),
        Command::Replay(args) => replay::run(args, &ctx()?, screen),
        Command::Report(args) => report::run(args, &ctx()?, screen),
        Command::ListRuns(args) => list_runs::run(args, &ctx()?, screen),
        Command::ShowRun(args) => show_run::run(args, &ctx()?, screen),
        Command::Changes(args) => changes::show(args, &ctx()?, screen),
        Command::Apply(args) => changes::apply(args, &ctx()?, screen),
        Command::Discard(args) => changes::discard(args, &ctx()?, screen),
        Command::Undo(args) => undo::run(args, &ctx()?, screen),
        Command::Feedback(args) => feedback::run(args, &ctx()?, screen),
        Command::Approvals(of) => approvals::run(of, &ctx()?, screen),
        Command::Grants(of) => grants::run(of, &ctx()?, screen),
        Command::Session(of) => session::run(of, &ctx()?, screen),
        Command::Resume(args) => resume::run(args, &ctx()?, screen),
        Command::Stats(of) => stats::run(of, &ctx()?, screen),
        Command::Verify(args) => verify::run(args, &ctx()?, screen),
        Command::Audit(of) => audit::run(of, &ctx()?, screen),
        Command::Policy(PolicyCommand::Check(args)) => policy::check::check(args, &ctx()?, screen),
        Command::Policy(PolicyCommand::Test(args)) => policy_test::run(args, &ctx()?, screen),
        Command::Policy(PolicyCommand::Explain(args)) => {
            policy::explain::run(args, &ctx()?, screen)
        }
        Command::Policy(PolicyCommand::Diff(args)) => policy::diff::run(args, &ctx()?, screen),
        Command::Policy(PolicyCommand::Fmt(args)) => policy::fmt::run(args, &ctx()?, screen),
        Command::Policy(PolicyCommand::Learn(args)) => policy::learn::run(args, &ctx()?, screen),
        Command::Policy(PolicyCommand::Schema) => policy::check::print_schema(screen),
        Command::Policy(PolicyCommand::Show(args)) => policy::show::run(args, &ctx()?, screen),
        Command::Plan(PlanCommand::Check(args)) => plan::check(args, screen),
        Command::Plan(PlanCommand::Preflight(args)) => preflight::run(args, &ctx()?, screen),
        Command::Plan(PlanCommand::Schema) => plan::print_schema(screen),
        Command::Redact => redact::run(screen),
        Command::Doctor => doctor::run(&ctx()?, screen),
        Command::ExplainCode(args) => explain_code::run(args, screen),
        Command::Completions(args) => manual::completions(args),
        Command::Man => manual::man(),
    }
}
