//! How the indentation of a block differs from that of the same block elsewhere, if it differs by
//! one rule for all of its lines; and how other lines would be indented by that rule.

use std::collections::BTreeMap;

/// The blanks at the beginning of a line, and the rest of it.
pub(super) fn split_indent(line: &str) -> (&str, &str) {
    let body = line.trim_start_matches([' ', '\t']);
    (line.strip_suffix(body).unwrap_or_default(), body)
}

/// How wide a tab may be.
const TAB_WIDTHS: std::ops::RangeInclusive<usize> = 2..=8;

/// How one indentation becomes another.
#[derive(Clone, Debug, PartialEq, Eq)]
enum IndentRule {
    /// It stays.
    Same,
    /// Tabs for so many spaces each.
    ToTabs(usize),
    /// So many spaces for each tab.
    ToSpaces(usize),
    /// This much more.
    More(String),
    /// This much less.
    Less(String),
    /// Another base, and tabs for so many spaces beyond it, if any line told how many.
    BaseToTabs { from: usize, to: usize, width: Option<usize> },
    /// Another base, and so many spaces for each tab beyond it.
    BaseToSpaces { from: usize, to: usize, width: Option<usize> },
}

/// What turns the indentation of a searched block into the one that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Indentation {
    rule: IndentRule,
    /// Indentations that were seen, and what they became.
    known: BTreeMap<String, String>,
    /// Whether the rule holds for indentations that were not seen.
    applies_to_unseen: bool,
}

/// How far indentations may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tolerance {
    /// Not at all.
    None,
    /// Tabs against spaces.
    Tabs,
    /// By a constant amount.
    Shift,
}

impl Indentation {
    /// The rule by which every first indentation becomes its second one. `others` are those that it
    /// will be asked for.
    pub(super) fn infer(
        pairs: &[(&str, &str)],
        tolerance: Tolerance,
        others: &[&str],
    ) -> Option<Self> {
        let mut seen = BTreeMap::new();
        for (from, to) in pairs {
            // One indentation that becomes two is not moved as a block.
            if seen.insert((*from).to_owned(), (*to).to_owned()).is_some_and(|old| old != *to) {
                return None;
            }
        }
        let rule = match tolerance {
            _ if pairs.iter().all(|(from, to)| from == to) => Some(IndentRule::Same),
            Tolerance::None => None,
            Tolerance::Tabs => tab_rule(pairs),
            Tolerance::Shift => {
                tab_rule(pairs).or_else(|| shift_rule(pairs)).or_else(|| mixed_rule(pairs))
            }
        };
        let rule = rule?;
        let differing = seen.iter().filter(|(from, to)| from != to).count();
        // One line alone may as well be moved by a constant amount. Four is what people mean.
        let is_sure = match rule {
            IndentRule::ToTabs(width) | IndentRule::ToSpaces(width) => differing > 1 || width == 4,
            _ => true,
        };
        let indentation = Self { rule, known: seen, applies_to_unseen: is_sure };
        Some(indentation.widths_from(others))
    }

    /// Where all lines that were compared are equally deep, none of them told how many spaces a tab
    /// stands for: the steps of the lines that are to be put there do.
    fn widths_from(mut self, others: &[&str]) -> Self {
        let (from, to) = match (&self.rule, self.known.iter().next()) {
            (IndentRule::BaseToTabs { from, to, width: None }, _) => (*from, *to),
            (IndentRule::ToTabs(_), Some((from, to)))
                if !self.applies_to_unseen && self.known.len() == 1 =>
            {
                match (measure(from), measure(to)) {
                    (Some((0, spaces)), Some((tabs, 0))) => (spaces, tabs),
                    _ => return self,
                }
            }
            _ => return self,
        };
        let depths: Option<Vec<usize>> = others
            .iter()
            .map(|other| measure(other).filter(|(tabs, _)| *tabs == 0))
            .map(|item| Some(item?.1))
            .collect();
        let width = depths.and_then(|depths| usual_step(from, depths.into_iter()));
        if width.is_some() {
            (self.rule, self.applies_to_unseen) =
                (IndentRule::BaseToTabs { from, to, width }, true);
        }
        self
    }

    /// Whether nothing is moved.
    pub(super) fn is_same(&self) -> bool {
        self.rule == IndentRule::Same
    }

