//! The beginning of a rule, by which the prefilter finds its candidates.

/// What a rule is found by: this text, and behind it what has this form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prefix<'f> {
    pub(super) text: &'f [u8],
    pub(super) pattern: &'f str,
}
