//! `hyperband stop --all`: every tuning that is not over, after a question to the person at the terminal.

use serde_json::{Value, json};

use crate::arguments::{Output, Stop};
use crate::failure::{Exit, Failure};
use crate::orders::{Active, Place, Told};
use crate::output::{say, say_json, tell};
use crate::question;

/// Orders all active tunings to stop.
pub(super) async fn stop_all(options: &Stop, place: &Place) -> Result<Exit, Failure> {
    // One that cannot be read, or not be ordered to stop, must not save the others.
    let (tunings, mut failures) = place.active().await?;
    if !tunings.is_empty() && !options.yes && !agreed(&tunings)? {
        tell("nothing was ordered to stop\n");
        return Ok(told(&failures));
    }
    let mut ordered = Vec::new();
    for tuning in &tunings {
        let became = match place.stop(&tuning.name).await {
            Ok(Told::Ordered) => (
                if tuning.stopping { "it was stopping already" } else { "ordered to stop" },
                "Stopping".to_owned(),
            ),
            Ok(Told::AlreadyEnded(status)) => ("it has just ended", status),
            Err(error) => {
                failures.push(error.context(format!("cannot stop {}", tuning.name)));
                continue;
            }
        };
        if options.output == Output::Text {
            say(&format!("{}: {}\n", tuning.name, became.0));
        }
        ordered.push(json!({
            "HyperParameterTuningJobName": tuning.name,
            "HyperParameterTuningJobStatus": became.1,
        }));
    }
    let (running, ordered_none) = (place.is_running(), ordered.is_empty());
    match options.output {
        Output::Json => {
            say_json(&json!({"HyperParameterTuningJobSummaries": Value::Array(ordered), "Running": running}));
        }
        Output::Text if tunings.is_empty() && failures.is_empty() => say("no tuning is active\n"),
        Output::Text if running || ordered_none => {}
        Output::Text => say(
            "no `hyperband run` is at work here, so an order takes effect when its command line is run again\n",
        ),
    }
    Ok(told(&failures))
}

/// Tells of all that failed.
fn told(failures: &[Failure]) -> Exit {
    failures.iter().for_each(Failure::tell);
    failures.first().map_or(Exit::Done, |failure| failure.exit)
}

/// Asks the person at the terminal.
fn agreed(tunings: &[Active]) -> Result<bool, Failure> {
    let names: Vec<&str> = tunings.iter().map(|tuning| tuning.name.as_str()).collect();
    let names = names.join(", ");
    let which = if tunings.len() == 1 { "the active tuning" } else { "all active tunings" };
    question::agreed(&format!("this would stop {names}"), &format!("stop {which}: {names}?"))
}
