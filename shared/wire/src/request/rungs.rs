//! `RungExecution`: the mode in which rungs are executed, and its reason.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tuning::definition::JobShape;
use tuning::unit::money::MicroUsd;

use super::Request;
use crate::algorithm::Resume;
use crate::forecast::{self, Setting, Times};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum GivenRungExecution {
    /// The request decides, see [`Request::rungs`].
    #[default]
    Auto,
    /// [`RungExecution::Stop`].
    Stop,
    /// [`RungExecution::Promote`].
    Promote,
}

/// How rungs are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RungExecution {
    /// A job trains until it is stopped at a rung.
    Stop,
    /// A job ends at its rung. A promotion starts a new job.
    Promote,
}

/// `Auto` promotes if that pays for at least this share of the configurations that `Stop` pays for, in percent. On
/// recorded curves a promotion then ends sooner with an equal value; below, it tries too few configurations
/// (docs/SEARCH.md, "Stop or Promote under a cap").
const PROMOTE_FROM_PERCENT: u64 = 77;

/// Least number of simulated trials: the first trials at a rung have few rivals, which the later ones make up for.
const TRIALS_SIMULATED: u32 = 50;

/// Why rungs are executed as they are. Its text is a clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RungsWhy {
    /// The request sets it.
    Given,
    /// No trial is compared at a rung.
    NoRungs,
    /// Auto: the only rung is that of the last epoch.
    OneRung,
    /// Auto: no cap limits the jobs that run at once.
    NoCap,
    /// Auto: the program gets no number of epochs, so a job cannot end at a rung.
    NoResourceHyperParameter,
    /// Auto: a promoted trial would start again from the first epoch.
    NoCheckpoints,
    /// Auto: the number of jobs that the cap pays is unknown without the price.
    NoPrice,
    /// Auto: the configurations that cap and training jobs pay for.
    Forecast(Configurations),
}

/// How many configurations the cap and the training jobs pay for, in proportion to simulated full sets of brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Configurations {
    /// With `Stop`.
    pub stop: u64,
    /// With `Promote`.
    pub promote: u64,
    /// With `Promote`, in percent of those with `Stop`, before both are rounded down to whole configurations.
    pub percent: u64,
    /// The times of the simulated jobs.
    pub times: Times,
}

impl Configurations {
    fn choice(&self) -> RungExecution {
        if self.percent >= PROMOTE_FROM_PERCENT { RungExecution::Promote } else { RungExecution::Stop }
    }
}

impl fmt::Display for RungsWhy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given => formatter.write_str("the request sets RungExecution"),
            Self::NoRungs => formatter.write_str("the strategy compares no trials"),
            Self::OneRung => formatter.write_str("there is only one rung, so no trial is promoted"),
            Self::NoCap => formatter.write_str(
                "without MaxCostUsd no reservation keeps a job waiting, and Stop pays each start-up once",
            ),
            Self::NoResourceHyperParameter => formatter.write_str(
                "without ResourceHyperParameter a job cannot end at a rung",
            ),
            Self::NoCheckpoints => formatter.write_str(
                "the request does not show working checkpoints, so promoted trials would restart at their first epoch",
            ),
            Self::NoPrice => {
                formatter.write_str("the price is unknown here; a stack decides with the price at the submission")
            }
            Self::Forecast(paid) => {
                let Configurations { stop, promote, times, .. } = paid;
                let (startup, epoch) = (Seconds(times.startup_ms), Seconds(times.epoch_ms));
                write!(
                    formatter,
                    "with {startup} per start-up and {epoch} per epoch, MaxCostUsd and the training jobs pay for about \
                     {promote} configurations with Promote and {stop} with Stop; ",
                )?;
                match paid.choice() {
                    RungExecution::Promote => write!(
                        formatter,
                        "that is at least {PROMOTE_FROM_PERCENT} %, and a job that ends at its rung reserves less, so more \
                         jobs run at once",
                    ),
                    RungExecution::Stop => write!(formatter, "that is less than {PROMOTE_FROM_PERCENT} %"),
                }
            }
        }
    }
}

/// Milliseconds that are shown as seconds.
struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 1_000, self.0 % 1_000);
        if rest == 0 {
            return write!(formatter, "{whole} s");
        }
        let fraction = format!("{rest:03}");
        write!(formatter, "{whole}.{} s", fraction.trim_end_matches('0'))
    }
}

impl Request {
    /// Returns how rungs are executed, and why, where `job` is what one training job runs on, with its price.
    ///
    /// `Auto` is `Promote` where a cap is set, trials can resume, and the cap and the training jobs pay for nearly as
    /// many configurations as with `Stop`. A simulation of full sets of brackets with jobs of these `times` shows that.
    pub fn rungs(&self, job: &JobShape, times: Times) -> (RungExecution, RungsWhy) {
        match self.given_rung_execution() {
            GivenRungExecution::Stop => (RungExecution::Stop, RungsWhy::Given),
            GivenRungExecution::Promote => (RungExecution::Promote, RungsWhy::Given),
            GivenRungExecution::Auto => match self.configurations(job, times) {
                Err(why) => (RungExecution::Stop, why),
                Ok(paid) => (paid.choice(), RungsWhy::Forecast(paid)),
            },
        }
    }

