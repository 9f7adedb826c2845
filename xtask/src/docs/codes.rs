//! The page of every code that a user can meet.

use std::collections::BTreeMap;

use capsule_base::code::Code;
use capsule_core::outcome::Status;

use crate::docs::markdown;

/// What a page says of a family, for those that need a word.
const ABOUT: &str = "Every refusal, failure and problem carries a code. A code stays what it is for \
ever. `capsule explain-code SLUG` prints what stands here. The status is that of a run that met the \
code without expecting it; where several apply, the first of 130, 6, 8, 10, 5, 2, 3, 4, 7, 1 wins.";

/// The page.
pub(super) fn page() -> String {
    let mut families: BTreeMap<&str, Vec<Code>> = BTreeMap::new();
    for code in Code::ALL {
        let family = code.slug().split('.').next().unwrap_or_default();
        families.entry(family).or_default().push(*code);
    }
    let mut text = markdown::head("Codes", ABOUT);
    for (family, codes) in families {
        text.push_str(&format!("\n## {family}\n\n"));
        let columns =
            ["code", "meaning", "usual cause", "next step", "whose move", "class", "status"];
        text.push_str(&markdown::table(&columns, codes.into_iter().map(row)));
    }
    text
}

fn row(code: Code) -> Vec<String> {
    vec![
        markdown::code(code.slug()),
        code.meaning().to_owned(),
        code.cause().to_owned(),
        code.next_step().to_owned(),
        code.responsible().description().to_owned(),
        Status::from(code).name().to_owned(),
        code.exit().status().to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_row() {
        let page = page();
        for code in Code::ALL {
            assert!(
                page.contains(&format!("| `{}` | {} |", code.slug(), code.meaning())),
                "{code}"
            );
        }
    }
}
