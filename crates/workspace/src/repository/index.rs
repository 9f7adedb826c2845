//! The index: what the next commit will hold, and how the working tree looked when it was last compared.
//!
//! It is read strictly. Git reads parts of it by more than one way (several threads begin at places that
//! an extension names; a commit takes whole trees from another extension), so it is believed only where all
//! ways lead to the same entries.

use std::collections::BTreeMap;

use capsule_base::limits;

use super::files::Files;
use super::flaw::Flaw;
use super::id::{Format, ObjectId};
use super::object::{Content, EntryKind, is_component};
use crate::change_path::join;

/// The name of an index.
pub(crate) const INDEX: &str = "index";

/// How many bytes of an entry come before the name of its object: what it looked like, and its mode.
const LOOKS: usize = 40;
/// Where the mode stands among these.
const MODE: usize = 24;
/// Where the date of the last change is among these, in seconds, and where the size begins.
const MODIFIED: core::ops::Range<usize> = 8..12;
const SIZE: usize = 36;
/// Bits of an entry.
const EXTENDED: u16 = 0x4000;
const ASSUMED: u16 = 0x8000;
const STAGE: u16 = 0x3000;
const LENGTH: u16 = 0x0fff;
/// Bits of an entry that has more of them: that it stays out of the working tree, and that only its name
/// counts.
const SKIPPED: u16 = 0x4000;
const INTENDED: u16 = 0x2000;

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Staged {
    pub content: Content,
    pub stage: u16,
    /// Whether changes of the file are not looked for, it stays out of the working tree, or it is to be
    /// added.
    flags: [bool; 3],
}

impl Staged {
    /// Whether git does not look what becomes of the file.
    pub(super) const fn is_hidden(&self) -> bool {
        let [is_assumed, is_skipped, _] = self.flags;
        is_assumed || is_skipped
    }
}

/// An index that has one reading.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    /// By path and stage, which is how they are sorted.
    pub entries: BTreeMap<(Vec<u8>, u16), Staged>,
    /// What stood at paths before conflicts were resolved, to be put back.
    pub resolved: BTreeMap<(Vec<u8>, u16), Content>,
}

/// What is left to be read.
struct Reader<'b> {
    format: Format,
    bytes: &'b [u8],
    at: usize,
}

fn broken() -> Flaw {
    Flaw::new("the index is broken")
}

/// Most of its entries stand in another file, `sharedindex.*`.
fn in_two_parts() -> Flaw {
    Flaw::new("the index is in two parts, which `git update-index --no-split-index` makes one")
}

impl<'b> Reader<'b> {
    fn take(&mut self, count: usize) -> Result<&'b [u8], Flaw> {
        let end = self.at.checked_add(count).ok_or_else(broken)?;
        let taken = self.bytes.get(self.at..end).ok_or_else(broken)?;
        self.at = end;
        Ok(taken)
    }

    fn number<const N: usize>(&mut self) -> Result<u32, Flaw> {
        let bytes = self.take(N)?;
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }

    fn id(&mut self) -> Result<ObjectId, Flaw> {
        let format = self.format;
        ObjectId::from_bytes(format, self.take(format.bytes())?).ok_or_else(broken)
    }

    /// All up to a byte, which is taken as well.
    fn until(&mut self, end: u8) -> Result<&'b [u8], Flaw> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let length = rest.iter().position(|byte| *byte == end).ok_or_else(broken)?;
        let taken = self.take(length)?;
        let _end = self.take(1)?;
        Ok(taken)
    }

    /// A number in digits of this base, up to a byte.
    fn digits<N: TryFrom<i64>>(&mut self, end: u8, base: u32) -> Result<N, Flaw> {
        let text = std::str::from_utf8(self.until(end)?).map_err(|_| broken())?;
        let number = i64::from_str_radix(text, base).map_err(|_| broken())?;
        N::try_from(number).map_err(|_| broken())
    }

    fn is_over(&self) -> bool {
        self.at >= self.bytes.len()
    }
}

