//! Performs operations: calls the use case, and puts its answer into AMT's shapes.
//!
//! Every list is bounded in what it reads, not only in what it shows; a page may be short and still have a next one.

use serde_json::{Value, json};
use service::describe::{self, Place};
use service::ports::table::{Query, Table};
use service::ports::{Clock, Prices};
use service::store::StoreError;
use service::{change, lookup};
use wire::stored::{self, Head, IndexRow};

use crate::Api;
use crate::error::ApiError;
use crate::jobs;
use crate::list::{TuningsQuery, token, unknown, within};
use crate::names::Names;
use crate::operation::Operation;

/// Calls of the table for one page of a list.
const EFFORT_PER_LIST: usize = 1_000;
/// Of these, for a state.
const STATE_EFFORT: usize = 4;
/// Bytes of decisions in one answer; Lambda's limit is 6 MB.
const DECISIONS_BYTES: usize = 2_000_000;

impl<T: Table, P: Prices, C: Clock> Api<T, P, C> {
    /// What an operation answers; `id` becomes that of the tuning it is about, as soon as it is known.
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

    /// One page of the tuning jobs.
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

    /// Whether a tuning may be among those asked for, as far as its head alone tells.
    async fn may_fit(&self, row: &IndexRow, asked: &TuningsQuery) -> Result<bool, ApiError> {
        if asked.status.is_none() && asked.modified == (None, None) {
            return Ok(true);
        }
        match self.submit.store.head(&row.id).await {
            Ok(head) => Ok(head.is_some_and(|head| head_fits(&head, asked))),
            // It is shown as far as it is known.
            Err(StoreError::Stored(_)) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// One page of the decisions of a tuning: its steps, as they are stored.
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

/// Whether a tuning with this head may be among those asked for. What is stored and not folded yet may make one that is in
/// progress be shown as stopping.
fn head_fits(head: &Head, asked: &TuningsQuery) -> bool {
    let status = match asked.status {
        None => true,
        Some(_) if asked.is_of_active() => ["InProgress", "Stopping"].contains(&head.status.as_str()),
        Some(status) => head.status == status,
    };
    status && within(head.at, asked.modified)
}
