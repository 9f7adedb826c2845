//! `http.get`: a page or a piece of data from an address that the policy names.
//!
//! The name is looked up only once the policy allowed the address; every address that it resolves
//! to is judged, and those are the ones that are dialled. Redirects are followed by hand, each
//! judged like a call of its own. Bytes are counted before and after decompression.

use std::fmt;
use std::io::{self, Read};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use capsule_base::code::Code;
use capsule_base::url::HttpUrl;
use capsule_core::action::{Action, Facts, ParsedUrl, UrlTarget};
use capsule_core::capability::Capability;
use capsule_core::lifecycle::{Operation, Permit};
use capsule_core::outcome::{CodedError, Outcome, Output};
use capsule_core::policy::{EgressScope, Restrictions};
use capsule_core::tool::{ArgumentKind, ResultField, ToolArgument, ToolShape, ToolSignature};
use capsule_redact::{TextPiece, excerpt};
use capsule_workspace::Cancel;
use serde_json::{Map, Value};
use ureq::config::Config;
use ureq::http::{HeaderValue, Response, Uri, header};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Body};
use zeroize::Zeroizing;

use crate::fault::wrong_permit_outcome;
use crate::host::ToolHost;
use crate::tool::args::text_arg;
use crate::tool::prepare::failed_operation;
use crate::tool::{DescribeContext, PreparedCall, Tool, ToolContext};

/// What `http.get` is called, takes and gives.
pub static SIGNATURE: ToolSignature = ToolSignature {
    id: "http.get",
    model_name: "http_get",
    aliases: &[],
    about: "Fetches a URL that the policy names.",
    shape: ToolShape::Fetch,
    capabilities: &[Capability::NetEgress],
    arguments: &[
        ToolArgument {
            name: "url",
            kind: ArgumentKind::Url,
            required: true,
            about: "what to fetch",
        },
        ToolArgument {
            name: "headers",
            kind: ArgumentKind::Headers,
            required: false,
            about: "headers such as `Accept`",
        },
    ],
    results: &[
        ResultField { name: "url", about: "where the answer came from, after redirects" },
        ResultField { name: "http_status", about: "the status of the answer" },
        ResultField { name: "headers", about: "those headers that say what the answer is" },
        ResultField { name: "text", about: "the body, where it is text" },
        ResultField { name: "base64", about: "the body, where it is not" },
        ResultField { name: "json", about: "the body as a value, where it says that it is JSON" },
        ResultField { name: "bytes_total", about: "how many bytes of the body were read" },
        ResultField { name: "redirects", about: "how many redirects were followed" },
        ResultField { name: "truncated", about: "whether the body is longer than may be read" },
    ],
};

/// Fetches a URL.
#[derive(Clone, Copy, Debug)]
pub struct HttpGet;

impl Tool for HttpGet {
    fn signature(&self) -> &'static ToolSignature {
        &SIGNATURE
    }

    fn describe(
        &self,
        args: &Map<String, Value>,
        _: &DescribeContext<'_>,
    ) -> Result<Action, CodedError> {
        let headers = args.get("headers").and_then(Value::as_object);
        let headers = headers
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()));
        Ok(Action::Fetch {
            url: UrlTarget::parse(text_arg(args, "url").unwrap_or_default()),
            headers: headers.collect(),
        })
    }

    fn prepare(&self, action: &Action, _: &Value, context: &ToolContext<'_>) -> PreparedCall {
        let operation: Box<dyn Operation> = match action {
            Action::Fetch { url: UrlTarget { parsed: ParsedUrl::Url(address), .. }, headers } => {
                Box::new(FetchOperation {
                    address: address.clone(),
                    headers: headers.clone(),
                    host: Rc::clone(context.host),
                    cancel: context.cancel.clone(),
                })
            }
            _ => {
                let problem = CodedError::new(Code::NetUrl, "the URL cannot be fetched");
                failed_operation(problem, context)
            }
        };
        PreparedCall { facts: Facts::default(), operation }
    }
}

