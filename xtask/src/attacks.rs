//! The rows of `attacks/*.toml`: hostile calls as data.
//!
//! Only what other pages refer to is read here: the row's id, the requirements that it shows and the
//! test that it names. What a row means is the business of the tests that run it.

use toml::{Table, Value};

use crate::TaskResult;

/// One row.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AttackRow {
    /// The file that it stands in.
    pub(crate) path: String,
    /// Its id.
    pub(crate) id: String,
    /// The requirements that it shows.
    pub(crate) requirements: Vec<String>,
    /// The test elsewhere that shows it, if it does not run by itself.
    pub(crate) test: Option<String>,
    /// Whether it only says why the case waits: nothing shows it.
    pub(crate) is_deferred: bool,
}

/// Whether a file is a table of attacks.
pub(crate) fn is_table(path: &str) -> bool {
    path.starts_with("attacks/") && path.ends_with(".toml")
}

/// Every table of an array of tables that has an id.
///
/// # Errors
/// When the text is no TOML.
pub(crate) fn parse_rows(path: &str, text: &str) -> TaskResult<Vec<AttackRow>> {
    let table: Table = text.parse().map_err(|error| format!("not TOML: {error}"))?;
    let lists = table.iter().filter_map(|(name, list)| Some((name, list.as_array()?)));
    let rows = lists.flat_map(|(name, list)| {
        let tables = list.iter().filter_map(Value::as_table);
        tables.filter_map(move |table| parse_row(path, name == "later", table))
    });
    Ok(rows.collect())
}

fn parse_row(path: &str, waits: bool, table: &Table) -> Option<AttackRow> {
    let id = table.get("id")?.as_str()?.to_owned();
    let named = table.get("requirements").and_then(Value::as_array);
    let words = named.into_iter().flatten().filter_map(Value::as_str);
    let requirements = words.map(str::to_owned).collect();
    let test = table.get("test").and_then(Value::as_str).map(str::to_owned);
    Some(AttackRow { path: path.to_owned(), id, requirements, test, is_deferred: waits })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_ids_and_requirements() {
        let text = "[[row]]\nid = \"C1\"\nrequirements = [\"FR-11\"]\n[[row]]\nid = \"C2\"\n";
        let found = parse_rows("attacks/paths.toml", text).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].requirements, ["FR-11"]);
        assert!(!found[0].is_deferred);
        assert!(
            parse_rows("attacks/later.toml", "[[later]]\nid = \"C3\"\n").unwrap()[0].is_deferred
        );
        assert!(parse_rows("attacks/paths.toml", "[[row").is_err());
    }
}
