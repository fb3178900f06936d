//! A trial of the document: collects its jobs, phases and comparisons from facts and rulings.

use std::borrow::Cow;
use std::collections::BTreeMap;

use search::Configuration;
use tuning::definition::Definition;
use tuning::log::fact::{Fact, JobKey, JobPhase};
use tuning::log::reasons::{StopWhy, TrialEnd};
use tuning::log::ruling::{AttemptRuling, Booking, Order, Ruling, SearchRuling, Verdict};
use tuning::trial::summary::JobSummary;
use tuning::trial::summary::full_summary;
use tuning::unit::epochs::Epochs;
use tuning::unit::ids::{BracketId, TrialId};
use tuning::unit::time::Time;
use use_cases::describe::state_of;
use use_cases::words;
use wire::describe::finite;

use super::parameters;
use crate::document::{Curve, Job, Judged, Outcome, Phase, Trial};
use crate::event_text::stop_reason;
use crate::follow::Follower;
use crate::text::clean;

/// What the steps say about a trial so far. The live job is in the state.
#[derive(Debug, Default)]
pub(super) struct Record {
    bracket: BracketId,
    refit: bool,
    configuration: Configuration,
    chosen: String,
    jobs: BTreeMap<JobKey, JobRecord>,
    judged: Vec<Judged>,
    awaits: Option<String>,
    end: Option<(Outcome, String)>,
}

#[derive(Debug, Default)]
struct JobRecord {
    phases: Vec<(i64, Phase)>,
    /// Its summary, once it has left the state.
    concluded: Option<JobSummary>,
}

impl Record {
    /// Returns the record of a trial whose first job is ordered.
    pub(super) fn started(definition: &Definition, order: &Order) -> Self {
        let (bracket, refit, configuration, origin) = match order {
            Order::Start { bracket, configuration, launch, origin, .. } => {
                (*bracket, launch.refit, configuration.clone(), *origin)
            }
            _ => (BracketId(0), false, Configuration::default(), None),
        };
        let chosen = if refit { String::new() } else { words::drawn(definition, origin) };
        Self { bracket, refit, configuration, chosen, ..Self::default() }
    }

    /// Takes a fact about one of its jobs. `at` is its time since the submission.
    pub(super) fn note_fact(&mut self, at: i64, fact: &Fact) {
        let (job, phase) = match fact {
            Fact::JobStarted { job } => (job, Phase::Waiting),
            Fact::JobStateChanged { job, phase, .. } => match phase {
                JobPhase::Starting => (job, Phase::Waiting),
                JobPhase::Downloading => (job, Phase::Starting),
                JobPhase::Training => (job, Phase::Training),
                JobPhase::Interrupted => (job, Phase::Interrupted),
                JobPhase::Stopping | JobPhase::Uploading => (job, Phase::Ending),
                JobPhase::Other | JobPhase::Ended(_) => return,
            },
            _ => return,
        };
        self.jobs.entry(*job).or_default().phases.push((at, phase));
    }

    /// Takes a ruling about it, and the job that the ruling concludes.
    pub(super) fn rule(&mut self, at: i64, ruling: &Ruling, job: Option<&JobSummary>) {
        if let Some(job) = job {
            let summary = JobSummary { concluded: true, ..job.clone() };
            self.jobs.entry(job.job).or_default().concluded = Some(summary);
        }
        match ruling {
            Ruling::Search(SearchRuling::TrialJudged { rung, level, resource, value, verdict, .. }) => {
                let mut judged = judged(rung.0, *level, *resource, *value);
                decide(&mut judged, *verdict);
                self.judged.push(judged);
            }
            Ruling::Search(SearchRuling::RungReached { rung, level, resource, value, .. }) => {
                self.judged.push(judged(rung.0, *level, *resource, *value));
            }
            Ruling::Search(SearchRuling::TrialPromoted { rung, verdict, .. }) => {
                if let Some(waits) = self.judged.iter_mut().rev().find(|judged| judged.rung == rung.0) {
                    decide(waits, *verdict);
                }
            }
            Ruling::Attempt(AttemptRuling::TrialFinished { how, job, .. }) => self.finish(how, *job),
            Ruling::Attempt(AttemptRuling::AttemptAwaited { why, not_before, .. }) => {
                let message = job.and_then(|job| job.message.as_deref());
                self.awaits = Some(clean(&words::awaited(*why, *not_before, message)));
            }
            Ruling::Booking(
                Booking::BillBooked { job, .. }
                | Booking::SettledInFull { job, .. }
                | Booking::PoolClosed { job, .. },
            ) => {
                if let Some(summary) = self.jobs.get_mut(job).and_then(|job| job.concluded.as_mut()) {
                    summary.book(ruling);
                }
            }
            Ruling::Order(Order::Start { job, .. }) => {
                self.awaits = None;
                self.jobs.entry(*job).or_default();
            }
            Ruling::Order(Order::Stop { job, .. }) => {
                self.jobs.entry(*job).or_default().phases.push((at, Phase::Ending));
            }
            Ruling::Attempt(AttemptRuling::ResourceRepeated { .. })
            | Ruling::Booking(Booking::ReservationExtended { .. })
            | Ruling::TuningEnding { .. }
            | Ruling::Search(SearchRuling::TrialDrawn { .. })
            | Ruling::Order(_) => {}
        }
    }

