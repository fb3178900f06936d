//! Sets what a tuning has booked against what the training service says now, job by job, a page of jobs at a time.
//!
//! Reads only, and books nothing: the ledger changes by facts alone. The training service is asked once for each job, so
//! its pace is the caller's, who asks for the pages. Never holds more than a page of jobs and those that run.

use std::collections::BTreeMap;

use thiserror::Error;
use tuning::conclude::full_summary;
use tuning::fact::{JobKey, JobPhase};
use tuning::money::MicroUsd;
use tuning::state::State;
use tuning::summary::JobSummary;
use wire::cost::{CostPage, CostTotals, Dollars, JobCost, LedgerView, Note, SignedUsd};
use wire::names::training_job_name;
use wire::stored;

use crate::perform::bill::phase;
use crate::ports::table::{Query, Table};
use crate::ports::training::{Description, TrainingJobs, TrainingJobsError};
use crate::store::{Store, StoreError, Tuning};

/// Prefix of the sort keys of job summaries, and so of page tokens.
const JOB: &str = "JOB#";

/// Why a page could not be had.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum CostError {
    /// Not a token that a page gave: 400 `ValidationException`.
    #[error("'{0}' is not the NextToken of a page")]
    Token(String),
    /// The training service did not describe a job: ask for the page again later.
    #[error("the training job {job} cannot be described")]
    Training {
        /// Its name.
        job: String,
        /// Why.
        #[source]
        source: TrainingJobsError,
    },
    /// To be tried again.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// At most about `limit` training jobs of tuning `id` after those of page token `after`; `None` if there is no such
/// tuning.
pub async fn page<T: Table, J: TrainingJobs>(
    store: &Store<T>,
    jobs: &J,
    id: &str,
    after: Option<String>,
    limit: usize,
) -> Result<Option<CostPage>, CostError> {
    if let Some(token) = after.as_ref().filter(|token| !token.starts_with(JOB)) {
        return Err(CostError::Token(token.clone()));
    }
    // The state first: a job that leaves it before the rows are read is then among the rows.
    let Some(loaded) = store.load(id).await? else { return Ok(None) };
    let (tuning, state) = (&loaded.tuning, &loaded.state);
    let query = Query { after, ..Query::prefix(stored::tuning_partition(id), JOB, limit) };
    let rows = store.table.query(&query).await.map_err(StoreError::from)?;
    let summaries: Result<Vec<JobSummary>, _> = rows.items.iter().map(stored::job).collect();
    let mut summaries = summaries.map_err(StoreError::from)?;
    let pools: BTreeMap<JobKey, MicroUsd> =
        state.pools.iter().map(|pool| (pool.job, pool.reservation)).collect();
    summaries.extend(live(tuning, state, query.after.as_deref(), rows.next.as_deref()));
    summaries.sort_by_key(|summary| summary.job);
    summaries.dedup_by_key(|summary| summary.job);
    let mut training_jobs = Vec::with_capacity(summaries.len());
    for summary in &summaries {
        let name = training_job_name(id, summary.job);
        let described = match jobs.describe(&name).await {
            Ok(description) => Some(description),
            Err(TrainingJobsError::NotFound(_)) => None,
            Err(source) => return Err(CostError::Training { job: name, source }),
        };
        let pool = pools.get(&summary.job).copied();
        training_jobs.push(job_cost(tuning, name, (summary, pool), described.as_ref()));
    }
    let ledger = ledger(tuning, state);
    let name = tuning.definition.name.clone();
    Ok(Some(CostPage { tuning: name, step: loaded.head.step, ledger, training_jobs, next_token: rows.next }))
}

/// Jobs in the state that lie after the row `after` and not after the row `last`.
fn live(tuning: &Tuning, state: &State, after: Option<&str>, last: Option<&str>) -> Vec<JobSummary> {
    let within = |sk: &str| after.is_none_or(|after| sk > after) && last.is_none_or(|last| sk <= last);
    let jobs = state.jobs().filter(|(key, _, _)| within(&stored::job_key(&tuning.id, *key).sk));
    jobs.map(|(key, trial, job)| full_summary(&tuning.definition, key, trial, job)).collect()
}

