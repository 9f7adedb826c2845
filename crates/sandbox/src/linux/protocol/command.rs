//! A command, as the first process of its call is told of it.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use capsule_base::limits;
use capsule_core::confinement::ProcessLimits;

use super::wire::{Malformed, Reader, Writer, read_texts, write_texts};
use crate::{FileIdentity, RedirectTarget, StandardDevice, StandardStream, StreamRedirect};

/// A command. The first process of its call is the closest to it, so the names of what is hidden are
/// not among this.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CommandMessage {
    /// Its programs, from the first to the last of the pipeline.
    pub(crate) stages: Vec<StageMessage>,
    pub(crate) cwd: Vec<u8>,
    pub(crate) limits: ProcessLimits,
}

/// One program of a pipeline.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StageMessage {
    /// Its path, and what must be found there.
    pub(crate) program: (Vec<u8>, FileIdentity),
    pub(crate) arguments: Vec<Vec<u8>>,
    pub(crate) environment: Vec<Vec<u8>>,
    pub(crate) redirects: Vec<StreamRedirect>,
}

impl CommandMessage {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        write_command(&mut writer, self);
        writer.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let run = read_command(&mut reader)?;
        reader.end()?;
        Ok(run)
    }
}

pub(super) fn write_command(writer: &mut Writer, run: &CommandMessage) {
    let CommandMessage { stages, cwd: folder, limits } = run;
    writer.list(stages, |writer, StageMessage { program, arguments, environment, redirects }| {
        writer.bytes(&program.0);
        write_identity(writer, program.1);
        write_texts(writer, arguments);
        write_texts(writer, environment);
        writer.list(redirects, write_redirect);
    });
    writer.bytes(folder);
    write_limits(writer, limits);
}

pub(super) fn read_command(reader: &mut Reader<'_>) -> Result<CommandMessage, Malformed> {
    let stages = reader.list(|reader| {
        Ok(StageMessage {
            program: (reader.bytes()?.to_vec(), read_identity(reader)?),
            arguments: read_texts(reader)?,
            environment: read_texts(reader)?,
            redirects: reader.list(read_redirect)?,
        })
    })?;
    // Whoever reads on counts on these.
    let redirected = stages.iter().all(|stage| stage.redirects.len() <= limits::STAGE_REDIRECTS);
    if stages.is_empty() || stages.len() > limits::PIPELINE_STAGES || !redirected {
        return Err(Malformed);
    }
    Ok(CommandMessage { stages, cwd: reader.bytes()?.to_vec(), limits: read_limits(reader)? })
}

fn write_redirect(writer: &mut Writer, StreamRedirect { descriptor, target: to }: &StreamRedirect) {
    writer.byte(descriptor.number());
    match to {
        RedirectTarget::Read(path) => writer.byte(0).bytes(path.as_bytes()),
        RedirectTarget::Create(path) => writer.byte(1).bytes(path.as_bytes()),
        RedirectTarget::Append(path) => writer.byte(2).bytes(path.as_bytes()),
        RedirectTarget::Device(StandardDevice::Null) => writer.byte(3),
        RedirectTarget::Same(other) => writer.byte(4).byte(other.number()),
        RedirectTarget::Device(StandardDevice::Zero) => writer.byte(5),
        RedirectTarget::Device(StandardDevice::Random) => writer.byte(6),
    };
}

fn read_redirect(reader: &mut Reader<'_>) -> Result<StreamRedirect, Malformed> {
    fn path(reader: &mut Reader<'_>) -> Result<OsString, Malformed> {
        Ok(OsString::from_vec(reader.bytes()?.to_vec()))
    }
    let descriptor = read_descriptor(reader)?;
    let to = match reader.byte()? {
        0 => RedirectTarget::Read(path(reader)?),
        1 => RedirectTarget::Create(path(reader)?),
        2 => RedirectTarget::Append(path(reader)?),
        3 => RedirectTarget::Device(StandardDevice::Null),
        4 => RedirectTarget::Same(read_descriptor(reader)?),
        5 => RedirectTarget::Device(StandardDevice::Zero),
        6 => RedirectTarget::Device(StandardDevice::Random),
        _ => return Err(Malformed),
    };
    Ok(StreamRedirect { descriptor, target: to })
}

fn read_descriptor(reader: &mut Reader<'_>) -> Result<StandardStream, Malformed> {
    Ok(match reader.byte()? {
        0 => StandardStream::Input,
        1 => StandardStream::Output,
        2 => StandardStream::Error,
        _ => return Err(Malformed),
    })
}

