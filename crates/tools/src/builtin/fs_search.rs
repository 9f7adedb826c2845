//! `fs.search`: files by name, size and date, never by content.

use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use capsule_base::code::Code;
use capsule_base::glob::Glob;
use capsule_base::path::WorkspacePath;
use capsule_base::units;
use capsule_core::action::{Action, SearchFilter};
use capsule_core::capability::Capability;
use capsule_core::lifecycle::{Operation, Permit};
use capsule_core::outcome::{CodedError, Outcome, Output};
use capsule_core::policy::{ListingScope, Restrictions};
use capsule_core::tool::{ArgumentKind, ResultField, ToolArgument, ToolShape, ToolSignature};
use capsule_workspace::path_problem::{changed_problem, require_directory, require_unchanged};
use capsule_workspace::system::{fstat, statat};
use capsule_workspace::{
    Cancel, FoundPath, Visitor, WalkStep, WalkedEntry, Workspace, same_file, walk,
};
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;
use serde_json::{Map, Value};

use crate::builtin::fs_list;
use crate::fault::{wrong_action_problem, wrong_permit_outcome};
use crate::tool::args::{invalid_args, number_arg, size_arg, text_arg};
use crate::tool::prepare::prepare_path;
use crate::tool::{DescribeContext, PreparedCall, Tool, ToolContext};

/// What `fs.search` is called, takes and gives.
pub static SIGNATURE: ToolSignature = ToolSignature {
    id: "fs.search",
    model_name: "fs_search",
    aliases: &["file_search"],
    about: "Looks for files of the workspace by name, size and date; never opens one.",
    shape: ToolShape::Files,
    capabilities: &[Capability::FsMeta],
    arguments: &[
        ToolArgument {
            name: "path",
            kind: ArgumentKind::Path,
            required: false,
            about: "the folder to look beneath; the workspace if left out",
        },
        ToolArgument {
            name: "name",
            kind: ArgumentKind::Name,
            required: false,
            about: "a pattern such as `*.md`; with a slash it is about the path",
        },
        ToolArgument {
            name: "min_size",
            kind: ArgumentKind::Size,
            required: false,
            about: "the smallest size",
        },
        ToolArgument {
            name: "max_size",
            kind: ArgumentKind::Size,
            required: false,
            about: "the largest size",
        },
        ToolArgument {
            name: "modified_after",
            kind: ArgumentKind::Time,
            required: false,
            about: "a date, a time, or a duration ago such as `7d`",
        },
        ToolArgument {
            name: "modified_before",
            kind: ArgumentKind::Time,
            required: false,
            about: "a date, a time, or a duration ago such as `7d`",
        },
        ToolArgument {
            name: "limit",
            kind: ArgumentKind::Number,
            required: false,
            about: "how many results at most",
        },
    ],
    results: &[
        ResultField { name: "entries", about: "the files: path, kind, size and date" },
        ResultField {
            name: "partial",
            about: "whether the search ended before it had seen everything",
        },
        ResultField { name: "truncated", about: "whether there are more results" },
        ResultField { name: "clamped", about: "whether more was asked for than may be shown" },
    ],
};

/// Looks for files.
#[derive(Clone, Copy, Debug)]
pub struct FsSearch;

impl Tool for FsSearch {
    fn signature(&self) -> &'static ToolSignature {
        &SIGNATURE
    }

    fn describe(
        &self,
        args: &Map<String, Value>,
        context: &DescribeContext<'_>,
    ) -> Result<Action, CodedError> {
        let time = |name: &str| {
            text_arg(args, name).map(|text| parse_time(name, text, context.now)).transpose()
        };
        let name = text_arg(args, "name");
        if let Some(name) = name {
            Glob::parse(name).map_err(|error| invalid_args(format!("`name`: {error}")))?;
        }
        Ok(Action::Search {
            path: context.path(text_arg(args, "path").unwrap_or(".")),
            filter: SearchFilter {
                name: name.map(Into::into),
                min_size: size_arg(args, "min_size")?,
                max_size: size_arg(args, "max_size")?,
                modified_after: time("modified_after")?,
                modified_before: time("modified_before")?,
            },
            limit: number_arg(args, "limit"),
        })
    }

    fn prepare(&self, action: &Action, _: &Value, context: &ToolContext<'_>) -> PreparedCall {
        prepare_path(action, context, |path, stands| {
            let Action::Search { filter, .. } = action else { return Err(wrong_action_problem()) };
            Ok(Box::new(SearchOperation {
                workspace: Rc::clone(context.workspace),
                cancel: context.cancel.clone(),
                path: path.clone(),
                found: require_directory(path, stands)?,
                filter: filter.clone(),
            }))
        })
    }
}

/// A point in time in seconds since 1970: RFC 3339, a date, or a duration before now.
fn parse_time(name: &str, text: &str, now: u64) -> Result<i64, CodedError> {
    if let Some(ago) = units::parse_duration(text) {
        let now = i64::try_from(now / 1_000_000).unwrap_or(i64::MAX);
        return Ok(now.saturating_sub(i64::try_from(ago.as_secs()).unwrap_or(i64::MAX)));
    }
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Ok(time.as_second());
    }
    let date = text.parse::<jiff::civil::Date>().ok();
    let midnight = date.and_then(|date| date.to_zoned(jiff::tz::TimeZone::UTC).ok());
    midnight.map(|time| time.timestamp().as_second()).ok_or_else(|| {
        invalid_args(format!("`{name}` is a date, a time such as `2026-01-31T12:00:00Z`, or `7d`"))
    })
}

struct SearchOperation {
    workspace: Rc<Workspace>,
    cancel: Cancel,
    path: WorkspacePath,
    found: FoundPath,
    filter: SearchFilter,
}

