//! The rules of the reference: whether a ruling is allowed, and whether a ruling is due after a delivery. The rules are
//! conditions without an order of evaluation.
//!
//! Must never call the decider.

use tuning::log::fact::{JobEnd, JobKey};
use tuning::log::reasons::{EndReason, RetryWhy, StopWhy, TrialEnd};
use tuning::log::ruling::{AttemptRuling, Booking, NoticeOrder, Order, ReadOrder, Ruling, SearchRuling};

use super::{Entry, HOUR, Phase, Reference, SECOND, Trial};

impl Reference {
    fn can_start(&self, now: i64) -> bool {
        let limits = &self.definition.limits;
        self.phase == Phase::Active
            && self.launched() < usize::try_from(limits.max_jobs).unwrap()
            && self.running().len() < usize::try_from(limits.max_parallel).unwrap()
            && self.hold <= now
            && !self.waits_for_capacity(now)
            && (self.running().is_empty() || !self.is_deferred_long(now))
            && self.affords()
    }

    /// Returns whether a new trial can start: the program may work, and no trial has reached the target.
    fn can_start_new(&self, now: i64) -> bool {
        self.can_start(now) && !self.is_doubtful() && self.finalist.is_none()
    }

    /// Returns whether a trial that waits for another attempt can start.
    fn can_start_again(&self, number: u32, now: i64) -> bool {
        self.can_start(now) && self.finalist.is_none_or(|finalist| finalist == number)
    }

    /// Returns whether too many trials ended without a value, or too many starts were refused.
    fn is_doubtful(&self) -> bool {
        self.refusals >= 5 || self.fruitless >= if self.logged { 20 } else { 6 }
    }

    /// Returns whether a trial is live and no quota blocks it.
    fn is_any_unblocked(&self) -> bool {
        self.live().iter().any(|number| {
            let mut open =
                self.entries.iter().filter(|entry| entry.job.trial.0 == *number && !entry.concluded);
            !open.any(|entry| entry.quota_exceeded && !entry.exists)
        })
    }

    /// Returns whether starts were deferred for ten minutes while no job ran.
    pub(super) fn is_deferred_long(&self, now: i64) -> bool {
        self.held.is_some_and(|since| since + 600_000 <= now)
    }

    /// Returns whether starts wait: for the next probe, or for the instances of a job.
    fn waits_for_capacity(&self, now: i64) -> bool {
        let probing = self.entries.iter().any(|entry| entry.is_running() && !entry.has_instances());
        self.lack.is_some_and(|lack| lack.until > now || probing)
    }

    /// Returns since when no job has had instances.
    fn without_instances(&self) -> Option<i64> {
        let lack = self.lack.filter(|_| !self.entries.iter().any(Entry::has_instances))?;
        Some(lack.since)
    }

    fn affords(&self) -> bool {
        self.definition.cap.is_none_or(|cap| self.spent() + self.reserved() + self.worst_case() <= cap.0)
    }

    /// Returns the highest reached level of the cap in percent: 100 when the rest pays no further job.
    fn cap_level(&self) -> u32 {
        let Some(cap) = self.definition.cap else { return 0 };
        let spent = self.spent();
        let spent_at_least = |percent: u64| spent * 100 >= cap.0 * percent;
        match () {
            () if spent + self.worst_case() > cap.0 => 100,
            () if spent_at_least(80) => 80,
            () if spent_at_least(50) => 50,
            () => 0,
        }
    }

    /// Returns whether a running job must be stopped.
    fn must_stop(&self, job: JobKey) -> bool {
        let trial = &self.trials[job.trial.index()];
        let last = trial.resource() >= self.max_resource;
        let ending = match self.phase {
            Phase::Ending(why) => !last || why == "Stopped",
            Phase::Active | Phase::Ended(_) => false,
        };
        let diverged = !last && self.has_diverged(trial);
        let beaten = self.finalist.is_some_and(|finalist| finalist != job.trial.0) && !last;
        let beaten = beaten && self.phase == Phase::Active;
        trial.out || trial.resource() > self.max_resource || ending || diverged || beaten
    }

    /// Returns whether a running job may be stopped: once the trial has all its epochs, after some time.
    fn may_stop(&self, job: JobKey) -> bool {
        self.must_stop(job) || self.trials[job.trial.index()].resource() >= self.max_resource
    }

