//! Fits a line to a window at its words, so that what is to be copied stays in one piece.

use crate::columns::width;

/// The columns by which a line that goes on is indented.
const HANGING_COLUMNS: usize = 2;

/// A line in as many lines as it needs, each further one indented a little. Words stay whole, also where one has more
/// columns than the window: the terminal goes on with it in its own way, so that it can be copied. So does a command
/// or a quotation that has room in one line. Colours take up no columns.
#[must_use]
pub fn fit_line(line: &str, columns: usize) -> Vec<String> {
    let indent = line.len() - line.trim_start_matches(' ').len();
    fit_hanging(line, columns, indent + HANGING_COLUMNS)
}

/// The same with further lines below a column.
#[must_use]
pub fn fit_hanging(line: &str, columns: usize, indent: usize) -> Vec<String> {
    if shown_width(line) <= columns || columns <= indent {
        return vec![line.to_owned()];
    }
    let text = line.trim_start_matches(' ');
    let mut fitted = " ".repeat(line.len() - text.len());
    let mut is_empty = true;
    let mut lines = Vec::new();
    for piece in whole_pieces(text, columns - indent) {
        if !is_empty && shown_width(&fitted) + 1 + shown_width(&piece) > columns {
            lines.push(std::mem::replace(&mut fitted, " ".repeat(indent)));
            is_empty = true;
        }
        if !is_empty {
            fitted.push(' ');
        }
        fitted.push_str(&piece);
        is_empty = false;
    }
    lines.push(fitted);
    lines
}

/// The words of a text; those of a quotation or a command together, where they have room.
fn whole_pieces(text: &str, room: usize) -> Vec<String> {
    let words: Vec<&str> = text.split(' ').collect();
    let mut pieces = Vec::new();
    let mut rest = words.as_slice();
    while let Some((first, _)) = rest.split_first() {
        let (together, after) = rest.split_at(piece_length(rest));
        let piece = together.join(" ");
        if together.len() == 1 || shown_width(&piece) <= room {
            pieces.push(piece);
            rest = after;
        } else {
            pieces.push((*first).to_owned());
            rest = rest.get(1..).unwrap_or_default();
        }
    }
    pieces
}

/// How many words at the beginning belong together.
fn piece_length(words: &[&str]) -> usize {
    let Some(first) = words.first() else { return 0 };
    let opens = |word: &str| word.matches('`').count() % 2 == 1;
    if opens(first) {
        let closing = words.iter().skip(1).position(|word| opens(word));
        return closing.map_or(1, |at| at + 2);
    }
    if *first != "capsule" {
        return 1;
    }
    let is_beyond = |word: &&str| matches!(*word, "·" | "then") || word.starts_with('(');
    let most = words.iter().position(is_beyond).unwrap_or(words.len());
    let ends = |word: &&str| word.ends_with([',', ';', ':']);
    words.iter().take(most).position(ends).map_or(most, |at| at + 1)
}

/// The columns that a text takes up on a terminal that understands its colours.
fn shown_width(text: &str) -> usize {
    let mut pieces = text.split('\u{1b}');
    let plain = pieces.next().map_or(0, width);
    let behind = |piece: &str| width(piece.split_once('m').map_or("", |(_, text)| text));
    plain + pieces.map(behind).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_goes_to_the_next_line_as_a_whole() {
        let line = "staged: 1 change · capsule changes r-CVAK · capsule apply r-CVAK · capsule discard r-CVAK";
        let fitted = fit_line(line, 80);
        assert_eq!(
            fitted,
            [
                "staged: 1 change · capsule changes r-CVAK · capsule apply r-CVAK ·",
                "  capsule discard r-CVAK"
            ]
        );
        assert_eq!(fit_line(line, 200), [line]);
        let line = "hint: read it again; `capsule show-run r-CVAK:1` says what the run did";
        assert_eq!(fit_line(line, 40).get(1).unwrap(), "  `capsule show-run r-CVAK:1` says what");
        let line =
            "session: r-XXBG begins; capsule session end r-XXBG ends it, or 4 h without a call";
        let ends = "  capsule session end r-XXBG ends it, or";
        assert_eq!(fit_line(line, 40).get(1).unwrap(), ends);
    }

    #[test]
    fn words_stay_whole_and_nothing_is_lost() {
        let line = "  rule a/very/long/name/that/has/no/blank/and/no/room · here and there `a b`";
        for columns in 4..90 {
            let fitted = fit_line(line, columns);
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(&fitted.join(" ")), words(line), "{columns}");
        }
    }

    #[test]
    fn colours_take_up_no_columns() {
        let line = "\u{1b}[1m\u{1b}[31merror\u{1b}[0m: one two three four";
        assert_eq!(fit_line(line, 25), [line]);
        assert_eq!(fit_line(line, 24).len(), 2);
    }
}
