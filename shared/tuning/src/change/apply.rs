//! How each ruling changes the state. Never fails and never decides: the same ruling on the same state gives the same
//! state.

use search::Origin;

use crate::change::lesson::{Lesson, lesson};
use crate::definition::Definition;
use crate::job::inquiry::Asked;
use crate::job::pool::Pool;
use crate::job::{Job, Ordered, Stop, ended_without_instances, failure_message};
use crate::log::fact::{JobEnd, JobKey};
use crate::log::reasons::{RetryWhy, StopWhy, TrialEnd};
use crate::log::ruling::{
    AttemptRuling, Booking, GrantOrder, Judged, NoticeOrder, Order, PoolOrder, ReadOrder, Ruling,
    SearchRuling, Verdict,
};
use crate::state::failures::names_its_error;
use crate::state::results::Fruitless;
use crate::state::search::Passage;
use crate::state::{State, Status, latest_start};
use crate::trial::summary::JobSummary;
use crate::trial::summary::summary;
use crate::trial::timing::{Goal, Timing};
use crate::trial::{Purpose, Trial, TrialStage};
use crate::unit::epochs::Epochs;
use crate::unit::ids::{CohortId, Place, RungId, TrialId};
use crate::unit::money::MicroUsd;
use crate::unit::time::Time;

impl State {
    /// Changes the state as `ruling` says.
    pub fn apply(&mut self, definition: &Definition, ruling: &Ruling) {
        match ruling {
            Ruling::Search(SearchRuling::TrialDrawn { trial, configuration, origin }) => {
                self.search.drawn = Some((*trial, configuration.clone(), *origin));
            }
            Ruling::Search(SearchRuling::TrialJudged { .. }) => self.judged(definition, ruling),
            Ruling::Search(SearchRuling::RungReached { .. }) => self.rung_reached(definition, ruling),
            Ruling::Search(SearchRuling::TrialPromoted { .. }) => self.promoted(definition, ruling),
            Ruling::Attempt(AttemptRuling::ResourceRepeated { job, from, .. }) => {
                self.with_live_job(*job, |job| job.repeats_from = Some(*from));
            }
            Ruling::Booking(Booking::ReservationExtended { job, seconds, amount }) => {
                self.extend_reservation(*job, *seconds, *amount);
            }
            Ruling::Booking(Booking::SettledInFull { job, amount }) => {
                self.settled_in_full(definition, *job, *amount);
            }
            Ruling::Booking(Booking::BillBooked { job, seconds, amount }) => {
                self.book_bill(definition, *job, *seconds, *amount);
            }
            Ruling::Booking(Booking::PoolClosed { job, amount, .. }) => self.close_pool(*job, *amount),
            Ruling::Attempt(AttemptRuling::AttemptAwaited { job, not_before, why }) => {
                if crate::planted!(RetryKeepsReservation) {
                    self.money
                        .ledger
                        .reserve(self.job(*job).map_or(MicroUsd::ZERO, |job| job.bill.reservation));
                }
                self.attempt_awaited(definition, *job, *why, *not_before);
            }
            Ruling::Attempt(AttemptRuling::TrialFinished { job, trial, how }) => {
                self.trial_finished(definition, *job, *trial, how);
            }
            Ruling::TuningEnding { why } => self.status = Status::Ending(why.clone()),
            Ruling::Order(order) => self.apply_order(definition, order),
        }
    }