    /// Another indentation by the same rule; none where the rule does not say.
    pub(super) fn apply(&self, indent: &str) -> Option<String> {
        if let Some(known) = self.known.get(indent) {
            return Some(known.clone());
        }
        if !self.applies_to_unseen {
            return None;
        }
        let blanks = |tabs: usize, spaces: usize| "\t".repeat(tabs) + &" ".repeat(spaces);
        match &self.rule {
            IndentRule::Same => Some(indent.to_owned()),
            IndentRule::More(more) => Some(format!("{more}{indent}")),
            IndentRule::Less(less) => indent.strip_prefix(less.as_str()).map(str::to_owned),
            IndentRule::ToTabs(width) => {
                let (tabs, spaces) = measure(indent)?;
                let all = tabs * width + spaces;
                Some(blanks(all / width, all % width))
            }
            IndentRule::ToSpaces(width) => {
                let (tabs, spaces) = measure(indent)?;
                Some(blanks(0, tabs * width + spaces))
            }
            IndentRule::BaseToTabs { from, to, width } => {
                let (0, spaces) = measure(indent)? else { return None };
                let width = (*width)?;
                let away = spaces.abs_diff(*from);
                let steps = (away % width == 0).then_some(away / width)?;
                let tabs = if spaces < *from { to.checked_sub(steps)? } else { to + steps };
                Some(blanks(tabs, 0))
            }
            IndentRule::BaseToSpaces { from, to, width } => {
                let (tabs, 0) = measure(indent)? else { return None };
                Some(blanks(0, to + tabs.checked_sub(*from)? * (*width)?))
            }
        }
    }
}

/// Steps that people indent by.
const USUAL_STEPS: [usize; 3] = [2, 3, 4];

/// The step by which indentations are deeper than a base, if there is one that people use.
fn usual_step(base: usize, depths: impl Iterator<Item = usize>) -> Option<usize> {
    let common = depths.map(|depth| depth.abs_diff(base)).fold(0, gcd);
    USUAL_STEPS.contains(&common).then_some(common)
}

