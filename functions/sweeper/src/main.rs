//! The sweeper function: runs one sweep for each tick of its schedule, and returns what it did.
//!
//! Wiring only; the use case is `use_cases::sweep`. A tick has no content, so every event counts as a tick. The
//! response and the log list failures, which are left to the next tick.

use std::process::ExitCode;

use aws::account;
use lambda::settings::{SettingsError, days, setting};
use lambda::{Call, Program, now, outcomes};
use sagemaker::actuator::{Settings, actuator};
use use_cases::sweep::{Limits, Silence, Sweeper};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let program = Program::named("sweeper");
    let (settings, limits, owner) = match settings() {
        Ok(settings) => settings,
        Err(error) => return program.cannot_start(&error),
    };
    let sweeper = Sweeper::new(actuator(&account().await, &settings), limits, owner);
    let handle = async |call: &mut Call| {
        let begun = now();
        let swept = call.deadline.within(sweeper.sweep()).await;
        outcomes::swept(swept, now() - begun, &mut call.report)
    };
    program.run(&settings.table.stack_name, handle).await
}

/// Returns the settings, the limits of a sweep, and the owner of the sweep lease: one for each Lambda sandbox,
/// which runs one sweep at a time.
fn settings() -> Result<(Settings, Limits, String), SettingsError> {
    let variable = |name: &str| std::env::var(name).ok();
    let silence = silence(&setting(variable, "METRICS_FROM")?)?;
    let limits = Limits { silence, retention: days(variable, "TUNING_DAYS")?, ..Limits::CLOUD };
    Ok((Settings::read(variable)?, limits, setting(variable, "AWS_LAMBDA_LOG_STREAM_NAME")?))
}

/// Returns which jobs count as silent where metrics come from `source`.
fn silence(source: &str) -> Result<Silence, SettingsError> {
    match source {
        "Subscription" => Ok(Silence::Delivered),
        "Polling" => Ok(Limits::CLOUD.silence),
        _ => Err(SettingsError::Unreadable { name: "METRICS_FROM", expected: "Subscription or Polling" }),
    }
}
