//! Checks each step: money (P1), the order of rulings (P2), the limits, and that a repeated fact changes nothing (P3).

use search::Configuration;
use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase, Recorded};
use tuning::log::reasons::{EndReason, StopWhy, TrialEnd};
use tuning::log::ruling::{
    AttemptRuling, Booking, GrantOrder, Launch, NoticeOrder, Order, ReadOrder, Ruling, SearchRuling,
};
use tuning::planted::fold;
use tuning::step::{Step, load};
use tuning::unit::ids::{BracketId, CohortId, TrialId};

use crate::plan::HOUR;

use super::brackets::Shape;
use super::{Book, JobBook, Money, TrialBook};

impl Book {
    /// Applies a step to the books. Returns the first violation.
    pub(super) fn apply_step(&mut self, step: &Step) -> Result<(), String> {
        if step.n != self.steps + 1 {
            return Err(format!("P5: the step follows step {}", self.steps));
        }
        self.steps = step.n;
        if self.ended.is_some() && !step.rulings.is_empty() {
            return Err("P3: the step has rulings after the end of the tuning".to_owned());
        }
        for recorded in &step.facts {
            self.fact(recorded);
        }
        self.count_facts(step);
        for ruling in &step.rulings {
            let checked = self.ruling(ruling).and_then(|()| self.check_fallback(ruling));
            let checked = checked.and_then(|()| self.check_bounds(ruling));
            checked.map_err(|wrong| format!("{wrong} ({})", super::rules::name(ruling)))?;
            // P1 must hold after every ruling, not only after every step.
            self.check_cap()?;
        }
        self.check_cap()?;
        self.check_others_stop()?;
        load(&self.definition, &mut self.replica, step);
        self.check_idempotence(step)
    }

    fn fact(&mut self, recorded: &Recorded) {
        if let Fact::BudgetGranted { amount, .. } = &recorded.fact {
            self.granted += amount.0;
        }
        self.stop_requested(&recorded.fact);
        if let Fact::BillsConfirmed { bills } = &recorded.fact {
            self.bills_confirmed(bills);
        }
        self.pool_fact(recorded);
        self.advance_clock(recorded.at.0);
        self.limits_changed(recorded);
        let Some(key) = recorded.fact.job() else { return };
        self.billed_fact(key, recorded);
        let Some(job) = self.jobs.get_mut(&key) else { return };
        if let Fact::JobDescribed { billable_seconds, .. } = &recorded.fact {
            job.shown = job.shown.max(Some(*billable_seconds));
        }
        if job.concluded {
            // Its bill is booked by a ruling.
            return;
        }
        let ended_before = job.end_seen;
        job.record_signs(&recorded.fact);
        job.record_instances(recorded);
        let mut bill = None;
        match &recorded.fact {
            Fact::JobStateChanged { phase: JobPhase::Ended(end), .. } => job.end(*end),
            Fact::JobDescribed { end, billable_seconds, .. } => {
                job.end(*end);
                if job.money == Money::Reserved {
                    bill = Some(*billable_seconds);
                }
            }
            Fact::RestRead { .. } => (job.rest_open, job.rest_read) = (false, true),
            // Facts without effect are not recorded, so this job never started.
            Fact::StartRefused { .. } | Fact::JobNeverStarted { .. } if job.money == Money::Reserved => {
                job.money = Money::Released;
                job.end_seen = true;
                job.no_retry = true;
            }
            Fact::JobStopRequested { .. } => (job.stop_requested, job.no_retry) = (true, true),
            Fact::ActionDeferred { quota_exceeded: true, reason, .. } if !job.seen => {
                job.limited = true;
                self.note_quota(key, reason);
            }
            Fact::TuningSubmitted
            | Fact::StopRequested
            | Fact::LimitsChanged { .. }
            | Fact::TimePassed
            | Fact::JobStateChanged { .. }
            | Fact::MetricsLogged { .. }
            | Fact::LogProblemSeen { .. }
            | Fact::FinalMetricsSeen { .. }
            | Fact::LogRead { .. }
            | Fact::SilenceSeen { .. }
            | Fact::BudgetGranted { .. }
            | Fact::GrantReturned { .. }
            | Fact::BillsConfirmed { .. }
            | Fact::NoticeGiven { .. }
            | Fact::JobStarted { .. }
            | Fact::JobSeen { .. }
            | Fact::StartRefused { .. }
            | Fact::JobNeverStarted { .. }
            | Fact::StopAccepted { .. }
            | Fact::PoolSeen { .. }
            | Fact::PoolOver { .. }
            | Fact::ActionDeferred { .. } => {}
        }
        if let Some(seconds) = bill {
            self.book_bill(key, seconds, recorded.at.0);
        }
        self.capacity_fact(key, ended_before);
    }

