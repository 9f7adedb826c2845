//! What stands in backticks in a document, outside of its code blocks.

/// The text of every code span, with its line from 1 on.
pub(super) fn find_spans(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        let opens = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
        match (fence, opens) {
            (Some(text), Some(mark)) if text == mark => fence = None,
            (Some(_), _) => {}
            (None, Some(mark)) => fence = Some(mark),
            (None, None) => {
                found.extend(spans_in_line(line).into_iter().map(|span| (index + 1, span)))
            }
        }
    }
    found
}

/// The code spans of a line: what stands between two runs of as many backticks.
pub(super) fn spans_in_line(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(open) = rest.find('`') {
        let after = rest.get(open..).unwrap_or_default();
        let ticks = after.chars().take_while(|letter| *letter == '`').count();
        let inside = after.get(ticks..).unwrap_or_default();
        let Some(close) = closing_ticks(inside, ticks) else {
            rest = inside;
            continue;
        };
        found.push(inside.get(..close).unwrap_or_default().trim());
        rest = inside.get(close + ticks..).unwrap_or_default();
    }
    found
}

/// Where a run of exactly so many backticks begins.
fn closing_ticks(text: &str, ticks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(next) = text.get(at..)?.find('`') {
        let start = at + next;
        let run = text.get(start..)?.chars().take_while(|letter| *letter == '`').count();
        if run == ticks {
            return Some(start);
        }
        at = start + run;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_found_and_blocks_are_not() {
        let text = "a `one` and ``two ` ticks``\n```\n`no`\n```\n`three";
        assert_eq!(find_spans(text), [(1, "one"), (1, "two ` ticks")]);
    }
}
