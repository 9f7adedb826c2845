//! Where a run may be written out to.
//!
//! The file at that place is replaced whole, so what is there must be nothing, or a run that was
//! written out before. A store that somebody works with holds a history that has no other copy.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use capsule_core::journal::{BESIDE, HEADER_BYTES, has_log, is_store};

use crate::error::StoreError;
use crate::open::Store;

/// Checks that a run of the store at `source` may be written to `to`: nothing is there, or one run
/// that was written out before, with nothing beside it.
///
/// # Errors
/// [`StoreError::Target`] where it may not, with the reason.
pub fn check_target(source: &Path, to: &Path) -> Result<(), StoreError> {
    refusal(source, to).map_or(Ok(()), |why| Err(StoreError::Target { path: to.to_owned(), why }))
}

fn refusal(source: &Path, to: &Path) -> Option<String> {
    let Some(place) = place(to) else {
        return Some("it is not a name in a folder that is there".into());
    };
    if let Some(own) = place_of_store(source) {
        if place == own || place.parent() == Some(&beside(&own, ".locks")) {
            return Some("it is the store that the run is in".into());
        }
        if BESIDE.iter().any(|suffix| place == beside(&own, suffix)) {
            return Some("it belongs to the store that the run is in".into());
        }
    }
    let found = match fs::symlink_metadata(&place) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return strangers(&place),
        Err(error) => return Some(error.to_string()),
    };
    let same = |path: PathBuf| fs::metadata(path).is_ok_and(|own| is_same(&own, &found));
    let names = [""].iter().chain(&BESIDE);
    if names.into_iter().any(|suffix| same(beside(source, suffix))) {
        return Some("it is another name of the store that the run is in".into());
    }
    if !found.is_file() {
        return Some("something is there that is no regular file".into());
    }
    strangers(&place).or_else(|| other_content(&place))
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// The file with its folder as it really is; none where there is no such folder.
fn place(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = folder.canonicalize().ok()?;
    folder.is_dir().then(|| folder.join(name))
}

/// Where a store is, or will be once its folder is made.
fn place_of_store(source: &Path) -> Option<PathBuf> {
    source.canonicalize().ok().or_else(|| place(source))
}

/// A file beside a store, by the end of its name (see [`BESIDE`]).
#[must_use]
pub fn beside(store: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(store);
    name.push(suffix);
    PathBuf::from(name)
}

/// The first bytes of a file, which say whether it is a store.
pub(crate) fn header(file: File) -> io::Result<Vec<u8>> {
    let mut header = Vec::new();
    let most = u64::try_from(HEADER_BYTES).unwrap_or(u64::MAX);
    file.take(most).read_to_end(&mut header)?;
    Ok(header)
}

/// Files beside it say that somebody works with it. One that was left behind by another store of
/// that name would be read into the new one.
fn strangers(place: &Path) -> Option<String> {
    let mut found = BESIDE.iter().filter(|suffix| beside(place, suffix).symlink_metadata().is_ok());
    found.next().map(|suffix| format!("a store is in use there: there is a `{suffix}` beside it"))
}

/// Why the file is not one run that was written out.
fn other_content(place: &Path) -> Option<String> {
    let header = match File::open(place).and_then(header) {
        Ok(header) => header,
        Err(error) => return Some(error.to_string()),
    };
    if !is_store(&header) {
        return Some("a file is there that is not a store".into());
    }
    // Stores that are worked with have a log beside them; those that were written out have none.
    if has_log(&header) {
        return Some("a store is there that somebody works with".into());
    }
    let runs = Store::open_read_only(place).and_then(|store| store.is_one_run());
    match runs {
        Ok(true) => None,
        Ok(false) => Some("a store is there that holds more than one run".into()),
        Err(error) => Some(error.to_string()),
    }
}
