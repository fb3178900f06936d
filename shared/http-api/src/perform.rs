//! Performs operations: calls the use cases, and returns responses in AMT's format.
//!
//! A page of a list has limited reads and entries, so even a short page may have a next page.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tuning::step::Step;
use tuning::unit::time::Time;
use use_cases::cost::CostError;
use use_cases::describe::{self, Place};
use use_cases::ports::table::{Query, Table};
use use_cases::ports::{Clock, Prices};
use use_cases::store::StoreError;
use use_cases::submit::SubmitError;
use use_cases::tags::TagError;
use use_cases::{change, cost, delete, lookup, rows, tags};
use wire::cost::CostPage;
use wire::describe::{CreatedTuning, DecisionPage, RowPage, TuningBase, TuningPage};
use wire::row_json;
use wire::stored::{self, Head, IndexRow};

use crate::Api;
use crate::access::Caller;
use crate::amz::unknown_job;
use crate::error::ApiError;
use crate::jobs;
use crate::list::{TuningsQuery, place_of, token, token_of, unknown, within, wrong_token};
use crate::names::Names;
use crate::openapi;
use crate::operation::{JobName, Operation, Resource, Right};
use crate::rest::{COST, ROWS};

/// Maximum number of table requests for a page of a list.
const EFFORT_PER_LIST: usize = 1_000;
/// Number of table requests that reading a state counts as.
const STATE_EFFORT: usize = 4;
/// Maximum size of a report, in bytes. Lambda's limit of 6 MB counts the escapes of the response too.
const REPORT_BYTES: usize = 4_000_000;
/// Number of trials above which a report exceeds [`REPORT_BYTES`]. With one epoch and one hyperparameter, a trial that is
/// compared has 1,200 bytes. With 81 epochs, 10,000 trials have 12.9 MB.
const REPORT_COMPARED_TRIALS: u32 = 4_000;
/// The same for trials that are never compared, of which the smallest have 600 bytes.
const REPORT_TRIALS: u32 = 8_000;
/// Maximum size of a page of decisions, in bytes; Lambda's limit is 6 MB.
const DECISIONS_BYTES: usize = 2_000_000;

impl<T: Table, P: Prices, C: Clock> Api<T, P, C> {
    /// Performs an operation and returns the body of its response. Sets `id` to the ID of the tuning once it is known.
    pub(crate) async fn perform(
        &self,
        operation: &Operation,
        caller: &Caller,
        place: &Place,
        id: &mut Option<String>,
    ) -> Result<Value, ApiError> {
        let (store, now) = (&*self.submit.store, self.submit.clock.now());
        let mut row = None;
        if let Some(name) = operation.tuning() {
            row = Some(self.visible(name, caller).await?);
        }
        let found = row.as_ref().map(|row| row.id.clone()).unwrap_or_default();
        *id = Some(found.clone()).filter(|found| !found.is_empty());
        match operation {
            Operation::Create { body, is_idempotent } => {
                let (name, created, existed) = self.create(body, *is_idempotent, caller).await?;
                *id = Some(created);
                Ok(json!(CreatedTuning { arn: place.tuning_arn(&name), existed }))
            }
            Operation::Document => Ok(openapi::document()),
            Operation::Describe(name) => {
                let job = describe::describe(store, place, &found).await?.ok_or_else(|| unknown(name))?;
                Ok(json!(job))
            }
            Operation::List(query) => {
                let own = caller.sees_own_only.then(|| caller.principal.clone()).flatten();
                Ok(json!(self.list(&TuningsQuery { of_caller: own, ..query.clone() }, place).await?))
            }
            Operation::Stop(_) => {
                lookup::stop_found(store, &found, now).await?;
                Ok(json!({}))
            }
            Operation::Delete(_) => {
                delete::delete_found(store, &found, now).await?;
                Ok(json!({}))
            }
            Operation::Change(_, body) => {
                let may_raise = caller.right >= Right::Own;
                change::change_found(store, &self.submit.guardrails, may_raise, &found, body, now).await?;
                Ok(json!({}))
            }
            Operation::ListJobs(name, query) => {
                let page = jobs::page(store, place, &found, query).await?.ok_or_else(|| unknown(name))?;
                Ok(json!(page))
            }
            Operation::Job(job)
            | Operation::DescribeJob(job)
            | Operation::StopJob(job)
            | Operation::ListTags(Resource::Job(job))
            | Operation::AddTags(Resource::Job(job), _) => self.of_job(operation, &found, job, place).await,
            Operation::ListTags(Resource::Tuning(name)) => {
                Ok(tag_list(&tags::tags(store, &found).await?.ok_or_else(|| unknown(name))?))
            }
            Operation::AddTags(Resource::Tuning(name), new) => {
                Ok(tag_list(&tags::add(store, &found, new).await.map_err(|error| tag_error(error, name))?))
            }
            Operation::Cost { tuning, after, limit } => {
                let after = after.as_deref().map(|after| place_of(after, &found)).transpose()?;
                self.cost(&found, after.map(str::to_owned), *limit).await?.ok_or_else(|| unknown(tuning))
            }
            Operation::Report(name) => self.report(&found, name, place).await,
            Operation::Rows { tuning, after, limit } => {
                let row = row.ok_or_else(|| unknown(tuning))?;
                let position = after.as_deref().map(|after| position(after, &found)).transpose()?;
                Ok(row_page(&rows::page(&*store.table, &row, position, *limit).await?, &found))
            }
            Operation::Decisions { after, limit, .. } => {
                Ok(json!(self.decisions(&found, *after, *limit).await?))
            }
        }
    }

