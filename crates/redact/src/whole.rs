//! A finding as far as it goes: with what else begins in it, so that no rest of another secret stays behind a
//! mask, and with what is told from inside of it, so that nothing behind it is missed.
//!
//! What the shipped rules find by themselves ends where it does; this is about known values and the patterns of
//! a policy, which may begin and end anywhere.

use crate::anchors::WIDTH;
use crate::custom::Custom;
use crate::form::RUN;
use crate::found::{Found, PATTERN};
use crate::masked;
use crate::scan::{REACH, Rules};
use crate::state::{Ahead, State, Step};
use crate::trials::Trial;
use crate::view::{More, Read, View};

impl Rules {
    /// The whole of what was found. What is found behind it on the way stays found.
    pub(super) fn whole(&self, view: &View<'_>, state: &mut State, mut found: Found) -> Step {
        let start = found.range.start;
        let mut by_pattern = found.label.kind == PATTERN;
        let mut from = start;
        loop {
            let end = found.range.end;
            if by_pattern {
                if self.told_inside(view, state, from, end).is_err() {
                    return Step::Wait(start);
                }
                from = end;
                for other in &state.reserve {
                    if found.range.contains(&other.range.start) {
                        extend(&mut found, other);
                    }
                }
            }
            match self.with_patterns(view, state, &mut found) {
                Ok(longer) => by_pattern |= longer,
                Err(_) => return Step::Wait(start),
            }
            match self.to_the_end(view, found, by_pattern) {
                Step::Found(longer) => found = longer,
                other => return other,
            }
            if found.goes_on || found.range.end == end {
                break;
            }
        }
        if by_pattern {
            // What stands behind is looked at anew: a mask stands before it now.
            state.resume = found.range.end;
        }
        Step::Found(found)
    }

    /// Keeps what rules find by what stands inside of a pattern's finding.
    fn told_inside(&self, view: &View<'_>, state: &mut State, from: usize, end: usize) -> Read<()> {
        let mut from = from;
        while let Some((at, tries)) =
            self.anchors.next(view.text(), from).filter(|(at, _)| *at < end)
        {
            for own in tries {
                if let Some(other) = self.tried(view, at, own, state)? {
                    state.reserve.push(other);
                }
            }
            from = at + 1;
        }
        Ok(())
    }

    /// Goes as far as the patterns go that begin in it; whether that is further.
    fn with_patterns(&self, view: &View<'_>, state: &mut State, found: &mut Found) -> Read<bool> {
        let first = found.range.end;
        loop {
            let end = found.range.end;
            for (custom, ahead) in self.custom.iter().zip(&mut state.ahead) {
                let mut from = found.range.start;
                loop {
                    match self.custom_next(custom, view, from, ahead) {
                        Step::Found(other) if other.range.start < found.range.end => {
                            extend(found, &other);
                            from = other.range.end;
                        }
                        Step::Wait(at) if at < found.range.end => return Err(More),
                        _ => break,
                    }
                }
            }
            if found.range.end == end {
                return Ok(end > first);
            }
        }
    }

    /// As far as what is known goes that begins in it; where a pattern has a part in it, also what a rule finds.
    fn to_the_end(&self, view: &View<'_>, mut found: Found, by_pattern: bool) -> Step {
        if self.known.is_empty() && !by_pattern {
            return Step::Found(found);
        }
        let start = found.range.start;
        view.hold(start);
        let mut from = start;
        loop {
            let next = self.anchors.next(view.text(), from);
            let Some((at, tries)) = next.filter(|(at, _)| *at < found.range.end + REACH) else {
                break;
            };
            for own in tries {
                let trial = self.trial(own);
                if !by_pattern && !matches!(trial, Some(Trial::Known(_))) {
                    continue;
                }
                let Ok(other) = self.try_at(view, at, own, start) else { return Step::Wait(start) };
                let begins =
                    |own: &Found| own.range.start >= start && own.range.start < found.range.end;
                if let Some(other) = other.filter(begins) {
                    extend(&mut found, &other);
                }
            }
            if found.range.len() >= RUN {
                // What follows is looked at as what goes on, and nothing is held back for it.
                found.goes_on = true;
                return Step::Found(found);
            }
            from = at + 1;
        }
        // Something may begin in it and not have come yet.
        match view.is_open() && found.range.end + REACH + WIDTH - 1 > view.len() {
            true => Step::Wait(start),
            false => Step::Found(found),
        }
    }

    /// What a pattern finds from a place on, looked for once.
    pub(super) fn custom_next(
        &self,
        custom: &Custom,
        view: &View<'_>,
        from: usize,
        ahead: &mut Option<Ahead>,
    ) -> Step {
        match ahead {
            Some(Ahead::Nothing) => return Step::Clear,
            Some(Ahead::Found(found)) if found.range.start >= from => {
                return Step::Found(found.clone());
            }
            _ => {}
        }
        let mut step = custom.next(view, from);
        while let Step::Found(found) = &step {
            match masked::around(view, found.range.start) {
                // What stands behind the mask is looked at, also where the match goes on there.
                Ok(Some((label, end))) if self.names(&label) => step = custom.next(view, end),
                Ok(_) => break,
                Err(_) => return Step::Wait(found.range.start),
            }
        }
        *ahead = match &step {
            Step::Found(found) => Some(Ahead::Found(found.clone())),
            Step::Clear => Some(Ahead::Nothing),
            Step::Wait(_) => None,
        };
        step
    }
}

/// Goes as far as another finding that begins in it. What goes on goes on as that one does.
fn extend(found: &mut Found, other: &Found) {
    if other.range.end > found.range.end {
        (found.range.end, found.goes_on) = (other.range.end, other.goes_on);
        if other.goes_on {
            found.label = other.label.clone();
        }
    }
}
