//! `hyperband stop`: requests the stop of a tuning in a data directory or at a stack. Its controller performs the stop.

mod all;

use serde_json::json;

use crate::arguments::Stop;
use crate::failure::{Exit, Failure};
use crate::output::show;
use crate::tunings::{OrderOutcome, Tunings};

pub(crate) async fn stop(options: Stop) -> Result<Exit, Failure> {
    let tunings = Tunings::open_writable(&options.place).await?;
    let Some(name) = &options.name else { return all::stop_all(&options, &tunings).await };
    let name = tunings.name(name).await?;
    if let OrderOutcome::AlreadyEnded(status) = tunings.stop(&name).await? {
        return Err(already_ended(&name, &status, &tunings.location_options));
    }
    let running = tunings.is_running();
    let text = || {
        if running {
            return format!("stopping {name}: no more jobs start, and running jobs are stopped\n");
        }
        let resume = tunings.resume(&name);
        format!(
            "stop of {name} requested; no `hyperband run` is active, so the stop takes effect when you continue the \
             tuning:\n  {resume}\n"
        )
    };
    let json = || {
        json!({
            "HyperParameterTuningJobName": name,
            "HyperParameterTuningJobStatus": "Stopping",
            "Running": running,
        })
    };
    show(options.output, text, json);
    Ok(Exit::Done)
}

/// Returns the error for a tuning that has ended, which has nothing to stop or to change.
pub(crate) fn already_ended(name: &str, status: &str, place: &str) -> Failure {
    Failure::usage(format!("the tuning {name} has already ended: {status}"))
        .hint(format!("`hyperband describe {name}{place}` shows its result"))
}
