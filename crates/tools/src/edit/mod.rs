//! What an edit makes of a file. Bytes come in and bytes go out; nothing is read or written here.
//!
//! What is searched for must be found as often as it is expected, and unmistakably: as it is written,
//! else with more and more tolerance ([`How`]). The replacement is put there as it is written; only
//! its line ends and its indentation follow those of what it replaces. Of two mistakes, a refusal is
//! much the smaller one.

pub mod blocks;
mod exact;
mod indent;
mod lines;
mod nearest;
mod tolerant;

use std::ops::Range;

use capsule_core::limits;

pub use crate::encoding::Encoding;
pub use nearest::Nearest;

use crate::encoding::Decoded;
use exact::Places;
use lines::{Lines, ended_alike};
use tolerant::{Match, Seeker};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'r> {
    /// What is to be found.
    pub search: &'r str,
    /// What is to stand there instead.
    pub replace: &'r str,
    /// How often it is expected, where that was said; else once.
    pub count: Option<u64>,
    /// Whether two blanks at the end of a line may be a line break, as they are in Markdown: to lose
    /// one changes what is shown.
    pub breaks: bool,
}

/// How far what was found may differ from what was searched for; each step takes in those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// Not at all.
    Exact,
    /// In how lines end.
    LineEnds,
    /// In blanks at the ends of lines.
    TrailingSpace,
    /// In how characters are spelt: composed or not, and quotes, dashes and blanks that only look
    /// like those of a keyboard.
    Spelling,
    /// In tabs for spaces before the first word.
    Tabs,
    /// By an amount of indentation that is the same for the whole block.
    Indentation,
    /// In blank lines.
    BlankLines,
}

impl How {
    const TOLERANT: [Self; 6] = [
        Self::LineEnds,
        Self::TrailingSpace,
        Self::Spelling,
        Self::Tabs,
        Self::Indentation,
        Self::BlankLines,
    ];

    /// The word in results.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::LineEnds => "tolerant(line-ends)",
            Self::TrailingSpace => "tolerant(trailing-space)",
            Self::Spelling => "tolerant(spelling)",
            Self::Tabs => "tolerant(tabs)",
            Self::Indentation => "tolerant(indentation)",
            Self::BlankLines => "tolerant(blank-lines)",
        }
    }
}

/// What an edit came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// The file's bytes from now on.
    pub bytes: Vec<u8>,
    /// Its text before and after.
    pub text: (String, String),
    /// How it was found.
    pub how: How,
    /// The line of the first place, counted from 1.
    pub line: usize,
    /// How the file says its text.
    pub encoding: Encoding,
}

/// Where something was found, and how often in all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// How often.
    pub times: usize,
    /// The first lines, counted from 1.
    pub lines: Vec<usize>,
}

/// Why an edit is not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is nothing to search for.
    Empty,
    /// It would change nothing.
    NoChange,
    /// The file is no text.
    Binary,
    /// The file's encoding has no way to say the replacement.
    Encoding(Encoding),
    /// It is not there.
    NotFound {
        /// The file's text.
        text: String,
        /// What comes closest to it.
        nearest: Option<Nearest>,
    },
    /// It is there once, but moved, and the replacement has lines of which nobody can say how they
    /// would be moved.
    Unindentable {
        /// The line, counted from 1.
        line: usize,
    },
    /// It is there more than once, or in places that overlap.
    Ambiguous(Seen),
    /// It is there more or less often than was expected.
    Count(Seen),
    /// Looking for it would take too long.
    Costly,
}

/// Makes an edit.
///
/// # Errors
/// Says why it cannot be made for sure.
pub fn edit(file: &[u8], request: &Request<'_>) -> Result<Edited, Refusal> {
    if request.search.is_empty() {
        return Err(Refusal::Empty);
    }
    if request.search == request.replace {
        return Err(Refusal::NoChange);
    }
    let decoded = Decoded::of(file).ok_or(Refusal::Binary)?;
    let text = decoded.text.as_str();
    let lines = Lines::of(text);
    let (how, found) = places(text, &lines, request)?;
    let first = found.first().map_or(0, |own| own.range.start);
    let line = lines.at(first) + 1;
    let new = replaced(text, &lines, found).ok_or(Refusal::Unindentable { line })?;
    if new == text {
        return Err(Refusal::NoChange);
    }
    let bytes = decoded.encode(&new, request.replace).ok_or(Refusal::Encoding(decoded.encoding))?;
    Ok(Edited { bytes, how, line, encoding: decoded.encoding, text: (decoded.text, new) })
}

