//! Where the look at a text stands between two findings, and what comes of looking on.

use alloc::vec::Vec;

use crate::found::{Found, Label};

/// Where the look at a text stands.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// Where the last secret ended: nothing before is looked at again.
    pub(super) floor: usize,
    /// From where on places are looked for.
    pub(super) resume: usize,
    /// What the last secret was, if it goes on.
    pub(super) inside: Option<Inside>,
    /// Where the last command line began that held a password, and of which program.
    pub(super) command: Option<(usize, usize)>,
    /// What was found behind what was masked first.
    pub(super) reserve: Vec<Found>,
    /// What each pattern of a policy found next, as long as nothing new has come.
    pub(super) ahead: Vec<Option<Ahead>>,
}

/// What was found and is not masked yet, and the command line.
pub(super) type Told = (Vec<Found>, Option<(usize, usize)>);

/// What a pattern found next.
#[derive(Clone, Debug)]
pub(super) enum Ahead {
    Found(Found),
    Nothing,
}

impl State {
    /// A secret was masked.
    pub(super) fn passed(&mut self, found: &Found, inside: Option<Inside>) {
        self.floor = found.range.end;
        self.resume = self.resume.max(self.floor);
        self.inside = inside;
    }

    /// More has come, so what was not there may be.
    pub(super) fn forget(&mut self) {
        self.ahead.clear();
    }

    /// So many bytes at the beginning of the text are gone.
    pub(super) fn rebase(&mut self, by: usize) {
        self.floor = self.floor.saturating_sub(by);
        self.resume = self.resume.saturating_sub(by);
        for own in &mut self.reserve {
            own.range = own.range.start.saturating_sub(by)..own.range.end.saturating_sub(by);
        }
        self.command = self.command.map(|(at, program)| (at.saturating_sub(by), program));
        self.ahead.clear();
    }

    /// From where on rules have to see the text again.
    pub(super) fn needs(&self) -> usize {
        let place = self.resume.max(self.floor);
        let place = place.min(earliest_of(&self.reserve));
        self.command.map_or(place, |(at, _)| place.min(at))
    }
}

/// What goes on behind the most that is masked as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Inside {
    Key,
    Run(Label),
}

/// What comes of looking on.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// The next secret.
    Found(Found),
    /// None begins before this, and there has to be more to say more.
    Wait(usize),
    /// There is none.
    Clear,
}

/// Where the first of some secrets begins.
pub(super) fn earliest_of(found: &[Found]) -> usize {
    found.iter().map(|own| own.range.start).min().unwrap_or(usize::MAX)
}

/// The one that begins first; where they begin at one place, the longer one.
pub(super) fn earliest(one: Step, other: Step) -> Step {
    let place = |step: &Step| match step {
        Step::Found(found) => (found.range.start, usize::MAX - found.range.end),
        // What waits could begin right there, and be longer than anything.
        Step::Wait(at) => (*at, 0),
        Step::Clear => (usize::MAX, usize::MAX),
    };
    if place(&one) <= place(&other) { one } else { other }
}
