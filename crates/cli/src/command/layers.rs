//! What is new about the layers over a policy, told before anything runs.

use capsule_base::escape;
use capsule_base::units::counted;
use capsule_runtime::LayerChange;
use similar::{ChangeTag, TextDiff};

use crate::screen::{ERROR, HINT, SUCCESS, Screen, WARNING};

/// How many lines of a change are shown; how many there are is told.
const MAX_SHOWN_LINES: usize = 200;

/// Says which layers were met for the first time, which have changed, and which are gone.
pub(crate) fn show_layer_changes(news: &[LayerChange], screen: &Screen) {
    for new in news {
        let name = escape::line(&new.name);
        match &new.run {
            None => screen.eprint(&format!(
                "{HINT}layer{HINT:#}: `{name}` tightens the policy; no run met it before"
            )),
            Some(_) => show_change(new, screen),
        }
    }
}

/// Says that a key was made for a new store, since its policy wants it signed.
pub(crate) fn tell_key(made: Option<&str>, screen: &Screen) {
    if let Some(line) = made {
        screen.eprint(&format!(
            "{HINT}key{HINT:#}: the policy wants the record signed, so a key was made beside the store; its public \
             line, for others to verify with (--key):"
        ));
        screen.eprint(&format!("     {line}"));
    }
}

/// How a layer has changed since a run met it.
pub(crate) fn show_change(news: &LayerChange, screen: &Screen) {
    let (name, run) = (escape::line(&news.name), news.run.as_deref().unwrap_or("before"));
    let what = match (&news.now, &news.before) {
        (None, _) => "is gone",
        (Some(_), Some(_)) => "has changed",
        (Some(_), None) => "has changed; what it said was not kept",
    };
    screen.eprint(&format!("{WARNING}layer{WARNING:#}: `{name}` {what} since {run}"));
    let Some(before) = &news.before else { return };
    let now = news.now.as_deref().unwrap_or("");
    let diff = TextDiff::from_lines(before.as_str(), now);
    let changed: Vec<_> =
        diff.iter_all_changes().filter(|change| change.tag() != ChangeTag::Equal).collect();
    for line in changed.iter().take(MAX_SHOWN_LINES) {
        let (style, sign) = match line.tag() {
            ChangeTag::Delete => (ERROR, "-"),
            _ => (SUCCESS, "+"),
        };
        let text = escape::line(line.value().trim_end_matches(['\n', '\r'])).into_owned();
        screen.eprint(&format!("  {style}{sign}{style:#} {text}"));
    }
    if changed.len() > MAX_SHOWN_LINES {
        let more = counted(changed.len() - MAX_SHOWN_LINES, "more line");
        screen.eprint(&format!("  {WARNING}{more}{WARNING:#} differ"));
    }
}
