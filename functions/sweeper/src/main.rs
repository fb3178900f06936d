//! The sweeper function: one sweep for each tick of its schedule; answers what it did.
//!
//! Wiring only; what it does is `service::sweep`. What it could not do is in its answer and in its log, and is left to the
//! next tick.

use aws_connection::setting;
use cloud::{Settings, actuator};
use lambda_runtime::{Diagnostic, Error, LambdaEvent, run, service_fn};
use serde_json::{Value, json};
use service::sweep::{Limits, Sweeper, Swept};
use wire::events::schedule::Tick;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let variable = |name: &str| std::env::var(name).ok();
    let settings = Settings::read(variable)?;
    // One for each of Lambda's sandboxes, which runs one sweep at a time.
    let owner = setting(variable, "AWS_LAMBDA_LOG_STREAM_NAME")?;
    let sweeper = &Sweeper::new(actuator(&settings).await, Limits::CLOUD, owner);
    let handler = |event: LambdaEvent<Value>| async move {
        Tick::parse(&event.payload).map_err(|error| diagnostic("Unreadable", &error))?;
        let swept = sweeper.sweep().await.map_err(|error| diagnostic("Table", &error))?;
        let answer = answer(&swept);
        tell(&answer);
        Ok::<Value, Diagnostic>(answer)
    };
    run(service_fn(handler)).await
}

/// The error type is what alarms and the failure queue tell apart.
fn diagnostic(error_type: &str, error: &dyn std::error::Error) -> Diagnostic {
    Diagnostic { error_type: error_type.to_owned(), error_message: error.to_string() }
}

/// What a sweep did, and the last thing that it could not do.
fn answer(swept: &Swept) -> Value {
    let settled = &swept.settled;
    json!({
        "busy": swept.busy,
        "lost": swept.lost,
        "tunings": swept.tunings,
        "looked": swept.looked,
        "settled": {
            "starts": settled.starts,
            "stops": settled.stops,
            "bills": settled.bills,
            "reads": settled.reads,
            "notices": settled.notices,
            "grants": settled.grants,
        },
        "left": swept.left,
        "failed": swept.failed,
        "orphansStopped": swept.orphans_stopped,
        "lastError": swept.last_error.as_ref().map(ToString::to_string),
        "listingError": swept.listing_error.as_ref().map(ToString::to_string),
    })
}

#[expect(
    clippy::print_stdout,
    reason = "Lambda keeps it as the function's log, in which one searches by field"
)]
fn tell(answer: &Value) {
    println!("{answer}");
}
