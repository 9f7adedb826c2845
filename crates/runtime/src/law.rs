//! From files to a policy that is bound to a workspace.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use capsule_core::code::Code;
use capsule_core::diagnostic::Diagnostics;
use capsule_core::journal::{RunKind, RunOpened};
use capsule_core::limits;
use capsule_core::outcome::Problem;
use capsule_core::policy::{Draft, Policy, Roots};
use capsule_tools::{CATALOGUE, Workspace};

/// Where a policy comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicySource {
    /// A file.
    File(PathBuf),
    /// One that this build carries.
    Builtin(String),
}

impl PolicySource {
    /// Reads `builtin:NAME` or a path.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text.strip_prefix("builtin:") {
            Some(name) => Self::Builtin(name.into()),
            None => Self::File(text.into()),
        }
    }
}

/// A text with where it was read.
#[derive(Clone, Debug)]
pub struct Text {
    /// How its place is shown.
    pub name: String,
    /// The text.
    pub text: String,
}

/// Why there is no policy to decide by. Everything is denied.
#[derive(Debug)]
pub enum LawError {
    /// It could not be found or read.
    Problem(Problem),
    /// It was read and is wrong.
    Wrong(Text, Diagnostics),
}

impl From<Problem> for LawError {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

/// A policy that is bound to a workspace, and everything around it.
#[derive(Clone, Debug)]
pub struct Law {
    /// The policy.
    pub policy: Arc<Policy>,
    /// Its text.
    pub text: Text,
    /// Where its file really is.
    pub file: Option<PathBuf>,
    /// The folder.
    pub workspace: Rc<Workspace>,
    /// What it is bound to.
    pub roots: Roots,
    /// The folder that `~` stands for.
    pub home: String,
    /// What its author probably did not mean.
    pub warnings: Diagnostics,
}

/// What a policy is looked up with.
#[derive(Clone, Debug)]
pub struct Lookup<'l> {
    /// Where it comes from.
    pub source: &'l PolicySource,
    /// The workspace that was named on the command line.
    pub workspace: Option<&'l Path>,
    /// The folder that the command was given in.
    pub cwd: &'l Path,
    /// The user's home.
    pub home: &'l Path,
    /// The runtime's own files.
    pub own: &'l [PathBuf],
}

impl Law {
    /// Reads a policy and binds it.
    ///
    /// # Errors
    /// When there is none, it is wrong, or the workspace is not one.
    pub fn load(lookup: &Lookup<'_>) -> Result<Self, LawError> {
        let (text, file) = read_policy(lookup.source)?;
        let home = lookup.home.to_string_lossy();
        let (draft, warnings) = Draft::parse(&text.text, &text.name, &home, CATALOGUE)
            .map_err(|problems| LawError::Wrong(text.clone(), problems))?;
        let root = workspace_root(lookup, draft.root(), file.as_deref())?;
        let workspace = Workspace::open(&root).map_err(|error| {
            let message = format!("`{}` cannot be opened: {error}", root.display());
            Problem::new(Code::WorkspaceMissing, message)
        })?;
        let own = lookup.own.iter().map(|path| real(path)).chain(file.clone());
        let roots = Roots {
            workspace: workspace.path().to_string_lossy().into_owned(),
            own: own.map(|path| path.to_string_lossy().into_owned()).collect(),
        };
        let policy = draft
            .bind(&roots, &home, CATALOGUE)
            .map_err(|problems| LawError::Wrong(text.clone(), problems))?;
        Ok(Self {
            policy: Arc::new(policy),
            text,
            file,
            workspace: Rc::new(workspace),
            roots,
            home: home.into_owned(),
            warnings,
        })
    }

    /// Binds the recorded text of a run's policy to the workspace that was recorded; nothing is
    /// opened.
    ///
    /// # Errors
    /// When this build does not read it.
    pub fn recorded(text: &Text, opened: &RunOpened) -> Result<Arc<Policy>, Diagnostics> {
        let as_recorded = |draft: Draft| draft.recorded_as(opened.policy.sha256);
        let policy = bind_again(text, opened, as_recorded)?;
        let policy = if opened.origin == RunKind::Apply { policy.applying() } else { policy };
        Ok(Arc::new(policy))
    }

