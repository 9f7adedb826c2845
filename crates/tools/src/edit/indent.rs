//! How the indentation of a block differs from that of the same block elsewhere, if it differs by
//! one rule for all of its lines; and how other lines would be indented by that rule.

use std::collections::BTreeMap;

/// The blanks at the beginning of a line, and the rest of it.
pub(super) fn split(line: &str) -> (&str, &str) {
    let body = line.trim_start_matches([' ', '\t']);
    (line.strip_suffix(body).unwrap_or_default(), body)
}

/// How wide a tab may be.
const WIDTHS: std::ops::RangeInclusive<usize> = 2..=8;

/// How one indentation becomes another.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
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
    rule: Rule,
    /// Indentations that were seen, and what they became.
    seen: BTreeMap<String, String>,
    /// Whether the rule holds for indentations that were not seen.
    is_sure: bool,
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
    pub(super) fn of(
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
            _ if pairs.iter().all(|(from, to)| from == to) => Some(Rule::Same),
            Tolerance::None => None,
            Tolerance::Tabs => tabs(pairs),
            Tolerance::Shift => tabs(pairs).or_else(|| shift(pairs)).or_else(|| both(pairs)),
        };
        let rule = rule?;
        let differing = seen.iter().filter(|(from, to)| from != to).count();
        // One line alone may as well be moved by a constant amount. Four is what people mean.
        let is_sure = match rule {
            Rule::ToTabs(width) | Rule::ToSpaces(width) => differing > 1 || width == 4,
            _ => true,
        };
        let own = Self { rule, seen, is_sure };
        Some(own.told_by(others))
    }

    /// Where all lines that were compared are equally deep, none of them told how many spaces a tab
    /// stands for: the steps of the lines that are to be put there do.
    fn told_by(mut self, others: &[&str]) -> Self {
        let (from, to) = match (&self.rule, self.seen.iter().next()) {
            (Rule::BaseToTabs { from, to, width: None }, _) => (*from, *to),
            (Rule::ToTabs(_), Some((from, to))) if !self.is_sure && self.seen.len() == 1 => {
                match (measure(from), measure(to)) {
                    (Some((0, spaces)), Some((tabs, 0))) => (spaces, tabs),
                    _ => return self,
                }
            }
            _ => return self,
        };
        let depths: Option<Vec<usize>> = others
            .iter()
            .map(|own| measure(own).filter(|(tabs, _)| *tabs == 0))
            .map(|own| Some(own?.1))
            .collect();
        let width = depths.and_then(|depths| step(from, depths.into_iter()));
        if width.is_some() {
            (self.rule, self.is_sure) = (Rule::BaseToTabs { from, to, width }, true);
        }
        self
    }

    /// Whether nothing is moved.
    pub(super) fn is_same(&self) -> bool {
        self.rule == Rule::Same
    }

    /// Another indentation by the same rule; none where the rule does not say.
    pub(super) fn apply(&self, indent: &str) -> Option<String> {
        if let Some(known) = self.seen.get(indent) {
            return Some(known.clone());
        }
        if !self.is_sure {
            return None;
        }
        let blanks = |tabs: usize, spaces: usize| "\t".repeat(tabs) + &" ".repeat(spaces);
        match &self.rule {
            Rule::Same => Some(indent.to_owned()),
            Rule::More(more) => Some(format!("{more}{indent}")),
            Rule::Less(less) => indent.strip_prefix(less.as_str()).map(str::to_owned),
            Rule::ToTabs(width) => {
                let (tabs, spaces) = measure(indent)?;
                let all = tabs * width + spaces;
                Some(blanks(all / width, all % width))
            }
            Rule::ToSpaces(width) => {
                let (tabs, spaces) = measure(indent)?;
                Some(blanks(0, tabs * width + spaces))
            }
            Rule::BaseToTabs { from, to, width } => {
                let (0, spaces) = measure(indent)? else { return None };
                let width = (*width)?;
                let away = spaces.abs_diff(*from);
                let steps = (away % width == 0).then_some(away / width)?;
                let tabs = if spaces < *from { to.checked_sub(steps)? } else { to + steps };
                Some(blanks(tabs, 0))
            }
            Rule::BaseToSpaces { from, to, width } => {
                let (tabs, 0) = measure(indent)? else { return None };
                Some(blanks(0, to + tabs.checked_sub(*from)? * (*width)?))
            }
        }
    }
}

/// Steps that people indent by.
const STEPS: [usize; 3] = [2, 3, 4];

/// The step by which indentations are deeper than a base, if there is one that people use.
fn step(base: usize, depths: impl Iterator<Item = usize>) -> Option<usize> {
    let common = depths.map(|own| own.abs_diff(base)).fold(0, gcd);
    STEPS.contains(&common).then_some(common)
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
fn tabs(pairs: &[(&str, &str)]) -> Option<Rule> {
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
        let own = (room % count == 0).then_some(room / count)?;
        let is_new =
            width.is_none_or(|other| other == own) && to_tabs.is_none_or(|own| own == more);
        if !is_new || !WIDTHS.contains(&own) {
            return None;
        }
        (width, to_tabs) = (Some(own), Some(more));
    }
    match to_tabs? {
        true => width.map(Rule::ToTabs),
        false => width.map(Rule::ToSpaces),
    }
}

/// A constant amount of the same blanks.
fn shift(pairs: &[(&str, &str)]) -> Option<Rule> {
    let (from, to) = pairs.first()?;
    if let Some(more) = to.strip_suffix(from) {
        let holds = |(from, to): &(&str, &str)| to.strip_prefix(more) == Some(*from);
        return pairs.iter().all(holds).then(|| Rule::More(more.to_owned()));
    }
    let less = from.strip_suffix(to)?;
    let holds = |(from, to): &(&str, &str)| from.strip_prefix(less) == Some(*to);
    pairs.iter().all(holds).then(|| Rule::Less(less.to_owned()))
}

/// A constant amount where one of the two uses only tabs and the other only spaces.
fn both(pairs: &[(&str, &str)]) -> Option<Rule> {
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
    let deeper = lines.iter().find(|(_, own)| *own > tabs);
    let width = deeper.map(|(own_spaces, own)| (own_spaces - spaces) / (own - tabs));
    let holds = |(own_spaces, own): &(usize, usize)| {
        own_spaces - spaces == (own - tabs) * width.unwrap_or_default()
    };
    if !lines.iter().all(holds) || width.is_some_and(|width| !WIDTHS.contains(&width)) {
        return None;
    }
    Some(match to_tabs {
        true => Rule::BaseToTabs { from: spaces, to: tabs, width },
        false => Rule::BaseToSpaces { from: tabs, to: spaces, width },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pairs: &[(&str, &str)], tolerance: Tolerance, more: &[(&str, Option<&str>)]) {
        let found = Indentation::of(pairs, tolerance, &[]).unwrap();
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
            let found = Indentation::of(&[("    ", "\t\t")], Tolerance::Shift, others).unwrap();
            others.iter().map(|own| found.apply(own)).collect::<Vec<_>>()
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
            assert_eq!(Indentation::of(pairs, Tolerance::Shift, &[]), None, "{pairs:?}");
        }
        assert_eq!(Indentation::of(&[("  ", "    ")], Tolerance::Tabs, &[]), None);
    }
}
