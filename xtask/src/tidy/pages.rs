//! Generated pages say what the code says.

use crate::docs;
use crate::repository::Repository;
use crate::tidy::TidyFinding;

pub(super) fn check(house: &Repository) -> Vec<TidyFinding> {
    let pages = match docs::pages(house) {
        Ok(pages) => pages,
        Err(why) => return vec![TidyFinding::at("docs", format!("cannot be generated: {why}"))],
    };
    let stale = pages.iter().filter(|page| house.tree.text(page.path) != Some(page.text.as_str()));
    stale.map(|page| TidyFinding::at(page.path, "is out of date; run `cargo xtask docs`")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_out_of_date_is_found() {
        let codes = docs::pages(&Repository::default()).unwrap().remove(0);
        let edited = format!("{} by hand", codes.text);
        let stale = |text: &str| {
            let found = check(&Repository::from_files(&[(codes.path, text)]));
            found.iter().any(|finding| finding.location == codes.path)
        };
        assert!(stale(&edited));
        assert!(!stale(&codes.text));
    }
}