    /// Returns whether the last epochs of a trial have no value.
    pub(super) fn has_diverged(&self, trial: &Trial) -> bool {
        let most = usize::try_from(self.definition.settings.max_diverged_epochs).unwrap();
        let last: Vec<_> = trial.curve.values().rev().take(most).collect();
        most > 0 && last.len() == most && last.iter().all(|value| value.is_none())
    }

    /// Returns whether an ended job must be followed by another attempt.
    fn must_retry(&self, entry: &Entry) -> bool {
        let trial = &self.trials[entry.job.trial.index()];
        let may_retry = match entry.end {
            Some(JobEnd::CapacityError | JobEnd::MaxWait) => true,
            Some(JobEnd::ServiceError) => trial.retries < self.definition.settings.max_interruptions,
            _ => false,
        };
        self.phase == Phase::Active
            && !entry.void
            && may_retry
            && !trial.out
            && !entry.stop_ordered
            && !self.has_diverged(trial)
            && trial.resource() < self.max_resource
    }

    /// Returns whether a trial must wait for another attempt because its job was cancelled for a quota.
    fn must_wait_for_quota(&self, entry: &Entry) -> bool {
        let trial = &self.trials[entry.job.trial.index()];
        let ended_by_itself = matches!(entry.end, None | Some(JobEnd::Completed | JobEnd::AlgorithmError));
        let stopped = !ended_by_itself && trial.resource() < self.max_resource;
        self.phase == Phase::Active && entry.stopped_for_quota && !entry.refused && (entry.void || stopped)
    }

    /// Returns whether a waiting trial can get no further attempt.
    fn has_no_further_attempt(&self, trial: &Trial) -> bool {
        trial.waits_until.is_some()
            && !trial.finished
            && (trial.out
                || trial.resource() >= self.max_resource
                || self.phase != Phase::Active
                || self.launched() >= usize::try_from(self.definition.limits.max_jobs).unwrap()
                || (!self.affords() && self.entries.iter().all(|entry| entry.concluded && entry.is_closed())))
    }

    fn is_overdue(&self, entry: &Entry) -> bool {
        let since = match (entry.end, entry.exists) {
            (Some(_), _) => entry.awaited,
            (None, _) => entry.missed.filter(|since| *since >= entry.must_end()),
        };
        !entry.is_closed() && since.is_some_and(|since| since + HOUR <= self.clock)
    }

