//! Signs requests with the credentials of the environment and sends them over HTTPS.

mod identity;
mod proxy;
mod sign;
mod xml;

use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_smithy_http_client::Connector;
use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_runtime_api::client::connection::CaptureSmithyConnection;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorSettings};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use tokio::time::timeout;

use crate::error::{ClientError, Unreached, shown};
use crate::send::{Answer, Unsigned};
use identity::Signatory;
use sign::sign;
pub(crate) use xml::value as xml_value;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// API Gateway times out after 30 seconds.
const TRY_TIMEOUT: Duration = Duration::from_secs(35);
/// Maximum size of a response, in bytes; API Gateway's limit is 10 MB.
const ANSWER_BYTES_MAX: usize = 16_000_000;

/// A connector and the identity that signs.
#[derive(Debug)]
pub(crate) struct Transport {
    signatory: Option<Signatory>,
    connector: Connector,
}

impl Transport {
    /// Uses the credentials and the proxy of the environment. Signs for `region`, else for the Region of the environment.
    pub(crate) async fn connect(region: Option<&str>, loopback: bool) -> Result<Self, ClientError> {
        let proxy = proxy::from_environment()?;
        let https = proxy::credentials_client(proxy.clone());
        let signatory = Some(Signatory::find(region, loopback, https).await?);
        Ok(Self { signatory, connector: connector(proxy) })
    }

    /// Signs with the credentials and Region in `signed` (`None` = unsigned), and uses no proxy.
    pub(crate) fn new(signed: Option<(Credentials, &str)>) -> Self {
        let signatory = signed.map(|(credentials, region)| Signatory::given(credentials, region));
        Self { signatory, connector: connector(ProxyConfig::disabled()) }
    }

    /// Returns the Region of the signatures, or `None` if requests are not signed.
    pub(crate) fn region(&self) -> Option<&str> {
        self.signatory.as_ref().map(|signatory| signatory.region.as_str())
    }

    /// Returns whether credentials are available. An endpoint on this machine needs none.
    pub(crate) async fn is_signed(&self) -> Result<bool, ClientError> {
        match &self.signatory {
            Some(signatory) => Ok(signatory.credentials(SystemTime::now()).await?.is_some()),
            None => Ok(false),
        }
    }

    /// Signs a request for `service` in `region`, or in the Region of this transport. Sends it once and reads the
    /// response, with any status.
    pub(crate) async fn exchange(
        &self,
        unsigned: Unsigned<'_>,
        service: &str,
        region: Option<&str>,
    ) -> Result<Answer, ClientError> {
        let now = SystemTime::now();
        let credentials = match &self.signatory {
            Some(signatory) => {
                let region = region.unwrap_or(&signatory.region);
                signatory.credentials(now).await?.map(|found| (found, region))
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
        let answered = answered.map_err(|mut error| {
            if let ClientError::Unreachable { lost, .. } = &mut error {
                // Without a connection nothing was sent.
                *lost = connection.get().is_some();
            }
            error
        })?;
        Ok(Answer { identity, ..answered })
    }
}

async fn read(response: HttpResponse) -> Result<Answer, ClientError> {
    let status = response.status().as_u16();
    let header = |name| response.headers().get(name).map(ToOwned::to_owned);
    let (code, content_type) = (header("x-amzn-errortype"), header("content-type"));
    let request_id = header("x-amzn-requestid").or_else(|| header("apigw-requestid"));
    let is_function_error = response.headers().contains_key("x-amz-function-error");
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
    Ok(Answer { status, code, content_type, request_id, is_function_error, body, identity: None })
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

fn connector(proxy: ProxyConfig) -> Connector {
    let settings =
        HttpConnectorSettings::builder().connect_timeout(CONNECT_TIMEOUT).read_timeout(TRY_TIMEOUT).build();
    Connector::builder().tls_provider(tls()).connector_settings(settings).proxy_config(proxy).build()
}

fn tls() -> Provider {
    Provider::Rustls(CryptoMode::Ring)
}

/// Formats an error with its causes, on one line.
fn because(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    shown(&text)
}
