//! `hyperband change`: puts the order to change limits into the table, or has a stack do it. Whoever runs the tuning obeys it.

use serde_json::{Value, json};
use wire::change::LimitsChange;

use crate::arguments::{Change, Output};
use crate::failure::{Exit, Failure};
use crate::orders::{Place, Told};
use crate::output::{say, say_json};
use crate::run::ask;
use crate::text::usd;

/// Orders limits of a tuning to be changed.
pub(crate) async fn change(options: Change) -> Result<Exit, Failure> {
    let limits = options.limits();
    // What nobody would take is refused before anything is asked.
    LimitsChange::parse(limits.body().to_string().as_bytes()).map_err(|error| ask::refused(&error))?;
    let place = Place::open(options.place.place().map_err(Failure::usage)?).await?;
    let name = place.name(&options.name).await?;
    if let Told::AlreadyEnded(status) = place.change(&name, &limits).await? {
        return Err(Failure::usage(if status == "Stopping" {
            format!("the tuning {name} is being stopped: its limits cannot be changed any more")
        } else {
            format!("the tuning {name} has ended already: {status}")
        }));
    }
    let running = place.is_running();
    match options.output {
        Output::Json => say_json(&json(&name, &limits, running)),
        Output::Text => {
            let when = if running {
                "training jobs that run go on"
            } else {
                "no `hyperband run` is at work on it, so the order takes effect when its command line is run again"
            };
            say(&format!("ordered for {name}: {}; {when}\n", words(&limits)));
        }
    }
    Ok(Exit::Done)
}

/// The members that were ordered, as the HTTP API names them.
fn json(name: &str, limits: &LimitsChange, running: bool) -> Value {
    let mut told = limits.body();
    told["HyperParameterTuningJobName"] = json!(name);
    told["Running"] = json!(running);
    told
}

fn words(limits: &LimitsChange) -> String {
    let cap = limits.cap.map(|cap| format!("a cost cap of {}", usd(cap)));
    let most = limits.max_parallel.map(|most| format!("at most {most} training jobs at once"));
    let paused = limits.paused.map(|paused| if paused { "a pause" } else { "no pause any more" }.to_owned());
    [cap, most, paused].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
