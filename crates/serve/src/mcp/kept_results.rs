//! Results that were too long for the answer to their call, as resources: a link in the answer names the whole.
//!
//! A link gives nothing that the call did not give: the call was allowed, and its result is on record whole.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

/// The long results of a client's calls, the newest last.
#[derive(Default)]
pub(crate) struct KeptResults(Mutex<VecDeque<KeptResult>>);

struct KeptResult {
    uri: String,
    /// The call, as `RUN:CALL`.
    call: String,
    text: String,
}

/// How much is kept in bytes: some thirty of the longest results. The oldest are forgotten first.
const MOST_KEPT_BYTES: usize = 16_000_000;

impl KeptResults {
    fn all(&self) -> MutexGuard<'_, VecDeque<KeptResult>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the result of a call, and gives a link to it.
    pub(crate) fn keep(&self, call: &str, text: String) -> Value {
        let kept = KeptResult { uri: format!("capsule://result/{call}"), call: call.into(), text };
        let mut link = kept.to_json();
        if let Some(map) = link.as_object_mut() {
            map.insert("type".into(), "resource_link".into());
        }
        let all = &mut *self.all();
        all.push_back(kept);
        while all.len() > 1
            && all.iter().map(|kept| kept.text.len()).sum::<usize>() > MOST_KEPT_BYTES
        {
            all.pop_front();
        }
        link
    }

    /// What is kept, as a client is told of it.
    pub(crate) fn list(&self) -> Value {
        let resources: Vec<Value> = self.all().iter().map(KeptResult::to_json).collect();
        json!({ "resources": resources })
    }

    /// A result; none where it is not kept.
    pub(crate) fn read(&self, uri: &str) -> Option<Value> {
        let all = self.all();
        let kept = all.iter().find(|kept| kept.uri == uri)?;
        let content = json!({ "uri": uri, "mimeType": MIME_TYPE, "text": kept.text });
        Some(json!({ "contents": [content] }))
    }

    /// Forgets all of them.
    pub(crate) fn clear(&self) {
        self.all().clear();
    }
}

const MIME_TYPE: &str = "application/json";

impl KeptResult {
    fn to_json(&self) -> Value {
        json!({
            "uri": self.uri,
            "name": self.call,
            "description": "the whole result of the call",
            "mimeType": MIME_TYPE,
            "size": self.text.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_results_are_forgotten_first() {
        let results = KeptResults::default();
        let long = "x".repeat(MOST_KEPT_BYTES / 3);
        for call in ["r-1:1", "r-1:2", "r-1:3", "r-1:4"] {
            let link = results.keep(call, long.clone());
            assert_eq!(link.get("uri"), Some(&format!("capsule://result/{call}").into()));
        }
        assert_eq!(results.read("capsule://result/r-1:1"), None);
        assert!(results.read("capsule://result/r-1:2").is_some());
        let listed = results.list();
        assert_eq!(listed.pointer("/resources").and_then(Value::as_array).map(Vec::len), Some(3));
        results.clear();
        assert_eq!(results.read("capsule://result/r-1:4"), None);
    }
}
