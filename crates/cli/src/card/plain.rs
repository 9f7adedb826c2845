//! A card as numbered lines, for screen readers and terminals that can do nothing else. It is
//! answered with a digit and a word that was shown: what is typed blindly, or was in the clipboard,
//! does not know the word.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use capsule_core::approval::Card;
use capsule_core::escape;
use capsule_runtime::{Cancel, Said};

use crate::card::Rules;
use crate::card::choices::choices;
use crate::card::diff;
use crate::card::keys::said_plainly;
use crate::card::lines::{self, Rows};
use crate::card::terminal::Terminal;

/// Words that are short and sound like no other.
const WORDS: [&str; 32] = [
    "amber", "basil", "cedar", "delta", "ember", "fjord", "grape", "hazel", "igloo", "jetty",
    "koala", "lemon", "maple", "nylon", "olive", "pearl", "quilt", "raven", "sable", "tulip",
    "umbra", "viola", "wheat", "xenon", "yacht", "zebra", "birch", "coral", "dunes", "flint",
    "glade", "heron",
];

/// How often the run is looked at while nobody types.
const TICK: Duration = Duration::from_millis(100);
/// The longest line that is read; a terminal gives no longer ones.
const LINE: usize = 16 << 10;

/// A word that nobody knew before: the standard library's own source of chance, which it takes from
/// the system.
fn word() -> &'static str {
    let chance = RandomState::new().build_hasher().finish();
    let at = usize::try_from(chance % 32).unwrap_or(0);
    WORDS.get(at).unwrap_or(&"amber")
}

/// Shows a card until it is answered, or cannot be any more.
pub(crate) fn show(terminal: &Terminal, card: &Card, rules: &Rules, cancel: &Cancel) -> Said {
    let word = word();
    let columns = terminal.size().0.clamp(40, 120);
    let mut opened = false;
    if say(terminal, &text(card, columns, opened, word)).is_none() {
        return Said::Withdrawn;
    }
    let mut hides = lines::body(card, columns, opened).hides;
    terminal.forget();
    loop {
        let Some(line) = line(terminal, cancel) else { return Said::Withdrawn };
        let answer = match line.trim() {
            "" => continue,
            "v" => {
                opened = true;
                hides = false;
                text(card, columns, opened, word)
            }
            "e" => shown(lines::explained(card, columns)),
            "d" => shown(diff::differing(card, columns)),
            "g" => shown(lines::covered(card, columns)),
            "p" => match &card.previously_allowed {
                Some(before) => shown(diff::ruled(card, &rules(before), columns)),
                None => "the same was not allowed here before\n".into(),
            },
            typed => match answered(card, typed, word, hides) {
                Ok(said) => return said,
                Err(why) => format!("{}\n", escape::line(&why)),
            },
        };
        if say(terminal, &answer).is_none() {
            return Said::Withdrawn;
        }
    }
}

/// What a line says.
pub(crate) fn answered(card: &Card, line: &str, word: &str, hides: bool) -> Result<Said, String> {
    let how = || format!("nothing was answered: type a number and the word `{word}`");
    let mut parts = line.splitn(3, ' ');
    let (digit, said) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let rest = parts.next().unwrap_or_default();
    if said != word {
        return Err(how());
    }
    if digit == "0" {
        return Ok(Said::Later);
    }
    let mut known = choices(card).into_iter();
    let known = known.find(|(own, _)| digit.chars().eq([*own]));
    let (_, choice) = known.ok_or_else(how)?;
    if choice.allows() && hides {
        return Err("parts of it are hidden: type `v` to see everything first".into());
    }
    said_plainly(choice, rest, card)
}

/// The whole card, in the order of use.
pub(crate) fn text(card: &Card, columns: usize, opened: bool, word: &str) -> String {
    let mut all = format!(
        "Approve? {}, risk {}. {}\n",
        lines::subject(card),
        card.risk.name(),
        card.attention
            .map_or_else(String::new, |(shown, most)| format!("Prompt {shown} of {most}."))
    );
    all.push_str(&shown(lines::body(card, columns, opened)));
    all.push_str(&shown(lines::answers(card, columns)));
    all.push_str(match (card.steps, card.waits_unanswered) {
        (0, true) => "0  Decide later\n",
        (0, false) => "0  Not now\n",
        _ => "0  Ask at each step\n",
    });
    let diff = if card.diff.is_some() { ", `d` the diff" } else { "" };
    let rule = if card.previously_allowed.is_some() { ", `p` a rule for it" } else { "" };
    let more = format!("{diff}{rule}");
    all.push_str(&format!("`v` shows everything, `e` explains{more}.\n"));
    all.push_str(
        "Behind the word of 4 stands your reason, behind that of 3 the arguments as JSON.\n",
    );
    all.push_str(&format!("Answer with a number and the word `{word}`:\n"));
    all
}

fn shown(rows: Rows) -> String {
    rows.rows.into_iter().map(|row| row.text + "\n").collect()
}

fn say(terminal: &Terminal, text: &str) -> Option<()> {
    terminal.print(text).ok()
}

/// A line that was typed; none when nothing more will come.
fn line(terminal: &Terminal, cancel: &Cancel) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        if cancel.is_set() {
            return None;
        }
        let Some(read) = terminal.read(TICK).ok()? else { continue };
        bytes.extend_from_slice(&read);
        if bytes.len() > LINE {
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
