//! Grants that are alive: those of runs and sessions that go on, and answers that wait to be used.

use std::collections::BTreeMap;

use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_core::approval::{AnswerKind, Card, GrantLifetime, GrantPattern};
use capsule_core::journal::{Event, GrantGiven};
use capsule_core::outcome::CodedError;
use capsule_store::{RunState, Store, StoreError};

use crate::annotation::AnnotationError;
use crate::approval::{PendingQuestion, QuestionState};
use crate::clock::now_micros;

/// A grant that is alive.
#[derive(Clone, Debug)]
pub struct ActiveGrant {
    /// Its name: `r-7Q3K.2`, or `r-7Q3K:3` for an answer that waits.
    pub id: String,
    /// The label of the run that it is of.
    pub run: String,
    /// How long it holds.
    pub scope: GrantLifetime,
    /// Which calls it is about, in words.
    pub pattern_text: String,
    /// How many uses it has left.
    pub uses_left: u64,
    /// When it ends, in microseconds since 1970.
    pub until: u64,
    /// The policy that asked; no other one is answered by it.
    pub policy: Digest,
    /// Whether it is an answer that waits for `capsule resume`.
    pub stored: bool,
}

/// The grants that are alive at a time, in microseconds since 1970.
///
/// # Errors
/// When the store cannot be read, or is not what was written.
pub fn active_grants(store: &Store, at: u64) -> Result<Vec<ActiveGrant>, StoreError> {
    let mut all = Vec::new();
    for run in store.unsealed_runs_with_grants()? {
        if matches!(store.state(&run)?, RunState::Running | RunState::Idle) {
            all.extend(grants_of_run(store, &run)?);
        }
    }
    for pending in PendingQuestion::all(store)? {
        all.extend(stored_grant(&pending, at));
    }
    all.retain(|grant| grant.uses_left > 0 && at < grant.until);
    Ok(all)
}

/// The grants that were given in a run, and what is left of them.
fn grants_of_run(store: &Store, run: &str) -> Result<Vec<ActiveGrant>, StoreError> {
    let mut found: BTreeMap<String, (u64, ActiveGrant)> = BTreeMap::new();
    let label = store.label(run);
    let mut headlines: BTreeMap<u64, String> = BTreeMap::new();
    store.visit::<StoreError>(run, |stored| {
        match &stored.entry.event {
            Event::ApprovalShown(shown) => {
                let payloads = store.payloads(stored.leaf, &stored.entry.event)?;
                let card = payloads.iter().find(|(item, _)| *item == shown.card);
                let card = card.and_then(|(_, payload)| payload.bytes.as_deref());
                let card = card.and_then(|bytes| serde_json::from_slice::<Card>(bytes).ok());
                headlines.extend(card.map(|card| (shown.call, card.headline)));
            }
            Event::ApprovalAnswered(answered)
            | Event::PlanAnswered(answered)
            | Event::ConnectionAnswered(answered) => {
                let Some(given) = &answered.grant else { return Ok(()) };
                let payloads = store.payloads(stored.leaf, &stored.entry.event)?;
                let reach = payloads.iter().find(|(item, _)| *item == given.reach);
                let reach = reach.and_then(|(_, payload)| payload.bytes.as_deref());
                let reach = reach.and_then(|bytes| serde_json::from_slice(bytes).ok());
                let mut grant = active_grant(&label, given, reach.as_ref());
                if let (Some(GrantPattern::Same { .. }), Some(headline)) =
                    (&reach, headlines.get(&answered.call))
                {
                    grant.pattern_text = format!("exactly this call: {headline}");
                }
                found.insert(given.id.clone(), (stored.leaf, grant));
            }
            Event::GrantUsed(used) => {
                if let Some((_, grant)) = found.get_mut(&used.grant) {
                    grant.uses_left = used.left;
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    let mut alive = Vec::new();
    for (leaf, grant) in found.into_values() {
        let (_, gone) = store.grants_revoked_since(Some(leaf))?;
        if !gone.iter().any(|id| id.as_deref().is_none_or(|id| id == grant.id)) {
            alive.push(grant);
        }
    }
    Ok(alive)
}

fn active_grant(label: &str, given: &GrantGiven, reach: Option<&GrantPattern>) -> ActiveGrant {
    ActiveGrant {
        id: given.id.clone(),
        run: label.to_owned(),
        scope: given.scope,
        pattern_text: reach.map_or_else(|| "(not kept)".into(), GrantPattern::to_string),
        uses_left: given.uses,
        until: given.until,
        policy: given.policy,
        stored: false,
    }
}

/// An approval that waits for its run to be gone on with: one use, and what its scope adds then.
fn stored_grant(pending: &PendingQuestion, at: u64) -> Option<ActiveGrant> {
    let answer = pending.answer.as_ref()?;
    let scope = answer.given.scope?;
    if pending.state(at) != QuestionState::Answered || answer.given.outcome != AnswerKind::Approved
    {
        return None;
    }
    let offer = pending.card.offers.iter().find(|offer| offer.scope == scope);
    Some(ActiveGrant {
        id: pending.name(),
        run: pending.label.clone(),
        scope,
        pattern_text: match offer {
            Some(offer) => format!("{}, once its run goes on", offer.pattern),
            None => format!("this call: {}", pending.card.headline),
        },
        uses_left: offer.map_or(1, |offer| offer.uses),
        until: pending.expires_at,
        policy: pending.opened.policy.sha256,
        stored: true,
    })
}

/// Takes a grant back: the next call that it would have answered is asked about again.
///
/// # Errors
/// When none of that name is alive, or it cannot be written.
pub fn revoke_grant(store: &mut Store, id: &str) -> Result<(), AnnotationError> {
    if !active_grants(store, now_micros())?.iter().any(|grant| grant.id == id) {
        let message = format!("there is no live grant `{id}`");
        return Err(CodedError::new(Code::GrantUnknown, message)
            .with_suggestion("`capsule grants list` shows those that are alive")
            .into());
    }
    Ok(store.write_unattached(Event::GrantRevoked { grant: Some(id.to_owned()) }, now_micros())?)
}

/// Takes all grants back, also those that nobody knows of; gives how many were alive.
///
/// # Errors
/// When it cannot be written.
pub fn clear_grants(store: &mut Store) -> Result<usize, AnnotationError> {
    let alive = active_grants(store, now_micros())?.len();
    store.write_unattached(Event::GrantRevoked { grant: None }, now_micros())?;
    Ok(alive)
}
