//! Writing a policy file: at once, over the text that was read, and never while somebody works by it.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use capsule_core::code::Code;
use capsule_core::journal::Event;
use capsule_core::limits;
use capsule_core::outcome::CodedError;
use capsule_runtime::{Pending, PendingState, read_text, real, this_moment};
use capsule_store::{Filter, RunState, Store};

use crate::failure::Failure;

/// Replaces a file that holds a text by one with another text, at once and with the rights of the old
/// one.
pub(super) fn replace(path: &Path, before: &str, text: &str) -> Result<(), Failure> {
    let path = real(path);
    let wrong = |error: std::io::Error| {
        CodedError::new(
            Code::FileSystem,
            format!("`{}` cannot be written: {error}", path.display()),
        )
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = path.with_file_name(name);
    let lay = || {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&new)?;
        file.set_permissions(fs::metadata(&path)?.permissions())?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    let written = lay().map_err(|error| Failure::from(wrong(error))).and_then(|()| {
        // As late as can be: what somebody wrote meanwhile is not lost.
        let now = read_text(&path, limits::POLICY_BYTES, Code::PolicyUnreadable)?;
        if now != before {
            let message = format!("`{}` was changed meanwhile", path.display());
            return Err(CodedError::new(Code::PolicyInUse, message)
                .with_suggestion("try again")
                .into());
        }
        fs::rename(&new, &path).map_err(|error| wrong(error).into())
    });
    if written.is_err() {
        // Nothing is lost by it: the old file is still there.
        let _ = fs::remove_file(&new);
    }
    written
}

/// That nobody works by a policy file at the moment: a policy that changes under a run is another one.
pub(super) fn is_idle(store: &Store, file: &Path) -> Result<(), Failure> {
    if is_confined() {
        let message = "a confined process writes no policy";
        return Err(CodedError::new(Code::PolicyInUse, message).into());
    }
    for run in store.list(&Filter::default())? {
        if run.state == RunState::Running && is_under(store, &run.run, file)? {
            let message = format!("{} goes on under `{}`", run.label, file.display());
            return Err(CodedError::new(Code::PolicyInUse, message).into());
        }
    }
    Ok(())
}

/// Whether this process can gain no rights any more. Every tool of a run is such a process, whatever
/// else it is given; a person's shell is none.
fn is_confined() -> bool {
    // Who cannot tell is.
    let Ok(status) = fs::read_to_string("/proc/self/status") else {
        return cfg!(target_os = "linux");
    };
    status.lines().any(|line| line.split_whitespace().eq(["NoNewPrivs:", "1"]))
}

/// Whether a run was judged by a file.
fn is_under(store: &Store, run: &str, file: &Path) -> Result<bool, Failure> {
    let first = store.event(run, 1)?.map(|first| first.entry.event);
    Ok(matches!(first, Some(Event::RunOpened(own)) if Path::new(&own.policy.path) == file))
}

/// The labels of runs that wait for an answer under a file, and are not gone on with under another
/// text.
pub(super) fn waiting(store: &Store, file: &Path) -> Result<Vec<String>, Failure> {
    let now = this_moment();
    let mut all = Pending::all(store)?;
    all.retain(|own| {
        let stands = matches!(own.standing(now), PendingState::Waiting | PendingState::Answered);
        stands && Path::new(&own.opened.policy.path) == file
    });
    Ok(all.into_iter().map(|own| own.label).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What somebody wrote between reading and writing stays, and nothing lies beside it.
    #[test]
    fn what_was_changed_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.yaml");
        fs::write(&file, "theirs").unwrap();
        assert!(replace(&file, "mine", "new").is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "theirs");
        replace(&file, "theirs", "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
