//! `RungExecution`: how rungs are executed, and why.

use std::fmt;

use serde::{Deserialize, Serialize};
use tuning::limits::MAX_TRAINING_JOBS;

use super::Request;
use crate::algorithm::Resume;

/// `RungExecution` as the request sets it.
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

/// Why rungs are executed as they are. Its text is a clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RungsWhy {
    /// The request sets it.
    Given,
    /// No trial is compared at a rung.
    NoRungs,
    /// Auto: no cap limits the jobs that run at once.
    NoCap,
    /// Auto: the program gets no number of epochs, so a job cannot end at a rung.
    NoResourceHyperParameter,
    /// Auto: a promoted trial would start again from the first epoch.
    NoCheckpoints,
    /// Auto: the training jobs are too few for so many, which a full set with promotions has.
    FewJobs(u32),
    /// Auto: a cap limits the jobs that run at once, and trials can resume.
    Capped,
}

impl fmt::Display for RungsWhy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given => formatter.write_str("the request sets RungExecution"),
            Self::NoRungs => formatter.write_str("the strategy compares no trials"),
            Self::NoCap => formatter.write_str(
                "without MaxCostUsd no reservation keeps a job waiting, and Stop pays each start-up once",
            ),
            Self::NoResourceHyperParameter => formatter.write_str(
                "without ResourceHyperParameter a job cannot end at a rung",
            ),
            Self::NoCheckpoints => formatter.write_str(
                "the request does not show working checkpoints, so promoted trials would restart at their first epoch",
            ),
            Self::FewJobs(full_set) => write!(
                formatter,
                "each promotion is a training job, and MaxNumberOfTrainingJobs is below the {full_set} of a full set \
                 with promotions",
            ),
            Self::Capped => formatter.write_str(
                "trials resume from checkpoints, and a job that ends at its rung reserves less of MaxCostUsd, so more \
                 jobs run at once",
            ),
        }
    }
}

impl Request {
    /// Returns how rungs are executed.
    pub fn rung_execution(&self) -> RungExecution {
        self.rungs().0
    }

    /// Returns how rungs are executed, and why.
    ///
    /// `Auto` is `Promote` where a cap limits the jobs that run at once, trials can resume, and the training jobs are
    /// enough for the promotions of a full set of brackets.
    pub fn rungs(&self) -> (RungExecution, RungsWhy) {
        match self.given_rung_execution() {
            GivenRungExecution::Stop => (RungExecution::Stop, RungsWhy::Given),
            GivenRungExecution::Promote => (RungExecution::Promote, RungsWhy::Given),
            GivenRungExecution::Auto => match self.obstacle_to_promotion() {
                Some(why) => (RungExecution::Stop, why),
                None => (RungExecution::Promote, RungsWhy::Capped),
            },
        }
    }

    fn given_rung_execution(&self) -> GivenRungExecution {
        self.fields.controller.rung_execution.unwrap_or_default()
    }

    /// Returns whether the request asks for promotions itself.
    pub(crate) fn is_promotion_given(&self) -> bool {
        self.given_rung_execution() == GivenRungExecution::Promote
    }

    fn obstacle_to_promotion(&self) -> Option<RungsWhy> {
        if !self.strategy().compares_trials() {
            return Some(RungsWhy::NoRungs);
        }
        if self.fields.controller.max_cost_usd.is_none() {
            return Some(RungsWhy::NoCap);
        }
        if self.resource_hyperparameter().is_none() {
            return Some(RungsWhy::NoResourceHyperParameter);
        }
        if !self.resumes() {
            return Some(RungsWhy::NoCheckpoints);
        }
        let Some(plan) = self.whole_plan() else { return Some(RungsWhy::NoRungs) };
        let full_set = plan.jobs().saturating_add(u32::from(self.refits()));
        let jobs = self.given_max_jobs().unwrap_or(full_set).min(MAX_TRAINING_JOBS);
        (jobs < full_set).then_some(RungsWhy::FewJobs(full_set))
    }

    /// Returns whether a promoted trial continues from its checkpoint, as far as the request shows.
    pub fn resumes(&self) -> bool {
        let works = self.built_in().is_none_or(|algorithm| algorithm.resume == Resume::Works);
        self.checkpoint_uri().is_some() && works
    }
}
