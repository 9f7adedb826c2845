//! The layers over a policy: where they lie, how they are read, and what the record remembers of
//! them.
//!
//! The record of the runs is what pins them: each run says which layers it met, and the next one in
//! the same workspace is compared with that. What is there is out of reach of all tools, and cannot
//! be changed without a trace.

use std::path::{Path, PathBuf};

use capsule_base::code::Code;
use capsule_base::diagnostic::Diagnostics;
use capsule_base::digest::Digest;
use capsule_base::escape;
use capsule_base::limits;
use capsule_core::journal::{Event, LayerGone, LayerOpened, RunOpened};
use capsule_core::outcome::CodedError;
use capsule_core::policy::{LayerKind, SourceText, is_layer};
use capsule_redact::Redactor;
use capsule_store::{Store, StoreError};
use capsule_workspace::Workspace;

use crate::bound_policy::{BoundPolicy, PolicyLoadError};
use crate::layer_diff::removed_keys;
use crate::realpath::real_path;
use crate::source_text::read_text;

/// Where a workspace has its layer: at the place where `capsule init` writes a policy.
const WORKSPACE_LAYER_PATH: &str = ".capsule/policy.yaml";

/// A layer as it was read.
#[derive(Clone, Debug)]
pub struct LayerText {
    /// Whose it is.
    pub kind: LayerKind,
    /// Where it was read.
    pub path: PathBuf,
    /// Its text.
    pub text: SourceText,
    /// What its author probably did not mean.
    pub warnings: Diagnostics,
}

/// Reads the layers over a policy: the user's own, then the workspace's. What lies at their places
/// and is no layer is none; what cannot be read could be one, so that nothing is decided. The file of
/// the policy itself is a policy, whatever its place.
///
/// # Errors
/// When it cannot be told whether there is one.
pub(crate) fn read_layers(
    user: &Path,
    workspace: &Workspace,
    (policy, home): (Option<&Path>, &str),
) -> Result<Vec<LayerText>, PolicyLoadError> {
    let root = workspace.path().to_string_lossy().into_owned();
    let mut found = Vec::new();
    let mut add = |kind, path: PathBuf, text: String| {
        let name = display_path(kind, &path.to_string_lossy(), &root, home);
        let text = SourceText { name, text };
        match is_layer(&text.text) {
            Ok(true) => found.push(LayerText { kind, path, text, warnings: Vec::new() }),
            Ok(false) => {}
            Err(problem) => {
                let problem = problem.hint("it could be a layer, so that nothing is decided");
                return Err(PolicyLoadError::Invalid(text, vec![problem]));
            }
        }
        Ok(())
    };
    let is_policy = |path: &Path| policy == Some(real_path(path).as_path());
    if user.symlink_metadata().is_ok() && !is_policy(user) {
        let text = read_text(user, limits::POLICY_BYTES, Code::PolicyUnreadable)?;
        add(LayerKind::User, real_path(user), text)?;
    }
    let path = workspace.path().join(WORKSPACE_LAYER_PATH);
    if !is_policy(&path)
        && let Some(text) = workspace_text(workspace)?
    {
        add(LayerKind::Workspace, path, text)?;
    }
    Ok(found)
}

/// The text at the workspace's place.
fn workspace_text(workspace: &Workspace) -> Result<Option<String>, CodedError> {
    let failed = |why: String| {
        let message = format!("the workspace's `{WORKSPACE_LAYER_PATH}` cannot be read: {why}");
        CodedError::new(Code::PolicyUnreadable, message).with_suggestion(
            "it could be a layer, so that nothing is decided; see what stands there",
        )
    };
    let most = limits::POLICY_BYTES;
    let Some(bytes) = workspace.read_plain(WORKSPACE_LAYER_PATH, most).map_err(failed)? else {
        return Ok(None);
    };
    if bytes.len() > most {
        return Err(failed(format!("it has more than {most} bytes")));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| failed("it is not UTF-8".into()))
}

/// How the place of a layer is shown: from the workspace, or from the home folder.
pub(crate) fn display_path(kind: LayerKind, path: &str, workspace: &str, home: &str) -> String {
    let (above, sign) = match kind {
        LayerKind::Workspace => (workspace, ""),
        LayerKind::User => (home, "~/"),
    };
    let inner = path.strip_prefix(above.trim_end_matches('/'));
    match inner.and_then(|rest| rest.strip_prefix('/')) {
        Some(rest) => format!("{sign}{rest}"),
        None => path.to_owned(),
    }
}

/// What a layer is, compared with what the last run in the workspace met.
#[derive(Clone, Debug)]
pub struct LayerChange {
    /// How its place is shown.
    pub name: String,
    /// The run that met it before, if one did.
    pub run: Option<String>,
    /// What it says now; none where it is gone.
    pub now: Option<String>,
    /// What it said then; none where it was not there, or was not kept.
    pub before: Option<String>,
    /// What it does not say any more.
    pub removed_keys: Vec<String>,
}

