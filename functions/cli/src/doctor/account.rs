//! What is asked of SageMaker and CloudWatch Logs directly, with the rights of whoever calls.
//!
//! Where they are say the variables that every AWS tool knows. Must never start a job but under a name that is taken.

use client::{Client, Endpoint, Service, ServiceError, Target};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::remote::failed;

const ALL_SERVICES: &str = "AWS_ENDPOINT_URL";
const LOG_GROUP: &str = "/aws/sagemaker/TrainingJobs";
/// Pages that are read at most, of the listing (others start jobs too) and of a log.
const PAGES_MAX: usize = 10;

/// What a service said.
pub(super) type Answer = Result<Value, ServiceError>;

/// The account of the stack.
#[derive(Debug)]
pub(super) struct Account<'a> {
    sagemaker: Service<'a>,
    logs: Service<'a>,
}

impl<'a> Account<'a> {
    /// The services of the Region for which `client` signs.
    pub(super) fn of(client: &'a Client) -> Result<Self, Failure> {
        let service = |target, own| {
            let endpoint = told(own)?;
            if endpoint.is_none() && client.endpoint().is_loopback() {
                return Err(Failure::usage(
                    "the endpoint is on this machine, and nothing says where its SageMaker is",
                )
                .hint(format!("set {own} or {ALL_SERVICES}")));
            }
            client.service(target, endpoint).map_err(failed)
        };
        Ok(Self {
            sagemaker: service(Target::SageMaker, "AWS_ENDPOINT_URL_SAGEMAKER")?,
            logs: service(Target::Logs, "AWS_ENDPOINT_URL_CLOUDWATCH_LOGS")?,
        })
    }

    pub(super) async fn describe(&self, job: &str) -> Answer {
        self.sagemaker.read("DescribeTrainingJob", &json!({"TrainingJobName": job})).await
    }

    pub(super) async fn tags(&self, arn: &str) -> Answer {
        self.sagemaker.read("ListTags", &json!({"ResourceArn": arn})).await
    }

    /// The running jobs of a tuning, as a sweep lists all.
    pub(super) async fn running(&self, tuning: &str) -> Answer {
        let asked = json!({
            "StatusEquals": "InProgress", "SortBy": "CreationTime", "SortOrder": "Ascending",
            "NameContains": tuning, "MaxResults": 100,
        });
        self.sagemaker.read("ListTrainingJobs", &asked).await
    }

    /// All jobs created after one second and before another, oldest first: page by page, one job a page.
    pub(super) async fn created(&self, after: i64, before: i64) -> Result<Vec<Value>, ServiceError> {
        let mut asked = json!({
            "SortBy": "CreationTime", "SortOrder": "Ascending", "MaxResults": 1,
            "CreationTimeAfter": after, "CreationTimeBefore": before,
        });
        let mut pages = Vec::new();
        while pages.len() < PAGES_MAX {
            let page = self.sagemaker.read("ListTrainingJobs", &asked).await?;
            let next = page["NextToken"].as_str().filter(|token| !token.is_empty()).map(str::to_owned);
            pages.push(page);
            match next {
                Some(token) => asked["NextToken"] = json!(token),
                None => break,
            }
        }
        Ok(pages)
    }

    /// Sent once: what it says is wanted, not that it be done.
    pub(super) async fn stop(&self, job: &str) -> Answer {
        self.sagemaker.once("StopTrainingJob", &json!({"TrainingJobName": job})).await
    }

    /// Under a name that is taken.
    pub(super) async fn create(&self, job: &Value) -> Answer {
        self.sagemaker.once("CreateTrainingJob", job).await
    }

    pub(super) async fn streams(&self, job: &str) -> Answer {
        let asked = json!({"logGroupName": LOG_GROUP, "logStreamNamePrefix": format!("{job}/")});
        self.logs.read("DescribeLogStreams", &asked).await
    }

    /// The lines of a job's first host. A page may be empty and have a next one; where some are left, a token is too.
    pub(super) async fn lines(&self, job: &str) -> Answer {
        let prefix = format!("{job}/algo-1-");
        let mut asked = json!({"logGroupName": LOG_GROUP, "logStreamNamePrefix": prefix});
        let (mut events, mut next) = (Vec::new(), Value::Null);
        for _ in 0..PAGES_MAX {
            let mut page = self.logs.read("FilterLogEvents", &asked).await?;
            if let Value::Array(more) = page["events"].take() {
                events.extend(more);
            }
            next = page["nextToken"].take();
            if next.is_null() {
                break;
            }
            asked["nextToken"] = next.clone();
        }
        Ok(json!({"events": events, "nextToken": next}))
    }
}

/// The address in a variable of its own or in that of all services.
fn told(own: &str) -> Result<Option<Endpoint>, Failure> {
    for name in [own, ALL_SERVICES] {
        let address = std::env::var(name).unwrap_or_default();
        if !address.is_empty() {
            let read = address.parse().map(Some);
            return read.map_err(|error| Failure::usage(format!("{name}: {error}")));
        }
    }
    Ok(None)
}
