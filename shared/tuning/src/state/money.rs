//! How bills are booked, and the concluded jobs whose bill is not final.
//!
//! The first bill of a job frees its reservation. A trial can arrive at its rung before that: the bill settles money
//! only. No answer of the service says that a bill is final, so each bill is read once more before the tuning ends. A
//! higher one is booked and read again.

use serde::{Deserialize, Serialize};

use crate::definition::Definition;
use crate::job::Job;
use crate::job::bill::Stage;
use crate::job::pool::Pool;
use crate::log::fact::JobKey;
use crate::money::grants::Grants;
use crate::money::ledger::Ledger;
use crate::state::State;
use crate::state::streams::place_complete;
use crate::trial::Trial;
use crate::unit::limits::MAX_MARGIN;
use crate::unit::money::MicroUsd;

/// Reserved, spent and granted money.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Money {
    /// The money of the tuning.
    pub ledger: Ledger,
    /// Money granted from the month's cap.
    pub grants: Grants,
    /// Concluded jobs whose bill is not known or not confirmed yet, in the order of their conclusion.
    pub billing: Vec<(JobKey, Job)>,
    /// Warm pools whose cost is not known yet.
    pub pools: Vec<Pool>,
    /// Whether the notice of a bill above its reservation was ordered.
    pub overrun_published: bool,
    /// The level of the cap, in percent, whose notice was ordered last; 0 = none.
    pub cap_published_percent: u32,
}

impl Money {
    /// Returns whether a concluded job has no bill yet.
    pub(crate) fn awaits_bills(&self) -> bool {
        self.billing.iter().any(|(_, job)| !job.is_closed())
    }

    /// Returns the concluded job `key`, if its bill is not final.
    pub(crate) fn concluded_job_mut(&mut self, key: JobKey) -> Option<&mut Job> {
        self.billing.iter_mut().find(|(known, _)| *known == key).map(|(_, job)| job)
    }

    /// Removes the concluded jobs whose bill is final.
    pub(crate) fn forget_final_bills(&mut self) {
        self.billing.retain(|(_, job)| !job.bill.is_final());
    }
}

impl State {
    /// Returns the jobs whose bill is not final: the live jobs and the concluded ones.
    pub fn billed_jobs(&self) -> impl Iterator<Item = (JobKey, &Job)> {
        let concluded = self.money.billing.iter().map(|(key, job)| (*key, job));
        self.jobs().map(|(key, _, job)| (key, job)).chain(concluded)
    }

    /// Returns whether a bill was above its reservation, or will be: the job lasts longer than that pays for.
    pub fn has_overrun(&self) -> bool {
        let extended = |(_, _, job): (JobKey, &Trial, &Job)| job.bill.extension.amount > MicroUsd::ZERO;
        self.money.ledger.has_overrun() || self.jobs().any(extended)
    }

    /// Returns whether a job, a bill or a warm pool may still free reserved money.
    pub(crate) fn may_free_money(&self) -> bool {
        self.jobs().next().is_some() || self.money.awaits_bills() || !self.money.pools.is_empty()
    }

    /// Returns the job `key`, live or concluded, if its bill is not final.
    pub(crate) fn billed_job_mut(&mut self, key: JobKey) -> Option<&mut Job> {
        let live = self.trials.get_mut(key.trial).and_then(|trial| trial.job_mut());
        let concluded = self.money.billing.iter_mut().find(|(known, _)| *known == key);
        live.filter(|job| job.is(key)).or(concluded.map(|(_, job)| job))
    }