fn ledger(tuning: &Tuning, state: &State) -> LedgerView {
    let ledger = &state.ledger;
    let by_month = state.grants.by_month.iter();
    LedgerView {
        cap_usd: ledger.cap,
        spent_usd: ledger.spent,
        reserved_usd: ledger.reserved,
        available_usd: ledger.available(),
        overrun: ledger.overrun,
        granted_usd: ledger.granted,
        granted_usd_by_month: by_month.map(|(month, amount)| (month.clone(), Dollars(*amount))).collect(),
        priced: tuning.definition.job.rate.is_some(),
        spot: tuning.definition.job.spot,
    }
}

/// A job by both books; `pool` is what is reserved for its instances that are kept.
fn job_cost(
    tuning: &Tuning,
    name: String,
    (job, pool): (&JobSummary, Option<MicroUsd>),
    described: Option<&Description>,
) -> JobCost {
    let shape = &tuning.definition.job;
    let billable = described.and_then(billed);
    let instances = shape.instances(job.instances);
    let choices = tuning.request.instance_choices();
    let choice = usize::try_from(job.instances).ok().and_then(|index| choices.get(index));
    let retained = described.and_then(|job| job.warm_pool.as_ref()).and_then(|pool| pool.retained_seconds);
    let retained = retained.filter(|_| job.retained_cost.is_some());
    // As the bills are booked.
    let computed = billable.and_then(|seconds| instances.cost(seconds)).map(|running| {
        running.plus(retained.and_then(|seconds| instances.cost(seconds)).unwrap_or_default())
    });
    let booked = job.cost.filter(|_| instances.rate.is_some());
    let booked = booked.map(|running| running.plus(job.retained_cost.unwrap_or_default()));
    let note = note(job, described, billable).or_else(|| kept_note(job, pool, retained));
    let difference = match note {
        Some(Note::BilledThoughNeverStarted) => {
            computed.map(|computed| (booked.unwrap_or_default(), computed))
        }
        _ => booked.zip(computed),
    };
    let difference = difference.map(|(booked, computed)| SignedUsd::between(booked, computed));
    let difference = difference.filter(|difference| !difference.is_zero());
    let unbooked = job.cost.is_none() && !job.never_started;
    JobCost {
        training_job_name: name,
        trial: job.job.trial,
        attempt: job.job.attempt,
        instance_type: choice.map_or("", |choice| choice.instance_type).to_owned(),
        instance_count: instances.count,
        price_usd_per_hour: instances.rate.map(|rate| MicroUsd(rate.instance_hour)),
        training_job_status: described.map(|described| described.status.clone()),
        billable_seconds: billable,
        training_seconds: described.and_then(training_seconds),
        booked_seconds: job.billable_seconds,
        booked_usd: booked,
        retained_seconds: retained,
        booked_retained_seconds: job.retained_seconds,
        reserved_usd: unbooked.then_some(job.reservation).or(pool).filter(|_| instances.rate.is_some()),
        computed_usd: computed,
        difference_usd: difference,
        note,
        says: note.map(|note| says(note).to_owned()),
        differs: note.is_some_and(|note| differs(note, job, computed)),
    }
}

/// Seconds billed, as the service says it now. An ended job that never had an instance has no bill and costs nothing.
fn billed(described: &Description) -> Option<u64> {
    let ended = matches!(phase(described), JobPhase::Ended(_));
    described.billable_seconds.or((ended && described.started.is_none()).then_some(0)).filter(|_| ended)
}

/// `TrainingTimeInSeconds`: from start to end, whole seconds.
fn training_seconds(described: &Description) -> Option<u64> {
    let length = described.ended?.saturating_sub(described.started?);
    Some(u64::try_from(length).unwrap_or(0).div_ceil(1_000))
}

fn note(job: &JobSummary, described: Option<&Description>, billable: Option<u64>) -> Option<Note> {
    if job.never_started {
        let was_billed = billable.is_some_and(|seconds| seconds > 0);
        return Some(if was_billed { Note::BilledThoughNeverStarted } else { Note::NeverStarted });
    }
    if job.cost.is_none() {
        return Some(match described {
            None if job.end.is_none() && job.phase == JobPhase::Starting => Note::Ordered,
            None => Note::UnknownToService,
            Some(described) if matches!(phase(described), JobPhase::Ended(_)) => Note::BillAwaited,
            Some(_) => Note::Running,
        });
    }
    if job.settled_in_full {
        return Some(Note::SettledInFull);
    }
    match described {
        None => Some(Note::UnknownToService),
        Some(_) => (billable != job.billable_seconds).then_some(Note::BillChanged),
    }
}

