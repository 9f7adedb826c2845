//! The payloads that the events of a run refer to.

use capsule_core::journal::PayloadRef;
use capsule_store::StoredPayload;

/// Looks up a payload that was kept.
pub type PayloadLookup<'p> = dyn Fn(&PayloadRef) -> Option<Vec<u8>> + 'p;

/// Looks up the payloads of one event.
pub fn payload_lookup(
    payloads: &[(PayloadRef, StoredPayload)],
) -> impl Fn(&PayloadRef) -> Option<Vec<u8>> {
    move |wanted| {
        let (_, payload) = payloads.iter().find(|(item, _)| item == wanted)?;
        payload.bytes.clone()
    }
}

/// Reads a payload that is JSON; none if it was not kept or is something else.
pub(crate) fn payload_json<T: serde::de::DeserializeOwned>(
    payloads: &PayloadLookup<'_>,
    reference: Option<&PayloadRef>,
) -> Option<T> {
    serde_json::from_slice(&payloads(reference?)?).ok()
}
