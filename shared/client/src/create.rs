//! Submits a request so that it becomes one tuning job, also where an answer is lost.
//!
//! A name is taken once: that is what keeps two tries from becoming two tuning jobs. What a lost answer leaves open is
//! whether a tuning job of that name is ours. It is if it asks for the same and was not there before the first try, as far
//! as the clocks of both sides can tell; else it is another's, and that is said. Once an answer was lost, a refusal of a
//! later try tells nothing of the earlier one: then the name is looked up, and what cannot be known is said to be so.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use wire::describe::first_difference;
use wire::request::Request;

use crate::error::{ClientError, Refusal};
use crate::send::{Ask, is_transient};
use crate::{Client, TUNINGS};

/// The clocks of both sides differ by less: with more a signature is refused.
const CLOCKS_DIFFER: Duration = Duration::from_mins(5);
const NAME_TAKEN: &str = "ResourceInUse";
const NOT_FOUND: &str = "ResourceNotFound";

/// A tuning job that was submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// Its ARN.
    pub arn: String,
    /// Whether the answer was lost and it was found by its name.
    pub found: bool,
}

impl Client {
    /// Submits `request`. With any error but [`ClientError::Uncertain`] it is known that the API has taken nothing.
    pub async fn create(&self, request: &Request) -> Result<Created, ClientError> {
        let body = request.body().to_string();
        let ask = Ask { method: "POST", path: TUNINGS, body: body.as_bytes() };
        let began = SystemTime::now();
        let (mut done, mut lost) = (1, false);
        loop {
            let error = match self.once(ask).await {
                Ok(answer) => return created(&answer, false),
                Err(error) => error,
            };
            lost |= error.is_lost();
            if !is_transient(&error) || done >= self.retry.tries {
                let error = error.after(done);
                return if lost { self.found(request, began, error).await } else { Err(error) };
            }
            self.pause(done).await;
            done = done.saturating_add(1);
        }
    }

    /// The tuning job that has the name, if a try whose answer was lost made it; `error` is what the last try brought.
    async fn found(
        &self,
        request: &Request,
        began: SystemTime,
        error: ClientError,
    ) -> Result<Created, ClientError> {
        let uncertain = |cause: ClientError| {
            Err(ClientError::Uncertain { name: request.name().to_owned(), cause: Box::new(cause) })
        };
        let described = match self.describe(request.name()).await {
            Ok(described) => described,
            // The lost one would have been refused for the same reason, and is not there.
            Err(none) if none.is(NOT_FOUND) && matches!(error, ClientError::Refused(_)) => return Err(error),
            // It may still be on its way.
            Err(_) => return uncertain(error),
        };
        let why = match first_difference(&described, request) {
            Some(path) => format!("its request is another one (first at {path})"),
            None if submitted(&described) + CLOCKS_DIFFER < began => "it was submitted before".to_owned(),
            None => return created(&described, true),
        };
        // The name is another's, so that no try can have taken it.
        match error {
            ClientError::Refused(refusal) if refusal.code == NAME_TAKEN => {
                let message = format!(
                    "{} The answer to the first try was lost, but that one is not ours: {why}.",
                    refusal.message
                );
                Err(ClientError::Refused(Refusal { message, ..refusal }))
            }
            other => Err(other),
        }
    }
}

fn created(answer: &Value, found: bool) -> Result<Created, ClientError> {
    let arn = answer["HyperParameterTuningJobArn"].as_str();
    let arn =
        arn.ok_or_else(|| ClientError::Foreign("its answer has no HyperParameterTuningJobArn".to_owned()))?;
    Ok(Created { arn: arn.to_owned(), found })
}

fn submitted(described: &Value) -> SystemTime {
    let seconds = described["CreationTime"].as_f64().unwrap_or(0.0);
    UNIX_EPOCH + Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
