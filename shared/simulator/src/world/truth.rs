//! Checks that need to see both sides: the training service as it is, and the table as the system wrote it.

use serde_json::Value;
use service::memory::Change;
use tuning::ruling::{Ruling, StopWhy};
use wire::stored::{self, ActionRow, ActionStatus};

use super::World;
use super::ports::now;
use super::training::Job;
use crate::case::Epochs;
use crate::check::sweeps_fail;
use service::perform::{COST_ALARM, TRIAL_DECISION, TUNING_STATE_CHANGE};
use service::ports::table::Table;

impl World {
    /// A job was created just now.
    pub(crate) fn check_created(&mut self, index: usize) {
        let job = &self.training.jobs[index];
        let (id, key, name) = (job.id.clone(), job.key, job.now.name.clone());
        let case = &self.cases[job.case];
        let (cap, max_parallel) = self.check.in_force(&id, self.training.of(&id).map(|job| job.key));
        let alive: Vec<_> = self.training.of(&id).filter(|job| !job.is_ended()).collect();
        let mut wrong = Vec::new();
        if alive.len() > usize::try_from(max_parallel).unwrap_or(usize::MAX) {
            wrong.push(format!("MaxParallel: {} jobs run at once, {name} among them", alive.len()));
        }
        if alive.iter().filter(|other| other.key.trial == key.trial).count() > 1 {
            wrong.push(format!("P2: two jobs of trial {} run at once, {name} among them", key.trial));
        }
        let overran = self.training.of(&id).any(|job| job.overran);
        if let Some(cap) = cap.filter(|_| !overran) {
            let jobs =
                self.training.of(&id).filter(|job| !(job.deleted && self.check.never_was(&id, job.key)));
            let worst: u64 = jobs.map(|job| case.cost(job.choice, job.charged_seconds())).sum();
            let worst = worst + self.kept_cost(&id, |_| true);
            if worst > cap {
                wrong.push(format!("P1: bills and worst cases are {worst}, the cap is {cap}, with {name}"));
            }
        }
        let row = now(self.table.get(&stored::action_key(&id, &format!("start-{key}"))));
        match row.ok().flatten().as_ref().map(ActionRow::read) {
            // One whose caller gave up arrives while its row waits for the next try.
            Some(Ok(row)) if matches!(row.status, ActionStatus::Performing | ActionStatus::Pending) => {}
            Some(Ok(row)) => wrong.push(format!("P2: {name} is created while its row is {:?}", row.status)),
            Some(Err(_)) | None => wrong.push(format!("P7: {name} is created, no row knows it")),
        }
        wrong.extend(self.wrongly_told(index));
        wrong.extend(self.wrongly_launched(index));
        for message in wrong {
            self.check.violation(self.now, &message);
        }
        self.check.created(self.now, &id, key);
    }

    /// Values that were judged are those that the program logged; a job that never started does not exist.
    pub(crate) fn check_against_truth(&mut self, changes: &[Change]) {
        for change in changes {
            let Some(id) = stored::id_of(&change.key, "T#") else { continue };
            let Some(Ok(step)) =
                change.new.as_ref().filter(|_| change.key.sk.starts_with("STEP#")).map(stored::step)
            else {
                continue;
            };
            for recorded in &step.facts {
                if let tuning::fact::Fact::JobNeverStarted { job }
                | tuning::fact::Fact::StartRefused { job, .. } = &recorded.fact
                    && self.training.of(id).any(|other| other.key == *job && !other.deleted)
                {
                    self.check.violation(self.now, &format!("P1: job {job} was given up, yet it exists"));
                }
            }
            for ruling in &step.rulings {
                self.check_ruling(id, ruling);
                let wrong = self.wrongly_promoted(id, ruling).or_else(|| self.wrongly_refitted(id, ruling));
                let wrong = wrong.or_else(|| self.wrongly_interrupted(id, ruling));
                if let Some(wrong) = wrong {
                    self.check.violation(self.now, &wrong);
                }
            }
        }
    }

