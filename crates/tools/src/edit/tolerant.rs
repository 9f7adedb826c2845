//! Where a block of whole lines stands in a text, when it need not be the same byte for byte.
//!
//! A line matches as a whole or not at all: only how it ends, how it is indented and how its characters are spelt may
//! differ, blank lines may be more or fewer, and last of all blanks inside of it where its language gives them no meaning.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use capsule_base::limits;
use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick};

use crate::edit::indent;
use crate::edit::indent::{Indentation, Tolerance};
use crate::edit::language::Language;
use crate::edit::lines::{Lines, with_line_feeds};
use crate::edit::request::{EditRequest, MatchTolerance};
use crate::edit::scanner::{Scanner, State};
use crate::edit::spacing::read_form;

/// A text as lines, and whether the last of them is ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    lines: Vec<String>,
    ended: bool,
}

impl Block {
    fn split(text: &str, old: bool) -> Self {
        let text = with_line_feeds(text, old);
        let ended = text.ends_with('\n');
        let lines = text.split_inclusive('\n');
        let lines = lines.map(|line| line.strip_suffix('\n').unwrap_or(line).to_owned()).collect();
        Self { lines, ended }
    }

    /// How many blank lines it begins and ends with.
    fn blank_margins(&self) -> (usize, usize) {
        let blank = |line: &&String| is_blank(line);
        let before = self.lines.iter().take_while(blank).count();
        let after = self.lines.iter().rev().take_while(blank).count();
        (before, after)
    }

    /// The same without blank lines at its ends, so many at most.
    fn trimmed(&self, (before, after): (usize, usize)) -> Self {
        let (own_before, own_after) = self.blank_margins();
        let (first, after) = (own_before.min(before), own_after.min(after));
        let last = self.lines.len().saturating_sub(after).max(first);
        let lines = self.lines.get(first..last).unwrap_or_default().to_vec();
        Self { lines, ended: self.ended || after > 0 }
    }
}

fn is_blank(line: &str) -> bool {
    line.trim_matches([' ', '\t']).is_empty()
}

/// One place where the block stands, and what is to stand there instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Match {
    /// What is replaced.
    pub(super) range: Range<usize>,
    /// By what, its lines ended by line feeds; none where the found indentation does not say how one
    /// of the new lines would be indented.
    pub(super) replacement: Option<String>,
}

/// What a search costs more than.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooCostly;

/// Looks for one block in one text, with more and more tolerance.
pub(super) struct BlockSearch<'s> {
    text: &'s str,
    lines: &'s Lines<'s>,
    search: Block,
    replace: Block,
    /// Whether the two differ in nothing but indentation.
    only_indentation_differs: bool,
    /// Whether two blanks at the end of a line may be a line break.
    keeps_markdown_breaks: bool,
    /// How the lines of the file are read.
    language: Language,
    /// What each line of the file begins inside of, once that is asked for.
    states: Vec<State>,
    /// How many lines may still be compared.
    remaining: usize,
}

/// The lines of a text as they are compared.
struct CompareKeys<'k> {
    /// For each line that counts: its number, its indentation, and which of the searched lines are
    /// like the rest of it.
    lines: Vec<(usize, &'k str, Option<usize>)>,
}

impl<'s> BlockSearch<'s> {
    pub(super) fn new(text: &'s str, lines: &'s Lines<'s>, request: &EditRequest<'_>) -> Self {
        let block = |text| Block::split(text, lines.cr_only);
        let left = limits::EDIT_COMPARISONS;
        let (search, replace) = (block(request.search), block(request.replace));
        let bodies = |block: &Block| -> Vec<String> {
            block.lines.iter().map(|line| line.trim_matches([' ', '\t']).to_owned()).collect()
        };
        let moves = bodies(&search) == bodies(&replace);
        Self {
            text,
            lines,
            search,
            replace,
            only_indentation_differs: moves,
            keeps_markdown_breaks: request.keeps_markdown_breaks(),
            language: Language::of(&request.extension(), text),
            states: Vec::new(),
            remaining: left,
        }
    }

