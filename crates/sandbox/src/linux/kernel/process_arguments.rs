//! The words and the environment that this process was started with, where the kernel put them.

use std::fs;
use std::ops::Range;

use capsule_base::process_stat::fields_from_state;
use rustix::io::Errno;

/// More than the kernel lets a program be started with: a quarter of the largest stack that it gives
/// by default, three quarters of it in all.
const MAX_BYTES: usize = 8 << 20;

/// Where these lie; the same in every copy of this process.
pub(crate) struct ArgumentMemory(Range<usize>);

/// Where the words and the environment of this process lie.
///
/// # Errors
/// The kernel does not say it, or says what cannot be.
pub(crate) fn argument_memory() -> Result<ArgumentMemory, Errno> {
    let stat = fs::read_to_string("/proc/self/stat").map_err(|error| super::errno(&error))?;
    parse_argument_range(&stat).map(ArgumentMemory)
}

/// Overwrites the words and the environment that this process was started with, and shows a name in
/// their place where the system lists processes.
pub(crate) fn erase_arguments(ArgumentMemory(place): &ArgumentMemory, name: &str) {
    // SAFETY: nobody else reads the environment meanwhile: the caller has one thread, and is a copy
    // of a process that does nothing else but become the executor.
    unsafe { libc::clearenv() };
    let first = std::ptr::with_exposed_provenance_mut::<u8>(place.start);
    // SAFETY: the kernel says that what it put on the stack of this process for its start lies there,
    // below every frame, and so it does in a copy. The library's list of variables, which led there,
    // was cleared above; its list of words still leads there, and finds empty ones: each still ends in
    // a zero.
    unsafe { first.write_bytes(0, place.len()) };
    let shown = name.len().min(place.len().saturating_sub(1));
    // SAFETY: as above, with as many bytes as both have.
    unsafe { first.copy_from_nonoverlapping(name.as_ptr(), shown) };
}

/// Where words and environment lie, one behind the other, in the 48th to 51st field of
/// `proc_pid_stat(5)`: first and last address of each.
fn parse_argument_range(stat: &str) -> Result<Range<usize>, Errno> {
    let fields = fields_from_state(stat).ok_or(Errno::INVAL)?;
    let told: Vec<usize> = fields.skip(45).take(4).filter_map(|field| field.parse().ok()).collect();
    let [words, words_end, variables, end] = told[..] else { return Err(Errno::INVAL) };
    let ordered = 0 < words && words < words_end && words_end <= variables && variables <= end;
    if !ordered || end - words > MAX_BYTES {
        return Err(Errno::INVAL);
    }
    Ok(words..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_where_the_words_are() {
        let range = parse_argument_range(&fs::read_to_string("/proc/self/stat").unwrap()).unwrap();
        let words: usize = std::env::args_os().map(|word| word.len() + 1).sum();
        assert!(range.len() >= words, "{range:?} holds {words} bytes of words");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let with = |fields: &str| {
            parse_argument_range(&format!("1 (a) b) {} {fields} 0", "0 ".repeat(45).trim()))
        };
        assert_eq!(with("4096 4100 4100 4200"), Ok(4096..4200));
        for wrong in [
            "0 0 0 0",
            "4100 4096 4100 4200",
            "4096 4100 4099 4200",
            "4096 4100 4200 4100",
            "4096 4100 4100 99999999999",
            "x 4100 4100 4200",
            "-1 4100 4100 4200",
        ] {
            assert_eq!(with(wrong), Err(Errno::INVAL), "{wrong}");
        }
        assert_eq!(parse_argument_range("1 a b"), Err(Errno::INVAL));
        assert_eq!(parse_argument_range(""), Err(Errno::INVAL));
    }
}
