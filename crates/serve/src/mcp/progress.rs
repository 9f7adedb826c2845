//! Says from time to time that a call goes on, where its client asks for that.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;

use capsule_base::limits;
use serde_json::{Value, json};

use crate::mcp::message::Request;

/// Tells of progress until it is dropped.
pub(crate) struct Progress {
    /// The thread that tells ends with it.
    _stop: Option<Sender<()>>,
}

impl Progress {
    /// Begins to tell, if the request has a token for that.
    pub(crate) fn of(request: &Request) -> Self {
        let token = request.meta("progressToken").filter(|token| crate::mcp::message::is_id(token));
        let Some(token) = token.cloned() else { return Self { _stop: None } };
        let outlet = request.outlet.clone();
        let (stop, stopped) = mpsc::channel::<()>();
        let tell = move || {
            for count in 1_u64.. {
                match stopped.recv_timeout(limits::MCP_PROGRESS_EVERY) {
                    Err(RecvTimeoutError::Timeout) if outlet.send(&progress(&token, count)) => {}
                    _ => break,
                }
            }
        };
        // Without a thread a call goes on in silence.
        let started = thread::Builder::new().name("progress".into()).spawn(tell);
        Self { _stop: started.is_ok().then_some(stop) }
    }
}

fn progress(token: &Value, count: u64) -> Value {
    let seconds = limits::MCP_PROGRESS_EVERY.as_secs().saturating_mul(count);
    json!({
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": { "progressToken": token, "progress": seconds, "message": format!("{seconds} s") },
    })
}
