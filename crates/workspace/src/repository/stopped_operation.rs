//! What git notes of an operation that stopped half way: a rebase, or several commits to copy or to take back.
//!
//! The names in `rebase-merge` and `sequencer` are protected, since git goes on with what is there: it gives the rest
//! of an `exec` line to a shell, starts the program that a strategy or a signature is named for, and applies the
//! commits that are listed. Each file is read here as `sequencer.c` reads it. One that holds nothing but names of objects
//! and references, numbers, texts and commands that copy commits gives no orders, so it is judged as a plain file beside
//! it; what it names is compared as what any name reaches. Everything else stays protected, and so does `rebase-apply`, of
//! which the patches are applied next. What is there may go.

use capsule_core::change::{Change, FileState};

use super::flaw::Flaw;
use super::id::{Format, ObjectId};
use super::parts::Parts;
use super::refs::is_name;

const REBASE: &str = "rebase-merge";
const SEQUENCER: &str = "sequencer";
/// Directories of which the files may go.
const DIRECTORIES: [&str; 3] = [REBASE, SEQUENCER, "rebase-apply"];

/// The most that one of the files holds.
const MOST_BYTES: u64 = 16 << 20;

/// Options of a merge that start nothing.
const MERGE_OPTIONS: [&str; 10] = [
    "find-renames",
    "ignore-all-space",
    "ignore-cr-at-eol",
    "ignore-space-at-eol",
    "ignore-space-change",
    "no-renames",
    "no-renormalize",
    "ours",
    "patience",
    "theirs",
];

/// What a file names.
#[derive(Debug, Default, PartialEq, Eq)]
struct Names {
    /// Commits that git applies or goes on from.
    picked: Vec<ObjectId>,
    /// Those of which only the beginning of the name is there.
    short: Vec<String>,
    /// Those that git takes back, and the beginnings of their names.
    reverted: (Vec<ObjectId>, Vec<String>),
    /// What git goes back to when the operation is given up.
    head: Option<ObjectId>,
}

/// The directory of such files that a name in a repository is, or lies in, and the rest of the name.
pub(super) fn split_name(name: &str) -> Option<(&'static str, &str)> {
    DIRECTORIES.iter().find_map(|directory| {
        let rest = name.strip_prefix(directory)?;
        (rest.is_empty() || rest.starts_with('/'))
            .then(|| (*directory, rest.trim_start_matches('/')))
    })
}

