//! The money of the tuning (P1), added anew from the single amounts.

use std::collections::BTreeMap;

use crate::Findings;
use crate::log::{Booked, Fact, Job, Latest, Recorded, Ruling, Settled, Start};
use crate::rows::{Definition, Tuning};

/// The money of a job.
#[derive(Debug)]
struct Account {
    choice: usize,
    /// What the job costs if it runs as long as it may, without start-up and upload.
    least: Option<u64>,
    reserved: u64,
    /// The latest bill of the service, in seconds.
    billed: Option<u64>,
    booked: Option<u64>,
    in_full: bool,
    is_free: bool,
}

#[derive(Debug)]
pub(crate) struct Money<'a> {
    definition: &'a Definition,
    cap: Latest<Option<u64>>,
    granted: Option<u64>,
    jobs: BTreeMap<Job, Account>,
    pools: u64,
}

impl<'a> Money<'a> {
    pub(crate) fn new(definition: &'a Definition) -> Self {
        let granted = definition.grants.then_some(0);
        Self { definition, cap: Latest::new(definition.cap), granted, jobs: BTreeMap::new(), pools: 0 }
    }

    pub(crate) fn spent(&self) -> u64 {
        self.jobs.values().filter_map(|account| account.booked).fold(self.pools, u64::saturating_add)
    }

    pub(crate) fn without_bill(&self) -> u64 {
        crate::count(self.jobs.values().filter(|account| account.in_full).count())
    }

    fn reserved(&self) -> u64 {
        let open = self.jobs.values().filter(|account| account.booked.is_none() && !account.is_free);
        open.map(|account| account.reserved).fold(0, u64::saturating_add)
    }

    pub(crate) fn fact(&mut self, recorded: &Recorded) {
        match &recorded.fact {
            Fact::JobDescribed(described) => {
                self.bill(described.job, described.billable_seconds);
                self.book_first(described.job);
            }
            Fact::BillsConfirmed(confirmed) => {
                for (job, seconds) in &confirmed.bills {
                    self.bill(*job, *seconds);
                }
            }
            Fact::LimitsChanged(changed) => {
                changed.cap.into_iter().for_each(|cap| self.cap.change(recorded, Some(cap)));
            }
            Fact::BudgetGranted(grant) => {
                self.granted = self.granted.map(|granted| granted.saturating_add(grant.amount));
            }
            Fact::JobNeverStarted(of) | Fact::StartRefused(of) => {
                if let Some(account) = self.jobs.get_mut(&of.job) {
                    account.is_free = true;
                }
            }
            _ => {}
        }
    }

    /// Records a reading of a bill. A later one may be higher, and counts for nothing if it is lower.
    fn bill(&mut self, job: Job, seconds: u64) {
        if let Some(account) = self.jobs.get_mut(&job) {
            account.billed = account.billed.max(Some(seconds));
        }
    }

    /// Books the first bill of a job as it arrives, which needs no decision.
    fn book_first(&mut self, job: Job) {
        if let Some(account) = self.jobs.get_mut(&job).filter(|account| account.booked.is_none()) {
            let cost = |seconds| self.definition.job.cost(account.choice, seconds);
            account.booked = account.billed.and_then(cost);
        }
    }

    pub(crate) fn ruling(&mut self, ruling: &Ruling, findings: &mut Findings) {
        match ruling {
            Ruling::Start(start) => self.start(start, findings),
            Ruling::BillBooked(booked) => self.book(*booked, findings),
            Ruling::SettledInFull(settled) => self.settle_in_full(settled, findings),
            Ruling::ReservationExtended(extended) => {
                if let Some(account) = self.jobs.get_mut(&extended.job) {
                    account.reserved = account.reserved.saturating_add(extended.amount);
                }
            }
            Ruling::PoolClosed(closed) => self.pools = self.pools.saturating_add(closed.amount),
            Ruling::ReturnGrant(returned) if returned.moved_to.is_none() => {
                self.granted = self.granted.map(|granted| granted.saturating_sub(returned.amount));
            }
            _ => {}
        }
    }

