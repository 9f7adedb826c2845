//! A tree of many files to be searched, made once and used again.
//!
//! A hundred files a folder, a hundred folders a folder. One file in a thousand has the ending that
//! is looked for; a few of those are large and old as well, and are what a search finds.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::Answer;

/// Files in a folder, and folders in a folder.
const FANOUT: usize = 100;
/// One in so many has the ending.
const NAMED: usize = 1_000;
/// How many are large and old as well.
const FOUND: usize = 20;
/// The size of those.
const LARGE: u64 = 2_000_000;
/// When those were changed: in September 2001.
const OLD: Duration = Duration::from_secs(1_000_000_000);

/// The tree with that many files; it is made if it is not there whole.
pub(crate) fn of(folder: &Path, count: usize) -> Answer<PathBuf> {
    let place = folder.join("bench-tree").join(count.to_string());
    let whole = folder.join("bench-tree").join(format!("{count}.whole"));
    if !whole.is_file() {
        eprintln!("making a tree of {count} files under {} ...", place.display());
        make(&place, count).map_err(|error| format!("{}: {error}", place.display()))?;
        File::create(&whole).map_err(|error| format!("{}: {error}", whole.display()))?;
    }
    place.canonicalize().map_err(|error| format!("{}: {error}", place.display()))
}

/// How many files a search must find.
pub(crate) const fn found() -> usize {
    FOUND
}

fn make(place: &Path, count: usize) -> std::io::Result<()> {
    let mut folder = place.to_owned();
    for number in 0..count {
        if number % FANOUT == 0 {
            let (outer, inner) = (number / FANOUT / FANOUT, number / FANOUT % FANOUT);
            folder = place.join(format!("area{outer:03}")).join(format!("part{inner:03}"));
            fs::create_dir_all(&folder)?;
        }
        let is_found = number % (count / FOUND) == 0;
        let ending = match number % NAMED {
            _ if is_found => "pdf",
            0 => "pdf",
            other => ["txt", "rs", "md", "html", "json"].get(other % 5).copied().unwrap_or("txt"),
        };
        let file = File::create(folder.join(format!("entry{number:07}.{ending}")))?;
        if is_found {
            file.set_len(LARGE)?;
            file.set_modified(SystemTime::UNIX_EPOCH + OLD)?;
        }
    }
    Ok(())
}
