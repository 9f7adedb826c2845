//! An interpreter of the packet filter, for tests: what the kernel would answer.

use libc::sock_filter;

/// What a process asks.
pub(crate) struct SyscallData {
    pub(crate) number: u32,
    pub(crate) architecture: u32,
    pub(crate) arguments: [u64; 6],
}

impl SyscallData {
    /// The word of `struct seccomp_data` at an offset.
    fn word(&self, offset: u32) -> u32 {
        match offset {
            0 => self.number,
            4 => self.architecture,
            offset => {
                let argument = self.arguments[(offset as usize - 16) / 8];
                if offset % 8 == 0 { argument as u32 } else { (argument >> 32) as u32 }
            }
        }
    }
}

/// Runs a filter to its answer.
pub(crate) fn run_filter(filter: &[sock_filter], asked: &SyscallData) -> u32 {
    let (mut accumulator, mut at) = (0_u32, 0_usize);
    loop {
        let step = &filter[at];
        at += 1;
        match step.code {
            0x20 => accumulator = asked.word(step.k),
            0x54 => accumulator &= step.k,
            0x05 => at += step.k as usize,
            0x15 => at += usize::from(if accumulator == step.k { step.jt } else { step.jf }),
            0x35 => at += usize::from(if accumulator >= step.k { step.jt } else { step.jf }),
            0x06 => return step.k,
            other => panic!("instruction {other:#x}"),
        }
    }
}
