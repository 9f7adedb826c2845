//! Objects in files of their own.

use std::fs::File;

use super::flaw::Flaw;
use super::id::{Format, Hasher, ObjectId};
use super::inflate::{Budget, Inflater};
use super::object::{Kind, Object};

/// How long the line before the content may be: a kind and a size.
const HEADER: usize = 32;

/// The path of an object beneath the folder of all objects.
pub(super) fn path(id: &ObjectId) -> String {
    let name = id.to_string();
    let (folder, file) = name.split_at_checked(2).unwrap_or_default();
    format!("{folder}/{file}")
}

/// The object that a file stands for by its path beneath that folder, if it does.
pub(super) fn named(format: Format, path: &str) -> Option<ObjectId> {
    let (folder, file) = path.split_once('/')?;
    let is_plain = |text: &str| !text.bytes().any(|byte| byte.is_ascii_uppercase());
    let name = format!("{folder}{file}");
    (folder.len() == 2 && is_plain(&name)).then(|| ObjectId::from_hex(format, name.as_bytes()))?
}

/// What stands before the content: the kind and the size.
fn header(inflater: &mut Inflater<'_>, budget: &Budget) -> Result<(Vec<u8>, Kind, u64), Flaw> {
    let broken = || Flaw::new("an object does not say what it is");
    let mut header = Vec::new();
    while !header.ends_with(&[0]) {
        let mut byte = [0];
        if header.len() > HEADER || inflater.next(&mut byte, budget)? == 0 {
            return Err(broken());
        }
        header.extend(byte);
    }
    let text = header.strip_suffix(&[0]).unwrap_or_default();
    let space = text.iter().position(|byte| *byte == b' ').ok_or_else(broken)?;
    let (kind, size) = text.split_at_checked(space).ok_or_else(broken)?;
    let kind = Kind::named(kind).ok_or_else(broken)?;
    let size = std::str::from_utf8(size).ok().and_then(|text| text.strip_prefix(' ')?.parse().ok());
    Ok((header, kind, size.ok_or_else(broken)?))
}

/// Reads an object.
pub(super) fn read(file: &File, budget: &Budget) -> Result<Object, Flaw> {
    let mut inflater = Inflater::new(file, 0);
    let (_, kind, size) = header(&mut inflater, budget)?;
    Ok(Object { kind, bytes: inflater.exactly(size, budget)? })
}

/// The name that an object has by its content, which may be of any size.
pub(super) fn hash(file: &File, format: Format, budget: &Budget) -> Result<ObjectId, Flaw> {
    let mut inflater = Inflater::new(file, 0);
    let (header, _, size) = header(&mut inflater, budget)?;
    let mut hasher = Hasher::new(format);
    hasher.update(&header);
    let (mut buffer, mut all) = (vec![0; 1 << 16], 0_u64);
    loop {
        let read = inflater.next(&mut buffer, budget)?;
        let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else { break };
        hasher.update(bytes);
        all += u64::try_from(read).unwrap_or(0);
    }
    match all == size {
        true => Ok(hasher.finish()),
        false => Err(Flaw::new("an object has another size than it says")),
    }
}