/// The layers of a run, with what the record remembers of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct LayerHistory {
    /// For each layer of the law: since which run it is as it is, and what was there before.
    since: Vec<(Option<String>, Option<Digest>)>,
    /// The workspace's layer that is gone.
    pub gone: Option<LayerGone>,
}

impl LayerHistory {
    /// Compares the layers of a law with those that the last run in its workspace met; gives what is
    /// new, too.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn compare(
        bound: &BoundPolicy,
        store: &Store,
    ) -> Result<(Self, Vec<LayerChange>), StoreError> {
        let last = store.last_run_in(&bound.roots.workspace)?;
        let redactor = Redactor::with(&[], &bound.policy.redaction_patterns());
        let first = |layer: &LayerText| first_met(layer, &redactor);
        let (mut met, mut news) = (Self::default(), Vec::new());
        let Some(last) = last else { return Ok((met, bound.layers.iter().map(first).collect())) };
        let payloads = store.payloads(last.leaf, &last.entry.event)?;
        let Event::RunOpened(opened) = last.entry.event else { return Ok((met, news)) };
        let text = |item: &LayerOpened| {
            let kept = payloads.iter().find(|(kept, _)| *kept == item.document.text);
            kept.and_then(|(_, kept)| String::from_utf8(kept.bytes.clone()?).ok())
        };
        for layer in &bound.layers {
            news.extend(met.add_layer(layer, &opened, (&redactor, text)));
        }
        news.extend(met.add_missing(bound, &opened, text));
        Ok((met, news))
    }

    fn add_layer(
        &mut self,
        layer: &LayerText,
        opened: &RunOpened,
        (redactor, text): (&Redactor, impl Fn(&LayerOpened) -> Option<String>),
    ) -> Option<LayerChange> {
        let Some(before) = opened.layers.iter().find(|opened| opened.layer == layer.kind) else {
            self.since.push((None, None));
            return Some(first_met(layer, redactor));
        };
        let sha256 = before.document.sha256;
        if sha256 == Digest::of(layer.text.text.as_bytes()) {
            let since = before.since.clone().unwrap_or_else(|| opened.label.clone());
            self.since.push((Some(since), None));
            return None;
        }
        self.since.push((None, Some(sha256)));
        let (then, now) = (text(before), mask_text(&layer.text.text, redactor));
        // The user's own layer is theirs to change.
        let lost = match layer.kind {
            LayerKind::Workspace => removed_keys(then.as_deref(), &now),
            LayerKind::User => Vec::new(),
        };
        let (name, run) = (layer.text.name.clone(), Some(opened.label.clone()));
        Some(LayerChange { name, run, now: Some(now), before: then, removed_keys: lost })
    }

    /// Notes that the workspace's layer is gone.
    fn add_missing(
        &mut self,
        bound: &BoundPolicy,
        opened: &RunOpened,
        text: impl Fn(&LayerOpened) -> Option<String>,
    ) -> Option<LayerChange> {
        let before = opened.layers.iter().find(|layer| layer.layer == LayerKind::Workspace)?;
        if bound.layers.iter().any(|layer| layer.kind == LayerKind::Workspace) {
            return None;
        }
        let (path, sha256) = (before.document.path.clone(), before.document.sha256);
        let name = display_path(before.layer, &path, &opened.workspace.path, &opened.home);
        self.gone = Some(LayerGone { path, sha256 });
        Some(LayerChange {
            name,
            run: Some(opened.label.clone()),
            now: None,
            before: text(before),
            removed_keys: vec!["the whole of it".into()],
        })
    }

    /// Since when, and what was before, for the layer at a place of the list.
    pub(crate) fn layer_entry(&self, at: usize) -> (Option<String>, Option<Digest>) {
        self.since.get(at).cloned().unwrap_or_default()
    }
}

impl LayerChange {
    /// Whether something that was said is not said any more.
    pub(crate) const fn is_weaker(&self) -> bool {
        !self.removed_keys.is_empty()
    }

    /// Why nothing runs until a person has seen it.
    #[must_use]
    pub fn refusal(&self) -> CodedError {
        let (name, run) = (&self.name, self.run.as_deref().unwrap_or("before"));
        let message = match self.now {
            None => format!("the workspace's layer `{name}` is gone, which {run} still met"),
            Some(_) => {
                let lost: Vec<_> = self.removed_keys.iter().map(|key| escape::line(key)).collect();
                let lost = lost.join(", ");
                format!("the workspace's layer `{name}` says less than when {run} met it: {lost}")
            }
        };
        CodedError::new(Code::PolicyWeaker, message).with_suggestion(Code::PolicyWeaker.next_step())
    }
}

fn first_met(layer: &LayerText, redactor: &Redactor) -> LayerChange {
    let (name, now) = (layer.text.name.clone(), Some(mask_text(&layer.text.text, redactor)));
    LayerChange { name, run: None, now, before: None, removed_keys: Vec::new() }
}

/// A text as the record has it.
fn mask_text(text: &str, redactor: &Redactor) -> String {
    redactor.text(text, &mut 0).into_owned()
}
