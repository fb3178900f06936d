//! The actuator function: performs a batch of new action rows; answers which to deliver again.
//!
//! Wiring only; what it does is `service::perform`.

use cloud::{Settings, actuator};
use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let settings = Settings::read(|name| std::env::var(name).ok())?;
    let actuator = &actuator(&settings).await;
    let handler = |event: LambdaEvent<Value>| async move {
        // Each record is answered for by itself, so the call as a whole never fails.
        Ok::<Value, Error>(actuator.handle(&event.payload).await)
    };
    run(service_fn(handler)).await
}
