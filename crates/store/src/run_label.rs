//! The short names of runs, as people see and type them.

use capsule_base::limits;
use capsule_core::id::RunId;

/// The shortest prefix of a run's id of at least four characters that no other run of `others` begins with.
pub fn run_label<'a>(id: RunId, others: impl Iterator<Item = &'a str> + Clone) -> String {
    let full = id.to_string();
    let shortest = "r-".len() + limits::RUN_LABEL_MIN;
    for length in shortest..full.len() {
        if let Some(prefix) = full.get(..length)
            && !others.clone().any(|other| other != full && other.starts_with(prefix))
        {
            return prefix.into();
        }
    }
    full
}

/// Brings what a person typed into the form that labels have: `7q3k` and `R-7q3k` become `r-7Q3K`.
#[must_use]
pub fn canonical_label(typed: &str) -> String {
    let upper = typed.to_ascii_uppercase();
    let digits = upper.strip_prefix("R-").unwrap_or(&upper);
    let mut label = String::from("r-");
    label.extend(digits.chars().map(|digit| match digit {
        'O' => '0',
        'I' | 'L' => '1',
        other => other,
    }));
    label
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_the_shortest_that_is_unique() {
        let id = RunId::parse("r-7Q3K000000000000").unwrap();
        assert_eq!(run_label(id, [].into_iter()), "r-7Q3K");
        let others = ["r-7Q3KZ00000000000", "r-7Q3K000000000000"];
        assert_eq!(run_label(id, others.into_iter()), "r-7Q3K0");
    }

    #[test]
    fn typing_is_forgiven() {
        assert_eq!(canonical_label("7q3k"), "r-7Q3K");
        assert_eq!(canonical_label("R-OIL0"), "r-0110");
    }
}