struct FetchOperation {
    address: HttpUrl,
    headers: Vec<(String, String)>,
    host: Rc<dyn ToolHost>,
    cancel: Cancel,
}

/// The bounds of a fetch.
struct FetchLimits<'l> {
    scope: &'l EgressScope,
    bytes_max: u64,
    inflated_max: u64,
    redirects_max: u64,
    deadline: Instant,
}

impl Operation for FetchOperation {
    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        let Restrictions::Fetch { egress: reach, bytes_max, inflated_max, redirects, timeout_ms } =
            permit.restrictions()
        else {
            return wrong_permit_outcome();
        };
        let limits = FetchLimits {
            scope: reach,
            bytes_max: *bytes_max,
            inflated_max: *inflated_max,
            redirects_max: *redirects,
            deadline: Instant::now() + Duration::from_millis(*timeout_ms),
        };
        match self.fetch(&limits) {
            Ok(output) => Outcome::done(output),
            Err(problem) => Outcome::failed(problem),
        }
    }
}

impl FetchOperation {
    fn fetch(&self, limits: &FetchLimits<'_>) -> Result<Output, CodedError> {
        let mut address = self.address.clone();
        let mut followed = 0;
        loop {
            let response = self.send_request(&address, limits)?;
            let Some(next) = redirect_target(&address, &response)? else {
                return self.read_response(&address, response, followed, limits);
            };
            if followed >= limits.redirects_max {
                let message = format!("more than {} redirects", limits.redirects_max);
                return Err(CodedError::new(Code::NetTooManyRedirects, message));
            }
            limits.scope.check_redirect(&address, &next)?;
            followed += 1;
            address = next;
        }
    }

