//! A fault: the first thing in a store that is not what was written.

/// The first thing that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where: `event 7 (r-7Q3K…, number 3)`, `payload 1f3a… of event 7`, `tree`.
    pub place: String,
    /// What is wrong.
    pub what: String,
}

/// A fault at a place.
pub(crate) fn fault(place: impl Into<String>, what: impl Into<String>) -> Fault {
    Fault { place: place.into(), what: what.into() }
}
