//! What the deciding process and its executor say to each other.
//!
//! Both are the same program, so nothing here is versioned. What crosses is plain: numbers, bytes,
//! and descriptors beside them. The executor takes no decision: it is told what to show, what to
//! hide and what to run.

mod agent;
mod command;
mod init_result;
pub(crate) mod socket;
mod start_gate;
mod step;
mod wire;

use capsule_base::limits;
use capsule_core::confinement::SandboxStatus;
use rustix::io::Errno;

pub(crate) use agent::{AgentMountPath, AgentOrder, AgentReply, AgentRequest};
pub(crate) use command::{CommandMessage, StageMessage};
use command::{read_command, write_command};
pub(crate) use init_result::{InitReport, InitResult, decode_init_result, encode_init_result};
pub(crate) use start_gate::StartGate;
pub(crate) use step::{AtStep, SetupError, Step};
pub(crate) use wire::Malformed;
use wire::{Reader, Writer, read_texts, write_texts};

/// What the executor is asked to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ExecutorRequest {
    /// Build the view. Once a run.
    Enter(EnterRequest),
    /// Hide paths from it, and run a command in it. Descriptors: the word that it may begin ([`Begin`]),
    /// standard output, standard error, and standard input unless that is empty.
    Run {
        /// Whether it may change the staged workspace.
        writes: bool,
        /// Whether links in `/tmp` lead it nowhere.
        ignores_tmp_links: bool,
        /// What it may change in the workspace itself.
        direct: Option<DirectPaths>,
        /// Every path that is hidden now.
        hidden: Vec<Vec<u8>>,
        /// Whether no other command is expected.
        is_last: bool,
        /// The command.
        run: CommandMessage,
    },
    /// Listen on a port of the calls' own loopback, and on each of these. Once, behind the view.
    Listen { ports: Vec<u16> },
    /// Make a copy that serves one command beside those of this one, behind the view.
    Fork,
    /// End the command that was asked for last. If it has ended by itself meanwhile, that is fine.
    End,
    /// The time of the command stops: it waits for a person.
    Pause,
    /// Its time goes on.
    Resume,
}

/// What a run sees.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EnterRequest {
    /// The root of the workspace.
    pub(crate) workspace: HostPath,
    /// The absolute path at which commands see it, and then those that become links to it.
    pub(crate) names: Vec<Vec<u8>>,
    /// Where its changes are collected.
    pub(crate) staging: Option<StagingPaths>,
    /// Paths in it that are hidden.
    pub(crate) hidden: Vec<Vec<u8>>,
    /// Files and folders outside the system's, and where they appear.
    pub(crate) programs: Vec<(Vec<u8>, HostPath)>,
    /// Git's configuration, and the patterns of files that it ignores.
    pub(crate) git_files: [Vec<u8>; 2],
    /// Directories and files of toolchains.
    pub(crate) toolchains: Vec<ToolchainPath>,
    /// The directory of a repository, and a text for a file in it.
    pub(crate) repository: Vec<ToolchainPath>,
}

/// A directory or file of a toolchain, and where it appears.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ToolchainPath {
    pub(crate) path: Vec<u8>,
    /// None for an empty directory, or for a file with a text.
    pub(crate) place: Option<HostPath>,
    /// What a command reads in a file at the path.
    pub(crate) text: Option<Vec<u8>>,
    /// Whether what a command writes there vanishes with the call.
    pub(crate) discards_writes: bool,
    /// Paths in it that are hidden.
    pub(crate) hidden: Vec<Vec<u8>>,
}

/// How the changes of a run are collected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StagingPaths {
    /// In a folder that is laid over the workspace; the second one the kernel uses for that.
    Overlay([HostPath; 2]),
    /// In a copy of the workspace, which is shown in its place.
    Copied(HostPath),
}

/// What a command may change in the workspace itself: what is open, what is held in it, and the
/// folders that stay where they are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DirectPaths {
    pub(crate) writable: Vec<Vec<u8>>,
    pub(crate) read_only: Vec<Vec<u8>>,
    pub(crate) pinned: Vec<Vec<u8>>,
}

