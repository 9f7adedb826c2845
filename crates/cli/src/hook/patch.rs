//! The patches of Codex and opencode: which files they make, change and remove, and what those hold then.

/// What a patch does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PatchedFile<'p> {
    /// It is made, with this content.
    Added(&'p str, String),
    /// It is removed.
    Deleted(&'p str),
    /// These parts of it are replaced, one after another; it may get another name.
    Updated(&'p str, Option<&'p str>, Vec<(String, String)>),
}

/// The files of a patch; none where it cannot be read.
pub(crate) fn parse_patch(text: &str) -> Option<Vec<PatchedFile<'_>>> {
    let mut lines = text.trim().lines();
    (lines.next()?.trim_end() == "*** Begin Patch").then_some(())?;
    let mut files: Vec<PatchedFile<'_>> = Vec::new();
    let mut has_end = false;
    for line in lines {
        if has_end {
            return None;
        }
        if let Some(path) = line.strip_prefix("*** Add File: ") {
            files.push(PatchedFile::Added(path, String::new()));
        } else if let Some(path) = line.strip_prefix("*** Delete File: ") {
            files.push(PatchedFile::Deleted(path));
        } else if let Some(path) = line.strip_prefix("*** Update File: ") {
            files.push(PatchedFile::Updated(path, None, Vec::new()));
        } else if line.trim_end() == "*** End Patch" {
            has_end = true;
        } else {
            add_line(files.last_mut()?, line)?;
        }
    }
    let is_whole = has_end && !files.is_empty();
    is_whole.then_some(files)
}

/// Adds a line of the patch to its file.
fn add_line<'p>(file: &mut PatchedFile<'p>, line: &'p str) -> Option<()> {
    match file {
        PatchedFile::Deleted(_) => return None,
        PatchedFile::Added(_, content) => {
            content.push_str(line.strip_prefix('+')?);
            content.push('\n');
        }
        PatchedFile::Updated(_, renamed, parts) => {
            if let Some(path) = line.strip_prefix("*** Move to: ") {
                *renamed = Some(path);
            } else if line.starts_with("@@") {
                parts.push(Default::default());
            } else if line.trim_end() != "*** End of File" {
                if parts.is_empty() {
                    parts.push(Default::default());
                }
                let (old, new) = parts.last_mut()?;
                let (sign, rest) = line.split_at_checked(1).unwrap_or((" ", ""));
                if matches!(sign, " " | "-") {
                    old.push_str(rest);
                    old.push('\n');
                }
                if matches!(sign, " " | "+") {
                    new.push_str(rest);
                    new.push('\n');
                }
                matches!(sign, " " | "-" | "+").then_some(())?;
            }
        }
    }
    Some(())
}

/// A text after replacements, each of the first place behind the one before; none where one is not found.
pub(crate) fn replace_parts(text: &str, parts: &[(String, String)]) -> Option<String> {
    let (mut done, mut rest) = (String::new(), text);
    for (old, new) in parts.iter().filter(|part| part != &&Default::default()) {
        let at = if old.is_empty() { rest.len() } else { rest.find(old.as_str())? };
        done.push_str(rest.get(..at)?);
        done.push_str(new);
        rest = rest.get(at + old.len()..)?;
    }
    Some(done + rest)
}
