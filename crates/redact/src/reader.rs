//! The next secret of a text, read as its bytes stand there and as they are seen.

use alloc::vec::Vec;
use core::ops::Range;

use crate::matches::SecretMatch;
use crate::pem;
use crate::scan::{LOOKBACK, RuleSet};
use crate::scan_state::{ScanState, ScanStep, Told, earliest};
use crate::text_window::{TextEnd, TextWindow};
use crate::tokens;
use crate::visible::{APART, Start, Style, Visible, is_plain, start_at, visible};

/// A text, and what is visible of it where that is something else.
#[derive(Debug)]
pub(super) struct Text<'t> {
    bytes: &'t [u8],
    end: TextEnd,
    /// What is visible, and what is of one that begins with a mark of wide characters.
    visible: Vec<Visible>,
}

impl<'t> Text<'t> {
    pub(super) fn of(bytes: &'t [u8], start: Start, end: TextEnd) -> Self {
        let visible = match is_plain(bytes, start) {
            true => Vec::new(),
            false => visible(bytes, start, end == TextEnd::Open),
        };
        Self { bytes, end, visible }
    }

    /// Whether all bytes before one are read in every way: else it depends on what comes which characters
    /// they belong to.
    fn has_read(&self, byte: usize) -> bool {
        self.end != TextEnd::Open || self.visible.iter().all(|visible| visible.has_read(byte))
    }

    /// The mask of a secret, said as the secret is.
    pub(super) fn mask(&self, found: &SecretMatch, out: &mut Vec<u8>) {
        let range = &found.range;
        let said = self.visible.iter().rev().find_map(|visible| {
            let seen = visible.place_of(range.start)..visible.place_of(range.end);
            let secret = visible.text.get(seen.clone())?;
            let style = visible.style_of(&seen);
            (visible.bytes_of(&seen) == *range).then_some((secret, style))
        });
        let secret = || self.bytes.get(range.clone()).unwrap_or_default();
        let (secret, style) = said.unwrap_or_else(|| (secret(), Style::Plain));
        style.say(&found.label.mask(secret), out);
    }

    /// The byte that stands so many bytes before another one, and as many before it in what is seen.
    pub(super) fn back(&self, byte: usize, by: usize) -> usize {
        let seen = |visible: &Visible| visible.start_of(visible.place_of(byte).saturating_sub(by));
        self.visible.iter().map(seen).fold(byte.saturating_sub(by), usize::min)
    }

    /// How many of so many first bytes can be cut off, so that reading can begin behind them, and how it does.
    pub(super) fn cut(&self, most: usize, start: Start) -> (usize, Start) {
        if self.visible.is_empty() {
            return (most, if most > 0 { Start::behind(true) } else { start });
        }
        let last = self.visible.last();
        let begins = |byte: &usize| {
            let has_read = self.visible.iter().all(|visible| visible.has_read(*byte));
            has_read && last.is_some_and(|visible| visible.begins_at(*byte))
        };
        let found = (most.saturating_sub(APART * 2)..=most).rev().find(begins);
        match found.filter(|byte| *byte > 0) {
            Some(byte) => (byte, start_at(&self.visible, byte)),
            None => (0, start),
        }
    }
}

/// Where the look at a text stands, in each of the ways in which it is read.
#[derive(Clone, Debug, Default)]
pub(super) struct Reader {
    /// As it is seen.
    seen: ScanState,
    /// As its mark says.
    wide: Option<ScanState>,
    /// As it is, once that was something else.
    plain: Option<ScanState>,
}

