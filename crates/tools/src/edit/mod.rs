//! What an edit makes of a file. Bytes come in and bytes go out; nothing is read or written here.
//!
//! What is searched for must be found as often as it is expected, and unmistakably: as it is written,
//! else with more and more tolerance ([`MatchTolerance`]). The replacement is put there as it is written; only
//! its line ends and its indentation follow those of what it replaces. Of two mistakes, a refusal is
//! much the smaller one.

pub mod blocks;
mod exact;
mod indent;
mod language;
mod lines;
pub(crate) mod mask_restore;
mod nearest;
mod omission;
mod request;
mod scanner;
mod spacing;
mod texts;
mod tolerant;

use std::ops::Range;

use capsule_base::limits;
use capsule_workspace::DecodedText;

pub use capsule_workspace::TextEncoding;
pub use nearest::NearestMatch;
pub use request::{EditRequest, MatchTolerance};

use exact::Occurrences;
use lines::{Lines, with_line_ends_of};
use tolerant::{BlockSearch, Match, TooCostly};

/// What an edit came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditResult {
    /// The file's bytes from now on.
    pub bytes: Vec<u8>,
    /// Its text before and after.
    pub text: (String, String),
    /// How it was found.
    pub tolerance: MatchTolerance,
    /// The line of the first place, counted from 1.
    pub line: usize,
    /// How the file says its text.
    pub encoding: TextEncoding,
}

/// Where something was found, and how often in all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchCount {
    /// How often.
    pub count: usize,
    /// The first lines, counted from 1, each once.
    pub lines: Vec<usize>,
    /// Whether there are more.
    pub has_more: bool,
    /// Whether two of the places share something.
    pub overlaps: bool,
}

/// Why an edit is not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditError {
    /// There is nothing to search for.
    Empty,
    /// It would change nothing.
    NoChange,
    /// The replacement has a line in place of text which was left out.
    Omission(String),
    /// The file is no text.
    Binary,
    /// The file's encoding has no way to say the replacement.
    Encoding(TextEncoding),
    /// It is not there.
    NotFound {
        /// The file's text.
        text: String,
        /// What comes closest to it.
        nearest: Option<NearestMatch>,
    },
    /// It is there once, but moved, and the replacement has lines of which nobody can say how they
    /// would be moved.
    UnknownIndentation {
        /// The line, counted from 1.
        line: usize,
    },
    /// It is there more than once, or in places that overlap.
    Ambiguous(MatchCount),
    /// It is there more or less often than was expected.
    WrongCount(MatchCount),
    /// Looking for it would take too long.
    TooCostly,
}

/// Makes an edit.
///
/// # Errors
/// Says why it cannot be made for sure.
pub fn edit(file: &[u8], request: &EditRequest<'_>) -> Result<EditResult, EditError> {
    if request.search.is_empty() {
        return Err(EditError::Empty);
    }
    if request.search == request.replace {
        return Err(EditError::NoChange);
    }
    let decoded = DecodedText::decode(file).ok_or(EditError::Binary)?;
    let text = decoded.text.as_str();
    if let Some(line) = omission::find_omission(request.replace, text, &request.extension()) {
        return Err(EditError::Omission(line.to_owned()));
    }
    let lines = Lines::split(text);
    let (how, found) = find_matches(text, &lines, request)?;
    let first = found.first().map_or(0, |found| found.range.start);
    let line = lines.line_at(first) + 1;
    let new = replace_all(text, &lines, found).ok_or(EditError::UnknownIndentation { line })?;
    if new == text {
        return Err(EditError::NoChange);
    }
    let bytes =
        decoded.encode(&new, request.replace).ok_or(EditError::Encoding(decoded.encoding))?;
    Ok(EditResult {
        bytes,
        tolerance: how,
        line,
        encoding: decoded.encoding,
        text: (decoded.text, new),
    })
}

/// Where the edit is made: with the least tolerance by which it is found as often as expected.
fn find_matches(
    text: &str,
    lines: &Lines<'_>,
    request: &EditRequest<'_>,
) -> Result<(MatchTolerance, Vec<Match>), EditError> {
    let mut seeker = BlockSearch::new(text, lines, request);
    let mut search = Search { lines, count: request.count, found_before: Vec::new() };
    let mut literal = |places: Result<Occurrences, TooCostly>| {
        let places = places.map_err(|_| EditError::TooCostly)?;
        // As often as it is there, it is there; whether it is meant is another question.
        let all = search.tile(&places.ranges);
        if places.overlaps && all.len() != search.expected_count() {
            return Err(search.refusal(&places.ranges));
        }
        search.check_bounds(&all)?;
        let by = Some(request.replace.to_owned());
        let ranges = all.into_iter().filter(|range| is_whole_line_match(lines, range, request));
        search.accept(ranges.map(|range| Match { range, replacement: by.clone() }).collect())
    };
    if let Some(found) = literal(exact::find_exact(text, request.search))? {
        return Ok((MatchTolerance::Exact, found));
    }
    if let Some(found) = literal(exact::find_ignoring_line_ends(text, request.search, lines))? {
        return Ok((MatchTolerance::LineEnds, found));
    }
    for how in MatchTolerance::LEVELS {
        let found = seeker.find(how).map_err(|_| EditError::TooCostly)?;
        if let Some(found) = search.accept(found)? {
            return Ok((how, found));
        }
    }
    if search.found_before.is_empty() {
        let nearest = nearest::nearest_match(request.search, lines);
        return Err(EditError::NotFound { text: text.to_owned(), nearest });
    }
    Err(EditError::WrongCount(match_count(lines, &search.found_before)))
}

