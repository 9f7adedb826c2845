//! The clients that hear of a change of the tools.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::mcp::outlet::Outlet;

/// Where changes of the tools are told.
#[derive(Default)]
pub(crate) struct Listeners(Mutex<Vec<Listener>>);

struct Listener {
    outlet: Outlet,
    /// The id of the request that subscribed; none for a client that hears of changes since it began.
    subscription: Option<Value>,
}

/// How many listen at a time: a client has one. One more takes the place of the oldest.
const MOST_LISTENERS: usize = 8;

impl Listeners {
    fn all(&self) -> MutexGuard<'_, Vec<Listener>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one.
    pub(crate) fn add(&self, outlet: Outlet, subscription: Option<Value>) {
        let all = &mut *self.all();
        if all.len() >= MOST_LISTENERS {
            all.remove(0);
        }
        all.push(Listener { outlet, subscription });
    }

    /// Whether a request subscribed.
    pub(crate) fn has_subscription(&self, id: &Value) -> bool {
        self.all().iter().any(|listener| listener.subscription.as_ref() == Some(id))
    }

    /// Ends the subscription of a request.
    pub(crate) fn end_subscription(&self, id: &Value) {
        self.all().retain(|listener| listener.subscription.as_ref() != Some(id));
    }

    /// Forgets the client that began with `initialize`.
    pub(crate) fn forget_client(&self) {
        self.all().retain(|listener| listener.subscription.is_some());
    }

    /// Tells of a change. Who cannot be reached any more is forgotten.
    pub(crate) fn tell_of_change(&self) {
        self.all().retain(|listener| {
            let method = "notifications/tools/list_changed";
            let mut message = json!({ "jsonrpc": "2.0", "method": method });
            if let (Some(id), Some(map)) = (&listener.subscription, message.as_object_mut()) {
                map.insert("params".into(), subscription_params(id));
            }
            listener.outlet.send(&message)
        });
    }
}

/// Subscribes as a request wants: to changes of the tools, since nothing else changes here. The request stays without an
/// answer until it is cancelled.
pub(crate) fn subscribe(
    listeners: &Listeners,
    id: &Value,
    wanted: Option<&Value>,
    outlet: &Outlet,
) {
    let has_tools = wanted.and_then(|wanted| wanted.get("toolsListChanged")) == Some(&true.into());
    let mut params = subscription_params(id);
    let agreed = if has_tools { json!({ "toolsListChanged": true }) } else { json!({}) };
    if let Some(map) = params.as_object_mut() {
        map.insert("notifications".into(), agreed);
    }
    let method = "notifications/subscriptions/acknowledged";
    let acknowledged = json!({ "jsonrpc": "2.0", "method": method, "params": params });
    if outlet.send(&acknowledged) && has_tools {
        listeners.add(outlet.clone(), Some(id.clone()));
    }
}

fn subscription_params(id: &Value) -> Value {
    json!({ "_meta": { "io.modelcontextprotocol/subscriptionId": id } })
}
