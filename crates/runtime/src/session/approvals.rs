//! What a session remembers of approvals between two processes.

use std::collections::BTreeMap;

use capsule_base::digest::Digest;
use capsule_core::approval::{Grant, GrantLifetime, GrantPattern, Person};
use capsule_core::journal::{Event, GrantGiven};
use capsule_store::{Store, StoreError};
use serde::{Deserialize, Serialize};

use crate::approval::ApprovalMemory;

/// A grant as it is kept between two processes.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedGrant {
    id: String,
    lifetime: GrantLifetime,
    pattern: GrantPattern,
    uses: u64,
    expires_at: u64,
    policy: Digest,
}

impl From<&Grant> for SavedGrant {
    fn from(grant: &Grant) -> Self {
        Self {
            id: grant.id.clone(),
            lifetime: grant.lifetime,
            pattern: grant.pattern.clone(),
            uses: grant.uses,
            expires_at: grant.expires_at,
            policy: grant.policy,
        }
    }
}

impl From<SavedGrant> for Grant {
    /// A grant that a person gave at a user interface, whose answer is in the record of the session.
    fn from(saved: SavedGrant) -> Self {
        Self {
            id: saved.id,
            lifetime: saved.lifetime,
            pattern: saved.pattern,
            uses: saved.uses,
            expires_at: saved.expires_at,
            policy: saved.policy,
            given_by: Person::present(),
        }
    }
}

/// What a session remembers of approvals.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SavedApprovals {
    grants: Vec<SavedGrant>,
    grants_given: u64,
    shown_at: Vec<u64>,
    revocations_seen: Option<u64>,
}

impl From<&ApprovalMemory> for SavedApprovals {
    fn from(memory: &ApprovalMemory) -> Self {
        Self {
            grants: memory.grants.iter().map(SavedGrant::from).collect(),
            grants_given: memory.grants_given,
            shown_at: memory.shown_at.clone(),
            revocations_seen: memory.revocations_seen,
        }
    }
}

impl SavedApprovals {
    /// The same for the broker of another process.
    pub(crate) fn restore(self) -> ApprovalMemory {
        ApprovalMemory {
            grants: self.grants.into_iter().map(Grant::from).collect(),
            grants_given: self.grants_given,
            shown_at: self.shown_at,
            revocations_seen: self.revocations_seen,
        }
    }

    /// What the record of a session says of its approvals.
    ///
    /// # Errors
    /// When the store cannot be read, or is not what was written.
    pub(crate) fn from_record(store: &Store, run: &str) -> Result<Self, StoreError> {
        let mut grants: BTreeMap<String, SavedGrant> = BTreeMap::new();
        let mut saved = Self::default();
        store.visit::<StoreError>(run, |stored| {
            saved.revocations_seen.get_or_insert(stored.leaf);
            match &stored.entry.event {
                Event::ApprovalShown(_) | Event::PlanShown(_) | Event::ConnectionShown(_) => {
                    saved.shown_at.push(stored.entry.at);
                }
                Event::ApprovalAnswered(answered)
                | Event::PlanAnswered(answered)
                | Event::ConnectionAnswered(answered) => {
                    let Some(given) = &answered.grant else { return Ok(()) };
                    saved.grants_given += 1;
                    let payloads = store.payloads(stored.leaf, &stored.entry.event)?;
                    let pattern = payloads.iter().find(|(item, _)| *item == given.reach);
                    let pattern = pattern.and_then(|(_, payload)| payload.bytes.as_deref());
                    // A grant whose pattern was not kept answers nothing.
                    if let Some(Ok(pattern)) = pattern.map(serde_json::from_slice) {
                        grants.insert(given.id.clone(), saved_grant(given, pattern));
                    }
                }
                Event::GrantUsed(used) => {
                    if let Some(grant) = grants.get_mut(&used.grant) {
                        grant.uses = used.left;
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        saved.grants = grants.into_values().collect();
        Ok(saved)
    }
}

fn saved_grant(given: &GrantGiven, pattern: GrantPattern) -> SavedGrant {
    SavedGrant {
        id: given.id.clone(),
        lifetime: given.scope,
        pattern,
        uses: given.uses,
        expires_at: given.until,
        policy: given.policy,
    }
}
