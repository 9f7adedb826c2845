//! What a row of the table says about one system call.

/// A system call, what becomes of it, and why.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    /// Its name, as the C library's constant has it.
    #[cfg_attr(not(test), expect(dead_code, reason = "written for readers; a test looks at it"))]
    pub(crate) name: &'static str,
    /// Its number on this machine.
    pub(crate) number: u32,
    /// What becomes of it in a command.
    pub(crate) command: Rule,
    /// What becomes of it in the executor and while a call is set up; the same as in a command
    /// unless the executor needs more.
    pub(crate) executor: Option<Rule>,
    /// Why.
    #[cfg_attr(not(test), expect(dead_code, reason = "written for readers; a test looks at it"))]
    pub(crate) why: &'static str,
}

/// What becomes of a system call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// It is made.
    Allow,
    /// It fails with `EPERM`: known and ruled out.
    Refuse,
    /// It fails with `ENOSYS`, as on a kernel that does not have it, so that programs fall back.
    Absent,
    /// It is made if one of the clauses holds, else it fails with the error.
    When(&'static [Clause], i32),
    /// The process is killed.
    Kill,
}

/// Checks that must all hold.
pub(crate) type Clause = &'static [Check];

/// A check of one argument: half of it, masked, is one of the values, or none of them.
///
/// Numbers are compared by their low half alone, because each one that the table looks at is one
/// that the kernel itself cuts to 32 bits: a filter that compared all 64 could be passed by setting
/// bits that the kernel then ignores. Pointers are compared by both halves.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Check {
    /// Which argument, from 0.
    pub(crate) argument: u32,
    /// Its upper half.
    pub(crate) high: bool,
    /// Which bits are looked at.
    pub(crate) mask: u32,
    /// The values that pass.
    pub(crate) values: &'static [u32],
    /// All others pass instead.
    pub(crate) inverted: bool,
}

#[cfg(test)]
impl Rule {
    /// What the filter answers, worked out without one.
    pub(crate) fn answer(self, arguments: [u64; 6]) -> u32 {
        let error = |code: i32| libc::SECCOMP_RET_ERRNO | code as u32;
        let holds = |check: &Check| {
            let argument = arguments[check.argument as usize];
            let half = if check.high { argument >> 32 } else { argument } as u32;
            check.values.contains(&(half & check.mask)) != check.inverted
        };
        match self {
            Self::Allow => libc::SECCOMP_RET_ALLOW,
            Self::Refuse => error(libc::EPERM),
            Self::Absent => error(libc::ENOSYS),
            Self::Kill => libc::SECCOMP_RET_KILL_PROCESS,
            Self::When(clauses, _) if clauses.iter().any(|all| all.iter().all(holds)) => {
                libc::SECCOMP_RET_ALLOW
            }
            Self::When(_, code) => error(code),
        }
    }
}

/// The argument is one of the values.
pub(crate) const fn one_of(argument: u32, values: &'static [u32]) -> Check {
    Check { argument, high: false, mask: u32::MAX, values, inverted: false }
}

/// The argument is none of the values.
pub(crate) const fn none_of(argument: u32, values: &'static [u32]) -> Check {
    Check { argument, high: false, mask: u32::MAX, values, inverted: true }
}

/// The argument, after masking, is one of the values.
pub(crate) const fn masked(argument: u32, mask: u32, values: &'static [u32]) -> Check {
    Check { argument, high: false, mask, values, inverted: false }
}

/// Together with `one_of(argument, &[0])`: the argument is no pointer.
pub(crate) const fn high_is_zero(argument: u32) -> Check {
    Check { argument, high: true, mask: u32::MAX, values: &[0], inverted: false }
}

/// A row: `call!(SYS_read, Rule::Allow, "why")`, with a fourth part where the executor may more.
macro_rules! call {
    ($number:ident, $rule:expr, $why:literal) => {
        crate::linux::seccomp::rule::Call {
            name: stringify!($number),
            number: libc::$number as u32,
            command: $rule,
            executor: None,
            why: $why,
        }
    };
    ($number:ident, $rule:expr, executor $executor:expr, $why:literal) => {
        crate::linux::seccomp::rule::Call {
            name: stringify!($number),
            number: libc::$number as u32,
            command: $rule,
            executor: Some($executor),
            why: $why,
        }
    };
}
pub(crate) use call;
