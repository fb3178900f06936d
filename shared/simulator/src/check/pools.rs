//! Instances kept after jobs, by books of their own: what is reserved for them, why they are read or let go, and what is
//! booked in the end.

use std::collections::BTreeMap;

use tuning::fact::{Fact, JobKey, Recorded};
use tuning::pool::Retained;
use tuning::ruling::Ruling;

use super::{Book, Money};

/// "An allowance of a minute": for so long instances may be kept beyond what was asked for.
const ALLOWANCE_SECONDS: i64 = 60;
/// "An hour after its time."
const SETTLED_MS: i64 = 3_600_000;

/// What is kept after one job.
#[derive(Debug)]
struct PoolBook {
    choice: u32,
    money: Money,
    reservation: u64,
    /// When its time is over, ms.
    until: i64,
    read: u32,
    released: bool,
    over: Option<Retained>,
}

/// All that was kept.
#[derive(Debug, Default)]
pub(super) struct Pools {
    by_job: BTreeMap<JobKey, PoolBook>,
    /// Greatest time that the sweeper told.
    clock: i64,
}

impl Pools {
    /// Spent and reserved.
    pub(super) fn money(&self) -> (u64, u64) {
        self.by_job.values().fold((0, 0), |(spent, reserved), pool| match pool.money {
            Money::Reserved => (spent, reserved + pool.reservation),
            Money::Spent(amount) => (spent + amount, reserved),
            Money::Released => (spent, reserved),
        })
    }
}

impl Book {
    /// What keeping the instances of a job that asks for `seconds` may cost.
    pub(super) fn keeping_costs(&self, choice: u32, seconds: u64) -> u64 {
        match i64::try_from(seconds).unwrap_or(i64::MAX) {
            0 => 0,
            seconds => self.case.cost(choice, seconds + ALLOWANCE_SECONDS),
        }
    }

    /// A job was billed that had instances: what keeping them may cost stays reserved. `ended`, ms.
    pub(super) fn kept_after(&mut self, key: JobKey, ended: i64) {
        let Some(job) = self.jobs.get(&key) else { return };
        let (choice, seconds) = (job.launch.instances, job.keep_seconds);
        let reservation = self.keeping_costs(choice, seconds);
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

    /// What the service said.
    pub(super) fn pool_fact(&mut self, recorded: &Recorded) {
        if recorded.fact == Fact::TimePassed {
            self.pools.clock = self.pools.clock.max(recorded.at);
        }
        if let Fact::PoolOver { job, retained } = &recorded.fact
            && let Some(pool) = self.pools.by_job.get_mut(job)
        {
            pool.over.get_or_insert(*retained);
        }
    }

    /// A ruling about kept instances.
    pub(super) fn pool_ruling(&mut self, ruling: &Ruling) -> Result<(), String> {
        let now = self.pools.clock;
        match ruling {
            Ruling::PoolReadOrdered { job, n, last } => {
                let pool = self.pool(*job)?;
                let in_order = std::mem::replace(&mut pool.read, *n) + 1 == *n && !pool.released;
                let due = !last || now >= pool.until;
                (in_order && due).then_some(()).ok_or_else(|| format!("P2: reading {n} of what {job} keeps"))
            }
            Ruling::PoolReleaseOrdered { job } => {
                let pool = self.pool(*job)?;
                let twice = std::mem::replace(&mut pool.released, true);
                (!twice).then_some(()).ok_or_else(|| format!("P2: what {job} keeps is let go twice"))
            }
            Ruling::PoolClosed { job, seconds, amount } => {
                let case = self.case.clone();
                let pool = self.pool(*job)?;
                let expect = match (pool.over, seconds) {
                    (Some(Retained::Seconds(told)), Some(seconds)) if told == *seconds => {
                        Some(case.cost(pool.choice, i64::try_from(told).unwrap_or(i64::MAX)))
                    }
                    (Some(Retained::Unknown), None) => Some(pool.reservation),
                    (None, None) if now >= pool.until + SETTLED_MS => Some(pool.reservation),
                    _ => None,
                };
                let (reservation, over) = (pool.reservation, pool.over);
                if pool.money != Money::Reserved || expect != Some(amount.0) {
                    return Err(format!("P1: {amount} is booked for what {job} kept: {over:?}"));
                }
                pool.money = Money::Spent(amount.0);
                self.overrun |= amount.0 > reservation;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn pool(&mut self, key: JobKey) -> Result<&mut PoolBook, String> {
        let pool = self.pools.by_job.get_mut(&key).filter(|pool| pool.money == Money::Reserved);
        pool.ok_or_else(|| format!("P1: no instances are kept after {key}"))
    }
}
