//! `capsule mcp serve`: an MCP client calls the tools of a policy, in one session.
//!
//! Between two calls no process holds the session, so that questions are answered, and changes looked at and taken back,
//! from elsewhere. Changes are made in the workspace at the end of each call, as under hooks: the client and the user look
//! at the workspace itself.

mod card_text;
mod session;

use std::io;

use capsule_serve::serve_stdio;

use crate::args::{McpCommand, McpServeArgs};
use crate::command::load_session_policy;
use crate::context::CliContext;
use crate::failure::Failure;
use crate::mcp::session::McpSession;
use crate::screen::{HINT, Screen};

pub(crate) fn run(of: &McpCommand, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    match of {
        McpCommand::Serve(args) => serve(args, ctx, screen),
    }
}

/// Serves the client at standard input and output until it goes.
fn serve(args: &McpServeArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let bound = load_session_policy(&args.policy, ctx, ctx.has_user_policy())?;
    let hint = "name the directory of a project: `capsule mcp serve --workspace DIR`";
    ctx.refuse_too_wide(bound.roots.workspace.as_ref(), hint)?;
    if io::IsTerminal::is_terminal(&io::stdin()) {
        let text = "an MCP client speaks here, a message of JSON a line; Ctrl+C ends the server";
        screen.eprint(&format!("{HINT}serving{HINT:#}: {text}"));
    }
    let mut session = McpSession::new(args, (&bound, ctx), screen);
    let served = serve_stdio(&mut session);
    // The session is over, also where the client could not be served to its end.
    session.end()?;
    served?;
    Ok(0)
}
