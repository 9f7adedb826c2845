//! From files to a policy that is bound to a workspace.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use capsule_base::code::Code;
use capsule_base::diagnostic::{Diagnostic, Diagnostics};
use capsule_base::digest::Digest;
use capsule_base::escape;
use capsule_base::yaml::{self, POLICY_DIALECT};
use capsule_core::journal::{
    Document, LayerOpened, PayloadRef, RunKind, RunOpened, WorkspaceIdentity,
};
use capsule_core::outcome::CodedError;
use capsule_core::policy::{BindRoots, Policy, PolicyLayer};
use capsule_policy::{ExtendedPolicy, LoadedPolicy, PolicyDraft, SourceText, builtin_text};
use capsule_redact::holds_mask;
use capsule_tools::{CATALOGUE, Toolchains, root_names};
use capsule_workspace::Workspace;

use crate::layers::{self, LayerText};
use crate::policy_load_error::PolicyLoadError;
use crate::realpath::{links_to, real_path, real_path_of_missing, real_paths, spellings};
use crate::source_text::{PolicySource, read_policy, shown_name};
use crate::toolchains;

/// A policy that is bound to a workspace, and everything around it.
#[derive(Clone, Debug)]
pub struct BoundPolicy {
    /// The policy.
    pub policy: Arc<Policy>,
    /// Its text.
    pub text: SourceText,
    /// The policy that it extends, where that is not the base policy alone.
    pub extended: Option<ExtendedPolicy>,
    /// Where its file really is.
    pub file: Option<PathBuf>,
    /// What tightens it.
    pub layers: Vec<LayerText>,
    /// The folder.
    pub workspace: Rc<Workspace>,
    /// The toolchains that commands see.
    pub toolchains: Rc<Toolchains>,
    /// What it is bound to.
    pub roots: BindRoots,
    /// Whether neither the user nor the policy named the workspace.
    pub is_workspace_assumed: bool,
    /// The folder that `~` stands for.
    pub home: String,
    /// What its author probably did not mean.
    pub warnings: Diagnostics,
}

/// What a policy is looked up with.
#[derive(Clone, Debug)]
pub struct PolicyLoadOptions<'l> {
    /// Where it comes from.
    pub source: &'l PolicySource,
    /// The workspace that was named on the command line.
    pub workspace: Option<&'l Path>,
    /// The folder that the command was given in.
    pub cwd: &'l Path,
    /// The same as the shell spells it, which may lead through links.
    pub shell_cwd: Option<&'l Path>,
    /// The user's home.
    pub home: &'l Path,
    /// The runtime's own files.
    pub own_files: &'l [PathBuf],
    /// Where the user's own layer would lie.
    pub user_layer: &'l Path,
    /// The profile that was chosen in place of the policy's own.
    pub profile: Option<&'l str>,
}

impl BoundPolicy {
    /// The workspace, as it is recorded.
    pub(crate) fn workspace_identity(&self) -> WorkspaceIdentity {
        WorkspaceIdentity {
            path: self.roots.workspace.clone(),
            device: self.workspace.device().to_string(),
            inode: self.workspace.inode().to_string(),
            spelling: self.roots.spelling,
        }
    }

    /// Reads a policy and binds it.
    ///
    /// # Errors
    /// When there is none, it is wrong, or the workspace is not one.
    pub fn load(lookup: &PolicyLoadOptions<'_>) -> Result<Self, PolicyLoadError> {
        let (text, file) = read_policy(lookup.source)?;
        let home = lookup.home.to_string_lossy();
        let (draft, mut warnings) = PolicyDraft::parse(&text.text, &text.name, &home, CATALOGUE)
            .map_err(|problems| PolicyLoadError::Invalid(text.clone(), problems))?;
        let extended = draft.extended().cloned();
        let root = workspace_root(lookup, draft.root(), file.as_deref())?;
        let names_root = draft.root().is_some();
        let workspace =
            Workspace::open(&root).map_err(|error| no_workspace(lookup, &text, &root, &error))?;
        let mut layers =
            layers::read_layers(lookup.user_layer, &workspace, (file.as_deref(), &home))?;
        let runtime_files = (real_paths(lookup.own_files).into_iter().chain(file.clone()))
            .chain(layers.iter().map(|layer| layer.path.clone()))
            .chain(draft.anchors().map(|path| real_path_of_missing(Path::new(path))))
            .chain(own_file_links(lookup));
        let roots = BindRoots {
            workspace: workspace.path().to_string_lossy().into_owned(),
            runtime_files: runtime_files.map(|path| path.to_string_lossy().into_owned()).collect(),
            spelling: workspace.spelling(),
            // A policy that came with the workspace only tightens.
            may_drop_base_rules: file
                .as_deref()
                .is_none_or(|file| is_outside_workspace(file, workspace.path())),
        };
        let tightening: Result<Vec<PolicyLayer>, PolicyLoadError> =
            layers.iter_mut().map(|layer| read_layer(layer, &draft, &roots, &home)).collect();
        let policy = draft
            .bind(&roots, &home, CATALOGUE)
            .map_err(|problems| PolicyLoadError::Invalid(text.clone(), problems))?;
        let policy = with_profile(policy, lookup.profile)?.with_layers(tightening?);
        let workspace =
            with_root_names(workspace, &policy, &spellings(&root, lookup.cwd, lookup.shell_cwd));
        let toolchains = toolchains::resolve(&policy, (&roots, lookup.home), &mut warnings)
            .map_err(|problems| PolicyLoadError::Invalid(text.clone(), problems))?;
        let policy = policy.with_programs(&toolchains.real_paths());
        let workspace = workspace.with_program_directories(toolchains.real_directories());
        Ok(Self {
            policy: Arc::new(policy),
            text,
            extended,
            file,
            layers,
            workspace: Rc::new(workspace),
            toolchains: Rc::new(toolchains),
            roots,
            is_workspace_assumed: lookup.workspace.is_none() && !names_root,
            home: home.into_owned(),
            warnings,
        })
    }

