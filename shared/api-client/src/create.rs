//! Submits a request so that it becomes exactly one tuning job, even if a response is lost.
//!
//! The API accepts a name only once, so two attempts cannot create two tuning jobs. After a lost response, the client
//! looks up the name: the refusal of a later attempt does not show the result of an earlier attempt. A tuning job of
//! that name is ours if its request is equal and it was created after the first attempt, within the clock skew. If the
//! lookup fails, the client returns [`ClientError::Uncertain`].

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wire::describe::{CreatedTuning, TuningBase, TuningJob, first_difference};
use wire::request::{Request, name_taken};

use crate::error::{ClientError, Refusal};
use crate::send::is_transient;
use crate::{Client, TUNINGS, read};

/// Maximum clock skew between client and API. AWS refuses signatures with a larger skew.
const CLOCKS_DIFFER: Duration = Duration::from_mins(5);
const NAME_TAKEN: &str = "ResourceInUse";
const NOT_FOUND: &str = "ResourceNotFound";

/// A submitted tuning job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// Its ARN.
    pub arn: String,
    /// Whether the response was lost and the client found the tuning job by its name.
    pub found: bool,
}

impl Client {
    /// Submits `request`. After any error except [`ClientError::Uncertain`], no tuning job was created.
    pub async fn create(&self, request: &Request) -> Result<Created, ClientError> {
        let submission = crate::request("POST", TUNINGS, request.body().to_string().into_bytes());
        let began = SystemTime::now();
        let (mut done, mut lost, mut equal) = (1, false, false);
        loop {
            let error = match self.once(&submission).await {
                Ok(answer) => {
                    let CreatedTuning { arn, existed } = read(answer)?;
                    if !existed {
                        return Ok(Created { arn, found: false });
                    }
                    // An equal request was submitted before: this one, if its response was lost.
                    equal = true;
                    taken(request.name())
                }
                Err(error) => error,
            };
            lost |= error.is_lost();
            if !is_transient(&error) || !self.retry.again(&mut done).await {
                let error = error.after(done);
                return if lost { self.resolve_lost(request, equal, began, error).await } else { Err(error) };
            }
        }
    }

    /// Returns the tuning job that an attempt with a lost response created. `equal`: the API has found the requests equal.
    /// `error` is the error of the last attempt.
    async fn resolve_lost(
        &self,
        request: &Request,
        equal: bool,
        began: SystemTime,
        error: ClientError,
    ) -> Result<Created, ClientError> {
        let uncertain = |cause: ClientError| {
            Err(ClientError::Uncertain { name: request.name().to_owned(), cause: Box::new(cause) })
        };
        let described = match self.describe(request.name()).await {
            Ok(described) => described,
            // The API would have refused the lost attempt for the same reason, and it created nothing.
            Err(none) if none.is(NOT_FOUND) && matches!(error, ClientError::Refused(_)) => return Err(error),
            // The request may still be in transit.
            Err(_) => return uncertain(error),
        };
        let differs = if equal { None } else { first_difference_with_defaults(&described, request) };
        let why = match differs {
            Some(path) => format!("its request differs, first at {path}"),
            None if submitted(&described.base) + CLOCKS_DIFFER < began => {
                "it was submitted earlier".to_owned()
            }
            None => return Ok(Created { arn: described.base.arn, found: true }),
        };
        // Another request has the name, so no attempt of this one succeeded.
        match error {
            ClientError::Refused(refusal) if refusal.code == NAME_TAKEN => {
                let message = format!(
                    "{} A response was lost, but this request did not create the existing tuning job: {why}.",
                    refusal.message
                );
                Err(ClientError::Refused(Refusal { message, ..refusal }))
            }
            other => Err(other),
        }
    }
}

/// Like [`first_difference`], but also finds the request equal that has the defaults of a server on this machine.
fn first_difference_with_defaults(described: &TuningJob, request: &Request) -> Option<String> {
    let first = first_difference(described, request)?;
    let completed = Request::check_local(request.body().clone()).ok();
    let is_equal = completed.is_some_and(|completed| first_difference(described, &completed).is_none());
    (!is_equal).then_some(first)
}

fn taken(name: &str) -> ClientError {
    ClientError::Refused(Refusal {
        status: 409,
        code: NAME_TAKEN.to_owned(),
        message: name_taken(name),
        violations: Vec::new(),
    })
}

fn submitted(described: &TuningBase) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(described.created_ms).unwrap_or(0))
}
