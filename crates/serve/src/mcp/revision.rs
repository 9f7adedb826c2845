//! The revisions of the protocol.
//!
//! Up to 2025-11-25 a connection begins with `initialize`, which says for all that follows what the client can do. From
//! 2026-07-28 on there is no beginning: each request says so for itself, and the server asks by an answer that wants the
//! request made again.

use serde_json::{Value, json};

use crate::mcp::message::{Request, RpcError, UNSUPPORTED_VERSION};

/// Revisions that begin with `initialize`, the newest first.
const WITH_INITIALIZE: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The revision in which each request speaks for itself.
const STATELESS: &str = "2026-07-28";
/// The first revision with links in results.
const FIRST_WITH_LINKS: &str = "2025-06-18";

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// What a client said that it can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Client {
    /// Whether its requests speak for themselves.
    pub(crate) is_stateless: bool,
    /// Whether it can ask its user with a form.
    pub(crate) has_forms: bool,
    /// Whether it tells on request which directories it works in, and can be asked.
    pub(crate) has_roots: bool,
    /// Whether it knows links in results.
    pub(crate) has_links: bool,
}

impl Client {
    /// A client of a revision, with these capabilities.
    fn new(revision: &str, capabilities: Option<&Value>) -> Self {
        let is_stateless = revision == STATELESS;
        let elicitation = capabilities.and_then(|all| all.get("elicitation")?.as_object());
        // A client that names no mode has forms.
        let has_forms =
            elicitation.is_some_and(|modes| modes.is_empty() || modes.contains_key("form"));
        // Roots are withdrawn in the newest revision.
        let roots = capabilities.and_then(|all| all.get("roots")?.as_object());
        let has_roots = !is_stateless && roots.is_some();
        // Revisions are named by their days.
        Self { is_stateless, has_forms, has_roots, has_links: revision >= FIRST_WITH_LINKS }
    }

    /// The client of a request that speaks for itself; none of any other.
    ///
    /// # Errors
    /// When it speaks of a revision that is not known, or leaves out what it has to say.
    pub(crate) fn of_request(request: &Request) -> Result<Option<Self>, RpcError> {
        let Some(version) = request.meta(VERSION_KEY) else { return Ok(None) };
        if version.as_str() != Some(STATELESS) {
            let data = json!({ "requested": version, "supported": supported() });
            let error =
                RpcError::new(UNSUPPORTED_VERSION, "the revision of the protocol is not known");
            return Err(RpcError { data: Some(data), ..error });
        }
        let capabilities = request.meta(CAPABILITIES_KEY).filter(|all| all.is_object());
        if capabilities.is_none() {
            let message = format!("`_meta` lacks `{CAPABILITIES_KEY}`");
            return Err(RpcError::params(message));
        }
        Ok(Some(Self::new(STATELESS, capabilities)))
    }

    /// The client that begins with `initialize`, and the revision that it is answered in.
    pub(crate) fn of_initialize(request: &Request) -> Result<(Self, &'static str), RpcError> {
        let asked = request.text("protocolVersion")?;
        let [newest, ..] = WITH_INITIALIZE;
        let version = WITH_INITIALIZE.into_iter().find(|known| *known == asked).unwrap_or(newest);
        Ok((Self::new(version, request.params.get("capabilities")), version))
    }

    /// The same answer with what the newest revision wants beside it: that it is complete.
    pub(crate) fn complete(self, mut answer: Value) -> Value {
        if let (Some(map), true) = (answer.as_object_mut(), self.is_stateless) {
            map.insert("resultType".into(), "complete".into());
        }
        answer
    }

    /// The same for a list, which is the client's alone and to be asked for again.
    pub(crate) fn complete_list(self, answer: Value) -> Value {
        let mut answer = self.complete(answer);
        if let (Some(map), true) = (answer.as_object_mut(), self.is_stateless) {
            map.insert("ttlMs".into(), 0.into());
            map.insert("cacheScope".into(), "private".into());
        }
        answer
    }
}

/// Whether metadata name a revision, so that their request speaks for itself.
pub(crate) fn names_revision(meta: &Value) -> bool {
    meta.get(VERSION_KEY).is_some()
}

/// The revisions that are known, the newest first.
pub(crate) fn supported() -> Vec<&'static str> {
    [STATELESS].into_iter().chain(WITH_INITIALIZE).collect()
}