    fn finish(&mut self, how: &TrialEnd, job: Option<JobKey>) {
        self.awaits = None;
        // A trial without a job waited for its promotion.
        if job.is_none()
            && let Some(waits) = self.judged.last_mut().filter(|last| last.continues.is_none())
        {
            waits.continues = Some(false);
            if let TrialEnd::Stopped(StopWhy::Rung { rung }) = how {
                self.end = Some((Outcome::Stopped, words::not_promoted(*rung)));
                return;
            }
        }
        let outcome = match how {
            TrialEnd::Completed | TrialEnd::Stopped(StopWhy::MaxResource) => Outcome::Complete,
            TrialEnd::Stopped(StopWhy::Rung { .. }) => Outcome::Stopped,
            TrialEnd::Failed(_)
            | TrialEnd::Stopped(StopWhy::NoObjective { .. } | StopWhy::Diverged { .. }) => Outcome::Failed,
            TrialEnd::Stopped(
                StopWhy::PastLevel { .. }
                | StopWhy::Interruptions { .. }
                | StopWhy::NextInstances
                | StopWhy::Quota
                | StopWhy::OutOfReach
                | StopWhy::TuningEnding
                | StopWhy::TargetReached { .. }
                | StopWhy::ReservationUsed { .. }
                | StopWhy::CapExceeded { .. }
                | StopWhy::Requested,
            )
            | TrialEnd::StoppedOutside
            | TrialEnd::MaxRuntime
            | TrialEnd::NeverStarted => Outcome::Cut,
        };
        let limit = job.and_then(|key| self.jobs.get(&key)?.concluded.as_ref());
        let limit = limit.map(|job| job.limits.max_runtime_seconds);
        self.end = Some((outcome, clean(&words::end(how, limit))));
    }

