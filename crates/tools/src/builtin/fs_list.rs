//! `fs.list`: what is in a folder.

use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;
use std::time::{Duration, Instant};

use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_core::action::Action;
use capsule_core::capability::Capability;
use capsule_core::lifecycle::{Operation, Permit};
use capsule_core::outcome::{CodedError, Outcome, Output};
use capsule_core::policy::{ListingScope, Restrictions};
use capsule_core::tool::{ArgumentKind, ResultField, ToolArgument, ToolShape, ToolSignature};
use capsule_workspace::path_problem::{not_found_problem, require_directory, require_unchanged};
use capsule_workspace::system::statat;
use capsule_workspace::{Cancel, FoundPath, Workspace, new_buffer, read_entries};
use rustix::fs::{AtFlags, FileType, OFlags};
use serde_json::{Map, Value, json};

use crate::fault::{wrong_action_problem, wrong_permit_outcome};
use crate::tool::args::{number_arg, text_arg};
use crate::tool::prepare::prepare_path;
use crate::tool::{DescribeContext, PreparedCall, Tool, ToolContext};

/// What `fs.list` is called, takes and gives.
pub static SIGNATURE: ToolSignature = ToolSignature {
    id: "fs.list",
    model_name: "fs_list",
    aliases: &[],
    about: "Lists a folder of the workspace: names, kinds, sizes and dates.",
    shape: ToolShape::Files,
    capabilities: &[Capability::FsMeta],
    arguments: &[
        ToolArgument {
            name: "path",
            kind: ArgumentKind::Path,
            required: true,
            about: "the folder, relative to the workspace",
        },
        ToolArgument {
            name: "depth",
            kind: ArgumentKind::Number,
            required: false,
            about: "how many levels, 1 if left out",
        },
        ToolArgument {
            name: "limit",
            kind: ArgumentKind::Number,
            required: false,
            about: "how many entries at most",
        },
    ],
    results: &[
        ResultField { name: "path", about: "the folder" },
        ResultField { name: "entries", about: "its entries: path, kind, size and date" },
        ResultField { name: "partial", about: "whether the folder was not read to its end" },
        ResultField { name: "truncated", about: "whether there are more entries" },
        ResultField { name: "clamped", about: "whether more was asked for than may be shown" },
    ],
};

/// Lists a folder.
#[derive(Clone, Copy, Debug)]
pub struct FsList;

impl Tool for FsList {
    fn signature(&self) -> &'static ToolSignature {
        &SIGNATURE
    }

    fn describe(
        &self,
        args: &Map<String, Value>,
        context: &DescribeContext<'_>,
    ) -> Result<Action, CodedError> {
        Ok(Action::List {
            path: context.path(text_arg(args, "path").unwrap_or_default()),
            depth: number_arg(args, "depth"),
            limit: number_arg(args, "limit"),
        })
    }

    fn prepare(&self, action: &Action, _: &Value, context: &ToolContext<'_>) -> PreparedCall {
        prepare_path(action, context, |path, stands| {
            let Action::List { depth, .. } = action else { return Err(wrong_action_problem()) };
            Ok(Box::new(ListOperation {
                workspace: Rc::clone(context.workspace),
                cancel: context.cancel.clone(),
                path: path.clone(),
                found: require_directory(path, stands)?,
                depth: depth.unwrap_or(1),
            }))
        })
    }
}

struct ListOperation {
    workspace: Rc<Workspace>,
    cancel: Cancel,
    path: WorkspacePath,
    found: FoundPath,
    depth: u64,
}

/// A listing while it is made.
struct Listing<'l> {
    scope: &'l ListingScope,
    /// What the system writes entries into, one folder at a time.
    buffer: Vec<MaybeUninit<u8>>,
    deadline: Instant,
    entries: Vec<(String, Value)>,
    scanned: usize,
    partial: bool,
}

