//! What the first process of a call tells the executor, which is all that it tells.

use crate::linux::kernel::LeftoverProcesses;

use super::wire::{Malformed, Reader, Writer};
use super::{ExecutorError, read_error, read_statuses, write_error, write_statuses};

/// How a command ended, as the first process of its call saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InitReport {
    /// How each of its programs ended, as the kernel encodes it.
    pub(crate) statuses: Vec<i32>,
    /// The most memory that one of its processes had loaded at once, in bytes.
    pub(crate) memory: u64,
    /// Whether `/tmp` was full by then.
    pub(crate) tmp_full: bool,
    /// Whether something lies in `/tmp`: it takes memory until the call's mounts are gone.
    pub(crate) tmp_used: bool,
    /// Its processes that its programs left.
    pub(crate) leftovers: LeftoverProcesses,
}

/// What the first process of a call tells the executor: how the command ended, or why it was never
/// started.
pub(crate) type InitResult = Result<InitReport, ExecutorError>;

pub(crate) fn encode_init_result(verdict: InitResult) -> Vec<u8> {
    let mut writer = Writer::default();
    match verdict {
        Ok(InitReport { statuses, memory, tmp_full, tmp_used, leftovers: left }) => {
            writer.byte(0);
            write_statuses(&mut writer, &statuses);
            writer.number(memory).byte(u8::from(tmp_full)).byte(u8::from(tmp_used));
            writer.number(left.killed).number(left.all);
        }
        Err(refusal) => {
            writer.byte(1);
            write_error(&mut writer, refusal);
        }
    }
    writer.finish()
}

pub(crate) fn decode_init_result(bytes: &[u8]) -> Result<InitResult, Malformed> {
    let mut reader = Reader::new(bytes);
    let verdict = match reader.byte()? {
        0 => Ok(InitReport {
            statuses: read_statuses(&mut reader)?,
            memory: reader.number()?,
            tmp_full: reader.byte()? == 1,
            tmp_used: reader.byte()? == 1,
            leftovers: LeftoverProcesses { killed: reader.number()?, all: reader.number()? },
        }),
        1 => Err(read_error(&mut reader)?),
        _ => return Err(Malformed),
    };
    reader.end()?;
    Ok(verdict)
}