    /// Returns the spent and the reserved amount by these books, in micro-dollars.
    pub(crate) fn money(&self) -> (u64, u64) {
        self.jobs.values().fold(self.pools.money(), |(spent, reserved), job| match job.money {
            Money::Reserved => (spent, reserved + job.reservation),
            Money::Spent(amount) => (spent + amount, reserved),
            Money::Released => (spent, reserved),
        })
    }

    fn ruling(&mut self, ruling: &Ruling) -> Result<(), String> {
        self.decisions.record(ruling);
        self.notices.extend(ruling.order().map(Order::action).filter(|action| action.starts_with("notice-")));
        match ruling {
            Ruling::Order(order) => self.order(ruling, order),
            Ruling::Booking(booking) => self.booking(ruling, booking),
            Ruling::Attempt(AttemptRuling::AttemptAwaited { job, .. }) => {
                self.promotions.has_retries = true;
                self.check_concluded(*job)
            }
            Ruling::Attempt(AttemptRuling::TrialFinished { job, trial, how }) => {
                self.check_trial_finished(*job, *trial, how)
            }
            Ruling::Attempt(AttemptRuling::ResourceRepeated { job, had, from }) => {
                self.check_repeat(*job, had.0, from.0)
            }
            Ruling::Search(SearchRuling::TrialDrawn { .. }) => Ok(()),
            Ruling::Search(SearchRuling::TrialJudged { .. }) => self.check_judgement(ruling),
            Ruling::Search(SearchRuling::RungReached { job, .. }) => {
                job.map_or(Ok(()), |job| self.check_arrived(job))?;
                self.check_rung_reached(ruling)
            }
            Ruling::Search(SearchRuling::TrialPromoted { .. }) => self.check_promotion(ruling),
            Ruling::TuningEnding { why } => {
                self.ending = Some(why.clone());
                match why {
                    EndReason::NoCapacity => self.check_no_capacity(),
                    EndReason::Failed(message) if message.contains("promise") => Err(message.clone()),
                    _ => Ok(()),
                }
            }
        }
    }

    fn order(&mut self, ruling: &Ruling, order: &Order) -> Result<(), String> {
        match order {
            Order::Start { .. } => self.check_start(ruling),
            Order::Stop { job, why, .. } => self.check_stop(*job, *why),
            Order::Read(ReadOrder::Bill { job }) => {
                let book =
                    self.jobs.get_mut(job).ok_or_else(|| format!("P2: job {job} was never ordered"))?;
                let twice = std::mem::replace(&mut book.bill_ordered, true);
                (!twice).then_some(()).ok_or_else(|| format!("P2: the bill of job {job} was ordered twice"))
            }
            Order::Read(ReadOrder::Rest { job, .. }) => {
                if let Some(job) = self.jobs.get_mut(job) {
                    job.rest_open = true;
                }
                self.check_ordered(*job)
            }
            Order::Read(ReadOrder::Log { job, .. } | ReadOrder::Silence { job, .. }) => {
                self.check_ordered(*job)
            }
            Order::Pool(_) => self.pool_ruling(ruling),
            Order::Grant(GrantOrder::Request { least, wanted, .. }) => {
                let sound = self.has_grants && least.0 > 0 && least <= wanted && self.can_request_money();
                sound
                    .then_some(())
                    .ok_or_else(|| format!("P1: an invalid grant of {least} to {wanted} was ordered"))
            }
            Order::Grant(GrantOrder::Return { amount, moved_to, .. }) => {
                let left = self.granted.checked_sub(if moved_to.is_none() { amount.0 } else { 0 });
                self.granted = left.ok_or("P1: more money was returned than granted")?;
                Ok(())
            }
            Order::Notice(NoticeOrder::CapReached { .. } | NoticeOrder::MonthCapReached { .. }) => Ok(()),
            Order::Notice(NoticeOrder::CapacityLacking { .. }) => self.check_capacity_notice(),
            Order::Notice(NoticeOrder::OverrunSeen) => {
                let overran = self.margin > 0 || self.jobs.values().any(|job| job.billed.extended > 0);
                let right = overran && !std::mem::replace(&mut self.overrun_published, true);
                right.then_some(()).ok_or_else(|| {
                    "P1: an overrun was reported twice, or without a bill above its reservation".to_owned()
                })
            }
            Order::Notice(NoticeOrder::TuningEnded { why }) => self.check_tuning_ended(why),
        }
    }