/// A file or folder of the host: by path, and by what must be found there. A descriptor would not
/// do: it belongs to the mounts of the process that opened it, and mounts of one namespace cannot
/// be bound in another. The deciding process holds it open meanwhile, so that its number cannot
/// come to mean another file.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(crate) struct HostPath {
    pub(crate) path: Vec<u8>,
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// What the executor answers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ExecutorReply {
    /// First of all: what it can hold on this machine.
    Status(SandboxStatus),
    /// The view stands. Descriptor: the staged workspace, if there is one.
    Entered {
        /// Where commands see the directory for temporary files, and then their home directory.
        private: [Vec<u8>; 2],
    },
    /// It listens. Descriptors: the socket of the port that it chose, and one for each port that was asked for.
    Listening { port: u16 },
    /// A copy was made. Descriptor: the socket on which it is spoken to.
    Forked,
    /// Every process of the command is gone.
    Ended(EndReport),
    /// It was not done.
    Refused(ExecutorError),
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct EndReport {
    /// How each program ended, as the kernel encodes it; empty if they were killed from outside.
    pub(crate) statuses: Vec<i32>,
    /// It took more memory than it may.
    pub(crate) out_of_memory: bool,
    /// It took more time than it may.
    pub(crate) out_of_time: bool,
    /// Its processes took more processor time than they may together.
    pub(crate) out_of_cpu: bool,
    /// It wanted more processes than it may.
    pub(crate) process_limit_hit: bool,
    /// It was seen with as many processes as it may have. Whether it wanted more, nobody knows.
    pub(crate) at_process_limit: bool,
    /// How many processes ran on when its last program had ended, and were ended.
    pub(crate) left_running: u64,
    /// It filled its `/tmp`.
    pub(crate) tmp_full: bool,
    /// The most memory that was seen, in bytes.
    pub(crate) peak_memory: Option<u64>,
}

/// Why something was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExecutorError {
    /// A step of the set-up failed.
    Failed(SetupError),
    /// A program is not the one that was decided on.
    ProgramChanged(ListIndex),
    /// There is no such program in the view.
    ProgramMissing(ListIndex),
    /// It cannot be executed.
    NotExecutable(ListIndex, Errno),
    /// A redirection cannot be opened: the program's number, its own among the program's, and why;
    /// without an errno, because what is there is no plain file.
    Redirect(ListIndex, ListIndex, Option<Errno>),
}

/// A place in a list that is shorter than 256. Not the text that stands there: who is told has it,
/// and the less the first process of a call can say, the better.
pub(crate) type ListIndex = u8;

impl ExecutorRequest {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        match self {
            Self::Enter(enter) => {
                writer.byte(0);
                write_path(&mut writer, &enter.workspace);
                write_texts(&mut writer, &enter.names);
                writer.list(staging_paths(enter.staging.as_ref()), write_path);
                write_texts(&mut writer, &enter.hidden);
                writer.list(&enter.programs, |writer, (target, place)| {
                    writer.bytes(target);
                    write_path(writer, place);
                });
                writer.list(&enter.toolchains, write_toolchain);
                writer.list(&enter.repository, write_toolchain);
                let [config, ignored] = &enter.git_files;
                writer.bytes(config).bytes(ignored);
            }
            Self::Run { writes, ignores_tmp_links, direct, hidden: masks, is_last, run } => {
                writer.byte(1);
                for flag in [writes, ignores_tmp_links, is_last] {
                    writer.byte(u8::from(*flag));
                }
                writer.list(
                    direct.as_slice(),
                    |writer, DirectPaths { writable: open, read_only: held, pinned }| {
                        [open, held, pinned]
                            .into_iter()
                            .for_each(|paths| write_texts(writer, paths));
                    },
                );
                write_texts(&mut writer, masks);
                write_command(&mut writer, run);
            }
            Self::End => {
                writer.byte(2);
            }
            Self::Pause => {
                writer.byte(4);
            }
            Self::Resume => {
                writer.byte(5);
            }
            Self::Fork => {
                writer.byte(6);
            }
            Self::Listen { ports } => {
                writer.byte(3);
                write_ports(&mut writer, ports);
            }
        }
        writer.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let request = match reader.byte()? {
            0 => Self::Enter(EnterRequest {
                workspace: read_path(&mut reader)?,
                names: read_texts(&mut reader)?,
                staging: read_staging(&mut reader)?,
                hidden: read_texts(&mut reader)?,
                programs: reader
                    .list(|reader| Ok((reader.bytes()?.to_vec(), read_path(reader)?)))?,
                toolchains: reader.list(read_toolchain)?,
                repository: reader.list(read_toolchain)?,
                git_files: [reader.bytes()?.to_vec(), reader.bytes()?.to_vec()],
            }),
            1 => Self::Run {
                writes: reader.byte()? == 1,
                ignores_tmp_links: reader.byte()? == 1,
                is_last: reader.byte()? == 1,
                direct: read_direct(&mut reader)?,
                hidden: read_texts(&mut reader)?,
                run: read_command(&mut reader)?,
            },
            2 => Self::End,
            3 => Self::Listen { ports: reader.list(read_port)? },
            4 => Self::Pause,
            5 => Self::Resume,
            6 => Self::Fork,
            _ => return Err(Malformed),
        };
        reader.end()?;
        Ok(request)
    }
}

