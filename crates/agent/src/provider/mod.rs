//! Providers: which one is asked, and in what format.

mod anthropic;
mod kind;
mod openai;
mod settings;

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::outcome::CodedError;
use capsule_redact::Secret;
use url::{Host, Url};
use zeroize::Zeroizing;

use crate::model::Prices;
pub use kind::ProviderKind;
use settings::{ProviderSettings, read_providers};

/// A provider and the model that is asked there.
#[derive(Debug)]
pub struct Provider {
    /// The format.
    pub kind: ProviderKind,
    /// The URL that requests are sent to.
    pub endpoint: Url,
    /// The model.
    pub model: String,
    /// How many tokens a request and its answer may have together.
    pub window: u64,
    /// The prices of the model, where they are known.
    pub prices: Option<Prices>,
    pub(crate) key: Option<Secret>,
}

/// Where the user names providers.
pub struct ProviderVariables<'v> {
    /// Looks a variable of the environment up.
    pub lookup: &'v dyn Fn(&str) -> Option<String>,
    /// The file of providers; it may not be there.
    pub file: &'v Path,
}

/// Where Ollama listens, and how long it may take to answer a connection.
const OLLAMA: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 11434);
const OLLAMA_WAIT: Duration = Duration::from_millis(200);

/// How to set a provider up, where none is found.
const HOW_TO: &str = "set OPENAI_BASE_URL (and OPENAI_API_KEY) for a server that speaks OpenAI's format, \
     ANTHROPIC_API_KEY for Anthropic, name providers in `providers.yaml` of the configuration directory, or start \
     Ollama on 127.0.0.1:11434; name the model with `--model` or CAPSULE_MODEL";

/// The names of the variables that the keys of the user's listed providers are in; nothing where there is no file.
///
/// # Errors
/// [`Code::ModelNotConfigured`] where the file is wrong.
pub fn provider_keys(file: &Path) -> Result<Vec<String>, CodedError> {
    Ok(read_providers(file)?.keys())
}

impl Provider {
    /// The provider of that name in the file of providers; else the one that the environment names, then the file's
    /// choice, then a server of Ollama, with the model that was named.
    ///
    /// # Errors
    /// [`Code::ModelNotConfigured`] where none is named, its URL or key cannot be used, or the file is wrong.
    pub fn find(
        variables: &ProviderVariables<'_>,
        model: Option<&str>,
    ) -> Result<Self, CodedError> {
        let listed = read_providers(variables.file)?;
        if let Some(named) = model.and_then(|name| listed.named(name)) {
            return Self::listed(named, named.model.clone(), variables);
        }
        if let Some(found) = Self::from_environment(variables, model) {
            return found;
        }
        if let Some(chosen) = listed.chosen() {
            let model = model.unwrap_or(&chosen.model).to_owned();
            return Self::listed(chosen, model, variables);
        }
        if !listed.is_empty() {
            let names = listed.names();
            let message = format!("`providers.yaml` names `{names}`, and none of them was chosen");
            return Err(not_configured(&message)
                .with_suggestion("name one with `--model`, or with `default` in the file"));
        }
        if !listens(OLLAMA) {
            let message = "no model is configured: OPENAI_BASE_URL, OPENAI_API_KEY and ANTHROPIC_API_KEY are not \
                           set, no provider is listed, and nothing listens on 127.0.0.1:11434";
            return Err(not_configured(message));
        }
        let (address, port) = OLLAMA;
        let base = format!("http://{address}:{port}/v1");
        let key = variables.value("OLLAMA_API_KEY").map(|value| ("OLLAMA_API_KEY", value));
        Self::new(ProviderKind::OpenAi, &base, named_model(model, &base)?, key)
    }

    /// The provider that the environment names, if it names one.
    fn from_environment(
        variables: &ProviderVariables<'_>,
        model: Option<&str>,
    ) -> Option<Result<Self, CodedError>> {
        let variable = |name| variables.value(name);
        let (kind, base, key) =
            if variable("OPENAI_BASE_URL").is_some() || variable("OPENAI_API_KEY").is_some() {
                let base = variable("OPENAI_BASE_URL");
                let base = base.unwrap_or_else(|| "https://api.openai.com/v1".to_owned());
                (ProviderKind::OpenAi, base, "OPENAI_API_KEY")
            } else if variable("ANTHROPIC_API_KEY").is_some() {
                let base = variable("ANTHROPIC_BASE_URL");
                let base = base.unwrap_or_else(|| "https://api.anthropic.com".to_owned());
                (ProviderKind::Anthropic, base, "ANTHROPIC_API_KEY")
            } else {
                return None;
            };
        let key = variable(key).map(|value| (key, value));
        Some(named_model(model, &base).and_then(|model| Self::new(kind, &base, model, key)))
    }

