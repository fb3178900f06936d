//! Calls SageMaker and CloudWatch Logs directly, with the credentials of the caller.
//!
//! The `AWS_ENDPOINT_URL*` variables can set their endpoints. Creates a job only under a name that is already in use,
//! so that no job starts.

use api_client::{Service, ServiceError, Stack, Target};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::remote::{LOG_GROUP, LOGS_VARIABLE, service};

pub(super) use crate::remote::{ALL_SERVICES, endpoint_variable};

/// Maximum pages to read of a listing, which can contain jobs of other users, and of a log.
const PAGES_MAX: usize = 10;

pub(super) type Answer = Result<Value, ServiceError>;

#[derive(Debug)]
pub(super) struct Account<'a> {
    sagemaker: Service<'a>,
    logs: Service<'a>,
}

impl<'a> Account<'a> {
    /// Returns the services in the Region that `stack` signs for.
    pub(super) fn of(stack: &'a Stack) -> Result<Self, Failure> {
        Ok(Self {
            sagemaker: service(stack, Target::SageMaker, "AWS_ENDPOINT_URL_SAGEMAKER")?,
            logs: service(stack, Target::Logs, LOGS_VARIABLE)?,
        })
    }

    pub(super) async fn describe(&self, job: &str) -> Answer {
        self.sagemaker.read("DescribeTrainingJob", &json!({"TrainingJobName": job})).await
    }

    pub(super) async fn tags(&self, arn: &str) -> Answer {
        self.sagemaker.read("ListTags", &json!({"ResourceArn": arn})).await
    }

    /// Lists the running jobs of a tuning, with the same call as the sweeper.
    pub(super) async fn running(&self, tuning: &str) -> Answer {
        let asked = json!({
            "StatusEquals": "InProgress", "SortBy": "CreationTime", "SortOrder": "Ascending",
            "NameContains": tuning, "MaxResults": 100,
        });
        self.sagemaker.read("ListTrainingJobs", &asked).await
    }

    /// Lists the jobs created between two times (seconds since 1970), oldest first. Reads one job per page.
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

    /// Stops a job. Sent once, because the doctor examines the response.
    pub(super) async fn stop(&self, job: &str) -> Answer {
        self.sagemaker.once("StopTrainingJob", &json!({"TrainingJobName": job})).await
    }

    /// Creates a job under a name that is already in use.
    pub(super) async fn create(&self, job: &Value) -> Answer {
        self.sagemaker.once("CreateTrainingJob", job).await
    }

    pub(super) async fn streams(&self, job: &str) -> Answer {
        let asked = json!({"logGroupName": LOG_GROUP, "logStreamNamePrefix": format!("{job}/")});
        self.logs.read("DescribeLogStreams", &asked).await
    }

    /// Reads the log of a job's first host. A page can be empty although more follow. The result has a `nextToken` if
    /// the log is incomplete.
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
