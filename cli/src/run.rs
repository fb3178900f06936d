//! `hyperband run`: runs a tuning on this machine, from the request to the result.
//!
//! All state is in the data directory. If the process is killed, the same command line continues the tuning. If the
//! tuning has ended, the command only prints its result. Must never run another tuning of the folder with this command
//! line's training program.

pub(crate) mod ask;
pub(crate) mod command;
mod session;
pub(crate) mod signals;

use std::path::Path;

use dynamodb::DynamoTable;
use local::host::{Host, HostConfig, HostError};
use serde_json::json;
use use_cases::describe;
use use_cases::lookup::{self, LookupError};
use use_cases::store::Store;
use use_cases::submit::SubmitError;
use wire::describe::difference;
use wire::request::Request;
use wire::stored::{ACTIVE, active_id};

use crate::arguments::{Output, Run};
use crate::cut;
use crate::data::Data;
use crate::failure::{Exit, Failure};
use crate::follow::Since;
use crate::output::{print_err, print_json, print_out};
use crate::page::Page;
use crate::warning;
use session::Outcome;

pub(crate) use signals::Signals;

/// The tuning in the data directory that has the requested name and the same request.
enum Existing {
    /// There is no tuning with this name.
    Missing,
    /// The id of a tuning that has not ended.
    Active(String),
    /// The id of a tuning that has ended.
    Ended(String),
}

/// Performs `hyperband run`.
pub(crate) async fn run(options: Run) -> Result<Exit, Failure> {
    let request = ask::read_local(&options.request, options.name.as_deref())?;
    let program = command::resolve(&options.command)?;
    let data_dir = options.place.data_dir.clone();
    if let Some(data) = Data::open(&data_dir).await? {
        if let Existing::Ended(id) = existing(&data.store, &request).await? {
            print_err(&format!("{} has already ended; this is its result:\n", request.name()));
            return print_result(&data.store, &id, &options).await;
        }
        reject_other_active(&data.store, request.name()).await?;
    }
    let mut signals = Signals::listen()?;
    let config = HostConfig {
        command: program,
        seed: request.random_seed().unwrap_or(0),
        ..session::config(&options)?
    };
    let host = tokio::select! {
        host = Host::open(config) => host.map_err(|error| open_failure(error, &data_dir))?,
        () = signals.next() => return Ok(Exit::Interrupted),
    };
    let outcome = tune(&host, &request, &mut signals).await;
    let shown = match &outcome {
        Ok(Outcome::Ended(id)) => Some(print_result(host.store(), id, &options).await),
        Ok(Outcome::Interrupted) | Err(_) => None,
    };
    if matches!(outcome, Ok(Outcome::Interrupted)) {
        print_err("interrupted: stopping the training processes (press Ctrl-C again to exit at once)\n");
    }
    tokio::select! {
        () = host.shutdown() => {}
        // The training processes end with this process in any case.
        () = signals.next() => {}
    }
    match (outcome?, shown) {
        (Outcome::Ended(_), Some(shown)) => shown,
        (Outcome::Ended(_) | Outcome::Interrupted, _) => {
            print_err(&format!("{} has not ended; to continue it, repeat the command:\n", request.name()));
            print_err(&format!("  {}\n", command::line()));
            Ok(Exit::Interrupted)
        }
    }
}

/// Submits or continues the tuning, and follows it until it ends.
async fn tune(host: &Host, request: &Request, signals: &mut Signals) -> Result<Outcome, Failure> {
    match existing(host.store(), request).await? {
        Existing::Ended(id) => Ok(Outcome::Ended(id)),
        Existing::Active(id) => {
            warn(request);
            session::follow(host, &id, Since::Now, signals).await
        }
        Existing::Missing => {
            let body = request.body().to_string();
            let id = host.submit(body.as_bytes()).await.map_err(submit_failure)?.id();
            warn(request);
            session::follow(host, &id, Since::Submission, signals).await
        }
    }
}