impl Parts<'_> {
    /// Whether a change of what has this name in the repository's folder gives git no orders, among the files of an
    /// operation that stopped.
    pub(super) fn is_inert(&self, name: &str, change: &Change) -> Result<bool, Flaw> {
        let Some((directory, file)) = split_name(name) else { return Ok(false) };
        match &change.after {
            None => Ok(true),
            Some(FileState::Directory { .. }) => {
                Ok(file.is_empty() && [REBASE, SEQUENCER].contains(&directory))
            }
            Some(FileState::File { .. }) => {
                let text = self.read(name, MOST_BYTES)?;
                match read_file(self.format, (directory, file), &text) {
                    Some(names) => self.are_plain(&names),
                    None => Ok(false),
                }
            }
            Some(_) => Ok(false),
        }
    }

    /// Whether what is named brings nothing that is protected.
    fn are_plain(&self, names: &Names) -> Result<bool, Flaw> {
        if let Some(head) = names.head
            && self.moved("HEAD", Some(head))?.is_some()
        {
            return Ok(false);
        }
        let (ids, short) = &names.reverted;
        for (ids, short, is_reverted) in [(&names.picked, &names.short, false), (ids, short, true)]
        {
            let mut all = ids.clone();
            for begin in short {
                match self.refs.1.commit_beginning(begin, self.comparison.database)? {
                    Some(id) => all.push(id),
                    None => return Ok(false),
                }
            }
            for id in &all {
                if self.comparison.applied(id, is_reverted)?.is_some() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// What a file names; none where it may hold orders.
fn read_file(format: Format, (directory, name): (&str, &str), text: &[u8]) -> Option<Names> {
    let none = || Some(Names::default());
    let one = |id: ObjectId| Names { picked: vec![id], ..Names::default() };
    let id = || ObjectId::from_hex(format, text.strip_suffix(b"\n").unwrap_or(text));
    let line =
        || std::str::from_utf8(text).ok().map(|text| text.strip_suffix('\n').unwrap_or(text));
    let is = |expected: &[&str]| line().filter(|line| expected.contains(line)).and_then(|_| none());
    match (directory, name) {
        (
            REBASE,
            "interactive"
            | "quiet"
            | "verbose"
            | "cdate_is_adate"
            | "ignore_date"
            | "reschedule-failed-exec"
            | "no-reschedule-failed-exec"
            | "drop_redundant_commits"
            | "keep_redundant_commits",
        ) => is(&[""]),
        (REBASE, "signoff") => is(&["", "--signoff"]),
        (REBASE, "allow_rerere_autoupdate") => {
            is(&["--rerere-autoupdate", "--no-rerere-autoupdate"])
        }
        (REBASE, "strategy") => is(&["ort", "recursive"]),
        (REBASE, "strategy_opts") => {
            line()?.split(' ').filter(|word| !word.is_empty()).all(is_merge_option).then(none)?
        }
        (REBASE, "msgnum" | "end") => {
            line()?.bytes().all(|byte| byte.is_ascii_digit()).then(none)?
        }
        (
            REBASE,
            "message" | "message-squash" | "message-fixup" | "patch" | "git-rebase-todo.backup",
        ) => none(),
        (REBASE, "onto" | "stopped-sha" | "amend" | "squash-onto" | "autostash") => id().map(one),
        (REBASE, "orig-head") | (SEQUENCER, "head") => {
            Some(Names { head: Some(id()?), ..Names::default() })
        }
        (SEQUENCER, "abort-safety") if text.is_empty() => none(),
        (SEQUENCER, "abort-safety") => id().and_then(|_| none()),
        (REBASE, "head-name") => {
            let name = line()?;
            (name == "detached HEAD" || name.starts_with("refs/heads/") && is_name(name))
                .then(none)?
        }
        (REBASE, "refs-to-delete") => all_lines(text, is_rewritten_ref).and_then(|()| none()),
        (REBASE, "rewritten-list" | "rewritten-pending") => {
            all_lines(text, |line| are_ids(format, line)).and_then(|()| none())
        }
        (REBASE, "update-refs") => read_updates(format, text),
        (REBASE, "author-script") => is_author_script(text).then(none)?,
        (REBASE, "git-rebase-todo" | "done" | "current-fixups") => read_todo(format, text, false),
        (SEQUENCER, "todo") => read_todo(format, text, true),
        (SEQUENCER, "opts") => are_options(std::str::from_utf8(text).ok()?).then(none)?,
        _ => None,
    }
}

/// Sees each line; none where one is not as it should be.
fn all_lines<'t>(text: &'t [u8], see: impl FnMut(&'t [u8]) -> Option<()>) -> Option<()> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).try_for_each(see)
}

/// A reference that git keeps while it goes on, and removes at the end.
fn is_rewritten_ref(line: &[u8]) -> Option<()> {
    let name = std::str::from_utf8(line).ok()?;
    (name.starts_with("refs/rewritten/") && is_name(name)).then_some(())
}

fn are_ids(format: Format, line: &[u8]) -> Option<()> {
    let mut words = line.split(|byte| *byte == b' ');
    words.all(|word| ObjectId::from_hex(format, word).is_some()).then_some(())
}

/// Branches that are moved at the end: the name of each, what it was and what it becomes.
fn read_updates(format: Format, text: &[u8]) -> Option<Names> {
    let (mut names, mut number) = (Names::default(), 0);
    all_lines(text, |line| {
        number += 1;
        if number % 3 == 1 {
            let name = std::str::from_utf8(line).ok()?;
            return (name.starts_with("refs/heads/") && is_name(name)).then_some(());
        }
        let id = ObjectId::from_hex(format, line)?;
        names.picked.extend((!id.is_null()).then_some(id));
        Some(())
    })?;
    (number % 3 == 0).then_some(names)
}

/// The commands that are left, or were done: those that copy commits, and none that starts a program. A line that
/// begins with `#` is a comment, or a command that no version of git knows.
fn read_todo(format: Format, text: &[u8], is_sequencer: bool) -> Option<Names> {
    let mut names = Names::default();
    let is_shown = |byte: &u8| *byte >= b' ' && *byte != 0x7f || *byte == b'\t';
    all_lines(text, |line| {
        if !line.iter().all(is_shown) {
            return None;
        }
        if line.starts_with(b"#") {
            return Some(());
        }
        let mut words = line.splitn(2, |byte| *byte == b' ');
        let (command, rest) = (words.next()?, words.next());
        match (command, rest) {
            (b"pick" | b"p", Some(rest)) if is_sequencer => {
                short_name(format, rest)?.add(&mut names.picked, &mut names.short);
            }
            (b"revert", Some(rest)) if is_sequencer => {
                let (ids, short) = &mut names.reverted;
                short_name(format, rest)?.add(ids, short);
            }
            _ if is_sequencer => return None,
            (
                b"pick" | b"p" | b"reword" | b"r" | b"edit" | b"e" | b"squash" | b"s" | b"drop"
                | b"d",
                Some(rest),
            ) => names.picked.push(first_id(format, rest)?),
            (b"fixup" | b"f", Some(rest)) => {
                names.picked.push(first_id(format, without_message_flag(rest))?);
            }
            (b"noop" | b"break" | b"b", None) => {}
            (b"label" | b"l", Some(rest)) => is_label(rest).then_some(())?,
            (b"reset" | b"t", Some(b"[new root]")) => {}
            (b"reset" | b"t", Some(rest)) => is_label(first_word(rest)).then_some(())?,
            (b"merge" | b"m", Some(rest)) => {
                let bare = without_message_flag(rest);
                let labels = match bare.len() == rest.len() {
                    true => bare,
                    false => {
                        names.picked.push(first_id(format, bare)?);
                        bare.get(format.bytes() * 2 + 1..)?
                    }
                };
                let mut labels =
                    labels.split(|byte| *byte == b' ').take_while(|word| *word != b"#");
                labels.all(is_label).then_some(())?;
            }
            (b"update-ref" | b"u", Some(rest)) => {
                let name = std::str::from_utf8(rest).ok()?;
                (name.starts_with("refs/heads/") && is_name(name)).then_some(())?;
            }
            _ => return None,
        }
        Some(())
    })?;
    Some(names)
}

fn first_word(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == b' ').next().unwrap_or_default()
}

fn first_id(format: Format, text: &[u8]) -> Option<ObjectId> {
    ObjectId::from_hex(format, first_word(text))
}

/// A name of an object, or its beginning.
enum Name {
    Whole(ObjectId),
    Short(String),
}

impl Name {
    fn add(self, ids: &mut Vec<ObjectId>, short: &mut Vec<String>) {
        match self {
            Self::Whole(id) => ids.push(id),
            Self::Short(begin) => short.push(begin),
        }
    }
}

fn short_name(format: Format, text: &[u8]) -> Option<Name> {
    if let Some(id) = first_id(format, text) {
        return Some(Name::Whole(id));
    }
    let word = std::str::from_utf8(first_word(text)).ok()?;
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    (word.len() >= 4 && word.bytes().all(is_hex)).then(|| Name::Short(word.to_owned()))
}

/// What is behind the flag that says which message is used.
fn without_message_flag(rest: &[u8]) -> &[u8] {
    rest.strip_prefix(b"-C ").or_else(|| rest.strip_prefix(b"-c ")).unwrap_or(rest)
}

/// Whether git takes a label for nothing but a reference: not for the beginning of an object's name either, nor for one
/// behind a description (`v1-2-gdeadbee`), nor for an expression that leads from one commit to another.
fn is_label(label: &[u8]) -> bool {
    let is_hex = |text: &[u8]| text.len() >= 4 && text.iter().all(u8::is_ascii_hexdigit);
    let behind =
        label.windows(2).rposition(|pair| pair == b"-g").and_then(|at| label.get(at + 2..));
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_/.".contains(byte);
    !label.is_empty()
        && !label.starts_with(b"-")
        && label.iter().all(is_plain)
        && !label.windows(2).any(|pair| pair == b"..")
        && !is_hex(label)
        && !behind.is_some_and(is_hex)
}

/// Whether a text sets the author's name, address and date, in the quotes in which a shell reads nothing else.
fn is_author_script(text: &[u8]) -> bool {
    let Some(text) = text.strip_suffix(b"\n") else { return false };
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let names: [&[u8]; 3] = [b"GIT_AUTHOR_NAME=", b"GIT_AUTHOR_EMAIL=", b"GIT_AUTHOR_DATE="];
    lines.len() == names.len()
        && lines
            .iter()
            .zip(names)
            .all(|(line, name)| line.strip_prefix(name).is_some_and(is_quoted))
}

/// Whether a value is in single quotes, with single quotes and exclamation marks as git writes them.
fn is_quoted(value: &[u8]) -> bool {
    let mut rest = value;
    loop {
        let Some(inner) = rest.strip_prefix(b"'") else { return false };
        let Some(end) = inner.iter().position(|byte| *byte == b'\'') else { return false };
        if inner.get(..end).is_none_or(|text| text.iter().any(u8::is_ascii_control)) {
            return false;
        }
        match inner.get(end + 1..).unwrap_or_default() {
            [] => return true,
            [b'\\', b'\'' | b'!', behind @ ..] => rest = behind,
            _ => return false,
        }
    }
}

/// Whether an option of a merge is one of ours, in quotes or not.
fn is_merge_option(word: &str) -> bool {
    let word = word.strip_prefix('"').and_then(|word| word.strip_suffix('"')).unwrap_or(word);
    MERGE_OPTIONS.contains(&word.strip_prefix("--").unwrap_or(word))
}

/// Whether the options with which commits are copied name no program.
fn are_options(text: &str) -> bool {
    let flags = [
        "no-commit",
        "edit",
        "allow-empty",
        "allow-empty-message",
        "keep-redundant-commits",
        "signoff",
        "record-origin",
        "allow-ff",
        "allow-rerere-auto",
        "drop-redundant-commits",
    ];
    let is_option = |line: &str| {
        let Some((key, value)) = line.strip_prefix('\t').and_then(|line| line.split_once(" = "))
        else {
            return line == "[options]";
        };
        match key {
            "mainline" => !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()),
            "strategy" => ["ort", "recursive"].contains(&value),
            "strategy-option" => MERGE_OPTIONS.contains(&value),
            "default-msg-cleanup" => {
                ["default", "whitespace", "verbatim", "strip", "scissors"].contains(&value)
            }
            key => flags.contains(&key) && ["true", "false"].contains(&value),
        }
    };
    text.split_terminator('\n').all(is_option)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "85d1ca8d58052e624ad30502d29ce5d69928f983";

    fn is_read(path: &str, text: &str) -> bool {
        let (directory, name) = split_name(path).unwrap();
        read_file(Format::Sha1, (directory, name), text.as_bytes()).is_some()
    }

    #[test]
    fn what_git_writes_is_read() {
        for (path, text) in [
            (
                "rebase-merge/git-rebase-todo",
                &*format!("pick {ID} it's c2!\nfixup -C {ID} x\n\n# a\nbreak\n"),
            ),
            ("rebase-merge/git-rebase-todo", ""),
            (
                "rebase-merge/git-rebase-todo",
                "label onto\nreset onto\nreset [new root]\nupdate-ref refs/heads/a\nnoop\n",
            ),
            (
                "rebase-merge/git-rebase-todo",
                &format!("merge -C {ID} topic # Merge branch 'topic'\nmerge a/b c # x\n"),
            ),
            ("rebase-merge/done", &format!("p {ID} exec x\n")),
            ("rebase-merge/current-fixups", &format!("fixup {ID}\nsquash {ID}")),
            ("rebase-merge/orig-head", &format!("{ID}\n")),
            ("rebase-merge/head-name", "refs/heads/topic/a\n"),
            ("rebase-merge/head-name", "detached HEAD\n"),
            ("rebase-merge/rewritten-list", &format!("{ID} {ID}\n")),
            ("rebase-merge/update-refs", &format!("refs/heads/a\n{ID}\n{}\n", "0".repeat(40))),
            ("rebase-merge/interactive", ""),
            ("rebase-merge/msgnum", "12\n"),
            ("rebase-merge/message", "any\0thing"),
            (
                "rebase-merge/strategy_opts",
                " --theirs --\"patience\"\n".replace("--\"patience\"", "\"--patience\"").as_str(),
            ),
            (
                "rebase-merge/author-script",
                "GIT_AUTHOR_NAME='O'\\''Neil \\ $(x) `y`'\nGIT_AUTHOR_EMAIL=''\nGIT_AUTHOR_DATE='@1 +0000'\n",
            ),
            ("sequencer/todo", "pick 85d1ca8 it's c2!\n"),
            ("sequencer/todo", "revert 85d1ca8 x\n"),
            ("sequencer/abort-safety", ID),
            (
                "sequencer/opts",
                "[options]\n\trecord-origin = true\n\tmainline = 1\n\tstrategy-option = theirs\n",
            ),
        ] {
            assert!(is_read(path, text), "{path}: {text}");
        }
    }

    #[test]
    fn orders_are_not_read() {
        let pick = format!("pick {ID} x\n");
        for (path, text) in [
            ("rebase-merge/git-rebase-todo", &*format!("{pick}exec touch x\n")),
            ("rebase-merge/git-rebase-todo", "x sh\n"),
            ("rebase-merge/git-rebase-todo", "\tx sh\n"),
            ("rebase-merge/git-rebase-todo", " x sh\n"),
            ("rebase-merge/git-rebase-todo", "x\tsh\n"),
            ("rebase-merge/git-rebase-todo", &format!("pick {ID} x\rx sh\n")),
            ("rebase-merge/git-rebase-todo", &format!("pick {ID} x\0\nx sh\n")),
            ("rebase-merge/git-rebase-todo", &format!("pick {ID} x\\\nx sh\n")),
            ("rebase-merge/git-rebase-todo", "execute x\n"),
            ("rebase-merge/git-rebase-todo", "; x\n"),
            ("rebase-merge/git-rebase-todo", "noop x\n"),
            ("rebase-merge/git-rebase-todo", "pick HEAD@{1} x\n"),
            ("rebase-merge/git-rebase-todo", "pick 85d1ca8 x\n"),
            ("rebase-merge/git-rebase-todo", &format!("pick  {ID} x\n")),
            ("rebase-merge/git-rebase-todo", &format!("revert {ID} x\n")),
            ("rebase-merge/git-rebase-todo", "merge 85d1ca8\n"),
            ("rebase-merge/git-rebase-todo", "merge v1-2-g85d1ca8\n"),
            ("rebase-merge/git-rebase-todo", "merge HEAD~1\n"),
            ("rebase-merge/git-rebase-todo", "merge -C HEAD topic\n"),
            ("rebase-merge/git-rebase-todo", "merge a  b\n"),
            ("rebase-merge/git-rebase-todo", "merge --help\n"),
            ("rebase-merge/git-rebase-todo", "reset HEAD^{/x}\n"),
            ("rebase-merge/git-rebase-todo", "reset 85D1\n"),
            ("rebase-merge/git-rebase-todo", "update-ref refs/tags/a\n"),
            ("rebase-merge/done", "exec x\n"),
            ("rebase-merge/gpg_sign_opt", "-S\n"),
            ("rebase-merge/strategy", "evil\n"),
            ("rebase-merge/strategy_opts", " --subtree=x\n"),
            ("rebase-merge/head-name", "refs/heads/../../x\n"),
            ("rebase-merge/head-name", "refs/tags/x\n"),
            ("rebase-merge/orig-head", "HEAD\n"),
            ("rebase-merge/onto", "main\n"),
            ("rebase-merge/refs-to-delete", "refs/heads/main\n"),
            ("rebase-merge/update-refs", &format!("refs/heads/a\n{ID}\n")),
            ("rebase-merge/interactive", "x"),
            ("rebase-merge/unknown", ""),
            ("rebase-merge/sub/git-rebase-todo", ""),
            (
                "rebase-merge/author-script",
                "GIT_AUTHOR_NAME='a'; sh\nGIT_AUTHOR_EMAIL=''\nGIT_AUTHOR_DATE=''\n",
            ),
            (
                "rebase-merge/author-script",
                "GIT_AUTHOR_NAME=a\nGIT_AUTHOR_EMAIL=''\nGIT_AUTHOR_DATE=''\n",
            ),
            (
                "rebase-merge/author-script",
                "GIT_AUTHOR_NAME='a\nb'\nGIT_AUTHOR_EMAIL=''\nGIT_AUTHOR_DATE=''\n",
            ),
            (
                "rebase-merge/author-script",
                "GIT_AUTHOR_NAME='a'\\x'b'\nGIT_AUTHOR_EMAIL=''\nGIT_AUTHOR_DATE=''\n",
            ),
            (
                "rebase-merge/author-script",
                "GIT_AUTHOR_NAME='a'\nGIT_AUTHOR_EMAIL=''\nGIT_AUTHOR_DATE=''\nsh\n",
            ),
            (
                "rebase-merge/author-script",
                "GIT_SSH='a'\nGIT_AUTHOR_EMAIL=''\nGIT_AUTHOR_DATE=''\n",
            ),
            ("rebase-apply/0001", ""),
            ("rebase-apply/apply-opt", ""),
            ("sequencer/todo", "exec x\n"),
            ("sequencer/todo", "x sh\n"),
            ("sequencer/todo", "pick abc x\n"),
            ("sequencer/todo", "pick main x\n"),
            ("sequencer/opts", "[options]\n\tgpg-sign = x\n"),
            ("sequencer/opts", "[options]\n\tstrategy = evil\n"),
            ("sequencer/opts", "[include]\n\tpath = x\n"),
            ("sequencer/opts", "[options]\n\tedit = true\\\n\tx\n"),
            ("sequencer/head", "main\n"),
        ] {
            assert!(!is_read(path, text), "{path}: {text}");
        }
    }
}
