//! The commit graph: what git notes of commits so as not to read them again. Git believes the tree and the
//! parents that it names, so it is believed only where the commits say the same.

use std::collections::BTreeMap;

use super::database::Database;
use super::flaw::Flaw;
use super::id::ObjectId;
use super::object::Commit;

/// Where it lies beneath the folder of all objects.
pub(super) const PLACE: &str = "info/commit-graph";

/// What stands where a commit has no further parent.
const NONE: u32 = 0x7000_0000;
/// Marks what is the last, or lies elsewhere.
const MARK: u32 = 1 << 31;
/// The most generations that are told apart.
const GENERATIONS: u32 = (1 << 30) - 1;
/// The parts of it that are known.
const PARTS: [&[u8; 4]; 6] = [b"OIDF", b"OIDL", b"CDAT", b"GDA2", b"GDO2", b"EDGE"];

struct Graph<'g> {
    database: &'g Database<'g>,
    parts: BTreeMap<&'g [u8], &'g [u8]>,
    count: u32,
}

fn broken() -> Flaw {
    Flaw::new("the commit graph is in a form that cannot be read")
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Result<u64, Flaw> {
    let bytes = bytes.get(at..at + N).ok_or_else(broken)?;
    Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn short(bytes: &[u8], at: usize) -> Result<u32, Flaw> {
    u32::try_from(number::<4>(bytes, at)?).map_err(|_| broken())
}

fn size(number: u64) -> Result<usize, Flaw> {
    usize::try_from(number).map_err(|_| broken())
}

/// Whether all that a commit graph says is true.
///
/// # Errors
/// It is not, or it cannot be read.
pub(super) fn verify(bytes: &[u8], database: &Database<'_>) -> Result<(), Flaw> {
    let graph = Graph::open(bytes, database)?;
    let mut last = None;
    for at in 0..graph.count {
        let id = graph.id(at)?;
        let first = usize::from(id.as_bytes().first().copied().unwrap_or(0));
        let below = first.checked_sub(1).map_or(Ok(0), |number| graph.fanout(number))?;
        let is_here = (below..graph.fanout(first)?).contains(&at);
        if !is_here || last.is_some_and(|last| last >= id) {
            return Err(broken());
        }
        last = Some(id);
        graph.compare(at, &database.commit(&id)?)?;
    }
    Ok(())
}

impl<'g> Graph<'g> {
    fn open(bytes: &'g [u8], database: &'g Database<'g>) -> Result<Self, Flaw> {
        let length = database.format.bytes();
        let body = bytes.len().checked_sub(length).and_then(|end| bytes.split_at_checked(end));
        let (body, sum) = body.ok_or_else(broken)?;
        let is_whole = database.format.digest(&[body]).as_bytes() == sum;
        let kind = if length == 20 { 1 } else { 2 };
        let head = body.get(..8).ok_or_else(broken)?;
        let [b'C', b'G', b'P', b'H', 1, byte, chunks, 0] = head else { return Err(broken()) };
        if !is_whole || *byte != kind {
            return Err(broken());
        }
        let mut parts = BTreeMap::new();
        for chunk in 0..usize::from(*chunks) {
            let row = 8 + chunk * 12;
            let name = body.get(row..row + 4).ok_or_else(broken)?;
            let range = size(number::<8>(body, row + 4)?)?..size(number::<8>(body, row + 16)?)?;
            let part = body.get(range).ok_or_else(broken)?;
            if !PARTS.iter().any(|part| part[..] == *name) || parts.insert(name, part).is_some() {
                return Err(broken());
            }
        }
        let mut graph = Self { database, parts, count: 0 };
        graph.count = graph.fanout(255)?;
        Ok(graph)
    }

    fn part(&self, name: &[u8]) -> Result<&'g [u8], Flaw> {
        self.parts.get(name).copied().ok_or_else(broken)
    }

    fn fanout(&self, byte: usize) -> Result<u32, Flaw> {
        short(self.part(b"OIDF")?, byte * 4)
    }

    fn id(&self, at: u32) -> Result<ObjectId, Flaw> {
        let (names, length) = (self.part(b"OIDL")?, self.database.format.bytes());
        let begin = size(at.into())? * length;
        let name = names.get(begin..begin + length).ok_or_else(broken)?;
        ObjectId::from_bytes(self.database.format, name).ok_or_else(broken)
    }

    /// What stands about a commit: its tree, and where its other data begins.
    fn row(&self, at: u32) -> Result<(&'g [u8], &'g [u8]), Flaw> {
        let (data, length) = (self.part(b"CDAT")?, self.database.format.bytes());
        let begin = size(at.into())? * (length + 16);
        let row = data.get(begin..begin + length + 16).ok_or_else(broken)?;
        row.split_at_checked(length).ok_or_else(broken)
    }

    /// The places of a commit's parents.
    fn parents(&self, data: &[u8]) -> Result<Vec<u32>, Flaw> {
        let (first, second) = (short(data, 0)?, short(data, 4)?);
        let mut parents: Vec<u32> = [first].into_iter().filter(|number| *number != NONE).collect();
        if second & MARK == 0 {
            parents.extend((second != NONE).then_some(second));
            return Ok(parents);
        }
        let edges = self.part(b"EDGE")?;
        for at in size((second & !MARK).into())?.. {
            let edge = short(edges, at * 4)?;
            parents.push(edge & !MARK);
            if edge & MARK != 0 {
                break;
            }
        }
        Ok(parents)
    }

    fn generation(&self, at: u32) -> Result<u32, Flaw> {
        Ok(short(self.row(at)?.1, 8)? >> 2)
    }

    fn date(&self, at: u32) -> Result<u64, Flaw> {
        Ok(number::<8>(self.row(at)?.1, 8)? & ((1 << 34) - 1))
    }

    /// The date of a commit, or the least later one than those of all that it comes from.
    fn corrected(&self, at: u32) -> Result<u64, Flaw> {
        let offset = short(self.part(b"GDA2")?, size(at.into())? * 4)?;
        let later = match offset & MARK {
            0 => offset.into(),
            _ => number::<8>(self.part(b"GDO2")?, size((offset & !MARK).into())? * 8)?,
        };
        self.date(at)?.checked_add(later).ok_or_else(broken)
    }

    /// Compares what stands about a commit with what it says itself.
    fn compare(&self, at: u32, commit: &Commit) -> Result<(), Flaw> {
        let (tree, data) = self.row(at)?;
        let parents = self.parents(data)?;
        let named: Vec<ObjectId> =
            parents.iter().map(|parent| self.id(*parent)).collect::<Result<_, _>>()?;
        let of = |item: fn(&Self, u32) -> Result<u64, Flaw>| {
            parents
                .iter()
                .try_fold(0, |most, parent| item(self, *parent).map(|number| most.max(number)))
        };
        let generation = of(|graph, at| graph.generation(at).map(u64::from))? + 1;
        let date = self.date(at)?;
        let is_late = || -> Result<bool, Flaw> {
            let parents = of(Self::corrected)?.checked_add(u64::from(!parents.is_empty()));
            Ok(self.corrected(at)? == date.max(parents.ok_or_else(broken)?))
        };
        let is_true = tree == commit.tree.as_bytes()
            && named == commit.parents
            && u64::try_from(commit.date) == Ok(date)
            && u64::from(self.generation(at)?) == generation.min(GENERATIONS.into())
            && (!self.parts.contains_key(&b"GDA2"[..]) || is_late()?);
        if is_true {
            return Ok(());
        }
        Err(Flaw::new("the commit graph says something else than a commit does"))
    }
}