/// Whether what was found byte for byte is what is meant. A block of lines that begins with its
/// indentation does not stand where there is more of it: put there as it is written, only its first
/// line would be moved. It is looked for again as a moved block.
fn is_whole_line_match(lines: &Lines<'_>, range: &Range<usize>, request: &EditRequest<'_>) -> bool {
    let is_block = [request.search, request.replace].iter().any(|text| text.contains(['\n', '\r']));
    let before = lines.all.get(lines.line_at(range.start)).and_then(|line| {
        line.text.get(..range.start.checked_sub(line.start)?).filter(|before| !before.is_empty())
    });
    let is_inside = before.is_some_and(|before| before.trim_matches([' ', '\t']).is_empty());
    !(is_block && is_inside && request.search.starts_with([' ', '\t']))
}

/// What was found so far.
struct Search<'s> {
    lines: &'s Lines<'s>,
    count: Option<u64>,
    /// What was found with less tolerance.
    found_before: Vec<Range<usize>>,
}

impl Search<'_> {
    fn expected_count(&self) -> usize {
        self.count.map_or(1, |count| usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// The places without those that share something with another, where it was said how often they are expected and only
    /// one choice of them is the largest: it is the same from either end.
    fn tile(&self, ranges: &[Range<usize>]) -> Vec<Range<usize>> {
        if self.count.is_none() {
            return ranges.to_vec();
        }
        let is_apart = |one: &Range<usize>, other: &Range<usize>| {
            one.end <= other.start || other.end <= one.start
        };
        let choose = |all: &mut dyn Iterator<Item = &Range<usize>>| {
            let mut chosen: Vec<Range<usize>> = Vec::new();
            for range in all {
                if chosen.last().is_none_or(|last| is_apart(last, range)) {
                    chosen.push(range.clone());
                }
            }
            chosen
        };
        let first = choose(&mut ranges.iter());
        let last = choose(&mut ranges.iter().rev());
        match first.iter().eq(last.iter().rev()) {
            true => first,
            false => ranges.to_vec(),
        }
    }

    /// Refuses more places than are expected, and places that share something.
    fn check_bounds(&self, ranges: &[Range<usize>]) -> Result<(), EditError> {
        match ranges.len() <= self.expected_count() && !overlap(ranges) {
            true => Ok(()),
            false => Err(self.refusal(ranges)),
        }
    }

    fn refusal(&self, ranges: &[Range<usize>]) -> EditError {
        let seen = match_count(self.lines, ranges);
        if self.count.is_some() { EditError::WrongCount(seen) } else { EditError::Ambiguous(seen) }
    }

    /// Whether these are the places that are meant; more tolerance finds no fewer.
    fn accept(&mut self, found: Vec<Match>) -> Result<Option<Vec<Match>>, EditError> {
        let ranges: Vec<Range<usize>> = found.iter().map(|found| found.range.clone()).collect();
        self.check_bounds(&ranges)?;
        if ranges.len() < self.expected_count() {
            if ranges.len() >= self.found_before.len() {
                self.found_before = ranges;
            }
            return Ok(None);
        }
        // What stands there as it was written is among what is meant.
        let is_in = |range: &Range<usize>| {
            ranges.iter().any(|all| all.start <= range.start && range.end <= all.end)
        };
        match self.found_before.iter().all(is_in) {
            true => Ok(Some(found)),
            false => Err(EditError::WrongCount(match_count(self.lines, &self.found_before))),
        }
    }
}

fn overlap(ranges: &[Range<usize>]) -> bool {
    ranges.iter().zip(ranges.iter().skip(1)).any(|(one, next)| next.start < one.end)
}

fn match_count(lines: &Lines<'_>, ranges: &[Range<usize>]) -> MatchCount {
    let mut all: Vec<usize> = ranges.iter().map(|range| lines.line_at(range.start) + 1).collect();
    all.dedup();
    let has_more = all.len() > limits::EDIT_SHOWN_PLACES;
    all.truncate(limits::EDIT_SHOWN_PLACES);
    MatchCount { count: ranges.len(), lines: all, has_more, overlaps: overlap(ranges) }
}

/// The text with every place replaced. Its last line is ended as before, or not at all as before.
fn replace_all(text: &str, lines: &Lines<'_>, found: Vec<Match>) -> Option<String> {
    let mut new = String::with_capacity(text.len());
    let mut kept = 0;
    let mut last = String::new();
    for Match { range, replacement: by } in found {
        new.push_str(text.get(kept..range.start).unwrap_or_default());
        last = with_line_ends_of(&by?, lines, &range);
        new.push_str(&last);
        kept = range.end;
    }
    let rest = text.get(kept..).unwrap_or_default();
    new.push_str(rest);
    let end = lines.last_end();
    if !rest.is_empty() {
        return Some(new);
    }
    if end.is_empty() {
        new.truncate(new.len() - last.len());
        new.push_str(lines.trim_line_ends(&last));
    } else if !new.is_empty() && !new.ends_with('\n') && !new.ends_with(end) {
        new.push_str(end);
    }
    Some(new)
}

#[cfg(test)]
mod tests;
