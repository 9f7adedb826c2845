//! Where the streams of a program lead instead.
//!
//! Everything is opened by the first process of a call, behind the walls that its programs run behind:
//! so a redirection opens nothing that the program itself could not.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fcntl_setfl, fstat, open, openat2};
use rustix::io::Errno;

use super::host_path;
use super::system::TMP;
use crate::{RedirectTarget, StandardDevice, StandardStream, StreamRedirect};

/// How often a path is looked up anew that was renamed meanwhile.
const ATTEMPTS: usize = 16;

/// What the three streams of a program lead to.
pub(super) struct ProgramStreams {
    pub(super) input: Rc<OwnedFd>,
    pub(super) output: Rc<OwnedFd>,
    pub(super) error: Rc<OwnedFd>,
}

/// Why something was not opened.
pub(super) enum RedirectError {
    /// The kernel refused.
    Refused(Errno),
    /// It is a folder, a pipe or a device: a program could wait for ever for what comes out of it.
    NotRegular,
}

impl From<Errno> for RedirectError {
    fn from(errno: Errno) -> Self {
        Self::Refused(errno)
    }
}

impl ProgramStreams {
    fn stream_mut(&mut self, descriptor: StandardStream) -> &mut Rc<OwnedFd> {
        match descriptor {
            StandardStream::Input => &mut self.input,
            StandardStream::Output => &mut self.output,
            StandardStream::Error => &mut self.error,
        }
    }

    /// Leads a stream elsewhere. This process stands in the workspace; `folder` is where the program
    /// will.
    ///
    /// # Errors
    /// What it is to lead to cannot be opened.
    pub(super) fn redirect(
        &mut self,
        to: &StreamRedirect,
        folder: &[u8],
    ) -> Result<(), RedirectError> {
        let reading = OFlags::RDONLY;
        let making = OFlags::WRONLY | OFlags::CREATE;
        let end = match &to.target {
            RedirectTarget::Read(path) => Rc::new(open_regular(folder, path, reading)?),
            RedirectTarget::Create(path) => {
                Rc::new(open_regular(folder, path, making | OFlags::TRUNC)?)
            }
            RedirectTarget::Append(path) => {
                Rc::new(open_regular(folder, path, making | OFlags::APPEND)?)
            }
            RedirectTarget::Device(device) => {
                // Nothing writes to the others.
                let how =
                    if *device == StandardDevice::Null { OFlags::RDWR } else { OFlags::RDONLY };
                Rc::new(open(device.path(), how | OFlags::CLOEXEC, Mode::empty())?)
            }
            RedirectTarget::Same(other) => Rc::clone(self.stream_mut(*other)),
        };
        *self.stream_mut(to.descriptor) = end;
        Ok(())
    }
}

/// Opens a plain file in the workspace, or in the `/tmp` of the sandbox by an absolute path. It never waits: not for the
/// other end of a pipe either.
fn open_regular(folder: &[u8], path: &OsStr, how: OFlags) -> Result<OwnedFd, RedirectError> {
    let flags = how | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    // The mask of permissions takes away what it takes from all that programs make.
    let mode = if how.contains(OFlags::CREATE) { 0o666 } else { 0 };
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    // Another path from the root takes the place of the folder's, and leads out of the workspace.
    let path = host_path::bytes_to_path(folder).join(path);
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let (from, path, resolve) = match path.strip_prefix(TMP) {
        // No link there leads into a workspace that lies below it.
        Ok(rest) => {
            let rest = if rest.as_os_str().is_empty() { Path::new(".") } else { rest };
            (open(TMP, directory, Mode::empty())?, rest, beneath | ResolveFlags::NO_XDEV)
        }
        Err(_) => (open(".", directory, Mode::empty())?, path.as_path(), beneath),
    };
    let look = || openat2(&from, path, flags, Mode::from_raw_mode(mode), resolve);
    let mut found = look();
    for _ in 1..ATTEMPTS {
        if !matches!(found, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
        found = look();
    }
    let file = found?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(RedirectError::NotRegular);
    }
    fcntl_setfl(&file, how & OFlags::APPEND)?;
    Ok(file)
}
