//! What the record remembers of the layers that earlier runs in a workspace met.

use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_base::escape;
use capsule_core::journal::{Event, LayerGone, LayerOpened, RunOpened};
use capsule_core::outcome::CodedError;
use capsule_core::policy::LayerKind;
use capsule_redact::Redactor;
use capsule_store::{Store, StoreError};

use crate::bound_policy::BoundPolicy;
use crate::layer_diff::removed_keys;
use crate::layers::{LayerText, display_path};

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
