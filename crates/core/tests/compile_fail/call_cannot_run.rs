use capsule_core::call::ToolCall;
use capsule_core::journal::Journal;
use capsule_core::lifecycle::{self, RunningCall};
use capsule_redact::Redactor;

fn straight<J: Journal>(
    call: ToolCall,
    running: RunningCall<'_>,
    redactor: &Redactor,
    journal: &mut J,
) {
    let _ =
        lifecycle::run(call, running, redactor, journal, |permit, prepared| prepared.run(permit));
}

fn main() {}
