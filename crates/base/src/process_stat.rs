//! The line by which the system describes a process (proc_pid_stat(5)).

use core::str::SplitAsciiWhitespace;

/// The fields of `/proc/PID/stat` from the third one on: state, parent, group, session and so on.
///
/// The second field is a name in parentheses, which may hold anything; no later field does. None where the line
/// has no such name.
pub fn fields_from_state(stat: &str) -> Option<SplitAsciiWhitespace<'_>> {
    Some(stat.rsplit_once(')')?.1.split_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let mut fields = fields_from_state("7 (a) b (c) S 1 5 9").unwrap();
        assert_eq!((fields.next(), fields.nth(2)), (Some("S"), Some("9")));
        assert!(fields_from_state("7").is_none());
    }
}
