//! The read-only calls of the checks.
//!
//! `AWS_ENDPOINT_URL` and the variables of the services set the endpoints, as in every AWS SDK. If one endpoint is on
//! this machine, all must be set: the credentials of an emulator must never reach AWS.

use api_client::{Caller, ClientError, Endpoint, Service, Target};
use serde_json::json;

use super::LOG_GROUP;
use crate::doctor::account::{ALL_SERVICES, Answer, endpoint_variable};
use crate::failure::Failure;

const VARIABLES: [(Target, &str); 7] = [
    (Target::Sts, "AWS_ENDPOINT_URL_STS"),
    (Target::Iam, "AWS_ENDPOINT_URL_IAM"),
    (Target::Ec2, "AWS_ENDPOINT_URL_EC2"),
    (Target::Lambda, "AWS_ENDPOINT_URL_LAMBDA"),
    (Target::Logs, "AWS_ENDPOINT_URL_CLOUDWATCH_LOGS"),
    (Target::Pricing, "AWS_ENDPOINT_URL_PRICING"),
    (Target::ServiceQuotas, "AWS_ENDPOINT_URL_SERVICE_QUOTAS"),
];

#[derive(Debug)]
pub(super) struct Endpoints(Vec<(Target, Option<Endpoint>)>);

impl Endpoints {
    pub(super) fn of_environment() -> Result<Self, Failure> {
        let read = VARIABLES.iter().map(|(target, name)| Ok((*target, endpoint_variable(name)?)));
        let endpoints = Self(read.collect::<Result<Vec<_>, Failure>>()?);
        let missing = endpoints.0.iter().position(|(_, endpoint)| endpoint.is_none());
        if let Some((_, name)) = missing.and_then(|index| VARIABLES.get(index))
            && endpoints.is_loopback()
        {
            let error = "one AWS service is on this machine, but the endpoint of another service is missing";
            return Err(Failure::usage(error).hint(format!("set {name} or {ALL_SERVICES}")));
        }
        Ok(endpoints)
    }

    pub(super) fn is_loopback(&self) -> bool {
        self.0.iter().any(|(_, endpoint)| endpoint.as_ref().is_some_and(Endpoint::is_loopback))
    }

    fn of_target(&self, target: Target) -> Option<Endpoint> {
        self.0.iter().find(|(own, _)| *own == target).and_then(|(_, endpoint)| endpoint.clone())
    }
}

#[derive(Debug)]
pub(super) struct Calls<'a> {
    pub(super) sts: Service<'a>,
    pub(super) iam: Service<'a>,
    pub(super) ec2: Service<'a>,
    pub(super) lambda: Service<'a>,
    pub(super) pricing: Service<'a>,
    pub(super) quotas: Service<'a>,
    logs: Service<'a>,
}

impl<'a> Calls<'a> {
    pub(super) fn new(caller: &'a Caller, endpoints: &Endpoints) -> Result<Self, ClientError> {
        let service = |target| caller.service(target, endpoints.of_target(target));
        Ok(Self {
            sts: service(Target::Sts)?,
            iam: service(Target::Iam)?,
            ec2: service(Target::Ec2)?,
            lambda: service(Target::Lambda)?,
            pricing: service(Target::Pricing)?,
            quotas: service(Target::ServiceQuotas)?,
            logs: service(Target::Logs)?,
        })
    }

    /// Lists the log groups whose names begin with that of the training jobs. Its own name is the first.
    pub(super) async fn log_groups(&self) -> Answer {
        self.logs.read("DescribeLogGroups", &json!({"logGroupNamePrefix": LOG_GROUP})).await
    }

    pub(super) async fn subscription_filters(&self) -> Answer {
        self.logs.read("DescribeSubscriptionFilters", &json!({"logGroupName": LOG_GROUP})).await
    }

    /// Returns the role `name`. `None` if there is no name.
    pub(super) async fn role(&self, name: Option<&str>) -> Option<Answer> {
        Some(self.iam.read("GetRole", &json!({"RoleName": name?})).await)
    }
}
