//! Follows a tuning of a stack by its recorded steps, folded like in `run`.
//!
//! Rebuilds the definition from the response of Describe. The definition can lack a price, because the stack's price
//! list is not available here. Costs come from Describe instead.

use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;
use tuning::money::MicroUsd;
use tuning::step::Step;
use use_cases::store::Tuning;
use wire::describe::request_from_description;
use wire::request::{PriceAnswer, Request, RequestError};

use api_client::ClientError;

use crate::failure::Failure;
use crate::follow::{Event, Follower};
use crate::page::{dollars, milliseconds};
use crate::remote::Remote;

/// A tuning of a stack.
#[derive(Debug)]
pub(super) struct Stack<'a> {
    remote: &'a Remote,
    name: String,
    pub(super) follower: Follower,
}

/// The result of an update.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) news: Vec<Event>,
    pub(super) ended: bool,
}

/// Why an update failed.
#[derive(Debug, Error)]
pub(super) enum LookError {
    #[error(transparent)]
    Client(#[from] ClientError),
    /// For example, the stack is newer than this program.
    #[error("this version of hyperband cannot read step {number} of the tuning: {cause}")]
    Step { number: u64, cause: String },
}

impl<'a> Stack<'a> {
    /// Follows the described tuning from its first step.
    pub(super) fn begin(remote: &'a Remote, described: &Value) -> Result<Self, Failure> {
        let unreadable = |error: RequestError| {
            Failure::endpoint(anyhow::anyhow!("{}", error.message))
                .context("this version of hyperband cannot watch the tuning")
                .hint("use `hyperband describe`")
        };
        let tuning = tuning(described).map_err(unreadable)?;
        let name = tuning.definition.name.clone();
        Ok(Self { remote, name, follower: Follower::from_start(Arc::new(tuning)) })
    }

    /// Reads the new steps.
    pub(super) async fn look(&mut self) -> Result<Look, LookError> {
        // Before the decisions: an ended tuning makes no more decisions.
        let described = self.remote.client.describe(&self.name).await?;
        let mut news = Vec::new();
        loop {
            let page = self.remote.client.decisions(&self.name, self.follower.step).await?;
            for value in page.steps {
                news.extend(self.follower.take(&step(value)?));
            }
            if !page.more {
                break;
            }
        }
        let own = &described["Controller"];
        let ledger = &mut self.follower.state.ledger;
        ledger.spent = dollars(&own["SpentUsd"]).unwrap_or(MicroUsd(0));
        ledger.reserved = dollars(&own["ReservedUsd"]).unwrap_or(MicroUsd(0));
        ledger.cap = dollars(&own["CapUsd"]);
        let status = described["HyperParameterTuningJobStatus"].as_str().unwrap_or_default();
        Ok(Look { news, ended: !matches!(status, "InProgress" | "Stopping") })
    }
}

fn step(value: Value) -> Result<Step, LookError> {
    let number = value["n"].as_u64().unwrap_or(0);
    serde_json::from_value(value).map_err(|error| LookError::Step { number, cause: error.to_string() })
}

/// Rebuilds a tuning from the response of Describe.
fn tuning(described: &Value) -> Result<Tuning, RequestError> {
    let request = request_from_description(described);
    let created = milliseconds(&described["CreationTime"]).unwrap_or(0);
    // The incarnation only determines the seed, which is not used here.
    let definition = without_cap(&request).definition(created, "000000", &PriceAnswer::default())?;
    Ok(Tuning { id: definition.id(), definition, request, pattern: None })
}

/// Returns the request without its cap. A definition with a cap requires a price.
fn without_cap(request: &Request) -> Request {
    let mut body = request.body().clone();
    if let Some(controller) = body.get_mut("Controller").and_then(Value::as_object_mut) {
        controller.remove("MaxCostUsd");
    }
    Request::from_stored(body)
}
