//! Measuring in turn: ours, the reference, ours, the reference. Whatever else the machine does then
//! falls on both of them. What one side leaves to the kernel (namespaces to be taken apart, pages to
//! be written) is waited for, so that it does not fall on the other.

use std::time::{Duration, Instant};

use crate::Answer;

/// Times in seconds, taken in turn.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    ours: Vec<f64>,
    theirs: Vec<f64>,
}

/// A middle with what lies around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    /// The median.
    pub(crate) median: f64,
    /// The smallest.
    pub(crate) least: f64,
    /// The largest.
    pub(crate) most: f64,
}

impl Spread {
    /// Of these values; nothing lies in the middle of none.
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        let half = values.len() / 2;
        let median = match values.len() % 2 {
            1 => at(half),
            _ => f64::midpoint(at(half.wrapping_sub(1)), at(half)),
        };
        Self { median, least: at(0), most: at(values.len().wrapping_sub(1)) }
    }
}

impl Pairs {
    /// Takes this many pairs after some that do not count, with a pause before each side. A side
    /// says how long it took, in seconds, so that it can leave out what does not belong to it.
    pub(crate) fn take(
        count: usize,
        pause: Duration,
        mut ours: impl FnMut() -> Answer<f64>,
        mut theirs: impl FnMut() -> Answer<f64>,
    ) -> Answer<Self> {
        for _ in 0..1 + count / 10 {
            ours()?;
            theirs()?;
        }
        let mut pairs = Self::default();
        for _ in 0..count {
            std::thread::sleep(pause);
            pairs.ours.push(ours()?);
            std::thread::sleep(pause);
            pairs.theirs.push(theirs()?);
        }
        Ok(pairs)
    }

    /// Pairs that were taken elsewhere.
    pub(crate) const fn of(ours: Vec<f64>, theirs: Vec<f64>) -> Self {
        Self { ours, theirs }
    }

    /// How many.
    pub(crate) const fn count(&self) -> usize {
        self.ours.len()
    }

    /// How long ours took.
    pub(crate) fn ours(&self) -> Spread {
        Spread::of(self.ours.clone())
    }

    /// How long the reference took.
    pub(crate) fn theirs(&self) -> Spread {
        Spread::of(self.theirs.clone())
    }

    /// Our time by the reference's, pair by pair.
    pub(crate) fn times(&self) -> Spread {
        Spread::of(self.ours.iter().zip(&self.theirs).map(|(ours, theirs)| ours / theirs).collect())
    }

    /// Our speed by the reference's, pair by pair.
    pub(crate) fn speeds(&self) -> Spread {
        Spread::of(self.ours.iter().zip(&self.theirs).map(|(ours, theirs)| theirs / ours).collect())
    }

    /// What ours is beyond the reference, pair by pair.
    pub(crate) fn more(&self) -> Spread {
        Spread::of(self.ours.iter().zip(&self.theirs).map(|(ours, theirs)| ours - theirs).collect())
    }
}

/// What something takes beyond a part of it, in seconds, both measured just now. Nothing that a ratio could be
/// made of where it takes no longer: then it was not measured.
pub(crate) fn beyond(whole: Answer<f64>, part: Answer<f64>) -> Answer<f64> {
    let more = whole? - part?;
    Ok(if more > 0.0 { more } else { f64::NAN })
}

/// How long something takes, in seconds.
pub(crate) fn seconds(work: impl FnOnce() -> Answer<()>) -> Answer<f64> {
    let began = Instant::now();
    work()?;
    Ok(began.elapsed().as_secs_f64())
}

/// How long one of many takes, in seconds: repeated until the clock can tell.
pub(crate) fn seconds_each(mut work: impl FnMut()) -> f64 {
    const ENOUGH: Duration = Duration::from_millis(10);
    let began = Instant::now();
    let mut times = 0_u32;
    loop {
        work();
        times += 1;
        let elapsed = began.elapsed();
        if elapsed >= ENOUGH {
            return elapsed.as_secs_f64() / f64::from(times);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_pairs_counts() {
        let pairs = Pairs::of(vec![2.0, 3.0, 100.0], vec![1.0, 1.0, 10.0]);
        let times = pairs.times();
        assert!((times.median - 3.0).abs() < 1e-9);
        assert!((times.least - 2.0).abs() < 1e-9 && (times.most - 10.0).abs() < 1e-9);
        assert!((pairs.speeds().median - 1.0 / 3.0).abs() < 1e-9);
        assert!((beyond(Ok(3.0), Ok(1.0)).unwrap_or_default() - 2.0).abs() < 1e-9);
        assert!(beyond(Ok(1.0), Ok(1.0)).is_ok_and(f64::is_nan));
        assert!(beyond(Err(String::new()), Ok(1.0)).is_err());
        assert!((Spread::of(vec![1.0, 3.0]).median - 2.0).abs() < 1e-9);
        assert!(Spread::of(Vec::new()).median.is_nan());
    }
}
