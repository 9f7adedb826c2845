//! `capsule mcp serve`: an MCP client calls the tools of a policy, in one session.
//!
//! Between two calls no process holds the session, so that questions are answered, and changes looked at and taken back,
//! from elsewhere. Changes are made in the workspace at the end of each call, as under hooks: the client and the user look
//! at the workspace itself.

mod card_text;
mod followed_policy;
mod session;

use std::io;
use std::path::Path;

use capsule_base::code::Code;
use capsule_core::outcome::CodedError;
use capsule_serve::{HttpDoor, serve_http, serve_stdio};

use crate::args::{McpCommand, McpServeArgs};
use crate::context::CliContext;
use crate::failure::Failure;
use crate::mcp::session::McpSession;
use crate::new_file::write_new;
use crate::screen::{HINT, Screen};

pub(crate) fn run(of: &McpCommand, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    match of {
        McpCommand::Serve(args) => serve(args, ctx, screen),
    }
}

/// Serves the client at standard input and output until it goes.
fn serve(args: &McpServeArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let mut session = McpSession::new(args, ctx, screen)?;
    let door = args.listen.as_deref().map(HttpDoor::open).transpose()?;
    if let Some(door) = &door {
        tell_door(door, args.token_file.as_deref(), screen)?;
    } else if io::IsTerminal::is_terminal(&io::stdin()) {
        let text = "an MCP client speaks here, a message of JSON a line; Ctrl+C ends the server";
        screen.eprint(&format!("{HINT}serving{HINT:#}: {text}"));
    }
    let served = match door {
        Some(door) => serve_http(&mut session, door),
        None => serve_stdio(&mut session),
    };
    // The session is over, also where the client could not be served to its end.
    session.end()?;
    served?;
    Ok(0)
}

/// Says where clients are served, and gives the token once.
fn tell_door(door: &HttpDoor, file: Option<&Path>, screen: &Screen) -> Result<(), Failure> {
    screen.eprint(&format!("{HINT}serving{HINT:#}: {}", door.url()));
    let Some(path) = file else {
        screen.eprint(&format!("{HINT}token{HINT:#}: {}", door.token()));
        return Ok(());
    };
    write_new(path, &format!("{}\n", door.token()), None).map_err(|error| {
        let message = format!("the token cannot be written to `{}`: {error}", path.display());
        CodedError::new(Code::Usage, message)
            .with_suggestion("name a file that is not there yet")
            .into()
    })
}
