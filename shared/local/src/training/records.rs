//! Read-only access to the training jobs of a folder, during or after the run of its service.
//!
//! Takes no lock and changes nothing. Records are replaced atomically, so every read is consistent.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::task::spawn_blocking;
use use_cases::describe::Models;
use use_cases::ports::training::{Description, TrainingJobs, TrainingJobsError};

use super::clock;
use super::describe;
use super::job_log::{self, JobLog};
use super::ports::not_found;
use super::store::{self, Found, Layout};

/// The training jobs of a folder, read-only.
#[derive(Debug, Clone)]
pub struct JobRecords {
    layout: Layout,
}

impl JobRecords {
    /// Returns the jobs in the folder `root` of a service. The folder may be missing.
    pub fn at(root: &Path) -> Self {
        Self { layout: Layout::at(root) }
    }

    /// Returns the folders in which the programs of jobs save their models. They may be missing or empty.
    pub fn models(&self) -> Models {
        self.layout.models()
    }

    /// Returns the log of the job `name`, of one host or of all.
    pub fn log(&self, name: &str, host: Option<&str>) -> JobLog {
        JobLog::at(self.layout.logs(name), host)
    }

    /// Returns how many logs the job `name` has of a host: one for each start of its program.
    pub fn starts(&self, name: &str, host: &str) -> io::Result<usize> {
        let logs = job_log::streams(&self.layout.logs(name))?;
        Ok(logs.iter().filter(|(of, ..)| of == host).count())
    }

    /// Returns where the log of the job `name` is: its file, or their folder if it has several. `None` without a log.
    pub fn log_path(&self, name: &str) -> Option<PathBuf> {
        let folder = self.layout.logs(name);
        let mut files = job_log::streams(&folder).ok()?;
        let (_, _, file) = files.pop()?;
        Some(if files.is_empty() { file } else { folder })
    }

    async fn find(&self, name: &str) -> Result<Found, TrainingJobsError> {
        // Excludes paths out of the folder, and the `.new-` folders of jobs that are being created.
        let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        if name.starts_with('-') || !name.chars().all(is_allowed) {
            return Err(not_found());
        }
        let (layout, name) = (self.layout.clone(), name.to_owned());
        let read = spawn_blocking(move || store::find(&layout, &name)).await;
        read.map_err(|error| TrainingJobsError::Unavailable(error.to_string()))?.ok_or_else(not_found)
    }
}

fn read_only() -> TrainingJobsError {
    let message = "these training jobs are read-only".to_owned();
    TrainingJobsError::Refused { code: "AccessDeniedException".to_owned(), message }
}

impl TrainingJobs for JobRecords {
    async fn create(&self, _: &Value) -> Result<(), TrainingJobsError> {
        Err(read_only())
    }

    async fn stop(&self, _: &str) -> Result<(), TrainingJobsError> {
        Err(read_only())
    }

    async fn release(&self, _: &str) -> Result<(), TrainingJobsError> {
        Err(read_only())
    }

    async fn describe(&self, name: &str) -> Result<Description, TrainingJobsError> {
        Ok(match self.find(name).await? {
            Found::Job(record, _) => describe::description(&record, name, clock::now()),
            Found::Damaged(job) => describe::damaged(&job),
        })
    }

    async fn tags(&self, name: &str) -> Result<BTreeMap<String, String>, TrainingJobsError> {
        Ok(match self.find(name).await? {
            Found::Job(record, request) => describe::tags(&record, &request),
            Found::Damaged(_) => BTreeMap::new(),
        })
    }
}