    fn start(&mut self, start: &Start, findings: &mut Findings) {
        let (job, choice) = (start.job, start.launch.instances);
        let least = self.definition.job.cost(choice, start.limits.max_runtime_seconds);
        findings.check("P1", least.is_none_or(|least| start.reservation >= least), || {
            let (reserved, least) = (start.reservation, shown(least));
            format!("job {job} reserves {reserved}; its MaxRuntimeInSeconds costs {least} (micro-dollars)")
        });
        let reserved = start.reservation;
        let account =
            Account { choice, least, reserved, billed: None, booked: None, in_full: false, is_free: false };
        self.jobs.insert(job, account);
        let (spent, reserved) = (self.spent(), self.reserved());
        let total = spent.saturating_add(reserved);
        for (name, bound) in [("the cap", self.cap.value), ("the grants", self.granted)] {
            findings.check("P1", bound.is_none_or(|bound| total <= bound), || {
                let bound = shown(bound);
                format!("job {job} starts with {spent} spent and {reserved} reserved, above {name} of {bound} (micro-dollars)")
            });
        }
    }

    fn settle_in_full(&mut self, settled: &Settled, findings: &mut Findings) {
        let (job, amount) = (settled.job, settled.amount);
        let Some(account) = self.jobs.get_mut(&job) else {
            findings.check("P1", false, || format!("job {job} is settled in full, which was never ordered"));
            return;
        };
        let is_whole = account.billed.is_none() && account.least.is_none_or(|least| amount >= least);
        findings.check("P1", is_whole, || {
            let (billed, least) = (shown(account.billed), shown(account.least));
            format!("job {job} is settled in full at {amount}; its limits cost {least} (micro-dollars), its bill is {billed} s")
        });
        account.in_full = true;
        account.booked = Some(amount);
    }

    fn book(&mut self, Booked { job, seconds, amount }: Booked, findings: &mut Findings) {
        let Some(account) = self.jobs.get_mut(&job) else {
            findings.check("P1", false, || format!("a bill of job {job} is booked, which was never ordered"));
            return;
        };
        findings.check("P1", account.billed == Some(seconds), || {
            format!("job {job} is booked with {seconds} s; the service billed {} s", shown(account.billed))
        });
        if let Some(cost) = self.definition.job.cost(account.choice, seconds) {
            findings.check("P1", amount == cost, || {
                format!("job {job} is booked with {amount}; {seconds} s cost {cost} (micro-dollars)")
            });
        }
        account.booked = Some(amount);
        account.in_full = false;
    }

    pub(crate) fn end(&self, tuning: &Tuning, findings: &mut Findings) {
        let reserved = self.reserved();
        // The bills of a running tuning may be newer than its head.
        if !tuning.is_ended {
            return;
        }
        findings.check("P1", reserved == 0, || {
            format!("the tuning has ended with {reserved} micro-dollars reserved")
        });
        for (job, account) in self.jobs.iter().filter(|(_, account)| !account.in_full && !account.is_free) {
            let cost = account.billed.and_then(|seconds| self.definition.job.cost(account.choice, seconds));
            findings.check("P1", cost.is_none() || account.booked == cost, || {
                let (cost, booked) = (shown(cost), shown(account.booked));
                format!("the service billed {cost} micro-dollars for job {job}, and {booked} are booked")
            });
        }
        for summary in &tuning.jobs {
            let account = self.jobs.get(&summary.job);
            let booked = account.and_then(|account| account.booked);
            let same = summary.cost.unwrap_or(0) == booked.unwrap_or(0);
            findings.check("P1", same, || {
                let (job, cost, booked) = (summary.job, shown(summary.cost), shown(booked));
                format!("the summary of job {job} has the cost {cost}, the steps have {booked}")
            });
        }
    }
}

fn shown(amount: Option<u64>) -> String {
    amount.map_or_else(|| "none".to_owned(), |amount| amount.to_string())
}
