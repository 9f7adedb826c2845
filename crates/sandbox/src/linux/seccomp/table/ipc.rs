//! Queues, semaphores and shared memory. Each call has a namespace of its own for them, which is
//! emptied when it ends.

use crate::linux::seccomp::rule::Rule::{Allow, Refuse};
use crate::linux::seccomp::rule::{Call, call};

pub(super) const CALLS: &[Call] = &[
    call!(SYS_shmget, Allow, "shared memory of one's own namespace; databases need it"),
    call!(SYS_shmat, Allow, "shared memory"),
    call!(SYS_shmdt, Allow, "shared memory"),
    call!(SYS_shmctl, Allow, "shared memory"),
    call!(SYS_semget, Allow, "semaphores of one's own namespace"),
    call!(SYS_semop, Allow, "semaphores"),
    call!(SYS_semtimedop, Allow, "semaphores"),
    call!(SYS_semctl, Allow, "semaphores"),
    call!(SYS_msgget, Allow, "queues of one's own namespace"),
    call!(SYS_msgsnd, Allow, "queues"),
    call!(SYS_msgrcv, Allow, "queues"),
    call!(SYS_msgctl, Allow, "queues"),
    call!(SYS_mq_open, Allow, "queues by name of one's own namespace"),
    call!(SYS_mq_unlink, Allow, "queues by name"),
    call!(SYS_mq_timedsend, Allow, "queues by name"),
    call!(SYS_mq_timedreceive, Allow, "queues by name"),
    call!(SYS_mq_notify, Allow, "queues by name"),
    call!(SYS_mq_getsetattr, Allow, "queues by name"),
    call!(SYS_add_key, Refuse, "key rings reach beyond the namespace"),
    call!(SYS_request_key, Refuse, "key rings reach beyond the namespace"),
    call!(SYS_keyctl, Refuse, "key rings reach beyond the namespace"),
];
