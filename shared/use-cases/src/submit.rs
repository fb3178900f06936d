//! Checks a request and stores it as a tuning, in one transaction.

mod guardrails;
mod parents;

use std::sync::Arc;

use search::WarmStart;
use serde_json::Value;
use thiserror::Error;
use tuning::definition::Definition;
use tuning::log::fact::{Fact, Recorded};
use tuning::money::grants::month_of;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;
use wire::item::MAX_ITEM_BYTES;
use wire::names::incarnation;
use wire::request::{PriceAnswer, Request, RequestError, name_taken};
use wire::stored::{self, Head, IndexRow, MonthRow};

use crate::ports::table::{Condition, Table, TableError, Write};
use crate::ports::{Clock, OtherTunings, OtherTuningsError, Prices, PricesError};
use crate::store::{Store, StoreError};

use parents::Sources;

pub use guardrails::{AllowList, Guardrails, RequestPrices};
pub use wire::request::DefaultTags;

/// Largest request that is stored, in bytes of JSON. Together with the definition it must fit the table's row limit.
pub const REQUEST_BYTES_MAX: usize = 200_000;

/// The longest ARN of a submitter, with the name of its attribute.
const SUBMITTER_BYTES_MAX: usize = 2_100;

/// Checks the size of a request and its parents, as a submission does.
pub async fn check_parents<T: Table>(
    store: &Store<T>,
    request: &Request,
    definition: &Definition,
) -> Result<(), SubmitError> {
    let sources = Sources { store, others: None, submitter: Submitter::default() };
    warm_start(&sources, request, definition, &sized(request)?).await.map(drop)
}

/// Returns the JSON of a request. Fails if it is too long to store.
fn sized(request: &Request) -> Result<String, SubmitError> {
    let text = request.body().to_string();
    if text.len() > REQUEST_BYTES_MAX {
        let message = format!("the request has {} bytes; the maximum is {REQUEST_BYTES_MAX}", text.len());
        return Err(RequestError::field("", &message).into());
    }
    Ok(text)
}

/// Returns the warm start of a request, whose JSON is `text`, and the best training job of each parent that another
/// controller ran.
async fn warm_start<T: Table>(
    sources: &Sources<'_, T>,
    request: &Request,
    definition: &Definition,
    text: &str,
) -> Result<Option<(WarmStart, Vec<Value>)>, SubmitError> {
    let row = stored::meta_row(definition, text).size_bytes();
    let room = MAX_ITEM_BYTES.saturating_sub(row).saturating_sub(SUBMITTER_BYTES_MAX);
    parents::warm_start(sources, request, definition, room).await
}

/// The principal that submits a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Submitter<'a> {
    /// Its ARN; `None` = unknown.
    pub arn: Option<&'a str>,
    /// Whether only its own tunings exist for it.
    pub sees_own_only: bool,
}

impl Submitter<'_> {
    /// Returns whether a tuning that `submitter` submitted exists for this principal.
    pub fn sees(&self, submitter: Option<&str>) -> bool {
        !self.sees_own_only || submitter.is_some() && submitter == self.arn
    }
}

/// The use case and its dependencies.
#[derive(Debug)]
pub struct Submit<T, P, C> {
    /// Reads tunings.
    pub store: Arc<Store<T>>,
    /// Tuning jobs that can be parents, besides those of the store; `None` = none.
    pub other_tunings: Option<Arc<dyn OtherTunings>>,
    /// Prices of instances.
    pub prices: P,
    /// The current time.
    pub clock: C,
    /// The stack's cap for a calendar month (UTC). With it, tunings get their money in grants. `None` means no cap.
    pub monthly_cap: Option<MicroUsd>,
    /// The limits set by the owner of the stack.
    pub guardrails: Guardrails,
}

