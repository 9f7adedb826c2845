//! What the first process of a call tells the executor, which is all that it tells.

use crate::kernel::Left;

use super::wire::{Malformed, Reader, Writer};
use super::{Refusal, read_refusal, read_statuses, write_refusal, write_statuses};

/// How a command ended, as the first process of its call saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    /// How each of its programs ended, as the kernel encodes it.
    pub(crate) statuses: Vec<i32>,
    /// The most memory that one of its processes had loaded at once, in bytes.
    pub(crate) memory: u64,
    /// Whether `/tmp` was full by then.
    pub(crate) tmp_full: bool,
    /// Whether something lies in `/tmp`: it takes memory until the call's mounts are gone.
    pub(crate) tmp_used: bool,
    /// Its processes that its programs left.
    pub(crate) left: Left,
}

/// What the first process of a call tells the executor: how the command ended, or why it was never
/// started.
pub(crate) type Verdict = Result<End, Refusal>;

pub(crate) fn encode_verdict(verdict: Verdict) -> Vec<u8> {
    let mut writer = Writer::default();
    match verdict {
        Ok(End { statuses, memory, tmp_full, tmp_used, left }) => {
            writer.byte(0);
            write_statuses(&mut writer, &statuses);
            writer.number(memory).byte(u8::from(tmp_full)).byte(u8::from(tmp_used));
            writer.number(left.running).number(left.all);
        }
        Err(refusal) => {
            writer.byte(1);
            write_refusal(&mut writer, refusal);
        }
    }
    writer.finish()
}

pub(crate) fn decode_verdict(bytes: &[u8]) -> Result<Verdict, Malformed> {
    let mut reader = Reader::new(bytes);
    let verdict = match reader.byte()? {
        0 => Ok(End {
            statuses: read_statuses(&mut reader)?,
            memory: reader.number()?,
            tmp_full: reader.byte()? == 1,
            tmp_used: reader.byte()? == 1,
            left: Left { running: reader.number()?, all: reader.number()? },
        }),
        1 => Err(read_refusal(&mut reader)?),
        _ => return Err(Malformed),
    };
    reader.end()?;
    Ok(verdict)
}
