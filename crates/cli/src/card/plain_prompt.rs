//! A card as numbered lines, for screen readers and terminals that can do nothing else. It is
//! answered with a digit and a word that was shown: what is typed blindly, or was in the clipboard,
//! does not know the word.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use capsule_base::escape;
use capsule_core::approval::Card;
use capsule_runtime::{Cancel, PromptAnswer};

use crate::card::card_rows;
use crate::card::card_state::RulePatchLookup;
use crate::card::card_state::parse_plain_answer;
use crate::card::choices::choices;
use crate::card::diff;
use crate::card::explanation;
use crate::card::terminal::Terminal;

/// Words that are short and sound like no other.
const CONFIRMATION_WORDS: [&str; 32] = [
    "amber", "basil", "cedar", "delta", "ember", "fjord", "grape", "hazel", "igloo", "jetty",
    "koala", "lemon", "maple", "nylon", "olive", "pearl", "quilt", "raven", "sable", "tulip",
    "umbra", "viola", "wheat", "xenon", "yacht", "zebra", "birch", "coral", "dunes", "flint",
    "glade", "heron",
];

/// How often the run is looked at while nobody types.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The longest line that is read; a terminal gives no longer ones.
const MAX_LINE_BYTES: usize = 16 << 10;

/// A word that nobody knew before: the standard library's own source of chance, which it takes from
/// the system.
fn random_word() -> &'static str {
    let chance = RandomState::new().build_hasher().finish();
    let at = usize::try_from(chance % 32).unwrap_or(0);
    CONFIRMATION_WORDS.get(at).unwrap_or(&"amber")
}

/// Shows a card until it is answered, or cannot be any more.
pub(crate) fn show(
    terminal: &Terminal,
    card: &Card,
    rules: &RulePatchLookup,
    cancel: &Cancel,
) -> PromptAnswer {
    let word = random_word();
    let columns = terminal.size().0.clamp(24, 120);
    let mut opened = false;
    if print_text(terminal, &card_text(card, columns, opened, word)).is_none() {
        return PromptAnswer::Withdrawn;
    }
    let mut hides = card_rows::body_rows(card, columns, opened).hides_something;
    terminal.discard_input();
    loop {
        let Some(line) = read_line(terminal, cancel) else { return PromptAnswer::Withdrawn };
        let answer = match line.trim() {
            "" => continue,
            "v" => {
                opened = true;
                hides = false;
                card_text(card, columns, opened, word)
            }
            "e" => explanation::explanation_rows(card, columns).into_text(),
            "d" => diff::diff_rows(card, columns).into_text(),
            "g" => card_rows::coverage_rows(card, columns).into_text(),
            "p" => match &card.previously_allowed {
                Some(before) => diff::rule_rows(card, &rules(before), columns).into_text(),
                None => "the same was not allowed here before\n".into(),
            },
            typed => match parse_answer(card, typed, word, hides) {
                Ok(said) => return said,
                Err(why) => format!("{}\n", escape::line(&why)),
            },
        };
        if print_text(terminal, &answer).is_none() {
            return PromptAnswer::Withdrawn;
        }
    }
}

/// What a line says.
pub(crate) fn parse_answer(
    card: &Card,
    line: &str,
    word: &str,
    hides: bool,
) -> Result<PromptAnswer, String> {
    let how = || format!("nothing was answered: type a number and the word `{word}`");
    let mut parts = line.splitn(3, ' ');
    let (digit, said) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let rest = parts.next().unwrap_or_default();
    if said != word {
        return Err(how());
    }
    if digit == "0" {
        return Ok(PromptAnswer::Postpone);
    }
    let mut known = choices(card).into_iter();
    let known = known.find(|(c, _)| digit.chars().eq([*c]));
    let (_, choice) = known.ok_or_else(how)?;
    if choice.allows() && hides {
        return Err("parts of it are hidden: type `v` to see everything first".into());
    }
    parse_plain_answer(choice, rest, card)
}

/// The whole card, in the order of use.
pub(crate) fn card_text(card: &Card, columns: usize, opened: bool, word: &str) -> String {
    let mut all = format!(
        "Approve? {}, risk {}. {}\n",
        card_rows::card_subject(card),
        card.risk.name(),
        card.attention
            .map_or_else(String::new, |(shown, most)| format!("Prompt {shown} of {most}."))
    );
    all.push_str(&card_rows::body_rows(card, columns, opened).into_text());
    all.push_str(&card_rows::answer_rows(card, columns).into_text());
    all.push_str(match (card.steps, card.waits_unanswered) {
        (0, true) => "0  Decide later\n",
        (0, false) => "0  Not now\n",
        _ => "0  Ask at each step\n",
    });
    let diff =
        if card.diff.as_ref().is_some_and(|diff| !diff.is_empty()) { ", `d` the diff" } else { "" };
    let rule = if card.previously_allowed.is_some() { ", `p` a rule for it" } else { "" };
    let more = format!("{diff}{rule}");
    all.push_str(&format!("`v` shows everything, `e` explains{more}.\n"));
    let changes = if card.args.is_null() { "" } else { ", the arguments as JSON after that of 3" };
    all.push_str(&format!("Write your reason after the word of 4{changes}.\n"));
    all.push_str(&format!("Answer with a number and the word `{word}`:\n"));
    all
}

fn print_text(terminal: &Terminal, text: &str) -> Option<()> {
    terminal.print(text).ok()
}

/// A line that was typed; none when nothing more will come.
pub(crate) fn read_line(terminal: &Terminal, cancel: &Cancel) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        if cancel.is_set() {
            return None;
        }
        let Some(read) = terminal.read(POLL_INTERVAL).ok()? else { continue };
        bytes.extend_from_slice(&read);
        if bytes.len() > MAX_LINE_BYTES {
            return None;
        }
        if bytes.ends_with(b"\n") {
            // Several lines at once were pasted.
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let several = text.trim_end().contains('\n');
            return Some(if several { "?".into() } else { text });
        }
    }
}
