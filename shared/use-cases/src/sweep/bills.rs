//! Reads the bills of concluded jobs once more, because no answer of the training service says that a bill is final.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use tuning::job::Job;
use tuning::log::fact::{Fact, JobKey, Recorded};
use tuning::state::State;
use tuning::unit::limits::{BILL_USUAL, MAX_BILLS_PER_FACT, SETTLE_DEADLINE};
use tuning::unit::time::{Millis, Time};
use wire::names::training_job_name;
use wire::stored;

use super::limits::CallKind;
use super::run::{BookedBill, Run};
use super::tuning::{READS_AT_ONCE, take};
use super::{Sweeper, WHOLE};
use crate::perform::bill::higher;
use crate::ports::table::Table;
use crate::ports::training::{TrainingJobs, TrainingJobsError, TrainingService};
use crate::ports::{Bus, Timer};
use crate::record;
use crate::store::StoreError;

/// Number of bills that are read once more together, at least ...
const BATCH: usize = 20;
/// ... unless one of them was ordered this long ago, or no trial is live.
const BATCH_WAIT: Millis = Millis::from_seconds(600);

/// What a further reading of a bill shows.
enum Reading {
    Confirmed,
    Higher(Recorded),
    /// The bill could not be read: the next sweep tries again.
    Unreadable,
}

/// The bills that were confirmed, by tuning.
type Confirmed = BTreeMap<String, Vec<(JobKey, u64)>>;

/// Returns the jobs whose booked bill is to be read once more, with the bill. Each fact that confirms bills costs a step,
/// so a tuning whose trials go on waits for several bills.
fn due(state: &State, now: Time) -> Vec<(JobKey, &Job, u64)> {
    let booked = state.money.billing.iter().filter_map(|(key, job)| {
        let seconds = job.bill.seconds()?;
        let is_due = now >= read_at(job) + BILL_USUAL && job.bill.unbooked_seconds().is_none();
        is_due.then_some((*key, job, seconds))
    });
    let booked: Vec<_> = booked.collect();
    let is_old = |(_, job, _): &(JobKey, &Job, u64)| now >= read_at(job) + BATCH_WAIT;
    let waits = booked.len() < BATCH && !state.trials.is_empty() && !booked.iter().any(is_old);
    if waits { Vec::new() } else { booked }
}

/// A bill that came without an order is due at once.
fn read_at(job: &Job) -> Time {
    job.bill.read_at().unwrap_or(Time::EPOCH)
}

impl<T: Table, J: TrainingService, B: Bus, C: Timer + Clone> Sweeper<T, J, B, C> {
    /// Queues the booked bills of a tuning that are due to be read once more.
    pub(super) fn queue_booked_bills(&self, run: &mut Run, id: &str, state: &State) {
        let room = usize::try_from(self.limits.calls.describe.per_sweep).unwrap_or(usize::MAX);
        let after = run.swept.cursor.heal.clone();
        for (job, billed, seconds) in due(state, self.now()) {
            let expires = read_at(billed) + SETTLE_DEADLINE;
            if run.booked.len() >= room {
                run.leave_to_next_sweep(&after);
                return;
            }
            run.booked.push(BookedBill { id: id.to_owned(), job, seconds, expires, after: after.clone() });
        }
    }

    /// Reads the queued bills once more. Reports the higher ones, and confirms the others.
    pub(super) async fn confirm_bills(&self, run: &mut Run) {
        let due = std::mem::take(&mut run.booked);
        let mut confirmed = Confirmed::new();
        for several in due.chunks(READS_AT_ONCE) {
            let has_time = self.has_time(run, WHOLE);
            let mut calls = self.actuator.jobs.left();
            let (reads, left): (Vec<_>, Vec<_>) =
                several.iter().partition(|_| has_time && take(&mut calls, &[CallKind::Describe]));
            let readings = join_all(reads.iter().map(|bill| self.read_again(bill))).await;
            for (bill, reading) in reads.into_iter().zip(readings) {
                match reading {
                    Reading::Confirmed => {
                        run.swept.settled.confirmed += 1;
                        confirmed.entry(bill.id.clone()).or_default().push((bill.job, bill.seconds));
                    }
                    Reading::Higher(fact) => self.store_or_ring(run, &bill.id, &fact).await,
                    Reading::Unreadable => run.leave_to_next_sweep(&bill.after),
                }
            }
            for bill in left {
                run.leave_to_next_sweep(&bill.after);
            }
        }
        let at = self.now();
        for (id, bills) in confirmed {
            for bills in bills.chunks(MAX_BILLS_PER_FACT) {
                let fact = Fact::BillsConfirmed { bills: bills.to_vec() };
                let first = bills.first().map(|(job, _)| job.to_string()).unwrap_or_default();
                let fact = Recorded { key: format!("bills#{first}#{at}"), at, fact };
                self.store_or_ring(run, &id, &fact).await;
            }
        }
    }

    async fn read_again(&self, bill: &BookedBill) -> Reading {
        match self.actuator.jobs.describe(&training_job_name(&bill.id, bill.job)).await {
            Ok(description) => {
                higher(bill.job, &description, bill.seconds).map_or(Reading::Confirmed, Reading::Higher)
            }
            // The job was deleted: no other bill will be seen.
            Err(TrainingJobsError::NotFound(_)) => Reading::Confirmed,
            Err(_) if self.now() >= bill.expires => self.read_stored(bill).await,
            Err(_) => Reading::Unreadable,
        }
    }

    /// Returns the reading of a bill that cannot be read any more, from the stored facts: the decider may not have received
    /// all of them.
    async fn read_stored(&self, bill: &BookedBill) -> Reading {
        let (partition, prefix) = (stored::fact_partition(&bill.id), stored::fact_prefix(Some(bill.job)));
        let Ok(rows) = self.store.all(&partition, &prefix).await else { return Reading::Unreadable };
        let is_higher = |recorded: &Recorded| match recorded.fact {
            Fact::JobDescribed { billable_seconds, .. } => billable_seconds > bill.seconds,
            _ => false,
        };
        let mut facts = rows.iter().filter_map(|row| stored::fact(row).ok());
        facts.find(is_higher).map_or(Reading::Confirmed, Reading::Higher)
    }

    /// Stores a fact. If it was stored before, the decider seems not to have received it, so the tuning is rung.
    async fn store_or_ring(&self, run: &mut Run, id: &str, fact: &Recorded) {
        let stored: Result<(), StoreError> = match self.put(id, fact).await {
            Ok(true) => record::ring(&*self.store.table, id, self.now()).await.map_err(StoreError::from),
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = stored {
            run.failed_for(id, error);
        }
    }
}