    /// Returns the summaries of its jobs, oldest first.
    pub(super) fn summaries<'a>(
        &'a self,
        number: TrialId,
        follower: &'a Follower,
    ) -> impl Iterator<Item = Cow<'a, JobSummary>> {
        let definition = &follower.tuning.definition;
        let trial = follower.state.trials.get(number);
        self.jobs.iter().filter_map(move |(key, record)| {
            if let Some(concluded) = &record.concluded {
                return Some(Cow::Borrowed(concluded));
            }
            let trial = trial?;
            let job = trial.job().filter(|job| job.is(*key))?;
            Some(Cow::Owned(full_summary(definition, *key, trial, job)))
        })
    }

    /// Returns the trial of the document. Its curve has at most `points_max` points.
    pub(super) fn shown(&self, number: TrialId, follower: &Follower, points_max: usize) -> Trial {
        let tuning = &follower.tuning;
        let definition = &tuning.definition;
        let summaries: Vec<Cow<'_, JobSummary>> = self.summaries(number, follower).collect();
        let last = summaries.last();
        // The last job with values has the complete curve of the trial.
        let curve = summaries.iter().rev().find(|job| !job.curve.is_empty());
        let metrics = summaries.iter().rev().map(|job| job.metrics.as_slice());
        let metrics = metrics.into_iter().find(|metrics| !metrics.is_empty()).unwrap_or_default();
        let waits = || self.judged.last().is_some_and(|last| last.continues.is_none());
        let (outcome, why) = match &self.end {
            Some((outcome, why)) => (*outcome, Some(why.clone())),
            None if self.awaits.is_some() => (Outcome::Retrying, self.awaits.clone()),
            None if waits() => (Outcome::Waiting, Some("waits for its promotion".to_owned())),
            None if last.is_some_and(|job| state_of(job) == "Starting") => (Outcome::Queued, None),
            None => (Outcome::Running, None),
        };
        Trial {
            number: number.0,
            bracket: self.bracket.0,
            refit: self.refit,
            values: parameters::values(tuning, &parameters::columns(tuning), number, &self.configuration.0),
            chosen: self.chosen.clone(),
            outcome,
            why,
            epochs: last.map_or(0, |job| job.resource.0),
            best: last.and_then(|job| job.best_value).and_then(finite),
            last: summaries.iter().rev().find_map(|job| job.last_value).and_then(finite),
            metrics: tuning.request_of(number).other_metrics(metrics),
            curve: curve.map(|job| shown_curve(&job.curve, job.best_value, points_max)).unwrap_or_default(),
            judged: self.judged.clone(),
            jobs: summaries.iter().map(|job| self.shown_job(job, definition)).collect(),
        }
    }

    fn shown_job(&self, job: &JobSummary, definition: &Definition) -> Job {
        let since = |at: Time| at.0.saturating_sub(definition.created.0);
        let is_priced = definition.job.is_priced();
        let known = self.jobs.get(&job.job).map(|record| record.phases.as_slice()).unwrap_or_default();
        let mut phases = known.to_vec();
        // Facts may arrive in any order.
        phases.sort_by_key(|(at, _)| *at);
        phases.dedup_by_key(|(_, phase)| *phase);
        Job {
            key: job.job.to_string(),
            state: state_of(job).to_owned(),
            why: stop_reason(job),
            level: job.level.map(|level| level.0),
            ordered: since(job.ordered),
            ended: job.ended.map(since),
            phases,
            billed_seconds: job.billable_seconds,
            cost: job
                .cost
                .filter(|_| is_priced)
                .map(|running| running.plus(job.retained_cost.unwrap_or_default())),
            reserved: (is_priced && job.cost.is_none() && !job.never_started).then_some(job.reservation),
            interruptions: job.interruptions,
            on_demand: job.on_demand,
        }
    }
}

fn judged(rung: u32, level: Epochs, epoch: Epochs, value: Option<f64>) -> Judged {
    Judged { rung, level: level.0, epoch: epoch.0, value: value.and_then(finite), ..Judged::default() }
}

fn decide(judged: &mut Judged, verdict: Verdict) {
    let Verdict { rank, seen, allowed, continues } = verdict;
    (judged.rank, judged.of) = (Some(rank.saturating_add(1)), Some(seen));
    (judged.allowed, judged.continues) = (Some(allowed), Some(continues));
}

/// Returns a curve with about `points_max` points. The last point and the first one with the value `best` are kept.
fn shown_curve(curve: &[(Epochs, Option<f64>)], best: Option<f64>, points_max: usize) -> Curve {
    let step = curve.len().div_ceil(points_max).max(1);
    let last = curve.len().saturating_sub(1);
    let best = best.and_then(|best| curve.iter().position(|(_, value)| *value == Some(best)));
    let is_kept = |index: usize| index.is_multiple_of(step) || index == last || Some(index) == best;
    let kept = curve.iter().enumerate().filter(|(index, _)| is_kept(*index));
    let kept: Vec<(u32, Option<f64>)> =
        kept.map(|(_, (epoch, value))| (epoch.0, value.and_then(seven_digits))).collect();
    let counted = (1..).zip(&kept).all(|(number, (epoch, _)): (u32, _)| number == *epoch);
    Curve {
        epochs: if counted { Vec::new() } else { kept.iter().map(|(epoch, _)| *epoch).collect() },
        values: kept.into_iter().map(|(_, value)| value).collect(),
    }
}

/// Rounds to seven significant digits: more than a chart shows, and half the size.
fn seven_digits(value: f64) -> Option<f64> {
    format!("{value:.6e}").parse().ok().and_then(finite)
}
