//! `fs.delete`: deletes a file, a link, or a folder with or without what is in it.

use std::time::{Duration, Instant};

use capsule_core::action::{Action, Facts, PathFact, PathLocation, PathTarget};
use capsule_core::capability::Capability;
use capsule_core::code::Code;
use capsule_core::lifecycle::{Operation, Permit, SavedUndo};
use capsule_core::outcome::{CodedError, Outcome, Output};
use capsule_core::path::WorkspacePath;
use capsule_core::policy::Restrictions;
use capsule_core::tool::{ArgumentKind, ResultField, ToolArgument, ToolShape, ToolSignature};
use rustix::fs::FileType;
use serde_json::{Map, Value};

use crate::builtin::{
    Unable, another_action, changed, flag, missing, outside, system, text, wrong_permit,
};
use crate::deleting::Deleting;
use crate::tool::{Context, Prepared, Tool, name_paths};
use crate::workspace::{Itself, kind, same};

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

    fn describe(&self, args: &Map<String, Value>, _: u64) -> Result<Action, CodedError> {
        Ok(Action::Delete {
            path: PathTarget::parse(text(args, "path").unwrap_or_default()),
            recursive: flag(args, "recursive"),
        })
    }

    fn prepare(&self, action: &Action, _: &Value, context: &Context<'_>) -> Prepared {
        let mut facts = Facts::default();
        let hands = match action {
            Action::Delete { path, recursive } => match path.inside() {
                Some(path) => look(path, *recursive, context, &mut facts),
                None => Err(CodedError::new(Code::PathOutside, "the path is not inside")),
            },
            _ => Err(another_action()),
        };
        let hands = name_paths(&mut facts, context).and(hands);
        let hands = hands.map(|own| Box::new(own) as Box<dyn Operation>);
        Prepared { facts, hands: hands.unwrap_or_else(|problem| Box::new(Unable(problem))) }
    }
}

/// Looks at what is to go, and at everything that would go with it.
fn look(
    path: &WorkspacePath,
    recursive: bool,
    context: &Context<'_>,
    facts: &mut Facts,
) -> Result<Deleter, CodedError> {
    let veil = context.veil.borrow();
    let (fact, itself) = context.workspace.look_itself(path, &veil);
    facts.paths.push(fact);
    let found = match itself {
        Itself::There(named) => *named,
        Itself::Missing => return Err(missing(path)),
        Itself::Outside(problem) => return Err(outside(path, problem)),
        Itself::Closed(errno) => return Err(system(path, errno)),
    };
    let with = (context.workspace, context.keeper);
    let deleting = Deleting::list(with, path, found, recursive)?;
    facts.no_undo = deleting.unkept();
    for own in deleting.all().iter().skip(1) {
        let (fact, itself) = context.workspace.look_itself(&own.real, &veil);
        let is_it = matches!(&itself, Itself::There(named) if same(&named.stat, &own.stat));
        facts.paths.push(fact);
        if !is_it {
            return Err(changed(path));
        }
    }
    let real = match facts.paths.first() {
        Some(PathFact { real: PathLocation::Inside(real), .. }) => real.clone(),
        _ => return Err(changed(path)),
    };
    Ok(Deleter { path: path.clone(), real, deleting })
}

struct Deleter {
    /// The path as it was asked for.
    path: WorkspacePath,
    /// Where that stands.
    real: WorkspacePath,
    deleting: Deleting,
}

impl Operation for Deleter {
    fn save_undo(&mut self) -> Result<Option<SavedUndo>, CodedError> {
        self.deleting.preserve()
    }

    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        let Restrictions::Delete { path, timeout_ms } = permit.restrictions() else {
            return wrong_permit();
        };
        if *path != self.real {
            return wrong_permit();
        }
        let deadline = Instant::now() + Duration::from_millis(*timeout_ms);
        match self.deleting.delete(deadline) {
            Ok(()) => Outcome::done(self.output()),
            Err(problem) => Outcome::failed(problem),
        }
    }
}

impl Deleter {
    fn output(&self) -> Output {
        let all = self.deleting.all();
        let word = match all.first().map(|own| kind(&own.stat)) {
            Some(FileType::Directory) => "folder",
            Some(FileType::Symlink) => "link",
            Some(FileType::RegularFile) | None => "file",
            Some(_) => "special",
        };
        let files = all.iter().filter(|own| kind(&own.stat) == FileType::RegularFile);
        let bytes: u64 = files.map(|own| u64::try_from(own.stat.st_size).unwrap_or(0)).sum();
        Output::default()
            .with("path", self.path.to_string())
            .with("changed", true)
            .with("kind", word)
            .with("entries", u64::try_from(all.len()).unwrap_or(u64::MAX))
            .with("bytes_total", bytes)
    }
}
