//! Where a run may be written out to.
//!
//! The file at that place is replaced whole, so what is there must be nothing, or a run that was
//! written out before. A store that somebody works with holds a history that has no other copy.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use capsule_core::journal::{SIDECAR_SUFFIXES, has_wal, is_store};

use crate::error::StoreError;
use crate::open::Store;
use crate::store_file::{header, sidecar_path};

/// Checks that a run of the store at `source` may be written to `to`: nothing is there, or one run
/// that was written out before, with nothing beside it.
///
/// # Errors
/// [`StoreError::Target`] where it may not, with the reason.
pub fn check_target(source: &Path, to: &Path) -> Result<(), StoreError> {
    target_refusal(source, to)
        .map_or(Ok(()), |why| Err(StoreError::Target { path: to.to_owned(), why }))
}

fn target_refusal(source: &Path, to: &Path) -> Option<String> {
    let Some(place) = real_path(to) else {
        return Some("it is not a name in a folder that is there".into());
    };
    if let Some(path) = real_store_path(source) {
        if place == path || place.parent() == Some(&sidecar_path(&path, ".locks")) {
            return Some("it is the store that the run is in".into());
        }
        if SIDECAR_SUFFIXES.iter().any(|suffix| place == sidecar_path(&path, suffix)) {
            return Some("it belongs to the store that the run is in".into());
        }
    }
    let found = match fs::symlink_metadata(&place) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return foreign_sidecar(&place),
        Err(error) => return Some(error.to_string()),
    };
    if is_store_file(source, &found) {
        return Some("it is another name of the store that the run is in".into());
    }
    if !found.is_file() {
        return Some("something is there that is no regular file".into());
    }
    foreign_sidecar(&place).or_else(|| foreign_content(&place))
}

/// Whether a file, by whichever name it was found, is a store or lies beside it.
pub(crate) fn is_store_file(store: &Path, found: &Metadata) -> bool {
    let is_same =
        |metadata: Metadata| (metadata.dev(), metadata.ino()) == (found.dev(), found.ino());
    let mut names = [""].iter().chain(&SIDECAR_SUFFIXES);
    names.any(|suffix| fs::metadata(sidecar_path(store, suffix)).is_ok_and(is_same))
}

/// The file with its folder as it really is; none where there is no such folder.
fn real_path(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = folder.canonicalize().ok()?;
    folder.is_dir().then(|| folder.join(name))
}

/// Where a store is, or will be once its folder is made.
fn real_store_path(source: &Path) -> Option<PathBuf> {
    source.canonicalize().ok().or_else(|| real_path(source))
}

/// A name that nobody else uses, in the folder where a file will be.
pub(crate) fn unused_path(to: &Path) -> io::Result<PathBuf> {
    let none = || io::Error::other(format!("`{}` names no file", to.display()));
    let name = to.file_name().ok_or_else(none)?;
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{:016x}", u64::from_ne_bytes(random)));
    Ok(to.with_file_name(hidden))
}

/// Files beside it say that somebody works with it. One that was left behind by another store of
/// that name would be read into the new one.
fn foreign_sidecar(place: &Path) -> Option<String> {
    let mut found = SIDECAR_SUFFIXES
        .iter()
        .filter(|suffix| sidecar_path(place, suffix).symlink_metadata().is_ok());
    found.next().map(|suffix| format!("a store is in use there: there is a `{suffix}` beside it"))
}

/// Why the file is not one run that was written out.
fn foreign_content(place: &Path) -> Option<String> {
    let header = match File::open(place).and_then(header) {
        Ok(header) => header,
        Err(error) => return Some(error.to_string()),
    };
    if !is_store(&header) {
        return Some("a file is there that is not a store".into());
    }
    // Stores that are worked with have a log beside them; those that were written out have none.
    if has_wal(&header) {
        return Some("a store is there that somebody works with".into());
    }
    let runs = Store::open_read_only(place).and_then(|store| store.is_single_run());
    match runs {
        Ok(true) => None,
        Ok(false) => Some("a store is there that holds more than one run".into()),
        Err(error) => Some(error.to_string()),
    }
}
