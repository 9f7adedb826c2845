//! One line of the result.

use crate::pairs::{Pairs, Spread};

/// What is to be reached.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// Our time by the reference's, or our size, is at most this.
    TimeAtMost(f64),
    /// Our speed by the reference's is at least this.
    SpeedAtLeast(f64),
    /// Ours is at most so many seconds more than the reference.
    MoreAtMost(f64),
    /// Ours is at most this, whatever the reference is; in the row's unit.
    AtMost(f64),
    /// Nothing: the row is there to be compared with.
    None,
}

/// What the values of a row count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Time.
    Seconds,
    /// Memory.
    Bytes,
}

impl Unit {
    /// The word for it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Bytes => "bytes",
        }
    }

    /// A value with three digits.
    pub(crate) fn show(self, value: f64) -> String {
        let units: &[(f64, &str)] = match self {
            Self::Seconds => &[(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")],
            Self::Bytes => &[(1e6, "MB"), (1e3, "kB"), (1.0, "B")],
        };
        let fits = units.iter().find(|(unit, _)| value >= *unit).or(units.last());
        let (unit, name) = fits.copied().unwrap_or((1.0, ""));
        let value = value / unit;
        let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
        format!("{value:.digits$} {name}")
    }
}

/// One line.
#[derive(Debug)]
pub(crate) struct Row {
    /// The measure.
    pub(crate) id: &'static str,
    /// What was measured.
    pub(crate) what: String,
    /// What it was measured against.
    pub(crate) reference: String,
    /// The pairs, or why there are none.
    pub(crate) pairs: Result<Pairs, String>,
    /// What is to be reached.
    pub(crate) target: Target,
    /// What they count.
    pub(crate) unit: Unit,
    /// What else is to be known.
    pub(crate) notes: Vec<String>,
    /// Whether ours ended before the work was done: then it has not been faster.
    cut: bool,
}

impl Row {
    /// A row that was measured.
    pub(crate) fn new(
        id: &'static str,
        what: impl Into<String>,
        reference: impl Into<String>,
        pairs: Pairs,
        target: Target,
    ) -> Self {
        Self::of(id, (what.into(), reference.into()), Ok(pairs), target)
    }

    /// A row that could not be measured, with the reason.
    pub(crate) fn untaken(id: &'static str, why: String) -> Self {
        let what = ("not measured".to_owned(), "-".to_owned());
        Self::of(id, what, Err(why), Target::None)
    }

    fn of(
        id: &'static str,
        (what, reference): (String, String),
        pairs: Result<Pairs, String>,
        target: Target,
    ) -> Self {
        let (unit, notes) = (Unit::Seconds, Vec::new());
        Self { id, what, reference, pairs, target, unit, notes, cut: false }
    }

    /// The same, of memory.
    pub(crate) fn in_bytes(self) -> Self {
        Self { unit: Unit::Bytes, ..self }
    }

    /// The same with something to be known.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// The same where ours ended before the work was done, with what ended it.
    pub(crate) fn cut_short(self, by: impl Into<String>) -> Self {
        Self { cut: true, ..self }.note(by)
    }

    /// Whether it was measured.
    pub(crate) const fn was_taken(&self) -> bool {
        self.pairs.is_ok()
    }

    /// The ratio that the target is about.
    pub(crate) fn ratio(&self) -> Option<Spread> {
        let pairs = self.pairs.as_ref().ok()?;
        Some(match self.target {
            Target::SpeedAtLeast(_) => pairs.speeds(),
            _ => pairs.times(),
        })
    }

    /// The target in words.
    pub(crate) fn wanted(&self) -> String {
        match self.target {
            Target::TimeAtMost(most) if self.unit == Unit::Bytes => format!("size <= {most} x"),
            Target::TimeAtMost(most) => format!("time <= {most} x"),
            Target::MoreAtMost(most) => format!("<= {} more", self.unit.show(most)),
            Target::AtMost(most) => format!("<= {}", self.unit.show(most)),
            Target::SpeedAtLeast(least) => format!("speed >= {least} x"),
            Target::None => "-".to_owned(),
        }
    }

    /// Whether the target is reached, in words.
    pub(crate) fn verdict(&self) -> &'static str {
        let Ok(pairs) = &self.pairs else { return "not measured" };
        let is_reached = match self.target {
            Target::None => return "for comparison",
            Target::TimeAtMost(most) => pairs.times().median <= most,
            Target::SpeedAtLeast(least) => pairs.speeds().median >= least,
            Target::MoreAtMost(most) => pairs.more().median <= most,
            Target::AtMost(most) => pairs.ours().median <= most,
        };
        if is_reached && !self.cut { "reached" } else { "not yet" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(target: Target) -> Row {
        Row::new("P1", "a", "b", Pairs::of(vec![2.0], vec![4.0]), target)
    }

    #[test]
    fn a_target_is_reached_from_its_own_side() {
        assert_eq!(row(Target::TimeAtMost(0.5)).verdict(), "reached");
        assert_eq!(row(Target::TimeAtMost(0.4)).verdict(), "not yet");
        assert_eq!(row(Target::SpeedAtLeast(2.0)).verdict(), "reached");
        assert_eq!(row(Target::SpeedAtLeast(2.1)).verdict(), "not yet");
        assert_eq!(row(Target::TimeAtMost(0.5)).cut_short("time").verdict(), "not yet");
        assert_eq!(row(Target::MoreAtMost(-2.0)).verdict(), "reached");
        assert_eq!(row(Target::MoreAtMost(-2.1)).verdict(), "not yet");
        assert_eq!(row(Target::AtMost(2.0)).verdict(), "reached");
        assert_eq!(row(Target::AtMost(1.9)).verdict(), "not yet");
        assert_eq!(Row::untaken("P1", "no".into()).verdict(), "not measured");
    }

    #[test]
    fn values_have_a_unit() {
        assert_eq!(Unit::Seconds.show(1.5), "1.50 s");
        assert_eq!(Unit::Seconds.show(0.0123), "12.3 ms");
        assert_eq!(Unit::Seconds.show(0.000_000_4), "400 ns");
        assert_eq!(Unit::Bytes.show(20e6), "20.0 MB");
    }
}