    fn apply_order(&mut self, definition: &Definition, order: &Order) {
        match order {
            Order::Start { .. } => self.start_ordered(definition, order),
            Order::Stop { job, why, .. } => self.stop_ordered(*job, *why),
            Order::Read(ReadOrder::Bill { job }) => {
                let now = self.now;
                if let Some(inquiry) = self.billed_job_mut(*job).and_then(|job| job.bill.inquiry_mut()) {
                    inquiry.order(now);
                }
            }
            Order::Read(ReadOrder::Log { job, streams }) => {
                if let Some(trial) = self.trials.get_mut(job.trial) {
                    trial.read = Asked::Open(*streams);
                }
            }
            Order::Read(ReadOrder::Rest { job, .. }) => {
                let now = self.now;
                self.with_live_job(*job, |job| job.final_log.order(now));
            }
            Order::Pool(PoolOrder::Read { job, n, .. }) => {
                let start = latest_start(self).unwrap_or(Time::MIN);
                self.with_pool(*job, |pool| {
                    (pool.read, pool.reading) = (*n, true);
                    pool.read_at = pool.read_at.max(start);
                });
            }
            Order::Pool(PoolOrder::Release { job }) => self.with_pool(*job, |pool| pool.released = true),
            Order::Read(ReadOrder::Silence { job, since }) => {
                self.with_live_job(*job, |job| job.silence_check = Asked::Open(*since));
            }
            Order::Grant(GrantOrder::Request { n, .. }) => self.money.grants.ask(*n),
            Order::Grant(GrantOrder::Return { n, month, amount, moved_to }) => {
                self.money.grants.order_return(*n, month, *amount, moved_to.as_deref());
                if moved_to.is_none() {
                    self.money.ledger.granted =
                        self.money.ledger.granted.map(|granted| granted.minus(*amount));
                }
            }
            Order::Notice(NoticeOrder::CapReached { percent }) => {
                self.money.cap_published_percent = *percent;
                self.notices.insert(order.action());
            }
            Order::Notice(NoticeOrder::MonthCapReached { month, percent }) => {
                self.money.grants.mark_published(month, *percent);
                self.notices.insert(order.action());
            }
            Order::Notice(NoticeOrder::OverrunSeen) => {
                self.money.overrun_published = true;
                self.notices.insert(order.action());
            }
            Order::Notice(NoticeOrder::CapacityLacking { .. }) => {
                for lack in &mut self.capacity.lacks {
                    lack.published = true;
                }
                self.notices.insert(order.action());
            }
            Order::Notice(NoticeOrder::TuningEnded { why }) => {
                self.status = Status::Ended { why: why.clone(), at: self.now };
            }
        }
    }

    fn attempt_awaited(&mut self, definition: &Definition, key: JobKey, why: RetryWhy, not_before: Time) {
        let failed = self.job(key).filter(|_| why == RetryWhy::ServiceError).map(failure_message);
        let limit = self.job(key).map(|job| job.order.limits.max_runtime_seconds);
        self.remove_job(definition, key);
        let Some(trial) = self.trials.get_mut(key.trial) else { return };
        trial.stage = TrialStage::Awaiting { not_before, failure: failed };
        match why {
            RetryWhy::RuntimeCutTooShort => trial.cut_limit = limit,
            RetryWhy::Capacity | RetryWhy::MaxWait => trial.instance_switches = 0,
            RetryWhy::ServiceError => {
                trial.retries = trial.retries.saturating_add(1);
                trial.instance_switches = 0;
            }
            RetryWhy::NextInstances => {
                trial.instance_switches = trial.instance_switches.saturating_add(1);
                trial.stop_why = None;
            }
            RetryWhy::Quota => trial.stop_why = None,
            RetryWhy::OnDemand => {
                trial.on_demand = true;
                if crate::planted!(OnDemandForgotten) {
                    trial.on_demand = false;
                }
                trial.retries = 0;
                trial.stop_why = None;
            }
        }
    }

    fn with_pool(&mut self, key: JobKey, change: impl FnOnce(&mut Pool)) {
        if let Some(pool) = self.money.pools.iter_mut().find(|pool| pool.job == key) {
            change(pool);
        }
    }

    fn with_live_job(&mut self, key: JobKey, change: impl FnOnce(&mut Job)) {
        if let Some(job) = self.trials.get_mut(key.trial).and_then(|trial| trial.job_mut()) {
            change(job);
        }
    }