    /// Returns the name and the ID of the submitted tuning, and whether an earlier, equal request has created it.
    async fn create(
        &self,
        body: &[u8],
        is_idempotent: bool,
        caller: &Caller,
    ) -> Result<(String, String, bool), ApiError> {
        match self.submit.submit_as(body, caller.submitter()).await {
            Ok(definition) => Ok((definition.name.clone(), definition.id(), false)),
            Err(error) => self.submitted_before(error, body, is_idempotent, caller).await,
        }
    }

    async fn visible(&self, name: &str, caller: &Caller) -> Result<IndexRow, ApiError> {
        let row = lookup::find(&self.submit.store, name).await?;
        // The same error as for a missing tuning: whether it exists is the secret.
        if caller.sees(row.submitter.as_deref()) { Ok(row) } else { Err(unknown(name)) }
    }

    /// Performs an operation on a training job of the tuning `found`.
    async fn of_job(
        &self,
        operation: &Operation,
        found: &str,
        name: &JobName,
        place: &Place,
    ) -> Result<Value, ApiError> {
        let job = self.job(found, name).await?;
        match operation {
            Operation::DescribeJob(_) => Ok(job.described(place, &self.stack)),
            Operation::ListTags(_) => Ok(tag_list(&job.tags(&self.stack))),
            Operation::AddTags(..) => Err(ApiError::validation(
                "the tags of a training job are set when it is created: put them into Tags of the request of its \
                 tuning job (at 'ResourceArn')",
            )),
            Operation::StopJob(_) => {
                let status = job.detail(place).job.status;
                if !["InProgress", "Stopping"].contains(&status.as_str()) {
                    return Err(ApiError::validation(format!(
                        "The request was rejected because the training job is in status {status}."
                    )));
                }
                let now = self.submit.clock.now();
                lookup::stop_job_found(&self.submit.store, found, name.key, now).await?;
                Ok(json!({}))
            }
            _ => Ok(json!(job.detail(place))),
        }
    }

    /// Returns a page of booked costs; `None` if the tuning was deleted.
    async fn cost(&self, id: &str, after: Option<String>, limit: usize) -> Result<Option<Value>, ApiError> {
        let page = cost::booked(&self.submit.store, id, after, limit).await.map_err(cost_error)?;
        let with_token = |page: CostPage| {
            let next_token = page.next_token.as_ref().map(|next| token_of(COST, id, next));
            json!(CostPage { next_token, ..page })
        };
        Ok(page.map(with_token))
    }

    /// Returns the report of tuning `id`, if it is not too large for a response.
    async fn report(&self, id: &str, name: &str, place: &Place) -> Result<Value, ApiError> {
        let store = &*self.submit.store;
        let too_large = |size: String| {
            ApiError::validation(format!(
                "the report has {size}, more than a response may have: write it with hyperband report {name} --endpoint"
            ))
        };
        // Refused before the steps are read: that takes most of the time of a response, again at each retry.
        let loaded = store.load(id).await?.ok_or_else(|| unknown(name))?;
        let is_compared = loaded.tuning.definition.compared().is_some();
        let most = if is_compared { REPORT_COMPARED_TRIALS } else { REPORT_TRIALS };
        let trials = loaded.state.search.all_started();
        if trials > most {
            return Err(too_large(format!("{trials} trials")));
        }
        let document = report::read(store, place, id).await?.ok_or_else(|| unknown(name))?;
        let page = report::html::page(&document);
        if page.len() <= REPORT_BYTES {
            return Ok(Value::String(page));
        }
        Err(too_large(format!("{} MB", page.len() / 1_000_000)))
    }

    /// Returns the training job `name` of the tuning `found`, which may be another one of this name.
    async fn job(&self, found: &str, name: &JobName) -> Result<describe::Found, ApiError> {
        let unknown = || unknown_job(&name.name());
        // The name in an ARN is in lower case.
        if !found.eq_ignore_ascii_case(&name.id) {
            return Err(unknown());
        }
        describe::training_job(&self.submit.store, found, name.key).await?.ok_or_else(unknown)
    }

