//! `fs.search`: files by name, size and date, never by content.

use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use capsule_base::code::Code;
use capsule_base::glob::Glob;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_base::units;
use capsule_core::action::{Action, SearchFilter};
use capsule_core::capability::Capability;
use capsule_core::lifecycle::{Operation, Permit};
use capsule_core::outcome::{CodedError, Outcome, Output};
use capsule_core::policy::Restrictions;
use capsule_core::tool::{ArgumentKind, ResultField, ToolArgument, ToolShape, ToolSignature};
use capsule_workspace::path_problem::{changed_problem, require_directory, require_unchanged};
use capsule_workspace::system::{Stat, statat};
use capsule_workspace::{Cancel, FoundPath, Workspace};
use rustix::fs::AtFlags;
use serde_json::{Map, Value};

use crate::builtin::file_walk::{FileQuery, NamePattern, walk_files};
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
                content: None,
            },
            limit: number_arg(args, "limit"),
        })
    }

    fn prepare(&self, action: &Action, _: &Value, context: &ToolContext<'_>) -> PreparedCall {
        prepare_path(action, context, |path, lookup| {
            let Action::Search { filter, .. } = action else { return Err(wrong_action_problem()) };
            Ok(Box::new(SearchOperation {
                workspace: Rc::clone(context.workspace),
                cancel: context.cancel.clone(),
                path: path.clone(),
                found: require_directory(path, lookup)?,
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
        let limit = usize::try_from(*results).unwrap_or(usize::MAX);
        let query = FileQuery {
            root: &self.found,
            scope: sight,
            pattern: self.filter.name.as_deref().and_then(NamePattern::parse),
            enters: &|_, _| true,
            limit,
            deadline: Instant::now() + Duration::from_millis(*timeout_ms).min(limits::SEARCH_TIME),
            cancel: &self.cancel,
        };
        let (filter, found) = (&self.filter, Mutex::new(Vec::new()));
        let end = walk_files(&self.workspace, &query, &|entry, path| {
            let no_follow = AtFlags::SYMLINK_NOFOLLOW;
            let Ok(stat) = statat(entry.directory, entry.name.as_bytes(), no_follow) else {
                return false;
            };
            if !matches_metadata(filter, &stat) {
                return false;
            }
            let shown = fs_list::entry_json(&path, entry.name, entry.kind, Some(&stat));
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            if found.len() <= limit {
                found.push((path.to_string(), shown));
            }
            true
        });
        if self.cancel.is_set() {
            return Outcome::failed(cancelled_problem());
        }
        if end.changed {
            return Outcome::failed(changed_problem(&self.path));
        }
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let truncated = found.len() > limit;
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        found.truncate(limit);
        let entries: Vec<Value> = found.into_iter().map(|(_, entry)| entry).collect();
        let output = Output::default()
            .with("entries", entries)
            .with("partial", end.partial)
            .with("truncated", truncated)
            .with("clamped", *clamped);
        Outcome::done(output)
    }
}

/// The problem of a search that was cancelled.
pub(super) fn cancelled_problem() -> CodedError {
    CodedError::new(Code::ExecCancelled, "the search was cancelled")
}

fn matches_metadata(filter: &SearchFilter, stat: &Stat) -> bool {
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    filter.min_size.is_none_or(|least| size >= least)
        && filter.max_size.is_none_or(|most| size <= most)
        && filter.modified_after.is_none_or(|time| stat.st_mtime >= time)
        && filter.modified_before.is_none_or(|time| stat.st_mtime < time)
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
