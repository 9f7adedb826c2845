//! Writing a policy file: at once, over the text that was read, and never while somebody works by it.

use std::fs;
use std::path::Path;

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::journal::Event;
use capsule_core::outcome::CodedError;
use capsule_runtime::{PendingQuestion, now_micros, read_text, real_path};
use capsule_store::{RunFilter, RunState, Store};

use crate::failure::Failure;
use crate::new_file::write_new;

/// Replaces a file that holds a text by one with another text, at once and with the rights of the old
/// one.
pub(super) fn replace_policy(path: &Path, before: &str, text: &str) -> Result<(), Failure> {
    let path = real_path(path);
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
        let permissions = fs::metadata(&path)?.permissions();
        write_new(&new, text, Some(&permissions))
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
pub(super) fn require_unused(store: &Store, file: &Path) -> Result<(), Failure> {
    if is_confined() {
        let message = "a confined process writes no policy";
        return Err(CodedError::new(Code::PolicyInUse, message).into());
    }
    for run in store.list(&RunFilter::default())? {
        if run.state == RunState::Running && was_judged_by(store, &run.run, file)? {
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
fn was_judged_by(store: &Store, run: &str, file: &Path) -> Result<bool, Failure> {
    let first = store.event(run, 1)?.map(|first| first.entry.event);
    Ok(matches!(first, Some(Event::RunOpened(own)) if Path::new(&own.policy.path) == file))
}

/// The labels of runs that wait for an answer under a file, and are not gone on with under another
/// text.
pub(super) fn waiting_runs(store: &Store, file: &Path) -> Result<Vec<String>, Failure> {
    let now = now_micros();
    let mut all = PendingQuestion::all(store)?;
    all.retain(|question| question.is_open(now) && Path::new(&question.opened.policy.path) == file);
    let mut labels: Vec<String> = all.into_iter().map(|question| question.label).collect();
    // Several questions of a session come one after another.
    labels.dedup();
    Ok(labels)
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
        assert!(replace_policy(&file, "mine", "new").is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "theirs");
        replace_policy(&file, "theirs", "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