/// Where the edit is made: with the least tolerance by which it is found as often as expected.
fn places(
    text: &str,
    lines: &Lines<'_>,
    request: &Request<'_>,
) -> Result<(How, Vec<Match>), Refusal> {
    let mut seeker = Seeker::new(text, lines, request);
    let mut search = Search { lines, count: request.count, before: Vec::new() };
    let mut literal = |places: Places| {
        // As often as it is there, it is there; whether it is meant is another question.
        search.bound(&places.ranges)?;
        let by = Some(request.replace.to_owned());
        let ranges = places.ranges.into_iter().filter(|range| stands(lines, range, request));
        search.judge(ranges.map(|range| Match { range, by: by.clone() }).collect())
    };
    if let Some(found) = literal(exact::find(text, request.search))? {
        return Ok((How::Exact, found));
    }
    if let Some(found) = literal(exact::find_unended(text, request.search, lines))? {
        return Ok((How::LineEnds, found));
    }
    for how in How::TOLERANT {
        let found = seeker.find(how).map_err(|_| Refusal::Costly)?;
        if let Some(found) = search.judge(found)? {
            return Ok((how, found));
        }
    }
    if search.before.is_empty() {
        let nearest = nearest::nearest(request.search, lines);
        return Err(Refusal::NotFound { text: text.to_owned(), nearest });
    }
    Err(Refusal::Count(seen(lines, &search.before)))
}

/// Whether what was found byte for byte is what is meant. A block of lines that begins with its
/// indentation does not stand where there is more of it: put there as it is written, only its first
/// line would be moved. It is looked for again as a moved block.
fn stands(lines: &Lines<'_>, range: &Range<usize>, request: &Request<'_>) -> bool {
    let is_block = [request.search, request.replace].iter().any(|text| text.contains(['\n', '\r']));
    let before = lines.all.get(lines.at(range.start)).and_then(|line| {
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
    before: Vec<Range<usize>>,
}

impl Search<'_> {
    fn wanted(&self) -> usize {
        self.count.map_or(1, |count| usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// Refuses more places than are expected, and places that share something.
    fn bound(&self, ranges: &[Range<usize>]) -> Result<(), Refusal> {
        let mut pairs = ranges.iter().zip(ranges.iter().skip(1));
        let overlap = pairs.any(|(one, next)| next.start < one.end);
        match self.count {
            _ if !overlap && ranges.len() <= self.wanted() => Ok(()),
            None => Err(Refusal::Ambiguous(seen(self.lines, ranges))),
            Some(_) => Err(Refusal::Count(seen(self.lines, ranges))),
        }
    }

    /// Whether these are the places that are meant; more tolerance finds no fewer.
    fn judge(&mut self, found: Vec<Match>) -> Result<Option<Vec<Match>>, Refusal> {
        let ranges: Vec<Range<usize>> = found.iter().map(|own| own.range.clone()).collect();
        self.bound(&ranges)?;
        if ranges.len() < self.wanted() {
            if ranges.len() >= self.before.len() {
                self.before = ranges;
            }
            return Ok(None);
        }
        // What stands there as it was written is among what is meant.
        let is_in = |own: &Range<usize>| {
            ranges.iter().any(|all| all.start <= own.start && own.end <= all.end)
        };
        match self.before.iter().all(is_in) {
            true => Ok(Some(found)),
            false => Err(Refusal::Count(seen(self.lines, &self.before))),
        }
    }
}

fn seen(lines: &Lines<'_>, ranges: &[Range<usize>]) -> Seen {
    let shown = ranges.iter().take(limits::EDIT_SHOWN_PLACES);
    Seen { times: ranges.len(), lines: shown.map(|range| lines.at(range.start) + 1).collect() }
}

/// The text with every place replaced. Its last line is ended as before, or not at all as before.
fn replaced(text: &str, lines: &Lines<'_>, found: Vec<Match>) -> Option<String> {
    let mut new = String::with_capacity(text.len());
    let mut kept = 0;
    let mut last = String::new();
    for Match { range, by } in found {
        new.push_str(text.get(kept..range.start).unwrap_or_default());
        last = ended_alike(&by?, lines, &range);
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
        new.push_str(lines.unended(&last));
    } else if !new.is_empty() && !new.ends_with('\n') && !new.ends_with(end) {
        new.push_str(end);
    }
    Some(new)
}

#[cfg(test)]
mod tests;