    /// Returns the request with this `RungExecution`.
    #[must_use]
    pub fn with_rungs(&self, execution: RungExecution) -> Self {
        let mut body = self.body.clone();
        body["Controller"]["RungExecution"] = json!(execution);
        Self::from_stored(body)
    }

    fn given_rung_execution(&self) -> GivenRungExecution {
        self.fields.controller.rung_execution.unwrap_or_default()
    }

    /// Returns whether the request asks for promotions itself.
    pub fn is_promotion_given(&self) -> bool {
        self.given_rung_execution() == GivenRungExecution::Promote
    }

    /// Returns whether trials may be promoted: the request asks for it, or `Auto` may choose it.
    pub fn may_promote(&self) -> bool {
        match self.given_rung_execution() {
            GivenRungExecution::Stop => false,
            GivenRungExecution::Promote => self.strategy().compares_trials(),
            GivenRungExecution::Auto => self.obstacle_to_promotion().is_none(),
        }
    }

    fn obstacle_to_promotion(&self) -> Option<RungsWhy> {
        if !self.strategy().compares_trials() {
            return Some(RungsWhy::NoRungs);
        }
        if self.fields.controller.max_cost_usd.is_none() {
            return Some(RungsWhy::NoCap);
        }
        // All definitions have the same rungs.
        if self.definitions().any(|one| one.resource_hyperparameter().is_none()) {
            return Some(RungsWhy::NoResourceHyperParameter);
        }
        (!self.definitions().all(Self::resumes)).then_some(RungsWhy::NoCheckpoints)
    }

    fn configurations(&self, job: &JobShape, times: Times) -> Result<Configurations, RungsWhy> {
        if let Some(why) = self.obstacle_to_promotion() {
            return Err(why);
        }
        let whole = self.whole_plan().ok_or(RungsWhy::NoRungs)?;
        let cap = self.cap().ok().flatten().ok_or(RungsWhy::NoCap)?;
        let all = paid_ms(cap, job).ok_or(RungsWhy::NoPrice)?;
        let refit_ms = if self.refits() { times.job_ms(whole.max_resource()) } else { 0 };
        let jobs = u64::from(self.max_jobs().saturating_sub(u32::from(self.refits())));
        let held = self.max_instances().map_or(u32::MAX, |most| most / self.instance_count().max(1));
        let workers = self.max_parallel().min(held).max(1);
        // The strictness depends on the jobs of the request, of which the cap may pay few.
        let plan = self.fitting(&whole).with_strictness(0);
        if plan.jobs() == plan.trials() {
            return Err(RungsWhy::OneRung);
        }
        let sets = TRIALS_SIMULATED.div_ceil(plan.trials().max(1));
        let trials = plan.trials().saturating_mul(sets);
        let left = all.saturating_sub(refit_ms);
        // Configurations are `trials * part.0 / part.1`.
        let part = |execution| {
            let needed = forecast::full_set(&plan, execution).saturating_mul(sets);
            let setting = Setting { plan: &plan, jobs: needed, trials, workers, times, resumes: true };
            let billed = forecast::expected(execution, &setting).billed_ms;
            let (by_jobs, by_cap) = ((jobs, u64::from(needed.max(1))), (left, billed.max(1)));
            if less(by_jobs, by_cap) { by_jobs } else { by_cap }
        };
        let (stop, promote) = (part(RungExecution::Stop), part(RungExecution::Promote));
        let count = |part: (u64, u64)| share(u64::from(trials), part.0, part.1);
        let percent = ratio_percent(promote, stop);
        Ok(Configurations { stop: count(stop), promote: count(promote), percent, times })
    }

    /// Returns whether a promoted trial continues from its checkpoint, as far as the request shows.
    pub fn resumes(&self) -> bool {
        let works = self.built_in().is_none_or(|algorithm| algorithm.resume == Resume::Works);
        self.checkpoint_uri().is_some() && works
    }
}

/// Returns whether the first fraction is less than the second.
fn less(one: (u64, u64), other: (u64, u64)) -> bool {
    u128::from(one.0).saturating_mul(other.1.into()) < u128::from(other.0).saturating_mul(one.1.into())
}

/// Returns the first fraction in percent of the second, rounded down; 0 if the second is 0.
fn ratio_percent(one: (u64, u64), other: (u64, u64)) -> u64 {
    let wide = |a: u64, b: u64| u128::from(a).saturating_mul(b.into());
    let percent = wide(one.0, other.1).saturating_mul(100).checked_div(wide(other.0, one.1));
    percent.and_then(|percent| u64::try_from(percent).ok()).unwrap_or(0)
}

/// Returns how many of `trials` an amount pays for, if all of them need `needed`.
fn share(trials: u64, amount: u64, needed: u64) -> u64 {
    let paid = u128::from(trials).saturating_mul(u128::from(amount)) / u128::from(needed.max(1));
    u64::try_from(paid).unwrap_or(u64::MAX)
}

/// Returns the time of jobs that `cap` pays, in ms. `None` without a price.
fn paid_ms(cap: MicroUsd, job: &JobShape) -> Option<u64> {
    let hour = job.instances(job.largest()).cost(3_600)?;
    Some(share(3_600_000, cap.0, hour.0))
}
