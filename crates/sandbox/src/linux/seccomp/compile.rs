//! From rules to a program of the kernel's packet filter: a balanced tree of comparisons.
//!
//! The kernel runs the filter at every system call, and once for every number when it is attached.
//! A list of comparisons would take hundreds of steps each time; the tree takes about eight.

use libc::sock_filter;

use super::rule::{Check, Rule};

/// The most instructions that the kernel takes.
const MAX_INSTRUCTIONS: usize = 4_096;
/// Numbers from here on belong to the x32 interface of x86_64.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;
/// Numbers from here on are negative; no interface has them.
const NEGATIVE: u32 = 0x8000_0000;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;

// Where things lie in `struct seccomp_data`; both machines are little-endian.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const JUMP: u16 = 0x05; // BPF_JMP | BPF_JA
const IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const IF_AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const AND: u16 = 0x54; // BPF_ALU | BPF_AND | BPF_K
const RETURN: u16 = 0x06; // BPF_RET | BPF_K

/// A filter that is ready to be attached.
pub(crate) type Filter = Vec<sock_filter>;

/// The filter would be longer than the kernel takes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Compiles rules by number into a filter; what no rule names gets `otherwise`.
///
/// # Errors
/// The filter would be longer than the kernel takes.
pub(crate) fn compile_filter(rules: &[(u32, Rule)], otherwise: Rule) -> Result<Filter, TooLong> {
    let mut filter = vec![
        instruction(LOAD, ARCHITECTURE_AT),
        branch(IF_EQUAL, ARCHITECTURE, 1, 0),
        instruction(RETURN, libc::SECCOMP_RET_KILL_PROCESS),
        instruction(LOAD, NUMBER_AT),
    ];
    let tree = tree(&syscall_ranges(rules, otherwise));
    filter.extend(tree?);
    if filter.len() > MAX_INSTRUCTIONS { Err(TooLong) } else { Ok(filter) }
}

/// A run of numbers, up to the next one's first, with one rule for all.
type SyscallRange = (u32, Rule);

/// Cuts all numbers into runs that share a rule.
fn syscall_ranges(rules: &[(u32, Rule)], otherwise: Rule) -> Vec<SyscallRange> {
    let mut sorted = rules.to_vec();
    sorted.sort_by_key(|(number, _)| *number);
    let mut all: Vec<SyscallRange> = Vec::with_capacity(sorted.len() * 2);
    let mut next = 0;
    for (number, rule) in sorted {
        if number > next {
            push(&mut all, next, otherwise);
        }
        push(&mut all, number, rule);
        next = number + 1;
    }
    push(&mut all, next, otherwise);
    #[cfg(target_arch = "x86_64")]
    push(&mut all, X32, Rule::Kill);
    push(&mut all, NEGATIVE, Rule::Absent);
    all
}

/// Adds a run unless it only continues the one before.
fn push(all: &mut Vec<SyscallRange>, first: u32, rule: Rule) {
    if all.last().is_none_or(|(_, last)| *last != rule) {
        all.push((first, rule));
    }
}

/// A tree that finds the run of the number in the accumulator and answers by its rule.
fn tree(segments: &[SyscallRange]) -> Result<Filter, TooLong> {
    let (left, right) = segments.split_at(segments.len() / 2);
    let Some((first_right, rule)) = right.first().copied() else {
        return Ok(leaf(Rule::Kill));
    };
    if left.is_empty() {
        return Ok(leaf(rule));
    }
    let (left, right) = (tree(left)?, tree(right)?);
    let mut filter = Filter::with_capacity(left.len() + right.len() + 2);
    match u8::try_from(left.len()) {
        Ok(over_left) => filter.push(branch(IF_AT_LEAST, first_right, over_left, 0)),
        Err(_) => {
            // A comparison reaches 255 instructions; further goes only the plain jump.
            filter.push(branch(IF_AT_LEAST, first_right, 0, 1));
            filter.push(instruction(JUMP, u32::try_from(left.len()).map_err(|_| TooLong)?));
        }
    }
    filter.extend(left);
    filter.extend(right);
    Ok(filter)
}

/// The answer of one rule.
fn leaf(rule: Rule) -> Filter {
    match rule {
        Rule::Allow => vec![instruction(RETURN, libc::SECCOMP_RET_ALLOW)],
        Rule::Refuse => vec![fail_with(libc::EPERM)],
        Rule::Absent => vec![fail_with(libc::ENOSYS)],
        Rule::Kill => vec![instruction(RETURN, libc::SECCOMP_RET_KILL_PROCESS)],
        Rule::When(clauses, error) => {
            let mut filter = Filter::new();
            for clause in clauses {
                filter.extend(answer_if(clause));
            }
            filter.push(fail_with(error));
            filter
        }
    }
}

/// Allows if every check holds; falls out of its end otherwise.
fn answer_if(checks: &[Check]) -> Filter {
    let mut filter = vec![instruction(RETURN, libc::SECCOMP_RET_ALLOW)];
    // Built from the end, so that each check knows how far the way out is.
    for check in checks.iter().rev() {
        let half = if check.high { 4 } else { 0 };
        let mut block = vec![instruction(LOAD, ARGUMENTS_AT + 8 * check.argument + half)];
        if check.mask != u32::MAX {
            block.push(instruction(AND, check.mask));
        }
        let mut comparisons = Filter::new();
        if check.inverted {
            // Who came through all of them jumps over the way out.
            comparisons.push(instruction(JUMP, 1));
        }
        for (position, value) in check.values.iter().rev().enumerate() {
            // A match jumps over the comparisons that are left, and the way out or to it.
            let over = u8::try_from(position + 1).unwrap_or(u8::MAX);
            comparisons.push(branch(IF_EQUAL, *value, over, 0));
        }
        comparisons.reverse();
        block.extend(comparisons);
        block.push(instruction(JUMP, u32::try_from(filter.len()).unwrap_or(u32::MAX)));
        block.extend(filter);
        filter = block;
    }
    filter
}