impl Reader {
    /// The next secret, by its bytes.
    ///
    /// All readings go together: what stands behind the place of the first secret is looked at with its mask
    /// before it, and a reading that has not come far enough to rule out an earlier one makes the others wait.
    pub(super) fn next(&mut self, rules: &RuleSet, text: &Text<'_>) -> ScanStep {
        if self.plain.is_none() && text.visible.is_empty() {
            return next_in(None, text, rules, &mut self.seen, usize::MAX);
        }
        let mut readings = self.readings(text);
        let resumed = |(visible, state): &Reading<'_>| {
            visible.map_or(state.resume, |visible| visible.start_of(state.resume))
        };
        let mut limit = readings.iter().map(resumed).min().unwrap_or_default() + STRIDE;
        let before: Vec<Told> =
            readings.iter().map(|(_, state)| (state.queued.clone(), state.command)).collect();
        let (best, firsts) = loop {
            let mut best = ScanStep::Done;
            let mut firsts = Vec::new();
            for (visible, state) in &mut readings {
                let step = next_in(*visible, text, rules, state, limit);
                firsts.push(begin_of(&step));
                best = earliest(best, step);
            }
            limit = match &best {
                ScanStep::Found(found) if found.range.start > limit => found.range.start,
                ScanStep::Done if limit < text.bytes.len() => limit + STRIDE,
                _ => break (best, firsts),
            };
            undo(&mut readings, &before, usize::MAX);
        };
        let at = match &best {
            ScanStep::Found(found) => found.range.start,
            ScanStep::Wait(at) => *at,
            ScanStep::Done => return best,
        };
        if matches!(best, ScanStep::Wait(_)) {
            undo(&mut readings, &before, at);
            return best;
        }
        let others = readings.iter_mut().zip(&before).zip(firsts);
        let decided = others.filter(|(_, first)| *first != Some(at)).all(|((item, before), _)| {
            undo(core::slice::from_mut(item), core::slice::from_ref(before), at);
            keeps(item, text, rules, at)
        });
        if decided {
            return best;
        }
        undo(&mut readings, &before, at);
        ScanStep::Wait(at)
    }

    /// The ways in which a text is read.
    fn readings<'r>(&'r mut self, text: &'r Text<'_>) -> Vec<Reading<'r>> {
        let seen = &mut self.seen;
        let plain = self.plain.get_or_insert_with(|| seen.clone());
        let mut readings = Vec::with_capacity(3);
        if let Some(wide) = text.visible.get(1) {
            readings.push((Some(wide), self.wide.get_or_insert_default()));
        }
        readings.extend([(text.visible.first(), seen), (None, plain)]);
        readings
    }

    /// A secret was masked.
    pub(super) fn passed(&mut self, text: &Text<'_>, found: &SecretMatch) {
        let inside = tokens::continuation(found);
        let Range { start, end } = found.range;
        let pass = |state: &mut ScanState, visible: Option<&Visible>| {
            let place = |byte| visible.map_or(byte, |visible| visible.place_of(byte));
            let range = place(start)..place(end);
            state.record_mask(&SecretMatch { range, ..found.clone() }, inside.clone());
        };
        pass(&mut self.seen, text.visible.first());
        self.plain.iter_mut().for_each(|state| pass(state, None));
        self.wide.iter_mut().for_each(|state| pass(state, text.visible.get(1)));
    }

    /// The rest of a key that begins before the text.
    pub(super) fn cut_off(text: &Text<'_>) -> Option<SecretMatch> {
        let plain = pem::find_cut_key(&TextWindow::new(text.bytes, text.end)).ok().flatten();
        let seen = text.visible.iter().filter_map(|visible| {
            let found =
                pem::find_cut_key(&TextWindow::new(&visible.text, text.end)).ok().flatten()?;
            let range = visible.bytes_of(&found.range);
            Some(SecretMatch { range, ..found })
        });
        plain.into_iter().chain(seen).max_by_key(|found| found.range.end)
    }

    /// More has come, so what was not there may be.
    pub(super) fn forget(&mut self) {
        let all = [Some(&mut self.seen), self.plain.as_mut(), self.wide.as_mut()];
        all.into_iter().flatten().for_each(ScanState::drop_lookahead);
    }

    /// From which byte on rules have to see the text again.
    pub(super) fn needs(&self, text: &Text<'_>) -> usize {
        let of = |visible: Option<&Visible>, state: &ScanState| {
            visible.map_or(state.keep_from(), |visible| visible.start_of(state.keep_from()))
        };
        let seen = of(text.visible.first(), &self.seen);
        let wide = self.wide.as_ref().map_or(usize::MAX, |state| of(text.visible.get(1), state));
        self.plain.as_ref().map_or(usize::MAX, ScanState::keep_from).min(seen).min(wide)
    }

    /// So many bytes at the beginning of the text are gone.
    pub(super) fn rebase(&mut self, text: &Text<'_>, bytes: usize) {
        let places =
            |visible: Option<&Visible>| visible.map_or(bytes, |visible| visible.place_of(bytes));
        self.seen.rebase(places(text.visible.first()));
        self.plain.iter_mut().for_each(|state| state.rebase(bytes));
        self.wide.iter_mut().for_each(|state| state.rebase(places(text.visible.get(1))));
    }
}

