//! One line of the result.

use crate::pairs::{Pairs, Spread};

/// What is to be reached.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// Our time by the reference's is at most this.
    TimeAtMost(f64),
    /// Our speed by the reference's is at least this.
    SpeedAtLeast(f64),
    /// Nothing: the row is there to be compared with.
    None,
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
        let (what, reference) = (what.into(), reference.into());
        Self { id, what, reference, pairs: Ok(pairs), target, notes: Vec::new(), cut: false }
    }

    /// A row that could not be measured, with the reason.
    pub(crate) fn untaken(id: &'static str, why: String) -> Self {
        Self {
            id,
            what: "not measured".to_owned(),
            reference: "-".to_owned(),
            pairs: Err(why),
            target: Target::None,
            notes: Vec::new(),
            cut: false,
        }
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
            Target::TimeAtMost(_) | Target::None => pairs.times(),
        })
    }

    /// The target in words.
    pub(crate) fn wanted(&self) -> String {
        match self.target {
            Target::TimeAtMost(most) => format!("time <= {most} x"),
            Target::SpeedAtLeast(least) => format!("speed >= {least} x"),
            Target::None => "-".to_owned(),
        }
    }

    /// Whether the target is reached, in words.
    pub(crate) fn verdict(&self) -> &'static str {
        match (self.ratio(), self.target) {
            (None, _) => "not measured",
            _ if self.cut => "not yet",
            (_, Target::None) => "for comparison",
            (Some(ratio), Target::TimeAtMost(most)) if ratio.median <= most => "reached",
            (Some(ratio), Target::SpeedAtLeast(least)) if ratio.median >= least => "reached",
            _ => "not yet",
        }
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
        assert_eq!(Row::untaken("P1", "no".into()).verdict(), "not measured");
    }
}
