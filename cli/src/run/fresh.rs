//! `run --fresh`: removes the tuning of the same name, so that the name is free.
//!
//! Deletes nothing until the new request is valid and the host has opened the folder.

use std::path::Path;

use local::host::{Host, SystemClock};
use tuning::definition::Definition;
use use_cases::lookup::{self, LookupError};
use use_cases::ports::Clock;
use use_cases::submit::check_parents;
use wire::request::Request;

use crate::arguments::folder_option;
use crate::data::Data;
use crate::failure::{Exit, Failure};
use crate::output::print_err;
use crate::signals::Signals;
use crate::tunings::delete_ended;

use super::submit_failure;

/// Requests the stop of the tuning with the name of `request` if it was interrupted, so that the host continues no job of
/// it. Returns its id. `None` if there is no such tuning.
pub(super) async fn prepare(
    data: &Data,
    request: &Request,
    definition: &Definition,
) -> Result<Option<String>, Failure> {
    data.require_writable()?;
    let name = request.name();
    let (_, parents) = request.warm_start().unzip();
    if parents.into_iter().flatten().any(|parent| parent.eq_ignore_ascii_case(name)) {
        return Err(Failure::usage(format!("--fresh deletes the tuning '{name}', which is also a parent"))
            .hint("use another --name without --fresh"));
    }
    check_parents(&data.store, request, definition).await.map_err(|error| submit_failure(request, error))?;
    let row = match lookup::find(&data.store, name).await {
        Ok(row) => row,
        Err(LookupError::NotFound(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let Some(loaded) = data.store.load(&row.id).await? else { return Ok(None) };
    if !loaded.state.is_ended() {
        if data.is_running() {
            return Err(Failure::usage(format!("the tuning '{name}' is running"))
                .hint(format!("stop it first: hyperband stop {name}{}", folder_option(data.folder()))));
        }
        lookup::stop(&data.store, name, SystemClock.now()).await?;
    }
    Ok(Some(row.id))
}

/// Deletes the tuning `id` once it has ended. Fails if a signal comes first.
pub(super) async fn remove(host: &Host, data: &Path, id: &str, signals: &mut Signals) -> Result<(), Failure> {
    tokio::select! {
        ended = host.ended(id) => ended?,
        () = signals.next() => {
            return Err(Failure::usage(format!("interrupted before the earlier tuning {id} was deleted"))
                .exit(Exit::Interrupted)
                .hint("repeat the command line with --fresh"));
        }
    }
    // This process has the folder, so nothing else settles the tuning.
    delete_ended(host.store(), data, id, true).await?;
    print_err(&format!("deleted the earlier tuning {id}; its models and checkpoints stay\n"));
    Ok(())
}
