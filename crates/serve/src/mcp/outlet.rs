//! Where messages to a client go.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

/// Takes messages to a client, whole and one at a time.
pub(crate) trait MessageSink: Send {
    /// Sends one message.
    ///
    /// # Errors
    /// When the client cannot be reached any more.
    fn send(&mut self, message: &Value) -> io::Result<()>;

    /// Whether it takes messages for as long as the client is there, and not for one request.
    fn is_lasting(&self) -> bool {
        false
    }
}

/// Where messages to a client go, from any thread.
#[derive(Clone)]
pub(crate) struct Outlet(Arc<Mutex<dyn MessageSink>>);

impl fmt::Debug for Outlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outlet")
    }
}

impl Outlet {
    pub(crate) fn new(sink: impl MessageSink + 'static) -> Self {
        Self(Arc::new(Mutex::new(sink)))
    }

    /// Sends a message; whether it went. A client that is not there any more ends its connection where it is read from.
    pub(crate) fn send(&self, message: &Value) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).send(message).is_ok()
    }

    /// Whether messages go to the same place.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether it takes messages for as long as the client is there, and not for one request.
    pub(crate) fn is_lasting(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_lasting()
    }
}

/// Messages as lines.
pub(crate) struct LineSink<W>(pub(crate) W);

impl<W: Write + Send> MessageSink for LineSink<W> {
    fn send(&mut self, message: &Value) -> io::Result<()> {
        self.0.write_all(format!("{message}\n").as_bytes())?;
        self.0.flush()
    }

    fn is_lasting(&self) -> bool {
        true
    }
}
