//! The log of a training job of a data directory.

use std::io;
use std::time::Duration;

use local::training::JobRecords;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use use_cases::ports::training::{TrainingJobs, TrainingJobsError};
use wire::describe::TrainingJobSummary;

use super::end::End;
use super::{Printer, has_ended_now};
use crate::arguments::Logs;
use crate::data::Data;
use crate::failure::Failure;
use crate::output::print_err;
use crate::tunings::Tunings;

/// Time between two reads of the log of a running job.
const READ_EVERY: Duration = Duration::from_millis(200);

/// Prints the log of `job`.
pub(super) async fn print_log(
    tunings: &Tunings,
    data: &Data,
    job: &TrainingJobSummary,
    options: &Logs,
    printer: &mut Printer,
) -> Result<(), Failure> {
    let records = data.training_jobs();
    let mut log = records.log(&job.name, options.host.as_deref());
    let mut warned = false;
    loop {
        // Asked before the read: a job that has ended writes no further line.
        let ended = is_over(tunings, options, &records, job).await?;
        loop {
            let (kept, lines) = spawn_blocking(move || {
                let lines = log.next_lines();
                (log, lines)
            })
            .await?;
            log = kept;
            let lines = lines.map_err(|error| cannot_read(error, &job.name))?;
            if lines.is_empty() {
                break;
            }
            if !lines.iter().all(|line| printer.print(&line.host, line.timestamp, &line.message)) {
                return Ok(());
            }
        }
        if ended || !options.follow {
            return if printer.lines() > 0 { Ok(()) } else { empty(&records, job, options, ended) };
        }
        if !warned && !data.is_running() {
            warned = true;
            let resume = tunings.resume(&options.name);
            print_err(&format!("no `hyperband run` is active; `{resume}` continues the tuning\n"));
        }
        sleep(READ_EVERY).await;
    }
}

/// Adds the last lines of the job `name` to `end`.
pub(super) async fn read_end(records: &JobRecords, name: &str, mut end: End) -> Result<End, Failure> {
    let mut log = records.log(name, None);
    let read = spawn_blocking(move || -> io::Result<End> {
        log.skip_to_end()?;
        loop {
            let lines = log.next_lines()?;
            if lines.is_empty() {
                return Ok(end);
            }
            for line in &lines {
                end.push(line);
            }
        }
    });
    read.await?.map_err(|error| cannot_read(error, name))
}

fn cannot_read(error: io::Error, name: &str) -> Failure {
    Failure::endpoint(error).context(format!("cannot read the log of {name}"))
}

/// Returns whether the job writes no further line.
async fn is_over(
    tunings: &Tunings,
    options: &Logs,
    records: &JobRecords,
    job: &TrainingJobSummary,
) -> Result<bool, Failure> {
    match records.describe(&job.name).await {
        Ok(described) => Ok(matches!(described.status.as_str(), "Completed" | "Failed" | "Stopped")),
        // It is not created yet, or never will be.
        Err(TrainingJobsError::NotFound(_)) => has_ended_now(tunings, options, job).await,
        Err(error) => Err(error.into()),
    }
}

/// Explains why no line was printed.
fn empty(records: &JobRecords, job: &TrainingJobSummary, options: &Logs, ended: bool) -> Result<(), Failure> {
    let has_log = records.log_path(&job.name).is_some();
    if has_log && let Some(host) = &options.host {
        print_err(&format!("the log of {} has no line of {host}\n", job.name));
    } else if has_log {
        print_err("the log is empty: the program has written nothing\n");
    } else if ended {
        return Err(super::no_log(job, "the data directory"));
    } else {
        print_err("the training job has not started yet; --follow waits for its log\n");
    }
    Ok(())
}
