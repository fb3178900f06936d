//! A tuning of a stack as its decisions tell it: the recorded steps, folded as `run` folds them.
//!
//! The definition is made anew from what Describe shows. It has no price where the request has none, since the stack's
//! price list is not here: money is never computed from it, but taken from Describe.

use std::sync::Arc;

use serde_json::Value;
use service::store::Tuning;
use thiserror::Error;
use tuning::money::MicroUsd;
use tuning::step::Step;
use wire::describe::request_of;
use wire::request::{PriceAnswer, Request, RequestError};

use client::ClientError;

use crate::failure::Failure;
use crate::follow::{Event, Follower};
use crate::page::{dollars, milliseconds};
use crate::remote::Remote;

/// A tuning that is followed.
#[derive(Debug)]
pub(super) struct Stack<'a> {
    remote: &'a Remote,
    name: String,
    pub(super) follower: Follower,
}

/// What one look brought.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) news: Vec<Event>,
    pub(super) ended: bool,
}

/// Why a look failed.
#[derive(Debug, Error)]
pub(super) enum LookError {
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A newer stack than this program, say.
    #[error("step {number} of the decisions cannot be read by this version of hyperband: {cause}")]
    Step { number: u64, cause: String },
}

impl<'a> Stack<'a> {
    /// Follows from the beginning the tuning that is described.
    pub(super) fn begin(remote: &'a Remote, described: &Value) -> Result<Self, Failure> {
        let unreadable = |error: RequestError| {
            Failure::endpoint(anyhow::anyhow!("{}", error.message))
                .context("this version of hyperband cannot follow that tuning")
                .hint("`hyperband describe` shows it")
        };
        let tuning = tuning(described).map_err(unreadable)?;
        let name = tuning.definition.name.clone();
        Ok(Self { remote, name, follower: Follower::from_start(Arc::new(tuning)) })
    }

    /// What is new.
    pub(super) async fn look(&mut self) -> Result<Look, LookError> {
        // Before the decisions: once it has ended there are no further ones.
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

/// What is followed, from what Describe shows of it.
fn tuning(described: &Value) -> Result<Tuning, RequestError> {
    let request = request_of(described);
    let created = milliseconds(&described["CreationTime"]).unwrap_or(0);
    // The incarnation decides the seed, and nothing is drawn here.
    let definition = without_cap(&request).definition(created, "000000", &PriceAnswer::default())?;
    Ok(Tuning { id: definition.id(), definition, request, pattern: None })
}

/// A cap needs a price, and is not kept here.
fn without_cap(request: &Request) -> Request {
    let mut body = request.body().clone();
    if let Some(controller) = body.get_mut("Controller").and_then(Value::as_object_mut) {
        controller.remove("MaxCostUsd");
    }
    Request::from_stored(body)
}
