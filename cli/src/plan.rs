//! `hyperband plan`: shows the brackets, training jobs, cost and time of a request without starting anything.
//!
//! Simulates both values of `RungExecution`, whichever value the request has. Without a price in the request, it shows
//! no costs.

mod late_stops;
mod show;

use hyperband::plan::{BracketPlan, Plan};
use tuning::definition::Definition;
use tuning::unit::limits::MIN_RUNTIME_SECONDS;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;
use wire::forecast::{Outcome, Setting, Times, expected, full_set, shares, trials_of};
use wire::request::{Hyperband, PriceAnswer, Request, RequestError, RungExecution, RungsWhy};

use crate::arguments;
use crate::cut_numbers;
use crate::failure::{Exit, Failure};
use crate::output::show_styled;
use crate::request;
use crate::text::{duration, usd};
use crate::warning::{Code, Warning};

/// A usual margin of the controller's own time limits: between that after the first timed job and that after many.
const MARGIN_PERCENT_USUAL: u64 = 150;

#[derive(Debug)]
struct Outlook {
    request: Request,
    definition: Definition,
    cap: Option<MicroUsd>,
    startup_ms: u64,
    epoch_ms: Option<u64>,
    /// `None` for a strategy without brackets.
    hyperband: Option<Brackets>,
    /// Maximum cost of one job and of all jobs. `None` without a price.
    worst: Option<(MicroUsd, MicroUsd)>,
    /// Part of one job's maximum cost that pays for its warm pool. `None` without a warm pool or a price.
    kept: Option<MicroUsd>,
    warnings: Vec<Warning>,
}

/// The part of the plan that only Hyperband has.
#[derive(Debug)]
struct Brackets {
    /// The brackets that the training jobs can fill.
    plan: Plan,
    /// The number of all brackets, and the training jobs of a full set of them.
    whole: (usize, u32),
    /// Trials of each bracket that the request's training jobs allow.
    shares: Vec<u32>,
    min_resource: u32,
    execution: RungExecution,
    /// The execution that the controller chooses at the submission, with the times that it assumes.
    submitted: RungExecution,
    /// Why the plan has this execution.
    why: RungsWhy,
    /// Maximum number of training jobs.
    jobs: u32,
    /// Jobs at once that `MaxInstances` allows, and that the cap pays. `u32::MAX` without such a limit.
    held: u32,
    paid: u32,
    /// Whether a promoted trial continues from its checkpoint.
    resumes: bool,
    /// One full set of `plan` with `RungExecution` `Stop`.
    stop: Outcome,
    /// One full set of `plan` with `RungExecution` `Promote`.
    promote: Outcome,
    /// The request itself.
    own: Outcome,
    /// The request with `Prefer` `Cost` and with `Value`; `None` where it does not compare late, or promotes.
    preferences: Option<[Outcome; 2]>,
}

pub(crate) fn plan(options: &arguments::Plan) -> Result<Exit, Failure> {
    let request = request::read_local(&options.request, request::Edits::default())?;
    let (startup, epoch) = (options.startup_seconds.0, options.epoch_seconds.map(|epoch| epoch.0));
    let outlook =
        Outlook::compute(request, startup, epoch).map_err(|error| Failure::invalid_request(&error))?;
    show_styled(options.output, || show::text(&outlook), || show::json(&outlook));
    Ok(Exit::Done)
}

/// Returns the definition without the cap. A definition with a cap requires a price.
pub(crate) fn uncapped(request: &Request) -> Result<Definition, RequestError> {
    let mut body = request.body().clone();
    if let Some(controller) = body.get_mut("Controller").and_then(serde_json::Value::as_object_mut) {
        controller.remove("MaxCostUsd");
    }
    // The plan does not depend on the creation time or the incarnation.
    Request::from_stored(body).definition(Time(0), "000000", &PriceAnswer::default())
}

/// Returns the most that a job can cost, with its kept instances.
fn worst_case(definition: &Definition) -> Option<MicroUsd> {
    let dearest = definition.dearest();
    definition.worst_case(definition.greatest_limits(dearest), dearest)
}

