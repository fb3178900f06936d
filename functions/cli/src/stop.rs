//! `hyperband stop`: puts the order to stop into the table. Whoever runs the tuning obeys it.

mod all;

use local::host::SystemClock;
use serde_json::json;
use service::lookup::{self, LookupError};
use service::ports::Clock;

use crate::arguments::{Output, Stop};
use crate::data::Data;
use crate::failure::{Exit, Failure};
use crate::output::{say, say_json};

/// Orders a tuning to stop, or all of them.
pub(crate) async fn stop(options: Stop) -> Result<Exit, Failure> {
    let data = Data::existing(&options.place.data_dir).await?;
    let Some(name) = &options.name else { return all::stop_all(&options, &data).await };
    let row = data.find(name).await?;
    match lookup::stop(&data.store, &row.name, SystemClock.now()).await {
        Ok(()) => {}
        Err(LookupError::AlreadyEnded(status)) => {
            return Err(Failure::usage(format!("the tuning {} has ended already: {status}", row.name)));
        }
        Err(error) => return Err(error.into()),
    }
    let running = data.is_running();
    match options.output {
        Output::Json => {
            say_json(&json!({
                "HyperParameterTuningJobName": row.name,
                "HyperParameterTuningJobStatus": "Stopping",
                "Running": running,
            }));
        }
        Output::Text if running => {
            say(&format!(
                "ordered {} to stop: no further job is started, running ones are stopped\n",
                row.name
            ));
        }
        Output::Text => say(&format!(
            "ordered {} to stop; no `hyperband run` is at work on it, so the order takes effect when its command line \
             is run again\n",
            row.name
        )),
    }
    Ok(Exit::Done)
}
