//! Follows a tuning by its recorded steps, folded as in `run`.
//!
//! Rebuilds the definition from the response of Describe. The definition can lack a price, because a stack's price list
//! is not available here. Costs come from Describe instead.

use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;
use tuning::step::Step;
use tuning::unit::time::Time;
use use_cases::store::Tuning;
use wire::describe::{DecisionPage, TuningJob, request_from_description};
use wire::request::{PriceAnswer, Request, RequestError, RungExecution};

use api_client::{Client, ClientError};

use crate::failure::Failure;
use crate::follow::{Event, Follower};

#[derive(Debug)]
pub(super) struct Steps<'a> {
    client: &'a Client,
    name: String,
    /// Its id, from the first page of its decisions.
    id: Option<String>,
    pub(super) follower: Follower,
}

#[derive(Debug)]
pub(super) struct Update {
    pub(super) news: Vec<Event>,
    pub(super) ended: bool,
}

/// Why an update failed.
#[derive(Debug, Error)]
pub(super) enum UpdateError {
    #[error(transparent)]
    Client(#[from] ClientError),
    /// For example, the stack is newer than this program.
    #[error("this version of hyperband cannot read step {number} of the tuning: {cause}")]
    Step { number: u64, cause: String },
    #[error("the tuning {0} was deleted, and another one has its name")]
    Replaced(String),
}

impl<'a> Steps<'a> {
    /// Follows the described tuning from its first step.
    pub(super) fn begin(client: &'a Client, described: &TuningJob) -> Result<Self, Failure> {
        let unreadable = |error: RequestError| {
            Failure::endpoint(anyhow::anyhow!("{}", error.message))
                .context("this version of hyperband cannot watch the tuning")
                .hint("use `hyperband describe`")
        };
        let tuning = tuning(described).map_err(unreadable)?;
        let name = tuning.definition.name.clone();
        Ok(Self { client, name, id: None, follower: Follower::from_start(Arc::new(tuning)) })
    }

    pub(super) async fn update(&mut self) -> Result<Update, UpdateError> {
        // Before the decisions: an ended tuning makes no more decisions.
        let described = self.client.describe(&self.name).await?;
        let mut news = Vec::new();
        loop {
            let page: DecisionPage<Value> = self.client.decisions(&self.name, self.follower.step).await?;
            if *self.id.get_or_insert_with(|| page.tuning_job_id.clone()) != page.tuning_job_id {
                return Err(UpdateError::Replaced(self.name.clone()));
            }
            for value in page.steps {
                // The steps of a tuning have consecutive numbers.
                let number = self.follower.step.saturating_add(1);
                let step: Step = serde_json::from_value(value)
                    .map_err(|error| UpdateError::Step { number, cause: error.to_string() })?;
                news.extend(self.follower.take(&step));
            }
            if page.next_token.is_none() {
                break;
            }
        }
        let totals = &described.controller.totals;
        let ledger = &mut self.follower.state.money.ledger;
        (ledger.spent, ledger.reserved, ledger.cap) = (totals.spent_usd, totals.reserved_usd, totals.cap_usd);
        Ok(Update { news, ended: described.base.is_ended() })
    }
}

fn tuning(described: &TuningJob) -> Result<Tuning, RequestError> {
    let request = request_from_description(described);
    // The incarnation only determines the seed, which is not used here.
    let created = described.base.created_ms;
    // The controller chose with the cap and the price.
    let promotes = described.controller.trials_training.is_some();
    let execution = if promotes { RungExecution::Promote } else { RungExecution::Stop };
    let decided = without_cap(described).with_rungs(execution);
    let definition = decided.definition(Time(created), "000000", &PriceAnswer::default())?;
    Ok(Tuning::new(definition, request, None))
}

/// Returns the request without its cap. A definition with a cap requires a price.
fn without_cap(described: &TuningJob) -> Request {
    let mut uncapped = described.clone();
    uncapped.controller.settings.remove("MaxCostUsd");
    request_from_description(&uncapped)
}
