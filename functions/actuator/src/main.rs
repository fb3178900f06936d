//! The actuator function: performs a batch of new action rows, and returns the records to deliver again.
//!
//! Wiring only; the use case is `use_cases::perform`.

use std::process::ExitCode;

use lambda::{Call, Program, outcomes};
use sagemaker::actuator::{Settings, actuator};
use use_cases::perform::Acts;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let program = Program::named("actuator");
    let settings = match Settings::read(|name| std::env::var(name).ok()) {
        Ok(settings) => settings,
        Err(error) => return program.cannot_start(&error),
    };
    let actuator = actuator(&settings).await;
    let handle = async |call: &mut Call| {
        let (time, mut done) = (call.deadline, Acts::default());
        // Each record has its own result, so the invocation as a whole never fails. Records cut off by time are not done.
        time.within(actuator.handle(&call.event, || time.has_time(), &mut done)).await;
        Ok(outcomes::acts(&done, &mut call.report))
    };
    program.run(&settings.table.stack_name, handle).await
}
