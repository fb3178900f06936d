//! Where to find the log of a failed training job.

use std::path::Path;

use local::host::training_path;
use local::training::JobRecords;

use crate::arguments::folder_option;
use crate::text::clean;

/// Where the logs of a tuning are.
#[derive(Debug)]
pub(crate) struct LogHint {
    /// The options that a command needs to reach the tuning.
    location: String,
    /// The jobs of a data directory.
    records: Option<JobRecords>,
}

impl LogHint {
    pub(crate) fn of_run(data_dir: &Path) -> Self {
        Self { location: folder_option(data_dir), records: Some(JobRecords::at(&training_path(data_dir))) }
    }

    /// Logs at the location with these options: of a data directory if `records` are its jobs, else of a stack.
    pub(crate) fn at(location: &str, records: Option<JobRecords>) -> Self {
        Self { location: location.to_owned(), records }
    }

    /// Returns the path of the log of `job`, if it is a file, and the command that prints it. Each line begins with
    /// `margin`.
    pub(crate) fn lines(&self, tuning: &str, trial: u32, job: &str, margin: &str) -> String {
        let path = self.records.as_ref().and_then(|records| records.log_path(job));
        let path = path.map(|path| format!("{margin}log: {}\n", clean(&path.to_string_lossy())));
        let command = format!("hyperband logs {tuning} {trial}{}", self.location);
        format!("{}{margin}see: {command}\n", path.unwrap_or_default())
    }
}
