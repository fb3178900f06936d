//! The job-events function: records a state change of a training job, as EventBridge delivers it.
//!
//! Wiring only; what it does is `service::job_events`. What fails is delivered again; what cannot be read ends in the failure
//! queue, under the error type `Unreadable`.

use std::process::ExitCode;
use std::sync::Arc;

use dynamodb::aws::{Settings, table};
use function::{Call, Program, SystemClock, told};
use service::job_events::{About, JobEvents};
use service::store::Store;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let program = Program::named("job-events");
    let settings = match Settings::read(|name| std::env::var(name).ok()) {
        Ok(settings) => settings,
        Err(error) => return program.cannot_start(&error),
    };
    let store = Arc::new(Store::new(Arc::new(table(&settings).await)));
    let ingest = JobEvents { store, clock: SystemClock, stack: settings.stack_name.clone() };
    let handle = async |call: &mut Call| {
        let mut about = About::default();
        let recorded = call.deadline.within(ingest.handle(&call.event, &mut about)).await;
        told::recorded(recorded, &about, &mut call.report)
    };
    program.run(&settings.stack_name, handle).await
}