    fn judged(&mut self, definition: &Definition, ruling: &Ruling) {
        let Ruling::Search(SearchRuling::TrialJudged {
            trial: number,
            rung,
            level,
            value,
            average,
            verdict,
            ..
        }) = ruling
        else {
            return;
        };
        let Some(trial) = self.trials.get_mut(*number) else { return };
        let Some(place) = trial.place() else { return };
        trial.purpose = Purpose::Search(Place { rung: rung.next(), ..place });
        if let Some(value) = value.filter(|_| definition.plan().is_by_evidence()) {
            trial.passed.push((*level, value));
            let is_last =
                definition.level(place.cohort.bracket, rung.next()) >= definition.largest_resource();
            if is_last {
                let values = std::mem::take(&mut trial.passed);
                self.search.pass(Passage { of: definition.definition_of(*number), values });
            }
        }
        if !verdict.continues {
            trial.stop_why = Some(StopWhy::Rung { rung: *rung });
            trial.judged = Some(judged_at(definition, place, *value, *verdict));
        }
        self.search.with_rung(definition, place, |rung| {
            rung.arrive(definition.direction(), (*number, average.or(*value)));
            rung.add_continued(u32::from(verdict.continues));
        });
    }

    fn stop_ordered(&mut self, key: JobKey, why: StopWhy) {
        let Some(trial) = self.trials.get_mut(key.trial) else { return };
        // A trial with all its epochs is past its last rung. One whose job has to end for its time limit may go on.
        if !matches!(why, StopWhy::ReservationUsed { .. }) {
            trial.stop_why = trial.stop_why.or(Some(why));
        }
        let Some(job) = trial.job_mut() else { return };
        job.stop = Some(Stop { why, accepted: false });
        job.message = job.message.take().or_else(|| why.message());
    }

    /// The trial has reached the level of its rung and waits there.
    fn rung_reached(&mut self, definition: &Definition, ruling: &Ruling) {
        let Ruling::Search(SearchRuling::RungReached { job, trial: number, resource, value, .. }) = ruling
        else {
            return;
        };
        if let Some(key) = job {
            self.remove_job(definition, *key);
        }
        let Some(trial) = self.trials.remove(*number) else { return };
        self.search.remember(definition, &self.results.timings, (*number, &trial), value.is_some());
        let has_value = trial.has_value();
        let Some(place) = trial.place() else { return };
        let size = trial.size(definition);
        self.search.park(*number, place, (trial, size), *resource);
        self.search.with_rung(definition, place, |rung| {
            rung.arrive(definition.direction(), (*number, *value));
            rung.wait(definition.direction(), (*number, *value));
        });
        // A trial with values that diverged at the level has shown that the program works.
        self.count_end(*number, has_value);
    }

    /// The trial is promoted and waits for its next job.
    fn promoted(&mut self, definition: &Definition, ruling: &Ruling) {
        let Ruling::Search(SearchRuling::TrialPromoted { trial: number, value, verdict, .. }) = ruling else {
            return;
        };
        let Some(parked) = self.search.parked.remove(*number) else { return };
        let Some(waiting) = self.search.waiting.remove(number) else { return };
        // The finalist takes the place of no other trial.
        let counts = u32::from(self.finalist != Some(*number));
        self.search.with_rung(definition, waiting.place(), |rung| {
            rung.leave(*number);
            rung.add_continued(counts);
        });
        let judged = judged_at(definition, waiting.place(), *value, *verdict);
        self.trials.insert(*number, Trial::promoted(waiting, &parked, judged, self.now));
    }

