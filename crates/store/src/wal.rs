//! The write-ahead log beside a store, read frame by frame as SQLite reads it (the SQLite file format,
//! section 4).
//!
//! SQLite stops at the first frame whose checksum does not fit and says nothing of those behind it, although
//! they may hold most of a small store. Here they are counted, so that what was lost has a place.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::Path;

/// Bytes of the log's own header.
const HEADER: usize = 32;
/// Bytes of a frame's header.
const FRAME: usize = 24;
/// The two first words of a log: by the last bit, checksums are made of words with the small or the large end
/// first.
const MAGIC: u32 = 0x377f_0682;
/// The largest page that SQLite has.
const LARGEST_PAGE: u32 = 65_536;

/// What a write-ahead log holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalFrames {
    /// Frames that are read: up to the last one that ends a transaction.
    pub frames: u64,
    /// Frames of the same log that are not, although they were written.
    pub unread: u64,
    /// How many of those end a transaction.
    pub unread_commits: u64,
    /// Where the frames that are not read begin: the number of the first one, from 1 on, and its first byte.
    pub unread_from: Option<(u64, u64)>,
    /// Whether the log's own header is damaged, so that no frame is read.
    pub damaged_header: bool,
}

impl WalFrames {
    /// Whether transactions were written to the log that cannot be read any more.
    pub(crate) const fn has_lost(&self) -> bool {
        self.damaged_header || self.unread_commits > 0
    }
}

/// The sum over what was read so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Checksum {
    sums: (u32, u32),
    is_big: bool,
}

impl Checksum {
    /// Adds bytes, a multiple of eight.
    fn add(&mut self, bytes: &[u8]) {
        let (pairs, _) = bytes.as_chunks::<8>();
        let (mut first, mut second) = self.sums;
        for pair in pairs {
            let [a, b, c, d, e, f, g, h] = *pair;
            let word = if self.is_big { u32::from_be_bytes } else { u32::from_le_bytes };
            first = first.wrapping_add(word([a, b, c, d])).wrapping_add(second);
            second = second.wrapping_add(word([e, f, g, h])).wrapping_add(first);
        }
        self.sums = (first, second);
    }
}

/// The number at a place, the large end first.
fn number(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..at + 4).and_then(|item| item.try_into().ok());
    word.map_or(0, u32::from_be_bytes)
}

/// Reads the log beside a store; none where there is none, or nothing in it.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn read(path: &Path) -> io::Result<Option<WalFrames>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut log = BufReader::with_capacity(1 << 16, file);
    let mut header = [0; HEADER];
    // One that was never written is all zeros.
    if fill(&mut log, &mut header)? < HEADER || header == [0; HEADER] {
        return Ok(None);
    }
    let mut sum = Checksum { is_big: number(&header, 0) & 1 == 1, ..Checksum::default() };
    sum.add(header.get(..FRAME).unwrap_or_default());
    let page = number(&header, 8);
    let fits = number(&header, 0) | 1 == MAGIC | 1
        && sum.sums == (number(&header, 24), number(&header, 28))
        && page.is_power_of_two()
        && (512..=LARGEST_PAGE).contains(&page);
    if !fits {
        return Ok(Some(WalFrames { damaged_header: true, ..WalFrames::default() }));
    }
    frames(&mut log, sum, header.get(16..24).unwrap_or_default(), page).map(Some)
}

/// Reads the frames behind the header.
fn frames(
    log: &mut impl Read,
    mut sum: Checksum,
    salts: &[u8],
    page: u32,
) -> io::Result<WalFrames> {
    let page = usize::try_from(page).unwrap_or(0);
    let mut frame = vec![0; FRAME + page];
    let mut found = WalFrames::default();
    let (mut number_of, mut broken) = (0_u64, None);
    // The frames behind the last one that ends a transaction.
    let mut behind = WalFrames::default();
    loop {
        let length = fill(log, &mut frame)?;
        if length < FRAME {
            break;
        }
        let (head, data) = frame.split_at(FRAME);
        number_of += 1;
        let is_own = head.get(8..16) == Some(salts);
        let mut fits = broken.is_none() && is_own && length == frame.len() && number(head, 0) > 0;
        if fits {
            sum.add(head.get(..8).unwrap_or_default());
            sum.add(data);
            fits = sum.sums == (number(head, 16), number(head, 20));
        }
        if !fits && broken.is_none() {
            let whole = u64::try_from(frame.len()).unwrap_or(u64::MAX);
            let header = u64::try_from(HEADER).unwrap_or(0);
            broken = Some((number_of, header + (number_of - 1) * whole));
        }
        // One of an earlier log, which is written over as this one grows, says nothing.
        if !is_own {
            continue;
        }
        let is_commit = number(head, 4) > 0;
        if fits && is_commit {
            found.frames = number_of;
            behind = WalFrames::default();
            continue;
        }
        behind.unread += 1;
        behind.unread_commits += u64::from(is_commit);
    }
    let unread_from = broken.filter(|_| behind.unread > 0);
    Ok(WalFrames { frames: found.frames, unread_from, ..behind })
}

