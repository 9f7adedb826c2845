//! Suggestions for words that were misspelt.

/// The candidate that comes closest to a misspelt word, if one comes close at all. One that begins with
/// the word comes closer than another with a few other letters.
pub fn closest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    // A word of another script or of a kilobyte is no misspelling.
    if word.len() > 64 {
        return None;
    }
    let begins = |candidate: &str| word.len() > 2 && candidate.starts_with(word);
    let distance = |candidate| match begins(candidate) {
        true => 1,
        false => strsim::damerau_levenshtein(word, candidate),
    };
    candidates
        .map(|candidate| (distance(candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
