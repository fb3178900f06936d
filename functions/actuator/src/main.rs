//! The actuator function: performs a batch of new action rows, and returns the records to deliver again. Another
//! invocation of the function performs the starts.
//!
//! Wiring only; the use case is `use_cases::perform`.

use std::process::ExitCode;

use aws::account;
use aws::invocation::Function;
use lambda::settings::{SettingsError, setting};
use lambda::{Call, Program, outcomes};
use sagemaker::actuator::{Settings, actuator};
use use_cases::perform::ActionBatch;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let program = Program::named("actuator");
    let (settings, name) = match settings() {
        Ok(settings) => settings,
        Err(error) => return program.cannot_start(&error),
    };
    let account = account().await;
    let (actuator, itself) = (actuator(&account, &settings), Function::new(&account, name));
    let handle = async |call: &mut Call| {
        let (time, mut done) = (call.deadline, ActionBatch::default());
        let work = actuator.handle_handing_over(&call.event, &itself, || time.has_time(), &mut done);
        // Each record has its own result, so the invocation as a whole never fails. Records cut off by time are not done.
        time.within(work).await;
        Ok(outcomes::acts(&done, &mut call.report))
    };
    program.run(&settings.table.stack_name, handle).await
}

/// Returns the settings, and the function's own name.
fn settings() -> Result<(Settings, String), SettingsError> {
    let variable = |name: &str| std::env::var(name).ok();
    Ok((Settings::read(variable)?, setting(variable, "AWS_LAMBDA_FUNCTION_NAME")?))
}