    /// Every place where the block stands with that much tolerance. Overlapping ones are among them.
    pub(super) fn find(&mut self, how: MatchTolerance) -> Result<Vec<Match>, TooCostly> {
        let trim = how >= MatchTolerance::BlankLines;
        let margins = if trim { self.search.blank_margins() } else { (0, 0) };
        let search = self.search.trimmed(margins);
        if how > MatchTolerance::LineEnds && search.lines.iter().all(|line| is_blank(line)) {
            return Ok(Vec::new());
        }
        let mut known = BTreeMap::new();
        let searched: Vec<&str> = search
            .lines
            .iter()
            .map(String::as_str)
            .filter(|line| !trim || !is_blank(line))
            .collect();
        let wanted: Vec<(&str, usize)> = searched
            .iter()
            .map(|line| {
                let (indent, body) = compare_parts(line, how, self.keeps_markdown_breaks);
                let new = known.len();
                (indent, *known.entry(body).or_insert(new))
            })
            .collect();
        let all = self.lines.all.iter().enumerate();
        let all = all.filter(|(_, line)| !trim || !is_blank(line.text));
        let keys = CompareKeys {
            lines: all
                .map(|(at, line)| {
                    let (indent, body) = compare_parts(line.text, how, self.keeps_markdown_breaks);
                    (at, indent, known.get(&body).copied())
                })
                .collect(),
        };
        let replace = self.replace.trimmed(margins);
        let mut found = Vec::new();
        for first in 0..keys.lines.len() {
            let window = keys.lines.get(first..first + wanted.len()).unwrap_or_default();
            let Some(indentation) = self.match_window(window, &wanted, how)? else { continue };
            if how == MatchTolerance::InnerSpace && !self.has_same_forms(window, &searched) {
                continue;
            }
            if let (Some((from, ..)), Some((to, ..))) = (window.first(), window.last()) {
                found.push(self.replacement_at(*from..*to, (&search, &replace), &indentation));
            }
        }
        Ok(found)
    }

    /// Whether these lines are those, and by what rule they are indented.
    fn match_window(
        &mut self,
        window: &[(usize, &str, Option<usize>)],
        wanted: &[(&str, usize)],
        how: MatchTolerance,
    ) -> Result<Option<Indentation>, TooCostly> {
        if window.len() != wanted.len() || window.is_empty() {
            return Ok(None);
        }
        for ((.., number), (_, body)) in window.iter().zip(wanted) {
            self.remaining = self.remaining.checked_sub(1).ok_or(TooCostly)?;
            if *number != Some(*body) {
                return Ok(None);
            }
        }
        self.remaining = self.remaining.checked_sub(window.len()).ok_or(TooCostly)?;
        let pairs = window.iter().zip(wanted);
        let full = pairs.filter(|((at, ..), _)| {
            self.lines.all.get(*at).is_some_and(|line| !is_blank(line.text))
        });
        let pairs: Vec<(&str, &str)> = full.map(|((_, to, _), (from, _))| (*from, *to)).collect();
        let tolerance = match how {
            MatchTolerance::Exact
            | MatchTolerance::LineEnds
            | MatchTolerance::TrailingSpace
            | MatchTolerance::Spelling => Tolerance::None,
            MatchTolerance::Tabs => Tolerance::Tabs,
            MatchTolerance::Indentation
            | MatchTolerance::BlankLines
            | MatchTolerance::InnerSpace => Tolerance::Shift,
        };
        let new = self.replace.lines.iter().filter(|line| !is_blank(line));
        let others: Vec<&str> = new.map(|line| indent::split_indent(line).0).collect();
        Ok(Indentation::infer(&pairs, tolerance, &others))
    }

