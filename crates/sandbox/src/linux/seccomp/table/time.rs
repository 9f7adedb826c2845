//! Clocks, timers and waiting.

use crate::linux::seccomp::rule::Rule::{Allow, Refuse};
use crate::linux::seccomp::rule::{Call, call};

pub(super) const CALLS: &[Call] = &[
    call!(SYS_clock_gettime, Allow, "what time it is"),
    call!(SYS_clock_getres, Allow, "how fine a clock is"),
    call!(SYS_clock_nanosleep, Allow, "sleep"),
    call!(SYS_nanosleep, Allow, "sleep"),
    call!(SYS_gettimeofday, Allow, "what time it is"),
    call!(SYS_times, Allow, "what was used"),
    call!(SYS_getitimer, Allow, "timers"),
    call!(SYS_setitimer, Allow, "timers"),
    call!(SYS_timer_create, Allow, "timers; their number is bounded"),
    call!(SYS_timer_settime, Allow, "timers"),
    call!(SYS_timer_gettime, Allow, "timers"),
    call!(SYS_timer_getoverrun, Allow, "timers"),
    call!(SYS_timer_delete, Allow, "timers"),
    call!(SYS_timerfd_create, Allow, "timers as descriptors"),
    call!(SYS_timerfd_settime, Allow, "timers as descriptors"),
    call!(SYS_timerfd_gettime, Allow, "timers as descriptors"),
    call!(SYS_ppoll, Allow, "wait for descriptors"),
    call!(SYS_pselect6, Allow, "wait for descriptors"),
    call!(SYS_epoll_create1, Allow, "wait for many descriptors"),
    call!(SYS_epoll_ctl, Allow, "wait for many descriptors"),
    call!(SYS_epoll_pwait, Allow, "wait for many descriptors"),
    call!(SYS_epoll_pwait2, Allow, "wait for many descriptors"),
    call!(SYS_eventfd2, Allow, "wake another thread"),
    call!(SYS_clock_settime, Refuse, "the machine's clock"),
    call!(SYS_clock_adjtime, Refuse, "the machine's clock"),
    call!(SYS_adjtimex, Refuse, "the machine's clock"),
    call!(SYS_settimeofday, Refuse, "the machine's clock"),
];
