//! Tunings at an endpoint: a deployed stack, by HTTP or by its function, or another server of its API. Converts its errors to [`Failure`]s.

use api_client::{Address, Client, ClientError, Endpoint, Service, Target};
use wire::describe::{TuningJob, TuningPage};
use wire::request::RequestError;

use crate::failure::{Exit, Failure};
use crate::page::Page;

/// Error code of the API for an unknown name.
pub(crate) const NOT_FOUND: &str = "ResourceNotFound";

pub(crate) const ALL_SERVICES: &str = "AWS_ENDPOINT_URL";
/// Environment variable with the endpoint of CloudWatch Logs.
pub(crate) const LOGS_VARIABLE: &str = "AWS_ENDPOINT_URL_CLOUDWATCH_LOGS";
/// The log group of SageMaker's training jobs.
pub(crate) const LOG_GROUP: &str = "/aws/sagemaker/TrainingJobs";

#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) client: Client,
}

impl Remote {
    /// Connects to the stack at `address` with the credentials of the environment.
    pub(crate) async fn connect(address: Address) -> Result<Self, Failure> {
        let client = Client::connect(address).await.map_err(failed)?;
        Ok(Self { client })
    }

    /// Describes the tuning `name`. The error for an unknown name suggests similar names.
    pub(crate) async fn describe(&self, name: &str) -> Result<TuningJob, Failure> {
        match self.client.describe(name).await {
            Ok(described) => Ok(described),
            Err(error) => Err(self.tuning_failure(error, name).await),
        }
    }

    pub(crate) async fn page(&self, name: &str) -> Result<Page, Failure> {
        let described = self.describe(name).await?;
        let jobs = self.client.training_jobs(name).await.map_err(failed)?;
        Ok(Page::of_stack(described, jobs))
    }

    /// Converts the error of a call about the tuning `name`.
    pub(crate) async fn tuning_failure(&self, error: ClientError, name: &str) -> Failure {
        if !error.is(NOT_FOUND) {
            return failed(error);
        }
        // One page of names is enough for a suggestion. If it cannot be read, there is no suggestion.
        let newest = self.client.newest().await;
        let none = newest.as_ref().is_ok_and(|page| *page == TuningPage::default());
        let newest = newest.unwrap_or_default().tunings;
        let near = wire::closest(name, newest.iter().map(|shown| shown.base.name.as_str()));
        let hint = match near.as_slice() {
            [] if none => "there are no tunings: start one with `hyperband submit`".to_owned(),
            [] => "`hyperband list` shows all tunings".to_owned(),
            near => format!("did you mean {}?", near.join(" or ")),
        };
        let place = self.client.address();
        Failure::usage(format!("there is no tuning '{name}' at {place}")).hint(hint)
    }
}

/// Returns a service of AWS in the account and Region of `client`. `variable` can set its endpoint.
pub(crate) fn service<'a>(
    client: &'a Client,
    target: Target,
    variable: &str,
) -> Result<Service<'a>, Failure> {
    let endpoint = endpoint_variable(variable)?;
    if endpoint.is_none() && client.endpoint().is_loopback() {
        return Err(Failure::usage(
            "the endpoint is on this machine, but the endpoint of its AWS services is missing",
        )
        .hint(format!(
            "set {variable} or {ALL_SERVICES}; for `hyperband serve`, use --data-dir with its folder instead"
        )));
    }
    client.service(target, endpoint).map_err(failed)
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
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
