//! Bills: checks the amount booked for a job and its time. Each bill must be read once more before the tuning ends, and
//! the job's row must show the booked amount.

use tuning::log::fact::JobKey;
use use_cases::store::Store;
use wire::stored;

use super::{Book, Checker, Money};
use crate::world::ports::now;

impl Book {
    /// Books a bill of a job: the first one in place of its reservation, a later one in place of the former. `at` is
    /// when the job ended, in ms, if no fact says it.
    pub(super) fn book_bill(&mut self, key: JobKey, seconds: u64, at: i64) {
        let margin = self.margin;
        let Some(job) = self.jobs.get_mut(&key) else { return };
        let bill = self.case.cost(job.launch.instances, i64::try_from(seconds).unwrap_or(i64::MAX));
        let kept = (job.ran || seconds > 0).then(|| job.ended.unwrap_or(at));
        let own = job.reservation - kept.map_or(0, |_| job.keeping);
        let is_first = job.money == Money::Reserved;
        if is_first {
            job.margin_at_bill = margin;
        }
        // The reservation that the job would have now.
        let own = own + margin - job.margin_at_bill - job.billed.extended;
        if let Money::Spent(before) = job.money {
            self.risen += bill.saturating_sub(before);
        }
        (job.money, job.booked) = (Money::Spent(bill), Some(seconds));
        if let Some(ended) = kept.filter(|_| is_first) {
            self.open_pool(key, ended);
        }
        self.book_excess(bill.saturating_sub(own));
        if !is_first {
            self.let_stand();
        }
    }

    /// Checks a bill that was booked after the conclusion of its job.
    pub(super) fn check_bill_booked(&mut self, key: JobKey, seconds: u64, amount: u64) -> Result<(), String> {
        let job = self.jobs.get(&key).ok_or_else(|| format!("P2: job {key} was never ordered"))?;
        let is_new = job.money == Money::Reserved || job.booked.is_some_and(|booked| booked < seconds);
        let due = job.concluded && job.shown == Some(seconds) && is_new;
        let expected = self.case.cost(job.launch.instances, i64::try_from(seconds).unwrap_or(i64::MAX));
        if !due || amount != expected {
            return Err(format!(
                "P1: a bill of {seconds} s, {amount}, was booked for job {key}, expected {expected}; the highest bill \
                 shown is {:?}, the money {:?}",
                job.shown, job.money
            ));
        }
        self.book_bill(key, seconds, job.ended());
        Ok(())
    }

    /// Records that bills were read once more.
    pub(super) fn bills_confirmed(&mut self, bills: &[(JobKey, u64)]) {
        for (key, seconds) in bills {
            if let Some(job) = self.jobs.get_mut(key) {
                job.confirmed = job.confirmed.max(Some(*seconds));
            }
        }
    }

    /// Checks that all bills are booked and were read once more when the tuning ends.
    pub(super) fn check_bills_at_end(&self) -> Result<(), String> {
        let is_open = |job: &super::JobBook| match job.money {
            Money::Reserved => true,
            Money::Spent(_) => !job.settled_in_full && job.confirmed != job.booked,
            Money::Released => false,
        };
        match self.jobs.iter().find(|(_, job)| is_open(job)) {
            None => Ok(()),
            Some((key, job)) => Err(format!(
                "P1: the tuning ended before the bill of job {key} was read once more: {:?}, {:?} s, confirmed {:?} s",
                job.money, job.booked, job.confirmed
            )),
        }
    }

    pub(super) fn check_settled_in_full(&mut self, job: JobKey, amount: u64) -> Result<(), String> {
        let book = self.jobs.get_mut(&job).ok_or_else(|| format!("P2: job {job} was never ordered"))?;
        if book.money != Money::Reserved || amount != book.reservation {
            return Err(format!(
                "P1: job {job} was settled in full with {amount}, but its reservation is {} and its money {:?}",
                book.reservation, book.money
            ));
        }
        book.money = Money::Spent(amount);
        // The decider may presume that the job has ended. `world::truth` checks that it has.
        book.end_seen = true;
        book.settled_in_full = true;
        Ok(())
    }
}

impl Checker {
    /// Returns the billed seconds that are booked for a job; `None` without a bill.
    pub(crate) fn booked_seconds(&self, id: &str, key: JobKey) -> Option<u64> {
        self.books.get(id)?.jobs.get(&key)?.booked
    }

    /// Returns the jobs whose row does not show the booked amount.
    pub(super) fn wrong_rows(&self, store: &Store<port_tests::memory::MemoryTable>, id: &str) -> Vec<String> {
        let Some(book) = self.books.get(id).filter(|book| book.ended.is_some()) else { return Vec::new() };
        let rows = now(store.all(&stored::tuning_partition(id), "JOB#")).unwrap_or_default();
        let summaries = rows.iter().filter_map(|row| stored::job(row).ok());
        let wrong = summaries.filter_map(|summary| {
            let spent = |money| match money {
                Money::Spent(amount) => Some(amount),
                Money::Reserved | Money::Released => None,
            };
            let retained = book.pools.by_job.get(&summary.job).and_then(|pool| spent(pool.money));
            let booked = (spent(book.jobs.get(&summary.job)?.money), retained);
            let shown = (summary.cost.map(|cost| cost.0), summary.retained_cost.map(|cost| cost.0));
            (shown != booked).then(|| {
                format!(
                    "P1: the row of job {} of {id} has the costs {shown:?}, booked are {booked:?}",
                    summary.job
                )
            })
        });
        wrong.collect()
    }
}
