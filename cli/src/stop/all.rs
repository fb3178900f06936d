//! `hyperband stop --all`: stops every active tuning, after a confirmation.

use serde_json::json;

use crate::arguments::{Output, Stop};
use crate::failure::{Exit, Failure};
use crate::output::{print_err, print_out, show};
use crate::question;
use crate::tunings::{Active, OrderOutcome, Tunings};

pub(super) async fn stop_all(options: &Stop, tunings: &Tunings) -> Result<Exit, Failure> {
    // An error with one tuning must not prevent the stop of the others.
    let (active, mut failures) = tunings.active().await;
    if !active.is_empty() && !options.yes && !confirmed(&active)? {
        print_err("nothing was stopped\n");
        return Ok(print_failures(&failures));
    }
    let mut ordered = Vec::new();
    for tuning in &active {
        let (result, status) = match tunings.stop(&tuning.name).await {
            Ok(OrderOutcome::Accepted) => {
                (if tuning.stopping { "already stopping" } else { "stopping" }, "Stopping".to_owned())
            }
            Ok(OrderOutcome::AlreadyEnded(status)) => ("has already ended", status),
            Err(error) => {
                failures.push(error.context(format!("cannot stop {}", tuning.name)));
                continue;
            }
        };
        if options.output == Output::Text {
            print_out(&format!("{}: {result}\n", tuning.name));
        }
        ordered.push(json!({
            "HyperParameterTuningJobName": tuning.name,
            "HyperParameterTuningJobStatus": status,
        }));
    }
    let running = tunings.is_running();
    let text = || {
        if active.is_empty() && failures.is_empty() {
            "no tuning is active\n".to_owned()
        } else if running || ordered.is_empty() {
            String::new()
        } else {
            let resume = tunings.resume("NAME");
            format!(
                "no `hyperband run` is active, so a stop takes effect when you continue its tuning: {resume}\n"
            )
        }
    };
    show(options.output, text, || json!({"HyperParameterTuningJobSummaries": ordered, "Running": running}));
    Ok(print_failures(&failures))
}

fn print_failures(failures: &[Failure]) -> Exit {
    failures.iter().for_each(Failure::print);
    failures.first().map_or(Exit::Done, |failure| failure.exit)
}

fn confirmed(tunings: &[Active]) -> Result<bool, Failure> {
    let names: Vec<&str> = tunings.iter().map(|tuning| tuning.name.as_str()).collect();
    let names = names.join(", ");
    let which = if tunings.len() == 1 { "the active tuning" } else { "all active tunings" };
    question::confirmed(&format!("this would stop {names}"), &format!("stop {which}: {names}?"))
}
