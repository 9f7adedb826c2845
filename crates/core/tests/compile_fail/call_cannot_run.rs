use capsule_core::call::ToolCall;
use capsule_core::evidence;
use capsule_core::journal::Journal;
use capsule_redact::Redactor;

fn straight<J: Journal>(call: ToolCall, redactor: &Redactor, journal: &mut J) {
    let _ = evidence::run(call, redactor, journal, |permit, prepared| prepared.run(permit));
}

fn main() {}
