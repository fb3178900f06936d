//! Published trial events: each must report a decision that a step made, with the numbers of its ruling. Also checks
//! the status change to `Stopping`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tuning::log::fact::JobKey;
use tuning::log::reasons::{EndReason, StopWhy};
use tuning::log::ruling::{Order, Ruling, SearchRuling, Verdict};
use tuning::unit::ids::{RungId, TrialId};
use wire::names::parse_training_job_name;

use super::Checker;

/// The decisions on the trials of one tuning.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    /// Jobs that were ordered to stop at a rung.
    stopped: BTreeSet<(JobKey, RungId)>,
    judged: BTreeMap<(TrialId, RungId), Numbers>,
    promoted: BTreeMap<(TrialId, RungId), Numbers>,
}

type Numbers = (Option<f64>, Verdict);

impl Decisions {
    pub(super) fn record(&mut self, ruling: &Ruling) {
        match ruling {
            Ruling::Order(Order::Stop { job, why: StopWhy::Rung { rung }, .. }) => {
                self.stopped.insert((*job, *rung));
            }
            Ruling::Search(SearchRuling::TrialJudged { trial, rung, value, verdict, .. }) => {
                self.judged.insert((*trial, *rung), (*value, *verdict));
            }
            Ruling::Search(SearchRuling::TrialPromoted { trial, rung, value, verdict, .. }) => {
                self.promoted.insert((*trial, *rung), (*value, *verdict));
            }
            _ => {}
        }
    }

    fn numbers(&self, word: &str, job: JobKey, rung: RungId) -> Option<Numbers> {
        let of = (job.trial, rung);
        match word {
            "Stopped" if self.stopped.contains(&(job, rung)) => self.judged.get(&of).copied(),
            "Promoted" if job.rung == rung.next() => self.promoted.get(&of).copied(),
            _ => None,
        }
    }
}

impl Checker {
    /// Checks a published trial event.
    pub(crate) fn decision_published(&mut self, now: i64, detail: &Value) {
        if !self.matches_a_ruling(detail) {
            self.violation(
                now,
                &format!("trial event {detail} was published, but no step made this decision"),
            );
        }
        let word = detail["Decision"].as_str().unwrap_or_default();
        *self.decisions_published.entry(word.to_owned()).or_default() += 1;
    }

    /// Checks a published status change to `Stopping` of the tuning `name`.
    pub(crate) fn stopping_published(&mut self, now: i64, name: &str) {
        let book = self.books.values().find(|book| book.case.name == name);
        if !book.is_some_and(|book| book.ending == Some(EndReason::Stopped)) {
            self.violation(
                now,
                &format!("status Stopping of {name} was published, but its user has not stopped it"),
            );
        }
        *self.decisions_published.entry("Stopping".to_owned()).or_default() += 1;
    }

    fn matches_a_ruling(&self, detail: &Value) -> bool {
        let number = |name: &str| detail[name].as_u64().and_then(|number| u32::try_from(number).ok());
        let matches = || {
            let (id, job) = parse_training_job_name(detail["TrainingJobName"].as_str()?)?;
            let (word, rung) = (detail["Decision"].as_str()?, number("Rung")?);
            let (value, verdict) = self.books.get(&id)?.decisions.numbers(word, job, RungId(rung))?;
            let same = || {
                number("Rank") == Some(verdict.rank + 1)
                    && number("Compared") == Some(verdict.seen)
                    && number("MayGoOn") == Some(verdict.allowed)
                    && detail["ObjectiveValue"].as_f64() == value
            };
            let goes_on = verdict.continues == (word == "Promoted");
            Some(number("Trial") == Some(job.trial.0) && goes_on && same())
        };
        matches().unwrap_or(false)
    }
}
