//! Checks silent jobs: describes them, and reads log lines whose delivery may have been lost.
//!
//! Continues after the job that was checked last. However few jobs fit one sweep, no job is checked twice before all
//! others were checked once.

use std::sync::Arc;

use tuning::change::fold::fold;
use tuning::decide::job_seen_due_at;
use tuning::definition::Definition;
use tuning::job::Job;
use tuning::log::fact::{Fact, JobKey, JobPhase, Recorded};
use tuning::quote::runtime::usual_epoch;
use tuning::state::State;
use tuning::trial::Trial;
use tuning::unit::time::{Millis, Time};
use wire::names::training_job_name;
use wire::stored::LookedAt;

use super::limits::{CallKind, Silence};
use super::round::Round;
use super::run::Run;
use super::{Sweeper, WHOLE};
use crate::perform::bill;
use crate::perform::log::Log;
use crate::ports::table::Table;
use crate::ports::training::{TrainingJobs, TrainingJobsError, TrainingService};
use crate::ports::{Bus, Timer};
use crate::record;
use crate::store::{Loaded, StoreError};

/// Pages of a job's log read in one check. The lines found move the position from which the next check reads.
const LOOK_PAGES: usize = 20;

/// An event that is not older may still be on its way.
const EVENT_LATE: Millis = Millis::from_seconds(60);
/// The same of a line: CloudWatch Logs delivers "usually less than three minutes" after it.
const LINE_LATE: Millis = Millis::from_seconds(240);

#[derive(Debug, Clone, Copy, Default)]
struct Looked {
    /// A fact was stored before, so the decider seems not to have received it.
    known: bool,
    /// What the check found and no delivery had brought in time.
    missed: Missed,
    /// A rate limit ended the check early.
    throttled: bool,
}

/// The later ones count more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Missed {
    #[default]
    Nothing,
    /// Values, which no log batch had brought.
    Lines,
    /// A state, which no event had brought.
    Event,
}

/// Longest time between two checks of a job whose log is delivered, and until the first one.
const CHECK_EVERY_MAX: Millis = Millis::from_seconds(900);
/// A check that no sweep made this long after it was due is left out. One of two sweeps falls into this time.
const CHECK_WINDOW: Millis = Millis::from_seconds(90);

/// Returns whether a running job must be checked now: it has shown no sign of life for long, or its reservation counts
/// from a start that no fact shows.
pub(super) fn is_silent(loaded: &Loaded, trial: &Trial, job: &Job, now: Time, silence: Silence) -> bool {
    if !job.is_known() {
        return false;
    }
    if job.has_instances() && job.started().is_none() {
        return true;
    }
    let silent = now - job.seen_at().max(last_line(trial));
    let Loaded { tuning, state, .. } = loaded;
    match silence {
        Silence::After(span) => silent >= span,
        Silence::Delivered => {
            let epoch = usual_epoch(&tuning.definition, state, trial, job).unwrap_or(Millis::ZERO);
            // Then the line of the next epoch is late.
            let first = (epoch + LINE_LATE).min(CHECK_EVERY_MAX);
            let seen_due = job_seen_due_at(&tuning.definition, state, job).is_some_and(|due| now >= due);
            seen_due || is_check_due(silent, first)
        }
    }
}

/// Returns whether a check of a job that is silent for this long is due: after `first`, then after twice this time, and so
/// on, with at most [`CHECK_EVERY_MAX`] between two checks.
fn is_check_due(silent: Millis, first: Millis) -> bool {
    let (mut due, mut wait) = (first, first);
    while due + wait <= silent {
        due = due + wait;
        wait = (wait * 2).min(CHECK_EVERY_MAX);
    }
    silent >= due && silent - due < CHECK_WINDOW
}

/// Returns the fact that a job still exists, if no other fact has shown this for long. Without it the decider would
/// treat the job as deleted. The key of each such fact contains the time of the previous one, so two sweeps store it
/// once.
fn sign_of_life(definition: &Definition, state: &State, key: JobKey, now: Time) -> Option<Recorded> {
    let job = state.job(key)?;
    job_seen_due_at(definition, state, job).filter(|due| now >= *due)?;
    Some(Recorded { key: format!("seen#{key}#{}", job.seen_at()), at: now, fact: Fact::JobSeen { job: key } })
}

fn is_throttled(error: &TrainingJobsError) -> bool {
    matches!(error, TrainingJobsError::Throttled)
}

fn last_line(trial: &Trial) -> Time {
    trial.last_line.as_ref().map_or(Time::MIN, |line| line.at)
}

impl<T: Table, J: TrainingService, B: Bus, C: Timer + Clone> Sweeper<T, J, B, C> {
    /// Checks as many silent jobs as the limits allow.
    pub(super) async fn check_silence(&self, run: &mut Run) {
        if run.whole && run.silent == 0 {
            return;
        }
        let begin = run.swept.cursor.look.clone();
        let last = begin.as_ref().map(|at| (at.tuning.as_str(), at.job));
        // The rest of the tuning at which the last sweep ended. Its first jobs come at the end of the round.
        if let Some((id, job)) = last
            && !self.look_at_tuning(run, id, |key| key > job).await
        {
            return;
        }
        let mut round = Round::new(&run.first, last.map_or("", |(id, _)| id));
        loop {
            let id = match round.next(&self.store).await {
                Ok(Some(id)) => id,
                Ok(None) => return,
                Err(error) => {
                    run.swept.last_error = Some(error);
                    return;
                }
            };
            let upto = last.filter(|(begin, _)| *begin == id).map(|(_, job)| job);
            if !self.look_at_tuning(run, &id, |key| upto.is_none_or(|upto| key <= upto)).await {
                return;
            }
        }
    }

