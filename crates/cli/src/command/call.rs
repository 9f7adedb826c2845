//! `capsule call`: one tool call, recorded as a run.

use std::rc::Rc;

use capsule_base::limits;
use capsule_core::call::Origin;
use capsule_core::journal::RunKind;
use capsule_runtime::CommandRunner;

use crate::args::CallArgs;
use crate::card;
use crate::command::rule_hints::rule_patch_lookup;
use crate::command::run_end::show_copied;
use crate::command::session_choice::choose_session;
use crate::command::single_call::{SingleCall, SingleCallResult, call_json};
use crate::command::undo;
use crate::context::CliContext;
use crate::failure::{Failure, usage_failure};
use crate::screen::Screen;
use crate::signal;

pub(crate) fn run(args: &CallArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    // It is the name of the run as well.
    if args.tool.chars().count() > limits::NAME_CHARS {
        let most = limits::NAME_CHARS;
        return Err(usage_failure(format!("the name of a tool has at most {most} characters")));
    }
    let call = super::parse_call_args(&args.tool, args.args.as_deref(), &args.words)?;
    let out = ctx.check_out_file(args.out.as_deref())?;
    let bound = ctx.load_policy(&args.policy, out.as_deref())?;
    let cancel = signal::cancel_on_signal();
    let session = choose_session(&args.session, args.ask, &bound, ctx, screen)?;
    let session = session.filter(|_| out.is_none());
    let one = SingleCall {
        name: args.tool.clone(),
        kind: RunKind::Call,
        subject: None,
        tool: &args.tool,
        args: call,
        policy: &bound,
        command_runner: CommandRunner::default(),
        sink: Rc::new(capsule_runtime::NullSink),
        prompt: card::make_prompt(
            (args.ask.unattended, session.is_none()),
            screen,
            &cancel,
            rule_patch_lookup(&bound, ctx),
        ),
        cancel,
        out: out.as_deref(),
        layer: args.layer,
        origin: Origin::Person,
        resumption: None,
        session,
    };
    let done = one.submit(ctx, Some(screen))?;
    done.show(ctx, screen)?;
    Ok(done.exit.status())
}

impl SingleCallResult {
    /// Says what came of it.
    pub(super) fn show(&self, ctx: &CliContext, screen: &Screen) -> Result<(), Failure> {
        show_copied(self.copy_reason.as_deref(), screen);
        if screen.json {
            return screen.print_json(&call_json(self));
        }
        screen.print_json(&self.delivered.to_json())?;
        let (label, call) = (&self.label, self.delivered.call);
        // What is staged is dropped, not undone.
        let kept = self.delivered.has_undo && self.staged.is_none();
        let undo = match kept && (self.delivered.problem.is_none() || undo::is_possible(ctx, label))
        {
            true => format!(" · capsule undo {label}"),
            false => String::new(),
        };
        screen.eprint(&format!("recorded as {label} · capsule show-run {label}:{call}{undo}"));
        self.show_next(ctx, screen);
        Ok(())
    }
}
