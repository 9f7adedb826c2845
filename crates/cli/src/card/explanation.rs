//! The page of a card that says what its answers do.

use capsule_base::escape;
use capsule_core::approval::Card;

use crate::card::card_rows::{LineStyle, Rows};
use crate::card::choices::{Choice, choices};

/// The rows that say what the answers do, and what a yes is bound to.
pub(crate) fn explanation_rows(card: &Card, columns: usize) -> Rows {
    let mut all = Rows::new(columns);
    let needs: Vec<&str> = card.capabilities.iter().map(|capability| capability.name()).collect();
    all.push_labelled(LineStyle::Plain, "needs", &needs.join(", "));
    all.push_labelled(LineStyle::Plain, "risk", card.risk.name());
    all.push_labelled(LineStyle::Plain, "tool", card.tool.as_str());
    all.push_labelled(LineStyle::Plain, "why asked", &escape::line(&card.why));
    all.push(LineStyle::Plain, "");
    let (first, rest) = EXPLANATIONS.split_at(if card.steps > 0 { 3 } else { 0 });
    let item = if card.steps > 0 { &PLAN_EXPLANATIONS[..] } else { first };
    let is_offered = |label: &str| {
        label != "session"
            || choices(card).iter().any(|(_, choice)| matches!(choice, Choice::Offer(_)))
    };
    for (label, text) in item.iter().chain(rest).filter(|(label, _)| is_offered(label)) {
        all.push_labelled(LineStyle::Plain, label, text);
    }
    all.push_labelled(LineStyle::Plain, "Esc", postponed_texts(card).1);
    all
}

/// The end of a question that nobody answers now: in few words, and in more.
pub(crate) const fn postponed_texts(card: &Card) -> (&'static str, &'static str) {
    match (card.steps, card.waits_unanswered) {
        (0, true) => (
            "decide later",
            "the question is laid down and the run is suspended: `capsule approvals` answers it, `capsule \
             resume` goes on",
        ),
        (0, false) => ("not now", "the call does not run; no question waits here"),
        _ => (
            "step by step",
            "the plan as a whole is not approved; each step is asked about separately",
        ),
    }
}

const EXPLANATIONS: [(&str, &str); 6] = [
    (
        "once",
        "the call runs as it is shown. Before it does, tool, arguments, paths, programs and policy are \
         looked at again; if one of them is another by then, it does not run",
    ),
    (
        "session",
        "calls like it run without a question, also those of later commands in the same session, until \
         the session ends, the uses are used up or the time is over. What the policy denies, or asks each \
         time, it still does",
    ),
    ("change", "the call is made again with your arguments, and decided anew"),
    ("deny", "the call does not run; your reason is passed to the agent as it is"),
    ("stop", "the call does not run, nor does anything after it"),
    ("keys", "only digits answer; none does while other keys are pressed, or when pasted"),
];

/// The same of a plan's card.
const PLAN_EXPLANATIONS: [(&str, &str); 2] = [
    (
        "all",
        "these steps run as they are shown. Each is judged again when it is reached; if it is another call \
         by then, it is asked about by itself",
    ),
    ("each", "a card comes at each step that the policy asks about"),
];
