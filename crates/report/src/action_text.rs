//! What an action is about, in one line.

use capsule_base::units::counted;
use capsule_command::argv::show_argv;
use capsule_core::action::{Action, ParsedUrl, RepositoryQuery};

/// The action in one line, for a screen or a log; not escaped.
pub(crate) fn action_text(action: &Action) -> String {
    match action {
        Action::Search { path, filter, .. } => {
            let content = filter.content.as_deref();
            let sought: Vec<&str> = content.into_iter().chain(filter.name.as_deref()).collect();
            [&sought[..], &[path.asked.as_str()]].concat().join(" in ")
        }
        Action::List { path, .. }
        | Action::Read { path, .. }
        | Action::Write { path, .. }
        | Action::Edit { path, .. }
        | Action::Delete { path, .. } => path.asked.clone(),
        Action::Fetch { url, .. } => match &url.parsed {
            ParsedUrl::Url(address) => address.display_short(),
            ParsedUrl::Refused(_) => url.asked.clone(),
        },
        Action::Run { argv, .. } | Action::Agent { argv } => show_argv(argv),
        Action::Command { text, .. } => text.clone(),
        Action::Git { query: ask } => query_text(ask),
        Action::Test { filter } => match filter {
            Some(filter) => format!("the tests that `{filter}` picks"),
            None => "all tests".to_string(),
        },
        Action::AskUser { question, .. } => question.clone(),
        Action::Attach { file } => file.clone(),
        Action::Apply { changes, .. } | Action::Undo { changes, .. } => match changes.as_slice() {
            [one] => one.path.clone(),
            many => counted(many.len(), "change"),
        },
    }
}

/// A question about a repository in one line; not escaped.
fn query_text(query: &RepositoryQuery) -> String {
    let named: Vec<&str> = query.paths().iter().map(|path| path.asked.as_str()).collect();
    let mut text = match named.as_slice() {
        [] => "the repository".to_string(),
        named => named.join(", "),
    };
    if matches!(query, RepositoryQuery::Diff { staged: true, .. }) {
        text.push_str(", staged");
    }
    text
}
