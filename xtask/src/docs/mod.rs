//! Pages of the reference that are made from the code, so that they cannot say anything else.

mod codes;
mod control_files;
mod format;
mod language;
mod markdown;
mod requirements;
mod tools;

use std::path::Path;

use crate::TaskResult;
use crate::repository::Repository;

/// A generated page.
#[derive(Debug)]
pub(crate) struct Page {
    /// Where it stands.
    pub(crate) path: &'static str,
    /// What it says.
    pub(crate) text: String,
}

/// Every page, as it should be.
///
/// # Errors
/// When the code has a form that a page cannot be made from.
pub(crate) fn pages(house: &Repository) -> TaskResult<Vec<Page>> {
    let folder = [
        ("docs/book/reference/codes.md", codes::page()),
        ("crates/core/src/control_files.rs", control_files::code(house)?),
        ("docs/book/reference/control-files.md", control_files::page(house)?),
        ("docs/book/reference/language.md", language::page()),
        ("docs/book/reference/requirements.md", requirements::page(house)?),
        ("docs/book/reference/tools.md", tools::page(house)?),
    ];
    let format = format::page(house)?.map(|text| (format::PAGE, text));
    Ok(folder.into_iter().chain(format).map(|(path, text)| Page { path, text }).collect())
}

/// Writes the pages that are out of date.
///
/// # Errors
/// When one cannot be made or written.
pub(crate) fn write(root: &Path) -> TaskResult<bool> {
    for Page { path, text } in stale_pages(root)? {
        let place = root.join(path);
        let folder = place.parent().unwrap_or(root);
        let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&place, &text));
        written.map_err(|error| format!("{path}: {error}"))?;
        println!("written {path}");
    }
    Ok(true)
}

/// Names the pages that are out of date; says whether there are none.
///
/// # Errors
/// When one cannot be made.
pub(crate) fn check(root: &Path) -> TaskResult<bool> {
    let stale = stale_pages(root)?;
    for page in &stale {
        println!("{} is out of date; run `cargo xtask docs`", page.path);
    }
    Ok(stale.is_empty())
}

fn stale_pages(root: &Path) -> TaskResult<Vec<Page>> {
    let house = Repository::read(root)?;
    if let Some((path, why)) = house.unparsed.first() {
        return Err(format!("{path} cannot be parsed: {why}"));
    }
    let is_stale = |page: &Page| {
        std::fs::read_to_string(root.join(page.path)).ok().as_ref() != Some(&page.text)
    };
    Ok(pages(&house)?.into_iter().filter(is_stale).collect())
}
