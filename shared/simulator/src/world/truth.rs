//! Checks that need data of both sides: the real state of the training service, and the table as the system wrote it.

use port_tests::memory::Change;
use serde_json::Value;
use tuning::log::reasons::{EndReason, StopWhy, TrialEnd};
use tuning::log::ruling::{AttemptRuling, Booking, NoticeOrder, Order, Ruling, SearchRuling};
use wire::stored::{self, ActionRow, ActionStatus};

use super::World;
use super::ports::now;
use super::training::Job;
use crate::check::can_sweeps_fail;
use crate::fault::Kind;
use use_cases::perform::{CAPACITY_ALARM, COST_ALARM, TRIAL_DECISION, TUNING_STATE_CHANGE};
use use_cases::ports::table::Table;

impl World {
    /// Returns the running jobs of a tuning, without those that were settled in full: the check of that ruling reports
    /// them, unless it excuses them.
    fn running(&self, id: &str) -> impl Iterator<Item = &Job> {
        let running = self.training.of(id).filter(|job| !job.is_ended());
        running.filter(move |job| !self.check.is_settled_in_full(id, job.key))
    }

    /// Checks a job that was just created.
    pub(crate) fn check_created(&mut self, index: usize) {
        let job = &self.training.jobs[index];
        let (id, key, name) = (job.id.clone(), job.key, job.now.name.clone());
        let case = &self.cases[job.case];
        let (cap, max_parallel) = self.check.in_force(&id, self.training.of(&id).map(|job| job.key));
        let alive: Vec<_> = self.running(&id).collect();
        let mut wrong = Vec::new();
        if alive.len() > usize::try_from(max_parallel).unwrap_or(usize::MAX) {
            wrong.push(format!(
                "MaxParallel: {} jobs run in parallel after the creation of {name}, \
                {max_parallel} are allowed",
                alive.len()
            ));
        }
        if alive.iter().filter(|other| other.key.trial == key.trial).count() > 1 {
            wrong.push(format!(
                "P2: two jobs of trial {} run in parallel after the creation of {name}",
                key.trial
            ));
        }
        // What the service billed above a reservation may be unknown yet.
        let above = self.billed_above(&id);
        if let Some(cap) = cap {
            let jobs =
                self.training.of(&id).filter(|job| !(job.deleted && self.check.is_released(&id, job.key)));
            let worst: u64 = jobs.map(|job| case.cost(job.choice, job.charged_seconds())).sum();
            let worst = worst + self.kept_cost(&id, |_| true);
            if worst > cap + above {
                wrong.push(format!(
                    "P1: the bills and worst cases of all jobs including {name} are \
                    {worst}, above the cap {cap}"
                ));
            }
        }
        let row = now(self.table.get(&stored::action_key(&id, &format!("start-{key}"))));
        match row.ok().flatten().as_ref().map(ActionRow::read) {
            // A late create can arrive while its row waits for the next attempt.
            Some(Ok(row)) if matches!(row.status, ActionStatus::Performing | ActionStatus::Pending) => {}
            Some(Ok(row)) => {
                wrong.push(format!("P2: job {name} was created while its row was {:?}", row.status));
            }
            Some(Err(_)) | None => {
                wrong.push(format!("P7: job {name} was created without a row in the table"));
            }
        }
        wrong.extend(self.wrong_requests(index));
        wrong.extend(self.wrong_launch(index));
        for message in wrong {
            self.check.violation(self.now, &message);
        }
        self.check.created(self.now, &id, key);
    }

    /// Checks the facts and rulings of committed steps: judged values are those that the program logged, and a job
    /// that never started does not exist.
    pub(crate) fn check_against_truth(&mut self, changes: &[Change]) {
        for change in changes {
            let Some(id) = stored::id_of(&change.key, "T#") else { continue };
            let Some(Ok(step)) =
                change.new.as_ref().filter(|_| change.key.sk.starts_with("STEP#")).map(stored::step)
            else {
                continue;
            };
            for recorded in &step.facts {
                if let tuning::log::fact::Fact::JobNeverStarted { job }
                | tuning::log::fact::Fact::StartRefused { job, .. } = &recorded.fact
                    && self.training.of(id).any(|other| other.key == *job && !other.deleted)
                {
                    self.check.violation(
                        self.now,
                        &format!("P1: job {job} was recorded as never started, but it exists"),
                    );
                }
            }
            for ruling in &step.rulings {
                self.check_ruling(id, ruling);
                let wrong = self.wrong_promotion_ruling(id, ruling).or_else(|| self.wrong_refit(id, ruling));
                let wrong = wrong.or_else(|| self.wrong_interruption_stop(id, ruling));
                if let Some(wrong) = wrong {
                    self.check.violation(self.now, &wrong);
                }
            }
        }
    }