    /// A provider of the file.
    fn listed(
        settings: &ProviderSettings,
        model: String,
        variables: &ProviderVariables<'_>,
    ) -> Result<Self, CodedError> {
        let key = match &settings.key {
            None => None,
            Some(name) => {
                let value = variables.value(name).ok_or_else(|| {
                    not_configured(&format!(
                        "the key of `{}` is in {name}, which is not set",
                        settings.name
                    ))
                    .with_suggestion(format!("set {name}"))
                })?;
                Some((name.as_str(), value))
            }
        };
        let found = Self::new(settings.kind, &settings.url, model, key)?;
        let (window, prices) = (settings.window, settings.prices);
        Ok(Self { window: window.unwrap_or(found.window), prices, ..found })
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
                && url.query().is_none()
                && url.fragment().is_none()
        });
        let endpoint = endpoint.ok_or_else(|| {
            not_configured(
                "the base URL of the model's server is no URL of http or https without a password and without a query",
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
        Ok(Self { kind, endpoint, model, window: limits::MODEL_WINDOW, prices: None, key })
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
}

impl ProviderVariables<'_> {
    fn value(&self, name: &str) -> Option<String> {
        (self.lookup)(name).filter(|value| !value.is_empty())
    }
}

/// The model that was named, for a server that has no default.
fn named_model(model: Option<&str>, base: &str) -> Result<String, CodedError> {
    let missing = || not_configured(&format!("no model is named for {base}"));
    model.map(str::to_owned).ok_or_else(missing)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panics")]

    use capsule_runtime::TokenCount;
    use proptest::prelude::*;

    use super::*;
    use crate::answer::PartialAnswer;
    use crate::message::ModelAnswer;
    use crate::sse::next_event;

    const OPENAI: &str = r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Let me"}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"fs_read","arguments":"{\"path\":"}}]}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"a\"}"}}]},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}

data: [DONE]

"#;
    const ANTHROPIC: &str = r#"event: message_start
data: {"type":"message_start","message":{"usage":{"input_tokens":3}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Let me"}}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c1","name":"fs_read","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"path\":\"a\"}"}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":4}}

event: message_stop
data: {"type":"message_stop"}

"#;

    /// Reads a stream; none where it is no whole answer.
    fn read(kind: ProviderKind, mut stream: &[u8]) -> Option<(ModelAnswer, TokenCount)> {
        let model = String::new();
        let provider = Provider::new(kind, "http://127.0.0.1:1", model, None).unwrap();
        let mut partial = PartialAnswer::default();
        while let Some(event) = next_event(&mut stream).ok()? {
            provider.kind.read_event(&mut partial, &event).ok()?;
        }
        partial.is_complete.then_some((partial.answer, partial.tokens))
    }

    #[test]
    fn both_formats_say_the_same() {
        let openai = read(ProviderKind::OpenAi, OPENAI.as_bytes()).unwrap();
        assert_eq!(openai.0.text, "Let me");
        assert_eq!(openai.0.calls.first().unwrap().args, r#"{"path":"a"}"#);
        assert_eq!(openai.1, TokenCount { input: Some(3), output: Some(4) });
        assert_eq!(read(ProviderKind::Anthropic, ANTHROPIC.as_bytes()), Some(openai));
    }

    /// Half of a stream is never an answer, wherever it is cut before its last event.
    #[test]
    fn a_cut_stream_is_no_answer() {
        let ends = [
            (
                ProviderKind::OpenAi,
                OPENAI,
                "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish",
            ),
            (ProviderKind::Anthropic, ANTHROPIC, "data: {\"type\":\"message_stop"),
        ];
        for (kind, whole, last) in ends {
            for end in 0..whole.find(last).unwrap() {
                assert_eq!(
                    read(kind, whole.as_bytes().get(..end).unwrap()),
                    None,
                    "{kind:?} {end}"
                );
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        /// Whatever a server sends, reading it neither panics nor grows beyond its bounds.
        #[test]
        fn a_mutated_stream_is_read_or_refused(
            is_openai: bool,
            changes in prop::collection::vec((0_usize..1_200, any::<u8>()), 1..6),
            number in 0_u64..,
        ) {
            let (kind, text) = match is_openai {
                true => (ProviderKind::OpenAi, OPENAI),
                false => (ProviderKind::Anthropic, ANTHROPIC),
            };
            let text = text.replace("\"index\":0,\"id\"", &format!("\"index\":{number},\"id\""));
            let mut stream = text.into_bytes();
            for (at, byte) in changes {
                let length = stream.len();
                if let Some(place) = stream.get_mut(at % length) {
                    *place = byte;
                }
            }
            if let Some((answer, _)) = read(kind, &stream) {
                prop_assert!(answer.calls.len() <= limits::MODEL_CALLS);
                prop_assert!(answer.text.len() <= stream.len());
            }
        }
    }
}