    /// Books a bill of job `key`. The first one frees its reservation, except the part that pays for kept instances. Of a
    /// later one, the difference is booked.
    pub(crate) fn book_bill(&mut self, definition: &Definition, key: JobKey, seconds: u64, amount: MicroUsd) {
        let Some(job) = self.billed_job_mut(key) else { return };
        let before = job.bill.amount();
        job.bill.book(seconds, amount);
        let pool = kept_instances(definition, key, job);
        // The reservation of a settled job grows with the margin, but none of it is reserved any more.
        let reservation =
            job.bill.reservation.minus(pool.as_ref().map_or(MicroUsd::ZERO, |pool| pool.reservation));
        // What the job reserved more while it ran is part of the excess: later jobs can last as long.
        let excess = amount.minus(reservation.minus(job.bill.extension.amount));
        match before {
            None => {
                self.money.pools.extend(pool);
                self.settle(reservation, amount, excess);
            }
            Some(before) => self.settle(MicroUsd::ZERO, amount.minus(before), excess),
        }
        if let Some(best) = self.results.best.as_mut().filter(|best| best.job == key) {
            (best.billable_seconds, best.cost) = (Some(seconds), Some(amount));
        }
        self.money.forget_final_bills();
    }

    /// Reserves more for a job that lasts longer than its reservation pays for, even above the cap.
    pub(crate) fn extend_reservation(&mut self, key: JobKey, seconds: u64, amount: MicroUsd) {
        let Some(job) = self.trials.get_mut(key.trial).and_then(|trial| trial.job_mut()) else { return };
        job.bill.reservation = job.bill.reservation.plus(amount);
        job.bill.extension.seconds = seconds;
        job.bill.extension.amount = job.bill.extension.amount.plus(amount);
        self.money.ledger.raise(amount);
    }

    /// Books the whole reservation of a job whose bill never came. No bill of it is read again.
    pub(crate) fn settled_in_full(&mut self, definition: &Definition, key: JobKey, amount: MicroUsd) {
        let bill = if crate::planted!(LateBillSettledAtZero) { MicroUsd::ZERO } else { amount };
        self.settle(amount, bill, MicroUsd::ZERO);
        if let Some(job) = self.billed_job_mut(key) {
            job.bill.stage = Stage::InFull(amount);
        }
        if let Some(best) = self.results.best.as_mut().filter(|best| best.job == key) {
            (best.cost, best.settled_in_full) = (Some(amount), true);
        }
        self.money.forget_final_bills();
        place_complete(definition, self, key);
    }

    pub(crate) fn close_pool(&mut self, key: JobKey, amount: MicroUsd) {
        let Some(index) = self.money.pools.iter().position(|pool| pool.job == key) else { return };
        let pool = self.money.pools.remove(index);
        // The reservation of a pool has no margin of its own.
        let excess = amount.minus(pool.reservation).minus(self.money.ledger.margin);
        self.settle(pool.reservation, amount, excess);
    }

    /// Frees a reservation and books its bill, which was higher by `excess` than a reservation with the margin so far.
    /// The excess raises the reservations of all jobs whose bill is not known, and of all later jobs.
    fn settle(&mut self, reservation: MicroUsd, bill: MicroUsd, excess: MicroUsd) {
        self.money.ledger.settle(reservation, bill);
        let margin = self.money.ledger.margin.plus(excess).min(MAX_MARGIN);
        let more = margin.minus(self.money.ledger.margin);
        if more == MicroUsd::ZERO {
            return;
        }
        self.money.ledger.margin = margin;
        if crate::planted!(ExcessNotRaised) {
            return;
        }
        let live = self.trials.values_mut().filter_map(|trial| trial.job_mut());
        for job in live.chain(self.money.billing.iter_mut().map(|(_, job)| job)) {
            // A bill that rises later is compared with a reservation that has the whole margin.
            job.bill.reservation = job.bill.reservation.plus(more);
            if !job.is_closed() {
                self.money.ledger.raise(more);
            }
        }
    }
}

fn kept_instances(definition: &Definition, key: JobKey, job: &Job) -> Option<Pool> {
    let never_ran = job.started().is_none() && job.bill.seconds().unwrap_or(0) == 0;
    if job.order.limits.keep_alive_seconds == 0 || never_ran {
        return None;
    }
    let reservation =
        definition.pool_worst_case(job.order.limits, job.order.instances).unwrap_or(MicroUsd::ZERO);
    Some(Pool::new(key, job, reservation, job.stopped_running_at()?))
}
