//! Events of trials: what the bus is told was decided, of a job whose order exists, with the numbers of the ruling; and that a
//! tuning is being stopped.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tuning::fact::JobKey;
use tuning::ruling::{EndReason, Ruling, StopWhy, Verdict};
use wire::names::parse_training_job_name;

use super::Checker;

/// What was decided of the trials of one tuning.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    /// Jobs that were to stop at a rung.
    stopped: BTreeSet<(JobKey, u32)>,
    judged: BTreeMap<(u32, u32), Numbers>,
    promoted: BTreeMap<(u32, u32), Numbers>,
}

type Numbers = (Option<f64>, Verdict);

impl Decisions {
    pub(super) fn ruled(&mut self, ruling: &Ruling) {
        match ruling {
            Ruling::StopOrdered { job, why: StopWhy::Rung { rung } } => {
                self.stopped.insert((*job, *rung));
            }
            Ruling::TrialJudged { trial, rung, value, verdict, .. } => {
                self.judged.insert((*trial, *rung), (*value, *verdict));
            }
            Ruling::TrialPromoted { trial, rung, value, verdict, .. } => {
                self.promoted.insert((*trial, *rung), (*value, *verdict));
            }
            _ => {}
        }
    }

    fn numbers(&self, word: &str, job: JobKey, rung: u32) -> Option<Numbers> {
        let of = (job.trial, rung);
        match word {
            "Stopped" if self.stopped.contains(&(job, rung)) => self.judged.get(&of).copied(),
            "Promoted" if job.rung == rung + 1 => self.promoted.get(&of).copied(),
            _ => None,
        }
    }
}

impl Checker {
    /// The bus was told of a trial.
    pub(crate) fn decision(&mut self, now: i64, detail: &Value) {
        if !self.is_true(detail) {
            self.violation(now, &format!("{detail} went out, no step decided it"));
        }
        let word = detail["Decision"].as_str().unwrap_or_default();
        *self.decisions_told.entry(word.to_owned()).or_default() += 1;
    }

    /// It was told that the tuning `name` is being stopped.
    pub(crate) fn stopping(&mut self, now: i64, name: &str) {
        let book = self.books.values().find(|book| book.definition.name == name);
        if !book.is_some_and(|book| book.ending == Some(EndReason::Stopped)) {
            self.violation(now, &format!("{name} was told to be stopping, and nobody has stopped it"));
        }
        *self.decisions_told.entry("Stopping".to_owned()).or_default() += 1;
    }

    fn is_true(&self, detail: &Value) -> bool {
        let number = |name: &str| detail[name].as_u64().and_then(|number| u32::try_from(number).ok());
        let told = || {
            let (id, job) = parse_training_job_name(detail["TrainingJobName"].as_str()?)?;
            let (word, rung) = (detail["Decision"].as_str()?, number("Rung")?);
            let (value, verdict) = self.books.get(&id)?.decisions.numbers(word, job, rung)?;
            let same = || {
                number("Rank") == Some(verdict.rank + 1)
                    && number("Compared") == Some(verdict.seen)
                    && number("MayGoOn") == Some(verdict.allowed)
                    && detail["ObjectiveValue"].as_f64() == value
            };
            let goes_on = verdict.goes_on == (word == "Promoted");
            Some(number("Trial") == Some(job.trial) && goes_on && (detail.get("Rank").is_none() || same()))
        };
        told().unwrap_or(false)
    }
}
