//! `fs.write`: makes, replaces or extends a file, whole or not at all.

use std::borrow::Cow;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_base::path::WorkspacePath;
use capsule_core::action::{Action, WriteMode};
use capsule_core::capability::Capability;
use capsule_core::lifecycle::{Operation, Permit, Preview, SavedUndo};
use capsule_core::outcome::{CodedError, Outcome, Output};
use capsule_core::tool::{ArgumentKind, ResultField, ToolArgument, ToolShape, ToolSignature};
use capsule_redact::Redactor;
use capsule_workspace::{AtomicWrite, changed_line_counts};
use serde_json::{Map, Value};

use crate::builtin::change_args;
use crate::edit::mask_restore;
use crate::fault::wrong_action_problem;
use crate::tool::args::{invalid_args, text_arg};
use crate::tool::prepare::prepare_change;
use crate::tool::{DescribeContext, PreparedCall, Tool, ToolContext};

const MODES: &[&str] = &["create", "overwrite", "append"];

/// What `fs.write` is called, takes and gives.
pub static SIGNATURE: ToolSignature = ToolSignature {
    id: "fs.write",
    model_name: "fs_write",
    aliases: &["file_write", "fs.write_text"],
    about: "Writes a file of the workspace; what was there before can be brought back.",
    shape: ToolShape::Files,
    capabilities: &[Capability::FsWrite],
    arguments: &[
        ToolArgument {
            name: "path",
            kind: ArgumentKind::Path,
            required: true,
            about: "the file, relative to the workspace",
        },
        ToolArgument {
            name: "content",
            kind: ArgumentKind::Text,
            required: false,
            about: "the text",
        },
        ToolArgument {
            name: "content_base64",
            kind: ArgumentKind::Text,
            required: false,
            about: "the bytes, in place of `content`",
        },
        ToolArgument {
            name: "mode",
            kind: ArgumentKind::OneOf(MODES),
            required: false,
            about: "`overwrite` if left out",
        },
    ],
    results: &[
        ResultField { name: "path", about: "the file" },
        ResultField { name: "changed", about: "whether it is other than before" },
        ResultField { name: "created", about: "whether it was not there before" },
        ResultField { name: "bytes_total", about: "its size now" },
        ResultField { name: "added", about: "lines that were added" },
        ResultField {
            name: "removed",
            about: "lines that were removed; none where the file was too large to be looked at",
        },
    ],
};

/// Writes a file.
#[derive(Clone, Copy, Debug)]
pub struct FsWrite;

/// The bytes that a call wants to write.
fn parse_content(args: &Map<String, Value>) -> Result<Vec<u8>, CodedError> {
    match (text_arg(args, "content"), text_arg(args, "content_base64")) {
        (Some(text), None) => Ok(text.as_bytes().to_vec()),
        (None, Some(encoded)) => {
            STANDARD.decode(encoded).map_err(|_| invalid_args("`content_base64` is not base64"))
        }
        _ => Err(invalid_args("`fs.write` needs one of `content` and `content_base64`")),
    }
}

impl Tool for FsWrite {
    fn signature(&self) -> &'static ToolSignature {
        &SIGNATURE
    }

    fn describe(
        &self,
        args: &Map<String, Value>,
        context: &DescribeContext<'_>,
    ) -> Result<Action, CodedError> {
        let content = parse_content(args)?;
        Ok(Action::Write {
            path: context.path(text_arg(args, "path").unwrap_or_default()),
            mode: match text_arg(args, "mode") {
                Some("create") => WriteMode::Create,
                Some("append") => WriteMode::Append,
                _ => WriteMode::Overwrite,
            },
            bytes: u64::try_from(content.len()).unwrap_or(u64::MAX),
            content: Digest::of(&content),
        })
    }

    fn prepare(&self, action: &Action, args: &Value, context: &ToolContext<'_>) -> PreparedCall {
        let content =
            args.as_object().and_then(|args| parse_content(args).ok()).unwrap_or_default();
        let masks = mask_restore::count_masks([content.as_slice()]);
        let operation = |path: &WorkspacePath, stands| match action {
            Action::Write { mode, content: digest, .. } if Digest::of(&content) == *digest => {
                let target = AtomicWrite::new(context.workspace, context.backups, path, stands)?;
                let unkept = target.backup_refusal();
                let redactor = (masks > 0).then(|| context.redactor.clone());
                let writer = WriteOperation { target, mode: *mode, content, redactor };
                Ok((Box::new(writer) as Box<dyn Operation>, unkept))
            }
            _ => Err(wrong_action_problem()),
        };
        prepare_change(action, context, (operation, masks))
    }
}

struct WriteOperation {
    target: AtomicWrite,
    mode: WriteMode,
    content: Vec<u8>,
    /// What shows the file, where masks stand in the content.
    redactor: Option<Redactor>,
}

impl Operation for WriteOperation {
    fn save_undo(&mut self) -> Result<Option<SavedUndo>, CodedError> {
        self.restore_masks()?;
        let is_there = self.target.file_exists();
        if is_there && self.mode == WriteMode::Create {
            return Ok(None);
        }
        if self.target.backup_refusal().is_some() && self.mode != WriteMode::Append {
            return Ok(None);
        }
        self.target.read_old()?;
        let new = self.new_content();
        match is_there && new == self.target.old_content() {
            true => Ok(None),
            false => self.target.back_up(&new).map(Some),
        }
    }

    fn preview(&mut self) -> Preview {
        if self.target.read_old().and_then(|()| self.restore_masks()).is_err() {
            return Preview::Unavailable;
        }
        self.target.preview(&self.new_content())
    }

    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        change_args::write_by_permit(&permit, |deadline| self.write(deadline))
    }
}