/// Reads until a buffer is full or there is no more; gives how much that was.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while let Some(rest) = buffer.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match from.read(rest) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use rusqlite::Connection;

    use super::*;

    /// A log of SQLite's own making, with three transactions of which the second has many pages.
    fn log() -> (tempfile::TempDir, PathBuf, Connection) {
        let folder = tempfile::tempdir().unwrap();
        let sql = Connection::open(folder.path().join("a.db")).unwrap();
        sql.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
        sql.execute_batch("CREATE TABLE t (x)").unwrap();
        sql.execute_batch("INSERT INTO t VALUES (zeroblob(40000))").unwrap();
        sql.execute_batch("INSERT INTO t VALUES (1)").unwrap();
        let path = folder.path().join("a.db-wal");
        (folder, path, sql)
    }

    #[test]
    fn a_sound_log_is_read_to_its_end() {
        let (_folder, path, sql) = log();
        let pages = (fs::metadata(&path).unwrap().len() - 32) / (24 + 4_096);
        let found = read(&path).unwrap().unwrap();
        assert_eq!(found, WalFrames { frames: pages, ..WalFrames::default() });
        // What an earlier log left behind a shorter one counts for nothing.
        sql.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
        sql.execute_batch("INSERT INTO t VALUES (2)").unwrap();
        let found = read(&path).unwrap().unwrap();
        assert!(found.frames < pages && found.unread == 0, "{found:?}");
    }

    /// A transaction that was begun and never ended has no events in it.
    #[test]
    fn a_transaction_without_end_is_not_one_that_was_lost() {
        let (_folder, path, _sql) = log();
        let whole = fs::read(&path).unwrap();
        let second = 32 + 3 * (24 + 4_096);
        fs::write(&path, whole.get(..second + 5_000).unwrap()).unwrap();
        let found = read(&path).unwrap().unwrap();
        assert_eq!((found.unread_commits, found.unread_from.is_some()), (0, true), "{found:?}");
    }

    /// M3: a damaged frame hides all behind it from SQLite, and each of them is counted.
    #[test]
    fn what_stands_behind_a_damaged_frame_is_counted() {
        let (_folder, path, _sql) = log();
        let whole = fs::read(&path).unwrap();
        let all = read(&path).unwrap().unwrap().frames;
        for frame in 1..=all {
            let begin = 32 + (frame - 1) * (24 + 4_096);
            // The page, its number, the sums; with the salt, the frame itself is not known any more.
            for (at, gone) in [(100, 0), (3, 0), (17, 0), (9, 1)] {
                let mut bytes = whole.clone();
                *bytes.get_mut(usize::try_from(begin + at).unwrap()).unwrap() ^= 4;
                fs::write(&path, bytes).unwrap();
                let found = read(&path).unwrap().unwrap();
                assert!(found.frames < frame, "{frame} {at}: {found:?}");
                assert!(found.unread >= all - frame + 1 - gone, "{frame} {at}: {found:?}");
                if found.unread > 0 {
                    assert_eq!(found.unread_from, Some((frame, begin)), "{at}");
                }
            }
        }
        for at in 0..32 {
            let mut bytes = whole.clone();
            *bytes.get_mut(at).unwrap() ^= 0x10;
            fs::write(&path, bytes).unwrap();
            let found = read(&path).unwrap();
            // The number of the log's own format is SQLite's to refuse.
            assert!(found.is_some_and(|own| own.damaged_header), "{at}: {found:?}");
        }
        fs::write(&path, [0; 64]).unwrap();
        assert_eq!(read(&path).unwrap(), None);
    }
}
