//! What a person says about a run that is over: a run of its own that has it as its subject, begins as
//! the subject did, and does nothing.

use capsule_base::code::Code;
use capsule_base::exit::Exit;
use capsule_base::json;
use capsule_core::confinement::NetworkAccess;
use capsule_core::id::RunId;
use capsule_core::journal::{
    Document, Durability, Event, Journal as _, PayloadClass, PayloadRef, RunKind, RunOpened,
    RunSealed,
};
use capsule_core::outcome::CodedError;
use capsule_core::policy::AuditRule;
use capsule_redact::Redactor;
use capsule_store::{SigningSchedule, Store, StoreError, StoredPayload};
use serde_json::json;

use crate::clock::now_micros;
use crate::run::{engine_version, tools_digest, unique_label};

/// Why it was not written down.
#[derive(Debug, thiserror::Error)]
pub enum AnnotationError {
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What was said makes no sense, or the run that it is about cannot be told.
    #[error("{}", .0.message)]
    Problem(CodedError),
}

impl From<CodedError> for AnnotationError {
    fn from(problem: CodedError) -> Self {
        Self::Problem(problem)
    }
}

/// Who says what about which run.
pub(crate) struct Annotation<'a> {
    /// The full id of the subject.
    pub(crate) subject: &'a str,
    /// What kind of saying it is.
    pub(crate) kind: RunKind,
    /// What it is called.
    pub(crate) name: &'a str,
    /// The person's own words.
    pub(crate) why: Option<&'a str>,
}

impl Annotation<'_> {
    /// Writes it down; gives the label of its run.
    pub(crate) fn write(
        self,
        store: Store,
        event: impl FnOnce(Option<PayloadRef>) -> Event,
    ) -> Result<String, AnnotationError> {
        let (id, subject, payloads) = read_subject(&store, self.subject)?;
        // Where the subject keeps no payloads, this run keeps none either.
        let kept = |document: &Document| {
            let item = payloads.iter().find(|(item, _)| *item == document.text);
            item.and_then(|(_, kept)| kept.bytes.clone()).unwrap_or_default()
        };
        let signing = SigningSchedule::for_policy(&store, &AuditRule::default(), true)?;
        let mut writer = store.begin(Box::new(now_micros), subject.payloads)?;
        writer.sign_with(signing);
        let label = unique_label(&writer)?;
        let mut again = |document: &Document| {
            let text = writer.put_payload(PayloadClass::Document, &kept(document))?;
            Ok::<_, StoreError>(Document { text, ..document.clone() })
        };
        let policy = again(&subject.policy)?;
        let extends = subject.extends.as_ref().map(&mut again).transpose()?;
        let mut layers = subject.layers.clone();
        for layer in &mut layers {
            layer.document = again(&layer.document)?;
        }
        let inputs = writer.put_payload(PayloadClass::Document, &json::canonical(&json!({})))?;
        let opened = RunOpened {
            label: label.clone(),
            origin: self.kind,
            subject: Some(id),
            name: self.name.to_owned(),
            engine: engine_version(),
            plan: None,
            policy,
            extends,
            layers,
            layer_gone: None,
            policy_since: None,
            inputs,
            key: writer.keep_key()?,
            tools: tools_digest(),
            walls: None,
            mount: None,
            bare: None,
            steps: 0,
            staged: false,
            direct: false,
            network: NetworkAccess::None,
            unpulled: None,
            ..*subject
        };
        writer.append(Event::RunOpened(Box::new(opened)), Durability::CrashSafe)?;
        let why = self.why.map(|why| Redactor::builtin().text(why, &mut 0));
        let why = why.map(|why| writer.put_payload(PayloadClass::Text, &json::canonical(&why)));
        writer.append(event(why.transpose()?), Durability::CrashSafe)?;
        let sealed =
            RunSealed { exit: Exit::Ok, events: 3, calls: 0, outputs: None, suspended: None };
        writer.append(Event::RunSealed(sealed), Durability::CrashSafe)?;
        writer.finish().signing_error.map_or(Ok(label), |error| Err(error.into()))
    }
}

/// The texts that a run began with.
type KeptTexts = Vec<(PayloadRef, StoredPayload)>;

/// How the run began that it is about, with the texts that it began with.
fn read_subject(
    store: &Store,
    run: &str,
) -> Result<(RunId, Box<RunOpened>, KeptTexts), AnnotationError> {
    let missing =
        || CodedError::new(Code::RunUnknown, format!("the beginning of `{run}` is missing"));
    let first = store.event(run, 1)?.ok_or_else(missing)?;
    let payloads = store.payloads(first.leaf, &first.entry.event)?;
    let Event::RunOpened(subject) = first.entry.event else { return Err(missing().into()) };
    Ok((RunId::parse(run).ok_or_else(missing)?, subject, payloads))
}
