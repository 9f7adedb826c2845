//! Packs: many objects in one file, some as differences from others, and an index that says where each
//! begins.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::rc::Rc;

use capsule_base::limits;

use super::flaw::Flaw;
use super::id::{Format, ObjectId};
use super::inflate::{Budget, Inflater};
use super::object::{Kind, Object};

/// What an index of the second version begins with, and that version.
const INDEX: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];
/// How many bytes say how many names begin with each byte.
const FANOUT: usize = 256 * 4;
/// Marks an offset that stands elsewhere.
const FAR: u32 = 1 << 31;
/// How long a chain of differences may be, as git has it.
const DEPTH: usize = 4095;
/// How many bytes of objects are kept for what is a difference from them.
const KEPT: usize = 64 << 20;
/// The longest header of an object in a pack: its kind, its size, and where its base is.
const HEADER: usize = 64;

/// Where the objects of a pack begin.
pub(super) struct Index {
    file: File,
    format: Format,
    /// How many names begin with each byte or one before it.
    fanout: Vec<u32>,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

impl Index {
    pub(super) fn open(file: File, format: Format) -> Result<Self, Flaw> {
        let broken = || Flaw::new("the index of a pack is in a form that cannot be read");
        let mut head = vec![0; INDEX.len() + FANOUT];
        file.read_exact_at(&mut head, 0).map_err(|_| broken())?;
        if !head.starts_with(&INDEX) {
            return Err(broken());
        }
        let fanout: Option<Vec<u32>> =
            (0..256).map(|byte| word(&head, INDEX.len() + byte * 4)).collect();
        let fanout = fanout.ok_or_else(broken)?;
        if !fanout.is_sorted() {
            return Err(broken());
        }
        Ok(Self { file, format, fanout })
    }

    pub(super) fn count(&self) -> u32 {
        self.fanout.last().copied().unwrap_or(0)
    }

    /// Where the parts begin: names, checksums, offsets, large offsets.
    fn parts(&self) -> [u64; 4] {
        let (count, name) = (u64::from(self.count()), self.format.bytes());
        let names = u64::try_from(INDEX.len() + FANOUT).unwrap_or(0);
        let sums = names + count * u64::try_from(name).unwrap_or(0);
        [names, sums, sums + count * 4, sums + count * 8]
    }

    fn read(&self, at: u64, bytes: usize) -> Result<Vec<u8>, Flaw> {
        let mut read = vec![0; bytes];
        self.file.read_exact_at(&mut read, at).map_err(|why| Flaw::io(&why))?;
        Ok(read)
    }

    /// The name at a place of the index.
    pub(super) fn id(&self, at: u32) -> Result<ObjectId, Flaw> {
        let [names, ..] = self.parts();
        let length = self.format.bytes();
        let place = names + u64::from(at) * u64::try_from(length).unwrap_or(0);
        let bytes = self.read(place, length)?;
        ObjectId::from_bytes(self.format, &bytes).ok_or_else(|| Flaw::new("a name is cut off"))
    }

    /// Where the object at a place of the index begins in the pack.
    pub(super) fn offset(&self, at: u32) -> Result<u64, Flaw> {
        let [.., large] = self.parts();
        let number = self.near(at)?;
        if number & FAR == 0 {
            return Ok(number.into());
        }
        let bytes = self.read(large + u64::from(number & !FAR) * 8, 8)?;
        let bytes = bytes.try_into().map_err(|_| Flaw::new("an offset is cut off"))?;
        Ok(u64::from_be_bytes(bytes))
    }

    fn near(&self, at: u32) -> Result<u32, Flaw> {
        let [.., offsets, _] = self.parts();
        let number = word(&self.read(offsets + u64::from(at) * 4, 4)?, 0);
        number.ok_or_else(|| Flaw::new("an offset is cut off"))
    }

    /// Whether an object begins so far from the beginning that its place stands elsewhere.
    fn is_far(&self, at: u32) -> Result<bool, Flaw> {
        Ok(self.near(at)? & FAR != 0)
    }

    /// Whether the file ends behind so many large offsets, with two sums.
    fn ends_behind(&self, large: u64) -> Result<bool, Flaw> {
        let [.., begin] = self.parts();
        let sums = u64::try_from(self.format.bytes() * 2).unwrap_or(0);
        let length = self.file.metadata().map_err(|why| Flaw::io(&why))?.len();
        Ok(length == begin + large * 8 + sums)
    }

