//! One pass over a text: the places where a rule could fit, the rules that are tried there, and what
//! they find.
//!
//! What is found depends on the text alone, never on how it came in pieces: a rule that would have to
//! see more says so, and is asked again.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::call_patterns::{self, CALLS};
use crate::command;
use crate::custom_pattern::CustomPattern;
use crate::detectors::{Detector, LITERALS, SHIPPED};
use crate::header;
use crate::known_secrets::KnownSecret;
use crate::mask_context;
use crate::masked_value::classify;
use crate::matches::{MaskLabel, PATTERN, SecretMatch};
use crate::pem;
use crate::prefilter::{Candidate, NEEDLE_BYTES, Prefilter};
use crate::program_table::PROGRAMS;
use crate::scan_state::{Continuation, ScanState, ScanStep, earliest, earliest_of};
use crate::setting;
use crate::text_window::{Lookahead, TextWindow};
use crate::tokens;
use crate::url;
use crate::value::ValueLook;

/// How far before its place a rule may begin, as long as no blank stands between.
pub(super) const LOOKBACK: usize = 128;

/// Everything that is looked for.
#[derive(Clone, Debug)]
pub(super) struct RuleSet {
    pub(super) prefilter: Prefilter,
    /// What is tried besides what is shipped.
    detectors: Vec<Detector>,
    pub(super) known: Arc<[KnownSecret]>,
    pub(super) custom: Arc<[CustomPattern]>,
}

/// The next password of a command line, or where it could begin at the earliest.
type NextCommandMatch = Result<Option<SecretMatch>, usize>;

impl RuleSet {
    /// The shipped rules, with what a policy adds.
    pub(super) fn new(known: Vec<KnownSecret>, custom: Vec<CustomPattern>) -> Self {
        let mut anchors = Prefilter::shipped();
        let mut trials = Vec::new();
        // What is added last is tried first.
        for (index, secret) in known.iter().enumerate().rev() {
            for beginning in secret.prefixes() {
                anchors.add(SHIPPED.len() + trials.len(), beginning);
                trials.push(Detector::Known(index));
            }
        }
        Self { prefilter: anchors, detectors: trials, known: known.into(), custom: custom.into() }
    }

    /// What is to be tried.
    pub(super) fn detector(&self, candidate: Candidate) -> Option<Detector> {
        match usize::from(candidate.rule).checked_sub(SHIPPED.len()) {
            None => SHIPPED.get(usize::from(candidate.rule)).map(|(_, trial)| *trial),
            Some(more) => self.detectors.get(more).copied(),
        }
    }

    /// The next secret of a text that a rule tells by what stands before the limit.
    pub(super) fn next(
        &self,
        view: &TextWindow<'_>,
        state: &mut ScanState,
        limit: usize,
    ) -> ScanStep {
        view.set_mask_end(state.floor);
        state.queued.retain(|item| item.range.start >= state.floor);
        let commanded = self.commanded(view, state).map_err(|_| view.undecided());
        let before = (state.queued.clone(), state.command);
        let step = self.next_of_all(view, state, commanded, limit);
        if let ScanStep::Wait(_) = step {
            // It is looked for again, with what was there.
            (state.queued, state.command) = before;
        }
        step
    }

    fn next_of_all(
        &self,
        view: &TextWindow<'_>,
        state: &mut ScanState,
        commanded: NextCommandMatch,
        limit: usize,
    ) -> ScanStep {
        state.next_custom.resize_with(self.custom.len(), || None);
        let mut step = ScanStep::Done;
        for (custom, ahead) in self.custom.iter().zip(&mut state.next_custom) {
            step = earliest(step, self.next_custom_match(custom, view, state.floor, ahead));
        }
        // What begins further behind a pattern's finding is looked for when that is masked.
        let limit = match &step {
            ScanStep::Found(found) => limit.min(found.range.end + LOOKBACK),
            ScanStep::Wait(_) | ScanStep::Done => limit,
        };
        match (self.next_built_in(view, state, commanded, limit), step) {
            // What waits may be told by what the pattern's finding would hide from it.
            (ScanStep::Wait(at), ScanStep::Found(item)) => ScanStep::Wait(at.min(item.range.start)),
            (built_in, step) => match earliest(built_in.clone(), step) {
                ScanStep::Found(found) => {
                    if let (PATTERN, ScanStep::Found(other)) = (found.label.kind, built_in) {
                        state.queued.push(other);
                    }
                    self.extend_match(view, state, found)
                }
                other => other,
            },
        }
    }

