//! What the deciding process and its executor say to each other.
//!
//! Both are the same program, so nothing here is versioned. What crosses is plain: numbers, bytes,
//! and descriptors beside them. The executor takes no decision: it is told what to show, what to
//! hide and what to run.

pub(crate) mod socket;
mod step;
mod verdict;
mod wire;

use capsule_core::confinement::{ProcessLimits, Walls};
use rustix::io::Errno;

pub(crate) use step::{At, Failed, Step};
pub(crate) use verdict::{End, Verdict, decode_verdict, encode_verdict};
pub(crate) use wire::Malformed;
use wire::{Reader, Writer};

use crate::FileIdentity;

/// What the executor is asked to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Build the view. Once a run.
    Enter(Enter),
    /// Hide paths from it, and run a command in it. Descriptors: standard output, standard error,
    /// and standard input unless that is empty.
    Run {
        /// Whether it may change the staged workspace.
        writes: bool,
        /// What it may change in the workspace itself.
        direct: Option<Direct>,
        /// Every path that is hidden now.
        masks: Vec<Vec<u8>>,
        /// The command.
        run: Run,
    },
    /// End the command that runs.
    End,
}

/// What a run sees.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Enter {
    /// The root of the workspace.
    pub(crate) workspace: Place,
    /// Where its changes are collected.
    pub(crate) staging: Option<Staged>,
    /// Paths in it that are hidden.
    pub(crate) masks: Vec<Vec<u8>>,
    /// Files and folders outside the system's, and where they appear.
    pub(crate) programs: Vec<(Vec<u8>, Place)>,
}

/// How the changes of a run are collected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Staged {
    /// In a folder that is laid over the workspace; the second one the kernel uses for that.
    Overlay([Place; 2]),
    /// In a copy of the workspace, which is shown in its place.
    Copied(Place),
}

/// What a command may change in the workspace itself: what is open, what is held in it, and the
/// folders that stay where they are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Direct {
    pub(crate) open: Vec<Vec<u8>>,
    pub(crate) held: Vec<Vec<u8>>,
    pub(crate) pinned: Vec<Vec<u8>>,
}

/// A file or folder of the host: by path, and by what must be found there. A descriptor would not
/// do: it belongs to the mounts of the process that opened it, and mounts of one namespace cannot
/// be bound in another. The deciding process holds it open meanwhile, so that its number cannot
/// come to mean another file.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(crate) struct Place {
    pub(crate) path: Vec<u8>,
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// A command, as the first process of its call is told of it. That process is the closest to the
/// command, so the names of what is hidden are not among it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Its path, and what must be found there.
    pub(crate) program: (Vec<u8>, FileIdentity),
    pub(crate) arguments: Vec<Vec<u8>>,
    pub(crate) environment: Vec<Vec<u8>>,
    pub(crate) folder: Vec<u8>,
    pub(crate) limits: ProcessLimits,
}

/// What the executor answers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// First of all: what it can hold on this machine.
    Hello(Walls),
    /// The view stands. Descriptor: the staged workspace, if there is one.
    Entered {
        /// Where commands see the folder in which they may write.
        tmp: Vec<u8>,
    },
    /// A command's first process was born. Descriptor: a handle on it, if killing it ends the
    /// command; else [`Request::End`] does.
    Started,
    /// Every process of the command is gone.
    Ended(Ended),
    /// It was not done.
    Refused(Refusal),
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ended {
    /// How the program ended, as the kernel encodes it; none if it was killed from outside.
    pub(crate) status: Option<i32>,
    /// It took more memory than it may.
    pub(crate) out_of_memory: bool,
    /// It took more time than it may.
    pub(crate) out_of_time: bool,
    /// It wanted more processes than it may.
    pub(crate) crowded: bool,
    /// It filled its `/tmp`.
    pub(crate) tmp_full: bool,
    /// The most memory that was seen, in bytes.
    pub(crate) peak_memory: Option<u64>,
}

/// Why something was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A step of the set-up failed.
    Failed(Failed),
    /// The program is not the one that was decided on.
    ProgramChanged,
    /// There is no such program in the view.
    ProgramMissing,
    /// It cannot be executed.
    NotExecutable(Errno),
}