const fn gcd(one: usize, other: usize) -> usize {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// An indentation as tabs and then spaces; none where a tab stands behind a space.
fn measure(indent: &str) -> Option<(usize, usize)> {
    let spaces = indent.trim_start_matches('\t');
    let is_plain = spaces.bytes().all(|byte| byte == b' ');
    is_plain.then_some((indent.len() - spaces.len(), spaces.len()))
}

/// Tabs against spaces: one width of a tab explains every line.
fn tab_rule(pairs: &[(&str, &str)]) -> Option<IndentRule> {
    let mut width = None;
    let mut to_tabs = None;
    for (from, to) in pairs {
        let ((tabs, spaces), (now_tabs, now_spaces)) = (measure(from)?, measure(to)?);
        if tabs == now_tabs {
            if spaces != now_spaces {
                return None;
            }
            continue;
        }
        let more = now_tabs > tabs;
        let (count, room) = match more {
            true => (now_tabs - tabs, spaces.checked_sub(now_spaces)?),
            false => (tabs - now_tabs, now_spaces.checked_sub(spaces)?),
        };
        let number = (room % count == 0).then_some(room / count)?;
        let is_new =
            width.is_none_or(|other| other == number) && to_tabs.is_none_or(|tab| tab == more);
        if !is_new || !TAB_WIDTHS.contains(&number) {
            return None;
        }
        (width, to_tabs) = (Some(number), Some(more));
    }
    match to_tabs? {
        true => width.map(IndentRule::ToTabs),
        false => width.map(IndentRule::ToSpaces),
    }
}

/// A constant amount of the same blanks.
fn shift_rule(pairs: &[(&str, &str)]) -> Option<IndentRule> {
    let (from, to) = pairs.first()?;
    if let Some(more) = to.strip_suffix(from) {
        let holds = |(from, to): &(&str, &str)| to.strip_prefix(more) == Some(*from);
        return pairs.iter().all(holds).then(|| IndentRule::More(more.to_owned()));
    }
    let less = from.strip_suffix(to)?;
    let holds = |(from, to): &(&str, &str)| from.strip_prefix(less) == Some(*to);
    pairs.iter().all(holds).then(|| IndentRule::Less(less.to_owned()))
}

/// A constant amount where one of the two uses only tabs and the other only spaces.
fn mixed_rule(pairs: &[(&str, &str)]) -> Option<IndentRule> {
    let measured: Option<Vec<_>> =
        pairs.iter().map(|(from, to)| Some((measure(from)?, measure(to)?))).collect();
    let measured = measured?;
    let to_tabs = measured.iter().all(|((tabs, _), (_, spaces))| *tabs == 0 && *spaces == 0);
    let to_spaces = measured.iter().all(|((_, spaces), (tabs, _))| *tabs == 0 && *spaces == 0);
    // For each line the spaces of one side and the tabs of the other.
    let lines: Vec<(usize, usize)> = match (to_tabs, to_spaces) {
        (true, false) => measured.iter().map(|((_, spaces), (tabs, _))| (*spaces, *tabs)).collect(),
        (false, true) => measured.iter().map(|((tabs, _), (_, spaces))| (*spaces, *tabs)).collect(),
        _ => return None,
    };
    let spaces = lines.iter().map(|(spaces, _)| *spaces).min()?;
    let tabs = lines.iter().map(|(_, tabs)| *tabs).min()?;
    let deeper = lines.iter().find(|(_, number)| *number > tabs);
    let width = deeper.map(|(own_spaces, number)| (own_spaces - spaces) / (number - tabs));
    let holds = |(own_spaces, number): &(usize, usize)| {
        own_spaces - spaces == (number - tabs) * width.unwrap_or_default()
    };
    if !lines.iter().all(holds) || width.is_some_and(|width| !TAB_WIDTHS.contains(&width)) {
        return None;
    }
    Some(match to_tabs {
        true => IndentRule::BaseToTabs { from: spaces, to: tabs, width },
        false => IndentRule::BaseToSpaces { from: tabs, to: spaces, width },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pairs: &[(&str, &str)], tolerance: Tolerance, more: &[(&str, Option<&str>)]) {
        let found = Indentation::infer(pairs, tolerance, &[]).unwrap();
        for (from, to) in pairs {
            assert_eq!(found.apply(from).as_deref(), Some(*to));
        }
        for (from, to) in more {
            assert_eq!(found.apply(from).as_deref(), *to, "{from:?}");
        }
    }

    #[test]
    fn one_rule_explains_all_lines() {
        use Tolerance::{None as Exactly, Shift, Tabs};
        check(&[("  ", "  "), ("", "")], Exactly, &[("\t", Some("\t"))]);
        check(
            &[("    ", "\t"), ("", "")],
            Tabs,
            &[("        ", Some("\t\t")), ("      ", Some("\t  "))],
        );
        check(&[("\t", "  "), ("\t\t", "    ")], Tabs, &[("\t\t\t", Some("      "))]);
        check(&[("      ", "\t  ")], Tabs, &[("    ", Some("\t"))]);
        check(&[("    ", "\t\t")], Tabs, &[("        ", None), ("", None)]);
        check(&[("  ", "\t"), ("    ", "\t\t")], Tabs, &[("      ", Some("\t\t\t"))]);
        check(&[("", "    "), ("  ", "      ")], Shift, &[("        ", Some("            "))]);
        check(&[("    ", "  ")], Shift, &[("      ", Some("    ")), (" ", None)]);
        check(
            &[("", "\t"), ("    ", "\t\t")],
            Shift,
            &[("        ", Some("\t\t\t")), ("  ", None)],
        );
        check(&[("\t", "    "), ("\t\t", "      ")], Shift, &[("\t\t\t", Some("        "))]);
    }

    #[test]
    fn new_lines_tell_how_wide_a_step_is() {
        let of = |others: &[&str]| {
            let found = Indentation::infer(&[("    ", "\t\t")], Tolerance::Shift, others).unwrap();
            others.iter().map(|other| found.apply(other)).collect::<Vec<_>>()
        };
        assert_eq!(of(&["    ", "        "]), [Some("\t\t".into()), Some("\t\t\t".into())]);
        assert_eq!(of(&["    ", "      "]), [Some("\t\t".into()), Some("\t\t\t".into())]);
        assert_eq!(of(&["    ", "         "]), [Some("\t\t".into()), None]);
        assert_eq!(of(&["    ", "\t"]), [Some("\t\t".into()), None]);
    }

    #[test]
    fn what_no_rule_explains_is_not_moved() {
        for pairs in [
            &[("", "    "), ("", "")][..],
            &[("", "  "), ("  ", "  ")],
            &[("    ", "  "), ("        ", "    ")],
            &[("    ", "\t"), ("        ", "\t\t"), ("            ", "\t\t\t\t")],
            &[(" \t", "    ")],
            &[("\t", "    "), ("    ", "\t")],
        ] {
            assert_eq!(Indentation::infer(pairs, Tolerance::Shift, &[]), None, "{pairs:?}");
        }
        assert_eq!(Indentation::infer(&[("  ", "    ")], Tolerance::Tabs, &[]), None);
    }
}
