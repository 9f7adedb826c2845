//! Results that were too long for the answer to their call, as resources: a link in the answer names the whole.
//!
//! A link gives nothing that the call did not give: the call was allowed, and its result is on record whole.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

/// The long results of a client's calls, the newest last.
#[derive(Default)]
pub(crate) struct KeptResults(Mutex<KeptState>);

#[derive(Default)]
struct KeptState {
    results: VecDeque<KeptResult>,
    /// How often all of them were forgotten.
    cleared: u64,
}

struct KeptResult {
    uri: String,
    /// The call, as `RUN:CALL`.
    call: String,
    text: String,
}

/// How much is kept in bytes: some thirty of the longest results. The oldest are forgotten first.
const MOST_KEPT_BYTES: usize = 16_000_000;

impl KeptResults {
    fn state(&self) -> MutexGuard<'_, KeptState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often all of them were forgotten, which a call asks when it begins.
    pub(crate) fn generation(&self) -> u64 {
        self.state().cleared
    }

    /// Keeps the result of a call that began in this generation, and gives a link to it; none where all were forgotten since:
    /// the client or the policy is another one.
    pub(crate) fn keep(&self, generation: u64, call: &str, text: String) -> Option<Value> {
        let kept = KeptResult { uri: format!("capsule://result/{call}"), call: call.into(), text };
        let mut link = kept.to_json();
        if let Some(map) = link.as_object_mut() {
            map.insert("type".into(), "resource_link".into());
        }
        let state = &mut *self.state();
        if state.cleared != generation {
            return None;
        }
        let all = &mut state.results;
        all.push_back(kept);
        let size =
            |all: &VecDeque<KeptResult>| all.iter().map(|kept| kept.text.len()).sum::<usize>();
        while all.len() > 1 && size(all) > MOST_KEPT_BYTES {
            all.pop_front();
        }
        Some(link)
    }

    /// What is kept, as a client is told of it.
    pub(crate) fn list(&self) -> Value {
        let resources: Vec<Value> = self.state().results.iter().map(KeptResult::to_json).collect();
        json!({ "resources": resources })
    }

    /// A result; none where it is not kept.
    pub(crate) fn read(&self, uri: &str) -> Option<Value> {
        let state = self.state();
        let kept = state.results.iter().find(|kept| kept.uri == uri)?;
        let content = json!({ "uri": uri, "mimeType": MIME_TYPE, "text": kept.text });
        Some(json!({ "contents": [content] }))
    }

    /// Forgets all of them.
    pub(crate) fn clear(&self) {
        let state = &mut *self.state();
        state.results.clear();
        state.cleared += 1;
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
            let link = results.keep(0, call, long.clone()).unwrap_or_default();
            assert_eq!(link.get("uri"), Some(&format!("capsule://result/{call}").into()));
        }
        assert_eq!(results.read("capsule://result/r-1:1"), None);
        assert!(results.read("capsule://result/r-1:2").is_some());
        let listed = results.list();
        assert_eq!(listed.pointer("/resources").and_then(Value::as_array).map(Vec::len), Some(3));
        results.clear();
        assert_eq!(results.read("capsule://result/r-1:4"), None);
        // A call that began before that is another client's, or was made under another policy.
        assert_eq!(results.keep(0, "r-1:5", "x".into()), None);
        assert!(results.keep(results.generation(), "r-1:6", "x".into()).is_some());
    }
}
