//! A finding as far as it goes: with what else begins in it, so that no rest of another secret stays behind a
//! mask, and with what is told from inside of it, so that nothing behind it is missed.
//!
//! What the shipped rules find by themselves ends where it does; this is about known values and the patterns of
//! a policy, which may begin and end anywhere.

use crate::custom_pattern::CustomPattern;
use crate::detectors::Detector;
use crate::mask_context;
use crate::matches::{PATTERN, SecretMatch};
use crate::prefilter::NEEDLE_BYTES;
use crate::scan::{LOOKBACK, RuleSet};
use crate::scan_state::{NextCustomMatch, ScanState, ScanStep};
use crate::text_window::{Lookahead, NeedsMore, TextWindow};
use crate::token_pattern::MAX_RUN;

impl RuleSet {
    /// The whole of what was found. What is found behind it on the way stays found.
    pub(super) fn extend_match(
        &self,
        view: &TextWindow<'_>,
        state: &mut ScanState,
        mut found: SecretMatch,
    ) -> ScanStep {
        let start = found.range.start;
        let mut by_pattern = found.label.kind == PATTERN;
        let mut from = start;
        loop {
            let end = found.range.end;
            if by_pattern {
                if self.queue_inner_matches(view, state, from, end).is_err() {
                    return ScanStep::Wait(start);
                }
                from = end;
                for other in &state.queued {
                    if found.range.contains(&other.range.start) {
                        extend_to(&mut found, other);
                    }
                }
            }
            match self.extend_by_patterns(view, state, &mut found) {
                Ok(longer) => by_pattern |= longer,
                Err(_) => return ScanStep::Wait(start),
            }
            match self.extend_to_end(view, found, by_pattern) {
                ScanStep::Found(longer) => found = longer,
                other => return other,
            }
            if found.continues || found.range.end == end {
                break;
            }
        }
        if by_pattern {
            // What stands behind is looked at anew: a mask stands before it now.
            state.resume = found.range.end;
        }
        ScanStep::Found(found)
    }

    /// Keeps what rules find by what stands inside of a pattern's finding.
    fn queue_inner_matches(
        &self,
        view: &TextWindow<'_>,
        state: &mut ScanState,
        from: usize,
        end: usize,
    ) -> Lookahead<()> {
        let mut from = from;
        while let Some((at, tries)) =
            self.prefilter.next(view.text(), from).filter(|(at, _)| *at < end)
        {
            for candidate in tries {
                if let Some(other) = self.try_outside_masks(view, at, candidate, state)? {
                    state.queued.push(other);
                }
            }
            from = at + 1;
        }
        Ok(())
    }

    /// Goes as far as the patterns go that begin in it; whether that is further.
    fn extend_by_patterns(
        &self,
        view: &TextWindow<'_>,
        state: &mut ScanState,
        found: &mut SecretMatch,
    ) -> Lookahead<bool> {
        let first = found.range.end;
        loop {
            let end = found.range.end;
            for (custom, ahead) in self.custom.iter().zip(&mut state.next_custom) {
                let mut from = found.range.start;
                loop {
                    match self.next_custom_match(custom, view, from, ahead) {
                        ScanStep::Found(other) if other.range.start < found.range.end => {
                            extend_to(found, &other);
                            from = other.range.end;
                        }
                        ScanStep::Wait(at) if at < found.range.end => return Err(NeedsMore),
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
    fn extend_to_end(
        &self,
        view: &TextWindow<'_>,
        mut found: SecretMatch,
        by_pattern: bool,
    ) -> ScanStep {
        if self.known.is_empty() && !by_pattern {
            return ScanStep::Found(found);
        }
        let start = found.range.start;
        view.set_undecided_from(start);
        let mut from = start;
        loop {
            let next = self.prefilter.next(view.text(), from);
            let Some((at, tries)) = next.filter(|(at, _)| *at < found.range.end + LOOKBACK) else {
                break;
            };
            for candidate in tries {
                let trial = self.detector(candidate);
                if !by_pattern && !matches!(trial, Some(Detector::Known(_))) {
                    continue;
                }
                let Ok(other) = self.try_detector(view, at, candidate, start) else {
                    return ScanStep::Wait(start);
                };
                let begins = |item: &SecretMatch| {
                    item.range.start >= start && item.range.start < found.range.end
                };
                if let Some(other) = other.filter(begins) {
                    extend_to(&mut found, &other);
                }
            }
            if found.range.len() >= MAX_RUN {
                // What follows is looked at as what goes on, and nothing is held back for it.
                found.continues = true;
                return ScanStep::Found(found);
            }
            from = at + 1;
        }
        // Something may begin in it and not have come yet.
        match view.is_open() && found.range.end + LOOKBACK + NEEDLE_BYTES - 1 > view.len() {
            true => ScanStep::Wait(start),
            false => ScanStep::Found(found),
        }
    }

    /// What a pattern finds from a place on, looked for once.
    pub(super) fn next_custom_match(
        &self,
        custom: &CustomPattern,
        view: &TextWindow<'_>,
        from: usize,
        ahead: &mut Option<NextCustomMatch>,
    ) -> ScanStep {
        match ahead {
            Some(NextCustomMatch::Nothing) => return ScanStep::Done,
            Some(NextCustomMatch::Found(found)) if found.range.start >= from => {
                return ScanStep::Found(found.clone());
            }
            _ => {}
        }
        let mut step = custom.next(view, from);
        while let ScanStep::Found(found) = &step {
            match mask_context::enclosing_mask(view, found.range.start) {
                // What stands behind the mask is looked at, also where the match goes on there.
                Ok(Some((label, end))) if self.gives_label(&label) => step = custom.next(view, end),
                Ok(_) => break,
                Err(_) => return ScanStep::Wait(found.range.start),
            }
        }
        *ahead = match &step {
            ScanStep::Found(found) => Some(NextCustomMatch::Found(found.clone())),
            ScanStep::Done => Some(NextCustomMatch::Nothing),
            ScanStep::Wait(_) => None,
        };
        step
    }
}

/// Goes as far as another finding that begins in it. What goes on goes on as that one does.
fn extend_to(found: &mut SecretMatch, other: &SecretMatch) {
    if other.range.end > found.range.end {
        (found.range.end, found.continues) = (other.range.end, other.continues);
        if other.continues {
            found.label = other.label.clone();
        }
    }
}
