//! What a call leaves in its namespace of shared memory, semaphores and queues.
//!
//! It outlives every process of the call. The kernel frees it with the namespace, but some time after that
//! is gone, and until then its memory counts for the call after it.

use rustix::process::{Pid, getpid};

/// Room for what any of these calls says about an item or a table; none says more than 120 bytes.
#[repr(C, align(16))]
struct ItemBuffer([u8; 512]);

/// One kind of item.
struct IpcKind {
    /// The call that is about it: it takes a number, for semaphores another one, a command and room for an
    /// answer.
    call: libc::c_long,
    is_semaphore: bool,
    /// The command that asks for the highest place taken in the kernel's table (`*_INFO`).
    info: libc::c_int,
    /// The command that gives the number of the item at a place, whoever may read it (`*_STAT_ANY`).
    number: libc::c_int,
}

/// The commands are those of the kernel's `linux/shm.h`, `linux/sem.h` and `linux/msg.h`.
const KINDS: [IpcKind; 3] = [
    IpcKind { call: libc::SYS_shmctl, is_semaphore: false, info: 14, number: 15 },
    IpcKind { call: libc::SYS_semctl, is_semaphore: true, info: 19, number: 20 },
    IpcKind { call: libc::SYS_msgctl, is_semaphore: false, info: 12, number: 13 },
];

impl IpcKind {
    fn control(&self, number: libc::c_long, command: libc::c_int) -> libc::c_long {
        let mut room = ItemBuffer([0; 512]);
        let room = &raw mut room;
        if self.is_semaphore {
            // SAFETY: the kernel writes an answer, for which there is room, and looks at nothing else of
            // ours.
            unsafe { libc::syscall(self.call, number, 0, command, room) }
        } else {
            // SAFETY: the same. This process has attached no shared memory, so that none can go from
            // under it: `what_is_left_does_not_count_for_the_next_command` would break.
            unsafe { libc::syscall(self.call, number, command, room) }
        }
    }
}

/// Removes all of it. Only the first process of a namespace does so, when every other one is gone;
/// anywhere else nothing is done, since there it would be that of the user. What it may not remove goes with
/// the namespace.
pub(crate) fn remove_all_items() {
    if getpid() != Pid::INIT {
        return;
    }
    for kind in KINDS {
        // Less than 0 where the call is ruled out.
        for place in 0..=kind.control(0, kind.info) {
            let number = kind.control(place, kind.number);
            if number >= 0 {
                let _ = kind.control(number, libc::IPC_RMID);
            }
        }
    }
}
