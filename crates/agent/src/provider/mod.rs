//! Providers: which one is asked, and in what format.

mod anthropic;
mod openai;

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use capsule_base::code::Code;
use capsule_core::outcome::CodedError;
use capsule_redact::Secret;
use capsule_runtime::ModelTool;
use serde_json::Value;
use url::{Host, Url};
use zeroize::Zeroizing;

use crate::answer::AnswerReader;
use crate::message::Message;

/// The format that a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    /// OpenAI's chat completions, which most servers speak, Ollama and llama.cpp among them.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
}

/// A provider and the model that is asked there.
#[derive(Debug)]
pub struct Provider {
    /// The format.
    pub kind: ProviderKind,
    /// The URL that requests are sent to.
    pub endpoint: Url,
    /// The model.
    pub model: String,
    pub(crate) key: Option<Secret>,
}

/// The variables of the environment that name a provider.
pub struct ProviderVariables<'v> {
    /// Looks one up.
    pub lookup: &'v dyn Fn(&str) -> Option<String>,
}

/// Where Ollama listens, and how long it may take to answer a connection.
const OLLAMA: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 11434);
const OLLAMA_WAIT: Duration = Duration::from_millis(200);

/// What is said where no provider is found: what was looked for, and how to set one up.
const HOW_TO: &str = "set OPENAI_BASE_URL (and OPENAI_API_KEY) for a server that speaks OpenAI's format, \
     ANTHROPIC_API_KEY for Anthropic, or start Ollama on 127.0.0.1:11434; name the model with `--model` \
     or CAPSULE_MODEL";

impl Provider {
    /// The provider that the environment names, with the model that was named.
    ///
    /// # Errors
    /// [`Code::ModelNotConfigured`] where none is named, or its URL or key cannot be used.
    pub fn find(
        variables: &ProviderVariables<'_>,
        model: Option<&str>,
    ) -> Result<Self, CodedError> {
        let variable = |name| (variables.lookup)(name).filter(|value| !value.is_empty());
        let (kind, base, key) = match () {
            () if variable("OPENAI_BASE_URL").is_some() || variable("OPENAI_API_KEY").is_some() => {
                let base = variable("OPENAI_BASE_URL");
                let base = base.unwrap_or_else(|| "https://api.openai.com/v1".to_owned());
                (ProviderKind::OpenAi, base, "OPENAI_API_KEY")
            }
            () if variable("ANTHROPIC_API_KEY").is_some() => {
                let base = variable("ANTHROPIC_BASE_URL");
                let base = base.unwrap_or_else(|| "https://api.anthropic.com".to_owned());
                (ProviderKind::Anthropic, base, "ANTHROPIC_API_KEY")
            }
            () if listens(OLLAMA) => {
                let (address, port) = OLLAMA;
                (ProviderKind::OpenAi, format!("http://{address}:{port}/v1"), "OLLAMA_API_KEY")
            }
            () => {
                let message = "no model is configured: OPENAI_BASE_URL, OPENAI_API_KEY and \
                               ANTHROPIC_API_KEY are not set, and nothing listens on 127.0.0.1:11434";
                return Err(not_configured(message));
            }
        };
        let named = model.map(str::to_owned).or_else(|| variable("CAPSULE_MODEL"));
        let Some(model) = named else {
            return Err(not_configured(&format!("no model is named for {base}")));
        };
        Self::new(kind, &base, model, variable(key).map(|value| (key, value)))
    }

    /// A provider at a base URL, with the variable that its key is from.
    fn new(
        kind: ProviderKind,
        base: &str,
        model: String,
        key: Option<(&str, String)>,
    ) -> Result<Self, CodedError> {
        let path = match kind {
            ProviderKind::OpenAi => "/chat/completions",
            ProviderKind::Anthropic => "/v1/messages",
        };
        let endpoint = Url::parse(&format!("{}{path}", base.trim_end_matches('/')));
        let endpoint = endpoint.ok().filter(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.username().is_empty()
                && url.password().is_none()
        });
        let endpoint = endpoint.ok_or_else(|| {
            not_configured(
                "the base URL of the model's server is no URL of http or https without a password",
            )
        })?;
        let key = match key {
            None => None,
            Some((name, value)) => {
                let secret = Secret::new(name, Zeroizing::new(value));
                let problem = || not_configured(&format!("{name} holds no key"));
                Some(secret.ok_or_else(problem)?)
            }
        };
        if key.is_some() && endpoint.scheme() == "http" && !is_loopback(&endpoint) {
            let host = endpoint.host_str().unwrap_or_default();
            let message = format!("the key would be sent to {host} unencrypted");
            return Err(not_configured(&message));
        }
        Ok(Self { kind, endpoint, model, key })
    }

    /// Whether the server is this machine.
    pub(crate) fn is_local(&self) -> bool {
        is_loopback(&self.endpoint)
    }

    /// The headers of a request, the key among them.
    pub(crate) fn headers(&self) -> Vec<(&'static str, Zeroizing<String>)> {
        let header = |name, value: String| (name, Zeroizing::new(value));
        let key = self.key.as_ref().map(Secret::expose);
        match self.kind {
            ProviderKind::OpenAi => key
                .map(|key| header("authorization", format!("Bearer {key}")))
                .into_iter()
                .collect(),
            ProviderKind::Anthropic => {
                let version = header("anthropic-version", anthropic::VERSION.to_owned());
                let key = key.map(|key| header("x-api-key", key.to_owned()));
                [version].into_iter().chain(key).collect()
            }
        }
    }

    /// The body of a request.
    pub(crate) fn body(&self, system: &str, tools: &[ModelTool], messages: &[Message]) -> Value {
        match self.kind {
            ProviderKind::OpenAi => openai::body(&self.model, system, tools, messages),
            ProviderKind::Anthropic => anthropic::body(&self.model, system, tools, messages),
        }
    }

    /// What reads an answer.
    pub(crate) fn reader(&self) -> Box<dyn AnswerReader> {
        match self.kind {
            ProviderKind::OpenAi => Box::<openai::Reader>::default(),
            ProviderKind::Anthropic => Box::<anthropic::Reader>::default(),
        }
    }
}

fn not_configured(message: &str) -> CodedError {
    CodedError::new(Code::ModelNotConfigured, message).with_suggestion(HOW_TO)
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn listens((address, port): (Ipv4Addr, u16)) -> bool {
    TcpStream::connect_timeout(&SocketAddr::from((address, port)), OLLAMA_WAIT).is_ok()
}
