//! `hyperband plan`: what a request comes to before anything is started: brackets, training jobs, cost and time.
//!
//! Both ways to run a rung are reckoned from the plan alone, whichever the request asks for. Costs are left out, never
//! guessed, where the request gives no price.

pub(crate) mod fill;
mod show;
pub(crate) mod simulate;

use hyperband::plan::Plan;
use tuning::definition::{Definition, JobLimits};
use tuning::money::MicroUsd;
use wire::algorithm::Resume;
use wire::request::{PriceAnswer, Request, RequestError};

use crate::arguments::{self, Output};
use crate::failure::{Exit, Failure};
use crate::output::{say_as_is, say_json};
use crate::run::ask;
use crate::text::{duration, usd};
use crate::warning::Warning;
use simulate::{Execution, Outcome, Setting, expected, full_set, trials_of};

/// An epoch where none is given: only the order in which trials arrive rests on it.
const NOMINAL_EPOCH_MS: u64 = 60_000;

/// Everything that is shown.
#[derive(Debug)]
struct Outlook {
    request: Request,
    definition: Definition,
    cap: Option<MicroUsd>,
    startup_ms: u64,
    epoch_ms: Option<u64>,
    /// `None` for a strategy without brackets.
    hyperband: Option<Brackets>,
    /// The most that one job and all jobs can cost.
    worst: Option<(MicroUsd, MicroUsd)>,
    /// What of the one is for keeping its instances afterwards.
    kept: Option<MicroUsd>,
    warnings: Vec<Warning>,
}

/// What there is to tell of a plan with brackets.
#[derive(Debug)]
struct Brackets {
    plan: Plan,
    /// Trials of each bracket within the request's training jobs.
    shares: Vec<u32>,
    execution: Execution,
    /// Most jobs of the request.
    jobs: u32,
    resumes: bool,
    /// One full set either way, then what the request itself asks for.
    stop: Outcome,
    promote: Outcome,
    own: Outcome,
}

/// Shows the plan of a request.
pub(crate) fn plan(options: &arguments::Plan) -> Result<Exit, Failure> {
    let request = ask::read(&options.request, None)?;
    let (startup, epoch) = (options.startup_seconds.0, options.epoch_seconds.map(|epoch| epoch.0));
    let outlook = Outlook::of(request, startup, epoch).map_err(|error| ask::refused(&error))?;
    match options.output {
        Output::Json => say_json(&show::json(&outlook)),
        Output::Text => say_as_is(&show::text(&outlook)),
    }
    Ok(Exit::Done)
}

/// The definition without the cap, which needs a price; the cap is looked at beside it.
pub(crate) fn uncapped(request: &Request) -> Result<Definition, RequestError> {
    let mut body = request.body().clone();
    if let Some(controller) = body.get_mut("Controller").and_then(serde_json::Value::as_object_mut) {
        controller.remove("MaxCostUsd");
    }
    // Neither the time nor the incarnation has a part in what is planned.
    Request::from_stored(body).definition(0, "000000", &PriceAnswer::default())
}

/// The limits that a job starts with.
pub(crate) fn job_limits(definition: &Definition) -> JobLimits {
    let limits = definition.limits_for(definition.job.max_runtime_seconds);
    JobLimits { keep_alive_seconds: definition.job.keep_alive_seconds, ..limits }
}

/// Whether a promoted trial goes on from its checkpoint, as far as the request tells.
fn resumes(request: &Request) -> bool {
    let works = request.built_in().is_none_or(|algorithm| algorithm.resume == Resume::Works);
    request.checkpoint_uri().is_some() && works
}

impl Outlook {
    fn of(request: Request, startup_ms: u64, epoch_ms: Option<u64>) -> Result<Self, RequestError> {
        let definition = uncapped(&request)?;
        let cap = request.cap()?;
        let hyperband = request
            .plan()
            .filter(|_| request.is_hyperband())
            .map(|plan| Brackets::of(&request, plan, startup_ms, epoch_ms.unwrap_or(NOMINAL_EPOCH_MS)));
        let jobs = hyperband.as_ref().map_or_else(|| request.max_jobs(), |brackets| brackets.jobs);
        let worst = definition.worst_case(job_limits(&definition)).map(|one| {
            let all = MicroUsd(one.0.saturating_mul(u64::from(jobs)));
            (one, cap.map_or(all, |cap| cap.min(all)))
        });
        let kept = definition.pool_worst_case(job_limits(&definition), 0);
        let kept = kept.filter(|kept| *kept > MicroUsd::ZERO && worst.is_some());
        let warnings = Vec::new();
        let mut outlook =
            Self { request, definition, cap, startup_ms, epoch_ms, hyperband, worst, kept, warnings };
        outlook.warnings = outlook.warn();
        Ok(outlook)
    }

    /// What an outcome costs; `None` without a price, or without the time that it rests on.
    fn cost(&self, outcome: &Outcome) -> Option<MicroUsd> {
        self.epoch_ms?;
        let job = &self.definition.job;
        let seconds = outcome.billed_ms.div_ceil(1_000);
        job.rate.map(|rate| rate.cost(seconds, job.instance_count, job.volume_gib))
    }

    fn warn(&self) -> Vec<Warning> {
        let Some(brackets) = &self.hyperband else { return Vec::new() };
        let own = [self.cap_too_low(brackets), self.time_too_short(brackets)];
        fill::warning(&self.request)
            .into_iter()
            .chain(cap_admits(&self.request))
            .chain(own.into_iter().flatten())
            .collect()
    }

