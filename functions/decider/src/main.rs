//! The decider function: decides the tunings of a batch of fact and ring records, and returns the records to deliver
//! again.
//!
//! Wiring only; the use case is `use_cases::decide`.

use std::process::ExitCode;
use std::sync::Arc;

use dynamodb::aws::table;
use lambda::settings::TableSettings;
use lambda::{Call, Program, now, outcomes};
use use_cases::decide::{Decided, Decider};
use use_cases::store::Store;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let program = Program::named("decider");
    let settings = match TableSettings::read(|name| std::env::var(name).ok()) {
        Ok(settings) => settings,
        Err(error) => return program.cannot_start(&error),
    };
    let decider = Decider {
        store: Arc::new(Store::new(Arc::new(table(&settings.table_name, settings.fact_days).await))),
    };
    let handle = async |call: &mut Call| {
        let (time, mut done) = (call.deadline, Decided::default());
        // Each record has its own result, so the invocation as a whole never fails. Records cut off by time are not done.
        time.within(decider.handle(&call.event, || time.has_time(), &mut done)).await;
        Ok(outcomes::decided(&done, now(), &mut call.report))
    };
    program.run(&settings.stack_name, handle).await
}