fn fail_with(error: i32) -> sock_filter {
    let error = u32::try_from(error).unwrap_or(0) & libc::SECCOMP_RET_DATA;
    instruction(RETURN, libc::SECCOMP_RET_ERRNO | error)
}

const fn instruction(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

const fn branch(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::seccomp::interpret::{SyscallData, run_filter};
    use crate::linux::seccomp::rule::{Clause, high_is_zero, masked, none_of, one_of};
    use proptest::prelude::*;

    const CLAUSES: &[Clause] = &[
        &[one_of(0, &[2, 10]), one_of(2, &[0, 6, 17])],
        &[masked(1, 0xf000, &[0x1000, 0x2000])],
        &[one_of(3, &[0]), high_is_zero(3)],
    ];

    /// Values that are left out; shorter than the clauses above, so that the filter stays short enough.
    const BUT: &[Clause] = &[&[none_of(0, &[1, 7]), one_of(1, &[3])]];

    fn rules() -> impl Strategy<Value = Rule> {
        prop_oneof![
            8 => Just(Rule::Allow),
            4 => Just(Rule::Refuse),
            1 => Just(Rule::Absent),
            1 => Just(Rule::When(CLAUSES, libc::EACCES)),
            1 => Just(Rule::When(BUT, libc::EACCES)),
        ]
    }

    fn check(rules: &[(u32, Rule)], otherwise: Rule, number: u32, arguments: [u64; 6]) {
        let filter = compile_filter(rules, otherwise).unwrap();
        let rule =
            rules.iter().find(|(listed, _)| *listed == number).map_or(otherwise, |(_, rule)| *rule);
        let got =
            run_filter(&filter, &SyscallData { number, architecture: ARCHITECTURE, arguments });
        assert_eq!(got, rule.answer(arguments), "number {number}, arguments {arguments:?}");
    }

    #[test]
    fn without_rules_everything_is_answered_alike() {
        for number in [0, 1, 500] {
            check(&[], Rule::Absent, number, [0; 6]);
            check(&[], Rule::Allow, number, [0; 6]);
        }
    }

    #[test]
    fn other_machines_and_x32_are_killed() {
        let filter = compile_filter(&[(0, Rule::Allow)], Rule::Allow).unwrap();
        let ask = |architecture, number| {
            run_filter(&filter, &SyscallData { number, architecture, arguments: [0; 6] })
        };
        assert_eq!(ask(0x4000_0003, 0), libc::SECCOMP_RET_KILL_PROCESS, "i386");
        assert_eq!(ask(ARCHITECTURE, 0), libc::SECCOMP_RET_ALLOW);
        #[cfg(target_arch = "x86_64")]
        for number in [0x4000_0000, 0x4000_0001, 0x7fff_ffff] {
            assert_eq!(ask(ARCHITECTURE, number), libc::SECCOMP_RET_KILL_PROCESS, "x32 {number}");
        }
        let absent = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
        assert_eq!(ask(ARCHITECTURE, u32::MAX), absent, "-1");
    }

    #[test]
    fn values_can_be_left_out() {
        let rules = [(9, Rule::When(BUT, libc::EACCES))];
        let refused = libc::SECCOMP_RET_ERRNO | libc::EACCES as u32;
        for (first, second, expected) in [
            (0, 3, libc::SECCOMP_RET_ALLOW),
            (2, 3, libc::SECCOMP_RET_ALLOW),
            (1, 3, refused),
            (7, 3, refused),
            (1 << 32 | 1, 3, refused),
            (2, 4, refused),
        ] {
            let arguments = [first, second, 0, 0, 0, 0];
            let filter = compile_filter(&rules, Rule::Allow).unwrap();
            let asked = SyscallData { number: 9, architecture: ARCHITECTURE, arguments };
            assert_eq!(run_filter(&filter, &asked), expected, "{first} {second}");
        }
    }

    proptest! {
        #[test]
        fn the_filter_decides_like_the_rules(
            listed in proptest::collection::btree_map(0_u32..600, rules(), 0..250),
            otherwise in rules(),
            arguments in proptest::collection::vec(
                prop_oneof![0_u64..20, Just(0x1000), Just(0x2fff), Just(1 << 32), any::<u64>()], 6),
        ) {
            let rules: Vec<(u32, Rule)> = listed.into_iter().collect();
            let arguments = <[u64; 6]>::try_from(arguments).unwrap();
            let filter = compile_filter(&rules, otherwise).unwrap();
            for number in 0..620 {
                let rule = rules.iter().find(|(n, _)| *n == number).map_or(otherwise, |(_, r)| *r);
                let got = run_filter(&filter, &SyscallData { number, architecture: ARCHITECTURE, arguments });
                prop_assert_eq!(got, rule.answer(arguments), "number {}", number);
            }
        }
    }
}
