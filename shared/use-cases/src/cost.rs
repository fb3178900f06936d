//! Compares the booked cost of a tuning with the current bills of the training service, job by job, one page at a time.
//!
//! Reads only: the ledger changes through facts alone. Each job takes one call of the training service, so the caller,
//! who requests the pages, sets the pace. Holds at most one page of jobs and the running jobs in memory.

use std::collections::BTreeMap;

use thiserror::Error;
use tuning::log::fact::{JobKey, JobPhase};
use tuning::state::State;
use tuning::trial::summary::JobSummary;
use tuning::trial::summary::full_summary;
use tuning::unit::money::MicroUsd;
use wire::cost::{CostPage, CostTotals, Dollars, JobCost, LedgerView, Note, SignedUsd};
use wire::names::training_job_name;
use wire::stored;

use crate::perform::bill::phase;
use crate::ports::table::{Query, Table};
use crate::ports::training::{Description, TrainingJobs, TrainingJobsError};
use crate::store::{Loaded, Store, StoreError, Tuning};

/// Prefix of the sort keys of job summaries, and therefore of page tokens.
const JOB: &str = "JOB#";

/// Why a page could not be read.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum CostError {
    /// The token is not a `NextToken` of a page: 400 `ValidationException`.
    #[error("invalid NextToken '{0}': expected the NextToken of the previous page")]
    Token(String),
    /// The training service did not describe a job. Request the page again later.
    #[error("cannot describe the training job {job}")]
    Training {
        /// Name of the training job.
        job: String,
        /// The error of the training service.
        #[source]
        source: TrainingJobsError,
    },
    /// The table failed. Request the page again later.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What the training service knows of a job.
enum Bill {
    /// It was not asked.
    NotRead,
    Unknown,
    Of(Box<Description>),
}

/// Returns about `limit` training jobs of tuning `id` after page token `after`, or `None` if the tuning does not exist.
pub async fn page<T: Table, J: TrainingJobs>(
    store: &Store<T>,
    jobs: &J,
    id: &str,
    after: Option<String>,
    limit: usize,
) -> Result<Option<CostPage>, CostError> {
    let Some(listed) = Listed::read(store, id, after, limit).await? else { return Ok(None) };
    let mut bills = Vec::with_capacity(listed.summaries.len());
    for summary in &listed.summaries {
        let name = training_job_name(id, summary.job);
        bills.push(match jobs.describe(&name).await {
            Ok(description) => Bill::Of(Box::new(description)),
            Err(TrainingJobsError::NotFound(_)) => Bill::Unknown,
            Err(source) => return Err(CostError::Training { job: name, source }),
        });
    }
    Ok(Some(listed.page(bills)))
}

/// Like [`page`], but with the booked costs alone: asks no training service.
pub async fn booked<T: Table>(
    store: &Store<T>,
    id: &str,
    after: Option<String>,
    limit: usize,
) -> Result<Option<CostPage>, CostError> {
    let listed = Listed::read(store, id, after, limit).await?;
    Ok(listed.map(|listed| listed.page(std::iter::repeat_with(|| Bill::NotRead))))
}

/// The training jobs of a page.
struct Listed {
    loaded: Loaded,
    summaries: Vec<JobSummary>,
    next_token: Option<String>,
}

impl Listed {
    async fn read<T: Table>(
        store: &Store<T>,
        id: &str,
        after: Option<String>,
        limit: usize,
    ) -> Result<Option<Self>, CostError> {
        if let Some(token) = after.as_ref().filter(|token| !token.starts_with(JOB)) {
            return Err(CostError::Token(token.clone()));
        }
        // The state is read first: a job that leaves it before the rows are read is then among the rows.
        let Some(loaded) = store.load(id).await? else { return Ok(None) };
        let (tuning, state) = (&loaded.tuning, &loaded.state);
        let query = Query { after, ..Query::prefix(stored::tuning_partition(id), JOB, limit) };
        let rows = store.table.query(&query).await.map_err(StoreError::from)?;
        let summaries: Result<Vec<JobSummary>, _> = rows.items.iter().map(stored::job).collect();
        let mut summaries = summaries.map_err(StoreError::from)?;
        summaries.extend(live(tuning, state, query.after.as_deref(), rows.next.as_deref()));
        summaries.sort_by_key(|summary| summary.job);
        summaries.dedup_by_key(|summary| summary.job);
        for summary in summaries.iter_mut().filter(|summary| summary.cost.is_none()) {
            // A bill above its reservation has raised the others.
            let billed = state.money.billing.iter().find(|(key, _)| *key == summary.job);
            summary.reservation = billed.map_or(summary.reservation, |(_, job)| job.bill.reservation);
        }
        Ok(Some(Self { loaded, summaries, next_token: rows.next }))
    }

