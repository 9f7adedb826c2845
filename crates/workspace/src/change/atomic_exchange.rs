//! Gives a file that was written beside another that one's name, so that a reader sees the old file
//! or the new one, and only what was judged is replaced.

use rustix::io::Errno;

use crate::node::is_unsupported;

/// What became of the two.
pub(crate) enum ExchangeResult {
    /// The new file has the name; what was judged lies beside it.
    Swapped,
    /// The new file has the name; the file system cannot exchange, and the old one is gone.
    Overwritten,
    /// What came out was not what was judged, and has its name again; the new file lies beside it.
    Restored,
    /// What came out was not what was judged, and lies beside the new file: it could not go back.
    Stuck(Errno),
}

/// Exchanges two names; `is_judged` looks at what came out of the place. Where the file system cannot
/// exchange, `replace` is done, and the comparison that came before is all there is.
///
/// # Errors
/// Nothing was changed.
pub(crate) fn exchange(
    exchange: impl Fn() -> Result<(), Errno>,
    replace: impl FnOnce() -> Result<(), Errno>,
    is_judged: impl FnOnce() -> bool,
) -> Result<ExchangeResult, Errno> {
    match exchange() {
        Ok(()) if is_judged() => Ok(ExchangeResult::Swapped),
        Ok(()) => Ok(exchange().map_or_else(ExchangeResult::Stuck, |()| ExchangeResult::Restored)),
        Err(errno) if is_unsupported(errno) => replace().map(|()| ExchangeResult::Overwritten),
        Err(errno) => Err(errno),
    }
}
