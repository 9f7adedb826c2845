//! One pass over a text: the places where a rule could fit, the rules that are tried there, and what
//! they find.
//!
//! What is found depends on the text alone, never on how it came in pieces: a rule that would have to
//! see more says so, and is asked again.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::anchors::{Anchors, Try, WIDTH};
use crate::calls::{self, CALLS};
use crate::command;
use crate::custom::Custom;
use crate::found::{Found, Label, PATTERN};
use crate::header;
use crate::known::Known;
use crate::masked;
use crate::pem;
use crate::programs::PROGRAMS;
use crate::setting;
use crate::state::{Inside, State, Step, earliest, earliest_of};
use crate::tokens;
use crate::trials::{PLACES, SHIPPED, Trial};
use crate::url;
use crate::value::{Look, look};
use crate::view::{Read, View};

/// How far before its place a rule may begin, as long as no blank stands between.
pub(super) const REACH: usize = 128;

/// Everything that is looked for.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) anchors: Anchors,
    /// What is tried besides what is shipped.
    trials: Vec<Trial>,
    pub(super) known: Arc<[Known]>,
    pub(super) custom: Arc<[Custom]>,
}

/// The next password of a command line, or where it could begin at the earliest.
type Commanded = Result<Option<Found>, usize>;

impl Rules {
    /// The shipped rules, with what a policy adds.
    pub(super) fn new(known: Vec<Known>, custom: Vec<Custom>) -> Self {
        let mut anchors = Anchors::shipped();
        let mut trials = Vec::new();
        // What is added last is tried first.
        for (index, own) in known.iter().enumerate().rev() {
            for beginning in own.beginnings() {
                anchors.add(SHIPPED.len() + trials.len(), beginning);
                trials.push(Trial::Known(index));
            }
        }
        Self { anchors, trials, known: known.into(), custom: custom.into() }
    }

    /// What is to be tried.
    pub(super) fn trial(&self, own: Try) -> Option<Trial> {
        match usize::from(own.rule).checked_sub(SHIPPED.len()) {
            None => SHIPPED.get(usize::from(own.rule)).map(|(_, trial)| *trial),
            Some(more) => self.trials.get(more).copied(),
        }
    }

    /// The next secret of a text that a rule tells by what stands before the limit.
    pub(super) fn next(&self, view: &View<'_>, state: &mut State, limit: usize) -> Step {
        view.rise(state.floor);
        state.reserve.retain(|own| own.range.start >= state.floor);
        let commanded = self.commanded(view, state).map_err(|_| view.held());
        let before = (state.reserve.clone(), state.command);
        let step = self.next_of_all(view, state, commanded, limit);
        if let Step::Wait(_) = step {
            // It is looked for again, with what was there.
            (state.reserve, state.command) = before;
        }
        step
    }

    fn next_of_all(
        &self,
        view: &View<'_>,
        state: &mut State,
        commanded: Commanded,
        limit: usize,
    ) -> Step {
        state.ahead.resize_with(self.custom.len(), || None);
        let mut own = Step::Clear;
        for (custom, ahead) in self.custom.iter().zip(&mut state.ahead) {
            own = earliest(own, self.custom_next(custom, view, state.floor, ahead));
        }
        // What begins further behind a pattern's finding is looked for when that is masked.
        let limit = match &own {
            Step::Found(found) => limit.min(found.range.end + REACH),
            Step::Wait(_) | Step::Clear => limit,
        };
        match (self.next_built_in(view, state, commanded, limit), own) {
            // What waits may be told by what the pattern's finding would hide from it.
            (Step::Wait(at), Step::Found(own)) => Step::Wait(at.min(own.range.start)),
            (built_in, own) => match earliest(built_in.clone(), own) {
                Step::Found(found) => {
                    if let (PATTERN, Step::Found(other)) = (found.label.kind, built_in) {
                        state.reserve.push(other);
                    }
                    self.whole(view, state, found)
                }
                other => other,
            },
        }
    }

    /// Whether masks with such a label are given here.
    pub(super) fn names(&self, label: &Label) -> bool {
        label.is_built_in()
            || self.known.iter().any(|own| own.name() == label.rule)
            || self.custom.iter().any(|own| own.id() == label.rule)
    }

