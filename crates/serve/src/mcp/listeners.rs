//! The clients that hear of a change of the tools.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Value, json};

use crate::mcp::message::{BUSY, RpcError};
use crate::mcp::outlet::Outlet;

/// Where changes of the tools are told.
#[derive(Clone, Default)]
pub(crate) struct Listeners(Arc<Shared>);

#[derive(Default)]
struct Shared {
    listeners: Mutex<Vec<Listener>>,
    /// Whether a change is to be told, and a thread does it.
    is_due: AtomicBool,
}

#[derive(Clone)]
struct Listener {
    outlet: Outlet,
    /// Whether it is the one outlet of the connection, whose ids are those of one client.
    is_lasting: bool,
    /// The id of the request that subscribed; none for a client that hears of changes since it began.
    subscription: Option<Value>,
}

impl Listener {
    fn is_subscription(&self, id: &Value) -> bool {
        self.is_lasting && self.subscription.as_ref() == Some(id)
    }
}

/// How many listen at a time: a client has one. One more takes the place of the oldest whose connection may be over.
const MOST_LISTENERS: usize = 8;

impl Listeners {
    fn all(&self) -> MutexGuard<'_, Vec<Listener>> {
        self.0.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one.
    ///
    /// # Errors
    /// When there are too many.
    pub(crate) fn add(&self, outlet: Outlet, subscription: Option<Value>) -> Result<(), RpcError> {
        let is_lasting = outlet.is_lasting();
        let all = &mut *self.all();
        if all.len() >= MOST_LISTENERS {
            let oldest = all.iter().position(|listener| !listener.is_lasting);
            all.remove(oldest.ok_or_else(|| RpcError::new(BUSY, "too many subscriptions"))?);
        }
        all.push(Listener { outlet, is_lasting, subscription });
        Ok(())
    }

    /// Whether a request subscribed whose id no other may have.
    pub(crate) fn has_subscription(&self, id: &Value) -> bool {
        self.all().iter().any(|listener| listener.is_subscription(id))
    }

    /// Ends the subscription of a request. A client over HTTP closes its stream.
    pub(crate) fn end_subscription(&self, id: &Value) {
        self.all().retain(|listener| !listener.is_subscription(id));
    }

    /// Forgets the client that began with `initialize`.
    pub(crate) fn forget_client(&self) {
        self.all().retain(|listener| listener.subscription.is_some());
    }

    /// Tells of a change, on a thread of its own: one that does not read holds up no call and no end of the server.
    pub(crate) fn tell_of_change(&self) {
        if self.0.is_due.swap(true, Ordering::SeqCst) {
            return;
        }
        let listeners = self.clone();
        let tell = move || {
            // What changes from here on is told by another thread.
            listeners.0.is_due.store(false, Ordering::SeqCst);
            let all = listeners.all().clone();
            for listener in all.iter().filter(|listener| !listener.outlet.send(&listener.notice()))
            {
                listeners.all().retain(|other| !other.outlet.is_same(&listener.outlet));
            }
        };
        if thread::Builder::new().name("listeners".into()).spawn(tell).is_err() {
            self.0.is_due.store(false, Ordering::SeqCst);
        }
    }
}

impl Listener {
    fn notice(&self) -> Value {
        let method = "notifications/tools/list_changed";
        let mut message = json!({ "jsonrpc": "2.0", "method": method });
        if let (Some(id), Some(map)) = (&self.subscription, message.as_object_mut()) {
            map.insert("params".into(), subscription_params(id));
        }
        message
    }
}

/// Subscribes as a request wants: to changes of the tools, since nothing else changes here. The request stays without an
/// answer until it is cancelled.
///
/// # Errors
/// When there are too many.
pub(crate) fn subscribe(
    listeners: &Listeners,
    id: &Value,
    wanted: Option<&Value>,
    outlet: &Outlet,
) -> Result<(), RpcError> {
    let has_tools = wanted.and_then(|wanted| wanted.get("toolsListChanged")) == Some(&true.into());
    let mut params = subscription_params(id);
    let agreed = if has_tools { json!({ "toolsListChanged": true }) } else { json!({}) };
    if let Some(map) = params.as_object_mut() {
        map.insert("notifications".into(), agreed);
    }
    if has_tools {
        listeners.add(outlet.clone(), Some(id.clone()))?;
    }
    let method = "notifications/subscriptions/acknowledged";
    let _ = outlet.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    Ok(())
}

fn subscription_params(id: &Value) -> Value {
    json!({ "_meta": { "io.modelcontextprotocol/subscriptionId": id } })
}