    /// Returns the name and the ID of the tuning that an earlier, equal request has created, and `true`. Otherwise returns
    /// `error`.
    async fn submitted_before(
        &self,
        error: SubmitError,
        body: &[u8],
        is_idempotent: bool,
        caller: &Caller,
    ) -> Result<(String, String, bool), ApiError> {
        // The cap of the month and the price list may refuse a repetition, because the first request took effect.
        let name = match &error {
            SubmitError::NameTaken(name) => Some(name.clone()),
            SubmitError::MonthlyCap(_) | SubmitError::Prices(_) | SubmitError::Parent { .. } => name_in(body),
            SubmitError::Request(_) | SubmitError::Store(_) => None,
        };
        let Some(name) = name.filter(|_| is_idempotent) else { return Err(error.into()) };
        let Ok(row) = lookup::find(&self.submit.store, &name).await else { return Err(error.into()) };
        if row.submitter == caller.principal && self.submit.is_same(&row.id, body).await? {
            return Ok((row.name, row.id, true));
        }
        Err(error.into())
    }

    async fn list(&self, asked: &TuningsQuery, place: &Place) -> Result<TuningPage, ApiError> {
        let store = &*self.submit.store;
        let (mut tunings, mut effort, mut last) = (Vec::new(), 0_usize, None);
        let mut names = Names::begin(store, asked).await?;
        let next_token = |position: &String| token(&asked.list(), position);
        while let Some((position, row)) = names.next(store).await? {
            if self.may_fit(&row, asked).await? {
                let summary = describe::listed(store, place, &row).await?;
                tunings.extend(summary.filter(|summary| summary_fits(&summary.base, asked)));
                effort = effort.saturating_add(STATE_EFFORT);
            }
            effort = effort.saturating_add(1);
            if tunings.len() >= asked.limit || effort >= EFFORT_PER_LIST {
                return Ok(TuningPage { tunings, next_token: Some(next_token(&position)) });
            }
            last = Some(position);
        }
        Ok(TuningPage { tunings, next_token: last.filter(|_| names.cut).as_ref().map(next_token) })
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

    async fn decisions(&self, id: &str, after: u64, limit: usize) -> Result<DecisionPage<Step>, ApiError> {
        let store = &*self.submit.store;
        let after = (after > 0).then(|| stored::step_key(id, after).sk);
        let query = Query { after, ..Query::prefix(stored::tuning_partition(id), "STEP#", limit) };
        let page = store.table.query(&query).await.map_err(StoreError::from)?;
        let (mut steps, mut bytes) = (Vec::new(), 0_usize);
        for item in &page.items {
            steps.push(stored::step(item).map_err(StoreError::from)?);
            bytes = bytes.saturating_add(item.size_bytes());
            if bytes >= DECISIONS_BYTES {
                break;
            }
        }
        let more = page.next.is_some() || steps.len() < page.items.len();
        let next_token = steps.last().filter(|_| more).map(|step: &Step| step.n.to_string());
        Ok(DecisionPage { tuning_job_id: id.to_owned(), steps, next_token })
    }
}

fn cost_error(error: CostError) -> ApiError {
    match error {
        CostError::Token(_) => wrong_token(),
        CostError::Store(error) => error.into(),
        // No training service is asked.
        CostError::Training { .. } => ApiError::timed_out(),
    }
}

fn position(content: &str, id: &str) -> Result<rows::Position, ApiError> {
    rows::Position::read(place_of(content, id)?).ok_or_else(wrong_token)
}

fn row_page(page: &rows::RowPage, id: &str) -> Value {
    let next_token = page.next.as_ref().map(|next| token_of(ROWS, id, &next.text()));
    json!(RowPage { rows: page.rows.iter().map(row_json::encode).collect(), next_token })
}

/// Returns the name of the tuning job in the body of a request.
fn name_in(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    body["HyperParameterTuningJobName"].as_str().map(str::to_owned)
}

fn tag_error(error: TagError, name: &str) -> ApiError {
    match error {
        TagError::NotFound => unknown(name),
        TagError::Refused(message) => ApiError::validation(message),
        TagError::Store(error) => error.into(),
    }
}

fn tag_list(tags: &BTreeMap<String, String>) -> Value {
    let tags: Vec<Value> = tags.iter().map(|(key, value)| json!({"Key": key, "Value": value})).collect();
    json!({"Tags": tags})
}

fn summary_fits(shown: &TuningBase, asked: &TuningsQuery) -> bool {
    asked.status.is_none_or(|status| shown.status == status)
        && within(Time(shown.modified_ms), asked.modified)
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