    /// The next secret that the shipped rules or a known value tell, by what stands before the limit.
    fn next_built_in(
        &self,
        view: &View<'_>,
        state: &mut State,
        commanded: Commanded,
        limit: usize,
    ) -> Step {
        if let Some(step) = Self::goes_on(view, state) {
            return step;
        }
        let mut found = state.reserve.clone();
        match commanded {
            Ok(more) => found.extend(more),
            Err(held) => {
                let latest = held.min(earliest_of(&found));
                return self.wait(view, state, state.resume, latest);
            }
        }
        let mut best = earliest_of(&found);
        let mut from = state.resume;
        loop {
            let next = self.anchors.next(view.text(), from);
            let at = next.as_ref().map_or(view.len().saturating_sub(WIDTH - 1), |(at, _)| *at);
            if found.is_empty() {
                state.resume = state.resume.max(at.min(limit));
            }
            let Some((_, tries)) = next.filter(|_| at < best.min(limit)) else { break };
            for own in tries {
                match self.tried(view, at, own, state) {
                    Err(_) => {
                        let latest = best;
                        let behind = state.resume + 1;
                        return self.wait(view, state, behind, view.held().min(latest));
                    }
                    Ok(Some(more)) => {
                        best = best.min(more.range.start);
                        found.push(more);
                    }
                    Ok(None) => {}
                }
            }
            from = at + 1;
        }
        // Of several that begin there the longest, and of those always the same one.
        let rank =
            |own: &Found| (usize::MAX - own.range.end, own.label.kind, own.label.rule.clone());
        let there = found.iter().enumerate().filter(|(_, own)| own.range.start == best);
        let Some((first, _)) = there.min_by_key(|(_, own)| rank(own)) else {
            return Step::Clear;
        };
        let first = found.swap_remove(first);
        state.reserve = found;
        Step::Found(first)
    }

    /// The rest of what was masked up to here, if there is one.
    fn goes_on(view: &View<'_>, state: &mut State) -> Option<Step> {
        let inside = state.inside.as_ref()?;
        view.hold(state.floor);
        let found = match inside {
            Inside::Key => pem::rest(view, state.floor),
            Inside::Run(label) => tokens::rest(view, state.floor, label),
        };
        match found {
            Err(_) => Some(Step::Wait(state.floor)),
            Ok(Some(found)) => Some(Step::Found(found)),
            Ok(None) => {
                state.inside = None;
                None
            }
        }
    }

    /// The next password of the command line that was found last; none as soon as there is none.
    fn commanded(&self, view: &View<'_>, state: &mut State) -> Read<Option<Found>> {
        let Some((at, index)) = state.command else { return Ok(None) };
        let Some(program) = PROGRAMS.get(index) else { return Ok(None) };
        view.hold(state.floor);
        let found = command::find(view, at, program, state.floor)?;
        if found.is_none() {
            state.command = None;
        }
        Ok(found)
    }

    /// What a rule finds at a place, behind the last mask and in none.
    pub(super) fn tried(
        &self,
        view: &View<'_>,
        at: usize,
        own: Try,
        state: &mut State,
    ) -> Read<Option<Found>> {
        view.hold(if own.runs { at } else { at.saturating_sub(usize::from(own.back)) });
        let found = self.try_at(view, at, own, state.floor)?;
        let Some(mut found) = found.filter(|own| own.range.end > state.floor) else {
            return Ok(None);
        };
        view.hold(found.range.start);
        let trial = self.trial(own);
        let around = match masked::around(view, at)? {
            Some(around) => Some(around),
            None => masked::around(view, found.range.start)?,
        };
        let own_word = |(label, end): (Label, usize)| match trial {
            // The words of no mask of ours have the form of a secret, but a secret may be such a word.
            Some(Trial::Format(_)) => false,
            Some(Trial::Known(_)) => label.is_built_in() && found.range.end <= end,
            _ => label.is_name() || self.names(&label),
        };
        if around.is_some_and(own_word) {
            return Ok(None);
        }
        if let Some(Trial::Command(index)) = trial {
            state.command = Some((at, index));
        }
        found.range.start = found.range.start.max(state.floor);
        Ok(Some(found))
    }

