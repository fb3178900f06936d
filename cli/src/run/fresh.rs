//! `run --fresh`: removes the tuning of the same name, so that the name is free.

use local::host::{Host, HostConfig, SystemClock};
use use_cases::lookup::{self, LookupError};
use use_cases::ports::Clock;

use super::{Signals, open_failure};
use crate::data::Data;
use crate::failure::{Exit, Failure};
use crate::orders::Place;
use crate::output::print_err;

/// Deletes the tuning `name`, if there is one. Stops it first if it was interrupted.
pub(super) async fn remove(
    data: Data,
    config: &HostConfig,
    name: &str,
    signals: &mut Signals,
) -> Result<(), Failure> {
    let row = match lookup::find(&data.store, name).await {
        Ok(row) => row,
        Err(LookupError::NotFound(_)) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let Some(loaded) = data.store.load(&row.id).await? else { return Ok(()) };
    let folder = data.folder().to_owned();
    if !loaded.state.is_ended() {
        if data.is_running() {
            return Err(Failure::usage(format!("the tuning '{name}' is running"))
                .hint(format!("stop it first: hyperband stop {name}{}", data.location_options())));
        }
        lookup::stop(&data.store, name, SystemClock.now()).await?;
        // The host opens the table with the lock of the folder.
        drop(data);
        end(config, &row.id, name, signals).await?;
    }
    Place::Folder(Box::new(Data::existing(&folder).await?)).delete(name).await?;
    print_err(&format!("deleted the earlier tuning {name}; its models and checkpoints stay\n"));
    Ok(())
}

/// Runs the controller until the tuning has settled the bills of its interrupted jobs and has ended.
async fn end(config: &HostConfig, id: &str, name: &str, signals: &mut Signals) -> Result<(), Failure> {
    let host = Host::open(config.clone()).await.map_err(|error| open_failure(error, &config.data_dir))?;
    let interrupted =
        || Failure::usage(format!("interrupted while {name} was stopping")).exit(Exit::Interrupted);
    let ended = tokio::select! {
        ended = host.ended(id) => ended.map_err(Failure::from),
        () = signals.next() => Err(interrupted()),
    };
    host.shutdown().await;
    ended
}