    /// Returns the page, with a bill for each job.
    fn page(self, bills: impl IntoIterator<Item = Bill>) -> CostPage {
        let (tuning, state) = (&self.loaded.tuning, &self.loaded.state);
        let pools: BTreeMap<JobKey, MicroUsd> =
            state.money.pools.iter().map(|pool| (pool.job, pool.reservation)).collect();
        let costs = self.summaries.iter().zip(bills).map(|(summary, bill)| {
            let pool = pools.get(&summary.job).copied();
            job_cost(tuning, training_job_name(&tuning.id, summary.job), summary, pool, &bill)
        });
        CostPage {
            tuning: tuning.definition.name.clone(),
            step: self.loaded.head.step,
            ledger: ledger(tuning, state),
            training_jobs: costs.collect(),
            next_token: self.next_token,
        }
    }
}

/// Returns the jobs in the state whose rows lie after `after` and not after `last`.
fn live(tuning: &Tuning, state: &State, after: Option<&str>, last: Option<&str>) -> Vec<JobSummary> {
    let within = |sk: &str| after.is_none_or(|after| sk > after) && last.is_none_or(|last| sk <= last);
    let jobs = state.jobs().filter(|(key, _, _)| within(&stored::job_key(&tuning.id, *key).sk));
    jobs.map(|(key, trial, job)| full_summary(&tuning.definition, key, trial, job)).collect()
}

fn ledger(tuning: &Tuning, state: &State) -> LedgerView {
    let ledger = &state.money.ledger;
    let by_month = state.money.grants.by_month.iter();
    LedgerView {
        cap_usd: ledger.cap,
        spent_usd: ledger.spent,
        reserved_usd: ledger.reserved,
        available_usd: ledger.available(),
        overrun: state.has_overrun(),
        granted_usd: ledger.granted,
        granted_usd_by_month: by_month.map(|(month, amount)| (month.clone(), Dollars(*amount))).collect(),
        priced: tuning.definition.job.is_priced(),
        spot: tuning.definition.job.all_sizes().any(|size| tuning.definition.terms(size).spot),
    }
}

/// Returns a job with its booked and its billed cost. `pool` is the reservation for its kept instances.
fn job_cost(tuning: &Tuning, name: String, job: &JobSummary, pool: Option<MicroUsd>, bill: &Bill) -> JobCost {
    let shape = &tuning.definition.job;
    let described = match bill {
        Bill::Of(description) => Some(&**description),
        Bill::NotRead | Bill::Unknown => None,
    };
    let billable = described.and_then(billed);
    let instances = shape.instances(job.instances);
    let choices = tuning.request.instance_choices();
    let choice = choices.get(job.instances.index());
    let retained = described.and_then(|job| job.warm_pool.as_ref()).and_then(|pool| pool.retained_seconds);
    let retained = retained.filter(|_| job.retained_cost.is_some());
    // Each part is rounded as in the ledger.
    let computed = billable.and_then(|seconds| instances.cost(seconds)).map(|running| {
        running.plus(retained.and_then(|seconds| instances.cost(seconds)).unwrap_or_default())
    });
    let booked = job.cost.filter(|_| instances.rate.is_some());
    let booked = booked.map(|running| running.plus(job.retained_cost.unwrap_or_default()));
    let note = match bill {
        Bill::NotRead => note_without_bill(job, pool),
        Bill::Of(_) | Bill::Unknown => {
            note(job, described, billable).or_else(|| kept_instances_note(job, pool, retained))
        }
    };
    let difference = match note {
        Some(Note::BilledThoughNeverStarted) => {
            computed.map(|computed| (booked.unwrap_or_default(), computed))
        }
        Some(
            Note::Ordered
            | Note::Running
            | Note::BillAwaited
            | Note::NeverStarted
            | Note::SettledInFull
            | Note::InstancesKept
            | Note::KeptSettledInFull
            | Note::UnknownToService
            | Note::BillChanged,
        )
        | None => booked.zip(computed),
    };
    let difference = difference.map(|(booked, computed)| SignedUsd::between(booked, computed));
    let difference = difference.filter(|difference| !difference.is_zero());
    let unbooked = job.cost.is_none() && !job.never_started;
    JobCost {
        training_job_name: name,
        trial: job.job.trial.0,
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
        says: note.map(|note| note_text(note).to_owned()),
        differs: !matches!(bill, Bill::NotRead) && note.is_some_and(|note| differs(note, job, computed)),
    }
}

