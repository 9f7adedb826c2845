//! The few forms of Markdown that the pages are made of.

/// The beginning of a page.
pub(super) fn head(title: &str, about: &str) -> String {
    format!(
        "# {title}\n\n<!-- Made by `cargo xtask docs`. Edit the code, not this page. -->\n\n{about}\n"
    )
}

/// A table.
pub(super) fn table(columns: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut text = line(columns.iter().map(|column| (*column).to_owned()));
    text.push_str(&line(columns.iter().map(|_| "---".to_owned())));
    rows.for_each(|row| text.push_str(&line(row.into_iter().map(|cell| cell.replace('|', "\\|")))));
    text
}

fn line(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.collect();
    format!("| {} |\n", cells.join(" | "))
}

/// A name as code.
pub(super) fn code(name: &str) -> String {
    format!("`{name}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_cannot_end_early() {
        let rows = [vec!["a|b".to_owned(), code("c")]];
        assert_eq!(
            table(&["x", "y"], rows.into_iter()),
            "| x | y |\n| --- | --- |\n| a\\|b | `c` |\n"
        );
    }
}
