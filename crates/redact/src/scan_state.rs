//! Where the look at a text stands between two findings, and what comes of looking on.

use alloc::vec::Vec;

use crate::matches::{MaskLabel, SecretMatch};

/// Where the look at a text stands.
#[derive(Clone, Debug, Default)]
pub(super) struct ScanState {
    /// Where the last secret ended: nothing before is looked at again.
    pub(super) floor: usize,
    /// From where on places are looked for.
    pub(super) resume: usize,
    /// What the last secret was, if it goes on.
    pub(super) continuation: Option<Continuation>,
    /// Where the last command line began that held a password, and of which program.
    pub(super) command: Option<(usize, usize)>,
    /// What was found behind what was masked first.
    pub(super) queued: Vec<SecretMatch>,
    /// What each pattern of a policy found next, as long as nothing new has come.
    pub(super) next_custom: Vec<Option<NextCustomMatch>>,
}

/// What was found and is not masked yet, and the command line.
pub(super) type Told = (Vec<SecretMatch>, Option<(usize, usize)>);

/// What a pattern found next.
#[derive(Clone, Debug)]
pub(super) enum NextCustomMatch {
    Found(SecretMatch),
    Nothing,
}

impl ScanState {
    /// A secret was masked.
    pub(super) fn record_mask(&mut self, found: &SecretMatch, inside: Option<Continuation>) {
        self.floor = found.range.end;
        self.resume = self.resume.max(self.floor);
        self.continuation = inside;
    }

    /// More has come, so what was not there may be.
    pub(super) fn drop_lookahead(&mut self) {
        self.next_custom.clear();
    }

    /// So many bytes at the beginning of the text are gone.
    pub(super) fn rebase(&mut self, by: usize) {
        self.floor = self.floor.saturating_sub(by);
        self.resume = self.resume.saturating_sub(by);
        for item in &mut self.queued {
            item.range = item.range.start.saturating_sub(by)..item.range.end.saturating_sub(by);
        }
        self.command = self.command.map(|(at, program)| (at.saturating_sub(by), program));
        self.next_custom.clear();
    }

    /// From where on rules have to see the text again.
    pub(super) fn keep_from(&self) -> usize {
        let place = self.resume.max(self.floor);
        let place = place.min(earliest_of(&self.queued));
        self.command.map_or(place, |(at, _)| place.min(at))
    }
}

/// What goes on behind the most that is masked as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Continuation {
    Key,
    Token(MaskLabel),
}

/// What comes of looking on.
#[derive(Clone, Debug)]
pub(super) enum ScanStep {
    /// The next secret.
    Found(SecretMatch),
    /// None begins before this, and there has to be more to say more.
    Wait(usize),
    /// There is none.
    Done,
}

/// Where the first of some secrets begins.
pub(super) fn earliest_of(found: &[SecretMatch]) -> usize {
    found.iter().map(|found| found.range.start).min().unwrap_or(usize::MAX)
}

/// The one that begins first; where they begin at one place, the longer one.
pub(super) fn earliest(one: ScanStep, other: ScanStep) -> ScanStep {
    let place = |step: &ScanStep| match step {
        ScanStep::Found(found) => (found.range.start, usize::MAX - found.range.end),
        // What waits could begin right there, and be longer than anything.
        ScanStep::Wait(at) => (*at, 0),
        ScanStep::Done => (usize::MAX, usize::MAX),
    };
    if place(&one) <= place(&other) { one } else { other }
}