impl Operation for SearchOperation {
    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        let Restrictions::Listing { results, clamped, timeout_ms, scope: sight } =
            permit.restrictions()
        else {
            return wrong_permit_outcome();
        };
        if let Err(problem) = require_unchanged(&self.workspace, &self.path, &self.found) {
            return Outcome::failed(problem);
        }
        let pattern = self.filter.name.as_deref().and_then(|name| Glob::parse(name).ok());
        let search = Search {
            root: &self.found,
            scope: sight,
            whole_path: self.filter.name.as_deref().is_some_and(|name| name.contains('/')),
            pattern,
            filter: &self.filter,
            limit: usize::try_from(*results).unwrap_or(usize::MAX),
            deadline: Instant::now() + Duration::from_millis(*timeout_ms),
            cancel: &self.cancel,
            found: Mutex::new(Vec::new()),
            count: AtomicUsize::new(0),
            partial: AtomicBool::new(false),
            changed: AtomicBool::new(false),
        };
        let from = vec![(self.found.real_path.as_str().into(), false)];
        walk(&self.workspace, from, &search);
        if self.cancel.is_set() {
            return Outcome::failed(CodedError::new(
                Code::ExecCancelled,
                "the search was cancelled",
            ));
        }
        if search.changed.load(Ordering::Relaxed) {
            return Outcome::failed(changed_problem(&self.path));
        }
        let mut found = search.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let truncated = found.len() > search.limit;
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        found.truncate(search.limit);
        let entries: Vec<Value> = found.into_iter().map(|(_, entry)| entry).collect();
        let output = Output::default()
            .with("entries", entries)
            .with("partial", search.partial.load(Ordering::Relaxed))
            .with("truncated", truncated)
            .with("clamped", *clamped);
        Outcome::done(output)
    }
}

struct Search<'s> {
    /// The folder that was judged.
    root: &'s FoundPath,
    scope: &'s ListingScope,
    pattern: Option<Glob>,
    whole_path: bool,
    filter: &'s SearchFilter,
    limit: usize,
    deadline: Instant,
    cancel: &'s Cancel,
    found: Mutex<Vec<(String, Value)>>,
    count: AtomicUsize,
    partial: AtomicBool,
    /// Whether another folder stands where the judged one was.
    changed: AtomicBool,
}

impl Search<'_> {
    fn matches_name(&self, entry: &WalkedEntry<'_>) -> bool {
        let Some(pattern) = &self.pattern else { return true };
        if self.whole_path {
            let path = entry.path.to_string_lossy();
            pattern.matches_components(&path.split('/').collect::<Vec<&str>>())
        } else {
            pattern.matches_components(&[&entry.name.to_string_lossy()])
        }
    }

    fn matches_metadata(&self, stat: &capsule_workspace::system::Stat) -> bool {
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        self.filter.min_size.is_none_or(|least| size >= least)
            && self.filter.max_size.is_none_or(|most| size <= most)
            && self.filter.modified_after.is_none_or(|time| stat.st_mtime >= time)
            && self.filter.modified_before.is_none_or(|time| stat.st_mtime < time)
    }

    fn add(&self, entry: &WalkedEntry<'_>) {
        let Ok(stat) = statat(entry.directory, entry.name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW)
        else {
            return;
        };
        if !self.matches_metadata(&stat) {
            return;
        }
        let path = walked_path(entry.path);
        if !self.scope.shows(&path) {
            return;
        }
        let shown = fs_list::entry_json(&path, entry.name, entry.kind, Some(&stat));
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        // One more than is shown, so that it is known whether there are more.
        if found.len() <= self.limit {
            found.push((path.to_string(), shown));
            self.count.store(found.len(), Ordering::Relaxed);
        }
    }
}

/// A walked path, for asking the policy about it.
fn walked_path(path: &OsStr) -> WorkspacePath {
    WorkspacePath::root().join(&path.to_string_lossy())
}

impl Visitor for Search<'_> {
    fn directory(&self, path: &OsStr, folder: BorrowedFd<'_>, _: bool) {
        let judged = path != OsStr::new(self.root.real_path.as_str())
            || fstat(folder).is_ok_and(|now| same_file(&now, &self.root.stat));
        if !judged {
            self.changed.store(true, Ordering::Relaxed);
        }
    }

    fn entry(&self, entry: &WalkedEntry<'_>) -> WalkStep {
        if self.changed.load(Ordering::Relaxed) {
            return WalkStep::Skip;
        }
        if entry.kind == FileType::Directory && self.scope.shows(&walked_path(entry.path)) {
            return WalkStep::Enter;
        }
        if entry.kind == FileType::RegularFile && self.matches_name(entry) {
            self.add(entry);
        }
        WalkStep::Skip
    }

    fn should_stop(&self) -> bool {
        let enough =
            self.count.load(Ordering::Relaxed) > self.limit || self.changed.load(Ordering::Relaxed);
        if enough || self.cancel.is_set() {
            return true;
        }
        let late = Instant::now() > self.deadline;
        if late {
            self.partial.store(true, Ordering::Relaxed);
        }
        late
    }

    fn unreadable(&self, _: &OsStr, _: bool, _: Errno) {
        self.partial.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates_times_or_durations_ago() {
        let now = 1_000_000_000_000_000;
        let moment = |text: &str| parse_time("t", text, now).ok();
        assert_eq!(moment("1d"), Some(1_000_000_000 - 86_400));
        assert_eq!(moment("1970-01-02"), Some(86_400));
        assert_eq!(moment("1970-01-02T00:00:01Z"), Some(86_401));
        assert_eq!(moment("yesterday"), None);
        assert_eq!(moment(""), None);
    }
}
