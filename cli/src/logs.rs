//! `hyperband logs`: prints the log of a training job, from the data directory or from CloudWatch Logs.
//!
//! Changes nothing and takes no lock.

mod choice;
mod cloud;
pub(crate) mod end;
mod local;
mod printer;

use tuning::state::failures::cause;
use wire::describe::TrainingJobSummary;

use crate::arguments::Logs;
use crate::failure::{Exit, Failure};
use crate::output::print_err;
use crate::page::Page;
use crate::remote::{NOT_FOUND, failed};
use crate::signals::Signals;
use crate::tunings::{Home, Tunings};
use choice::{NoJob, choose};
use printer::Printer;

pub(crate) async fn logs(options: Logs) -> Result<Exit, Failure> {
    let mut signals = Signals::listen()?;
    tokio::select! {
        printed = print_log(&options) => printed,
        () = signals.next() => Ok(Exit::Interrupted),
    }
}

async fn print_log(options: &Logs) -> Result<Exit, Failure> {
    let tunings = Tunings::open(&options.place).await?;
    let page = tunings.page(&options.name).await?;
    let job = chosen(&page, options)?;
    let mut printer = Printer::new(&page, job, options);
    match &tunings.home {
        Home::Folder(data) => local::print_log(&tunings, data, job, options, &mut printer).await?,
        Home::Stack(stack) => cloud::print_log(&tunings, stack, job, options, &mut printer).await?,
    }
    Ok(Exit::Done)
}

/// Returns the job to print, and says on standard error which it is.
fn chosen<'a>(page: &'a Page, options: &Logs) -> Result<&'a TrainingJobSummary, Failure> {
    let (name, wanted) = (page.name(), options.trial.as_deref());
    let job = choose(page, wanted).map_err(|error| match (error, wanted) {
        (NoJob::Unknown, Some(wanted)) => {
            let place = options.place.location_options();
            Failure::usage(format!("{name} has no trial and no training job '{wanted}'")).hint(format!(
                "TRIAL is a trial number, which `hyperband describe {name}{place}` lists, or the name of a training job"
            ))
        }
        (NoJob::None | NoJob::Unknown, _) => {
            Failure::usage(format!("{name} has no training job yet")).hint("try again when a job has started")
        }
    })?;
    let why = job.failure_reason.as_deref().map(|reason| format!(", {}", cause(reason)));
    let (trial, state) = (job.controller.trial, page.state(job));
    let why = why.unwrap_or_default();
    print_err(&format!("log of {}: trial {trial}, {state}{why}\n", job.name));
    Ok(job)
}

/// Returns whether `job` has ended by now, or was deleted.
async fn has_ended_now(tunings: &Tunings, options: &Logs, job: &TrainingJobSummary) -> Result<bool, Failure> {
    match tunings.client.training_job(&options.name, &job.name).await {
        Ok(found) => Ok(choice::has_ended(&found.job)),
        Err(error) if error.is(NOT_FOUND) => Ok(true),
        Err(error) => Err(failed(error)),
    }
}

/// Returns the error for a job that has ended without a line in its log.
fn no_log(job: &TrainingJobSummary, place: &str) -> Failure {
    let never_ran = !choice::has_run(job);
    let hint = if never_ran { "it never started" } else { "its program never ran, or the log was deleted" };
    Failure::usage(format!("{place} has no log of the training job {}", job.name)).hint(hint)
}