    /// Where an object begins in the pack, if it is there.
    pub(super) fn find(&self, id: &ObjectId) -> Result<Option<u64>, Flaw> {
        let first = usize::from(id.as_bytes().first().copied().unwrap_or(0));
        let bound = |at: Option<usize>| at.and_then(|at| self.fanout.get(at)).copied().unwrap_or(0);
        let (mut low, mut high) = (bound(first.checked_sub(1)), bound(Some(first)));
        while low < high {
            let middle = low + (high - low) / 2;
            match self.id(middle)?.cmp(id) {
                std::cmp::Ordering::Equal => return self.offset(middle).map(Some),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok(None)
    }
}

/// Where the bytes of an object come from.
enum Base {
    /// It has its own.
    Whole(Kind),
    /// It differs from the one that begins here.
    At(u64),
}

/// A pack and its index.
pub(super) struct Pack {
    pub index: Index,
    data: File,
}

impl Pack {
    pub(super) const fn new(index: Index, data: File) -> Self {
        Self { index, data }
    }

    /// How large it is.
    pub(super) fn bytes(&self) -> Result<u64, Flaw> {
        self.data.metadata().map(|metadata| metadata.len()).map_err(|why| Flaw::io(&why))
    }

    /// What the object that begins somewhere is made of: its base, its own size, and where its compressed
    /// bytes begin.
    fn header(&self, offset: u64) -> Result<(Base, u64, u64), Flaw> {
        let broken = || Flaw::new("an object of a pack is broken");
        let mut head = vec![0; HEADER];
        let read = self.data.read_at(&mut head, offset).map_err(|why| Flaw::io(&why))?;
        head.truncate(read);
        let mut bytes = head.iter().copied();
        let first = bytes.next().ok_or_else(broken)?;
        let (mut size, mut shift, mut byte) = (u64::from(first & 15), 4, first);
        while byte & 0x80 != 0 {
            byte = bytes.next().ok_or_else(broken)?;
            let more = u64::from(byte & 0x7f).checked_shl(shift).filter(|_| shift < 57);
            size |= more.ok_or_else(broken)?;
            shift += 7;
        }
        let base = match first >> 4 & 7 {
            1 => Base::Whole(Kind::Commit),
            2 => Base::Whole(Kind::Tree),
            3 => Base::Whole(Kind::Blob),
            4 => Base::Whole(Kind::Tag),
            6 => {
                let mut byte = bytes.next().ok_or_else(broken)?;
                let mut back = u64::from(byte & 0x7f);
                while byte & 0x80 != 0 {
                    byte = bytes.next().ok_or_else(broken)?;
                    back = back
                        .checked_add(1)
                        .filter(|number| *number < 1 << 56)
                        .ok_or_else(broken)?;
                    back = back << 7 | u64::from(byte & 0x7f);
                }
                let base = offset.checked_sub(back).filter(|_| back > 0);
                Base::At(base.ok_or_else(broken)?)
            }
            7 => {
                let name: Vec<u8> = bytes.by_ref().take(self.index.format.bytes()).collect();
                let name = ObjectId::from_bytes(self.index.format, &name).ok_or_else(broken)?;
                Base::At(self.index.find(&name)?.ok_or_else(broken)?)
            }
            _ => return Err(broken()),
        };
        let taken = head.len() - bytes.len();
        Ok((base, size, offset + u64::try_from(taken).unwrap_or(0)))
    }

    /// Reads the object that begins somewhere.
    pub(super) fn read(&self, offset: u64, budget: &Budget) -> Result<Object, Flaw> {
        self.read_with(offset, budget, &Kept::default())
    }

    fn read_with(&self, offset: u64, budget: &Budget, kept: &Kept) -> Result<Object, Flaw> {
        let mut differences = Vec::new();
        let mut at = offset;
        let (kind, mut bytes) = loop {
            if let Some(base) = kept.objects.get(&at) {
                break (base.kind, base.bytes.clone());
            }
            let (base, size, data) = self.header(at)?;
            let item = Inflater::new(&self.data, data).exactly(size, budget)?;
            match base {
                Base::Whole(kind) => break (kind, item),
                Base::At(_) if differences.len() >= DEPTH => {
                    return Err(Flaw::new("an object differs from too many others"));
                }
                Base::At(base) => {
                    differences.push(item);
                    at = base;
                }
            }
        };
        for difference in differences.iter().rev() {
            bytes = patched(&bytes, difference)?;
            budget.take(bytes.len())?;
        }
        Ok(Object { kind, bytes })
    }

    /// Whether every object that the index names is there, has the content that its name says, and stands
    /// in the index once.
    pub(super) fn verify(&self, budget: &Budget) -> Result<(), Flaw> {
        let format = self.index.format;
        let (mut places, mut last, mut large) = (BTreeMap::new(), None, 0);
        for at in 0..self.index.count() {
            let id = self.index.id(at)?;
            let first = usize::from(id.as_bytes().first().copied().unwrap_or(0));
            let is_here = self.index.fanout.get(first).is_some_and(|most| at < *most)
                && first.checked_sub(1).is_none_or(|below| {
                    self.index.fanout.get(below).is_some_and(|least| at >= *least)
                });
            if !is_here || last.is_some_and(|last| last >= id) {
                return Err(Flaw::new("the index of a pack is out of order"));
            }
            last = Some(id);
            large += u64::from(self.index.is_far(at)?);
            places.insert(self.index.offset(at)?, id);
        }
        if !self.index.ends_behind(large)? {
            return Err(Flaw::new("the index of a pack has another length than it says"));
        }
        let mut kept = Kept::default();
        for (offset, id) in places {
            let object = self.read_with(offset, budget, &kept)?;
            if hashed(format, &object) != id {
                return Err(Flaw::new(format!("the index of a pack names `{id}` falsely")));
            }
            kept.keep(offset, object);
        }
        Ok(())
    }
}

/// The name that an object has by its content.
pub(super) fn hashed(format: Format, object: &Object) -> ObjectId {
    let header = format!("{} {}\0", object.kind.name(), object.bytes.len());
    format.digest(&[header.as_bytes(), &object.bytes])
}

/// Objects that others differ from, the latest ones.
#[derive(Default)]
struct Kept {
    objects: BTreeMap<u64, Rc<Object>>,
    bytes: usize,
}

impl Kept {
    fn keep(&mut self, offset: u64, object: Object) {
        self.bytes += object.bytes.len();
        self.objects.insert(offset, Rc::new(object));
        while self.bytes > KEPT {
            let Some((_, oldest)) = self.objects.pop_first() else { break };
            self.bytes -= oldest.bytes.len();
        }
    }
}

/// What a difference makes of its base.
fn patched(base: &[u8], difference: &[u8]) -> Result<Vec<u8>, Flaw> {
    patch(base, difference).ok_or_else(|| Flaw::new("a difference in a pack is broken"))
}

fn patch(base: &[u8], difference: &[u8]) -> Option<Vec<u8>> {
    let mut rest = difference;
    let (from, to) = (size(&mut rest)?, size(&mut rest)?);
    if from != base.len() || u64::try_from(to).ok()? > limits::GIT_OBJECT_BYTES {
        return None;
    }
    let mut out = Vec::with_capacity(to);
    while let Some(word) = next(&mut rest) {
        if word & 0x80 == 0 {
            // So many bytes of the difference itself.
            let (item, behind) = rest.split_at_checked(usize::from(word)).filter(|_| word > 0)?;
            out.extend_from_slice(item);
            rest = behind;
        } else {
            // A piece of the base: a bit for each byte of its place and its length that is not zero.
            let at = number(&mut rest, word, 0..4)?;
            let length = match number(&mut rest, word, 4..7)? {
                0 => 0x10000,
                length => length,
            };
            out.extend_from_slice(base.get(at..at.checked_add(length)?)?);
        }
        if out.len() > to {
            return None;
        }
    }
    (out.len() == to).then_some(out)
}

fn next(rest: &mut &[u8]) -> Option<u8> {
    let (first, behind) = rest.split_first()?;
    *rest = behind;
    Some(*first)
}

/// A number of which each byte says whether another one comes.
fn size(rest: &mut &[u8]) -> Option<usize> {
    let (mut size, mut shift) = (0_u64, 0);
    loop {
        let byte = next(rest)?;
        size |= u64::from(byte & 0x7f).checked_shl(shift).filter(|_| shift < 57)?;
        shift += 7;
        if byte & 0x80 == 0 {
            return usize::try_from(size).ok();
        }
    }
}

/// A number of which the bytes are there whose bits are set, the least first.
fn number(rest: &mut &[u8], word: u8, bits: std::ops::Range<u8>) -> Option<usize> {
    let first = bits.start;
    bits.filter(|bit| word & 1 << bit != 0).try_fold(0, |number, bit| {
        Some(number | usize::from(next(rest)?) << (usize::from(bit - first) * 8))
    })
}
