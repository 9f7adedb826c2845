use capsule_core::call::ToolCall;
use capsule_core::journal::Journal;
use capsule_core::lifecycle;
use capsule_redact::Redactor;

fn straight<J: Journal>(call: ToolCall, redactor: &Redactor, journal: &mut J) {
    let _ = lifecycle::run(call, redactor, journal, |permit, prepared| prepared.run(permit));
}

fn main() {}
