//! The operations of the API.

use std::collections::BTreeMap;

use tuning::log::fact::JobKey;
use wire::names::{parse_training_job_name, training_job_name};

use crate::list::{JobsQuery, TuningsQuery};

/// What a caller may do. Each right includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Right {
    Read,
    /// Submit, change and stop tunings.
    Use,
    /// Raise caps and delete tunings.
    Own,
}

/// An operation on tuning jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Starts a tuning job.
    Create {
        /// The body of the request as sent.
        body: Vec<u8>,
        /// Whether the name is an idempotency token: the same request again succeeds. Automatic Model Tuning refuses it.
        is_idempotent: bool,
    },
    /// Returns the `OpenAPI` document.
    Document,
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
    /// Shows one training job with its curve.
    Job(JobName),
    /// Describes one training job as SageMaker does.
    DescribeJob(JobName),
    /// Stops one training job; its tuning job goes on.
    StopJob(JobName),
    /// Lists the tags of a tuning job or of a training job.
    ListTags(Resource),
    /// Adds tags to a tuning job.
    AddTags(Resource, BTreeMap<String, String>),
    /// Returns the report of a tuning job, an HTML page.
    Report(String),
    /// Shows the booked costs of a page of training jobs.
    Cost {
        /// Name of the tuning job.
        tuning: String,
        /// The content of the token: the ID of the tuning, and the last position of the previous page.
        after: Option<String>,
        /// Maximum number of training jobs.
        limit: usize,
    },
    /// Lists a page of the stored rows of a tuning job.
    Rows {
        /// Name of the tuning job.
        tuning: String,
        /// The content of the token: the ID of the tuning, and the position where the page begins; `None` = the first
        /// page.
        after: Option<String>,
        /// Maximum number of rows.
        limit: usize,
    },
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

/// The operation whose response is a page.
pub(crate) const REPORT: &str = "GetReport";

/// The name of a training job, by its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobName {
    /// Name of the tuning job.
    pub tuning: String,
    /// ID of the tuning job.
    pub id: String,
    /// The key of the training job in its tuning job.
    pub key: JobKey,
}

impl JobName {
    /// Reads the name of a training job. Names of other controllers' jobs have another form.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (id, key) = parse_training_job_name(name)?;
        let (tuning, _) = id.rsplit_once('-')?;
        Some(Self { tuning: tuning.to_owned(), id, key })
    }

    /// Returns the name.
    pub fn name(&self) -> String {
        training_job_name(&self.id, self.key)
    }
}

/// A resource with tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    /// The tuning job of this name.
    Tuning(String),
    /// A training job.
    Job(JobName),
}

pub(crate) const CREATE: &str = "CreateHyperParameterTuningJob";

impl Operation {
    /// Returns the name of the operation, by AWS's name if AWS has it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Create { .. } => CREATE,
            Self::Document => "GetOpenApi",
            Self::Describe(_) => "DescribeHyperParameterTuningJob",
            Self::List(_) => "ListHyperParameterTuningJobs",
            Self::Stop(_) => "StopHyperParameterTuningJob",
            Self::Delete(_) => "DeleteHyperParameterTuningJob",
            Self::Change(..) => "ChangeLimits",
            Self::ListJobs(..) => "ListTrainingJobsForHyperParameterTuningJob",
            Self::Job(_) => "GetTrainingJob",
            Self::DescribeJob(_) => "DescribeTrainingJob",
            Self::StopJob(_) => "StopTrainingJob",
            Self::ListTags(_) => "ListTags",
            Self::AddTags(..) => "AddTags",
            Self::Decisions { .. } => "ListDecisions",
            Self::Rows { .. } => "ListRows",
            Self::Cost { .. } => "GetCost",
            Self::Report(_) => REPORT,
        }
    }

    /// Returns the right that the operation needs. To raise a cap needs more, which only the tuning shows.
    pub(crate) fn right(&self) -> Right {
        match self {
            Self::Document
            | Self::Describe(_)
            | Self::List(_)
            | Self::ListJobs(..)
            | Self::Job(_)
            | Self::DescribeJob(_)
            | Self::ListTags(_)
            | Self::Decisions { .. }
            | Self::Rows { .. }
            | Self::Cost { .. }
            | Self::Report(_) => Right::Read,
            Self::Create { .. } | Self::Stop(_) | Self::StopJob(_) | Self::Change(..) | Self::AddTags(..) => {
                Right::Use
            }
            Self::Delete(_) => Right::Own,
        }
    }

    /// Returns the name of the tuning job in the request.
    pub fn tuning(&self) -> Option<&str> {
        match self {
            Self::Create { .. } | Self::Document | Self::List(_) => None,
            Self::Describe(name)
            | Self::Stop(name)
            | Self::Report(name)
            | Self::Delete(name)
            | Self::Change(name, _)
            | Self::ListJobs(name, _)
            | Self::Job(JobName { tuning: name, .. })
            | Self::DescribeJob(JobName { tuning: name, .. })
            | Self::StopJob(JobName { tuning: name, .. })
            | Self::ListTags(Resource::Tuning(name) | Resource::Job(JobName { tuning: name, .. }))
            | Self::AddTags(Resource::Tuning(name) | Resource::Job(JobName { tuning: name, .. }), _)
            | Self::Rows { tuning: name, .. }
            | Self::Cost { tuning: name, .. }
            | Self::Decisions { tuning: name, .. } => Some(name),
        }
    }
}