/// What there is to say of the instances kept after a job whose own bill is as it was booked.
fn kept_note(job: &JobSummary, pool: Option<MicroUsd>, retained: Option<u64>) -> Option<Note> {
    if pool.is_some() {
        return Some(Note::InstancesKept);
    }
    job.retained_cost?;
    match job.retained_seconds {
        None => Some(Note::KeptSettledInFull),
        booked => (retained != booked).then_some(Note::BillChanged),
    }
}

/// Whether the books of a job with this note differ, or cannot be compared though both should be there.
fn differs(note: Note, job: &JobSummary, computed: Option<MicroUsd>) -> bool {
    match note {
        Note::Ordered | Note::Running | Note::BillAwaited | Note::InstancesKept | Note::NeverStarted => false,
        Note::BilledThoughNeverStarted | Note::UnknownToService | Note::BillChanged => true,
        Note::SettledInFull | Note::KeptSettledInFull => {
            let booked = job.cost.map(|running| running.plus(job.retained_cost.unwrap_or_default()));
            computed.is_none() || computed != booked
        }
    }
}

fn says(note: Note) -> &'static str {
    match note {
        Note::Ordered => "ordered, not made by the service yet: reserved",
        Note::Running => "running: reserved",
        Note::BillAwaited => "ended, its bill is not booked yet: reserved",
        Note::NeverStarted => "called off: never started",
        Note::SettledInFull => "settled in full: its bill never came",
        Note::InstancesKept => "its instances are kept for the next job: reserved",
        Note::KeptSettledInFull => "how long its instances were kept is not known: booked in full",
        Note::BilledThoughNeverStarted => "taken as never started, yet the service has billed it",
        Note::UnknownToService => "unknown to the service: deleted there",
        Note::BillChanged => "the service tells another bill than the one that was booked",
    }
}

/// Adds up the pages of a tuning's jobs.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    totals: CostTotals,
    spot: bool,
    /// The first page's step, and spent and reserved by its ledger.
    first: Option<(u64, MicroUsd)>,
    /// Whether a later page was of another step.
    moved: bool,
}

impl Tally {
    /// Adds a page.
    pub fn add(&mut self, page: &CostPage) {
        let ledger = &page.ledger;
        let all = ledger.spent_usd.plus(ledger.reserved_usd);
        let (step, _) = *self.first.get_or_insert((page.step, all));
        self.moved |= step != page.step;
        self.spot = ledger.spot;
        for job in &page.training_jobs {
            let totals = &mut self.totals;
            totals.training_jobs += 1;
            totals.booked_usd = totals.booked_usd.plus(job.booked_usd.unwrap_or_default());
            totals.reserved_usd = totals.reserved_usd.plus(job.reserved_usd.unwrap_or_default());
            totals.computed_usd = totals.computed_usd.plus(job.computed_usd.unwrap_or_default());
            if let Some(billable) = job.billable_seconds {
                totals.billable_seconds = totals.billable_seconds.saturating_add(billable);
                let trained = job.training_seconds.unwrap_or(billable);
                totals.training_seconds = totals.training_seconds.saturating_add(trained);
            }
            totals.retained_seconds =
                totals.retained_seconds.saturating_add(job.retained_seconds.unwrap_or(0));
            totals.differing_jobs += u64::from(job.differs);
            totals.difference_usd = totals.difference_usd.plus(job.difference_usd.unwrap_or_default());
        }
    }

    /// The sums of the pages so far.
    pub fn totals(&self) -> CostTotals {
        let CostTotals { billable_seconds: billed, training_seconds: trained, .. } = self.totals;
        let saved = trained.saturating_sub(billed).saturating_mul(100).checked_div(trained);
        let booked = self.totals.booked_usd.plus(self.totals.reserved_usd);
        let ledger = self.first.filter(|_| !self.moved);
        CostTotals {
            spot_savings_percent: saved.filter(|_| self.spot),
            ledger_difference_usd: ledger.map(|(_, ledger)| SignedUsd::between(ledger, booked)),
            ..self.totals
        }
    }
}