    /// The policy and its texts without the open workspace, for code that only advises on it.
    #[must_use]
    pub fn loaded(&self) -> LoadedPolicy {
        LoadedPolicy {
            policy: Arc::clone(&self.policy),
            text: self.text.clone(),
            layers: self.layers.iter().map(|layer| (layer.kind, layer.text.clone())).collect(),
            roots: self.roots.clone(),
            home: self.home.clone(),
            is_base: self.file.is_none() && builtin_text("base") == Some(self.text.text.as_str()),
        }
    }

    /// The path of the policy's file, or its built-in name: with what it calls itself, which policy it is.
    #[must_use]
    pub fn place(&self) -> String {
        let file = self.file.as_deref().map(|file| file.to_string_lossy().into_owned());
        file.unwrap_or_else(|| self.text.name.clone())
    }

    /// The policy without its layers, for what its author says of it alone.
    #[must_use]
    pub fn without_layers(&self) -> Arc<Policy> {
        Arc::new(Policy::clone(&self.policy).with_layers(Vec::new()))
    }

    /// Binds the recorded texts of a run's policy to the workspace that was recorded; nothing is
    /// opened.
    ///
    /// # Errors
    /// When this build does not read them.
    pub fn bind_recorded(
        texts: &PolicyTexts,
        opened: &RunOpened,
    ) -> Result<Arc<Policy>, Diagnostics> {
        let policy = bind_texts(texts, opened, true)?;
        Ok(Arc::new(match opened.origin {
            RunKind::Apply => policy.for_apply(),
            RunKind::Undo => policy.for_undo(),
            RunKind::Agent => policy.for_agent(opened.staged, opened.network),
            _ => policy,
        }))
    }

    /// Binds the recorded texts of a run's policy in the same way for another run in the same workspace,
    /// whose one call a person makes: its digest is that of the text as it is recorded.
    ///
    /// # Errors
    /// The workspace is another one, or this build does not read the texts.
    pub(crate) fn rebind(
        opened: &RunOpened,
        texts: &PolicyTexts,
        by_person: impl FnOnce(Policy) -> Policy,
    ) -> Result<Self, CodedError> {
        let item = &opened.workspace;
        let missing =
            |why: String| CodedError::new(Code::WorkspaceMissing, format!("`{}` {why}", item.path));
        let workspace = Workspace::open(Path::new(&item.path))
            .map_err(|error| missing(format!("cannot be opened: {error}")))?;
        let identity = (workspace.device().to_string(), workspace.inode().to_string());
        if identity != (item.device.clone(), item.inode.clone()) {
            return Err(missing("is not the same directory as the run's workspace".into()));
        }
        let policy = bind_texts(texts, opened, false).map_err(|_| {
            CodedError::new(Code::ChangeNone, "the run's policy cannot be read again")
        })?;
        let workspace = with_root_names(workspace, &policy, &[]);
        Ok(Self {
            policy: Arc::new(by_person(policy)),
            text: texts.policy.clone(),
            extended: texts.extended.clone(),
            file: Some(opened.policy.path.clone().into()),
            layers: texts.layers.clone(),
            workspace: Rc::new(workspace),
            // What a person has applied runs no command.
            toolchains: Rc::default(),
            roots: BindRoots {
                workspace: item.path.clone(),
                runtime_files: opened.own.clone(),
                spelling: item.spelling,
                may_drop_base_rules: is_outside_workspace(
                    Path::new(&opened.policy.path),
                    Path::new(&item.path),
                ),
            },
            is_workspace_assumed: false,
            home: opened.home.clone(),
            warnings: Diagnostics::default(),
        })
    }
}