    /// Whether these lines differ from those that are searched for only in blanks which say nothing where they are.
    fn has_same_forms(
        &mut self,
        window: &[(usize, &str, Option<usize>)],
        searched: &[&str],
    ) -> bool {
        let mut scanner = Scanner::new(&self.language);
        if self.states.is_empty() {
            for line in &self.lines.all {
                self.states.push(scanner.state.clone());
                let _ = read_form(&self.language, &mut scanner, line.text);
            }
        }
        window.iter().zip(searched).all(|((at, indent, _), searched)| {
            let Some((line, state)) = self.lines.all.get(*at).zip(self.states.get(*at)) else {
                return false;
            };
            let body = |line: &str| normalize(line.trim_matches([' ', '\t'])).into_owned();
            let (found, wanted) = (body(line.text), body(searched));
            let mut form = |line: &str| {
                scanner.state.clone_from(state);
                read_form(&self.language, &mut scanner, &format!("{indent}{line}"))
            };
            found == wanted || form(&found) == form(&wanted)
        })
    }

    /// What is replaced for lines `first` to `last`, and by what.
    fn replacement_at(
        &self,
        Range { start: first, end: last }: Range<usize>,
        (search, replace): (&Block, &Block),
        indentation: &Indentation,
    ) -> Match {
        let line = |at: usize| self.lines.all.get(at);
        let mut start = line(first).map_or(0, |line| line.start);
        let mut end = line(last).map_or(self.text.len(), |line| line.text_end());
        let gone = replace.lines.is_empty();
        if gone && search.ended {
            end = line(last).map_or(end, |line| line.next_start());
            if line(last).is_some_and(|line| line.end.is_empty()) {
                // The last line goes, and with it the end of the one before.
                let before = first.checked_sub(1).and_then(line);
                start = before.map_or(start, |line| line.text_end());
            }
        }
        let indented = |line: &String| {
            if is_blank(line) {
                return Some(line.clone());
            }
            let (indent, body) = indent::split_indent(line);
            Some(indentation.apply(indent)? + body)
        };
        // Where indentation is all that changes, one that is off says that another place is meant.
        let is_sure = indentation.is_same() || !self.only_indentation_differs;
        let lines: Option<Vec<String>> =
            replace.lines.iter().filter(|_| is_sure).map(indented).collect();
        let lines = lines.filter(|_| is_sure);
        let by = lines.map(|lines| {
            let mut by = lines.join("\n");
            if replace.ended && !search.ended {
                by.push('\n');
            }
            by
        });
        Match { range: start..end, replacement: by }
    }
}

/// What may be a line break at the end of a line.
const MARKDOWN_BREAK: &str = "  ";

/// A line as it is compared: its indentation, and the rest.
fn compare_parts(line: &str, how: MatchTolerance, breaks: bool) -> (&str, Cow<'_, str>) {
    if how < MatchTolerance::TrailingSpace {
        return ("", Cow::Borrowed(line));
    }
    let full = line.trim_end_matches([' ', '\t']);
    let is_broken = breaks && !full.is_empty() && line.strip_prefix(full) == Some(MARKDOWN_BREAK);
    let (indent, body) = indent::split_indent(if is_broken { line } else { full });
    let body = if how >= MatchTolerance::Spelling { normalize(body) } else { Cow::Borrowed(body) };
    match how >= MatchTolerance::InnerSpace {
        true => {
            let squeezed = body.replace([' ', '\t'], "");
            (indent, if is_broken { squeezed + MARKDOWN_BREAK } else { squeezed }.into())
        }
        false => (indent, body),
    }
}

/// One spelling of a text for all that look alike: composed, with the quotes, dashes and blanks of a
/// keyboard.
fn normalize(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let plain = |c: char| match c {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2007}' | '\u{202f}' => ' ',
        other => other,
    };
    match is_nfc_quick(text.chars()) {
        IsNormalized::Yes => text.chars().map(plain).collect(),
        _ => text.nfc().map(plain).collect(),
    }
}
