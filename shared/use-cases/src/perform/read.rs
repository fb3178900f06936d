//! Reads stored logs: the log of a restarted job, and the rest of an ended job's log.
//!
//! This finds lines whose delivery was lost. All lines found are stored before the fact that the read is complete.

use std::ops::Range;

use tuning::log::fact::{Fact, JobKey};
use tuning::unit::time::Time;
use wire::names::training_job_name;

use super::log::{Log, Read};
use super::{Actuator, LOG_PAGES_MAX, Outcome, later};
use crate::ports::table::Table;
use crate::ports::training::{JobLogs, TrainingJobs};
use crate::ports::{Bus, Timer};
use crate::store::StoreError;

/// Number of tries to read the rest of a log after which the part that can be read is enough. These tries take about
/// ten minutes.
const WHOLE_LOG_TRIES: i64 = 6;
/// Why the actuator does not read a long log in a batch of new actions.
const LEFT_TO_SWEEPER: &str = "the log is long: the sweeper reads it";

impl<T: Table, J: TrainingJobs + JobLogs, B: Bus, C: Timer> Actuator<T, J, B, C> {
    /// Reads at most `pages` pages of the log of a job that was ordered and ended at the times of `life`. `tries`
    /// counts the tries, this one included. `at_once` is whether the program failed or was stopped.
    pub(super) async fn read_rest(
        &self,
        id: &str,
        job: JobKey,
        life: Range<Time>,
        at_once: bool,
        tries: i64,
        pages: usize,
    ) -> Result<Outcome, StoreError> {
        let Some(tuning) = self.store.tuning(id).await? else { return Ok(Outcome::Done(Vec::new())) };
        let name = training_job_name(id, job);
        let log = Log { actuator: self, tuning: &tuning, name: &name, job };
        let complete = self.fact(format!("rest-read#{job}"), Fact::RestRead { job });
        if tries > WHOLE_LOG_TRIES && pages >= LOG_PAGES_MAX {
            return Ok(log.read_partially(life, complete).await);
        }
        Ok(match log.read_completely(life, pages).await {
            Ok(Some(Read { mut facts, search, .. })) => {
                // The log of a job that failed or was stopped says why.
                if !at_once {
                    facts.extend(log.missing_value(&search).await);
                }
                facts.push(complete);
                Outcome::Done(facts)
            }
            Ok(None) => Outcome::Later(LEFT_TO_SWEEPER.to_owned()),
            // Without its log, the job would lose metric lines for good, so even a refused read is retried a few times.
            Err(error) => later(&error).unwrap_or_else(|| Outcome::Later(error.to_string())),
        })
    }

    /// Reads a job's stored log from its beginning.
    pub(super) async fn read(
        &self,
        id: &str,
        job: JobKey,
        streams: u32,
        pages: usize,
    ) -> Result<Outcome, StoreError> {
        let Some(tuning) = self.store.tuning(id).await? else { return Ok(Outcome::Done(Vec::new())) };
        let name = training_job_name(id, job);
        let log = Log { actuator: self, tuning: &tuning, name: &name, job };
        match log.since(Time::EPOCH, pages).await {
            Ok(Read { is_whole: false, .. }) if pages < LOG_PAGES_MAX => {
                Ok(Outcome::Later(LEFT_TO_SWEEPER.to_owned()))
            }
            Ok(Read { mut facts, .. }) => {
                let fact = Fact::LogRead { job, streams };
                facts.push(self.fact(format!("log-read#{job}#{streams}"), fact));
                Ok(Outcome::Done(facts))
            }
            Err(error) => Ok(later(&error).unwrap_or_else(|| Outcome::Later(error.to_string()))),
        }
    }
}