    fn check_ruling(&mut self, id: &str, ruling: &Ruling) {
        match ruling {
            Ruling::Search(SearchRuling::TrialJudged { trial, level, resource, value, .. }) => {
                self.check_judged(id, *trial, level.0, (resource.0, *value));
            }
            Ruling::Booking(Booking::SettledInFull { job, .. }) => {
                let lasts = |other: &Job| other.pended_ms > 0 || other.fate.is_unbounded();
                let excused = |other: &Job| lasts(other) && can_sweeps_fail(&self.plan);
                let mut all = self.training.of(id);
                if all.any(|other| other.key == *job && !other.is_ended() && !excused(other)) {
                    self.check.violation(
                        self.now,
                        &format!("P7: job {job} was settled in full while it was running"),
                    );
                }
            }
            Ruling::Order(Order::Notice(NoticeOrder::TuningEnded { why })) => {
                self.check_ended_tuning(id);
                if matches!(why, EndReason::Failed(_)) {
                    self.check_nothing_succeeded(id);
                }
            }
            Ruling::TuningEnding { why } => self.check_ending(id, why),
            Ruling::Search(SearchRuling::TrialPromoted { trial, reached_target: true, .. }) => {
                self.check_finalist(id, *trial);
            }
            Ruling::Attempt(AttemptRuling::TrialFinished { trial, how, .. })
                if *how == TrialEnd::Stopped(StopWhy::OutOfReach) =>
            {
                self.check_out_of_reach(id, *trial);
            }
            Ruling::Order(Order::Stop { job, why: StopWhy::TargetReached { trial }, .. }) => {
                self.check_stop_for_target(id, *job, *trial);
            }
            Ruling::Order(Order::Stop { job, why: StopWhy::NoObjective { seconds }, .. }) => {
                self.check_silence(id, *job, *seconds);
            }
            Ruling::Order(Order::Stop {
                job,
                why: why @ (StopWhy::MaxResource | StopWhy::TuningEnding),
                ..
            }) => {
                self.check_last_epoch(id, *job, *why);
            }
            Ruling::Order(Order::Stop { job, why: StopWhy::Diverged { epochs }, .. }) => {
                self.check_diverged(id, *job, *epochs);
            }
            // Checked in `promoted.rs`, or only by the books.
            Ruling::Search(
                SearchRuling::TrialDrawn { .. }
                | SearchRuling::RungReached { .. }
                | SearchRuling::TrialPromoted { .. },
            )
            | Ruling::Attempt(_)
            | Ruling::Booking(
                Booking::ReservationExtended { .. } | Booking::BillBooked { .. } | Booking::PoolClosed { .. },
            )
            | Ruling::Order(
                Order::Start { .. }
                | Order::Stop { .. }
                | Order::Read(_)
                | Order::Notice(
                    NoticeOrder::OverrunSeen
                    | NoticeOrder::CapacityLacking { .. }
                    | NoticeOrder::CapReached { .. }
                    | NoticeOrder::MonthCapReached { .. },
                )
                | Order::Pool(_)
                | Order::Grant(_),
            ) => {}
        }
    }

    /// Checks that an ended tuning has no running job and no kept instances, and that it booked the bills shown to it.
    fn check_ended_tuning(&mut self, id: &str) {
        let jobs = self.training.jobs.iter().enumerate();
        // A job that was settled in full has paid for the instances that it may keep, whenever it ends.
        let is_open = |key| self.check.booked_seconds(id, key).is_some();
        let kept = jobs.filter(|(index, job)| job.id == id && self.training.keeps(*index, self.now));
        let kept = kept.filter(|(_, job)| is_open(job.key));
        let kept: Vec<_> = kept.map(|(_, job)| job.key.to_string()).collect();
        if !kept.is_empty() {
            self.check.violation(
                self.now,
                &format!("P1: the tuning ended while instances of {kept:?} are still kept"),
            );
        }
        // A lagging description can hide a bill that another one showed.
        let lags = self.faults.rate(Kind::DescribeLag) > 0.0;
        // A bill that rose can no longer be read once the job is deleted; a read of its warm pool may have shown it.
        let rises = self.faults.rate(Kind::BillRises) > 0.0;
        let missed = self.training.of(id).find(|job| {
            let booked = self.check.booked_seconds(id, job.key);
            let readable = !(lags || rises && job.deleted);
            readable && booked.is_some() && booked < job.shown_seconds
        });
        if let Some(job) = missed {
            let (key, shown) = (job.key, job.shown_seconds);
            let message = format!("P1: the tuning ended without the bill of {shown:?} s of job {key}");
            self.check.violation(self.now, &message);
        }
        let alive = self.running(id).count();
        if alive > 0 {
            self.check.violation(self.now, &format!("P7: the tuning ended while {alive} of its jobs run"));
        }
    }

    /// Checks a published event.
    pub(crate) fn check_published(&mut self, detail_type: &str, detail: &Value) {
        if detail_type == TRIAL_DECISION {
            return self.check.decision_published(self.now, detail);
        }
        let name = detail["HyperParameterTuningJobName"].as_str().unwrap_or_default();
        let notice = match (detail_type, detail["Alarm"].as_str()) {
            // Status changes are best effort.
            (TUNING_STATE_CHANGE, None) if detail["HyperParameterTuningJobStatus"] == "InProgress" => return,
            (TUNING_STATE_CHANGE, None) if detail["HyperParameterTuningJobStatus"] == "Stopping" => {
                return self.check.stopping_published(self.now, name);
            }
            (TUNING_STATE_CHANGE, None) => "notice-ended".to_owned(),
            (COST_ALARM, Some("Overrun")) => "notice-overrun".to_owned(),
            (COST_ALARM, Some("CapReached")) => {
                format!("notice-cap-{}", detail["Percent"])
            }
            (COST_ALARM, Some("MonthlyCapReached")) => {
                let month = detail["Month"].as_str().unwrap_or_default();
                format!("notice-month-{month}-{}", detail["Percent"])
            }
            (CAPACITY_ALARM, Some("NoCapacity")) => format!("notice-capacity-{}", detail["WaitingSince"]),
            _ => format!("(unknown: {detail_type} {detail})"),
        };
        self.check.notice_published(self.now, name, &notice);
    }
}
