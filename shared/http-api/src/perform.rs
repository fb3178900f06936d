//! Performs operations: calls the use case, and puts its answer into AMT's shapes.
//!
//! Every list is bounded in what it reads, not only in what it shows; a page may be short and still have a next one.

use serde_json::{Value, json};
use service::describe::{self, Place};
use service::ports::table::{Query, Table};
use service::ports::{Clock, Prices};
use service::store::StoreError;
use service::{change, lookup};
use wire::stored::{self, INDEX, IndexRow};

use crate::Api;
use crate::error::ApiError;
use crate::list::{self, JobOrder, JobsQuery, TuningOrder, TuningsQuery, token};
use crate::operation::Operation;

/// Names read at once.
const NAMES_PER_PAGE: usize = 200;
/// Tunings whose state is read for one page of a list: reading one takes several calls of the table.
const STATES_PER_LIST: usize = 200;
/// Names that can be put in order of their times.
const SORTED_MAX: usize = 10_000;
/// Bytes of decisions in one answer; Lambda's limit is 6 MB.
const DECISIONS_BYTES: usize = 2_000_000;

impl<T: Table, P: Prices, C: Clock> Api<T, P, C> {
    pub(crate) async fn perform(&self, operation: &Operation, place: &Place) -> Result<Value, ApiError> {
        let store = &*self.submit.store;
        let now = self.submit.clock.now();
        match operation {
            Operation::Create(body) => {
                let definition = self.submit.submit(body).await?;
                Ok(json!({"HyperParameterTuningJobArn": place.tuning_arn(&definition.name)}))
            }
            Operation::Describe(name) => {
                let row = lookup::find(store, name).await?;
                describe::describe(store, place, &row.id).await?.ok_or_else(|| unknown(name))
            }
            Operation::List(query) => self.list(query, place).await,
            Operation::Stop(name) => {
                lookup::stop(store, name, now).await?;
                Ok(json!({}))
            }
            Operation::Change(name, body) => {
                change::change(store, name, body, now).await?;
                Ok(json!({}))
            }
            Operation::ListJobs(name, query) => {
                let row = lookup::find(store, name).await?;
                let jobs = describe::jobs(store, place, &row.id).await?.ok_or_else(|| unknown(name))?;
                page_of(jobs, query)
            }
            Operation::Decisions { tuning, after, limit } => self.decisions(tuning, *after, *limit).await,
        }
    }

    /// One page of the tuning jobs.
    async fn list(&self, asked: &TuningsQuery, place: &Place) -> Result<Value, ApiError> {
        let store = &*self.submit.store;
        let (mut shown, mut looked) = (Vec::new(), 0_usize);
        let mut names = Names::begin(asked);
        while let Some(row) = names.next(&*store.table).await? {
            if !fits(&row, asked) {
                continue;
            }
            looked = looked.saturating_add(1);
            let summary = describe::summary(store, place, &row.id).await?;
            shown.extend(summary.filter(|summary| summary_fits(summary, asked)));
            if shown.len() >= asked.limit || looked >= STATES_PER_LIST {
                let next = names.place(&row);
                return Ok(json!({"HyperParameterTuningJobSummaries": shown, "NextToken": token(&next)}));
            }
        }
        Ok(json!({"HyperParameterTuningJobSummaries": shown}))
    }

