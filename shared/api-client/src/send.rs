//! Sends a request, reads its response, and retries transient errors.
//!
//! Distinguishes three kinds of failure: refused (no effect), throttled (no effect, retry), and lost (effect
//! unknown). The caller decides which requests are safe to retry.

use std::time::{Duration, SystemTime};

use aws_smithy_http_client::Connector;
use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_runtime_api::client::connection::CaptureSmithyConnection;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorSettings};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use serde_json::Value;
use tokio::time::{sleep, timeout};
use wire::request::Violation;

use crate::Client;
use crate::error::{ClientError, Denial, Refusal, Unreached, because, code_and_message, shown};
use crate::identity;
use crate::sign::{Unsigned, sign};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The service name in the signatures for the API.
const API: &str = "execute-api";
/// API Gateway times out after 30 seconds.
const TRY_TIMEOUT: Duration = Duration::from_secs(35);
/// Maximum size of a response, in bytes; API Gateway's limit is 10 MB.
const ANSWER_BYTES_MAX: usize = 16_000_000;

/// A request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) method: &'static str,
    /// The path with its query.
    pub(crate) path: &'a str,
    pub(crate) body: &'a [u8],
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The error code in the headers.
    pub(crate) code: Option<String>,
    pub(crate) body: Vec<u8>,
    /// The end of the access key's ID that signed the request.
    identity: Option<String>,
}

/// Returns a connector with time-outs.
pub(crate) fn connector(proxy: ProxyConfig) -> Connector {
    let settings =
        HttpConnectorSettings::builder().connect_timeout(CONNECT_TIMEOUT).read_timeout(TRY_TIMEOUT).build();
    Connector::builder().tls_provider(crate::tls()).connector_settings(settings).proxy_config(proxy).build()
}

impl Client {
    /// Sends an idempotent request, and retries transient errors.
    pub(crate) async fn ask(&self, ask: Ask<'_>) -> Result<Value, ClientError> {
        let mut done = 1;
        loop {
            let error = match self.once(ask).await {
                Err(error) if is_transient(&error) => error,
                answered => return answered,
            };
            if done >= self.retry.tries {
                return Err(error.after(done));
            }
            self.pause(done).await;
            done = done.saturating_add(1);
        }
    }

    /// Waits before the next attempt.
    pub(crate) async fn pause(&self, done: u32) {
        sleep(self.retry.pause(done, fastrand::f64())).await;
    }

    /// Sends a request once.
    pub(crate) async fn once(&self, ask: Ask<'_>) -> Result<Value, ClientError> {
        let mut headers = vec![("host", self.endpoint.authority().to_owned())];
        if !ask.body.is_empty() {
            headers.push(("content-type", "application/json".to_owned()));
        }
        let url = self.endpoint.url(ask.path);
        let request = Unsigned { method: ask.method, url: &url, headers: &headers, body: ask.body };
        let answer = self.exchange(request, API).await?;
        understood(answer.status, answer.code.as_deref(), &answer.body, answer.identity)
    }

    /// Signs a request for `service`, sends it once and reads the response, with any status.
    pub(crate) async fn exchange(
        &self,
        unsigned: Unsigned<'_>,
        service: &str,
    ) -> Result<Answer, ClientError> {
        let now = SystemTime::now();
        let credentials = match &self.signatory {
            Some(signatory) => {
                signatory.credentials(now).await?.map(|found| (found, signatory.region.as_str()))
            }
            None => None,
        };
        let identity = credentials.as_ref().map(|(found, _)| identity::key_suffix(found));
        let signature = match credentials {
            Some((found, region)) => sign(unsigned, found, (service, region), now)?,
            None => Vec::new(),
        };
        let mut request = http::Request::builder().method(unsigned.method).uri(unsigned.url);
        for (name, value) in unsigned.headers {
            request = request.header(*name, value);
        }
        for (name, value) in signature {
            request = request.header(name, value);
        }
        let request = request.body(SdkBody::from(unsigned.body.to_vec()));
        let request = request.map_err(|error| ClientError::Foreign(because(&error)))?;
        let mut request =
            HttpRequest::try_from(request).map_err(|error| ClientError::Foreign(because(&error)))?;
        let connection = CaptureSmithyConnection::new();
        request.add_extension(connection.clone());
        let answer = async {
            let response = self.connector.call(request).await.map_err(|error| unreached(&error))?;
            read(response).await
        };
        let late = |_| {
            let cause = format!("no response within {} s", TRY_TIMEOUT.as_secs());
            Err(ClientError::Unreachable { cause, how: Unreached::Time, tries: 1, lost: true })
        };
        let answered = timeout(TRY_TIMEOUT, answer).await.unwrap_or_else(late);
        let (status, code, body) = answered.map_err(|mut error| {
            if let ClientError::Unreachable { lost, .. } = &mut error {
                // Without a connection nothing was sent.
                *lost = connection.get().is_some();
            }
            error
        })?;
        Ok(Answer { status, code, body, identity })
    }
}