impl Outlook {
    fn compute(request: Request, startup_ms: u64, epoch_ms: Option<u64>) -> Result<Self, RequestError> {
        let definition = uncapped(&request)?;
        let cap = request.cap()?;
        // Without a price, a plan has no costs, and only a submission must know the price.
        if let Some(cap) = cap.filter(|_| definition.least_cap().is_some()) {
            request.check_cap(&definition, cap)?;
        }
        let times = Times { startup_ms, epoch_ms: epoch_ms.unwrap_or(Times::ASSUMED.epoch_ms) };
        let hyperband = request
            .hyperband()
            .and_then(|hyperband| Brackets::compute(&request, hyperband, &definition, times));
        let jobs = hyperband.as_ref().map_or_else(|| request.max_jobs(), |brackets| brackets.jobs);
        let worst = worst_case(&definition).map(|one| {
            let all = MicroUsd(one.0.saturating_mul(u64::from(jobs)));
            (one, cap.map_or(all, |cap| cap.min(all)))
        });
        let dearest = definition.dearest();
        let kept = definition.pool_worst_case(definition.greatest_limits(dearest), dearest);
        let kept = kept.filter(|kept| *kept > MicroUsd::ZERO && worst.is_some());
        let warnings = Vec::new();
        let mut outlook =
            Self { request, definition, cap, startup_ms, epoch_ms, hyperband, worst, kept, warnings };
        outlook.warnings = outlook.warn();
        Ok(outlook)
    }

    /// Returns the cost of an outcome. `None` without a price or without `--epoch-seconds`.
    fn cost(&self, outcome: &Outcome) -> Option<MicroUsd> {
        self.epoch_ms?;
        let job = &self.definition.job;
        let seconds = outcome.billed_ms.div_ceil(1_000);
        job.instances(job.largest()).cost(seconds)
    }

    fn warn(&self) -> Vec<Warning> {
        let mut found = cut_numbers::warnings(&self.request);
        if let Some(brackets) = &self.hyperband {
            found.extend(compares_nothing(&self.request));
            found.extend(cap_admits(&self.request));
            found.extend(self.cap_too_low(brackets));
            found.extend(self.jobs_cut(brackets));
            found.extend(self.time_too_short(brackets));
            found.extend(self.startup_too_long(brackets));
            found.extend(other_at_submission(brackets));
        }
        found
    }

    fn cap_too_low(&self, brackets: &Brackets) -> Option<Warning> {
        let (cost, cap) = (self.cost(&brackets.own)?, self.cap?);
        Warning::when(
            cost > cap,
            Code::CapEndsEarly,
            format!(
                "The tuning will end early: its expected cost of {} exceeds the cap of {}.",
                usd(cost),
                usd(cap)
            ),
            "Raise MaxCostUsd, or lower MaxNumberOfTrainingJobs or MaxResource.",
        )
    }

    fn startup_too_long(&self, brackets: &Brackets) -> Option<Warning> {
        let training = u64::from(brackets.plan.max_resource()).saturating_mul(self.epoch_ms?);
        Warning::when(
            self.startup_ms > training,
            Code::StartupAboveTraining,
            format!(
                "A start-up of {} s is longer than the training of all {} epochs, {} s: each trial pays for a \
                 start-up, so stopping trials early saves little.",
                self.startup_ms.div_ceil(1_000),
                brackets.plan.max_resource(),
                training.div_ceil(1_000),
            ),
            "Set Strategy to Bayesian or Random, or raise MinResource. KeepAlivePeriodInSeconds shortens start-ups \
             of on-demand jobs.",
        )
    }

    /// Returns a warning for each training job definition whose time limit is too short for all epochs.
    fn jobs_cut(&self, brackets: &Brackets) -> Vec<Warning> {
        let Some(epoch_ms) = self.epoch_ms else { return Vec::new() };
        let longest = u64::from(brackets.plan.max_resource()).saturating_mul(epoch_ms);
        let needed = longest.saturating_add(self.startup_ms).div_ceil(1_000);
        let each = self.request.definitions().map(|one| (one.own_name(), one.max_runtime_seconds()));
        each.filter(|(_, allowed)| needed > *allowed)
            .map(|(name, allowed)| {
                let warning = Warning::new(
                    Code::JobsCutByMaxRuntime,
                    format!(
                        "A job with all {} epochs needs {needed} s, but its time limit is {allowed} s: no trial \
                         reaches the last epoch.",
                        brackets.plan.max_resource()
                    ),
                    format!(
                        "Set StoppingCondition.MaxRuntimeInSeconds to {needed} or more, or lower MaxResource."
                    ),
                );
                warning.of_definition(name)
            })
            .collect()
    }