    fn start_ordered(&mut self, definition: &Definition, order: &Order) {
        let Order::Start {
            job: key, bracket, configuration, origin, limits, reservation, round, launch, ..
        } = order
        else {
            return;
        };
        let before = self.trials.get(key.trial).map_or(Epochs::ZERO, Trial::resource);
        let ordered = Ordered {
            rung: key.rung,
            attempt: key.attempt,
            at: self.now,
            limits: *limits,
            on_demand: launch.on_demand,
            instances: launch.instances,
            level: launch.resource,
            checkpoint_epochs: definition.level_below(*bracket, key.rung).min(before),
        };
        self.money.ledger.reserve(*reservation);
        // Bills of its own jobs may have freed the money that the month denied.
        self.money.grants.denied = None;
        self.results.launched = self.results.launched.saturating_add(1);
        if launch.refit {
            self.refit = Some(*key);
            // The refit is not a trial of the search and joins no bracket.
            self.search.next_trial = self.search.next_trial.max(key.trial.next());
        }
        let cohort = CohortId { bracket: *bracket, round: *round };
        let purpose = if launch.refit {
            let best = self.search.incumbent.as_ref().map_or(Epochs::ONE, |best| best.resource);
            let of = definition.definition_of(key.trial);
            Purpose::Refit { to: launch.resource.unwrap_or(best), of }
        } else {
            Purpose::Search(Place { cohort, rung: RungId(0) })
        };
        let trial = self.trials.get_or_insert_with(key.trial, || Trial {
            by_model: matches!(origin, Some(Origin::Model { .. })),
            ..Trial::new(purpose, configuration, self.now)
        });
        if trial.attempts == 0 && !launch.refit {
            self.results.count_trial(definition, trial.size(definition));
        }
        trial.attempts = key.attempt;
        trial.last_attempt_rung = key.rung;
        trial.stage = TrialStage::Running(Job::new(ordered, *reservation));
        if !launch.refit && self.search.is_new(definition, key.trial) {
            self.search.next_trial = self.search.next_trial.max(key.trial.next());
            self.search.drawn = None;
            if let Some(joined) = self.search.joined.get_mut(bracket.index()) {
                *joined = joined.saturating_add(1);
            }
            if let Some(cohort) = self.search.cohort_mut(definition, cohort) {
                cohort.joined = cohort.joined.saturating_add(1);
            }
        }
    }

    /// Removes the concluded job from the state and adds it to the counters, the timings and the best job.
    fn remove_job(&mut self, definition: &Definition, key: JobKey) {
        let Some(trial) = self.trials.get_mut(key.trial) else { return };
        let Some(job) = trial.take_job(self.now) else { return };
        if !job.is_closed() && crate::planted!(ArrivalFreesMoney) {
            self.money.ledger.release(job.bill.reservation);
        } else {
            self.money.billing.extend(job.awaiting_final_bill(key.trial));
        }
        if job.has_instances() {
            self.capacity.wait_from(self.now.max(job.instances_at().unwrap_or(self.now)));
        }
        let done = JobSummary { concluded: true, ..summary(definition, key, trial, &job) };
        let without_instances = ended_without_instances(&job);
        let timing = Timing::of(definition, trial, &job);
        let goal = Goal::of_job(definition, &job);
        trial.epoch_ms = trial.epoch_ms.max(timing.epoch);
        trial.note_whole(definition, &job);
        let size = definition.job.size(job.order.instances);
        let size = definition.job.has_sizes().then_some(size);
        let are_tails_apart = definition.has_definitions();
        self.results.timings.record(goal, size, are_tails_apart, timing);
        // A launch freed by the refit is not given to the search.
        let uncounted = job.is_void() || without_instances;
        if uncounted && trial.refit().is_none() {
            self.results.launched = self.results.launched.saturating_sub(1);
        }
        self.capacity.refusals =
            if job.refused().is_some() { self.capacity.refusals.saturating_add(1) } else { 0 };
        if let Some(message) = job.message.as_deref().or(job.refused()) {
            self.results.last_failure = Some(message.to_owned());
        }
        if has_failed(&job) {
            let message = job.refused().map_or_else(|| failure_message(&job), str::to_owned);
            let named = job.message.as_deref().is_some_and(names_its_error);
            let by_program = job.end() == Some(JobEnd::AlgorithmError) && named;
            self.results.failures.add(key, &message, by_program);
        }
        if job.is_cancelled() || without_instances {
            return;
        }
        self.results.counters.count(job.end());
        // A failed job has left no model.
        let mut counts = job.end().is_some_and(JobEnd::counts);
        if crate::planted!(FailedJobCounts) {
            counts = true;
        }
        self.results.update_best(definition, done, counts);
        if let Some(trial) = self.trials.get(key.trial).filter(|_| counts) {
            self.results.front.add(definition, key, trial);
            self.search.note_leader(definition, key.trial, trial);
        }
    }