    /// One page of the decisions of a tuning: its steps, as they are stored.
    async fn decisions(&self, tuning: &str, after: u64, limit: usize) -> Result<Value, ApiError> {
        let store = &*self.submit.store;
        let row = lookup::find(store, tuning).await?;
        let after = (after > 0).then(|| stored::step_key(&row.id, after).sk);
        let query = Query { after, ..Query::prefix(stored::tuning_partition(&row.id), "STEP#", limit) };
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

/// The names of all tuning jobs, in the order that was asked for, from where the page before ended.
struct Names {
    by_time: bool,
    descending: bool,
    after: Option<String>,
    rows: std::vec::IntoIter<IndexRow>,
    more: bool,
}

impl Names {
    fn begin(asked: &TuningsQuery) -> Self {
        Self {
            by_time: asked.order == TuningOrder::CreationTime,
            descending: asked.descending,
            after: asked.after.clone(),
            rows: Vec::new().into_iter(),
            more: true,
        }
    }

    async fn next<T: Table>(&mut self, table: &T) -> Result<Option<IndexRow>, ApiError> {
        loop {
            if let Some(row) = self.rows.next() {
                return Ok(Some(row));
            }
            if !self.more {
                return Ok(None);
            }
            self.rows =
                if self.by_time { self.all(table).await? } else { self.page(table).await? }.into_iter();
        }
    }

    /// The next page in order of the names.
    async fn page<T: Table>(&mut self, table: &T) -> Result<Vec<IndexRow>, ApiError> {
        let after = self.after.take();
        let query = Query { after, descending: self.descending, ..Query::prefix(INDEX, "", NAMES_PER_PAGE) };
        let page = table.query(&query).await.map_err(StoreError::from)?;
        self.more = page.next.is_some();
        self.after = page.next;
        let rows: Result<Vec<IndexRow>, _> = page.items.iter().map(IndexRow::read).collect();
        Ok(rows.map_err(StoreError::from)?)
    }

    /// All names in order of their times, but those of the pages before.
    async fn all<T: Table>(&mut self, table: &T) -> Result<Vec<IndexRow>, ApiError> {
        self.more = false;
        let mut names =
            Self { by_time: false, descending: false, after: None, rows: Vec::new().into_iter(), more: true };
        let mut all = Vec::new();
        while names.more {
            all.extend(names.page(table).await?);
            if all.len() > SORTED_MAX {
                return Err(ApiError::validation(format!(
                    "more than {SORTED_MAX} tuning jobs cannot be put in order of their times: leave SortBy out"
                )));
            }
        }
        all.sort_by_cached_key(|row| self.place(row));
        if self.descending {
            all.reverse();
        }
        if let Some(after) = self.after.take() {
            let passed = |row: &IndexRow| {
                let place = self.place(row);
                if self.descending { place >= after } else { place <= after }
            };
            all.retain(|row| !passed(row));
        }
        Ok(all)
    }

    /// Where a page that ends with `row` ends.
    fn place(&self, row: &IndexRow) -> String {
        let name = row.name.to_ascii_lowercase();
        if self.by_time { format!("{:020}/{name}", row.created) } else { name }
    }
}

fn fits(row: &IndexRow, asked: &TuningsQuery) -> bool {
    let named = asked.name_contains.as_ref().is_none_or(|part| row.name.contains(part.as_str()));
    named && within(row.created, asked.created)
}

fn within(ms: i64, (after, before): (Option<i64>, Option<i64>)) -> bool {
    after.is_none_or(|after| ms > after) && before.is_none_or(|before| ms < before)
}

fn summary_fits(summary: &Value, asked: &TuningsQuery) -> bool {
    let status = asked.status.is_none_or(|status| summary["HyperParameterTuningJobStatus"] == status);
    let modified = summary["LastModifiedTime"].as_f64().unwrap_or(0.0) * 1_000.0;
    #[expect(clippy::cast_possible_truncation, reason = "a time that this code wrote")]
    let modified = modified.round() as i64;
    status && within(modified, asked.modified)
}

/// The page of `jobs` that was asked for. It begins after the job with which the one before ended, wherever that is by now:
/// new jobs may have come in between, none ever goes.
fn page_of(mut jobs: Vec<Value>, asked: &JobsQuery) -> Result<Value, ApiError> {
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NEG_INFINITY);
    let value = |job: &Value| number(&job["FinalHyperParameterTuningJobObjectiveMetric"]["Value"]);
    let text = |job: &Value| job["TrainingJobStatus"].as_str().unwrap_or_default().to_owned();
    // They come in order of their keys, and sorting keeps that order among equals.
    match asked.order {
        JobOrder::Name => {}
        JobOrder::CreationTime => {
            jobs.sort_by(|a, b| number(&a["CreationTime"]).total_cmp(&number(&b["CreationTime"])));
        }
        JobOrder::Status => jobs.sort_by_cached_key(text),
        JobOrder::FinalObjectiveMetricValue => {
            jobs.retain(|job| !job["FinalHyperParameterTuningJobObjectiveMetric"].is_null());
            jobs.sort_by(|a, b| value(a).total_cmp(&value(b)));
        }
    }
    if asked.descending {
        jobs.reverse();
    }
    if let Some(after) = &asked.after {
        let place = jobs.iter().position(|job| job["TrainingJobName"] == after.as_str());
        jobs.drain(..=place.ok_or_else(list::wrong_token)?);
    }
    if let Some(status) = asked.status {
        jobs.retain(|job| job["TrainingJobStatus"] == status);
    }
    let more = jobs.len() > asked.limit;
    jobs.truncate(asked.limit);
    let last = jobs.last().and_then(|job| job["TrainingJobName"].as_str()).map(token);
    let mut page = json!({"TrainingJobSummaries": jobs});
    if let Some(last) = last.filter(|_| more) {
        page["NextToken"] = json!(last);
    }
    Ok(page)
}

fn unknown(name: &str) -> ApiError {
    ApiError::not_found(format!("no hyperparameter tuning job is named {name}"))
}
