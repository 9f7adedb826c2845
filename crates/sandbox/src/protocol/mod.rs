//! What the deciding process and its executor say to each other.
//!
//! Both are the same program, so nothing here is versioned. What crosses is plain: numbers, bytes,
//! and descriptors beside them. The executor takes no decision: it is told what to show, what to
//! hide and what to run.

mod begin;
mod run;
pub(crate) mod socket;
mod step;
mod verdict;
mod wire;

use capsule_core::confinement::SandboxStatus;
use capsule_core::limits;
use rustix::io::Errno;

pub(crate) use begin::Begin;
pub(crate) use run::{Run, Stage};
use run::{read_run, write_run};
pub(crate) use step::{At, Failed, Step};
pub(crate) use verdict::{End, Verdict, decode_verdict, encode_verdict};
pub(crate) use wire::Malformed;
use wire::{Reader, Writer};

/// What the executor is asked to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Build the view. Once a run.
    Enter(Enter),
    /// Hide paths from it, and run a command in it. Descriptors: the word that it may begin ([`Begin`]),
    /// standard output, standard error, and standard input unless that is empty.
    Run {
        /// Whether it may change the staged workspace.
        writes: bool,
        /// What it may change in the workspace itself.
        direct: Option<Direct>,
        /// Every path that is hidden now.
        masks: Vec<Vec<u8>>,
        /// Whether no other command is expected.
        last: bool,
        /// The command.
        run: Run,
    },
    /// End the command that was asked for last. If it has ended by itself meanwhile, that is fine.
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

/// What the executor answers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// First of all: what it can hold on this machine.
    Hello(SandboxStatus),
    /// The view stands. Descriptor: the staged workspace, if there is one.
    Entered {
        /// Where commands see the folder in which they may write.
        tmp: Vec<u8>,
    },
    /// Every process of the command is gone.
    Ended(Ended),
    /// It was not done.
    Refused(Refusal),
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Ended {
    /// How each program ended, as the kernel encodes it; empty if they were killed from outside.
    pub(crate) statuses: Vec<i32>,
    /// It took more memory than it may.
    pub(crate) out_of_memory: bool,
    /// It took more time than it may.
    pub(crate) out_of_time: bool,
    /// Its processes took more processor time than they may together.
    pub(crate) out_of_processor: bool,
    /// It wanted more processes than it may.
    pub(crate) crowded: bool,
    /// It was seen with as many processes as it may have. Whether it wanted more, nobody knows.
    pub(crate) full: bool,
    /// How many processes ran on when its last program had ended, and were ended.
    pub(crate) left_running: u64,
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
    /// A program is not the one that was decided on.
    ProgramChanged(Number),
    /// There is no such program in the view.
    ProgramMissing(Number),
    /// It cannot be executed.
    NotExecutable(Number, Errno),
    /// A redirection cannot be opened: the program's number, its own among the program's, and why;
    /// without an errno, because what is there is no plain file.
    Redirect(Number, Number, Option<Errno>),
}

/// A place in a list that is shorter than 256. Not the text that stands there: who is told has it,
/// and the less the first process of a call can say, the better.
pub(crate) type Number = u8;

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
            Self::Run { writes, direct, masks, last, run } => {
                writer.byte(1).byte(u8::from(*writes)).byte(u8::from(*last));
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
                last: reader.byte()? == 1,
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
            Self::Ended(ended) => {
                writer.byte(2);
                write_statuses(&mut writer, &ended.statuses);
                writer.byte(u8::from(ended.out_of_memory));
                writer.byte(u8::from(ended.out_of_time));
                writer.byte(u8::from(ended.out_of_processor));
                writer.byte(u8::from(ended.crowded)).byte(u8::from(ended.full));
                writer.number(ended.left_running).byte(u8::from(ended.tmp_full));
                writer.byte(u8::from(ended.peak_memory.is_some()));
                writer.number(ended.peak_memory.unwrap_or_default());
            }
            Self::Refused(refusal) => {
                writer.byte(3);
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
            2 => {
                let statuses = read_statuses(&mut reader)?;
                let (out_of_memory, out_of_time) = (reader.byte()? == 1, reader.byte()? == 1);
                let out_of_processor = reader.byte()? == 1;
                let (crowded, full) = (reader.byte()? == 1, reader.byte()? == 1);
                let (left_running, tmp_full) = (reader.number()?, reader.byte()? == 1);
                let (seen, peak) = (reader.byte()? == 1, reader.number()?);
                Self::Ended(Ended {
                    statuses,
                    out_of_memory,
                    out_of_time,
                    out_of_processor,
                    crowded,
                    full,
                    left_running,
                    tmp_full,
                    peak_memory: seen.then_some(peak),
                })
            }
            3 => Self::Refused(read_refusal(&mut reader)?),
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
        Refusal::ProgramChanged(stage) => {
            writer.byte(1).byte(stage);
        }
        Refusal::ProgramMissing(stage) => {
            writer.byte(2).byte(stage);
        }
        Refusal::NotExecutable(stage, errno) => {
            writer.byte(3).byte(stage).signed(errno.raw_os_error());
        }
        Refusal::Redirect(stage, redirect, errno) => {
            writer.byte(4).byte(stage).byte(redirect).byte(u8::from(errno.is_some()));
            if let Some(errno) = errno {
                writer.signed(errno.raw_os_error());
            }
        }
    }
}

fn read_refusal(reader: &mut Reader<'_>) -> Result<Refusal, Malformed> {
    Ok(match reader.byte()? {
        0 => Refusal::Failed(Failed {
            step: Step::read(reader.byte()?)?,
            errno: read_errno(reader)?,
        }),
        1 => Refusal::ProgramChanged(reader.byte()?),
        2 => Refusal::ProgramMissing(reader.byte()?),
        3 => Refusal::NotExecutable(reader.byte()?, read_errno(reader)?),
        4 => {
            let (stage, redirect) = (reader.byte()?, reader.byte()?);
            let errno = match reader.byte()? {
                0 => None,
                _ => Some(read_errno(reader)?),
            };
            Refusal::Redirect(stage, redirect, errno)
        }
        _ => return Err(Malformed),
    })
}

fn write_statuses(writer: &mut Writer, statuses: &[i32]) {
    writer.list(statuses, |writer, status| {
        writer.signed(*status);
    });
}

fn read_statuses(reader: &mut Reader<'_>) -> Result<Vec<i32>, Malformed> {
    let statuses = reader.list(Reader::signed)?;
    if statuses.len() <= limits::PIPELINE_STAGES { Ok(statuses) } else { Err(Malformed) }
}

fn read_errno(reader: &mut Reader<'_>) -> Result<Errno, Malformed> {
    let number = reader.signed()?;
    if (1..4_096).contains(&number) { Ok(Errno::from_raw_os_error(number)) } else { Err(Malformed) }
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

fn write_texts(writer: &mut Writer, texts: &[Vec<u8>]) {
    writer.list(texts, |writer, text| {
        writer.bytes(text);
    });
}

fn read_texts(reader: &mut Reader<'_>) -> Result<Vec<Vec<u8>>, Malformed> {
    reader.list(|reader| reader.bytes().map(<[u8]>::to_vec))
}
