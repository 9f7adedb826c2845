//! The distribution of many numbers.

use serde::Serialize;

/// The middle and the end of many numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Distribution {
    /// As many are larger as are smaller.
    pub median: Option<u64>,
    /// The largest.
    pub most: Option<u64>,
    #[serde(skip)]
    all: Vec<u64>,
}

impl Distribution {
    pub(crate) fn add(&mut self, number: u64) {
        let at = self.all.partition_point(|item| *item <= number);
        self.all.insert(at, number);
        self.median = self.all.get((self.all.len() - 1) / 2).copied();
        self.most = self.all.last().copied();
    }
}
