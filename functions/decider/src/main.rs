//! The decider function: takes batches of stream records of facts and rings; answers which to deliver again.
//!
//! Wiring only; what it does is `service::decide`.

use std::sync::Arc;

use dynamodb::aws::{Settings, table};
use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde_json::Value;
use service::decide::Decider;
use service::store::Store;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let settings = Settings::read(|name| std::env::var(name).ok())?;
    let decider = &Decider { store: Arc::new(Store::new(Arc::new(table(&settings).await))) };
    let handler = |event: LambdaEvent<Value>| async move {
        // Each record is answered for by itself, so the call as a whole never fails.
        Ok::<Value, Error>(decider.handle(&event.payload).await)
    };
    run(service_fn(handler)).await
}