    /// Checks the silent jobs of a tuning that pass `filter`. Returns `false` if the limits do not allow all of them.
    async fn look_at_tuning(&self, run: &mut Run, id: &str, filter: impl Fn(JobKey) -> bool) -> bool {
        if !self.has_time(run, WHOLE) {
            return false;
        }
        let now = self.now();
        let mut loaded = match self.store.load(id).await {
            Ok(Some(loaded)) if !loaded.state.is_ended() => loaded,
            Ok(_) => return true,
            Err(error) => {
                run.swept.last_error = Some(error);
                return true;
            }
        };
        let silent = |(key, trial, job): (JobKey, &Trial, &Job)| {
            is_silent(&loaded, trial, job, now, self.limits.silence).then_some(key)
        };
        let silent: Vec<JobKey> = loaded.state.jobs().filter_map(silent).filter(|key| filter(*key)).collect();
        let (mut ring, mut room) = (false, true);
        for key in &silent {
            let jobs = &self.actuator.jobs;
            room =
                self.has_time(run, WHOLE) && jobs.has(CallKind::Log) && jobs.turn(CallKind::Describe).await;
            if !room {
                break;
            }
            let looked = match self.look_at(&mut loaded, *key).await {
                Ok(looked) => looked,
                Err(error) => {
                    run.failed_for(id, error);
                    Looked::default()
                }
            };
            ring |= looked.known;
            run.swept.events_missed += usize::from(looked.missed == Missed::Event);
            run.swept.deliveries_missed += usize::from(looked.missed > Missed::Nothing);
            if looked.throttled {
                // The check was incomplete, so the next sweep begins with this job.
                room = false;
                break;
            }
            run.swept.looked += 1;
            run.swept.cursor.look = Some(LookedAt { tuning: id.to_owned(), job: *key });
        }
        if ring {
            run.count_if_stuck(id, now - loaded.head.at);
        }
        if ring && let Err(error) = record::ring(&*self.store.table, id, now).await {
            run.swept.last_error = Some(error.into());
        }
        if room && !silent.is_empty() {
            self.save(run).await;
        }
        room
    }

    /// Checks a job: its state, and its log since its last line. Stores only facts that change the state.
    async fn look_at(&self, loaded: &mut Loaded, key: JobKey) -> Result<Looked, StoreError> {
        let Loaded { tuning, state, .. } = loaded;
        let Some(trial) = state.trials.get(key.trial) else { return Ok(Looked::default()) };
        let Some(job) = trial.job() else { return Ok(Looked::default()) };
        let name = training_job_name(&tuning.id, key);
        let jobs = &self.actuator.jobs;
        // Whatever the error, the next check describes the job again.
        let description = match jobs.describe(&name).await {
            Ok(description) => description,
            Err(error) => return Ok(Looked { throttled: is_throttled(&error), ..Looked::default() }),
        };
        let known_line = last_line(trial);
        let from = known_line.max(description.created);
        let phase_before = job.phase();
        let log = Log { actuator: &self.actuator, tuning, name: &name, job: key };
        let read = log.since(from, LOOK_PAGES).await;
        let throttled = read.as_ref().is_err_and(is_throttled);
        let mut facts = read.map(|read| read.facts).unwrap_or_default();
        let phase = bill::phase(&description);
        let shows_start = job.started().is_none() && description.started.is_some();
        if phase != phase_before || shows_start {
            facts.push(bill::state_fact(key, &description));
        }
        // This state is a copy of this sweep.
        let state = Arc::make_mut(state);
        facts.retain(|fact| fold(&tuning.definition, state, fact));
        if !matches!(phase, JobPhase::Ended(_)) {
            // The facts found may be hours old, and the job may have waited for its instances ever since.
            let sign = sign_of_life(&tuning.definition, state, key, self.now());
            facts.extend(sign.filter(|fact| fold(&tuning.definition, state, fact)));
        }
        let mut looked = Looked { throttled, ..Looked::default() };
        for fact in &facts {
            let known = self.put(&tuning.id, fact).await?;
            looked.known |= known;
            let is_late = |at: Time, late: Millis| !known && self.now() - at >= late;
            match &fact.fact {
                Fact::JobStateChanged { .. } if is_late(fact.at, EVENT_LATE) => looked.missed = Missed::Event,
                // The read begins with the last known line. The oldest of the others was due first.
                Fact::MetricsLogged { lines, .. } => {
                    let oldest = lines.iter().map(|line| line.at).find(|at| *at > known_line);
                    if oldest.is_some_and(|at| is_late(at, LINE_LATE)) {
                        looked.missed = looked.missed.max(Missed::Lines);
                    }
                }
                _ => {}
            }
        }
        Ok(looked)
    }
}
