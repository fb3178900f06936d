//! `hyperband run`: a whole tuning on this machine, from the request to the result.
//!
//! Killed at any moment, the same command line goes on where it was: everything is in the data directory. A tuning
//! that has ended is only shown again. Never starts work for another tuning of the folder with this one's command.

pub(crate) mod ask;
pub(crate) mod command;
mod session;
pub(crate) mod signals;

use std::path::Path;

use dynamodb::DynamoTable;
use local::host::{Host, HostConfig, HostError};
use serde_json::json;
use service::describe;
use service::lookup::{self, LookupError};
use service::store::Store;
use service::submit::SubmitError;
use wire::describe::difference;
use wire::request::Request;
use wire::stored::{ACTIVE, active_id};

use crate::arguments::{Output, Run};
use crate::data::Data;
use crate::failure::{Exit, Failure};
use crate::output::{say, say_json, tell};
use crate::page::Page;
use session::Outcome;

pub(crate) use session::Since;
pub(crate) use signals::Signals;

/// What there is of a tuning with the name that is asked for.
enum Known {
    Nothing,
    /// Not ended; the same request.
    GoesOn(String),
    /// Ended; the same request.
    Ended(String),
}

/// Runs a tuning.
pub(crate) async fn run(options: Run) -> Result<Exit, Failure> {
    let request = ask::read(&options.request, options.name.as_deref())?;
    let program = command::resolve(&options.command)?;
    let data_dir = options.place.data_dir.clone();
    if let Some(data) = Data::open(&data_dir).await? {
        if let Known::Ended(id) = known(&data.store, &request).await? {
            tell(&format!("{} has ended already; its result again:\n", request.name()));
            return result(&data.store, &id, &options).await;
        }
        others(&data.store, request.name()).await?;
    }
    let mut signals = Signals::listen()?;
    let seed = request.at("HyperParameterTuningJobConfig.RandomSeed").and_then(serde_json::Value::as_u64);
    let config = HostConfig { command: program, seed: seed.unwrap_or(0), ..session::config(&options)? };
    let host = tokio::select! {
        host = Host::open(config) => host.map_err(|error| not_opened(error, &data_dir))?,
        () = signals.next() => return Ok(Exit::Interrupted),
    };
    let outcome = tune(&host, &request, &mut signals).await;
    let shown = match &outcome {
        Ok(Outcome::Ended(id)) => Some(result(host.store(), id, &options).await),
        Ok(Outcome::Interrupted) | Err(_) => None,
    };
    if matches!(outcome, Ok(Outcome::Interrupted)) {
        tell("interrupted: stopping the training processes (press Ctrl-C again to leave at once)\n");
    }
    tokio::select! {
        () = host.shutdown() => {}
        // The processes end with this one all the same.
        () = signals.next() => {}
    }
    match (outcome?, shown) {
        (Outcome::Ended(_), Some(shown)) => shown,
        (Outcome::Ended(_) | Outcome::Interrupted, _) => {
            tell(&format!("{} is not finished; to go on, run the same command again:\n", request.name()));
            tell(&format!("  {}\n", command::line()));
            Ok(Exit::Interrupted)
        }
    }
}

/// Submits or continues, and follows to the end.
async fn tune(host: &Host, request: &Request, signals: &mut Signals) -> Result<Outcome, Failure> {
    match known(host.store(), request).await? {
        Known::Ended(id) => Ok(Outcome::Ended(id)),
        Known::GoesOn(id) => session::follow(host, &id, Since::Now, signals).await,
        Known::Nothing => {
            let body = request.body().to_string();
            let id = host.submit(body.as_bytes()).await.map_err(not_taken)?.id();
            session::follow(host, &id, Since::Submission, signals).await
        }
    }
}

/// Looks for a tuning with the request's name; one that asks for something else is an error.
async fn known(store: &Store<DynamoTable>, request: &Request) -> Result<Known, Failure> {
    let row = match lookup::find(store, request.name()).await {
        Ok(row) => row,
        Err(LookupError::NotFound(_)) => return Ok(Known::Nothing),
        Err(error) => return Err(error.into()),
    };
    let Some(loaded) = store.load(&row.id).await? else { return Ok(Known::Nothing) };
    if loaded.tuning.request.body() != request.body() {
        let name = &row.name;
        let place = difference(loaded.tuning.request.body(), request.body()).unwrap_or_default();
        let place = place.trim_start_matches('.');
        let first = if place.is_empty() { String::new() } else { format!(" (first at {place})") };
        return Err(Failure::usage(format!(
            "a tuning named '{name}' exists, and its request is another one{first}"
        ))
        .hint(format!(
            "use another --name or another --data-dir; `hyperband stop {name}` ends the one that is there"
        )));
    }
    Ok(if loaded.state.is_ended() { Known::Ended(row.id) } else { Known::GoesOn(row.id) })
}

/// Other tunings of the folder that are not finished would be run with this one's command: refused, unless they were
/// ordered to stop.
async fn others(store: &Store<DynamoTable>, name: &str) -> Result<(), Failure> {
    for row in store.all(ACTIVE, "").await? {
        let Some(id) = active_id(&row) else { continue };
        let Some(loaded) = store.load(id).await? else { continue };
        let other = &loaded.tuning.definition.name;
        if loaded.state.is_ended() || other.eq_ignore_ascii_case(name) {
            continue;
        }
        if !is_stopping(store, id).await? {
            return Err(Failure::usage(format!(
                "the tuning '{other}' in this data directory is not finished"
            ))
            .hint(format!(
                "finish it with its own command line, order it to stop with `hyperband stop {other}`, or use \
                     another --data-dir for this one"
            )));
        }
    }
    Ok(())
}

async fn is_stopping(store: &Store<DynamoTable>, id: &str) -> Result<bool, Failure> {
    let described = describe::summary(store, &local::host::place(), id).await?;
    Ok(described.is_none_or(|tuning| tuning["HyperParameterTuningJobStatus"] == "Stopping"))
}

/// Prints the result of a tuning that has ended.
async fn result(store: &Store<DynamoTable>, id: &str, options: &Run) -> Result<Exit, Failure> {
    let page = Page::read(store, id).await?;
    match options.output {
        Output::Json => {
            say_json(&json!({"TuningJob": page.described, "TrainingJobs": page.jobs}));
        }
        Output::Text => {
            say(&format!("{}{}", page.summary(), page.see_more(&options.place.data_dir)));
        }
    }
    Ok(page.exit())
}

fn not_taken(error: SubmitError) -> Failure {
    match error {
        SubmitError::Request(error) => ask::refused(&error),
        SubmitError::NameTaken(name) => {
            Failure::usage(format!("a tuning named '{name}' was just started by another process"))
        }
        SubmitError::MonthlyCap(message) => Failure::usage(message),
        SubmitError::Prices(error) => error.into(),
        SubmitError::Store(error) => error.into(),
    }
}

fn not_opened(error: HostError, data_dir: &Path) -> Failure {
    let in_use = matches!(
        error,
        HostError::Table(dynamodb::OpenError::InUse { .. })
            | HostError::Training(local::training::OpenError::InUse { .. })
    );
    let failure = Failure::endpoint(error).context(format!("cannot work in {}", data_dir.display()));
    if in_use {
        failure.hint("another `hyperband run` is at work there: wait for it, or use another --data-dir")
    } else {
        failure
    }
}
