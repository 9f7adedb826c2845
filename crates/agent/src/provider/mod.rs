//! Providers: which one is asked, and in what format.

mod anthropic;
mod openai;

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::outcome::CodedError;
use capsule_redact::Secret;
use capsule_runtime::{ModelTool, TokenCount};
use serde_json::Value;
use url::{Host, Url};
use zeroize::Zeroizing;

use crate::answer::PartialAnswer;
use crate::http;
use crate::message::{Message, ModelAnswer};
use crate::model::{AnswerPiece, Model, Prices, RequestError, Until};

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
    /// How many tokens a request and its answer may have together.
    pub window: u64,
    /// What the model costs, where that is known.
    pub prices: Option<Prices>,
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

/// How to set a provider up, where none is found.
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
        let Some(model) = model.map(str::to_owned) else {
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

    /// Takes the data of the next event of an answer.
    ///
    /// # Errors
    /// When the event is none of the format, says that something went wrong or that the answer was cut off, or
    /// asks for more calls than are taken.
    pub(crate) fn read_event(
        &self,
        answer: &mut PartialAnswer,
        event: &[u8],
    ) -> Result<(), CodedError> {
        match self.kind {
            ProviderKind::OpenAi => openai::read_event(answer, event),
            ProviderKind::Anthropic => anthropic::read_event(answer, event),
        }
    }
}

impl ProviderKind {
    /// The body of a request.
    pub(crate) fn body(
        self,
        model: &str,
        system: &str,
        tools: &[ModelTool],
        messages: &[Message],
    ) -> Value {
        match self {
            Self::OpenAi => openai::body(model, system, tools, messages),
            Self::Anthropic => anthropic::body(model, system, tools, messages),
        }
    }
}

impl Model for Provider {
    fn endpoint(&self) -> &str {
        self.endpoint.as_str()
    }

    fn name(&self) -> &str {
        &self.model
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn prices(&self) -> Option<Prices> {
        self.prices
    }

    fn body(&self, instructions: &str, tools: &[ModelTool], messages: &[Message]) -> Value {
        self.kind.body(&self.model, instructions, tools, messages)
    }

    fn ask(
        &self,
        body: &[u8],
        until: &Until<'_>,
        on_piece: &mut dyn FnMut(AnswerPiece<'_>),
    ) -> Result<(ModelAnswer, TokenCount), RequestError> {
        http::ask(self, body, until, on_piece)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panics")]

    use proptest::prelude::*;

    use super::*;
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
            provider.read_event(&mut partial, &event).ok()?;
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