fn write_identity(writer: &mut Writer, identity: FileIdentity) {
    let FileIdentity { device, inode, size, modified, changed } = identity;
    writer.number(device).number(inode).number(size);
    for part in [modified.0, modified.1, changed.0, changed.1] {
        writer.number(part.cast_unsigned());
    }
}

fn read_identity(reader: &mut Reader<'_>) -> Result<FileIdentity, Malformed> {
    let (device, inode, size) = (reader.number()?, reader.number()?, reader.number()?);
    let mut time = || Ok((reader.number()?.cast_signed(), reader.number()?.cast_signed()));
    Ok(FileIdentity { device, inode, size, modified: time()?, changed: time()? })
}

fn write_limits(writer: &mut Writer, limits: &ProcessLimits) {
    let _same = limits.combine(*limits, |value, _| {
        writer.number(value);
        value
    });
}

fn read_limits(reader: &mut Reader<'_>) -> Result<ProcessLimits, Malformed> {
    let (any, mut malformed) = (ProcessLimits::default(), None);
    let read = any.combine(any, |_, _| {
        reader.number().unwrap_or_else(|error| {
            malformed.get_or_insert(error);
            0
        })
    });
    malformed.map_or(Ok(read), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redirect(descriptor: StandardStream, to: RedirectTarget) -> StreamRedirect {
        StreamRedirect { descriptor, target: to }
    }

    fn stage(name: &str, redirects: Vec<StreamRedirect>) -> StageMessage {
        let identity = FileIdentity {
            device: 1,
            inode: 2,
            size: 3,
            modified: (-4, 5),
            changed: (6, 999_999_999),
        };
        StageMessage {
            program: (name.into(), identity),
            arguments: vec![name.into(), Vec::new(), vec![0xff, b'\n']],
            environment: vec![b"A=b".to_vec()],
            redirects,
        }
    }

    fn run() -> CommandMessage {
        let all = [
            redirect(StandardStream::Input, RedirectTarget::Read("in".into())),
            redirect(
                StandardStream::Output,
                RedirectTarget::Create(OsString::from_vec(vec![0xfe])),
            ),
            redirect(StandardStream::Error, RedirectTarget::Append("log".into())),
            redirect(StandardStream::Error, RedirectTarget::Device(StandardDevice::Null)),
            redirect(StandardStream::Input, RedirectTarget::Device(StandardDevice::Zero)),
            redirect(StandardStream::Input, RedirectTarget::Device(StandardDevice::Random)),
            redirect(StandardStream::Output, RedirectTarget::Same(StandardStream::Error)),
        ];
        let limits = ProcessLimits::default();
        let stages = vec![stage("/a", Vec::new()), stage("/b", all.into()), stage("/c", vec![])];
        CommandMessage { stages, cwd: b"sub".to_vec(), limits }
    }

    #[test]
    fn a_pipeline_arrives_as_it_was_sent() {
        let run = run();
        assert_eq!(CommandMessage::decode(&run.encode()), Ok(run));
    }

    #[test]
    fn what_is_cut_or_goes_on_is_refused() {
        let bytes = run().encode();
        for end in 0..bytes.len() {
            assert_eq!(
                CommandMessage::decode(&bytes[..end]),
                Err(Malformed),
                "{end} of {}",
                bytes.len()
            );
        }
        assert_eq!(CommandMessage::decode(&[bytes, vec![0]].concat()), Err(Malformed));
    }

    #[test]
    fn no_more_stages_come_than_there_may_be() {
        let of = |stages| CommandMessage { stages, ..run() }.encode();
        let many = |count: usize| (0..count).map(|_| stage("/a", Vec::new())).collect::<Vec<_>>();
        assert!(CommandMessage::decode(&of(many(limits::PIPELINE_STAGES))).is_ok());
        assert_eq!(CommandMessage::decode(&of(many(limits::PIPELINE_STAGES + 1))), Err(Malformed));
        assert_eq!(CommandMessage::decode(&of(Vec::new())), Err(Malformed));
        let null =
            || redirect(StandardStream::Output, RedirectTarget::Device(StandardDevice::Null));
        let redirected = |count| of(vec![stage("/a", (0..count).map(|_| null()).collect())]);
        assert!(CommandMessage::decode(&redirected(limits::STAGE_REDIRECTS)).is_ok());
        assert_eq!(
            CommandMessage::decode(&redirected(limits::STAGE_REDIRECTS + 1)),
            Err(Malformed)
        );
    }
}