impl ExecutorReply {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        match self {
            Self::Status(status) => {
                // A list of texts always has a JSON form; an empty one would be refused when read.
                writer.byte(0).bytes(&serde_json::to_vec(status).unwrap_or_default());
            }
            Self::Entered { private: [tmp, home] } => {
                writer.byte(1).bytes(tmp).bytes(home);
            }
            Self::Ended(ended) => {
                writer.byte(2);
                write_statuses(&mut writer, &ended.statuses);
                writer.byte(u8::from(ended.out_of_memory));
                writer.byte(u8::from(ended.out_of_time));
                writer.byte(u8::from(ended.out_of_cpu));
                writer
                    .byte(u8::from(ended.process_limit_hit))
                    .byte(u8::from(ended.at_process_limit));
                writer.number(ended.left_running).byte(u8::from(ended.tmp_full));
                writer.byte(u8::from(ended.peak_memory.is_some()));
                writer.number(ended.peak_memory.unwrap_or_default());
            }
            Self::Refused(refusal) => {
                writer.byte(3);
                write_error(&mut writer, *refusal);
            }
            Self::Listening { port } => {
                writer.byte(4).number(u64::from(*port));
            }
            Self::Forked => {
                writer.byte(5);
            }
        }
        writer.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let reply = match reader.byte()? {
            0 => Self::Status(serde_json::from_slice(reader.bytes()?).map_err(|_| Malformed)?),
            1 => Self::Entered { private: [reader.bytes()?.to_vec(), reader.bytes()?.to_vec()] },
            2 => {
                let statuses = read_statuses(&mut reader)?;
                let (out_of_memory, out_of_time) = (reader.byte()? == 1, reader.byte()? == 1);
                let out_of_processor = reader.byte()? == 1;
                let (crowded, full) = (reader.byte()? == 1, reader.byte()? == 1);
                let (left_running, tmp_full) = (reader.number()?, reader.byte()? == 1);
                let (seen, peak) = (reader.byte()? == 1, reader.number()?);
                Self::Ended(EndReport {
                    statuses,
                    out_of_memory,
                    out_of_time,
                    out_of_cpu: out_of_processor,
                    process_limit_hit: crowded,
                    at_process_limit: full,
                    left_running,
                    tmp_full,
                    peak_memory: seen.then_some(peak),
                })
            }
            3 => Self::Refused(read_error(&mut reader)?),
            4 => Self::Listening { port: read_port(&mut reader)? },
            5 => Self::Forked,
            _ => return Err(Malformed),
        };
        reader.end()?;
        Ok(reply)
    }
}

/// Writes a list of ports.
fn write_ports(writer: &mut Writer, ports: &[u16]) {
    writer.list(ports, |writer, port| {
        writer.number(u64::from(*port));
    });
}