/// Why a request was rejected. Nothing was stored, unless the table gave no answer: then check for the tuning before a
/// retry.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SubmitError {
    /// The request is invalid: 400.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A tuning of this name exists: 400 `ResourceInUse`.
    #[error("{}", name_taken(.0))]
    NameTaken(String),
    /// The rest of the stack's monthly cap does not pay for a single training job: 400 `ResourceLimitExceeded`.
    #[error("{0}")]
    MonthlyCap(String),
    /// A cap needs a price that the price list did not return: 503 if a retry can help, otherwise 400.
    #[error(transparent)]
    Prices(#[from] PricesError),
    /// A parent could not be read: 503 if a retry can help, otherwise 400.
    #[error("the parent tuning job {name} is not available: {why}")]
    Parent {
        /// The name of the parent.
        name: String,
        /// The reason.
        why: OtherTuningsError,
    },
    /// The table failed: 500, or 503 if a retry can help.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl<T: Table, P: Prices, C: Clock> Submit<T, P, C> {
    /// Submits the request in `body`. Returns the definition of the new tuning.
    pub async fn submit(&self, body: &[u8]) -> Result<Definition, SubmitError> {
        self.submit_as(body, Submitter::default()).await
    }

    /// Like [`Self::submit`], for a principal.
    pub async fn submit_as(&self, body: &[u8], submitter: Submitter<'_>) -> Result<Definition, SubmitError> {
        let request = Request::parse_with(body, &self.guardrails.job_tags)?;
        self.guardrails.check(&request)?;
        let text = sized(&request)?;
        let now = self.clock.now();
        let incarnation = incarnation(format!("{}\n{now}\n{text}", request.name()).as_bytes());
        self.check_given_prices(&request).await?;
        let mut definition = request.definition(now, &incarnation, &self.price(&request).await?)?;
        if let Some(cap) = self.monthly_cap {
            self.check_monthly_cap(&request, &definition, cap, now).await?;
            definition.grants = true;
        }
        let sources = Sources { store: &self.store, others: self.other_tunings.as_deref(), submitter };
        let started = warm_start(&sources, &request, &definition, &text).await?;
        let (warm_start, other_parents) = started.unzip();
        definition.warm_start = warm_start;
        let id = definition.id();
        let fact = Recorded { key: "submitted".to_owned(), at: now, fact: Fact::TuningSubmitted };
        let submitter = submitter.arn.map(str::to_owned);
        let name = definition.name.clone();
        let index = IndexRow { name, id: id.clone(), created: now, submitter: submitter.clone() };
        let meta = stored::with_submitter(stored::meta_row(&definition, &text), submitter.as_deref());
        let meta = stored::with_other_parents(meta, &other_parents.unwrap_or_default());
        if meta.size_bytes() > MAX_ITEM_BYTES {
            return Err(RequestError::field(
                "",
                "the request and its search space are too large to store: shorten the request",
            )
            .into());
        }
        let writes = vec![
            Write::Put(index.row(), Condition::NotExists),
            Write::Put(meta, Condition::NotExists),
            Write::Put(Head::first(now).row(&id), Condition::NotExists),
            Write::Put(stored::active_row(&id), Condition::Always),
            Write::Put(stored::fact_row(&id, &fact), Condition::NotExists),
        ];
        match self.store.table.transact(writes, &format!("submit-{incarnation}-{now}")).await {
            Ok(()) => {}
            Err(TableError::Conflict(_)) => return Err(SubmitError::NameTaken(definition.name)),
            Err(error) => return Err(StoreError::from(error).into()),
        }
        self.store.forget(&id);
        Ok(definition)
    }

    /// Returns whether `body` is the request of tuning `id`. The order and the format of its JSON do not count.
    pub async fn is_same(&self, id: &str, body: &[u8]) -> Result<bool, SubmitError> {
        let request = Request::parse_with(body, &self.guardrails.job_tags)?;
        let stored = self.store.tuning(id).await?;
        Ok(stored.is_some_and(|tuning| tuning.request.body() == request.body()))
    }

    /// Rejects a tuning that a monthly cap cannot admit: one without a price, or one whose cheapest training job
    /// exceeds the rest of the month's cap and which would therefore end at once.
    async fn check_monthly_cap(
        &self,
        request: &Request,
        definition: &Definition,
        cap: MicroUsd,
        now: Time,
    ) -> Result<(), SubmitError> {
        let Some(least) = definition.least_cap() else {
            return Err(request.price_unknown(definition, "the monthly cap of this stack").into());
        };
        let month = month_of(now);
        let item = self.store.table.get(&MonthRow::key(&month)).await.map_err(StoreError::from)?;
        let row = item.as_ref().map(MonthRow::read).transpose().map_err(StoreError::from)?;
        let left = row.map_or(cap, |row| row.left(cap));
        if least <= left {
            return Ok(());
        }
        let message = format!(
            "the monthly cap of this stack ({cap} USD for {month}) has {left} USD left; one training job of this \
             request can cost up to {least} USD at its time limits. Lower the time limits, wait for other tuning jobs \
             to end, or ask the owner of the stack to raise the cap"
        );
        Err(SubmitError::MonthlyCap(message))
    }

    /// Refuses prices below those of the price list, if the stack does. Without an answer of the list it cannot know. A
    /// price that a cap depends on needs a listed one to compare with.
    async fn check_given_prices(&self, request: &Request) -> Result<(), SubmitError> {
        if self.guardrails.request_prices != RequestPrices::NotBelowList {
            return Ok(());
        }
        let mut violations = Vec::new();
        for choice in request.instance_choices() {
            let Some(given) = request.given_price(choice.instance_type) else { continue };
            match self.prices.instance_hour(choice.instance_type).await? {
                Some(listed) if given < listed => {
                    violations.push(guardrails::below_list(choice.instance_type, given, listed));
                }
                None if self.is_capped(request) => {
                    violations.push(guardrails::not_listed(choice.instance_type));
                }
                Some(_) | None => {}
            }
        }
        if violations.is_empty() { Ok(()) } else { Err(RequestError::validation(violations).into()) }
    }

    /// Returns the prices of volumes and of the instances for which the request has none. Without a cap, an unavailable
    /// price list does not prevent the tuning.
    async fn price(&self, request: &Request) -> Result<PriceAnswer, PricesError> {
        let least_allowances = self.guardrails.least_allowances;
        let mut answer = PriceAnswer { least_allowances, ..PriceAnswer::default() };
        match self.look_up_prices(request, &mut answer).await {
            Err(error) if self.is_capped(request) => Err(error),
            Ok(()) | Err(_) => Ok(answer),
        }
    }

    /// Returns whether a cap limits the cost of a request.
    fn is_capped(&self, request: &Request) -> bool {
        self.monthly_cap.is_some() || !matches!(request.cap(), Ok(None))
    }

    async fn look_up_prices(&self, request: &Request, answer: &mut PriceAnswer) -> Result<(), PricesError> {
        let mut all_given = true;
        for choice in request.instance_choices() {
            if request.given_price(choice.instance_type).is_some() {
                continue;
            }
            all_given = false;
            if !answer.instance_hours.contains_key(choice.instance_type) {
                let price = self.prices.instance_hour(choice.instance_type).await?;
                answer.instance_hours.extend(price.map(|price| (choice.instance_type.to_owned(), price)));
            }
        }
        match self.prices.volume_kilo_gib_hour().await {
            Ok(price) => answer.volume_kilo_gib_hour = price,
            // The prices in the request then include the volume.
            Err(_) if all_given => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
