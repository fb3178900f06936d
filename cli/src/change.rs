//! `hyperband change`: changes limits of a tuning in a data directory or at a stack. Its controller applies the change.

use serde_json::{Value, json};
use wire::change::LimitsChange;

use crate::arguments::Change;
use crate::failure::{Exit, Failure};
use crate::output::show;
use crate::stop::already_ended;
use crate::text::usd;
use crate::tunings::{OrderOutcome, Tunings};

pub(crate) async fn change(options: Change) -> Result<Exit, Failure> {
    let limits = options.limits();
    // Validates the limits before any request.
    LimitsChange::parse(limits.body().to_string().as_bytes())
        .map_err(|error| Failure::invalid_request(&error))?;
    let tunings = Tunings::open_writable(&options.tuning.place).await?;
    let name = tunings.name(&options.tuning.name).await?;
    if let OrderOutcome::AlreadyEnded(status) = tunings.change(&name, &limits).await? {
        return Err(if status == "Stopping" {
            Failure::usage(format!("the tuning {name} is stopping: its limits cannot be changed"))
        } else {
            already_ended(&name, &status, &tunings.location_options)
        });
    }
    let running = tunings.is_running();
    let text = || {
        let when = if running {
            "running jobs continue".to_owned()
        } else {
            let resume = tunings.resume(&name);
            format!(
                "no `hyperband run` is active, so the change takes effect when you continue the tuning:\n  {resume}"
            )
        };
        format!("changed {name}: {}; {when}\n", limits_text(&limits))
    };
    show(options.tuning.output, text, || json(&name, &limits, running));
    Ok(Exit::Done)
}

/// Returns the changes with the member names of the HTTP API.
fn json(name: &str, limits: &LimitsChange, running: bool) -> Value {
    let mut changes = limits.body();
    changes["HyperParameterTuningJobName"] = json!(name);
    changes["Running"] = json!(running);
    changes
}

fn limits_text(limits: &LimitsChange) -> String {
    let cap = limits.cap.map(|cap| format!("cost cap {}", usd(cap)));
    let most = limits.max_parallel.map(|most| format!("at most {most} parallel jobs"));
    let paused = limits.paused.map(|paused| if paused { "paused" } else { "resumed" }.to_owned());
    [cap, most, paused].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
