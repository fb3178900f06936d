//! Warm pools: instances that are kept after jobs. Checks their reservations, the reasons to read or release them, and
//! the amounts booked at the end.

use std::collections::BTreeMap;

use tuning::log::fact::{Fact, JobKey, Recorded};
use tuning::log::pool::Retained;
use tuning::log::ruling::{Booking, Order, PoolOrder, Ruling};
use tuning::unit::ids::ChoiceId;

use super::{Book, Money};

/// Longest time that instances are kept beyond the requested time, in seconds.
const ALLOWANCE_SECONDS: i64 = 60;
/// Time after which an unknown pool is booked in full, in ms.
const SETTLED_MS: i64 = 3_600_000;

/// The books of the instances kept after one job.
#[derive(Debug)]
pub(super) struct PoolBook {
    choice: ChoiceId,
    pub(super) money: Money,
    reservation: u64,
    /// End of the keep-alive period with its allowance, in ms.
    until: i64,
    read: u32,
    released: bool,
    over: Option<Retained>,
}

/// The books of all kept instances of one tuning.
#[derive(Debug, Default)]
pub(super) struct Pools {
    pub(super) by_job: BTreeMap<JobKey, PoolBook>,
    /// The latest time that the sweeper recorded, in ms.
    clock: i64,
}

impl Pools {
    /// Returns the spent and the reserved amount, in micro-dollars.
    pub(super) fn money(&self) -> (u64, u64) {
        self.by_job.values().fold((0, 0), |(spent, reserved), pool| match pool.money {
            Money::Reserved => (spent, reserved + pool.reservation),
            Money::Spent(amount) => (spent + amount, reserved),
            Money::Released => (spent, reserved),
        })
    }
}

impl Book {
    /// Returns the worst-case cost of keeping the instances of a job for `seconds`, in micro-dollars.
    pub(super) fn keeping_cost(&self, choice: ChoiceId, seconds: u64) -> u64 {
        match i64::try_from(seconds).unwrap_or(i64::MAX) {
            0 => 0,
            seconds => self.case.cost(choice, seconds + ALLOWANCE_SECONDS),
        }
    }

    /// Opens the books of the instances kept after a billed job that ended at `ended` (ms). Their worst case stays
    /// reserved.
    pub(super) fn open_pool(&mut self, key: JobKey, ended: i64) {
        let Some(job) = self.jobs.get(&key) else { return };
        let (choice, seconds) = (job.launch.instances, job.keep_seconds);
        let reservation = self.keeping_cost(choice, seconds);
        if seconds == 0 {
            return;
        }
        let until = ended + (i64::try_from(seconds).unwrap_or(i64::MAX) + ALLOWANCE_SECONDS) * 1_000;
        let pool = PoolBook {
            choice,
            money: Money::Reserved,
            reservation,
            until,
            read: 0,
            released: false,
            over: None,
        };
        self.pools.by_job.insert(key, pool);
    }

    /// Records a fact about kept instances.
    pub(super) fn pool_fact(&mut self, recorded: &Recorded) {
        if recorded.fact == Fact::TimePassed {
            self.pools.clock = self.pools.clock.max(recorded.at.0);
        }
        if let Fact::PoolOver { job, retained } = &recorded.fact
            && let Some(pool) = self.pools.by_job.get_mut(job)
        {
            pool.over.get_or_insert(*retained);
        }
    }

    /// Checks a ruling about kept instances.
    pub(super) fn pool_ruling(&mut self, ruling: &Ruling) -> Result<(), String> {
        let now = self.pools.clock;
        match ruling {
            Ruling::Order(Order::Pool(PoolOrder::Read { job, n, last })) => {
                let pool = self.pool(*job)?;
                let in_order = std::mem::replace(&mut pool.read, *n) + 1 == *n && !pool.released;
                let due = !last || now >= pool.until;
                (in_order && due).then_some(()).ok_or_else(|| {
                    format!(
                        "P2: pool read {n} after job \
                    {job} was ordered out of order, too early or after its release"
                    )
                })
            }
            Ruling::Order(Order::Pool(PoolOrder::Release { job })) => {
                let pool = self.pool(*job)?;
                let twice = std::mem::replace(&mut pool.released, true);
                (!twice)
                    .then_some(())
                    .ok_or_else(|| format!("P2: the pool after job {job} was released twice"))
            }
            Ruling::Booking(Booking::PoolClosed { job, seconds, amount }) => {
                let case = self.case.clone();
                let pool = self.pool(*job)?;
                let expect = match (pool.over, seconds) {
                    (Some(Retained::Seconds(kept)), Some(seconds)) if kept == *seconds => {
                        Some(case.cost(pool.choice, i64::try_from(kept).unwrap_or(i64::MAX)))
                    }
                    (Some(Retained::Unknown), None) => Some(pool.reservation),
                    (None, None) if now >= pool.until + SETTLED_MS => Some(pool.reservation),
                    _ => None,
                };
                let (reservation, over) = (pool.reservation, pool.over);
                if pool.money != Money::Reserved || expect != Some(amount.0) {
                    return Err(format!(
                        "P1: {amount} was booked for the pool after job {job}, expected {expect:?} ({over:?})"
                    ));
                }
                pool.money = Money::Spent(amount.0);
                self.book_excess(amount.0.saturating_sub(reservation + self.margin));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn pool(&mut self, key: JobKey) -> Result<&mut PoolBook, String> {
        let pool = self.pools.by_job.get_mut(&key).filter(|pool| pool.money == Money::Reserved);
        pool.ok_or_else(|| format!("P1: a ruling concerns a pool after job {key}, but there is no open pool"))
    }
}
