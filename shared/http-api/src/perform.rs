//! Performs operations: calls the use cases, and returns responses in AMT's format.
//!
//! A list is bounded in its reads and in its entries, so a short page may have a next page.

use serde_json::{Value, json};
use use_cases::describe::{self, Place};
use use_cases::ports::table::{Query, Table};
use use_cases::ports::{Clock, Prices};
use use_cases::store::StoreError;
use use_cases::{change, lookup};
use wire::stored::{self, Head, IndexRow};

use crate::Api;
use crate::error::ApiError;
use crate::jobs;
use crate::list::{TuningsQuery, token, unknown, within};
use crate::names::Names;
use crate::operation::Operation;

/// Maximum number of table requests for a page of a list.
const EFFORT_PER_LIST: usize = 1_000;
/// Number of table requests that reading a state counts as.
const STATE_EFFORT: usize = 4;
/// Maximum size of a page of decisions, in bytes; Lambda's limit is 6 MB.
const DECISIONS_BYTES: usize = 2_000_000;

impl<T: Table, P: Prices, C: Clock> Api<T, P, C> {
    /// Performs an operation and returns the body of its response. Sets `id` to the ID of the tuning once it is known.
    pub(crate) async fn perform(
        &self,
        operation: &Operation,
        place: &Place,
        id: &mut Option<String>,
    ) -> Result<Value, ApiError> {
        let store = &*self.submit.store;
        let now = self.submit.clock.now();
        let found = match operation.tuning() {
            None => String::new(),
            Some(name) => lookup::find(store, name).await?.id,
        };
        *id = Some(found.clone()).filter(|found| !found.is_empty());
        match operation {
            Operation::Create(body) => {
                let definition = self.submit.submit(body).await?;
                *id = Some(definition.id());
                Ok(json!({"HyperParameterTuningJobArn": place.tuning_arn(&definition.name)}))
            }
            Operation::Describe(name) => {
                describe::describe(store, place, &found).await?.ok_or_else(|| unknown(name))
            }
            Operation::List(query) => self.list(query, place).await,
            Operation::Stop(_) => {
                lookup::stop_found(store, &found, now).await?;
                Ok(json!({}))
            }
            Operation::Change(name, body) => {
                change::change(store, name, body, now).await?;
                Ok(json!({}))
            }
            Operation::ListJobs(name, query) => {
                jobs::page(store, place, &found, query).await?.ok_or_else(|| unknown(name))
            }
            Operation::Decisions { after, limit, .. } => self.decisions(&found, *after, *limit).await,
        }
    }

    /// Returns one page of the tuning jobs.
    async fn list(&self, asked: &TuningsQuery, place: &Place) -> Result<Value, ApiError> {
        let store = &*self.submit.store;
        let (mut shown, mut effort, mut last) = (Vec::new(), 0_usize, None);
        let mut names = Names::begin(store, asked).await?;
        while let Some((position, row)) = names.next(store).await? {
            if self.may_fit(&row, asked).await? {
                let summary = describe::listed(store, place, &row).await?;
                shown.extend(summary.filter(|summary| summary_fits(summary, asked)));
                effort = effort.saturating_add(STATE_EFFORT);
            }
            effort = effort.saturating_add(1);
            if shown.len() >= asked.limit || effort >= EFFORT_PER_LIST {
                let next = token(&asked.list(), &position);
                return Ok(json!({"HyperParameterTuningJobSummaries": shown, "NextToken": next}));
            }
            last = Some(position);
        }
        let mut page = json!({"HyperParameterTuningJobSummaries": shown});
        if let Some(last) = last.filter(|_| names.cut) {
            page["NextToken"] = json!(token(&asked.list(), &last));
        }
        Ok(page)
    }

    /// Returns whether the head of a tuning allows a match.
    async fn may_fit(&self, row: &IndexRow, asked: &TuningsQuery) -> Result<bool, ApiError> {
        if asked.status.is_none() && asked.modified == (None, None) {
            return Ok(true);
        }
        match self.submit.store.head(&row.id).await {
            Ok(head) => Ok(head.is_some_and(|head| head_fits(&head, asked))),
            // A tuning with an unreadable head is listed as unreadable.
            Err(StoreError::Stored(_)) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns one page of the decisions of a tuning: its stored steps.
    async fn decisions(&self, id: &str, after: u64, limit: usize) -> Result<Value, ApiError> {
        let store = &*self.submit.store;
        let after = (after > 0).then(|| stored::step_key(id, after).sk);
        let query = Query { after, ..Query::prefix(stored::tuning_partition(id), "STEP#", limit) };
        let page = store.table.query(&query).await.map_err(StoreError::from)?;
        let (mut steps, mut bytes, mut next) = (Vec::new(), 0_usize, None);
        for item in &page.items {
            let step = stored::step(item).map_err(StoreError::from)?;
            let shown = serde_json::to_value(&step).unwrap_or_default();
            bytes = bytes.saturating_add(item.size_bytes());
            steps.push(shown);
            next = Some(step.n);
            if bytes >= DECISIONS_BYTES {
                break;
            }
        }
        let more = page.next.is_some() || steps.len() < page.items.len();
        let mut answer = json!({"Decisions": steps});
        if let Some(step) = next.filter(|_| more) {
            answer["NextToken"] = json!(step.to_string());
        }
        Ok(answer)
    }
}

fn summary_fits(summary: &Value, asked: &TuningsQuery) -> bool {
    let status = asked.status.is_none_or(|status| summary["HyperParameterTuningJobStatus"] == status);
    let modified = summary["LastModifiedTime"].as_f64().unwrap_or(0.0) * 1_000.0;
    #[expect(clippy::cast_possible_truncation, reason = "a time that this code wrote")]
    let modified = modified.round() as i64;
    status && within(modified, asked.modified)
}

/// Returns whether a tuning with this head can match. Facts that no step contains yet can make a tuning in progress
/// appear as stopping.
fn head_fits(head: &Head, asked: &TuningsQuery) -> bool {
    let status = match asked.status {
        None => true,
        Some(_) if asked.is_of_active() => ["InProgress", "Stopping"].contains(&head.status.as_str()),
        Some(status) => head.status == status,
    };
    status && within(head.at, asked.modified)
}
