//! `hyperband model`: finds the best model of a tuning, and copies it from a data directory.
//!
//! The best model comes from the refit if it completed, else from the best training job.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::json;
use wire::describe::TrainingJobSummary;

use crate::arguments::{Model, Output};
use crate::event_text::rounded;
use crate::failure::{Exit, Failure};
use crate::location::Location;
use crate::output::{print_err, print_json, print_out};
use crate::page::configuration;
use crate::text::{clean, maybe, quoted};
use crate::tunings::Tunings;

pub(crate) async fn model(options: Model) -> Result<Exit, Failure> {
    let page = Tunings::open(&options.tuning.place).await?.page(&options.tuning.name).await?;
    let name = clean(page.name());
    let none = || Failure::usage(format!("the tuning {name} has no best training job yet"));
    let (job, location) = page.best_model().ok_or_else(none)?;
    let job = page.jobs.iter().find(|one| one.name == job).ok_or_else(none)?;
    let copied = match (&location, &options.to) {
        (Location::Missing, _) => return Err(missing(&name, job)),
        (Location::Object(uri), Some(to)) => {
            return Err(Failure::usage(format!("the model of {name} is in S3: {uri}"))
                .hint(format!("copy it with the AWS CLI: {}", copy_command(uri, to))));
        }
        (Location::Folder(folder), Some(to)) => {
            copy_new(folder, to)?;
            Some(to)
        }
        (Location::Folder(_) | Location::Object(_), None) => None,
    };
    match options.tuning.output {
        Output::Json => print_json(&json!({
            "HyperParameterTuningJobName": page.name(),
            "TrainingJobName": job.name,
            "Trial": job.controller.trial,
            "TunedHyperParameters": job.tuned,
            "Resource": job.controller.resource,
            "FinalValue": job.final_objective.as_ref().map(|last| last.value),
            "BestSeen": page.described.controller.totals.best_seen,
            "Model": location.path(),
            "CopiedTo": copied,
        })),
        Output::Text => {
            let value = maybe(job.final_objective.as_ref().map(|last| last.value));
            let (metric, parameters) = (clean(&page.metric()), rounded(&configuration(job)));
            print_err(&format!(
                "{} (trial {}): {metric} = {value}, {parameters}\n",
                job.name, job.controller.trial
            ));
            for note in page.model_notes() {
                print_err(&format!("{note}\n"));
            }
            print_out(&format!(
                "{}\n",
                copied.map_or_else(|| location.text(), |to| to.display().to_string())
            ));
        }
    }
    Ok(Exit::Done)
}

fn missing(name: &str, job: &TrainingJobSummary) -> Failure {
    let save = "let the training program save its model to $SM_MODEL_DIR";
    let failure =
        Failure::usage(format!("the best training job of {name}, {}, left no model", clean(&job.name)));
    failure.hint(if job.controller.state == "Completed" {
        save.to_owned()
    } else {
        format!(
            "{save} after every epoch, or set Controller.Refit to \"Best\": the best configuration is then trained to \
             its end"
        )
    })
}

/// Returns the command that copies a model from S3: an archive, or all files of a folder.
fn copy_command(uri: &str, to: &Path) -> String {
    let recursive = if uri.ends_with('/') { "--recursive " } else { "" };
    format!("aws s3 cp {recursive}{uri} {}", quoted(&to.to_string_lossy()))
}

/// Copies a folder to `to`, which must be missing. A failed copy leaves nothing at `to`.
fn copy_new(from: &Path, to: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        Failure::endpoint(error).context(format!("cannot copy {} to {}", from.display(), to.display()))
    };
    if to.symlink_metadata().is_ok() {
        return Err(Failure::usage(format!("{} already exists", to.display()))
            .hint("give a new folder, so that no file of an earlier model stays"));
    }
    let to_absolute = std::path::absolute(to).map_err(failed)?;
    if to_absolute.starts_with(from) {
        return Err(Failure::usage(format!("{} is in the folder of the model", to.display()))
            .hint("give a folder outside the data directory"));
    }
    let mut name = to_absolute.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = to_absolute.with_file_name(name);
    let copied = copy(from, &new).and_then(|()| fs::rename(&new, &to_absolute));
    if copied.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_dir_all(&new);
    }
    copied.map_err(failed)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        // Follows symbolic links: a copy must not depend on the data directory.
        if fs::metadata(entry.path())?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_copied_as_a_file_and_a_folder_with_its_files() {
        let command = |uri: &str| copy_command(uri, Path::new("my model"));
        let archive = command("s3://b/out/t-1/output/model.tar.gz");
        assert_eq!(archive, "aws s3 cp s3://b/out/t-1/output/model.tar.gz 'my model'");
        let folder = command("s3://b/out/t-1/output/model/");
        assert_eq!(folder, "aws s3 cp --recursive s3://b/out/t-1/output/model/ 'my model'");
    }
}