/// Prints a warning for each metric whose pattern cuts numbers.
fn warn(request: &Request) {
    for warning in cut::warnings(request) {
        print_err(&format!("{}\n", warning::plain(&warning)));
    }
}

/// Finds the tuning with the request's name. Fails if its request is different.
async fn existing(store: &Store<DynamoTable>, request: &Request) -> Result<Existing, Failure> {
    let row = match lookup::find(store, request.name()).await {
        Ok(row) => row,
        Err(LookupError::NotFound(_)) => return Ok(Existing::Missing),
        Err(error) => return Err(error.into()),
    };
    let Some(loaded) = store.load(&row.id).await? else { return Ok(Existing::Missing) };
    if loaded.tuning.request.body() != request.body() {
        let name = &row.name;
        let place = difference(loaded.tuning.request.body(), request.body()).unwrap_or_default();
        let place = place.trim_start_matches('.');
        let first = if place.is_empty() { String::new() } else { format!(" (first difference: {place})") };
        return Err(Failure::usage(format!(
            "the tuning '{name}' already exists with a different request{first}"
        ))
        .hint(format!(
            "use another --name or --data-dir, or end the existing tuning with `hyperband stop {name}`"
        )));
    }
    Ok(if loaded.state.is_ended() { Existing::Ended(row.id) } else { Existing::Active(row.id) })
}

/// Fails if the folder has another tuning that has not ended, unless it is stopping. Otherwise the host would run it
/// with this command line's training program.
async fn reject_other_active(store: &Store<DynamoTable>, name: &str) -> Result<(), Failure> {
    for row in store.all(ACTIVE, "").await? {
        let Some(id) = active_id(&row) else { continue };
        let Some(loaded) = store.load(id).await? else { continue };
        let other = &loaded.tuning.definition.name;
        if loaded.state.is_ended() || other.eq_ignore_ascii_case(name) {
            continue;
        }
        if !is_stopping(store, id).await? {
            return Err(Failure::usage(format!(
                "the data directory has another tuning that has not ended: '{other}'"
            ))
            .hint(format!(
                "repeat the command line of '{other}' to finish it, stop it with `hyperband stop {other}`, or use \
                 another --data-dir"
            )));
        }
    }
    Ok(())
}

async fn is_stopping(store: &Store<DynamoTable>, id: &str) -> Result<bool, Failure> {
    let described = describe::summary(store, &local::host::place(), id).await?;
    Ok(described.is_none_or(|tuning| tuning.base.is_stopping()))
}

/// Prints the result of a tuning that has ended, and returns the exit code.
async fn print_result(store: &Store<DynamoTable>, id: &str, options: &Run) -> Result<Exit, Failure> {
    let page = Page::read(store, id).await?;
    match options.output {
        Output::Json => {
            print_json(&json!({"TuningJob": page.described, "TrainingJobs": page.jobs}));
        }
        Output::Text => {
            print_out(&format!("{}{}", page.summary(), page.see_more(&options.place.data_dir)));
        }
    }
    Ok(page.exit())
}

fn submit_failure(error: SubmitError) -> Failure {
    match error {
        SubmitError::Request(error) => ask::invalid_request(&error),
        SubmitError::NameTaken(name) => {
            Failure::usage(format!("another process has just started a tuning '{name}'"))
                .hint("use another --name")
        }
        SubmitError::MonthlyCap(message) => Failure::usage(message),
        SubmitError::Prices(error) => error.into(),
        SubmitError::Store(error) => error.into(),
    }
}

fn open_failure(error: HostError, data_dir: &Path) -> Failure {
    let in_use = matches!(
        error,
        HostError::Table(dynamodb::OpenError::InUse { .. })
            | HostError::Training(local::training::OpenError::InUse { .. })
    );
    let failure = Failure::endpoint(error).context(format!("cannot work in {}", data_dir.display()));
    if in_use {
        failure
            .hint("another `hyperband run` uses this data directory: wait for it, or use another --data-dir")
    } else {
        failure
    }
}