    fn time_too_short(&self, brackets: &Brackets) -> Option<Warning> {
        let wall = brackets.own.wall_ms.div_ceil(1_000);
        let limit = self.definition.limits.max_runtime_seconds.filter(|limit| wall > *limit)?;
        Some(Warning::new(
            Code::TuningCutByMaxRuntime,
            format!(
                "The tuning will end early: its expected time of {wall} s exceeds its time limit of {limit} s."
            ),
            "Raise ResourceLimits.MaxRuntimeInSeconds or MaxParallelTrainingJobs.",
        ))
    }
}

/// Returns a warning if the controller, which does not know the times of the plan, chooses another `RungExecution`.
fn other_at_submission(brackets: &Brackets) -> Option<Warning> {
    let Brackets { execution, submitted, .. } = *brackets;
    let Times { startup_ms, epoch_ms } = Times::ASSUMED;
    Warning::when(
        execution != submitted,
        Code::RungExecutionDiffers,
        format!(
            "With these times RungExecution Auto is {execution:?}. The controller does not know them. It assumes {} s \
             per start-up and {} s per epoch, and chooses {submitted:?}.",
            startup_ms.div_ceil(1_000),
            epoch_ms.div_ceil(1_000),
        ),
        format!("Set Controller.RungExecution to {execution:?}."),
    )
}

/// Returns a warning if no trials are compared: the training jobs are too few, or no rung fits into the range of epochs.
pub(crate) fn compares_nothing(request: &Request) -> Option<Warning> {
    let range = request.hyperband()?;
    let compares = |plan: &Plan| plan.brackets().iter().any(|bracket| bracket.rungs().len() > 1);
    let (whole, plan) = (request.whole_plan()?, request.plan()?);
    let jobs = request.max_jobs();
    if compares(&plan) {
        return None;
    }
    if !compares(&whole) {
        let (least, max) = (range.min_resource, plan.max_resource());
        let highest = max.checked_div(plan.eta()).unwrap_or(0).max(1);
        return Warning::when(
            max > 1,
            Code::NoRungBeforeEnd,
            format!(
                "No rung fits between MinResource {least} and MaxResource {max}, since ReductionFactor is {}: no trial \
                 is stopped early.",
                plan.eta()
            ),
            format!("Set MinResource to {highest} or less, or a lower ReductionFactor."),
        );
    }
    let least = plan.eta().saturating_add(u32::from(request.refits()));
    Some(Warning::new(
        Code::MaxJobsCompareNothing,
        format!("MaxNumberOfTrainingJobs {jobs} is too few to compare trials: each trial runs to its end."),
        format!("Set MaxNumberOfTrainingJobs to {least} or more."),
    ))
}

/// Returns a warning if the cap admits fewer parallel jobs than the request asks for.
pub(crate) fn cap_admits(request: &Request) -> Option<Warning> {
    let definition = uncapped(request).ok()?;
    let (cap, worst) = (request.cap().ok()??, worst_case(&definition)?);
    let own = request.definitions().nth(definition.job.size(definition.dearest()).index()).unwrap_or(request);
    let (at_once, parallel) = (cap.0.checked_div(worst.0)?, u64::from(definition.limits.max_parallel));
    let warning = Warning::when(
        at_once < parallel,
        Code::CapAdmitsFewerJobs,
        format!(
            "At first only {at_once} of {parallel} training jobs can run in parallel: each job reserves its \
             worst-case cost of {}, and the cap is {}.",
            usd(worst),
            usd(cap)
        ),
        format!(
            "Set StoppingCondition.{} to the seconds that a job needs, or raise MaxCostUsd.",
            own.longest_limit()
        ),
    )?;
    Some(warning.of_definition(own.own_name()))
}

/// Returns how many jobs the cap pays at once, on average: the limit of a job is near the time that it needs, once the
/// first jobs have been timed. `None` without a cap or a price.
fn paid_at_once(request: &Request, definition: &Definition, whole_job_ms: u64) -> Option<u32> {
    let (cap, dearest) = (request.cap().ok()??, definition.dearest());
    let size = definition.job.size(dearest);
    let needed = whole_job_ms.div_ceil(1_000).saturating_mul(MARGIN_PERCENT_USUAL).div_ceil(100);
    let limit = needed.max(MIN_RUNTIME_SECONDS).min(definition.terms(size).max_runtime_seconds);
    let one = definition.worst_case(definition.limits_for(limit, size), dearest)?;
    Some(u32::try_from(cap.0.checked_div(one.0)?).unwrap_or(u32::MAX))
}

