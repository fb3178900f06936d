//! `hyperband stop`: puts the order to stop into the table, or has a stack do it. Whoever runs the tuning obeys it.

mod all;

use serde_json::json;

use crate::arguments::{Output, Stop};
use crate::failure::{Exit, Failure};
use crate::orders::{Place, Told};
use crate::output::{say, say_json};

/// Orders a tuning to stop, or all of them.
pub(crate) async fn stop(options: Stop) -> Result<Exit, Failure> {
    let place = Place::open(options.place.place().map_err(Failure::usage)?).await?;
    let Some(name) = &options.name else { return all::stop_all(&options, &place).await };
    let name = place.name(name).await?;
    if let Told::AlreadyEnded(status) = place.stop(&name).await? {
        return Err(Failure::usage(format!("the tuning {name} has ended already: {status}")));
    }
    let running = place.is_running();
    match options.output {
        Output::Json => {
            say_json(&json!({
                "HyperParameterTuningJobName": name,
                "HyperParameterTuningJobStatus": "Stopping",
                "Running": running,
            }));
        }
        Output::Text if running => {
            say(&format!("ordered {name} to stop: no further job is started, running ones are stopped\n"));
        }
        Output::Text => say(&format!(
            "ordered {name} to stop; no `hyperband run` is at work on it, so the order takes effect when its command line \
             is run again\n"
        )),
    }
    Ok(Exit::Done)
}