    /// Sends one request and reads the head of the answer.
    fn send_request(
        &self,
        address: &HttpUrl,
        limits: &FetchLimits<'_>,
    ) -> Result<Response<Body>, CodedError> {
        let left = limits.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(timeout_problem(address));
        }
        if self.cancel.is_set() {
            return Err(CodedError::new(Code::ExecCancelled, "the fetch was cancelled"));
        }
        let config = Config::builder()
            .timeout_global(Some(left))
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .proxy(None)
            .user_agent(concat!("capsule/", env!("CARGO_PKG_VERSION")))
            .max_idle_connections(0)
            .build();
        let refusal = RefusalSlot::default();
        crate::host::use_builtin_name_lookup();
        let resolver = FilteringResolver {
            system: DefaultResolver::default(),
            scope: Mutex::new(limits.scope.clone()),
            refusal: refusal.clone(),
        };
        let agent = Agent::with_parts(config, DefaultConnector::default(), resolver);
        let mut request = agent.get(address.as_str()).header("Accept-Encoding", "gzip");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        for (name, value) in self.secret_headers(address, limits)? {
            request = request.header(name, value);
        }
        request
            .call()
            .map_err(|error| refusal.take().unwrap_or_else(|| fetch_problem(address, &error)))
    }

    /// The headers with secrets that are sent to an address: the only place where a handle becomes
    /// what it stands for.
    fn secret_headers(
        &self,
        to: &HttpUrl,
        limits: &FetchLimits<'_>,
    ) -> Result<Vec<(String, HeaderValue)>, CodedError> {
        let mut headers: Vec<(String, HeaderValue)> = Vec::new();
        for rule in limits.scope.secrets(&self.address, to) {
            if headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(&rule.header)) {
                continue;
            }
            let value = self.host.secret(&rule.name);
            let value = value.map(|secret| Zeroizing::new(rule.header_value(secret.expose())));
            let value = value.and_then(|value| HeaderValue::from_str(&value).ok());
            let mut value = value.ok_or_else(|| {
                let name = &rule.name;
                let message = format!(
                    "the secret `{name}` is not there: its variable is not set, or holds no secret"
                );
                CodedError::new(Code::SecretUnavailable, message)
                    .with_suggestion(Code::SecretUnavailable.next_step())
            })?;
            value.set_sensitive(true);
            headers.push((rule.header.clone(), value));
        }
        Ok(headers)
    }

    fn read_response(
        &self,
        address: &HttpUrl,
        response: Response<Body>,
        followed: u64,
        limits: &FetchLimits<'_>,
    ) -> Result<Output, CodedError> {
        let (head, body) = response.into_parts();
        let coding = content_coding(&head.headers);
        let mut wire = LimitedReader {
            inner: body.into_reader(),
            remaining: limits.bytes_max,
            truncated: false,
        };
        let mut bytes = Vec::new();
        let read = match coding {
            ContentCoding::Gzip => {
                let mut inflated = flate2::read::MultiGzDecoder::new(&mut wire);
                self.read_body(&mut inflated, &mut bytes, address, limits)
            }
            _ => self.read_body(&mut wire, &mut bytes, address, limits),
        };
        let cut = match read {
            // A stream that our own limit cut off ends in the middle: what came is kept.
            Err(_) if wire.truncated => true,
            other => other?,
        };
        let truncated = cut || wire.truncated;
        if let ContentCoding::Unknown(name) = &coding
            && !bytes.is_empty()
        {
            // Neither a reader nor the masks can see what is in it.
            let message = format!(
                "`{}` is coded as `{name}`, which was not asked for",
                address.display_short()
            );
            return Err(CodedError::new(Code::NetProtocol, message));
        }
        let kind = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
        let is_json = kind(header::CONTENT_TYPE).is_some_and(is_json_type);
        let value =
            (is_json && !truncated).then(|| capsule_base::json::parse(&bytes).ok()).flatten();
        let total = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let output = Output::default()
            .with("url", address.as_str())
            .with("http_status", head.status.as_u16())
            .with("headers", headers_json(&head.headers))
            .with_bytes("text", "base64", TextPiece::beginning(bytes, truncated))
            .with("bytes_total", total)
            .with("redirects", followed)
            .with("truncated", truncated);
        Ok(match value {
            Some(value) => output.with("json", value),
            None => output,
        })
    }

    /// Reads up to the limit; says whether there was more.
    fn read_body(
        &self,
        from: &mut dyn Read,
        bytes: &mut Vec<u8>,
        address: &HttpUrl,
        limits: &FetchLimits<'_>,
    ) -> Result<bool, CodedError> {
        let most = usize::try_from(limits.inflated_max).unwrap_or(usize::MAX);
        let mut buffer = vec![0; 16 * 1024];
        loop {
            if self.cancel.is_set() {
                return Err(CodedError::new(Code::ExecCancelled, "the fetch was cancelled"));
            }
            if Instant::now() > limits.deadline {
                return Err(timeout_problem(address));
            }
            match from.read(&mut buffer) {
                Ok(0) => return Ok(false),
                Ok(read) => bytes.extend_from_slice(buffer.get(..read).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(body_problem(address, &error)),
            }
            if bytes.len() > most {
                bytes.truncate(most);
                return Ok(true);
            }
        }
    }
}

/// Where a redirect leads; none for any other answer.
fn redirect_target(
    from: &HttpUrl,
    response: &Response<Body>,
) -> Result<Option<HttpUrl>, CodedError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(header::LOCATION) else { return Ok(None) };
    let target = location.to_str().map_err(|_| Code::NetUrl).and_then(|to| from.join_redirect(to));
    target.map(Some).map_err(|code| {
        let message = format!("`{}` redirects to what cannot be fetched", from.display_short());
        CodedError::new(code, message)
    })
}

/// How a body is coded.
enum ContentCoding {
    Plain,
    Gzip,
    /// In a way that was not asked for.
    Unknown(String),
}

fn content_coding(headers: &ureq::http::HeaderMap) -> ContentCoding {
    let mut named = headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(|name| String::from_utf8_lossy(name).trim().to_ascii_lowercase())
        .filter(|name| !name.is_empty() && name != "identity");
    match (named.next(), named.next()) {
        (None, _) => ContentCoding::Plain,
        (Some(name), None) if name == "gzip" || name == "x-gzip" => ContentCoding::Gzip,
        (Some(name), None) => ContentCoding::Unknown(excerpt(&name, 60).into_owned()),
        (Some(_), Some(_)) => ContentCoding::Unknown("several codings at once".into()),
    }
}

