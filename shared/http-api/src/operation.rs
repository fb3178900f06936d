//! The operations of the API.

use crate::access::Right;
use crate::list::{JobsQuery, TuningsQuery};

/// An operation on tuning jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Starts a tuning job; contains the body of the request as sent.
    Create(Vec<u8>),
    /// Describes a tuning job.
    Describe(String),
    /// Lists tuning jobs.
    List(TuningsQuery),
    /// Stops a tuning job and its training jobs.
    Stop(String),
    /// Deletes an ended tuning job.
    Delete(String),
    /// Changes limits of a running tuning job; contains its name and the body.
    Change(String, Vec<u8>),
    /// Lists the training jobs of a tuning job.
    ListJobs(String, JobsQuery),
    /// Lists a page of the decisions of a tuning job.
    Decisions {
        /// Name of the tuning job.
        tuning: String,
        /// The step before the first step of the page.
        after: u64,
        /// Maximum number of steps.
        limit: usize,
    },
}

/// `CreateHyperParameterTuningJob`.
pub(crate) const CREATE: &str = "CreateHyperParameterTuningJob";

impl Operation {
    /// Returns the name of the operation, by AWS's name if AWS has it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Create(_) => CREATE,
            Self::Describe(_) => "DescribeHyperParameterTuningJob",
            Self::List(_) => "ListHyperParameterTuningJobs",
            Self::Stop(_) => "StopHyperParameterTuningJob",
            Self::Delete(_) => "DeleteHyperParameterTuningJob",
            Self::Change(..) => "ChangeLimits",
            Self::ListJobs(..) => "ListTrainingJobsForHyperParameterTuningJob",
            Self::Decisions { .. } => "ListDecisions",
        }
    }

    /// Returns the right that the operation needs. To raise a cap needs more, which only the tuning shows.
    pub(crate) fn right(&self) -> Right {
        match self {
            Self::Describe(_) | Self::List(_) | Self::ListJobs(..) | Self::Decisions { .. } => Right::Read,
            Self::Create(_) | Self::Stop(_) | Self::Change(..) => Right::Use,
            Self::Delete(_) => Right::Own,
        }
    }

    /// Returns the name of the tuning job in the request.
    pub fn tuning(&self) -> Option<&str> {
        match self {
            Self::Create(_) | Self::List(_) => None,
            Self::Describe(name)
            | Self::Stop(name)
            | Self::Delete(name)
            | Self::Change(name, _)
            | Self::ListJobs(name, _)
            | Self::Decisions { tuning: name, .. } => Some(name),
        }
    }
}
