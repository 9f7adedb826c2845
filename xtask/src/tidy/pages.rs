//! Generated pages say what the code says.

use crate::docs;
use crate::house::House;
use crate::tidy::Finding;

pub(super) fn check(house: &House) -> Vec<Finding> {
    let pages = match docs::pages(house) {
        Ok(pages) => pages,
        Err(why) => return vec![Finding::at("docs", format!("cannot be generated: {why}"))],
    };
    let stale = pages.iter().filter(|page| house.tree.text(page.path) != Some(page.text.as_str()));
    stale.map(|page| Finding::at(page.path, "is out of date; run `cargo xtask docs`")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_out_of_date_is_found() {
        let codes = docs::pages(&House::default()).unwrap().remove(0);
        let edited = format!("{} by hand", codes.text);
        let stale = |text: &str| {
            let found = check(&House::with(&[(codes.path, text)]));
            found.iter().any(|finding| finding.place == codes.path)
        };
        assert!(stale(&edited));
        assert!(!stale(&codes.text));
    }
}
