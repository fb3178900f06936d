//! The job-logs function: records the objective's values in a batch of log lines, as CloudWatch Logs delivers it.
//!
//! Wiring only; the use case is `use_cases::job_logs`. Lambda delivers a failed event again; an unreadable one goes to
//! the failure queue, with the error type `Unreadable`.

use std::process::ExitCode;
use std::sync::Arc;

use dynamodb::aws::table;
use lambda::settings::TableSettings;
use lambda::{Call, Program, SystemClock, outcomes};
use use_cases::job_events::About;
use use_cases::job_logs::JobLogs;
use use_cases::store::Store;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let program = Program::named("job-logs");
    let settings = match TableSettings::read(|name| std::env::var(name).ok()) {
        Ok(settings) => settings,
        Err(error) => return program.cannot_start(&error),
    };
    let store = Arc::new(Store::new(Arc::new(table(&settings.table_name, settings.fact_days).await)));
    let ingest = JobLogs::new(store, SystemClock);
    let handle = async |call: &mut Call| {
        let mut about = About::default();
        let recorded = call.deadline.within(ingest.handle(&call.event, &mut about)).await;
        outcomes::recorded(recorded, &about, &mut call.report)
    };
    program.run(&settings.stack_name, handle).await
}