    fn booking(&mut self, ruling: &Ruling, booking: &Booking) -> Result<(), String> {
        match booking {
            Booking::BillBooked { job, seconds, amount } => self.check_bill_booked(*job, *seconds, amount.0),
            Booking::ReservationExtended { job, seconds, amount } => {
                self.check_extended(*job, *seconds, amount.0)
            }
            Booking::SettledInFull { job, amount } => self.check_settled_in_full(*job, amount.0),
            Booking::PoolClosed { .. } => self.pool_ruling(ruling),
        }
    }

    fn check_stop(&mut self, job: JobKey, why: StopWhy) -> Result<(), String> {
        self.check_stop_for_money(job, why)?;
        let book = self.jobs.get_mut(&job).ok_or_else(|| format!("P2: job {job} was never ordered"))?;
        book.stop_why = Some(why);
        if std::mem::replace(&mut book.stop_ordered, true) {
            return Err(format!("P2: the stop of job {job} was ordered twice"));
        }
        (!book.end_seen)
            .then_some(())
            .ok_or_else(|| format!("P2: the stop of job {job} was ordered after its end"))
    }

    fn check_ordered(&self, job: JobKey) -> Result<(), String> {
        let known = self.jobs.contains_key(&job);
        known.then_some(()).ok_or_else(|| format!("P2: job {job} was never ordered"))
    }

    /// Checks the order of a job.
    fn check_start(&mut self, ruling: &Ruling) -> Result<(), String> {
        let Ruling::Order(Order::Start {
            job,
            bracket,
            configuration,
            limits,
            reservation,
            round,
            launch,
            ..
        }) = ruling
        else {
            return Ok(());
        };
        self.enter_job(*job, (*bracket, configuration), reservation.0, *launch)?;
        let keeping = self.keeping_cost(launch.instances, limits.keep_alive_seconds);
        if let Some(book) = self.jobs.get_mut(job) {
            (book.keep_seconds, book.keeping) = (limits.keep_alive_seconds, keeping);
        }
        self.open_billed(*job, limits.max_wait_seconds.unwrap_or(limits.max_runtime_seconds));
        self.check_launch(*job, *launch, *limits, reservation.0)?;
        let limit = launch.resource.map(|epoch| epoch.0);
        if launch.refit {
            return self.check_refit_limit(*job, limit);
        }
        let has = |shape: Shape| shape.has(*bracket, self.case.definition_of(job.trial));
        if Shape::of(&self.case).is_some_and(|shape| !has(shape)) {
            return Err(format!(
                "Brackets: job {job} starts in bracket {bracket}, which the jobs do not fill"
            ));
        }
        self.check_job_left_for_refit()?;
        self.check_rung_of_start(*job, CohortId { bracket: *bracket, round: *round }, limit)
    }

    fn check_trial_finished(
        &mut self,
        job: Option<JobKey>,
        trial: TrialId,
        how: &TrialEnd,
    ) -> Result<(), String> {
        if let Some(job) = job {
            self.check_concluded(job)?;
        }
        let book = self.trials.get_mut(&trial).ok_or_else(|| format!("P6: trial {trial} does not exist"))?;
        if std::mem::replace(&mut book.finished, true) {
            return Err(format!("P6: trial {trial} ended twice"));
        }
        self.check_trial_end(job, trial, how)?;
        self.check_blameless(job, how)?;
        let key = job.filter(|_| matches!(how, TrialEnd::NeverStarted));
        let exists =
            key.is_some_and(|key| self.jobs.get(&key).is_some_and(|job| job.created && !job.is_forgotten));
        (!exists)
            .then_some(())
            .ok_or_else(|| format!("P1: trial {trial} ended as never started, but its job was created"))
    }

