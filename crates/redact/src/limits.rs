//! Every bound of this crate, each with its reason.

/// The longest match of a policy's pattern for secrets: for so long a stream is held back.
pub const PATTERN_MATCH_MAX: usize = 4_096;
/// How often a text is masked at most, until masking it again finds nothing. Once is enough for nearly every
/// text; what stands beside a mask may look otherwise than it did with what was masked.
pub const MASK_ROUNDS: usize = 5;
/// The shortest match of one.
pub const PATTERN_MATCH_MIN: usize = 4;
/// The longest text of one.
pub const PATTERN_TEXT_BYTES: usize = 1_024;
/// The longest name of a pattern or a secret: it stands in masks.
pub const ID_BYTES: usize = 64;
/// The most patterns for secrets that a policy may have; each is looked for in every text.
pub const PATTERNS: usize = 64;
/// The largest compiled pattern, in bytes.
pub const REGEX_BYTES: usize = 1 << 20;
/// The shortest value of a secret of a policy: a shorter one would be masked in the middle of words.
pub const SECRET_BYTES_MIN: usize = 8;
/// The longest value of one; what does not fit into a header is no use.
pub const SECRET_BYTES_MAX: usize = 8_192;
/// The most secrets of a policy.
pub const SECRETS: usize = 64;
