//! A stack, or another server of the API, at an address.

#[cfg(feature = "aws")]
use aws_credential_types::Credentials;
use wire::events::http::{HttpRequest, HttpResponse};

use crate::address::Address;
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ClientError;
use crate::exchange::{Exchange, Sending};
use crate::query::escape;
use crate::send::{API, Answer, Unsigned, understood};
#[cfg(feature = "aws")]
use crate::{Function, Retry};
use crate::{Service, Target};

const FORWARDED: [&str; 2] = ["content-type", "x-amz-target"];
/// Variables that set the endpoint of Lambda, for emulators and private endpoints. The first one set counts.
const VARIABLES: [&str; 2] = ["AWS_ENDPOINT_URL_LAMBDA", "AWS_ENDPOINT_URL"];

/// An address with the caller that signs the requests.
#[derive(Debug)]
pub struct Stack {
    address: Address,
    /// The URL of the HTTP API, or of Lambda.
    pub(crate) endpoint: Endpoint,
    pub(crate) caller: Caller,
}

impl Stack {
    /// Uses the credentials and the proxy of the environment.
    pub async fn connect(address: Address) -> Result<Self, ClientError> {
        let (endpoint, region) = match &address {
            Address::Http(endpoint) => (Some(endpoint.clone()), endpoint.region()),
            Address::Function(function) => (endpoint_in_environment()?, function.region()),
        };
        let is_local = endpoint.as_ref().is_some_and(Endpoint::is_loopback);
        let caller = Caller::connect(region, is_local).await?;
        // Only a function may have no endpoint yet: that of Lambda in its Region.
        let endpoint = caller.service(Target::Lambda, endpoint)?.endpoint().clone();
        Ok(Self { address, endpoint, caller })
    }

    /// Signs with the credentials and Region in `signed` (`None` = unsigned), and uses no proxy.
    #[cfg(feature = "aws")]
    pub fn new(endpoint: Endpoint, signed: Option<(Credentials, &str)>, retry: Retry) -> Self {
        let address = Address::Http(endpoint.clone());
        Self { address, endpoint, caller: Caller::new(signed, retry) }
    }

    /// Like [`Self::new`], but invokes `function` at `endpoint`, the URL of Lambda.
    #[cfg(feature = "aws")]
    pub fn invoking(
        function: Function,
        endpoint: Endpoint,
        signed: Option<(Credentials, &str)>,
        retry: Retry,
    ) -> Self {
        let address = Address::Function(function);
        Self { address, endpoint, caller: Caller::new(signed, retry) }
    }

    /// Returns the address.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the URL that requests go to.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns whether requests are signed. An endpoint on this machine needs no signature.
    pub async fn is_signed(&self) -> Result<bool, ClientError> {
        self.caller.is_signed().await
    }

    /// Returns `target` at `endpoint`, or in the Region of this stack.
    pub fn service(&self, target: Target, endpoint: Option<Endpoint>) -> Result<Service<'_>, ClientError> {
        self.caller.service(target, endpoint)
    }

    async fn send_once(&self, request: &HttpRequest) -> Result<HttpResponse, ClientError> {
        if let Address::Function(function) = &self.address {
            return self.invoke(function, request).await;
        }
        let forwarded =
            FORWARDED.into_iter().filter_map(|name| Some((name, request.header(name)?.to_owned())));
        let headers: Vec<_> =
            std::iter::once(("host", self.endpoint.authority().to_owned())).chain(forwarded).collect();
        let url = self.endpoint.url(&path(request));
        let unsigned =
            Unsigned { method: &request.method, url: &url, headers: &headers, body: &request.body };
        let answer = self.caller.transport.exchange(unsigned, API, None).await?;
        if matches!(answer.status, 401 | 403)
            && let Err(denied @ ClientError::Denied { .. }) =
                understood(answer.status, answer.code.as_deref(), &answer.body, answer.identity.clone())
        {
            return Err(denied);
        }
        Ok(response(answer))
    }
}

impl Exchange for Stack {
    fn send<'a>(&'a self, request: &'a HttpRequest) -> Sending<'a> {
        Box::pin(self.send_once(request))
    }
}

fn endpoint_in_environment() -> Result<Option<Endpoint>, ClientError> {
    for name in VARIABLES {
        let address = std::env::var(name).unwrap_or_default();
        if !address.is_empty() {
            return address.parse().map(Some).map_err(|error| ClientError::Variable { name, error });
        }
    }
    Ok(None)
}

fn path(request: &HttpRequest) -> String {
    let mut path = request.path.clone();
    for (index, (name, value)) in request.query.iter().enumerate() {
        path.push(if index == 0 { '?' } else { '&' });
        escape(&mut path, name);
        path.push('=');
        escape(&mut path, value);
    }
    path
}

fn response(answer: Answer) -> HttpResponse {
    let Answer { status, code, content_type, request_id, body, is_function_error: _, identity: _ } = answer;
    let headers =
        [("content-type", content_type), ("x-amzn-errortype", code), ("x-amzn-requestid", request_id)];
    headers.into_iter().fold(HttpResponse::new(status, body), |response, (name, value)| match value {
        Some(value) => response.header(name, &value),
        None => response,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_escaped_again() {
        let query = [("NameContains", "a b&c"), ("NextToken", "x=")];
        let request = HttpRequest {
            path: "/tuning-jobs".to_owned(),
            query: query.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            ..HttpRequest::default()
        };
        assert_eq!(path(&request), "/tuning-jobs?NameContains=a%20b%26c&NextToken=x%3D");
    }
}
