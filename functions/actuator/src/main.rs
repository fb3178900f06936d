//! The actuator function: performs a batch of new action rows; answers which to deliver again.
//!
//! Wiring only; what it does is `service::perform`.

use std::process::ExitCode;

use cloud::{Settings, actuator};
use function::{Call, Program, told};
use service::perform::Acts;

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
        // Each record is answered for by itself, so the call as a whole never fails; what is cut off is not done.
        time.within(actuator.handle(&call.event, || time.goes_on(), &mut done)).await;
        Ok(told::acts(&done, &mut call.report))
    };
    program.run(&settings.table.stack_name, handle).await
}
