//! `cd`, as a part of a list.

use alloc::vec::Vec;

use super::UnsupportedStep;
use crate::shell_syntax::{PipelineStage, Redirection, ShellWord, StdStream};

/// A `cd`, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderChange<'s> {
    /// Where it leads; `-` is the directory before.
    pub to: &'s str,
    /// What becomes of what it prints: the stream that it goes to, none if it is thrown away.
    pub out: Option<StdStream>,
    /// What becomes of what it complains about.
    pub err: Option<StdStream>,
}

impl<'s> FolderChange<'s> {
    /// Reads a stage; none if it is no `cd` at all.
    ///
    /// # Errors
    /// It is one with something else than one plain directory, or whose streams lead to files.
    pub fn of(stage: &'s PipelineStage) -> Option<Result<Self, UnsupportedStep>> {
        let is_change = stage.words.first().and_then(ShellWord::literal) == Some("cd");
        is_change.then(|| Self::read(stage).ok_or(UnsupportedStep::UnsupportedCd))
    }

    fn read(stage: &'s PipelineStage) -> Option<Self> {
        let words: Vec<&str> = stage.words.iter().map(ShellWord::literal).collect::<Option<_>>()?;
        // Where a program leads by what it prints has not been judged.
        if stage.words.iter().any(|word| word.is_opaque) {
            return None;
        }
        let to = match *words.as_slice() {
            ["cd", "--", to] | ["cd", to @ "-"] => to,
            ["cd", to] if !to.starts_with('-') => to,
            _ => return None,
        };
        let (mut out, mut err) = (Some(StdStream::Out), Some(StdStream::Err));
        for redirect in &stage.redirects {
            let goes = match redirect {
                Redirection::File { path, .. } if path == super::DEV_NULL => None,
                Redirection::Duplicate { target: StdStream::Out, .. } => out,
                Redirection::Duplicate { target: StdStream::Err, .. } => err,
                _ => return None,
            };
            if let Redirection::File { stream, .. } | Redirection::Duplicate { stream, .. } =
                redirect
            {
                *(if *stream == StdStream::Out { &mut out } else { &mut err }) = goes;
            }
        }
        (stage.variables.is_empty() && !to.is_empty()).then_some(Self { to, out, err })
    }
}