    fn trial_finished(
        &mut self,
        definition: &Definition,
        job: Option<JobKey>,
        number: TrialId,
        how: &TrialEnd,
    ) {
        let failed_by_program = job.and_then(|key| self.job(key)?.end()) == Some(JobEnd::AlgorithmError);
        if let Some(key) = job {
            self.remove_job(definition, key);
        }
        if self.finalist == Some(number) && !ran_to_its_end(how) {
            self.finalist = None;
        }
        if let Some(waiting) = self.search.waiting.remove(&number) {
            self.search.parked.remove(number);
            let forfeits = *how == TrialEnd::Stopped(StopWhy::OutOfReach);
            self.search.with_rung(definition, waiting.place(), |rung| {
                rung.leave(number);
                if forfeits {
                    rung.forfeit(definition.direction(), number);
                }
            });
            self.search.close_cohort(definition, &self.trials, waiting.cohort());
            return;
        }
        let Some(trial) = self.trials.remove(number) else { return };
        if definition.promotes().is_some() {
            // A trial that failed on its way to a rung keeps its place there, without a value, so that every rung
            // closes.
            let mut active = self.status == Status::Active;
            if crate::planted!(ForgetFailedPlace) {
                active = false;
            }
            if let Some(place) = trial.place() {
                if active && place.rung < definition.last_rung(place.cohort.bracket) {
                    self.search.with_rung(definition, place, |rung| {
                        rung.arrive(definition.direction(), (number, None));
                    });
                }
                self.search.close_cohort(definition, &self.trials, place.cohort);
            }
        }
        // The refit is not a trial of the search.
        if trial.refit().is_some() {
            return;
        }
        let has_value = trial.has_value();
        let lesson = lesson(how, failed_by_program, &trial);
        if lesson != Lesson::Nothing {
            let counts = lesson == Lesson::Values;
            self.search.remember(definition, &self.results.timings, (number, &trial), counts);
        }
        // A trial that was not continued before its first epoch, or that a user stopped, shows nothing about the search.
        let shows_nothing = match how {
            TrialEnd::NeverStarted
            | TrialEnd::Stopped(StopWhy::Requested | StopWhy::TargetReached { .. }) => true,
            TrialEnd::Stopped(StopWhy::TuningEnding) => trial.curve.is_empty(),
            TrialEnd::Completed
            | TrialEnd::Stopped(_)
            | TrialEnd::StoppedOutside
            | TrialEnd::MaxRuntime
            | TrialEnd::Failed(_) => false,
        };
        if !shows_nothing {
            self.count_end(number, has_value);
        }
    }

    /// Counts the end of a trial, or its arrival at a rung.
    fn count_end(&mut self, number: TrialId, has_value: bool) {
        let improved = self.search.incumbent.as_ref().is_some_and(|incumbent| incumbent.trial == number);
        if !improved {
            self.search.since_improved = self.search.since_improved.saturating_add(1);
        }
        if !has_value {
            let trials = self.results.fruitless.trials.saturating_add(1);
            self.results.fruitless = Fruitless { trials, at: self.now };
        }
    }
}

fn judged_at(definition: &Definition, place: Place, value: Option<f64>, verdict: Verdict) -> Judged {
    let (bracket, rung) = (place.cohort.bracket, place.rung);
    Judged { bracket, rung, level: definition.level(bracket, rung), value, verdict }
}

/// Returns whether the finalist trained to its end, or as long as its limit allows. Otherwise the search goes on.
fn ran_to_its_end(how: &TrialEnd) -> bool {
    matches!(how, TrialEnd::Completed | TrialEnd::MaxRuntime | TrialEnd::Stopped(StopWhy::MaxResource))
}

/// Returns whether a concluded job was refused, or ended by a failure of its program or of the service. A lack of capacity
/// is no failure.
fn has_failed(job: &Job) -> bool {
    let ended = match job.end() {
        Some(JobEnd::AlgorithmError | JobEnd::ServiceError) => true,
        // Its end and its bill never came.
        None => !job.is_cancelled(),
        Some(
            JobEnd::Completed
            | JobEnd::Stopped
            | JobEnd::MaxRuntime
            | JobEnd::MaxWait
            | JobEnd::CapacityError,
        ) => false,
    };
    job.refused().is_some() || (ended && job.trial_stop().is_none())
}