impl Operation for ListOperation {
    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        let Restrictions::Listing { results, clamped, timeout_ms, scope: sight } =
            permit.restrictions()
        else {
            return wrong_permit_outcome();
        };
        if let Err(problem) = require_unchanged(&self.workspace, &self.path, &self.found) {
            return Outcome::failed(problem);
        }
        let mut listing = Listing {
            scope: sight,
            buffer: new_buffer(),
            deadline: Instant::now() + Duration::from_millis(*timeout_ms),
            entries: Vec::new(),
            scanned: 0,
            partial: false,
        };
        let depth = self.depth.clamp(1, limits::LIST_DEPTH_MAX);
        let handle = match self.found.open(&self.workspace, OFlags::RDONLY | OFlags::DIRECTORY) {
            Ok(handle) => handle,
            Err(why) => return Outcome::failed(not_found_problem(&self.path, why)),
        };
        self.list_directory(&handle, &self.found.real_path, depth, &mut listing);
        let Listing { mut entries, partial, .. } = listing;
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        let most = usize::try_from(*results).unwrap_or(usize::MAX);
        let truncated = entries.len() > most;
        entries.truncate(most);
        let entries: Vec<Value> = entries.into_iter().map(|(_, entry)| entry).collect();
        let output = Output::default()
            .with("path", self.path.to_string())
            .with("entries", entries)
            .with("partial", partial)
            .with("truncated", truncated)
            .with("clamped", *clamped || depth < self.depth);
        Outcome::done(output)
    }
}

impl ListOperation {
    /// Lists a folder that is open, and the folders in it by its descriptor: what is put in their
    /// place meanwhile is a link, and not followed.
    fn list_directory(
        &self,
        handle: &OwnedFd,
        folder: &WorkspacePath,
        depth: u64,
        listing: &mut Listing<'_>,
    ) {
        let mut folders = Vec::new();
        // Taken out while entries go into the same listing, and put back before another folder is read.
        let mut buffer = std::mem::take(&mut listing.buffer);
        let read = read_entries(handle, &mut buffer, &mut |name, kind, _| {
            listing.scanned += 1;
            let enough = listing.scanned > limits::LIST_SCAN
                || (listing.scanned.is_multiple_of(256)
                    && (self.cancel.is_set() || Instant::now() > listing.deadline));
            if enough {
                listing.partial = true;
                return false;
            }
            if let Some((path, entry)) = visible_entry(handle, folder, name, kind, listing.scope) {
                if kind == FileType::Directory && depth > 1 {
                    folders.push((OsStr::from_bytes(name).to_owned(), path.clone()));
                }
                listing.entries.push((path.to_string(), entry));
            }
            true
        });
        listing.buffer = buffer;
        listing.partial |= read.is_err();
        for (name, path) in folders {
            if listing.partial {
                return;
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            match self.workspace.open_plain(handle.as_fd(), &name, flags) {
                Ok(inner) => self.list_directory(&inner, &path, depth - 1, listing),
                Err(_) => listing.partial = true,
            }
        }
    }
}

/// An entry as it is shown; none if it is not to be seen.
fn visible_entry(
    handle: &OwnedFd,
    folder: &WorkspacePath,
    name: &[u8],
    kind: FileType,
    sight: &ListingScope,
) -> Option<(WorkspacePath, Value)> {
    let text = String::from_utf8_lossy(name);
    let path = folder.join(&text);
    if !sight.shows(&path) {
        return None;
    }
    let stat = statat(handle, name, AtFlags::SYMLINK_NOFOLLOW).ok();
    Some((path.clone(), entry_json(&path, OsStr::from_bytes(name), kind, stat.as_ref())))
}

/// An entry as JSON: `{path, kind, size?, modified?}`.
pub(super) fn entry_json(
    path: &WorkspacePath,
    name: &OsStr,
    kind: FileType,
    stat: Option<&capsule_workspace::system::Stat>,
) -> Value {
    let word = match kind {
        FileType::RegularFile => "file",
        FileType::Directory => "folder",
        FileType::Symlink => "link",
        _ => "special",
    };
    let mut entry = json!({ "path": path.as_str(), "kind": word });
    let Value::Object(map) = &mut entry else { return entry };
    if let Some(stat) = stat {
        if kind == FileType::RegularFile {
            map.insert("size".into(), u64::try_from(stat.st_size).unwrap_or(0).into());
        }
        let time = jiff::Timestamp::from_second(stat.st_mtime);
        map.insert("modified".into(), time.map(|time| time.to_string()).unwrap_or_default().into());
    }
    if name.to_str().is_none() {
        // It is shown with replacement characters, and cannot be named by a call.
        map.insert("name_is_not_text".into(), true.into());
    }
    entry
}
