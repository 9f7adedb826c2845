//! What is said about a whole agent: once what it is, and then short words in both directions.

use rustix::io::Errno;

use super::wire::{Malformed, Reader, Writer, read_texts, write_texts};
use super::{
    HostPath, SetupError, Step, read_errno, read_path, read_port, write_path, write_ports,
};

/// An agent, as its executor is told of it. Descriptors: those of its three streams that are not the terminal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AgentRequest {
    pub(crate) workspace: HostPath,
    pub(crate) read_only: Vec<Vec<u8>>,
    pub(crate) mounts: Vec<AgentMountPath>,
    pub(crate) links: Vec<[Vec<u8>; 2]>,
    pub(crate) files: Vec<[Vec<u8>; 2]>,
    pub(crate) home: Vec<u8>,
    pub(crate) has_tmp: bool,
    /// The ports of its own loopback that are served from outside; none where its network is the host's.
    pub(crate) ports: Option<Vec<u16>>,
    pub(crate) program: Vec<u8>,
    pub(crate) arguments: Vec<Vec<u8>>,
    pub(crate) environment: Vec<Vec<u8>>,
    /// Which streams come as descriptors, in this order.
    pub(crate) given: [bool; 3],
}

/// A directory or file of the host, where it appears, and what is hidden in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AgentMountPath {
    pub(crate) path: Vec<u8>,
    pub(crate) place: HostPath,
    pub(crate) hidden: Vec<Vec<u8>>,
    pub(crate) discards_writes: bool,
}

/// What its starter says to the first process of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentOrder {
    /// Begin.
    Begin,
    /// Go on after a stop.
    Continue,
    /// Take this signal.
    Signal(i32),
}

/// What is said back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentReply {
    /// Everything is ready. Descriptors: the sockets of its ports, and the other side of its terminal, if it has one.
    Ready,
    /// A step failed, and nothing runs.
    Failed(SetupError),
    /// The program cannot be executed.
    NotExecutable(Errno),
    /// It was stopped by this signal.
    Stopped(i32),
    /// It has ended, with this status of the kernel's, and all that it started.
    Ended(i32),
}

impl AgentRequest {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        write_path(&mut writer, &self.workspace);
        write_texts(&mut writer, &self.read_only);
        writer.list(&self.mounts, |writer, mount| {
            writer.bytes(&mount.path);
            write_path(writer, &mount.place);
            write_texts(writer, &mount.hidden);
            writer.byte(mount.discards_writes.into());
        });
        for pairs in [&self.links, &self.files] {
            writer.list(pairs, |writer, [path, content]| {
                writer.bytes(path).bytes(content);
            });
        }
        writer.bytes(&self.home);
        writer.byte(self.has_tmp.into()).byte(self.ports.is_none().into());
        let ports = self.ports.as_deref().unwrap_or_default();
        write_ports(&mut writer, ports);
        writer.bytes(&self.program);
        write_texts(&mut writer, &self.arguments);
        write_texts(&mut writer, &self.environment);
        for given in self.given {
            writer.byte(given.into());
        }
        writer.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let request = Self {
            workspace: read_path(&mut reader)?,
            read_only: read_texts(&mut reader)?,
            mounts: reader.list(|reader| {
                Ok(AgentMountPath {
                    path: reader.bytes()?.to_vec(),
                    place: read_path(reader)?,
                    hidden: read_texts(reader)?,
                    discards_writes: reader.byte()? == 1,
                })
            })?,
            links: reader.list(read_pair)?,
            files: reader.list(read_pair)?,
            home: reader.bytes()?.to_vec(),
            has_tmp: reader.byte()? == 1,
            ports: match (reader.byte()? == 1, reader.list(read_port)?) {
                (true, _) => None,
                (false, ports) => Some(ports),
            },
            program: reader.bytes()?.to_vec(),
            arguments: read_texts(&mut reader)?,
            environment: read_texts(&mut reader)?,
            given: [reader.byte()? == 1, reader.byte()? == 1, reader.byte()? == 1],
        };
        reader.end()?;
        Ok(request)
    }
}

fn read_pair(reader: &mut Reader<'_>) -> Result<[Vec<u8>; 2], Malformed> {
    Ok([reader.bytes()?.to_vec(), reader.bytes()?.to_vec()])
}

impl AgentOrder {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut writer = Writer::default();
        match self {
            Self::Begin => writer.byte(0),
            Self::Continue => writer.byte(1),
            Self::Signal(number) => writer.byte(2).signed(number),
        };
        writer.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let order = match reader.byte()? {
            0 => Self::Begin,
            1 => Self::Continue,
            2 => Self::Signal(reader.signed()?),
            _ => return Err(Malformed),
        };
        reader.end()?;
        Ok(order)
    }
}

impl AgentReply {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut writer = Writer::default();
        match self {
            Self::Ready => writer.byte(0),
            Self::Failed(SetupError { step, errno }) => {
                writer.byte(1).byte(step as u8).signed(errno.raw_os_error())
            }
            Self::NotExecutable(errno) => writer.byte(2).signed(errno.raw_os_error()),
            Self::Stopped(signal) => writer.byte(3).signed(signal),
            Self::Ended(status) => writer.byte(4).signed(status),
        };
        writer.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let reply = match reader.byte()? {
            0 => Self::Ready,
            1 => Self::Failed(SetupError {
                step: Step::read(reader.byte()?)?,
                errno: read_errno(&mut reader)?,
            }),
            2 => Self::NotExecutable(read_errno(&mut reader)?),
            3 => Self::Stopped(reader.signed()?),
            4 => Self::Ended(reader.signed()?),
            _ => return Err(Malformed),
        };
        reader.end()?;
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_said_is_understood() {
        let place = HostPath { path: b"/w".to_vec(), device: 1, inode: 2 };
        let hidden = vec![b"x".to_vec()];
        let request = AgentRequest {
            workspace: place.clone(),
            read_only: vec![b".capsule".to_vec()],
            mounts: vec![AgentMountPath {
                path: b"/opt/x".to_vec(),
                place,
                hidden,
                discards_writes: true,
            }],
            links: vec![[b"/a".to_vec(), b"/b".to_vec()]],
            files: vec![[b"/etc/hosts".to_vec(), b"127.0.0.1 x\n".to_vec()]],
            home: b"/root".to_vec(),
            has_tmp: true,
            ports: Some(vec![3128, 8080]),
            program: b"/bin/sh".to_vec(),
            arguments: vec![b"sh".to_vec()],
            environment: vec![b"A=1".to_vec()],
            given: [true, false, true],
        };
        let bytes = request.encode();
        assert_eq!(AgentRequest::decode(&bytes), Ok(request));
        assert_eq!(AgentRequest::decode(&bytes[..bytes.len() - 1]), Err(Malformed));
        for order in [AgentOrder::Begin, AgentOrder::Continue, AgentOrder::Signal(15)] {
            assert_eq!(AgentOrder::decode(&order.encode()), Ok(order));
        }
        for reply in [
            AgentReply::Ready,
            AgentReply::Failed(SetupError { step: Step::Proc, errno: Errno::PERM }),
            AgentReply::NotExecutable(Errno::NOEXEC),
            AgentReply::Stopped(20),
            AgentReply::Ended(256),
        ] {
            assert_eq!(AgentReply::decode(&reply.encode()), Ok(reply));
        }
    }
}
