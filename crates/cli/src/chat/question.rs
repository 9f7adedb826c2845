//! A question of the model: shown with its choices, and answered by a line.

use std::fmt::Write as _;

use capsule_base::escape;
use capsule_report::wrap;
use capsule_runtime::Cancel;

use crate::card::{Terminal, read_line};

/// Asks the person at the terminal. None where they give no answer.
pub(crate) fn ask(
    terminal: &Terminal,
    (question, choices): (&str, &[String]),
    cancel: &Cancel,
) -> Option<String> {
    let columns = terminal.size().0.clamp(20, 120).saturating_sub(1);
    // What was typed before the question was seen does not answer it.
    terminal.discard_input();
    terminal.print(&question_text(question, choices, columns)).ok()?;
    answer_of(&read_line(terminal, cancel)?, choices)
}

/// The question as it is shown.
fn question_text(question: &str, choices: &[String], columns: usize) -> String {
    let mut text = String::new();
    let question = escape::block(question);
    let lines = question.lines().flat_map(|line| wrap(line, columns.saturating_sub(2)));
    for (at, line) in lines.enumerate() {
        let _ = writeln!(text, "{} {line}", if at == 0 { "?" } else { " " });
    }
    for (at, choice) in choices.iter().enumerate() {
        let choice = escape::line(choice);
        for (part, line) in wrap(&choice, columns.saturating_sub(6)).iter().enumerate() {
            let _ = match part {
                0 => writeln!(text, "  {:>2}  {line}", at + 1),
                _ => writeln!(text, "      {line}"),
            };
        }
    }
    let how = match choices {
        [] => "answer (Enter: none): ",
        _ => "number or answer (Enter: none): ",
    };
    text.push_str(how);
    text
}

/// The answer that a line gives: a choice by its number, or the line itself.
fn answer_of(line: &str, choices: &[String]) -> Option<String> {
    let line = line.trim();
    let chosen = line.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
    match chosen {
        Some(choice) => Some(choice.clone()),
        None => (!line.is_empty()).then(|| line.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_choice_and_anything_else_itself() {
        let choices = ["this week".to_owned(), "this month".to_owned()];
        for (line, answer) in [
            ("2\n", Some("this month")),
            (" 1 ", Some("this week")),
            ("0", Some("0")),
            ("3", Some("3")),
            ("last year\n", Some("last year")),
            ("\n", None),
        ] {
            assert_eq!(answer_of(line, &choices).as_deref(), answer, "{line:?}");
        }
        let shown = question_text("Which\u{1b}[2J?", &choices, 30);
        assert!(
            shown.starts_with("? Which⟨U+001B⟩[2J?\n   1  this week\n   2  this month\n"),
            "{shown}"
        );
    }
}