    /// Returns the criterion that ends the tuning now.
    fn criterion(&self, now: i64) -> Option<&'static str> {
        let limits = &self.definition.limits;
        let is_finished = |trial: u32| self.trials[usize::try_from(trial).unwrap()].finished;
        let not_improving = limits.not_improving.filter(|_| self.finalist.is_none());
        let time_up =
            |seconds: u64| now >= self.definition.created.0 + i64::try_from(seconds).unwrap() * 1_000;
        if self.phase != Phase::Active {
            None
        } else if (self.is_doubtful() && !self.is_any_unblocked())
            || self.quota_exceeded.is_some_and(|since| since + 24 * HOUR <= self.clock)
        {
            Some("Failed")
        } else if self.without_instances().is_some_and(|since| since + 24 * HOUR <= self.clock) {
            Some("NoCapacity")
        } else if self.finalist.is_some_and(is_finished) {
            Some("Target")
        } else if not_improving.is_some_and(|most| self.since_improved >= most) {
            Some("NotImproving")
        } else {
            limits.max_runtime_seconds.is_some_and(time_up).then_some("MaxRuntime")
        }
    }

    /// Returns the end that is due when no trial is left.
    fn end(&self, now: i64) -> Option<&'static str> {
        let is_open = self.entries.iter().any(|entry| !entry.is_final());
        let why = match self.phase {
            _ if !self.live().is_empty() || is_open || self.can_start_new(now) => return None,
            Phase::Ended(_) => return None,
            Phase::Ending(why) => why,
            Phase::Active if self.launched() >= usize::try_from(self.definition.limits.max_jobs).unwrap() => {
                "MaxJobs"
            }
            Phase::Active if self.affords() && (self.hold > now || self.waits_for_capacity(now)) => {
                return None;
            }
            Phase::Active => "CostCap",
        };
        let no_value = self.best.is_none() && self.launched() > 0;
        let fails = no_value && ["MaxJobs", "CostCap", "MaxRuntime"].contains(&why);
        Some(if fails { "Failed" } else { why })
    }

    /// Applies a ruling. Panics if the rules do not allow it.
    #[track_caller]
    pub(crate) fn apply(&mut self, ruling: &Ruling, now: i64) {
        match ruling {
            Ruling::Search(SearchRuling::TrialJudged {
                trial,
                bracket,
                rung,
                level,
                resource,
                value,
                average,
                verdict,
            }) => {
                let place = (bracket.index(), rung.index());
                assert_eq!(self.due(trial.0), Some((resource.0, *value, *average)), "{ruling:?}");
                assert_eq!(self.table[place.0][place.1].1, level.0);
                self.judged(trial.0, place, (*value, *average), *verdict);
            }
            Ruling::Booking(Booking::SettledInFull { job, amount }) => self.settled_in_full(*job, amount.0),
            Ruling::Booking(Booking::BillBooked { job, seconds, amount }) => {
                self.bill_booked(*job, *seconds, amount.0);
            }
            Ruling::Attempt(AttemptRuling::AttemptAwaited { job, why, not_before }) => {
                self.retried(*job, *why, not_before.0, now);
            }
            Ruling::Attempt(AttemptRuling::TrialFinished { job, trial, how }) => {
                self.finished(*job, trial.0, how, now);
            }
            Ruling::TuningEnding { why } => {
                assert_eq!(self.criterion(now), Some(why.word()), "{why:?}");
                self.phase = Phase::Ending(why.word());
            }
            // These tunings have one cluster size, promote nothing, capture epochs, set no silence limit, keep no pools and have no monthly cap. No
            // fact shows since when a job runs.
            Ruling::Search(
                SearchRuling::TrialDrawn { .. }
                | SearchRuling::RungReached { .. }
                | SearchRuling::TrialPromoted { .. },
            )
            | Ruling::Attempt(AttemptRuling::ResourceRepeated { .. })
            | Ruling::Booking(Booking::ReservationExtended { .. } | Booking::PoolClosed { .. }) => {
                panic!("unexpected: {ruling:?}")
            }
            Ruling::Order(order) => self.apply_order(ruling, order, now),
        }
    }

    #[track_caller]
    fn apply_order(&mut self, ruling: &Ruling, order: &Order, now: i64) {
        match order {
            Order::Start { job, bracket, reservation, .. } => {
                let is_new = job.trial.index() == self.trials.len();
                let allowed =
                    if is_new { self.can_start_new(now) } else { self.can_start_again(job.trial.0, now) };
                assert!(allowed, "{ruling:?}");
                assert_eq!(reservation.0, self.worst_case());
                self.started(*job, bracket.index(), now);
            }
            Order::Stop { job, why, .. } => {
                let quota = *why == StopWhy::Quota;
                let due = if quota { self.must_cancel(*job, now) } else { self.may_stop(*job) };
                assert!(self.may_run().contains(job) && due, "{ruling:?}");
                self.entry(*job).unwrap().stopped_for_quota = quota;
                self.trials[job.trial.index()].out = true;
                self.entry(*job).unwrap().stop_ordered = true;
            }
            Order::Read(ReadOrder::Bill { job }) => {
                let entry = self.entry(*job).unwrap();
                assert!(
                    entry.end.is_some() && !entry.is_closed() && entry.bill_ordered.is_none(),
                    "{ruling:?}"
                );
                entry.bill_ordered = Some(now);
            }
            Order::Read(ReadOrder::Rest { job, .. }) => {
                assert!(self.entry(*job).unwrap().end.is_some(), "{ruling:?}");
            }
            Order::Notice(NoticeOrder::OverrunSeen) => {
                assert!(self.overrun() && !self.overrun_published);
                self.overrun_published = true;
            }
            Order::Notice(NoticeOrder::CapacityLacking { since }) => {
                self.lack_published(since.0, now);
            }
            Order::Notice(NoticeOrder::TuningEnded { why }) => {
                assert_eq!(self.end(now), Some(EndReason::word(why)));
                self.phase = Phase::Ended(why.word());
            }
            Order::Notice(NoticeOrder::CapReached { percent }) => {
                assert!(*percent == self.cap_level() && *percent > self.cap_published_percent, "{ruling:?}");
                self.cap_published_percent = *percent;
            }
            // As above.
            Order::Read(ReadOrder::Log { .. } | ReadOrder::Silence { .. })
            | Order::Pool(_)
            | Order::Grant(_)
            | Order::Notice(NoticeOrder::MonthCapReached { .. }) => panic!("unexpected: {ruling:?}"),
        }
    }

    #[track_caller]
    fn settled_in_full(&mut self, job: JobKey, amount: u64) {
        let worst_case = self.worst_case();
        let entry = self.entries.iter().find(|entry| entry.job == job).unwrap();
        assert!(self.is_overdue(entry) && amount == worst_case, "{amount}: {entry:?}");
        let entry = self.entries.iter_mut().find(|entry| entry.job == job).unwrap();
        (entry.bill, entry.in_full) = (Some(amount), true);
    }

    #[track_caller]
    fn bill_booked(&mut self, job: JobKey, seconds: u64, amount: u64) {
        let entry = self.entries.iter_mut().find(|entry| entry.job == job).unwrap();
        let due = entry.concluded && entry.has_unbooked() && entry.shown == Some(seconds);
        assert!(due && amount == seconds * SECOND, "{seconds} s, {amount}: {entry:?}");
        let before = entry.bill.replace(amount);
        self.risen += before.map_or(0, |before| amount - before);
    }

    #[track_caller]
    fn lack_published(&mut self, since: i64, now: i64) {
        assert!(self.phase == Phase::Active && since + 600_000 <= now, "{since}");
        assert_eq!(self.without_instances(), Some(since));
        let twice = std::mem::replace(&mut self.lack.as_mut().unwrap().published, true);
        assert!(!twice, "{since}");
    }

    /// Concludes a job whose trial waits for another attempt.
    #[track_caller]
    fn retried(&mut self, job: JobKey, why: RetryWhy, not_before: i64, now: i64) {
        let entry = self.conclude(job, now);
        let trial = job.trial.index();
        if why == RetryWhy::Quota {
            assert!(self.must_wait_for_quota(&entry) && not_before == now, "{entry:?}");
            self.trials[trial].out = false;
        } else {
            assert!(self.must_retry(&entry) && why != RetryWhy::RuntimeCutTooShort, "{why:?}: {entry:?}");
            if why == RetryWhy::ServiceError {
                assert_eq!(not_before, now + 30_000 * 2_i64.pow(self.trials[trial].retries));
                self.trials[trial].retries += 1;
            } else {
                assert_eq!(not_before, self.lack.map_or(now, |lack| lack.until.max(now)));
            }
        }
        self.trials[trial].waits_until = Some(not_before);
    }

    #[track_caller]
    fn started(&mut self, job: JobKey, bracket: usize, now: i64) {
        let number = job.trial.index();
        if number == self.trials.len() {
            // The bracket with the smallest share of its plan is next. The first of equal brackets wins.
            let joined = |index: usize| self.trials.iter().filter(|trial| trial.bracket == index).count() + 1;
            let plan = |index: usize| usize::try_from(self.table[index][0].0).unwrap();
            let smallest =
                (0..self.table.len()).min_by(|a, b| (joined(*a) * plan(*b)).cmp(&(joined(*b) * plan(*a))));
            assert_eq!(Some(bracket), smallest, "trial {number}");
            self.trials.push(Trial { bracket, ..Trial::default() });
        }
        let trial = &mut self.trials[number];
        assert!(job.attempt == trial.attempts + 1 && job.rung.0 == 0 && bracket == trial.bracket, "{job}");
        let waited = trial.waits_until.take();
        assert!(job.attempt == 1 || waited.is_some_and(|until| until <= now), "{job}");
        assert!(!trial.finished && !trial.out, "{job}");
        trial.attempts = job.attempt;
        self.entries.push(Entry {
            job,
            bill: None,
            shown: None,
            confirmed: None,
            in_full: false,
            void: false,
            refused: false,
            exists: false,
            end: None,
            ordered: now,
            with_instances: Vec::new(),
            interruptions: Vec::new(),
            stop_ordered: false,
            bill_ordered: None,
            awaited: None,
            last_sign: now,
            missed: None,
            deferred: None,
            quota_exceeded: false,
            stopped_for_quota: false,
            concluded: false,
        });
    }

    #[track_caller]
    fn conclude(&mut self, job: JobKey, now: i64) -> Entry {
        let entry = self.entry(job).unwrap();
        assert!(entry.is_closed(), "{entry:?}");
        let had_instances = entry.has_instances();
        entry.concluded = true;
        let entry = entry.clone();
        if let Some(lack) = self.lack.as_mut().filter(|_| had_instances) {
            lack.since = lack.since.max(now).max(*entry.with_instances.iter().max().unwrap());
        }
        self.refusals = if entry.refused { self.refusals + 1 } else { 0 };
        entry
    }

    #[track_caller]
    fn finished(&mut self, job: Option<JobKey>, number: u32, how: &TrialEnd, now: i64) {
        let index = usize::try_from(number).unwrap();
        if let Some(job) = job {
            let before = self.entry(job).unwrap().clone();
            assert!(!self.must_retry(&before) && !self.must_wait_for_quota(&before), "{before:?}");
            let entry = self.conclude(job, now);
            let expected = match entry.end {
                _ if entry.refused => matches!(how, TrialEnd::Failed(_)),
                _ if entry.void => *how == TrialEnd::NeverStarted,
                Some(JobEnd::Completed) => *how == TrialEnd::Completed,
                _ if entry.stop_ordered => matches!(how, TrialEnd::Stopped(_)),
                Some(JobEnd::Stopped) => *how == TrialEnd::StoppedOutside,
                Some(JobEnd::MaxRuntime) => *how == TrialEnd::MaxRuntime,
                Some(JobEnd::CapacityError | JobEnd::MaxWait) => {
                    matches!(how, TrialEnd::Stopped(StopWhy::TuningEnding | StopWhy::Diverged { .. }))
                }
                _ => matches!(how, TrialEnd::Failed(_)),
            };
            assert!(expected, "{how:?}: {entry:?}");
        } else {
            assert!(self.has_no_further_attempt(&self.trials[index]), "trial {number}: {how:?}");
        }
        let trial = &mut self.trials[index];
        assert!(!trial.finished, "trial {number} ended twice");
        trial.finished = true;
        let ran_to_its_end =
            [TrialEnd::Completed, TrialEnd::MaxRuntime, TrialEnd::Stopped(StopWhy::MaxResource)];
        if self.finalist == Some(number) && !ran_to_its_end.contains(how) {
            self.finalist = None;
        }
        let dropped = *how == TrialEnd::Stopped(StopWhy::TuningEnding) && trial.curve.is_empty();
        let beaten = matches!(how, TrialEnd::Stopped(StopWhy::TargetReached { .. }));
        if *how != TrialEnd::NeverStarted && !dropped && !beaten {
            self.fruitless += u32::from(trial.curve.values().all(Option::is_none));
            if self.best.is_none_or(|(_, best)| best != number) {
                self.since_improved += 1;
            }
        }
    }

    /// Checks that no ruling is due after a delivery.
    #[track_caller]
    pub(crate) fn check_nothing_is_due(&self, now: i64) {
        if !self.submitted || matches!(self.phase, Phase::Ended(_)) {
            return;
        }
        assert_eq!(self.criterion(now), None, "the tuning must end by this criterion");
        assert_eq!(self.end(now), None, "the tuning must be over");
        assert!(!self.overrun() || self.overrun_published, "no notice of the overrun was published");
        let unpublished = self.lack.is_some_and(|lack| !lack.published);
        let long = self.without_instances().is_some_and(|since| since + 600_000 <= now);
        let active = self.phase == Phase::Active;
        assert!(!(active && unpublished && long), "no notice of the lack of capacity was published");
        assert!(self.cap_level() <= self.cap_published_percent, "no notice of the cap level was published");
        for entry in self.entries.iter().filter(|entry| entry.concluded) {
            assert!(!entry.has_unbooked(), "a bill is not booked: {entry:?}");
            assert!(!self.is_overdue(entry), "overdue: {entry:?}");
        }
        for entry in self.entries.iter().filter(|entry| !entry.concluded) {
            assert!(!entry.is_closed(), "a closed job is not concluded: {entry:?}");
            assert!(entry.end.is_none() || entry.bill_ordered.is_some(), "no bill was ordered: {entry:?}");
            assert!(!self.is_overdue(entry), "overdue: {entry:?}");
            assert!(
                !(entry.is_running()
                    && !entry.stop_ordered
                    && (self.must_stop(entry.job) || self.must_cancel(entry.job, now))),
                "no stop was ordered: {entry:?}"
            );
        }
        for (number, trial) in (0..).zip(&self.trials).filter(|(_, trial)| !trial.finished) {
            assert_eq!(self.due(number), None, "trial {number} is not judged");
            assert!(
                !self.has_no_further_attempt(trial),
                "trial {number} waits although it gets no further attempt"
            );
            let waited = trial.waits_until.is_some_and(|until| until <= now);
            let must_start = waited && self.can_start_again(number, now);
            assert!(!must_start, "trial {number} must start again");
        }
        assert!(!self.can_start_new(now), "a further job must start");
    }
}