    /// What is to wait for, when something could begin here at the earliest.
    fn wait(&self, view: &View<'_>, state: &State, from: usize, latest: usize) -> Step {
        let first = self.first_from(view, from, latest);
        Step::Wait(first.max(state.floor))
    }

    /// Where the first secret could begin of those rules that have not been tried while one waits
    /// that stands before them: at the latest where that one could.
    fn first_from(&self, view: &View<'_>, from: usize, latest: usize) -> usize {
        let mut first = latest;
        let mut from = from;
        while let Some((place, tries)) = self.anchors.next(view.text(), from)
            && place < first.saturating_add(REACH)
        {
            let reaches = tries.into_iter().any(|own| {
                let trial = self.trial(own);
                own.runs || own.back > 0 || matches!(trial, Some(Trial::Place(_)))
            });
            let back = if reaches { REACH } else { 0 };
            let begins = view.run_back(place, back, |byte| !byte.is_ascii_whitespace());
            first = first.min(begins);
            from = place + 1;
        }
        first
    }

    pub(super) fn try_at(
        &self,
        view: &View<'_>,
        at: usize,
        own: Try,
        floor: usize,
    ) -> Read<Option<Found>> {
        let Some(mut trial) = self.trial(own) else {
            return Ok(None);
        };
        // What is no format begins where its own bytes begin.
        let place = at.saturating_sub(usize::from(own.back));
        let at = if matches!(trial, Trial::Format(_) | Trial::Known(_)) { at } else { place };
        if let Trial::Place(index) = trial {
            let Some((literal, _, place)) = PLACES.get(index) else { return Ok(None) };
            if !view.says(at, literal.as_bytes())? {
                return Ok(None);
            }
            trial = *place;
        }
        match trial {
            Trial::Known(index) => match self.known.get(index) {
                Some(known) => known.find(view, at, own, floor),
                None => Ok(None),
            },
            Trial::Format(rule) => tokens::find(view, at, own, rule),
            Trial::Name => {
                let found = setting::find(view, at)?;
                self.told_better(view, found)
            }
            Trial::Address => url::find(view, at),
            Trial::Scheme(name) => {
                let found = header::scheme(view, at, name.as_bytes())?;
                self.told_better(view, found)
            }
            Trial::Authorization => {
                let found = header::authorization(view, at)?;
                self.told_better(view, found)
            }
            Trial::Cookie => header::cookie(view, at),
            Trial::Auth => header::auth(view, at),
            Trial::Block => pem::find(view, at),
            Trial::Putty => pem::putty(view, at),
            Trial::Oracle => url::oracle(view, at + "oracle:thin:".len()),
            Trial::Go => url::go(view, at),
            Trial::Fields => url::fields(view, at),
            Trial::Command(index) => match PROGRAMS.get(index) {
                Some(program) => command::find(view, at, program, floor),
                None => Ok(None),
            },
            Trial::Echo => command::echoed(view, at),
            Trial::Call(index) => match CALLS.get(index) {
                Some(call) => calls::find(view, at, call),
                None => Ok(None),
            },
            Trial::Jwk => setting::jwk(view, at),
            Trial::Told(words) => setting::told(view, at + words.len()),
            Trial::Place(_) => Ok(None),
        }
    }

    /// What was told by its place, unless a format says better what it is.
    fn told_better(&self, view: &View<'_>, found: Option<Found>) -> Read<Option<Found>> {
        let Some(found) = found else { return Ok(None) };
        let start = found.range.start;
        for own in self.anchors.at(view.text(), start) {
            let Some(Trial::Format(rule)) = self.trial(own) else {
                continue;
            };
            if let Some(better) = tokens::find(view, start, own, rule)?
                && better.range.start == start
            {
                // What stands behind it may be a part of the secret, or say what it is for.
                let rest = view.bytes(better.range.end..found.range.end);
                if look(rest) < Look::Random {
                    return Ok(Some(better));
                }
            }
        }
        Ok(Some(found))
    }
}