/// Where entries begin, and whether their names stand there whole.
#[derive(Default)]
struct Places(BTreeMap<usize, (u32, bool)>);

impl Index {
    /// What stands at a path, by stage.
    pub(super) fn at(&self, path: &[u8]) -> impl Iterator<Item = &Staged> {
        let staged = |stage| self.entries.get(&(path.to_vec(), stage));
        (0..4).filter_map(staged)
    }

    /// Whether anything stands at a path.
    pub(super) fn has(&self, path: &[u8]) -> bool {
        self.at(path).next().is_some()
    }

    /// Reads an index.
    ///
    /// # Errors
    /// It is broken, has two readings, or holds something that is not known.
    pub(super) fn parse(format: Format, bytes: &[u8]) -> Result<Self, Flaw> {
        Self::parse_with_places(format, bytes).map(|(index, _)| index)
    }

    /// Reads an index, and where its entries begin.
    fn parse_with_places(format: Format, bytes: &[u8]) -> Result<(Self, Places), Flaw> {
        let end = bytes.len().checked_sub(format.bytes()).ok_or_else(broken)?;
        let (body, sum) = bytes.split_at_checked(end).ok_or_else(broken)?;
        let sum = ObjectId::from_bytes(format, sum).ok_or_else(broken)?;
        // None is written where `index.skipHash` says so.
        if !sum.is_null() && format.digest(&[body]) != sum {
            return Err(broken());
        }
        let mut reader = Reader { format, bytes: body, at: 0 };
        let (signature, version) = (reader.take(4)?, reader.number::<4>()?);
        if signature != b"DIRC" || !(2..=4).contains(&version) {
            return Err(Flaw::new("the index is of a version that cannot be read"));
        }
        let mut index = Self::default();
        let places = index.read_entries(&mut reader, version)?;
        index.read_extensions(&mut reader, &places)?;
        Ok((index, places))
    }

    fn read_entries(&mut self, reader: &mut Reader<'_>, version: u32) -> Result<Places, Flaw> {
        let count = reader.number::<4>()?;
        let (mut name, mut places) = (Vec::new(), Places::default());
        let mut last: Option<(Vec<u8>, u16)> = None;
        for number in 0..count {
            let begin = reader.at;
            let mut mode = Reader { bytes: reader.take(LOOKS)?, at: MODE, ..*reader };
            let kind = EntryKind::of(mode.number::<4>()?).ok_or_else(broken)?;
            let id = reader.id()?;
            let short = |item: u32| u16::try_from(item).unwrap_or(0);
            let flags = short(reader.number::<2>()?);
            let more = match flags & EXTENDED != 0 {
                true if version > 2 => short(reader.number::<2>()?),
                true => return Err(broken()),
                false => 0,
            };
            let is_whole = match version {
                4 => spell(reader, &mut name)?,
                _ => {
                    name = reader.until(0)?.to_vec();
                    // It ends with as many zeros as make its length one of eights.
                    let length = reader.at - begin;
                    let padding = reader.take(length.next_multiple_of(8) - length)?;
                    if padding.iter().any(|byte| *byte != 0) {
                        return Err(broken());
                    }
                    true
                }
            };
            places.0.insert(begin, (number, is_whole));
            let stage = (flags & STAGE) >> 12;
            let key = (name.clone(), stage);
            let length = usize::from(flags & LENGTH);
            if name.is_empty() {
                return Err(in_two_parts());
            }
            if name.len().min(usize::from(LENGTH)) != length
                || !is_path(&name, kind)
                || more & !(SKIPPED | INTENDED) != 0
                || last.as_ref().is_some_and(|last| *last >= key)
            {
                return Err(broken());
            }
            let flags = [flags & ASSUMED != 0, more & SKIPPED != 0, more & INTENDED != 0];
            last = Some(key.clone());
            self.entries.insert(key, Staged { content: Content { kind, id }, stage, flags });
        }
        Ok(places)
    }