impl WriteOperation {
    /// Puts what the file holds in the place of masks.
    fn restore_masks(&mut self) -> Result<(), CodedError> {
        let Some(redactor) = &self.redactor else { return Ok(()) };
        let replaces = self.mode == WriteMode::Overwrite && self.target.file_exists();
        if !replaces || self.target.backup_refusal().is_some() {
            return Err(mask_restore::unresolvable_problem(self.target.path()));
        }
        self.target.read_old()?;
        let (old, path) = (self.target.old_content(), self.target.path());
        self.content = mask_restore::restore_masks(redactor, &self.content, old, path)?;
        self.redactor = None;
        Ok(())
    }

    /// What the file will hold.
    fn new_content(&self) -> Cow<'_, [u8]> {
        match self.mode {
            WriteMode::Append => [self.target.old_content(), &self.content].concat().into(),
            WriteMode::Create | WriteMode::Overwrite => Cow::Borrowed(&self.content),
        }
    }

    fn write(&self, deadline: Instant) -> Result<Output, CodedError> {
        let target = &self.target;
        let created = !target.file_exists();
        if !created && self.mode == WriteMode::Create {
            let message = format!("`{}` is there already", target.path());
            return Err(CodedError::new(Code::FileExists, message)
                .with_suggestion("use `mode: overwrite` or `append`"));
        }
        target.require_unchanged()?;
        // What was too large to be kept was not read either.
        let old = target.backup_refusal().is_none().then(|| target.old_content());
        let new = self.new_content();
        let unchanged = !created && old.is_some_and(|old| old == new.as_ref());
        if !unchanged {
            target.commit(&new, deadline)?;
        }
        let (added, removed) = changed_line_counts(old.unwrap_or_default(), &new);
        Ok(Output::default()
            .with("path", target.path().to_string())
            .with("changed", !unchanged)
            .with("created", created)
            .with("bytes_total", u64::try_from(new.len()).unwrap_or(u64::MAX))
            .with("added", added)
            .with("removed", old.map(|_| removed)))
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::time::Duration;

    use super::*;
    use crate::test_backups::backups;
    use capsule_workspace::Workspace;

    /// A writer at the moment when its intent would be written.
    fn writer(workspace: &Rc<Workspace>, path: &str) -> WriteOperation {
        let path = WorkspacePath::parse(path).unwrap();
        let (_kept, backups) = backups();
        let target =
            AtomicWrite::new(workspace, &backups, &path, workspace.find_path(&path)).unwrap();
        let (mode, content) = (WriteMode::Overwrite, b"new".to_vec());
        let mut writer = WriteOperation { target, mode, content, redactor: None };
        assert!(writer.save_undo().unwrap().is_some());
        writer
    }

    /// C4, CAP-5: whatever is done to the place between the decision and the write, only what was
    /// judged is replaced, and nothing stays beside it.
    #[test]
    fn only_what_was_judged_is_replaced() {
        use std::fs;
        use std::path::Path;
        type Change = fn(&Path);
        let changes: &[(&str, Change)] = &[
            ("d/f", |root| fs::write(root.join("d/f"), "edited").unwrap()),
            ("d/f", |root| fs::remove_file(root.join("d/f")).unwrap()),
            ("d/f", |root| {
                fs::write(root.join("d/other"), "old").unwrap();
                fs::rename(root.join("d/other"), root.join("d/f")).unwrap();
            }),
            ("d/f", |root| fs::rename(root.join("d"), root.join("moved")).unwrap()),
            ("d/n", |root| fs::write(root.join("d/n"), "appeared").unwrap()),
            ("d/n", |root| fs::rename(root.join("d"), root.join("moved")).unwrap()),
            ("d/in/n", |root| fs::create_dir(root.join("d/in")).unwrap()),
            ("d/n", |root| {
                fs::rename(root.join("d"), root.join("moved")).unwrap();
                std::os::unix::fs::symlink("moved", root.join("d")).unwrap();
            }),
        ];
        for (row, (path, change)) in changes.iter().enumerate() {
            // Once before everything is compared, and once in the middle, past the comparison.
            for late in [false, true] {
                let folder = tempfile::tempdir().unwrap();
                fs::create_dir(folder.path().join("d")).unwrap();
                fs::write(folder.path().join("d/f"), "old").unwrap();
                let workspace = Rc::new(Workspace::open(folder.path()).unwrap());
                let writer = writer(&workspace, path);
                let deadline = Instant::now() + Duration::from_secs(5);
                let done = if late {
                    writer.target.require_unchanged().unwrap();
                    change(folder.path());
                    writer.target.commit(b"new", deadline)
                } else {
                    change(folder.path());
                    writer.write(deadline).map(drop)
                };
                let code = done.map_err(|problem| problem.code);
                assert_eq!(code, Err(Code::ApprovalChangedAfter), "row {row}, late: {late}");
                let held = fs::read_dir(folder.path()).unwrap().flatten();
                let held = held.map(|entry| entry.path()).filter(|path| !path.is_symlink());
                let files = held.flat_map(|path| fs::read_dir(path).unwrap().flatten());
                for file in files.filter(|file| file.path().is_file()) {
                    assert_ne!(fs::read(file.path()).unwrap(), b"new", "row {row}: {file:?}");
                }
            }
        }
    }

    /// CAP-12: a write has an end in time, and leaves nothing when it meets it.
    #[test]
    fn a_late_write_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("f"), "old").unwrap();
        let workspace = Rc::new(Workspace::open(folder.path()).unwrap());
        let late = writer(&workspace, "f").write(Instant::now());
        assert_eq!(late.map(drop).map_err(|problem| problem.code), Err(Code::FileSystem));
        assert_eq!(std::fs::read(folder.path().join("f")).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