    /// Whether masks with such a label are given here.
    pub(super) fn gives_label(&self, label: &MaskLabel) -> bool {
        label.is_built_in()
            || self.known.iter().any(|secret| secret.name() == label.rule)
            || self.custom.iter().any(|pattern| pattern.id() == label.rule)
    }

    /// The next secret that the shipped rules or a known value tell, by what stands before the limit.
    fn next_built_in(
        &self,
        view: &TextWindow<'_>,
        state: &mut ScanState,
        commanded: NextCommandMatch,
        limit: usize,
    ) -> ScanStep {
        if let Some(step) = Self::continued(view, state) {
            return step;
        }
        let mut found = state.queued.clone();
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
            let next = self.prefilter.next(view.text(), from);
            let at =
                next.as_ref().map_or(view.len().saturating_sub(NEEDLE_BYTES - 1), |(at, _)| *at);
            if found.is_empty() {
                state.resume = state.resume.max(at.min(limit));
            }
            let Some((_, tries)) = next.filter(|_| at < best.min(limit)) else { break };
            for candidate in tries {
                match self.try_outside_masks(view, at, candidate, state) {
                    Err(_) => {
                        let latest = best;
                        let behind = state.resume + 1;
                        return self.wait(view, state, behind, view.undecided().min(latest));
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
        let rank = |item: &SecretMatch| {
            (usize::MAX - item.range.end, item.label.kind, item.label.rule.clone())
        };
        let there = found.iter().enumerate().filter(|(_, item)| item.range.start == best);
        let Some((first, _)) = there.min_by_key(|(_, item)| rank(item)) else {
            return ScanStep::Done;
        };
        let first = found.swap_remove(first);
        state.queued = found;
        ScanStep::Found(first)
    }

    /// The rest of what was masked up to here, if there is one.
    fn continued(view: &TextWindow<'_>, state: &mut ScanState) -> Option<ScanStep> {
        let inside = state.continuation.as_ref()?;
        view.set_undecided_from(state.floor);
        let found = match inside {
            Continuation::Key => pem::continue_key(view, state.floor),
            Continuation::Token(label) => tokens::continue_run(view, state.floor, label),
        };
        match found {
            Err(_) => Some(ScanStep::Wait(state.floor)),
            Ok(Some(found)) => Some(ScanStep::Found(found)),
            Ok(None) => {
                state.continuation = None;
                None
            }
        }
    }

    /// The next password of the command line that was found last; none as soon as there is none.
    fn commanded(
        &self,
        view: &TextWindow<'_>,
        state: &mut ScanState,
    ) -> Lookahead<Option<SecretMatch>> {
        let Some((at, index)) = state.command else { return Ok(None) };
        let Some(program) = PROGRAMS.get(index) else { return Ok(None) };
        view.set_undecided_from(state.floor);
        let found = command::find_password(view, at, program, state.floor)?;
        if found.is_none() {
            state.command = None;
        }
        Ok(found)
    }

    /// What a rule finds at a place, behind the last mask and in none.
    pub(super) fn try_outside_masks(
        &self,
        view: &TextWindow<'_>,
        at: usize,
        candidate: Candidate,
        state: &mut ScanState,
    ) -> Lookahead<Option<SecretMatch>> {
        view.set_undecided_from(if candidate.starts_with_run {
            at
        } else {
            at.saturating_sub(usize::from(candidate.offset))
        });
        let found = self.try_detector(view, at, candidate, state.floor)?;
        let Some(mut found) = found.filter(|found| found.range.end > state.floor) else {
            return Ok(None);
        };
        view.set_undecided_from(found.range.start);
        let trial = self.detector(candidate);
        let around = match mask_context::enclosing_mask(view, at)? {
            Some(around) => Some(around),
            None => mask_context::enclosing_mask(view, found.range.start)?,
        };
        let own_word = |(label, end): (MaskLabel, usize)| match trial {
            // The words of no mask of ours have the form of a secret, but a secret may be such a word.
            Some(Detector::Token(_)) => false,
            Some(Detector::Known(_)) => label.is_built_in() && found.range.end <= end,
            _ => label.is_name() || self.gives_label(&label),
        };
        if around.is_some_and(own_word) {
            return Ok(None);
        }
        if let Some(Detector::Command(index)) = trial {
            state.command = Some((at, index));
        }
        found.range.start = found.range.start.max(state.floor);
        Ok(Some(found))
    }

    /// What is to wait for, when something could begin here at the earliest.
    fn wait(
        &self,
        view: &TextWindow<'_>,
        state: &ScanState,
        from: usize,
        latest: usize,
    ) -> ScanStep {
        let first = self.first_from(view, from, latest);
        ScanStep::Wait(first.max(state.floor))
    }

    /// Where the first secret could begin of those rules that have not been tried while one waits
    /// that stands before them: at the latest where that one could.
    fn first_from(&self, view: &TextWindow<'_>, from: usize, latest: usize) -> usize {
        let mut first = latest;
        let mut from = from;
        while let Some((place, tries)) = self.prefilter.next(view.text(), from)
            && place < first.saturating_add(LOOKBACK)
        {
            let reaches = tries.into_iter().any(|candidate| {
                let trial = self.detector(candidate);
                candidate.starts_with_run
                    || candidate.offset > 0
                    || matches!(trial, Some(Detector::Literal(_)))
            });
            let back = if reaches { LOOKBACK } else { 0 };
            let begins = view.run_start(place, back, |byte| !byte.is_ascii_whitespace());
            first = first.min(begins);
            from = place + 1;
        }
        first
    }

    pub(super) fn try_detector(
        &self,
        view: &TextWindow<'_>,
        at: usize,
        candidate: Candidate,
        floor: usize,
    ) -> Lookahead<Option<SecretMatch>> {
        let Some(mut trial) = self.detector(candidate) else {
            return Ok(None);
        };
        // What is no format begins where its own bytes begin.
        let place = at.saturating_sub(usize::from(candidate.offset));
        let at = if matches!(trial, Detector::Token(_) | Detector::Known(_)) { at } else { place };
        if let Detector::Literal(index) = trial {
            let Some((literal, _, place)) = LITERALS.get(index) else { return Ok(None) };
            if !view.matches_at(at, literal.as_bytes())? {
                return Ok(None);
            }
            trial = *place;
        }
        match trial {
            Detector::Known(index) => match self.known.get(index) {
                Some(known) => known.find(view, at, candidate, floor),
                None => Ok(None),
            },
            Detector::Token(rule) => tokens::find_token(view, at, candidate, rule),
            Detector::Setting => {
                let found = setting::find_value(view, at)?;
                self.prefer_token(view, found)
            }
            Detector::Address => url::find_password(view, at),
            Detector::Scheme(name) => {
                let found = header::find_scheme(view, at, name.as_bytes())?;
                self.prefer_token(view, found)
            }
            Detector::Authorization => {
                let found = header::find_authorization(view, at)?;
                self.prefer_token(view, found)
            }
            Detector::Cookie => header::find_cookie(view, at),
            Detector::Auth => header::find_auth(view, at),
            Detector::PemBlock => pem::find_block(view, at),
            Detector::Putty => pem::find_putty(view, at),
            Detector::OracleDsn => url::find_oracle(view, at + "oracle:thin:".len()),
            Detector::GoDsn => url::find_go_dsn(view, at),
            Detector::Pgpass => url::find_pgpass(view, at),
            Detector::Command(index) => match PROGRAMS.get(index) {
                Some(program) => command::find_password(view, at, program, floor),
                None => Ok(None),
            },
            Detector::PipedPassword => command::find_piped_password(view, at),
            Detector::Call(index) => match CALLS.get(index) {
                Some(call) => call_patterns::find_argument(view, at, call),
                None => Ok(None),
            },
            Detector::Jwk => setting::find_jwk_private(view, at),
            Detector::Phrase(words) => setting::find_quoted_after_phrase(view, at + words.len()),
            Detector::Literal(_) => Ok(None),
        }
    }

    /// What was told by its place, unless a format says better what it is.
    fn prefer_token(
        &self,
        view: &TextWindow<'_>,
        found: Option<SecretMatch>,
    ) -> Lookahead<Option<SecretMatch>> {
        let Some(found) = found else { return Ok(None) };
        let start = found.range.start;
        for candidate in self.prefilter.at(view.text(), start) {
            let Some(Detector::Token(rule)) = self.detector(candidate) else {
                continue;
            };
            if let Some(better) = tokens::find_token(view, start, candidate, rule)?
                && better.range.start == start
            {
                // What stands behind it may be a part of the secret, or say what it is for.
                let rest = view.bytes(better.range.end..found.range.end);
                if classify(rest) < ValueLook::Random {
                    return Ok(Some(better));
                }
            }
        }
        Ok(Some(found))
    }
}
