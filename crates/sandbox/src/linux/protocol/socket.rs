//! Messages over the pair of sockets between the deciding process and its executor.
//!
//! A message may be larger than what a socket takes at once (arguments may have a million bytes),
//! so it goes in pieces: the first one says how long the whole is and brings the descriptors.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use capsule_base::limits;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The bytes of the first piece. Nearly every message fits into it, and whoever receives one touches no more
/// memory than that: after the birth of a first process each page that is touched is copied.
const FIRST_PIECE_BYTES: usize = 1_000;
/// The bytes of any other piece; well below the least that a socket buffers.
const PIECE_BYTES: usize = 16_000;
/// The largest message: a million bytes of arguments, as many of environment, and 4,096 paths.
const MAX_MESSAGE_BYTES: usize = 40_000_000;
/// The most descriptors of one message: the three streams of a command and what it waits for, or the sockets of
/// the proxy and of ports of the host.
const MAX_DESCRIPTORS: usize = 1 + limits::LOOPBACK_PORTS;
/// The length that stands before the first piece.
const LENGTH_BYTES: usize = 8;

/// What came over the socket.
pub(crate) struct Message {
    pub(crate) bytes: Vec<u8>,
    pub(crate) descriptors: Vec<OwnedFd>,
}

/// Sends a message with descriptors.
///
/// # Errors
/// The other end is gone, or the kernel refused.
pub(crate) fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    if bytes.len() > MAX_MESSAGE_BYTES || descriptors.len() > MAX_DESCRIPTORS {
        return Err(Errno::MSGSIZE);
    }
    let length = (bytes.len() as u64).to_le_bytes();
    let (first, rest) = bytes.split_at(bytes.len().min(FIRST_PIECE_BYTES));
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    send_piece(socket, &[IoSlice::new(&length), IoSlice::new(first)], &mut control)?;
    for part in rest.chunks(PIECE_BYTES) {
        send_piece(socket, &[IoSlice::new(part)], &mut SendAncillaryBuffer::default())?;
    }
    Ok(())
}

fn send_piece(
    socket: BorrowedFd<'_>,
    parts: &[IoSlice<'_>],
    control: &mut SendAncillaryBuffer<'_, '_, '_>,
) -> Result<(), Errno> {
    rustix::io::retry_on_intr(|| sendmsg(socket, parts, control, SendFlags::NOSIGNAL)).map(|_| ())
}

/// Receives a message; none if the other end is gone.
///
/// # Errors
/// What came is no message, or the kernel refused. A signal ends the waiting with `EINTR` only
/// before anything was received.
pub(crate) fn receive(socket: BorrowedFd<'_>) -> Result<Option<Message>, Errno> {
    // Not from the heap: nearly every message is a few bytes long.
    let mut buffer = [0; LENGTH_BYTES + FIRST_PIECE_BYTES];
    let mut descriptors = Vec::new();
    let got = receive_piece(socket, &mut buffer, &mut descriptors)?;
    if got == 0 {
        return Ok(None);
    }
    let received = buffer.get(..got).unwrap_or_default();
    let Some((length, first)) = received.split_first_chunk::<LENGTH_BYTES>() else {
        return Err(Errno::BADMSG);
    };
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| Errno::BADMSG)?;
    if length > MAX_MESSAGE_BYTES || first.len() > length {
        return Err(Errno::BADMSG);
    }
    let mut bytes = first.to_vec();
    while bytes.len() < length {
        let had = bytes.len();
        bytes.resize(length.min(had + PIECE_BYTES), 0);
        let part = bytes.get_mut(had..).unwrap_or_default();
        let got = rustix::io::retry_on_intr(|| receive_piece(socket, part, &mut descriptors))?;
        if got == 0 {
            return Err(Errno::BADMSG);
        }
        bytes.truncate(had + got);
    }
    Ok(Some(Message { bytes, descriptors }))
}

fn receive_piece(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received =
        recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    Ok(received.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::os::fd::AsFd as _;

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
    }

    #[test]
    fn messages_of_every_length_arrive() {
        let whole = FIRST_PIECE_BYTES + PIECE_BYTES;
        for length in [
            0,
            1,
            FIRST_PIECE_BYTES - 1,
            FIRST_PIECE_BYTES,
            FIRST_PIECE_BYTES + 1,
            PIECE_BYTES,
            whole - 1,
            whole,
            whole + 1,
            90_017,
        ] {
            let (here, there) = pair();
            let sent: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
            let copy = sent.clone();
            let sender = std::thread::spawn(move || {
                send(here.as_fd(), &copy, &[here.as_fd()]).unwrap();
                here
            });
            let message = receive(there.as_fd()).unwrap().unwrap();
            assert!(message.bytes == sent, "{length} bytes");
            assert_eq!(message.descriptors.len(), 1, "{length} bytes");
            drop(sender.join().unwrap());
        }
    }

    #[test]
    fn the_end_is_seen() {
        let (here, there) = pair();
        drop(here);
        assert!(receive(there.as_fd()).unwrap().is_none());
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let (here, there) = pair();
        rustix::io::write(&here, b"short").unwrap();
        assert!(receive(there.as_fd()).is_err());
        rustix::io::write(&here, &[0xff; 8]).unwrap();
        assert!(receive(there.as_fd()).is_err());
    }
}
