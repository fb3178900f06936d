//! The job-logs function: records the objective's values in a batch of log lines, as CloudWatch Logs delivers it.
//!
//! Wiring only; what it does is `service::job_logs`. What fails is delivered again; what cannot be read ends in the failure
//! queue, under the error type `Unreadable`.

use std::process::ExitCode;
use std::sync::Arc;

use dynamodb::aws::{Settings, table};
use function::{Call, Program, SystemClock, told};
use service::job_events::About;
use service::job_logs::JobLogs;
use service::store::Store;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let program = Program::named("job-logs");
    let settings = match Settings::read(|name| std::env::var(name).ok()) {
        Ok(settings) => settings,
        Err(error) => return program.cannot_start(&error),
    };
    let store = Arc::new(Store::new(Arc::new(table(&settings).await)));
    let ingest = JobLogs { store, clock: SystemClock };
    let handle = async |call: &mut Call| {
        let mut about = About::default();
        let recorded = call.deadline.within(ingest.handle(&call.event, &mut about)).await;
        told::recorded(recorded, &about, &mut call.report)
    };
    program.run(&settings.stack_name, handle).await
}