/// The workspace cannot be opened. Where the policy names it, the problem stands there.
fn no_workspace(
    lookup: &PolicyLoadOptions<'_>,
    text: &SourceText,
    root: &Path,
    error: &std::io::Error,
) -> PolicyLoadError {
    let message =
        format!("`{}` cannot be opened: {error}", escape::line(&root.display().to_string()));
    let named =
        lookup.workspace.is_none().then(|| yaml::parse(&text.text, &POLICY_DIALECT).ok().flatten());
    let named =
        named.flatten().and_then(|tree| Some(tree.get("workspace")?.get("root")?.span.clone()));
    match named {
        Some(at) => {
            let problem = Diagnostic::error(Code::WorkspaceMissing, at, message);
            let hint =
                "a relative folder is seen from the policy's own; `--workspace` names another one";
            PolicyLoadError::Invalid(text.clone(), vec![problem.hint(hint)])
        }
        None => CodedError::new(Code::WorkspaceMissing, message).into(),
    }
}

/// A layer over a policy, bound to its workspace.
fn read_layer(
    layer: &mut LayerText,
    draft: &PolicyDraft,
    roots: &BindRoots,
    home: &str,
) -> Result<PolicyLayer, PolicyLoadError> {
    let LayerText { kind, text: SourceText { name, text }, .. } = layer;
    let read = draft.layer((text, name), *kind, home, CATALOGUE);
    let bound = read.and_then(|(draft, warnings)| Ok((draft.bind(roots)?, warnings)));
    let (bound, warnings) =
        bound.map_err(|problems| PolicyLoadError::Invalid(layer.text.clone(), problems))?;
    layer.warnings = warnings;
    Ok(bound)
}

/// The texts that a run was judged by, as they were recorded.
#[derive(Clone, Debug)]
pub struct PolicyTexts {
    /// The policy.
    pub policy: SourceText,
    /// The policy that it extends.
    pub extended: Option<ExtendedPolicy>,
    /// What tightens it.
    pub layers: Vec<LayerText>,
}

impl PolicyTexts {
    /// Takes them from what a run began with; none where they were not kept.
    pub fn from_record(
        opened: &RunOpened,
        mut kept: impl FnMut(&PayloadRef) -> Option<Vec<u8>>,
    ) -> Option<Self> {
        let mut text = |payload: &PayloadRef| String::from_utf8(kept(payload)?).ok();
        let item =
            SourceText { name: shown_name(&opened.policy.path), text: text(&opened.policy.text)? };
        let extended = match &opened.extends {
            Some(under) => {
                Some(ExtendedPolicy { name: under.path.clone(), text: text(&under.text)? })
            }
            None => None,
        };
        let mut layers = Vec::new();
        for LayerOpened { layer, document, .. } in &opened.layers {
            let (kind, path) = (*layer, document.path.as_str());
            let name = layers::display_path(kind, path, &opened.workspace.path, &opened.home);
            let text = SourceText { name, text: text(&document.text)? };
            let warnings = Diagnostics::new();
            layers.push(LayerText { kind, path: path.into(), text, warnings });
        }
        Some(Self { policy: item, extended, layers })
    }

    /// Whether masks stand in a text that judged.
    #[must_use]
    pub(crate) fn are_masked(&self) -> bool {
        let layers = self.layers.iter().map(|layer| &layer.text);
        std::iter::once(&self.policy).chain(layers).any(|text| holds_mask(text.text.as_bytes()))
    }

    /// Finds them where they were read, for a run that kept none. They must be the same to the byte.
    pub(crate) fn read_again(opened: &RunOpened) -> Option<Self> {
        let find = |document: &Document| {
            let source = PolicySource::from_argument(&document.path);
            let text = read_policy(&source).ok()?.0;
            (Digest::of(text.text.as_bytes()) == document.sha256).then_some(text)
        };
        let item = find(&opened.policy)?;
        let extended = match &opened.extends {
            Some(under) => {
                Some(ExtendedPolicy { name: under.path.clone(), text: find(under)?.text })
            }
            None => None,
        };
        let mut layers = Vec::new();
        for LayerOpened { layer, document, .. } in &opened.layers {
            let (kind, path) = (*layer, document.path.clone());
            let name = layers::display_path(kind, &path, &opened.workspace.path, &opened.home);
            let text = SourceText { name, text: find(document)?.text };
            layers.push(LayerText { kind, path: path.into(), text, warnings: Diagnostics::new() });
        }
        Some(Self { policy: item, extended, layers })
    }
}

/// The workspace with the names by which commands and calls know its root under a policy.
fn with_root_names(workspace: Workspace, policy: &Policy, spellings: &[PathBuf]) -> Workspace {
    let names = root_names(workspace.path(), &policy.sandbox_in_force(), spellings);
    workspace.with_root_names(names)
}