impl Request {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        match self {
            Self::Enter(enter) => {
                writer.byte(0);
                write_place(&mut writer, &enter.workspace);
                writer.list(staged_in(enter.staging.as_ref()), write_place);
                write_texts(&mut writer, &enter.masks);
                writer.list(&enter.programs, |writer, (target, place)| {
                    writer.bytes(target);
                    write_place(writer, place);
                });
            }
            Self::Run { writes, direct, masks, run } => {
                writer.byte(1).byte(u8::from(*writes));
                writer.list(direct.as_slice(), |writer, Direct { open, held, pinned }| {
                    [open, held, pinned].into_iter().for_each(|paths| write_texts(writer, paths));
                });
                write_texts(&mut writer, masks);
                write_run(&mut writer, run);
            }
            Self::End => {
                writer.byte(2);
            }
        }
        writer.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let request = match reader.byte()? {
            0 => Self::Enter(Enter {
                workspace: read_place(&mut reader)?,
                staging: read_staging(&mut reader)?,
                masks: read_texts(&mut reader)?,
                programs: reader
                    .list(|reader| Ok((reader.bytes()?.to_vec(), read_place(reader)?)))?,
            }),
            1 => Self::Run {
                writes: reader.byte()? == 1,
                direct: read_direct(&mut reader)?,
                masks: read_texts(&mut reader)?,
                run: read_run(&mut reader)?,
            },
            2 => Self::End,
            _ => return Err(Malformed),
        };
        reader.end()?;
        Ok(request)
    }
}

impl Run {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        write_run(&mut writer, self);
        writer.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let run = read_run(&mut reader)?;
        reader.end()?;
        Ok(run)
    }
}

impl Reply {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        match self {
            Self::Hello(walls) => {
                // A list of texts always has a JSON form; an empty one would be refused when read.
                writer.byte(0).bytes(&serde_json::to_vec(walls).unwrap_or_default());
            }
            Self::Entered { tmp } => {
                writer.byte(1).bytes(tmp);
            }
            Self::Started => {
                writer.byte(2);
            }
            Self::Ended(ended) => {
                writer.byte(3);
                writer.byte(u8::from(ended.status.is_some()));
                writer.signed(ended.status.unwrap_or_default());
                writer.byte(u8::from(ended.out_of_memory));
                writer.byte(u8::from(ended.out_of_time));
                writer.byte(u8::from(ended.crowded)).byte(u8::from(ended.tmp_full));
                writer.byte(u8::from(ended.peak_memory.is_some()));
                writer.number(ended.peak_memory.unwrap_or_default());
            }
            Self::Refused(refusal) => {
                writer.byte(4);
                write_refusal(&mut writer, *refusal);
            }
        }
        writer.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let reply = match reader.byte()? {
            0 => Self::Hello(serde_json::from_slice(reader.bytes()?).map_err(|_| Malformed)?),
            1 => Self::Entered { tmp: reader.bytes()?.to_vec() },
            2 => Self::Started,
            3 => {
                let (known, status) = (reader.byte()? == 1, reader.signed()?);
                let (out_of_memory, out_of_time) = (reader.byte()? == 1, reader.byte()? == 1);
                let (crowded, tmp_full) = (reader.byte()? == 1, reader.byte()? == 1);
                let (seen, peak) = (reader.byte()? == 1, reader.number()?);
                Self::Ended(Ended {
                    status: known.then_some(status),
                    out_of_memory,
                    out_of_time,
                    crowded,
                    tmp_full,
                    peak_memory: seen.then_some(peak),
                })
            }
            4 => Self::Refused(read_refusal(&mut reader)?),
            _ => return Err(Malformed),
        };
        reader.end()?;
        Ok(reply)
    }
}

fn write_refusal(writer: &mut Writer, refusal: Refusal) {
    match refusal {
        Refusal::Failed(Failed { step, errno }) => {
            writer.byte(0).byte(step as u8).signed(errno.raw_os_error());
        }
        Refusal::ProgramChanged => {
            writer.byte(1);
        }
        Refusal::ProgramMissing => {
            writer.byte(2);
        }
        Refusal::NotExecutable(errno) => {
            writer.byte(3).signed(errno.raw_os_error());
        }
    }
}

