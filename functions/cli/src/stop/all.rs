//! `hyperband stop --all`: every tuning that is not over, after a question to the person at the terminal.

use std::io::{self, IsTerminal};

use serde_json::{Value, json};

use super::place::{Active, Place, Told};
use crate::arguments::{Output, Stop};
use crate::failure::{Exit, Failure};
use crate::output::{say, say_json, tell};

/// Orders all active tunings to stop.
pub(super) async fn stop_all(options: &Stop, place: &Place) -> Result<Exit, Failure> {
    let tunings = place.active().await?;
    if !tunings.is_empty() && !options.yes && !agreed(&tunings)? {
        tell("nothing was ordered to stop\n");
        return Ok(Exit::Done);
    }
    let mut ordered = Vec::new();
    // One that cannot be ordered to stop must not save the others.
    let mut failed = None;
    for tuning in &tunings {
        let told = match place.stop(&tuning.name).await {
            Ok(Told::Ordered) => (
                if tuning.stopping { "it was stopping already" } else { "ordered to stop" },
                "Stopping".to_owned(),
            ),
            Ok(Told::AlreadyEnded(status)) => ("it has just ended", status),
            Err(error) => {
                failed = failed.or(Some(error.context(format!("cannot stop {}", tuning.name))));
                continue;
            }
        };
        if options.output == Output::Text {
            say(&format!("{}: {}\n", tuning.name, told.0));
        }
        ordered.push(json!({
            "HyperParameterTuningJobName": tuning.name,
            "HyperParameterTuningJobStatus": told.1,
        }));
    }
    let running = place.is_running();
    match options.output {
        Output::Json => {
            say_json(&json!({"HyperParameterTuningJobSummaries": Value::Array(ordered), "Running": running}));
        }
        Output::Text if tunings.is_empty() => say("no tuning is active\n"),
        Output::Text if running => {}
        Output::Text => say(
            "no `hyperband run` is at work here, so an order takes effect when its command line is run again\n",
        ),
    }
    failed.map_or(Ok(Exit::Done), Err)
}

/// Asks the person at the terminal.
fn agreed(tunings: &[Active]) -> Result<bool, Failure> {
    let names: Vec<&str> = tunings.iter().map(|tuning| tuning.name.as_str()).collect();
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let names = names.join(", ");
        return Err(Failure::usage(format!("this would stop {names}, and there is no terminal to ask on"))
            .hint("add --yes if that is what you want"));
    }
    let which = if names.len() == 1 { "the active tuning" } else { "all active tunings" };
    tell(&format!("stop {which}: {}? [y/N] ", names.join(", ")));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(Failure::endpoint)?;
    Ok(is_yes(&answer))
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_a_yes() {
        for (answer, expected) in
            [("y\n", true), ("YES\n", true), ("\n", false), ("", false), ("no\n", false), ("yeah\n", false)]
        {
            assert_eq!(is_yes(answer), expected, "{answer:?}");
        }
    }
}
