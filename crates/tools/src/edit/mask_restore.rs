//! Masks that come back in what is to be written: put back into what the file holds in their place, or
//! refused. Whether a policy wants that was judged before; here is what the file says.

use capsule_base::code::Code;
use capsule_base::path::WorkspacePath;
use capsule_core::outcome::CodedError;
use capsule_redact::{Redactor, UnresolvedMask, masks};

/// How many masks stand in these texts.
pub(crate) fn count_masks<'t>(texts: impl IntoIterator<Item = &'t [u8]>) -> u64 {
    let count: usize = texts.into_iter().map(|text| masks(text).count()).sum();
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// A content with what its masks stand for in the file that it replaces.
///
/// # Errors
/// [`Code::MaskInContent`] where that is not sure.
pub(crate) fn restore_masks(
    redactor: &Redactor,
    content: &[u8],
    old: &[u8],
    path: &WorkspacePath,
) -> Result<Vec<u8>, CodedError> {
    redactor.restore_masks(content, old).map_err(|UnresolvedMask { line }| {
        let message = format!(
            "the mask in line {line} of what `{path}` would hold stands for no line of the file, or \
             for more than one"
        );
        mask_problem(message)
    })
}

/// What has a mask where nothing can be put back.
pub(crate) fn unresolvable_problem(path: &WorkspacePath) -> CodedError {
    mask_problem(format!(
        "the new content of `{path}` has a mask for a secret that the file does not contain"
    ))
}

/// What would be seen behind an edit of what stands around it.
pub(crate) fn revealing_problem(path: &WorkspacePath) -> CodedError {
    let message = format!(
        "the edit touches what is masked in `{path}`, and would show it, or show it otherwise"
    );
    let hint = "edit around it, and leave the name of a secret as it is; the user can change it";
    CodedError::new(Code::MaskInContent, message).with_suggestion(hint)
}

fn mask_problem(message: String) -> CodedError {
    CodedError::new(Code::MaskInContent, message).with_suggestion(Code::MaskInContent.next_step())
}
