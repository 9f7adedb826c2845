//! The end of a run: what a command says of its errors, its waiting question and its staged changes.

use capsule_base::escape;
use capsule_base::exit::Exit;
use capsule_base::units::counted;
use capsule_runtime::WaitingChanges;
use capsule_store::StoreError;

use crate::screen::{ERROR, HINT, Screen};

/// Says what went wrong when the run was over, if anything did, where somebody is told; gives the exit
/// that it means.
pub(super) fn show_late_error(trouble: Option<&StoreError>, screen: Option<&Screen>) -> Exit {
    let Some(error) = trouble else { return Exit::Ok };
    if let Some(screen) = screen {
        let said = escape::line(&error.to_string()).into_owned();
        screen.eprint(&format!("{ERROR}error{ERROR:#}: {said} [{}]", error.code()));
    }
    error.code().exit()
}

/// Says how a question that waits is answered, and what is done then.
pub(crate) fn show_waiting(label: &str, call: u64, then: &str, screen: &Screen) {
    screen.eprint(&format!(
        "next: capsule approvals show {label}:{call} · \
         capsule approvals answer {label}:{call} (--allow once | --deny -m WHY | --stop), then {then}"
    ));
}

/// Says that a run has changes that wait for somebody.
pub(crate) fn show_staged(staged: Option<WaitingChanges>, label: &str, screen: &Screen) {
    let Some(WaitingChanges { paths, refused, asked }) = staged else { return };
    let (mut changes, ways) = (counted(paths, "change"), ways_at_end(refused, label));
    if asked > 0 && !refused {
        changes.push_str(&format!(", {asked} asked about"));
    }
    screen.eprint(&format!("{HINT}staged{HINT:#}: {changes} · capsule changes {label} · {ways}"));
}

/// Says that a run works in a copy of the workspace, and why.
pub(super) fn show_copied(copied: Option<&str>, screen: &Screen) {
    if let Some(why) = copied {
        let told = "the workspace was copied, since it cannot be mounted as an overlay";
        screen.eprint(&format!("{HINT}staged{HINT:#}: {told} ({why})"));
    }
}

/// What can become of the changes of a run that came to its end.
pub(super) fn ways_at_end(refused: bool, label: &str) -> String {
    match refused {
        true => format!("not to be applied as a whole · capsule discard {label}"),
        false => format!("capsule apply {label} · capsule discard {label}"),
    }
}