/// A way to read a text, and where the look at it stands.
type Reading<'r> = (Option<&'r Visible>, &'r mut ScanState);

/// How many bytes further all readings look, until one finds something.
const STRIDE: usize = 1 << 10;

/// Brings back what was told before, and looks again at what stands from a byte on.
fn undo(readings: &mut [Reading<'_>], before: &[Told], at: usize) {
    for ((visible, state), before) in readings.iter_mut().zip(before) {
        let place = visible.map_or(at, |visible| visible.place_of(at));
        (state.queued, state.command) = before.clone();
        if at < usize::MAX {
            state.resume = state.resume.min(place);
        }
    }
}

/// Keeps what a reading finds by what stands before a byte, at which another one's secret begins. Whether
/// that is sure.
fn keeps((visible, state): &mut Reading<'_>, text: &Text<'_>, rules: &RuleSet, at: usize) -> bool {
    let bytes = visible.map_or(text.bytes, |visible| &visible.text);
    let view = TextWindow::new(bytes, text.end);
    let place = visible.map_or(at, |visible| visible.place_of(at));
    match rules.next(&view, state, place) {
        ScanStep::Found(found) => {
            state.queued.push(found);
            true
        }
        ScanStep::Wait(_) => false,
        ScanStep::Done => true,
    }
}

/// The next secret of one reading, by the bytes that say it, that is told by what stands before a limit. While
/// more may come, there is no end of the search: a rule could begin in the last word, whose rest has not come.
fn next_in(
    visible: Option<&Visible>,
    text: &Text<'_>,
    rules: &RuleSet,
    state: &mut ScanState,
    limit: usize,
) -> ScanStep {
    let bytes = visible.map_or(text.bytes, |visible| &visible.text);
    let view = TextWindow::new(bytes, text.end);
    let start_of = |place| visible.map_or(place, |visible| visible.start_of(place));
    let limited = visible.map_or(limit, |visible| visible.place_of(limit));
    match (rules.next(&view, state, limited), visible) {
        (ScanStep::Found(found), visible) => {
            let range =
                visible.map_or(found.range.clone(), |visible| visible.bytes_of(&found.range));
            if !text.has_read(range.end) {
                return ScanStep::Wait(range.start);
            }
            let range = match (visible, text.visible.first()) {
                (None, Some(seen)) => seen.aligned(text.bytes, range),
                _ => range,
            };
            ScanStep::Found(SecretMatch { range, ..found })
        }
        (ScanStep::Wait(at), _) => ScanStep::Wait(start_of(at.min(word_begin(&view)))),
        (ScanStep::Done, _) if view.is_open() && limit >= text.bytes.len() => {
            ScanStep::Wait(start_of(word_begin(&view)))
        }
        (ScanStep::Done, _) => ScanStep::Done,
    }
}

/// Where a secret that was found begins.
const fn begin_of(step: &ScanStep) -> Option<usize> {
    match step {
        ScanStep::Found(found) => Some(found.range.start),
        ScanStep::Wait(_) | ScanStep::Done => None,
    }
}

/// From which place on a rule could still begin whose bytes have not come.
fn word_begin(view: &TextWindow<'_>) -> usize {
    let word = view.run_start(view.len(), LOOKBACK, |byte| !byte.is_ascii_whitespace());
    // `---- BEGIN` has a blank in it.
    match view.before(word) {
        Some(b' ') if view.before(word - 1) == Some(b'-') => {
            view.run_start(word - 1, LOOKBACK, |byte| byte == b'-')
        }
        _ => word,
    }
}