    fn enter_job(
        &mut self,
        key: JobKey,
        (bracket, configuration): (BracketId, &Configuration),
        reservation: u64,
        launch: Launch,
    ) -> Result<(), String> {
        if launch.refit {
            self.check_refit(key)?;
        } else if self.ending.is_some() {
            return Err(format!("P3: job {key} was ordered while the tuning was ending"));
        }
        let trial = self.trials.entry(key.trial).or_insert_with(|| TrialBook {
            bracket,
            configuration: configuration.clone(),
            ..TrialBook::default()
        });
        if trial.configuration != *configuration {
            return Err(format!("P6: job {key} has another configuration than its trial"));
        }
        if trial.finished || trial.out {
            return Err(format!("P6: job {key} was ordered after the end of trial {}", key.trial));
        }
        if key.attempt != trial.attempts + 1 || trial.bracket != bracket {
            return Err(format!(
                "P2: job {key} in bracket {bracket} follows attempt {} in bracket {}",
                trial.attempts, trial.bracket
            ));
        }
        trial.attempts = key.attempt;
        let mut jobs = self.jobs.iter();
        let former = jobs.find(|(job, _)| job.trial == key.trial && job.attempt + 1 == key.attempt);
        // After a stop because of interruptions the trial continues on demand; after one because of a quota, on other
        // instances.
        let continues = |book: &JobBook| {
            let by_clock = matches!(book.stop_why, Some(StopWhy::ReservationUsed { .. }));
            (book.interrupted || book.cancelled_for_quota || by_clock)
                && matches!(book.end, None | Some(JobEnd::Stopped))
        };
        let no_retry = |book: &JobBook| book.no_retry && !continues(book);
        if former.is_some_and(|(job, book)| (job.rung == key.rung && no_retry(book)) || !book.concluded) {
            return Err(format!("P6: job {key} continues a trial whose last job failed or is not concluded"));
        }
        let limits = (self.limits.cap, self.limits.max_parallel);
        let book = JobBook::ordered(self.jobs.len(), reservation, launch, limits);
        if self.jobs.insert(key, book).is_some() {
            return Err(format!("P2: job {key} was ordered twice"));
        }
        self.check_start_limits()?;
        self.check_capacity_of_start(key)?;
        let most = self.case.counted_jobs();
        let launched = self.jobs.values().filter(|job| !job.is_uncounted()).count();
        if launched > usize::try_from(most).unwrap_or(usize::MAX) {
            return Err(format!("MaxJobs: {launched} jobs were launched, {most} are allowed"));
        }
        Ok(())
    }

    fn check_concluded(&mut self, key: JobKey) -> Result<(), String> {
        let is_open = |job: &JobBook| job.money == Money::Reserved;
        if self.jobs.get(&key).is_some_and(is_open) {
            return Err(format!("P1: job {key} was concluded while its money is reserved"));
        }
        self.check_arrived(key)
    }

    /// Checks the conclusion of a job whose trial arrives at its rung, if the job ran even before its bill.
    fn check_arrived(&mut self, key: JobKey) -> Result<(), String> {
        let now = self.clock();
        let job = self.jobs.get_mut(&key).ok_or_else(|| format!("P2: job {key} was never ordered"))?;
        if (job.money == Money::Reserved && !job.ran) || !job.end_seen {
            return Err(format!(
                "P1: job {key} was concluded while its money is {:?} (end seen: {})",
                job.money, job.end_seen
            ));
        }
        let since_end = now - job.ended();
        job.log_given_up = Some(now).filter(|_| job.rest_open && since_end >= HOUR);
        let twice = std::mem::replace(&mut job.concluded, true);
        (!twice).then_some(()).ok_or_else(|| format!("P2: job {key} was concluded twice"))
    }

