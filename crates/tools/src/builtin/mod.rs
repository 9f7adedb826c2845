//! The built-in tools, one file each.

pub mod agent_run;
mod change_args;
pub mod changes_apply;
pub mod changes_undo;
mod file_walk;
pub mod fs_delete;
pub mod fs_edit;
pub mod fs_grep;
pub mod fs_list;
pub mod fs_read;
pub mod fs_search;
pub mod fs_write;
pub mod git_diff;
pub mod git_log;
pub mod git_status;
pub mod http_get;
pub mod shell_run;
pub mod test_run;
pub mod user_ask;
pub mod user_attach;