/// Returns the note about a job whose bill was not read.
fn note_without_bill(job: &JobSummary, pool: Option<MicroUsd>) -> Option<Note> {
    if job.never_started {
        return Some(Note::NeverStarted);
    }
    if job.cost.is_none() {
        return Some(match (job.end, job.phase) {
            (Some(_), _) => Note::BillAwaited,
            (None, JobPhase::Starting) => Note::Ordered,
            (None, _) => Note::Running,
        });
    }
    if job.settled_in_full {
        return Some(Note::SettledInFull);
    }
    if pool.is_some() {
        return Some(Note::InstancesKept);
    }
    (job.retained_cost.is_some() && job.retained_seconds.is_none()).then_some(Note::KeptSettledInFull)
}

/// Returns the seconds that the service bills now. An ended job that never had an instance has no bill and costs
/// nothing.
fn billed(described: &Description) -> Option<u64> {
    let ended = matches!(phase(described), JobPhase::Ended(_));
    described.billable_seconds.or((ended && described.started.is_none()).then_some(0)).filter(|_| ended)
}

/// Returns `TrainingTimeInSeconds`: the time from start to end in whole seconds, rounded up.
fn training_seconds(described: &Description) -> Option<u64> {
    Some((described.ended? - described.started?).seconds_rounded_up())
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

/// Returns the note about the kept instances of a job whose own bill agrees with the booked one.
fn kept_instances_note(job: &JobSummary, pool: Option<MicroUsd>, retained: Option<u64>) -> Option<Note> {
    if pool.is_some() {
        return Some(Note::InstancesKept);
    }
    job.retained_cost?;
    match job.retained_seconds {
        None => Some(Note::KeptSettledInFull),
        booked => (retained != booked).then_some(Note::BillChanged),
    }
}

/// Returns whether a job with this note has different costs, or costs that should be comparable and are not.
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

fn note_text(note: Note) -> &'static str {
    match note {
        Note::Ordered => "ordered, but not created by the service yet: reserved",
        Note::Running => "not ended: reserved",
        Note::BillAwaited => "ended, but the bill is not booked yet: reserved",
        Note::NeverStarted => "cancelled: never started",
        Note::SettledInFull => "settled in full: the bill never arrived",
        Note::InstancesKept => "the instances are kept for the next job: reserved",
        Note::KeptSettledInFull => "the time for which the instances were kept is unknown: booked in full",
        Note::BilledThoughNeverStarted => "booked as never started, but the service has billed it",
        Note::UnknownToService => "unknown to the service: the training job was deleted there",
        Note::BillChanged => "the service now reports another bill than the booked one",
    }
}

/// Adds up the pages of a tuning's jobs.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    totals: CostTotals,
    spot: bool,
    /// Step of the first page, and the sum of spent and reserved money in its ledger.
    first: Option<(u64, MicroUsd)>,
    /// Whether a later page belongs to another step.
    step_changed: bool,
}

impl Tally {
    /// Adds a page.
    pub fn add(&mut self, page: &CostPage) {
        let ledger = &page.ledger;
        let all = ledger.spent_usd.plus(ledger.reserved_usd);
        let (step, _) = *self.first.get_or_insert((page.step, all));
        self.step_changed |= step != page.step;
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

    /// Returns the sums of all pages added so far.
    pub fn totals(&self) -> CostTotals {
        let CostTotals { billable_seconds: billed, training_seconds: trained, .. } = self.totals;
        let saved = trained.saturating_sub(billed).saturating_mul(100).checked_div(trained);
        let booked = self.totals.booked_usd.plus(self.totals.reserved_usd);
        let ledger = self.first.filter(|_| !self.step_changed);
        CostTotals {
            spot_savings_percent: saved.filter(|_| self.spot),
            ledger_difference_usd: ledger.map(|(_, ledger)| SignedUsd::between(ledger, booked)),
            ..self.totals
        }
    }
}