    /// Checks that a notice was ordered for each level of the cap that was reached.
    fn check_cap_notices(&self, why: &EndReason) -> Result<(), String> {
        let Some(cap) = self.limits.cap else { return Ok(()) };
        let noticed = |percent: u32| self.notices.contains(&format!("notice-cap-{percent}"));
        let spent_at_least = |percent: u64| self.money().0 * 100 >= cap * percent;
        let used_up = *why == EndReason::CostCap && !self.has_grants;
        let missing = (used_up && !noticed(100))
            || (spent_at_least(80) && !noticed(80) && !noticed(100))
            || (spent_at_least(50) && !noticed(50) && !noticed(80) && !noticed(100));
        if missing {
            Err(format!("P1: no notice reports how much of the cap of {cap} is spent"))
        } else {
            Ok(())
        }
    }

    fn check_tuning_ended(&mut self, why: &EndReason) -> Result<(), String> {
        self.check_cap_notices(why)?;
        let limited = self.limits.cap.is_some() || self.has_grants;
        if *why == EndReason::CostCap && !limited {
            return Err("P3: the tuning ended with CostCap, but nothing limits its money".to_owned());
        }
        if self.margin > 0 && !self.overrun_published {
            return Err("P1: the tuning ended without a report of its overrun".to_owned());
        }
        self.check_bills_at_end()?;
        let open = self.jobs.values().filter(|job| !job.concluded).count();
        let alive = self.trials.values().filter(|trial| !trial.finished).count();
        self.ended = Some((why.clone(), 0));
        (open + alive == 0)
            .then_some(())
            .ok_or_else(|| format!("P3: the tuning ended with {open} open jobs and {alive} open trials"))
    }

    /// Checks that recorded facts change nothing when they come again.
    fn check_idempotence(&self, step: &Step) -> Result<(), String> {
        if !step.n.is_multiple_of(4) {
            return Ok(());
        }
        let mut state = self.replica.clone();
        for recorded in &step.facts {
            if fold(&self.definition, &mut state, recorded) || state != self.replica {
                return Err(format!("P3: the repeated fact {} changes the state", recorded.key));
            }
        }
        Ok(())
    }
}

impl JobBook {
    /// Returns the end of its instances' run, in ms.
    pub(super) fn ended(&self) -> i64 {
        self.ended.unwrap_or(0)
    }

    /// Records what a fact shows about the existence of the job and its instances.
    fn record_signs(&mut self, fact: &Fact) {
        self.seen |= matches!(
            fact,
            Fact::JobStateChanged { .. }
                | Fact::JobDescribed { .. }
                | Fact::JobStarted { .. }
                | Fact::StopAccepted { .. }
                | Fact::MetricsLogged { .. }
        );
        if let Fact::JobStateChanged { started, ended, .. } | Fact::JobDescribed { started, ended, .. } = fact
        {
            self.ran |= started.is_some();
            self.ended = self.ended.or(ended.map(|time| time.0));
        }
    }

    /// Returns the books of a job that is ordered as the `order`th of its tuning.
    fn ordered(order: usize, reservation: u64, launch: Launch, limits: (Option<u64>, u32)) -> Self {
        Self {
            order,
            reservation,
            launch,
            limits,
            end: None,
            interrupted: false,
            ran: false,
            ended: None,
            keep_seconds: 0,
            keeping: 0,
            seen: false,
            limited: false,
            cancelled_for_quota: false,
            money: Money::Reserved,
            shown: None,
            booked: None,
            confirmed: None,
            margin_at_bill: 0,
            billed: super::overrun::Billed::default(),
            stop_ordered: false,
            stop_why: None,
            bill_ordered: false,
            end_seen: false,
            stop_requested: false,
            no_retry: false,
            failed: false,
            instances_at: None,
            interrupted_at: None,
            level: None,
            promoted_with: 0,
            repeats_from: None,
            settled_in_full: false,
            rest_open: false,
            rest_read: false,
            log_given_up: None,
            created: false,
            is_forgotten: false,
            concluded: false,
        }
    }

    fn end(&mut self, end: JobEnd) {
        if !self.end_seen {
            self.end_seen = true;
            self.end = Some(end);
            self.failed = end == JobEnd::AlgorithmError;
            self.no_retry = self.stop_requested
                || matches!(end, JobEnd::AlgorithmError | JobEnd::Completed | JobEnd::Stopped);
        }
    }
}