/// Returns whether a retry of the same request may succeed.
pub(crate) fn is_transient(error: &ClientError) -> bool {
    match error {
        ClientError::Busy { .. } => true,
        // A retry gets the same certificate.
        ClientError::Unreachable { how, .. } => *how != Unreached::Tls,
        ClientError::Endpoint(_)
        | ClientError::NoRegion
        | ClientError::Proxy(_)
        | ClientError::Credentials(_)
        | ClientError::Refused(_)
        | ClientError::Denied { .. }
        | ClientError::Uncertain { .. }
        | ClientError::Foreign(_) => false,
    }
}

/// Reads the status, the error code in the headers, and the body.
async fn read(response: HttpResponse) -> Result<(u16, Option<String>, Vec<u8>), ClientError> {
    let status = response.status().as_u16();
    let code = response.headers().get("x-amzn-errortype").map(ToOwned::to_owned);
    let mut stream = ByteStream::new(response.into_body());
    let mut body = Vec::new();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|error| ClientError::Unreachable {
            cause: because(&error),
            how: Unreached::Connection,
            tries: 1,
            lost: true,
        })?;
        if body.len().saturating_add(chunk.len()) > ANSWER_BYTES_MAX {
            return Err(ClientError::Foreign(format!(
                "the response is larger than {ANSWER_BYTES_MAX} bytes"
            )));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((status, code, body))
}

/// Converts a response to its body or an error.
fn understood(
    status: u16,
    code: Option<&str>,
    bytes: &[u8],
    identity: Option<String>,
) -> Result<Value, ClientError> {
    let body: Option<Value> = serde_json::from_slice(bytes).ok();
    if (200..300).contains(&status) {
        let text = || shown(&String::from_utf8_lossy(bytes));
        return body.ok_or_else(|| ClientError::Foreign(format!("status {status}, not JSON: {}", text())));
    }
    let body = body.unwrap_or(Value::Null);
    let (code, message) = code_and_message(&body, code);
    let text = message.clone().unwrap_or_else(|| format!("status {status}"));
    match status {
        401 | 403 => {
            let why = Denial::of(&code, &text, identity.is_some());
            Err(ClientError::Denied { message: shown(&text), identity, why })
        }
        429 => Err(ClientError::Busy { message: shown(&text), tries: 1, lost: false }),
        500.. => Err(ClientError::Busy {
            message: format!("{} (status {status})", shown(&text)),
            tries: 1,
            lost: true,
        }),
        // Every refusal of the API has a code; API Gateway's own "Not Found" has none.
        _ if code.is_empty() || message.is_none() => {
            Err(ClientError::Foreign(format!("status {status}: {}", shown(&text))))
        }
        _ => {
            Err(ClientError::Refused(Refusal { status, code, message: text, violations: violations(&body) }))
        }
    }
}

fn violations(body: &Value) -> Vec<Violation> {
    let text =
        |one: &Value, member: &str| one.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
    let listed = body.get("Violations").and_then(Value::as_array).into_iter().flatten();
    listed.map(|one| Violation { path: text(one, "Path"), message: text(one, "Message") }).collect()
}

fn unreached(error: &ConnectorError) -> ClientError {
    let cause = because(error);
    let words = cause.to_lowercase();
    let says = |any: &[&str]| any.iter().any(|word| words.contains(word));
    let how = if error.is_timeout() {
        Unreached::Time
    } else if says(&["dns error", "failed to lookup", "name or service not known"]) {
        Unreached::Name
    } else if says(&["certificate", "handshake", "tls", "corrupt message"]) {
        Unreached::Tls
    } else {
        Unreached::Connection
    };
    ClientError::Unreachable { cause, how, tries: 1, lost: true }
}
