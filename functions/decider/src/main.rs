//! The decider function: takes batches of stream records of facts and rings; answers which to deliver again.
//!
//! Wiring only; what it does is `service::decide`.

use std::process::ExitCode;
use std::sync::Arc;

use dynamodb::aws::{Settings, table};
use function::{Call, Program, now, told};
use service::decide::{Decided, Decider};
use service::store::Store;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let program = Program::named("decider");
    let settings = match Settings::read(|name| std::env::var(name).ok()) {
        Ok(settings) => settings,
        Err(error) => return program.cannot_start(&error),
    };
    let decider = Decider { store: Arc::new(Store::new(Arc::new(table(&settings).await))) };
    let handle = async |call: &mut Call| {
        let (time, mut done) = (call.deadline, Decided::default());
        // Each record is answered for by itself, so the call as a whole never fails; what is cut off is not done.
        time.within(decider.handle(&call.event, || time.goes_on(), &mut done)).await;
        Ok(told::decided(&done, now(), &mut call.report))
    };
    program.run(&settings.stack_name, handle).await
}
