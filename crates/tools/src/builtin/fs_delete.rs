//! `fs.delete`: deletes a file, a link, or a folder with or without what is in it.

use std::time::{Duration, Instant};

use capsule_base::code::Code;
use capsule_base::path::WorkspacePath;
use capsule_core::action::{Action, Facts, PathFact, PathLocation};
use capsule_core::capability::Capability;
use capsule_core::lifecycle::{Operation, Permit, SavedUndo};
use capsule_core::outcome::{CodedError, Outcome, Output};
use capsule_core::policy::Restrictions;
use capsule_core::tool::{ArgumentKind, ResultField, ToolArgument, ToolShape, ToolSignature};
use capsule_workspace::path_problem::{
    changed_problem, missing_problem, outside_problem, system_problem,
};
use capsule_workspace::{Deletion, EntryLookup, file_type, look_up_entry, same_file};
use rustix::fs::FileType;
use serde_json::{Map, Value};

use crate::fault::{wrong_action_problem, wrong_permit_outcome};
use crate::tool::args::{flag_arg, text_arg};
use crate::tool::prepare::{failed_operation, name_aliases};
use crate::tool::{DescribeContext, PreparedCall, Tool, ToolContext};

/// What `fs.delete` is called, takes and gives.
pub static SIGNATURE: ToolSignature = ToolSignature {
    id: "fs.delete",
    model_name: "fs_delete",
    aliases: &["file_delete"],
    about: "Deletes a file, a link (never what it leads to) or a folder of the workspace; what was \
        there can be brought back.",
    shape: ToolShape::Files,
    capabilities: &[Capability::FsDelete],
    arguments: &[
        ToolArgument {
            name: "path",
            kind: ArgumentKind::Path,
            required: true,
            about: "what is to go, relative to the workspace",
        },
        ToolArgument {
            name: "recursive",
            kind: ArgumentKind::Flag,
            required: false,
            about: "whether a folder goes with all that is in it; only an empty one if left out",
        },
    ],
    results: &[
        ResultField { name: "path", about: "what is gone" },
        ResultField { name: "changed", about: "that it is gone" },
        ResultField {
            name: "kind",
            about: "`file`, `link`, `folder`, or `special` for a pipe, a socket or a device",
        },
        ResultField { name: "entries", about: "how many files, links and folders are gone" },
        ResultField { name: "bytes_total", about: "how many bytes the files had" },
    ],
};

/// Deletes.
#[derive(Clone, Copy, Debug)]
pub struct FsDelete;

impl Tool for FsDelete {
    fn signature(&self) -> &'static ToolSignature {
        &SIGNATURE
    }

    fn describe(
        &self,
        args: &Map<String, Value>,
        context: &DescribeContext<'_>,
    ) -> Result<Action, CodedError> {
        Ok(Action::Delete {
            path: context.path(text_arg(args, "path").unwrap_or_default()),
            recursive: flag_arg(args, "recursive"),
        })
    }

    fn prepare(&self, action: &Action, _: &Value, context: &ToolContext<'_>) -> PreparedCall {
        let mut facts = Facts::default();
        let operation = match action {
            Action::Delete { path, recursive } => match path.inside() {
                Some(path) => list_target(path, *recursive, context, &mut facts),
                None => Err(CodedError::new(Code::PathOutside, "the path is not inside")),
            },
            _ => Err(wrong_action_problem()),
        };
        let operation = name_aliases(&mut facts, context).and(operation);
        let operation = operation.map(|hand| Box::new(hand) as Box<dyn Operation>);
        PreparedCall {
            facts,
            operation: operation.unwrap_or_else(|problem| failed_operation(problem, context)),
        }
    }
}

/// Looks at what is to go, and at everything that would go with it.
fn list_target(
    path: &WorkspacePath,
    recursive: bool,
    context: &ToolContext<'_>,
    facts: &mut Facts,
) -> Result<DeleteOperation, CodedError> {
    let hidden_paths = context.hidden_paths.borrow();
    let (fact, itself) = look_up_entry(context.workspace, path, &hidden_paths);
    facts.paths.push(fact);
    let found = match itself {
        EntryLookup::Found(named) => *named,
        EntryLookup::Missing => return Err(missing_problem(path)),
        EntryLookup::Outside(problem) => return Err(outside_problem(path, problem)),
        EntryLookup::Refused(errno) => return Err(system_problem(path, errno)),
    };
    let with = (context.workspace, context.backups);
    let deletion = Deletion::new(with, path, found, recursive)?;
    facts.no_undo = deletion.backup_refusal();
    for target in deletion.targets().iter().skip(1) {
        let (fact, itself) = look_up_entry(context.workspace, &target.real_path, &hidden_paths);
        let is_it =
            matches!(&itself, EntryLookup::Found(named) if same_file(&named.stat, &target.stat));
        facts.paths.push(fact);
        if !is_it {
            return Err(changed_problem(path));
        }
    }
    let real = match facts.paths.first() {
        Some(PathFact { real: PathLocation::Inside(real), .. }) => real.clone(),
        _ => return Err(changed_problem(path)),
    };
    Ok(DeleteOperation { path: path.clone(), real_path: real, deletion })
}

struct DeleteOperation {
    /// The path as it was asked for.
    path: WorkspacePath,
    /// Where that stands.
    real_path: WorkspacePath,
    deletion: Deletion,
}

impl Operation for DeleteOperation {
    fn save_undo(&mut self) -> Result<Option<SavedUndo>, CodedError> {
        self.deletion.back_up()
    }

    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        let Restrictions::Delete { path, timeout_ms } = permit.restrictions() else {
            return wrong_permit_outcome();
        };
        if *path != self.real_path {
            return wrong_permit_outcome();
        }
        let deadline = Instant::now() + Duration::from_millis(*timeout_ms);
        match self.deletion.delete(deadline) {
            Ok(()) => Outcome::done(self.output()),
            Err(problem) => Outcome::failed(problem),
        }
    }
}

impl DeleteOperation {
    fn output(&self) -> Output {
        let all = self.deletion.targets();
        let word = match all.first().map(|target| file_type(&target.stat)) {
            Some(FileType::Directory) => "folder",
            Some(FileType::Symlink) => "link",
            Some(FileType::RegularFile) | None => "file",
            Some(_) => "special",
        };
        let files = all.iter().filter(|target| file_type(&target.stat) == FileType::RegularFile);
        let bytes: u64 = files.map(|file| u64::try_from(file.stat.st_size).unwrap_or(0)).sum();
        Output::default()
            .with("path", self.path.to_string())
            .with("changed", true)
            .with("kind", word)
            .with("entries", u64::try_from(all.len()).unwrap_or(u64::MAX))
            .with("bytes_total", bytes)
    }
}
