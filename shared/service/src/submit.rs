//! Takes a request, checks it, and stores it as a tuning: all of it or nothing.

mod guardrails;

use std::sync::Arc;

use thiserror::Error;
use tuning::definition::Definition;
use tuning::fact::{Fact, Recorded};
use tuning::money::MicroUsd;
use wire::item::MAX_ITEM_BYTES;
use wire::names::incarnation;
use wire::request::{PriceAnswer, Request, RequestError};
use wire::stored::{self, Head, IndexRow, MonthRow, month_of};

use crate::ports::table::{Condition, Table, TableError, Write};
use crate::ports::{Clock, Prices, PricesError};
use crate::store::{Store, StoreError};

pub use guardrails::{AllowList, Guardrails};

/// Largest request that is stored, in bytes of JSON: the row must stay below the table's limit with the definition.
pub const REQUEST_BYTES_MAX: usize = 200_000;

/// The use case with what it needs.
#[derive(Debug)]
pub struct Submit<T, P, C> {
    /// Reads tunings.
    pub store: Arc<Store<T>>,
    /// Prices of instances.
    pub prices: P,
    /// Time.
    pub clock: C,
    /// The stack's cap of a month (UTC); with it, tunings get their money in grants.
    pub monthly_cap: Option<MicroUsd>,
    /// What the stack's owner allows.
    pub guardrails: Guardrails,
}

/// Why a request was not taken. Nothing was stored, unless the table gave no answer: then look before trying again.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SubmitError {
    /// The request is wrong: 400.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A tuning of that name exists: 400 `ResourceInUse`.
    #[error("A hyperparameter tuning job with the name, {0}, already exists. Choose a different name.")]
    NameTaken(String),
    /// What is left of the stack's month's cap pays no job of it: 400 `ResourceLimitExceeded`.
    #[error("{0}")]
    MonthlyCap(String),
    /// A cap needs a price that the list did not tell: to be tried again, 503, or refused, 400.
    #[error(transparent)]
    Prices(#[from] PricesError),
    /// To be tried again: 500 or 503.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl<T: Table, P: Prices, C: Clock> Submit<T, P, C> {
    /// Submits the request in `body`; the new tuning's definition.
    pub async fn submit(&self, body: &[u8]) -> Result<Definition, SubmitError> {
        let request = Request::parse(body)?;
        self.guardrails.check(&request)?;
        let text = request.body().to_string();
        if text.len() > REQUEST_BYTES_MAX {
            let message =
                format!("the request has {} bytes, at most {REQUEST_BYTES_MAX} are allowed", text.len());
            return Err(RequestError::field("", &message).into());
        }
        let now = self.clock.now();
        let incarnation = incarnation(format!("{}\n{now}\n{text}", request.name()).as_bytes());
        let mut definition = request.definition(now, &incarnation, &self.price(&request).await?)?;
        if let Some(cap) = self.monthly_cap {
            self.afford(&request, &definition, cap, now).await?;
            definition.grants = true;
        }
        let id = definition.id();
        let submitted = Recorded { key: "submitted".to_owned(), at: now, fact: Fact::TuningSubmitted };
        let index = IndexRow { name: definition.name.clone(), id: id.clone(), created: now };
        let meta = stored::meta_row(&definition, &text);
        if meta.size_bytes() > MAX_ITEM_BYTES {
            return Err(RequestError::field(
                "",
                "the request and its search space are too large to be stored",
            )
            .into());
        }
        let writes = vec![
            Write::Put(index.row(), Condition::NotExists),
            Write::Put(meta, Condition::NotExists),
            Write::Put(Head::first(now).row(&id), Condition::NotExists),
            Write::Put(stored::active_row(&id), Condition::Always),
            Write::Put(stored::fact_row(&id, &submitted), Condition::NotExists),
        ];
        match self.store.table.transact(writes, &format!("submit-{incarnation}-{now}")).await {
            Ok(()) => {}
            Err(TableError::Conflict(_)) => return Err(SubmitError::NameTaken(definition.name)),
            Err(error) => return Err(StoreError::from(error).into()),
        }
        self.store.forget(&id);
        Ok(definition)
    }

    /// A month's cap can be kept only with a price, and a tuning of which no job fits what is left would end at once.
    async fn afford(
        &self,
        request: &Request,
        definition: &Definition,
        cap: MicroUsd,
        now: i64,
    ) -> Result<(), SubmitError> {
        let Some(least) = definition.least_cap() else {
            return Err(request.price_unknown(definition, "this stack has a monthly cap, which").into());
        };
        let month = month_of(now);
        let item = self.store.table.get(&MonthRow::key(&month)).await.map_err(StoreError::from)?;
        let row = item.as_ref().map(MonthRow::read).transpose().map_err(StoreError::from)?;
        let left = row.map_or(cap, |row| row.left(cap));
        if least <= left {
            return Ok(());
        }
        let message = format!(
            "of this stack's cap of {cap} USD for {month}, {left} USD are not granted to other tuning jobs; a single \
             training job may cost {least} USD at its time limits. Lower them, wait for other tuning jobs to end, or \
             have the cap raised"
        );
        Err(SubmitError::MonthlyCap(message))
    }

    /// What the price list says: of the instances whose price the request does not give, and of volumes. Where no cap hangs
    /// on it, a list that does not answer keeps no tuning from its start.
    async fn price(&self, request: &Request) -> Result<PriceAnswer, PricesError> {
        let mut answer = PriceAnswer::default();
        let asked = self.ask(request, &mut answer).await;
        let capped = self.monthly_cap.is_some() || !matches!(request.cap(), Ok(None));
        match asked {
            Err(error) if capped => Err(error),
            Ok(()) | Err(_) => Ok(answer),
        }
    }

    async fn ask(&self, request: &Request, answer: &mut PriceAnswer) -> Result<(), PricesError> {
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
            // A given price counts for the volume too, then.
            Err(_) if all_given => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