    /// Binds the recorded text of a run's policy in the same way, for another run: its digest is
    /// that of the text as it is recorded.
    ///
    /// # Errors
    /// When this build does not read it.
    pub(crate) fn bound(text: &Text, opened: &RunOpened) -> Result<Policy, Diagnostics> {
        bind_again(text, opened, |draft| draft)
    }
}

fn bind_again(
    text: &Text,
    opened: &RunOpened,
    with: impl FnOnce(Draft) -> Draft,
) -> Result<Policy, Diagnostics> {
    let RunOpened { workspace, own, home, .. } = opened;
    let roots = Roots { workspace: workspace.path.clone(), own: own.clone() };
    let (draft, _) = Draft::parse(&text.text, &text.name, home, CATALOGUE)?;
    with(draft).bind(&roots, home, CATALOGUE)
}

fn read_policy(source: &PolicySource) -> Result<(Text, Option<PathBuf>), Problem> {
    match source {
        PolicySource::Builtin(name) if name == "base" => {
            // The base policy always applies; by itself it allows nothing.
            let text = String::from("version: 1\nname: base\n");
            Ok((Text { name: "builtin:base".into(), text }, None))
        }
        PolicySource::Builtin(name) => {
            let message = format!("this build carries no policy `builtin:{name}`");
            Err(Problem::new(Code::PolicyMissing, message).suggest("it carries `builtin:base`"))
        }
        PolicySource::File(path) => {
            let text = read_text(path, limits::POLICY_BYTES, Code::PolicyUnreadable)?;
            let name = shown_name(&path.to_string_lossy());
            Ok((Text { name, text }, Some(real(path))))
        }
    }
}

/// How the place of a text is shown in decisions and problems: by the file's own name.
#[must_use]
pub fn shown_name(path: &str) -> String {
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path).to_owned()
}

/// A place as it really is, behind its links; as it was named where that cannot be told.
#[must_use]
pub fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Reads a text file that a person wrote: a regular file, UTF-8, not too large.
///
/// # Errors
/// With `code`; [`Code::PolicyMissing`] for a policy that is not there.
pub fn read_text(path: &Path, most: usize, code: Code) -> Result<String, Problem> {
    let shown = path.display();
    let failed = |why: String| Problem::new(code, format!("`{shown}` cannot be read: {why}"));
    let meta = path.metadata().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound if code == Code::PolicyUnreadable => {
            Problem::new(Code::PolicyMissing, format!("there is no policy at `{shown}`"))
                .suggest("write a starter with `capsule init`")
        }
        _ => failed(error.to_string()),
    })?;
    if !meta.is_file() {
        return Err(failed("it is not a regular file".into()));
    }
    let mut text = Vec::new();
    let file = File::open(path).map_err(|error| failed(error.to_string()))?;
    let limit = u64::try_from(most).unwrap_or(u64::MAX);
    file.take(limit.saturating_add(1))
        .read_to_end(&mut text)
        .map_err(|error| failed(error.to_string()))?;
    if text.len() > most {
        return Err(failed(format!("it has more than {most} bytes")));
    }
    String::from_utf8(text).map_err(|_| failed("it is not UTF-8".into()))
}

/// The workspace: the one that was named, else the policy's, else the current folder. The home
/// folder and `/` are taken only when they are named.
///
/// # Errors
/// [`Code::WorkspaceRefused`] where it would be one of the two and nobody named it.
pub(crate) fn workspace_root(
    lookup: &Lookup<'_>,
    named_by_policy: Option<&str>,
    policy: Option<&Path>,
) -> Result<PathBuf, Problem> {
    if let Some(named) = lookup.workspace {
        return Ok(lookup.cwd.join(named));
    }
    if let Some(named) = named_by_policy {
        let base = policy.and_then(Path::parent).unwrap_or(lookup.cwd);
        return Ok(match named.strip_prefix("~/") {
            Some(rest) => lookup.home.join(rest),
            None if named == "~" => lookup.home.to_owned(),
            None => base.join(named),
        });
    }
    let here = real(lookup.cwd);
    if here == real(lookup.home) || here == Path::new("/") {
        let message =
            format!("`{}` is not taken as a workspace unless it is named", here.display());
        return Err(Problem::new(Code::WorkspaceRefused, message)
            .suggest("name the folder with `--workspace`"));
    }
    Ok(here)
}