fn is_json_type(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or("").trim();
    kind.eq_ignore_ascii_case("application/json") || kind.to_ascii_lowercase().ends_with("+json")
}

/// The headers that say what an answer is. Cookies and their like stay out of the record.
fn headers_json(headers: &ureq::http::HeaderMap) -> Value {
    const TOLD: &[&str] = &[
        "content-type",
        "content-language",
        "date",
        "etag",
        "last-modified",
        "link",
        "location",
        "retry-after",
    ];
    let told = TOLD.iter().filter_map(|name| {
        let value = headers.get(*name)?.to_str().ok()?;
        Some(((*name).to_owned(), Value::from(value)))
    });
    Value::Object(told.collect())
}

fn timeout_problem(address: &HttpUrl) -> CodedError {
    CodedError::new(
        Code::NetTimeout,
        format!("`{}` did not answer in time", address.display_short()),
    )
}

fn body_problem(address: &HttpUrl, error: &io::Error) -> CodedError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<ureq::Error>());
    match inner {
        Some(inner) => fetch_problem(address, inner),
        None => {
            CodedError::new(Code::NetProtocol, format!("`{}`: {error}", address.display_short()))
        }
    }
}

fn fetch_problem(address: &HttpUrl, error: &ureq::Error) -> CodedError {
    let code = match error {
        ureq::Error::Timeout(_) => return timeout_problem(address),
        ureq::Error::HostNotFound => Code::NetResolve,
        ureq::Error::ConnectionFailed => Code::NetConnect,
        ureq::Error::Io(error) => match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => return timeout_problem(address),
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => Code::NetProtocol,
            _ => Code::NetConnect,
        },
        _ => Code::NetProtocol,
    };
    CodedError::new(code, format!("`{}`: {error}", address.display_short()))
}

/// Where the resolver leaves a refusal on its way through the library.
#[derive(Clone, Default)]
struct RefusalSlot(Arc<Mutex<Option<CodedError>>>);

impl RefusalSlot {
    fn put(&self, problem: CodedError) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(problem);
    }

    fn take(&self) -> Option<CodedError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Resolves by the system and judges every address before any is dialled.
struct FilteringResolver {
    system: DefaultResolver,
    scope: Mutex<EgressScope>,
    refusal: RefusalSlot,
}

impl fmt::Debug for FilteringResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Judging")
    }
}

impl Resolver for FilteringResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.system.resolve(uri, config, timeout).inspect_err(|error| {
            if !matches!(error, ureq::Error::Timeout(_)) {
                let host = uri.host().unwrap_or_default();
                let message = format!("`{host}` could not be resolved");
                self.refusal.put(CodedError::new(Code::NetResolve, message));
            }
        })?;
        let reach = self.scope.lock().unwrap_or_else(PoisonError::into_inner);
        for address in found.iter() {
            // One address that is not public taints the name: which of them would be dialled is
            // up to the network.
            if let Err(problem) = reach.check_address(address.ip()) {
                self.refusal.put(problem);
                return Err(ureq::Error::HostNotFound);
            }
        }
        Ok(found)
    }
}

/// Reads no more than so many bytes, and says whether there were more.
struct LimitedReader<R> {
    inner: R,
    remaining: u64,
    truncated: bool,
}

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.remaining == 0 {
            // One byte tells an end from a cut.
            let mut probe = [0];
            self.truncated |= self.inner.read(&mut probe)? > 0;
            return Ok(0);
        }
        let most = usize::try_from(self.remaining).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.inner.read(buffer.get_mut(..most).unwrap_or_default())?;
        self.remaining = self.remaining.saturating_sub(u64::try_from(read).unwrap_or(u64::MAX));
        Ok(read)
    }
}
