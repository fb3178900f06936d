//! What can be asked for.

use crate::list::{JobsQuery, TuningsQuery};

/// An operation on tuning jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Starts a tuning job: the body of the request, as it was sent.
    Create(Vec<u8>),
    /// Shows one.
    Describe(String),
    /// Lists them.
    List(TuningsQuery),
    /// Stops one and its training jobs.
    Stop(String),
    /// Changes limits of one that runs: its name and the body.
    Change(String, Vec<u8>),
    /// Lists its training jobs.
    ListJobs(String, JobsQuery),
    /// Shows a page of its decisions: after which step, and how many steps.
    Decisions {
        /// Name of the tuning job.
        tuning: String,
        /// The first step shown is the one after this.
        after: u64,
        /// At most so many steps.
        limit: usize,
    },
}

/// `CreateHyperParameterTuningJob`.
pub(crate) const CREATE: &str = "CreateHyperParameterTuningJob";

impl Operation {
    /// Its name, as AWS has it where AWS has it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Create(_) => CREATE,
            Self::Describe(_) => "DescribeHyperParameterTuningJob",
            Self::List(_) => "ListHyperParameterTuningJobs",
            Self::Stop(_) => "StopHyperParameterTuningJob",
            Self::Change(..) => "ChangeLimits",
            Self::ListJobs(..) => "ListTrainingJobsForHyperParameterTuningJob",
            Self::Decisions { .. } => "ListDecisions",
        }
    }

    /// The tuning job that it names.
    pub fn tuning(&self) -> Option<&str> {
        match self {
            Self::Create(_) | Self::List(_) => None,
            Self::Describe(name)
            | Self::Stop(name)
            | Self::Change(name, _)
            | Self::ListJobs(name, _)
            | Self::Decisions { tuning: name, .. } => Some(name),
        }
    }
}