/// Whether a policy did not come with the workspace. One that did only tightens.
fn is_outside_workspace(file: &Path, workspace: &Path) -> bool {
    !file.starts_with(workspace)
}

/// Binds recorded texts. Where it is for the same run, the digests are those that were recorded: what
/// is masked in the texts does not change them.
fn bind_texts(
    texts: &PolicyTexts,
    opened: &RunOpened,
    is_same: bool,
) -> Result<Policy, Diagnostics> {
    let RunOpened { workspace, own: item, home, .. } = opened;
    let lifts = is_outside_workspace(Path::new(&opened.policy.path), Path::new(&workspace.path));
    let spelling = workspace.spelling;
    let roots = BindRoots {
        workspace: workspace.path.clone(),
        runtime_files: item.clone(),
        spelling,
        may_drop_base_rules: lifts,
    };
    let PolicyTexts { policy: SourceText { name, text }, extended, layers } = texts;
    let (draft, _) = PolicyDraft::parse_recorded(text, name, home, CATALOGUE, extended.as_ref())?;
    let mut tightening = Vec::new();
    for (LayerText { kind, text: SourceText { name, text }, .. }, then) in
        layers.iter().zip(&opened.layers)
    {
        let (layer, _) = draft.layer((text, name), *kind, home, CATALOGUE)?;
        let layer = if is_same { layer.recorded_as(then.document.sha256) } else { layer };
        tightening.push(layer.bind(&roots)?);
    }
    let draft = if is_same { draft.recorded_as(opened.policy.sha256) } else { draft };
    let policy = draft.bind(&roots, home, CATALOGUE)?;
    let missing = || {
        let message = format!("there is no profile `{}`", opened.profile);
        vec![Diagnostic::error(Code::PolicyProfile, 0..0, message)]
    };
    let policy = policy.under(&opened.profile).ok_or_else(missing)?.with_layers(tightening);
    Ok(policy.with_programs(&opened.toolchains))
}

/// The policy under the profile that was chosen. A person may choose any that their policy defines,
/// and those that are built in as far as they tighten.
fn with_profile(policy: Policy, profile: Option<&str>) -> Result<Policy, CodedError> {
    let Some(name) = profile else { return Ok(policy) };
    let names: Vec<String> = policy.profile_names().map(|name| format!("`{name}`")).collect();
    let (profile, is_offered) =
        (policy.profile.clone(), policy.profiles.iter().any(|profile| profile.name == name));
    let chosen = policy.under(name).ok_or_else(|| {
        let message = format!("the policy has no profile `{name}`");
        let suggestion = format!("there are {}", names.join(", "));
        CodedError::new(Code::PolicyProfile, message).with_suggestion(suggestion)
    })?;
    match chosen.profile.milder_than(&profile).filter(|_| !is_offered) {
        None => Ok(chosen),
        Some(capability) => {
            let text = &profile.name;
            let message =
                format!("for `{capability}`, `{name}` is milder than the policy's `{text}`");
            Err(CodedError::new(Code::PolicyMilder, message)
                .with_suggestion(Code::PolicyMilder.next_step()))
        }
    }
}

/// The links by which the runtime's own files are reached, as they are named for this run.
fn own_file_links(lookup: &PolicyLoadOptions<'_>) -> BTreeSet<PathBuf> {
    let policy = match lookup.source {
        PolicySource::File(path) => Some(path.as_path()),
        PolicySource::Builtin(_) => None,
    };
    let named =
        lookup.own_files.iter().map(PathBuf::as_path).chain(policy).chain([lookup.user_layer]);
    let named: BTreeSet<PathBuf> = named.map(|path| lookup.cwd.join(path)).collect();
    // Most of them lie side by side.
    let folders: BTreeSet<&Path> = named.iter().filter_map(|path| path.parent()).collect();
    let links = named.iter().map(PathBuf::as_path).filter(|path| path.read_link().is_ok());
    folders.into_iter().chain(links).flat_map(links_to).collect()
}

/// The workspace: the one that was named, else the policy's, else the current folder. The home
/// folder and `/` are taken only when they are named.
///
/// # Errors
/// [`Code::WorkspaceRefused`] where it would be one of the two and nobody named it.
pub(crate) fn workspace_root(
    lookup: &PolicyLoadOptions<'_>,
    named_by_policy: Option<&str>,
    policy: Option<&Path>,
) -> Result<PathBuf, CodedError> {
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
    let here = real_path(lookup.cwd);
    if here == real_path(lookup.home) || here == Path::new("/") {
        let message =
            format!("`{}` is not taken as a workspace unless it is named", here.display());
        return Err(CodedError::new(Code::WorkspaceRefused, message)
            .with_suggestion("name the folder with `--workspace`"));
    }
    Ok(here)
}