    fn read_extensions(&mut self, reader: &mut Reader<'_>, places: &Places) -> Result<(), Flaw> {
        let entries_end = reader.at;
        while !reader.is_over() {
            let name = reader.take(4)?;
            let size = usize::try_from(reader.number::<4>()?).map_err(|_| broken())?;
            let mut item = Reader { bytes: reader.take(size)?, at: 0, format: reader.format };
            match name {
                b"TREE" => self.compare_trees(&mut item)?,
                b"REUC" => self.read_resolved(&mut item)?,
                b"EOIE" if usize::try_from(item.number::<4>()?).ok() == Some(entries_end) => {}
                b"IEOT" => is_in_order(&mut item, places)?,
                // What the working tree looked like, what is not tracked in it, and what was told of it.
                b"UNTR" | b"FSMN" => {}
                // That entries may be folders.
                b"sdir" => {}
                b"EOIE" => return Err(broken()),
                b"link" => return Err(in_two_parts()),
                _ => {
                    let name = name.escape_ascii();
                    return Err(Flaw::new(format!(
                        "the index has a part `{name}`, which cannot be read"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Reads what stood at paths before conflicts were resolved: three modes, and an object for each that
    /// is not zero.
    fn read_resolved(&mut self, reader: &mut Reader<'_>) -> Result<(), Flaw> {
        while !reader.is_over() {
            let path = reader.until(0)?.to_vec();
            let modes: Vec<u32> = (0..3).map(|_| reader.digits(0, 8)).collect::<Result<_, _>>()?;
            for (stage, mode) in (1..).zip(modes) {
                if mode != 0 {
                    let kind = EntryKind::of(mode).ok_or_else(broken)?;
                    let content = Content { kind, id: reader.id()? };
                    self.resolved.insert((path.clone(), stage), content);
                }
            }
        }
        Ok(())
    }

    /// Compares the trees that the next commit would take as they are with what the entries make.
    fn compare_trees(&self, reader: &mut Reader<'_>) -> Result<(), Flaw> {
        let entries: Vec<_> =
            self.entries.iter().map(|((path, _), staged)| (path, staged)).collect();
        let mut made = BTreeMap::new();
        let _root = make_tree(reader.format, &entries, &mut Vec::new(), &mut made);
        let mut path = Vec::new();
        compare_tree(reader, &mut path, &made, 0)?;
        if reader.is_over() { Ok(()) } else { Err(broken()) }
    }
}

/// Reads a name that is told by what it shares with the one before. Says whether it shares nothing.
fn spell(reader: &mut Reader<'_>, name: &mut Vec<u8>) -> Result<bool, Flaw> {
    let mut byte = reader.number::<1>()?;
    let mut dropped = usize::try_from(byte & 0x7f).unwrap_or(0);
    while byte & 0x80 != 0 {
        byte = reader.number::<1>()?;
        let more = usize::try_from(byte & 0x7f).unwrap_or(0);
        dropped =
            dropped.checked_add(1).and_then(|number| number.checked_mul(128)).ok_or_else(broken)?;
        dropped |= more;
    }
    let shared = name.len().checked_sub(dropped).ok_or_else(broken)?;
    name.truncate(shared);
    name.extend_from_slice(reader.until(0)?);
    Ok(shared == 0)
}

/// Whether git takes a name out of an index for a path of the working tree. A folder, which only a sparse
/// index has, ends in a slash.
fn is_path(name: &[u8], kind: EntryKind) -> bool {
    let name = match kind {
        EntryKind::Tree => name.strip_suffix(b"/"),
        _ => Some(name),
    };
    let is_path = |name: &[u8]| {
        let mut parts = name.split(|byte| *byte == b'/');
        name.len() <= limits::PATH_BYTES
            && parts.clone().count() <= limits::STAGED_DEPTH
            && parts.all(is_component)
    };
    name.is_some_and(is_path)
}

/// Whether the blocks that several threads would read are the entries one after another.
fn is_in_order(reader: &mut Reader<'_>, places: &Places) -> Result<(), Flaw> {
    if reader.number::<4>()? != 1 {
        return Err(broken());
    }
    let mut next = 0;
    while !reader.is_over() {
        let (offset, count) = (reader.number::<4>()?, reader.number::<4>()?);
        let place = usize::try_from(offset).ok().and_then(|number| places.0.get(&number));
        if place != Some(&(next, true)) {
            return Err(broken());
        }
        next = next.checked_add(count).ok_or_else(broken)?;
    }
    let all = u32::try_from(places.0.len()).map_err(|_| broken())?;
    if next == all { Ok(()) } else { Err(broken()) }
}

/// A tree that entries make: how many they are, and its name; none where they make none yet.
type Made = (usize, Option<ObjectId>);

/// Makes the trees of entries that all lie beneath a path, which ends in a slash.
fn make_tree(
    format: Format,
    entries: &[(&Vec<u8>, &Staged)],
    path: &mut Vec<u8>,
    made: &mut BTreeMap<Vec<u8>, Made>,
) -> Option<ObjectId> {
    let mut tree = Some(Vec::new());
    let mut rest = entries;
    while let Some(((first, staged), behind)) = rest.split_first() {
        let name = first.get(path.len()..).unwrap_or_default();
        let slash = name.iter().position(|byte| *byte == b'/');
        let line = match slash {
            None => {
                rest = behind;
                let is_one = staged.stage == 0 && staged.flags.last() == Some(&false);
                is_one.then_some((staged.content, name))
            }
            Some(slash) => {
                let length = path.len();
                path.extend_from_slice(name.get(..=slash).unwrap_or_default());
                let count = rest.iter().take_while(|(item, _)| item.starts_with(path)).count();
                let (inner, behind) = rest.split_at_checked(count).unwrap_or_default();
                rest = behind;
                let id = match inner {
                    // A folder that stands for all in it.
                    [(item, staged)] if *item == path => Some(staged.content.id),
                    inner => make_tree(format, inner, path, made),
                };
                made.insert(path.clone(), (count, id));
                path.truncate(length);
                let name = name.get(..slash).unwrap_or_default();
                id.map(|id| (Content { kind: EntryKind::Tree, id }, name))
            }
        };
        tree = tree.zip(line).map(|(mut tree, (content, name))| {
            tree.extend_from_slice(content.kind.mode().as_bytes());
            tree.push(b' ');
            tree.extend_from_slice(name);
            tree.push(0);
            tree.extend_from_slice(content.id.as_bytes());
            tree
        });
    }
    let id = tree.map(|tree| format.digest(&[format!("tree {}\0", tree.len()).as_bytes(), &tree]));
    if path.is_empty() {
        made.insert(Vec::new(), (entries.len(), id));
    }
    id
}

/// Compares one tree that the index names, and those in it.
fn compare_tree(
    reader: &mut Reader<'_>,
    path: &mut Vec<u8>,
    made: &BTreeMap<Vec<u8>, Made>,
    depth: usize,
) -> Result<(), Flaw> {
    if depth > limits::STAGED_DEPTH {
        return Err(broken());
    }
    let length = path.len();
    path.extend_from_slice(reader.until(0)?);
    path.extend((depth > 0).then_some(b'/'));
    let count: i64 = reader.digits(b' ', 10)?;
    let inner: u32 = reader.digits(b'\n', 10)?;
    if count >= 0 {
        let told = (usize::try_from(count).map_err(|_| broken())?, Some(reader.id()?));
        if made.get(path) != Some(&told) {
            return Err(Flaw::new("the index names a tree that its entries do not make"));
        }
    }
    for _ in 0..inner {
        compare_tree(reader, path, made, depth + 1)?;
    }
    path.truncate(length);
    Ok(())
}

/// The index in a repository's folder.
pub(super) fn read_index(format: Format, files: &dyn Files, folder: &str) -> Result<Index, Flaw> {
    match files.read(&join(folder, INDEX), limits::GIT_INDEX_BYTES)? {
        Some(bytes) => Index::parse(format, &bytes),
        None => Ok(Index::default()),
    }
}

/// Whether two indexes hold the same entries, however the files looked when they were last compared.
pub(crate) fn is_same_index(one: &[u8], other: &[u8]) -> bool {
    [Format::Sha1, Format::Sha256].into_iter().any(|format| {
        let read = |bytes| Index::parse(format, bytes).ok();
        read(one).zip(read(other)).is_some_and(|(one, other)| one == other)
    })
}

/// An index in which hidden files look as what covers them, so that git takes them for unchanged and does not open
/// them. None where nothing is to be changed, or the index cannot be read.
pub(crate) fn with_hidden_files(
    bytes: &[u8],
    is_hidden: &dyn Fn(&[u8]) -> bool,
) -> Option<Vec<u8>> {
    with_looks(bytes, &|path, looks| {
        let (dates, rest) = looks.split_at_mut_checked(MODE)?;
        if is_hidden(path) {
            dates.fill(0);
            dates.get_mut(MODIFIED)?.copy_from_slice(&HIDDEN_DATE);
            rest.get_mut(SIZE - MODE..)?.copy_from_slice(&HIDDEN_SIZE);
        }
        Some(())
    })
}

/// The same index for git on the host: it compares what is in the files that were hidden. None where nothing is
/// to be changed, or the index cannot be read.
pub(crate) fn without_hidden_files(bytes: &[u8]) -> Option<Vec<u8>> {
    with_looks(bytes, &|_, looks| {
        if looks.get(MODIFIED)? == HIDDEN_DATE && looks.get(SIZE..)? == HIDDEN_SIZE {
            // By this size git knows that it must open a file. The rest is always the same, so that an index which
            // was hidden from a command in between is the one that is recorded.
            looks.get_mut(SIZE..)?.fill(0);
            looks.get_mut(..MODE)?.fill(0);
            looks.get_mut(MODIFIED)?.copy_from_slice(&HIDDEN_DATE);
        }
        Some(())
    })
}

/// How a hidden file looks in an index.
const HIDDEN_DATE: [u8; 4] = limits::HIDDEN_FILE_SECONDS.to_be_bytes();
const HIDDEN_SIZE: [u8; 4] = limits::HIDDEN_FILE_BYTES.to_be_bytes();

/// Changes how the files of an index looked when they were last compared.
type ChangeLooks<'c> = dyn Fn(&[u8], &mut [u8]) -> Option<()> + 'c;

/// An index in which files look otherwise. None where that is the same index, or it cannot be read.
fn with_looks(bytes: &[u8], change: &ChangeLooks<'_>) -> Option<Vec<u8>> {
    let parse = |format| Some((format, Index::parse_with_places(format, bytes).ok()?));
    let (format, (index, places)) = [Format::Sha1, Format::Sha256].into_iter().find_map(parse)?;
    let mut changed = bytes.to_vec();
    for (begin, (path, stage)) in places.0.keys().zip(index.entries.keys()) {
        if *stage == 0 {
            change(path, changed.get_mut(*begin..begin + LOOKS)?)?;
        }
    }
    let (body, sum) = changed.split_at_mut_checked(bytes.len().checked_sub(format.bytes())?)?;
    // None is written where `index.skipHash` says so.
    if sum.iter().any(|byte| *byte != 0) {
        sum.copy_from_slice(format.digest(&[body]).as_bytes());
    }
    (changed != bytes).then_some(changed)
}