    fn check_ruling(&mut self, id: &str, ruling: &Ruling) {
        match ruling {
            Ruling::TrialJudged { trial, resource, value, .. } => {
                let Some(job) = self.training.of(id).find(|job| job.key.trial == *trial) else {
                    self.check
                        .violation(self.now, &format!("P6: trial {trial} was judged, no job of it exists"));
                    return;
                };
                let logged = job.program.value(*resource).filter(|value| value.is_finite());
                let same = logged.map(f64::to_bits) == value.map(f64::to_bits);
                let absolute = self.cases[job.case].epochs == Epochs::Absolute;
                // Where the log does not tell the epoch, a later value may stand for it, never an earlier one.
                let later = (*resource..=job.program.epochs).any(|epoch| {
                    let logged = job.program.value(epoch).filter(|value| value.is_finite());
                    logged.map(f64::to_bits) == value.map(f64::to_bits)
                });
                if !later {
                    let message = format!(
                        "P6: trial {trial} was judged by {value:?} at {resource}, which it never logged there or later"
                    );
                    self.check.violation(self.now, &message);
                }
                self.check.judged(same);
                if !same && absolute {
                    let message = format!(
                        "P6: trial {trial} was judged by {value:?} at {resource}, it logged {logged:?}"
                    );
                    self.check.violation(self.now, &message);
                }
            }
            Ruling::SettledInFull { job, .. } => {
                let excused = |other: &Job| other.pended_ms > 0 && sweeps_fail(&self.plan);
                let mut all = self.training.of(id);
                if all.any(|other| other.key == *job && !other.is_ended() && !excused(other)) {
                    self.check.violation(self.now, &format!("P7: job {job} is settled in full, yet it runs"));
                }
            }
            Ruling::TuningEnded { .. } => {
                let jobs = self.training.jobs.iter().enumerate();
                let kept = jobs.filter(|(index, job)| job.id == id && self.training.keeps(*index, self.now));
                let kept: Vec<_> = kept.map(|(_, job)| job.key.to_string()).collect();
                if !kept.is_empty() {
                    self.check.violation(self.now, &format!("P1: the tuning has ended, kept: {kept:?}"));
                }
                let alive = self.training.of(id).filter(|job| !job.is_ended()).count();
                if alive > 0 {
                    self.check.violation(self.now, &format!("P7: the tuning has ended, {alive} jobs run"));
                }
            }
            Ruling::StopOrdered { job, why: StopWhy::NoObjective { seconds } } => {
                self.check_silence(id, *job, *seconds);
            }
            // Seen in `promoted.rs`.
            Ruling::StartOrdered { .. }
            | Ruling::RungReached { .. }
            | Ruling::TrialPromoted { .. }
            | Ruling::ResourceRepeated { .. }
            | Ruling::StopOrdered { .. }
            | Ruling::BillOrdered { .. }
            | Ruling::OverrunSeen
            | Ruling::LogReadOrdered { .. }
            | Ruling::LookOrdered { .. }
            | Ruling::PoolReadOrdered { .. }
            | Ruling::PoolReleaseOrdered { .. }
            | Ruling::PoolClosed { .. }
            | Ruling::GrantOrdered { .. }
            | Ruling::ReturnOrdered { .. }
            | Ruling::CapReached { .. }
            | Ruling::MonthCapReached { .. }
            | Ruling::AttemptAwaited { .. }
            | Ruling::TrialFinished { .. }
            | Ruling::TuningEnding { .. } => {}
        }
    }

    /// A notice went out.
    pub(crate) fn check_notice(&mut self, detail_type: &str, detail: &Value) {
        if detail_type == TRIAL_DECISION {
            return self.check.decision(self.now, detail);
        }
        let name = detail["HyperParameterTuningJobName"].as_str().unwrap_or_default();
        let notice = match (detail_type, detail["Alarm"].as_str()) {
            // With the first job of a tuning that is started, and of one that is stopped; nobody is owed them.
            (TUNING_STATE_CHANGE, None) if detail["HyperParameterTuningJobStatus"] == "InProgress" => return,
            (TUNING_STATE_CHANGE, None) if detail["HyperParameterTuningJobStatus"] == "Stopping" => {
                return self.check.stopping(self.now, name);
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
            _ => format!("of an unknown kind: {detail_type} {detail}"),
        };
        self.check.notice(self.now, name, &notice);
    }
}
