//! The sweeper function: one sweep for each tick of its schedule; answers what it did.
//!
//! Wiring only; what it does is `service::sweep`. What it could not do is in its answer and in its log, and is left to the
//! next tick.

use std::process::ExitCode;

use aws_connection::{SettingsError, setting};
use cloud::{Settings, actuator};
use function::{Call, Program, now, told};
use service::sweep::{Limits, Sweeper};
use wire::events::schedule::Tick;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let program = Program::named("sweeper");
    let (settings, owner) = match settings() {
        Ok(settings) => settings,
        Err(error) => return program.cannot_start(&error),
    };
    let sweeper = Sweeper::new(actuator(&settings).await, Limits::CLOUD, owner);
    let handle = async |call: &mut Call| {
        Tick::parse(&call.event).map_err(|error| told::unreadable(&error, &mut call.report))?;
        let begun = now();
        let swept = call.deadline.within(sweeper.sweep()).await;
        told::swept(swept, now() - begun, &mut call.report)
    };
    program.run(&settings.table.stack_name, handle).await
}

/// The settings, and who sweeps: one for each of Lambda's sandboxes, which runs one sweep at a time.
fn settings() -> Result<(Settings, String), SettingsError> {
    let variable = |name: &str| std::env::var(name).ok();
    Ok((Settings::read(variable)?, setting(variable, "AWS_LAMBDA_LOG_STREAM_NAME")?))
}
