//! The api function: answers what API Gateway hands on.
//!
//! Wiring only; what it does is `http_api`, on `service`'s use cases. API Gateway has authenticated the caller by IAM.

mod settings;

use std::sync::Arc;

use aws_connection::{SystemClock, account};
use http_api::Api;
use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use pricing::PriceList;
use serde_json::Value;
use service::describe::Place;
use service::prices::KeptPrices;
use service::store::Store;
use service::submit::Submit;
use settings::Settings;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let settings = Settings::read(|name| std::env::var(name).ok())?;
    let account = account().await;
    let table = Arc::new(dynamodb::aws::table_of(&account, &settings.table));
    let list = PriceList::new(&account);
    let submit = Submit {
        store: Arc::new(Store::new(Arc::clone(&table))),
        prices: KeptPrices { table, list, clock: SystemClock },
        clock: SystemClock,
        monthly_cap: settings.monthly_cap,
        guardrails: settings.guardrails,
    };
    let api = &Api { submit };
    let handler = |event: LambdaEvent<Value>| async move {
        let place = Place::of_arn(&event.context.invoked_function_arn);
        Ok::<Value, Error>(api.answer(&event.payload, &place).await.response.encode())
    };
    run(service_fn(handler)).await
}