impl Brackets {
    fn compute(
        request: &Request,
        hyperband: Hyperband,
        definition: &Definition,
        times: Times,
    ) -> Option<Self> {
        let (execution, why) = request.rungs(&definition.job, times);
        let (submitted, _) = request.rungs(&definition.job, Times::ASSUMED);
        let (all, plan) = (request.whole_plan()?, request.plan()?);
        let whole = (all.brackets().len(), full_set(&all, execution));
        let jobs = request.max_jobs();
        let resumes = request.resumes();
        let instances = request.instance_count().max(1);
        let held = request.max_instances().map_or(u32::MAX, |most| most / instances);
        let paid = paid_at_once(request, definition, times.job_ms(plan.max_resource())).unwrap_or(u32::MAX);
        let workers = request.max_parallel().min(held).min(paid).max(1);
        let setting = |jobs, trials| Setting { plan: &plan, jobs, trials, workers, times, resumes };
        let set = |execution| expected(execution, &setting(full_set(&plan, execution), plan.trials()));
        let (stop, promote) = (set(RungExecution::Stop), set(RungExecution::Promote));
        let own = expected(execution, &setting(jobs, jobs));
        let preferences = (request.compares_late() && execution == RungExecution::Stop).then(|| {
            let strict = |strictness| plan.clone().with_strictness(strictness);
            [strict(100), strict(0)]
                .map(|plan| expected(execution, &Setting { plan: &plan, ..setting(jobs, jobs) }))
        });
        let shares = shares(&plan, trials_of(&plan, execution, jobs));
        let min_resource = hyperband.min_resource;
        Some(Self {
            plan,
            whole,
            shares,
            min_resource,
            execution,
            submitted,
            why,
            jobs,
            held,
            paid,
            resumes,
            stop,
            promote,
            own,
            preferences,
        })
    }

    /// Returns the trials that reach each rung of a bracket in one full run.
    fn trials_at(&self, bracket: usize) -> impl Iterator<Item = u32> {
        let rungs = self.plan.brackets().get(bracket).map_or(&[][..], BracketPlan::rungs);
        let mut running = rungs.first().map_or(0, |rung| rung.slots);
        rungs.iter().enumerate().map(move |(number, rung)| {
            let trials = if self.execution == RungExecution::Promote { rung.slots } else { running };
            running = self.plan.rule(bracket, number).allowed(running);
            trials
        })
    }

    /// Returns a sentence that says which `RungExecution` is cheaper.
    fn verdict(&self, startup_ms: u64, timed: bool) -> String {
        let (stop, promote) = (&self.stop, &self.promote);
        let further = promote.jobs.saturating_sub(stop.jobs);
        let start_up = duration(i64::try_from(startup_ms).unwrap_or(i64::MAX));
        let restart = if self.resumes {
            ""
        } else {
            " (promoted trials restart at their first epoch, because the request does not show working checkpoints)"
        };
        if further == 0 {
            return "Stop and Promote are the same here: there is only one rung.".to_owned();
        }
        let Some(saved) = stop.epochs.checked_sub(promote.epochs).filter(|saved| *saved > 0) else {
            return format!(
                "Stop is cheaper here: Promote starts {further} more jobs and does not train fewer epochs{restart}."
            );
        };
        let even = startup_ms.saturating_mul(further).div_ceil(saved);
        let bound = duration(i64::try_from(even).unwrap_or(i64::MAX));
        if !timed {
            return format!(
                "Promote trains {saved} fewer epochs and starts {further} more jobs. With {start_up} per start-up, it \
                 is cheaper if an epoch takes longer than about {bound}{restart}."
            );
        }
        if promote.billed_ms < stop.billed_ms {
            format!(
                "Promote is cheaper here: it trains {saved} fewer epochs, which saves more than the start-ups of its \
                 {further} additional jobs cost{restart}."
            )
        } else {
            format!(
                "Stop is cheaper here: Promote trains {saved} fewer epochs, but starts {further} more jobs, and each \
                 start-up takes {start_up}{restart}."
            )
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
