//! The api function: answers what API Gateway hands on.
//!
//! Wiring only; what it does is `http_api`, on `service`'s use cases. API Gateway has authenticated the caller by IAM.

mod settings;
mod told;

use std::process::ExitCode;
use std::sync::Arc;

use aws_connection::account;
use function::{Call, Program, SystemClock};
use http_api::{Answered, Api, ApiError};
use pricing::PriceList;
use service::prices::KeptPrices;
use service::store::Store;
use service::submit::Submit;
use settings::Settings;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let program = Program::named("api");
    let Settings { table: named, place, monthly_cap, guardrails } =
        match Settings::read(|name| std::env::var(name).ok()) {
            Ok(settings) => settings,
            Err(error) => return program.cannot_start(&error),
        };
    let account = account().await;
    let table = Arc::new(dynamodb::aws::table_of(&account, &named));
    let prices = KeptPrices { table: Arc::clone(&table), list: PriceList::new(&account), clock: SystemClock };
    let store = Arc::new(Store::new(table));
    let api = Api { submit: Submit { store, prices, clock: SystemClock, monthly_cap, guardrails } };
    let handle = async |call: &mut Call| {
        let answered = call.deadline.within(api.answer(&call.event, &place)).await;
        let answered = answered.unwrap_or_else(|| Answered::error(ApiError::timed_out()));
        told::answered(&answered, &mut call.report);
        Ok(answered.response.encode())
    };
    program.run(&named.stack_name, handle).await
}