fn read_refusal(reader: &mut Reader<'_>) -> Result<Refusal, Malformed> {
    Ok(match reader.byte()? {
        0 => Refusal::Failed(Failed {
            step: Step::read(reader.byte()?)?,
            errno: read_errno(reader)?,
        }),
        1 => Refusal::ProgramChanged,
        2 => Refusal::ProgramMissing,
        3 => Refusal::NotExecutable(read_errno(reader)?),
        _ => return Err(Malformed),
    })
}

fn read_errno(reader: &mut Reader<'_>) -> Result<Errno, Malformed> {
    let number = reader.signed()?;
    if (1..4_096).contains(&number) { Ok(Errno::from_raw_os_error(number)) } else { Err(Malformed) }
}

fn write_run(writer: &mut Writer, run: &Run) {
    let Run { program: (path, identity), arguments, environment, folder, limits } = run;
    writer.bytes(path);
    write_identity(writer, *identity);
    write_texts(writer, arguments);
    write_texts(writer, environment);
    writer.bytes(folder);
    write_limits(writer, limits);
}

fn read_run(reader: &mut Reader<'_>) -> Result<Run, Malformed> {
    Ok(Run {
        program: (reader.bytes()?.to_vec(), read_identity(reader)?),
        arguments: read_texts(reader)?,
        environment: read_texts(reader)?,
        folder: reader.bytes()?.to_vec(),
        limits: read_limits(reader)?,
    })
}

fn write_place(writer: &mut Writer, place: &Place) {
    writer.bytes(&place.path).number(place.device).number(place.inode);
}

fn read_place(reader: &mut Reader<'_>) -> Result<Place, Malformed> {
    Ok(Place { path: reader.bytes()?.to_vec(), device: reader.number()?, inode: reader.number()? })
}

/// The folders of a staged workspace: how many there are says how it is staged.
fn staged_in(staging: Option<&Staged>) -> &[Place] {
    match staging {
        None => &[],
        Some(Staged::Copied(copy)) => std::slice::from_ref(copy),
        Some(Staged::Overlay(folders)) => folders,
    }
}

fn read_staging(reader: &mut Reader<'_>) -> Result<Option<Staged>, Malformed> {
    let mut places = reader.list(read_place)?;
    match (places.pop(), places.pop(), places.is_empty()) {
        (None, ..) => Ok(None),
        (Some(copy), None, _) => Ok(Some(Staged::Copied(copy))),
        (Some(work), Some(changes), true) => Ok(Some(Staged::Overlay([changes, work]))),
        _ => Err(Malformed),
    }
}

fn read_direct(reader: &mut Reader<'_>) -> Result<Option<Direct>, Malformed> {
    let mut all = reader.list(|reader| {
        let (open, held) = (read_texts(reader)?, read_texts(reader)?);
        Ok(Direct { open, held, pinned: read_texts(reader)? })
    })?;
    let direct = all.pop();
    if all.is_empty() { Ok(direct) } else { Err(Malformed) }
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

fn write_texts(writer: &mut Writer, texts: &[Vec<u8>]) {
    writer.list(texts, |writer, text| {
        writer.bytes(text);
    });
}

fn read_texts(reader: &mut Reader<'_>) -> Result<Vec<Vec<u8>>, Malformed> {
    reader.list(|reader| reader.bytes().map(<[u8]>::to_vec))
}

fn write_limits(writer: &mut Writer, limits: &ProcessLimits) {
    let ProcessLimits {
        timeout_ms,
        cpu_ms,
        memory_bytes,
        processes,
        open_files,
        file_bytes,
        tmp_bytes,
        stdout_bytes,
        stderr_bytes,
    } = *limits;
    for value in [
        timeout_ms,
        cpu_ms,
        memory_bytes,
        processes,
        open_files,
        file_bytes,
        tmp_bytes,
        stdout_bytes,
        stderr_bytes,
    ] {
        writer.number(value);
    }
}

fn read_limits(reader: &mut Reader<'_>) -> Result<ProcessLimits, Malformed> {
    Ok(ProcessLimits {
        timeout_ms: reader.number()?,
        cpu_ms: reader.number()?,
        memory_bytes: reader.number()?,
        processes: reader.number()?,
        open_files: reader.number()?,
        file_bytes: reader.number()?,
        tmp_bytes: reader.number()?,
        stdout_bytes: reader.number()?,
        stderr_bytes: reader.number()?,
    })
}