    fn cap_too_low(&self, brackets: &Brackets) -> Option<Warning> {
        let (cost, cap) = (self.cost(&brackets.own)?, self.cap?);
        (cost > cap).then(|| {
            Warning::new(
                "CapEndsEarly",
                format!(
                    "The cap of {} ends the tuning early: its jobs are expected to cost {}.",
                    usd(cap),
                    usd(cost)
                ),
                "Raise MaxCostUsd, or lower MaxNumberOfTrainingJobs or MaxResource.",
            )
        })
    }

    fn time_too_short(&self, brackets: &Brackets) -> Option<Warning> {
        let longest = u64::from(brackets.plan.max_resource()).saturating_mul(self.epoch_ms?);
        let needed = longest.saturating_add(self.startup_ms).div_ceil(1_000);
        let allowed = self.definition.job.max_runtime_seconds;
        if needed > allowed {
            return Some(Warning::new(
                "JobsCutByMaxRuntime",
                format!(
                    "A job with all {} epochs needs {needed} s and may run {allowed} s.",
                    brackets.plan.max_resource()
                ),
                format!(
                    "Give StoppingCondition.MaxRuntimeInSeconds {needed} or more, or a smaller MaxResource."
                ),
            ));
        }
        let wall = brackets.own.wall_ms.div_ceil(1_000);
        let limit = self.definition.limits.max_runtime_seconds.filter(|limit| wall > *limit)?;
        Some(Warning::new(
            "TuningCutByMaxRuntime",
            format!("The tuning is expected to take {wall} s and may run {limit} s."),
            "Give ResourceLimits.MaxRuntimeInSeconds more, or more MaxParallelTrainingJobs.",
        ))
    }
}

/// The warning that the cap holds fewer jobs at their worst than may run at once.
pub(crate) fn cap_admits(request: &Request) -> Option<Warning> {
    let definition = uncapped(request).ok()?;
    let (cap, worst) = (request.cap().ok()??, definition.worst_case(job_limits(&definition))?);
    let (at_once, parallel) = (cap.0.checked_div(worst.0)?, u64::from(definition.limits.max_parallel));
    (at_once < parallel).then(|| {
        Warning::new(
            "CapAdmitsFewerJobs",
            format!(
                "The cap of {} admits {at_once} training jobs at a time at first, not {parallel}: each reserves its worst \
                 case, {}.",
                usd(cap),
                usd(worst)
            ),
            "Lower the time limits of StoppingCondition to what a job needs, or raise MaxCostUsd.",
        )
    })
}

impl Brackets {
    fn of(request: &Request, plan: Plan, startup_ms: u64, epoch_ms: u64) -> Self {
        let execution = Execution::of(request);
        let given = request.at("HyperParameterTuningJobConfig.ResourceLimits.MaxNumberOfTrainingJobs");
        let set = full_set(&plan, execution);
        let jobs = if given.is_some() { request.max_jobs() } else { set };
        let resumes = resumes(request);
        let instances = request.instance_count().max(1);
        let most = request.at("Controller.MaxInstances").and_then(serde_json::Value::as_u64);
        let held = most.map_or(u32::MAX, |most| u32::try_from(most).unwrap_or(u32::MAX) / instances);
        let workers = request.max_parallel().min(held).max(1);
        let setting =
            |jobs, trials| Setting { plan: &plan, jobs, trials, workers, startup_ms, epoch_ms, resumes };
        let whole = |execution| expected(execution, &setting(full_set(&plan, execution), plan.trials()));
        let (stop, promote) = (whole(Execution::Stop), whole(Execution::Promote));
        let own = expected(execution, &setting(jobs, jobs));
        let shares = fill::shares(&plan, trials_of(&plan, execution, jobs).min(plan.trials()));
        Self { plan, shares, execution, jobs, resumes, stop, promote, own }
    }

    /// Which way costs less, in one sentence.
    fn verdict(&self, startup_ms: u64, timed: bool) -> String {
        let (stop, promote) = (&self.stop, &self.promote);
        let further = promote.jobs.saturating_sub(stop.jobs);
        let start_up = duration(i64::try_from(startup_ms).unwrap_or(i64::MAX));
        let anew = if self.resumes {
            ""
        } else {
            " (promoted trials begin at their first epoch again: nothing says that they could go on from a checkpoint)"
        };
        if further == 0 {
            return "Both are the same here: there is no rung to stop at.".to_owned();
        }
        let Some(saved) = stop.epochs.checked_sub(promote.epochs).filter(|saved| *saved > 0) else {
            return format!(
                "Stop is cheaper here: Promote starts {further} more jobs and trains no fewer epochs{anew}."
            );
        };
        let even = startup_ms.saturating_mul(further).div_ceil(saved);
        let bound = duration(i64::try_from(even).unwrap_or(i64::MAX));
        if !timed {
            return format!(
                "Promote trains {saved} fewer epochs and starts {further} more jobs: with {start_up} a start-up it is \
                 cheaper where an epoch takes longer than about {bound}{anew}."
            );
        }
        if promote.billed_ms < stop.billed_ms {
            format!(
                "Promote is cheaper here: it trains {saved} fewer epochs, more than the start-ups of its {further} further \
                 jobs cost{anew}."
            )
        } else {
            format!(
                "Stop is cheaper here: Promote trains {saved} fewer epochs, but starts {further} more jobs, and each \
                 start-up takes {start_up}{anew}."
            )
        }
    }
}

#[cfg(test)]
mod tests;
