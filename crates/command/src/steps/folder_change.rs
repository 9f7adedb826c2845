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
        let (out, err) = redirect_streams(stage)?;
        // What is exported goes along, and says nothing of where a plain `cd` goes, but for these.
        let leads = |name: &str| matches!(name, "CDPATH" | "HOME" | "OLDPWD" | "PWD");
        let is_plain = !to.is_empty() && !stage.variables.iter().any(|(name, _)| leads(name));
        is_plain.then_some(Self { to, out, err })
    }
}

/// Where the output and the complaints of what a shell has in itself go, each to one of the two streams or nowhere; none
/// where its redirections say something else.
#[must_use]
pub fn redirect_streams(stage: &PipelineStage) -> Option<(Option<StdStream>, Option<StdStream>)> {
    let (mut out, mut err) = (Some(StdStream::Out), Some(StdStream::Err));
    for redirect in &stage.redirects {
        let (stream, goes) = match redirect {
            Redirection::File { stream, path, .. } if path == super::DEV_NULL => (stream, None),
            Redirection::Duplicate { stream, target: StdStream::Out } => (stream, out),
            Redirection::Duplicate { stream, target: StdStream::Err } => (stream, err),
            _ => return None,
        };
        *(if *stream == StdStream::Out { &mut out } else { &mut err }) = goes;
    }
    Some((out, err))
}
