//! A deployed stack, by HTTP or by its function, or another server of its API. Converts its errors to [`Failure`]s.

use std::sync::Arc;

use api_client::{Address, Client, ClientError, Endpoint, Exchange, Retry, Service, Stack, Target};
use wire::request::RequestError;

use crate::failure::{Exit, Failure};

/// Error code of the API for an unknown name.
pub(crate) const NOT_FOUND: &str = "ResourceNotFound";

pub(crate) const ALL_SERVICES: &str = "AWS_ENDPOINT_URL";
/// Environment variable with the endpoint of CloudWatch Logs.
pub(crate) const LOGS_VARIABLE: &str = "AWS_ENDPOINT_URL_CLOUDWATCH_LOGS";
/// The log group of SageMaker's training jobs.
pub(crate) const LOG_GROUP: &str = "/aws/sagemaker/TrainingJobs";

/// A stack and a client of its API.
#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) client: Client,
    pub(crate) stack: Arc<Stack>,
}

impl Remote {
    /// Connects to the stack at `address` with the credentials of the environment.
    pub(crate) async fn connect(address: Address) -> Result<Self, Failure> {
        let stack = Arc::new(Stack::connect(address).await.map_err(failed)?);
        let exchange: Arc<dyn Exchange> = stack.clone();
        Ok(Self { client: Client::new(exchange, Retry::default()), stack })
    }
}

/// Returns a service of AWS in the account and Region of `stack`. `variable` can set its endpoint.
pub(crate) fn service<'a>(stack: &'a Stack, target: Target, variable: &str) -> Result<Service<'a>, Failure> {
    let endpoint = endpoint_variable(variable)?;
    if endpoint.is_none() && stack.endpoint().is_loopback() {
        return Err(Failure::usage(
            "the endpoint is on this machine, but the endpoint of its AWS services is missing",
        )
        .hint(format!(
            "set {variable} or {ALL_SERVICES}; for `hyperband serve`, use --data-dir with its folder instead"
        )));
    }
    stack.service(target, endpoint).map_err(failed)
}

/// Returns the endpoint from the variable `own`, else from the variable of all services.
pub(crate) fn endpoint_variable(own: &str) -> Result<Option<Endpoint>, Failure> {
    for name in [own, ALL_SERVICES] {
        let address = std::env::var(name).unwrap_or_default();
        if !address.is_empty() {
            let read = address.parse().map(Some);
            return read.map_err(|error| Failure::usage(format!("{name}: {error}")));
        }
    }
    Ok(None)
}

/// Converts an error of the client.
pub(crate) fn failed(error: ClientError) -> Failure {
    let (usage, hint) = (error.is_usage(), error.hint());
    let failure = match error {
        ClientError::Refused(refusal) if !refusal.violations.is_empty() => {
            Failure::invalid_request(&RequestError {
                code: wire::request::ErrorCode::ValidationException,
                message: refusal.message,
                violations: refusal.violations,
            })
        }
        ClientError::Refused(refusal) if refusal.code == "ResourceInUse" => {
            Failure::usage(refusal.message).hint("use another --name")
        }
        error => Failure::endpoint(error),
    };
    let failure = failure.exit(if usage { Exit::Usage } else { Exit::Endpoint });
    failure.hint_if_any(hint)
}