fn write_error(writer: &mut Writer, refusal: ExecutorError) {
    match refusal {
        ExecutorError::Failed(SetupError { step, errno }) => {
            writer.byte(0).byte(step as u8).signed(errno.raw_os_error());
        }
        ExecutorError::ProgramChanged(stage) => {
            writer.byte(1).byte(stage);
        }
        ExecutorError::ProgramMissing(stage) => {
            writer.byte(2).byte(stage);
        }
        ExecutorError::NotExecutable(stage, errno) => {
            writer.byte(3).byte(stage).signed(errno.raw_os_error());
        }
        ExecutorError::Redirect(stage, redirect, errno) => {
            writer.byte(4).byte(stage).byte(redirect).byte(u8::from(errno.is_some()));
            if let Some(errno) = errno {
                writer.signed(errno.raw_os_error());
            }
        }
    }
}

fn read_error(reader: &mut Reader<'_>) -> Result<ExecutorError, Malformed> {
    Ok(match reader.byte()? {
        0 => ExecutorError::Failed(SetupError {
            step: Step::read(reader.byte()?)?,
            errno: read_errno(reader)?,
        }),
        1 => ExecutorError::ProgramChanged(reader.byte()?),
        2 => ExecutorError::ProgramMissing(reader.byte()?),
        3 => ExecutorError::NotExecutable(reader.byte()?, read_errno(reader)?),
        4 => {
            let (stage, redirect) = (reader.byte()?, reader.byte()?);
            let errno = match reader.byte()? {
                0 => None,
                _ => Some(read_errno(reader)?),
            };
            ExecutorError::Redirect(stage, redirect, errno)
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

fn read_port(reader: &mut Reader<'_>) -> Result<u16, Malformed> {
    u16::try_from(reader.number()?).map_err(|_| Malformed)
}

fn read_errno(reader: &mut Reader<'_>) -> Result<Errno, Malformed> {
    let number = reader.signed()?;
    if (1..4_096).contains(&number) { Ok(Errno::from_raw_os_error(number)) } else { Err(Malformed) }
}

fn write_path(writer: &mut Writer, place: &HostPath) {
    writer.bytes(&place.path).number(place.device).number(place.inode);
}

fn write_toolchain(writer: &mut Writer, shown: &ToolchainPath) {
    writer.bytes(&shown.path);
    writer.list(shown.place.as_slice(), write_path);
    write_texts(writer, shown.text.as_slice());
    writer.byte(u8::from(shown.discards_writes));
    write_texts(writer, &shown.hidden);
}

fn read_toolchain(reader: &mut Reader<'_>) -> Result<ToolchainPath, Malformed> {
    Ok(ToolchainPath {
        path: reader.bytes()?.to_vec(),
        place: reader.list(read_path)?.pop(),
        text: read_texts(reader)?.pop(),
        discards_writes: reader.byte()? == 1,
        hidden: read_texts(reader)?,
    })
}

fn read_path(reader: &mut Reader<'_>) -> Result<HostPath, Malformed> {
    Ok(HostPath {
        path: reader.bytes()?.to_vec(),
        device: reader.number()?,
        inode: reader.number()?,
    })
}

/// The folders of a staged workspace: how many there are says how it is staged.
fn staging_paths(staging: Option<&StagingPaths>) -> &[HostPath] {
    match staging {
        None => &[],
        Some(StagingPaths::Copied(copy)) => std::slice::from_ref(copy),
        Some(StagingPaths::Overlay(folders)) => folders,
    }
}

fn read_staging(reader: &mut Reader<'_>) -> Result<Option<StagingPaths>, Malformed> {
    let mut places = reader.list(read_path)?;
    match (places.pop(), places.pop(), places.is_empty()) {
        (None, ..) => Ok(None),
        (Some(copy), None, _) => Ok(Some(StagingPaths::Copied(copy))),
        (Some(work), Some(changes), true) => Ok(Some(StagingPaths::Overlay([changes, work]))),
        _ => Err(Malformed),
    }
}

fn read_direct(reader: &mut Reader<'_>) -> Result<Option<DirectPaths>, Malformed> {
    let mut all = reader.list(|reader| {
        let (open, held) = (read_texts(reader)?, read_texts(reader)?);
        Ok(DirectPaths { writable: open, read_only: held, pinned: read_texts(reader)? })
    })?;
    let direct = all.pop();
    if all.is_empty() { Ok(direct) } else { Err(Malformed) }
}
